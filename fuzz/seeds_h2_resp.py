#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of the target `h2_resp` below fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus" / "h2_resp"


def block(flags, *fields):
    return bytes([flags]) + b"".join(struct.pack("<H", len(x)) + x for f in fields for x in f)


OK, NO = (b":status", b"200"), (b":status", b"204")
seeds = {
    "ok": block(0, OK, (b"content-type", b"text/plain")),
    "ended": block(2, OK),
    "head": block(3, OK, (b"content-length", b"7")),
    "length": block(0, OK, (b"content-length", b"7")),
    "twice": block(0, OK, OK),
    "no_content": block(2, NO),
    "interim": block(0, (b":status", b"103"), (b"link", b"</a>")),
    "switch": block(0, (b":status", b"101")),
    "late": block(0, (b"a", b"b"), OK),
    "connection": block(0, OK, (b"connection", b"close")),
    "request": block(0, (b":method", b"GET"), OK),
    "split": block(0, OK, (b"a", b"b\r\nc: d")),
}
corpus.mkdir(parents=True, exist_ok=True)
for name, data in seeds.items():
    (corpus / name).write_bytes(data)
