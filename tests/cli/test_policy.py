# SPDX-License-Identifier: Apache-2.0
"""`sbx policy`, and the policy in create, run, rename and rm, against the real sbxd; no VM."""
import json
import re
import subprocess
import threading
import time

import pytest

from conftest import SBX
from test_no_sandbox import on_terminal


def rules(inst, *args):
    return json.loads(inst.sbx("policy", "ls", "--json", *args, check=0).stdout)["rules"]


def own(inst):
    return [r for r in rules(inst) if not r["origin"].startswith("preset:")]


def rule_id(p):
    return re.search(r": ([0-9a-f]{12})$", p.stdout.splitlines()[0])[1]


def allowed(inst, target, *args):
    return inst.sbx("policy", "check", "network", target, *args).returncode == 0


def policy_file(inst):
    return inst.root / "state/sbx/policy"


def reloads(inst, name):
    found = json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)["id"]
    path = inst.root / "state/sbx/sandboxes" / found / "reloads"
    return path.read_text().splitlines() if path.exists() else []


# ---- the first run ----

@pytest.mark.parametrize("args,status", [(["create", "shell"], 1), (["run", "--", "true"], 125)])
def test_without_a_policy_and_a_terminal_it_fails_at_once_and_says_what_to_type(bare, args, status):
    bare.template()
    begin = time.monotonic()
    p = bare.sbx(*args, check=status)
    assert "no network policy is set" in p.stderr
    assert "try: sbx policy set-default balanced" in p.stderr
    assert time.monotonic() - begin < 2 and bare.sbx("ls", "-q").stdout == ""
    # a prompt requires a terminal on both sides
    with subprocess.Popen([SBX, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          env=bare.env, cwd=bare.work) as held:
        assert held.wait(60) == status
    bare.policy()
    bare.sbx("create", "shell", "--name", "demo", check=0)


@pytest.mark.parametrize("typed,preset",
                         [(b"\n", "balanced"), (b"2\n", "balanced"), (b"3\n", "deny-all"),
                                          (b"x\n 1 \n", "allow-all"), (b"deny-all\n", "deny-all")])
def test_on_a_terminal_it_asks_once(bare, typed, preset):
    bare.template()
    out, status = on_terminal(bare, ["create", "shell", "--name", "demo"], typed)
    assert status == 0, out
    assert out.count("Choose the network policy") == 1
    assert f"Policy set to {preset}" in out and "Created sandbox" in out
    for name in ("allow-all", "balanced", "deny-all"):
        assert re.search(rf"\d\. {name} +\w", out)
    assert preset in policy_file(bare).read_text() and [r["origin"]
                                                        for r in rules(bare)[:1]] == (
        [f"preset:{preset}"] if preset != "deny-all" else [])
    out, status = on_terminal(bare, ["create", "shell", "--name", "more"])
    assert status == 0 and "Choose" not in out


@pytest.mark.parametrize("typed", [b"\x04", b"x\nx\nx\n"])
def test_no_answer_makes_nothing(bare, typed):
    bare.template()
    out, status = on_terminal(bare, ["create", "shell"], typed)
    assert status == 1 and "sbx policy set-default balanced\r\n" in out
    assert not policy_file(bare).exists() and bare.sbx("ls", "-q").stdout == ""


def test_quiet_create_prints_the_name_only(bare):
    bare.template()
    bare.policy("deny-all")
    p = bare.sbx("create", "shell", "-q", "--name", "demo", "--allow-network", "a.example", check=0)
    assert p.stdout == "demo\n"


def test_run_of_a_sandbox_that_is_there_says_that_nothing_is_allowed(inst):
    inst.create("demo")
    inst.sbx("policy", "reset", "--yes", check=0)
    p = inst.sbx("run", "--name", "demo", "--", "echo", "hi", check=0)
    assert p.stdout == "hi\n"
    assert "no network policy is set: all traffic is denied" in p.stderr
    assert "set-default" in p.stderr


# ---- presets ----

def test_set_default_and_init(bare):
    p = bare.policy("balanced")
    n = len(rules(bare))
    assert f"Policy set to balanced for all sandboxes: {n} rules" in p.stdout and n > 50
    assert allowed(bare, "github.com") and not allowed(bare, "gist.github.com")
    bare.sbx("policy", "allow", "network", "mine.example", check=0)
    p = bare.sbx("policy", "init", "deny-all", "--lock", check=0)
    assert "Policy set to deny-all (locked)" in p.stdout and "1 rule\n" in p.stdout
    assert "Your own rules are kept: 1" in p.stdout
    assert "1 of your allow rules has no effect: deny rules take precedence" in p.stderr
    assert not allowed(bare, "github.com") and not allowed(bare, "mine.example")
    bare.policy("allow-all")
    assert allowed(bare, "anything.example:9999") and not allowed(bare, "192.168.0.1")
    assert [r["resources"] for r in own(bare)] == [["mine.example"]]
    out, status = on_terminal(bare, ["policy", "init"], b"2\n")
    assert status == 0 and "Policy set to balanced" in out


# ---- allow, deny, rm ----

def test_allow_and_deny(inst):
    p = inst.sbx("policy", "allow", "network", "a.example,*.b.example:443", "10.1.2.3:22",
                 "--comment", "for work", check=0)
    assert re.fullmatch(r"Rule added to policy local \(scope: all\): [0-9a-f]{12}\n",
                        p.stdout) and p.stderr == ""
    assert allowed(inst, "a.example") and allowed(inst,
                                                  "x.b.example") and allowed(inst, "10.1.2.3:22")
    assert not allowed(inst, "a.example:22") and not allowed(inst, "b.example")
    r = own(inst)[0]
    assert r["resources"] == ["a.example", "*.b.example:443",
                              "10.1.2.3:22"] and r["decision"] == "allow"
    assert r["scope"] == "global" and r["status"] == "active" and r["comment"] == "for work" and r[
        "origin"] == "local"
    assert r["actions"] == ["net:connect:tcp"] and r["resource_type"] == "network" and r[
        "until"] is None
    again = inst.sbx("policy", "allow", "network", "a.example,*.b.example:443,10.1.2.3:22", check=0)
    assert "already exists" in again.stdout and rule_id(again) == rule_id(p)
    # a deny rule is accepted, and its effect is printed
    p = inst.sbx("policy", "deny", "network", "a.example", check=0)
    assert "The new deny rule overrides 1 allow rule:" in p.stderr and r["id"] in p.stderr
    assert not allowed(inst, "a.example") and allowed(inst, "x.b.example")
    # an allow rule without effect prints a warning, and the suggested command works
    p = inst.sbx("policy", "allow", "network", "a.example:443", check=0)
    assert "has no effect" in p.stderr
    command = re.search(r"try: sbx (policy rm network --id \w+)", p.stderr)[1]
    inst.sbx(*command.split(), check=0)
    assert allowed(inst, "a.example")
    j = json.loads(inst.sbx("policy", "deny", "network", "**", "--json", check=0).stdout)
    assert j["n_overrides"] > 50 and j["rule"]["text"] == "deny network **"


def test_a_rule_for_some_time(inst):
    inst.sbx("policy", "allow", "network", "a.example", "--for", "2s", check=0)
    assert allowed(inst, "a.example")
    assert re.search(r"allow +a\.example +20\d\d-\S+Z", inst.sbx("policy", "ls", "--wide").stdout)
    time.sleep(2.1)
    assert not allowed(inst, "a.example")
    assert re.search(r"allow +a\.example +expired", inst.sbx("policy", "ls", "--wide").stdout)
    assert own(inst)[0]["status"] == "expired"


def test_rm(inst):
    p = inst.sbx("policy", "allow", "network", "a.example,b.example", check=0)
    p = inst.sbx("policy", "rm", "network", "--resource", "a.example", check=0)
    assert "Removed a.example from 1 rule:" in p.stdout
    assert not allowed(inst, "a.example") and allowed(inst, "b.example")
    one = own(inst)[0]["id"]
    p = inst.sbx("policy", "rm", "network", "--id", one, check=0)
    assert p.stdout == f"Rule removed: {one}  allow network b.example\n"
    for args in (["--id", one], ["--resource", "b.example"],
                 ["--resource", "github.com:443", "--resource", "b.example"],
                 ["--resource", "github.com:443", "--decision", "deny"]):
        p = inst.sbx("policy", "rm", "network", *args, check=1)
        assert "not found" in p.stderr
        assert "try: sbx policy ls --wide" in p.stderr
        assert p.stdout == ""
    assert allowed(inst, "github.com")
    j = json.loads(inst.sbx("policy", "rm", "network", "--resource", "github.com:443", "--json",
                            check=0).stdout)
    assert j["n_removed"] == 1 and not allowed(inst,
                                               "github.com") and allowed(inst, "api.github.com")


def test_without_a_policy_nothing_can_be_changed(bare):
    for args in (["allow", "network", "a.example"], ["rm", "network", "--id", "x"], ["ls"],
                 ["inspect", "x"], ["export"]):
        p = bare.sbx("policy", *args, check=1)
        assert "no network policy is set" in p.stderr
        assert "try: sbx policy set-default balanced" in p.stderr
    assert "no network policy is set" in bare.sbx("policy", "reset", "--yes", check=1).stderr


# ---- ls, inspect, check ----

def test_ls(inst):
    inst.create("demo")
    inst.sbx("policy", "deny", "network", "a.example", check=0)
    inst.sbx("policy", "allow", "network", "b.example", "--sandbox", "demo", "--comment",
             "\x1b[31mred", check=1)
    inst.sbx("policy", "allow", "network", "b.example", "--sandbox", "demo", check=0)
    n = len(rules(inst)) - 2
    lines = [line.split(None, 3) for line in
             inst.sbx("policy", "ls", "--summary", check=0).stdout.splitlines()]
    short = inst.sbx("policy", "ls", "--summary").stdout.splitlines()[0].split()
    assert short == ["POLICY", "SOURCE", "APPLIES", "TO", "SUMMARY"]
    assert ["local", "local", "all", "network: 1 deny"] in lines
    assert ["local", "local", "sandbox:demo", "network: 1 allow"] in lines
    assert ["balanced", "preset", "all", f"network: {n} allow"] in lines
    wide = inst.sbx("policy", "ls", "--wide", check=0).stdout.splitlines()
    assert wide[0].split() == ["RULE_ID", "POLICY", "SOURCE", "APPLIES", "TO", "DECISION",
                               "RESOURCES", "UNTIL", "COMMENT"]
    assert len(wide) == n + 3
    # in a pipe, so that grep finds a host
    assert inst.sbx("policy", "ls", check=0).stdout.splitlines() == wide
    assert [r["resources"] for r in rules(inst, "--decision", "deny")] == [["a.example"]]
    inst.create("other")
    for args in (["demo"], ["--sandbox", "demo"]):
        assert len(rules(inst, *args)) == n + 2
    assert len(rules(inst, "other")) == n + 1
    assert "no sandbox named nope" in inst.sbx("policy", "ls", "nope", check=1).stderr


def test_ls_of_an_empty_policy(bare):
    bare.sbx("policy", "import", "-", "--yes", input="policy 1\nend\n", check=0)
    assert "No rules: all traffic is denied" in bare.sbx("policy", "ls", check=0).stdout
    assert rules(bare) == []
    bare.sbx("policy", "allow", "network", "a.example", check=0)
    assert allowed(bare, "a.example") and not allowed(bare, "b.example")


def test_inspect(inst):
    p = inst.sbx("policy", "allow", "network", "a.example,b.example:22", "--for", "8h", "--comment",
                 "why", check=0)
    one = rule_id(p)
    text = inst.sbx("policy", "inspect", one, check=0).stdout
    for label, value in (("rule", one), ("decision", "allow"), ("resources", "a.example"),
                         ("applies to", "all"),
                         ("origin", "local"), ("comment", "why")):
        assert re.search(rf"^{label} +{re.escape(value)}$", text, re.M), (label, text)
    assert inst.sbx("policy", "inspect", one[:8], check=0).stdout == text
    j = json.loads(inst.sbx("policy", "inspect", one, "--json", check=0).stdout)
    assert j["id"] == one and j["until"].endswith("Z")
    assert "rule 'zz' not found" in inst.sbx("policy", "inspect", "zz", check=1).stderr
    preset = next(r["id"] for r in rules(inst) if r["resources"] == ["gitlab.com:443"])
    assert re.search("^group +balanced:forges$",
                     inst.sbx("policy", "inspect", preset, check=0).stdout, re.M)


def test_check_names_the_rule_or_its_absence_and_the_command(inst):
    inst.create("demo")
    p = inst.sbx("policy", "check", "network", "github.com", check=0)
    assert p.stdout.startswith(
        "Allowed: github.com:443\n") and "preset:balanced" in p.stdout and p.stderr == ""
    p = inst.sbx("policy", "check", "network", "blocked.example:8080", "--sandbox", "demo", check=1)
    file = f"  file:   {policy_file(inst)}\n"
    assert p.stdout == "Denied: blocked.example:8080\n  detail: no rule allows it\n" + file
    command = re.search(r"try: sbx (.*)", p.stderr)[1]
    assert command == "policy allow network blocked.example:8080 --sandbox demo"
    inst.sbx(*command.split(), check=0)
    assert allowed(inst, "blocked.example:8080", "--sandbox",
                   "demo") and not allowed(inst, "blocked.example:8080")
    p = inst.sbx("policy", "check", "network", "169.254.169.254:80", check=1)
    assert p.stdout.endswith(
        "  detail: 169.254.169.254 is a cloud metadata address, which only a rule for this address or its network can allow\n"
        + file)
    inst.sbx("policy", "deny", "network", "gitlab.com", check=0)
    p = inst.sbx("policy", "check", "network", "gitlab.com", check=1)
    assert "deny network gitlab.com" in p.stdout and "policy rm network --id" in p.stderr
    j = json.loads(inst.sbx("policy", "check", "network", "gitlab.com", "--json", check=1).stdout)
    assert j["allowed"] is False and j["deny_kind"] == "explicit" and j[
        "target"] == "gitlab.com:443"
    assert j["action"] == "net:connect:tcp" and j["context"] == "global" and j["rule"] and j[
        "remedy"].startswith("sbx policy rm")
    j = json.loads(inst.sbx("policy", "check", "network", "no.example", "--json", check=1).stdout)
    assert j["deny_kind"] == "implicit" and j["rule"] is None
    # as published
    assert j[
        "reason"] == "no applicable policies for op(action=net:connect:tcp, resource=net:domain:no.example:443)"
    inst.sbx("policy", "check", "network", "a..b", check=1)
    assert "no sandbox named nope" in inst.sbx("policy", "check", "network", "a.example",
                                               "--sandbox", "nope", check=1).stderr


# ---- export, import, reset ----

def test_export_and_import(inst):
    inst.sbx("policy", "deny", "network", "a.example", "--comment", "why", check=0)
    text = inst.sbx("policy", "export", check=0).stdout
    assert text.startswith("policy 1\n") and text.endswith(
        "\nend\n") and "deny network a.example  # why\n" in text
    assert " id " not in text and "group balanced:forges  # " in text
    assert inst.sbx("policy", "export", "--all").stdout == policy_file(inst).read_text()
    p = inst.sbx("policy", "export", "team.policy", check=0)
    assert "Wrote" in p.stderr and (inst.work / "team.policy").read_text() == text
    assert "already the same" in inst.sbx("policy", "import", "team.policy", check=0).stdout
    # a change is shown and needs a yes
    (inst.work / "team.policy").write_text(text.replace("deny network a.example  # why",
                                                        "allow network b.example"))
    before = policy_file(inst).read_bytes()
    p = inst.sbx("policy", "import", "team.policy", check=1)
    assert "- deny network a.example  # why" in p.stderr and "+ allow network b.example" in p.stderr
    assert "+1 -1" in p.stderr and "--yes" in p.stderr and policy_file(inst).read_bytes() == before
    out, status = on_terminal(inst, ["policy", "import", "team.policy"], b"n\n")
    assert status == 1 and "Continue? [y/N]" in out and policy_file(inst).read_bytes() == before
    out, status = on_terminal(inst, ["policy", "import", "team.policy"], b"y\n")
    assert status == 0 and "Policy imported" in out and allowed(inst, "b.example")
    assert inst.sbx("policy", "export").stdout == (inst.work / "team.policy").read_text()
    # the preset is still known as one
    inst.sbx("policy", "set-default", "deny-all", "--lock", check=0)
    assert [r["resources"] for r in rules(inst)] == [["b.example"], ["**"]]
    inst.sbx("policy", "set-default", "deny-all", check=0)
    assert [r["resources"] for r in rules(inst)] == [["b.example"]]
    assert list((inst.root / "state/sbx").glob("policy.*")) == []


def test_a_fault_is_named_with_its_line(inst):
    before = policy_file(inst).read_bytes()
    for text, says in (("policy 1\nallow netwrk x\nend\n", "line 2"),
                       ("policy 1\nallow network a.example\n", "truncated"),
                       ("", "truncated"),
                       ("policy 1\nallow network a id x\nallow network b id x\nend\n", "line 3")):
        p = inst.sbx("policy", "import", "-", "--yes", input=text, check=1)
        assert says in p.stderr, p.stderr
    assert "file 'nope' not found" in inst.sbx("policy", "import", "nope", check=1).stderr
    assert policy_file(inst).read_bytes() == before


def test_reset(inst):
    assert "--yes" in inst.sbx("policy", "reset", check=1).stderr
    out, status = on_terminal(inst, ["policy", "reset"], b"\n")
    assert status == 1 and policy_file(inst).exists()
    p = inst.sbx("policy", "reset", "--yes", check=0)
    assert "All traffic is denied" in p.stdout and not policy_file(inst).exists()
    assert not allowed(inst, "github.com")


def test_a_hundred_thousand_rules(inst):
    inst.create("demo")
    (inst.work / "big").write_text("policy 1\n" + "".join(f"allow network h{i}.example.com:443\n"
                                                          for i in range(100000)) + "end\n")
    p = inst.sbx("policy", "import", "big", "--yes", check=0)
    assert "100000 rules: +100000" in p.stderr and "100000 rules" in p.stdout
    assert reloads(inst, "demo")[-1] == "demo"
    assert allowed(inst, "h99999.example.com")
    inst.sbx("policy", "deny", "network", "h99999.example.com", check=0)
    assert not allowed(inst, "h99999.example.com")
    assert len(inst.sbx("policy", "ls", "--wide", check=0).stdout.splitlines()) == 100002
    assert "network: 100000 allow" in inst.sbx("policy", "ls", "--summary", check=0).stdout


# ---- sandboxes ----

def test_create_with_rules(inst):
    p = inst.create("demo", "--allow-network", "a.example,b.example:22", "--allow-network",
                    "c.example",
                    "--deny-network", "**.github.com")
    mine = own(inst)
    assert [r["scope"]
            for r in mine] == ["sandbox:demo"] * 3 and {r["origin"] for r in mine} == {"create"}
    assert allowed(inst, "b.example:22", "--sandbox", "demo") and not allowed(inst, "b.example:22")
    assert not allowed(inst, "api.github.com", "--sandbox",
                       "demo") and allowed(inst, "api.github.com")
    assert "overrides" in p.stderr
    # they were there before it ran
    assert "demo" not in reloads(inst, "demo")
    inst.sbx("rm", "-f", "demo", check=0)
    assert own(inst) == []
    p = inst.sbx("run", "--name", "tmp", "--allow-network", "x.example", "--", "true", check=0)
    assert allowed(inst, "x.example", "--sandbox", "tmp")
    inst.sbx("run", "--name", "tmp", "--allow-network", "y.example", "--", "true", check=0)
    assert allowed(inst, "y.example", "--sandbox",
                   "tmp") and allowed(inst, "x.example", "--sandbox", "tmp")


def test_a_create_that_fails_leaves_no_rules(inst):
    inst.sbx("create", "shell", "--name", "bad", "-e", "MODE=fail", "--allow-network", "a.example",
             check=1)
    assert own(inst) == [] and inst.sbx("ls", "-q").stdout == ""
    inst.create("demo", "--allow-network", "a.example")
    inst.sbx("create", "shell", "--name", "demo", "--allow-network", "b.example", check=1)
    assert [r["resources"] for r in own(inst)] == [["a.example"]]


def test_deny_all_is_an_empty_list_that_the_user_fills(bare):
    """The published recipe: deny everything, then allow what is needed."""
    bare.template()
    bare.policy("deny-all")
    p = bare.sbx("policy", "allow", "network", "a.example,b.example:443,*.c.example", check=0)
    assert p.stderr == ""
    p = bare.create("demo", "--allow-network", "d.example")
    assert "has no effect" not in p.stderr
    for host, yes in (("a.example", True), ("b.example:443", True), ("x.c.example", True),
                      ("d.example", False), ("github.com", False)):
        assert allowed(bare, host) == yes, host
    assert allowed(bare, "d.example", "--sandbox", "demo")


def test_a_locked_policy_denies_what_create_brings_and_says_so(bare):
    bare.template()
    bare.sbx("policy", "set-default", "deny-all", "--lock", check=0)
    p = bare.create("demo", "--allow-network", "a.example")
    assert ("has no effect" in p.stderr and "deny network **" in p.stderr
            and "try: sbx policy set-default deny-all\n" in p.stderr)
    assert not allowed(bare, "a.example", "--sandbox", "demo")
    assert "The policy is locked" in bare.sbx("policy",
                                              "ls").stdout and "The policy is locked" in bare.sbx(
        "policy", "ls", "--wide").stdout
    assert json.loads(bare.sbx("policy", "ls", "--json").stdout)["locked"] is True
    assert "--lock requires deny-all" in bare.sbx("policy", "set-default", "balanced", "--lock",
                                       check=2).stderr


def test_unlocking_lists_the_rules_that_take_effect(bare):
    """A policy that was stored before there was --lock has its deny rule and stays locked."""
    bare.template()
    policy_file(bare).parent.mkdir(mode=0o700, exist_ok=True)
    policy_file(bare).write_text("policy 1\n\ngroup deny-all:nothing\ndeny network **\n\nend\n")
    bare.sbx("policy", "allow", "network", "a.example", check=0)
    bare.create("demo", "--allow-network", "b.example")
    assert not allowed(bare,
                       "a.example") and "The policy is locked" in bare.sbx("policy", "ls").stdout
    out = bare.sbx("policy", "set-default", "deny-all", check=0).stdout
    assert "Rules that had no effect before and take effect now:" in out
    assert "allow network a.example" in out and "allow network b.example" in out and "demo" in out
    assert allowed(bare, "a.example") and "locked" not in bare.sbx("policy", "ls").stdout
    assert "had no effect" not in bare.sbx("policy", "set-default", "deny-all", check=0).stdout


def test_rename_takes_rules_along_and_rm_takes_them_away(inst):
    inst.create("demo", "--allow-network", "a.example")
    inst.sbx("rename", "demo", "other", check=0)
    assert allowed(inst, "a.example", "--sandbox",
                   "other") and reloads(inst, "other")[-1] == "other"
    inst.create("demo")
    assert not allowed(inst, "a.example", "--sandbox", "demo")
    inst.sbx("rm", "-f", "other", check=0)
    inst.create("other")
    assert not allowed(inst, "a.example", "--sandbox", "other")


def test_running_sandboxes_are_told_at_once(inst):
    inst.create("one")
    inst.create("two")
    inst.sbx("policy", "allow", "network", "a.example", check=0)
    assert reloads(inst, "one") == ["one"] and reloads(inst, "two") == ["two"]
    inst.sbx("policy", "deny", "network", "a.example", "--sandbox", "two", check=0)
    assert reloads(inst, "one") == ["one"] and reloads(inst, "two") == ["two", "two"]
    inst.sbx("settings", "set", "network.proxy", "http://proxy.example:3128", check=0)
    assert len(reloads(inst, "one")) == 2
    inst.sbx("settings", "set", "audit.max-size", "2g", check=0)
    assert len(reloads(inst, "one")) == 3
    inst.sbx("settings", "set", "vm.cpus", "2", check=0)
    assert len(reloads(inst, "one")) == 3
    inst.sbx("settings", "set", "disk.reserve", "1g", check=0)
    assert len(reloads(inst, "one")) == 4
    inst.sbx("daemon", "stop", check=0)
    inst.sbx("settings", "unset", "network.proxy", check=0)
    assert not (inst.root / "run/sbx/sbxd.sock").exists(), "settings start nothing"


def test_a_sandbox_that_does_not_take_it_is_named(inst):
    inst.create("demo")
    pid = json.loads(inst.sbx("inspect", "demo", "--json").stdout)["keeper_pid"]
    subprocess.run(["kill", "-STOP", str(pid)], check=True)
    try:
        begin = time.monotonic()
        p = inst.sbx("policy", "deny", "network", "a.example", check=0)
        assert "'demo' has not applied the new policy" in p.stderr and "Rule added" in p.stdout
        assert 3 < time.monotonic() - begin < 8
    finally:
        subprocess.run(["kill", "-CONT", str(pid)], check=True)


def test_changes_from_many_sides(inst):
    errors = []

    def one(i):
        p = inst.sbx("policy", "allow", "network", f"h{i}.example")
        if p.returncode:
            errors.append(p.stderr)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(own(inst)) == 16


def test_changes_are_in_the_audit_log(inst):
    inst.sbx("policy", "deny", "network", "a.example", check=0)
    inst.create("demo", "--allow-network", "b.example")
    text = inst.sbx("audit", "show", check=0).stdout
    for word in ("set-default", "rule-add", "deny network a.example", "create", "demo"):
        assert word in text, (word, text)
    time.sleep(1.2)
    inst.sbx("audit", "verify", check=0)
