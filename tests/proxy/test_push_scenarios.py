# SPDX-License-Identifier: Apache-2.0
"""What real git pushes, and what sbx-clerk-git reads of it: one row for each scenario. The changed
files are those of `git diff --name-only`, and the server checks its objects with `git fsck`."""
import pathlib
import re
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent)]
from test_pushes import FETCH, lab, repo, rig, rules  # noqa: E402, F401

ALL = "allow git github.com/acme/* do push,create,delete,tag,force"
# A rule about files has them read in a push.
FILES = "deny git github.com/acme/* do any path never/**"
B = "refs/heads/b"


def write(repo, name, text):
    path = repo.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "write")


def upstream(repo):
    """The branch b at the server, with one commit of its own that is also here."""
    repo.git("checkout", "-q", "-b", "b")
    write(repo, "src/c", "c\n")
    repo.git("push", "-q", str(repo.bare), "HEAD:" + B)
    repo.git("fetch", "-q", str(repo.bare), f"{B}:refs/remotes/origin/b")


def many(repo):
    """A delta chain."""
    for i in range(30):
        write(repo, "src/long", "".join(f"line {k} {k == i}\n" for k in range(400)))


def symlink(repo):
    (repo.work / "link").symlink_to("README")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "link")


def submodule(repo):
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    repo.git("commit", "-q", "-m", "sub")


def chmod(repo):
    (repo.work / "src/b").chmod(0o755)
    repo.git("commit", "-qam", "mode")


def merge(repo):
    repo.git("checkout", "-q", "main")
    write(repo, "other", "x\n")
    repo.git("merge", "-q", "--no-edit", "b")


def rebase(repo):
    """The commit of b on top of another one: the server's has no place in it."""
    repo.git("checkout", "-q", "main")
    write(repo, "other", "x\n")
    repo.git("checkout", "-q", "b")
    repo.git("rebase", "-q", "main")


def squash(repo):
    write(repo, "src/d", "d\n")
    repo.git("reset", "-q", "--soft", "HEAD~2")
    repo.git("commit", "-q", "-m", "one")


def orphan(repo):
    repo.git("checkout", "-q", "--orphan", "new")
    repo.git("commit", "-q", "-m", "root")


def loose(*argv):
    return lambda repo: repo.git(*argv)


def each(*steps):
    def run(repo):
        for step in steps:
            step(repo)
    return run


def change(name, text="new\n"):
    return lambda repo: write(repo, name, text)


MOVE = loose("mv", "docs", "manual")
COMMIT = loose("commit", "-q", "-m", "x")
TAG = loose("tag", "-a", "-m", "x", "v1")
# name: steps, arguments of push, effects without their files
ROWS = {
    "fast-forward": (change("src/b"), ["HEAD:" + B], {"push " + B}),
    "thin": (change("src/b"), ["--thin", "HEAD:" + B], {"push " + B}),
    "not thin": (change("src/b"), ["--no-thin", "HEAD:" + B], {"push " + B}),
    "delta chain": (many, ["HEAD:" + B], {"push " + B}),
    "commit without a change": (loose("commit", "-q", "--allow-empty", "-m", "x"), ["HEAD:" + B],
                                {"push " + B}),
    "revert": (loose("revert", "--no-edit", "HEAD"), ["HEAD:" + B], {"push " + B}),
    "deleted file": (each(loose("rm", "-q", "src/b"), COMMIT), ["HEAD:" + B], {"push " + B}),
    "all files deleted": (each(loose("rm", "-qr", "."), COMMIT), ["HEAD:" + B], {"push " + B}),
    "folder moved whole": (each(MOVE, COMMIT), ["HEAD:" + B], {"push " + B}),
    "file becomes a folder": (each(loose("rm", "-q", "README"), change("README/a")),
                              ["HEAD:" + B], {"push " + B}),
    "copy without a new blob": (change(".github/workflows/a.yml", "a\n"), ["HEAD:" + B],
                                {"push " + B}),
    "symbolic link": (symlink, ["HEAD:" + B], {"push " + B}),
    "submodule": (submodule, ["HEAD:" + B], {"push " + B}),
    "executable bit": (chmod, ["HEAD:" + B], {"push " + B}),
    "names with spaces": (change("a b/c d"), ["HEAD:" + B], {"push " + B}),
    "pointer of LFS": (change("big.bin", "version https://git-lfs.example/v1\noid sha256:0\n"),
                       ["HEAD:" + B], {"push " + B}),
    "merge of the server's branch": (merge, ["HEAD:" + B], {"push " + B}),
    "amend": (loose("commit", "-q", "--amend", "-m", "other"), ["+HEAD:" + B], {"force " + B}),
    "reset": (loose("reset", "-q", "--hard", "HEAD~1"), ["+HEAD:" + B], {"force " + B}),
    "rebase": (rebase, ["--force", "HEAD:" + B], {"force " + B}),
    "rebase with lease": (rebase, ["--force-with-lease=b", "HEAD:" + B], {"force " + B}),
    "squash": (squash, ["+HEAD:" + B], {"force " + B}),
    "unrelated history": (orphan, ["+HEAD:" + B], {"force " + B}),
    "new branch": (change("src/b"), ["HEAD:refs/heads/n"], {"create refs/heads/n"}),
    "new branch without objects": (None, ["HEAD:refs/heads/n"], {"create refs/heads/n"}),
    "new branch of a new history": (orphan, ["HEAD:refs/heads/n"], {"create refs/heads/n"}),
    "deleted branch": (None, [":" + B], {"delete " + B}),
    "deleted and new": (None, [":" + B, "HEAD:refs/heads/n"],
                        {"delete " + B, "create refs/heads/n"}),
    "three refs": (change("src/b"), ["HEAD:" + B, "HEAD:refs/heads/n", "HEAD:refs/heads/o"],
                   {"push " + B, "create refs/heads/n", "create refs/heads/o"}),
    "atomic": (change("src/b"), ["--atomic", "HEAD:" + B, "HEAD:refs/heads/n"],
               {"push " + B, "create refs/heads/n"}),
    "tag": (None, ["HEAD:refs/tags/v1"], {"create refs/tags/v1", "tag refs/tags/v1"}),
    "annotated tag": (TAG, ["v1"], {"create refs/tags/v1", "tag refs/tags/v1"}),
    "branch with its tags": (each(change("src/b"), TAG), ["--follow-tags", "HEAD:" + B],
                             {"push " + B, "create refs/tags/v1", "tag refs/tags/v1"}),
    "notes": (loose("notes", "add", "-m", "x"), ["refs/notes/commits"],
              {"create refs/notes/commits"}),
    "long name": (None, ["HEAD:refs/heads/" + "n" * 200], {"create refs/heads/" + "n" * 200}),
}


def effects(repo):
    """{"verb ref": its files} of the last push that was decided."""
    record = repo.records(kind="decision", op="POST .*git-receive-pack")[-1]
    assert record["decision"] == "allow", record
    found = {}
    for text in record["effects"].split("; "):
        if m := re.fullmatch(r"git:(\w+) \S+ (\S+)(?: .*)?", text):
            files = found.setdefault(f"{m[1]} {m[2]}", set())
            if path := re.search(r" path=(\S+)", text):
                files.add(path[1])
    return found


@pytest.mark.parametrize("name", ROWS)
def test_scenario(rig, repo, name):  # noqa: F811
    steps, argv, want = ROWS[name]
    upstream(repo)
    old = repo.at(B)
    if steps:
        steps(repo)
    # a rule about files refuses a deletion, whose files nobody can know
    deletes = any(one.startswith("delete") for one in want)
    rules(rig, FETCH, ALL, *(() if deletes else (FILES,)))
    repo.push(*argv)
    found = effects(repo)
    assert set(found) == want
    for ref in (one.split()[1] for one in want if not one.startswith("delete")):
        assert repo.at(ref)
    for one in want & {"push " + B, "force " + B}:
        changed = repo.git("-c", "core.quotePath=false", "diff", "--no-renames", "--name-only",
                           "-z", old, "HEAD").split("\0")
        assert {p.replace("%20", " ") for p in found[one]} == set(filter(None, changed))
    done = subprocess.run(["git", "-C", repo.bare, "fsck", "--strict"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_tag_of_a_blob_is_refused(rig, repo):  # noqa: F811
    rules(rig, FETCH, ALL, FILES)
    assert "wrong type" in repo.refuse("HEAD:README:refs/tags/x")
