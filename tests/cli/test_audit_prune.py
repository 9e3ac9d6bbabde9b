# SPDX-License-Identifier: Apache-2.0
"""`sbx audit prune` on logs of a real writer, with a real sbxd that signs and removes; and `sbx
audit home`: create records the files, changes are reported, and the content of files is never
shown."""
import json
import os
import pty
import shutil
import subprocess
import time

import pytest

from conftest import SBX
from test_audit import A, B, Logs, logs, policy_log  # noqa: F401 (logs is a fixture)


def fill(logs, n=9000):
    """Segments of the writer have 1 MiB."""
    logs.say("fill", A, "demo", n)
    logs.deny(id=B, name="second")


def segments(logs, id=A):
    return sorted(p.name for p in (logs.dir / id).glob("0*.jsonl"))


def verify(inst, *args, check=0):
    return {log["id"]: log
            for log in json.loads(inst.sbx("audit", "verify", "--json", *args,
                                           check=check).stdout)["logs"]}


def journal(inst, action):
    lines = inst.sbx("audit", "show", "sbxd", "--json", "-n", "0").stdout.splitlines()
    return [r for r in map(json.loads, lines) if r.get("action") == action]


def test_a_pruned_log_verifies_and_says_what_was_pruned(bare, logs, tmp_path):
    fill(logs)
    logs.finish()
    before = verify(bare)[A]
    assert before["segments"] > 3
    dry = bare.sbx("audit", "prune", "demo", "--keep-size", "2m", "--dry-run", check=0).stdout
    assert "To remove:" in dry and f"demo  {A}" in dry and len(segments(logs)) == before["segments"]
    out = bare.sbx("audit", "prune", "demo", "--keep-size", "2m", "--yes", check=0).stdout
    after = verify(bare)[A]
    gone = after["pruned"]["records"]
    assert f"{gone} records removed" in out and gone > 1000
    assert after["ok"] and after["records"] + gone == before["records"]
    assert after["segments"] == len(segments(logs)) < before["segments"]
    text = bare.sbx("audit", "verify", "demo", check=0).stdout
    assert f"OK, records 1 to {gone} pruned on 20" in text
    # It was recorded, before and after, under the name of the sandbox.
    for action in ("audit-prune", "audit-pruned"):
        record, = journal(bare, action)
        assert record["count"] == gone and record["rule"].startswith(A + ":") and record[
            "name"] == "demo"
    assert "lifecycle audit-prune" in bare.sbx("audit", "show", "demo", "--since", "1h",
                                               check=0).stdout
    # The other commands read on.
    shown = bare.sbx("audit", "show", A, "--json", "--all", "-n", "0", check=0).stdout.splitlines()
    assert [r["seq"] for r in map(json.loads, shown) if r["sandbox"] == A][0] == gone + 1
    assert "h999.example:443" in policy_log(bare, "demo").stdout
    path = tmp_path / "export.jsonl"
    bare.sbx("audit", "export", "-o", path, check=0)
    key = (logs.dir / "key.pub").read_text().strip()
    exported = {log["id"]: log for log in json.loads(
        bare.sbx("audit", "verify", "--json", "--file", path, "--key", key,
                 check=0).stdout)["logs"]}
    assert exported[A]["ok"] and exported[A]["pruned"] == after["pruned"] and exported[B]["ok"]
    lines = path.read_text().splitlines(True)
    cut = next(i for i, line in enumerate(lines) if line.startswith('{"sbx_audit_cut"'))
    path.write_text("".join(lines[:cut] + lines[cut + 1:]))
    assert "BAD" in bare.sbx("audit", "verify", "--file", path, check=1).stdout


def test_all_logs_by_age_also_of_removed_sandboxes(bare, logs):
    fill(logs, 100)
    logs.finish()
    assert "No audit records to remove" in bare.sbx("audit", "prune", "--all", "--older-than",
                                                    "30d", "--yes", check=0).stdout
    later = "2100-01-01T00:00:00Z"
    out = bare.sbx("audit", "prune", "--all", "--older-than", later, "--yes", check=0).stdout
    assert f"demo  {A}" in out and f"second  {B}" in out
    got = verify(bare)
    assert got[A]["records"] == got[B]["records"] == 2 and got[A]["pruned"]["records"] > 100
    assert got["sbxd"]["ok"] and got["sbxd"]["pruned"] is None  # sbxd writes its last segment
    # Nothing is left to remove, and the next writer continues the log.
    assert "No audit records to remove" in bare.sbx("audit", "prune", "--all", "--older-than",
                                                    later, "--yes", check=0).stdout
    again = Logs(bare)
    again.deny("later.example")
    again.finish()
    assert verify(bare)[A]["ok"] and "later.example" in policy_log(bare, "demo").stdout


def test_the_log_of_a_running_sandbox_keeps_what_is_written(bare, logs):
    fill(logs)
    n = len(segments(logs))
    bare.sbx("audit", "prune", "demo", "--keep-size", "0", "--yes", check=0)
    assert n > 1 and len(segments(logs)) == 1
    logs.deny("after.example")
    logs.finish()
    assert verify(bare)[A]["ok"] and "after.example" in policy_log(bare, "demo").stdout


def test_a_changed_missing_or_earlier_cut_is_found(bare, logs):
    fill(logs)
    logs.finish()
    whole = bare.root / "whole"
    shutil.copytree(logs.dir / A, whole)
    bare.sbx("audit", "prune", "demo", "--keep-size", "2m", "--yes", check=0)
    cut = logs.dir / "cuts" / A
    good = cut.read_bytes()
    cut.write_bytes(good.replace(b'"until":1', b'"until":2'))
    assert verify(bare, check=1)[A]["bad"] == "cut"
    p = bare.sbx("audit", "prune", "demo", "--keep-size", "0", "--yes", check=1)
    assert "try: sbx audit verify" in p.stderr and "records removed" not in p.stdout
    cut.unlink()
    assert verify(bare, check=1)[A]["bad"] in ("missing-segment", "cut-rollback")
    # All that was pruned is put back, without the cut: only the log of sbxd knows.
    for path in whole.glob("0*.jsonl"):
        shutil.copy(path, logs.dir / A)
    assert verify(bare, check=1)[A]["bad"] == "cut-rollback"
    cut.write_bytes(good)
    assert verify(bare)[A]["ok"]


def test_a_new_log_in_place_of_one_that_was_moved_away_is_good(bare, logs):
    fill(logs)
    logs.finish()
    bare.sbx("audit", "prune", "demo", "--keep-size", "2m", "--yes", check=0)
    shutil.rmtree(logs.dir / A)
    (logs.dir / "heads" / A).unlink()
    (logs.dir / "cuts" / A).unlink()
    again = Logs(bare)
    again.deny()
    again.finish()
    assert verify(bare)[A]["ok"]


def test_a_bad_log_is_left_alone_and_the_others_are_pruned(bare, logs):
    fill(logs)
    logs.finish()
    first = logs.segment()
    first.write_bytes(first.read_bytes().replace(b"h3.example", b"h4.example", 1))
    was = segments(logs)
    p = bare.sbx("audit", "prune", "--all", "--keep-size", "0", "--yes", check=1)
    assert "was changed" in p.stderr and segments(logs) == was
    assert verify(bare, "second")[B]["pruned"]["records"] > 0


def test_it_prompts_and_needs_yes_without_a_terminal(bare, logs):
    fill(logs)
    logs.finish()
    was = segments(logs)
    p = bare.sbx("audit", "prune", "demo", "--keep-size", "0", check=1)
    assert "try: sbx audit prune demo --keep-size 0 --yes\n" in p.stderr and segments(logs) == was
    master, slave = pty.openpty()
    for word, left in ((b"n\n", was), (b"y\n", segments(logs)[:0])):
        os.write(master, word)
        subprocess.run([SBX, "audit", "prune", "demo", "--keep-size", "0"], env=bare.env,
                       stdin=slave, stdout=subprocess.DEVNULL,
                       stderr=slave, timeout=60, check=False)
        assert segments(logs) == left if left else not set(was) & set(segments(logs))
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize("args, word", [
    (["--older-than", "1d"], "SANDBOX or --all"),
    (["demo", "--all", "--older-than", "1d"], "SANDBOX or --all"),
    (["demo"], "--older-than TIME and --keep-size SIZE"),
    (["demo", "--older-than", "1d", "--keep-size", "1m"], "--older-than TIME and --keep-size SIZE"),
    (["demo", "--older-than", "soon"], "soon"),
    (["demo", "--keep-size", "much"], "invalid --keep-size 'much'"),
])
def test_options_are_used_or_refused(bare, args, word):
    p = bare.sbx("audit", "prune", *args, "--yes", check=2)
    assert word in p.stderr


def test_there_may_be_nothing(bare):
    assert "No audit records to remove" in bare.sbx("audit", "prune", "--all", "--older-than", "1d",
                                                    "--yes", check=0).stdout
    p = bare.sbx("audit", "prune", "demo", "--keep-size", "1m", check=1)
    assert "no audit log or sandbox named 'demo'" in p.stderr


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_audit_keep_size_prunes_by_itself(bare, logs):
    fill(logs)
    logs.say("fill", B, "second", 9000)
    logs.finish()
    before = verify(bare)
    broken = logs.segment(B)
    broken.write_bytes(broken.read_bytes().replace(b"h3.example", b"h4.example", 1))
    was = segments(logs, B)
    bare.sbx("ls", check=0)
    bare.sbx("settings", "set", "audit.keep-size", "2m", check=0)
    wait_for(lambda: journal(bare, "audit-pruned"))
    after = verify(bare, "demo")[A]
    assert after["ok"] and after["pruned"]["records"] + after["records"] == before[A]["records"]
    assert 0 < len(segments(logs)) < before[A]["segments"]
    record, = journal(bare, "audit-prune")
    assert record["reason"].endswith(", by the setting audit.keep-size") and record[
        "name"] == "demo"
    # A log that does not verify is evidence.
    assert segments(logs, B) == was


def test_audit_keep_prunes_what_is_older_when_a_sandbox_stops(bare, logs):
    bare.template()
    bare.policy()
    bare.sbx("settings", "set", "audit.keep", "1h", check=0)
    bare.create("other")
    bare.sbx("exec", "other", "true", check=0)
    time.sleep(3)  # what is due by now is done: from here on the stop alone can do it
    logs.say("age", 7200)
    fill(logs)
    logs.say("close", A)
    logs.say("close", B)
    logs.say("age", 0)
    logs.say("fill", "cccccccccccc", "young", 100)
    logs.finish()
    time.sleep(3)
    before = verify(bare)
    assert before[A]["pruned"] is None
    bare.sbx("stop", "other", check=0)
    wait_for(lambda: len(journal(bare, "audit-pruned")) == 2)
    after = verify(bare)
    assert after[A]["ok"] and after[A]["pruned"]["records"] > 9000 and after[B]["pruned"][
        "records"] > 0
    assert after["cccccccccccc"]["records"] == before["cccccccccccc"]["records"] and after[
        "cccccccccccc"]["pruned"] is None
    assert {r["reason"].split(", ")[1]
            for r in journal(bare, "audit-pruned")} == {"by the setting audit.keep"}


def test_audit_keep_needs_an_hour_and_is_off_by_default(bare):
    assert bare.sbx("settings", "get", "audit.keep", check=0).stdout == "0\n"
    assert bare.sbx("settings", "get", "audit.keep-size", check=0).stdout == "0\n"
    p = bare.sbx("settings", "set", "audit.keep", "30m")
    assert p.returncode != 0 and "audit.keep" in p.stderr


# ---- sbx audit home ----


def test_unchanged_changed_and_accepted(inst):
    (inst.home / ".bashrc").write_text("alias ll=ls\n")
    (inst.home / ".ssh").mkdir(mode=0o700)
    (inst.home / ".ssh/id_ed25519").write_text("KEY-OF-THE-USER\n")
    inst.create("demo")
    assert "2 files, none changed" in inst.sbx("audit", "home", "demo", check=0).stdout
    (inst.home / ".bashrc").write_text("evil\n")
    (inst.home / ".ssh/authorized_keys").write_text("ssh-ed25519 AAAA\n")
    p = inst.sbx("audit", "home", "demo", check=1)
    assert ("changed  ~/.bashrc  20" in p.stdout
            and "new      ~/.ssh/authorized_keys  20" in p.stdout)
    assert "sbx audit home --accept demo" in p.stderr
    assert ".bashrc" not in inst.sbx("audit", "home", "demo", "--group", "ssh", check=1).stdout
    assert "none changed" in inst.sbx("audit", "home", "demo", "--group", "git", check=0).stdout
    inst.sbx("audit", "home", "demo", "--accept", check=0)
    assert "none changed" in inst.sbx("audit", "home", "demo", check=0).stdout


def test_the_record_is_closed_and_says_nothing(inst):
    (inst.home / ".netrc").write_text("machine a login b password TOP-SECRET\n")
    inst.create("demo")
    folder = next((inst.root / "state/sbx/sandboxes").iterdir())
    record, key = folder / "home-record", inst.root / "state/sbx/home-record.key"
    assert record.stat().st_mode & 0o777 == key.stat().st_mode & 0o777 == 0o600
    assert "TOP-SECRET" not in record.read_text() and " .netrc\n" in record.read_text()
    inst.sbx("rm", "-f", "demo", check=0)


def test_without_a_record_and_wrong_words(inst):
    inst.create("demo")
    record = next((inst.root / "state/sbx/sandboxes").iterdir()) / "home-record"
    record.unlink()
    assert "created without one" in inst.sbx("audit", "home", "demo", check=125).stderr
    inst.sbx("audit", "home", "demo", "--group", "cups", check=2)
    inst.sbx("audit", "home", "nobody", check=1)
    inst.sbx("audit", "home", check=2)
