# SPDX-License-Identifier: Apache-2.0
"""sigv4_server - a small S3 over TLS that calculates every signature itself, with the real secret,
from the received request.

It implements AWS's description of Signature Version 4 and shares no code with lib/secret/sigv4: in
a header and presigned; bodies with a hash, UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER and
signed chunks. A wrong signature is 403 SignatureDoesNotMatch and nothing is stored. Buckets by host
or by path; PUT, GET, HEAD, DELETE of an object and the list of a bucket. `seen` has (method,
target, form, body form, verdict, headers).
"""
import base64
import datetime
import hashlib
import hmac
import http.server
import ssl
import threading
import urllib.parse
import xml.sax.saxutils
import zlib

EMPTY = hashlib.sha256(b"").hexdigest()
SKEW = 900
MAX_BODY = 64 << 20
ALGORITHM = "AWS4-HMAC-SHA256"


class Refused(Exception):
    def __init__(self, code, status=403):
        super().__init__(code)
        self.code, self.status = code, status


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signing_key(secret, scope):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = mac(key, part)
    return key


def escaped(text):
    return urllib.parse.quote(text, safe="-_.~")


def canonical_query(query):
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    said = [(escaped(urllib.parse.unquote(k)), escaped(urllib.parse.unquote(v))) for k, v in pairs]
    return "&".join(f"{k}={v}" for k, v in sorted(said) if k != "X-Amz-Signature")


def canonical_request(method, target, headers, signed, payload):
    """headers: pairs in order; the path of S3 is escaped once."""
    path, _, query = target.partition("?")
    lines = []
    for name in signed.split(";"):
        values = [" ".join(v.split()) for k, v in headers if k.lower() == name]
        if not values:
            raise Refused("SignatureDoesNotMatch")
        lines.append(f"{name}:{','.join(values)}\n")
    return "\n".join((method, escaped_path(path), canonical_query(query), "".join(lines), signed,
                      payload))


def escaped_path(path):
    return "/".join(escaped(urllib.parse.unquote(part)) for part in path.split("/")) or "/"


class Check:
    """One request. `body` is the content as it is stored."""

    def __init__(self, keys, method, target, headers):
        self.method, self.target, self.headers = method, target, headers
        self.one = {k.lower(): v for k, v in headers}
        query = dict(urllib.parse.parse_qsl(target.partition("?")[2], keep_blank_values=True))
        if "authorization" in self.one:
            self.form, text = "header", self.one["authorization"]
            if not text.startswith(ALGORITHM + " "):
                raise Refused("InvalidRequest", 400)
            said = dict(part.strip().split("=", 1) for part in text[len(ALGORITHM):].split(","))
            credential, self.signed, signature = said["Credential"], said["SignedHeaders"], said[
                "Signature"]
            self.stamp, self.payload, alive = self.one["x-amz-date"], self.one[
                "x-amz-content-sha256"], SKEW
        elif "X-Amz-Signature" in query:
            self.form, credential, self.signed, signature = "presigned", query[
                "X-Amz-Credential"], query["X-Amz-SignedHeaders"], query["X-Amz-Signature"]
            self.stamp, self.payload, alive = query["X-Amz-Date"], self.one.get(
                "x-amz-content-sha256", "UNSIGNED-PAYLOAD"), int(query["X-Amz-Expires"])
        else:
            raise Refused("AccessDenied")
        key_id, _, self.scope = credential.partition("/")
        if key_id not in keys:
            raise Refused("InvalidAccessKeyId")
        self._timely(alive)
        self._covered()
        self.key = signing_key(keys[key_id], self.scope)
        canonical = canonical_request(method, target, headers, self.signed, self.payload)
        what = (f"{ALGORITHM}\n{self.stamp}\n{self.scope}\n"
                f"{hashlib.sha256(canonical.encode()).hexdigest()}")
        self.last = mac(self.key, what).hex()
        if not hmac.compare_digest(self.last, signature):
            raise Refused("SignatureDoesNotMatch")

    def _timely(self, alive):
        made = datetime.datetime.strptime(self.stamp,
                                          "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        age = (datetime.datetime.now(datetime.timezone.utc) - made).total_seconds()
        if not -SKEW < age < alive or self.scope.split("/")[0] != self.stamp[:8]:
            raise Refused("RequestTimeTooSkewed")

    def _covered(self):
        """The signature must cover the host and every x-amz- header."""
        signed = self.signed.split(";")
        if signed != sorted(signed) or "host" not in signed or any(k.startswith("x-amz-")
                                                                   and k not in signed
                                                                   for k in self.one):
            raise Refused("AccessDenied")

    def body(self, raw):
        if self.payload == "UNSIGNED-PAYLOAD":
            return raw
        if self.payload.startswith("STREAMING-"):
            return self._chunks(raw, self.payload.startswith("STREAMING-" + ALGORITHM),
                                self.payload.endswith("-TRAILER"))
        if hashlib.sha256(raw).hexdigest() != self.payload:
            raise Refused("XAmzContentSHA256Mismatch", 400)
        return raw

    def _signed(self, kind, signature, *texts):
        want = mac(self.key,
                   "\n".join((f"{ALGORITHM}-{kind}", self.stamp, self.scope, self.last,
                              *texts))).hex()
        if not hmac.compare_digest(want, signature):
            raise Refused("SignatureDoesNotMatch")
        self.last = want

    def _chunks(self, raw, signed, trailing):
        data, n = b"", -1
        while n:
            head, _, raw = raw.partition(b"\r\n")
            size, _, extension = head.decode("ascii").partition(";")
            n = int(size, 16)
            piece, raw = raw[:n], raw[n:]
            if signed:
                self._signed("PAYLOAD", extension.removeprefix("chunk-signature="), EMPTY,
                             hashlib.sha256(piece).hexdigest())
            if n or not trailing:
                if raw[:2] != b"\r\n":
                    raise Refused("IncompleteBody", 400)
                raw = raw[2:]
            data += piece
        if int(self.one["x-amz-decoded-content-length"]) != len(data):
            raise Refused("IncompleteBody", 400)
        if trailing:
            self._trailers(raw, data, signed)
        return data

    def _trailers(self, raw, data, signed):
        lines = dict(line.split(":", 1) for line in raw.decode("ascii").split("\r\n") if line)
        if signed:
            text = "".join(f"{k}:{v.strip()}\n" for k,
                           v in lines.items() if k != "x-amz-trailer-signature")
            self._signed("TRAILER", lines.pop("x-amz-trailer-signature", ""),
                         hashlib.sha256(text.encode()).hexdigest())
        sums = {"x-amz-checksum-crc32": zlib.crc32(data).to_bytes(4, "big"),
                "x-amz-checksum-sha1": hashlib.sha1(data).digest(),
                "x-amz-checksum-sha256": hashlib.sha256(data).digest()}
        if list(lines) != [self.one.get("x-amz-trailer")]:
            raise Refused("MalformedTrailerError", 400)
        for name, value in lines.items():
            if name not in sums or base64.b64encode(sums[name]).decode() != value.strip():
                raise Refused("BadDigest", 400)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _raw(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            n = int(self.headers.get("Content-Length") or 0)
            if n > MAX_BODY:
                raise Refused("EntityTooLarge", 413)
            return self.rfile.read(n)
        data = b""
        while n := int(self.rfile.readline().split(b";")[0], 16):
            if len(data) + n > MAX_BODY:
                raise Refused("EntityTooLarge", 413)
            data += self.rfile.read(n)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return data

    def handle_expect_100(self):
        self.send_response_only(100)
        self.end_headers()
        return True

    def _serve(self):
        pairs, form, payload = list(self.headers.items()), "", ""
        try:
            raw = self._raw()
            check = Check(self.server.keys, self.command, self.path, pairs)
            form, payload = check.form, check.payload
            answer = self._do(check.body(raw))
            verdict = "ok"
        except Refused as refused:
            verdict = refused.code
            code = refused.code
            body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
            answer = refused.status, body.encode(), {}
        except (KeyError, ValueError, IndexError) as wrong:
            verdict = f"InvalidRequest: {wrong!r}"
            answer = 400, b"<Error><Code>InvalidRequest</Code></Error>", {}
        with self.server.lock:
            self.server.seen.append((self.command, self.path, form, payload, verdict, pairs))
        self._answer(*answer)

    def _answer(self, status, body, more):
        self.send_response(status)
        for name, value in {"Content-Type": "application/xml", "x-amz-request-id": "lab",
                            **more}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def _place(self):
        """Returns bucket, key: a bucket by the host name, or by the path."""
        path = urllib.parse.unquote(self.path.partition("?")[0]).lstrip("/")
        first = self.headers["Host"].split(".")[0]
        return (first, path) if first != "s3" else tuple(path.partition("/")[::2])

    def _do(self, body):
        place, objects = self._place(), self.server.objects
        if not place[1]:
            return self._list(place[0])
        if self.command == "PUT":
            objects[place] = body
            return 200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}
        if self.command == "DELETE":
            objects.pop(place, None)
            return 204, b"", {}
        if place not in objects:
            raise Refused("NoSuchKey", 404)
        return 200, objects[place], {"Content-Type": "binary/octet-stream",
                                     "ETag": f'"{hashlib.md5(objects[place]).hexdigest()}"',
                                     "Last-Modified": self.date_time_string()}

    def _list(self, bucket):
        query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
        found = {k: v for (b, k),
                 v in sorted(self.server.objects.items()) if b == bucket
                 and k.startswith(query.get("prefix", ""))}
        rows = "".join(
            f"<Contents><Key>{xml.sax.saxutils.escape(k)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>{len(v)}</Size>"
                       "<StorageClass>STANDARD</StorageClass></Contents>" for k, v in found.items())
        return 200, (
            f"<ListBucketResult><Name>{bucket}</Name><KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>{rows}"
                     "</ListBucketResult>").encode(), {}

    do_GET = do_HEAD = do_PUT = do_DELETE = _serve


class Server(http.server.ThreadingHTTPServer):
    """keys is {id: secret}."""
    daemon_threads = True

    def __init__(self, cert, key, keys):
        self.keys, self.objects, self.seen, self.lock = keys, {}, [], threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.socket = context.wrap_socket(self.socket, server_side=True,
                                          do_handshake_on_connect=False)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass
