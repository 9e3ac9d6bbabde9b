# SPDX-License-Identifier: Apache-2.0
"""sbx stats, with the real sbxd and a simulated keeper, whose processes are processes of this
machine."""
import json
import os
import signal
import subprocess
import time

from conftest import SBX
from term import Terminal

BURN = "while time.process_time() < 1: pass"


def stats(inst, *args):
    out = inst.sbx("stats", "--no-stream", "--json", *args, check=0).stdout
    return {s["name"]: s for s in json.loads(out)["sandboxes"]}


def folder(inst, name):
    ident = json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)["id"]
    return inst.root / "state/sbx/sandboxes" / ident


def test_running_sandboxes_are_listed_and_others_on_request(inst):
    assert stats(inst) == {}
    p = inst.sbx("stats", "--no-stream", check=0)
    heading = "SANDBOX CPU % MEM USAGE / LIMIT MEM % NET IN / OUT DISK PIDS"
    assert p.stdout.split() == heading.split()
    inst.create("demo", "--cpus", "2", "-m", "1g")
    inst.create("other")
    inst.sbx("stop", "other", check=0)
    assert list(stats(inst)) == ["demo"]
    found = stats(inst, "--all")
    assert list(found) == ["demo", "other"] == list(stats(inst, "other", "demo"))
    assert found["demo"]["cpus"] == 2 and found["demo"]["memory"] == 1 << 30
    assert found["demo"]["processes"] >= 1 and found["demo"]["memory_used"] > 1 << 20
    assert all(found["other"][key] is None for key in (
        "cpu_percent", "cpu_ms", "memory_used", "net_sent", "net_received", "processes"))
    lines = inst.sbx("stats", "--all", "--no-stream", check=0).stdout.splitlines()
    assert lines[1].split()[0] == "demo" and " / 1 GiB" in lines[1]
    assert lines[2].split()[:5] == ["other", "-", "-", "-", "-"]
    p = inst.sbx("stats", "demo", "nosuch", check=1)
    assert "no sandbox named nosuch" in p.stderr and "sbx ls" in p.stderr and p.stdout == ""


def test_work_in_a_sandbox_shows(inst):
    """What runs in it is a process of the host: its time stays when it has exited."""
    inst.create("demo")
    before = stats(inst)["demo"]
    inst.sbx("exec", "demo", "python3", "-c", "import time\n" + BURN, check=0)
    after = stats(inst)["demo"]
    assert after["cpu_ms"] - before["cpu_ms"] >= 900, (before, after)
    busy = subprocess.Popen([SBX, "exec", "demo", "python3", "-c", "while True: pass"],
                            env=inst.env, cwd=inst.work)
    try:
        deadline = time.monotonic() + 60
        while (now := stats(inst)["demo"])["cpu_percent"] < 5:
            assert time.monotonic() < deadline, now
        assert now["processes"] > after["processes"]
    finally:
        busy.kill()
        busy.wait()


def test_bytes_and_blocks_are_counted(inst):
    inst.create("demo")
    place = folder(inst, "demo")
    before = stats(inst)["demo"]
    assert before["net_sent"] == before["net_received"] == 0
    (place / "net").write_text(f"{3 << 20} {5 << 30}")
    (place / "root.9.qcow2").write_bytes(b"x" * (4 << 20))
    deadline = time.monotonic() + 60
    # sbxd queries a keeper that has been silent for two seconds.
    while (now := stats(inst)["demo"])["net_sent"] == 0:
        assert time.monotonic() < deadline
    assert (now["net_sent"], now["net_received"]) == (3 << 20, 5 << 30)
    assert (4 << 20) <= now["disk_used"] - before["disk_used"] < (5 << 20)
    assert " 5 GiB / 3 MiB " in inst.sbx("stats", "--no-stream", check=0).stdout
    # A hostile number does not become negative.
    (place / "net").write_text(f"{(1 << 64) - 1} 7")
    while (now := stats(inst)["demo"])["net_received"] != 7:
        assert time.monotonic() < deadline
    assert now["net_sent"] == (1 << 63) - 1


def test_it_repeats_until_it_is_interrupted(inst):
    inst.create("demo")
    p = subprocess.Popen([SBX, "stats", "--json"], env=inst.env, cwd=inst.work, text=True,
                         stdout=subprocess.PIPE)
    lines = [json.loads(p.stdout.readline()) for _ in range(2)]
    assert [s["name"] for line in lines for s in line["sandboxes"]] == ["demo", "demo"]
    assert lines[0]["sampled_at"] < lines[1]["sampled_at"]
    p.stdout.close()  # the next output fails, as with `| head`
    assert p.wait(60) in (0, 1)
    p = subprocess.Popen([SBX, "stats"], env=inst.env, cwd=inst.work, stdout=subprocess.PIPE)
    assert b"SANDBOX" in p.stdout.readline()
    os.kill(p.pid, signal.SIGINT)
    rest = p.stdout.read()
    assert p.wait(60) == -signal.SIGINT and b"\x1b" not in rest
    p.stdout.close()


def test_on_a_terminal_a_table_replaces_the_one_before(inst):
    inst.create("demo")
    with Terminal(inst, SBX, "stats") as t:
        t.wait_for("demo")
        inst.create("more")
        shown = t.wait_for("more", seconds=60)
        assert shown.count("SANDBOX") == 1 and shown.count("demo") == 1
        t.key("C-c")
        assert t.wait_end(60) == 130
