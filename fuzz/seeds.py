#!/usr/bin/env python3
"""Writes the seed corpora of the targets `wire` and `edge_chan` below fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


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
    "client_answer": b"\0\0" + SETTINGS + ACK + frame(1, 4, 1, OK) + frame(0, 0, 1, b"hello") + frame(0, 1, 1),
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
    "server_exec": b"\1\0" + SETTINGS + ACK + frame(1, 4, 1, EXEC) + frame(0, 0, 1, b"spec") + frame(0, 1, 1),
    "server_bytewise": b"\1\1" + SETTINGS + ACK + frame(1, 5, 1, EXEC),
    "server_many": b"\1\7" + SETTINGS + ACK + b"".join(
        frame(1, 4, i, EXEC if i == 1 else EXEC[1:]) + frame(0, 0, i, b"abc") for i in range(1, 21, 2)),
    "server_reset": b"\1\0" + SETTINGS + ACK + frame(1, 4, 1, EXEC) + frame(0, 0, 1, b"R") + frame(0, 0, 1, b"late"),
    "server_rapid_reset": b"\1\0" + SETTINGS + ACK + b"".join(
        frame(1, 4, i, EXEC if i == 1 else EXEC[1:]) + frame(3, 0, i, b"\0\0\0\x08") for i in range(1, 21, 2)),
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
CONFIG = packet(2, 0, text(b"0123456789ab") + struct.pack("<I", 2000), True)
READY = packet(3)
UP = HELLO + CONFIG + READY
OPEN = packet(4, 7, text(b"/exec"), True)
STOP = packet(11)

edge_chan = {
    "start_stop": UP + STOP,
    "exec": UP + OPEN + packet(5, 7, struct.pack("<H", 200)) + packet(7, 7) + STOP,
    "refused": UP + OPEN + packet(6, 7, b"\1") + STOP,
    "ping": UP + packet(8, 1) + packet(9, 1, struct.pack("<I", 3)) + STOP,
    "lost_early": HELLO + CONFIG + packet(10, 0, text(b"no answer")),
    "lost_late": UP + packet(10, 0, text(b"the guest broke the protocol")),
    "out_of_phase": HELLO + OPEN,
    "no_fd": HELLO + packet(2, 0, text(b"0123456789ab") + struct.pack("<I", 2000)),
    "trailing": HELLO + packet(3, 0, b"x"),
    "unknown": packet(99),
}

for target, seeds in (("wire", wire), ("edge_chan", edge_chan)):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
