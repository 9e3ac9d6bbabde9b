# SPDX-License-Identifier: Apache-2.0
"""sbx secret, with the real sbxd and the real vault: what is typed, what is shown, and that a value
is nowhere else."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import secrets as random_bytes
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import pytest

import test_staged
from conftest import SBX, on_terminal
from test_staged import F


def canary(prefix="sk-ant-api03-"):
    return prefix + random_bytes.token_hex(24)


def listed(inst, *args):
    return json.loads(inst.sbx("secret", "ls", "--json", *args, check=0).stdout)["secrets"]


def names(inst, *args):
    return [s["name"] for s in listed(inst, *args)]


def files_with(root, text):
    found = []
    for path in pathlib.Path(root).rglob("*"):
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            found.append(path)
    return found


class Typed:
    """sbx on a separate terminal, with typed input."""

    def __init__(self, inst, *args):
        self.master, slave = pty.openpty()

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.proc = subprocess.Popen([SBX, *args], stdin=slave, stdout=slave, stderr=slave,
                                     env=inst.env, cwd=inst.work,
                                     start_new_session=True, preexec_fn=take_terminal)
        self.slave = slave
        self.text = ""

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            try:
                more = os.read(self.master, 65536)
            except OSError:
                return
            if not more:
                return
            self.text += more.decode(errors="replace")

    def wait_for(self, text, seconds=20):
        until = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < until, f"{text!r} did not come: {self.text!r}"
            self.read()

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def has_echo(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def end(self, seconds=30):
        until = time.monotonic() + seconds
        while self.proc.poll() is None:
            assert time.monotonic() < until, self.text
            self.read()
        self.read()
        return self.proc.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        os.close(self.master)
        os.close(self.slave)


# -- set -------------------------------------------------------------------------------------------

def test_set_from_stdin(vault):
    value = canary()
    vault.sbx("policy", "allow", "network", "api.anthropic.com,api.openai.com", check=0)
    p = vault.sbx("secret", "set", "anthropic", input=value + "\n", check=0)
    assert ("Credential 'anthropic' set for all sandboxes" in p.stdout
            and "api.anthropic.com:443" in p.stdout)
    assert "ANTHROPIC_API_KEY" in p.stdout and "removed the trailing newline" in p.stderr
    assert value not in p.stdout + p.stderr and "policy" not in p.stderr
    [s] = listed(vault)
    assert s["secret"] == "sk-****" + value[-4:] and s["scope"] == "global" and s[
        "source"] == "value"
    p = vault.sbx("secret", "set", "-g", "openai", input=value, check=0)
    assert "newline" not in p.stderr
    assert names(vault) == ["anthropic", "openai"]


@pytest.mark.parametrize("value,says", [
    ("", "empty"), ("\n", "empty"), ("a\nb\n", "line break"), ("a\0b", "control"),
    ("x" * 70000, "65536"),
    ("sk-ant-api03-proxy-managed-0000", "placeholder"), ("PROXYMANAGED", "placeholder"),
])
def test_bad_values_change_nothing(vault, value, says):
    p = vault.sbx("secret", "set", "anthropic", input=value, check=1)
    assert says in p.stderr and "try:" in p.stderr
    assert value.strip() == "" or value not in p.stderr
    assert names(vault) == []


def test_two_parts(vault):
    p = vault.sbx("secret", "set", "aws", input="AKIAWITHOUTCOLON", check=1)
    assert "ID:SECRET" in p.stderr
    vault.sbx("secret", "set", "aws", input="AKIA1234:" + "z" * 40, check=0)


def test_setting_it_again_succeeds_and_a_terminal_asks(vault):
    """A script that sets a credential can run twice."""
    first, second = canary(), canary()
    for _ in range(2):
        p = vault.sbx("secret", "set", "anthropic", input=first, check=0)
    assert "already" in p.stderr and "is replaced" in p.stderr
    out, status = on_terminal(vault, ["secret", "set", "anthropic"], b"n\n")
    assert status == 1 and "Replace it?" in out and "was not changed" in out
    assert listed(vault)[0]["secret"].endswith(first[-4:])
    vault.sbx("secret", "set", "-f", "anthropic", input=second, check=0)
    assert listed(vault)[0]["secret"].endswith(second[-4:])


@pytest.mark.parametrize("args,says", [
    (["set", "antropic"], "sbx secret set anthropic"),
    (["set", "zzzzzzzzzz"], "sbx secret services"),
    (["set", "anthropic", "--sandbox", "nobody"], "nobody"),
])
def test_unknown_words_get_a_suggestion(vault, args, says):
    p = vault.sbx("secret", *args, input=canary(), check=1)
    assert says in p.stderr
    assert not (vault.root / "state/sbx/vault").exists()


@pytest.mark.parametrize("args,says", [
    (["sett"], "sbx secret set"), (["set"], "missing"), (["set", "a", "b"], "unexpected argument"),
    (["set", "anthropic", "-g", "--sandbox", "x"], "mutually exclusive"),
    (["set", "anthropic", "-t", "sk-on-the-command-line"], "command line"),
    (["set-custom", "x", "--host", "a.example", "--value", "v"], "command line"),
    (["set", "anthropic", "--refresh", "30m"], "--refresh requires --ref or --command"),
    (["set", "anthropic", "--ref", "op://x"], "docker:HELPER:SERVER"),
    (["set", "anthropic", "--ref", "op://a//b"], "op://VAULT/ITEM/FIELD"),
    (["set", "anthropic", "--ref", "aws:--version"], "aws:SECRET"),
    (["set", "anthropic", "--ref", "aws:arn:aws:s3:::bucket"], "aws:SECRET"),
    (["set", "anthropic", "--ref", "pass:-c"], "pass:NAME"),
    (["set", "anthropic", "--registry", "r.example"], "mutually exclusive"),
    (["set", "anthropic", "--user", "ci"], "require --registry"),
    (["set", "--registry", "*.example.com"], "invalid registry"),
    (["set", "--registry", "r.example", "--user", "a:b"], "invalid user"),
    (["set", "--registry", "r.example", "--token-service", "auth.example"], "HOST/PATH"),
    (["set", "anthropic", "--command", "'open"], "quote"),
    (["set", "anthropic", "--command", "true", "--refresh", "soon"], "invalid duration 'soon'"),
    (["set", "anthropic", "--command", "true", "--ref", "docker:a:b"], "mutually exclusive"),
    (["set-custom", "x"], "missing --host"),
    (["set-custom", "x", "--host", "a.example", "--placeholder", "p"], "--env"),
    (["set-custom", "x", "--host", "a.example", "--env", "A", "--placeholder", "sk-abcdefgh"],
     "proxy-managed"),
    (["import", "--dry-run", "--yes"], "mutually exclusive"), (["rm"], "missing"),
])
def test_usage(bare, args, says):
    p = bare.sbx("secret", *args, input="value-of-20-characters", check=2)
    assert says in p.stderr and "try:" in p.stderr
    assert "sk-on-the-command-line" not in p.stderr


def test_policy_that_closes_the_hosts_is_said(vault):
    vault.sbx("policy", "deny", "network", "api.anthropic.com", check=0)
    p = vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    assert "does not allow api.anthropic.com:443" in p.stderr
    assert "sbx policy allow network api.anthropic.com:443" in p.stderr
    vault.create("demo")
    p = vault.sbx("secret", "set", "--sandbox", "demo", "anthropic", input=canary(), check=0)
    assert "sbx policy allow network api.anthropic.com:443 --sandbox demo" in p.stderr
    vault.sbx("policy", "reset", "--yes", check=0)
    p = vault.sbx("secret", "set", "groq", input=canary("gsk_"), check=0)
    assert "sbx policy set-default balanced" in p.stderr


# -- the terminal ----------------------------------------------------------------------------------

def test_prompt_shows_nothing(vault):
    value = canary()
    with Typed(vault, "secret", "set", "anthropic") as t:
        t.wait_for("(not shown)")
        assert not t.has_echo()
        t.type(value + "XY\x7f\x7f\r")  # two letters too many, taken back
        assert t.end() == 0
        assert t.has_echo()
        assert value not in t.text and value[
            -8:] not in t.text and f"{len(value)} characters" in t.text
    assert listed(vault)[0]["secret"].endswith(value[-4:])


def test_long_line_at_the_prompt(vault):
    """Longer than what a terminal that collects lines would take."""
    value = canary() + "x" * 9000 + "tail"
    with Typed(vault, "secret", "set", "anthropic") as t:
        t.wait_for("(not shown)")
        for i in range(0, len(value), 500):
            t.type(value[i:i + 500])
            time.sleep(0.002)
        t.type("\r")
        assert t.end() == 0 and f"{len(value)} characters" in t.text
    assert listed(vault)[0]["secret"].endswith("tail")


@pytest.mark.parametrize("keys,status",
                         [("abc\x03", -signal.SIGINT), ("abc\x15\x04", 1), ("\x04", 1), ("\r", 1),
                          ("abc\x1b[A\r", 1)])
def test_what_ends_the_prompt_leaves_nothing(vault, keys, status):
    with Typed(vault, "secret", "set", "anthropic") as t:
        t.wait_for("(not shown)")
        t.type(keys)
        assert t.end() == status
        assert t.has_echo() and "abc" not in t.text
    assert names(vault) == []


def test_replacing_asks(vault):
    first, second = canary(), canary()
    vault.sbx("secret", "set", "anthropic", input=first, check=0)
    for answer, kept in (("n\r", first), ("y\r", second)):
        with Typed(vault, "secret", "set", "anthropic") as t:
            t.wait_for("Replace it? [y/N]")
            t.type(answer)
            if answer[0] == "y":
                t.wait_for("(not shown)")
                t.type(second + "\r")
            assert t.end() == (0 if answer[0] == "y" else 1)
        assert listed(vault)[0]["secret"].endswith(kept[-4:])


# -- where the value is, and where not
# -----------------------------------------------------------------------

def processes():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield entry


def seen_in_processes(text):
    found = []
    for entry in processes():
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                if text.encode() in (entry / name).read_bytes():
                    found.append(f"{entry.name}/{name}")
    return found


def test_value_in_no_command_line_environment_or_file(vault):
    """Looked for all the time while credentials are set, and on the disk afterwards."""
    base, seen, done = canary(), [], threading.Event()

    def look():
        while not done.is_set():
            seen.extend(seen_in_processes(base))
    looker = threading.Thread(target=look)
    looker.start()
    try:
        vault.create("demo")
        for i in range(5):
            vault.sbx("secret", "set", "-f", "anthropic", input=f"{base}{i}", check=0)
            vault.sbx("secret", "set", "-f", "--sandbox", "demo", "openai", input=f"{base}{i}",
                      check=0)
            vault.sbx("-D", "secret", "set-custom", "-f", "--host", "api.corp.example", "corp",
                      input=f"{base}{i}", check=0)
        out = [vault.sbx(*args).stdout
               for args in (["secret", "ls"], ["secret", "ls", "--json"], ["inspect", "demo"],
                                                   ["inspect", "demo", "--json"], ["diagnose"],
                            ["audit", "show", "--json"])]
        assert not any(base in o for o in out)
    finally:
        done.set()
        looker.join()
    assert seen == []
    assert files_with(vault.root, base) == []
    assert (vault.root / "state/sbx/vault/sealed").exists()
    # the search would have seen it
    (vault.root / "state/sbx/here").write_text(base)
    assert files_with(vault.root, base) == [vault.root / "state/sbx/here"]
    p = subprocess.Popen(["sleep", "20"], env={"X": base})
    time.sleep(0.1)
    assert seen_in_processes(base)
    p.kill()
    p.wait()


def test_sbxd_does_not_get_the_keys_of_the_shell(vault):
    value = canary()
    vault.sbx("daemon", "stop")
    vault.sbx("ls", env={"ANTHROPIC_API_KEY": value, "XDG_SEEN": "seen"}, check=0)
    assert seen_in_processes(value) == []
    # no process can read the environment of sbxd, so sbxd reports it
    path = vault.root / "run/sbx/sbxd.inventory"
    os.kill(json.loads(vault.sbx("daemon", "status", "--json").stdout)["pid"], signal.SIGUSR1)
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, "sbxd wrote no inventory"
        time.sleep(0.05)
    said = path.read_text()
    assert "env XDG_SEEN=seen\n" in said and value not in said


def test_records_in_the_audit_log(vault):
    vault.create("demo")
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    vault.sbx("secret", "set", "--sandbox", "demo", "github", input=canary("ghp_"), check=0)
    vault.sbx("secret", "rm", "-f", "anthropic", check=0)
    vault.sbx("rm", "--force", "demo", check=0)
    text = "".join(f.read_text()
                   for f in sorted((vault.root / "state/sbx/audit/sbxd").glob("*.jsonl")))
    records = [(r["action"], r["reason"]) for r in map(json.loads, text.splitlines())
               if r.get("action", "").startswith("secret")]
    assert records[:3] == [("secret-set", "anthropic, all sandboxes"),
                           ("secret-set", "github, sandbox demo"),
                           ("secret-rm", "anthropic, all sandboxes")]
    assert records[3][0] == "secret-rm" and "removed sandbox" in records[3][1] and len(records) == 4
    assert names(vault) == []
    vault.sbx("audit", "verify", check=0)


# -- import ----------------------------------------------------------------------------------------

def test_import(vault):
    github, key, other = canary("ghp_"), canary(), canary()
    env = {"GH_TOKEN": github, "GITHUB_TOKEN": "another-" + github, "ANTHROPIC_API_KEY": key,
           "OPENAI_API_KEY": "sk-proxy-managed-000", "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7",
           "AWS_SECRET_ACCESS_KEY": "z" * 40}
    p = vault.sbx("secret", "import", env=env, check=0)
    assert "Nothing was changed" in p.stderr and "--yes" in p.stderr and names(vault) == []
    assert github not in p.stdout + p.stderr and key not in p.stdout and "z" * 40 not in p.stdout
    assert "GH_TOKEN and GITHUB_TOKEN differ" in p.stderr
    rows = {line.split()[0]: line for line in p.stdout.splitlines()}
    assert "skip" in rows["openai"] and rows["anthropic"].endswith("set") and "ghp_****" + github[
        -4:] in rows["github"]
    vault.sbx("secret", "import", "--dry-run", env=env, check=0)
    assert names(vault) == []
    vault.sbx("secret", "import", "--yes", "anthropic", env=env, check=0)
    assert names(vault) == ["anthropic"]
    p = vault.sbx("secret", "import", "--yes", env={**env, "ANTHROPIC_API_KEY": other}, check=0)
    assert "already exists" in p.stdout and sorted(names(vault)) == ["anthropic", "aws", "github"]
    assert next(s for s in listed(vault) if s["name"] == "anthropic")["secret"].endswith(key[-4:])
    vault.sbx("secret", "import", "--yes", "-f", "anthropic", env={"ANTHROPIC_API_KEY": other},
              check=0)
    assert next(s for s in listed(vault) if s["name"] == "anthropic")["secret"].endswith(other[-4:])
    assert files_with(vault.root, github) == [] and files_with(vault.root, "z" * 40) == []
    p = vault.sbx("secret", "import", "antropic", env=env, check=1)
    assert "anthropic" in p.stderr
    p = vault.sbx("secret", "import", check=0)
    assert "None of the variables" in p.stderr


# -- ls, rm, scope ---------------------------------------------------------------------------------

def test_ls(vault):
    p = vault.sbx("secret", "ls", check=0)
    assert (p.stdout == "" and "No credentials found" in p.stderr
            and "try: sbx secret services" in p.stderr)
    assert listed(vault) == []
    vault.create("demo")
    vault.create("other")
    vault.sbx("secret", "set", "github", input=canary("ghp_"), check=0)
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    vault.sbx("secret", "set", "--sandbox", "demo", "github", input="short", check=0)
    lines = vault.sbx("secret", "ls", check=0).stdout.splitlines()
    assert lines[0].split() == ["SCOPE", "TYPE", "NAME", "SECRET", "HOSTS", "CREATED", "LAST-USED"]
    assert any(line.startswith("sandbox:demo") and " **** " in line and line.endswith("never")
               for line in lines)
    assert sorted((s["name"], s["scope"])
                  for s in listed(vault, "--sandbox",
                                  "demo")) == [("anthropic", "global"), ("github", "sandbox")]
    assert sorted((s["name"], s["scope"])
                  for s in listed(vault, "--sandbox",
                                  "other")) == [("anthropic", "global"), ("github", "global")]
    assert all(s["scope"] == "global" for s in listed(vault, "-g"))
    assert vault.sbx("secret", "ls", "-q",
                     check=0).stdout.split() == ["github", "anthropic", "github"]
    text = vault.sbx("inspect", "demo", check=0).stdout
    assert "credential anthropic (global) to api.anthropic.com:443" in text.replace("  ", " ")
    assert "github (sandbox)" in text
    creds = json.loads(vault.sbx("inspect", "demo", "--json", check=0).stdout)["credentials"]
    assert sorted(c["name"] for c in creds) == ["anthropic",
                                                "github"] and all("secret" not in c for c in creds)
    assert "CREDENTIAL" not in vault.sbx("ls", check=0).stdout.upper()


def test_rm(vault):
    p = vault.sbx("secret", "rm", "anthropic", check=1)
    assert "credential 'anthropic' not found" in p.stderr and "try:" in p.stderr
    vault.create("demo")
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    vault.sbx("secret", "set", "--sandbox", "demo", "github", input=canary(), check=0)
    assert "sbx secret rm anthropic" in vault.sbx("secret", "rm", "-f", "antropic", check=1).stderr
    assert "--sandbox demo github" in vault.sbx("secret", "rm", "-f", "github", check=1).stderr
    assert "sbx secret rm -f anthropic" in vault.sbx("secret", "rm", "anthropic", check=1).stderr
    assert len(names(vault)) == 2
    vault.sbx("secret", "rm", "-f", "anthropic", check=0)
    assert names(vault) == ["github"]
    with Typed(vault, "secret", "rm", "--sandbox", "demo", "github") as t:
        t.wait_for("[y/N]")
        t.type("n\r")
        assert t.end() == 1
    with Typed(vault, "secret", "rm", "--sandbox", "demo", "github") as t:
        t.wait_for("[y/N]")
        t.type("y\r")
        assert t.end() == 0
    assert names(vault) == []


def put_str(text):
    return struct.pack("<H", len(text)) + text.encode()


def store(inst, sandbox_id, name, value):
    """What a keeper's STORE of a token leaves in the vault, set by an admin: a keeper's channel
    cannot be had; gives the code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(20)
        s.connect(str(pathlib.Path(inst.env["XDG_RUNTIME_DIR"]) / "sbx/vault.sock"))

        def send(kind, number, body, fds=()):
            socket.send_fds(s, [struct.pack("<HHII", kind, 0, number, len(body)) + body], list(fds))
        s.recv(4096)  # HELLO
        send(2, 0, b"")
        r, w = os.pipe()
        os.write(w, value.encode())
        os.close(w)
        send(4, 1, put_str(name) + put_str(sandbox_id) + b"\0" + put_str("") * 5, [r])
        os.close(r)
        kind, _, number, _ = struct.unpack("<HHII", (answer := s.recv(4096))[:12])
        assert (kind, number) == (16, 1)
        return struct.unpack("<i", answer[12:16])[0]


def test_tokens_of_a_login(vault):
    vault.create("demo")
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    sandbox_id = json.loads(vault.sbx("inspect", "demo", "--json", check=0).stdout)["id"]
    assert store(vault, sandbox_id, "anthropic.access", canary("sk-ant-oat01-")) == 0
    assert store(vault, sandbox_id, "anthropic.refresh", canary("sk-ant-ort01-")) == 0
    tokens = [s for s in listed(vault) if s["kind"] == "oauth"]
    assert [s["name"] for s in tokens] == ["anthropic.access", "anthropic.refresh"]
    assert all(s["known"] and s["sandbox"] == "demo" and "api.anthropic.com:443" in s["hosts"]
               and s["env"] == [] for s in tokens)
    assert any(line.split()[:3] == ["sandbox:demo", "oauth", "anthropic.access"]
               for line in vault.sbx("secret", "ls", check=0).stdout.splitlines())
    # the named scope, and everything with this name in it
    vault.sbx("secret", "rm", "-f", "anthropic", check=0)
    assert names(vault) == ["anthropic.access", "anthropic.refresh"]
    vault.sbx("secret", "rm", "-f", "--sandbox", "demo", "anthropic", check=0)
    assert names(vault) == []
    p = vault.sbx("secret", "rm", "-f", "--sandbox", "demo", "anthropic", check=1)
    assert "credential 'anthropic' not found for sandbox demo" in p.stderr


def test_sandbox_takes_its_credentials_along(vault):
    vault.create("demo")
    vault.sbx("secret", "set", "--sandbox", "demo", "github", input=canary("ghp_"), check=0)
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    vault.sbx("rename", "demo", "other", check=0)
    assert {s["sandbox"] for s in listed(vault)} == {"other", None}
    vault.sbx("rm", "--force", "other", check=0)
    assert names(vault) == ["anthropic"]
    vault.create("other")
    assert names(vault, "--sandbox", "other") == ["anthropic"]


# -- custom, references, services, status ----------------------------------------------------------

def test_custom(vault):
    vault.sbx("secret", "set-custom", "--host", "api.corp.example", "--host",
              "git.corp.example:8443", "--header", "Private-Token",
              "--env", "CORP_TOKEN", "--placeholder", "ct-{rand}", "corp", input=canary("ct-"),
              check=0)
    [s] = listed(vault)
    assert s["kind"] == "custom" and s["hosts"] == ["api.corp.example:443", "git.corp.example:8443"]
    assert s["header"] == "private-token" and s["format"] == "%s" and s["sentinel"].startswith(
        "ct-proxymanaged")
    vault.sbx("secret", "set-custom", "--host", "b.example", "plain", input=canary(), check=0)
    s = next(s for s in listed(vault) if s["name"] == "plain")
    assert s["header"] == "authorization" and s["format"] == "Bearer %s" and s["sentinel"] == ""
    p = vault.sbx("secret", "set-custom", "--host", "api.openai.com", "mine", input=canary(),
                  check=1)
    assert "openai" in p.stderr
    p = vault.sbx("secret", "set-custom", "--host", "**", "mine", input=canary(), check=1)
    assert "every host" in p.stderr
    p = vault.sbx("secret", "set-custom", "--host", "a.example", "github", input=canary(), check=1)
    assert "name of a service" in p.stderr


def test_references(vault):
    vault.sbx("secret", "set", "github", "--command", "echo 'two words' x", "--refresh", "30m",
              check=0)
    s = listed(vault)[0]
    assert s["source"] == "command" and s["program"].endswith("/echo") and s["refresh_s"] == 1800
    assert s["secret"] == "(on demand)"
    p = vault.sbx("secret", "set", "anthropic", "--command", "no-such-program-here", check=1)
    assert "no-such-program-here" in p.stderr
    p = vault.sbx("secret", "set", "dockerhub", "--ref", "docker:nosuch:index.example", check=1)
    assert "docker-credential-nosuch" in p.stderr
    helper = vault.root / "docker-credential-own"
    helper.write_text("#!/bin/sh\n")
    helper.chmod(0o755)
    env = {"PATH": f"{vault.root}:{vault.env['PATH']}"}
    vault.sbx("secret", "set", "dockerhub", "--ref", "docker:own:https://index.example/v1/",
              env=env, check=0)
    s = next(s for s in listed(vault) if s["name"] == "dockerhub")
    assert s["source"] == "docker" and s["refresh_s"] == 3300 and s["program"] == str(helper)


@pytest.mark.parametrize("said,status,says", [
    ("200", 0, "api.groq.com:443 accepted the credential (status 200, reported by sandbox 'demo')"),
    ("404", 0, "accepted"), ("401", 1, "refused the credential (status 401)"),
    ("403", 1, "refused"), ("503", 1, "did not decide"), ("000", 1, "reported no status"),
    ("\033[2J", 1, "reported no status"),
])
def test_a_credential_is_verified_from_a_sandbox(vault, said, status, says):
    """The stand-in of the sandbox runs this curl."""
    programs = vault.root / "programs"
    programs.mkdir()
    (programs / "curl").write_text(
        f"#!/bin/sh\necho \"$@\" >>{vault.root}/asked\nprintf '{said}'\n")
    (programs / "curl").chmod(0o755)
    vault.sbx("daemon", "stop", check=0)
    vault.sbx("ls", env={"PATH": f"{programs}:{vault.env['PATH']}"}, check=0)
    vault.sbx("policy", "allow", "network", "api.groq.com", check=0)
    vault.create("demo")
    value = canary("gsk_")
    p = vault.sbx("secret", "set", "groq", "--verify", "demo", input=value, check=status)
    assert says in p.stdout + p.stderr and "\033" not in p.stdout + p.stderr
    asked = (vault.root / "asked").read_text()
    assert asked.strip().endswith("https://" + "api.groq.com:443/openai/v1/models")
    assert value not in asked and names(vault) == ["groq"]


def test_what_cannot_be_verified_is_said(vault):
    vault.create("demo")
    for service, says in (("groq", "does not allow api.groq.com:443 for sandbox 'demo'"),
                          ("amp", "has no line 'check'")):
        p = vault.sbx("secret", "set", service, "--verify", "demo", input=canary(), check=1)
        assert says in p.stderr and "the credential is set, but not verified" in p.stderr
    assert "nobody" in vault.sbx("secret", "set", "-f", "groq", "--verify", "nobody",
                                 input=canary(), check=1).stderr


@pytest.mark.parametrize("ref,argv", [
    ("op://work/open ai/key", ["op", "read", "--no-newline", "op://work/open ai/key"]),
    ("op://work/item/section/key", ["op", "read", "--no-newline", "op://work/item/section/key"]),
    ("pass:web/github", ["pass", "show", "web/github"]),
    ("aws:prod/key", ["aws", "secretsmanager", "get-secret-value", "--secret-id", "prod/key",
                      "--query", "SecretString", "--output", "text"]),
    ("aws:arn:aws:secretsmanager:eu-west-1:1:secret:k",
     ["aws", "secretsmanager", "get-secret-value", "--secret-id",
      "arn:aws:secretsmanager:eu-west-1:1:secret:k", "--query", "SecretString", "--output", "text",
      "--region", "eu-west-1"]),
])
def test_a_password_manager_is_run_by_its_own_program(vault, ref, argv):
    """The vault's runner executes exactly these words, without a shell."""
    programs = vault.root / "programs"
    programs.mkdir()
    program = programs / argv[0]
    program.write_text("#!/bin/sh\nexit 1\n")
    env = {"PATH": f"{programs}:{vault.env['PATH']}"}
    p = vault.sbx("secret", "set", "groq", "--ref", ref, env=env, check=1)
    assert f"program '{argv[0]}' not found" in p.stderr
    program.chmod(0o755)
    vault.sbx("secret", "set", "groq", "--ref", ref, env=env, check=0)
    [s] = listed(vault)
    assert s["program"] == str(program) and s["source"] == "command" and s["refresh_s"] == 3300
    [registered] = (vault.root / "state/sbx/programs").iterdir()
    content, at = registered.read_bytes(), 0
    for word in [str(program), *argv[1:]]:
        at = content.index(word.encode(), at) + len(word)


def test_a_registry_gets_a_service_of_its_own(vault):
    where = vault.root / "config/sbx/services/registry-r-example-com-5000.conf"
    p = vault.sbx("secret", "set", "--registry", "r.example.com:5000", input="ci:pass-word",
                  check=0)
    assert "Credential 'registry-r-example-com-5000' set for all sandboxes" in p.stdout
    assert "r.example.com:5000" in p.stdout and "allow network r.example.com:5000" in p.stderr
    assert "pass-word" not in where.read_text() + p.stdout + p.stderr
    vault.create("demo")
    vault.sbx("secret", "set", "--registry", "r.example.com:5000", "--sandbox", "demo", "--user",
              "ci", "--token-service", "auth.example.com/jwt", input="another-password", check=0)
    assert "token auth.example.com:443 /jwt" in where.read_text()
    assert names(vault) == ["registry-r-example-com-5000"] * 2
    assert "registry-r-example-com-5000" in vault.sbx("secret", "services", check=0).stdout
    vault.sbx("secret", "rm", "-f", "registry-r-example-com-5000", check=0)
    assert where.exists()
    vault.sbx("secret", "rm", "-f", "--sandbox", "demo", "registry-r-example-com-5000", check=0)
    assert not where.exists() and names(vault) == []


@pytest.mark.parametrize("host,token,says", [
    ("registry.gitlab.com:443", "api.github.com/t", "service 'github'"),
    ("registry.example.com", "gitlab.com/jwt/auth", "service 'gitlab'"),
    ("registry.example.com", "mine.example.com/t", "service 'mine'"),
])
def test_a_registry_of_another_service_changes_nothing(vault, host, token, says):
    services = vault.root / "config/sbx/services"
    services.mkdir()
    mine = services / "mine.conf"
    mine.write_text("service 1\nname mine\nabout x\nslot a\nhost mine.example.com:443\nbasic u\n"
                    "end\n")
    args = ["--token-service", token] if token else []
    p = vault.sbx("secret", "set", "--registry", host, *args, input="ci:pass-word", check=1)
    assert says in p.stderr and "try: sbx secret services" in p.stderr
    assert list(services.iterdir()) == [mine] and names(vault) == []


def test_a_service_file_of_the_user_is_not_replaced(vault):
    services = vault.root / "config/sbx/services"
    services.mkdir()
    own = services / "registry-r-example.conf"
    text = ("service 1\nname registry-r-example\nabout x\nslot a\nhost r.example:443\nbasic u\n"
            "end\n")
    own.write_text(text)
    p = vault.sbx("secret", "set", "--registry", "r.example", input="ci:pass-word", check=1)
    assert "sbx secret set registry-r-example" in p.stderr
    vault.sbx("secret", "set", "registry-r-example", input="pass-word", check=0)
    vault.sbx("secret", "rm", "-f", "registry-r-example", check=0)
    assert own.read_text() == text


def test_a_program_in_a_workspace_is_refused(vault):
    """It is executed on the host, and the guest could change it."""
    vault.create("demo", str(vault.work))
    for folder, word in ((vault.work, "workspace of the sandbox 'demo'"), (vault.root, "")):
        program = folder / "token"
        program.write_text("#!/bin/sh\necho value\n")
        program.chmod(0o755)
        p = vault.sbx("secret", "set", "-f", "github", "--command", str(program),
                      check=1 if word else 0)
        assert word in p.stderr
    link = vault.root / "link"
    link.symlink_to(vault.work / "token")
    assert "workspace" in vault.sbx("secret", "set", "-f", "github", "--command", str(link),
                                    check=1).stderr
    program.chmod(0o757)
    assert "another user can change" in vault.sbx("secret", "set", "-f", "github", "--command",
                                                  str(program), check=1).stderr
    programs = vault.root / "state/sbx/programs"
    assert len(list(programs.iterdir())) == 1
    assert [f.stat().st_mode & 0o777 for f in [programs, *programs.iterdir()]] == [0o700, 0o600]
    vault.sbx("secret", "rm", "-f", "github", check=0)
    for _ in range(50):
        if not programs.exists():
            break
        time.sleep(0.1)
    assert not programs.exists()


def test_a_link_in_a_workspace_is_no_program(vault):
    """W2: the guest can replace the link with its own program."""
    vault.create("demo", str(vault.work))
    get = vault.work / "get"
    get.symlink_to("/usr/bin/true")
    bin = vault.work / ".venv/bin"
    bin.mkdir(parents=True)
    (bin / "python").symlink_to("/usr/bin/python3")
    through = vault.root / "through"
    through.symlink_to(bin)
    for program, env in ((str(get), {}),
                         ("python -m keyring", {"PATH": f"{bin}:{vault.env['PATH']}"}),
                         (str(through / "python"), {}),
                         (f"{vault.work}/../through/../bin/python", {})):
        p = vault.sbx("secret", "set", "-f", "github", "--command", program, env=env, check=1)
        assert "workspace of the sandbox 'demo'" in p.stderr, (program, p.stderr)
    assert not list((vault.root / "state/sbx/programs").glob("*"))


def test_a_script_in_a_workspace_is_no_argument(vault):
    """The program is the host's, what it executes is the guest's."""
    vault.create("demo", str(vault.work))
    (vault.work / "get.py").write_text("print('value')\n")
    (vault.root / "through").symlink_to(vault.work)
    for words in (f"/usr/bin/python3 {vault.work}/get.py", f"/bin/sh {vault.root}/through/later.sh",
                  f"/usr/bin/env --chdir={vault.work} true"):
        p = vault.sbx("secret", "set", "-f", "github", "--command", words, check=1)
        assert "workspace of the sandbox 'demo'" in p.stderr, (words, p.stderr)
    (vault.root / "get.py").write_text("print('value')\n")
    vault.sbx("secret", "set", "-f", "github", "--command", f"/usr/bin/python3 {vault.root}/get.py",
              check=0)


def test_what_a_guest_can_write_is_known_at_each_execution(vault):
    """sbx-vault-run reads it: a workspace may come after the program was registered."""
    other = vault.root / "other"
    other.mkdir()
    vault.create("demo", str(vault.work), f"{other}:ro")
    files = list((vault.root / "state/sbx/writable").iterdir())
    assert [f.read_bytes() for f in files] == [str(vault.work).encode() + b"\0"]
    vault.sbx("rm", "-f", "demo", check=0)
    for _ in range(50):
        if not files[0].exists():
            break
        time.sleep(0.1)
    assert not files[0].exists()


def test_services(vault):
    p = vault.sbx("secret", "services", check=0)
    assert "anthropic" in p.stdout and "ANTHROPIC_API_KEY" in p.stdout
    assert len(vault.sbx("secret", "services", "-q", check=0).stdout.split()) >= 15
    own = vault.root / "config/sbx/services"
    own.mkdir()
    (own / "bad.conf").write_text("service 1\nname bad\nnonsense\nend\n")
    p = vault.sbx("secret", "services", check=1)
    assert "bad.conf" in p.stderr and "line 3" in p.stderr and "anthropic" in p.stdout


def test_status(vault):
    p = vault.sbx("secret", "status", check=0)
    assert "empty" in p.stdout
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    p = vault.sbx("secret", "status", check=0)
    assert "ready" in p.stdout and "file" in p.stdout and "memory" in p.stdout
    assert json.loads(vault.sbx("secret", "status", "--json", check=0).stdout)["key"] == "file"
    text = vault.sbx("diagnose").stdout
    assert "Vault — 1 credentials, key:" in text


def test_unlock(vault):
    vault.sbx("settings", "set", "vault.key", "passphrase", check=0)
    p = vault.sbx("secret", "set", "anthropic", input=canary(), check=1)
    assert "sbx secret unlock" in p.stderr
    with Typed(vault, "secret", "unlock") as t:
        t.wait_for("New passphrase")
        t.type("correct horse\r")
        t.wait_for("Repeat the passphrase")
        t.type("correct house\r")
        assert t.end() == 1 and "differ" in t.text
    with Typed(vault, "secret", "unlock") as t:
        t.wait_for("New passphrase")
        t.type("correct horse\r")
        t.wait_for("Repeat the passphrase")
        t.type("correct horse\r")
        assert t.end() == 0 and "correct horse" not in t.text
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    assert "not locked" in vault.sbx("secret", "unlock", check=0).stderr
    vault.sbx("daemon", "stop", check=0)
    time.sleep(0.5)
    p = vault.sbx("secret", "ls", check=1)
    assert "locked" in p.stderr and "sbx secret unlock" in p.stderr
    vault.create("demo")
    assert "locked" in vault.sbx("inspect", "demo", check=0).stdout
    vault.sbx("secret", "unlock", input="wrong\n", check=1)
    vault.sbx("secret", "unlock", input="correct horse\n", check=0)
    assert names(vault) == ["anthropic"]
    assert files_with(vault.root, "correct horse") == []


# -- kill ------------------------------------------------------------------------------------------

def test_killed_in_the_middle(vault):
    """kill -9 of the command itself: the whole value is kept or none of it."""
    vault.sbx("secret", "set", "github", input=canary("ghp_"), check=0)
    kept = 0
    for i in range(20):
        value = canary() + "y" * 3000 + f"{i:04}"
        p = subprocess.Popen([SBX, "secret", "set", "-f", "anthropic"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=vault.env)
        with contextlib.suppress(BrokenPipeError):
            p.stdin.write(value.encode())
            p.stdin.close()
        time.sleep(0.001 * i)
        p.kill()
        p.wait()
        now = {s["name"]: s["secret"] for s in listed(vault)}
        assert "github" in now
        if "anthropic" in now and now["anthropic"].endswith(f"{i:04}"):
            kept += 1
        elif "anthropic" in now:
            assert now["anthropic"][-4:].isdigit()  # an earlier one, whole
    assert kept < 20


def test_concurrent_commands(vault):
    services = [s["name"]
                for s in json.loads(vault.sbx("secret", "services", "--json",
                                              check=0).stdout)["services"]
                if s["shape"] == "token"][:8]
    values = {s: canary() for s in services}
    threads = [threading.Thread(target=vault.sbx, args=("secret", "set", s),
                                kwargs={"input": values[s]}) for s in services]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert {s["name"]: s["secret"][-4:]
            for s in listed(vault)} == {s: v[-4:] for s, v in values.items()}


def test_end_of_daemon_ends_the_vault(vault):
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    vault.sbx("daemon", "stop", check=0)
    until = time.monotonic() + 60
    while seen_in_processes(f"--dir={vault.root}/state"):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert names(vault) == ["anthropic"]


def test_an_agent_without_its_credential_says_so(vault):
    p = vault.sbx("create", "toy", "--name", "box", check=2)
    folder = vault.root / "config/sbx/agents"
    folder.mkdir(parents=True)
    (folder
     / "toy.conf").write_text(
        "agent 1\nname toy\ntitle Toy\nabout x\ntemplate debian\ncommand true\nservice anthropic\nend\n")
    p = vault.sbx("create", "toy", "--name", "box", check=0)
    assert "No credential is set for Toy" in p.stderr and "sbx secret set anthropic" in p.stderr
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 95, check=0)
    assert "sbx secret set" not in vault.sbx("create", "toy", "--name", "cup", check=0).stderr
    assert json.loads(vault.sbx("agent", "inspect", "toy",
                                "--json").stdout)["services"] == [{"name": "anthropic",
                                                                   "set": True}]


# ---- scan of a sandbox ----

def scan(inst, *args):
    """(exit status, report, all that was printed)"""
    p = inst.sbx("secret", "scan", "--sandbox", "demo", "--json", *args)
    return p.returncode, json.loads(p.stdout), p.stdout + p.stderr


def found_in(report):
    """place -> the names that were found in it; only places with something."""
    return {p["what"]: sorted(p["credentials"]) for p in report["places"] if p["found"]}


def machine(inst):
    """A sandbox that reports that it runs, the file of its memory, and the places for planted text."""
    inst.create(mode="machine")
    info = json.loads(inst.sbx("inspect", "--json", "demo", check=0).stdout)
    info = info[0] if isinstance(info, list) else info
    state = inst.root / "state/sbx"
    own = state / "sandboxes" / info["id"]
    memory = [p for p in pathlib.Path(f"/proc/{info['qemu_pid']}/fd").iterdir()
              if os.readlink(p).startswith("/memfd:memory-backend")][0]
    return {"ram": memory, "disk": own / "root.qcow2", "docker": own / "docker.2.qcow2",
            "logs": own / "planted.log.1", "audit": state / "audit" / info["id"] / "planted",
            "files": inst.root / "run/sbx/s" / info["id"] / "planted",
            "base": inst.root / "data/sbx/templates/debian/root.img"}


PADDING = b"x" * 70000  # the value is not at the beginning


def test_scan_finds_a_value_in_each_place_of_a_sandbox_and_says_names_only(vault):
    value, other = canary(), canary()
    vault.sbx("secret", "set", "anthropic", input=value, check=0)
    vault.sbx("secret", "set", "openai", input=other, check=0)
    at = machine(vault)
    status, report, _ = scan(vault)
    assert status == 0 and found_in(report) == {} and report["values"] == 2 and report[
        "found"] == 0, report
    assert [p["what"] for p in report["places"]] == ["ram", "disk", "docker", "logs", "audit",
                                                     "files"]
    for place, path in at.items():
        was = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PADDING + value.encode() + PADDING)
        more = ["--what", "base"] if place == "base" else []
        status, report, said = scan(vault, *more)
        assert status == 1 and found_in(report) == {place: ["anthropic"]} and report[
            "found"] == 1, (place, report)
        assert value not in said and other not in said
        table = vault.sbx("secret", "scan", "--sandbox", "demo", *more, check=1)
        line = [text for text in table.stdout.splitlines() if text.startswith(place)][0]
        assert "anthropic x1" in line and "openai" not in table.stdout, table.stdout
        assert value not in table.stdout + table.stderr
        path.unlink() if was is None else path.write_bytes(was)
    assert scan(vault)[0] == 0


def test_scan_of_a_sandbox_knows_other_spellings_and_is_not_blind(vault):
    value = canary()
    vault.sbx("secret", "set", "anthropic", input=value, check=0)
    at = machine(vault)["logs"]
    for form in (value.encode().hex(), base64.b64encode(value.encode()).decode(),
                 "".join(f"%{b:02X}" for b in value.encode())):
        at.write_text(f"key={form}\n")
        assert found_in(scan(vault)[1]) == {"logs": ["anthropic"]}, form
    at.write_text("the control is here\n")
    status, report, _ = scan(vault, "--control", "the control is here")
    assert status == 0 and {p["what"]: p["control"] for p in report["places"]
                            if p["control"]} == {"logs": 1}
    assert scan(vault, "--control", "the control is not")[0] == 1


def test_scan_of_a_stopped_sandbox_has_no_memory_to_look_through(vault):
    vault.sbx("secret", "set", "anthropic", input=canary(), check=0)
    machine(vault)
    vault.sbx("stop", "demo", check=0)
    status, report, _ = scan(vault)
    assert status == 0 and [p["what"]
                            for p in report["places"]] == ["disk", "docker", "logs", "audit",
                                                           "files"]
    p = vault.sbx("secret", "scan", "--json", "--sandbox", "demo", "--what", "ram", check=1)
    assert p.stdout == "" and "not running" in p.stderr, p.stderr


def test_scan_refuses_what_it_cannot_look_through(vault):
    vault.create()
    for args, said in ((("--sandbox", "demo", "--what", "cups"), "invalid --what 'cups'"),
                       (("--sandbox", "demo", "--what", ","), "--what is empty"),
                       (("--what", "ram", "-"), "--what requires --sandbox"),
                       (("--sandbox", "demo", "-"), "FILE and --sandbox are mutually exclusive"),
                       (("--sandbox", "demo", "--control", "short"), "invalid --control")):
        p = vault.sbx("secret", "scan", *args)
        assert p.returncode == 2 and said in p.stderr, (args, p.returncode, p.stderr)
    p = vault.sbx("secret", "scan", "--sandbox", "nobody", check=1)
    assert p.stdout == "" and "no sandbox named nobody" in p.stderr
    p = vault.sbx("secret", "scan", vault.work, check=1)
    assert p.stdout == "" and "is a directory" in p.stderr and "tar c" in p.stderr


def test_reset_removes_all_sandboxes_and_templates_after_the_word(vault):
    inst = vault
    inst.create("one")
    inst.create("two")
    inst.sbx("secret", "set", "github", input="ghp_" + "x" * 36, check=0)
    audit = inst.root / "state/sbx/audit"
    p = inst.sbx("reset", check=1)
    assert "try: sbx reset --force" in p.stderr
    out, status = on_terminal(inst, ["reset"], b"yes\n")
    assert status == 1 and "Nothing was removed" in out and "template  debian" in out
    assert len(json.loads(inst.sbx("ls", "--json", check=0).stdout)["sandboxes"]) == 2
    out, status = on_terminal(inst, ["reset"], b"reset\n", seconds=60)
    assert status == 0, out
    assert json.loads(inst.sbx("ls", "--json", check=0).stdout)["sandboxes"] == []
    assert json.loads(inst.sbx("template", "ls", "--json", check=0).stdout)["templates"] == []
    kept = [p for p in audit.iterdir() if p.is_dir()]
    assert len(kept) >= 2, "the logs of removed sandboxes"
    assert "github" in inst.sbx("secret", "ls", check=0).stdout
    assert "balanced" in inst.sbx("policy", "ls", check=0).stdout
    inst.sbx("reset", "--force", "--all", check=0)
    assert not [p for p in kept if p.exists()]
    assert "github" not in inst.sbx("secret", "ls", check=0).stdout
    assert inst.sbx("policy", "allow", "network", "a.example").returncode != 0, "there is no policy"


def test_a_credential_in_a_staged_change_is_named_and_never_printed(vault):
    value = "ghp_" + "0123456789abcdefghij" * 2
    vault.sbx("secret", "set", "github", input=value, check=0)
    test_staged.create(vault)
    test_staged.send(vault, ("f/a.txt", F, "", b"one\nTWO\n"),
                     ("f/notes.txt", F, "", f"use {value} here\n".encode()))
    found = test_staged.notes_of(vault)
    assert found["notes.txt"] == ("secret", "secret: github") and found["a.txt"] == ("plain", None)
    listed = vault.sbx("review", "--list", "demo", check=0)
    assert "secret: github" in listed.stdout and value not in listed.stdout + listed.stderr
    vault.sbx("apply", "--all", "--yes", "demo", check=0)
    assert not (vault.work / "notes.txt").exists()
    assert (vault.work / "a.txt").read_text() == "one\nTWO\n"


# sbx secret own: one sandbox may use its own credentials for a service

def inspect_own(inst, name="demo"):
    return json.loads(inst.sbx("inspect", "--json", name, check=0).stdout)


def test_own_credentials_are_switched_on_and_off(vault):
    vault.create("demo")
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 95, check=0)
    assert [c["name"] for c in inspect_own(vault)["credentials"]] == ["anthropic"]
    p = vault.sbx("secret", "own", "anthropic", "--sandbox", "demo", check=0)
    assert p.stdout == "Sandbox demo can use its own credentials for anthropic\n"
    assert "does not intercept the hosts of anthropic in this sandbox" in p.stderr
    assert "key of another account" in p.stderr
    assert inspect_own(vault)["own_services"] == ["anthropic"]
    assert inspect_own(vault)["credentials"] == []
    shown = vault.sbx("inspect", "demo", check=0).stdout
    assert "anthropic: the sandbox uses its own; not intercepted" in shown
    p = vault.sbx("secret", "own", "--off", "anthropic", "--sandbox", "demo", check=0)
    assert p.stdout == "Sandbox demo can no longer use its own credentials for anthropic\n"
    assert p.stderr == ""
    assert inspect_own(vault)["own_services"] == []
    assert [c["name"] for c in inspect_own(vault)["credentials"]] == ["anthropic"]
    text = "".join(f.read_text()
                   for f in sorted((vault.root / "state/sbx/audit/sbxd").glob("*.jsonl")))
    records = [(r["action"], r["reason"]) for r in map(json.loads, text.splitlines())
               if r.get("action", "").startswith("own")]
    assert records == [("own-credential", "anthropic, sandbox demo"),
                       ("own-credential-off", "anthropic, sandbox demo")]
    assert "own-credential" in vault.sbx("audit", "show", check=0).stdout
    vault.sbx("audit", "verify", check=0)


def test_own_credentials_are_for_one_sandbox_and_one_service(vault):
    vault.create("demo")
    vault.create("other")
    vault.sbx("secret", "own", "openai", "--sandbox", "demo", check=0)
    assert inspect_own(vault, "other")["own_services"] == []
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 95, check=0)
    assert [c["name"] for c in inspect_own(vault)["credentials"]] == ["anthropic"]


@pytest.mark.parametrize("args, status, says", [
    (["anthropic"], 1, "missing --sandbox NAME\ntry: sbx secret own --help"),
    (["anthropic", "--sandbox", "dmo"], 1, "dmo"),
    (["antropic", "--sandbox", "demo"], 1, "anthropic"),
    (["--sandbox", "demo"], 2, "SERVICE"),
    (["anthropic", "openai", "--sandbox", "demo"], 2, "openai"),
])
def test_own_credentials_need_a_service_and_a_sandbox(vault, args, status, says):
    vault.create("demo")
    p = vault.sbx("secret", "own", *args, check=status)
    assert says in p.stderr.replace("  try:", "try:"), p.stderr
    assert inspect_own(vault)["own_services"] == []


# -- the password of the upstream proxy ------------------------------------------------------------

def test_the_password_of_the_upstream_proxy(vault):
    """It is stored for the user and the proxy of the setting, a second one replaces it, and what
    the messages name to type works."""
    value, second = canary("proxy-"), canary("proxy-")
    p = vault.sbx("secret", "set", "--proxy", input=value, check=1)
    assert "network.proxy has no user" in p.stderr
    assert "try: sbx settings set network.proxy http://USER@HOST:PORT" in p.stderr
    vault.sbx("settings", "set", "network.proxy", "http://bob@proxy.example:3128", check=0)
    vault.create("demo")
    p = vault.sbx("secret", "set", "--proxy", input=value, check=0)
    assert value not in p.stdout + p.stderr
    [s] = listed(vault)
    assert s["name"] == "upstream-proxy" and s["scope"] == "global" and value not in str(s)
    assert not files_with(vault.root, value)
    vault.sbx("secret", "set", "--proxy", "-f", input=second, check=0)
    assert names(vault) == ["upstream-proxy"]
    assert listed(vault)[0]["secret"].endswith(second[-4:])
    vault.sbx("secret", "rm", "-f", "upstream-proxy", check=0)
    assert names(vault) == []


@pytest.mark.parametrize("args,says", [
    (("--sandbox", "demo"), "mutually exclusive"), (("anthropic",), "without SERVICE"),
    (("--registry", "r.example"), "without SERVICE"), (("--verify", "demo"), "without SERVICE"),
])
def test_the_password_of_the_upstream_proxy_stands_alone(vault, args, says):
    vault.sbx("settings", "set", "network.proxy", "http://bob@proxy.example:3128", check=0)
    p = vault.sbx("secret", "set", "--proxy", *args, input="x")
    assert p.returncode != 0 and says in p.stderr and listed(vault) == []
