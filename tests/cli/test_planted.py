# SPDX-License-Identifier: Apache-2.0
"""What a guest put into its workspace changes nothing about what the user's next command means."""
import json
import os
import re
import shlex

import pytest

from conftest import on_terminal


def get(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


@pytest.fixture
def ws(inst):
    """The workspace of a sandbox, whose guest may write anything in it."""
    d = inst.work / "ws"
    (d / ".git/hooks").mkdir(parents=True)
    inst.sbx("create", "shell", "--name", "one", d, check=0)
    return d


def test_no_name_in_a_workspace_takes_ro_off(inst, ws):
    command = ("create", "shell", ws, f"{ws}/.git/hooks:ro", "--name")
    inst.sbx(*command, "before", check=0)
    os.symlink("hooks", ws / ".git/hooks:ro")
    inst.sbx(*command, "after", check=0)
    shared = [(w["host"], w["ro"]) for w in get(inst, "after")["workspaces"]]
    assert shared == [(f"{ws}", False), (f"{ws}/.git/hooks", True)]
    assert get(inst, "after")["workspaces"] == get(inst, "before")["workspaces"]


def test_no_name_in_a_workspace_chooses_another_directory(inst, ws):
    (inst.home / ".oh-my-zsh").mkdir()
    (ws / "data").mkdir()
    (ws / "data:").mkdir()
    os.symlink(inst.home / ".oh-my-zsh", ws / "data:/data")
    inst.sbx("create", "shell", "--name", "two", f"{ws}/data:/data", check=0)
    assert get(inst, "two")["workspaces"] == [
        {"host": f"{ws}/data", "guest": "/data", "ro": False, "file": False}]


# Each command that takes --env-file; FILE is appended.
ENV_COMMANDS = {
    "create": ["create", "shell", "--name", "two", "--env-file"],
    "run": ["run", "one", "--env-file"],
    "exec": ["exec", "--env-file"],
}


def with_env(inst, verb, file, **more):
    """Runs the verb, and gives the process and everything in which a variable could have
    arrived."""
    tail = {"create": [], "run": ["--", "env"], "exec": ["one", "env"]}[verb]
    p = inst.sbx(*ENV_COMMANDS[verb], file, *tail, **more)
    made = inst.sbx("inspect", "two", "--json").stdout if verb == "create" else ""
    return p, p.stdout + made


@pytest.mark.parametrize("verb", ENV_COMMANDS)
def test_a_file_takes_no_variable_of_the_host(inst, ws, verb):
    (ws / ".env").write_text("DEBUG=1\nFORGE_TOKEN\n")
    p, arrived = with_env(inst, verb, f"{ws}/.env", env={"FORGE_TOKEN": "canary"})
    assert p.returncode in (1, 2) and "canary" not in arrived, (p.stderr, arrived)
    assert (".env, line 2: missing '=' in 'FORGE_TOKEN'" in p.stderr
            and "-e FORGE_TOKEN" in p.stderr), (
        p.stderr)


@pytest.mark.parametrize("verb", ENV_COMMANDS)
def test_an_environment_file_is_read_through_no_planted_link(inst, ws, verb):
    other = inst.work / "other"
    other.mkdir()
    (other / ".env").write_text("DB_PASSWORD=canary\n")
    os.symlink("../other/.env", ws / ".env")
    os.symlink("../other", ws / "conf")
    os.mkfifo(ws / "fifo")
    inst.sbx("stop", "one", check=0)
    for file, says in ((f"{ws}/.env", "symbolic link"), ("ws/conf/.env", "symbolic link"),
                       ("ws/fifo", "not a regular file")):
        p, arrived = with_env(inst, verb, file)
        assert p.returncode in (1, 2) and "canary" not in arrived, (file, p.stderr, arrived)
        assert says in p.stderr, (file, p.stderr)
    p, arrived = with_env(inst, verb, ".env", cwd=ws / "conf", env={"PWD": f"{ws}/conf"})
    assert p.returncode in (1, 2) and "canary" not in arrived and "symbolic link" in p.stderr, (
        p.stderr)
    p, arrived = with_env(inst, verb, "ws/conf/../../other/.env")
    assert "canary" in arrived, p.stderr


def test_environment_files_of_the_user_are_read_as_before(inst, ws):
    (inst.work / "plain").write_text("A=plain\n")
    os.symlink("plain", inst.work / "link")
    (ws / "own").write_text("A=own\n")
    os.symlink("ws", inst.work / "to-ws")
    for file, want in (("plain", "plain"), ("link", "plain"), ("ws/own", "own"),
                       ("to-ws/own", "own"),
                       ("/dev/stdin", "in")):
        p = inst.sbx("exec", "--env-file", file, "one", "sh", "-c", "echo $A", input="A=in\n",
                     check=0)
        assert p.stdout == f"{want}\n", file
    assert "No such file" in inst.sbx("exec", "--env-file", "none", "one", "true", check=2).stderr
    p = inst.sbx("exec", "--env-file", "own", "one", "sh", "-c", "echo $A", cwd=ws, check=0)
    assert p.stdout == "own\n"


@pytest.fixture
def victim(inst):
    d = inst.home / ".oh-my-zsh"
    d.mkdir()
    return d


def refused(p, link, victim):
    assert p.returncode in (1, 125), (p.returncode, p.stderr)
    assert (f"symbolic link {link}" in p.stderr and f"to {victim}" in p.stderr
            and "'one'" in p.stderr), p.stderr


def test_create_follows_no_planted_link(inst, ws, victim):
    os.symlink(victim, ws / "web")
    os.symlink("ws", inst.work / "short")
    (victim / "in").mkdir()
    for path in (f"{ws}/web", "ws/web", "ws/web/", "ws/web/in", "ws/web:/data", "ws/web:ro",
                 "short/web"):
        refused(inst.sbx("create", "shell", "--name", "two", path), ws / "web", victim)
    inst.sbx("stop", "one", check=0)
    p = inst.sbx("run", "-d", "shell", "--name", "two", "ws/web")
    refused(p, ws / "web", victim)
    assert inst.sbx("ls", "-q", check=0).stdout.split() == ["one"]
    hint = re.search(r"^  try: (sbx .*)$", p.stderr, re.M).group(1)
    inst.sbx(*shlex.split(hint)[1:], "--name", "meant", check=0)
    assert get(inst, "meant")["workspaces"][0]["host"] == str(victim)


def test_the_directory_of_the_shell_is_no_planted_link(inst, ws, victim):
    os.symlink(victim, ws / "web")
    for args in ((), (".",), ("./",), ("../web",)):
        p = inst.sbx("run", "-d", "shell", "--name", "two", *args, cwd=victim,
                     env={"PWD": f"{ws}/web"})
        if args == ("../web",):  # the kernel's .. is the home, which has no such name
            assert p.returncode != 0, p.stderr
        else:
            refused(p, ws / "web", victim)
    inst.sbx("create", "shell", "--name", "two", ".", cwd=victim, env={"PWD": str(ws)}, check=0)
    assert get(inst, "two")["workspaces"][0]["host"] == str(victim)


def test_a_link_whose_target_would_be_a_command_is_not_offered(inst, ws):
    for name in ("x'; touch pwned; '", "x:ro"):
        (ws / name).mkdir()
        os.symlink(name, ws / "web")
        p = inst.sbx("create", "shell", "--name", "two", "ws/web")
        assert p.returncode == 1 and "symbolic link" in p.stderr and "try:" not in p.stderr, (
            p.stderr)
        (ws / "web").unlink()


def test_links_of_the_user_are_followed(inst, ws):
    real = inst.root / "elsewhere"
    (real / "sub").mkdir(parents=True)
    os.symlink(real, inst.work / "proj")
    os.symlink("ws", inst.work / "short")
    (ws / "plain").mkdir()
    (ws / "held").mkdir()
    inst.sbx("create", "shell", "--name", "reader", "ws/held:/held:ro", check=0)
    for i, (path, host) in enumerate((("proj", real), ("proj/sub:ro", real / "sub"), ("short", ws),
                                      ("short/plain", ws / "plain"))):
        inst.sbx("create", "shell", "--name", f"n{i}", path, check=0)
        assert get(inst, f"n{i}")["workspaces"][0]["host"] == str(host)
    inst.sbx("stop", "--all", check=0)
    os.rename(ws, inst.work / "moved")
    os.symlink("moved", ws)  # no guest can write where this link is
    inst.sbx("create", "shell", "--name", "after", "ws/plain", check=0)
    assert get(inst, "after")["workspaces"][0]["host"] == str(inst.work / "moved/plain")


def test_a_link_in_a_workspace_of_the_same_command_is_not_followed(inst, ws, victim):
    """The sandbox that left it there may have been removed, as `sbx run --rm` does."""
    os.symlink(victim, ws / "web")
    inst.sbx("rm", "-f", "one", check=0)
    for paths in (("ws", "ws/web:ro"), ("ws/web", "ws")):
        p = inst.sbx("create", "shell", "--name", "two", *paths)
        assert (p.returncode == 1 and f"symbolic link {ws}/web" in p.stderr
                and "the same sandbox" in p.stderr), p.stderr
    inst.sbx("create", "shell", "--name", "two", "ws:ro", "ws/web", check=0)


def test_a_template_is_built_from_no_planted_context(inst, ws, victim):
    (inst.work / "Dockerfile").write_text("FROM debian\nRUN true\n")
    (victim / "Dockerfile").write_text("FROM debian\nRUN true\n")
    os.symlink(victim, ws / "web")
    os.symlink(victim / "Dockerfile", ws / "Dockerfile")
    p = inst.sbx("template", "build", "mine", "--file", "Dockerfile", "--context", "ws/web")
    refused(p, ws / "web", victim)
    for file in ("ws/web/Dockerfile", "ws/Dockerfile"):
        p = inst.sbx("template", "build", "mine", "--file", file)
        assert p.returncode == 1 and "symbolic link" in p.stderr, p.stderr


# .sbx.conf: what a project requests is displayed, confirmed and bounded

CONF = """sandbox 1
template other
path ../library
path ../results:rw
host registry.example.com:443 packages of the company
port 3000
end
"""


@pytest.fixture
def project(inst):
    for name in ("library", "results", "work/inner"):
        (inst.root / name).mkdir(exist_ok=True)
    templates = inst.root / "data/sbx/templates"
    manifest = json.loads((templates / "debian/manifest.json").read_text())
    (templates / "other").mkdir()
    for f in manifest["files"]:
        (templates / "other" / f).write_bytes(b"\0" * 4096)
    (templates / "other/manifest.json").write_text(json.dumps({**manifest, "name": "other"}))
    (inst.work / ".sbx.conf").write_text(CONF)
    return inst


def sandbox(inst, name="demo"):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


def is_applied(inst, name="demo"):
    s = sandbox(inst, name)
    paths = {w["host"]: w["ro"] for w in s["workspaces"]}
    allowed = inst.sbx("policy", "check", "network", "registry.example.com:443", "--sandbox",
                       name).returncode == 0
    facts = (s["template"] == "other", str(inst.root / "library") in paths, len(s["ports"]) == 1,
             allowed)
    assert len(set(facts)) == 1, (facts, s)
    if facts[0]:
        assert paths == {str(inst.work): False, str(inst.root / "library"): True,
                         str(inst.root / "results"): False}
        assert inst.sbx("policy", "check", "network", "registry.example.com:443").returncode == 1
        assert s["ports"][0]["host_ip"] in ("127.0.0.1", "::1", "localhost")
    return facts[0]


def test_without_a_terminal_nothing_of_it_applies(project):
    p = project.sbx("create", "shell", ".", "--name", "demo", check=0)
    assert ".sbx.conf requests for the new sandbox:" in p.stderr
    assert "was not applied: stdin is not a terminal, and --project is not given" in p.stderr
    assert not is_applied(project)


def test_an_existing_sandbox_has_no_prompt_and_runs(project):
    project.sbx("create", "shell", ".", "--name", "demo", "--project", check=0)
    for args in (["demo"], ["--name", "demo"], ["--name", "demo", "--no-project"]):
        p = project.sbx("run", *args, "--", "-c", "echo inside", check=0)
        assert p.stdout == "inside\n" and ".sbx.conf" not in p.stderr
    p = project.sbx("run", "--name", "demo", "--project", "--", "-c", "true", check=125)
    assert "--project cannot be used for an existing sandbox" in p.stderr
    assert "try: sbx run --name demo" in p.stderr


def test_it_is_displayed_and_confirmed(project):
    for answer, want in ((b"n\n", False), (b"\n", False), (b"y\n", True)):
        out, status = on_terminal(project, ["create", "shell", ".", "--name", "demo"], answer)
        assert status == 0, out
        for text in ("template   other", f"path       {project.root}/library (read-only)",
                     f"path       {project.root}/results (the sandbox can write it)",
                     "host       registry.example.com:443  packages of the company",
                     "port       3000", "Apply this to the new sandbox?"):
            assert text in out, out
        assert is_applied(project) == want
        project.sbx("rm", "-f", "demo", check=0)


def test_an_option_answers_beforehand(project):
    project.sbx("create", "shell", ".", "--name", "demo", "--project", check=0)
    assert is_applied(project)
    p = project.sbx("create", "shell", ".", "--name", "two", "--no-project", check=0)
    assert ".sbx.conf" not in p.stderr and not is_applied(project, "two")
    p = project.sbx("create", "shell", ".", "--project", "--no-project", check=2)
    assert "mutually exclusive" in p.stderr
    p = project.sbx("create", "shell", "inner", "--project", check=2)
    assert "inner/.sbx.conf does not exist" in p.stderr
    project.sbx("create", "shell", ".", "--name", "three", "--project", "-t", "debian", check=0)
    assert sandbox(project, "three")["template"] == "debian"


def test_a_denied_host_stays_denied(project):
    project.sbx("policy", "deny", "network", "registry.example.com:443", check=0)
    project.sbx("create", "shell", ".", "--name", "demo", "--project", check=0)
    assert project.sbx("policy", "check", "network", "registry.example.com:443", "--sandbox",
                       "demo").returncode == 1


@pytest.mark.parametrize("line", ["command id", "path ../../.ssh", "path /etc", "env A=B",
                                  "host **:443 x", "port 0.0.0.0:80:80"])
def test_a_file_with_anything_else_creates_nothing(project, line):
    (project.work / ".sbx.conf").write_text(f"sandbox 1\n{line}\nend\n")
    for more in ([], ["--project"]):
        p = project.sbx("create", "shell", ".", "--name", "demo", *more)
        assert p.returncode and ".sbx.conf: line 2: " in p.stderr, p.stderr
    assert project.sbx("inspect", "demo").returncode
    project.sbx("create", "shell", ".", "--name", "demo", "--no-project", check=0)


def test_directories_with_keys_are_refused_here_too(project):
    """The parent of the project is the home directory."""
    keys = project.home / ".ssh"
    keys.mkdir()
    work = project.home / "project"
    work.mkdir()
    (work / ".sbx.conf").write_text("sandbox 1\npath ../.ssh\nend\n")
    p = project.sbx("create", "shell", work, "--name", "demo", "--project")
    assert p.returncode and ".ssh" in p.stderr and project.sbx("inspect", "demo").returncode


def test_a_link_in_its_place_is_refused(project):
    conf = project.work / ".sbx.conf"
    conf.rename(project.root / "elsewhere")
    os.symlink(project.root / "elsewhere", conf)
    p = project.sbx("create", "shell", ".", "--name", "demo", "--project")
    assert p.returncode and "is a symbolic link" in p.stderr
    conf.unlink()
    os.mkfifo(conf)
    p = project.sbx("create", "shell", ".", "--name", "demo", "--project", timeout=20)
    assert p.returncode and "regular file" in p.stderr
