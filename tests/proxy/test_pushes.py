# SPDX-License-Identifier: Apache-2.0
"""Pushes of git under rules of kind git: real git and `git http-backend` around the real keeper,
edge, clerk, origin and vault (CredRig).

git runs as guest root. A refused push has three ends: what git prints, the contents that the
server got, and the audit log.
"""
import itertools
import os
import pathlib
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
from rig import CredRig  # noqa: E402

HOST, TOKEN = "github.com", "gho_" + secrets.token_hex(18)
NETWORK = f"allow network {HOST}:443"
FETCH = "allow git github.com/acme/* do fetch"
AGENT = "allow git github.com/acme/* do push,create ref refs/heads/agent/**"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.gits = made.git(TOKEN)
        (made.gits.root / "acme").mkdir()
        yield made


@pytest.fixture(scope="module")
def rig(lab):
    with CredRig([NETWORK], {f"{HOST}:443": f"127.0.0.1:{lab.gits.port}"}, lab.ca.pem) as made:
        made.set_secret("github", TOKEN)
        made.trusted = made.ca()
        yield made
        assert made.process.poll() is None, made.text()[-3000:]
        assert TOKEN not in made.text()


def rules(rig, *lines):
    rig.policy.write_text("\n".join(("policy 2", NETWORK, *lines, "end", "")))
    assert rig.command("reload") == "ok"
    rig.until_up()


class Repo:
    """A repository at the server, with a clone that a guest works in."""

    def __init__(self, rig, lab, folder):
        self.rig, self.lab = rig, lab
        self.name = f"app{next(NUMBERS)}"
        self.bare = lab.gits.make(f"acme/{self.name}.git")
        self.work = folder / self.name
        self.env = {**os.environ, "GIT_SSL_CAINFO": str(rig.trusted), "HOME": str(folder),
                    "https_proxy": f"http://127.0.0.1:{rig.bridge()}", "GIT_TERMINAL_PROMPT": "0",
                    "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
                    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        subprocess.run(["git", "init", "-q", "-b", "main", self.work], check=True)
        self.git("remote", "add", "origin", f"https://{HOST}/acme/{self.name}.git")
        self.commit("one", README="hello\n", **{"docs/a": "a\n", "src/b": "b\n"})
        self.git("push", "-q", str(self.bare), "main")
        subprocess.run(["git", "-C", self.bare, "symbolic-ref", "HEAD", "refs/heads/main"],
                       check=True)
        self.git("fetch", "-q", str(self.bare), "main:refs/remotes/origin/main")
        lab.gits.pushes.clear()
        self.before = len(rig.records())

    def run(self, *argv, **more):
        return subprocess.run(["git", *argv], cwd=self.work, env=self.env, capture_output=True,
                              text=True, timeout=90, check=False, **more)

    def git(self, *argv):
        done = self.run(*argv)
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout.strip()

    def commit(self, message, **files):
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def push(self, *argv):
        """What git printed of a push that must succeed."""
        done = self.run("push", "origin", *argv)
        assert done.returncode == 0, done.stderr + self.decisions()
        return done.stderr

    def refuse(self, *argv):
        """What git printed of a push that must be refused. The server has got nothing."""
        done = self.run("push", "origin", *argv)
        assert done.returncode != 0, done.stderr
        assert not self.lab.gits.pushes
        return done.stderr

    def at(self, ref):
        """The object of a ref at the server, or ""."""
        return subprocess.run(["git", "-C", self.bare, "rev-parse", "-q", "--verify", ref],
                              capture_output=True, text=True, check=False).stdout.strip()

    def decisions(self):
        return "".join("\n" + " ".join(r.get(n, "-") for n in ("decision", "op", "reason"))
                       for r in self.records(decision="."))

    def records(self, **want):
        return [r for r in self.rig.records()[self.before:]
                if all(re.search(str(p), str(r.get(n, ""))) for n, p in want.items())]


@pytest.fixture()
def repo(rig, lab, tmp_path):
    return Repo(rig, lab, tmp_path)


def test_without_rules_about_git_nothing_reads_a_push(rig, repo):
    rules(rig)
    repo.commit("two")
    repo.push("main")
    assert repo.at("refs/heads/main") == repo.git("rev-parse", "HEAD")
    assert "clerk-git" not in rig.text()


def test_a_push_to_a_permitted_branch_passes(rig, repo):
    rules(rig, FETCH, AGENT)
    repo.commit("two", README="more\n")
    repo.push("HEAD:refs/heads/agent/x")
    assert repo.at("refs/heads/agent/x") == repo.git("rev-parse", "HEAD")
    repo.commit("three", README="still more\n")
    repo.push("HEAD:refs/heads/agent/x")
    assert repo.at("refs/heads/agent/x") == repo.git("rev-parse", "HEAD")
    found = repo.records(kind="decision", op="POST .*git-receive-pack", decision="allow")
    assert len(found) == 2
    assert f"git:create {HOST}/acme/{repo.name} refs/heads/agent/x" in found[0]["effects"]
    assert repo.records(kind="credential-use", op="POST .*git-receive-pack")


def test_another_branch_is_refused_in_the_words_of_git(rig, repo):
    rules(rig, FETCH, AGENT)
    repo.commit("two", README="more\n")
    said = repo.refuse("HEAD:refs/heads/main")
    assert re.search(r"remote: .*git:push github\.com.*refs/heads/main", said), said
    assert re.search(r"! \[remote rejected\] HEAD -> main \(.*rule", said), said
    assert "allowed: allow git github.com/acme/*" in said
    found = repo.records(kind="decision", op="POST .*git-receive-pack")
    assert [r["decision"] for r in found] == ["deny"]
    # the command that is printed works
    command = re.search(r"sbx policy (allow git [^\n]*)", said)[1].replace("'", "")
    words = command.split()
    rules(rig, FETCH, AGENT, " ".join(
        w.removeprefix("--") for w in words[:words.index("--sandbox")]))
    repo.push("HEAD:refs/heads/main")


@pytest.mark.parametrize("verb, before, args", [
    ("delete", None, (":refs/heads/agent/old",)),
    ("tag", None, ("HEAD:refs/tags/v1",)),
    ("create", None, ("HEAD:refs/heads/agent/new",)),
    ("force", "amend", ("+HEAD:refs/heads/agent/old",)),
    ("force", "reset", ("+HEAD:refs/heads/agent/old",)),
])
def test_each_verb_is_recognized(rig, repo, verb, before, args):
    repo.commit("two", README="two\n")
    repo.git("push", "-q", str(repo.bare), "HEAD:refs/heads/agent/old")
    repo.git("fetch", "-q", str(repo.bare), "agent/old:refs/remotes/origin/agent/old")
    if before == "amend":
        repo.git("commit", "-q", "--amend", "-m", "other")
    elif before == "reset":
        repo.git("reset", "-q", "--hard", "HEAD~1")
    rules(rig, FETCH, "allow git github.com/acme/* do push,create,delete,tag,force",
          f"deny git github.com/acme/* do {verb}")
    assert f"git:{verb}" in repo.refuse(*args)
    rules(rig, FETCH, "allow git github.com/acme/* do push,create,delete,tag,force")
    repo.push(*args)


def test_one_refused_ref_refuses_all(rig, repo):
    rules(rig, FETCH, AGENT)
    repo.commit("two")
    said = repo.refuse("HEAD:refs/heads/agent/x", "HEAD:refs/heads/main")
    assert "agent/x" in said and repo.at("refs/heads/agent/x") == ""


def test_a_read_only_repository_says_so(rig, repo):
    rules(rig, FETCH)
    repo.git("fetch", "-q", "origin")
    repo.commit("two")
    assert "403" in repo.refuse("main")
    assert repo.records(decision="deny", op="GET .*info/refs", effects="unknown:git .* why=body")


def test_changed_files_are_recognized(rig, repo):
    rules(rig, FETCH, "allow git github.com/acme/* do push path docs/**")
    repo.commit("two", **{"docs/new": "x\n"})
    repo.push("main")
    repo.lab.gits.pushes.clear()
    repo.commit("three", **{"src/b": "other\n"})
    said = repo.refuse("main")
    assert "path=src/b" in said
    assert "sbx policy allow git" in said


def test_an_old_file_in_a_new_place_is_recognized(rig, repo):
    """The push has a commit and trees, and no blob."""
    rules(rig, FETCH, "allow git github.com/acme/* do push,create",
          "deny git github.com/acme/* do any path .github/workflows/**")
    (repo.work / ".github/workflows").mkdir(parents=True)
    repo.git("mv", "docs/a", ".github/workflows/ci.yml")
    repo.commit("two")
    said = repo.refuse("main")
    assert "path=.github/workflows/ci.yml" in said, said + repo.decisions()
    # what changes no file, or another one
    repo.git("fetch", "-q", "origin")
    repo.push("origin/main:refs/heads/copy")
    repo.git("mv", ".github/workflows/ci.yml", "docs/b")
    repo.commit("three")
    repo.push("main")


def test_files_need_the_permission_to_read(rig, repo):
    rules(rig, "allow git github.com/acme/* do push path docs/**")
    repo.commit("two", **{"docs/new": "x\n"})
    assert re.search("refers to objects .*git-upload-pack", repo.refuse("main"))


def test_a_push_in_chunks_passes(rig, repo):
    rules(rig, FETCH, AGENT)
    repo.git("config", "http.postBuffer", "65536")
    repo.commit("two", big=secrets.token_hex(400_000))
    repo.push("HEAD:refs/heads/agent/big")
    assert repo.at("refs/heads/agent/big") == repo.git("rev-parse", "HEAD")
    repo.lab.gits.pushes.clear()
    repo.commit("three", big=secrets.token_hex(400_000))
    assert "git:push" in repo.run("push", "origin", "HEAD:refs/heads/main").stderr
    assert repo.lab.gits.pushes == [b"0000"]  # git's probe


def held(rig):
    """The request that waits for a person: its line, effects and preview."""
    for _ in range(600):
        text = rig.lines("held")
        if " open " in text.splitlines()[0]:
            return text
        time.sleep(0.1)
    raise AssertionError("no request waits for a person")


def start(repo, *argv):
    return subprocess.Popen(["git", "push", "origin", *argv], cwd=repo.work, env=repo.env,
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def test_a_held_push_shows_what_it_does_and_passes_when_approved(rig, repo):
    rules(rig, FETCH, AGENT, "ask git github.com/acme/* do push ref refs/heads/main")
    repo.commit("add a \x1b[31mtask", **{".github/workflows/ci.yml": "x\n", "docs/a": "b\n"})
    push = start(repo, "main")
    text = held(rig)
    assert f"git:push {HOST}/acme/{repo.name} refs/heads/main" in text
    assert "push refs/heads/main: 1 commits, 2 files" in text
    assert "| add a " in text and "\x1b" not in text
    assert re.search(r"A \| \.github/workflows/ci\.yml.* ! run by: GitHub", text), text
    assert "M | docs/a" in text
    assert not repo.lab.gits.pushes
    assert rig.command("answer once") == "ok"
    said = push.communicate(timeout=60)[1]
    assert push.returncode == 0, said
    assert repo.at("refs/heads/main") == repo.git("rev-parse", "HEAD")
    assert [r["hold"] for r in repo.records(kind="decision", op="POST .*receive-pack")] \
        == [text.split()[0]]


def test_a_held_push_that_a_person_refuses_says_so(rig, repo):
    rules(rig, "allow git github.com/acme/* do create", "ask git github.com/acme/* do push")
    repo.commit("two")
    push = start(repo, "main")
    text = held(rig)
    assert "push refs/heads/main: 1 commits\n" in text  # without fetch, files are not known
    assert rig.command("answer no") == "ok"
    assert "refused by the user" in push.communicate(timeout=60)[1]
    assert push.returncode != 0 and not repo.lab.gits.pushes


def end_of(rig, ident):
    """What became of a request that was held: `use` or `withdraw`."""
    for _ in range(6000):
        found = [r["action"] for r in rig.records()
                 if r["kind"] == "approval" and r["hold"] == ident and r["action"] in
                 ("use", "withdraw")]
        if found:
            return found[0]
        time.sleep(0.01)
    raise AssertionError(f"{ident} is neither used nor withdrawn")


def test_a_push_whose_client_has_left_is_not_sent(rig, repo):
    """git is killed, and at the same time a person approves."""
    rules(rig, FETCH, "ask git github.com/acme/* do push,create")
    ends = []
    for i in range(8):
        repo.lab.gits.pushes.clear()
        repo.commit(f"number {i}")
        push = start(repo, f"HEAD:refs/heads/b{i}")
        text = held(rig)
        assert f"refs/heads/b{i}" in text
        if i % 4 == 3:
            rig.command("answer once")
        os.killpg(push.pid, signal.SIGKILL)
        time.sleep(i % 3 / 50)
        rig.command("answer once")
        push.wait()
        ends.append(end_of(rig, text.split()[0]))
        clerks(rig, 0)
        if ends[-1] == "withdraw":
            assert not repo.lab.gits.pushes and repo.at(f"refs/heads/b{i}") == ""
    assert set(ends) == {"use", "withdraw"}


class Half:
    """The head of a push, and a part of its content."""

    def __init__(self, repo):
        raw = socket.create_connection(("127.0.0.1", repo.rig.bridge()), 60)
        raw.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += raw.recv(1)
        context = ssl.create_default_context(cafile=str(repo.rig.trusted))
        self.sock = context.wrap_socket(raw, server_hostname=HOST)
        self.sock.settimeout(60)
        self.sock.sendall(f"POST /acme/{repo.name}.git/git-receive-pack HTTP/1.1\r\n"
                          f"Host: {HOST}\r\nContent-Length: 100000\r\n\r\n0".encode())

    def rest(self):
        data = b""
        try:
            while piece := self.sock.recv(65536):
                data += piece
        except OSError:
            pass
        return data


def clerks(rig, n):
    for _ in range(600):
        found = rig.pids()["clerk-git"]
        if len(found) == n:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{len(found)} processes instead of {n}")


def test_a_clerk_that_dies_sends_nothing(rig, repo):
    rules(rig, FETCH, "allow git github.com/acme/* do push,create")
    half = Half(repo)
    os.kill(clerks(rig, 1)[0], signal.SIGKILL)
    assert half.rest().split(b" ")[1] == b"502"
    clerks(rig, 0)
    assert not repo.lab.gits.pushes
    assert repo.records(kind="decision", decision="deny", reason="sbx-clerk-git ended")
    repo.commit("two")
    repo.push("main")


def test_a_client_that_leaves_ends_its_clerk(rig, repo):
    rules(rig, FETCH, "allow git github.com/acme/* do push,create")
    halves = [Half(repo) for _ in range(4)]
    clerks(rig, 4)
    fifth = Half(repo)
    assert b"more than 4 pushes" in fifth.rest()
    for half in halves:
        half.sock.close()
    clerks(rig, 0)
    assert not repo.lab.gits.pushes
