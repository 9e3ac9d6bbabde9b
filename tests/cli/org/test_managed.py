# SPDX-License-Identifier: Apache-2.0
"""The managed policy, against the real sbxd: /etc/sbx/policy of a mount namespace in which root is
another user than the one who runs sbx."""
import json
import os
import subprocess
import time

import pytest

from conftest import PATIENCE, SBX, installation

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
    lines = host.sbx("policy", "ls", check=0).stdout.splitlines()
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
    out = host.sbx("policy", "ls", check=0).stdout
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
