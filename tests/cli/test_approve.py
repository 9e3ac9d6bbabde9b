# SPDX-License-Identifier: Apache-2.0
"""sbx approve, sbx refuse and sbx open, and their API, with the real sbxd and a simulated keeper
that has requests and links which wait for a person."""
import concurrent.futures
import hashlib
import http.client
import http.server
import json
import os
import shlex
import socket
import threading
import time

import pytest

from conftest import SBX, on_terminal
from term import Terminal

PUSH = {"id": "K7QD",
        "effects": "network:connect api.example.com 443\nhttp:delete api.example.com /x\n",
        "rule": "ask http api.example.com/**",
        "preview": "title: \x1b[2Jfree\u202emoney\nsecond line"}
READ = {"id": "M2XB", "effects": "http:get b.example /\n", "rule": "ask http b.example/**"}


def digest(hold):
    return hashlib.sha256(hold["effects"].encode()).hexdigest()


class Held:
    def __init__(self, inst):
        self.inst = inst

    def create(self, name="demo", holds=(PUSH,)):
        self.inst.create(name, "-e", "HOLDS=" + json.dumps(list(holds)))
        self.wait(lambda: len(self.listed(name)) == len(holds))

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def listed(self, name=None):
        out = json.loads(self.inst.sbx("approve", "--json", check=0).stdout)["holds"]
        return [h for h in out if name in (None, h["sandbox"])]

    def answers(self, name="demo"):
        ident = json.loads(self.inst.sbx("inspect", name, "--json", check=0).stdout)["id"]
        path = self.inst.root / "state/sbx/sandboxes" / ident / "answers"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def call(self, method, path, body=None):
        c = http.client.HTTPConnection("sbxd")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(str(self.inst.root / "run/sbx/sbxd.sock"))
        c.request(method, path, json.dumps(body) if body is not None else None)
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, json.loads(data) if data else None


@pytest.fixture
def held(inst):
    return Held(inst)


def test_nothing_waits(inst):
    p = inst.sbx("approve", check=0)
    assert p.stdout == "" and "No requests wait for approval" in p.stderr
    assert json.loads(inst.sbx("approve", "--json", check=0).stdout) == {"holds": []}
    p = inst.sbx("approve", "K7QD", check=1)
    assert "no such request waits for approval" in p.stderr and "sbx approve" in p.stderr


def test_the_list_and_one_request(held, inst):
    held.create("demo", [PUSH, READ])
    lines = inst.sbx("approve", check=0).stdout.splitlines()
    assert lines[0].split() == ["ID", "SANDBOX", "STATE", "LEFT", "REQUEST"]
    assert lines[1].split()[:3] == ["K7QD", "demo", "open"] and lines[1].endswith(
        "network:connect api.example.com 443 and 1 more")
    assert lines[2].endswith("http:get b.example /")
    assert inst.sbx("approve", "-q", check=0).stdout == "K7QD\nM2XB\n"
    # Not on a terminal: nothing is asked.
    out = inst.sbx("approve", "k7qd", check=0).stdout
    assert out == inst.sbx("approve", "K7QD", "--show", check=0).stdout
    assert out.startswith("Request K7QD of sandbox demo: open, 9 min left\n")
    assert "    http:delete api.example.com /x\n" in out
    assert "| title: <1B>[2Jfree<U+202E>money\n| second line\n" in out
    assert "rule      ask http api.example.com/**\n" in out
    assert f"digest    {digest(PUSH)}\n" in out
    hold = json.loads(inst.sbx("approve", "K7QD", "--json", check=0).stdout)
    assert hold["digest"] == digest(PUSH) and hold["effects"] == PUSH["effects"].split("\n")[:2]
    assert hold["opened_at"].endswith("Z") and hold["expires_at"].endswith("Z")


def test_an_answer_has_the_digest_that_was_read(held, inst):
    held.create()
    inst.sbx("approve", "K7QD", "--once", "--digest", "0" * 64, check=1)
    status, o = held.call("POST", "/v1/holds/K7QD", {"answer": "once", "digest": "0" * 64})
    assert status == 409 and o["error"]["code"] == "stale"
    assert held.listed()[0]["state"] == "open"
    p = inst.sbx("approve", "K7QD", "--once", "--digest", digest(PUSH), check=0)
    assert "Approved request K7QD of sandbox 'demo'" in p.stderr
    assert held.listed()[0]["state"] == "approved"
    assert inst.sbx("approve", "K7QD", "--once", "--digest", digest(PUSH)).returncode == 1
    assert inst.sbx("refuse", "K7QD").returncode == 1
    assert [a[1] for a in held.answers()] == [1, 1, 1, 1, 0]
    assert held.answers()[2] == ["K7QD", 1, os.getuid(), "api", "", 0]


def test_a_withdrawn_request_cannot_be_approved(held, inst):
    held.create("demo", [{**PUSH, "state": 4}, READ])
    assert inst.sbx("approve", "-q", check=0).stdout == "M2XB\n"
    assert "K7QD" not in inst.sbx("approve", check=0).stdout
    assert [h["state"] for h in held.listed()] == ["withdrawn", "open"]
    for argv in ((), ("--once", "--digest", digest(PUSH)), ("--always", "--digest", digest(PUSH))):
        p = inst.sbx("approve", "K7QD", *argv, check=1)
        assert "was withdrawn: the client left before an answer" in p.stderr, p.stderr
        assert "cannot be approved" in p.stderr
    assert inst.sbx("approve", "K7QD", "--show", check=0).stdout.startswith(
        "Request K7QD of sandbox demo: withdrawn, ")
    assert held.answers() == []
    status, o = held.call("POST", "/v1/holds/K7QD", {"answer": "once", "digest": digest(PUSH)})
    assert status == 409 and o["error"]["code"] == "withdrawn"


def typed(inst, out, word):
    """Types the command that was printed."""
    line = next(text for text in out.splitlines() if text.split()[:1] == [word])
    words = shlex.split(line)[1:]
    assert words[0] == "sbx"
    return inst.sbx(*words[1:], check=0)


def test_show_prints_the_commands_that_answer(held, inst):
    held.create("demo", [PUSH, READ])
    held.create("two", [PUSH])
    out = inst.sbx("approve", "demo/K7QD", "--show", check=0).stdout
    assert "Approved request K7QD of sandbox 'demo'" in typed(inst, out, "approve").stderr
    out = inst.sbx("approve", "M2XB", "--show", check=0).stdout
    typed(inst, out, "refuse")
    assert [h["state"] for h in held.listed("demo")] == ["approved", "refused"]
    assert held.listed("two")[0]["state"] == "open"
    assert [(a[0], a[1]) for a in held.answers()] == [("K7QD", 1), ("M2XB", 0)]
    # There is nothing to type for a request that was answered.
    assert "--once" not in inst.sbx("approve", "demo/K7QD", "--show", check=0).stdout


def test_a_refusal_has_a_reason(held, inst):
    held.create()
    inst.sbx("refuse", "K7QD", "--reason", "use a branch", check=0)
    assert held.answers()[0][1] == 0 and held.answers()[0][4] == "use a branch"
    assert held.listed()[0]["state"] == "refused"
    p = inst.sbx("refuse", "K7QD", "--reason", "\x1b[2J", check=1)
    assert "printable" in p.stderr


def test_always_has_no_time_limit_and_for_is_for_a_time(held, inst):
    held.create("demo", [PUSH, {**READ, "id": "BBBB"}])
    rules = held.call("GET", "/v1/policy")[1]["rules"]
    p = inst.sbx("approve", "K7QD", "--always", "--digest", digest(PUSH), check=0)
    assert "until the sandbox stops or the policy changes" in p.stderr
    p = inst.sbx("approve", "BBBB", "--for", "30m", "--digest", digest(READ), check=0)
    assert "until" not in p.stderr
    assert [[a[1], a[5]] for a in held.answers()] == [[3, 0], [2, 1800]]
    assert [h["expires_at"] is None for h in held.listed()] == [True, False]
    lines = inst.sbx("approve", check=0).stdout.splitlines()
    assert "approved  no time limit  network:" in lines[1], lines
    # No rule is added.
    assert held.call("GET", "/v1/policy")[1]["rules"] == rules
    held.create("two", [PUSH])
    status, o = held.call("POST", "/v1/holds/K7QD?sandbox=two",
                          {"answer": "always", "digest": digest(PUSH)})
    assert status == 200 and o == {"id": "K7QD", "answer": "always"}


def test_the_prompt_sends_what_it_displayed(held, inst):
    held.create("demo", [PUSH, READ])
    out, status = on_terminal(inst, ["approve", "K7QD"], b"q\n")
    assert status == 0 and "Approve?" in out and "still waits" in out and not held.answers()
    assert "<U+202E>" in out and "\x1b[2J" not in out
    out, status = on_terminal(inst, ["approve", "K7QD"], b"o\n")
    assert status == 0 and "Approved request K7QD" in out
    assert held.answers()[0][1] == 1 and held.answers()[0][3].startswith("/dev/pts/")
    out, status = on_terminal(inst, ["approve", "M2XB"], b"n\n")
    assert status == 0 and "Refused request M2XB" in out
    out, status = on_terminal(inst, ["approve", "M2XB"], b"")
    assert status == 0 and "refused" in out and "Approve?" not in out


def test_the_prompt_and_the_full_screen_offer_always(held, inst):
    held.create("demo", [READ, PUSH])
    out, status = on_terminal(inst, ["approve", "M2XB"], b"a\n")
    assert status == 0 and "[a]lways" in out and "until the sandbox stops" in out
    with Terminal(inst, SBX, "approve", "--watch") as t:
        t.wait_for("Request M2XB of sandbox demo: approved, no time limit")
        t.type("j")
        t.wait_for("Request K7QD of sandbox demo: open")
        t.type("a")
        t.wait_for("Approve K7QD and all equal requests until the next stop or policy change?")
        t.type("y")
        t.wait_for("K7QD approved")
        t.type("q")
        assert t.wait_end() == 0
    assert [a[:2] for a in held.answers()] == [["M2XB", 3], ["K7QD", 3]]


def test_of_two_answers_at_the_same_time_one_counts(held, inst):
    held.create("demo", [{**READ, "id": f"AA{i:02}"} for i in range(20)])
    for i in range(20):
        body = {"answer": "once", "digest": digest(READ)}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            bodies = body, {**body, "answer": "no"}, body, {**body, "digest": "0" * 64}
            got = list(pool.map(lambda b: held.call("POST", f"/v1/holds/AA{i:02}", b)[0], bodies))
        assert got.count(200) == 1 and got.count(409) == 3, got


def test_an_id_of_two_sandboxes_needs_the_name(held, inst):
    held.create("one", [PUSH])
    held.create("two", [PUSH])
    p = inst.sbx("approve", "K7QD", check=1)
    assert "SANDBOX/ID" in p.stderr
    assert "sandbox two" in inst.sbx("approve", "two/K7QD", check=0).stdout
    inst.sbx("refuse", "two/K7QD", check=0)
    assert held.answers("two") and not held.answers("one")
    assert "three" in inst.sbx("approve", "three/K7QD", check=1).stderr


def test_the_next_sbxd_has_the_requests(held, inst):
    held.create()
    inst.sbx("daemon", "stop", check=0)
    held.wait(lambda: len(held.listed()) == 1)
    inst.sbx("approve", "K7QD", "--once", "--digest", digest(PUSH), check=0)
    inst.sbx("stop", "demo", check=0)
    assert held.listed() == []


def test_a_request_that_is_gone_is_not_listed(held, inst):
    held.create()
    inst.sbx("refuse", "K7QD", "--reason", "vanish", check=0)
    assert held.listed() == []


def test_watchers_see_requests_and_answers(held, inst):
    held.create()
    c = http.client.HTTPConnection("sbxd")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.settimeout(60)
    c.sock.connect(str(inst.root / "run/sbx/sbxd.sock"))
    c.request("GET", "/v1/watch")
    stream = c.getresponse()
    first = [json.loads(stream.readline()) for _ in range(3)]
    assert [e["type"] for e in first] == ["snapshot", "hold", "live"]
    assert first[1]["hold"]["id"] == "K7QD" and first[1]["hold"]["state"] == "open"
    inst.sbx("refuse", "K7QD", "--reason", "vanish", check=0)
    event = json.loads(stream.readline())
    assert event["type"] == "unhold" and event["hold"]["id"] == "K7QD"
    c.close()


def test_bad_bodies_are_refused(held):
    held.create()
    some = {"answer": "no", "digest": "0" * 64}
    for body in ({}, {**some, "answer": "yes"}, {"answer": "once"}, {**some, "digest": "x"},
                 {**some, "seconds": 5}, {**some, "answer": "for"},
                 {**some, "answer": "for", "seconds": -1}, {**some, "reason": "x" * 201},
                 {**some, "reason": 5}, {**some, "tty": "x" * 32}, {**some, "x": 1}):
        assert held.call("POST", "/v1/holds/K7QD", body)[0] == 400, body
    assert not held.answers()


def test_usage(inst):
    some = ["--digest", "0" * 64]
    for args in (["--once", *some], ["--show"], ["K7QD", "--once"], ["K7QD", *some],
                 ["K7QD", "--once", "--always", *some], ["K7QD", "--once", "--digest", "12"],
                 ["K7QD", "--for", "soon", *some], ["K7QD", "--watch"],
                 ["K7QD", "--once", *some, "--show"]):
        assert inst.sbx("approve", *args).returncode == 2, args


def test_watch_needs_a_terminal(inst):
    p = inst.sbx("approve", "--watch", check=1)
    assert "requires a terminal" in p.stderr



def use_screen(t, held):
    t.wait_for("network:connect api.example.com 443")
    t.wait_for("<U+202E>money")
    t.type("o")
    t.wait_for("Approve K7QD once?")
    t.type("n")
    t.type("o")
    t.wait_for("Approve K7QD once?")
    assert not held.answers()
    t.type("y")
    t.wait_for("K7QD approved")
    assert held.answers()[0][:2] == ["K7QD", 1]
    t.type("j")
    t.wait_for("http:get b.example /")
    t.type("x")
    t.wait_for("Refuse M2XB?")
    t.type("y")
    t.wait_for("M2XB refused")
    # The selected row stays when others come.
    held.create("two", [{**READ, "id": "ZZZZ", "effects": "http:get new.example /\n"}])
    t.wait_for("ZZZZ")
    t.type("oyq")
    assert t.wait_end() == 0


def test_the_full_screen_shows_requests_as_they_come(held, inst):
    held.create("demo", [PUSH, READ])
    with Terminal(inst, SBX, "approve", "--watch") as t:
        use_screen(t, held)
    assert [a[1] for a in held.answers()] == [1, 0] and not held.answers("two")


def run_shell(inst, *more):
    """What a session on a terminal gets while requests wait for a few seconds."""
    return on_terminal(inst, ["run", *more, "demo"], b"sleep 5; echo en''d; exit\n", seconds=60)[0]


def test_a_terminal_shows_that_requests_wait_and_gets_its_title_back(held, inst):
    held.create("demo", [PUSH, {**READ, "state": 3}])
    out = run_shell(inst)
    title = "\x1b[22;2t\x1b]2;sbx: 1 request waits for approval\x1b\\\x07"
    assert out.count(title) == 1 and out.count("\x1b[23;2t") == 1
    assert out.index(title) < out.index("end") < out.index("\x1b[23;2t")
    assert "K7QD" not in out and "api.example.com" not in out
    inst.sbx("settings", "set", "ask.bell", "false", check=0)
    out = run_shell(inst)
    assert "\x1b]2;" not in out and "\x1b[23;2t" not in out and "end" in out


def test_the_title_changes_with_the_number(held, inst):
    held.create("demo", [PUSH, READ])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(on_terminal, inst, ["run", "demo"], b"sleep 10; exit\n", seconds=60)
        time.sleep(4)
        for ident in "K7QD", "M2XB":
            inst.sbx("refuse", ident, check=0)
            time.sleep(2.5)
        out = run.result()[0]
    titles = [part.split("\x1b\\")[0] for part in out.split("\x1b]2;sbx: ")[1:]]
    assert titles == ["2 requests wait for approval", "1 request waits for approval"]
    assert out.count("\x07") == 1 and out.count("\x1b[23;2t") == 1


# sbx open: links that a sandbox asks the user to open

URL = "https://login.example/authorize?a=$(id)&b='x'&state=0123456789"
LINK = {"id": "K7QD", "kind": 1, "effects": URL}
OPEN, NO = 4, 0


@pytest.fixture
def browser(inst):
    """$BROWSER; returns what it was started with."""
    program, args = inst.root / "browser", inst.root / "arguments"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{args}\n')
    program.chmod(0o755)
    inst.env["BROWSER"] = f"{program} --new"
    return lambda: args.read_text().splitlines() if args.exists() else []


def test_no_link_waits(inst):
    p = inst.sbx("open", check=0)
    assert p.stdout == "" and "No links wait to be opened" in p.stderr
    assert json.loads(inst.sbx("open", "--json", check=0).stdout) == {"links": []}
    assert "sbx approve" in inst.sbx("open", "K7QD", check=1).stderr


def test_the_list_has_links_only(held, inst):
    held.create("demo", [LINK, READ])
    lines = inst.sbx("open", check=0).stdout.splitlines()
    assert lines[0].split() == ["ID", "SANDBOX", "STATE", "LEFT", "LINK"] and len(lines) == 2
    assert lines[1].startswith("K7QD") and lines[1].endswith(URL)
    links = json.loads(inst.sbx("open", "--json", check=0).stdout)["links"]
    assert [link["id"] for link in links] == ["K7QD"]


def test_nothing_is_opened_without_a_prompt(held, inst, browser):
    held.create("demo", [LINK])
    for args in ["K7QD"], ["K7QD", "--json"], ["K7QD", "--print"]:
        p = inst.sbx("open", *args, input="y\n", check=0)
        assert URL in p.stdout and not held.answers() and not browser()
    link = json.loads(inst.sbx("open", "k7qd", "--json", check=0).stdout)
    assert link["host"] == "login.example" and link["port"] == 443 and not link["punycode"]
    assert link["policy_allows"] is False and link["digest"] == digest(LINK)


def test_the_link_is_one_argument_of_the_browser(held, inst, browser):
    held.create("demo", [LINK])
    out, status = on_terminal(inst, ["open", "K7QD"], b"y\n")
    assert status == 0 and URL in out and "Opened the link of sandbox 'demo'" in out
    assert "does NOT allow the sandbox to connect to login.example:443" in out
    assert browser() == ["--new", URL]
    assert held.answers()[0][:2] == ["K7QD", OPEN]
    assert "no such request" in inst.sbx("open", "K7QD", check=1).stderr


def test_what_the_policy_allows_is_said(held, inst, browser):
    inst.sbx("policy", "allow", "network", "login.example", check=0)
    held.create("demo", [LINK])
    out = inst.sbx("open", "K7QD", check=0).stdout
    assert "allows the sandbox to connect to login.example:443" in out and "NOT" not in out


def test_a_user_can_refuse_or_wait(held, inst, browser):
    held.create("demo", [LINK, {**LINK, "id": "M2XB"}])
    out, status = on_terminal(inst, ["open", "K7QD"], b"q\n")
    assert status == 0 and "still waits" in out and not held.answers()
    out, status = on_terminal(inst, ["open", "K7QD"], b"\n")
    assert status == 0 and not held.answers()
    out, status = on_terminal(inst, ["open", "K7QD"], b"n\n")
    assert status == 0 and "Refused link K7QD" in out
    inst.sbx("refuse", "M2XB", check=0)
    assert [a[:2] for a in held.answers()] == [["K7QD", NO], ["M2XB", NO]] and not browser()


def test_without_a_browser_the_link_is_printed(held, inst, browser):
    held.create("demo", [{**LINK, "id": f"AAA{i}"} for i in range(3)])
    out, status = on_terminal(inst, ["open", "AAA0", "--print"], b"y\n")
    assert status == 0 and out.count(URL) == 2 and not browser()
    inst.env.pop("BROWSER")
    for name in "DISPLAY", "WAYLAND_DISPLAY":
        inst.env.pop(name, None)
    out, status = on_terminal(inst, ["open", "AAA1"], b"y\n")
    assert status == 0 and "Open this link in a browser" in out and out.count(URL) == 2
    inst.env["BROWSER"] = "/nonexistent/browser"
    out, status = on_terminal(inst, ["open", "AAA2"], b"y\n")
    assert status == 0 and "cannot start /nonexistent/browser" in out and out.count(URL) == 2
    assert [a[1] for a in held.answers()] == [OPEN] * 3


HOSTILE = [
    "https://login.example/\x1b]0;x\x07", "https://login.example/\nhttps://b.example/",
    "https://login.example/\u202ecod.exe", "https://" "l\u043egin.example/",
    "https://a@login.example/",
    "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "http://127.0.0.1:8080/",
    "http://localhost/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://169.254.169.254/",
    "http://0x0a000001/", "http://2130706433/", "http://router/",
    "https://login.example/" + "x" * 4000,
    "--version", "https://login.example", "HTTPS://login.example/", ""]


def test_a_keeper_that_sends_another_link_opens_nothing(held, inst, browser):
    """The keeper refuses these links of a guest; sbx does so again."""
    held.create("demo", [{**LINK, "id": f"AA{i:02}", "effects": u} for i, u in enumerate(HOSTILE)])
    for i, url in enumerate(HOSTILE):
        out, status = on_terminal(inst, ["open", f"AA{i:02}"], b"y\n")
        assert status == 1 and f"invalid link AA{i:02}" in out, (url, out)
        assert "\x1b]0" not in out and "\u202e" not in out and "[y]es" not in out
    assert not held.answers() and not browser()


def test_a_link_is_not_approved_and_a_request_is_not_opened(held, inst, browser):
    held.create("demo", [LINK, READ])
    p = inst.sbx("approve", "K7QD", check=1)
    assert "is a link" in p.stderr and "sbx open K7QD" in p.stderr
    p = inst.sbx("approve", "K7QD", "--once", "--digest", digest(LINK), check=1)
    assert "sbx open K7QD" in p.stderr
    p = inst.sbx("open", "M2XB", check=1)
    assert "request for approval" in p.stderr and "sbx approve M2XB" in p.stderr
    assert not held.answers()
    for ident, what, word in (("K7QD", LINK, "once"), ("K7QD", LINK, "always"),
                              ("M2XB", READ, "open")):
        status, o = held.call("POST", f"/v1/holds/{ident}", {"answer": word,
                                                             "digest": digest(what)})
        assert status == 409 and o["error"]["code"] == "kind", o
    assert {h["state"] for h in held.listed()} == {"open"} and not browser()


def test_a_link_is_opened_with_the_digest_that_was_read(held, inst):
    held.create("demo", [LINK])
    status, o = held.call("POST", "/v1/holds/K7QD", {"answer": "open", "digest": "0" * 64})
    assert status == 409 and o["error"]["code"] == "stale"
    wrong = hashlib.sha256(b"https://b.example/").hexdigest()
    assert held.call("POST", "/v1/holds/K7QD", {"answer": "open", "digest": wrong})[0] == 409


def test_usage_of_open(inst):
    for args in ["--print"], ["K7QD", "--print", "--json"], ["K7QD", "M2XB"], ["--yes", "K7QD"]:
        assert inst.sbx("open", *args).returncode == 2, args


# The callback of a login

STATE = "&state=a%2Bb"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Login(http.server.BaseHTTPRequestHandler):
    """The program in the sandbox that waits for the callback; redirects once to itself."""
    seen = []

    def do_GET(self):
        Login.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        first = self.path.startswith("/callback")
        self.send_response(302 if first else 200)
        self.send_header("Set-Cookie", "a=b")
        if first:
            self.send_header("Location", "/success")
        self.end_headers()
        self.wfile.write(b"<script>alert(1)</script>")

    def log_message(self, *args):
        pass


@pytest.fixture
def login(held, browser):
    """A link with a callback, and `sbx open` that waits for it."""
    Login.seen.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Login)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    link = {**LINK, "effects": "https://login.example/authorize?redirect_uri=http%3A%2F%2Flocalhost"
                               f"%3A{port}%2Fcallback{STATE}"}
    held.inst.create("demo", "-e", "HOLDS=" + json.dumps([link]), "-e",
                     f"PORT={server.server_port}")
    held.wait(lambda: len(held.listed("demo")) == 1)
    yield port
    server.shutdown()
    server.server_close()


def get(port, path, method="GET", host=None, **headers):
    """The status and the text for a browser; None if nothing listens."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.putrequest(method, path, skip_host=True)
        c.putheader("Host", host or f"localhost:{port}")
        for name, value in headers.items():
            c.putheader(name.replace("_", "-"), value)
        c.endheaders()
        r = c.getresponse()
        return r.status, r.read().decode(), dict(r.getheaders())
    except OSError:
        return None
    finally:
        c.close()


def answered(inst):
    t = Terminal(inst, SBX, "open", "K7QD")
    t.wait_for("[q]uit")
    t.line("y")
    return t


def test_one_callback_reaches_the_sandbox(held, login, browser):
    with answered(held.inst) as t:
        t.wait_for("Waiting for the browser")
        assert f"http://127.0.0.1:{login}/callback is passed" in t.screen()
        bad = [get(login, "/callback?code=1&state=other"), get(login, "/callback?code=1"),
               get(login, f"/callback?code=1{STATE}", "POST"), get(login, "/favicon.ico"),
               get(login, f"/callback/../callback?code=1{STATE}"),
               get(login, f"/callback?code=1{STATE}", host=f"evil.example:{login}"),
               get(login, f"/callback?code=1{STATE}", Origin="https://evil.example"),
               get(login, f"/callback?code=1{STATE}", Sec_Fetch_Mode="no-cors")]
        assert [b[0] for b in bad] == [403, 403, 405, 404, 404, 421, 403, 403]
        assert not Login.seen and not any("script" in b[1] for b in bad)
        idle = socket.create_connection(("127.0.0.1", login))  # of a browser, in advance
        status, text, headers = get(login, f"/callback?code=1{STATE}", Cookie="secret=1",
                                    Authorization="Basic secret", X_Other="secret")
        idle.close()
        assert status == 200 and "received the login" in text
        assert "Set-Cookie" not in headers and headers["Cache-Control"] == "no-store"
        t.wait_for("Passed the callback into the sandbox 'demo'")
        assert t.wait_end() == 0
    paths = [path for path, _ in Login.seen]
    assert paths == [f"/callback?code=1{STATE}", "/success"]
    assert "secret" not in json.dumps(Login.seen)
    assert {h["host"] for _, h in Login.seen} == {f"localhost:{login}"}
    assert get(login, f"/callback?code=1{STATE}") is None  # closed
    assert browser()[-1].startswith("https://login.example/authorize?")


def test_a_port_in_use_opens_nothing(held, login, browser):
    with socket.socket() as other:
        other.bind(("127.0.0.1", login))
        other.listen()
        out, status = on_terminal(held.inst, ["open", "K7QD"], b"y\n")
    assert status == 1 and f"127.0.0.1:{login}" in out and "ss -tlnp" in out
    assert not browser() and not held.answers() and len(held.listed("demo")) == 1


def test_ctrl_c_closes_the_port(held, login, browser):
    with answered(held.inst) as t:
        t.wait_for("Waiting for the browser")
        t.key("C-c")
        assert t.wait_end() == 130
    assert get(login, f"/callback?code=1{STATE}") is None and not Login.seen
