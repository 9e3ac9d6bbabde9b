# SPDX-License-Identifier: Apache-2.0
"""A sandbox that has replaced its sshd, against the real ssh with the configuration of sbx: the
agent, the display, ports and files of the host stay untouched, and no escape sequence is printed.
"""
import hashlib
import os
import pathlib
import re
import socket
import subprocess

import pytest

from conftest import installation

RIG = pathlib.Path(__file__).resolve().parents[2] / "rigs/hostile_sshd.py"
# case: what the log of the server must have, or None: the client leaves before a login
CASES = {
    "": "request exec",
    "lines before the version": "request exec",
    "version with escapes": "request exec",
    "version 1": None,
    "endless version": None,
    "a packet of 4 GiB": None,
    "a wrong signature": None,
    "a disconnect with escapes": None,
    "debug messages with escapes": "request exec",
    "a login banner with escapes": "request exec",
    "a login banner of 200 kB": "request exec",
    "only passwords": None,
    "a question without a request": None,
    "open the agent": "refused",
    "open the display": "refused",
    "open a forwarded port": "refused",
    "open a forwarded socket": "refused",
    "open a port of the host": "refused",
    "open a session on the host": "refused",
    "open a tunnel": "refused",
    "listen on the host": "refused",
    "new host keys": "request exec",
    "an unknown request": "refused",
    "an agent request on the session": "request exec",
    "an exit signal with escapes": "request exec",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host:
    """What a sandbox must not reach: an SSH agent, a display, a port, and files."""

    def __init__(self, inst):
        self.inst, self.folder = inst, inst.root / "state/sbx/ssh"
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(str(inst.root / "agent"))
        self.port = socket.socket()
        self.port.bind(("127.0.0.1", 0))
        for s in (self.agent, self.port):
            s.listen()
            s.setblocking(False)
        self.unused = free_port()
        (inst.home / ".ssh").mkdir(mode=0o700)
        for name in ("id_ed25519", "known_hosts"):
            (inst.home / ".ssh" / name).write_text("private\n")

    def files(self):
        return {f: hashlib.sha256(f.read_bytes()).digest()
                for top in (self.folder, self.inst.home, self.inst.work)
                for f in sorted(top.rglob("*")) if f.is_file()}

    def is_untouched(self):
        for s in (self.agent, self.port):
            try:
                s.accept()
                return False
            except BlockingIOError:
                pass
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.unused)) != 0

    def key(self, name, ca, *flags):
        """A host key and its certificate."""
        path = self.inst.root / name
        for suffix in ("", ".pub", "-cert.pub"):
            pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        if ca:
            subprocess.run(["ssh-keygen", "-q", "-s", ca, "-h", "-I", "x",
                            *(flags or ("-n", "demo.sbx")), f"{path}.pub"], check=True)
        return path, f"{path}-cert.pub" if ca else f"{path}.pub"

    def connect(self, case, key, cert, *flags, host="demo.sbx"):
        log = self.inst.root / "log"
        log.unlink(missing_ok=True)
        env = {**self.inst.env, "SSH_AUTH_SOCK": str(self.inst.root / "agent"),
               "DISPLAY": "127.0.0.1:0", "SECRET_VARIABLE": "x", "SSH_ASKPASS": "/bin/false",
               "HOSTILE_PORT": str(self.port.getsockname()[1]), "HOSTILE_LISTEN": str(self.unused)}
        proxy = f"{RIG} '{case}' {key} {cert} {log}"
        done = subprocess.run(["ssh", "-F", self.folder / "config", "-o", f"ProxyCommand={proxy}",
                               *flags, host, "true"], env=env, cwd=self.inst.work,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        done.log = log.read_text().splitlines() if log.exists() else []
        return done


@pytest.fixture(scope="module")
def rig():
    with installation() as inst:
        inst.template()
        inst.policy()
        inst.create("demo")
        inst.sbx("ssh", "demo", "true")
        made = Host(inst)
        yield made
        made.agent.close()
        made.port.close()


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_server_reaches_nothing(rig, case):
    key, cert = rig.key("host", rig.folder / "ca")
    before = rig.files()
    done = rig.connect(case, key, cert)
    assert rig.is_untouched() and rig.files() == before
    # ssh prints a bell and escapes all other control characters
    assert not re.search(rb"[\x00-\x06\x08\x0b\x0c\x0e-\x1f\x7f]|\x9b", done.stderr), done
    assert done.stdout == b""
    wanted = CASES[case]
    if wanted is None:
        assert done.returncode == 255 and "in" not in done.log, (done, done.log)
    else:
        assert wanted in done.log, (done, done.log)
    assert not {"opened", "accepted", "auth password", "request auth-agent-req@openssh.com",
                "request x11-req", "request env"} & set(done.log), done.log


@pytest.mark.parametrize("how", ["another CA", "no certificate", "another sandbox", "expired",
                                 "a user certificate"])
def test_another_host_key_is_refused(rig, how):
    ca = rig.folder / "ca"
    if how == "another CA":
        ca, _ = rig.key("ca2", None)
    flags = {"another sandbox": ("-n", "other.sbx"),
             "expired": ("-n", "demo.sbx", "-V", "-2d:-1d")}.get(how, ())
    key, cert = rig.key("host", None if how == "no certificate" else ca, *flags)
    if how == "a user certificate":
        os.unlink(cert)
        subprocess.run(["ssh-keygen", "-q", "-s", ca, "-I", "x", "-n", "demo.sbx", f"{key}.pub"],
                       check=True)
    before = rig.files()
    done = rig.connect("", key, cert)
    assert done.returncode == 255 and not done.log or done.log == ["end"], (done, done.log)
    assert rig.files() == before and rig.is_untouched()


def test_the_rig_can_do_harm(rig):
    """A port that the user forwards is reached by the same server."""
    key, cert = rig.key("host", rig.folder / "ca")
    where = f"127.0.0.1:{rig.port.getsockname()[1]}"
    done = rig.connect("open a forwarded port", key, cert, f"-R{where}:{where}")
    assert "opened" in done.log and not rig.is_untouched(), (done, done.log)
