#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `scrub` and `unpack` below fuzz/corpus/; wants the
programs brotli and zstd."""
import base64
import gzip
import pathlib
import subprocess
import zlib

corpus = pathlib.Path(__file__).parent / "corpus"
VALUE = b"sk-ab/C+9?~Zq>"
HARD = b"a%41&#65;=41\\x"


def entry(text, which=0, step=0x32):
    """`which` is the value's place in lib/secret/scrub/test/scrub_fuzz.c."""
    return bytes([step, which]) + text


def b64(prefix, alphabet=base64.b64encode):
    return alphabet(prefix + VALUE + b"!")


def lines(text, end):
    return end.join(text[i:i + 5] for i in range(0, len(text), 5))


scrub = {
    "plain": entry(b"x" + VALUE + b"y"),
    "twice": entry(VALUE + VALUE),
    "cut": entry(VALUE[:-1]),
    "overlap": entry(b"aabaabaaabaabaaab", 2),
    "zeros": entry(b"0000000000" + b"3030303030303030" + base64.b64encode(b"0" * 11), 3),
    "introducers": entry(base64.b64encode(b"%25%25%25&amp;&amp;") + b"%2525%25%&amp;amp;&amp;", 5),
    "bytes": entry(bytes.fromhex("c3a4fffe0102807f") + b"c3a4fffe0102807f", 6),
    "hex": entry(VALUE.hex().encode() + b"," + VALUE.hex().upper().encode()),
    "percent": entry(b"".join(b"%%%02x" % c for c in VALUE)),
    "unicode": entry(b"".join(b"\\u%04X" % c for c in VALUE)),
    "entities": entry(b"".join(b"&#%d;&#x%x;" % (a, b) for a, b in zip(VALUE[::2], VALUE[1::2]))),
    "quoted": entry(b"".join(b"=%02X" % c for c in VALUE[:7]) + b"=\r\n" + VALUE[7:]),
    "utf16": entry(VALUE.decode().encode("utf-16-le") + VALUE.decode().encode("utf-16-be")),
    "base64_0": entry(b64(b"")),
    "base64_1": entry(b64(b"u")),
    "base64_2": entry(b64(b"u:", base64.urlsafe_b64encode)),
    "base64_lines": entry(lines(b64(b"user:"), b"\r\n")),
    "base64_json": entry(lines(b64(b"user:"), b"\\n").replace(b"/", b"\\/")),
    "base64_url": entry(b64(b"user:").replace(b"+", b"%2B").replace(b"/", b"%2f")),
    "hard_plain": entry(HARD, 1),
    "hard_percent": entry(b"".join(b"%%%02x" % c for c in HARD), 1),
    "mixed": entry(b"s%6b\\u002d&#97;=62\\/C+9?~Zq>"),
}
TEXT = b"an answer with sk-ab/C+9?~Zq> in it, and again: an answer with sk-ab/C+9?~Zq> in it\n" * 4


def program(*argv):
    return subprocess.run(argv, input=TEXT, capture_output=True, check=True).stdout


def coded(number, data, step=0x43):
    return bytes([number, step]) + data


raw = zlib.compressobj(9, zlib.DEFLATED, -15)
unpack = {
    "identity": coded(0, TEXT),
    "gzip": coded(1, gzip.compress(TEXT, mtime=0)),
    "gzip_members": coded(1,
                          gzip.compress(TEXT,
                                        mtime=0) + gzip.compress(b"", mtime=0)
                          + gzip.compress(b"2", mtime=0)),
    "gzip_garbage": coded(1, gzip.compress(TEXT, mtime=0) + b"garbage"),
    "gzip_cut": coded(1, gzip.compress(TEXT, mtime=0)[:-5]),
    "gzip_program": coded(1, program("gzip", "-n9")),
    "gzip_bomb": coded(1, gzip.compress(b"\0" * 3000000, mtime=0)),
    "zlib": coded(2, zlib.compress(TEXT)),
    "raw_deflate": coded(2, raw.compress(TEXT) + raw.flush()),
    "br": coded(3, program("brotli", "-c", "-q", "9")),
    "br_window": coded(3, program("brotli", "-c", "-w", "24")),
    "zstd": coded(4, program("zstd", "-c", "-q")),
    "zstd_stream": coded(4, program("zstd", "-c", "-q", "--long=27")),
    "zstd_frames": coded(4,
                         program("zstd", "-c",
                                 "-q") + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + program("zstd", "-cq")),
    "empty": coded(4, b""),
}
for name, entries in (("scrub", scrub), ("unpack", unpack)):
    folder = corpus / name
    folder.mkdir(parents=True, exist_ok=True)
    for key, data in entries.items():
        (folder / key).write_bytes(data)
