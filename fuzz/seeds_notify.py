#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of the target `notify_chan` below fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus/notify_chan"


def text(s):
    return struct.pack("<H", len(s)) + s


def packet(kind, body=b"", fd=0, ident=1):
    return bytes([fd]) + struct.pack("<HHII", kind, 0, ident, len(body)) + body


def show(sandbox=b"demo", hold=b"K7QD", effect=b"http:GET a.test /", more=0):
    return text(sandbox) + text(hold) + text(effect) + struct.pack("<I", more)


seeds = {
    "hello": packet(1, text(b"0.1.0"), ident=0),
    "show": packet(2, show(more=3)),
    "show_without_number": packet(2, show(), ident=0),
    "show_control_character": packet(2, show(effect=b"\x1b[2J")),
    "show_empty": packet(2, show(hold=b"")),
    "show_long": packet(2, show(effect=b"x" * 513)),
    "close": packet(3),
    "refuse": packet(4),
    "refuse_fd": packet(4, fd=1),
    "refuse_all": packet(4, ident=0),
}
corpus.mkdir(parents=True, exist_ok=True)
for name, data in seeds.items():
    (corpus / name).write_bytes(data)
