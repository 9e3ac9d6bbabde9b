# SPDX-License-Identifier: Apache-2.0
"""Machines that wait for a sandbox: a claimed machine is complete and unique, and no machine is
left behind when any process is killed."""
import os
import signal
import time

import pytest

import host
from host import until
from installation import START_SECONDS, Sandbox
from warmlab import CPUS, FACTS, MEMORY, facts, start_of, warm_installation

READY_SECONDS = 180  # a restore after a pause, on a busy machine
GONE_SECONDS = 30


@pytest.fixture(scope="module")
def env():
    with warm_installation() as made:
        for key, value in {"vm.cpus": CPUS, "vm.memory": MEMORY,
                           "vm.accel": os.environ.get("SBX_ACCEL", "auto")}.items():
            made.sbx("settings", "set", key, value)
        made.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + os.urandom(24).hex())
        yield made


def set_pool(env, n):
    env.sbx("settings", "set", "pool.size", n)
    env.sbx("daemon", "start")


def ready(env):
    return env.api("GET", "/v1/version")[1]["pool"]["ready"]


def waiting(env):
    return sorted(p.parent.name for p in (env.state / "sandboxes").glob("*/pool"))


def keeper_of(ident):
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
             if is_keeper(pid, ident)]
    assert len(found) == 1, found
    return found[0]


def is_keeper(pid, ident):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().split(b"\0")
    except OSError:
        return False
    # Its spawner is a fork with the same words and another name.
    return words[0].endswith(b"sbx-keeper") and ident.encode() in words and host.comm(
        pid) == "sbx-keeper"


def is_alive(pid):
    return host.is_alive(pid)


def wait_ready(env, but=None):
    """The one machine that can be claimed, and its processes."""
    def look():
        ids = waiting(env)
        return ids[0] if ready(env) == 1 and len(ids) == 1 and ids[0] != but else None
    ident = until(look, READY_SECONDS)
    keeper = keeper_of(ident)
    return ident, [keeper, *host.descendants(keeper)]


def wait_gone(env, ident, pids):
    until(lambda: not any(map(is_alive, pids)), GONE_SECONDS)
    until(lambda: not (env.state / "sandboxes" / ident).exists()
          and not (env.runtime / "s" / ident).exists(), GONE_SECONDS)


def create(env, name, *paths):
    """As a user without options for CPUs and memory."""
    env.sbx("create", "shell", *paths, "--name", name, timeout=START_SECONDS)
    return Sandbox(env, name)


def memory_of(pids):
    """Bytes that the memory of the VM occupies."""
    (qemu,) = [p for p in pids if (host.comm(p) or "").startswith("qemu")][-1:]
    found = {os.stat(f.path).st_ino: os.stat(f.path).st_blocks * 512
             for f in os.scandir(f"/proc/{qemu}/fd")
             if os.stat(f.path).st_size == 1 << 30}
    assert len(found) == 1, found
    return found.popitem()[1]


def test_a_claim_and_the_next_one(env):
    set_pool(env, 1)
    ident, pids = wait_ready(env)
    names = {host.comm(p) for p in pids}
    later = ("virtiofsd", "sbx-egress", "sbx-edge")
    assert not any(n and n.startswith(later) for n in names), names
    assert memory_of(pids) < 1 << 20, "there is no guest"
    assert env.ls() == [] and ident not in env.sbx("ls").stdout
    assert "pool     1 of 1 ready" in env.sbx("daemon", "status").stdout
    assert not (env.state / "audit" / f"{ident}.log").exists()

    folder = env.make_folder("first")
    (folder / "here").write_text("before\n")
    boxes = []
    try:
        boxes.append(first := create(env, "first", folder))
        assert first.info()["id"] == ident and start_of(first) == ("pool", "")
        assert pids[0] == first.pids()["keeper"]
        assert "pool, " in env.sbx("inspect", "first").stdout
        # a whole sandbox
        assert first.guest(f"cat {folder}/here", user="agent") == "before"
        first.guest(f"echo inside > {folder}/there", user="agent")
        assert (folder / "there").read_text() == "inside\n"
        assert first.fails(f"echo inside > {folder}/.envrc"), "its guard began with the claim"
        assert abs(float(first.guest("date +%s.%N")) - time.time()) < 5
        assert first.guest("hostname") == "first"
        assert first.guest("id -u", user="agent") == str(os.getuid())
        env.sbx("policy", "deny", "network", "denied.test")
        out = first.exec("curl", "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}",
                         "http://denied.test/", user="agent", check=False)
        assert out.stdout == "403"
        assert "denied.test" in env.sbx("policy", "log", "first").stdout
        # the next one, and nothing in common
        wait_ready(env, but=ident)
        boxes.append(second := create(env, "second", env.make_folder("second")))
        assert start_of(second) == ("pool", "")
        found = [facts(b) for b in boxes]
        for name in FACTS:
            values = [f[name] for f in found]
            assert all(values) and values[0] != values[1], (name, values)
        assert "crng reseeded due to virtual machine fork" in second.guest("dmesg")
        env.sbx("audit", "verify")
        # its disks are its own from then on
        first.guest("echo mine > /var/tmp/mine; sync")
        first.stop()
        env.sbx("exec", "first", "true", timeout=START_SECONDS)
        assert first.guest("cat /var/tmp/mine") == "mine" and first.guest(
            "cat /etc/machine-id") == found[0]["machine"]
    finally:
        for b in boxes:
            where, pids = b.state, list(b.pids().values())
            b.rm()
            assert not where.exists()
            until(lambda: not any(map(is_alive, pids)), GONE_SECONDS)


def test_kill_9_of_a_keeper_and_of_sbxd(env):
    set_pool(env, 1)
    ident, pids = wait_ready(env)
    os.kill(pids[0], signal.SIGKILL)
    wait_gone(env, ident, pids)
    ident, pids = wait_ready(env, but=ident)
    os.kill(env.daemon_pid(), signal.SIGKILL)
    until(lambda: not any(map(is_alive, pids)), GONE_SECONDS)  # without a notification
    env.sbx("ls")
    wait_gone(env, ident, pids)
    wait_ready(env, but=ident)


def test_the_machine_dies_while_it_waits(env):
    set_pool(env, 1)
    ident, pids = wait_ready(env)
    (qemu,) = [p for p in pids if (host.comm(p) or "").startswith("qemu")][-1:]
    os.kill(qemu, signal.SIGKILL)
    wait_gone(env, ident, pids)
    wait_ready(env, but=ident)


def test_a_workspace_that_is_gone_says_so(env):
    """What fails after the claim fails as without a pool."""
    set_pool(env, 1)
    wait_ready(env)
    folder = env.make_folder("gone")
    status, made = env.api("POST", "/v1/sandboxes",
                           {"name": "gone", "workspaces": [{"host": str(folder)}]})
    assert status == 201, made
    folder.rmdir()
    box = Sandbox(env, "gone")
    try:
        assert env.api("POST", "/v1/sandboxes/gone/start", {"accel": "tcg"})[0] == 202
        until(lambda: box.info()["status"] == "stopped", START_SECONDS)
        assert str(folder) in box.info()["detail"]
    finally:
        box.rm()


def test_shrunk_to_nothing(env):
    set_pool(env, 1)
    ident, pids = wait_ready(env)
    set_pool(env, 0)
    wait_gone(env, ident, pids)
    time.sleep(3)
    assert waiting(env) == [] and ready(env) == 0
