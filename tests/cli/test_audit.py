# SPDX-License-Identifier: Apache-2.0
"""The commands that read audit logs, on logs that a real writer wrote: no sandbox, no sbxd."""
import calendar
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import SBX

WRITER = os.environ["SBX_TEST_AUDIT_WRITER"]
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


class Logs:
    """audit_writer on the state directory of this installation."""

    def __init__(self, inst):
        self.inst = inst
        self.dir = inst.root / "state/sbx/audit"
        self.dir.parent.mkdir(mode=0o700, exist_ok=True)
        self.proc = subprocess.Popen([WRITER, self.dir], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def say(self, *words):
        self.proc.stdin.write("\t".join(map(str, words)) + "\n")
        self.proc.stdin.flush()
        assert self.proc.stdout.readline() == "ok\n"

    def event(self, id=A, name="demo", kind="decision", verdict="-", action="-", type="-", host="-",
              port=0, path="-",
              rule="-", reason="-", count=0, op="-", effects="-", hold="-", where="-"):
        self.say(id, name, kind, verdict, action, type, host, port, path, rule, reason, count, op,
                 effects, hold, where)

    def deny(self, host="evil.example", **more):
        self.event(**{"verdict": "deny", "type": "https", "host": host, "port": 443,
                      "path": "transparent",
                      "reason": "no applicable policies", **more})

    def allow(self, host="good.example", **more):
        self.event(**{"verdict": "allow", "type": "https", "host": host, "port": 443,
                      "path": "forward-bypass",
                      "rule": "local:17", **more})

    def finish(self):
        """Closes all logs; they are signed to the end then."""
        if self.proc.poll() is None:
            self.proc.stdin.close()
            assert self.proc.wait(20) == 0

    def segment(self, id=A, number=1):
        return self.dir / id / f"{number:08}.jsonl"


@pytest.fixture
def logs(bare):
    made = Logs(bare)
    yield made
    made.proc.kill()
    made.proc.wait()


def policy_log(inst, *args, check=0):
    return inst.sbx("policy", "log", *args, check=check)


def test_nothing_there_is_said_and_starts_nothing(bare):
    assert bare.sbx("audit", "show", check=0).stdout == "No audit records found\n"
    assert bare.sbx("audit", "verify", check=0).stdout == "No audit logs found\n"
    assert "nothing to export" in bare.sbx("audit", "export", "--json", check=0).stderr
    assert json.loads(bare.sbx("audit", "verify", "--json",
                               check=0).stdout) == {"ok": True, "logs": []}
    for verb in ("show", "verify", "export"):
        p = bare.sbx("audit", verb, "demo", check=1)
        assert "no audit log or sandbox named 'demo'" in p.stderr and "try: " in p.stderr
    assert not (bare.root / "run/sbx/sbxd.sock").exists()
    assert not (bare.root / "state/sbx/audit").exists()


def test_policy_log_of_nothing(bare):
    assert policy_log(bare).stdout == "No policy log entries found\n"
    assert json.loads(policy_log(bare,
                                 "--json").stdout) == {"blocked_hosts": [], "allowed_hosts": []}
    assert "no audit log or sandbox named 'demo'" in policy_log(bare, "demo", check=1).stderr


def on_terminal(inst, columns, *args):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    subprocess.run([SBX, *args], env=inst.env, stdin=slave, stdout=slave, check=True, timeout=20)
    os.close(slave)
    out = b""
    with contextlib.suppress(OSError):  # EIO is its end
        while part := os.read(master, 65536):
            out += part
    os.close(master)
    return out.decode().replace("\r\n", "\n")


def test_policy_log_fits_a_terminal_and_nothing_else(bare, logs):
    reason = "a reason that is as long as they can be: " + "and so on and on, " * 4 + "to its end"
    logs.deny(reason=reason)
    logs.finish()
    whole = policy_log(bare).stdout
    assert reason in whole and max(map(len, whole.splitlines())) > 160
    assert on_terminal(bare, 120, "policy", "log", "--wide") == whole
    assert on_terminal(bare, 400, "policy", "log") == whole
    for columns, least in ((140, 0), (120, 0), (40, 20)):
        heading, row = on_terminal(bare, columns, "policy", "log").splitlines()[1:3]
        cut = row[heading.index("REASON"):heading.index("LAST-SEEN")].rstrip()
        assert cut.endswith("…") and reason.startswith(cut[:-1]) and row.split()[-1] == "1"
        assert len(cut) == least if least else len(row) + len("COUNT") - 1 == columns
    assert json.loads(on_terminal(bare, 40, "policy", "log",
                                  "--json"))["blocked_hosts"][0]["reason"] == reason


def test_policy_log_has_two_sections_and_counts(bare, logs):
    logs.allow()
    for _ in range(3):
        logs.deny()
    logs.deny("::1", type="tcp", port=22, count=4)
    logs.allow("other.example", id=B, name="second")
    logs.event(kind="lifecycle", action="start")
    text = policy_log(bare).stdout
    blocked, allowed = text.split("\n\n")
    lines = blocked.splitlines()
    assert lines[0] == "Blocked requests:"
    assert lines[1].split() == ["SANDBOX", "TYPE", "HOST", "PROXY", "RULE", "REASON", "LAST-SEEN",
                                "COUNT"]
    assert len(lines) == 4
    assert "[::1]:22" in lines[2] and lines[2].endswith("  4")
    assert "evil.example:443" in lines[3] and "no applicable policies" in lines[3] and lines[
        3].endswith("  3")
    assert allowed.startswith("Allowed requests:\n")
    assert "second" in allowed and "demo" in allowed and "local:17" in allowed
    one = policy_log(bare, "second").stdout
    assert one.startswith("Allowed requests:") and "demo" not in one
    assert policy_log(bare, B).stdout == one
    assert len(policy_log(bare, "--limit", "1").stdout.split("\n\n")[0].splitlines()) == 3
    got = json.loads(policy_log(bare, "--json").stdout)
    row = next(r for r in got["blocked_hosts"] if r["host"] == "evil.example:443")
    assert row["vm_name"] == "demo" and row["proxy_type"] == "transparent" and row[
        "count_since"] == 3
    assert row["since"] <= row["last_seen"] and row["last_seen"].endswith("Z") and row["rule"] == ""
    assert {r["host"] for r in got["allowed_hosts"]} == {"good.example:443", "other.example:443"}


def test_show_is_one_line_for_each_record(bare, logs):
    logs.event(kind="lifecycle", action="start")
    logs.deny()
    time.sleep(0.01)
    logs.allow(id=B, name="second")
    time.sleep(0.01)
    logs.deny("later.example")
    lines = bare.sbx("audit", "show", check=0).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["open", "lifecycle", "deny", "open", "allow",
                                                   "deny"]
    assert lines[2].endswith(
        " demo deny https evil.example:443 transparent: no applicable policies")
    assert lines[4].endswith(" second allow https good.example:443 forward-bypass rule local:17")
    # By time, over all logs; signed checkpoints only on request.
    assert [line[:24] for line in lines] == sorted(line[:24] for line in lines)
    assert bare.sbx("audit", "show", "--limit", "2").stdout.splitlines() == lines[-2:]
    assert bare.sbx("audit", "show", "demo", "-n", "1").stdout.splitlines() == lines[-1:]
    assert " head signs the records up to 1" in bare.sbx("audit", "show", "--all").stdout
    assert set(bare.sbx("audit", "show", "-n", "0").stdout.splitlines()) == set(lines)
    assert bare.sbx("audit", "show", "--since", "1h").stdout.splitlines() == \
        bare.sbx("audit", "show", "-n", "0").stdout.splitlines()
    raw = bare.sbx("audit", "show", "demo", "--json", "--all", "-n", "0").stdout
    assert raw == logs.segment().read_text()
    assert "since then" in bare.sbx("audit", "show", "--since", "2100-01-01T00:00:00Z",
                                    check=0).stdout


def test_show_names_effects_the_approval_and_where_the_rule_is(bare, logs):
    logs.allow(op="POST /x", effects="http:POST good.example /x", hold="K7QD", where="policy 3")
    logs.event(kind="approval", action="once", effects="http:POST good.example /x", hold="K7QD",
               rule="ask http good.example/**", reason="uid 1000 api")
    lines = bare.sbx("audit", "show", check=0).stdout.splitlines()
    assert lines[1].endswith(
        " POST /x K7QD does http:POST good.example /x rule local:17 (policy 3)")
    assert " approval once K7QD does http:POST good.example /x sha256 " in lines[2]
    assert lines[2].endswith(" rule ask http good.example/**: uid 1000 api")
    record = json.loads(bare.sbx("policy", "log", "--json", check=0).stdout)["allowed_hosts"][0]
    assert record["rule"] == "local:17"
    record = json.loads(bare.sbx("audit", "show", "--json").stdout.splitlines()[1])
    assert (record["effects"], record["hold"], record["from"]) == (
        "http:POST good.example /x", "K7QD", "policy 3")
    logs.finish()
    assert " OK" in bare.sbx("audit", "verify", check=0).stdout


def test_the_guests_words_do_nothing_to_a_terminal(bare, logs):
    logs.deny("\x1b]0;owned\x07\x9b2J.example", reason="\x1b[31mred")
    for args in (["audit", "show"], ["audit", "show", "--json"]):
        out = bare.sbx(*args, check=0, binary=True).stdout
        assert b"owned" in out and all(c >= 0x20 or c == 0x0a for c in out) and max(out) < 0x7f
    p = policy_log(bare)
    assert "\x1b" not in p.stdout and "owned" in p.stdout
    assert "\x1b" in json.loads(policy_log(bare, "--json").stdout)["blocked_hosts"][0]["reason"]


def test_a_removed_sandbox_is_found_by_name_and_id_and_by_its_old_name(bare, logs):
    logs.deny("first.example", name="old")
    logs.deny("second.example", name="new")
    logs.deny("other.example", id=B, name="new")
    logs.finish()
    assert "first.example" in bare.sbx("audit", "show", A, check=0).stdout
    assert "other.example" not in bare.sbx("audit", "show", A).stdout
    both = bare.sbx("audit", "show", "new", check=0).stdout
    assert "second.example" in both and "other.example" in both
    only = bare.sbx("audit", "show", "old", check=0).stdout
    assert "first.example" in only and "other.example" not in only
    bare.sbx("audit", "show", "ol", check=1)
    for evil in ("..", "heads", "key", "../audit", "a/b"):
        bare.sbx("audit", "show", evil, check=1)


def test_sbxd_maps_a_name_that_the_log_does_not_have(inst):
    inst.create("demo")
    info = json.loads(inst.sbx("ls", "--json").stdout)["sandboxes"][0]
    logs = Logs(inst)
    logs.deny(id=info["id"], name="called-otherwise")
    logs.finish()
    assert "evil.example" in inst.sbx("audit", "show", "demo", check=0).stdout
    inst.create("silent")
    assert inst.sbx("audit", "show", "silent", "--since", "2100-01-01T00:00:00Z",
                    check=0).stdout == \
        "No audit records found for silent since then\n"
    assert " silent lifecycle create" in inst.sbx("audit", "show", "silent", check=0).stdout
    assert policy_log(inst, "silent").stdout == "No policy log entries found\n"


def test_the_log_of_sbxd_is_shown_with_the_sandbox_that_its_records_name(bare, logs, tmp_path):
    logs.event(id="sbxd", name="demo", kind="policy-change", action="rule-add", rule="r1")
    logs.event(id="sbxd", name="other", kind="policy-change", action="rule-add", rule="r2")
    logs.deny()
    out = bare.sbx("audit", "show", "demo", check=0).stdout
    assert "rule r1" in out and "evil.example" in out and "rule r2" not in out
    # Created and never started: sbxd alone knows of it.
    assert "rule r2" in bare.sbx("audit", "show", "other", check=0).stdout
    bare.sbx("audit", "export", "other", check=1)
    assert "evil.example" not in bare.sbx("audit", "show", "sbxd", check=0).stdout
    rows = [line.split()[:2]
            for line in bare.sbx("audit", "verify", check=0).stdout.splitlines()[1:]]
    assert rows == [["demo", A], ["-", "sbxd"]]
    assert "sbxd" not in bare.sbx("audit", "verify", "demo", check=0).stdout
    logs.finish()
    path = tmp_path / "all.jsonl"
    bare.sbx("audit", "export", "-o", path, check=0)
    assert [line.split()[:2]
            for line in bare.sbx("audit", "verify", "--file", path,
                                 check=0).stdout.splitlines()[1:]] == rows
    names = {log["id"]: log["name"]
             for log in json.loads(bare.sbx("audit", "verify", "--json", "--file", path,
                                            check=0).stdout)["logs"]}
    assert names == {A: "demo", "sbxd": ""}


def test_verify_of_good_logs_also_of_one_that_is_written(bare, logs):
    logs.say("fill", A, "demo", 3500)
    logs.deny(id=B, name="second")
    text = bare.sbx("audit", "verify", check=0).stdout
    lines = text.splitlines()
    assert lines[0].split() == ["SANDBOX", "ID", "RECORDS", "SEGMENTS", "LAST-HEAD", "RESULT"]
    assert lines[1].split()[:2] == ["demo",
                                    A] and "not signed yet" in lines[1] and " OK" in lines[1]
    logs.finish()
    text = bare.sbx("audit", "verify", check=0).stdout
    assert "not signed" not in text and text.count("OK\n") == 2
    got = json.loads(bare.sbx("audit", "verify", "demo", "--json", check=0).stdout)
    assert got["ok"] and [log["id"] for log in got["logs"]] == [A]
    log = got["logs"][0]
    assert log["records"] > 3500 and log["unsigned"] == 0 and log["segments"] == len(
        list((logs.dir / A).glob("*.jsonl"))) > 1
    assert abs(calendar.timegm(time.strptime(log["last_head_at"],
                                             "%Y-%m-%dT%H:%M:%SZ")) - time.time()) < 60


def spoil_flip(logs):
    path = logs.segment()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"h3.example", b"h4.example", 1))
    return 6, "was changed"


def spoil_drop(logs):
    path = logs.segment()
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(lines[:10] + lines[11:]))
    return 11, "missing or out of order"


def spoil_cut(logs):
    path = logs.segment()
    path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:20]))
    return 21, "was rolled back"


def spoil_tail(logs):
    path = logs.segment()
    path.write_bytes(path.read_bytes()[:-7])
    return None, "is truncated"


def spoil_removed(logs):
    shutil.rmtree(logs.dir / A)
    return None, "was rolled back"


def spoil_head(logs):
    (logs.dir / "heads" / A).unlink()
    return None, "no stored checkpoint"


def spoil_key(logs):
    (logs.dir / "key.pub").write_text("11" * 32 + "\n")
    return 1, "another installation"


@pytest.mark.parametrize("spoil",
                         [spoil_flip, spoil_drop, spoil_cut, spoil_tail, spoil_removed, spoil_head,
                          spoil_key],
                         ids=lambda f: f.__name__)
def test_tampering_is_found_and_the_record_named(bare, logs, spoil):
    logs.say("fill", A, "demo", 40)
    logs.say("fill", B, "other", 40)
    logs.finish()
    bare.sbx("audit", "verify", check=0)
    record, says = spoil(logs)
    p = bare.sbx("audit", "verify", check=1)
    bad = next(line for line in p.stdout.splitlines() if A in line)
    assert "BAD: " in bad and says in bad and "error: " in p.stderr
    if record:
        assert f"BAD: record {record} (segment 1, byte " in bad
    if spoil is not spoil_key:
        assert any(line.endswith("OK") for line in p.stdout.splitlines() if B in line)
        bare.sbx("audit", "verify", "other", check=0)
    got = json.loads(bare.sbx("audit", "verify", A, "--json", check=1).stdout)
    assert not got["ok"] and got["logs"][0]["bad"]


def test_a_view_says_where_it_could_not_read_on(bare, logs):
    logs.say("fill", A, "demo", 20)
    logs.allow("seen.example", id=B, name="other")
    logs.finish()
    path = logs.segment()
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(lines[:5]) + b"{}\n" + b"".join(lines[6:]))
    p = bare.sbx("audit", "show", check=1)
    assert "after record" in p.stderr and "seen.example" in p.stdout and "h1.example" in p.stdout


def test_without_the_public_key_nothing_verifies(bare, logs):
    logs.say("fill", A, "demo", 3)
    logs.finish()
    (logs.dir / "key.pub").unlink()
    assert "error: " in bare.sbx("audit", "verify", check=1).stderr


def test_export_is_exact_and_can_be_checked_elsewhere(bare, logs, tmp_path):
    logs.say("fill", A, "demo", 6000)
    logs.say("fill", B, "other", 10)
    logs.finish()
    key = (logs.dir / "key.pub").read_text().strip()
    segments = sorted((logs.dir / A).glob("*.jsonl"))
    assert len(segments) > 2
    out = bare.sbx("audit", "export", "demo", "--json", check=0).stdout
    first, _, rest = out.partition("\n")
    assert json.loads(first) == {"sbx_audit_export": 1, "key": key}
    assert rest == "".join(s.read_text() for s in segments)
    path = tmp_path / "all.jsonl"
    assert "6" in bare.sbx("audit", "export", "-o", path, check=0).stderr
    assert path.stat().st_mode & 0o777 == 0o600
    shutil.rmtree(logs.dir)
    p = bare.sbx("audit", "verify", "--file", path, check=0)
    assert p.stdout.count("OK\n") == 2 and key in p.stderr and "--key" in p.stderr
    p = bare.sbx("audit", "verify", "--file", path, "--key", key, check=0)
    assert p.stderr == ""
    assert "another installation" in bare.sbx("audit", "verify", "--file", path, "--key", "11" * 32,
                                              check=1).stdout
    good = path.read_bytes()
    path.write_bytes(good.replace(b"h7.example", b"h8.example", 1))
    assert "BAD: record 10 (segment 1" in bare.sbx("audit", "verify", "--file", path, "--key", key,
                                                   check=1).stdout
    lines = good.splitlines(True)
    at = next(i for i, line in enumerate(lines) if b'"kind":"segment"' in line)
    path.write_bytes(b"".join(lines[:at] + lines[at + 1:]))
    bare.sbx("audit", "verify", "--file", path, "--key", key, check=1)
    path.write_bytes(good[len(lines[0]):])
    assert "not an export" in bare.sbx("audit", "verify", "--file", path, check=1).stderr
    path.write_bytes(lines[0] + b"x" * 10000)
    bare.sbx("audit", "verify", "--file", path, check=1)
    assert "cannot open " in bare.sbx("audit", "verify", "--file", tmp_path / "none",
                                      check=1).stderr


def test_export_follows_no_link_that_a_guest_planted(bare, logs):
    logs.deny()
    logs.finish()
    precious = bare.root / "authorized_keys"
    precious.write_text("mine\n")
    (bare.work / "log.jsonl").symlink_to(precious)
    bare.sbx("audit", "export", "-o", "log.jsonl", check=0)
    assert precious.read_text() == "mine\n"
    assert not (bare.work
                / "log.jsonl").is_symlink() and "evil.example" in (
        bare.work / "log.jsonl").read_text()
    assert [f.name for f in bare.work.iterdir()] == ["log.jsonl"]


def test_a_full_disk_is_no_success(bare, logs):
    logs.say("fill", A, "demo", 50)
    logs.finish()
    p = bare.sbx("audit", "export", "-o", "/dev/full", check=1)
    assert "No space left" in p.stderr


class Follower:
    def __init__(self, inst, *args):
        self.proc = subprocess.Popen([SBX, *args], env=inst.env, stdout=subprocess.PIPE, text=True,
                                     cwd=inst.work)
        self.lines = []

    def until(self, text, seconds=10):
        """Reads lines until one has the text. SIGALRM ends a read that has nothing."""
        def late(*_):
            raise AssertionError(f"no {text!r} within {seconds} s; seen: {self.lines}")
        signal.signal(signal.SIGALRM, late)
        signal.alarm(seconds)
        try:
            while not self.lines or text not in self.lines[-1]:
                line = self.proc.stdout.readline()
                assert line, f"it ended; seen: {self.lines}"
                self.lines.append(line)
        finally:
            signal.alarm(0)

    def stop(self):
        self.proc.send_signal(signal.SIGINT)
        assert self.proc.wait(10) in (0, 130, -signal.SIGINT)


@pytest.mark.parametrize("command", ["audit show", "policy log"])
def test_follow_from_nothing_and_new_sandboxes(bare, command):
    f = Follower(bare, *command.split(), "-f")
    time.sleep(0.3)
    assert f.proc.poll() is None
    logs = Logs(bare)
    logs.deny("first.example")
    f.until("first.example")
    logs.allow("second.example", id=B, name="other")
    f.until("second.example")
    logs.say("fill", A, "demo", 3000)  # over a change of segments
    logs.deny("third.example")
    f.until("third.example")
    assert sum("h1.example" in line for line in f.lines) == 3
    f.stop()
    logs.finish()


def test_follow_of_one_by_name_before_it_exists(bare):
    f = Follower(bare, "audit", "show", "wanted", "-f", "--json")
    logs = Logs(bare)
    logs.deny("not-this.example", name="unwanted")
    logs.deny("this.example", id=B, name="wanted")
    f.until("this.example")
    assert not any("not-this" in line for line in f.lines)
    assert all(json.loads(line)["name"] == "wanted" for line in f.lines)
    f.stop()
    logs.finish()


def test_follow_ends_when_nobody_reads(bare, logs):
    logs.deny()
    f = Follower(bare, "audit", "show", "-f")
    f.until("evil.example")
    f.proc.stdout.close()
    logs.deny("more.example")
    assert f.proc.wait(10) == 0


def processor_seconds():
    """CPU time of all awaited processes: the elapsed time depends on the load of the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_long_log_in_bounded_memory_and_time(bare, logs):
    logs.say("fill", A, "demo", 100000)
    logs.finish()
    # A sanitizer reserves terabytes of addresses for itself: there only the time is checked.
    limit = "" if b"__asan_init" in pathlib.Path(SBX).read_bytes() else "ulimit -v 200000; "
    for args in (["verify"], ["show"], ["export", "-o", "/dev/null"]):
        begin = processor_seconds()
        script = limit + 'exec "$0" "$@"'
        p = subprocess.run(["sh", "-c", script, SBX, "audit", *args], env=bare.env,
                           capture_output=True, text=True)
        assert p.returncode == 0, p.stderr
        assert processor_seconds() - begin < 10


def test_the_log_is_plain_and_tells_apart_what_was_not_connected(bare, logs):
    logs.deny(
        reason="no applicable policies for op(action=net:connect:tcp, "
               "resource=net:domain:evil.example:443)")
    logs.allow("good.example")
    logs.allow("away.example", rule="<dial failed>", reason="the name does not exist")
    logs.deny("quiet.example", reason="nothing was sent within 10 s")
    text = policy_log(bare).stdout
    assert "no rule allows it" in text and "op(action" not in text
    blocked, allowed, away, quiet = text.split("\n\n")
    assert quiet.startswith(
        "Allowed, but closed because the sandbox sent nothing:\n") and "quiet.example" in quiet
    assert "quiet.example" not in blocked
    assert "good.example" in allowed and "away.example" not in allowed
    assert away.startswith("Allowed, but not connected:\n") and "away.example" in away
    assert "op(action" in policy_log(bare, "--wide").stdout
    assert len(json.loads(policy_log(bare, "--json").stdout)["allowed_hosts"]) == 2
