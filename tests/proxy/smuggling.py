#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""smuggling.py CANON_PIPE - replays tests/proxy/smuggling.wire and compares what would be
forwarded.

`scripts()` and `Pipe` are also used by tests/long/smuggling.
"""
import codecs
import pathlib
import struct
import subprocess
import sys

WIRE = pathlib.Path(__file__).with_name("smuggling.wire")


class Pipe:
    """canon_pipe: one connection's bytes in, (status, requests, tunnel bytes, forwarded) out."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, data, proxy=False):
        self.process.stdin.write(struct.pack("<IB", len(data), 0 if proxy else 1) + data)
        self.process.stdin.flush()
        head = self.process.stdout.read(14)
        if len(head) < 14:
            raise RuntimeError(f"canon_pipe ended on {data!r}")
        status, requests, tunnel, n = struct.unpack("<HIII", head)
        return status, requests, tunnel, self.process.stdout.read(n)

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=10)


def unescape(line):
    if line == "@host":
        return b"Host: example.test\r\n"
    return codecs.escape_decode(line.encode("ascii"))[0]


def scripts():
    """(name, proxy, bytes, status, forwarded) of each script."""
    found, current = [], None
    for line in WIRE.read_text(encoding="ascii").split("\n"):
        if line.startswith("== "):
            current = {"name": line[3:], "proxy": False, "in": b"", "out": b"", "status": None}
            found.append(current)
        elif not current or not line:
            continue
        elif line == "[proxy]":
            current["proxy"] = True
        elif line.startswith("=> "):
            words = line[3:].split()
            current["status"] = 0 if words[0] == "forwards" else int(words[0])
        elif current["status"] is None:
            current["in"] += unescape(line)
        else:
            current["out"] += unescape(line)
    return [(c["name"], c["proxy"], c["in"], c["status"], c["out"]) for c in found]


def main():
    pipe, failed, names = Pipe(sys.argv[1]), 0, set()
    for name, proxy, data, status, forwarded in scripts():
        got = pipe.ask(data, proxy)
        if name in names or status is None:
            print(f"{name}: twice, or without an expectation")
            failed += 1
        names.add(name)
        if (got[0], got[3]) != (status, forwarded):
            failed += 1
            print(f"{name}\n  expected {status} {forwarded!r}\n  got      {got[0]} {got[3]!r}")
    if pipe.close() != 0:
        failed += 1
    print(f"{len(names)} scripts, {failed} failed")
    return 1 if failed or len(names) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
