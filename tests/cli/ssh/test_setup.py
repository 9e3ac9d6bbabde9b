# SPDX-License-Identifier: Apache-2.0
"""`sbx setup ssh` and --undo, on the ~/.ssh/config files that people have."""
import os
import subprocess

import pytest

from conftest import on_terminal

OWN = b"# mine\r\nHost work\n\tUser me\n\nHost *\n\tServerAliveInterval 30"  # no newline


class User:
    def __init__(self, inst):
        self.inst, self.ssh = inst, inst.home / ".ssh"
        self.config = self.ssh / "config"
        self.ours = inst.root / "state/sbx/ssh/config"
        self.line = f'Include "{self.ours}"\n'.encode()

    def setup(self, *args, check=0):
        return self.inst.sbx("setup", "ssh", *args, check=check)

    def write(self, content, mode=0o600):
        self.ssh.mkdir(mode=0o700, exist_ok=True)
        self.config.write_bytes(content)
        self.config.chmod(mode)

    def options(self, host):
        done = subprocess.run(["ssh", "-G", "-F", self.config, host], capture_output=True,
                              text=True, timeout=60, check=True, env=self.inst.env)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


@pytest.fixture
def user(bare):
    return User(bare)


def test_it_shows_what_it_writes_and_ssh_uses_it(user):
    user.write(OWN)
    done = user.setup("--yes")
    assert user.ours.read_text() in done.stdout and user.line.decode() in done.stdout
    assert user.config.read_bytes() == user.line + OWN
    found = user.options("demo.sbx")
    assert "ssh --proxy" in found["proxycommand"] and found["forwardagent"] == "no"
    assert "proxycommand" not in user.options("work")


def test_undo_removes_exactly_that(user):
    user.write(OWN, 0o640)
    user.setup("--yes")
    assert user.config.stat().st_mode & 0o777 == 0o640
    user.setup("--undo")
    assert user.config.read_bytes() == OWN and user.config.stat().st_mode & 0o777 == 0o640
    assert "nothing to undo" in user.setup("--undo").stdout
    assert user.config.read_bytes() == OWN


def test_a_second_run_changes_nothing(user):
    user.write(OWN)
    user.setup("--yes")
    before = user.config.read_bytes(), user.config.stat().st_mtime_ns
    assert "already has the line" in user.setup().stdout  # and does not prompt
    assert (user.config.read_bytes(), user.config.stat().st_mtime_ns) == before


def test_without_a_directory_it_creates_one_for_the_user_alone(user):
    user.setup("--yes")
    assert user.ssh.stat().st_mode & 0o777 == 0o700
    assert user.config.stat().st_mode & 0o777 == 0o600
    assert user.config.read_bytes() == user.line
    user.setup("--undo")
    assert not user.config.exists()


def test_a_line_that_was_moved_becomes_the_first_one_again(user):
    user.write(b"Host a\n  Port 1\n  " + user.line + b"Host b\n" + user.line)
    user.setup("--yes")
    assert user.config.read_bytes() == user.line + b"Host a\n  Port 1\nHost b\n"


def test_a_linked_file_stays_a_link(user):
    dotfiles = user.inst.home / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "ssh").write_bytes(OWN)
    user.ssh.mkdir(mode=0o700)
    user.config.symlink_to("../dotfiles/ssh")
    user.setup("--yes")
    assert user.config.is_symlink() and (dotfiles / "ssh").read_bytes() == user.line + OWN
    (dotfiles / "ssh").write_bytes(user.line)
    user.setup("--undo")
    assert user.config.is_symlink() and (dotfiles / "ssh").read_bytes() == b""


@pytest.mark.parametrize("how, text", [
    ("dangling", "cannot follow the symbolic link"), ("loop", "cannot follow the symbolic link"),
    ("file", "cannot open"), ("directory", "cannot read"), ("fifo", "cannot read"),
    ("large", "larger than 1 MiB"), ("read-only", "cannot"),
])
def test_what_cannot_be_changed_is_an_error_and_stays(user, how, text):
    if how == "file":
        user.ssh.write_text("x")
    else:
        user.ssh.mkdir(mode=0o700)
    if how in ("dangling", "loop"):
        user.config.symlink_to("config" if how == "loop" else "nowhere")
    elif how == "directory":
        user.config.mkdir()
    elif how == "fifo":
        os.mkfifo(user.config)
    elif how == "large":
        user.config.write_bytes(b"#" * (1 << 20) + b"\n")
    elif how == "read-only":
        user.config.write_bytes(OWN)
        user.ssh.chmod(0o500)
    done = user.setup("--yes", check=1)
    assert text in done.stderr and user.line not in (
        user.config.read_bytes() if user.config.is_file() else b""), done
    assert user.config.is_symlink() == (how in ("dangling", "loop"))


def test_it_asks_first(user):
    user.write(OWN)
    out, status = on_terminal(user.inst, ["setup", "ssh"], b"n\n")
    assert status == 0 and "Nothing was changed" in out, out
    assert user.config.read_bytes() == OWN
    out, status = on_terminal(user.inst, ["setup", "ssh"], b"y\n")
    assert status == 0 and user.config.read_bytes() == user.line + OWN, out


def test_without_a_terminal_it_requires_yes(user):
    user.write(OWN)
    done = user.setup(check=1)
    assert "try: sbx setup ssh --yes" in done.stderr and user.config.read_bytes() == OWN


def test_settings_that_would_reach_a_sandbox_are_named(user):
    user.write(b"Host *\n SendEnv SECRET_*\n RemoteForward 9000 localhost:9000\n"
               b" IdentityFile ~/.ssh/id_work\n")
    said = user.setup("--yes").stderr
    for text in ("sendenv SECRET_*", "remoteforward 9000", "id_work", "'Host * !*.sbx'"):
        assert text in said, said
    # and the advice works
    user.config.write_bytes(user.config.read_bytes().replace(b"Host *", b"Host * !*.sbx"))
    assert "also to sandboxes" not in user.setup().stderr


def test_a_file_that_ssh_refuses_is_named(user):
    user.write(OWN, 0o666)
    assert f"try: chmod go-w {user.config}" in user.setup("--yes").stderr


def test_code_names_what_is_missing(inst):
    inst.create("demo")
    done = inst.sbx("code", "nosuch", check=1)
    assert "nosuch" in done.stderr
    done = inst.sbx("code", "demo", check=1)
    assert "ssh is not set up" in done.stderr and "try: sbx setup ssh\n" in done.stderr
    inst.sbx("setup", "ssh", "--yes", check=0)
    inst.sbx("stop", "demo", check=0)
    done = inst.sbx("code", "demo", check=1, env={"PATH": str(inst.work)})
    assert "program code not found" in done.stderr and "the host demo.sbx" in done.stderr, done
    assert "try: sbx ssh demo\n" in done.stderr
    assert '"stopped"' in inst.sbx("ls", "--json").stdout  # nothing was started for nothing


def test_code_runs_no_program_that_a_sandbox_can_plant(inst):
    inst.create("demo")
    inst.sbx("setup", "ssh", "--yes", check=0)
    planted = inst.work / "code"
    planted.write_text("#!/bin/sh\ntouch owned\n")
    planted.chmod(0o755)
    inst.sbx("code", "demo", env={"PATH": f"{inst.work}:/usr/bin:/bin"})
    assert not (inst.work / "owned").exists()
