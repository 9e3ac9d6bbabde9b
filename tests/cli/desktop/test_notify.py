# SPDX-License-Identifier: Apache-2.0
"""Desktop notifications for requests that wait for approval: the real sbxd and sbx-notify on a
private session bus with a notification service, and a simulated keeper."""
import json
import os
import pathlib
import queue
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from conftest import PATIENCE
from test_approve import PUSH, READ, Held, digest

NOTIFY = os.environ["SBX_TEST_NOTIFY"]
DESKTOP = os.environ["SBX_TEST_DESKTOP"]
SECONDS = 60 * PATIENCE
HERE = pathlib.Path(__file__).parent


def wait(condition, what="the condition"):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


class Peer:
    """A program of src/notify/test/notify_desktop.c."""

    def __init__(self, env, *args):
        self.p = subprocess.Popen([DESKTOP, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, env=env)
        self.calls = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.name = self.get("ready")["name"]

    def read(self):
        for line in self.p.stdout:
            self.calls.put(json.loads(line))

    def get(self, call):
        got = self.calls.get(timeout=SECONDS)
        assert got["call"] == call, got
        return got

    def tell(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n")
        self.p.stdin.flush()
        self.get("done")

    def is_quiet(self):
        return self.calls.empty()

    def close(self):
        self.p.stdin.close()
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()


class Desktop(Held):
    def __init__(self, inst):
        super().__init__(inst)
        (inst.libexec / "sbx-notify").symlink_to(NOTIFY)
        self.peers, self.bus = [], None

    def start_bus(self, path=None):
        path = path or self.inst.root / "run/bus"
        self.env = {**self.inst.env, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}"}
        self.bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--nopidfile",
                                     f"--address=unix:path={path}"], env=self.inst.env,
                                    stderr=subprocess.DEVNULL)
        wait(lambda: listens(path), "the bus")

    def service(self, *args):
        if not self.bus:
            self.start_bus()
        self.peers.append(Peer(self.env, *(args or ("service", "actions", "body-markup"))))
        return self.peers[-1]

    def sbxd(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.inst.root / "run/sbx/sbxd.sock"))
            return struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def notifiers(self):
        """The processes sbx-notify of this installation."""
        def parent(pid):
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        found, sbxd = [], str(self.sbxd())
        for p in pathlib.Path("/proc").iterdir():
            try:
                if (p / "comm").read_text() == "sbx-notify\n" and parent(parent(p.name)) == sbxd:
                    if parent(p.name) != "1" and "State:\tZ" not in (p / "status").read_text():
                        found.append(int(p.name))
            except (OSError, IndexError):
                pass
        return found

    def log(self, name="notify.log"):
        path = self.inst.root / "state/sbx" / name
        return path.read_text().splitlines() if path.exists() else []

    def close(self):
        for peer in self.peers:
            peer.close()
        if self.bus:
            self.bus.kill()
            self.bus.wait()


@pytest.fixture
def desktop(inst):
    d = Desktop(inst)
    yield d
    d.close()


def test_a_request_is_shown_and_can_be_refused_but_not_approved(desktop, inst):
    service = desktop.service()
    desktop.create()
    shown = service.get("Notify")
    assert shown["app"] == "sbx" and shown["title"] == "sbx: demo waits for approval"
    assert shown["body"] == ("| network:connect api.example.com 443\nand 1 more\n"
                             "To decide, type: sbx approve K7QD")
    # One action, which refuses. A guest causes it: ordinary urgency.
    assert shown["actions"] == ["refuse", "Refuse"] and shown["urgency"] == 1
    for key in ("default", "approve", "once", "Refuse"):
        service.tell("action", shown["id"], key)
    service.tell("action", shown["id"], "refuse")
    assert service.get("CloseNotification")["id"] == shown["id"]
    assert desktop.answers() == [["K7QD", 0, os.getuid(), "desktop", "", 0]]
    assert desktop.listed()[0]["state"] == "refused"
    assert service.is_quiet()


def test_an_answer_elsewhere_closes_it(desktop, inst):
    service = desktop.service()
    desktop.create("demo", [PUSH, READ])
    first, second = service.get("Notify"), service.get("Notify")
    assert second["body"] == "| http:get b.example /\nTo decide, type: sbx approve M2XB"
    inst.sbx("approve", "M2XB", "--once", "--digest", digest(READ), check=0)
    assert service.get("CloseNotification")["id"] == second["id"]
    # Late: the request was answered.
    service.tell("action", second["id"], "refuse")
    inst.sbx("refuse", "K7QD", "--reason", "vanish", check=0)
    assert service.get("CloseNotification")["id"] == first["id"]
    assert [a[1] for a in desktop.answers()] == [1, 0]
    # Nothing to show: the process exits, and the next request starts another.
    wait(lambda: desktop.notifiers() == [], "its exit")
    desktop.create("two", [PUSH])
    assert service.get("Notify")["title"] == "sbx: two waits for approval"
    inst.sbx("stop", "two", check=0)
    service.get("CloseNotification")
    assert desktop.log() == []


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_next_sbxd_shows_it_again(desktop, inst, how):
    service = desktop.service()
    desktop.create()
    shown = service.get("Notify")
    if how == "stop":
        inst.sbx("daemon", "stop", check=0)
    else:
        os.kill(desktop.sbxd(), signal.SIGKILL)
    assert service.get("CloseNotification")["id"] == shown["id"]
    inst.sbx("ls", check=0)
    again = service.get("Notify")
    assert again["id"] != shown["id"] and again["body"] == shown["body"]
    service.tell("action", shown["id"], "refuse")  # the earlier one
    service.tell("action", again["id"], "refuse")
    service.get("CloseNotification")
    assert len(desktop.answers()) == 1


def test_the_bus_of_the_environment(desktop, inst):
    desktop.start_bus(inst.root / "other")
    inst.sbx("daemon", "stop", check=0)
    inst.env["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={inst.root}/other"
    service = desktop.service()
    desktop.create()
    service.get("Notify")


def test_text_of_a_guest_is_text(desktop, inst):
    evil = {**PUSH, "effects": "http:GET a.test /<a href=\"x\">&amp;</a>\u202e\x1b[2J" + "x" * 600}
    # A service that reports neither markup nor actions: escaped all the same, since dunst reads
    # markup that it does not report.
    service = desktop.service("service")
    desktop.create("demo", [evil])
    shown = service.get("Notify")
    assert shown["body"].startswith(
        "| http:GET a.test /&lt;a href=\"x\"&gt;&amp;amp;&lt;/a&gt;???")
    assert "\x1b" not in shown["body"] and shown["actions"] == []
    assert " more characters)\nTo decide" in shown["body"]


def test_it_can_be_disabled(desktop, inst):
    service = desktop.service()
    inst.sbx("settings", "set", "ask.notify", "false", check=0)
    desktop.create()
    assert desktop.notifiers() == [] and service.is_quiet()
    inst.sbx("settings", "set", "ask.notify", "true", check=0)
    desktop.create("two", [READ])
    assert {service.get("Notify")["title"][5:8] for _ in "12"} == {"dem", "two"}


def test_without_a_session_bus_nothing_is_started(desktop, inst):
    desktop.create("demo", [PUSH, READ])
    inst.sbx("refuse", "K7QD", check=0)
    assert desktop.log() == []
    lines = [line for line in desktop.log("sbxd.log") if "notif" in line]
    assert len(lines) == 1 and "the host has no session bus" in lines[0], lines


@pytest.mark.parametrize("mode", ["nothing", "failing", "refused"])
def test_a_desktop_that_does_not_work_is_logged_once(desktop, inst, mode):
    if mode == "failing":
        desktop.service("failing", "actions")
    elif mode == "nothing":
        desktop.start_bus()
    else:
        (inst.root / "run/bus").touch()
    desktop.create("demo", [PUSH, READ])
    wait(lambda: desktop.log() and desktop.notifiers() == [], "its exit")
    # Not started again: another request begins to wait at once.
    desktop.create("two", [PUSH])
    assert desktop.notifiers() == []
    lines = desktop.log()
    assert len(lines) == 1 and {
        "nothing": "no notification service", "failing": "cannot display a notification: "
        "the ?[31mdesktop?is broken", "refused": "cannot connect to the session bus"}[mode] in \
        lines[0].replace(" ", " "), lines
    assert len([x for x in desktop.log("sbxd.log") if "no desktop notifications" in x]) == 1
    inst.sbx("approve", "demo/K7QD", "--once", "--digest", digest(PUSH), check=0)


def test_other_programs_on_the_bus_can_refuse_nothing(desktop, inst):
    service = desktop.service()
    stranger = desktop.service("stranger")
    desktop.create()
    shown = service.get("Notify")
    stranger.tell("action", shown["id"], "refuse")
    stranger.tell("tell", shown["sender"], shown["id"], "refuse")
    service.tell("tell", shown["sender"], shown["id"] + 1, "refuse")
    service.tell("tell", shown["sender"], 0, "refuse")
    service.tell("huge", shown["sender"], 1 << 20)
    # Signals are in order: when this one was handled, so were those.
    service.tell("action", shown["id"], "refuse")
    service.get("CloseNotification")
    assert len(desktop.answers()) == 1
    desktop.create("two", [READ])
    shown = service.get("Notify")
    stranger.tell("tell", shown["sender"], shown["id"], "refuse")
    stranger.tell("flood", shown["sender"], 3000)
    wait(lambda: desktop.notifiers() == [], "its exit")
    assert [line.partition(": ")[2] for line in desktop.log()] == \
        ["session bus: too many messages"], desktop.log()
    assert desktop.listed("two")[0]["state"] == "open" and desktop.answers("two") == []


def test_a_message_of_8_mib_ends_the_notifier_or_nothing(desktop, inst):
    service = desktop.service()
    desktop.create()
    shown = service.get("Notify")
    service.tell("huge", shown["sender"], 8 << 20)
    service.tell("action", shown["id"], "refuse")
    wait(lambda: desktop.answers() or desktop.notifiers() == [], "an end")
    inst.sbx("refuse", "K7QD")
    assert [a[1] for a in desktop.answers()][0] == 0


def test_kill_9_of_the_notifier(desktop, inst):
    service = desktop.service()
    desktop.create()
    service.get("Notify")
    sbxd, pids = desktop.sbxd(), desktop.notifiers()
    assert len(pids) == 1
    os.kill(pids[0], signal.SIGKILL)
    wait(lambda: desktop.notifiers() == [], "its exit")
    desktop.create("two", [READ])  # within a minute: not started again
    assert desktop.notifiers() == [] and service.is_quiet() and desktop.sbxd() == sbxd
    assert [h["state"] for h in desktop.listed()] == ["open", "open"]
    inst.sbx("approve", "K7QD", "--once", "--digest", digest(PUSH), check=0)
    assert "(signal 9)" in "\n".join(desktop.log("sbxd.log"))


HOSTILE = '''#!/usr/bin/python3
import socket, struct, time
s = socket.socket(fileno=3)
s.setblocking(True)
def say(kind, ident=0, body=b""):
    s.send(struct.pack("<HHII", kind, 0, ident, len(body)) + body)
def hello(build=b"%s"):
    say(1, 0, struct.pack("<H", len(build)) + build)
def shown():
    data = s.recv(2000)
    assert data[0] == 2
    return struct.unpack("<I", data[4:8])[0]
try:
    %s
except OSError:
    pass
time.sleep(600)
'''


BREACHES = [
    "say(4, 1)",  # before HELLO
    "hello(b'other')",
    "hello(); hello()",
    "hello(); say(4, shown() + 1)",  # was never sent
    "hello(); shown(); say(4, 0)",
    "hello(); say(4, shown(), b'\1')",  # "yes"
    "hello(); n = shown(); say(5, n)",
    "hello(); n = shown(); say(2, n, b'')",
    "hello(); n = shown(); say(3, n)",
    "hello(); n = shown(); say(24, n, b'K7QD')",  # ANSWER of the channel to the keeper
    "hello(); s.send(b'x' * 20000)",
    "hello(); shown(); s.shutdown(2)",
]
# Each answers one request of its own.
REFUSALS = ["hello(); n = shown(); say(4, n); say(4, n)",
            "hello(); n = shown(); [say(4, n) for _ in range(100000)]"]


def test_a_compromised_notifier_can_at_most_refuse(desktop, inst):
    program = inst.libexec / "sbx-notify"
    program.unlink()
    version = inst.libexec.joinpath("version").read_text()
    desktop.start_bus()
    inst.sbx("daemon", "stop", check=0)

    def attack(what):
        program.write_text(HOSTILE % (version, what))
        program.chmod(0o755)
        before = len(desktop.log("sbxd.log"))
        inst.sbx("ls", check=0)  # the next sbxd starts the program for the requests that wait
        wait(lambda: any("no desktop notifications: sbx-notify exited (signal 9)" in line
                         for line in desktop.log("sbxd.log")[before:]), what)
        assert any("killing sbx-notify" in line for line in desktop.log("sbxd.log")[before:])
        states = [h["state"] for h in desktop.listed()]
        inst.sbx("daemon", "stop", check=0)
        return states

    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    desktop.create()
    inst.sbx("daemon", "stop", check=0)
    for what in BREACHES:
        assert attack(what) == ["open"], what
    assert attack(REFUSALS[0]) == ["refused"]
    assert desktop.answers() == [["K7QD", 0, os.getuid(), "desktop", "", 0]]
    program.write_text("#!/bin/sh\n")
    desktop.create("two", [READ])
    inst.sbx("daemon", "stop", check=0)
    assert sorted(attack(REFUSALS[1])) == ["refused", "refused"]
    assert len(desktop.answers("two")) == 1
