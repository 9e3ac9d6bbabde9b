# SPDX-License-Identifier: Apache-2.0
"""data/airlock/autorun.list names what runs, and leaves alone what git and ordinary work write."""
import subprocess

import pytest
from autorun import KINDS, LIST, MODES, REFUSED, ROWS, judge, mode_of, table
from payloads import FILES, PAYLOADS

# The kinds with rows that a sandbox is refused by default. All others are reported.
REFUSED_KINDS = {1, 2, 3, 4, 5, 6, 7, 10, 15, 36, 37, 60}
ORDINARY = """
    README.md src/main.c src/head src/hooks/use.ts src/config config/a.json docs/index.md
    src/app.py src/main.go public/index.html package-lock.json Cargo.lock .gitignore
    .git/index .git/index.lock .git/objects/ab/cdef .git/packed-refs .git/refs/heads/fix/config
    .git/refs/heads/hooks/a .git/logs/refs/heads/master .git/refs/remotes/origin/HEAD
    .git/logs/HEAD .git/info/exclude .git/hooks/pre-commit.sample .git/config.lock .git/ORIG_HEAD
    .git/FETCH_HEAD .claude/settings.local.json.tmp.1.2 .claude/worktrees/a/src/main.c
""".split()


def test_the_list_has_60_kinds_and_known_modes():
    assert KINDS == list(range(1, 61))
    assert {row.mode for row in ROWS} == {*MODES, "allow"}
    assert len({(row.mode, row.pattern) for row in ROWS}) == len(ROWS)
    assert all(row.program and not row.pattern.startswith("/") for row in ROWS)


def test_the_default_refuses_what_runs_without_a_question():
    assert {row.kind for row in ROWS if row.mode in REFUSED} == REFUSED_KINDS


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: f"{p.kind}-{p.name}")
def test_the_list_has_each_payload(payload):
    for path in payload.paths:
        assert path in payload.plant
        assert judge(path) and judge(path).kind == payload.kind, path


def test_at_the_default_no_refused_kind_is_left_to_run():
    """A payload of kinds 1 to 10 is of several files: one of them is refused."""
    for payload in PAYLOADS:
        if payload.kind <= 10 and payload.name != "todo":
            assert any(mode_of(path) in REFUSED for path in payload.plant), payload


def test_kinds_without_a_program_of_debian_have_their_files():
    assert sorted({*FILES, *(p.kind for p in PAYLOADS)}) == KINDS
    assert not {*FILES} & {p.kind for p in PAYLOADS}
    for kind, paths in FILES.items():
        for path in paths:
            assert judge(path) and judge(path).kind == kind, path
            assert judge(f"deep/er/{path}").kind == kind, path


def test_the_guide_has_the_table_of_the_list():
    """`tests/airlock/autorun.py` prints the table."""
    guide = LIST.parents[2] / "docs/guides/workspaces.md"
    assert "\n".join(table()) in guide.read_text(encoding="utf-8")


def test_ordinary_files_are_in_no_row():
    assert {path: mode_of(path) for path in ORDINARY if judge(path)} == {}


GIT = """set -e
git init -q $ORIGIN && cd $ORIGIN && echo 1 > a && git add a && git commit -q -m 1
git clone -q $ORIGIN $CLONE && cd $CLONE && git checkout -q -b fix/config && echo 2 > a
git stash -q && git stash pop -q && git commit -q -a -m 2 && git checkout -q -
git merge -q --no-ff -m 3 fix/config && git tag -a -m t t && git fetch -q && git gc -q
git -c protocol.file.allow=always submodule --quiet add $ORIGIN sub && git commit -q -m 4
git -C sub commit -q --allow-empty -m 5 && git remote add b $ORIGIN && git fetch -q b
git worktree add -q side && git -C side commit -q --allow-empty -m 6
git bisect start >/dev/null && git bisect reset >/dev/null 2>&1
"""


def test_git_at_work_writes_no_name_that_is_refused(tmp_path):
    """`.git/config` is written by a rename that is checked; `commondir` has the only content that
    is permitted."""
    (tmp_path / ".gitconfig").write_text("[user]\nname = a\nemail = a@example.org\n")
    clone = tmp_path / "clone"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ORIGIN": str(tmp_path / "origin"),
           "CLONE": str(clone)}
    done = subprocess.run(["/bin/sh", "-c", GIT], stdout=subprocess.PIPE, timeout=60, env=env,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    written = [p.relative_to(clone).as_posix() for p in clone.rglob("*") if not p.is_dir()]
    refused = {path: mode_of(path) for path in written if mode_of(path) in REFUSED}
    assert refused == {".git/config": "check", ".git/modules/sub/config": "check",
                       ".git/worktrees/side/commondir": "fixed"}
    assert (clone / ".git/worktrees/side/commondir").read_text() == "../..\n"
    assert len(written) > 40
