# SPDX-License-Identifier: Apache-2.0
"""`sbx policy replay`, `used` and `shrink` on logs that a real writer wrote, and `diff`: without a
sandbox and without sbxd."""
import json

import pytest

from test_audit import A, B, Logs

NO_RULE = ("no applicable policies for op(action=net:connect:tcp, resource=net:domain:{}:{}), "
           "action requires at least one matching allow policy")


@pytest.fixture
def logs(bare):
    made = Logs(bare)
    made.policy = bare.work / "new.policy"
    yield made
    made.proc.kill()
    made.proc.wait()


def deny(logs, host, port=443, **more):
    logs.deny(host, **{"port": port, "reason": NO_RULE.format(host, port), **more})


def replay(logs, rules, *args, check=0):
    logs.policy.write_text("policy 1\n" + "".join(r + "\n" for r in rules) + "end\n")
    shown = logs.inst.sbx("policy", "replay", "--json", *args[:1], logs.policy, *args[1:],
                          check=check)
    found = json.loads(shown.stdout)
    return {k: [f"{e['sandbox']} {e['host']}:{e['port']} {e['count']}" for e in v]
            if isinstance(v, list) else v for k, v in found.items()}


def test_changes_are_listed_by_host(logs):
    logs.allow("a.example")
    logs.allow("a.example")
    logs.allow("b.example", port=80, type="http")
    deny(logs, "c.example")
    deny(logs, "c.example", id=B, name="other")
    deny(logs, "d.example")
    deny(logs, "10.0.0.1")
    logs.finish()
    got = replay(logs, ["allow network a.example,10.0.0.0/8", "deny network a.example:443 "
                        "for sandbox other", "allow network c.example for sandbox other"])
    assert sorted(got["newly_allowed"]) == ["demo 10.0.0.1:443 1", "other c.example:443 1"]
    assert got["newly_denied"] == ["demo b.example:80 1"]
    assert (got["same"], got["not_replayed"]) == (4, 0)


def test_a_denial_by_a_rule_about_requests_is_not_replayed(logs):
    logs.deny("a.example", rule="0123456789ab", reason=(
        'denied: rule "0123456789ab" (deny http a.example/** method PUT) matched '
        "http:PUT a.example /x"))
    logs.deny("b.example", rule="0123456789ab", reason=(
        'denied: rule "0123456789ab" (deny network b.example) matched op(action=net:connect:tcp, '
        "resource=net:domain:b.example:443)"))
    logs.finish()
    got = replay(logs, ["allow network a.example,b.example"])
    assert (got["not_replayed"], got["same"]) == (1, 0)
    assert got["newly_allowed"] == ["demo b.example:443 1"]


def test_a_denial_that_no_rule_caused_is_not_replayed(logs):
    logs.deny("a.example", reason="certificate of the server is not valid")
    logs.deny("b.example", rule="0123456789ab", reason="denied by a rule")
    logs.event(verdict="deny", action="guard", host="/x", port=0)
    logs.finish()
    got = replay(logs, ["allow network a.example,b.example"])
    assert got["not_replayed"] == 1 and got["same"] == 0
    assert got["newly_allowed"] == ["demo b.example:443 1"]


def test_a_name_is_resolved_if_any_port_is_allowed(logs):
    logs.allow("a.example", type="dns", port=0, path="network")
    logs.allow("b.example", type="dns", port=0, path="network")
    logs.finish()
    got = replay(logs, ["allow network a.example:22"])
    assert (got["same"], got["newly_denied"]) == (1, ["demo b.example:0 1"])


def test_no_new_allow_fails(logs):
    deny(logs, "a.example")
    logs.finish()
    assert replay(logs, ["allow network b.example"], "--no-new-allow")["same"] == 1
    got = replay(logs, ["allow network a.example"], "--no-new-allow", check=1)
    assert got["newly_allowed"] == ["demo a.example:443 1"]


def test_one_sandbox_and_a_time_are_selected(logs):
    logs.say("age", 7200)
    logs.allow("old.example")
    logs.say("age", 0)
    logs.allow("new.example")
    logs.allow("other.example", id=B, name="other")
    logs.finish()
    assert replay(logs, [], "--since=1h")["newly_denied"] == [
        "other other.example:443 1", "demo new.example:443 1"]
    assert replay(logs, [], "--json", "demo")["newly_denied"] == [
        "demo new.example:443 1", "demo old.example:443 1"]


def test_the_text_has_a_table(logs):
    logs.allow("a.example")
    deny(logs, "b.example")
    logs.finish()
    logs.policy.write_text("policy 1\nallow network b.example\nend\n")
    shown = logs.inst.sbx("policy", "replay", logs.policy, check=0).stdout
    assert shown.startswith("0 decisions are the same, 1 newly denied, 1 newly allowed\n")
    assert "Newly denied:\nSANDBOX" in shown and "b.example:443" in shown
    logs.policy.write_text("policy 1\nallow network *\nend\n")
    assert "line 2" in logs.inst.sbx("policy", "replay", logs.policy, check=1).stderr


def test_each_record_of_a_long_log_is_counted(logs):
    logs.say("fill", A, "demo", 100000)
    logs.finish()
    got = replay(logs, ["allow network **"])
    assert got["same"] + sum(int(e.split()[-1]) for e in got["newly_allowed"]) + \
        sum(int(e.split()[-1]) for e in got["newly_denied"]) + got["not_replayed"] == 100000


def test_uses_of_rules_are_counted(logs):
    (logs.inst.root / "state/sbx/policy").write_text(
        "policy 1\nallow network a.example id aaaaaaaaaaaa\n"
        "deny network b.example id bbbbbbbbbbbb\nallow network c.example id cccccccccccc\nend\n")
    logs.allow("a.example", rule="aaaaaaaaaaaa")
    logs.allow("a.example", rule="aaaaaaaaaaaa")
    logs.deny("b.example", rule="bbbbbbbbbbbb")
    logs.allow("x.example", rule="dddddddddddd")
    logs.event(kind="policy-change", action="rule-add", rule="cccccccccccc")
    logs.finish()

    def used(*args):
        shown = logs.inst.sbx("policy", "used", "--json", *args, check=0).stdout
        return json.loads(shown)

    got = used()
    assert [(r["id"], r["count"]) for r in got["rules"]] == [
        ("aaaaaaaaaaaa", 2), ("bbbbbbbbbbbb", 1), ("cccccccccccc", 0)]
    assert got["removed"] == 1 and got["rules"][2]["last_used"] is None
    assert got["rules"][0]["text"] == "allow network a.example"
    assert [r["id"] for r in used("--never")["rules"]] == ["cccccccccccc"]
    assert logs.inst.sbx("policy", "used", check=0).stdout.startswith("COUNT")


def set_policy(logs, *rules):
    (logs.inst.root / "state/sbx/policy").write_text(
        "policy 1\n" + "".join(r + "\n" for r in rules) + "end\n")


def test_a_policy_shrinks_to_what_was_used(logs):
    set_policy(logs, "allow network **.a.example", "allow network b.example,c.example",
               "allow network d.example", "deny network x.a.example",
               "allow network e.example for sandbox other")
    for host in ("one", "two", "three"):
        logs.allow(f"{host}.a.example")
    logs.allow("b.example", port=80, type="http")
    logs.allow("c.example", type="dns", port=0, path="network")
    logs.allow("e.example")  # by a rule that no longer exists
    logs.allow("x.a.example")  # denied since then
    deny(logs, "d.example")
    logs.finish()
    new = logs.inst.work / "shrunk.policy"
    shown = json.loads(logs.inst.sbx("policy", "shrink", "--json", "--write", new, check=0).stdout)
    assert shown == {
        "removed": ["allow network **.a.example", "allow network b.example,c.example",
                    "allow network d.example", "allow network e.example for sandbox other"],
        "added": ["allow network *.a.example:443", "allow network b.example:80,c.example:443"],
        "allowed": 5, "denied": 2}
    assert new.read_text() == ("policy 1\nallow network *.a.example:443\n"
                               "allow network b.example:80,c.example:443\n"
                               "deny network x.a.example\n\nend\n")
    assert logs.inst.sbx("policy", "diff", new, check=0).stdout.startswith(
        f"{new} allows nothing that the policy denies\n")
    text = logs.inst.sbx("policy", "shrink", check=0)
    assert "- allow network d.example\n" in text.stdout
    assert "4 rules are replaced by 2, 1 stay\n" in text.stdout
    assert "allows nothing more. It allows 5 recorded requests" in text.stdout
    assert "--write new.policy" in text.stderr
    set_policy(logs, *new.read_text().split("\n")[1:4])
    again = logs.inst.sbx("policy", "shrink", check=0).stdout
    assert again.startswith("No rule can be narrower.\n")


def test_a_policy_without_a_recorded_request_becomes_empty(logs):
    set_policy(logs, "allow network a.example")
    logs.say("age", 7200)
    logs.allow("a.example")
    logs.finish()
    none = logs.inst.sbx("policy", "shrink", "--since", "1h", check=0)
    assert "no request that the policy allows" in none.stderr
    assert none.stdout.startswith("- allow network a.example\n1 rules are replaced by 0")
    used = logs.inst.sbx("policy", "shrink", check=0)
    assert "+ allow network a.example:443\n" in used.stdout and "no request" not in used.stderr


def test_an_example_is_shown_for_a_wider_policy(bare):
    old, new = bare.work / "old", bare.work / "new"
    old.write_text("policy 1\nallow network **.a.example\ndeny network b.a.example\nend\n")
    new.write_text("policy 1\nallow network **.a.example:443\nend\n")
    wider = bare.sbx("policy", "diff", old, new, check=1)
    assert wider.stdout.split("\n")[0] == f"{new} allows b.a.example:443, which {old} denies"
    found = json.loads(bare.sbx("policy", "diff", "--json", old, new, check=1).stdout)
    assert found["new"]["witness"]["host"] == "b.a.example" and found["old"]["result"] == "wider"
    new.write_text("policy 1\nallow network c.a.example:443 for sandbox demo\nend\n")
    same = bare.sbx("policy", "diff", old, new, check=0).stdout
    assert same.startswith(f"{new} allows nothing that {old} denies\n")
    (bare.root / "state/sbx").mkdir(mode=0o700, parents=True, exist_ok=True)
    (bare.root / "state/sbx/policy").write_text(old.read_text())
    assert bare.sbx("policy", "diff", new, check=0).stdout == same.replace(str(old), "the policy")
