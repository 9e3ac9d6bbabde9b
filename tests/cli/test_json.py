# SPDX-License-Identifier: Apache-2.0
"""Every `--json` has the form of sbx(1), JSON: one table of all commands that have the option."""
import json
import re

import pytest

from prove_rig import HEAD, Prove
from test_audit import Logs
from test_staged import F, L, send

KEY = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
TIMES = {"created", "until", "began", "last_seen", "since"}  # and every key that ends in _at
# and _ms, _s
NUMBERS = {"memory", "disk", "size", "shared", "bytes", "suspended_bytes", "ms", "seconds",
           "idle_timeout"}
# objects whose keys are names of variables, files and credentials
NAMED = {"env", "files", "credentials"}

# Each with its arguments; ID is that of a rule, FILE a policy. The sandboxes `demo` and `other`
# exist, `other` is stopped.
WHOLE = {
    "agent ls": [], "agent inspect": ["claude"],
    "api ls": [], "api show": ["npm"], "api test": ["GET api.github.com/repos/acme/app"],
    "approve": [], "audit verify": [],
    "checkpoint": ["demo"], "daemon status": [],
    "diagnose": [], "inspect": ["demo"], "ls": [],
    "open": [], "policy ls": [], "policy inspect": ["ID"], "policy check": ["network", "a.example"],
    "policy allow": ["network", "b.example", "--for", "1h"],
    "policy ask": ["http", "d.example/**", "--method", "POST"],
    "policy deny": ["network", "c.example"], "policy rm": ["network", "--resource", "b.example"],
    "policy log": [], "policy used": [], "policy shrink": [], "policy replay": ["FILE"],
    "policy diff": ["FILE"], "ports": ["other"],
    "prove": ["demo"], "review": ["demo", "--guard"], "secret ls": [], "secret services": [],
    "secret status": [],
    "secret scan": ["--sandbox", "other"],
    "settings list": [], "stats": ["--all", "--no-stream"],
    "template ls": [], "template inspect": ["debian"], "version": [],
    "prune": ["--dry-run"],
}
LINES = {"audit show": [], "audit export": []}  # records as they are in the log


def faults_of(j, at, named=False):
    """Sentences about what differs from the form. `named`: the keys are names."""
    if isinstance(j, list):
        for i, one in enumerate(j):
            yield from faults_of(one, f"{at}[{i}]")
        keys = {frozenset(one) for one in j if isinstance(one, dict)}
        if len(keys) > 1 and not at.startswith("template"):
            differ = sorted(frozenset.union(*keys) - frozenset.intersection(*keys))
            yield f"{at}: objects with different keys: {differ}"
    if not isinstance(j, dict):
        return
    for key, v in j.items():
        here = f"{at}.{key}"
        if not named and not KEY.fullmatch(key):
            yield f"{here}: not lower case with underscores"
        if key.endswith("_at") or key in TIMES:
            if v is not None and not (isinstance(v, str) and TIME.fullmatch(v)):
                yield f"{here}: {v!r} is not a time"
        elif isinstance(v, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", v) and not TIME.fullmatch(v):
            yield f"{here}: {v!r} is a time of another form"
        if key in NUMBERS or key.endswith(("_ms", "_s")):
            if v is not None and (isinstance(v, bool)
                                  or not isinstance(v, int)) and here != "secret status.memory":
                yield f"{here}: {v!r} is not a whole number"
        elif isinstance(v, int) and 10**11 < v < 10**14:
            yield f"{here}: {v} looks like milliseconds since 1970"
        yield from faults_of(v, here, key in NAMED)


def staged_sandbox(vault):
    """With changes of two kinds."""
    folder = vault.root / "staged"
    folder.mkdir()
    vault.create("staged", folder, "--staged")
    send(vault, ("f/a", F, "", b"x"), ("l/l", L, "a", b""))


@pytest.fixture
def full(vault):
    """One of everything: sandboxes that run and are stopped, rules, credentials of each kind,
    decisions, ports."""
    vault.create("demo", "--idle-timeout", "30m", "--disk", "40g")
    vault.create("other")
    staged_sandbox(vault)
    vault.sbx("stop", "other", check=0)
    vault.sbx("ports", "other", "-p", "8080", check=0)
    vault.sbx("policy", "allow", "network", "a.example", check=0)
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 40, check=0)
    vault.sbx("secret", "set-custom", "mine", "--host", "api.example", "--env", "MINE",
              input="value-of-mine-123", check=0)
    logs = Logs(vault)
    logs.deny()
    logs.allow()
    logs.finish()
    return vault


def test_every_command_with_json_is_in_the_table(bare):
    found = set()
    for verb in re.findall(r"^  (\w+) {2,}", bare.sbx("help", check=0).stdout, re.M):
        text = bare.sbx("help", verb, check=0).stdout
        subs = re.findall(r"^  ([\w-]+) {2,}",
                          text.partition("commands:")[2].partition("options:")[0], re.M)
        for name in [f"{verb} {s}" for s in subs] or [verb]:
            if re.search(r"^ +--json ", bare.sbx("help", *name.split(), check=0).stdout, re.M):
                found.add(name)
    assert found == set(WHOLE) | set(LINES)


def test_every_command_prints_the_one_form(full):
    prove = Prove(full)
    prove.probe("files/claim", HEAD + "#: inside\necho seen\n")
    rule = json.loads(full.sbx("policy", "ls", "--json", check=0).stdout)["rules"][-1]["id"]
    policy = full.work / "new.policy"
    policy.write_text("policy 1\nallow network evil.example\nend\n")
    stands_for = {"ID": rule, "FILE": policy}
    got, faults = {}, []
    for command, args in WHOLE.items():
        p = full.sbx(*command.split(), *[stands_for.get(a, a) for a in args], "--json",
                     env=prove.env)
        assert p.returncode in (0, 1), (command, p.stderr)
        got[command] = json.loads(p.stdout)
        assert isinstance(got[command], dict), f"{command} does not print an object"
        faults += faults_of(got[command], command)
    # The staged changes are another object of the same command.
    faults += faults_of(json.loads(full.sbx("review", "staged", "--json", check=0).stdout),
                        "review")
    for command, args in LINES.items():
        for line in full.sbx(*command.split(), *args, "--json", check=0).stdout.splitlines():
            assert isinstance(json.loads(line), dict), command
    assert faults == []
    # One thing has the same form wherever it is printed.
    listed = {r["id"]: r for r in json.loads(full.sbx("policy", "ls", "--json").stdout)["rules"]}
    assert got["policy inspect"] == listed[rule] and set(got["policy allow"]["rule"]) == set(
        listed[rule]) == set(got["policy rm"]["removed"][0])
    assert got["policy deny"]["rule"] == listed[got["policy deny"]["rule"]["id"]]
    boxes = {s["name"]: s for s in got["ls"]["sandboxes"]}
    assert set(boxes["demo"]) == set(boxes["other"]) < set(got["inspect"]) and got["ports"][
        "ports"] == boxes["other"]["ports"]
    # A missing value is null, not 0, and not omitted.
    assert boxes["other"]["keeper_pid"] is None and boxes["other"]["ports"][0][
        "host_port"] is None and boxes["other"]["disk"] is None
    assert boxes["demo"]["stopped_at"] is None and boxes["demo"]["idle_timeout"] == 1800 and boxes[
        "demo"]["disk"] == 40 << 30
    assert [s["used_at"] for s in got["secret ls"]["secrets"]] == [None, None]


def test_an_empty_installation_prints_the_same_keys(bare):
    got = {c: json.loads(bare.sbx(*c.split(), "--json").stdout)
           for c in ("daemon status", "version", "ls", "secret status", "secret ls")}
    assert got["daemon status"]["pid"] is None and got["daemon status"]["version"] is None and got[
        "version"]["daemon"] is None
    assert got["ls"] == {"sandboxes": []} and got["secret ls"] == {"secrets": []} and got[
        "secret status"]["memory"] is None
    bare.sbx("daemon", "start", check=0)
    assert set(json.loads(bare.sbx("daemon", "status", "--json",
                                   check=0).stdout)) == set(got["daemon status"])
