# SPDX-License-Identifier: Apache-2.0
"""A start whose KVM self-test takes as long as it may: /dev/kvm opens, and the test machine never
responds.

sbxd and the keeper are the real programs, in a mount namespace with another /dev and another
qemu."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_api  # noqa: E402
from test_api import Daemon, guard, is_alive, wait_for  # noqa: E402

GUEST = os.environ["SBX_TEST_GUEST"]
QEMU = os.environ["SBX_TEST_QEMU"]
SCENE = """
set -e
mkdir "$1/dev"
mount -t tmpfs -o mode=755 dev "$1/dev"
for name in null zero full random urandom tty; do
    : >"$1/dev/$name"
    mount --bind "/dev/$name" "$1/dev/$name"
done
mkdir "$1/dev/shm" "$1/dev/pts"
: >"$1/dev/kvm"
mount --rbind "$1/dev" /dev
mount --bind "$2" /usr/bin/qemu-system-x86_64
shift 2
exec "$@"
"""


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    """A compromised keeper can leave one in its directory for the next keeper."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path),
           "XDG_STATE_HOME": str(tmp_path)}
    sandbox = tmp_path / "sbx/sandboxes/0123456789ab"
    sandbox.mkdir(parents=True)
    (sandbox / "lock").symlink_to(tmp_path / "made")
    p = subprocess.run([test_api.KEEPER, "--id", "0123456789ab"], env=env, capture_output=True,
                       text=True, timeout=30, check=False)
    assert p.returncode != 0 and "Too many levels of symbolic links" in p.stderr, p.stderr
    assert not (tmp_path / "made").exists()


class Slow(Daemon):
    def __init__(self, root):
        root = pathlib.Path(root)
        template = root / "d/sbx/templates/debian"
        os.makedirs(root / "scene")
        super().__init__(root)
        (self.libexec / "sbx-guest").symlink_to(GUEST)
        template.mkdir(parents=True)
        files = {name: 4096 for name in ("root.img", "docker.img", "vmlinuz", "modules.cpio")}
        for name, size in files.items():
            (template / name).write_bytes(b"x" * size)
        manifest = {"name": "debian", "kernel": "none",
                    "files": {name: {"size": size, "disk": size} for name, size in files.items()}}
        (template / "manifest.json").write_text(json.dumps(manifest))

    def start(self):
        self.log = open(self.root / "log", "ab")
        self.proc = subprocess.Popen(["unshare", "--user", "--map-current-user", "--keep-caps",
                                      "--mount", "sh", "-c", SCENE, "sh",
                                      self.root / "scene", QEMU, test_api.SBXD], env=self.env,
                                     stderr=self.log, start_new_session=True)
        wait_for(lambda: self.ready() or self.proc.poll() is not None)
        assert self.proc.poll() is None, self.log_text()

    def begin(self):
        self.create("demo", accel="kvm")
        status, o = self.call("POST", "/v1/sandboxes/demo/start")
        assert status == 202, o
        wait_for(lambda: self.machines())

    def machines(self):
        """The test machines that descend from this installation's keepers."""
        keepers, found = set(self.left()), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and b"sbx.selftest" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
        return [pid for pid in found if keepers & set(ancestors(pid))]


def ancestors(pid):
    while pid > 1:
        try:
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return
        yield pid


@pytest.fixture
def slow():
    root = tempfile.mkdtemp(prefix="sbxd-slow-", dir="/tmp")
    guard.open(root)
    daemon = Slow(root)
    yield daemon
    daemon.end()
    guard.close(root)
    shutil.rmtree(root)


def test_a_slow_kvm_self_test_does_not_make_the_keeper_silent(slow):
    """Its keeper was taken for dead after 2.3 s and killed: the first start failed on every slower
    host."""
    slow.begin()
    seen, said = set(), set()
    until = time.monotonic() + 60
    while (o := slow.get("demo"))["status"] != "stopped":
        seen.add(o["status"])
        said.add(o["detail"])
        assert time.monotonic() < until
        time.sleep(0.1)
    assert seen <= {"starting", "stopping"}, seen
    assert len([text for text in said if text.startswith("testing KVM")]) >= 3, said
    assert "the test VM did not boot within 5 s" in o["detail"], o["detail"]
    wait_for(lambda: not slow.machines())


def test_a_stop_during_the_kvm_self_test_ends_the_test_machine(slow):
    slow.begin()
    machine = slow.machines()[0]
    began = time.monotonic()
    status, o = slow.call("POST", "/v1/sandboxes/demo/stop", {"timeout_ms": 1000})
    assert status == 200 and o["status"] == "stopped" and o["detail"] == "", o
    assert time.monotonic() - began < 4.5  # the boot has 5 s
    wait_for(lambda: not is_alive(machine))
