# SPDX-License-Identifier: Apache-2.0
"""`sbx ssh` without a VM: keys, the client's configuration as the real ssh reads it, messages."""
import os
import re
import subprocess

import pytest

from conftest import SBX

# What ssh -G must print for a sandbox, whatever stands in other files.
SAFE = {
    "forwardagent": "no", "forwardx11": "no", "forwardx11trusted": "no", "identitiesonly": "yes",
    "identityagent": "none", "addkeystoagent": "false", "permitlocalcommand": "no",
    "updatehostkeys": "false", "controlmaster": "false", "stricthostkeychecking": "true",
    "passwordauthentication": "no", "kbdinteractiveauthentication": "no",
    "hostbasedauthentication": "no", "gssapiauthentication": "no", "tunnel": "false",
    "gatewayports": "no", "checkhostip": "no", "verifyhostkeydns": "false",
    "canonicalizehostname": "false", "globalknownhostsfile": "/dev/null", "user": "agent",
    "hostkeyalgorithms": "ssh-ed25519-cert-v01@openssh.com",
}


def options(inst, host, *flags):
    done = subprocess.run(["ssh", "-G", *flags, host], env=inst.env, capture_output=True,
                          text=True, timeout=60, check=True)
    found = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def demo(inst):
    """A sandbox whose guest fails each connection, after the first attempt."""
    inst.create("demo")
    inst.folder = inst.root / "state/sbx/ssh"
    inst.first = inst.sbx("ssh", "demo", "true")
    return inst


def test_the_client_gives_the_sandbox_nothing(demo):
    found = options(demo, "demo.sbx", "-F", demo.folder / "config")
    assert {name: found[name] for name in SAFE} == {name: [v] for name, v in SAFE.items()}
    assert found["identityfile"] == [str(demo.folder / "key")]
    assert found["userknownhostsfile"] == [str(demo.folder / "known_hosts")]
    assert found["proxycommand"] == [f"'{SBX}' ssh --proxy '%n'"]
    assert "sendenv" not in found


def test_only_hosts_of_sbx_are_concerned(demo):
    for host in ("example.com", "sbx", "demo.sbx.example.com"):
        found = options(demo, host, "-F", demo.folder / "config")
        assert "proxycommand" not in found, host


def test_keys_are_created_once_and_for_the_user_alone(demo):
    assert demo.folder.stat().st_mode & 0o777 == 0o700
    assert all(f.stat().st_mode & 0o077 == 0 for f in demo.folder.iterdir()
               if f.suffix != ".pub"), list(demo.folder.iterdir())
    before = {f.name: f.read_bytes() for f in demo.folder.iterdir()}
    (demo.folder / "config").write_text("# changed\n")
    demo.sbx("ssh", "demo", "true")
    assert {f.name: f.read_bytes() for f in demo.folder.iterdir()} == before
    assert (demo.folder / "known_hosts").read_text().startswith("@cert-authority *.sbx ssh-ed25519")


def test_the_guest_gets_a_key_that_is_only_this_host(demo):
    parts = [demo.root / f"state/guest_builtin.{i}" for i in range(3)]
    assert parts[0].read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert parts[2].read_text() == (demo.folder / "key.pub").read_text()
    cert = demo.root / "x-cert.pub"
    cert.write_bytes(parts[1].read_bytes())
    shown = subprocess.run(["ssh-keygen", "-L", "-f", cert], capture_output=True, text=True,
                           check=True).stdout
    assert "host certificate" in shown
    assert re.search(r"Principals: *\n *demo\.sbx\n", shown), shown
    begin, end = re.search(r"Valid: from (\S+) to (\S+)", shown).groups()
    assert begin[:8] <= end[:8] and begin != end
    old = parts[0].read_bytes()
    demo.sbx("ssh", "demo", "true")
    assert parts[0].read_bytes() != old, "each connection has its own key"
    # nothing of it stays on the host
    assert not [f for f in os.listdir(demo.root / "run/sbx") if f.startswith("ssh-key")]


def test_words_of_the_guest_do_not_reach_the_terminal(demo):
    done = demo.first
    assert done.returncode == 255 and "the SSH server in the sandbox ended: gone" in done.stderr
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", done.stderr), repr(done.stderr)
    assert "and more" not in done.stderr


def test_a_guest_without_a_server_names_the_command(demo):
    done = demo.sbx("ssh", "-R", "1:localhost:1", "demo", "true")
    assert done.returncode == 255 and "sandbox 'demo' has no SSH server" in done.stderr
    assert "template 'debian'" in done.stderr and "try: sbx template update\n" in done.stderr


def test_a_sandbox_that_is_stopped_is_started(demo):
    demo.sbx("stop", "demo", check=0)
    demo.sbx("ssh", "--proxy", "demo.sbx")
    assert '"running"' in demo.sbx("ls", "--json").stdout


@pytest.mark.parametrize("args, text", [
    ((), "missing argument"), (("nosuch",), "nosuch"), (("--allow-remote", "demo"), "--proxy"),
    (("-N", "demo", "true"), "-N"), (("--proxy", "demo.sbx", "demo"), "--proxy"),
    (("--proxy", "demo"), "expected NAME.sbx"), (("--proxy", ".sbx"), "expected NAME.sbx"),
    (("--proxy", "../x.sbx"), "must begin with"), (("--proxy", "a;b.sbx"), "can contain only"),
    (("--proxy", "-x.sbx"), "must begin with"), (("--proxy", "nosuch.sbx"), "nosuch"),
])
def test_mistakes_are_explained(inst, args, text):
    done = inst.sbx("ssh", *args)
    assert done.returncode in (2, 125) and text in done.stderr, done
    assert done.stdout == ""


def test_a_name_from_a_stranger_runs_nothing(demo):
    """As in the URL of a git submodule; versions of ssh before 9.6 accept any characters."""
    for name in ("$(touch owned)", "`touch owned`", "a;touch owned;", "a'; touch owned; '", "a\"b"):
        subprocess.run(["ssh", "-F", demo.folder / "config", "--", f"{name}.sbx", "true"],
                       env=demo.env, cwd=demo.work, capture_output=True, timeout=60, check=False)
    assert not (demo.work / "owned").exists()


def test_a_path_with_a_quote_is_refused(inst):
    state = inst.root / "it's"
    state.mkdir()
    inst.create("demo")
    done = inst.sbx("ssh", "--proxy", "demo.sbx", env={"XDG_STATE_HOME": str(state)})
    assert done.returncode == 125 and "that ssh configurations cannot contain" in done.stderr, done
