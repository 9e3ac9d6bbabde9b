# SPDX-License-Identifier: Apache-2.0
"""The host's SSH agent in a sandbox, off by default: real ssh-agent, ssh-add, ssh-keygen and git on
both sides."""
import json
import os
import re
import subprocess

import pytest

import host


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """An agent with two keys; `keys` has their fingerprints."""
    folder = tmp_path_factory.mktemp("agent")
    sock = folder / "sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    host.until(sock.exists, text="ssh-agent does not listen")
    environment = {**os.environ, "SSH_AUTH_SOCK": str(sock)}
    keys = []
    for name in ("allowed", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f",
                        folder / name], check=True)
        subprocess.run(["ssh-add", "-q", folder / name], check=True, env=environment)
        said = subprocess.run(["ssh-keygen", "-l", "-f", folder / name], check=True,
                              capture_output=True, text=True).stdout
        keys.append(re.search(r"SHA256:\S+", said)[0])
    yield {"sock": str(sock), "keys": keys, "folder": folder}
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def box(env, agent):
    folder = env.make_folder("agent")
    (folder / "allowed.pub").write_bytes((agent["folder"] / "allowed.pub").read_bytes())
    (folder / "other.pub").write_bytes((agent["folder"] / "other.pub").read_bytes())
    before = env.env.get("SSH_AUTH_SOCK")
    env.env["SSH_AUTH_SOCK"] = agent["sock"]
    made = env.create("agent", folder, flags=["--ssh-agent=" + agent["keys"][0]])
    if before is None:
        del env.env["SSH_AUTH_SOCK"]
    made.folder = folder
    yield made
    made.rm()


def test_it_is_off_by_default(sandbox):
    assert sandbox.guest("echo \"[$SSH_AUTH_SOCK]\"; ls /run/ssh-agent.sock 2>&1 | head -1",
                         user="agent").startswith("[]")


def test_the_guest_sees_the_allowed_key_only(box, agent):
    listed = box.guest("ssh-add -l", user="agent")
    assert agent["keys"][0] in listed and agent["keys"][1] not in listed, listed


def test_it_signs_with_that_key_and_each_signature_is_a_record(box, env, agent):
    signed = box.guest(
        f"cd /tmp && echo hello > m && rm -f m.sig && ssh-keygen -q -Y sign -n file -f '{box.folder}/allowed.pub' m && cat m.sig", user="agent")
    assert "BEGIN SSH SIGNATURE" in signed
    records = env.sbx("audit", "show", "agent", "--json").stdout
    rows = [json.loads(line) for line in records.splitlines()
            if line.strip().startswith("{")] or json.loads(records)
    assert any("signature" in json.dumps(row) and agent["keys"][0] in json.dumps(row)
               for row in rows), records[-2000:]


def test_another_key_of_the_agent_is_refused(box):
    assert box.fails(
        f"cd /tmp && echo hello > n && ssh-keygen -q -Y sign -n file -f '{box.folder}/other.pub' n",
        user="agent")


def test_nothing_can_be_added_removed_or_locked(box, agent):
    box.guest(
        "cd /tmp && rm -f k k.pub && ssh-keygen -q -t ed25519 -N '' -f k; ! ssh-add -q k; ! ssh-add -D; ! ssh-add -q -d k.pub; ! ssh-add -x </dev/null",
              user="agent")
    left = subprocess.run(["ssh-add", "-l"], env={**os.environ, "SSH_AUTH_SOCK": agent["sock"]},
                          capture_output=True, text=True, check=True).stdout
    assert all(key in left for key in agent["keys"]) and len(left.splitlines()) == 2


def test_it_is_jailed(box):
    pids = [pid for pid in host.descendants(box.pids()["keeper"])
            if (host.comm(pid) or "").startswith("sbx-ssh-agent")]
    assert pids, "no sbx-ssh-agent runs"
    seen = host.status(pids[-1])
    assert seen["Seccomp"] == "2" and seen["NoNewPrivs"] == "1", seen
