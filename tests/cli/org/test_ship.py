# SPDX-License-Identifier: Apache-2.0
"""sbx audit export --follow, on logs that a real writer writes; no sandbox."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import SBX
from test_audit import A, B, Logs

PATIENCE_S = 60


@pytest.fixture
def logs(bare):
    made = Logs(bare)
    yield made
    made.proc.kill()
    made.proc.wait()


class Export:
    def __init__(self, inst, *args, command=()):
        rest = ["--", *map(str, command)] if command else []
        self.out = inst.root / f"out.{time.monotonic_ns()}"
        self.proc = subprocess.Popen([SBX, "audit", "export", "--follow", *map(str, args), *rest],
                                     env=inst.env, stdin=subprocess.DEVNULL,
                                     stdout=self.out.open("wb"), stderr=subprocess.PIPE)

    def stop(self, how=signal.SIGTERM):
        self.proc.send_signal(how)
        self.proc.wait(PATIENCE_S)
        return self.proc.stderr.read().decode()


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def records_of(path):
    """(sandbox, seq) of each record, without lines that are none."""
    return [(r["sandbox"], r["seq"]) for r in map(json.loads, lines_of(path)) if "seq" in r and
            "sbx_audit_cut" not in r]


def whole_log(logs, id):
    return [line for path in sorted((logs.dir / id).glob("*.jsonl")) for line in lines_of(path)]


def settled(logs, *ids):
    for id in ids:
        logs.say("sync", id)
    return [line for id in ids for line in whole_log(logs, id)]


def test_a_second_start_continues_where_the_first_one_stopped(bare, logs):
    position, got = bare.root / "position", []
    for i in range(3):
        logs.deny(f"first{i}.example")
        e = Export(bare, "--position", position)
        if i == 1:  # a log that begins while it is followed
            logs.allow(id=B, name="second")
        logs.deny(f"then{i}.example")
        want = settled(logs, A, *([B] if i else []))
        until(lambda: len(got) + len(lines_of(e.out)) == len(want) + 1)
        assert e.stop() == ""
        got += lines_of(e.out)
    assert json.loads(got[0])["sbx_audit_export"] == 1
    # Each log byte for byte, nothing twice, nothing missing.
    for id in (A, B):
        assert [x for x in got[1:] if json.loads(x)["sandbox"] == id] == whole_log(logs, id)
    # Without a position it begins again.
    e = Export(bare, "demo")
    until(lambda: lines_of(e.out)[1:] == whole_log(logs, A))
    e.stop()


def test_a_command_gets_each_record_once(bare, logs):
    """Also if it fails, is killed or reads nothing; its arguments pass through no shell."""
    out, tries = bare.root / "a b; touch $(c)", bare.root / "tries"
    script = ('echo >>"$1"; case $(wc -l <"$1") in 1) exit 1;; 2) kill -9 $$;; '
              '3) cat >>"$0.lost"; exit 7;; *) cat >>"$0";; esac')
    logs.deny()
    logs.say("fill", A, "demo", 2500)
    want = settled(logs, A)
    e = Export(bare, "--position", bare.root / "position",
               command=("sh", "-c", script, out, tries))
    until(lambda: len(lines_of(out)) == len(want) + 1)
    told = e.stop()
    assert lines_of(out)[1:] == want
    assert "sh exited with status 1: the records stay in the logs, next attempt in 1 s" in told
    assert "sh was killed by signal 9" in told and "next attempt in 4 s" in told
    # At most 1,000 records each: three tries failed, then three batches.
    assert len(lines_of(tries)) == 6
    assert lines_of(e.out) == []


def test_rotation_and_a_prune_lose_and_repeat_nothing(inst):
    logs = Logs(inst)
    try:
        got = inst.root / "got"
        run = {"command": ("sh", "-c", 'cat >>"$0"', got)}
        position = ("demo", "--position", inst.root / "position")
        e = Export(inst, *position, **run)
        logs.say("fill", A, "demo", 6000)  # segments of 1 MiB
        want = settled(logs, A)
        assert len(list((logs.dir / A).glob("*.jsonl"))) > 1
        until(lambda: len(lines_of(got)) == len(want) + 1)
        # What was passed on is pruned: the next start continues.
        e.stop()
        inst.sbx("audit", "prune", "demo", "--keep-size", "1m", "--yes", check=0)
        assert not logs.segment().exists()
        e = Export(inst, *position, **run)
        logs.say("fill", A, "demo", 10)
        logs.say("sync", A)
        last = json.loads(whole_log(logs, A)[-1])["seq"]
        until(lambda: records_of(got)[-1] == (A, last))
        assert records_of(got) == [(A, n) for n in range(1, last + 1)]
        assert e.stop() == ""
        # What was not passed on is pruned: its signed cut is passed on.
        logs.say("fill", A, "demo", 12000)
        logs.say("sync", A)
        inst.sbx("audit", "prune", "demo", "--keep-size", "1m", "--yes", check=0)
        e = Export(inst, *position, **run)
        until(lambda: records_of(got)[-1] == (A, json.loads(whole_log(logs, A)[-1])["seq"]))
        assert "records of the audit log of aaaaaaaaaaaa were pruned before" in e.stop()
        cut = json.loads(lines_of(got)[last + 1])
        assert cut["sbx_audit_cut"] == 1
        assert records_of(got)[last:] == [
            (A, n) for n in range(cut["seq"] + 1, records_of(got)[-1][1] + 1)]
    finally:
        logs.proc.kill()
        logs.proc.wait()


def test_killed_at_any_time_it_loses_nothing(bare, logs):
    """A batch may be repeated then; in each log the order stays."""
    got = bare.root / "got"
    args = ("--position", bare.root / "position")
    command = ("sh", "-c", 'cat >>"$0"; sleep 0.05', got)
    for i in range(12):
        logs.say("fill", A, "demo", 400)
        e = Export(bare, *args, command=command)
        with contextlib.suppress(subprocess.TimeoutExpired):
            e.proc.wait(0.03 * i)
        e.stop(signal.SIGKILL)
    want = settled(logs, A)
    e = Export(bare, *args, command=command)
    until(lambda: (A, len(want)) in records_of(got))
    e.stop()
    seen = 0
    for _, seq in records_of(got):
        assert seq <= seen + 1
        seen = max(seen, seq)
    assert seen == len(want)


def test_heads_alone(bare, logs):
    logs.say("fill", A, "demo", 1500)
    heads = [x for x in settled(logs, A) if b'"kind":"head"' in x]
    e = Export(bare, "--heads", "--position", bare.root / "position")
    until(lambda: lines_of(e.out)[1:] == heads)
    e.stop()
    # The last one is the stored head: a rollback of both is visible with it.
    assert lines_of(e.out)[-1] == (logs.dir / "heads" / A).read_bytes()


def test_a_position_is_used_by_one_process_and_never_guessed(bare, logs):
    logs.deny()
    logs.finish()
    position = bare.root / "position"
    e = Export(bare, "--position", position)
    until(position.exists)
    p = bare.sbx("audit", "export", "--follow", "--position", position, check=1)
    assert "another process exports with the position" in p.stderr
    e.stop()
    assert os.stat(position).st_mode & 0o777 == 0o600
    for bad in ("", "{}", '{"sbx_audit_position":1,"logs":{"x":{"log":"00","seq":1}}}', "x"):
        position.write_text(bad)
        p = bare.sbx("audit", "export", "--follow", "--position", position, check=1)
        assert "is not a position of sbx audit export" in p.stderr and p.stdout == ""


def test_usage(bare):
    for args, says in ((("--heads",), "--heads requires --follow"),
                       (("--position", "x"), "--position requires --follow"),
                       (("--", "cat"), "a command requires --follow"),
                       (("--follow", "--"), "-- requires a command"),
                       (("--follow", "-o", "x"), "not to --output")):
        assert says in bare.sbx("audit", "export", *args, check=2).stderr


def test_a_command_that_does_not_exist_ends_it(bare, logs):
    logs.deny()
    logs.finish()
    p = bare.sbx("audit", "export", "--follow", "--", "/nonexistent/program", check=1)
    assert "cannot execute /nonexistent/program" in p.stderr


def test_the_reader_of_stdout_leaves(bare, logs):
    logs.deny()
    p = subprocess.Popen([SBX, "audit", "export", "--follow"], env=bare.env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"sbx_audit_export" in p.stdout.readline()
    p.stdout.close()
    assert p.wait(PATIENCE_S) == 0 and p.stderr.read() == b""
