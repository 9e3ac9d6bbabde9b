#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sigv4_oracle - random requests, signed by lib/secret/sigv4 (through sigv4_say) and by the few
lines of Python below.

The Python side starts from decoded names and values, as the specification does; the C side gets
what a client would write of them. Argument: the program sigv4_say.
"""
import hashlib
import hmac
import random
import subprocess
import sys
from datetime import datetime, timezone
from urllib.parse import quote

SENTINEL = "AKIAPROXYMANAGED2222"
N = 3000
rnd = random.Random(4)


def sha(b):
    return hashlib.sha256(b).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def enc(s, safe=""):
    return quote(s, safe="-_.~" + safe)


def sign(secret, stamp, region, service, canonical):
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = mac(key, part)
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha(canonical.encode())}"
    return scope, mac(key, text).hex()


def normal(segments):
    out = []
    for s in segments:
        if s == "..":
            del out[-1:]
        elif s not in ("", "."):
            out.append(s)
    last = segments[-1] in ("", ".", "..")
    return "/" + "/".join(out) + ("/" if last and out else "")


def word(n=8, alphabet="abcXYZ019-_.~"):
    return "".join(rnd.choice(alphabet) for _ in range(rnd.randint(1, n)))


def text():
    return "".join(rnd.choice("aZ0 /+%&=?#:;,@!$'()*[]~\"<>\\é世") for _ in range(rnd.randint(0, 8)))


def client_spelling(s):
    """A spelling of s that a client may use in a query: some escape more than they must, some in
    lower case."""
    out = ""
    for c in s:
        e = enc(c)
        if c == " " and rnd.random() < 0.3:
            e = "+"
        elif c in "!$'()*,;:@/" and rnd.random() < 0.5:
            e = c
        elif c.isascii() and c.isalpha() and rnd.random() < 0.1:
            e = f"%{ord(c):02X}"
        elif rnd.random() < 0.2:
            e = e.lower() if e.startswith("%") else e
        out += e
    return out


class Request:
    def __init__(self):
        self.s3 = rnd.random() < 0.4
        self.service, self.host = rnd.choice(
            [("s3", "b.s3.eu-west-1.amazonaws.com"), ("s3", "store.example.com")] if self.s3 else
            [("dynamodb", "dynamodb.eu-west-1.amazonaws.com"), ("execute-api", "api.example.com")])
        self.region = "eu-west-1"
        self.port = rnd.choice([443, 443, 8443])
        self.now = rnd.randint(10**9, 2 * 10**9)
        self.when = self.now + rnd.randint(-800, 800)
        self.stamp = datetime.fromtimestamp(self.when, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.method = rnd.choice(["GET", "PUT", "POST", "DELETE"])
        self.id, self.secret = "AKIA" + word(12, "ABC234"), word(40, "abcDEF+/09")
        self.session = word(60, "abc+/=XY") if rnd.random() < 0.4 else ""
        self.body = rnd.randbytes(rnd.randint(0, 300)) if self.method in ("PUT", "POST") else b""
        segments = [rnd.choice([text(), word(), word()]).replace("\\", "").replace("/", "")
                    for _ in range(rnd.randint(1, 4))]
        if not self.s3:
            segments = [s for s in segments
                        if s != ".."] + rnd.choice([[], [], [".", "x"], ["", "y"], ["q", "..", "z"],
                                                    [""]])
        else:
            segments = [s for s in segments if s not in (".", "..")] or ["k"]
        wire = [enc(s) for s in segments]
        self.path = "/" + "/".join(wire)
        self.canonical_path = self.path if self.s3 else quote(normal(wire), safe="/-_.~")
        self.pairs = [(text() or "k", text()) for _ in range(rnd.randint(0, 5))]
        self.query = "&".join(f"{client_spelling(k)}={client_spelling(v)}" for k, v in self.pairs)
        self.headers = {f"x-{word(5, 'abc')}": [rnd.choice(["a", "a  b", "c \t d", "é", ""])
                                                for _ in range(rnd.randint(1, 2))]
                        for _ in range(rnd.randint(0, 4))}
        self.signed = rnd.sample(sorted(self.headers), rnd.randint(0, len(self.headers)))

    @property
    def authority(self):
        return self.host if self.port == 443 else f"{self.host}:{self.port}"

    def canonical(self, pairs, signed, payload):
        fields = sorted((enc(k), enc(v)) for k, v in pairs)
        lines = "".join(f"{n}:{','.join(' '.join(v.split()) for v in self.value(n))}\n"
                        for n in signed)
        return "\n".join([self.method, self.canonical_path, "&".join(f"{k}={v}" for k, v in fields),
                          lines,
                          ";".join(signed), payload])

    def value(self, name):
        return [self.authority] if name == "host" else [
            str(len(self.body))] if name == "content-length" else self.headers[name]

    def lines(self, query, extra):
        out = [f"now {self.now}",
               f"cred {self.id}:{self.secret}" + (f":{self.session}" if self.session else ""),
               f"method {self.method}", f"host {self.host}", f"port {self.port}",
               f"path {self.path}"]
        if query:
            out.append(f"query {query}")
        out += [f"header {n} {v}" for n, vs in self.headers.items() for v in vs] + extra
        if self.method in ("PUT", "POST"):
            out.append(f"body {self.body.hex()}")
        return "\n".join(out) + "\nend\n"


def header_case():
    r = Request()
    payload = sha(r.body)
    said = rnd.choice(["hash", "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", None])
    if said:
        payload = payload if said == "hash" else said
        r.headers["x-amz-content-sha256"] = [payload]
    r.headers["x-amz-date"] = [r.stamp]
    guest = list(r.signed)
    if r.method in ("PUT", "POST") and rnd.random() < 0.5:
        guest.append("content-length")
    rnd.shuffle(guest)
    auth = (
        f"header authorization AWS4-HMAC-SHA256 Credential={SENTINEL}/{r.stamp[:8]}/{r.region}/{r.service}/aws4_request,"
            f"{rnd.choice(['', ' '])}SignedHeaders={';'.join(guest) or 'host'}, Signature={'0' * 64}")
    lines = r.lines(r.query,
                    [auth, "header x-amz-security-token proxymanaged"] if rnd.random() < 0.5
                    else [auth])
    if r.session:
        r.headers["x-amz-security-token"] = [r.session]
    signed = sorted(set(guest) | {"host"}
                    | ({"x-amz-date", "x-amz-content-sha256",
                        "x-amz-security-token"} & set(r.headers)))
    scope, signature = sign(r.secret, r.stamp, r.region, r.service,
                            r.canonical(r.pairs, signed, payload))
    want = (f"header authorization AWS4-HMAC-SHA256 Credential={r.id}/{scope}, "
            f"SignedHeaders={';'.join(signed)}, Signature={signature}")
    return lines, want


def query_case():
    r = Request()
    r.when = r.now - rnd.randint(0, 3000)
    r.stamp = datetime.fromtimestamp(r.when, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    expires = rnd.randint(3000, 604800)
    payload = "UNSIGNED-PAYLOAD" if r.s3 else sha(r.body)
    fields = [("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Date", r.stamp)]
    scope = f"{r.stamp[:8]}/{r.region}/{r.service}/aws4_request"
    guest = fields + [("X-Amz-Credential", f"{SENTINEL}/{scope}"), ("X-Amz-Expires", str(expires)),
                      ("X-Amz-SignedHeaders", ";".join(r.signed) or "host"),
                      ("X-Amz-Signature", "0" * 64)]
    if rnd.random() < 0.3:
        guest.append(("X-Amz-Security-Token", "proxymanaged"))
    rnd.shuffle(guest)
    query = "&".join(filter(None, [r.query] + [f"{k}={enc(v)}" for k, v in guest]))
    signed = sorted(set(r.signed) | {"host"})
    ours = fields + [("X-Amz-Credential", f"{r.id}/{scope}"),
                     ("X-Amz-SignedHeaders", ";".join(signed)),
                     ("X-Amz-Expires", str(min(expires, r.now - r.when + 900)))]
    if r.session:
        ours.append(("X-Amz-Security-Token", r.session))
    _, signature = sign(r.secret, r.stamp, r.region, r.service,
                        r.canonical(r.pairs + ours, signed, payload))
    return r.lines(query, []), f"&X-Amz-Signature={signature}\n"


cases = [rnd.choice([header_case, query_case])() for _ in range(N)]
out = subprocess.run([sys.argv[1]], input="".join(lines for lines, _ in cases).encode(),
                     capture_output=True,
                     check=True, timeout=100).stdout.decode()
answers = out.split("end\n")[:-1]
assert len(answers) == N, f"{len(answers)} answers to {N} requests"
for (lines, want), got in zip(cases, answers):
    if want not in got + "\n":
        sys.exit(f"differs:\n{lines}\nwanted: {want}\ngot:\n{got}")
print(f"{N} requests have the signature of the oracle")
