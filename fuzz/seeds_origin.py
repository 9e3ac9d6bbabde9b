#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `ws` and `origin_line` below fuzz/corpus/."""
import pathlib
import random

corpus = pathlib.Path(__file__).parent / "corpus"

# The first byte says where the rest is cut.
ws = {
    "text": b"\x03\x81\x05hello",
    "fragments": b"\x05\x01\x02he\x80\x03llo\x88\x02\x03\xe8",
    "masked": b"\x00\x81\x85\1\2\3\4iGohn",
    "rsv1": b"\x02\xc1\x01x",
    "rsv2": b"\x01\xa1\x01x",
    "rsv3": b"\x01\x91\x01x",
    "long": b"\x02\x82\x7e\x00\x80" + b"\xff" * 128 + b"\x81\x00",
    "longer": b"\x04\x82\x7f" + bytes(7) + b"\x02\xff\xff\x81\x00",
    "too_long": b"\x04\x82\x7f\x80" + bytes(7),
    "empty": b"",
}

# src/origin/test/origin_play.h: enum play_step, and 198 more where origin hears of it together with
# the next one.
(TURN, GET, POST, UPLOAD, FINISH, CANCEL, READ, SOCKET, VALUE, RENEW, EXPIRE, HEAD, DATA, END,
 RESET, ROOM, FRAME,
 TIMER) = range(18)
LATER = 198
H2, H1 = 0, 1
START = bytes([GET, SOCKET, H2, VALUE, 0])
line = {
    "get": START + bytes([HEAD, 0, 4, DATA, 0, 4, END, 0, 0]),
    "get_http1": bytes([GET, SOCKET, H1, VALUE, 0, HEAD, 0, 4, DATA, 0, 4, END, 0, 1]),
    "cut_in_two": START + bytes([HEAD, 0, 0, DATA, 0, 7, 9, TURN, END, 0, 1]),
    "renewed": bytes([POST, SOCKET, H2, VALUE, 0, RENEW, FINISH, 0, HEAD, 0, 4, DATA, 0, 4, END, 0,
                      1]),
    "renewed_between_halves": START + bytes([HEAD, 0, 0, DATA, 0, 7, 9, RENEW, END, 0, 1]),
    "asked_again": bytes([POST, SOCKET, H2, VALUE, 0, EXPIRE, GET, FINISH, 0, HEAD, 0, 4, END, 0,
                          0]),
    "refused_stream": START + bytes([RESET, 0, 1, SOCKET, H2, HEAD, 0, 0, END, 0, 0]),
    "needs_http1": START + bytes([RESET, 0, 3, SOCKET, H1, HEAD, 0, 0, END, 0, 0]),
    "interim_then_refused": START + bytes([HEAD, 0, 1, HEAD, 0, 2]),
    "goaway": START + bytes([FRAME, 0, 5, GET, SOCKET, H2]),
    # a full upload, then room and a refused head for its neighbour at once
    "room_and_refused_head": START
    + bytes([FRAME, 0, 0, FRAME, 0, 2, POST, ROOM, 0, 8, UPLOAD, 1, UPLOAD, 1,
                                            LATER + ROOM, 0, 1, LATER + HEAD, 0, 2, TURN, TURN]),
}
random.seed(1)
for i in range(12):
    line[f"random_{i}"] = START + random.randbytes(160)
for name, seeds in {"ws": ws, "origin_line": line}.items():
    (corpus / name).mkdir(parents=True, exist_ok=True)
    for seed, data in seeds.items():
        (corpus / name / seed).write_bytes(data)
