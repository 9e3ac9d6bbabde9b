# SPDX-License-Identifier: Apache-2.0
"""What a guest put into its workspace changes nothing about what the user's next command means."""
import json
import os
import re
import shlex

import pytest


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
