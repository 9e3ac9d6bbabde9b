# SPDX-License-Identifier: Apache-2.0
"""Credentials in the API of sbxd, with the real vault: notifications, values that are never
sent, and the lifetimes of the processes."""
import array
import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import secrets as random_bytes
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from test_api import Daemon, guard, is_alive, wait_for

PROGRAMS = os.environ["SBX_TEST_VAULT"].split(":")
ROUNDS = 20


class VaultDaemon(Daemon):
    key = "file"

    def __init__(self, root, env=None):
        self.more_env = env or {}
        super().__init__(root)

    def start(self):
        config = self.root / "c/sbx"
        config.mkdir(mode=0o700, exist_ok=True)
        (config / "settings.conf").write_text(f"vault.key = {self.key}\n")
        for program in PROGRAMS:
            link = self.libexec / pathlib.Path(program).name
            if not link.exists():
                link.symlink_to(program)
        self.env.update(self.more_env)
        super().start()

    def send(self, method, path, body=None, fds=(), timeout=60):
        """One request with descriptors."""
        text = "" if body is None else json.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(self.sock)
            s.sendmsg([head],
                      [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds
                      else [])
            return answer(s)

    def set(self, name, value, timeout=60, **meta):
        meta.setdefault("kind", "service")
        r, w = os.pipe()
        os.write(w, value if isinstance(value, bytes) else value.encode())
        os.close(w)
        try:
            return self.send("PUT", f"/v1/secrets/{name}", meta, [r], timeout)
        finally:
            os.close(r)

    def secrets(self):
        status, o = self.call("GET", "/v1/secrets", timeout=60)
        assert status == 200, o
        return o["secrets"]

    def names(self):
        return sorted(s["name"] for s in self.secrets())

    def status(self):
        return self.call("GET", "/v1/secrets/status", timeout=60)[1]

    def vault_pids(self):
        """sbx-vault, and the sbx-vault-run that started it."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"--dir={self.state}/vault" in (
                        entry / "cmdline").read_text():
                    found["vault"] = int(entry.name)
                    found["run"] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, UnicodeDecodeError):
                pass
        return found

    def kill_vault(self):
        """Until both have exited: before that a socket of theirs may be open, though /proc shows no
        command line any more."""
        pids = self.vault_pids()
        fds = [os.pidfd_open(pid) for pid in pids.values()]
        os.kill(pids["vault"], signal.SIGKILL)
        for fd in fds:
            assert select.select([fd], [], [], 60)[0]
            os.close(fd)

    def records(self):
        paths = sorted((self.state / "audit/sbxd").glob("*.jsonl"))
        lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        return [(r["action"], r["reason"]) for r in lines
                if r.get("action", "").startswith("secret-")]


def answer(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(65536)
        if not more:
            raise ConnectionResetError
        got += more
    head, body = got.split(b"\r\n\r\n", 1)
    length = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
              if line.lower().startswith(b"content-length")]
    while length and len(body) < length[0]:
        more = s.recv(65536)
        if not more:
            raise ConnectionResetError
        body += more
    return int(head.split()[1]), json.loads(body) if body else None


@contextlib.contextmanager
def running_daemon():
    root = tempfile.mkdtemp(prefix="sbxd-api-", dir="/tmp")
    guard.open(root)
    daemon = VaultDaemon(root)
    try:
        yield daemon
    finally:
        daemon.end()
        guard.close(root)
        shutil.rmtree(root)


@pytest.fixture
def v():
    with running_daemon() as daemon:
        yield daemon


def canary():
    return "sk-ant-api03-" + random_bytes.token_hex(24)


def files_with(root, text):
    """Every file below the directory that contains the text."""
    found = []
    for path in pathlib.Path(root).rglob("*"):
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            found.append(path)
    return found


CUSTOM = {"kind": "custom", "hosts": ["api.corp.example"], "header": "X-Corp-Key",
          "format": "Key %s",
          "env": ["CORP_KEY"], "sentinel": "ck-proxy-managed-0001"}

# -- what there is ---------------------------------------------------------------------------------


def test_nothing_is_started_for_nothing(v):
    assert v.secrets() == []
    assert v.status()["state"] == "empty"
    assert v.call("DELETE", "/v1/secrets/anthropic")[0] == 404
    assert v.vault_pids() == {} and not (v.state / "vault").exists()
    mode = (v.runtime / "vault.sock").stat().st_mode
    assert stat.S_ISSOCK(mode) and mode & 0o7777 == 0o600


def test_set_list_remove(v):
    value = canary()
    before = time.time()
    status, o = v.set("anthropic", value)
    assert status == 200, o
    assert o["name"] == "anthropic" and o["scope"] == "global" and "api.anthropic.com:443" in o[
        "hosts"]
    assert o["denied"] == o["hosts"]  # there is no policy
    [s] = v.secrets()
    assert s["kind"] == "service" and s["source"] == "value" and s["sandbox"] is None and s["known"]
    assert s["env"] == ["ANTHROPIC_API_KEY"] and s["used_at"] == 0
    assert before - 5 < s["created_at"] / 1000 < time.time() + 5
    assert value not in json.dumps(s) and s["secret"].endswith(value[-4:]) and "****" in s["secret"]
    state = v.status()
    assert state["state"] == "ready" and state["key"] == "file" and not state["locked"] and state[
        "secrets"] == 1
    assert state["memory"] in ("hidden", "locked", "plain")
    assert v.call("DELETE", "/v1/secrets/anthropic")[0] == 204
    assert v.secrets() == []
    status, o = v.call("DELETE", "/v1/secrets/anthropic")
    assert status == 404 and "sbx secret ls" in o["error"]["hint"]
    assert [r[0] for r in v.records()] == ["secret-set", "secret-rm", "secret-rm", "secret-failed"]
    assert v.records()[0][1] == "anthropic, all sandboxes"


def test_the_value_is_nowhere(v):
    v.kill()
    v.env["LD_PRELOAD"] = os.environ["SBX_TEST_DUMPABLE"]  # so that its memory can be searched
    v.start()
    del v.env["LD_PRELOAD"]
    value = canary()
    v.create("box")
    assert v.set("anthropic", value)[0] == 200
    assert v.set("openai", value + "B", sandbox="box")[0] == 200
    v.secrets(), v.status()
    assert files_with(v.root, value) == []
    assert files_with(v.root, value[:-8]) == []
    for pid in [*v.vault_pids().values(), v.proc.pid]:
        for name in ("cmdline", "environ"):
            # the vault's environment is closed to its own user
            with contextlib.suppress(PermissionError):
                assert value.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    # sbxd's own memory: the bytes never were in it
    assert value.encode() not in memory_of(v.proc.pid)
    # the search finds existing values
    (v.state / "x").write_text(value)
    assert files_with(v.root, value) == [v.state / "x"]


def memory_of(pid):
    out = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            words = line.split()
            if "r" not in words[1] or words[-1] in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
                continue
            start, end = (int(x, 16) for x in words[0].split("-"))
            try:
                mem.seek(start)
                out += mem.read(end - start)
            except OSError:
                pass
    return out


def test_services(v):
    o = v.call("GET", "/v1/services")[1]
    names = [s["name"] for s in o["services"]]
    assert "github" in names and "aws" in names and o["faults"] == []
    aws = next(s for s in o["services"] if s["name"] == "aws")
    assert aws["shape"] == "id:secret" and {"AWS_ACCESS_KEY_ID",
                                            "AWS_SECRET_ACCESS_KEY"} == {e["name"]
                                                                         for e in aws["env"]}
    own = v.root / "c/sbx/services"
    own.mkdir()
    (own
     / "corp.conf").write_text(
        "service 1\nname corp\nabout Corp\nslot api\nhost api.corp.example:443\nheader x-key %s\nend\n")
    (own / "bad.conf").write_text("service 1\nname bad\nslot x\nwhat is this\nend\n")
    o = v.call("GET", "/v1/services")[1]
    assert "corp" in [s["name"] for s in o["services"]]
    assert len(o["faults"]) == 1 and "bad.conf" in o["faults"][0] and "line 4" in o["faults"][0]
    assert v.set("corp", "hunter2-hunter2")[0] == 200


def test_policy_says_which_hosts_are_closed(v):
    assert v.call("PUT", "/v1/policy", {"preset": "balanced"})[0] == 200
    assert v.set("anthropic", canary())[1]["denied"] == ["api.anthropic.com:443"]
    assert v.call("POST", "/v1/policy/rules",
                  {"effect": "allow", "resources": "api.anthropic.com"})[0] == 201
    assert v.set("anthropic", canary())[1]["denied"] == []
    assert v.call("POST", "/v1/policy/rules",
                  {"effect": "deny", "resources": "api.anthropic.com"})[0] == 201
    assert v.set("anthropic", canary())[1]["denied"] == ["api.anthropic.com:443"]


# -- custom ----------------------------------------------------------------------------------------

def test_custom(v):
    status, o = v.set("corp", "v" * 20, **CUSTOM)
    assert status == 200 and o["hosts"] == ["api.corp.example:443"], o
    [s] = v.secrets()
    assert s["kind"] == "custom" and s["header"] == "x-corp-key" and s["format"] == "Key %s" and s[
        "env"] == ["CORP_KEY"]
    assert s["hosts"] == ["api.corp.example:443"] and s["sentinel"] == CUSTOM["sentinel"]


@pytest.mark.parametrize("change, why", [
    ({"hosts": ["**"]}, "every host"), ({"hosts": ["10.0.0.0/8"]}, "network"),
    ({"hosts": []}, "missing"),
    ({"hosts": ["*.com"]}, "labels"), ({"header": "host"}, "carry"), ({"header": "a b"}, "space"),
    ({"format": "Key"}, "%s"), ({"sentinel": "sk-1234567890"}, "proxy-managed"),
    ({"env": ["lower"]}, "upper"),
    ({"hosts": ["api.anthropic.com"]}, "anthropic"), ({"env": ["GH_TOKEN"]}, "github"),
    ({"format": "a\nslot x %s"}, "plain"), ({"hosts": ["a.example #x"]}, "words"),
    ({"color": "red"}, "unknown"),
    ({"hosts": "api.corp.example"}, "list"),
])
def test_custom_refused(v, change, why):
    status, o = v.set("corp", "v" * 20, **{**CUSTOM, **change})
    assert status in (400, 409) and why in o["error"]["message"], o
    assert v.vault_pids() == {}


def test_names(v):
    status, o = v.set("antropic", canary())
    assert status == 404 and o["error"]["code"] == "no-service"
    assert v.set("anthropic", canary(), **CUSTOM)[0] == 409  # a service's name
    assert v.set("a%20b", "x" * 20, **CUSTOM)[0] == 400
    assert v.set("a" * 64, "x" * 20, **CUSTOM)[0] == 400
    assert v.set("status", "x" * 20, **CUSTOM)[0] == 200  # a name as any other
    assert v.names() == ["status"] and v.status()["state"] == "ready"


# -- the descriptor --------------------------------------------------------------------------------

def test_the_value_needs_a_descriptor(v, tmp_path):
    put = ("PUT", "/v1/secrets/anthropic", {"kind": "service"})
    status, o = v.send(*put)
    assert status == 400 and "descriptor" in o["error"]["message"]
    r, w = os.pipe()
    assert v.send(*put, [r, r])[0] == 400  # an unexpected descriptor
    assert v.send(*put, [r, r, r, r, r, r, r, r])[0] == 400
    (tmp_path / "f").write_text("from a file")
    with open(tmp_path / "f") as f:
        status, o = v.send(*put, [f.fileno()])
    assert status == 400 and "pipe" in o["error"]["message"], o
    os.close(w)
    status, o = v.send(*put, [r])
    assert status == 400 and "empty" in o["error"]["message"]
    os.close(r)
    a, b = socket.socketpair()
    a.sendall(b"through a socket, long enough")
    a.close()
    assert v.send(*put, [b.fileno()])[0] == 200
    b.close()
    assert v.names() == ["anthropic"]
    assert v.descriptors() < 40


def test_limits(v):
    a, b = socket.socketpair()
    threading.Thread(target=lambda: (a.sendall(b"x" * 65536), a.close())).start()
    assert v.send("PUT", "/v1/secrets/anthropic", {"kind": "service"}, [b.fileno()])[0] == 200
    b.close()
    a, b = socket.socketpair()
    threading.Thread(target=lambda: (a.sendall(b"x" * 65537), a.close())).start()
    status, o = v.send("PUT", "/v1/secrets/openai", {"kind": "service"}, [b.fileno()])
    assert status == 413 and "65536" in o["error"]["message"], o
    assert v.names() == ["anthropic"]


def test_a_descriptor_nobody_wants_is_closed(v):
    r, w = os.pipe()
    before = v.descriptors()
    for _ in range(50):
        assert v.send("GET", "/v1/version", None, [r])[0] == 200
    wait_for(lambda: v.descriptors() <= before + 1)
    os.close(r)

    def nobody_reads():
        try:
            os.write(w, b"x")
            return False
        except BrokenPipeError:
            return True
    wait_for(nobody_reads)  # the answer goes first
    os.close(w)


def test_a_pipe_that_never_ends_has_a_bound_and_holds_up_nobody(v):
    v.set("github", "g" * 40)
    ends, answers = [], []

    def hang():
        r, w = os.pipe()
        ends.append(w)
        answers.append(v.send("PUT", "/v1/secrets/anthropic", {"kind": "service"}, [r]))
    threads = [threading.Thread(target=hang) for _ in range(6)]
    for t in threads:
        t.start()
    time.sleep(0.5)
    began = time.monotonic()
    assert v.names() == ["github"]
    assert time.monotonic() - began < 10  # the pipes have 20 s
    os.close(ends[0])
    for t in threads:
        t.join(50)
        assert not t.is_alive()
    assert sorted({a[0] for a in answers}) in ([400, 504], [504]), answers
    assert v.names() == ["github"]
    for w in ends[1:]:
        os.close(w)


# -- scope -----------------------------------------------------------------------------------------

def test_scope_goes_with_the_sandbox(v):
    box, other = v.create("box"), v.create("other")
    assert v.set("github", "g" * 40)[0] == 200
    assert v.set("github", "h" * 40, sandbox="box")[0] == 200
    assert v.set("openai", "i" * 40, sandbox=other["id"])[0] == 200
    assert v.set("openai", "i" * 40, sandbox="nobody")[0] == 404
    assert {(s["name"], s["sandbox"], s["sandbox_id"]) for s in v.secrets()} == {
        ("github", None, None), ("github", "box", box["id"]), ("openai", "other", other["id"])}
    assert v.call("PATCH", "/v1/sandboxes/box", {"name": "renamed"})[0] == 200
    assert "renamed" in {s["sandbox"] for s in v.secrets()}
    assert v.call("DELETE", "/v1/sandboxes/renamed", timeout=60)[0] == 204
    assert {(s["name"], s["sandbox"])
            for s in v.secrets()} == {("github", None), ("openai", "other")}
    assert v.call("DELETE", "/v1/secrets/openai")[0] == 404  # it is not global
    assert v.call("DELETE", "/v1/secrets/openai?sandbox=other")[0] == 204
    assert ("secret-rm", f"github, removed sandbox {box['id']}") in v.records()


def test_removed_while_the_vault_is_not_there(v):
    """What could not be taken out with its sandbox goes as soon as there is a vault."""
    v.create("box")
    assert v.set("github", "h" * 40, sandbox="box")[0] == 200
    run = v.libexec / "sbx-vault-run"
    run.unlink()
    v.kill_vault()
    began = time.monotonic()
    assert v.call("DELETE", "/v1/sandboxes/box", timeout=60)[0] == 204
    assert time.monotonic() - began < 15  # not VAULT_HELLO_MS
    status, o = v.call("GET", "/v1/secrets")
    assert status == 503 and "sbx-vault-run" in o["error"]["message"]
    run.symlink_to(next(p for p in PROGRAMS if p.endswith("vault-run")))
    wait_for(lambda: v.call("GET", "/v1/secrets")[0] == 200)
    wait_for(lambda: v.secrets() == [])


# -- references ------------------------------------------------------------------------------------

def test_references(v):
    ref = {"kind": "first-line", "program": "/bin/echo", "args": ["from-a-command-12345"],
           "refresh_s": 1800}
    status, o = v.send("PUT", "/v1/secrets/anthropic", {"kind": "service", "ref": ref})
    assert status == 200, o
    [s] = v.secrets()
    assert s["source"] == "command" and s["program"] == "/bin/echo" and s["refresh_s"] == 1800
    assert s["secret"] == "(on demand)"
    for bad in ({"program": "echo"}, {"kind": "docker", "args": []}, {"kind": "x"},
                {"refresh_s": -1}, {"refresh_s": 10 ** 9},
                {"args": ["a"] * 17}, {"args": "x"}, {"more": 1}, {"args": ["x" * 600]},
                {"program": "/a\nb"}):
        status, o = v.send("PUT", "/v1/secrets/openai", {"kind": "service", "ref": {**ref, **bad}})
        assert status in (400, 413), (bad, o)
    assert v.names() == ["anthropic"]


# -- the scan
# ------------------------------------------------------------------------------------------


def scan(v, data, control=None):
    """What the vault finds in these bytes, which are in a file, or that come by a pipe when it is a
    function."""
    if callable(data):
        r, w = os.pipe()
        feeder = threading.Thread(target=data, args=(w,))
        feeder.start()
    else:
        r = os.memfd_create("dump")
        os.write(r, data)
        os.lseek(r, 0, os.SEEK_SET)
    try:
        return v.send("POST", "/v1/secrets/scan" + (f"?control={control}" if control else ""), None,
                      [r])
    finally:
        os.close(r)
        if callable(data):
            feeder.join()


def test_a_scan_says_names_and_numbers_only(v):
    value, other = canary(), canary()
    v.set("anthropic", value, kind="service")
    v.set("groq", other, kind="service")
    assert scan(v, b"nothing of it")[1] == {"bytes": 13, "values": 2, "left_out": 0, "found": 0,
                                            "control": 0, "credentials": []}
    for form in (value, value.encode().hex(), base64.b64encode(b"x" + value.encode()).decode(),
                 "".join(f"%{b:02x}" for b in value.encode())):
        status, o = scan(v, f"some {form} text, a control".encode(), "a%20control")
        assert status == 200 and o["found"] == 1 and o["control"] == 1, (form, o)
        assert o["credentials"] == [{"name": "anthropic", "scope": "global", "sandbox": None,
                                     "times": 1}]
        assert value not in json.dumps(o)
    # a guess that is nearly right is wrong
    assert scan(v, (value[:-1] + "x").encode())[1]["found"] == (1 if len(value) > 48 else 0)
    assert scan(v, ("x" + value[1:]).encode())[1]["found"] == 0


def test_a_stream_is_scanned_to_its_end_and_others_go_on_meanwhile(v):
    value = canary()
    v.set("anthropic", value, kind="service")

    def feed(w):
        with os.fdopen(w, "wb") as f:
            f.write(b"x" * 300000 + value.encode()[:20])
            f.flush()
            time.sleep(0.5)
            assert v.names() == ["anthropic"]
            f.write(value.encode()[20:])
    status, o = scan(v, feed)
    assert status == 200 and o["found"] == 1 and o["bytes"] == 300000 + len(value), o


def test_holes_of_a_file_are_not_read(v):
    v.set("anthropic", canary(), kind="service")
    fd = os.memfd_create("ram")
    os.ftruncate(fd, 64 << 30)
    os.pwrite(fd, b"control-at-the-end", (64 << 30) - 100)
    begin = time.monotonic()
    status, o = v.send("POST", "/v1/secrets/scan?control=control-at-the-end", None, [fd])
    os.close(fd)
    assert status == 200 and o["control"] == 1 and o["bytes"] <= 4 << 20, o
    assert time.monotonic() - begin < 10


def test_what_cannot_be_scanned(v):
    assert scan(v, b"x")[1]["values"] == 0 and v.vault_pids() == {}
    assert v.send("POST", "/v1/secrets/scan")[0] == 400
    v.set("anthropic", canary(), kind="service")
    assert v.send("POST", "/v1/secrets/scan")[0] == 400
    assert scan(v, b"x", "short")[0] == 400
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    assert v.send("POST", "/v1/secrets/scan", None, [fd])[0] >= 500
    os.close(fd)


def test_scans_wait_for_each_other(v):
    value = canary()
    v.set("anthropic", value, kind="service")
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(scan(v, b"x" * 4000000 + value.encode())))
        for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [(s, o["found"]) for s, o in answers] == [(200, 1)] * 6


# -- lives -----------------------------------------------------------------------------------------

def vault_socket(v):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(str(v.runtime / "vault.sock"))
    return s


def test_a_connection_starts_the_vault(v):
    assert v.vault_pids() == {}
    with vault_socket(v) as s:
        kind, _, _, n = struct.unpack("<HHII", s.recv(20000)[:12])
        assert kind == 1 and n > 0  # HELLO
    assert v.vault_pids()


def test_nobody_waits_for_a_vault_that_cannot_start(v):
    (v.libexec / "sbx-vault-run").unlink()
    with vault_socket(v) as s:
        assert s.recv(100) == b""
    status, o = v.set("anthropic", canary())
    assert status == 503 and "sbx-vault-run" in o["error"]["message"]
    (v.libexec / "sbx-vault-run").symlink_to("/bin/false")
    wait_for(lambda: "exited immediately" in v.set("anthropic", canary())[1]["error"]["message"])
    # later and later
    text = v.log_text()
    assert text.count("exited immediately") < 20


def test_the_vault_outlives_sbxd(v):
    assert v.set("anthropic", canary())[0] == 200
    pids = v.vault_pids()
    v.kill()
    assert all(is_alive(p) for p in pids.values())
    with vault_socket(v) as s:
        assert len(s.recv(20000)) > 12
    v.start()
    assert v.names() == ["anthropic"] and v.vault_pids() == pids
    assert v.set("openai", canary())[0] == 200
    assert v.names() == ["anthropic", "openai"]
    # and when it dies after that, the new sbxd has the next one
    os.kill(pids["vault"], signal.SIGKILL)
    wait_for(lambda: not is_alive(pids["vault"]) and not is_alive(pids["run"]))
    assert v.names() == ["anthropic", "openai"]
    assert v.vault_pids()["vault"] != pids["vault"]
    with vault_socket(v) as s:
        assert len(s.recv(20000)) > 12


def test_the_socket_is_there_after_the_death_of_one_that_was_found(v):
    """Without any request to sbxd, a keeper that connects still gets a vault."""
    assert v.set("anthropic", canary())[0] == 200
    v.kill()
    v.start()
    pids = v.vault_pids()
    os.kill(pids["vault"], signal.SIGKILL)
    wait_for(lambda: not is_alive(pids["vault"]))

    def comes_up():
        try:
            with vault_socket(v) as s:
                return len(s.recv(20000)) > 12
        except ConnectionError:
            return False
    wait_for(comes_up, 20)
    assert v.vault_pids()["vault"] != pids["vault"]


def test_a_second_sbxd_never_has_a_second_vault(v):
    """kill -9 of sbxd again and again: one vault, one socket, nothing lost."""
    assert v.set("anthropic", canary())[0] == 200
    pids = v.vault_pids()
    for _ in range(5):
        v.kill()
        v.start()
        assert v.names() == ["anthropic"]
    assert v.vault_pids() == pids


def test_it_ends_with_a_clean_end_of_sbxd(v):
    assert v.set("anthropic", canary())[0] == 200
    pids = v.vault_pids()
    assert v.call("POST", "/v1/shutdown")[0] == 204
    v.proc.wait(10)
    wait_for(lambda: not any(is_alive(p) for p in pids.values()))
    assert not (v.runtime / "vault.sock").exists()
    v.start()
    assert v.names() == ["anthropic"]


def test_it_stays_for_sandboxes_that_run(v):
    v.run("box")
    assert v.set("anthropic", canary())[0] == 200
    pids = v.vault_pids()
    assert v.call("POST", "/v1/shutdown")[0] == 204
    v.proc.wait(10)
    time.sleep(0.3)
    assert all(is_alive(p) for p in pids.values())
    v.start()
    assert v.names() == ["anthropic"] and v.vault_pids() == pids


def check_kept(v, sets):
    """Every confirmed credential exists; every existing one was requested."""
    kept = {s["name"]: s["secret"] for s in v.secrets()}
    for name, (value, answers) in sets.items():
        if 200 in answers:
            assert name in kept, (name, answers)
        if name in kept:
            assert kept[name].endswith(value[-4:])


@pytest.mark.parametrize("who", ["vault", "run", "sbxd"])
def test_kill_in_the_middle_of_set(v, who):
    sets = {}
    assert v.set("github", "g" * 40)[0] == 200
    for i in range(ROUNDS):
        name, value, answers = f"c{i}", random_bytes.token_hex(20), []
        meta = {**CUSTOM, "hosts": [f"h{i}.corp.example"], "env": [f"CORP_{i}"]}
        pids = {}

        def is_there():
            """One that still answered may have been about to end: it is needed until it is
            there."""
            v.call("GET", "/v1/secrets", timeout=60)
            pids.update(v.vault_pids(), sbxd=v.proc.pid)
            return who in pids
        wait_for(is_there)
        t = threading.Thread(target=lambda: answers.append(safe_set(v, name, value, meta)))
        t.start()
        time.sleep(0.001 * (i % 10))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[who], signal.SIGKILL)
        if who == "sbxd":
            v.proc.wait()
            v.start()
        t.join(60)
        assert not t.is_alive()
        assert answers and answers[0] in (200, 503, None), answers
        sets[name] = (value, answers)
        wait_for(lambda: v.call("GET", "/v1/secrets", timeout=60)[0] == 200, 30)
    check_kept(v, sets)
    assert any(answers != [200] for _, answers in sets.values()), "it was never in the middle"
    assert "github" in v.names()
    # the sealed file is complete for a new vault too
    names = v.names()
    if pids := v.vault_pids():
        os.kill(pids["vault"], signal.SIGKILL)
    wait_for(lambda: v.call("GET", "/v1/secrets", timeout=60)[0] == 200, 30)
    assert v.names() == names


def safe_set(v, name, value, meta):
    try:
        return v.set(name, value, timeout=60, **meta)[0]
    except OSError:
        return None


def test_concurrent_sets(v):
    answers = []

    def one(i):
        meta = {**CUSTOM, "hosts": [f"h{i}.corp.example"], "env": [f"CORP_{i}"]}
        answers.append(safe_set(v, f"c{i}", f"value-{i:04}-" + "x" * 20 + f"{i:04}", meta))
        answers.append(safe_set(v, "shared", f"shared-{i:04}-" + "x" * 20 + f"{i:04}", {**CUSTOM}))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert answers == [200] * 48
    kept = {s["name"]: s["secret"] for s in v.secrets()}
    assert len(kept) == 25 and all(kept[f"c{i}"].endswith(f"{i:04}") for i in range(24))


def test_one_that_hangs_is_replaced(v):
    assert v.set("anthropic", canary())[0] == 200
    os.kill(v.vault_pids()["vault"], signal.SIGSTOP)
    began = time.monotonic()
    status, o = v.call("GET", "/v1/version")
    assert status == 200 and time.monotonic() - began < 1
    status, o = v.call("GET", "/v1/secrets", timeout=60)
    assert status in (200, 503, 504) and time.monotonic() - began < 50
    wait_for(lambda: v.call("GET", "/v1/secrets", timeout=60)[0] == 200, 60)
    assert v.names() == ["anthropic"]


def test_what_cannot_be_recorded_is_not_done(v):
    assert v.set("anthropic", canary())[0] == 200
    shutil.rmtree(v.state / "audit")
    (v.state / "audit").write_text("no folder")
    v.kill()
    v.start()
    status, o = v.set("openai", canary())
    assert status in (500, 503) and "audit" in o["error"]["message"], o
    assert v.names() == ["anthropic"]
    assert v.call("DELETE", "/v1/secrets/anthropic")[0] in (500, 503)
    assert v.names() == ["anthropic"]


HOSTILE = """#!/usr/bin/python3
import os, socket, struct, sys, time
at = socket.socket(fileno=3)
at.setblocking(True)
def message(kind, body, id=0):
    return struct.pack("<HHII", kind, 0, id, len(body)) + body
hello = message(1, struct.pack("<H", 5) + b"0.1.0")
while True:
    c, _ = at.accept()
    try:
        how = HOW
        if how == "garbage":
            c.send(os.urandom(200))
        elif how == "huge":
            c.send(message(1, b"x" * 60000))
        elif how == "not-hello":
            c.send(message(16, b""))
        elif how == "unasked":
            c.send(hello)
            c.recv(100)
            c.send(message(16, struct.pack("<iQH", 0, 0, 0), 777))
        elif how == "twice":
            c.send(hello)
            c.send(hello)
        elif how == "flood":
            c.send(hello)
            while True:
                c.send(message(12, struct.pack("<Q", 1)))
        elif how == "wrong-answer":
            c.send(hello)
            while True:
                m = c.recv(20000)
                c.send(message(14, b"", struct.unpack("<I", m[4:8])[0]))
        elif how == "dies":
            c.send(hello)
            c.recv(20000), c.recv(20000)
            sys.exit(3)
    except OSError:
        pass
    c.close()
"""


@pytest.mark.parametrize("ask", ["set", "list"])
def test_a_vault_that_died_before_it_was_asked_is_replaced(v, ask):
    """sbxd reads the request before it sees that the vault is dead: a new vault answers it."""
    assert v.set("openai", canary())[0] == 200
    body = json.dumps({"kind": "service"}) if ask == "set" else ""
    line = "PUT /v1/secrets/anthropic" if ask == "set" else "GET /v1/secrets"
    r, w = os.pipe()
    os.write(w, canary().encode())
    os.close(w)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(v.sock)
        s.sendmsg([line.encode()],
                  [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r]))] if ask == "set"
                  else [])
        assert v.call("GET", "/v1/version")[0] == 200  # sbxd has read the first half
        os.kill(v.proc.pid, signal.SIGSTOP)
        s.send(f" HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        v.kill_vault()
        os.kill(v.proc.pid, signal.SIGCONT)
        status, o = answer(s)
    os.close(r)
    assert status == 200, o
    assert v.names() == (["anthropic", "openai"] if ask == "set" else ["openai"])
    assert [r[0] for r in v.records()] == ["secret-set"] * (2 if ask == "set" else 1)


def check_answers_to_hostile_vault(v, how):
    run = v.libexec / "sbx-vault-run"
    run.unlink()
    run.write_text(HOSTILE.replace("HOW", repr(how)))
    run.chmod(0o755)
    began = time.monotonic()
    status, o = v.set("anthropic", canary())
    assert status in (503, 504), o
    assert time.monotonic() - began < 50
    began = time.monotonic()
    assert v.call("GET", "/v1/version")[0] == 200 and time.monotonic() - began < 1
    assert v.proc.poll() is None
    run.unlink()
    run.symlink_to(next(p for p in PROGRAMS if p.endswith("vault-run")))
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(run) in (entry / "cmdline").read_text():
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, UnicodeDecodeError):
            pass
    wait_for(lambda: v.set("anthropic", canary())[0] == 200, 30)
    assert v.names() == ["anthropic"]


def test_a_vault_out_of_its_mind():
    """sbxd reports an error in time, serves others, and uses a good vault as soon as one exists.
    All cases run at the same time: most of the time they wait."""
    def check_one(how):
        with running_daemon() as daemon:
            check_answers_to_hostile_vault(daemon, how)
    ways = ["garbage", "huge", "not-hello", "unasked", "twice", "flood", "wrong-answer", "dies"]
    assert all(f"== \"{how}\"" in HOSTILE for how in ways)
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        began = {how: pool.submit(check_one, how) for how in ways}
    wrong = {how: one.exception() for how, one in began.items() if one.exception()}
    assert not wrong


# -- locked ----------------------------------------------------------------------------------------

class PassphraseDaemon(VaultDaemon):
    key = "passphrase"

    def unlock(self, passphrase):
        r, w = os.pipe()
        os.write(w, passphrase)
        os.close(w)
        try:
            return self.send("POST", "/v1/secrets/unlock", None, [r])
        finally:
            os.close(r)


def test_passphrase():
    root = tempfile.mkdtemp(prefix="sbxd-api-", dir="/tmp")
    guard.open(root)
    v = PassphraseDaemon(root)
    try:
        status, o = v.set("anthropic", canary())
        assert status == 409 and o["error"]["code"] == "locked" and o["error"][
            "hint"] == "sbx secret unlock"
        assert v.status()["locked"]
        assert v.send("POST", "/v1/secrets/unlock")[0] == 400
        assert v.unlock(b"correct horse")[0] == 204
        v.create("box")
        assert v.set("anthropic",
                     canary())[0] == 200 and v.set("openai", canary(), sandbox="box")[0] == 200
        assert v.status()["key"] == "passphrase"
        v.kill_vault()
        status, o = v.call("GET", "/v1/secrets", timeout=60)
        assert status == 409 and o["error"]["code"] == "locked"
        assert v.call("DELETE", "/v1/sandboxes/box", timeout=60)[0] == 204
        status, o = v.unlock(b"wrong")
        assert status == 409 and o["error"]["code"] == "wrong-passphrase", o
        assert v.unlock(b"correct horse")[0] == 204
        wait_for(lambda: v.names() == ["anthropic"])
        assert v.unlock(b"again")[0] == 400
        assert not files_with(root, "correct horse")
    finally:
        v.end()
        guard.close(root)
        shutil.rmtree(root)


# -- the desktop's keyring -------------------------------------------------------------------------

def test_real_keyring(tmp_path):
    """gnome-keyring on a separate bus: the key exists, sbxd passes the bus on, and the next vault
    finds it."""
    for tool in ("dbus-run-session", "gnome-keyring-daemon"):
        assert shutil.which(tool), f"no {tool} here; try: tools/setup --test"
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(run),
           "LANG": "C",
           "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONDONTWRITEBYTECODE": "1",
           **{k: val for k, val in os.environ.items() if k.startswith("SBX_TEST_")}}
    inside = ("printf test | gnome-keyring-daemon --unlock --components=secrets >/dev/null; "
              "exec \"$0\" -c \"$1\"")
    code = (f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); "
            "import test_secrets; test_secrets.in_session()")
    p = subprocess.run(["dbus-run-session", "--", "sh", "-c", inside, sys.executable, code],
                       env=env,
                       capture_output=True, text=True, timeout=120)
    assert p.returncode == 0 and "keyring works" in p.stdout, (p.stdout, p.stderr)


class AutoDaemon(VaultDaemon):
    key = "auto"


def in_session():
    root = tempfile.mkdtemp(prefix="sbxd-api-", dir="/tmp")
    guard.open(root)
    v = AutoDaemon(root, {"DBUS_SESSION_BUS_ADDRESS": os.environ["DBUS_SESSION_BUS_ADDRESS"]})
    try:
        status, o = v.set("anthropic", canary())
        assert status == 200, (o, (v.state / "vault.log").read_text())
        state = v.status()
        assert state["key"] == "secret-service", state
        assert not (v.state / "vault/key").exists()
        v.kill_vault()
        assert v.names() == ["anthropic"] and v.status()["key"] == "secret-service"
        v.kill()
        v.start()
        assert v.names() == ["anthropic"]
        print("keyring works")
    finally:
        v.end()
        guard.close(root)
        shutil.rmtree(root)
