"""What a guest put into its workspace changes nothing about what the user's next command means."""
import json
import os

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
