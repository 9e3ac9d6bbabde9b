#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""git of a hostile guest: the file CASE next to it names what it answers. Without it, real git."""
import hashlib
import os
import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
A = b"a" * 40


def pkt(data):
    return b"%04x" % (len(data) + 4) + data


def varint(kind, size):
    out, byte = [], (kind << 4) | (size & 15)
    size >>= 4
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7f, size >> 7
    return bytes([*out, byte])


def size_of(n):
    out = []
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes([*out, n])


def pack(*objects, count=None):
    body = b"PACK" + struct.pack(">II", 2, len(objects) if count is None else count)
    body += b"".join(objects)
    return body + hashlib.sha1(body).digest()


def blob(data, size=None):
    return varint(3, len(data) if size is None else size) + zlib.compress(data)


def ref_delta(base, data):
    return varint(7, len(data)) + base + zlib.compress(data)


def oid(kind, data):
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data).digest()


def bomb():
    """A delta of a few bytes that declares a result of 1 TiB."""
    first = bytes(1 << 20)
    delta = size_of(1 << 20) + size_of(1 << 40) + b"\xf0\xff\xff\x0f" * 16
    return pack(blob(first), ref_delta(oid(b"blob", first), delta))


LISTS = {
    "control": A + b"\trefs/heads/a\x1b[31m\n",
    "dots": A + b"\trefs/heads/a..b\n",
    "dash": A + b"\trefs/heads/--upload-pack=touch\n",
    "lock": A + b"\trefs/heads/main.lock\n",
    "up": A + b"\trefs/heads/../../config\n",
    "many": b"".join(A + b"\trefs/heads/b%d\n" % i for i in range(25000)),
    "twice": (A + b"\trefs/heads/main\n") * 2,
    "long": A + b"\trefs/heads/" + b"x" * 5000 + b"\n",
    "endless": (A + b"\trefs/notes/x\n") * 200000,
    "nul": A + b"\trefs/heads/a\0b\n",
    "bidi": A + b"\trefs/heads/\xe2\x80\xaea\n",
    "head": A + b"\trefs/heads/HEAD\n",
    "symref": b"ref: ../../etc\tHEAD\n",
    "blank": b"\n\n" + A + b"\trefs/heads/main\n",
    "inject": A + b"\trefs/heads/x\nlock /tmp/x\n",
    "binary": bytes(range(256)) * 10,
    "short": b"abc\trefs/heads/main\n",
}

PACKS = {
    "empty-pack": pack(),
    "count": pack(blob(b"x"), count=0xffffffff),
    "huge-size": pack(blob(b"x", size=1 << 40)),
    "short-size": pack(blob(b"hello", size=2)),
    "bad-sum": pack(blob(b"x"))[:-1] + b"\0",
    "truncated": pack(blob(b"x" * 1000))[:40],
    "no-base": pack(ref_delta(b"\1" * 20, size_of(1) + size_of(1) + b"\1x")),
    "self-delta": pack(varint(6, 3) + b"\0" + zlib.compress(b"\1\1\x90")),
    "bomb": bomb(),
    "zip-bomb": pack(varint(3, 3 << 30) + zlib.compress(bytes(1 << 20)) * 2),
    "not-wanted": pack(blob(b"something else")),
    "bad-type": pack(varint(5, 1) + zlib.compress(b"x")),
    "version": b"PACK" + struct.pack(">II", 9, 0) + bytes(20),
}


def read_pkts():
    while True:
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            return
        n = int(head, 16)
        if n > 4 and sys.stdin.buffer.read(n - 4).startswith(b"done"):
            return


def upload(case):
    out = sys.stdout.buffer
    caps = b"\0side-band-64k ofs-delta allow-tip-sha1-in-want allow-reachable-sha1-in-want"
    if case == "garbage":
        out.write(os.urandom(100000))
        return
    if case == "hangup":
        return
    if case == "err":
        out.write(pkt(b"ERR \x1b]0;owned\x07\x1b[2Jno\n"))
        return
    if case == "length":
        out.write(b"zzzz" + b"fff0" * 10)
        return
    out.write(pkt(A + b" refs/heads/main" + caps + b"\n") + b"0000")
    out.flush()
    read_pkts()
    out.write(pkt(b"NAK\n"))
    if case == "noise":
        for _ in range(20):
            out.write(pkt(b"\2" + b"\x1b[31mnoise\r\n" * 4000))
    data = PACKS.get(case, b"")
    for i in range(0, len(data), 60000):
        out.write(pkt(b"\1" + data[i:i + 60000]))
    out.write(b"0000")


def main():
    case = HERE / "CASE"
    name = case.read_text() if case.exists() else ""
    words = sys.argv[1:]
    if name and "ls-remote" in words:
        if name == "stderr":
            sys.stderr.write("\x1b]0;owned\x07 fails\n")
            sys.exit(1)
        sys.stdout.buffer.write(LISTS.get(name, A + b"\trefs/heads/main\n"))
        return
    if name and "upload-pack" in words:
        upload(name)
        return
    os.execv("/usr/bin/git", ["git", *words])


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)
