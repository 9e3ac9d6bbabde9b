# SPDX-License-Identifier: Apache-2.0
"""A create with rules and a start is one call: it is answered, or nothing is left of it, whatever
dies meanwhile."""
import json
import os
import signal
import socket
import time

import pytest

from test_api import PATIENCE, UnixConnection, d, is_alive, wait_for  # noqa: F401
from test_policy import file_text, ok, policy, preset, records

RULES = [{"effect": "deny", "resources": "bad.example", "origin": "create"},
         {"effect": "allow", "resources": ["a.example:443", "b.example"], "comment": "why"},
         {"effect": "allow", "resources": "c.example", "origin": "agent:toy"}]


def body(mode=None, **more):
    return {"name": "demo", "rules": RULES, "start": True,
            "ports": [{"host_port": 18080, "sandbox_port": 80}],
            "env": {"MODE": mode} if mode else {}, **more}


def request(o):
    text = json.dumps(o)
    return (f"POST /v1/sandboxes HTTP/1.1\r\nHost: sbx\r\nContent-Length: {len(text)}\r\n\r\n"
            f"{text}").encode()


def connect(d, data=b""):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20 * PATIENCE)
    s.connect(d.sock)
    s.sendall(data)
    return s


def begin(d, mode):
    """A create that has come as far as the start."""
    s = connect(d, request(body(mode)))
    wait_for(lambda: [o["status"] for o in d.list()] == ["starting"])
    return s


def names(path):
    return sorted(p.name for p in path.iterdir()) if path.exists() else []


def left(d):
    """All that a create makes."""
    return {"sandboxes": [s["name"] for s in d.list()],
            "rules": [r["text"] for r in policy(d)["rules"] if r["sandbox"]],
            "files": names(d.state / "sandboxes") + names(d.state / "specs"),
            "runtime": names(d.runtime / "s"),
            "keepers": [pid for pid in d.left() if pid != d.proc.pid and is_keeper(pid)]}


def is_keeper(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return b"--id" in f.read().split(b"\0") and is_alive(pid)
    except OSError:
        return False


NOTHING = {"sandboxes": [], "rules": [], "files": [], "runtime": [], "keepers": []}


def expect_nothing(d, seconds=8):
    until = time.monotonic() + seconds * PATIENCE
    while left(d) != NOTHING:
        assert time.monotonic() < until, left(d)
        time.sleep(0.02)


@pytest.fixture
def ready(d):
    preset(d)
    return d


# -- what it does ---------------------------------------------------------------------------------

def test_one_call_gives_a_running_sandbox_with_its_rules(ready):
    before = len(records(ready))
    o = ok(ready.call("POST", "/v1/sandboxes", body()), 201)
    assert o["status"] == "running" and o["ports"][0]["state"] == "open"
    assert [r["existed"] for r in o["rules"]] == [False] * 3
    assert [(r["rule"]["effect"], r["rule"]["origin"]) for r in o["rules"]] == [
        ("deny", "create"), ("allow", "local"), ("allow", "agent:toy")]
    assert {r["rule"]["sandbox"] for r in o["rules"]} == {"demo"}
    assert o["rules"][0]["overrides"] == [] and o["rules"][1]["no_effect"] is False
    in_file = [r for r in policy(ready)["rules"] if r["sandbox"] == "demo"]
    assert [r["rule"] for r in o["rules"]] == in_file
    assert [r["action"] for r in records(ready)[before:]] == ["publish"] + ["rule-add"] * 3
    assert not list((ready.state / "specs").glob("*.creating"))
    # it stays, also for the next sbxd
    ready.kill()
    ready.start()
    assert ready.wait_status("demo", "running")["keeper_pid"] == o["keeper_pid"]
    assert "rules" not in ready.get("demo")


def test_rules_without_a_start(ready):
    o = ok(ready.call("POST", "/v1/sandboxes", {"name": "demo", "rules": RULES[:1] * 2}), 201)
    assert o["status"] == "stopped" and [r["existed"] for r in o["rules"]] == [False, True]
    assert len([r for r in policy(ready)["rules"] if r["sandbox"] == "demo"]) == 1


def test_a_start_without_rules_needs_no_policy(d):
    o = ok(d.call("POST", "/v1/sandboxes", {"name": "demo", "start": True, "cold": True}), 201)
    assert o["status"] == "running" and "rules" not in o and o["cold_why"]
    assert not ok(d.call("POST", "/v1/sandboxes", {"name": "warm", "start": True}), 201)["cold_why"]
    assert ok(d.call("POST", "/v1/sandboxes", {"name": "empty", "rules": []}), 201)["rules"] == []


def test_a_body_without_them_is_as_before(d):
    o = ok(d.call("POST", "/v1/sandboxes", {"name": "demo", "start": False}), 201)
    assert o["status"] == "stopped" and "rules" not in o
    s = connect(d, request({"name": "other"}))
    s.close()
    time.sleep(0.2)
    assert all(s["status"] == "stopped" for s in d.list())


# -- all of it or nothing -------------------------------------------------------------------------

BAD_RULES = [{"effect": "allow"}, {"effect": "maybe", "resources": "a.example"},
             {"effect": "allow", "resources": "*"}, {"effect": "allow", "resources": 7},
             {"effect": "allow", "resources": "a.example", "sandbox": "demo"},
             {"effect": "allow", "resources": "a.example", "unknown": 1},
             {"effect": "allow", "resources": "a.example", "origin": "preset:balanced"},
             {"effect": "allow", "resources": "a.example", "for_ms": 0},
             {"effect": "deny", "resources": "a.example", "origin": "agent:toy"},
             {"effect": "allow", "resources": "host.docker.internal"}, "allow a.example", None]


@pytest.mark.parametrize("more", [{"rules": [RULES[0], bad]} for bad in BAD_RULES] + [
    {"rules": RULES[0]}, {"rules": RULES[:1] * 65}, {"rules": None}, {"start": 1},
    {"start": {"cold": True}}, {"cold": "yes"}, {"start": False, "cold": True}, {"begin": True},
    {"cpus": 0}, {"name": "-"}, {"workspaces": [{"host": "/no/such/directory"}]}])
def test_a_body_with_one_mistake_creates_nothing(ready, more):
    text, log = file_text(ready), len(records(ready, "lifecycle"))
    status, o = ready.call("POST", "/v1/sandboxes", {**body(), **more})
    assert status == 400, o
    assert left(ready) == NOTHING and file_text(ready) == text
    assert len(records(ready, "lifecycle")) == log


def test_without_a_policy_there_is_no_sandbox_with_rules(d):
    status, o = d.call("POST", "/v1/sandboxes", body())
    assert status == 409 and o["error"]["code"] == "no-policy"
    assert left(d) == NOTHING


def test_what_is_taken_creates_nothing(ready):
    ok(ready.call("POST", "/v1/sandboxes", body(id="0123456789ab")), 201)
    before = left(ready)
    for more in ({}, {"id": "0123456789ab", "name": "other"}, {"id": "0123456789ab"}):
        assert ready.call("POST", "/v1/sandboxes", body(**more))[0] == 409
    assert ready.call("POST", "/v1/sandboxes", body(name="other"))[0] == 409  # its port
    assert left(ready) == before


def test_rules_that_cannot_be_written_leave_no_sandbox(ready):
    """The state directory takes no new file."""
    (ready.state / "specs").mkdir(mode=0o700, exist_ok=True)
    os.chmod(ready.state, 0o500)
    try:
        status, o = ready.call("POST", "/v1/sandboxes", body())
    finally:
        os.chmod(ready.state, 0o700)
    assert status == 500, o
    expect_nothing(ready)


def test_a_start_that_fails_leaves_its_log_only(ready):
    status, o = ready.call("POST", "/v1/sandboxes", body("fail"))
    assert status == 500 and o["error"]["code"] == "start-failed"
    assert o["error"]["message"] == "sandbox 'demo' did not start: the kernel did not start"
    assert left(ready) == NOTHING, "the answer comes when everything is removed"
    assert (ready.state / "failed-create.log").exists()


def test_a_keeper_that_never_speaks_is_given_up(ready):
    status, o = ready.call("POST", "/v1/sandboxes", body("silent"), 40)
    assert status == 500 and "has not responded" in o["error"]["message"], o
    assert left(ready) == NOTHING


def test_one_that_is_removed_while_it_starts_is_no_success(ready):
    s = begin(ready, "slow")
    assert ready.call("DELETE", "/v1/sandboxes/demo")[0] == 204
    assert b" 404 " in s.recv(65536).split(b"\r\n")[0]
    s.close()
    expect_nothing(ready)


# -- a client that dies ---------------------------------------------------------------------------

def test_a_client_that_dies_at_any_point_leaves_nothing(ready):
    """With part of its request, and with all of it after each of many delays: the keeper of MODE
    slow needs a second."""
    whole = request(body("slow"))
    cuts = [0, 1, 10, whole.index(b"\r\n\r\n") + 2, whole.index(b"\r\n\r\n") + 4, len(whole) - 1]
    points = [(n, 0.0) for n in cuts]
    points += [(len(whole), t / 1000) for t in (0, 0, 0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144,
                                               233, 377, 610, 900)]
    created = len(records(ready, "lifecycle"))
    for number, (n, delay) in enumerate(points):
        s = connect(ready, whole[:n])
        time.sleep(delay)
        if number % 2:
            s.shutdown(socket.SHUT_WR)
            assert s.recv(1) == b"", "it was answered"
        s.close()
        expect_nothing(ready)
    # most of them had come far enough
    assert len(records(ready, "lifecycle")) - created >= 20
    assert not (ready.state / "failed-create.log").exists(), "no client reads it"
    ok(ready.call("POST", "/v1/sandboxes", body()), 201)


def test_a_client_that_dies_when_the_answer_is_due_leaves_nothing(ready):
    """sbxd learns immediately that the sandbox runs and that no client waits for it."""
    for _ in range(3):
        s = begin(ready, "slow")
        os.kill(ready.proc.pid, signal.SIGSTOP)
        try:
            time.sleep(1.5)
            s.close()
        finally:
            os.kill(ready.proc.pid, signal.SIGCONT)
        expect_nothing(ready)


def test_a_sandbox_whose_answer_was_sent_stays(ready):
    s = begin(ready, "slow")
    ready.wait_status("demo", "running")
    time.sleep(0.3)
    s.close()
    time.sleep(0.3)
    assert ready.get("demo")["status"] == "running"
    assert len([r for r in policy(ready)["rules"] if r["sandbox"] == "demo"]) == 3


def test_the_next_request_on_the_connection_is_not_bound_to_it(ready):
    c = UnixConnection(ready.sock, 20)
    c.request("POST", "/v1/sandboxes", json.dumps(body()))
    assert c.getresponse().read()
    c.request("GET", "/v1/sandboxes/demo?wait=1")
    c.close()
    time.sleep(0.3)
    assert ready.get("demo")["status"] == "running"


# -- an sbxd that dies ----------------------------------------------------------------------------

def test_an_sbxd_that_dies_before_it_answered_leaves_nothing(ready):
    for delay in (0.0, 0.002, 0.01, 0.03, 0.1, 0.4):
        s = connect(ready, request(body("slow")))
        time.sleep(delay)
        ready.kill()
        s.close()
        ready.start()
        expect_nothing(ready, 15)
    ok(ready.call("POST", "/v1/sandboxes", body()), 201)


def test_an_sbxd_that_is_told_to_exit_answers_or_leaves_nothing(ready):
    s = begin(ready, "silent")
    assert ready.call("POST", "/v1/shutdown")[0] == 204
    assert ready.proc.wait(10 * PATIENCE) == 0
    assert s.recv(1) == b""
    s.close()
    ready.start()
    expect_nothing(ready, 15)
