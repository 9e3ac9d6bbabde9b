# SPDX-License-Identifier: Apache-2.0
"""The managed policy, against the real sbxd: /etc/sbx/policy of a mount namespace in which root is
another user than the one who runs sbx."""
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest

from conftest import PATIENCE, SBX, installation
from test_audit import Logs

SETUP = """
mkdir "$0/etc" && mount --rbind /etc "$0/etc" && mount -t tmpfs -o mode=0755 etc /etc || exit 1
for f in "$0"/etc/* "$0"/etc/.[!.]*; do [ -e "$f" ] && ln -s "$f" /etc/; done
mkdir -m 755 /etc/sbx && echo ready
while read -r line; do eval "$line" && echo done; done
"""
CEILING = """policy 2
# what the company permits
allow network **:1-65535
deny network evil.example,**.bad.example  # incident 12
allow network 10.0.0.0/8:22
deny http api.example.com/admin/**
ask http api.example.com/** method DELETE
end
"""


class Host:
    """A host whose root has a managed policy."""

    def __init__(self, inst):
        self.inst = inst
        self.root = subprocess.Popen(
            ["unshare", "--user", "--map-current-user", "--map-auto", "--setuid", "0", "--mount",
             "sh", "-c", SETUP, inst.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        assert self.root.stdout.readline() == "ready\n"

    def do(self, command):
        """As root."""
        self.root.stdin.write(command + "\n")
        self.root.stdin.flush()
        assert self.root.stdout.readline() == "done\n", command

    def put(self, text):
        path = self.inst.root / "managed"
        path.write_text(text)
        self.do(f"cat {path} >/etc/sbx/policy.new && mv /etc/sbx/policy.new /etc/sbx/policy")

    def sbx(self, *args, check=None, input=""):
        """As the user."""
        p = subprocess.run(
            ["nsenter", "--target", str(self.root.pid), "--user", "--mount",
             "--preserve-credentials", "--", SBX, *args], env=self.inst.env, input=input, text=True,
            capture_output=True, timeout=60 * PATIENCE, cwd=self.inst.work)
        if check is not None:
            assert p.returncode == check, (args, p.returncode, p.stdout, p.stderr)
        return p

    def decision(self, target):
        return json.loads(self.sbx("policy", "check", "network", target, "--json").stdout)


@pytest.fixture
def host():
    with installation() as inst:
        made = Host(inst)
        made.sbx("policy", "set-default", "allow-all", check=0)
        yield made
        made.sbx("daemon", "stop")
        made.root.stdin.close()
        made.root.wait(20)


def test_a_user_cannot_loosen_it(host):
    assert host.decision("evil.example")["allowed"]
    host.put(CEILING)
    d = host.decision("evil.example")
    assert not d["allowed"] and d["managed"] and d["file"] == "/etc/sbx/policy"
    assert d["rule"] == "managed:4" and d["why"] == "rule"
    assert "/etc/sbx/policy:4" in d["reason"]
    d = host.decision("good.example")
    assert d["allowed"] and not d["managed"]
    assert d["file"] == str(host.inst.root / "state/sbx/policy")
    # A range that is not public needs a rule in both.
    assert not host.decision("10.1.2.3:22")["allowed"]
    host.sbx("policy", "allow", "network", "10.1.2.3:22", check=0)
    assert host.decision("10.1.2.3:22")["allowed"]
    p = host.sbx("policy", "allow", "network", "10.1.2.3:23", check=1)
    assert "no rule of /etc/sbx/policy allows it" in p.stderr
    for resource in ("evil.example", "x.bad.example:22", "**.bad.example", "**"):
        p = host.sbx("policy", "allow", "network", resource, check=1)
        assert "/etc/sbx/policy:4 is 'deny network evil.example,**.bad.example  #" in p.stderr, p
        assert "try: sbx policy ls" in p.stderr
    p = host.sbx("policy", "allow", "http", "api.example.com/admin/x", check=1)
    assert "/etc/sbx/policy:6 is 'deny http api.example.com/admin/**'" in p.stderr
    before = host.sbx("policy", "export").stdout
    p = host.sbx("policy", "import", "-", "--yes",
                 input="policy 1\nallow network a.example\nallow network y.bad.example\nend\n")
    assert p.returncode == 1 and "y.bad.example:80" in p.stderr
    assert host.sbx("policy", "export").stdout == before
    p = host.sbx("policy", "rm", "network", "--id", "managed:4", check=1)
    assert "only root can change" in p.stderr
    # What restricts is always accepted, and so is a preset: it allows nothing more.
    host.sbx("policy", "deny", "network", "more.example", check=0)
    host.sbx("policy", "set-default", "allow-all", check=0)
    assert not host.decision("evil.example")["allowed"]
    host.sbx("policy", "reset", "--yes", check=0)
    assert not host.decision("good.example")["allowed"]


def test_requests(host):
    host.put(CEILING)
    host.sbx("policy", "allow", "http", "api.example.com/**", check=0)
    p = host.sbx("policy", "check", "http", "GET https://api.example.com/admin/x", check=1)
    assert "file:   /etc/sbx/policy:6, the managed policy" in p.stdout
    p = host.sbx("policy", "check", "http", "DELETE https://api.example.com/v1", "--json")
    assert json.loads(p.stdout)["decision"] == "ask"
    p = host.sbx("policy", "check", "http", "GET https://api.example.com/v1", "--json", check=0)
    assert json.loads(p.stdout)["decision"] == "allow"


def test_it_is_listed_first(host):
    host.put(CEILING)
    lines = host.sbx("policy", "ls", "--summary", check=0).stdout.splitlines()
    assert lines[1].split()[:3] == ["managed", "root", "all"]
    assert lines[-1] == (
        "The managed policy /etc/sbx/policy limits all other rules: a request must be allowed by "
        "both. Only root can change it.")
    wide = host.sbx("policy", "ls", "--wide", check=0).stdout
    assert "managed:4" in wide and "incident 12" in wide
    listed = json.loads(host.sbx("policy", "ls", "--json", check=0).stdout)
    assert listed["managed"]["file"] == "/etc/sbx/policy" and listed["managed"]["fault"] is None
    assert [r["id"] for r in listed["managed"]["rules"]] == [f"managed:{n}" for n in range(3, 8)]
    assert all(r["policy_id"] != "managed" for r in listed["rules"])
    host.do("rm /etc/sbx/policy")
    listed = json.loads(host.sbx("policy", "ls", "--json", check=0).stdout)
    assert listed["managed"] is None


@pytest.mark.parametrize("spoil,says", [
    ("chmod 666 /etc/sbx/policy", "writable for others than root"),
    ("chmod 777 /etc/sbx", "writable for others than root"),
    (f"chown {os.getuid()} /etc/sbx/policy", f"belongs to user {os.getuid()}, not to root"),
    (f"chown {os.getuid()} /etc/sbx", f"belongs to user {os.getuid()}, not to root"),
    ("chmod 600 /etc/sbx/policy", "cannot open /etc/sbx/policy"),
    ("mv /etc/sbx/policy /etc/sbx/other; ln -s other /etc/sbx/policy", "cannot open"),
    ("echo allow >>/etc/sbx/policy", "line 9"),
    ("truncate -s 40 /etc/sbx/policy", "/etc/sbx/policy"),
])
def test_one_that_cannot_be_used_denies_everything(host, spoil, says):
    host.put(CEILING)
    assert host.decision("good.example")["allowed"]
    host.do(spoil)
    d = host.decision("good.example")
    assert not d["allowed"] and d["why"] == "fault"
    assert "the managed policy cannot be used: " in d["reason"] and says in d["reason"], d
    out = host.sbx("policy", "ls", "--summary", check=0).stdout
    assert "All traffic is denied: the managed policy cannot be used" in out and says in out
    p = host.sbx("policy", "allow", "network", "a.example", check=1)
    assert "the managed policy cannot be used" in p.stderr
    host.do("rm -r /etc/sbx")
    assert host.decision("good.example")["allowed"]


def test_a_change_is_noticed_without_a_command(host):
    host.put(CEILING)
    log = host.inst.root / "state/sbx/sbxd.log"
    deadline = time.monotonic() + 60
    while "the managed policy /etc/sbx/policy has 5 rules" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)


NO_RULE = "no applicable policies for op(action=net:connect:tcp, resource=net:domain:{}:443), x"


def write_log(host):
    """What was recorded with the user's policy below and CEILING."""
    (host.inst.root / "state/sbx/policy").write_text(
        "policy 1\nallow network **.good.example id aaaaaaaaaaaa\n"
        "allow network evil.example id bbbbbbbbbbbb\nend\n")
    logs = Logs(host.inst)
    for name in ("a.good.example", "b.good.example"):
        logs.allow(name, rule="aaaaaaaaaaaa", where="policy 1")
    logs.deny("evil.example", rule="evil.example,**.bad.example", where="/etc/sbx/policy:4",
              reason='denied: rule "/etc/sbx/policy:4" (deny network evil.example,**.bad.example) '
              "matched op(x)")
    logs.deny("other.example",
              reason="denied by /etc/sbx/policy: " + NO_RULE.format("other.example"))
    logs.finish()


def put_user(host, *rules):
    path = host.inst.work / "new.policy"
    path.write_text("policy 1\n" + "".join(r + "\n" for r in rules) + "end\n")
    return path


def test_a_replay_decides_with_both(host):
    host.put(CEILING)
    write_log(host)
    new = put_user(host, "allow network **", "deny network b.good.example")

    def replay(*args):
        p = host.sbx("policy", "replay", new, *args, "--json")
        found = json.loads(p.stdout)
        return p, [[e["host"] for e in found[k]] for k in ("newly_allowed", "newly_denied")]

    p, (allowed, denied) = replay("--no-new-allow")
    assert allowed == ["other.example"], "evil.example stays denied"
    assert denied == ["b.good.example"]
    assert p.returncode == 1 and "with the managed policy /etc/sbx/policy" in p.stderr
    host.do("rm /etc/sbx/policy")
    p, (allowed, _) = replay()
    assert sorted(allowed) == ["evil.example", "other.example"] and "managed" not in p.stderr
    host.put("policy 2\nallow network a.good.example\nend\n")
    assert replay("--no-new-allow")[1] == [[], ["b.good.example"]]
    host.put("nothing\n")
    p, (allowed, denied) = replay()
    assert allowed == [] and len(denied) == 2
    assert "the managed policy cannot be used, so everything is denied" in p.stderr


def test_a_difference_is_one_with_both(host):
    host.put(CEILING)
    old = put_user(host, "allow network good.example").rename(host.inst.work / "old.policy")
    new = put_user(host, "allow network good.example,evil.example")
    p = host.sbx("policy", "diff", old, new, check=0)
    assert p.stdout.startswith(f"{new} allows nothing that {old} denies\n")
    assert "with the managed policy /etc/sbx/policy" in p.stderr
    new = put_user(host, "allow network good.example,evil.example,more.example")
    p = host.sbx("policy", "diff", old, new, check=1)
    assert p.stdout.startswith(f"{new} allows more.example:80, which {old} denies\n"), p.stdout
    host.do("rm /etc/sbx/policy")
    new = put_user(host, "allow network good.example,evil.example")
    p = host.sbx("policy", "diff", old, new, check=1)
    assert p.stdout.startswith(f"{new} allows evil.example:80, ")


def test_uses_of_managed_rules_are_counted(host):
    host.put(CEILING)
    write_log(host)

    def used(*args):
        rules = json.loads(host.sbx("policy", "used", "--json", *args, check=0).stdout)
        return {r["id"]: r["count"] for r in rules["rules"]}, rules["removed"]

    assert used() == ({"aaaaaaaaaaaa": 2, "bbbbbbbbbbbb": 0, "managed:3": 2, "managed:4": 1,
                       "managed:5": 0, "managed:6": 0, "managed:7": 0}, 0)
    assert list(used("--never")[0]) == ["bbbbbbbbbbbb", "managed:5", "managed:6", "managed:7"]
    assert "managed:4     deny network evil.example" in host.sbx("policy", "used", check=0).stdout
    host.put(CEILING.replace("deny network evil.example,**.bad.example  # incident 12\n", ""))
    assert used()[0]["managed:4"] == 1, "the line has another rule now"
    host.do("rm /etc/sbx/policy")
    assert used() == ({"aaaaaaaaaaaa": 2, "bbbbbbbbbbbb": 0}, 1)


def test_shrink_needs_both_and_keeps_the_managed_one(host):
    host.put(CEILING)
    write_log(host)
    logs = Logs(host.inst)
    logs.allow("evil.example", id="0123456789cd", rule="bbbbbbbbbbbb")  # before the managed policy
    logs.finish()
    shown = json.loads(host.sbx("policy", "shrink", "--json", check=0).stdout)
    assert shown == {"removed": ["allow network **.good.example", "allow network evil.example"],
                     "added": ["allow network a.good.example:443,b.good.example:443"],
                     "allowed": 2, "denied": 1}
    p = host.sbx("policy", "shrink", check=0)
    assert "with the managed policy" in p.stderr and "Proven: " in p.stdout
    assert "/etc/sbx" not in p.stdout and "**:1-65535" not in p.stdout
    host.do("rm /etc/sbx/policy")
    shown = json.loads(host.sbx("policy", "shrink", "--json", check=0).stdout)
    assert "allow network evil.example:443" in shown["added"]


def check_of(host, name):
    rows = json.loads(host.sbx("diagnose", "--json").stdout)["checks"]
    return next(r for r in rows if r["name"] == name)


def test_diagnose_reports_the_file(host):
    row = check_of(host, "Managed policy")
    assert row["status"] == "skip" and "only the policy of each user" in row["message"], row
    host.put(CEILING)
    host.do("chmod 644 /etc/sbx/policy")
    row = check_of(host, "Managed policy")
    assert row["status"] == "pass" and row["message"] == "5 rules limit all policies", row
    assert row["detail"] == "/etc/sbx/policy of user 0, mode 0644", row
    host.do("chmod 666 /etc/sbx/policy")
    row = check_of(host, "Managed policy")
    assert row["status"] == "fail", row
    assert row["message"] == "cannot be used: everything is denied", row
    assert "writable for others than root" in row["detail"], row
    assert row["hint"] == "ls -ld /etc/sbx /etc/sbx/policy", row


def test_diagnose_reports_desktop_notifications(host):
    run, program = host.inst.root / "desk", pathlib.Path(host.inst.env["SBX_LIBEXEC"], "sbx-notify")
    run.mkdir(mode=0o700)
    assert check_of(host, "Notifications")["message"] == "sbx-notify is not installed"
    program.symlink_to("/bin/true")
    host.inst.env["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={run}/bus,guid=0"
    assert check_of(host, "Notifications")["message"].startswith("no session bus")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(run / "bus"))
        row = check_of(host, "Notifications")
        assert row["status"] == "warn", row
        assert row["message"] == "cannot connect to the session bus", row
        s.listen(5)
        row = check_of(host, "Notifications")
        assert row["status"] == "pass" and "starts when a request waits" in row["detail"], row
    host.sbx("settings", "set", "ask.notify", "false", check=0)
    assert check_of(host, "Notifications")["status"] == "skip"
