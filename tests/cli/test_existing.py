# SPDX-License-Identifier: Apache-2.0
"""No option is accepted and ignored: the effect of each option if the sandbox already exists."""
import json
import re
import shlex

import pytest

from conftest import on_terminal

AGENT = {"SSH_AUTH_SOCK": "/run/user/agent.sock", "SSH_ASKPASS": "/usr/bin/true"}


def get(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


def options_of(inst, verb):
    text = inst.sbx("help", *verb.split(), check=0).stdout
    return set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", text, re.M)) - {"help"}


def type_hint(inst, p, **more):
    """Runs the command that the error suggests."""
    hint = re.search(r"^  try: (sbx .*)$", p.stderr, re.M)
    assert hint, p.stderr
    for command in hint.group(1).split(" && "):
        last = inst.sbx(*shlex.split(command)[1:], env=AGENT, **more)
        assert last.returncode == 0, (command, last.stderr)
    return last


def has_rule(effect, host):
    def check(inst, name):
        rules = json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
        found = [r for r in rules if r.get("sandbox") == name and r["decision"] == effect
                 and host in r["resources"]]
        assert len(found) == 1, (found, rules)
    return check


def publishes(port):
    def check(inst, name):
        assert {p["host_port"] for p in get(inst, name)["ports"]} == {port}
    return check


def exists(inst, name):
    assert name in inst.sbx("ls", "-q", check=0).stdout.split()


def is_gone(inst, name):
    assert name not in inst.sbx("ls", "-q", check=0).stdout.split()


# option -> (arguments, what the sandbox was created with so that the same arguments pass).
# "the same" means: refused on another sandbox, with a command that works; accepted where the
# sandbox has it.
REFUSED = {
    "cpus": (["--cpus", "3"], "a different value for CPUs"),
    "memory": (["-m", "3g"], "a different value for memory"),
    "idle-timeout": (["--idle-timeout", "7m"], "a different value for idle timeout"),
    "disk": (["--disk", "40g"], "has a different disk size"),
    "hide": (["--hide", ".env*"], "does not hide '.env*'"),
    "guard": (["--guard", "strict"], "a different value for the guard"),
    "label": (["--label", "team=web"], "exists without the label team=web"),
    "guard-except": (["--guard-except", "Makefile"], "does not except 'Makefile' from its guard"),
    "staged": (["--staged"], "is not staged"),
    "template": (["-t", "other"], "was created from the template 'debian'"),
    "ssh-agent": (["--ssh-agent=SHA256:abc"], "has no SSH agent"),
    "ssh-agent-confirm": (["--ssh-agent", "--ssh-agent-confirm"], "has no SSH agent"),
}
APPLIED = {
    "allow-network": (["--allow-network", "a.example"], has_rule("allow", "a.example")),
    "deny-network": (["--deny-network", "b.example"], has_rule("deny", "b.example")),
    "publish": (["-p", "127.0.0.1:28431:80"], publishes(28431)),
    "name": ([], exists),
    "force": (["--force"], exists),
    "allow-hosts": (["--allow-hosts"], exists),
    "detached": ([], exists),
}
# These have separate tests below; those of clones are in test_clone.py, those of projects in
# test_planted.py.
OWN = {"env", "env-file", "accel", "cold", "import-config", "rm", "detach-keys", "clone", "branch",
       "carry", "project", "no-project"}


def second_template(inst):
    folder = inst.root / "data/sbx/templates"
    (folder / "other").mkdir()
    for f in (folder / "debian").iterdir():
        (folder / "other" / f.name).write_bytes(f.read_bytes().replace(b'"debian"', b'"other"'))


def test_every_option_of_run_has_a_row(inst):
    assert options_of(inst, "run") == set(REFUSED) | set(APPLIED) | OWN


def test_run_refuses_what_is_fixed_and_names_a_command_that_works(inst):
    second_template(inst)
    inst.create("box", ".")
    for option, (args, says) in REFUSED.items():
        before = inst.sbx("ls", "-q").stdout.split()
        p = inst.sbx("run", "-d", "shell", ".", "--name", "box", *args, env=AGENT)
        assert p.returncode == 125 and says in p.stderr and p.stdout == "", (
            (option, p.stdout, p.stderr))
        type_hint(inst, p)
        made = set(inst.sbx("ls", "-q").stdout.split()) - set(before)
        name = made.pop() if made else "box"
        # the suggested command has an effect, and it accepts the same options
        again = inst.sbx("run", "-d", "shell", ".", "--name", name, *args, env=AGENT, check=0)
        assert again.stdout == f"{name}\n", option
        if name != "box":
            inst.sbx("rm", "-f", "--discard", name, check=0)


def test_run_refuses_a_workspace_that_is_shared_otherwise(inst):
    (inst.work / "sub").mkdir()
    inst.create("box", ".")
    for path, says in ((f"{inst.work}:ro", "read-write"), (f"{inst.work}:/elsewhere", "shares"),
                       ("sub", "does not share")):
        p = inst.sbx("run", "-d", "shell", path, "--name", "box")
        assert p.returncode == 125 and says in p.stderr and p.stdout == "", (path, p.stderr)
        name = type_hint(inst, p).stdout.strip()
        assert name == "box-2" and get(inst, name)["workspaces"][0]["ro"] == path.endswith(":ro")
        inst.sbx("rm", "-f", "--discard", name, check=0)
    assert inst.sbx("run", "-d", "shell", ".", "--name", "box", check=0).stdout == "box\n"


@pytest.mark.parametrize("where", ["args", "name"])
def test_run_applies_the_rest_once(inst, where):
    inst.create("shell-work", ".")
    for option, (args, check) in APPLIED.items():
        if option == "publish":
            inst.sbx("stop", "shell-work", check=0)  # the simulated sandbox has no ports
        for _ in range(2):  # the same command again changes nothing
            who = ["shell", "."] if where == "args" else ["shell-work"]
            assert inst.sbx("run", "-d", *who, *args, check=0).stdout == "shell-work\n", option
            check(inst, "shell-work")


def test_nothing_is_applied_when_something_is_refused(inst):
    inst.create("box", ".")
    inst.sbx("run", "-d", "box", "--allow-network", "a.example", "-p", "28431:80", "--hide", "x",
             check=125)
    assert get(inst, "box")["ports"] == []
    assert "a.example" not in inst.sbx("policy", "ls", "--wide", check=0).stdout


def test_variables_are_for_the_session(inst):
    inst.create("box", ".", "-e", "BAKED=1")
    p = inst.sbx("run", "box", "-e", "NEW=2", "--", "sh", "-c", "echo $BAKED $NEW", check=0)
    assert p.stdout == "1 2\n"
    assert "variable NEW" in inst.sbx("run", "-d", "box", "-e", "NEW=2", check=125).stderr
    inst.sbx("run", "-d", "box", "-e", "BAKED=1", check=0)
    (inst.work / "vars").write_text("NEW=3\n")
    assert inst.sbx("run", "box", "--env-file", "vars", "--", "sh", "-c", "echo $NEW",
                    check=0).stdout == "3\n"
    assert "variable NEW" in inst.sbx("run", "-d", "box", "--env-file", "vars", check=125).stderr


def test_what_only_a_start_decides(inst):
    inst.create("box", ".")
    p = inst.sbx("run", "-d", "box", "--cold", check=125)
    assert "is already running: --cold has no effect" in p.stderr
    p = inst.sbx("run", "-d", "box", "--accel", "kvm", check=125)
    assert "is already running with tcg" in p.stderr
    assert "sbx stop --cold box && sbx run --accel kvm --name box" in p.stderr
    for args in (["--accel", "tcg"], ["--accel", "auto"]):
        inst.sbx("run", "-d", "box", *args, check=0)
    inst.sbx("stop", "box", check=0)
    inst.sbx("run", "-d", "box", "--cold", check=0)


def test_settings_are_copied_again_over_what_is_there(inst):
    """The agent `shell` has no settings; the test of agents has the copy itself."""
    inst.create("box", ".")
    assert "No configuration of" in inst.sbx("run", "-d", "box", "--import-config", check=0).stderr


def test_removal_at_the_end_of_the_session(inst):
    inst.create("box", ".")
    inst.sbx("run", "box", "--rm", "--", "true", check=0)
    is_gone(inst, "box")


def test_options_without_effect_together_are_refused(inst):
    for args in (["-d", "--rm"], ["-d", "--detach-keys", "ctrl-x"], ["-d", "--", "make"]):
        p = inst.sbx("run", "--name", "box", *args, check=2)
        assert "  try: sbx" in p.stderr, p.stderr
    is_gone(inst, "box")


# ---- the other verbs that take a sandbox ----

def box_of(inst):
    inst.create("box", ".")


def update(*args, field=None, value=None):
    def check(inst):
        inst.sbx("update", "box", *args, check=0)
        assert get(inst, "box").get(field) == value
    return check


def seen(*args, out, **more):
    def check(inst):
        p = inst.sbx(*args, check=0, **more)
        assert out in p.stdout, (args, p.stdout)
    return check


def refused(*args, says):
    def check(inst):
        p = inst.sbx(*args)
        assert p.returncode != 0 and says in p.stderr, (args, p.returncode, p.stderr)
    return check


def refused_on_terminal(*args, says):
    def check(inst):
        out, status = on_terminal(inst, args)
        assert status != 0 and says in out, (args, status, out)
    return check


def updated_accel(inst):
    inst.sbx("stop", "box", check=0)
    inst.sbx("update", "box", "--accel", "tcg", check=0)
    assert get(inst, "box")["accel"] == "tcg"


def updated_exceptions(inst):
    def change(*args, want):
        inst.sbx("update", "box", *args, check=0)
        assert get(inst, "box").get("guard_except", []) == want
    change("--guard-except", ".envrc", "--guard-except", "a/*.mk", want=[".envrc", "a/*.mk"])
    change("--guard-except", ".envrc", want=[".envrc", "a/*.mk"])
    change("--no-guard-except", ".envrc", "--guard-except", "b", want=["a/*.mk", "b"])
    p = inst.sbx("update", "box", "--no-guard-except", ".envrc")
    assert p.returncode == 1 and "sandbox 'box' has no exception '.envrc'" in p.stderr
    type_hint(inst, p)
    p = inst.sbx("update", "box", "--guard-except", "../b")
    assert p.returncode == 1 and "is not a path relative to a workspace" in p.stderr
    change("--no-guard-except", "b", "--no-guard-except", "a/*.mk", want=[])


def updated_place(inst):
    """Variables, hidden files and workspaces."""
    more = inst.root / "more"
    more.mkdir(exist_ok=True)
    inst.sbx("update", "box", "--env", "A=1", "--hide", "*.key", "--add-path", f"{more}:ro",
             check=0)
    s = get(inst, "box")
    assert s["env"]["A"] == "1" and "*.key" in s["hide"]
    assert {"host": str(more), "guest": str(more), "ro": True, "file": False} in s["workspaces"]
    inst.sbx("update", "box", "--rm-env", "A", check=0)
    assert "A" not in get(inst, "box")["env"]
    inst.sbx("stop", "box", check=0)
    inst.sbx("update", "box", "--rm-path", more, check=0)
    assert str(more) not in [w["host"] for w in get(inst, "box")["workspaces"]]
    assert inst.sbx("update", "box", "--add-path", inst.home).returncode != 0
    inst.sbx("update", "box", "--add-path", inst.home, "--force", check=0)
    inst.sbx("update", "box", "--rm-path", inst.home, check=0)
    inst.sbx("start", "box", check=0)


def updated_labels(inst):
    inst.sbx("update", "box", "--label", "a=1", "--label", "b=2", check=0)
    assert get(inst, "box")["labels"] == {"a": "1", "b": "2"}
    inst.sbx("update", "box", "--rm-label", "a", "--rm-label", "b", check=0)
    assert get(inst, "box")["labels"] == {}


def env_from_file(inst):
    (inst.work / "vars").write_text("FROM=file\n")
    assert inst.sbx("exec", "--env-file", "vars", "box", "sh", "-c", "echo $FROM",
                    check=0).stdout == "file\n"


def published_and_closed(inst):
    inst.sbx("stop", "box", check=0)  # the simulated sandbox has no ports
    inst.sbx("ports", "box", "-p", "127.0.0.1:28432:80", check=0)
    assert json.loads(inst.sbx("ports", "box", "--json", check=0).stdout)["ports"]
    inst.sbx("ports", "box", "--unpublish", "80", check=0)
    assert json.loads(inst.sbx("ports", "box", "--json", check=0).stdout) == {"ports": []}


def removed_by_force(inst):
    inst.sbx("rm", "box", check=1)
    inst.sbx("rm", "-f", "box", check=0)
    is_gone(inst, "box")
    box_of(inst)


def removed_all(inst):
    assert inst.sbx("rm", "-f", "--all", "box").returncode == 2
    inst.sbx("rm", "-f", "--all", check=0)
    is_gone(inst, "box")
    box_of(inst)


def removed_without_keeping(inst):
    inst.sbx("rm", "-f", "--discard", "box", check=0)
    is_gone(inst, "box")
    box_of(inst)


def copied(inst):
    link = inst.home / "link"  # not in a workspace, where links are not followed
    link.unlink(missing_ok=True)
    (inst.work / "real").write_text("what it points to")
    link.symlink_to(inst.work / "real")
    inst.sbx("cp", "-q", "-L", link, "box:/tmp/sbx-existing-copy", check=0)
    p = inst.sbx("cp", "-L", "box:/tmp/sbx-existing-copy", "back", check=0)
    assert (inst.work / "back").read_text() == "what it points to" and "Copied 1 file," in p.stderr
    inst.sbx("exec", "box", "rm", "/tmp/sbx-existing-copy", check=0)


def not_staged(*args):
    """tests/cli/test_staged.py has the sandboxes for which these options are."""
    return refused(*dict.fromkeys(args), "box", says="was not created with --staged")


OTHERS = {
    "update": {
        "cpus": update("--cpus", "3", field="cpus", value=3),
        "memory": update("-m", "3g", field="memory", value=3 << 30),
        "idle-timeout": update("--idle-timeout", "7m", field="idle_timeout", value=420),
        "accel": updated_accel,
        "guard": update("--guard", "strict", field="guard", value="strict"),
        "guard-except": updated_exceptions, "no-guard-except": updated_exceptions,
        "label": updated_labels, "rm-label": updated_labels,
        **dict.fromkeys(("env", "rm-env", "hide", "add-path", "rm-path", "force"), updated_place),
    },
    "exec": {
        "interactive": seen("exec", "-i", "box", "cat", input="typed", out="typed"),
        "tty": refused("exec", "-it", "box", "true", says="terminal"),
        "user": seen("exec", "-u", "root", "box", "sh", "-c", "echo $SBX_USER", out="root"),
        "workdir": seen("exec", "-w", "/usr", "box", "pwd", out="/usr"),
        "env": seen("exec", "-e", "A=b", "box", "sh", "-c", "echo $A", out="b"),
        "env-file": env_from_file,
        "detach": seen("exec", "-d", "box", "echo", "not seen", out=""),
    },
    "attach": {
        "session": refused_on_terminal("attach", "box", "--session", "other", says="other"),
        "detach-keys": refused_on_terminal("attach", "box", "--detach-keys", "nonsense-",
                                           says="nonsense-"),
    },
    "stop": {
        "timeout": seen("stop", "-t", "0", "box", out="Stopped"),
        "all": seen("stop", "--all", out="No running sandboxes"),
        "suspend": refused("stop", "--suspend", "-t", "1", "box", says="--timeout"),
        "cold": refused("stop", "--suspend", "--cold", "box", says="--cold"),
    },
    "review": {"list": not_staged("review", "--list"), "json": not_staged("review", "--json"),
               "git": not_staged("review", "--git"),
               "guard": seen("review", "box", "--guard", out=""),
               "done": seen("review", "box", "--guard", "--done", out=""),
               "plain": seen("review", "box", "--guard", "--plain", out="")},
    "apply": {name: not_staged("apply", "--yes", f"--{name}")
              for name in ("plain", "all", "yes", "continue", "undo", "git")},
    "discard": {"yes": not_staged("discard", "--yes")},
    "cp": {"follow-link": copied, "quiet": copied},
    "inspect": {"json": seen("inspect", "box", "--json", out='"name"')},
    "start": {
        "accel": refused("start", "--accel", "kvm", "box",
                         says="sbx stop --cold box && sbx start --accel kvm box"),
        "cold": refused("start", "--cold", "box", says="sbx stop --cold box && sbx start --cold box"),
    },
    "ports": {"publish": published_and_closed, "unpublish": published_and_closed,
              "json": seen("ports", "box", "--json", out="[]")},
    "rm": {"force": removed_by_force, "all": removed_all,
           "discard": removed_without_keeping,
           "history": seen("rm", "-f", "--history", "box", out="box")},
}


@pytest.mark.parametrize("verb", sorted(OTHERS))
def test_every_option_of_the_other_verbs(inst, verb):
    assert options_of(inst, verb) == set(OTHERS[verb])
    box_of(inst)
    for check in OTHERS[verb].values():
        check(inst)
