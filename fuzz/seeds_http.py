#!/usr/bin/python3
"""Writes the seed corpora of the targets `http1` and `canon` below fuzz/corpus/."""
import pathlib
import re
import struct
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "tests/proxy"))
import smuggling  # noqa: E402

# First byte: the low three bits choose the side (0 transparent, 1 proxy, 2 answer to GET, 3 to HEAD, 4 to CONNECT,
# 5 to a websocket), the others how many bytes come at a time.
http1 = {}
for i, (name, proxy, data, status, _) in enumerate(smuggling.scripts()):
    if status == 0 or i % 4 == 0:
        http1[re.sub(r"\W+", "_", name.lower())] = bytes([(i % 7) << 3 | (1 if proxy else 0)]) + data
answers = {
    "length": (2, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    "chunks": (2, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\na\r\n0\r\nX: y\r\n\r\n"),
    "close": (2, b"HTTP/1.0 200 OK\r\n\r\nhi"),
    "hints": (2, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
    "not_modified": (2, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
    "head": (3, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    "connect": (4, b"HTTP/1.1 200 OK\r\n\r\nbytes"),
    "websocket": (5, b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81"),
}
for name, (how, data) in answers.items():
    http1["answer_" + name] = bytes([how | 3 << 3]) + data


def text(s):
    return struct.pack("<H", len(s)) + s


def headers(*pairs):
    return struct.pack("<H", len(pairs)) + b"".join(text(k) + text(v) for k, v in pairs)


def frame(kind, payload, stream=1):
    return struct.pack("<IB", len(payload), kind) + stream.to_bytes(3, "little") + payload


def request(method=b"GET", host=b"example.test", port=80, path=b"/", query=b"", flags=0, scheme=0, body=0, length=0,
            fields=()):
    return frame(1, struct.pack("<BBB", 1, flags, scheme) + text(method) + text(host) + struct.pack("<H", port) +
                 text(path) + text(query) + struct.pack("<BQ", body, length) + headers(*fields))


def response(status, flags=0, body=0, length=0, fields=()):
    return frame(1, struct.pack("<BBHBQ", 2, flags, status, body, length) + headers(*fields))


END = frame(3, headers())
canon = {
    "get": b"\0" + request(fields=((b"accept", b"*/*"),)) + END,
    "query": b"\3" + request(path=b"/a/%2e%2e/b//c", query=b"x=1", flags=8) + END,
    "post": b"\0" + request(b"POST", body=1, length=5, flags=1) + frame(2, b"hello") + END,
    "chunks": b"\1" + request(b"PUT", body=2, flags=2) + frame(2, b"hello") + frame(3, headers((b"x-sum", b"7"))),
    "connect": b"\0" + request(b"CONNECT", port=443, path=b"", body=4) + frame(2, b"\x16\3\1"),
    "options": b"\0" + request(b"OPTIONS", path=b"*") + END,
    "tls_v6": b"\0" + request(host=b"2001:db8::1", port=8443, scheme=1) + END,
    "tls": b"\0" + request(port=443, scheme=1) + END,
    "websocket": b"\0" + request(flags=4, fields=((b"sec-websocket-key", b"eA=="), (b"sec-websocket-version", b"13"))),
    "answer": b"\0" + response(200, body=1, length=2, fields=((b"x", b""),)) + frame(2, b"hi") + END,
    "answer_head": b"\0" + response(200, flags=16, body=1, length=2) + END,
    "answer_hints": b"\0" + response(103) + response(204) + END,
    "answer_switch": b"\0" + response(101, flags=4, body=4),
    "window_reset": b"\2" + frame(5, struct.pack("<I", 65536)) + frame(4, b"\1"),
    "host_header": b"\0" + request(fields=((b"host", b"other.test"),)),
    "two_lines": b"\0" + request(fields=((b"x", b"y\r\nhost: other.test"),)),
    "long_path": b"\0" + request(path=b"/" + b"a" * 600) + END,
}

for target, seeds in (("http1", http1), ("canon", canon)):
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name[:60]).write_bytes(data)
