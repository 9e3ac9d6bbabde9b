# SPDX-License-Identifier: Apache-2.0
"""SBX_TRACE and `sbx debug`: what they print, and what they never print."""
import base64
import json
import os
import re
import secrets
import stat

import pytest

ALL = "ipc,net,vm,exec"
CANARY = "canary-" + secrets.token_hex(20)


def daemon(inst):
    return json.loads(inst.sbx("version", "--json", check=0).stdout)["daemon"]


def state_of(inst, name):
    ident = json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)["id"]
    return inst.root / "state/sbx/sandboxes" / ident


def has_canary(data):
    raw = CANARY.encode()
    return any(form in data for form in (raw, raw.hex().encode(), base64.b64encode(raw)[:-4]))


def parts_of(text):
    found = re.split(r"^==== (.*) ====$", text, flags=re.M)
    return dict(zip(found[1::2], found[2::2]))


@pytest.mark.parametrize("words", ["all", "net,", "ipc,http", "NET"])
def test_an_unknown_kind_of_trace_is_an_error_and_starts_nothing(bare, words):
    p = bare.sbx("ls", env={"SBX_TRACE": words}, check=2)
    assert p.stderr == (f"error: invalid SBX_TRACE '{words}': expected a comma-separated list of "
                        "ipc, net, vm and exec\n")
    assert not (bare.root / "run/sbx/sbxd.sock").exists()


def test_sbxd_is_restarted_with_the_trace_of_the_command(bare):
    bare.sbx("ls", check=0)
    first = daemon(bare)
    assert first["trace"] == ""
    bare.sbx("ls", check=0, env={"SBX_TRACE": "net"})
    second = daemon(bare)
    assert second["trace"] == "net" and second["pid"] != first["pid"]
    assert "trace    net\n" in bare.sbx("daemon", "status", check=0).stdout
    bare.sbx("ls", check=0)
    assert daemon(bare) == second
    bare.sbx("ls", check=0, env={"SBX_TRACE": "net"})
    assert daemon(bare) == second
    bare.sbx("ls", check=0, env={"SBX_TRACE": ""})
    assert daemon(bare)["trace"] == ""


def test_exec_prints_its_steps_without_arguments_and_environment(inst):
    inst.env["SBX_TRACE"] = "exec"
    inst.create()
    p = inst.sbx("exec", "-e", f"OWN={CANARY}", "demo", "sh", "-c", "exit 3", CANARY, check=3)
    steps = re.findall(r"^\d+\.\d{3} sbx\[\d+\] trace exec: (.*)$", p.stderr, re.M)
    assert steps == ["open, without a terminal", "started", "exit with status 3", "close"]
    assert not has_canary(p.stderr.encode())


def test_sbxd_traces_its_messages_to_a_file(vault):
    vault.env["SBX_TRACE"] = "ipc"
    vault.create()
    vault.sbx("secret", "set", "anthropic", input=CANARY, check=0)
    vault.sbx("exec", "demo", "true", check=0)
    path = vault.root / "state/sbx/sbxd-trace.log"
    lines = path.read_text()
    ident = state_of(vault, "demo").name
    for want in (f"keeper->sbxd of {ident} HELLO(1) id=0 ", f"sbxd->keeper of {ident} STREAM(4) ",
                 "vault->peer HELLO(1) id=0 ", "peer->vault SET(4) "):
        assert f" trace ipc: {want}" in lines, (want, lines)
    assert re.search(r"STREAM\(4\) id=\d+ \d+ bytes fd$", lines, re.M)
    assert not has_canary(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "trace" not in (vault.root / "state/sbx/sbxd.log").read_text()


def test_without_the_variable_nothing_is_traced(inst):
    inst.create()
    p = inst.sbx("exec", "demo", "true", check=0)
    assert p.stderr == ""
    assert not list(inst.root.rglob("*trace*"))


def test_a_report_has_states_logs_and_traces_and_no_secret(vault):
    vault.env["SBX_TRACE"] = ALL
    vault.create("demo", "-e", f"OWN={CANARY}")
    vault.sbx("secret", "set", "anthropic", input=CANARY, check=0)
    vault.sbx("exec", "-e", f"TOKEN={CANARY}", "demo", "sh", "-c", ": $0", CANARY, check=0)
    state = state_of(vault, "demo")
    console = f"1.000 sbx-keeper[7] info: console: {CANARY}\n"
    (state / "keeper.log").write_text(
        f"1.000 sbx-keeper[7] info: starting qemu \x1b[2J\n{console}{console}")
    (state / "trace.log").write_text("1.000 sbx-keeper[7] trace vm: qmp event STOP\n")
    p = vault.sbx("debug", "demo", "-o", "report.txt", check=0)
    report = vault.work / "report.txt"
    assert p.stdout == "" and "Wrote report.txt" in p.stderr
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert not has_canary(report.read_bytes())
    parts = parts_of(report.read_text())
    assert list(parts) == ["sbx version", "sbx inspect demo", "sbx policy ls --wide demo",
                           "sbx policy log --limit 50 demo", "sbx settings list",
                           "sbx diagnose", "processes", f"{state}/keeper.log",
                           f"{state}/trace.log", f"{vault.root}/state/sbx/sbxd.log",
                           f"{vault.root}/state/sbx/sbxd-trace.log",
                           f"{vault.root}/state/sbx/vault.log"]
    assert state.name in report.read_text().splitlines()[0]
    assert "OWN" in parts["sbx inspect demo"] and "running" in parts["sbx inspect demo"]
    assert "vm.memory" in parts["sbx settings list"]
    assert re.match(r"\n\d+ \S+ +state [RSD], ", parts["processes"])
    assert parts[f"{state}/keeper.log"] == ("\n1.000 sbx-keeper[7] info: starting qemu ?[2J\n"
                                            "(2 lines of the guest console omitted)\n\n")
    assert "qmp event STOP" in parts[f"{state}/trace.log"]
    assert "STREAM(4)" in parts[f"{vault.root}/state/sbx/sbxd-trace.log"]


def test_a_report_on_stdout_replaces_nothing(inst):
    inst.create()
    p = inst.sbx("debug", "demo", check=0)
    assert "sbx inspect demo" in parts_of(p.stdout) and not os.listdir(inst.work)


def test_a_report_follows_no_link_and_has_the_end_of_a_long_log(inst):
    inst.create()
    state = state_of(inst, "demo")
    (inst.home / "id_rsa").write_text(CANARY)
    (state / "trace.log").symlink_to(inst.home / "id_rsa")
    (state / "keeper.log").write_text("first\n" + "x" * 99 + "\n" + ("y" * 99 + "\n") * 20000
                                      + "last\n")
    p = inst.sbx("debug", "demo", check=0)
    parts = parts_of(p.stdout)
    assert not has_canary(p.stdout.encode())
    assert "(cannot be read: " in parts[f"{state}/trace.log"]
    log = parts[f"{state}/keeper.log"]
    assert log.endswith("\nlast\n\n") and log.startswith("\n" + "y" * 99 + "\n")
    assert (1 << 20) - 200 < len(log) < (1 << 20) + 10


def test_a_report_of_an_unknown_sandbox_is_an_error(inst):
    p = inst.sbx("debug", "nosuch", "-o", "report.txt", check=1)
    assert "nosuch" in p.stderr and not (inst.work / "report.txt").exists()


def test_a_report_in_a_workspace_follows_no_link(inst):
    ws = inst.work / "ws"
    ws.mkdir()
    inst.sbx("create", "shell", "--name", "one", ws, check=0)
    (inst.home / "dir").mkdir()
    (ws / "out").symlink_to(inst.home / "dir")
    p = inst.sbx("debug", "one", "-o", ws / "out/report.txt", check=1)
    assert "symbolic link" in p.stderr and not os.listdir(inst.home / "dir")
