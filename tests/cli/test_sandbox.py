# SPDX-License-Identifier: Apache-2.0
"""The verbs on sandboxes, against the real sbxd; keeper and guest are sandbox_stand_in.py."""
import hashlib
import json
import os
import pathlib
import pty
import pathlib
import re
import select
import signal
import subprocess
import termios
import time

import pytest

from conftest import SBX
from test_audit import Logs


def get(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


# ---- making and ending ----

def test_create_says_what_it_made(inst):
    p = inst.sbx("create", "shell", ".", "--name", "demo", "--cpus", "2", "-m", "1g", check=0)
    assert re.search(
        rf"^sandbox    demo\nagent      shell\nworkspace  {re.escape(str(inst.work))} \(rw\)\n"
                     rf"cpu        2\nmemory     1 GiB\n", p.stdout, re.M), p.stdout
    assert p.stdout.endswith(
        "Created sandbox demo\n\nTo connect to this sandbox, run:\n  sbx run --name demo\n")
    assert "not an isolation boundary" in p.stderr and "\x1b" not in p.stdout + p.stderr
    s = get(inst, "demo")
    assert s["status"] == "running" and s["memory"] == 1 << 30
    assert s["workspaces"] == [{"host": str(inst.work), "guest": str(inst.work), "ro": False,
                                "file": False}]


def test_the_size_of_the_disk_is_said_once(inst):
    p = inst.sbx("create", "shell", ".", "--name", "large", "--disk", "40g", check=0)
    assert "\ndisk       40 GiB\n" in p.stdout and get(inst, "large")["disk"] == 40 << 30
    assert re.search(r"^disk +40 GiB$", inst.sbx("inspect", "large", check=0).stdout, re.M)
    inst.sbx("settings", "set", "vm.disk", "30g", check=0)
    inst.sbx("create", "shell", ".", "--name", "set", "-q", check=0)
    assert get(inst, "set")["disk"] == 30 << 30
    inst.sbx("settings", "unset", "vm.disk", check=0)
    inst.sbx("create", "shell", ".", "--name", "plain", "-q", check=0)
    assert get(inst, "plain")["disk"] is None
    p = inst.sbx("inspect", "plain", check=0)
    assert re.search(r"^disk +same as the template$", p.stdout, re.M)


def test_ssh_agent_is_off_unless_asked_for(inst):
    agent = {"SSH_AUTH_SOCK": "/run/user/agent.sock", "SSH_ASKPASS": "/usr/bin/true",
             "DISPLAY": ":7"}
    inst.sbx("create", "shell", ".", "--name", "without", "-q", check=0, env=agent)
    assert get(inst, "without")["ssh_agent"] is None
    inst.sbx("create", "shell", ".", "--name", "all-keys", "--ssh-agent", "-q", check=0, env=agent)
    assert get(inst, "all-keys")["ssh_agent"] == {"socket": "/run/user/agent.sock", "keys": [],
                                                  "confirm": False}
    inst.sbx("create", "shell", ".", "--name", "some-keys", "--ssh-agent=SHA256:abc,me@example.com",
             "--ssh-agent-confirm",
             "-q", check=0, env=agent)
    s = get(inst, "some-keys")["ssh_agent"]
    assert s["keys"] == ["SHA256:abc",
                         "me@example.com"] and s["confirm"] and s["askpass"] == "/usr/bin/true"
    assert "DISPLAY=:7" in s["env"]
    assert re.search(r"^ssh-agent +SHA256:abc\nssh-agent +me@example.com$",
                     inst.sbx("inspect", "some-keys", check=0).stdout, re.M)
    assert re.search(r"^ssh-agent +every key$", inst.sbx("inspect", "all-keys", check=0).stdout,
                     re.M)


@pytest.mark.parametrize("args, env, says", [
    (["--ssh-agent"], {"SSH_AUTH_SOCK": ""}, "SSH_AUTH_SOCK"),
    (["--ssh-agent=a,,b"], {"SSH_AUTH_SOCK": "/a"}, "expected a fingerprint or comment"),
    (["--ssh-agent", "--ssh-agent-confirm"], {"SSH_AUTH_SOCK": "/a", "SSH_ASKPASS": ""},
     "SSH_ASKPASS"),
    (["--ssh-agent-confirm"], {"SSH_AUTH_SOCK": "/a"}, "--ssh-agent-confirm requires --ssh-agent"),
])
def test_ssh_agent_says_what_is_missing(inst, args, env, says):
    p = inst.sbx("create", "shell", ".", "--name", "demo", *args, env=env)
    assert p.returncode != 0 and says in p.stderr, p.stderr


def test_a_program_that_asks_is_in_no_workspace(inst):
    """The guest could replace it, and then it would run on the host and confirm every signature."""
    ask = inst.work / "ask"
    ask.write_text("#!/bin/sh\nexit 0\n")
    ask.chmod(0o700)
    want = ["create", "shell", ".", "--name", "demo", "--ssh-agent", "--ssh-agent-confirm"]
    p = inst.sbx(*want, env={"SSH_AUTH_SOCK": "/a", "SSH_ASKPASS": str(ask)})
    assert p.returncode != 0, p.stderr
    assert "cannot use SSH_ASKPASS" in p.stderr, p.stderr
    assert "workspace" in p.stderr, p.stderr
    link = inst.work.parent / "ask-link"
    link.symlink_to(ask)
    assert "cannot use SSH_ASKPASS" in inst.sbx(*want,
                                                    env={"SSH_AUTH_SOCK": "/a",
                                                         "SSH_ASKPASS": str(link)}).stderr
    inst.sbx("create", "shell", "--name", "other", "--ssh-agent", "--ssh-agent-confirm", "-q",
             check=0,
             env={"SSH_AUTH_SOCK": "/a", "SSH_ASKPASS": str(ask)})
    assert "demo" not in inst.sbx("ls", check=0).stdout
    link.unlink()


def test_create_passes_everything_on(inst):
    (inst.work / "a").mkdir()
    (inst.work / "f").write_text("x")
    (inst.work / "envs").write_text("# c\nA=1\nB=2\n")
    out = inst.sbx("create", "shell", "a:/w", "f:ro", "--hide", ".env*", "--hide", "*.key",
                   "--env-file", "envs",
                   "-e", "B=3", "-e", "FROM_HOST", "-q", check=0, env={"FROM_HOST": "h"}).stdout
    assert out == "shell-a\n"
    s = get(inst, "shell-a")
    assert s["workspaces"] == [{"host": str(inst.work / "a"), "guest": "/w", "ro": False,
                                "file": False},
                               {"host": str(inst.work / "f"), "guest": str(inst.work / "f"),
                                "ro": True, "file": True}]
    assert s["hide"] == [".env*", "*.key"] and s["env"] == {"A": "1", "B": "3", "FROM_HOST": "h"}


def test_create_without_a_path_shares_nothing(inst):
    assert "workspace  none" in inst.create("demo").stdout
    assert get(inst, "demo")["workspaces"] == []


def test_home_and_root_are_refused_unless_forced(inst):
    for path in ("/", inst.home, inst.root):
        p = inst.sbx("create", "shell", path, "--name", "demo", check=1)
        assert p.stderr.startswith("error: refusing to share")
        assert "; use --force to share it anyway\n  try: mkdir" in p.stderr
    inst.sbx("create", "shell", inst.home, "--name", "demo", "--force", check=0)


def test_sbx_itself_is_refused_always_and_keys_unless_forced(inst):
    inst.sbx("ls", check=0)  # creates the directories
    state = next(pathlib.Path(inst.root).rglob("registry.db")).parent
    for path in (state, state / "audit"):
        path.mkdir(exist_ok=True)
        p = inst.sbx("create", "shell", path, "--name", "demo", "--force", check=1)
        assert "the path belongs to sbx" in p.stderr and "--force" not in p.stderr, p.stderr
    for name in (".ssh", ".gnupg", ".aws", ".kube", ".config", ".local", ".docker", ".config/nvim"):
        (inst.home / name).mkdir(exist_ok=True)
        p = inst.sbx("create", "shell", inst.home / name, "--name", "demo", check=1)
        assert "your keys, tokens and settings" in p.stderr and "--force" in p.stderr, p.stderr
    inst.sbx("create", "shell", inst.home / ".kube", "--name", "demo", "--force", check=0)


def test_create_warns_about_workspaces_inside_others(inst):
    (inst.work / "web").mkdir()
    assert "is inside" not in inst.sbx("create", "shell", ".", "--name", "aa", check=0).stderr
    assert "is inside" not in inst.sbx("create", "shell", ".", "--name", "same", check=0).stderr
    p = inst.sbx("create", "shell", "web", "--name", "bb", check=0)
    assert (f"workspace {inst.work}/web is inside {inst.work}, which sandbox 'aa' can change"
            in p.stderr), p.stderr


def test_taken_name_and_failed_start(inst):
    inst.create("demo")
    assert "demo" in inst.sbx("create", "shell", "--name", "demo", check=1).stderr
    p = inst.sbx("create", "shell", "--name", "bad", "-e", "MODE=fail", check=1)
    assert "the kernel did not start" in p.stderr
    assert inst.sbx("ls", "-q").stdout == "demo\n"


@pytest.mark.parametrize("why", ["the guest could not be set up: x; create it: touch /tmp/owned",
                                 "its programs could not be woken: x; create it: mkdir -p '/tmp/other'; touch /tmp/owned"])
def test_a_reason_of_the_guest_is_no_command_to_type(inst, why):
    p = inst.sbx("create", "shell", ".", "--name", "bad", "-e", "MODE=fail", "-e", f"WHY={why}",
                 check=1)
    hint = next(line for line in p.stderr.splitlines() if line.startswith("  try: "))
    assert why in p.stderr and "create it" not in hint and "touch" not in hint, p.stderr


def test_a_missing_workspace_is_to_be_created(inst):
    why = f"sharing: {inst.work} does not exist; create it: mkdir -p '{inst.work}'"
    p = inst.sbx("create", "shell", ".", "--name", "bad", "-e", "MODE=fail", "-e", f"WHY={why}",
                 check=1)
    assert (f"did not start: sharing: {inst.work} does not exist\n  try: mkdir -p '{inst.work}'\n"
            in p.stderr), p.stderr


def test_ls(inst):
    inst.sbx("create", "shell", ".", "--name", "bb", check=0)
    inst.create("aa")
    inst.sbx("stop", "aa", check=0)
    lines = inst.sbx("ls", check=0).stdout.splitlines()
    assert lines[0].split() == ["SANDBOX", "AGENT", "STATUS", "PORTS", "WORKSPACE"]
    assert lines[1].split() == ["aa", "shell", "stopped", "-", "-"]
    assert lines[2].split() == ["bb", "shell", "running", "(tcg)", "-", str(inst.work)]
    assert inst.sbx("ls", "-q").stdout == "aa\nbb\n"
    assert [s["name"]
            for s in json.loads(inst.sbx("ls", "--json").stdout)["sandboxes"]] == ["aa", "bb"]


def test_stop_and_start_again(inst):
    inst.create("demo")
    p = inst.sbx("stop", "demo", "nope", check=1)
    assert ("Stopped sandbox 'demo'" in p.stdout and "sbx run --name demo" in p.stdout
            and "nope" in p.stderr)
    assert get(inst, "demo")["status"] == "stopped"
    p = inst.sbx("exec", "demo", "echo", "hi", check=0)
    assert p.stdout == "hi\n" and "not an isolation boundary" in p.stderr
    assert inst.sbx("exec", "demo", "echo", "hi", check=0).stderr == ""


def test_rm_asks_or_needs_force(inst):
    inst.create("demo")
    assert "try: sbx rm --force demo" in inst.sbx("rm", "demo", check=1).stderr
    assert inst.sbx("rm", "--force", "demo",
                    check=0).stdout == "Removing sandbox demo...\nSandbox 'demo' removed\n"
    assert inst.sbx("ls", "-q").stdout == ""


def test_rename_and_update(inst):
    inst.create("demo")
    assert "Renamed sandbox 'demo' to 'other'" in inst.sbx("rename", "demo", "other",
                                                           check=0).stdout
    p = inst.sbx("update", "other", "--cpus", "3", "--memory", "2g", check=0)
    assert "3 CPUs, 2 GiB, applied at the next start" in p.stdout
    assert get(inst, "other")["cpus"] == 3


def test_variables_and_workspaces_of_an_existing_sandbox(inst):
    for name in ("one", "two", "three"):
        (inst.root / name).mkdir()
    inst.create("demo", inst.root / "one", "-e", "A=1", "-e", "B=2", "--hide", ".env")
    p = inst.sbx("update", "demo", "--env", "B=3", "--env", "C", "--rm-env", "A", "--hide", "*.key",
                 "--add-path", f"{inst.root / 'two'}:ro", env={"C": "from here"}, check=0)
    assert f"workspace  {inst.root / 'two'} (ro)\n" in p.stdout
    assert "applied at the next start\nRestart it with: sbx restart demo" in p.stdout
    s = get(inst, "demo")
    assert s["env"] == {"B": "3", "C": "from here"}
    p = inst.sbx("update", "demo", "--rm-env", "A", "--env", "D=4", check=1)
    assert "the sandbox has no variable 'A'" in p.stderr and not p.stdout, p
    assert get(inst, "demo")["env"] == s["env"]
    assert s["hide"] == [".env", "*.key"]
    assert [(w["host"], w["ro"]) for w in s["workspaces"]] == [(str(inst.root / "one"), False),
                                                              (str(inst.root / "two"), True)]
    writable = inst.root / "state/sbx/writable" / s["id"]
    assert str(inst.root / "one") in writable.read_text()
    inst.sbx("update", "demo", "--add-path", inst.root / "three", check=0)
    assert str(inst.root / "three") in writable.read_text()
    p = inst.sbx("update", "demo", "--rm-path", inst.root / "three", check=1)
    assert "is running: stop it before a workspace is removed" in p.stderr
    inst.sbx("stop", "--cold", "demo", check=0)
    inst.sbx("update", "demo", "--rm-path", "../three", check=0)
    assert str(inst.root / "three") not in writable.read_text()
    assert len(get(inst, "demo")["workspaces"]) == 2


def test_wrong_changes_of_workspaces_change_nothing(inst):
    (inst.home / ".ssh").mkdir()
    (inst.root / "elsewhere").mkdir()
    inst.create("demo", inst.work)
    inst.sbx("stop", "--cold", "demo", check=0)
    before = get(inst, "demo")
    os.symlink(inst.root / "elsewhere", inst.work / "planted")
    for args, says in ((["--add-path", inst.home / ".ssh"], ".ssh"),
                       (["--add-path", inst.root / "none"], "cannot find workspace"),
                       (["--add-path", inst.work], "duplicate workspace"),
                       (["--add-path", inst.work / "planted"], "link"),
                       (["--rm-path", "/nowhere"], "has no workspace '/nowhere'"),
                       (["--env", "A B=c"], "A B")):
        p = inst.sbx("update", "demo", *args, env={"HOME": str(inst.home)})
        assert p.returncode and says in p.stderr, (args, p.stderr)
    assert inst.sbx("update", "demo", "--force", check=2).stderr.count("requires --add-path") == 1
    assert get(inst, "demo") == before


def names(inst, *filters):
    words = [w for f in filters for w in ("--filter", f)]
    return inst.sbx("ls", "-q", *words, check=0).stdout.split()


def test_labels_are_set_changed_and_filtered(inst):
    inst.create("aa", "--label", "team=web", "--label", "note=two words", "--label", "team=api")
    inst.create("bb", "--label", "team=web")
    inst.sbx("stop", "--cold", "bb", check=0)
    assert get(inst, "aa")["labels"] == {"team": "api", "note": "two words"}
    assert re.search(r"^labels +team=api, note=two words$|^labels +note=two words, team=api$",
                     inst.sbx("inspect", "aa").stdout, re.M)
    assert names(inst, "label=team") == ["aa", "bb"] and names(inst, "label=team=web") == ["bb"]
    assert names(inst, "label=team", "state=running", "agent=shell") == ["aa"]
    assert names(inst, "label=team=web", "state=running") == names(inst, "agent=claude") == []
    assert inst.sbx("ls", "--filter", "label=no").stdout == "No sandboxes match\n"
    p = inst.sbx("update", "aa", "--label", "team=web", "--rm-label", "note", check=0)
    assert p.stdout == "Sandbox 'aa': labels team=web\n"
    assert names(inst, "label=team=web") == ["aa", "bb"] and names(inst, "label=note") == []
    p = inst.sbx("update", "aa", "--rm-label", "team", "--cpus", "3", check=0)
    assert p.stdout.startswith("Sandbox 'aa': no labels\nSandbox 'aa': 3 CPUs, ")
    assert get(inst, "aa")["labels"] == {}
    inst.sbx("daemon", "stop", check=0)
    assert names(inst, "label=team") == ["bb"]


def test_wrong_labels_and_filters_change_nothing(inst):
    inst.create("demo", "--label", "team=web")
    for word in ("team", "=x", "te am=x", "team=\033[31m"):
        said = inst.sbx("update", "demo", "--label", word, check=2).stderr
        assert "label" in said and "\033" not in said
        inst.sbx("create", "shell", "--name", "other", "--label", word, check=2)
    said = inst.sbx("update", "demo", "--rm-label", "none", check=1).stderr
    assert "sandbox 'demo' has no label 'none'" in said and "try: sbx inspect demo" in said
    more = [w for n in range(32) for w in ("--label", f"k{n}=v")]
    assert "at most 32 labels" in inst.sbx("update", "demo", *more, check=2).stderr
    for word in ("team=web", "state=runing", "label="):
        assert "invalid --filter" in inst.sbx("ls", "--filter", word, check=2).stderr
    assert get(inst, "demo")["labels"] == {"team": "web"} and names(inst) == ["demo"]
    said = inst.sbx("run", "--name", "demo", "--label", "team=api", check=125).stderr
    assert "try: sbx update demo --label 'team=api'" in said


def test_prune(inst):
    for n in ("aa", "bb"):
        inst.create(n)
    inst.sbx("stop", "aa", check=0)
    d = json.loads(inst.sbx("prune", "--dry-run", "--json", check=0).stdout)
    assert [s["name"]
            for s in d["would_remove"]] == ["aa"] and d["would_remove"][0]["stopped_at"].endswith(
        "Z")
    assert json.loads(inst.sbx("prune", "--dry-run", "--json", "--filter",
                               "until=1h").stdout)["would_remove"] == []
    inst.sbx("prune", check=1)
    assert json.loads(inst.sbx("prune", "-f", "--json", check=0).stdout) == {"removed": ["aa"]}
    assert inst.sbx("ls", "-q").stdout == "bb\n"


def test_rm_removes_what_is_there_and_fails_for_the_rest(inst):
    inst.create("one")
    inst.create("two")
    p = inst.sbx("rm", "-f", "one", "nosuch", "two", check=1)
    assert "nosuch" in p.stderr and inst.sbx("ls", "-q").stdout == ""


def test_stop_suspends_an_idle_sandbox(inst):
    """The simulated sandbox of MODE idle is suspended when it is stopped."""
    for name in ("one", "two", "three"):
        inst.create(name, mode="idle")
    said = inst.sbx("stop", "one", check=0).stdout
    assert said.startswith("Suspended sandbox 'one' (snapshot: 8 KiB). Resume it with: "), said
    one = get(inst, "one")
    assert one["status"] == "suspended" and one["suspended_by"] == "stop"
    assert "'one' is suspended" in inst.sbx("update", "one", "--cpus", "3", check=1).stderr
    assert "try: sbx stop --cold one" in inst.sbx("update", "one", "--cpus", "3", check=1).stderr
    assert "try: sbx start one" in inst.sbx("template", "save", "one", "t", check=1).stderr
    assert inst.sbx("stop", "--cold", "one", check=0).stdout.startswith("Stopped sandbox 'one'")
    assert get(inst, "one")["status"] == "stopped"
    inst.sbx("update", "one", "--cpus", "3", check=0)
    assert inst.sbx("stop", "--cold", "two", check=0).stdout.startswith("Stopped sandbox 'two'")
    assert get(inst, "two")["status"] == "stopped"
    before = get(inst, "three")["keeper_pid"]
    inst.sbx("restart", "three", check=0)  # a shutdown: the memory is not kept
    three = inst.root / "state/sbx/sandboxes" / get(inst, "three")["id"]
    assert get(inst, "three")["keeper_pid"] != before and not list(three.glob("suspend*"))


def test_a_start_reports_that_programs_are_not_resumed(inst):
    """The simulated sandbox cannot resume."""
    inst.create("one", mode="idle")
    inst.sbx("stop", "one", check=0)
    said = inst.sbx("start", "one", check=0).stderr
    assert ("warning: sandbox 'one' booted: its suspended programs were not resumed: the snapshot "
            "is corrupt\n") in said, said
    inst.sbx("stop", "one", check=0)
    assert "resumed" not in inst.sbx("start", "--cold", "one", check=0).stderr


def test_prune_removes_what_stop_has_suspended(inst):
    inst.create("one", mode="idle")
    inst.sbx("stop", "one", check=0)
    assert json.loads(inst.sbx("prune", "-f", "--json", check=0).stdout) == {"removed": ["one"]}


def test_start_restart_and_stop_all(inst):
    inst.create("one")
    inst.create("two")
    assert "is already running" in inst.sbx("start", "one", check=0).stdout
    assert inst.sbx("stop", "--all", check=0).stdout.count("Stopped sandbox ") == 2
    assert "No running sandboxes" in inst.sbx("stop", "--all", check=0).stdout
    assert inst.sbx("start", "one", "two", check=0).stdout.count("Started sandbox ") == 2
    before = get(inst, "one")["keeper_pid"]
    inst.sbx("restart", "one", check=0)
    assert get(inst, "one")["status"] == "running" and get(inst, "one")["keeper_pid"] != before
    assert "nosuch" in inst.sbx("start", "nosuch", "two", check=1).stderr
    for args in (["stop"], ["stop", "--all", "one"]):
        assert "--all" in inst.sbx(*args, check=2).stderr


@pytest.mark.parametrize("alias, command",
                         [(["ps"], ["ls"]), (["ps", "-a"], ["ls"]), (["list", "-q"], ["ls", "-q"]),
                          (["images"], ["template", "ls"]),
                                            (["settings", "ls"], ["settings", "list"]),
                          (["help", "ps"], ["help", "ls"]),
                                            (["help", "images"], ["help", "template", "ls"])])
def test_names_that_people_know_from_other_tools(inst, alias, command):
    inst.create("one")
    assert inst.sbx(*alias, check=0).stdout == inst.sbx(*command, check=0).stdout


# ---- run ----

def test_run_makes_once_and_comes_back(inst):
    assert inst.sbx("run", "--", "-c", "echo one; exit 7", check=7).stdout == "one\n"
    assert inst.sbx("ls", "-q").stdout == "shell-work\n"
    inst.sbx("stop", "shell-work", check=0)
    assert inst.sbx("run", "shell", ".", "--", "echo", "two", check=0).stdout == "two\n"
    assert inst.sbx("run", "shell-work", "--", "echo", "three", check=0).stdout == "three\n"
    assert inst.sbx("run", "--name", "shell-work", "--", "echo", "four", check=0,
                    cwd="/").stdout == "four\n"
    assert inst.sbx("ls", "-q").stdout == "shell-work\n"
    (inst.work / "sub").mkdir()
    assert "does not share" in inst.sbx("run", "--name", "shell-work", "shell", "sub",
                                        check=125).stderr


def test_run_reads_a_script_from_a_pipe(inst):
    assert inst.sbx("run", input="echo from $0\n", check=0).stdout == "from bash\n"


def test_run_rm_and_detached(inst):
    assert inst.sbx("run", "--rm", "--name", "tmp", "--", "true", check=0).stdout == ""
    assert inst.sbx("ls", "-q").stdout == ""
    assert inst.sbx("run", "-d", "--name", "bg", check=0).stdout == "bg\n"
    assert get(inst, "bg")["status"] == "running"
    assert "no agent or sandbox named 'nosuch'" in inst.sbx("run", "nosuch", check=125).stderr


# ---- exec ----

def test_exit_status_is_exact(inst):
    inst.create("demo")
    for code in (0, 1, 2, 42, 125, 126, 127, 254, 255):
        inst.sbx("exec", "demo", "sh", "-c", f"exit {code}", check=code)
    for sig in (9, 15, 11):
        inst.sbx("exec", "demo", "sh", "-c", f"kill -{sig} $$", check=128 + sig)
    p = inst.sbx("exec", "demo", "/no/such/program", check=127)
    assert "not found" in p.stderr


def test_streams_are_separate_and_binary(inst):
    inst.create("demo")
    p = inst.sbx("exec", "demo", "sh", "-c", "echo out; echo err >&2", check=0)
    assert (p.stdout, p.stderr) == ("out\n", "err\n")
    data = os.urandom(5 << 20)
    p = inst.sbx("exec", "-i", "demo", "cat", input=data, check=0, binary=True)
    assert p.stdout == data
    assert inst.sbx("exec", "demo", "cat", input="not passed on", check=0).stdout == ""
    with open(inst.work / "file", "wb") as f:
        f.write(data)
    with open(inst.work / "file", "rb") as f, open(inst.work / "out", "wb") as out:
        subprocess.run([SBX, "exec", "-i", "demo", "cat"], stdin=f, stdout=out, env=inst.env,
                       check=True, timeout=60)
    assert (inst.work / "out").read_bytes() == data


def test_environment_folder_and_user(inst):
    inst.create("demo", "-e", "BAKED=1")
    p = inst.sbx("exec", "-e", "A=x y", "-w", "/tmp", "-u", "root", "demo", "--", "sh", "-c",
                 "echo $A $BAKED $SBX_USER; pwd", check=0)
    assert p.stdout == "x y 1 root\n/tmp\n"


def test_a_reader_that_goes_away_ends_it(inst):
    inst.create("demo")
    p = subprocess.run(["bash", "-c", f"{SBX} exec demo yes | head -1; echo ${{PIPESTATUS[0]}}"],
                       env=inst.env,
                       capture_output=True, text=True, timeout=20)
    assert p.stdout == "y\n141\n"


def test_a_slow_reader_holds_the_command_back(inst):
    inst.create("demo")
    p = subprocess.Popen([SBX, "exec", "demo", "sh", "-c",
                          "head -c 50000000 /dev/zero; echo done >&2"], env=inst.env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    assert not select.select([p.stderr], [], [], 0)[0]
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{p.pid}/status").read())[1])
    assert rss < 16384
    out, err = p.communicate(timeout=30)
    assert len(out) == 50000000 and err == b"done\n"


def test_signals_are_passed_on(inst):
    inst.create("demo")
    for sig, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP"),
                      (signal.SIGQUIT, "QUIT")):
        script = f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
        p = subprocess.Popen([SBX, "exec", "demo", "bash", "-c", script], env=inst.env,
                             stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n"
        p.send_signal(sig)
        assert p.stdout.read() == f"got {name}\n"
        assert p.wait(10) == 9


def test_third_interrupt_ends_a_command_that_ignores_them(inst):
    inst.create("demo")
    p = subprocess.Popen([SBX, "exec", "demo", "bash", "-c", "trap '' INT; echo ready; sleep 30"],
                         env=inst.env,
                         stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    for _ in range(3):
        assert p.poll() is None
        p.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert p.wait(25) == 130


def test_detached_returns_at_once(inst):
    inst.create("demo")
    inst.sbx("exec", "-d", "demo", "sh", "-c",
             f"cd {inst.work}; until test -e go; do sleep 0.1; done; echo late > late", check=0)
    assert not (inst.work / "late").exists()
    (inst.work / "go").touch()
    for _ in range(600):
        if (inst.work / "late").exists():
            break
        time.sleep(0.1)
    assert (inst.work / "late").exists()


@pytest.mark.parametrize("mode,says", [("lost", "connection to the sandbox was lost"),
                                       ("garbage", "invalid frame")])
def test_a_guest_that_misbehaves_is_125(inst, mode, says):
    inst.create("demo", mode=mode)
    assert says in inst.sbx("exec", "demo", "sleep", "5", check=125).stderr


def test_escape_sequences_of_the_guest_are_not_printed(inst):
    inst.create("demo", mode="escape")
    p = inst.sbx("exec", "demo", "ls", check=127)
    assert "\x1b" not in p.stderr and "\x07" not in p.stderr and "?]0;owned?no" in p.stderr


def test_sbxd_may_die_under_a_session(inst):
    inst.create("demo")
    p = subprocess.Popen([SBX, "exec", "-i", "demo", "cat"], env=inst.env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    p.stdin.write(b"one\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"one\n"
    inst.sbx("daemon", "stop", check=0)
    p.stdin.write(b"two\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"two\n"
    assert get(inst, "demo")["status"] == "running"
    p.stdin.close()
    assert p.wait(10) == 0


# ---- terminals ----

class Terminal:
    """sbx on a separate terminal."""

    def __init__(self, inst, *args):
        self.master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.p = subprocess.Popen([SBX, *args], stdin=slave, stdout=slave, stderr=slave,
                                  env=inst.env, cwd=inst.work,
                                  start_new_session=True)
        self.out = b""

    def until(self, what, seconds=15):
        deadline = time.monotonic() + seconds
        while what not in self.out:
            assert time.monotonic() < deadline, self.out
            if select.select([self.master], [], [], 0.2)[0]:
                self.out += os.read(self.master, 4096)
        before, _, self.out = self.out.partition(what)
        return before

    def type(self, data):
        os.write(self.master, data)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def end(self, seconds=10):
        code = self.p.wait(seconds)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal was not put back"
        return code


def test_terminal_is_raw_inside_and_whole_outside(inst):
    inst.create("demo")
    t = Terminal(inst, "exec", "-it", "demo", "bash", "--norc", "-c",
                 "echo re''ady; tty >/dev/null && echo term=$TERM; "
                 "read x; echo got $x; exit 5")
    t.until(b"ready")
    t.until(b"term=xterm")
    assert t.is_raw()
    t.type(b"hello\r")
    t.until(b"got hello")
    assert t.end() == 5


def test_interrupt_key_goes_to_the_command(inst):
    inst.create("demo")
    t = Terminal(inst, "exec", "-it", "demo", "bash", "-c",
                 "trap 'echo caught; exit 3' INT; echo re''ady; while :; do "
                 "sleep 0.05; done")
    t.until(b"ready")
    t.type(b"\x03")
    t.until(b"caught")
    assert t.end() == 3


def test_resize_reaches_the_command(inst):
    inst.create("demo")
    t = Terminal(inst, "exec", "-it", "demo", "bash", "-c",
                 "trap 'stty size' WINCH; stty size; echo re''ady; while :; do "
                 "sleep 0.05; done")
    t.until(b"ready")
    termios.tcsetwinsize(t.slave, (41, 132)) if hasattr(termios, "tcsetwinsize") else \
        subprocess.run(["stty", "rows", "41", "cols", "132"], stdin=t.slave, check=True)
    t.p.send_signal(signal.SIGWINCH)
    t.until(b"41 132")
    t.p.send_signal(signal.SIGTERM)
    assert t.end() == 143


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_terminal_is_put_back_when_sbx_is_killed(inst, sig):
    inst.create("demo")
    t = Terminal(inst, "exec", "-it", "demo", "bash", "-c", "echo re''ady; sleep 30")
    t.until(b"ready")
    t.p.send_signal(sig)
    assert t.end() == 128 + sig


def test_terminal_is_put_back_when_the_guest_lies(inst):
    inst.create("demo", mode="lost")
    t = Terminal(inst, "exec", "-it", "demo", "bash")
    t.until(b"was lost")
    assert t.end() == 125


def test_tty_without_a_terminal_is_refused(inst):
    inst.create("demo")
    p = inst.sbx("exec", "-it", "demo", "true", check=125)
    assert "requires a terminal" in p.stderr
    assert inst.sbx("exec", "-t", "demo", "echo", "x", check=0).stdout == "x\r\n"


def test_rm_of_several_names_them_before_it_asks(inst):
    """A sandbox of a build or of `sbx prove` is among them, too."""
    inst.create("mine")
    inst.create("prove-0123abcd")
    t = Terminal(inst, "rm", "--all")
    t.until(b"  mine\r\n  prove-0123abcd\r\nRemove these 2 sandboxes and their disks? [y/N] ")
    t.type(b"n\r")
    assert t.end() == 1
    assert inst.sbx("ls", "-q").stdout.split() == ["mine", "prove-0123abcd"]


def test_rm_on_a_terminal_asks(inst):
    inst.create("demo")
    t = Terminal(inst, "rm", "demo")
    t.until(b"and its disks? [y/N] ")
    t.type(b"n\r")
    assert t.end() == 1
    t = Terminal(inst, "rm", "demo")
    t.until(b"[y/N] ")
    t.type(b"y\r")
    t.until(b"removed")
    assert t.end() == 0


def test_extra_ca_is_copied_and_a_shared_folder_is_refused(inst):
    pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    inst.create("demo", str(inst.work))
    shared, own = inst.work / "ca.pem", inst.root / "ca.pem"
    for f in (shared, own):
        f.write_text(pem)
    (inst.root / "link.pem").symlink_to(shared)
    for path in (shared, inst.root / "link.pem"):
        p = inst.sbx("settings", "set", "network.extra-ca", path, check=1)
        assert f"{shared} is inside {inst.work}, which sandbox 'demo' shares" in p.stderr
    # W3: the target of the guest's link changes between two reads
    planted = inst.work / "planted.pem"
    planted.symlink_to(own)
    p = inst.sbx("settings", "set", "network.extra-ca", planted, check=1)
    assert f"{planted} is inside {inst.work}, which sandbox 'demo' shares" in p.stderr
    assert inst.sbx("settings", "get", "network.extra-ca", check=0).stdout == "\n"
    inst.sbx("settings", "set", "network.extra-ca", own, check=0)
    own.unlink()
    assert hashlib.sha256(pem.encode()).hexdigest() in inst.sbx("settings", "list",
                                                                check=0).stdout.replace("\n", "")
    row = next(s
               for s in json.loads(inst.sbx("settings", "list", "--json",
                                            check=0).stdout)["settings"]
               if s["key"] == "network.extra-ca")
    assert row["value"] == str(own) and pathlib.Path(row["copy"]).read_text().endswith(pem)
    # edited by hand: nothing is used that was not set
    conf = inst.root / "config/sbx/settings.conf"
    conf.write_text(conf.read_text().replace(str(own), str(shared)))
    assert f"sbx settings set network.extra-ca {shared}" in inst.sbx("settings", "list", "--json",
                                                                     check=0).stdout


def test_a_sandbox_that_a_full_disk_has_paused_is_reported(inst):
    inst.create()
    flag = inst.root / "state/sbx/sandboxes" / get(inst, "demo")["id"] / "paused"
    flag.touch()
    # The simulated sandbox reports it only on request, and sbxd waits 300 ms for that.
    deadline = time.monotonic() + 60
    while "paused (disk full)" not in inst.sbx("ls", check=0).stdout:
        assert time.monotonic() < deadline
    master, slave = pty.openpty()
    for args in (("exec", "demo", "true"), ("attach", "demo"), ("cp", "demo:/etc/passwd", ".")):
        p = subprocess.run([SBX, *args], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                           env=inst.env, cwd=inst.work, timeout=10)
        assert p.returncode != 0 and b"paused (disk full)" in p.stderr, p
    os.close(master)
    os.close(slave)
    flag.unlink()
    deadline = time.monotonic() + 60
    while "paused" in inst.sbx("ls", check=0).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    inst.sbx("exec", "demo", "true", check=0)


def test_logs_prints_what_the_session_said_as_text(inst):
    inst.create("demo", mode="talks")
    assert inst.sbx("logs", "demo", check=0).stdout == "first line\n"
    assert inst.sbx("logs", "-f", "demo",
                    check=0).stdout == "first line\nsecond ???line\nno newline"
    inst.create("quiet")
    p = inst.sbx("logs", "quiet", check=1)
    assert "session 'agent' not found in sandbox 'quiet'" in p.stderr
    assert "try: sbx inspect quiet" in p.stderr
    inst.sbx("stop", "quiet", check=0)
    p = inst.sbx("logs", "quiet", check=1)
    assert "is stopped" in p.stderr and "try: sbx start quiet" in p.stderr
    assert "invalid session name" in inst.sbx("logs", "demo", "--session", "A B", check=1).stderr


@pytest.mark.parametrize("mode", ["floods", "empty"])
def test_logs_of_a_guest_that_never_ends_its_answer_end(inst, mode):
    inst.create("demo", mode=mode)
    p = subprocess.run([SBX, "logs", "demo"], env=inst.env, cwd=inst.work,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20, check=False)
    assert p.returncode == 1 and b"protocol error: invalid frame" in p.stderr, p.stderr


def test_an_interrupt_while_it_starts_says_what_became_of_it(inst):
    p = starting(inst, "-e", "MODE=slow")
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=20)[1].decode()
    there = [s["name"] for s in json.loads(inst.sbx("ls", "--json").stdout)["sandboxes"]]
    assert p.returncode == 1, (said, there)
    assert "interrupted: sandbox 'ccc' was removed" in said, (said, there)
    assert there == [], (said, there)


def test_a_create_is_one_call(inst):
    """What comes before and after it only reads."""
    p = inst.sbx("--debug", "create", "shell", ".", "--name", "demo",
                 "--allow-network", "a.example", "--deny-network", "b.example",
                 "-p", "18080:80", check=0)
    calls = re.findall(r"^debug: ([A-Z]+ /v1/\S+)", p.stderr, re.M)
    assert [c for c in calls if not c.startswith("GET ")] == ["POST /v1/sandboxes"], calls
    assert calls.count("GET /v1/sandboxes/demo") == 0, "it is not requested again"
    rules = json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
    assert [r["text"] for r in rules if r["scope"] == "sandbox:demo"] == [
        "deny network b.example for sandbox demo", "allow network a.example for sandbox demo"]


def starting(inst, *args):
    """A create that has come as far as the start."""
    p = subprocess.Popen([SBX, "create", "shell", "--name", "ccc", *args], env=inst.env,
                         cwd=inst.work, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not any(s["status"] == "starting"
                  for s in json.loads(inst.sbx("ls", "--json").stdout)["sandboxes"]):
        assert time.monotonic() < deadline
    return p


def test_an_interrupt_removes_a_start_that_waits_for_others(inst):
    def status():
        return json.loads(inst.sbx("inspect", "waits", "--json", check=0).stdout)["status"]

    inst.create("waits")
    inst.sbx("stop", "waits", check=0)
    inst.sbx("settings", "set", "daemon.max-starts", "1", check=0)
    first = starting(inst, "-e", "MODE=slow")
    p = subprocess.Popen([SBX, "start", "waits"], env=inst.env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while status() != "starting":
        assert time.monotonic() < deadline
    assert "waiting to start, 0 before it" in inst.sbx("inspect", "waits", check=0).stdout
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=60)[1]
    assert p.returncode == 1 and "was waiting to start and was not started" in said, said
    assert status() == "stopped"
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_create_that_is_killed_leaves_nothing(inst, sig):
    p = starting(inst, "-e", "MODE=slow", "--allow-network", "a.example", "-p", "18080:80")
    p.send_signal(sig)
    p.communicate(timeout=20)
    assert inst.sbx("ls", "-q", check=0).stdout == ""
    assert "sandbox:ccc" not in inst.sbx("policy", "ls", "--json", check=0).stdout
    folder, deadline = inst.root / "state/sbx/sandboxes", time.monotonic() + 60
    while list(folder.iterdir()):
        assert time.monotonic() < deadline, list(folder.iterdir())
        time.sleep(0.05)


def test_sbxd_may_die_under_a_create(inst):
    """The next sbxd removes the remains, and sbx repeats the request."""
    p = starting(inst, "-e", "MODE=late", "--allow-network", "a.example")
    os.kill(json.loads(inst.sbx("daemon", "status", "--json", check=0).stdout)["pid"],
            signal.SIGKILL)
    said = p.communicate(timeout=40)[1].decode()
    assert p.returncode == 0, said
    assert get(inst, "ccc")["status"] == "running"
    rules = json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
    assert [r["text"] for r in rules if r["scope"] == "sandbox:ccc"] == [
        "allow network a.example for sandbox ccc"]


def test_a_second_sandbox_on_a_folder_is_told_and_none_is_too(inst):
    (inst.work / "proj").mkdir()
    inst.create("one", "proj")
    p = inst.create("two", "proj")
    assert f"Sandbox 'one' also shares {inst.work}/proj." in p.stderr
    assert "workspace  none (to share this directory, add: .)" in inst.create("three").stdout


# ---- checkpoints ----

def test_checkpoints_are_created_and_listed(inst):
    inst.create("demo")
    assert inst.sbx("checkpoint", "--ls", "demo", check=0).stdout == "No checkpoints\n"
    p = inst.sbx("checkpoint", "demo", check=0)
    assert p.stdout == "Checkpoint 'c1' of sandbox 'demo' created (8 KiB, paused for 31 ms)\n"
    inst.sbx("checkpoint", "demo", "before-merge", check=0)
    rows = [line.split() for line in
            inst.sbx("checkpoint", "--ls", "demo", check=0).stdout.splitlines()]
    assert [r[0] for r in rows] == ["LABEL", "c1", "before-merge"]
    assert rows[1][2:] == ["8", "KiB", "31", "ms", "7", "manual", "no"]


def test_an_interrupted_checkpoint_says_that_it_may_exist(inst):
    inst.create("demo")
    keeper = get(inst, "demo")["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        p = subprocess.Popen([SBX, "checkpoint", "demo", "slow"], env=inst.env,
                             stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        p.send_signal(signal.SIGINT)
        _, said = p.communicate(timeout=60)
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert p.returncode == -signal.SIGINT
    assert said.endswith("error: interrupted: the checkpoint may still be created\n"
                         "  try: sbx checkpoint --ls demo\n"), said
    until = time.monotonic() + 60
    while "slow" not in inst.sbx("checkpoint", "--ls", "demo", check=0).stdout:
        assert time.monotonic() < until


def test_a_rewind_says_if_it_could_not_resume_the_programs(inst):
    inst.create("demo")
    inst.sbx("checkpoint", "demo", "up", "--memory", check=0)
    row, = inst.sbx("checkpoint", "--ls", "demo", check=0).stdout.splitlines()[1:]
    assert row.split()[0] == "up" and row.split()[-2:] == ["manual", "yes"]
    p = inst.sbx("rewind", "demo", "--to", "up", check=0)
    assert ("the programs of the checkpoint were not resumed: its memory cannot be read (see "
            f"{inst.root}/state/sbx/sbxd.log)") in p.stderr
    inst.sbx("stop", "demo", check=0)
    inst.sbx("checkpoint", "demo", "--rm", "up", check=None)
    assert not list((inst.root / "state/sbx/sandboxes").glob("*/memory.*"))


@pytest.mark.parametrize("args, status, said", [
    (("checkpoint", "demo", "Bad"), 1, "invalid label"),
    (("checkpoint", "demo", "a\udcff"), 1, "not UTF-8"),
    (("checkpoint", "--ls", "demo", "x"), 2, "take only SANDBOX"),
    (("checkpoint", "--ls", "--memory", "demo"), 2, "take only SANDBOX"),
    (("checkpoint", "gone"), 1, "no sandbox named gone")])
def test_a_wrong_checkpoint_is_refused(inst, args, status, said):
    inst.create("demo")
    assert said in inst.sbx(*args, check=status).stderr


def test_a_full_chain_and_a_stopped_sandbox_are_reported(inst):
    inst.create("demo", mode="full")
    assert "too many layers" in inst.sbx("checkpoint", "demo", check=1).stderr
    inst.sbx("stop", "demo", check=0)
    p = inst.sbx("checkpoint", "demo", check=1)
    assert "the sandbox is not running" in p.stderr and "try: sbx start demo" in p.stderr, p.stderr


def event(inst, **more):
    """A record in the log of the sandbox, as its keeper writes it."""
    logs = Logs(inst)
    logs.event(id=get(inst, "demo")["id"], **more)
    logs.finish()


def test_a_rewind_prints_what_it_does_not_take_back(inst):
    inst.create("demo", ".")
    (inst.work / "old").write_text("x")
    event(inst, verdict="allow", type="tcp", host="early.example", port=22, path="transparent")
    log = inst.root / "state/sbx/audit" / get(inst, "demo")["id"]
    assert log.exists()
    time.sleep(0.1)
    inst.sbx("checkpoint", "demo", "c1", check=0)
    at = inst.root / "state/sbx/sandboxes" / get(inst, "demo")["id"] / "checkpoints"
    listed = json.loads(at.read_text())
    listed["checkpoints"][0]["seq"] = len("".join(
        f.read_text() for f in log.glob("*.jsonl")).splitlines())
    at.write_text(json.dumps(listed))
    time.sleep(0.1)
    (inst.work / "new\x1b[2J").write_text("x")
    event(inst, verdict="allow", type="tcp", host="late.example", port=22, path="transparent")
    event(inst, verdict="deny", type="tcp", host="denied.example", port=22, path="transparent")
    dry = inst.sbx("rewind", "demo", "--to", "c1", "--dry-run", check=0).stdout
    assert get(inst, "demo")["status"] == "running"
    p = inst.sbx("rewind", "demo", "--to", "c1", check=0)
    for said in (dry, p.stdout):
        assert re.search(r"^connection +late\.example:22 +- +1$", said, re.M), said
        assert "early.example" not in said and "denied.example" not in said
        assert f"1 file in {inst.work} changed on the host since then: new" in said
        assert "\x1b" not in said and "old" not in said.split("since then:")[1]
    assert "Sandbox 'demo' is at checkpoint 'c1'" in p.stdout
    assert get(inst, "demo")["status"] == "running"
    assert "Undid the rewind" in inst.sbx("rewind", "demo", "--undo", check=0).stdout


def test_a_rewind_finds_its_checkpoint_by_label_or_time(inst):
    inst.create("demo")
    inst.sbx("checkpoint", "demo", "first", check=0)
    at = inst.root / "state/sbx/sandboxes" / get(inst, "demo")["id"] / "checkpoints"
    listed = json.loads(at.read_text())
    listed["checkpoints"][0]["created_at"] -= 7200_000
    at.write_text(json.dumps(listed))
    inst.sbx("checkpoint", "demo", "second", check=0)
    assert "at checkpoint 'first'" in inst.sbx("rewind", "demo", "--to", "1h", check=0).stdout
    for args, status, said in (
            (("--to", "9h"), 1, "no checkpoint before 9h"),
            (("--to", "second"), 1, "no checkpoint 'second'"),
            (("--to", "first", "--undo"), 2, "expected one of --to and --undo"),
            ((), 2, "expected one of --to and --undo")):
        p = inst.sbx("rewind", "demo", *args, check=status)
        assert said in p.stderr and "try:" in p.stderr, p.stderr
    assert get(inst, "demo")["status"] == "running", "a wrong rewind stopped the sandbox"
