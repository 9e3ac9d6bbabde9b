#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gitpush_oracle.py SAY [CASES [SEED]] - random histories, judged by lib/wire/git and by git.

The pack of a push is what `git pack-objects` makes for it. What lib/wire/git needs of the server
comes from the real `git upload-pack`, in protocol version 2. Fast-forward, the changed paths and
the number of commits must be those of `git merge-base`, `git diff --name-status` and
`git rev-list`."""
import os
import random
import subprocess
import sys
import tempfile

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@test", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@test", "GIT_AUTHOR_DATE": "1700000000 +0000",
       "GIT_COMMITTER_DATE": "1700000000 +0000"}
ZERO = "0" * 40
PUSHES = 4  # that are tried with a history; none of them is made
PUSH, CREATE, DELETE, FORCE, TAG = 1, 2, 4, 8, 16
NAMES = ["a", "b", "c.txt", "d e", "x", "x.d", "x-y", "\u00e9", ".github",
         "workflows", "src", "ci.yml"]


def git(repo, *args, data=None, text=True):
    done = subprocess.run(["git", "-C", repo, *args], input=data, env=ENV, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text)
    return done.stdout.strip() if text else done.stdout


class History:
    """A repository whose commits are random changes of a small tree, by git fast-import."""

    def __init__(self, repo, rng):
        self.repo, self.rng = repo, rng
        self.n, self.trees, self.out = 0, {}, []
        subprocess.run(["git", "init", "-q", "--template=", "--bare", repo], env=ENV, check=True)

    def path(self):
        return "/".join(self.rng.choice(NAMES) for _ in range(self.rng.randint(1, 4)))

    def write(self, tree, path, mode, content):
        """A file replaces a directory of its name, and files above it."""
        parts = path.split("/")
        for i in range(1, len(parts)):
            tree.pop("/".join(parts[:i]), None)
        for other in [p for p in tree if p.startswith(path + "/")]:
            del tree[other]
        tree[path] = (mode, content)

    def change(self, tree):
        rng, paths = self.rng, sorted(tree)
        kind = rng.choice(["write", "write", "append", "delete", "rename", "copy", "mode", "move"])
        if kind == "write" or not paths:
            mode = rng.choice(["100644", "100644", "100755", "120000", "160000"])
            content = "%040x" % rng.getrandbits(160) if mode == "160000" else \
                "".join(rng.choice("ab\n") for _ in range(rng.choice([0, 5, 400, 3000])))
            self.write(tree, self.path(), mode, content)
        elif kind == "append":
            path = rng.choice(paths)
            if tree[path][0] != "160000":
                tree[path] = (tree[path][0], tree[path][1] + "more\n")
        elif kind == "delete":
            del tree[rng.choice(paths)]
        elif kind in ("rename", "copy"):
            path = rng.choice(paths)
            entry = tree[path]
            if kind == "rename":
                del tree[path]
            self.write(tree, self.path(), *entry)
        elif kind == "mode":
            path = rng.choice(paths)
            if tree[path][0].startswith("100"):
                tree[path] = ("100755" if tree[path][0] == "100644" else "100644", tree[path][1])
        else:
            self.move(tree)

    def move(self, tree):
        """A whole directory gets another name: trees that are not new at a new place."""
        dirs = sorted({p.rsplit("/", 1)[0] for p in tree if "/" in p})
        if not dirs:
            return
        old, new = self.rng.choice(dirs), self.path()
        if new == old or new.startswith(old + "/"):
            return
        entries = [(p, tree.pop(p)) for p in sorted(tree) if p.startswith(old + "/")]
        for path, entry in entries:
            self.write(tree, new + path[len(old):], *entry)

    def commit(self, parents):
        rng = self.rng
        tree = dict(self.trees[parents[0]]) if parents else {}
        if parents and rng.random() < 0.1:  # a revert: a tree that the server has
            tree = dict(self.trees[rng.choice(sorted(self.trees))])
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            self.change(tree)
        self.n += 1
        say = lambda s: self.out.append(s.encode())
        say("commit refs/work/%d\nmark :%d\n" % (self.n, self.n))
        say("author a <a@test> %d +0000\n" % (1700000000 + self.n))
        say("committer a <a@test> %d +0000\ndata 4\nc%03d\n" % (1700000000 + self.n, self.n % 1000))
        for i, parent in enumerate(parents):
            say("%s :%d\n" % ("merge" if i else "from", parent))
        say("deleteall\n")
        for path, (mode, content) in sorted(tree.items()):
            if mode == "160000":
                say("M 160000 %s %s\n" % (content, path))
            else:
                data = content.encode()
                if mode == "120000" and not data:
                    data = b"x"
                say("M %s inline %s\ndata %d\n" % (mode, path, len(data)))
                self.out.append(data + b"\n")
        self.trees[self.n] = tree
        return self.n

    def finish(self):
        """{mark: object name}"""
        marks = self.repo + "/marks"
        git(self.repo, "fast-import", "--quiet", "--export-marks=" + marks,
            data=b"".join(self.out), text=False)
        with open(marks, encoding="ascii") as file:
            return {int(line.split()[0][1:]): line.split()[1] for line in file}


def upload_pack(server, request):
    return subprocess.run(["git", "upload-pack", "--stateless-rpc", server], input=request,
                          env=dict(ENV, GIT_PROTOCOL="version=2"), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def pkt(line):
    return b"%04x" % (len(line) + 4) + line


def body_of(repo, commands, have):
    """What `git send-pack` writes for these commands, with no-thin."""
    lines = ["%s %s %s" % c for c in commands]
    lines[0] += "\0report-status side-band-64k agent=git/2.39"
    body = b"".join(pkt(line.encode()) for line in lines) + b"0000"
    wants = [new for _, new, _ in commands if new != ZERO]
    if wants:
        revs = "\n".join(wants + ["^" + h for h in have]) + "\n"
        body += git(repo, "pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset",
                    data=revs.encode(), text=False)
    return body


class Say:
    """The program under test."""

    def __init__(self, program):
        self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, data):
        self.child.stdin.write(b"%d\n" % len(data) + data)
        self.child.stdin.flush()

    def ask(self, body, server):
        """{ref: (verbs, commits, {path: status})}, or a sentence; and the number of fetches."""
        self.send(body)
        refs, needs, ref = {}, 0, None
        while True:
            line = self.child.stdout.read(5)
            if line == b"need ":
                request = self.child.stdout.read(int(self.child.stdout.readline()))
                answer = upload_pack(server, request)
                self.send(answer)
                needs += 1
            elif line == b"path ":
                text = self.until_nul()
                refs[ref][2][text[2:]] = text[:1].decode()
            elif line == b"commi":
                self.until_nul()
            elif line[:4] == b"ref ":
                verbs, commits, ref = (line[4:] + self.child.stdout.readline()).split()
                refs[ref.decode()] = (int(verbs), int(commits), {})
                ref = ref.decode()
            elif line == b"unkno":
                said = self.child.stdout.readline().decode()
                assert self.child.stdout.readline() == b"done\n"
                return said.split(" ", 1)[1].strip(), needs
            elif line == b"faile":
                self.child.stdout.readline()
            elif line == b"done\n":
                return refs, needs
            else:
                raise AssertionError("unexpected %r, status %s" % (line, self.child.poll()))

    def until_nul(self):
        text = b""
        while not text.endswith(b"\0"):
            text += self.child.stdout.read(1)
        return text[:-1]


def diff(repo, old, new):
    out = git(repo, "diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new, text=False)
    words = out.split(b"\0")[:-1]
    return {words[i + 1]: words[i].decode() for i in range(0, len(words), 2)}


def reaches(repo, old, new):
    return subprocess.run(["git", "-C", repo, "merge-base", "--is-ancestor", old, new], env=ENV,
                          check=False).returncode == 0


def one_history(say, home, rng):
    client, server = home + "/client", home + "/server"
    work = History(client, rng)
    for _ in range(rng.randint(3, 14)):
        marks = sorted(work.trees)
        recent = marks[-4:]
        parents = [rng.choice(recent)] if marks and rng.random() < 0.95 else []
        if len(marks) > 2 and rng.random() < 0.2:
            parents = rng.sample(recent, 2)
        work.commit(parents)
    oids = work.finish()
    marks = sorted(oids)
    on_server = rng.sample(marks, rng.randint(1, min(3, len(marks))))
    refs = {"refs/heads/%s" % n: oids[m] for n, m in zip(["main", "dev", "old"], on_server)}
    subprocess.run(["git", "init", "-q", "--template=", "--bare", "-b", "main", server],
                   env=ENV, check=True)
    git(server, "config", "uploadpack.allowFilter", rng.choice(["true", "false"]))
    git(client, "push", "-q", server, *["%s:%s" % (o, r) for r, o in refs.items()])
    return sum(one_push(say, (client, server), refs, oids, rng) for _ in range(PUSHES))


def one_push(say, repos, refs, oids, rng):
    commands = []
    for name in rng.sample(["main", "dev", "old", "new"], rng.randint(1, 3)):
        ref = "refs/heads/" + name
        new = oids[rng.choice(sorted(oids))]
        if ref in refs and rng.random() < 0.1:
            new = ZERO
        if refs.get(ref, ZERO) != new:
            commands.append((refs.get(ref, ZERO), new, ref))
    return check(say, *repos, commands, refs) if commands else 0


def check(say, client, server, commands, refs):
    said, needs = say.ask(body_of(client, commands, refs.values()), server)
    assert isinstance(said, dict), said
    empty = git(client, "hash-object", "-t", "tree", "/dev/null")
    for old, new, ref in commands:
        verbs, _, paths = said[ref]
        if new == ZERO:
            assert verbs == DELETE, (ref, verbs)
            continue
        base = old if old != ZERO else refs.get("refs/heads/main", empty)
        want = CREATE if old == ZERO else PUSH if reaches(client, old, new) else FORCE
        assert verbs == want, (ref, verbs, want)
        assert paths == diff(client, base, new), (ref, paths, diff(client, base, new))
    return needs


def main():
    say = Say(sys.argv[1])
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    needs = 0
    for case in range(cases):
        with tempfile.TemporaryDirectory() as home:
            try:
                needs += one_history(say, home, random.Random(seed + case))
            except BaseException:
                print("seed %d" % (seed + case))
                raise
    print("%d histories with %d pushes each from seed %d, %d fetches: no difference" %
          (cases, PUSHES, seed, needs))


if __name__ == "__main__":
    main()
