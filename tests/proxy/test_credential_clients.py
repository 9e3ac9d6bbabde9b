# SPDX-License-Identifier: Apache-2.0
"""Clients of other languages, with the real keeper, edge, egress, origins and vault (CredRig):
Java, Go, the AWS command line, gRPC.

Each has a placeholder credential and its own way to sign or to use HTTP/2. The server sees the real
credential once and no credential of the guest; the S3 calculates every signature with the real
secret (tests/rigs/lab/sigv4_server.py).
"""
import base64
import datetime
import hashlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE.parent / "rigs/lab"
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(LAB)]
import credlab  # noqa: E402
import sigv4_server  # noqa: E402
from rig import CredRig  # noqa: E402

API, RPC = "api.test", "rpc.api.test"
S3, BUCKET = "s3.us-east-1.amazonaws.com", "lab.s3.us-east-1.amazonaws.com"
TOKEN, SENTINEL = "lab-" + secrets.token_hex(20), "lab-proxy-managed-0"
# the shapes that AWS's own keys have
KEY_ID, SECRET = "AKIA" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
                                  for _ in range(16)), secrets.token_urlsafe(30)
SECONDS = 120
MESSAGES = 100
DENIED = 7  # PERMISSION_DENIED: what gRPC makes of 403


class Rpc:
    """The server's end of grpc.mjs; `calls` has what came."""

    def __init__(self, cert, key):
        self.process = subprocess.Popen([credlab.need("node"), LAB / "grpc.mjs",
                                         credlab.npm_folder(), "serve", cert, key],
                                        stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE)
        self.calls, self.came = [], threading.Condition()
        self.port = json.loads(self.process.stdout.readline())["port"]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.came:
                self.calls.append(json.loads(line))
                self.came.notify_all()

    def wait(self, n):
        with self.came:
            assert self.came.wait_for(lambda: len(self.calls) >= n, 10), self.calls
            return self.calls[n - 1]

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.server = made.origin()
        made.buckets = sigv4_server.Server(made.cert, made.key, {KEY_ID: SECRET})
        made.stack.callback(made.buckets.stop)
        made.rpc = Rpc(made.cert, made.key)
        made.stack.callback(made.rpc.stop)
        yield made


@pytest.fixture(scope="module")
def rig(lab):
    ports = {API: lab.server.port, RPC: lab.rpc.port, S3: lab.buckets.port,
             BUCKET: lab.buckets.port}
    with CredRig([f"allow network {host}:443" for host in ports],
                 {f"{host}:443": f"127.0.0.1:{port}" for host, port in ports.items()},
                 lab.ca.pem) as made:
        made.trusted = made.ca()
        made.set_secret("aws", f"{KEY_ID}:{SECRET}")
        made.set_custom("lab", TOKEN, f"{API} *.{API}", env="LAB_TOKEN", sentinel=SENTINEL)
        yield made
        assert made.process.poll() is None, made.text()[-3000:]
        for canary in (TOKEN, SECRET, KEY_ID):
            assert canary not in json.dumps(made.records()) and canary not in made.text()


def guest(rig, folder, **more):
    """The environment of a program in the sandbox: all of it."""
    proxy = f"http://127.0.0.1:{rig.bridge()}"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "https_proxy": proxy,
           "HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(rig.trusted),
           **rig.variables(), **more}
    assert TOKEN not in env.values() and SECRET not in env.values()
    return env


def run(argv, env, cwd, good=True):
    done = subprocess.run([str(a) for a in argv], env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode == 0) == good, (argv, done.stdout, done.stderr)
    assert TOKEN not in done.stdout + done.stderr and SECRET not in done.stdout + done.stderr
    return done.stdout if good else done.stderr


def got(lab, path, n=1):
    for request in lab.server.wait(path, n):
        assert lab.server.header(request, "authorization") == ["Bearer " + TOKEN], request
        assert "proxy-managed" not in json.dumps(request), request


# Java and Go: a POST with the placeholder, a GET without a header, both on one connection.

JAVA = """
import java.net.URI;
import java.net.http.*;
class Client {
    public static void main(String[] a) throws Exception {
        var client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(a[1])).build();
        var post = HttpRequest.newBuilder(URI.create(a[0]))
            .header("Authorization", "Bearer " + System.getenv("LAB_TOKEN"))
            .POST(HttpRequest.BodyPublishers.ofString("x".repeat(200000))).build();
        var get = HttpRequest.newBuilder(URI.create(a[0])).build();
        for (var request : new HttpRequest[] {post, get}) {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.version() + " " + answer.body());
        }
    }
}
"""


@pytest.mark.parametrize("name", ("HTTP_2", "HTTP_1_1"))
def test_java_is_authenticated(rig, lab, tmp_path, name):
    store = tmp_path / "store"
    run([credlab.need("keytool"), "-importcert", "-noprompt", "-alias", "sbx", "-file", rig.trusted,
         "-keystore", store, "-storepass", "changeit"],
        guest(rig, tmp_path), tmp_path)
    (tmp_path / "Client.java").write_text(JAVA)
    out = run([credlab.need("java"), f"-Djavax.net.ssl.trustStore={store}",
               "-Djavax.net.ssl.trustStorePassword=changeit", "-Dhttps.proxyHost=127.0.0.1",
               f"-Dhttps.proxyPort={rig.bridge()}",
               "-Dhttp.nonProxyHosts=", "Client.java", f"https://{API}/java-{name}", name],
              guest(rig, tmp_path), tmp_path)
    assert out.count(f"200 {name} ") == 2 and '"length":200000' in out, out
    got(lab, f"/java-{name}", 2)


GO = """package main

import ("fmt"; "io"; "net/http"; "os"; "strings")

func main() {
	for _, body := range []string{strings.Repeat("x", 200000), ""} {
		method := "GET"
		if body != "" { method = "POST" }
		request, _ := http.NewRequest(method, os.Args[1], strings.NewReader(body))
		if body != "" {
			request.Header.Set("Authorization", "Bearer " + os.Getenv("LAB_TOKEN"))
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
		text, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, answer.Proto, string(text))
	}
}
"""


@pytest.fixture(scope="module")
def go_client(rig, tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    (folder / "client.go").write_text(GO)
    run([credlab.need("go"), "build", "-o", "client", "client.go"],
        guest(rig, folder, GOCACHE=str(folder / "cache"), GOPROXY="off"), folder)
    return folder / "client"


@pytest.mark.parametrize("version, off", (("2.0", ""), ("1.1", "http2client=0")))
def test_go_is_authenticated(rig, lab, tmp_path, go_client, version, off):
    out = run([go_client, f"https://{API}/go-{version}"], guest(rig, tmp_path, GODEBUG=off),
              tmp_path)
    assert out.count(f"200 HTTP/{version} ") == 2 and '"length":200000' in out, out
    got(lab, f"/go-{version}", 2)


# The AWS command line: signed with placeholders, verified with the keys.

def aws(rig, folder, *argv, good=True, **more):
    env = guest(rig, folder, AWS_CA_BUNDLE=str(rig.trusted), AWS_DEFAULT_REGION="us-east-1",
                AWS_EC2_METADATA_DISABLED="true", AWS_MAX_ATTEMPTS="1",
                AWS_PAGER="", AWS_S3_US_EAST_1_REGIONAL_ENDPOINT="regional", **more)
    return run([credlab.need("aws"), *argv], env, folder, good)


def arrived(lab, since):
    """The requests since then; each verified, and without a placeholder in any place."""
    seen = lab.buckets.seen[since:]
    assert seen and all(verdict == "ok" for *_, verdict, _ in seen), seen
    for method, target, *_, headers in seen:
        text = f"{method} {target} {headers}"
        assert "PROXYMANAGED" not in text.upper() and KEY_ID in text, text
    return seen


def test_aws_copies_and_lists(rig, lab, tmp_path):
    since, path = len(lab.buckets.seen), tmp_path / "with a space+é"
    path.write_bytes(secrets.token_bytes(300000))
    for name in ("plain", "a b+c=d&é/~x"):
        aws(rig, tmp_path, "s3", "cp", path, f"s3://lab/{name}")
        assert lab.buckets.objects["lab", name] == path.read_bytes()
        aws(rig, tmp_path, "s3", "cp", f"s3://lab/{name}", "back")
        assert (tmp_path / "back").read_bytes() == path.read_bytes()
    out = aws(rig, tmp_path, "s3", "ls", "s3://lab/pl")
    assert out.split()[2:] == ["300000", "plain"], out
    aws(rig, tmp_path, "s3", "rm", "s3://lab/plain")
    assert ("lab", "plain") not in lab.buckets.objects
    # awscli 2.9 does not sign the content, 1.45 sends a sum after it; a request without a sum has
    # the hash of nothing
    assert {payload for _, _, _, payload, _,
            _ in arrived(lab,
                         since)} - {sigv4_server.EMPTY} <= {"UNSIGNED-PAYLOAD",
                                                            "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}


def test_aws_uploads_with_a_trailer(rig, lab, tmp_path):
    since, path = len(lab.buckets.seen), tmp_path / "f"
    path.write_bytes(secrets.token_bytes(3 << 20))
    aws(rig, tmp_path, "s3api", "put-object", "--bucket", "lab", "--key", "trailed",
        "--checksum-algorithm", "SHA256", "--body", path)
    assert lab.buckets.objects["lab", "trailed"] == path.read_bytes()
    assert [payload for _, _, _, payload, _,
            _ in arrived(lab, since)] == ["STREAMING-UNSIGNED-PAYLOAD-TRAILER"]


def test_aws_signs_the_hash_of_a_body(rig, lab, tmp_path):
    since, path = len(lab.buckets.seen), tmp_path / "f"
    path.write_bytes(secrets.token_bytes(100000))
    (tmp_path
     / "config").write_text(
        "[default]\ns3 =\n  payload_signing_enabled = true\n  addressing_style = path\nrequest_checksum_calculation = when_required\n")
    aws(rig, tmp_path, "s3", "cp", path, "s3://lab/hashed",
        AWS_CONFIG_FILE=str(tmp_path / "config"))
    assert lab.buckets.objects["lab", "hashed"] == path.read_bytes()
    (_, target, form, payload, _, _), = arrived(lab, since)
    assert (target, form, payload) == ("/lab/hashed", "header",
                                       hashlib.sha256(path.read_bytes()).hexdigest())


def signed_chunks(key_id, secret, pieces, kind):
    """Headers and body of a PUT whose every chunk is signed: no command line does it, the SDK for
    Java does."""
    stamp, data = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ"), b"".join(
        pieces)
    scope, trailer = f"{stamp[:8]}/us-east-1/s3/aws4_request", "x-amz-checksum-sha256"
    headers = {"content-encoding": "aws-chunked", "host": BUCKET, "x-amz-content-sha256": kind,
               "x-amz-date": stamp, "x-amz-decoded-content-length": str(len(data))}
    headers.update({"x-amz-trailer": trailer} if kind.endswith("TRAILER") else {})
    key, signed = sigv4_server.signing_key(secret, scope), ";".join(sorted(headers))
    canonical = sigv4_server.canonical_request("PUT", "/chunks", list(headers.items()), signed,
                                               kind)
    first = last = sigv4_server.mac(key,
                                    f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}").hex()
    body = b""
    for piece in (*pieces, b""):
        last = sigv4_server.mac(key,
                                "\n".join(("AWS4-HMAC-SHA256-PAYLOAD", stamp, scope, last,
                                           sigv4_server.EMPTY,
                                           hashlib.sha256(piece).hexdigest()))).hex()
        body += f"{len(piece):x};chunk-signature={last}\r\n".encode() + piece + (b"\r\n" if piece
                                                                                 or
                                                                                 not kind.endswith(
                                                                                     "TRAILER")
                                                                                 else b"")
    if kind.endswith("TRAILER"):
        total = base64.b64encode(hashlib.sha256(data).digest()).decode()
        digest = hashlib.sha256(f"{trailer}:{total}\n".encode()).hexdigest()
        last = sigv4_server.mac(key,
                                "\n".join(("AWS4-HMAC-SHA256-TRAILER", stamp, scope, last,
                                           digest))).hex()
        body += f"{trailer}:{total}\r\nx-amz-trailer-signature:{last}\r\n\r\n".encode()
    headers[
        "authorization"] = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope},SignedHeaders={signed},Signature={first}"
    return headers, body


@pytest.mark.parametrize("kind",
                         ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
                          "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"))
def test_signed_chunks_are_signed_again(rig, lab, tmp_path, kind):
    since, env, pieces = len(lab.buckets.seen), rig.variables(), [secrets.token_bytes(n)
                                                                  for n in (65536, 65536, 1000)]
    headers, body = signed_chunks(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], pieces,
                                  kind)
    (tmp_path / "body").write_bytes(body)
    out = curl(rig, tmp_path, "-T", tmp_path / "body", "-H", "Expect:",
               *[x for k, v in headers.items() if k != "host" for x in ("-H", f"{k}: {v}")],
               f"https://{BUCKET}/chunks")
    assert out.endswith("\n200"), out
    assert lab.buckets.objects.pop(("lab", "chunks")) == b"".join(pieces)
    assert [payload for _, _, _, payload, _, _ in arrived(lab, since)] == [kind]


def curl(rig, folder, *argv):
    return run([credlab.need("curl"), "-sS", "-m", "20", "--suppress-connect-headers", "-w",
                "\n%{http_code}", "--cacert", rig.trusted, *argv], guest(rig, folder), folder)


def test_an_address_presigned_by_aws_works(rig, lab, tmp_path):
    lab.buckets.objects["lab", "pre"] = b"presigned"
    url = aws(rig, tmp_path, "s3", "presign", "s3://lab/pre", "--expires-in", "300").strip()
    assert rig.variables()["AWS_ACCESS_KEY_ID"] in url
    since = len(lab.buckets.seen)
    # awscli 1 takes the signature before this one by default
    if "X-Amz-Signature" not in url:
        (tmp_path / "config").write_text("[default]\ns3 =\n  signature_version = s3v4\n")
        url = aws(rig, tmp_path, "s3", "presign", "s3://lab/pre",
                  AWS_CONFIG_FILE=str(tmp_path / "config")).strip()
    assert curl(rig, tmp_path, url) == "presigned\n200"
    assert [form for _, _, form, *_ in arrived(lab, since)] == ["presigned"]


def test_the_server_refuses_a_wrong_secret(lab, tmp_path):
    """Directly, not through sbx: so that the tests above could fail."""

    def put(secret, *more):
        out = tmp_path / "said"
        subprocess.run([credlab.need("curl"), "-sS", "-m", "20", "--cacert", lab.ca.pem,
                        "--connect-to", f"{BUCKET}:443:127.0.0.1:{lab.buckets.port}",
                        "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{KEY_ID}:{secret}", *more,
                        "-o", out, f"https://{BUCKET}/direct"], timeout=30, check=True)
        return out.read_text() if out.exists() else ""
    body = ["-H", f"x-amz-content-sha256: {hashlib.sha256(b'body').hexdigest()}", "-X", "PUT",
            "--data-binary"]
    assert "SignatureDoesNotMatch" in put("proxymanaged0000000000000000000000000000", *body, "body")
    assert "SignatureDoesNotMatch" in put(SECRET[:-1], *body, "body")
    assert "XAmzContentSHA256Mismatch" in put(SECRET, *body, "another")
    assert ("lab", "direct") not in lab.buckets.objects
    put(SECRET, *body, "body")
    assert lab.buckets.objects["lab", "direct"] == b"body"


def test_somebody_elses_keys_do_not_leave(rig, lab, tmp_path):
    since = len(lab.buckets.seen)
    said = aws(rig, tmp_path, "s3", "ls", "s3://lab/", good=False,
               AWS_ACCESS_KEY_ID="AKIATHIEFTHIEFTHIEF2", AWS_SECRET_ACCESS_KEY="thief")
    assert "403" in said and len(lab.buckets.seen) == since


# gRPC: both directions open at once, trailers at the end.

def talk(rig, folder, **more):
    out = run([credlab.need("node"), LAB / "grpc.mjs", credlab.npm_folder(), "talk", f"{RPC}:443",
               rig.trusted, MESSAGES],
              guest(rig, folder, NODE_OPTIONS="", **more), folder)
    return json.loads(out)


@pytest.mark.parametrize("token", (SENTINEL, ""))
def test_grpc_talks_both_ways(rig, lab, tmp_path, token):
    n = len(lab.rpc.calls)
    said = talk(rig, tmp_path, TOKEN=token)
    assert said["code"] == 0 and said["answers"] == [f"message {i}" for i in range(MESSAGES)], said
    assert said["trailers"] == {"x-count": [str(MESSAGES)]} or said["trailers"]["x-count"] == str(
        MESSAGES), said["trailers"]
    call = lab.rpc.wait(n + 1)
    assert call["path"] == "/lab.Lab/Talk" and call["messages"] == MESSAGES
    assert call["metadata"]["authorization"] in ("Bearer " + TOKEN, ["Bearer " + TOKEN]), call
    assert "proxy-managed" not in json.dumps(call)


def test_a_foreign_token_of_grpc_does_not_leave(rig, lab, tmp_path):
    n = len(lab.rpc.calls)
    said = talk(rig, tmp_path, TOKEN="thief")
    assert said["code"] == DENIED and not said["answers"] and len(lab.rpc.calls) == n, said
