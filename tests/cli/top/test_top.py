# SPDX-License-Identifier: Apache-2.0
"""sbx top, in tmux, with the real sbxd and simulated keepers."""
import calendar
import hashlib
import json
import subprocess
import time

from conftest import SBX, on_terminal
from term import Terminal
from test_audit import Logs

PATIENCE = 60
PUSH = {"id": "K7QD", "effects": "http:delete api.example.com /x\n",
        "rule": "ask http api.example.com/**", "preview": "title: \x1b[2Jfree\u202emoney"}


def listed(inst):
    boxes = json.loads(inst.sbx("ls", "--json", check=0).stdout)["sandboxes"]
    return {s["name"]: s for s in boxes}


def wait_status(inst, name, status):
    deadline = time.monotonic() + PATIENCE
    while (s := listed(inst).get(name, {"status": "removed"})["status"]) != status:
        assert time.monotonic() < deadline, s
        time.sleep(0.1)


def wait_gone(t, text):
    deadline = time.monotonic() + PATIENCE
    while text in (shown := t.screen()):
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def row(shown, name):
    return next(line for line in shown.splitlines() if f" {name} " in line.replace(">", " "))


def top(inst, *argv, **size):
    return Terminal(inst, SBX, *(argv or ["top"]), **{"columns": 80, "rows": 24, **size})


def quit_top(t):
    t.type("q")
    assert t.wait_end(PATIENCE) == 0


def test_without_arguments_it_opens_if_there_is_a_sandbox(inst):
    with top(inst, "--", columns=80) as t:  # no option: an error as before
        t.wait_for("unknown option --", PATIENCE)
    with Terminal(inst, SBX) as t:
        t.wait_for("sbx help COMMAND prints the help", PATIENCE)
        assert t.wait_end(PATIENCE) == 2
    inst.create("demo")
    with Terminal(inst, SBX) as t:
        shown = t.wait_for("demo", PATIENCE)
        assert "1 sandbox, 1 running" in shown and "running" in row(shown, "demo")
        quit_top(t)
    assert inst.sbx(check=2).stdout.startswith("usage: sbx")
    p = inst.sbx("top", check=1)
    assert "requires a terminal" in p.stderr and "sbx stats --no-stream" in p.stderr
    out, status = on_terminal(inst, [], env={"TERM": "dumb"})
    assert status == 2 and "usage: sbx" in out


def test_the_list_shows_what_a_sandbox_is_and_does(inst):
    subprocess.run(["git", "init", "-q", "-b", "fix/greeting", inst.work], check=True)
    inst.create("demo", ".", "-m", "1g", "-p", "8080", "--label", "team=web")
    inst.create("held", "-e", "HOLDS=" + json.dumps([PUSH]))
    inst.create("other")
    inst.sbx("stop", "other", check=0)
    with top(inst) as t:
        t.wait_for("0%", PATIENCE)  # of the second read
        shown = t.wait_for("requests wait for approval", PATIENCE)
        assert shown.splitlines()[0].startswith(" sbx: 3 sandboxes, 2 running")
        words = row(shown, "demo").split()
        assert words[:4] == [">demo", "running", "shell", "fix/greet~"], words
        assert words[4].endswith("%") and words[5].endswith("M") and words[7] == "0"
        assert row(shown, "held").startswith("* held") and row(shown, "held").split()[-1] == "1"
        assert row(shown, "other").split()[1] == "stopped"
        assert f"workspace   {inst.work}" in shown and "1 GiB memory" in shown
        assert "-> 8080" in shown and "team=web" in shown
        t.key("Down")
        t.wait_for("1 request waits for approval", PATIENCE)
        assert len(t.screen().splitlines()) == 24
        quit_top(t)


def test_keys_stop_start_suspend_and_remove_after_a_question(inst):
    inst.create("demo", mode="idle")
    inst.create("other")
    with top(inst) as t:
        t.wait_for("other", PATIENCE)
        t.type("s")
        t.wait_for("Stop demo and end its programs? [y/N]", PATIENCE)
        t.type("n")
        wait_gone(t, "[y/N]")
        t.key("Down")
        t.type("s")
        t.wait_for("Stop other and end its programs? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("stop other: Stopped sandbox 'other'", PATIENCE)
        wait_status(inst, "other", "stopped")
        assert listed(inst)["demo"]["status"] == "running"
        t.type("u")
        t.wait_for("2 running", PATIENCE)
        wait_status(inst, "other", "running")
        t.type("d")
        t.wait_for("Remove other and its disks? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("1 sandbox, 1 running", PATIENCE)
        assert list(listed(inst)) == ["demo"]
        t.wait_for(">demo", PATIENCE)
        t.type("z")
        t.wait_for("Suspend demo to disk? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("suspend demo: Suspended sandbox 'demo'", PATIENCE)
        wait_status(inst, "demo", "suspended")
        t.wait_for("1 sandbox, 0 running", PATIENCE)
        quit_top(t)


def test_a_question_is_about_the_sandbox_that_it_names(inst):
    """Also if the list changes before the answer."""
    inst.create("bbb")
    inst.create("ccc")
    with top(inst) as t:
        t.wait_for(">bbb", PATIENCE)
        t.type("d")
        t.wait_for("Remove bbb and its disks?", PATIENCE)
        inst.create("aaa")
        t.wait_for("3 sandboxes", PATIENCE)
        assert ">bbb" in t.screen() and "Remove bbb and its disks?" in t.screen()
        t.resize(60, 12)
        t.wait_for("Remove bbb and its disks?", PATIENCE)
        t.type("y")
        t.wait_for("2 sandboxes", PATIENCE)
        assert list(listed(inst)) == ["aaa", "ccc"]
        # Typed ahead: the answer is a key that is pressed after the question is seen.
        t.type("sy")
        t.wait_for("[y/N]", PATIENCE)
        quit_keys = "nq"
        t.type(quit_keys[0])
        wait_gone(t, "[y/N]")
        quit_top(t)
    assert all(s["status"] == "running" for s in listed(inst).values())


def test_a_port_is_typed(inst):
    inst.create("demo")
    with top(inst) as t:
        t.wait_for(">demo", PATIENCE)
        t.type("+")
        t.wait_for("Publish [HOST_PORT:]PORT of demo: _", PATIENCE)
        t.type("80q99")
        t.wait_for("demo: 80q99_", PATIENCE)
        for _ in range(3):
            t.key("BSpace")
        t.type("80")
        t.wait_for("demo: 8080_", PATIENCE)
        t.key("Enter")
        t.wait_for("-> 8080", PATIENCE)
        assert [p["sandbox_port"] for p in listed(inst)["demo"]["ports"]] == [8080]
        t.type("+")
        t.wait_for("demo: _", PATIENCE)
        t.type("no-port")
        t.key("Enter")
        t.wait_for("Failed: publish a port of demo: ", PATIENCE)
        t.type("+")
        t.wait_for("demo: _", PATIENCE)
        t.type("9090")
        t.key("Escape")
        wait_gone(t, "9090")
        quit_top(t)
    assert len(listed(inst)["demo"]["ports"]) == 1


def test_attach_and_review_have_the_terminal_and_give_it_back(inst):
    inst.create("demo", ".")
    with top(inst) as t:
        t.wait_for(">demo", PATIENCE)
        t.type("a")
        wait_gone(t, "sbx: 1 sandbox")
        t.line("echo in''side-$((1+1))")
        t.wait_for("inside-2", PATIENCE)
        t.line("exit 0")
        t.wait_for("sbx: 1 sandbox, 1 running", PATIENCE)
        t.type("a")
        wait_gone(t, "sbx: 1 sandbox")
        t.line("echo in''side-$((1+2))")
        t.wait_for("inside-3", PATIENCE)
        t.line("exit 3")
        t.wait_for("Press Enter to return.", PATIENCE)
        t.key("Enter")
        t.wait_for("attach demo: exit status 3", PATIENCE)
        t.wait_for("sbx: 1 sandbox, 1 running", PATIENCE)
        t.type("a")
        wait_gone(t, "sbx: 1 sandbox")
        t.line("echo still-$((1+1))")
        t.wait_for("still-2", PATIENCE)
        t.key("C-\\")  # detaches
        t.wait_for("sbx: 1 sandbox, 1 running", PATIENCE)
        t.type("r")
        t.wait_for("No changed files run programs on the host", PATIENCE)
        t.key("Enter")
        t.wait_for("sbx: 1 sandbox, 1 running", PATIENCE)
        t.key("C-z")  # a shell around the command has no job control: it continues
        quit_top(t)


def register(inst, name, **more):
    """A sandbox that was never started."""
    body = json.dumps({"name": name, "agent": "shell", "template": "debian", **more})
    subprocess.run(["curl", "-sf", "-o", "/dev/null", "--unix-socket",
                    inst.root / "run/sbx/sbxd.sock", "-H", "Content-Type: application/json", "-d",
                    body, "http://sbx/v1/sandboxes"], check=True)


def test_fifty_sandboxes_and_every_size(inst):
    inst.sbx("ls", check=0)
    for i in range(50):
        register(inst, f"box-{i:02}")
    with top(inst) as t:
        shown = t.wait_for("sbx: 50 sandboxes, 0 running", PATIENCE)
        assert ">box-00" in shown and "box-49" not in shown
        t.type("G")
        shown = t.wait_for(">box-49", PATIENCE)
        assert "SANDBOX" in shown and "box-00" not in shown
        t.key("PageUp")
        wait_gone(t, ">box-49")
        t.type("g")
        t.wait_for(">box-00", PATIENCE)
        for columns, rows in ((1, 1), (2, 2), (20, 5), (59, 9), (200, 60), (79, 12), (80, 24)):
            t.resize(columns, rows)
            time.sleep(0.1)
            t.screen()
        t.wait_for("sbx: 50 sandboxes, 0 running", PATIENCE)
        t.resize(120, 10)
        t.wait_for("box-0", PATIENCE)
        t.key("Tab")  # too small for both: the text of the sandbox
        t.wait_for("template    debian", PATIENCE)
        t.key("Tab")
        t.wait_for(">box-00", PATIENCE)
        t.type("?")
        t.wait_for("Keys", PATIENCE)
        t.resize(80, 40)
        shown = t.wait_for("port", PATIENCE)
        assert "attach" in shown and "suspend" in shown and ">box-00" not in shown
        t.type("q")
        t.wait_for(">box-00", PATIENCE)
        quit_top(t)


def test_hostile_words_are_shown_as_codes(inst):
    git = inst.work / ".git"
    git.mkdir()
    (git / "HEAD").write_bytes(b"ref: refs/heads/\xe2\x80\xaeevil\xc2\x9b2Jx\n")
    why = "no \x1b[2J\x1b]0;owned\x07\u202eway"
    inst.create("demo", ".")
    register(inst, "failed", env={"MODE": "fail", "WHY": why})
    inst.sbx("start", "failed", check=1)
    raw = inst.root / "raw"
    with top(inst, columns=120) as t:
        t.tmux("pipe-pane", "-t", "t", f"cat > {raw}")
        t.wait_for("0%", PATIENCE)
        assert "?evil" in row(t.screen(), "demo")
        t.key("Down")
        shown = t.wait_for("stopped for", PATIENCE)
        assert "way" in shown and not set(shown) & set("\x1b\x07\u202e\x9b")
        t.type("u")  # its error is the result of a command
        shown = t.wait_for("Failed: start failed: ", PATIENCE)
        assert "way" in shown.splitlines()[-2] and not set(shown) & set("\x1b\x07\u202e\x9b")
        t.resize(80, 24)
        t.wait_for("Failed: start failed: ", PATIENCE)
        quit_top(t)
    written = raw.read_bytes()
    assert b"way" in written
    for code in (b"\x1b]0;", "\u202e".encode(), "\x9b".encode(), b"owned\x07"):
        assert code not in written


def test_sbxd_can_be_restarted_meanwhile(inst):
    inst.create("demo")
    with top(inst) as t:
        t.wait_for(">demo", PATIENCE)
        inst.sbx("daemon", "stop", check=0)
        inst.create("more")
        t.wait_for("2 sandboxes, 2 running", PATIENCE)
        t.key("C-c")
        assert t.wait_end(PATIENCE) == 130


def digest(hold):
    return hashlib.sha256(hold["effects"].encode()).hexdigest()


def test_requests_are_approved_and_refused_as_they_were_shown(inst):
    read = {"id": "M2XB", "effects": "http:get b.example /\n", "rule": "ask http b.example/**"}
    ident = inst.create("demo", "-e", "HOLDS=" + json.dumps([PUSH, read])) and \
        listed(inst)["demo"]["id"]
    answers = inst.root / "state/sbx/sandboxes" / ident / "answers"
    with top(inst, rows=30) as t:
        t.wait_for(">demo", PATIENCE)
        t.type("h")
        shown = t.wait_for(f"digest    {digest(PUSH)}", PATIENCE)
        assert "1 of 2" in shown and "http:delete api.example.com /x" in shown
        assert "| title: <1B>[2Jfree<U+202E>money" in shown and "\u202e" not in shown
        t.type("o")
        t.wait_for("Approve K7QD once? [y/N]  http:delete api.example.com /x", PATIENCE)
        t.type("n")
        wait_gone(t, "[y/N]")
        assert not answers.exists()
        t.type("t")
        t.wait_for("Approve K7QD and all equal requests for 30 minutes? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("K7QD approved", PATIENCE)
        t.wait_for("Request K7QD of sandbox demo: approved", PATIENCE)
        t.type("o")  # it has its answer
        t.type("]")
        t.wait_for(f"digest    {digest(read)}", PATIENCE)
        t.type("x")
        t.wait_for("Refuse M2XB? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("M2XB refused", PATIENCE)
        t.type("[")
        t.wait_for("1 of 2", PATIENCE)
        quit_top(t)
    # The simulated keeper accepts only the digest of its request.
    assert [json.loads(a)[:2] for a in answers.read_text().splitlines()] == [["K7QD", 2],
                                                                             ["M2XB", 0]]
    assert json.loads(answers.read_text().splitlines()[0])[5] == 1800


def rules(inst):
    return [r for r in json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
            if r["sandbox"] == "demo"]


def test_a_denied_host_is_allowed_for_thirty_minutes(inst):
    inst.create("demo")
    ident = listed(inst)["demo"]["id"]
    logs = Logs(inst)
    # None of them can be named in a rule: a pattern would allow other hosts.
    for host in ("*.example.com", "a.example,b.example", "-x", "\x1b[2J\x1b]0;owned\x07.example",
                 "a b"):
        logs.deny(id=ident, host=host)
    logs.deny(id=ident, host="denied.example")
    logs.allow(id=ident)
    with top(inst, rows=40, columns=110) as t:
        t.wait_for(">demo", PATIENCE)
        t.type("l")
        shown = t.wait_for(" 1 denied.example:443", PATIENCE)
        assert "*.example.com:443" in shown and "?[2J?]0;owned?.example:443" in shown
        assert "\n 2 " not in shown and "good.example:443" in shown
        logs.deny(id=ident, host="second.example")
        t.wait_for(" 1 second.example:443", PATIENCE)
        t.type("3")
        t.type("1")
        t.wait_for("Allow second.example:443 for demo for 30 minutes? [y/N]", PATIENCE)
        t.type("n")
        wait_gone(t, "[y/N]")
        assert not rules(inst)
        t.type("2")
        t.wait_for("Allow denied.example:443 for demo for 30 minutes? [y/N]", PATIENCE)
        t.type("y")
        t.wait_for("allow a host for demo: ", PATIENCE)
        quit_top(t)
    logs.finish()
    (rule,) = rules(inst)
    assert rule["resources"] == ["denied.example:443"] and rule["decision"] == "allow"
    left = calendar.timegm(time.strptime(rule["until"], "%Y-%m-%dT%H:%M:%SZ")) - time.time()
    assert 1500 < left <= 1800


def test_sessions_have_numbers_that_attach(inst):
    inst.create("demo", "-e", "SESSIONS=" + json.dumps([["agent", 1, 0], ["build-2", 2, 7]]))
    inst.create("other")
    inst.sbx("stop", "other", check=0)
    with top(inst) as t:
        t.wait_for(">demo", PATIENCE)
        t.type("e")
        shown = t.wait_for("1 agent", PATIENCE)
        assert "running, a terminal is attached" in shown and "ended, status 7" in shown
        t.type("2")
        shown = t.wait_for("Press Enter to return.", PATIENCE)
        assert "session not found" in shown or "build-2" in shown
        t.key("Enter")
        t.wait_for("ended, status 7", PATIENCE)
        t.key("Down")
        t.wait_for("other does not run", PATIENCE)
        t.type("i")
        t.wait_for("template    debian", PATIENCE)
        quit_top(t)
