# SPDX-License-Identifier: Apache-2.0
"""Sessions that are left and come back to, in a real terminal; nothing that runs in them
notices."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from host import until
from installation import Sandbox
from term import Terminal

LEFT = "the agent keeps running. Reattach with: sbx run"


@pytest.fixture
def box(sandbox):
    """The shared sandbox, with no session left over."""
    yield sandbox
    sandbox.guest("pkill -KILL -u agent bash; true")
    until(lambda: all(s["state"] != "running" for s in sessions(sandbox)), 20)
    # Reads the status of each session that has exited without a client, so that the next test finds
    # none.
    for s in sessions(sandbox):
        with Terminal(sandbox.env, "sbx", "attach", sandbox.name, "--session", s["name"]) as t:
            t.wait_end(30)


def sessions(box):
    return json.loads(box.env.sbx("inspect", box.name, "--json").stdout)["kept_sessions"]


def terminal(box, *args, **size):
    return Terminal(box.env, "sbx", *(args or ("run", box.name)), **size)


def at_prompt(t):
    """A prompt of the login shell that answers."""
    t.wait_for("agent@", 60)
    t.line("echo $((6*7))-up")
    t.wait_for("42-up")


def detach(t, keys=("C-\\",)):
    for key in keys:
        t.key(key)
    assert t.wait_end() == 0, t.screen()


def shell_pid(box):
    return box.guest("pgrep -u agent -o -x bash")


def test_left_and_come_back_to(box):
    with terminal(box) as t:
        at_prompt(t)
        pid = shell_pid(box)
        t.line("X=kept; (sleep 2; echo later-$X > /tmp/later) & echo on the screen")
        t.wait_for("on the screen\n")
        detach(t)
        assert LEFT + " " + box.name in t.screen()
    assert sessions(box) == [{"name": "agent", "state": "running", "attached": False,
                              "status": None}]
    until(lambda: box.guest("cat /tmp/later 2>/dev/null || true") == "later-kept", 30)
    with terminal(box) as t:
        screen = t.wait_for("on the screen", 30)
        assert "42-up" in screen, "what was shown is shown again"
        assert [s["attached"] for s in sessions(box)] == [True]
        logs = box.env.sbx("logs", box.name).stdout
        assert "on the screen\n" in logs and "\x1b" not in logs
        assert [s["attached"] for s in sessions(box)] == [True], "looking takes nothing over"
        t.line("echo $X-$$-again")
        t.wait_for(f"kept-{pid}-again")
        t.line("exit 5")
        assert t.wait_end() == 5
    assert sessions(box) == []
    with terminal(box) as t:
        at_prompt(t)
        assert shell_pid(box) != pid, "after its end the next run starts another"
        t.line("exit")
        assert t.wait_end() == 0


def test_size_is_the_new_terminals(box):
    with terminal(box, columns=100, rows=30) as t:
        at_prompt(t)
        detach(t)
    with terminal(box, columns=91, rows=23) as t:
        t.wait_for("42-up")
        t.line("stty size; echo ok")
        t.wait_for("23 91")
        detach(t)
    with terminal(box, columns=91, rows=23) as t:
        t.wait_for("42-up")
        time.sleep(0.3)
        t.line("clear; stty size")
        t.wait_for("23 91")
        t.line("exit")
        t.wait_end()


def test_full_screen_program_redraws(box):
    box.guest("seq 1000 > /tmp/numbers; chmod 644 /tmp/numbers")
    with terminal(box) as t:
        at_prompt(t)
        t.line("less /tmp/numbers")
        t.wait_for("/tmp/numbers")
        t.type("500g")
        t.wait_for("\n501\n")
        detach(t)
        assert "\n501\n" not in t.screen().split(LEFT)[1], "the terminal is a usable one again"
    with terminal(box) as t:
        t.wait_for("\n501\n")
        t.type("G")
        t.wait_for("(END)")  # less throws away what is typed while it draws
        assert "\n1000\n" in t.screen()
        t.type("q")
        t.line("exit 0")
        assert t.wait_end() == 0


def kill(pid):
    os.kill(int(pid), signal.SIGKILL)


def client_of(box):
    return subprocess.run(["pgrep", "-u", str(os.getuid()), "-f", f"^sbx run {box.name}$"],
                          check=True, capture_output=True,
                          text=True).stdout.split()[-1]


@pytest.mark.parametrize("how", ["kill", "hangup", "terminal"])
def test_client_dies(box, how):
    with terminal(box) as t:
        at_prompt(t)
        pid = shell_pid(box)
        t.line("echo before")
        t.wait_for("\nbefore")
        if how == "kill":
            kill(client_of(box))
            t.wait_end()
        elif how == "hangup":
            os.kill(int(client_of(box)), signal.SIGHUP)
            assert t.wait_end() == 0
    deadline = time.monotonic() + 60
    while sessions(box) != [{"name": "agent", "state": "running", "attached": False,
                             "status": None}]:
        assert time.monotonic() < deadline, sessions(box)
        time.sleep(0.1)
    assert shell_pid(box) == pid
    with terminal(box) as t:
        t.wait_for("\nbefore")
        t.line("exit 0")
        t.wait_end()


def test_sbxd_dies(box):
    with terminal(box) as t:
        at_prompt(t)
        kill(box.env.daemon_pid())
        t.line("echo still-$((1+1))")
        t.wait_for("still-2")
        detach(t)
    with terminal(box) as t:
        t.wait_for("still-2")
        t.line("exit 4")
        assert t.wait_end() == 4


def test_edge_dies_and_the_client_comes_back_by_itself(box):
    with terminal(box) as t:
        at_prompt(t)
        pid = shell_pid(box)
        for i in range(3):
            kill(box.pids()["edge"])
            t.line(f"echo survived-{i}-$$")
            t.wait_for(f"survived-{i}-{pid}", 30)
        t.line("exit 6")
        assert t.wait_end() == 6


def test_taken_over(box):
    with terminal(box) as first:
        at_prompt(first)
        with terminal(box, "attach", box.name) as second:
            second.wait_for("42-up")
            assert first.wait_end() == 0
            assert "another terminal attached" in first.screen()
            second.line("echo mine")
            second.wait_for("\nmine")
            second.line("exit 3")
            assert second.wait_end() == 3


def test_status_of_one_that_ended_alone(box):
    with terminal(box) as t:
        at_prompt(t)
        t.line("sleep 1; echo farewell; exit 77")
        detach(t)
    until(lambda: [s["state"] for s in sessions(box)] == ["ended"], 30)
    with terminal(box, "attach", box.name) as t:
        assert t.wait_end() == 77
        assert "farewell" in t.screen()
    with terminal(box, "attach", box.name) as t:
        assert t.wait_end() == 125
        assert "session 'agent' in sandbox" in t.screen() and f"sbx run {box.name}" in t.screen()


def write_while_nobody_looks(box, size):
    box.guest("rm -f /tmp/written")
    with terminal(box) as t:
        at_prompt(t)
        before = rss_of_init(box)
        t.line(
            f"sleep 1; head -c {size} /dev/zero | tr '\\0' x; echo; echo all-written; touch /tmp/written")
        detach(t)
    deadline = time.monotonic() + 300
    while box.guest("ls /tmp/written 2>/dev/null; true") == "":
        assert time.monotonic() < deadline, "the program was stopped by its output"
        time.sleep(0.5)
    assert rss_of_init(box) - before < 2048, "KiB of PID 1"
    with terminal(box) as t:
        t.wait_for("all-written")
        t.line("exit 0")
        assert t.wait_end() == 0


def test_sixteen_megabytes_while_nobody_looks(box):
    """Eight times what PID 1 may keep of it."""
    write_while_nobody_looks(box, 16 << 20)


def test_long_hundred_megabytes_while_nobody_looks(box):
    write_while_nobody_looks(box, 100_000_000)


def rss_of_init(box):
    return int(re.search(r"VmRSS:\s+(\d+)", box.guest("cat /proc/1/status"))[1])


def test_other_keys_and_none(box):
    with terminal(box, "run", box.name, "--detach-keys", "ctrl-p,ctrl-q") as t:
        at_prompt(t)
        t.key("C-\\")
        t.line("echo not-left")
        t.wait_for("\nnot-left")
        detach(t, ("C-p", "C-q"))
    box.env.sbx("settings", "set", "session.detach-keys", "none")
    try:
        with terminal(box) as t:
            t.wait_for("42-up")
            t.key("C-\\")
            t.line("echo here-$((2+3))")
            t.wait_for("here-5")
            t.line("exit 0")
            assert t.wait_end() == 0
    finally:
        box.env.sbx("settings", "set", "session.detach-keys", "ctrl-\\")
    done = box.env.sbx("settings", "set", "session.detach-keys", "ctrl-alt-del", check=False)
    assert done.returncode != 0 and "ctrl-alt-del" in done.stderr


def test_scripts_and_commands_are_plain(box):
    """No session is created without a terminal, or for a command of the user."""
    assert box.env.sbx("run", box.name, input="echo $((40+2)); exit 3\n",
                       check=False).stdout.endswith("42\n")
    with terminal(box, "run", box.name, "--", "sh", "-c", "echo plain; sleep 1; exit 9") as t:
        t.wait_for("plain")
        assert sessions(box) == []
        assert t.wait_end() == 9


def test_attach_starts_nothing(env):
    box = env.create("asleep", env.make_folder("asleep"))
    box.stop()
    with terminal(box, "attach", box.name) as t:
        assert t.wait_end() == 125
        assert "is stopped" in t.screen() and f"sbx run {box.name}" in t.screen()
    assert box.info()["status"] == "stopped"
    done = env.sbx("attach", box.name, check=False)
    assert done.returncode == 125 and "terminal" in done.stderr
    box.rm()


def test_many_times(box):
    """Attach and detach again and again: no descriptor and no memory stays."""
    with terminal(box) as t:
        at_prompt(t)
        detach(t)
    count = "ls /proc/1/fd | wc -l"
    fds, rss = int(box.guest(count)), rss_of_init(box)
    for _ in range(15):
        with terminal(box) as t:
            t.wait_for("42-up")
            detach(t)
    until(lambda: int(box.guest(count)) == fds)
    assert rss_of_init(box) - rss < 1024
    assert [s["name"] for s in sessions(box)] == ["agent"]


def test_rm_keeps_what_was_left(env):
    folder = env.make_folder("once")
    with Terminal(env, "sbx", "run", "shell", folder, "--name", "once", "--rm") as t:
        at_prompt(t)
        detach(t)
        assert "was not removed" in t.screen() and "sbx rm once" in t.screen()
    box = Sandbox(env, "once")
    with terminal(box, "run", "once", "--rm") as t:
        t.wait_for("42-up", 30)
        t.line("exit 0")
        assert t.wait_end() == 0
    assert "once" not in [s["name"] for s in env.ls()]
