# SPDX-License-Identifier: Apache-2.0
"""sbx cp against the real sbxd; the other side is lib/wire/tar in guest_builtin.c, or a hostile
archive."""
import io
import os
import stat
import subprocess
import tarfile

import pytest

from conftest import SBX


def test_both_ways_with_the_rules_of_docker_cp(inst):
    inst.create("demo")
    there = inst.root / "there"
    there.mkdir()
    (inst.work / "d/sub").mkdir(parents=True)
    (inst.work / "d/f").write_text("one")
    (inst.work / "d/f").chmod(0o640)
    os.symlink("f", inst.work / "d/l")
    os.utime(inst.work / "d/f", ns=(1, 1_000_000_001))
    p = inst.sbx("cp", "d", f"demo:{there}", check=0)
    assert "Copied 1 file, 3 B to demo:" in p.stderr and p.stdout == ""
    st = (there / "d/f").stat()
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_mtime_ns == 1_000_000_001
    assert os.readlink(there / "d/l") == "f" and (there / "d/sub").is_dir()
    inst.sbx("cp", "-q", f"demo:{there}/d", "back", check=0)
    assert (inst.work / "back/f").read_text() == "one"
    inst.sbx("cp", f"demo:{there}/d/.", "back2", check=0)
    assert (inst.work / "back2/f").exists()
    inst.sbx("cp", f"demo:{there}/d/f", ".", check=0)
    assert (inst.work / "f").read_text() == "one"
    inst.sbx("cp", "-L", f"demo:{there}/d/l", "followed", check=0)
    assert (inst.work
            / "followed").read_text() == "one" and not (inst.work / "followed").is_symlink()


def test_large_and_many(inst):
    inst.create("demo")
    data = os.urandom(20 << 20)
    (inst.work / "big").write_bytes(data)
    inst.sbx("cp", "big", f"demo:{inst.root}/big", check=0)
    assert (inst.root / "big").read_bytes() == data
    inst.sbx("cp", f"demo:{inst.root}/big", "big2", check=0)
    assert (inst.work / "big2").read_bytes() == data


def test_from_one_sandbox_to_another(inst):
    inst.create("one")
    inst.create("two")
    src, dst = inst.root / "src", inst.root / "dst"
    (src / "d").mkdir(parents=True)
    dst.mkdir()
    data = os.urandom(20 << 20)
    (src / "d/big").write_bytes(data)
    (src / "d/big").chmod(0o640)
    os.symlink("big", src / "d/l")
    inst.sbx("stop", "two", check=0)
    before = {f for f in inst.root.rglob("*") if f.stat(follow_symlinks=False).st_size > 1 << 20}
    p = inst.sbx("cp", f"one:{src}/d", f"two:{dst}", check=0)
    assert f"Copied one:{src}/d to two:{dst}, an archive of 20.0 MiB" in p.stderr
    assert (dst / "d/big").read_bytes() == data and p.stdout == ""
    assert stat.S_IMODE((dst / "d/big").stat().st_mode) == 0o640
    assert os.readlink(dst / "d/l") == "big"
    after = {f for f in inst.root.rglob("*") if f.stat(follow_symlinks=False).st_size > 1 << 20}
    assert after - before == {dst / "d/big"}  # no copy of it is left on the host
    inst.sbx("cp", "-q", f"one:{src}/d/.", f"one:{inst.root}/again", check=0)
    assert (inst.root / "again/big").read_bytes() == data
    inst.sbx("cp", "-q", "-L", f"two:{dst}/d/l", f"one:{inst.root}/file", check=0)
    assert (inst.root / "file").read_bytes() == data


def test_each_half_of_a_copy_between_sandboxes_names_its_failure(inst):
    inst.create("one")
    inst.create("two")
    (inst.root / "f").write_bytes(b"x" * 1000000)
    p = inst.sbx("cp", "one:/no/such", f"two:{inst.root}/x", check=1)
    assert "in the sandbox 'one': " in p.stderr and not (inst.root / "x").exists()
    p = inst.sbx("cp", f"one:{inst.root}/f", "two:/no/such/folder/x", check=1)
    assert "in the sandbox 'two': " in p.stderr
    assert "nobody" in inst.sbx("cp", f"one:{inst.root}/f", "nobody:/tmp/x", check=1).stderr
    assert "nobody" in inst.sbx("cp", "nobody:/tmp/x", f"one:{inst.root}/f", check=1).stderr


def test_a_hostile_sandbox_writes_nothing_outside_the_destination_in_another(inst):
    inst.create("one")
    inst.create("two")
    outside, dst = inst.root / "outside", inst.root / "dst"
    outside.mkdir()
    dst.mkdir()
    real = os.path.realpath(inst.root / "state/guest_builtin")
    hostile(inst, [("t", tarfile.DIRTYPE, "", b""), ("t/l", tarfile.SYMTYPE, str(outside), b""),
                   ("t/l/x", tarfile.REGTYPE, "", b"evil"),
                   ("../outside/y", tarfile.REGTYPE, "", b"evil"),
                   (f"{outside}/z", tarfile.REGTYPE, "", b"evil")])
    (inst.root / "state/guest_builtin").write_text(
        f'#!/bin/sh\n[ "$1" != pack ] || exec cat {inst.root}/archive\nexec {real} "$@"\n')
    inst.sbx("cp", "one:/t", f"two:{dst}")
    assert list(outside.iterdir()) == [] and not (inst.root / "y").exists()


def test_archive_to_stdout(inst):
    inst.create("demo")
    (inst.root / "x").write_text("text")
    p = inst.sbx("cp", f"demo:{inst.root}/x", "-", check=0, binary=True)
    with tarfile.open(fileobj=io.BytesIO(p.stdout)) as t:
        assert t.extractfile("x").read() == b"text"


def test_mistakes(inst):
    inst.create("demo")
    assert "must be absolute: 'b'" in inst.sbx("cp", "demo:/a", "demo:b", check=2).stderr
    assert "must be absolute: 'a'" in inst.sbx("cp", "demo:a", "demo:/b", check=2).stderr
    assert "cannot find 'none'" in inst.sbx("cp", "none", "demo:/tmp", check=1).stderr
    assert "in the sandbox: " in inst.sbx("cp", "demo:/no/such", ".", check=1).stderr
    (inst.work / "f").write_text("x")
    assert "in the sandbox: " in inst.sbx("cp", "f", "demo:/no/such/folder/x", check=1).stderr
    assert "cannot open the directory" in inst.sbx("cp", "demo:/etc/hostname", "no/such/x",
                                                   check=1).stderr
    assert "tar x" in inst.sbx("cp", "-", "demo:/tmp", check=1).stderr


def hostile(inst, members):
    """Makes `pack` of the simulated sandbox print this archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, link, body in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, link, len(body), 0o6777
            t.addfile(info, io.BytesIO(body))
    (inst.root / "archive").write_bytes(out.getvalue())
    fake = inst.root / "state/guest_builtin"
    fake.unlink()
    fake.write_text(f"#!/bin/sh\nexec cat {inst.root}/archive\n")
    fake.chmod(0o755)


F, D, L, H, C = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE


def test_cve_2026_17106_copy_out_never_leaves_its_destination(inst):
    inst.create("demo")
    dest, out = inst.work / "dest", inst.root / "outside"
    out.mkdir()
    (out / "secret").write_text("precious")
    for members in ([("t", D, "", b""), ("t/l", L, str(out), b""), ("t/l/pwn", F, "", b"x")],
                    [("t", D, "", b""), ("../pwn", F, "", b"x")],
                    [("t", D, "", b""), ("t/../../pwn", F, "", b"x")],
                    [("t", D, "", b""), (str(out / "pwn"), F, "", b"x")],
                    [("t", D, "", b""), ("t/h", H, str(out / "secret"), b"")],
                    [("t", D, "", b""), ("t/l", L, str(out / "secret"), b""),
                     ("t/h", H, "t/l", b"")],
                    [("t", D, "", b""), ("t/c", C, "", b"")],
                    [("t", D, "", b""), ("other", F, "", b"x")]):
        dest.mkdir(exist_ok=True)
        hostile(inst, members)
        p = inst.sbx("cp", "demo:/t", dest, check=1)
        assert "was rejected" in p.stderr, p.stderr
        assert sorted(os.listdir(out)) == ["secret"] and (out / "secret").read_text() == "precious"
        assert (out / "secret").stat().st_nlink == 1
        assert sorted(os.listdir(inst.work)) == ["dest"] and not (inst.root / "pwn").exists()
        subprocess.run(["rm", "-rf", dest], check=True)


def test_the_guest_does_not_choose_the_name(inst):
    inst.create("demo")
    hostile(inst, [(".bashrc", F, "", b"evil")])
    inst.sbx("cp", "demo:/home/agent/report.txt", inst.home, check=0)
    assert os.listdir(inst.home) == ["report.txt"]
    assert stat.S_IMODE((inst.home / "report.txt").stat().st_mode) == 0o777


def test_a_read_only_workspace_below_the_destination_is_not_written(inst):
    """`sbx create shell . hooks:ro`, then `sbx cp demo:/out/. .`: the names are the guest's."""
    (inst.work / "hooks").mkdir()
    for name in ("hooks/old", "fixed"):
        (inst.work / name).write_text("mine")
    inst.create("demo", inst.work, f"{inst.work}/hooks:ro", f"{inst.work}/fixed:ro")
    for members in ([("./hooks/post-commit", F, "", b"x")], [("./hooks/old", F, "", b"x")],
                    [("./fixed", F, "", b"x")], [("./fixed", L, "/etc/passwd", b"")],
                    [("./hooks/l", L, "/", b"")], [("./hooks/d", D, "", b"")],
                    [("./a", F, "", b"x"), ("./hooks/h", H, "./a", b"")]):
        hostile(inst, [(".", D, "", b""), *members])
        for to in (".", inst.root / "work"):
            p = inst.sbx("cp", "demo:/out/.", to, check=1)
            assert "read-only workspace" in p.stderr, (members, p.stderr)
        assert os.listdir(inst.work / "hooks") == ["old"]
        assert (inst.work / "hooks/old").read_text() == (inst.work / "fixed").read_text() == "mine"
    # A name that the user typed is the user's choice, and a directory that exists stays.
    hostile(inst, [("t", F, "", b"new")])
    for src, to, at in (("old", "hooks", "hooks/old"), ("x", "hooks/new", "hooks/new"),
                        ("fixed", ".", "fixed")):
        inst.sbx("cp", f"demo:/out/{src}", to, check=0)
        assert (inst.work / at).read_text() == "new"
    hostile(inst, [(".", D, "", b""), ("./hooks", D, "", b""), ("./b", F, "", b"x")])
    inst.sbx("cp", "demo:/out/.", ".", check=0)


def test_a_read_only_workspace_that_is_gone_ends_only_copies_that_reach_it(inst):
    """R10A4: a link is where the workspace was; the sandbox still has the old directory."""
    ref, there = inst.root / "above/ref", inst.root / "there"
    ref.mkdir(parents=True)
    there.mkdir()
    inst.create("demo", inst.work, f"{ref}:ro")
    ref.rename(inst.root / "above/old")
    ref.symlink_to("old")
    hostile(inst, [("t", F, "", b"new")])
    inst.sbx("cp", "demo:/t", there, check=0)
    assert (there / "t").read_text() == "new"
    for to in (ref.parent, f"{ref.parent}/", f"{ref.parent}/."):
        p = inst.sbx("cp", "demo:/t", to, check=1)
        assert str(ref) in p.stderr and os.listdir(inst.root / "above/old") == [], p.stderr
    assert not (ref.parent / "t").exists()


def test_nothing_of_the_guest_is_printed_when_a_file_is_copied_in(inst):
    inst.create("demo")
    (inst.work / "f").write_text("x")
    fake = inst.root / "state/guest_builtin"
    fake.unlink()
    fake.write_text("#!/bin/sh\nprintf '\\033]52;c;ZXZpbA==\\007error: x\\n'\n"
                    "exec cat >/dev/null\n")
    fake.chmod(0o755)
    p = inst.sbx("cp", "-q", "f", "demo:/tmp", check=0)
    assert p.stdout == "" and p.stderr == ""


def test_cut_off_archive_is_an_error(inst):
    inst.create("demo")
    hostile(inst, [("t", F, "", b"x" * 100000)])
    archive = inst.root / "archive"
    archive.write_bytes(archive.read_bytes()[:50000])
    assert "the archive is truncated" in inst.sbx("cp", "demo:/t", ".", check=1).stderr

def test_a_link_that_a_guest_planted_in_the_destination_is_not_followed(inst):
    """The demo shares inst.work; whatever is in there, a guest may have made."""
    inst.create("demo", ".")
    (inst.root / "second").mkdir()
    inst.create("other", inst.root / "second")
    out = inst.root / "outside"
    out.mkdir()
    (inst.root / "key").write_text("evil")
    (inst.work / "real").mkdir()
    for name, to in (("od", "../outside"), ("real/in", str(out)), ("real/up", ".."),
                     ("it's", "../outside")):
        os.symlink(to, inst.work / name)
    os.symlink("../outside", inst.root / "second/od")
    os.symlink(inst.work, inst.root / "short")  # a link of the user to the workspace
    os.symlink("work/od", inst.root / "shorter")
    for to in ("od", "od/", "od/.", "od/name", "real/in", "real/in/name", "real/up/od",
               inst.work / "od", inst.root / "second/od", "it's",
               inst.root / "short/od", inst.root / "shorter", "real/../od/name"):
        p = inst.sbx("cp", f"demo:{inst.root}/key", to, check=1)
        assert "is a symbolic link in the workspace" in p.stderr, (to, p.stderr)
        assert os.listdir(out) == [], to
        command = p.stderr.split("  try: ")[1]
        assert subprocess.run(["sh", "-c", command], check=True,
                              capture_output=True).stdout.strip(), command


def test_a_link_that_a_guest_planted_in_the_source_is_not_followed(inst):
    """`sbx cp out/config demo:/x`, where a guest made out a link to ~/.ssh: the key was copied into
    the sandbox."""
    inst.create("demo", ".")
    out, there = inst.root / "outside", inst.root / "there"
    out.mkdir()
    there.mkdir()
    (out / "secret").write_text("of the user")
    (inst.work / "real").mkdir()
    for name, to in (("od", "../outside"), ("real/in", str(out)), ("file", "../outside/secret"),
                     ("real/up", "..")):
        os.symlink(to, inst.work / name)
    os.symlink(inst.work, inst.root / "short")
    for args in (["od/secret"], ["od/"], ["od/."], ["-L", "od"], ["-L", "file"], ["real/in/secret"],
                 ["real/up/od/secret"], ["file/"],
                 [inst.work / "od/secret"], [inst.root / "short/od/secret"], ["real/../od/secret"]):
        p = inst.sbx("cp", *args, f"demo:{there}", check=1)
        assert ("is a symbolic link in the workspace" in p.stderr
                and "what should be copied" in p.stderr), (args, p.stderr)
        assert os.listdir(there) == [], args
        command = p.stderr.split("  try: ")[1]
        assert subprocess.run(["sh", "-c", command], check=True,
                              capture_output=True).stdout.strip(), command
    # A link is a link.
    inst.sbx("cp", "file", f"demo:{there}", check=0)
    inst.sbx("cp", "real", f"demo:{there}", check=0)
    assert os.readlink(there
                       / "file") == "../outside/secret" and os.readlink(there / "real/in") == str(
        out)


def test_links_of_the_user_in_the_source_still_work(inst):
    inst.create("demo", ".")
    there = inst.root / "there"
    there.mkdir()
    (inst.root / "outside/deep").mkdir(parents=True)
    (inst.root / "outside/deep/f").write_text("text")
    (inst.work / "real").mkdir()
    (inst.work / "real/f").write_text("text")
    os.symlink("outside", inst.root / "mine")
    os.symlink("outside/deep/f", inst.root / "f")
    for i, args in enumerate((["real/f"], ["./real/f"], ["real/../real/f"],
                              [inst.root / "mine/deep/f"], ["-L", inst.root / "f"],
                              ["../mine/deep/f"], [inst.root / "work/real/f"])):
        inst.sbx("cp", *args, f"demo:{there}/{i}", check=0)
        assert (there / str(i)).read_text() == "text" and not (there / str(i)).is_symlink(), args
    for i, args in enumerate(([inst.root / "mine/deep"], [inst.root / "mine/deep/."],
                              [inst.root / "mine/deep/"], ["real"], ["real/."], ["-L", "real"])):
        inst.sbx("cp", *args, f"demo:{there}/d{i}", check=0)
        assert (there / f"d{i}/f").read_text() == "text", args
    inst.sbx("cp", inst.root / "mine", f"demo:{there}/link", check=0)
    assert os.readlink(there / "link") == "outside"
    inst.sbx("cp", ".", f"demo:{there}/all", check=0)
    assert (there / "all/real/f").read_text() == "text"


def test_links_of_the_user_and_paths_in_the_workspace_still_work(inst):
    inst.create("demo", ".")
    (inst.root / "from").mkdir()
    (inst.root / "from/key").write_text("text")
    (inst.root / "outside/deep").mkdir(parents=True)
    (inst.work / "real/deep").mkdir(parents=True)
    os.symlink("outside", inst.root / "mine")
    os.symlink("../outside/precious", inst.work / "file")
    (inst.root / "outside/precious").write_text("precious")
    for to, at in ((inst.root / "mine", "outside/key"),
                   (inst.root / "mine/deep/", "outside/deep/key"),
                   ("real/deep", "work/real/deep/key"),
                   ("real/../new", "work/new"), ("../outside/new", "outside/new"),
                   (".", "work/key"), ("file", "work/file"), ("..", "key"),
                   (inst.root / "mine/../mine/third", "outside/third"),
                   ("real/deep/..", "work/real/key")):
        inst.sbx("cp", f"demo:{inst.root}/from/key", to, check=0)
        assert (inst.root / at).read_text() == "text" and not (inst.root / at).is_symlink(), to
    assert (inst.root / "outside/precious").read_text() == "precious"


@pytest.mark.parametrize("command",
                         [["policy", "export"], ["audit", "export", "-o"],
                          ["prove", "demo", "--probe", "host/file-modes", "--html"]])
def test_no_output_file_leaves_the_workspace_through_a_planted_directory(inst, command):
    """`sbx policy export out/config`, where a guest made out a link to ~/.ssh."""
    inst.create("demo", ".")
    victim = inst.root / "victim"
    victim.mkdir()
    (inst.work / "out").symlink_to(victim)
    (inst.work / "plain").mkdir()
    p = inst.sbx(*command, "out/file")
    assert p.returncode in (1, 125) and "symbolic link" in p.stderr and "try: " in p.stderr, (
        p.stderr)
    assert list(victim.iterdir()) == []
    if command[0] == "policy":
        inst.sbx(*command, "plain/file", check=0)
        inst.sbx(*command, inst.root / "elsewhere", check=0)
        assert (inst.work / "plain/file").exists() and (inst.root / "elsewhere").exists()


def test_dots_behind_a_planted_link_are_read_as_typed(inst):
    """`sbx policy export ws/sub/../../f`, where a guest made ws/sub a link to home/a/b: home/f was
    written."""
    ws = inst.work / "ws"
    ws.mkdir()
    inst.create("demo", ws)
    (inst.home / "a/b").mkdir(parents=True)
    (ws / "sub").symlink_to(inst.home / "a/b")
    inst.sbx("policy", "export", "ws/sub/../../f", check=0)
    assert (inst.work / "f").exists() and not (inst.home / "f").exists()
    inst.sbx("policy", "export", "ws/sub/../g", check=0)
    assert (ws / "g").exists() and not (inst.home / "a/g").exists()
    p = inst.sbx("policy", "export", "ws/sub/..", check=1)
    assert "home" not in p.stderr and [*inst.home.iterdir()] == [inst.home / "a"]


def test_a_file_that_may_not_be_read_is_named(inst):
    inst.create("demo")
    closed = inst.work / "closed"
    closed.write_text("x")
    closed.chmod(0)
    p = inst.sbx("cp", closed, "demo:/tmp/", check=1)
    assert ("closed" in p.stderr and "Permission denied" in p.stderr
            and "truncated" not in p.stderr), p.stderr
