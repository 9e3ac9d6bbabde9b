#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `h2` and `edge_h2` below fuzz/corpus/."""
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
GET = ((b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a?b=c"),
       (b":authority", b"example.test"))
POST = ((b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/p"),
        (b":authority", b"example.test"))


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
    "cookies": block(1, *GET, (b"cookie", b"a=1"), (b"x", b""), (b"cookie", b"b=2"),
                     (b"cookie", b"")),
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



# edge_h2: u8 how, then steps of u8 which, u16 length, bytes.
RAW, FRAME, YES, NO, ORIGIN, OK_ALL, CLOSE, READS, TIME = range(9)
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4


def step(what, data=b""):
    return struct.pack("<BH", what, len(data)) + data


def frame(kind, flags, stream, payload=b""):
    return step(FRAME, bytes([kind, flags, stream]) + payload)


def hpack(*fields):
    return b"".join(b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in fields)


def get(stream=1, *more):
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, hpack(*GET, *more))


def post(stream=1, *more):
    return frame(HEADERS, END_HEADERS, stream, hpack(*POST, *more))


def canon(kind, payload):
    return struct.pack("<IB", len(payload), kind) + (1).to_bytes(3, "little") + payload


def head(status, body, length=0, flags=0):
    return canon(1, struct.pack("<BBHBQH", 2, flags, status, body, length, 0))


END = canon(3, b"\0\0")
edge_h2 = {
    "get": b"\0" + get() + step(OK_ALL),
    "two": b"\0" + get(1) + get(3) + step(OK_ALL) + get(5),
    "post": b"\0" + post() + frame(DATA, 0, 1,
                                   b"abc") + frame(DATA, END_STREAM, 1, b"d") + step(OK_ALL),
    "length": b"\0" + post(1,
                           (b"content-length", b"3")) + frame(DATA, END_STREAM, 1, b"abc")
    + step(OK_ALL),
    "too_long": b"\0" + post(1, (b"content-length", b"3")) + frame(DATA, END_STREAM, 1, b"abcd"),
    "too_short": b"\0" + post(1, (b"content-length", b"3")) + frame(DATA, END_STREAM, 1, b"ab"),
    "trailers": b"\0" + post() + frame(DATA, 0, 1,
                                       b"abc") + frame(HEADERS, 5, 1,
                                                       hpack((b"x-sum", b"7"))) + step(OK_ALL),
    "second_head": b"\0" + post() + frame(HEADERS, 4, 1,
                                          hpack((b"x-sum", b"7"))) + frame(DATA, 1, 1, b"x"),
    "bidi": b"\0" + post() + step(ORIGIN, b"\0" + head(200, 2)) + frame(DATA, 0, 1, b"abc") +
            step(ORIGIN, b"\0" + canon(2, b"abc")) + frame(DATA, 1, 1,
                                                           b"x") + step(ORIGIN, b"\0" + END),
    "informational": b"\0" + post(1,
                                  (b"expect", b"100-continue")) + step(ORIGIN, b"\0" + head(100, 0))
    +
                     frame(DATA, 1, 1, b"abc") + step(OK_ALL),
    "no_content": b"\0" + get() + step(ORIGIN, b"\0" + head(204, 0) + END),
    "absent": b"\0" + frame(HEADERS, 5, 1,
                            hpack((b":method", b"HEAD"), *GET[1:]))
    + step(ORIGIN, b"\0" + head(200, 1, 9, 16) + END),
    "reset_of_origin": b"\0" + get() + step(ORIGIN,
                                            b"\0" + head(200,
                                                         2) + canon(2, b"ab") + canon(4, b"\1")),
    "wrong_answer": b"\0" + get() + step(ORIGIN, b"\0" + head(200, 1, 1) + canon(2, b"ab")),
    "junk_answer": b"\0" + get() + step(ORIGIN, b"\0garbage that is no frame"),
    "cut": b"\0" + get() + step(ORIGIN, b"\0" + head(200, 3)) + step(CLOSE, b"\0"),
    "cancel": b"\0" + post() + frame(RST, 0, 1, b"\0\0\0\x08"),
    "cancel_asked": b"\1" + get() + frame(RST, 0, 1, b"\0\0\0\x08") + step(YES) + get(3) + step(NO),
    "denied": b"\2" + frame(HEADERS, 5, 1,
                            hpack(GET[0], GET[1], (b":path", b"/no"), GET[3])) + get(3)
    + step(OK_ALL),
    "denied_body": b"\1" + post() + frame(DATA, 0, 1,
                                          b"x" * 90) + step(NO) + frame(DATA, 0, 1, b"y"),
    "mismatch": b"\0" + frame(HEADERS, 5, 1,
                              hpack(*GET[:3], (b":authority", b"other.test"))) + get(3),
    "continuation": b"\0" + frame(HEADERS, 1, 1,
                                  hpack(*GET)) + frame(CONTINUATION, 0,
                                                       1)
    + frame(CONTINUATION, 4, 1, hpack((b"x", b"y"))),
    "settings": b"\0" + frame(SETTINGS, 0, 0,
                              b"\0\4\0\0\0\1") + get() + step(OK_ALL) + frame(SETTINGS, 1, 0),
    "window": b"\0" + frame(SETTINGS, 0, 0,
                            b"\0\4\0\0\0\0") + get() + step(OK_ALL)
    + frame(WINDOW, 0, 1, b"\0\0\0\1"),
    "priority": b"\0" + frame(PRIORITY, 0, 3, b"\0\0\0\1\7") + get(3),
    "ping": b"\0" + frame(PING, 0, 0, b"12345678") + frame(PING, 1, 0, b"12345678"),
    "goaway": b"\0" + get() + frame(GOAWAY, 0, 0, b"\0" * 8) + step(OK_ALL),
    "slow": b"\0" + step(READS, b"\1") + get() + step(OK_ALL) + step(READS, b"\2") + step(READS),
    "idle": b"\0" + get() + step(OK_ALL) + step(TIME, b"\0") + get(3),
    "pushed": b"\0" + frame(PUSH, 4, 1, b"\0\0\0\2\x82"),
    "table": b"\0" + frame(HEADERS, 5, 1, hpack(*GET) + b"\x40\1x\3abc" + b"\xbe\xbe\x20"),
    "raw": b"\0" + step(RAW, b"\0\0\0\0\1\0\0\0\1GET / HTTP/1.1"),
}


def write(name, seeds):
    folder = here / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, data in seeds.items():
        (folder / seed).write_bytes(data)


write("h2", h2)
write("edge_h2", edge_h2)
