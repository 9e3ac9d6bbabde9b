# SPDX-License-Identifier: Apache-2.0
"""Agents as a person meets them: what run and create show, ask, allow, copy and keep. No VM: the
stand-in runs commands here."""
import json
import os

import pytest
from test_no_sandbox import on_terminal

TOY = """agent 1
name toy
title Toy
about says what it was given
template debian
command echo
flags --yes --now
env TOY_MODE on
service anthropic
host api.anthropic.com:443 its model
host github.com:443 its code
host x.toy.example:443 its updates
history .toy/log
import .toy/settings.json
import .toy/config.toml
import .toy/notes/
drop .toy/settings.json hooks
seed .toy/settings.json {"trusted": ["%w"], "theme": "dark"}
seed .toy/config.toml first = 1
seed .toy/config.toml [projects."%w"]
seed .toy/start hello
end
"""
CANARY = "canary-3f9c2a"


@pytest.fixture
def toy(inst):
    folder = inst.root / "config/sbx/agents"
    folder.mkdir(parents=True)
    (folder / "toy.conf").write_text(TOY)
    inst.agents = folder
    inst.guest_home = inst.root / "state/agent-home"
    return inst


def rules(inst, sandbox):
    """The rules of this sandbox's own, as (effect, resources, origin)."""
    listed = json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
    return [(r["decision"], r["resources"], r["origin"]) for r in listed if r["sandbox"] == sandbox]


def get(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


def test_what_stands_behind_the_dashes(toy):
    assert toy.sbx("run", "toy", check=0).stdout == "--yes --now\n"
    assert toy.sbx("run", "toy", "--", "--more", "x", check=0).stdout == "--yes --now --more x\n"
    assert toy.sbx("run", "toy", "--", "list", "--all", check=0).stdout == "list --all\n"
    assert [s["name"]
            for s in json.loads(toy.sbx("ls", "--json").stdout)["sandboxes"]] == ["toy-work"]
    assert toy.sbx("run", "toy-work", check=0, cwd=toy.home).stdout == "--yes --now\n"
    assert toy.sbx("run", "--name", "toy-work", check=0, cwd=toy.home).stdout == "--yes --now\n"
    # shell: a command of one's own
    assert toy.sbx("run", "--", "echo", "plain", check=0).stdout == "plain\n"
    s = get(toy, "toy-work")
    assert s["agent"] == "toy" and s["env"] == {"TOY_MODE": "on"}


def test_another_agent_in_a_sandbox_that_is_there(toy):
    toy.sbx("create", "toy", ".", "--name", "box", check=0)
    p = toy.sbx("run", "shell", "--name", "box", check=125)
    assert "exists with agent toy, not shell" in p.stderr and "sbx run --name box" in p.stderr


def test_what_is_no_agent(toy):
    p = toy.sbx("create", "clade", check=2)
    assert ("unknown agent 'clade': available agents are amp, claude, codex," in p.stderr
            and "toy" in p.stderr)
    assert "try: sbx create claude\n" in p.stderr
    assert "try: sbx run claude\n" in toy.sbx("run", "clade", check=125).stderr
    assert "try: sbx template build claude\n" in toy.sbx("template", "build", "claud",
                                                         check=2).stderr
    assert "try: sbx agent ls" in toy.sbx("run", "nosuch", check=125).stderr


def test_the_list_names_what_is_next_to_a_person_only(toy):
    assert "sbx run AGENT" in on_terminal(toy, ["agent", "ls"], b"")[0]
    p = toy.sbx("agent", "ls", check=0)
    assert "sbx run" not in p.stdout + p.stderr


def test_rm_and_detached(toy):
    assert toy.sbx("run", "-d", "toy", check=0).stdout == "toy-work\n"
    toy.sbx("run", "--rm", "toy", check=0)
    assert json.loads(toy.sbx("ls", "--json").stdout)["sandboxes"] == []


def test_hosts_are_shown_and_nothing_is_allowed_unasked(toy):
    p = toy.sbx("create", "toy", "--name", "box", check=0)
    assert "Toy needs these hosts:" in p.stderr
    line = p.stderr.split("github.com:443")[1].split("\n")[0]
    assert " allowed " in line and "not allowed" not in line and "its code" in line
    # H2: no preset but allow-all has a model API
    for host, why in (("api.anthropic.com:443", "its model"), ("x.toy.example:443", "its updates")):
        line = p.stderr.split(host)[1].split("\n")[0]
        assert "not allowed yet" in line and why in line
    assert ("sbx policy allow network api.anthropic.com:443,x.toy.example:443 --sandbox box"
            in p.stderr)
    assert rules(toy, "box") == []


def test_hosts_are_allowed_when_the_person_says_so(toy):
    toy.sbx("create", "toy", "--name", "box", "--allow-hosts", check=0)
    # not the one that the policy allows
    assert rules(toy,
                 "box") == [("allow", ["api.anthropic.com:443", "x.toy.example:443"], "agent:toy")]
    toy.sbx("settings", "set", "agents.allow-hosts", "always", check=0)
    toy.sbx("create", "toy", "--name", "cup", check=0)
    assert rules(toy,
                 "cup") == [("allow", ["api.anthropic.com:443", "x.toy.example:443"], "agent:toy")]
    toy.sbx("settings", "set", "agents.allow-hosts", "never", check=0)
    toy.sbx("create", "toy", "--name", "jar", check=0)
    assert rules(toy, "jar") == []
    # nobody else's
    assert toy.sbx("policy", "check", "network", "x.toy.example:443").returncode == 1
    toy.sbx("rm", "-f", "box", "cup", check=0)
    assert rules(toy, "box") == []


@pytest.mark.parametrize("answer, granted", [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_hosts_are_asked_about_on_a_terminal(toy, answer, granted):
    out, status = on_terminal(toy, ["create", "toy", "--name", "box"], answer)
    assert status == 0 and "for this sandbox only?" in out
    assert bool(rules(toy, "box")) == granted


def test_deny_all_is_opened_by_an_agent_only_with_consent(toy):
    toy.policy("deny-all")
    toy.sbx("create", "toy", "--name", "box", check=0)
    assert rules(toy, "box") == []
    toy.sbx("create", "toy", "--name", "cup", "--allow-hosts", check=0)
    assert [r[2] for r in rules(toy, "cup")] == ["agent:toy"] and rules(toy, "box") == []


@pytest.mark.parametrize("how", [["--allow-hosts"], ["setting"], ["terminal"]])
def test_a_locked_policy_is_never_opened_by_an_agent(toy, how):
    toy.sbx("policy", "set-default", "deny-all", "--lock", check=0)
    if how == ["terminal"]:
        out, status = on_terminal(toy, ["create", "toy", "--name", "box"], b"y\ny\n")
        assert status == 0
    else:
        if how == ["setting"]:
            toy.sbx("settings", "set", "agents.allow-hosts", "always", check=0)
        out = toy.sbx("create", "toy", "--name", "box", *(how if how != ["setting"] else []),
                      check=0).stderr
    assert "for this sandbox only?" not in out
    assert "denied by your policy: deny rules take precedence" in out
    assert "sbx policy inspect" in out
    assert rules(toy, "box") == []
    for host in ("api.anthropic.com", "x.toy.example"):
        assert toy.sbx("policy", "check", "network", host, "--sandbox", "box").returncode == 1


@pytest.mark.parametrize("agent,why", [("aider", "Python package"), ("cursor", "cursor-agent"),
                                       ("kiro", "newest version")])
def test_an_agent_that_cannot_be_installed_has_a_reason(toy, agent, why):
    for args, status in ((["run", agent], 125), (["create", agent], 1),
                         (["template", "build", agent], 1), (["agent", "inspect", agent], 1)):
        p = toy.sbx(*args, check=status)
        assert f"the agent '{agent}' cannot be installed: " in p.stderr and why in p.stderr
        assert "try: sbx run shell\n" in p.stderr
    assert agent not in toy.sbx("agent", "ls", "-q", check=0).stdout.split()


def test_the_publisher_of_the_package_is_shown(toy):
    text = toy.sbx("agent", "inspect", "qwen", check=0).stdout
    assert "QwenLM/qwen-code" in text and "integrity  @qwen-code/" in text
    agent = json.loads(toy.sbx("agent", "inspect", "amp", "--json", check=0).stdout)
    assert agent["packages"][0]["name"] == "@ampcode/cli" and "ampcode.com" in agent["publisher"]
    assert agent["integrity"][0]["digest"].startswith("sha512-")


def test_a_template_without_the_agent_is_warned_of(toy):
    templates = toy.root / "data/sbx/templates"
    manifest = json.loads((templates / "debian/manifest.json").read_text())
    facts = {"debian": {"kind": "base"}, "other": {"kind": "saved", "agent": "codex"},
             "right": {"kind": "saved", "agent": "claude"}, "image": {"kind": "image"}}
    for name, more in facts.items():
        d = templates / name
        if name != "debian":
            d.mkdir()
            for f in manifest["files"]:
                (d / f).write_bytes(b"\0" * 4096)
        (d / "manifest.json").write_text(json.dumps({**manifest, "name": name, **more}))
    for name, says in (("debian", "was built without an agent: it has no program 'claude'"),
                       ("other", "was built for codex: it has no program 'claude'"),
                       ("right", None), ("image", None)):
        p = toy.sbx("create", "claude", "--name", name, "-t", name, check=0)
        assert (says or "was built") in p.stderr if says else "was built" not in p.stderr, p.stderr
        assert ("try: sbx template build claude" in p.stderr) == bool(says)
    assert "was built" not in toy.sbx("create", "shell", "--name", "plain", check=0).stderr


def test_a_missing_template_names_the_command(toy):
    p = toy.sbx("run", "claude", check=125)
    assert "template 'claude' not found" in p.stderr and "sbx template build claude" in p.stderr
    assert json.loads(toy.sbx("ls", "--json").stdout)["sandboxes"] == []


def fill_home(toy):
    own = toy.home / ".toy"
    (own / "notes/deep").mkdir(parents=True)
    (own
     / "settings.json").write_text(json.dumps({"model": "big", "theme": "light",
                                               "env": {"KEY": CANARY}, "hooks": [CANARY],
                                                   "servers": [{"headers": {"x": CANARY},
                                                                "port": 7}]}))
    (own / "config.toml").write_text(f'size = 3\napi_key = "{CANARY}"\n[mcp.env]\nA = "{CANARY}"\n')
    (own / "notes/a.md").write_text("be kind\n")
    (own / "notes/deep/b.md").write_text("be brief\n")
    (own / "notes/key.md").write_text("sk-ant-api03-" + CANARY * 3)
    (own / "notes/.credentials.json").write_text(json.dumps({"token": CANARY}))
    (own / "auth.json").write_text(CANARY)
    (toy.home / "outside").write_text(CANARY)
    (own / "notes/link.md").symlink_to(toy.home / "outside")
    (own / "notes/linked").symlink_to(toy.home)


def test_settings_are_imported_without_credentials(toy):
    fill_home(toy)
    p = toy.sbx("create", "toy", ".", "--name", "box", "--import-config", check=0)
    copied = {str(f.relative_to(toy.guest_home)): f.read_text() for f in toy.guest_home.rglob("*")
              if f.is_file()}
    assert sorted(copied) == [".toy/config.toml", ".toy/notes/a.md", ".toy/notes/deep/b.md",
                              ".toy/settings.json", ".toy/start"]
    assert not any(CANARY in text for text in copied.values())
    assert json.loads(copied[".toy/settings.json"]) == {"model": "big", "theme": "light",
                                                        "servers": [{"port": 7}],
                                                        "trusted": [str(toy.work)]}
    assert copied[".toy/config.toml"] == f'first = 1\nsize = 3\n\n[projects."{toy.work}"]\n'
    assert "copy   .toy/settings.json (removed: env, hooks, headers)" in p.stderr
    for path, why in ((".toy/notes/.credentials.json", "the file name is that of a credential"),
                      (".toy/notes/key.md", "looks like a credential"),
                      (".toy/notes/link.md", "symlink"), (".toy/notes/linked", "symlink")):
        assert any(path in line and why in line for line in p.stderr.splitlines()), (path, p.stderr)
    assert CANARY not in p.stderr + p.stdout


def test_the_list_of_an_import_copies_nothing(toy):
    fill_home(toy)
    p = toy.sbx("run", "toy", "--import-config=list", check=0)
    assert "copy   .toy/notes/a.md" in p.stderr and "4 files to copy, 4 skipped" in p.stderr
    assert not toy.guest_home.exists() and json.loads(toy.sbx("ls", "--json").stdout)[
        "sandboxes"] == []
    assert "expected 'list' or no value" in toy.sbx(
        "run", "toy", "--import-config=all", check=2).stderr


def test_without_an_import_there_are_only_seeds_where_nothing_is(toy):
    fill_home(toy)
    (toy.guest_home / ".toy").mkdir(parents=True)
    (toy.guest_home / ".toy/start").write_text("mine\n")
    toy.sbx("create", "toy", ".", "--name", "box", check=0)
    assert (toy.guest_home / ".toy/start").read_text() == "mine\n"
    assert json.loads((toy.guest_home
                       / ".toy/settings.json").read_text()) == {"trusted": [str(toy.work)],
                                                                "theme": "dark"}
    assert not (toy.guest_home / ".toy/notes").exists()


def test_history_is_kept_for_agent_and_folder(toy):
    other = toy.root / "other"
    other.mkdir()
    toy.sbx("run", "toy", check=0)
    mounts = get(toy, "toy-work")["mounts"]
    assert [m["guest"] for m in mounts] == ["/home/agent/.toy/log"]
    folder = toy.root / "state/sbx/history/toy"
    here, = folder.iterdir()
    assert mounts[0]["host"] == str(here / "toy-log")
    assert (here / "workspace").read_text() == f"{toy.work}\n"
    assert [w["host"] for w in get(toy, "toy-work")["workspaces"]] == [str(toy.work)]
    (here / "toy-log/session").write_text("remember me")
    out = toy.sbx("rm", "-f", "toy-work", check=0).stdout
    assert "is kept" in out and str(here) in out
    toy.sbx("run", "toy", check=0)
    toy.sbx("run", "toy", other, check=0)
    assert get(toy, "toy-work")["mounts"] == mounts and (here / "toy-log/session").exists()
    assert get(toy, "toy-other")["mounts"] != mounts and len(list(folder.iterdir())) == 2
    toy.sbx("create", "toy", ".", "--name", "second", check=0)
    p = toy.sbx("rm", "-f", "--history", "toy-work", check=1)
    assert "sandbox 'second' uses the same history" in p.stderr
    assert (here / "toy-log/session").exists()
    toy.sbx("rm", "-f", "--history", "second", check=0)
    assert not here.exists() and len(list(folder.iterdir())) == 1
    toy.sbx("create", "shell", ".", "--name", "plain", check=0)
    assert get(toy, "plain")["mounts"] == []


def test_history_that_a_guest_nested_deeply_is_removed(toy):
    """Deeper than PATH_MAX and than a process has descriptors; directories without permissions; a
    link elsewhere."""
    toy.sbx("run", "toy", check=0)
    here, = (toy.root / "state/sbx/history/toy").iterdir()
    keep = toy.root / "keep"
    keep.mkdir()
    (keep / "file").write_text("x")
    at = os.open(here / "toy-log", os.O_RDONLY)
    for i in range(1500):
        os.mkdir("d" * 100, dir_fd=at)
        if i % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
            os.symlink(keep, "link", dir_fd=at)
            os.mkdir("raised.0", dir_fd=at)
            os.mkdir("raised.0/full", dir_fd=at)
            os.chmod("raised.0", 0, dir_fd=at)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    toy.sbx("rm", "-f", "--history", "toy-work", check=0)
    assert not here.exists() and (keep / "file").exists() and keep.stat().st_mode & 0o777 == 0o755


def test_agents_are_listed_and_broken_files_said(toy):
    listed = {a["name"]: a
              for a in json.loads(toy.sbx("agent", "ls", "--json", check=0).stdout)["agents"]}
    assert {"claude", "codex", "gemini", "copilot", "opencode", "shell", "toy"} <= set(listed)
    assert listed["toy"]["own"] and not listed["claude"]["own"] and not listed["claude"]["built"]
    assert listed["shell"]["built"] and listed["claude"]["packages"][0][
        "name"] == "@anthropic-ai/claude-code"
    assert toy.sbx("agent", "ls", "-q", check=0).stdout.split() == sorted(listed)
    (toy.agents / "claude.conf").write_text("agent 1\nname claude\nend\n")
    p = toy.sbx("agent", "ls", check=1)
    assert "claude.conf: line 3" in p.stderr and "not built" in p.stdout
    assert "claude" not in toy.sbx("agent", "ls", "-q").stdout.split()
    assert "unknown agent 'claude'" in toy.sbx("create", "claude", check=2).stderr
    assert "host " in toy.sbx("agent", "inspect", "toy", check=0).stdout
    assert "unknown agent 'x'" in toy.sbx("agent", "inspect", "x", check=1).stderr


def test_the_git_identity_is_offered_once(toy):
    (toy.home
     / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@host.example\n\tsigningkey = secret\n[alias]\n\tx = !touch y\n")
    out, status = on_terminal(toy, ["create", "toy", "--name", "box"], b"n\ny\n")
    assert (status == 0 and "Use your git identity Ada <ada@host.example> for commits in sandboxes?"
            in out)
    assert (toy.guest_home
            / ".gitconfig").read_text() == '[user]\n\tname = "Ada"\n\temail = "ada@host.example"\n'
    assert toy.sbx("settings", "get", "git.identity", check=0).stdout == "yes\n"
    (toy.guest_home / ".gitconfig").write_text("mine\n")
    out, status = on_terminal(toy, ["create", "toy", "--name", "cup"], b"n\n")
    assert status == 0 and "git identity" not in out
    assert (toy.guest_home / ".gitconfig").read_text() == "mine\n"


def test_without_a_terminal_nobody_gets_the_git_identity(toy):
    (toy.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@host.example\n")
    toy.sbx("create", "toy", "--name", "box", check=0)
    assert not (toy.guest_home / ".gitconfig").exists()
    assert toy.sbx("settings", "get", "git.identity", check=0).stdout == "ask\n"


@pytest.mark.parametrize("service, oauth, kept",
                         [("anthropic", "true", True), ("anthropic", "false", False),
                          ("github", "true", False),
                                                  ("factory", "true", False)])
def test_a_login_inside_is_proposed_where_its_tokens_are_kept(toy, service, oauth, kept):
    (toy.agents / "toy.conf").write_text(TOY.replace("service anthropic", f"service {service}"))
    toy.sbx("settings", "set", "credentials.oauth", oauth, check=0)
    said = toy.sbx("create", "toy", ".", "--name", "box", check=0).stderr
    assert "No credential is set for Toy." in said and f"try: sbx secret set {service}\n" in said
    assert ("log in inside the sandbox:" in said,
            "the token of a login inside the sandbox can stay there" in said) == (
                kept, not kept), said
