#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `http1`, `canon`, `edge_proxy` and `edge_open` below
fuzz/corpus/."""
import pathlib
import re
import struct
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "tests/proxy"))
import smuggling  # noqa: E402

# First byte: the low three bits choose the side (0 transparent, 1 proxy, 2 answer to GET, 3 to
# HEAD, 4 to CONNECT, 5 to a websocket), the others how many bytes come at a time.
http1 = {}
for i, (name, proxy, data, status, _) in enumerate(smuggling.scripts()):
    if status == 0 or i % 4 == 0:
        http1[re.sub(r"\W+", "_",
                     name.lower())] = bytes([(i % 7) << 3 | (1 if proxy else 0)]) + data
answers = {
    "length": (2, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    "chunks": (2,
               b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\na\r\n0\r\nX: y\r\n\r\n"),
    "close": (2, b"HTTP/1.0 200 OK\r\n\r\nhi"),
    "hints": (2, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
    "not_modified": (2, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
    "head": (3, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    "connect": (4, b"HTTP/1.1 200 OK\r\n\r\nbytes"),
    "websocket": (5,
                  b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81"),
}
for name, (how, data) in answers.items():
    http1["answer_" + name] = bytes([how | 3 << 3]) + data


def text(s):
    return struct.pack("<H", len(s)) + s


def headers(*pairs):
    return struct.pack("<H", len(pairs)) + b"".join(text(k) + text(v) for k, v in pairs)


def frame(kind, payload, stream=1):
    return struct.pack("<IB", len(payload), kind) + stream.to_bytes(3, "little") + payload


def request(method=b"GET", host=b"example.test", port=80, path=b"/", query=b"", flags=0, scheme=0,
            body=0, length=0,
            fields=()):
    return frame(1,
                 struct.pack("<BBB", 1, flags,
                             scheme) + text(method) + text(host) + struct.pack("<H", port) +
                 text(path) + text(query) + struct.pack("<BQ", body, length) + headers(*fields))


def response(status, flags=0, body=0, length=0, fields=()):
    return frame(1, struct.pack("<BBHBQ", 2, flags, status, body, length) + headers(*fields))


END = frame(3, headers())
canon = {
    "get": b"\0" + request(fields=((b"accept", b"*/*"),)) + END,
    "query": b"\3" + request(path=b"/a/%2e%2e/b//c", query=b"x=1", flags=8) + END,
    "post": b"\0" + request(b"POST", body=1, length=5, flags=1) + frame(2, b"hello") + END,
    "chunks": b"\1" + request(b"PUT", body=2,
                              flags=2) + frame(2, b"hello") + frame(3, headers((b"x-sum", b"7"))),
    "connect": b"\0" + request(b"CONNECT", port=443, path=b"", body=4) + frame(2, b"\x16\3\1"),
    "options": b"\0" + request(b"OPTIONS", path=b"*") + END,
    "tls_v6": b"\0" + request(host=b"2001:db8::1", port=8443, scheme=1) + END,
    "tls": b"\0" + request(port=443, scheme=1) + END,
    "websocket": b"\0" + request(flags=4,
                                 fields=((b"sec-websocket-key", b"eA=="),
                                         (b"sec-websocket-version", b"13"))),
    "answer": b"\0" + response(200, body=1, length=2,
                               fields=((b"x", b""),)) + frame(2, b"hi") + END,
    "answer_head": b"\0" + response(200, flags=16, body=1, length=2) + END,
    "answer_hints": b"\0" + response(103) + response(204) + END,
    "answer_switch": b"\0" + response(101, flags=4, body=4),
    "window_reset": b"\2" + frame(5, struct.pack("<I", 65536)) + frame(4, b"\1"),
    "host_header": b"\0" + request(fields=((b"host", b"other.test"),)),
    "two_lines": b"\0" + request(fields=((b"x", b"y\r\nhost: other.test"),)),
    "long_path": b"\0" + request(path=b"/" + b"a" * 600) + END,
}

# First byte: 1 proxy connection, 2 verdicts by hand, 4 right answers, the rest how many bytes of
# the guest come at a time. Then records: what (see proxy_fuzz.c), length, bytes.
GUEST, EGRESS, FRAME, OK, YES, NO, READS, GUEST_END, EGRESS_END, SLEEP, TIME = range(11)


def record(what, data=b""):
    if len(data) <= 255:
        return bytes([what, len(data)]) + data
    return record(what, data[:255]) + record(what, data[255:])


def guest(*lines):
    return record(GUEST, b"".join(line + b"\r\n" for line in lines))


HOST = b"Host: example.test"
GET = guest(b"GET /a?b HTTP/1.1", HOST, b"")
POST = guest(b"POST / HTTP/1.1", HOST, b"Content-Length: 5", b"", b"hel")
UPGRADE = guest(b"GET /w HTTP/1.1", HOST, b"Connection: upgrade", b"Upgrade: websocket",
                b"Sec-WebSocket-Key: eA==",
                b"Sec-WebSocket-Version: 13", b"")
edge_proxy = {
    "get": b"\4" + GET + GET,
    "by_hand": b"\2" + GET + record(YES) + record(EGRESS,
                                                  response(200, body=1,
                                                           length=2) + frame(2, b"hi") + END) + GET
    +
               record(NO) + GET,
    "proxy": b"\5" + guest(b"GET http://example.test/ HTTP/1.1", HOST,
                           b"") + guest(b"CONNECT a.test:443 HTTP/1.1", b"Host: a.test", b""),
    "chunks": b"\14" + guest(b"PUT / HTTP/1.1", HOST, b"Transfer-Encoding: chunked", b"", b"3;x=y",
                             b"abc", b"0", b"X-Sum: 7", b"") + GET,
    "answer_chunks": b"\0" + GET + record(EGRESS,
                                          response(200,
                                                   body=2) + frame(2, b"hello")
                                          + frame(3, headers((b"x", b"y")))),
    "answer_cut": b"\0" + GET + record(EGRESS,
                                       response(200, body=3) + frame(2, b"hello")[:10])
    + record(EGRESS_END),
    "answer_http10": b"\0" + guest(b"GET / HTTP/1.0",
                                   b"") + record(EGRESS,
                                                 response(200, body=2) + frame(2, b"hi") + END),
    "answer_head": b"\0" + guest(b"HEAD / HTTP/1.1", HOST,
                                 b"") + record(EGRESS,
                                               response(200, flags=16, body=1, length=9) + END)
    + GET,
    "reason": b"\0" + GET + record(EGRESS,
                                   response(502, fields=((b"sbx-reason", b"no address"),)) + END)
    + record(EGRESS_END) + GET,
    "early": b"\0" + POST + record(EGRESS,
                                   response(100) + response(413, body=1) + END) + guest(b"lo"),
    "denied_body": b"\2" + POST + record(NO) + record(GUEST, b"lo") + GET + record(TIME),
    "expect": b"\0" + guest(b"POST / HTTP/1.1", HOST, b"Content-Length: 2", b"Expect: 100-continue",
                            b"") + record(EGRESS, response(100)) +
              record(GUEST, b"hi") + record(OK),
    "websocket": b"\0" + UPGRADE + record(OK) + record(GUEST,
                                                       b"raw") + record(EGRESS, b"raw")
    + record(EGRESS_END),
    "websocket_no": b"\0" + UPGRADE + record(EGRESS, response(400, body=1) + END) + GET,
    "slow": b"\0" + record(READS, b"\0") + GET + record(EGRESS,
                                                        response(200, body=1, length=200)
                                                        + frame(2, b"x" * 200) + END) +
            record(READS, b"\1") + record(READS),
    "sleeps": b"\0" + record(SLEEP) + POST + record(GUEST, b"lo") + record(SLEEP) + record(OK),
    "half_close": b"\4" + GET + record(GUEST_END),
    "late": b"\0" + record(GUEST, b"GET / HT") + record(TIME),
    "mismatch": b"\4" + GET + guest(b"GET / HTTP/1.1", b"Host: other.test", b""),
    "wrong_frames": b"\0" + GET + record(FRAME,
                                         b"\2abc") + record(FRAME,
                                                            b"\3\0\0")
    + record(FRAME, b"\5\1\0\0\0"),
}
for i, (name, proxy, data, status, _) in enumerate(smuggling.scripts()):
    if i % 6 == 0:
        how = (i % 5) << 3 | 4 | (1 if proxy else 0)
        edge_proxy["wire_" + re.sub(r"\W+", "_",
                                    name.lower())] = bytes([how]) + record(GUEST,
                                                                           data) + record(GUEST_END)

# How to begin (src/edge/tls/test/open_fuzz.c), then steps: which, length, bytes.
SAY, RAW, ALLOW, DENY, SERVER, SERVER_END, CLOCK, GOODBYE, STREAM_END, KEYS, LISTEN, RESET = range(
    12)
TLS12, SHAKEN, CRUMBS = b"\7", b"\6", b"\x1e"


def step(which, data=b""):
    return struct.pack("<BH", which, len(data)) + data


def lines(*parts):
    return step(SAY, b"\r\n".join(parts) + b"\r\n")


INSIDE = lines(b"GET /a HTTP/1.1", HOST, b"")
ANSWER = step(SERVER, response(200, body=1, length=2) + frame(2, b"hi") + END)
edge_open = {
    "get": SHAKEN + INSIDE + step(ALLOW) + ANSWER + INSIDE + step(DENY) + INSIDE + step(DENY, b"x")
    + step(GOODBYE),
    "tls12": TLS12 + INSIDE + step(ALLOW) + ANSWER + step(GOODBYE) + step(STREAM_END),
    "crumbs": CRUMBS + INSIDE + step(ALLOW) + ANSWER,
    "early": b"\0" + step(RAW, b"\x17\3\3\0\5hello"),
    "half": b"\2" + step(RAW, b"\x16\3\3\0\1\x14") + step(CLOCK),
    "half_end": b"\3" + step(STREAM_END),
    "garbage": SHAKEN + INSIDE + step(ALLOW) + step(RAW, b"\x17\3\3\0\x20" + bytes(32)),
    "alert": TLS12 + step(RAW, b"\x15\3\3\0\2\2\x30"),
    "cut": SHAKEN + INSIDE + step(ALLOW) + step(SERVER,
                                                response(200, body=1, length=9) + frame(2, b"hi"))
    + step(SERVER_END),
    "keys": SHAKEN + (step(KEYS) + INSIDE + step(ALLOW) + ANSWER) * 3,
    "websocket": SHAKEN + lines(b"GET /w HTTP/1.1", HOST, b"Connection: upgrade",
                                b"Upgrade: websocket", b"Sec-WebSocket-Key: eA==",
                                b"Sec-WebSocket-Version: 13", b"") + step(ALLOW) +
                 step(SERVER,
                      response(101, flags=4, body=4) + b"raw") + step(SAY, b"raw")
    + step(STREAM_END),
    "slow": SHAKEN + step(LISTEN) + INSIDE + step(ALLOW)
    + step(SERVER, response(200, body=1, length=60000) + frame(2, b"x" * 60000)) +
            step(LISTEN, b"1") + step(SERVER, END),
    "other_host": SHAKEN + lines(b"GET / HTTP/1.1", b"Host: other.test", b""),
    "connect": SHAKEN + lines(b"CONNECT example.test:443 HTTP/1.1", b"Host: example.test", b""),
    "upload": SHAKEN + lines(b"PUT / HTTP/1.1", HOST, b"Content-Length: 12", b"",
                             b"hello") + step(ALLOW) + step(SAY, b"world") + ANSWER,
    "reset": SHAKEN + INSIDE + step(RESET) + step(ALLOW),
    "idle": SHAKEN + INSIDE + step(ALLOW) + ANSWER + step(CLOCK) + step(CLOCK),
}

for target, seeds in (("http1", http1), ("canon", canon), ("edge_proxy", edge_proxy),
                      ("edge_open", edge_open)):
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name[:60]).write_bytes(data)
