#!/usr/bin/python3
"""Writes the seed corpora of the targets `h2` and `edge_h2` below fuzz/corpus/."""
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
GET = ((b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a?b=c"), (b":authority", b"example.test"))
POST = ((b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/p"), (b":authority", b"example.test"))


def text(s):
    return struct.pack("<H", len(s)) + s


def block(ended, *fields):
    return bytes([ended]) + b"".join(text(k) + text(v) for k, v in fields)


h2 = {
    "get": block(1, *GET, (b"accept", b"*/*")),
    "host": block(1, *GET[:3], (b"host", b"example.test:443")),
    "host_differs": block(1, *GET, (b"host", b"other.test")),
    "options": block(1, (b":method", b"OPTIONS"), (b":scheme", b"https"), (b":path", b"*"), GET[3]),
    "post_length": block(0, *POST, (b"content-length", b"5")),
    "post_open": block(0, *POST, (b"te", b"trailers"), (b"content-type", b"application/grpc")),
    "post_short": block(1, *POST, (b"content-length", b"5")),
    "expect": block(0, *POST, (b"expect", b"100-continue"), (b"content-length", b"1")),
    "cookies": block(1, *GET, (b"cookie", b"a=1"), (b"x", b""), (b"cookie", b"b=2"), (b"cookie", b"")),
    "encoding": block(0, *POST, (b"transfer-encoding", b"chunked")),
    "line_end": block(1, *GET, (b"x", b"1\r\nhost: b.test")),
    "colon": block(1, *GET, (b"x: y", b"1")),
    "twice": block(1, *GET, GET[2]),
    "late": block(1, (b"x", b"y"), *GET),
    "connect": block(0, (b":method", b"CONNECT"), GET[3]),
    "extended": block(0, (b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]),
    "v6": block(1, *GET[:3], (b":authority", b"[2001:db8::1]:8443")),
    "user": block(1, *GET[:3], (b":authority", b"u@example.test")),
    "dots": block(1, GET[0], GET[1], (b":path", b"/a/../b//%2f"), GET[3]),
    "trailer": block(1, (b"grpc-status", b"0"), (b"x-sum", b"7")),
    "method": block(1, (b":method", b"M!"), *GET[1:]),
    "many": block(1, *GET, *[(b"x", b"%d" % i) for i in range(99)]),
}


def write(name, seeds):
    folder = here / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, data in seeds.items():
        (folder / seed).write_bytes(data)


write("h2", h2)
