# SPDX-License-Identifier: Apache-2.0
"""`--clone`: a repository on the disk of a sandbox, and plain git on the host.

The sandbox is simulated: its programs run on this machine, so the clone is at another path
(HOST:GUEST). The git of the host, the remote helper and the jail are the real ones."""
import json
import os
import pathlib
import random
import shutil
import subprocess

import hostile_git
import pytest

from conftest import on_terminal

HELPERS = pathlib.Path(os.environ["SBX_TEST_SBX"]).parent


class Repo:
    """A repository of the user, and the clone of a sandbox."""

    def __init__(self, inst, name="repo", init=("-b", "main")):
        self.inst = inst
        self.dir = inst.work / name
        self.guest = inst.root / ("guest-" + name)
        self.env = {**inst.env, "PATH": f"{HELPERS}:{inst.env['PATH']}",
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_AUTHOR_NAME": "u", "GIT_AUTHOR_EMAIL": "u@example.test",
                    "GIT_COMMITTER_NAME": "u", "GIT_COMMITTER_EMAIL": "u@example.test"}
        subprocess.run(["git", "init", "-q", *init, self.dir], check=True, env=self.env)

    def git(self, *args, dir=None, check=True, **more):
        # as in the simulated sandbox, for programs of the guest
        inside = {"SBX_USER": ""} if dir == self.guest else {}
        p = subprocess.run(["git", "-C", dir or self.dir, *map(str, args)],
                           env={**self.env, **inside}, capture_output=True, timeout=120, **more)
        out = p.stdout.decode(errors="surrogateescape").rstrip("\n")
        p.text = p.stderr.decode(errors="replace")
        assert not check or p.returncode == 0, (args, p.returncode, out, p.text)
        return out if check else p

    def inside(self, *args, **more):
        return self.git(*args, dir=self.guest, **more)

    def commit(self, path="file", text="one\n", dir=None):
        place = (dir or self.dir) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.git("add", "-A", dir=dir)
        self.git("commit", "-qm", f"{path}: {text.strip()}", dir=dir)
        return self.git("rev-parse", "HEAD", dir=dir)

    def clone(self, *args, name="demo", check=0):
        return self.inst.sbx("create", "shell", f"{self.dir}:{self.guest}", "--clone", "--name",
                             name, *args, check=check)


@pytest.fixture
def repo(inst):
    return Repo(inst)


def test_a_clone_has_the_current_branch_and_comes_back_by_fetch(repo):
    first = repo.commit()
    repo.clone()
    assert repo.inside("rev-parse", "HEAD") == first
    assert repo.inside("symbolic-ref", "HEAD") == "refs/heads/main"
    assert repo.inside("status", "--porcelain") == ""
    assert (repo.guest / "file").read_text() == "one\n"
    assert repo.inside("for-each-ref", "refs/sbx") == ""
    second = repo.commit("file", "two\n", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-demo")
    assert repo.git("rev-parse", "refs/remotes/sandbox-demo/main") == second
    assert repo.git("rev-parse", "HEAD") == first
    assert repo.git("fsck", "--strict") == ""
    assert not list(repo.dir.glob(".git/objects/pack/*.keep"))


def test_a_push_arrives_in_the_work_tree_of_a_clean_clone(repo):
    repo.commit()
    repo.clone()
    second = repo.commit("file", "two\n")
    repo.git("push", "-q", "sandbox-demo", "main", "HEAD:refs/heads/new")
    assert repo.inside("rev-parse", "main", "new") == f"{second}\n{second}"
    assert (repo.guest / "file").read_text() == "two\n"
    repo.git("push", "-q", "sandbox-demo", ":new")
    assert repo.inside("branch", "--list", "new") == ""
    (repo.guest / "file").write_text("dirty\n")
    repo.commit("file", "three\n")
    p = repo.git("push", "sandbox-demo", "main", check=False)
    assert p.returncode == 1 and "rejected" in p.text
    assert (repo.guest / "file").read_text() == "dirty\n"


def test_run_uses_an_existing_clone_and_refuses_another(repo):
    repo.commit()
    repo.clone("--branch", "own")
    run = ["run", "-d", "shell", f"{repo.dir}:{repo.guest}", "--name", "demo"]
    repo.inst.sbx(*run, "--clone", "--branch", "own", check=0)
    for args, text in ((["--clone", "--branch", "x"], "another path or branch"),
                       (["--clone", "--branch", "own", "--carry", "a"], "its own copy")):
        assert text in repo.inst.sbx(*run, *args, check=125).stderr


def test_uncommitted_files_are_carried_and_the_host_is_not_touched(repo):
    for name in ("staged", "modified", "deleted", "both"):
        repo.commit(name)
    (repo.dir / ".gitignore").write_text("*.log\nkeys/\n")
    repo.git("add", ".gitignore")
    repo.git("commit", "-qm", "ignore")
    (repo.dir / "staged").write_text("s\n")
    (repo.dir / "both").write_text("first\n")
    repo.git("add", "staged", "both")
    (repo.dir / "both").write_text("second\n")
    (repo.dir / "modified").write_text("m\n")
    (repo.dir / "deleted").unlink()
    (repo.dir / "run.sh").write_text("#!/bin/sh\n")
    (repo.dir / "run.sh").chmod(0o755)
    (repo.dir / "link").symlink_to("modified")
    (repo.dir / "a.log").write_text("no\n")
    (repo.dir / "keys").mkdir()
    (repo.dir / "keys/dev").write_text("yes\n")
    status = repo.git("status", "--porcelain")
    index = (repo.dir / ".git/index").read_bytes()
    objects = sorted(repo.dir.glob(".git/objects/??/*"))
    repo.clone("--carry", "keys/*")
    assert repo.inside("status", "--porcelain") == status
    assert repo.inside("show", ":both") == "first"
    assert (repo.guest / "both").read_text() == "second\n"
    assert (repo.guest / "keys/dev").read_text() == "yes\n"
    assert os.access(repo.guest / "run.sh", os.X_OK)
    assert os.readlink(repo.guest / "link") == "modified"
    assert not (repo.guest / "a.log").exists()
    assert (repo.dir / ".git/index").read_bytes() == index
    assert sorted(repo.dir.glob(".git/objects/??/*")) == objects


def test_only_harmless_remotes_are_copied(repo):
    repo.commit()
    for name, url in (("origin", "https://me:token@example.test/r.git"),
                      ("ssh", "git@example.test:r.git"), ("ext", "ext::sh -c touch% /tmp/x"),
                      ("here", "/srv/r.git"), ("option", "-oProxyCommand=x"),
                      ("sandbox-old", "sbx::old")):
        repo.git("config", f"remote.{name}.url", url)
    repo.clone()
    assert repo.inside("remote", "-v").split("\n")[::2] == [
        "origin\thttps://example.test/r.git (fetch)", "ssh\tgit@example.test:r.git (fetch)"]


@pytest.mark.parametrize("args, text", [
    (("--branch", "a..b"), "invalid --branch"), (("--branch", "main"), "already exists"),
    (("--carry", "nothing*"), "matches no file")])
def test_what_cannot_be_cloned_leaves_no_sandbox(repo, args, text):
    repo.commit()
    p = repo.clone(*args, check=None)
    assert p.returncode != 0 and text in p.stderr
    assert repo.inst.sbx("ls", "-q", check=0).stdout == ""
    assert repo.git("remote") == ""


def test_branch_and_carry_require_clone_and_clone_a_repository(inst):
    for option in ("--branch", "--carry"):
        p = inst.sbx("create", "shell", ".", option, "x")
        assert p.returncode == 2 and "requires --clone" in p.stderr
    p = inst.sbx("create", "shell", ".", "--clone")
    assert p.returncode == 1 and "not in a git repository" in p.stderr


def end_of_run(repo, want):
    """As in test_staged.py: a busy machine may need several attempts."""
    fetch = f"git -C '{repo.dir}' fetch sandbox-demo"
    for _ in range(10):
        last = repo.inst.sbx("run", "demo", "--", "true", check=0).stderr
        if last == want + (f": {fetch}\n" if want else ""):
            return
        assert last == f"Commits stay in the sandbox until they are fetched: {fetch}\n", last
    raise AssertionError(f"never: {want}")


def test_the_end_of_a_session_counts_commits_that_were_not_fetched(repo):
    repo.commit()
    repo.clone()
    end_of_run(repo, "")
    out, _ = on_terminal(repo.inst, ["run", "demo", "--", "true"])
    assert "All commits of the sandbox are in the repository" in out
    repo.commit("file", "two\n", dir=repo.guest)
    end_of_run(repo, "1 commit was not fetched")
    repo.inside("checkout", "-q", "--detach")
    repo.commit("file", "three\n", dir=repo.guest)
    repo.inside("checkout", "-qb", "other", "main")
    repo.commit("other", "four\n", dir=repo.guest)
    repo.inside("checkout", "-q", "--detach", "@{-1}")
    end_of_run(repo, "3 commits were not fetched")
    repo.git("fetch", "-q", "sandbox-demo")
    end_of_run(repo, "1 commit was not fetched")  # HEAD is no branch
    repo.commit("host", "not in the sandbox\n")
    repo.inside("checkout", "-q", "main")
    end_of_run(repo, "")


def test_rm_keeps_commits_that_were_not_fetched(repo):
    repo.commit()
    repo.clone()
    fetched = repo.commit("a", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-demo")
    repo.inside("checkout", "-qb", "other")
    lost = repo.commit("b", dir=repo.guest)
    p = repo.inst.sbx("rm", "--force", "demo", check=0)
    assert "not fetched" in p.stderr and "refs/sbx/demo" in p.stderr
    assert repo.git("rev-parse", "refs/sbx/demo/other") == lost
    assert repo.git("merge-base", "--is-ancestor", fetched, lost) == ""
    assert repo.git("for-each-ref", "refs/remotes") == "" and repo.git("remote") == ""
    assert repo.git("fsck", "--strict", "--no-dangling") == ""


def test_rm_keeps_fetched_commits_and_discards_others_on_request(repo):
    repo.commit()
    repo.clone()
    fetched = repo.commit("a", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-demo")
    lost = repo.commit("b", dir=repo.guest)
    p = repo.inst.sbx("rm", "--force", "--discard", "demo", check=0)
    assert "not fetched" not in p.stderr
    assert repo.git("for-each-ref", "--format=%(objectname)", "refs/sbx/demo") == fetched
    assert repo.git("cat-file", "-e", lost, check=False).returncode != 0


def test_rm_refuses_when_the_clone_cannot_be_read(repo):
    repo.commit()
    repo.clone()
    (repo.guest / ".git/HEAD").unlink()
    p = repo.inst.sbx("rm", "--force", "demo")
    assert p.returncode == 1 and "try: sbx rm --discard demo" in p.stderr
    repo.inst.sbx("rm", "--force", "--discard", "demo", check=0)


def test_rename_moves_the_remote(repo):
    repo.commit()
    repo.clone()
    repo.git("fetch", "-q", "sandbox-demo")
    repo.inst.sbx("rename", "demo", "other", check=0)
    assert repo.git("remote") == "sandbox-other"
    second = repo.commit("b", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-other")
    assert repo.git("rev-parse", "sandbox-other/main") == second
    assert "refs/remotes/sandbox-demo" not in repo.git("for-each-ref")
    repo.inst.sbx("rm", "--force", "other", check=0)


def test_a_fork_of_a_clone_has_its_own_remote(repo):
    """The disks of the simulated sandbox are a directory of this machine, which both have."""
    repo.commit()
    repo.clone()
    repo.inst.sbx("stop", "demo", check=0)
    sandboxes = repo.inst.root / "state/sbx/sandboxes"
    for disk in ("root", "docker"):
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2",
                        next(sandboxes.iterdir()) / f"{disk}.qcow2", "4096"], check=True)
    p = repo.inst.sbx("fork", "demo", "try", check=0)
    assert "remote" not in p.stderr and "keys" not in p.stderr
    assert repo.git("remote").split() == ["sandbox-demo", "sandbox-try"]
    second = repo.commit("b", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-try")
    assert repo.git("rev-parse", "sandbox-try/main") == second
    repo.inst.sbx("rm", "--force", "try", check=0)
    assert repo.git("remote") == "sandbox-demo"


# ---- random repositories ----

COUNT = int(os.environ.get("SBX_CLONE_REPOS", "12"))
KINDS = ("plain", "submodule", "lfs", "worktree", "shallow", "sha256")


def fill(repo, rnd):
    """Commits on several branches, with tags and merges."""
    for i in range(rnd.randint(2, 6)):
        if i and rnd.random() < 0.4:
            repo.git("checkout", "-qb", f"b/{i}")
        repo.commit(f"d{rnd.randint(0, 3)}/f{i}", f"{rnd.random()}\n" * rnd.randint(1, 400))
        if rnd.random() < 0.4:
            repo.git("tag", *rnd.choice(([], ["-a", "-m", "x"])), f"v{i}")


def shape(repo, rnd, kind):
    if kind == "submodule":
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
        (repo.dir / "sub").mkdir()
        repo.git("commit", "-qm", "sub")
    if kind == "lfs":
        repo.git("config", "filter.lfs.clean", f"touch '{repo.inst.root}/filtered'; cat")
        repo.git("config", "filter.lfs.required", "true")
        (repo.dir / ".gitattributes").write_text("*.bin filter=lfs\n")
        text = f"version https://git-lfs.example.test/v1\noid sha256:{'2' * 64}\nsize 9\n"
        p = subprocess.run(["git", "-C", repo.dir, "hash-object", "-w", "--stdin"], env=repo.env,
                           input=text.encode(), capture_output=True, check=True)
        entry = f"100644,{p.stdout.decode().strip()},x.bin"
        repo.git("update-index", "--add", "--cacheinfo", entry)
        (repo.dir / "x.bin").write_text(text)
        repo.git("add", ".gitattributes")
        repo.git("commit", "-qm", "lfs")
    if kind == "worktree":
        tree = repo.inst.work / "tree"
        repo.git("worktree", "add", "-q", "-b", "linked", tree)
        repo.dir = tree
    if kind == "shallow":
        whole, repo.dir = repo.dir, repo.inst.work / "shallow"
        repo.git("clone", "-q", "--depth", 2, f"file://{whole}", repo.dir, dir=whole)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_repositories_go_both_ways(inst, seed):
    rnd, kind = random.Random(seed), KINDS[seed % len(KINDS)]
    form = "sha256" if kind == "sha256" else "sha1"
    repo = Repo(inst, init=("-b", "main", f"--object-format={form}"))
    fill(repo, rnd)
    shape(repo, rnd, kind)
    (repo.dir / "untracked").write_text("u\n")
    head, status = repo.git("rev-parse", "HEAD"), repo.git("status", "--porcelain")
    branch = repo.git("branch", "--show-current")
    filtered = inst.root / "filtered"
    filtered.unlink(missing_ok=True)
    repo.clone(*(["--branch", "own"] if seed % 2 else []))
    assert not filtered.exists(), "a filter ran"
    own = "own" if seed % 2 else branch
    assert repo.inside("rev-parse", "HEAD") == head
    assert repo.inside("branch", "--show-current") == own
    assert repo.inside("status", "--porcelain") == status
    assert repo.inside("tag") == repo.git("tag")
    new = repo.commit("from/guest", f"{seed}\n", dir=repo.guest)
    repo.git("fetch", "-q", "sandbox-demo")
    assert repo.git("rev-parse", f"sandbox-demo/{own}") == new
    assert repo.git("show", f"sandbox-demo/{own}:from/guest") == str(seed)
    (repo.dir / "untracked").unlink()
    mine = repo.commit("from/host", f"{seed}\n")
    repo.git("push", "-q", "sandbox-demo", "HEAD:refs/heads/from-host")
    assert repo.inside("rev-parse", "from-host") == mine
    for place in (repo.dir, repo.guest):
        assert repo.git("fsck", "--no-dangling", dir=place, check=False).returncode == 0


# ---- hostile guests ----

def snapshot(repo):
    refs = [line for line in repo.git("for-each-ref").split("\n")
            if "refs/remotes/sandbox-demo/" not in line]
    return (refs, (repo.dir / ".git/config").read_text(),
            sorted(os.listdir(repo.dir / ".git/hooks")),
            sorted(os.listdir(repo.dir)), repo.git("status", "--porcelain"))


@pytest.fixture
def hostile(repo):
    """A clone whose git is hostile_git.py; repo.case(NAME) makes it so."""
    folder = repo.inst.root / "hostile"
    folder.mkdir()
    shutil.copy(hostile_git.__file__, folder / "git")
    (folder / "git").chmod(0o755)
    repo.first = repo.commit()
    repo.clone("-e", f"PATH={folder}:{os.environ['PATH']}")
    repo.case = (folder / "CASE").write_text
    repo.before = snapshot(repo)
    yield repo
    (folder / "CASE").unlink(missing_ok=True)


def refused(repo, case):
    p = repo.git("fetch", "sandbox-demo", check=False)
    assert p.returncode != 0, case
    assert "\x1b" not in p.text and "\x07" not in p.text, (case, p.text)
    assert snapshot(repo) == repo.before, case
    assert repo.git("for-each-ref", "refs/remotes") == "", case
    return p


def test_the_end_of_a_session_survives_a_hostile_git(hostile):
    git = hostile.inst.root / "hostile/git"
    for script in ("echo 99999999999999999999999", "printf '\\033[2J'", "echo -1",
                   "echo 3; echo 4", "exit 1", "exec sleep 600", "exec yes"):
        git.unlink()
        git.write_text(f"#!/bin/sh\n{script}\n")
        git.chmod(0o755)
        p = hostile.inst.sbx("run", "demo", "--", "true", check=0)
        assert p.stderr == ("Commits stay in the sandbox until they are fetched: "
                            f"git -C '{hostile.dir}' fetch sandbox-demo\n"), (script, p.stderr)
    assert snapshot(hostile) == hostile.before
    shutil.copy(hostile_git.__file__, git)


def test_refs_and_packs_of_a_hostile_git_are_refused(hostile):
    for case in [*hostile_git.LISTS, *hostile_git.PACKS, "stderr", "garbage", "hangup", "err",
                 "length", "noise"]:
        hostile.case(case)
        refused(hostile, case)
    assert hostile.git("count-objects", "-v").split("\n")[0] == "count: 3"
    assert not list(hostile.dir.glob(".git/objects/pack/*"))
    state = hostile.inst.root / "state/sbx/sandboxes"
    assert not list(state.glob("*/git-*")), "a quarantine was left"


def literal(repo, kind, data):
    p = subprocess.run(["git", "-C", repo.guest, "hash-object", "-t", kind, "-w", "--stdin",
                        "--literally"], env=repo.env, input=data, capture_output=True, check=True)
    return p.stdout.decode().strip()


def tree(repo, *entries):
    return literal(repo, "tree", b"".join(
        mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries))


def head(repo, tree_oid, extra=b"author u <u@example.test> 1 +0000\n"):
    return literal(repo, "commit", b"tree " + tree_oid.encode() + b"\n" + extra
                   + b"committer u <u@example.test> 1 +0000\n\nx\n")


def bad_objects(repo):
    b = literal(repo, "blob", b"x\n")
    sub = tree(repo, (b"100644", b"x", b))

    def modules(text):
        return tree(repo, (b"100644", b".gitmodules", literal(repo, "blob", text)))

    yield ".git", tree(repo, (b"40000", b".git", sub))
    yield ".GIT", tree(repo, (b"40000", b".GIT", sub))
    yield "git~1", tree(repo, (b"40000", b"git~1", sub))
    yield "hfs", tree(repo, (b"40000", b".g\xe2\x80\x8cit", sub))
    yield "dotdot", tree(repo, (b"40000", b"..", sub))
    yield "dot", tree(repo, (b"40000", b".", sub))
    yield "slash", tree(repo, (b"100644", b"a/b", b))
    yield "twice", tree(repo, (b"100644", b"a", b), (b"100644", b"a", b))
    yield "unsorted", tree(repo, (b"100644", b"b", b), (b"100644", b"a", b))
    yield "zero mode", tree(repo, (b"0100644", b"a", b))
    yield "null oid", tree(repo, (b"100644", b"a", "0" * 40))
    yield "modules link", tree(repo, (b"120000", b".gitmodules", b))
    yield "modules url", modules(b'[submodule "x"]\npath = x\nurl = -oProxyCommand=x\n')
    yield "modules name", modules(b'[submodule "../../x"]\npath = x\nurl = https://a.test/\n')
    yield "modules path", modules(b'[submodule "x"]\npath = -x\nurl = https://a.test/\n')
    yield "modules update", modules(b'[submodule "x"]\nupdate = !touch x\nurl = https://a.test/\n')


def test_objects_that_fsck_refuses_do_not_reach_the_host(hostile):
    for name, oid in bad_objects(hostile):
        commit = head(hostile, oid)
        hostile.inside("update-ref", "refs/heads/main", commit)
        refused(hostile, name)
        for each in (commit, oid):
            assert hostile.git("cat-file", "-e", each, check=False).returncode != 0, name
    for name, extra in (("no author", b""), ("nul", b"author u\0 <u@e> 1 +0000\n"),
                        ("date", b"author u <u@e> 99999999999999999999 +0000\n")):
        good = tree(hostile, (b"100644", b"x", literal(hostile, "blob", b"x\n")))
        hostile.inside("update-ref", "refs/heads/main", head(hostile, good, extra))
        refused(hostile, name)
    assert hostile.git("fsck", "--strict") == ""


def test_hooks_and_configuration_of_a_clone_do_not_run_on_the_host(hostile):
    canary = hostile.inst.root / "canary"
    script = hostile.inst.root / "plant"
    # the simulated sandbox sets SBX_USER: without it, the program runs on the host
    script.write_text(f"#!/bin/sh\n[ -n \"${{SBX_USER+x}}\" ] || touch '{canary}'\nexit 0\n")
    script.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "pre-push", "post-update", "update",
                 "pre-receive", "post-merge", "fsmonitor-watchman"):
        (hostile.guest / ".git/hooks").mkdir(exist_ok=True)
        shutil.copy(script, hostile.guest / ".git/hooks" / hook)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external",
                "core.alternateRefsCommand", "credential.helper", "uploadpack.packObjectsHook"):
        hostile.inside("config", key, script)
    hostile.inside("config", "core.hooksPath", hostile.guest / ".git/hooks")
    (hostile.guest / ".git/objects/info/alternates").write_text(f"{hostile.dir}/.git/objects\n/\n")
    new = hostile.commit("file", "two\n", dir=hostile.guest)
    hostile.git("fetch", "-q", "sandbox-demo")
    assert hostile.git("rev-parse", "sandbox-demo/main") == new
    hostile.git("push", "-q", "sandbox-demo", "main:refs/heads/back")
    hostile.git("log", "-p", "sandbox-demo/main")
    assert not canary.exists()
    assert hostile.before[1:] == snapshot(hostile)[1:]
    subprocess.run([script], check=True)
    assert canary.exists(), "the canary cannot be seen"


# ---- commits of a staged workspace ----

def staged(repo, *args):
    """A staged sandbox whose workspace, in the guest, is a copy of the repository."""
    shutil.copytree(repo.dir, repo.guest, symlinks=True)
    repo.inst.sbx("create", "shell", f"{repo.dir}:{repo.guest}", "--staged", "--name", "demo",
                  *args, check=0)


def test_commits_of_a_staged_workspace_are_shown_and_fetched(repo):
    first = repo.commit()
    staged(repo)
    sbx = repo.inst.sbx
    assert sbx("review", "demo", "--git", check=0).stdout.startswith("No commits")
    assert "Nothing was fetched" in sbx("apply", "demo", "--git", "-y", check=0).stdout
    second = repo.commit("file", "two\n", dir=repo.guest)
    repo.inside("checkout", "-q", "-b", "topic/one")
    third = repo.commit("new \x1b[31m\u202e\n", "x\n", dir=repo.guest)
    repo.inside("checkout", "-q", "--detach")
    fourth = repo.commit("detached", "y\n", dir=repo.guest)
    repo.inside("tag", "mine")
    before, objects = snapshot(repo), sorted(repo.dir.rglob(".git/objects/*/*"))
    p = sbx("review", "demo", "--git", check=0)
    for text in (f"branch main: {second} ({repo.dir})", f"branch topic/one: {third}",
                 f"branch HEAD: {fourth}", "Author: u <u@example.test>", "    file: two",
                 " file | 2 +-"):
        assert text in p.stdout, (text, p.stdout)
    assert "\x1b" not in p.stdout and "\u202e" not in p.stdout and first not in p.stdout
    assert "To fetch the branches into refs/sbx/demo: sbx apply demo --git" in p.stderr
    assert snapshot(repo) == before and sorted(repo.dir.rglob(".git/objects/*/*")) == objects
    shown = json.loads(sbx("review", "demo", "--git", "--json", check=0).stdout)
    assert [(b["branch"], b["commit"]) for b in shown["branches"]] == [
        ("HEAD", fourth), ("main", second), ("topic/one", third)]
    assert f"commit {second}\n" in shown["branches"][1]["log"]
    # later commits are not part of what was reviewed
    later = repo.commit("later", "z\n", dir=repo.guest)
    p = sbx("apply", "demo", "--git", "-y", check=0)
    assert "Fetched 3 branches of sandbox 'demo' into refs/sbx/demo" in p.stderr
    assert repo.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/sbx") == (
        f"{fourth} refs/sbx/demo/HEAD\n{second} refs/sbx/demo/main\n"
        f"{third} refs/sbx/demo/topic/one")
    assert repo.git("rev-parse", "HEAD") == first and repo.git("tag") == ""
    assert repo.git("cat-file", "-e", later, check=False).returncode != 0
    assert repo.git("fsck", "--strict") == ""
    after = snapshot(repo)
    assert after[1:] == before[1:] and not list(repo.dir.glob(".git/objects/pack/*.keep"))
    assert list((repo.inst.root / "state/sbx/sandboxes").glob("*/git-*")) == []
    assert "Fetched 0 branches" in sbx("apply", "demo", "--git", "-y", check=0).stderr


def test_commits_are_not_fetched_without_a_review_or_a_repository(repo, inst):
    repo.commit()
    staged(repo)
    p = inst.sbx("apply", "demo", "--git", "-y", check=1)
    assert "were not reviewed" in p.stderr and "try: sbx review --git demo" in p.stderr
    new = repo.commit("file", "two\n", dir=repo.guest)
    inst.sbx("review", "demo", "--git", check=0)
    assert "use --yes" in inst.sbx("apply", "demo", "--git", check=2).stderr
    for args in (("apply", "demo", "--git", "--all"), ("apply", "demo", "--git", "file"),
                 ("review", "demo", "--git", "--guard"), ("review", "demo", "--git", "--list")):
        assert "mutually exclusive" in inst.sbx(*args, check=2).stderr
    # the sandbox removes what it has shown
    repo.inside("update-ref", "-d", "refs/heads/main")
    repo.inside("reflog", "expire", "--expire=now", "--all")
    repo.inside("prune", "--expire=now")
    p = inst.sbx("apply", "demo", "--git", "-y", check=1)
    assert "try: sbx review --git demo" in p.stderr
    assert repo.git("for-each-ref", "refs/sbx") == ""
    assert repo.git("cat-file", "-e", new, check=False).returncode != 0
    other = inst.work / "plain"
    other.mkdir()
    inst.sbx("create", "shell", "--name", "other", "--staged", other, check=0)
    p = inst.sbx("review", "other", "--git", check=1)
    assert "no workspace of sandbox 'other' is a git repository" in p.stderr


def test_a_hostile_git_of_a_staged_workspace_is_refused(repo):
    folder = repo.inst.root / "hostile"
    folder.mkdir()
    shutil.copy(hostile_git.__file__, folder / "git")
    (folder / "git").chmod(0o755)
    repo.commit()
    staged(repo, "-e", f"PATH={folder}:{os.environ['PATH']}")
    before = snapshot(repo)

    def refuse(case):
        for args in (("review", "demo", "--git"), ("apply", "demo", "--git", "-y")):
            p = repo.inst.sbx(*args, check=1)
            assert "\x1b" not in p.stdout + p.stderr and "\x07" not in p.stderr, (case, p.stderr)
        assert snapshot(repo) == before, case

    for case in ("control", "up", "many", "inject", "binary", "garbage", "err", "noise", "bomb",
                 "count", "not-wanted", "truncated"):
        (folder / "CASE").write_text(case)
        refuse(case)
    (folder / "CASE").unlink()
    for (name, oid), _ in zip(bad_objects(repo), range(5)):
        repo.inside("update-ref", "refs/heads/main", head(repo, oid))
        refuse(name)
    assert not list(repo.dir.glob(".git/objects/pack/*"))
    assert repo.git("for-each-ref", "refs/sbx") == ""
    assert list((repo.inst.root / "state/sbx/sandboxes").glob("*/git-*")) == []


def test_a_long_or_broken_log_is_shown_in_bounds(repo):
    repo.commit()
    staged(repo)
    good = repo.inside("rev-parse", "HEAD^{tree}")
    parent = repo.inside("rev-parse", "HEAD")
    who = b"u\x1b]0;owned\x07 <u@example.test> 1 +0000\n"
    text = (b"tree " + good.encode() + b"\nparent " + parent.encode() + b"\nauthor " + who
            + b"committer " + who + b"\n\xff\xfe\x1b[2J\n")
    odd = literal(repo, "commit", text)
    long = literal(repo, "commit", text + b"x" * (2 << 20))
    repo.inside("update-ref", "refs/heads/odd", odd)
    repo.inside("update-ref", "refs/heads/long", long)
    p = repo.inst.sbx("review", "demo", "--git", check=0, binary=True)
    assert b"\x1b" not in p.stdout and b"\x07" not in p.stdout and len(p.stdout) < 1 << 20
    assert b"no log: larger than 1 MiB" in p.stdout and odd.encode() in p.stdout
    repo.inst.sbx("review", "demo", "--git", "--json", check=0)
