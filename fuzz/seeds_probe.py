#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of the target `probe_answer` below fuzz/corpus/: its first byte is 0 for
DNS, 1 for a connection."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus" / "probe_answer"
QUESTION = b"\1a\1b\0\0\1\0\1"


def message(code, records=(), answers=None):
    return struct.pack(">HHHHHH", 0x5b78, 0x8180 | code, 1,
                       len(records) if answers is None else answers, 0,
                       0) + QUESTION + b"".join(records)


def record(kind, data, name=b"\xc0\x0c"):
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


dns = {
    "a": message(0, [record(1, b"\xc0\0\2\1")]),
    "aaaa": message(0, [record(28, bytes(16))]),
    "other": message(0, [record(16, b"\2hi"), record(65, b"")]),
    "nxdomain": message(3),
    "because": message(5, [record(41, b"\0\x0f\0\x08\0\x0fno\x1b[2J", b"\0")],
                       0)[:10] + b"\0\1" + message(5,
                                                   [record(41, b"\0\x0f\0\x08\0\x0fno\x1b[2J",
                                                           b"\0")], 0)[12:],
    "too_long": message(0, [record(1, b"\xc0\0\2\1")])[:-6] + b"\xff\xff\xc0\0",
    "label_out": message(0, [], 1)[:12] + b"\xbfa",
    "many": message(0, [], 65535) + bytes(200),
    "short": b"\x5b\x78\x81",
}
talk = {
    "403": b"HTTP/1.1 403 Forbidden\r\nProxy-Status: sbx; details=\"no rule\"\r\n\r\n",
    "200": b"HTTP/1.1 200 OK\r\n\r\n",
    "no_status": b"HTTP/1.1 -99 x",
    "cut_details": b"HTTP/1.1 403 \0details=\"",
    "alert": b"\x15\3\3\0\2\2\x70",
    "handshake": b"\x16\3\3\0\x7a",
    "bytes": b"\n\x1b]0;x\a" + bytes(range(128, 256)),
}
corpus.mkdir(parents=True, exist_ok=True)
for first, seeds in ((b"\0", dns), (b"\1", talk)):
    for name, seed in seeds.items():
        (corpus / f"{'talk' if first[0] else 'dns'}_{name}").write_bytes(first + seed)
