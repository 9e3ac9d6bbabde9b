# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each process at random moments: the others behave as the table in
ARCHITECTURE.md states.

6 rounds, one for each process, and always the same victims and delays, so that two runs on one tree
do the same. tests/long/kill9 has 200 rounds and a new seed each time; SBX_KILL_SEED repeats one of
its runs.
"""
import os
import random
import signal
import subprocess
import time

import host
import pytest
from installation import START_SECONDS, private

ROUNDS = int(os.environ.get("SBX_KILL_ROUNDS", "6"))
SEED = int(os.environ.get("SBX_KILL_SEED", "1"))
VICTIMS = ("sbxd", "keeper", "edge", "egress", "virtiofsd", "qemu")
# Writes and syncs all the time, so that a kill finds the disk in the middle of something. When N is
# printed, the sync of round N has made the rename of round N - 1 durable.
WORK = ("rm -f ~/work; sync; i=0; while :; do i=$((i+1)); echo $i > ~/work.tmp; sync; "
        "mv ~/work.tmp ~/work; echo $i; done")


@pytest.fixture(scope="module")
def box():
    with private(warm=False) as env:
        folder = env.make_folder("killed")
        made = env.create("killed", folder)
        made.folder = folder
        yield made


def choose(number):
    """Victim and delay of a round: every victim equally often, in a shuffled order."""
    order = random.Random(SEED)
    victims = []
    while len(victims) <= number:
        block = list(VICTIMS)
        order.shuffle(block)
        victims += block
    return victims[number], random.Random(SEED + number).uniform(0, 3)


def ls_is_quick(env):
    begin = time.monotonic()
    listed = env.ls(timeout=60)
    took = time.monotonic() - begin
    assert took <= 1.0, f"sbx ls took {took:.2f} s"
    return listed


def counter(box):
    return int(box.guest("cat ~agent/work 2>/dev/null || echo 0", timeout=START_SECONDS))


class Printed:
    """What the work in the guest printed so far, as the host has received it."""

    def __init__(self, path):
        self.path = path

    def last(self):
        """The last whole number; 0 when there is none yet."""
        lines = self.path.read_bytes().split(b"\n")
        return int(lines[-2]) if len(lines) > 1 else 0

    def wait_for(self, number):
        host.until(lambda: self.last() >= number, 30,
                   f"the work in the guest did not get to {number}")


def expect_lost(p):
    assert p.wait(20) != 0, "an exec whose sandbox or edge exited must not return 0"


def after_sbxd(box, p, pids, printed):
    """Sandboxes keep running, and so does a running exec."""
    before = printed.last()
    assert box.info()["status"] == "running"
    assert box.pids() == pids
    printed.wait_for(before + 3)
    assert p.poll() is None
    p.kill()
    p.wait()


def after_edge(box, p, pids, _):
    """Connections reset, the keeper restarts it; the VM keeps running."""
    expect_lost(p)
    assert box.guest("echo back", timeout=30) == "back"
    now = box.pids()
    assert now["edge"] != pids["edge"]
    assert {k: v for k,
            v in now.items() if k != "edge"} == {k: v for k, v in pids.items() if k != "edge"}


def after_egress(box, p, pids, printed):
    """Its connections close, the keeper starts another; execs and the VM keep running."""
    deadline = time.monotonic() + 60
    while (now := box.pids()).get("egress", pids["egress"]) == pids["egress"]:
        assert time.monotonic() < deadline, "there is no new egress"
        time.sleep(0.1)
    assert {**now, "egress": 0} == {**pids, "egress": 0}
    printed.wait_for(printed.last() + 3)
    assert p.poll() is None


def after_the_rest(box, p, pids, _):
    """The sandbox stops, its state is kept, its disk is intact."""
    expect_lost(p)
    host.wait_gone(pids, 15, "still there after the sandbox was to stop")
    box.wait_status("stopped", 5)
    host.check_disk(box.state / "root.qcow2", box.env.work)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_kill9(box, number, tmp_path):
    victim, delay = choose(number)
    print(f"round {number}: {victim} after {delay:.2f} s (SBX_KILL_SEED={SEED})")
    env, printed = box.env, Printed(tmp_path / "printed")
    box.guest("true", timeout=START_SECONDS)  # boots it when the last round has stopped it
    pids = box.pids()
    assert set(pids) == {"keeper", "qemu", "virtiofsd", "edge", "egress"}
    with open(printed.path, "wb") as out:
        p = env.popen("exec", box.name, "bash", "-c", WORK, stdin=subprocess.DEVNULL, stdout=out)
    try:
        printed.wait_for(2)
        time.sleep(delay)
        os.kill(env.daemon_pid() if victim == "sbxd" else pids[victim], signal.SIGKILL)
        ls_is_quick(env)
        {"sbxd": after_sbxd, "edge": after_edge,
         "egress": after_egress}.get(victim, after_the_rest)(box, p, pids, printed)
    finally:
        p.kill()
        p.wait()
    listed = ls_is_quick(env)
    assert [s["name"] for s in listed] == ["killed"]
    # Nothing doubled, and it can be used again: synced data is present.
    assert counter(box) >= printed.last() - 1 >= 1
    names = list(host.processes(env.folder).values())
    for name in ("sbxd", "sbx-keeper", "qemu-system-x86", "sbx-edge", "sbx-egress"):
        assert names.count(name) == 1, names
    # virtiofsd forks once on its own
    assert 1 <= names.count("virtiofsd") <= 2 and set(names) <= set(host.OURS), names


def test_ls_at_the_moment_sbxd_dies(fresh_env):
    """The connection of `sbx ls` may still have been taken by the one that is dying."""
    fresh_env.sbx("ls")
    for _ in range(30):
        os.kill(fresh_env.daemon_pid(), signal.SIGKILL)
        assert fresh_env.ls(timeout=10) == []
