# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes, one of them stuck: the others, and `sbx ls`, do not wait for it."""
import os
import signal
import subprocess
import time

import host
import pytest
from installation import START_SECONDS, private

COUNT = 50


@pytest.fixture(scope="module")
def crowd():
    with private() as env:
        for i in range(COUNT - 1):
            env.register(f"box-{i:02}")
        env.stuck = env.create("stuck")
        yield env


def timed(fn, *args, **kwargs):
    begin = time.monotonic()
    result = fn(*args, **kwargs)
    return result, time.monotonic() - begin


@pytest.fixture
def frozen(crowd):
    """qemu and keeper of one sandbox are stopped by a signal."""
    pids = crowd.stuck.pids()
    victims = [pids["keeper"], pids["qemu"]]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield crowd
    finally:
        for pid in victims:
            os.kill(pid, signal.SIGCONT)


def test_ls_of_fifty(crowd):
    listed, took = timed(crowd.ls)
    assert len(listed) == COUNT
    assert [s["name"] for s in listed] == sorted(s["name"] for s in listed)
    assert took <= 1.0, f"{took:.2f} s"


def test_ls_answers_and_says_which_one_is_stuck(frozen):
    deadline = time.monotonic() + 60
    while True:
        listed, took = timed(frozen.ls)
        assert took <= 1.0, f"sbx ls took {took:.2f} s"
        assert len(listed) == COUNT
        status = {s["name"]: s["status"] for s in listed}
        if status["stuck"] == "unresponsive":
            break
        assert time.monotonic() < deadline, f"stuck is shown as {status['stuck']}"
        time.sleep(0.5)
    assert [n for n, s in status.items() if s == "unresponsive"] == ["stuck"]
    assert "unresponsive" in frozen.sbx("ls").stdout


@pytest.mark.parametrize("args",
                         [["exec", "stuck", "true"], ["cp", "/etc/hostname", "stuck:/tmp/x"],
                                  ["cp", "stuck:/etc/hostname", "/tmp/never"]])
def test_commands_on_it_fail_within_their_bound(frozen, args):
    done, took = timed(frozen.sbx, *args, check=False, timeout=60)
    assert done.returncode != 0 and done.stderr.startswith("error: ")
    assert took <= 30, f"{took:.1f} s"


def test_commands_on_others_do_not_notice(frozen):
    for args in (["inspect", "box-00"], ["rename", "box-01", "renamed"],
                 ["rename", "renamed", "box-01"],
                 ["update", "box-02", "--cpus", "1"]):
        _, took = timed(frozen.sbx, *args)
        assert took <= 1.0, f"{args}: {took:.2f} s"


def test_it_goes_on_when_it_is_let_go(crowd):
    crowd.stuck.wait_status("running", 20)
    assert crowd.stuck.guest("echo well", timeout=30) == "well"


@pytest.mark.parametrize("args", [["stop", "stuck"], ["rm", "-f", "stuck"]])
def test_ending_it_works_within_the_bound_though_it_is_stuck(crowd, args):
    """What does not answer is killed; nothing of it is left, and a running exec of it ends."""
    crowd.sbx("exec", "stuck", "true", timeout=START_SECONDS)
    p = crowd.popen("exec", "stuck", "sleep", "600", stdin=subprocess.DEVNULL)
    try:
        time.sleep(1)
        pids = crowd.stuck.pids()
        for name in ("keeper", "qemu"):
            os.kill(pids[name], signal.SIGSTOP)
        _, took = timed(crowd.sbx, *args, timeout=60)
        assert took <= 30
        assert p.wait(20) != 0
        host.wait_gone(pids, 5, "outlived its sandbox")
    finally:
        p.kill()
        p.wait()
    assert {s["name"]: s["status"]
            for s in crowd.ls()}.get("stuck") == ("stopped" if args[0] == "stop" else None)
