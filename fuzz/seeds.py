#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `wire`, `edge_chan`, `edge_net` and `retry` below
fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3,
                                 "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def setting(key, value):
    return struct.pack(">HI", key, value)


SETTINGS = frame(4, 0, 0, setting(3, 256) + setting(4, 262144) + setting(1, 0))
ACK = frame(4, 1, 0)
REQUEST = b"\x20\x83\x86\x84\x01\x03sbx"
EXEC = b"\x20\x83\x86\x04\x05/exec\x01\x03sbx"
OK = b"\x20\x88"
PING = frame(6, 0, 0, b"12345678")

# First byte: 0 a client eats them, 1 a server does; second: how many bytes at a time, 0 all.
wire = {
    "client_answer": b"\0\0" + SETTINGS + ACK + frame(1, 4, 1,
                                                      OK) + frame(0, 0, 1, b"hello")
    + frame(0, 1, 1),
    "client_bytewise": b"\0\1" + SETTINGS + ACK + frame(1, 4, 1, OK) + frame(0, 1, 1, b"hello"),
    "client_reset": b"\0\0" + SETTINGS + ACK + frame(1, 4, 1, OK) + frame(3, 0, 1, b"\0\0\0\x08"),
    "client_not_found": b"\0\0" + SETTINGS + ACK + frame(1, 5, 3, b"\x20\x8d") + PING,
    "client_500": b"\0\0" + SETTINGS + ACK + frame(1, 4, 1, b"\x20\x8e") + frame(0, 0, 1, b"x"),
    "client_window": b"\0\0" + SETTINGS + frame(8, 0, 0, b"\0\1\0\0") + frame(8, 0, 1, b"\0\1\0\0"),
    "client_window_0": b"\0\0" + frame(4, 0, 0, setting(3, 256) + setting(4, 0)) + ACK,
    "client_goaway": b"\0\0" + SETTINGS + frame(7, 0, 0, bytes(8)),
    "client_unused": b"\0\0" + SETTINGS + frame(0x42, 0, 0, b"hm"),
    "client_continued": b"\0\0" + SETTINGS + ACK + frame(1, 0, 1, OK) + frame(9, 4, 1, b"\x88"),
    "client_push": b"\0\0" + SETTINGS + frame(5, 4, 1, b"\0\0\0\2" + REQUEST),
    "server_exec": b"\1\0" + SETTINGS + ACK + frame(1, 4, 1,
                                                    EXEC) + frame(0, 0, 1, b"spec")
    + frame(0, 1, 1),
    "server_bytewise": b"\1\1" + SETTINGS + ACK + frame(1, 5, 1, EXEC),
    "server_many": b"\1\7" + SETTINGS + ACK + b"".join(
        frame(1, 4, i, EXEC if i == 1 else EXEC[1:]) + frame(0, 0, i, b"abc")
        for i in range(1, 21, 2)),
    "server_reset": b"\1\0" + SETTINGS + ACK + frame(1, 4, 1,
                                                     EXEC) + frame(0, 0, 1, b"R")
    + frame(0, 0, 1, b"late"),
    "server_rapid_reset": b"\1\0" + SETTINGS + ACK + b"".join(
        frame(1, 4, i, EXEC if i == 1 else EXEC[1:]) + frame(3, 0, i, b"\0\0\0\x08")
        for i in range(1, 21, 2)),
    "server_ping": b"\1\0" + SETTINGS + ACK + 5 * PING,
    "server_priority": b"\1\0" + SETTINGS + frame(2, 0, 3, b"\0\0\0\1\x10"),
    "server_trailers": b"\1\0" + SETTINGS + frame(1, 4, 1, EXEC) + frame(1, 5, 1, EXEC[1:]),
}


def text(s):
    return struct.pack("<H", len(s)) + s


def packet(kind, ident=0, body=b"", fd=False):
    p = struct.pack("<HHII", kind, 0, ident, len(body)) + body
    return struct.pack("<H", len(p) | (0x8000 if fd else 0)) + p


HELLO = packet(1, 0, text(b"0.1.0"))
CONFIG = packet(2, 0, text(b"0123456789ab") + struct.pack("<I", 2000) + text(b""), True)
READY = packet(3)
UP = HELLO + CONFIG + READY
OPEN = packet(4, 7, text(b"/exec"), True)

edge_chan = {
    "start": UP,
    "exec": UP + OPEN + packet(5, 7, struct.pack("<H", 200)) + packet(7, 7),
    "refused": UP + OPEN + packet(6, 7, b"\1"),
    "lost_early": HELLO + CONFIG + packet(10, 0, text(b"no answer")),
    "lost_late": UP + packet(10, 0, text(b"the guest broke the protocol")),
    "out_of_phase": HELLO + OPEN,
    "no_fd": HELLO + packet(2, 0, text(b"0123456789ab") + struct.pack("<I", 2000)),
    "trailing": HELLO + packet(3, 0, b"x"),
    "unknown": packet(99),
}



# Steps of src/edge/test/net_fuzz.c.
PROXY, UDP, TCP_DNS, P443, P80, P22, GATEWAY, NO_NAME = range(8)


def raw(data):
    return b"\0" + struct.pack("<H", len(data)) + data


def opened(path, end=False):
    return bytes([1, path | (128 if end else 0)])


def data(stream, payload, end=False):
    return bytes([2, stream | (128 if end else 0)]) + struct.pack("<H", len(payload)) + payload


def verdict(yes, ask=0):
    return bytes([3, ask | (128 if yes else 0)])


def egress(way, accept=False, close=False, out=True, payload=b""):
    return bytes([4, way | (128 if accept else 0) | (64 if close else 0) | (32 if out else 0),
                  len(payload)]) + payload


def timer(conn):
    return bytes([5, conn])


def reset(stream):
    return bytes([6, stream])


def client_hello(name, extra=b""):
    sni = b"" if name is None else b"\0\0" + struct.pack(">HHBH", len(name) + 5, len(name) + 3, 0,
                                                         len(name)) + name
    exts = sni + b"\0\x2b\0\3\2\3\4" + extra
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + struct.pack(">H", len(exts)) + exts
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


def query(name, qtype=1):
    labels = b"".join(bytes([len(x)]) + x for x in name.split(b"."))
    return (b"\x12\x34\1\0\0\1\0\0\0\0\0\1" + labels + b"\0" + struct.pack(">HH", qtype, 1)
            + b"\0\0\x29\4\xd0\0\0\0\0\0\0")


CONNECT = b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n"
RAW_CONNECT = CONNECT.replace(b"443", b"9999")
GET = b"GET http://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n"
YES = verdict(True) + egress(0, accept=True)
CCS = b"\x14\3\3\0\1\1"
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
RETRY = b"\x16\3\3\0\x2c\2\0\0\x28\3\3" + RETRY_RANDOM + b"\0\x13\1\0\0\0"
edge_net = {
    "tls": opened(P443) + data(0,
                               client_hello(None)) + YES + egress(0, payload=b"server")
    + data(0, b"x", True)
           + egress(0, close=True),
    "tls_retry": opened(P443) + data(0,
                                     client_hello(None)) + YES + egress(0, payload=RETRY)
    + data(0, CCS + client_hello(None)) + data(0, b"x", True),
    "tls_retry_other": opened(P443) + data(0,
                                           client_hello(None)) + YES + egress(0, payload=RETRY)
    + data(0, CCS) + data(0, client_hello(b"a.test"), True),
    "tls_retry_early": opened(P443) + data(0,
                                           client_hello(None) + CCS + client_hello(b"a.test")) + YES
    + egress(0, payload=RETRY),
    "tls_retry_split": opened(P443) + data(0,
                                           client_hello(None)) + YES
    + b"".join(egress(0, payload=RETRY[i:i + 9]) for i in range(0, len(RETRY), 9))
                       + b"".join(data(0, bytes([b])) for b in client_hello(None)) + reset(0),
    "tls_name_on_address": opened(P443) + data(0, client_hello(b"a.test")) + YES + verdict(False),
    "tls_ech": opened(P443) + data(0, client_hello(None, b"\xfe\x0d\0\4\0xyz")) + YES,
    "tls_bytewise": opened(P443) + b"".join(data(0, bytes([b])) for b in client_hello(None)) + YES,
    "tls_denied": opened(P443) + data(0, client_hello(None)) + verdict(False),
    "connect": opened(PROXY) + data(0,
                                    CONNECT) + YES + data(0,
                                                          client_hello(b"example.test"))
    + egress(0, payload=b"s"),
    "connect_at_once": opened(PROXY) + data(0, CONNECT + client_hello(b"example.test")) + YES,
    "connect_wrong_name": opened(PROXY) + data(0,
                                               CONNECT) + YES + data(0, client_hello(b"evil.test")),
    "connect_http": opened(PROXY) + data(0, CONNECT) + YES + data(0, GET) + egress(0),
    "connect_raw": opened(PROXY) + data(0,
                                        RAW_CONNECT + b"\1raw") + YES + data(0, bytes(3000))
    + egress(0, payload=b"ok"),
    "connect_raw_443": opened(PROXY) + data(0, CONNECT + b"\1raw") + YES + egress(0),
    "connect_denied": opened(PROXY) + data(0, CONNECT) + verdict(False) + data(0, b"more", True),
    "connect_egress_gone": opened(PROXY) + data(0, CONNECT) + verdict(True) + egress(0, close=True),
    "connect_egress_wrong": opened(PROXY) + data(0,
                                                 CONNECT) + verdict(True)
    + egress(0, payload=b"\xff" * 9),
    "silence": opened(P443) + timer(0) + YES + timer(0),
    "server_first": opened(P22) + timer(0) + YES + egress(0,
                                                          payload=b"SSH-2.0\r\n")
    + data(0, b"SSH-2.0\r\n"),
    "half_close": opened(P22, True) + YES + egress(0, payload=b"bye", close=True),
    "caught_http": opened(P80) + data(0, GET) + verdict(True) + egress(0),
    "proxy_get": opened(PROXY) + data(0, GET) + verdict(True) + egress(0),
    "dns": opened(UDP) + data(0, query(b"a.test"), True) + verdict(True) + opened(TCP_DNS)
           + data(1, query(b"b.test", 28), True) + verdict(False),
    "dns_gateway": opened(UDP) + data(0, query(b"gateway.sbx.internal"), True),
    "dns_odd": opened(UDP) + data(0, query(b"a b"),
                                  True) + opened(UDP) + data(1, query(b"1.2.3.4"), True)
               + opened(UDP, True) + opened(UDP) + data(3,
                                                        bytes(3000)) + verdict(False)
    + verdict(False),
    "faults": opened(GATEWAY) + opened(NO_NAME) + verdict(False) + verdict(False),
    "resets": opened(P443) + reset(0) + opened(P443) + data(1,
                                                            client_hello(None)) + reset(1)
    + verdict(True)
              + opened(PROXY) + data(2,
                                     CONNECT) + verdict(True) + reset(2) + egress(1, accept=True),
    "many_asks": b"".join(opened(UDP) + data(i, query(b"a.test"), True) for i in range(40))
    + 5 * verdict(True),
    "raw_ping": raw(frame(6, 0, 0, b"12345678")) + raw(frame(0x42, 0, 0, b"hm")),
    "raw_continued": raw(frame(1, 0, 1, EXEC)),
}



def answered(server, client, step=255):
    return bytes([step]) + struct.pack("<H", len(server)) + server + client


FRAGMENTS = b"\x16\3\3\0\1\1" + b"\x16\3\3" + struct.pack(">H",
                                                          len(
    client_hello(b"a.test")) - 6) + client_hello(b"a.test")[6:]
retry = {
    "asked": answered(RETRY, CCS + client_hello(b"a.test")),
    "asked_bytewise": answered(RETRY, CCS + client_hello(b"a.test"), 0),
    "asked_early_data": answered(b"\x15\3\3\0\2\1\x70" + RETRY,
                                 b"\x17\3\3\0\3abc" + CCS + client_hello(None), 6),
    "fragments": answered(RETRY, FRAGMENTS, 3),
    "not_asked": answered(RETRY.replace(RETRY_RANDOM, bytes(32)), client_hello(b"a.test")),
    "not_tls": answered(b"SSH-2.0-x", b""),
    "empty_record": answered(RETRY, b"\x16\3\3\0\0" + client_hello(None)),
    "junk": answered(RETRY, b"\x18\3\3\0\1x"),
}



def muxed(kind, stream, payload=b""):
    return struct.pack("<IB", len(payload), kind) + stream.to_bytes(3, "little") + payload


MUX_DATA, MUX_WINDOW, MUX_END, MUX_RESET = 1, 2, 3, 4
# The first byte: how many bytes at a time.
mux = {
    "two_streams": b"\x05" + muxed(MUX_DATA, 1, b"hello") + muxed(MUX_DATA, 2, b"x" * 300) +
                   muxed(MUX_END, 1) + muxed(MUX_RESET, 2),
    "not_open": b"\0" + muxed(MUX_DATA, 77, b"who?") + muxed(MUX_END, 77) + muxed(MUX_DATA, 1, b"a"),
    "window": b"\x03" + muxed(MUX_WINDOW, 1, struct.pack("<I", 4096)),
    "window_too_large": b"\x07" + muxed(MUX_WINDOW, 1, struct.pack("<I", 65536)),
    "after_end": b"\x09" + muxed(MUX_END, 3) + muxed(MUX_DATA, 3, b"late"),
    "above_the_window": b"\x3f" + muxed(MUX_DATA, 1, bytes(8000)) + muxed(MUX_DATA, 1, bytes(300)),
    "junk": b"\x01GET / HTTP/1.1\r\n\r\n",
}

for target, seeds in (("wire", wire), ("edge_chan", edge_chan), ("edge_net", edge_net),
                      ("retry", retry), ("mux", mux)):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
