#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""textdiff_oracle - random texts; the programs patch and diff are the oracles.

usage:  textdiff_oracle.py CHECKED_SAY [COUNT [SEED]]

patch makes the new text from the old one and our diff. Our diff has as few changed lines as
`diff --minimal`.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

SAY = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 400
rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 16)
LINES = ["", "{", "}", "\treturn 0;", "a", "b", "-- x", "++ y", "@@ -1 +1 @@", "\\ No", "<1B>", "ä"]


def random_lines(n):
    return [rng.choice(LINES) if rng.random() < 0.8 else f"line {rng.random()}" for _ in range(n)]


def random_pair():
    old = random_lines(rng.choice((0, 1, 3, 10, 40, 200)))
    new = list(old)
    for _ in range(rng.choice((0, 1, 1, 2, 5, 30))):
        at = rng.randint(0, len(new))
        new[at:at + rng.choice((0, 0, 1, 2, 8))] = random_lines(rng.choice((0, 1, 1, 2, 8)))
    return ["\n".join(t) + ("\n" if t and rng.random() < 0.85 else "") for t in (old, new)]


def diff_of(say, old, new):
    old, new = old.encode(), new.encode()
    say.stdin.write(b"diff - %d %d\n%s%s" % (len(old), len(new), old, new))
    say.stdin.flush()
    code, n = say.stdout.readline().split()
    return int(code), say.stdout.read(int(n))


def changed_lines(diff):
    return sum(1 for line in diff.split(b"\n")[2:] if line[:1] in (b"-", b"+"))


def main():
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(
        [SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as say:
        folder, patch, fewest = pathlib.Path(name), b"", {}
        pairs = [random_pair() for _ in range(COUNT)]
        for i, (old, new) in enumerate(pairs):
            for side, text in (("old", old), ("new", new)):
                (folder / f"{i}.{side}").write_bytes(text.encode())
            (folder / str(i)).write_bytes(old.encode())
            code, diff = diff_of(say, old, new)
            assert (code == 0) == (old == new) and code in (0, 1), (code, old, new)
            _, _, hunks = diff.split(b"\n", 2) if diff else (b"", b"", b"")
            patch += b"--- %d\n+++ %d\n%s" % (i, i, hunks) if diff else b""
            fewest[i] = changed_lines(diff)
        say.stdin.close()
        done = subprocess.run(["patch", "-p0", "--fuzz=0", "--silent"], input=patch, cwd=folder,
                              capture_output=True)
        assert done.returncode == 0, done.stdout.decode()
        for i, (old, new) in enumerate(pairs):
            now = folder / str(i)
            assert (now.read_bytes() if now.exists() else b"") == new.encode(), (old, new)
        for i in rng.sample(range(COUNT), min(COUNT, 50)):
            shortest = subprocess.run(["diff", "-u", "--minimal", f"{i}.old", f"{i}.new"],
                                      cwd=folder, capture_output=True).stdout
            assert changed_lines(shortest) == fewest[i], (pairs[i], shortest)
    print(f"{COUNT} texts patched")


main()
