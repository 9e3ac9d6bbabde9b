# SPDX-License-Identifier: Apache-2.0
"""Servers that require a credential, with the real keeper, edge, egress, origins and vault
(CredRig): an S3 that checks the key's id (not the signature), an npm registry, a registry of
images. Clients with placeholder credentials succeed; the server refuses the same clients without
the credential.
"""
import base64
import datetime
import hashlib
import hmac
import http.server
import json
import pathlib
import secrets
import ssl
import subprocess
import sys
import threading
import urllib.parse

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
from rig import CredRig, build_folder  # noqa: E402

S3, NPM, IMAGES = "s3.us-east-1.amazonaws.com", "npm.test", "registry.test"
PRIVATE, TOKENS, AUTH = "private.test", "tokens.test", "auth.test"
USER, PASSWORD = "lab", secrets.token_hex(12)


class TokenHandler(http.server.BaseHTTPRequestHandler):
    """A registry with a token service: the password is for /jwt/auth of one host, tokens that it
    issued are for the other."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        said, server = self.headers.get("Authorization", ""), self.server
        at_auth = self.headers["Host"] == AUTH and self.path.startswith("/jwt/auth?")
        server.seen.append((self.headers["Host"], self.path, said))
        good, body = said in server.issued, {"repositories": ["lab/image"]}
        if at_auth:
            good, body = said == server.basic, {"token": secrets.token_hex(20)}
            server.issued.add("Bearer " + body["token"])
        content = json.dumps(body if good else {}).encode()
        self.send_response(200 if good else 401)
        if not good:
            self.send_header("WWW-Authenticate",
                             f'Bearer realm="https://{AUTH}/jwt/auth",service="{TOKENS}"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def token_server(lab):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TokenHandler)
    server.basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    server.seen, server.issued, server.port = [], set(), server.server_address[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(lab.cert, lab.key)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def registry_file(*words):
    """What `sbx secret set --registry` writes."""
    program = build_folder() / "tests/rigs/credrig/vaultctl"
    return subprocess.run([program, "registry", *words], capture_output=True, text=True,
                          check=True).stdout


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    names = (*credlab.NAMES, PRIVATE, TOKENS, AUTH)
    with credlab.Lab(tmp_path_factory.mktemp("lab"), names) as made:
        made.buckets, made.packages, made.images = made.s3(), made.npm(), made.registry(USER,
                                                                                        PASSWORD)
        made.tokens = token_server(made)
        yield made
        made.tokens.shutdown()


@pytest.fixture(scope="module")
def rig(lab):
    ports = {S3: lab.buckets.port, NPM: lab.packages.port, IMAGES: lab.images.port,
             PRIVATE: lab.images.port, TOKENS: lab.tokens.port, AUTH: lab.tokens.port}
    services = {"registry-private-test": registry_file(PRIVATE),
                "registry-tokens-test": registry_file(TOKENS, USER, f"{AUTH}/jwt/auth")}
    with CredRig([f"allow network {host}:443" for host in ports],
                 {f"{host}:443": f"127.0.0.1:{port}" for host, port in ports.items()},
                 lab.ca.pem, services) as made:
        made.trusted = made.ca()
        made.set_secret("aws", "S3RVER:S3RVER")
        made.set_custom("npm-lab", lab.packages.token, NPM, env="LAB_NPM",
                        sentinel="npm-proxy-managed-0")
        made.set_custom("images", base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(), IMAGES,
                        fmt="Basic %s")
        made.set_secret("registry-private-test", f"{USER}:{PASSWORD}")
        made.set_secret("registry-tokens-test", PASSWORD)
        yield made


def curl(rig, *argv):
    done = subprocess.run(["curl", "-sS", "-m", "20", "--suppress-connect-headers", "-w",
                           "\n%{http_code}", "--proxy", f"http://127.0.0.1:{rig.bridge()}",
                           "--cacert",
                           rig.trusted, *argv], capture_output=True, text=True, timeout=40,
                          check=False)
    assert done.returncode == 0, done.stderr
    body, _, code = done.stdout.rpartition("\n")
    return int(code), body


def keys(rig):
    env = rig.variables()
    return env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]


def used(rig, rule, op):
    return [r for r in rig.records() if r["kind"] == "credential-use" and r.get("rule") == rule
            and op in r.get("op", "")]


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
def test_a_signature_by_sentinels_is_one_by_the_keys(rig, tmp_path, how):
    path = tmp_path / "f"
    path.write_bytes(secrets.token_bytes(100000))
    sign = [how, "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", ":".join(keys(rig))]
    name = f"by{how}"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    code, body = curl(rig, *sign, "-H", f"x-amz-content-sha256: {digest}", "-T", path,
                      f"https://{S3}/lab/{name}")
    assert code == 200, body
    empty = hashlib.sha256(b"").hexdigest()
    out = tmp_path / "out"
    code, body = curl(rig, *sign, "-H", f"x-amz-content-sha256: {empty}", "-o", out,
                      f"https://{S3}/lab/{name}")
    assert code == 200 and out.read_bytes() == path.read_bytes()
    assert all(r["decision"] == "allow" and "used" in r["reason"]
               for r in used(rig, "aws", f"/lab/{name}"))


def presign(key, secret, path, method="GET", seconds=300):
    now = datetime.datetime.now(datetime.timezone.utc)
    day, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/us-east-1/s3/aws4_request"
    query = {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{key}/{scope}",
             "X-Amz-Date": stamp, "X-Amz-Expires": str(seconds),
             "X-Amz-SignedHeaders": "host"}
    text = "&".join(f"{k}={urllib.parse.quote(v, safe='')}" for k, v in sorted(query.items()))
    canonical = f"{method}\n{path}\n{text}\nhost:{S3}\n\nhost\nUNSIGNED-PAYLOAD"
    what = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    k = ("AWS4" + secret).encode()
    for part in (day, "us-east-1", "s3", "aws4_request"):
        k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(k, what.encode(), hashlib.sha256).hexdigest()
    return f"https://{S3}{path}?{text}&X-Amz-Signature={signature}"


def test_a_presigned_address_by_sentinels_works(rig, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"presigned")
    code, body = curl(rig, "-T", path, presign(*keys(rig), "/lab/pre", "PUT"))
    assert code == 200, body
    code, body = curl(rig, presign(*keys(rig), "/lab/pre"))
    assert (code, body) == (200, "presigned")


def test_somebody_elses_keys_do_not_leave(rig):
    code, body = curl(rig, "--aws-sigv4", "aws:amz:us-east-1:s3", "-u",
                      "AKIATHIEFTHIEFTHIEF2:thief", f"https://{S3}/lab/")
    assert code == 403 and "sbx" in body.lower(), body
    code, _ = curl(rig, presign("AKIATHIEFTHIEFTHIEF2", "thief", "/lab/pre"))
    assert code == 403


def test_npm_publishes_and_installs(rig, tmp_path):
    (tmp_path
     / "npmrc").write_text(
        f"registry=https://{NPM}/\n//{NPM}/:_authToken=${{LAB_NPM}}\nhttps-proxy=http://127.0.0.1:{rig.bridge()}\n"
                                    f"cafile={rig.trusted}\nfund=false\naudit=false\nupdate-notifier=false\nfetch-retries=0\n")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path),
           "NPM_CONFIG_USERCONFIG": str(tmp_path / "npmrc"),
           "LAB_NPM": rig.variables()["LAB_NPM"], "NODE_OPTIONS": ""}
    made, used_in = tmp_path / "made", tmp_path / "used"
    for folder in (made, used_in):
        folder.mkdir()
    (made
     / "package.json").write_text(json.dumps({"name": "lab-thing", "version": "1.0.0",
                                              "main": "i.js"}))
    (made / "i.js").write_text("module.exports = 42;\n")
    (used_in
     / "package.json").write_text(json.dumps({"name": "user", "version": "1.0.0", "private": True}))
    for argv, cwd in ((["npm", "publish"], made), (["npm", "install", "lab-thing"], used_in)):
        done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=90,
                              check=False)
        assert done.returncode == 0, done.stderr
    assert (used_in / "node_modules/lab-thing/i.js").read_text() == "module.exports = 42;\n"
    assert used(rig, "npm-lab", "PUT /lab-thing")


def test_an_image_is_pushed_and_pulled(rig):
    at = f"https://{IMAGES}/v2/lab/image"
    layer = secrets.token_bytes(200000)
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    done = subprocess.run(["curl", "-sS", "-m", "20", "-i", "--suppress-connect-headers", "--proxy",
                           f"http://127.0.0.1:{rig.bridge()}", "--cacert", rig.trusted, "-X",
                           "POST",
                           f"{at}/blobs/uploads/"], capture_output=True, text=True, timeout=40,
                          check=True)
    where = next(line.split(": ", 1)[1].strip() for line in done.stdout.splitlines()
                 if line.lower().startswith("location:"))
    (rig.dir / "layer").write_bytes(layer)
    code, body = curl(rig, "-X", "PUT", "-H", "Content-Type: application/octet-stream",
                      "--data-binary", f"@{rig.dir / 'layer'}", f"{where}&digest={digest}")
    assert code == 201, body
    out = rig.dir / "pulled"
    code, _ = curl(rig, "-o", out, f"{at}/blobs/{digest}")
    assert code == 200 and out.read_bytes() == layer


def test_a_private_registry_gets_the_password(rig):
    """docker-registry with htpasswd; the client in the guest has no login."""
    assert curl(rig, f"https://{PRIVATE}/v2/")[0] == 200
    assert curl(rig, f"https://{PRIVATE}/v2/_catalog")[0] == 200
    assert used(rig, "registry-private-test", "GET /v2/_catalog")
    code, body = curl(rig, "-u", "thief:another-password", f"https://{PRIVATE}/v2/_catalog")
    assert code == 403 and PASSWORD not in body


def test_a_private_registry_with_a_token_service_gets_its_tokens(rig, lab):
    """As docker does it: the registry names the token service, whose token is for the registry.
    The guest gets neither the password nor a token."""
    assert curl(rig, f"https://{TOKENS}/v2/_catalog")[0] == 401
    code, body = curl(rig, f"https://{AUTH}/jwt/auth?service={TOKENS}&scope=registry:catalog:*")
    token = json.loads(body)["token"]
    assert code == 200 and token.startswith("registry-proxy-managed-")
    code, body = curl(rig, "-H", f"Authorization: Bearer {token}", f"https://{TOKENS}/v2/_catalog")
    assert code == 200 and "lab/image" in body
    assert lab.tokens.seen[-1][2] in lab.tokens.issued
    curl(rig, "-H", f"Authorization: Bearer {token}", f"https://{TOKENS}/elsewhere")
    assert lab.tokens.seen[-1][1:] == ("/elsewhere", "")


def test_without_the_credential_servers_say_no(rig):
    """So that the tests above could fail."""
    for name in ("images", "npm-lab", "registry-private-test"):
        rig.remove_secret(name)
    rig.trusted.write_text(rig.trusted.read_text()
                           + pathlib.Path(rig.settings["network.extra-ca"]).read_text())
    assert curl(rig, f"https://{IMAGES}/v2/")[0] == 401
    assert curl(rig, f"https://{PRIVATE}/v2/")[0] == 401
    assert curl(rig, f"https://{NPM}/lab-thing")[0] in (401, 403)
