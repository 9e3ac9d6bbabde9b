# SPDX-License-Identifier: Apache-2.0
"""Every test has its own installation: XDG directories and sbxd, removed at the end."""
import contextlib
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

RIGS = pathlib.Path(__file__).resolve().parents[1] / "rigs"
sys.path[:0] = [str(RIGS.parent), str(RIGS)]
from reaper import guard, sanitizer_options  # noqa: E402

SBX = os.environ["SBX_TEST_SBX"]
PROVE = os.environ["SBX_TEST_PROVE"]
SBXD = os.environ["SBX_TEST_SBXD"]
BUILTIN = os.environ["SBX_TEST_BUILTIN"]
VERSION = os.environ["SBX_TEST_VERSION"]
HERE = pathlib.Path(__file__).parent
PATIENCE = 10 if os.environ.get("SBX_TEST_SANITIZED") == "1" else 1  # as in tests/api


class Installation:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.home = self.root / "home"
        self.work = self.root / "work"
        self.libexec = self.root / "libexec"
        for d in ("home", "work", "libexec", "run", "state", "data", "config"):
            (self.root / d).mkdir(mode=0o700)
        (self.libexec / "sbxd").symlink_to(SBXD)
        (self.libexec / "sbx-prove").symlink_to(PROVE)
        (self.libexec / "sbx-keeper").symlink_to(RIGS / "sandbox_stand_in.py")
        # a keeper is not given variables of the test's
        (self.libexec / "version").write_text(VERSION)
        (self.root / "state/guest_builtin").symlink_to(BUILTIN)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.root / "run"), "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_DATA_HOME": str(self.root / "data"), "XDG_CONFIG_HOME": str(self.root / "config"),
            "SBX_LIBEXEC": str(self.libexec), "SBX_SHARE": str(HERE.parents[1] / "data"),
            "SBX_ACCEL": "tcg",
            "TERM": "xterm", **sanitizer_options(),
        }

    def vault(self):
        """The real vault, whose key is in a file."""
        for program in os.environ["SBX_TEST_VAULT"].split(":"):
            (self.libexec / pathlib.Path(program).name).symlink_to(program)
        self.sbx("settings", "set", "vault.key", "file", check=0)

    def template(self):
        """A directory with the form of a template: the simulated keeper boots no VM."""
        d = self.root / "data/sbx/templates/debian"
        d.mkdir(parents=True)
        (d / "manifest.json").write_text(json.dumps(
            {"name": "debian", "version": "13.1", "created": "2026-01-01T00:00:00Z",
             "content": "ab" * 32,
             "files": {f: {"size": 4096}
                       for f in ("root.img", "docker.img", "vmlinuz", "modules.cpio")}}))
        for f in ("root.img", "docker.img", "vmlinuz", "modules.cpio"):
            (d / f).write_bytes(b"\0" * 4096)

    def policy(self, preset="balanced"):
        """As the first command of an installation is."""
        return self.sbx("policy", "set-default", preset, check=0)

    def sbx(self, *args, check=None, input="", cwd=None, env=None, timeout=60, binary=False):
        data = input if isinstance(input, bytes) else input.encode()
        p = subprocess.run([SBX, *map(str, args)], input=data, capture_output=True,
                           cwd=cwd or self.work,
                           env={**self.env, **(env or {})}, timeout=timeout * PATIENCE)
        if not binary:
            p.stdout, p.stderr = p.stdout.decode(), p.stderr.decode()
        if check is not None:
            assert p.returncode == check, (args, p.returncode, p.stdout, p.stderr)
        return p

    def create(self, name="demo", *args, mode=None):
        more = ["-e", f"MODE={mode}"] if mode else []
        return self.sbx("create", "shell", "--name", name, *more, *args, check=0)

    def close(self):
        if (self.root / "run/sbx/sbxd.sock").exists():
            self.sbx("rm", "--force", "--discard", "--all")
            self.sbx("daemon", "stop")


def on_terminal(inst, args, typed=b"", env=None, seconds=20):
    """Runs sbx on a separate terminal. Returns its output and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(inst.work)
        os.execve(SBX, [SBX, *map(str, args)], {**inst.env, **(env or {})})
    out, deadline = b"", time.monotonic() + seconds * PATIENCE
    if typed:
        time.sleep(0.3)
        os.write(fd, typed)
    while True:
        if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        out += part
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return out.decode(), status


@contextlib.contextmanager
def installation():
    """Nothing there: no template, no sbxd."""
    root = tempfile.mkdtemp(prefix="sbx-cli.")
    guard.open(root)
    inst = Installation(root)
    yield inst
    inst.close()
    guard.close(root)
    subprocess.run(["chmod", "-R", "u+rwx", root], check=False)
    shutil.rmtree(root)


@pytest.fixture
def bare():
    with installation() as inst:
        yield inst


@pytest.fixture
def inst(bare):
    bare.template()
    bare.policy()
    return bare


@pytest.fixture
def vault(inst):
    inst.vault()
    return inst
