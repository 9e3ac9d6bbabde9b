#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gitconfig_oracle - random configurations; the real git is the oracle.

usage:  gitconfig_oracle.py CHECKED_SAY [COUNT [SEED]]

What gitconfig_check accepts, git reads as the same entries before and after. An entry that git
reads and whose key is not permitted is in the old text too, in the same order. Half of the texts
are compared with themselves: then only the grammar decides.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

SAY = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 16
BATCH = 500
rng = random.Random(SEED)
BASE = (b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        b"\tlogallrefupdates = true\n")
ORIGIN = (b'[remote "origin"]\n\turl = https://example.test/a.git\n'
          b"\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
MAIN = b'[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n'
USER = (b"# of the user\n[core]\n\tpager = less -R ; x\n\teditor = \"vi \\\"a\\\" # b\"\n"
        b"[alias]\n\tst = status\n\tx = \"!f() { \\n }; f\"\n[include]\n\tpath = ../more\n"
        b'[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\trequired\n'
        b"[x]\n\ta = \"b # c\"\n\td = e  f\n\tg = \"h \"\n\ti = \" j\"\n"
        b'[url "git@example.test:"]\n\tinsteadOf = https://example.test/\n')
OLDS = [b"", BASE, BASE + ORIGIN, BASE + ORIGIN + MAIN, BASE + USER, USER + BASE + ORIGIN + MAIN]
HARMLESS = [
    b"[user]\n\tname = A B\n", b"[user]\n\temail = a@example.test\n", MAIN, ORIGIN,
    b'[remote "fork"]\n\turl = git@example.test:b/a.git\n',
    b'[branch "f/x"]\n\tremote = fork\n\tmerge = refs/heads/x\n\trebase = true\n',
    b'[branch "main"]\n\tdescription = "one \\"two\\"\\n three"\n',
    b'[submodule "lib/x"]\n\turl = https://example.test/x\n\tactive = true\n',
    b"[pull]\n\trebase = false\n", b"[push]\n\tdefault = simple\n", b"[core]\n\tignorecase\n",
    b'[remote "up"]\n\turl = https://example.test/a.git\n',
    b"[Branch.Old]\n\trebase=no\n", b"# note\n", b"  ; note [core] pager = x\n"
]
EVIL = [
    b"[core]\n\tfsmonitor = touch x\n", b"[core]\n\tsshCommand = x\n", b"[alias]\n\ts = !x\n",
    b"[core]hooksPath=x\n", b"[include]\n\tpath = x\n", b'[includeIf "onbranch:m"]\n\tpath = x\n',
    b'[remote "origin"]\n\tuploadpack = x\n', b'[remote "origin"]\n\turl = ext::sh -c x\n',
    b'[remote "o2"]\n\turl = ./local\n', b'[branch "main"]\n\tremote = ./local\n',
    b'[submodule "x"]\n\tupdate = !x\n', b"[credential]\n\thelper = !x\n",
    b'[filter "f"]\n\tsmudge = x\n', b"[core]\n\tpager = y\n", b'[core "x"]\n\tpager = y\n',
    b"[extensions]\n\tworktreeConfig = true\n", b"\tfsmonitor = x\n", b"fsmonitor = x\n"
]
TOKENS = [
    b"[", b"]", b'"', b"\\", b"\n", b"\r\n", b"\r", b"\t", b"#", b";", b"=", b".", b" ", b"\\\n",
    b"\\\r\n", b'\\"', b"\\n", b"\\t", b"\\b", b"\\\\", b'""', b"[core]", b'[core "', b'"]',
    b"fsmonitor=x", b"pager = x", b"\xef\xbb\xbf", b"\x00", b"\x0b", b"\xff", b"\xc3\xa4", b"-",
    b"_", b"1", b"\x1b", b"\n\n", b"; x \\\n", b"# x \\\n"
]
PERMITTED = re.compile(
    rb"(?s)(advice\.[^.]+|branch\..+\.(description|gh-merge-base|merge|pushremote|rebase|remote"
    rb"|vscode-merge-base)|core\.(autocrlf|bare|eol|filemode|ignorecase|logallrefupdates"
    rb"|precomposeunicode|quotepath|repositoryformatversion|symlinks)|extensions\.(objectformat"
    rb"|refstorage)|fetch\.prune|gc\.auto|init\.defaultbranch|lfs\.repositoryformatversion"
    rb"|lfs\..+\.locksverify|maintenance\.auto|merge\.conflictstyle|pull\.(ff|rebase)"
    rb"|push\.(autosetupremote|default)|rebase\.autostash|remote\..+\.(fetch|gh-resolved|prune"
    rb"|pushurl|tagopt|url)|rerere\.enabled|submodule\.active|submodule\..+\.(active|update|url)"
    rb"|user\.(email|name))")
ADDRESS = re.compile(rb"(?s)(remote\..+\.(url|pushurl)|submodule\..+\.url)")
SERVER = re.compile(rb"(https?|ssh|git)://[\w\[][^\s]*|(\w[^\s@/]*@)?[\w][\w.-]*:[^-:/][^\s]*"
                    rb"|(\w[^\s@/]*@)?[\w][\w.-]*:/([^/][^\s]*)?")


def mixed_case(text):
    return bytes(c ^ 32 if 65 <= (c & 0xdf) <= 90 and rng.random() < 0.1 else c for c in text)


def mutate(text):
    lines = text.splitlines(keepends=True)
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        at, kind = rng.randint(0, len(lines)), rng.random()
        if kind < 0.45:
            lines.insert(at, rng.choice(HARMLESS))
        elif kind < 0.55:
            lines.insert(at, rng.choice(EVIL))
        elif lines and kind < 0.65:
            lines.pop(at - 1)
        elif lines and kind < 0.7:
            lines.insert(at, rng.choice(lines))
        else:
            text = b"".join(lines)
            cut = rng.randint(0, len(text))
            more = rng.choice(TOKENS)
            text = text[:cut] + more + text[cut + rng.choice((0, 0, 1, 3)):]
            lines = text.splitlines(keepends=True)
    text = b"".join(lines)
    return mixed_case(text) if rng.random() < 0.1 else text


def check(say, old, new):
    say.stdin.write(b"git .git/config %d %d\n%s%s" % (len(old), len(new), old, new))
    say.stdin.flush()
    code, n = say.stdout.readline().split()
    return int(code), say.stdout.read(int(n))


def listed(texts, folder):
    """The entries of each text as git reads them. All in one file: git is slow to start."""
    path = os.path.join(folder, "config")
    with open(path, "wb") as f:
        for text in texts:
            f.write(text.removeprefix(b"\xef\xbb\xbf") + b"\n[sbxmark]\n\tend\n")
    done = subprocess.run(["git", "config", "-f", path, "--list", "-z"], capture_output=True)
    if done.returncode:
        return None
    parts = done.stdout.split(b"sbxmark.end\0")
    assert len(parts) == len(texts) + 1, "git sees another number of texts"
    return [p.split(b"\0")[:-1] for p in parts[:-1]]


def key_of(entry):
    return entry.split(b"\n", 1)[0]


def fixed(entries):
    return [e for e in entries if not PERMITTED.fullmatch(key_of(e))]


def is_dangling(entry, entries):
    """The only entry that may change: the remote of a branch without a URL."""
    m = re.fullmatch(rb"(?s)branch\..+\.(remote|pushremote)\n(.*)", entry)
    return m and not any(e.startswith(b"remote." + m.group(2) + b".url\n") for e in entries)


def is_repaired(entry, new, result):
    """Such an entry with the name of another remote."""
    return not is_dangling(entry, result) and any(
        is_dangling(e, new) and key_of(e) == key_of(entry) for e in new)


def judge(old, new, result):
    """Entries as git reads them. The reason why accepting this was wrong, or None."""
    missing = [e for e in new if e not in result]
    added = [e for e in result if e not in new]
    if [e for e in result if e not in added] != [e for e in new if e not in missing]:
        return "other entries than in the new text"
    if not all(is_dangling(e, new) and e in old for e in missing):
        return "an entry was lost"
    if not all(is_repaired(e, new, result) for e in added):
        return "an entry was added"
    if fixed(old) != fixed(result):
        return "a key that is not permitted changed"
    for entry in result:
        key, _, value = entry.partition(b"\n")
        if ADDRESS.fullmatch(key) and entry not in old and not SERVER.fullmatch(value):
            return "an address that is not a server's"
    return None


def fail(why, case):
    print(f"seed {SEED}: {why}\nold: {case[0]!r}\nnew: {case[1]!r}\nresult: {case[2]!r}")
    sys.exit(1)


def check_batch(cases, folder):
    lists = [listed([c[i] for c in cases], folder) for i in range(3)]
    if None in lists or any(rng.random() < 0.02 for _ in cases):
        for case in cases if None in lists else [rng.choice(cases)]:
            alone = [listed([text], folder) for text in case]
            if None in alone:
                fail("git does not read one of these", case)
    for case, *entries in zip(cases, *lists):
        why = judge(*entries)
        if why:
            fail(why, case)


def main():
    counts = {0: 0, -13: 0, -74: 0, -7: 0}
    cases = []
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as say:
        for i in range(COUNT):
            old = rng.choice(OLDS)
            new = mutate(old)
            old = new if i % 2 else old
            code, text = check(say, old, new)
            counts[code] += 1
            if code == 0:
                cases.append((old, new, text))
            if len(cases) == BATCH or (cases and i == COUNT - 1):
                check_batch(cases, folder)
                cases = []
        say.stdin.close()
    print(f"{counts[0]} accepted, {counts[-13]} refused, {counts[-74]} not a configuration")
    if counts[0] < COUNT / 4 or counts[-13] < COUNT / 50 or counts[-74] < COUNT / 20:
        sys.exit("the texts do not cover all results")


main()
