"""Clients of other languages, behind the real keeper, edge, egress, origins and vault (CredRig): Java, Go, the AWS command line, gRPC.

Each has a sentinel and what follows from its own way to sign or to speak HTTP/2. The server sees the real credential once and nothing of the
guest's; the S3 calculates every signature with the real secret (tests/lab/sigv4_server.py).
"""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE.parent / "lab"
sys.path[:0] = [str(HERE), str(LAB)]
import credlab  # noqa: E402
import sigv4_server  # noqa: E402
from rig import CredRig  # noqa: E402

API, RPC, S3, BUCKET = "api.test", "rpc.api.test", "s3.us-east-1.amazonaws.com", "lab.s3.us-east-1.amazonaws.com"
TOKEN, SENTINEL = "lab-" + secrets.token_hex(20), "lab-proxy-managed-0"
# the shapes that AWS's own keys have
KEY_ID, SECRET = "AKIA" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16)), secrets.token_urlsafe(30)
SECONDS = 120
MESSAGES = 100


class Rpc:
    """The server's end of grpc.mjs; `calls` has what came."""

    def __init__(self, cert, key):
        self.process = subprocess.Popen([credlab.need("node"), LAB / "grpc.mjs", credlab.npm_folder(), "serve", cert, key], stdin=subprocess.DEVNULL,
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
        made.rpc = Rpc(made.cert, made.key)
        with contextlib.closing(made.buckets.socket):
            yield made
            made.buckets.stop()
            made.rpc.stop()


@pytest.fixture(scope="module")
def rig(lab):
    ports = {API: lab.server.port, RPC: lab.rpc.port, S3: lab.buckets.port, BUCKET: lab.buckets.port}
    with CredRig([f"allow network {host}:443" for host in ports], {f"{host}:443": f"127.0.0.1:{port}" for host, port in ports.items()}, lab.ca.pem) as made:
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
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "https_proxy": proxy, "HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(rig.trusted),
           **rig.variables(), **more}
    assert TOKEN not in env.values() and SECRET not in env.values()
    return env


def run(argv, env, cwd, status=0):
    done = subprocess.run([str(a) for a in argv], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == status, (argv, done.stdout, done.stderr)
    assert TOKEN not in done.stdout + done.stderr and SECRET not in done.stdout + done.stderr
    return done.stdout


def got(lab, path, version, n=1):
    for request in lab.server.wait(path, n):
        assert lab.server.header(request, "authorization") == ["Bearer " + TOKEN], request
        assert "proxy-managed" not in json.dumps(request), request
        assert request["version"] == version, request


# Java and Go: a POST with the sentinel, a GET without a header, both on one connection.

JAVA = """
import java.net.URI;
import java.net.http.*;
class Client {
    public static void main(String[] a) throws Exception {
        var client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(a[1])).build();
        var post = HttpRequest.newBuilder(URI.create(a[0])).header("Authorization", "Bearer " + System.getenv("LAB_TOKEN"))
            .POST(HttpRequest.BodyPublishers.ofString("x".repeat(200000))).build();
        var get = HttpRequest.newBuilder(URI.create(a[0])).build();
        for (var request : new HttpRequest[] {post, get}) {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.version() + " " + answer.body());
        }
    }
}
"""


@pytest.mark.parametrize("version, name", (("2.0", "HTTP_2"), ("1.1", "HTTP_1_1")))
def test_java_is_authenticated(rig, lab, tmp_path, version, name):
    store = tmp_path / "store"
    run([credlab.need("keytool"), "-importcert", "-noprompt", "-alias", "sbx", "-file", rig.trusted, "-keystore", store, "-storepass", "changeit"],
        guest(rig, tmp_path), tmp_path)
    (tmp_path / "Client.java").write_text(JAVA)
    out = run([credlab.need("java"), f"-Djavax.net.ssl.trustStore={store}", "-Dhttps.proxyHost=127.0.0.1", f"-Dhttps.proxyPort={rig.bridge()}",
               "-Dhttp.nonProxyHosts=", "Client.java", f"https://{API}/java-{name}", name], guest(rig, tmp_path), tmp_path)
    assert out.count(f"200 {name} ") == 2 and '"length":200000' in out, out
    got(lab, f"/java-{name}", version, 2)


GO = """package main

import ("fmt"; "io"; "net/http"; "os"; "strings")

func main() {
	for _, body := range []string{strings.Repeat("x", 200000), ""} {
		method := "GET"
		if body != "" { method = "POST" }
		request, _ := http.NewRequest(method, os.Args[1], strings.NewReader(body))
		if body != "" { request.Header.Set("Authorization", "Bearer " + os.Getenv("LAB_TOKEN")) }
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
    run([credlab.need("go"), "build", "-o", "client", "client.go"], guest(rig, folder, GOCACHE=str(folder / "cache"), GOPROXY="off"), folder)
    return folder / "client"


@pytest.mark.parametrize("version, off", (("2.0", ""), ("1.1", "http2client=0")))
def test_go_is_authenticated(rig, lab, tmp_path, go_client, version, off):
    out = run([go_client, f"https://{API}/go-{version}"], guest(rig, tmp_path, GODEBUG=off), tmp_path)
    assert out.count(f"200 HTTP/{version} ") == 2 and '"length":200000' in out, out
    got(lab, f"/go-{version}", version, 2)


# The AWS command line: signed by sentinels, verified with the keys.

def aws(rig, folder, *argv, status=0, **more):
    env = guest(rig, folder, AWS_CA_BUNDLE=str(rig.trusted), AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true", AWS_MAX_ATTEMPTS="1",
                AWS_PAGER="", **more)
    return run([credlab.need("aws"), *argv], env, folder, status)


def arrived(lab, since):
    """What came since; each verified, and without a sentinel in any place."""
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
    seen = arrived(lab, since)
    print("bodies:", {payload if len(payload) != 64 else "hash" for _, _, _, payload, _, _ in seen})


def test_aws_uploads_with_a_trailer(rig, lab, tmp_path):
    since, path = len(lab.buckets.seen), tmp_path / "f"
    path.write_bytes(secrets.token_bytes(3 << 20))
    aws(rig, tmp_path, "s3api", "put-object", "--bucket", "lab", "--key", "trailed", "--checksum-algorithm", "SHA256", "--body", path)
    assert lab.buckets.objects["lab", "trailed"] == path.read_bytes()
    assert [payload for _, _, _, payload, _, _ in arrived(lab, since)] == ["STREAMING-UNSIGNED-PAYLOAD-TRAILER"]


def test_aws_signs_the_hash_of_a_body(rig, lab, tmp_path):
    since, path = len(lab.buckets.seen), tmp_path / "f"
    path.write_bytes(secrets.token_bytes(100000))
    (tmp_path / "config").write_text("[default]\ns3 =\n  payload_signing_enabled = true\n  addressing_style = path\nrequest_checksum_calculation = when_required\n")
    aws(rig, tmp_path, "s3", "cp", path, "s3://lab/hashed", AWS_CONFIG_FILE=str(tmp_path / "config"))
    assert lab.buckets.objects["lab", "hashed"] == path.read_bytes()
    (_, target, form, payload, _, _), = arrived(lab, since)
    assert (target, form, payload) == ("/lab/hashed", "header", hashlib.sha256(path.read_bytes()).hexdigest())


def curl(rig, folder, *argv):
    return run([credlab.need("curl"), "-sS", "-m", "20", "--suppress-connect-headers", "-w", "\n%{http_code}", "--cacert", rig.trusted, *argv], guest(rig, folder), folder)


def test_an_address_presigned_by_aws_works(rig, lab, tmp_path):
    lab.buckets.objects["lab", "pre"] = b"presigned"
    url = aws(rig, tmp_path, "s3", "presign", "s3://lab/pre", "--expires-in", "300").strip()
    assert "AKIAPROXYMANAGED2222" in url
    since = len(lab.buckets.seen)
    # awscli 1 takes the signature before this one unless it is told
    if "X-Amz-Signature" not in url:
        (tmp_path / "config").write_text("[default]\ns3 =\n  signature_version = s3v4\n")
        url = aws(rig, tmp_path, "s3", "presign", "s3://lab/pre", AWS_CONFIG_FILE=str(tmp_path / "config")).strip()
    assert curl(rig, tmp_path, url) == "presigned\n200"
    assert [form for _, _, form, *_ in arrived(lab, since)] == ["presigned"]
    wrong = re.sub("X-Amz-Expires=[0-9]+", "X-Amz-Expires=299", url)
    assert wrong != url
    out = curl(rig, tmp_path, wrong)
    print("with another time:", out[-200:])


def test_the_server_refuses_a_wrong_secret(lab, tmp_path):
    """Directly, not through sbx: so that the tests above could fail."""
    def put(secret, *more):
        out = tmp_path / "said"
        subprocess.run([credlab.need("curl"), "-sS", "-m", "20", "--cacert", lab.ca.pem, "--connect-to", f"{BUCKET}:443:127.0.0.1:{lab.buckets.port}",
                        "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{KEY_ID}:{secret}", *more, "-o", out, f"https://{BUCKET}/direct"], timeout=30, check=True)
        return out.read_text() if out.exists() else ""
    body = ["-H", f"x-amz-content-sha256: {hashlib.sha256(b'body').hexdigest()}", "-X", "PUT", "--data-binary"]
    assert "SignatureDoesNotMatch" in put("proxymanaged0000000000000000000000000000", *body, "body")
    assert "SignatureDoesNotMatch" in put(SECRET[:-1], *body, "body")
    assert "XAmzContentSHA256Mismatch" in put(SECRET, *body, "another")
    assert ("lab", "direct") not in lab.buckets.objects
    put(SECRET, *body, "body")
    assert lab.buckets.objects["lab", "direct"] == b"body"


def test_somebody_elses_keys_do_not_leave(rig, lab, tmp_path):
    since = len(lab.buckets.seen)
    aws(rig, tmp_path, "s3", "ls", "s3://lab/", status=254, AWS_ACCESS_KEY_ID="AKIATHIEFTHIEFTHIEF2", AWS_SECRET_ACCESS_KEY="thief")
    assert len(lab.buckets.seen) == since


# gRPC: both directions open at once, trailers at the end.

def talk(rig, folder, **more):
    out = run([credlab.need("node"), LAB / "grpc.mjs", credlab.npm_folder(), "talk", f"{RPC}:443", rig.trusted, MESSAGES],
              guest(rig, folder, NODE_OPTIONS="", **more), folder)
    return json.loads(out)


@pytest.mark.parametrize("token", (SENTINEL, ""))
def test_grpc_talks_both_ways(rig, lab, tmp_path, token):
    n = len(lab.rpc.calls)
    said = talk(rig, tmp_path, TOKEN=token)
    assert said["code"] == 0 and said["answers"] == [f"message {i}" for i in range(MESSAGES)], said
    assert said["trailers"] == {"x-count": [str(MESSAGES)]} or said["trailers"]["x-count"] == str(MESSAGES), said["trailers"]
    call = lab.rpc.wait(n + 1)
    assert call["path"] == "/lab.Lab/Talk" and call["messages"] == MESSAGES
    assert call["metadata"]["authorization"] in ("Bearer " + TOKEN, ["Bearer " + TOKEN]), call
    assert "proxy-managed" not in json.dumps(call)


def test_a_foreign_token_of_grpc_does_not_leave(rig, lab, tmp_path):
    n = len(lab.rpc.calls)
    said = talk(rig, tmp_path, TOKEN="thief")
    assert said["code"] != 0 and not said["answers"] and len(lab.rpc.calls) == n, said
