# SPDX-License-Identifier: Apache-2.0
"""sbx review, apply, undo and discard against the real sbxd. The changes of the sandbox are a
stream that the test writes, well-formed or hostile."""
import hashlib
import io
import json
import os
import re
import resource
import signal
import stat
import subprocess
import tarfile
import time

from conftest import SBX, on_terminal
from test_audit import Logs

F, D, L, H, C = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
                 tarfile.CHRTYPE)
ROOT = ("d/.", D, "", b"")


def send(inst, *members, root=True, mode=0o644):
    """Makes `stage` of the simulated sandbox print this stream. A member is name, kind, link,
    content and an optional mode."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, link, content, *rest in ([(*ROOT, 0o700)] if root else []) + [*members]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content)
            info.mode = rest[0] if rest else 0o755 if kind == D else mode
            t.addfile(info, io.BytesIO(content))
    (inst.root / "stream").write_bytes(out.getvalue())
    fake = inst.root / "state/guest_builtin"
    fake.unlink()
    fake.write_text(f"#!/bin/sh\nexec cat {inst.root}/stream\n")
    fake.chmod(0o755)


def tree(path):
    """Everything below a directory: kind, mode, content."""
    out = {}
    for at in sorted(path.rglob("*")):
        st = at.lstat()
        name = str(at.relative_to(path))
        if at.is_symlink():
            out[name] = ("link", os.readlink(at))
        elif at.is_dir():
            out[name] = ("dir", stat.S_IMODE(st.st_mode))
        else:
            out[name] = ("file", stat.S_IMODE(st.st_mode), at.read_bytes())
    return out


def create(inst):
    """Files that are older than the sandbox, and the sandbox."""
    for name, text in (("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), ("src/c.c", "c\n"),
                       (".git/config", "[core]\n")):
        at = inst.work / name
        at.parent.mkdir(exist_ok=True)
        at.write_text(text)
        at.chmod(0o644)
    time.sleep(0.02)
    inst.create("demo", inst.work, "--staged")


CHANGES = [("f/a.txt", F, "", b"one\nTWO\n"), ("x/b.txt", F, "", b""), ("d/src", D, "", b""),
           ("f/src/new.c", F, "", b"new\n"), ("f/Makefile", F, "", b"all:\n\trm -rf /\n"),
           ("f/run.sh", F, "", b"#!/bin/sh\n", 0o755), ("l/inside", L, "a.txt", b""),
           ("l/out", L, "../../etc/passwd", b""), ("f/blob", F, "", b"\0\1"),
           ("d/.git", D, "", b""), ("f/.git/config", F, "", b"[core]\nfsmonitor = evil\n"),
           ("s/pipe", F, "", b""), ("m/busy", F, "", b"")]


def test_review_shows_classes_and_diffs_and_changes_nothing(inst):
    create(inst)
    before = tree(inst.work)
    send(inst, *CHANGES)
    p = inst.sbx("review", "demo", check=0)
    assert tree(inst.work) == before
    for line in ("  plain        changed  a.txt", "  plain        deleted  b.txt",
                 "  autorun      new      Makefile", "  exec-bit     new      run.sh",
                 "  symlink      new      inside -> a.txt", "  binary       new      blob",
                 "  symlink-out  new      out -> ../../etc/passwd", "  git          changed  .git/config",
                 "  special      new      pipe", "  moving       new      busy",
                 "  symlink-out  1, never applied", "  git          1, applied only by path"):
        assert line in p.stdout.splitlines(), (line, p.stdout)
    assert "--- a/a.txt\n+++ b/a.txt\n" in p.stdout and "\n-two\n+TWO\n" in p.stdout
    assert "+++ b/src/new.c" in p.stdout and "+++ /dev/null" in p.stdout
    listed = inst.sbx("review", "--list", "demo", check=0).stdout
    assert "+TWO" not in listed and "changed  a.txt" in listed
    j = json.loads(inst.sbx("review", "--json", "demo", check=0).stdout)
    assert {"path": "out", "workspace": str(inst.work), "class": "symlink-out", "change": "new",
            "directory": False, "target": "../../etc/passwd", "notes": None} in j["changes"]
    assert len(j["changes"]) == 11 and j["sandbox"] == "demo"


def test_apply_by_class_and_by_path_and_undo(inst):
    create(inst)
    before = tree(inst.work)
    send(inst, *CHANGES)
    assert "were not reviewed" in inst.sbx("apply", "--all", "-y", "demo", check=1).stderr
    inst.sbx("review", "--list", "demo", check=0)
    p = inst.sbx("apply", "--plain", "--yes", "demo", check=0)
    assert "Applied 3 changes to the workspace of sandbox 'demo'" in p.stderr, p.stderr
    assert "8 not selected" in p.stderr
    after = tree(inst.work)
    assert after == {**{k: v for k, v in before.items() if k != "b.txt"},
                     "a.txt": ("file", 0o644, b"one\nTWO\n"),
                     "src/new.c": ("file", 0o644, b"new\n")}
    inst.sbx("apply", "-y", "demo", "./Makefile", f"{inst.work}/.git/config", check=0)
    assert (inst.work / "Makefile").exists()
    assert "evil" in (inst.work / ".git/config").read_text()
    p = inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert os.readlink(inst.work / "inside") == "a.txt" and (inst.work / "blob").exists()
    assert stat.S_IMODE((inst.work / "run.sh").stat().st_mode) == 0o755
    for name in ("out", "pipe", "busy"):
        assert not (inst.work / name).is_symlink() and not (inst.work / name).exists()
    inst.sbx("apply", "-y", "demo", "out", check=0)
    assert not (inst.work / "out").is_symlink()
    for _ in range(3):
        inst.sbx("undo", "demo", check=0)
    assert tree(inst.work) == before
    p = inst.sbx("undo", "demo", check=1)
    assert "error: nothing to undo for sandbox 'demo'\n" in p.stderr
    # what sbx itself left there is no change of the host
    assert "conflict" not in inst.sbx("review", "--list", "demo", check=0).stdout


def end_of_run(inst, line):
    """The last line of a session. On a busy machine the sandbox may take too long to list its
    changes: one of several attempts has the numbers."""
    for _ in range(10):
        last = inst.sbx("run", "demo", "--", "true", check=0).stderr.splitlines()[-1:]
        if last == [line]:
            return
        assert last == ["Changes stay in the sandbox: sbx review demo"], last
    raise AssertionError(f"never: {line}")


def test_the_end_of_a_session_counts_the_changes_and_those_that_run_on_the_host(inst):
    create(inst)
    before = tree(inst.work)
    send(inst, *CHANGES)
    end_of_run(inst, "8 changes stay in the sandbox, 2 of them in files that run programs on the "
                     "host: sbx review demo")
    # a count is no review
    assert tree(inst.work) == before
    assert not list((inst.root / "state").rglob("stage/bundle*"))
    assert "were not reviewed" in inst.sbx("apply", "--all", "-y", "demo", check=1).stderr
    log = b"".join(f.read_bytes() for f in (inst.root / "state").rglob("audit/sbxd/*"))
    assert b"stage-review" not in log
    send(inst, ("f/a.txt", F, "", b"reviewed\n"))
    end_of_run(inst, "1 change stays in the sandbox, 0 of them in files that run programs on the "
                     "host: sbx review demo")
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert inst.sbx("run", "demo", "--", "true", check=0).stderr == ""
    out, _ = on_terminal(inst, ["run", "demo", "--", "true"])
    assert [r for r in out.splitlines() if r.strip()][-1] in (
        "Nothing is changed in the staged workspace",
        "Changes stay in the sandbox: sbx review demo"), out


def test_the_list_shows_that_a_workspace_is_staged(inst):
    create(inst)
    assert f"{inst.work} (staged)" in inst.sbx("ls", check=0).stdout


def test_the_end_of_a_session_does_not_wait_for_a_sandbox_that_sends_much_or_nothing(inst):
    create(inst)
    fake = inst.root / "state/guest_builtin"
    for script in ("exec sleep 600", "exec cat /dev/zero", "exit 3", "echo nonsense"):
        fake.unlink()
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        p = inst.sbx("run", "demo", "--", "echo", "out", check=0, timeout=60)
        assert p.stdout == "out\n"
        assert p.stderr == "Changes stay in the sandbox: sbx review demo\n", (script, p.stderr)


def test_each_bundle_and_each_step_is_in_the_audit_log(inst):
    create(inst)
    send(inst, ("f/a.txt", F, "", b"reviewed\n"))
    inst.sbx("review", "demo", check=0)
    stage = next((inst.root / "state").rglob("sandboxes/*/stage"))
    sha = hashlib.sha256((stage / "bundle/manifest").read_bytes()).hexdigest()
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    inst.sbx("undo", "demo", check=0)
    log = b"".join(f.read_bytes()
                   for f in sorted((inst.root / "state").rglob("audit/sbxd/*"))).decode()
    rows = [json.loads(line) for line in log.splitlines() if '"stage-' in line]
    assert [(r["action"], r["name"], r.get("count")) for r in rows] == [
        ("stage-review", "demo", 2), ("stage-apply", "demo", 1), ("stage-undo", "demo", None)], log
    assert [r.get("reason") for r in rows] == [f"bundle sha256 {sha}"] * 2 + [None]
    assert [r.get("op") for r in rows] == [None, "a.txt", None]


# What a run did: the records of its keeper that are effects outside, and those that are not.
LASTING = {
    ("git push", "git.example:443", "POST /u/r.git/git-receive-pack", "1"): dict(
        type="https", path="forward", host="git.example", port=443,
        op="POST /u/r.git/git-receive-pack"),
    ("request", "api.example:443", "DELETE /item/7", "3"): dict(
        type="https", path="forward", host="api.example", port=443, op="DELETE /item/7", count=3),
    ("connection", "db.example:5432", "-", "1"): dict(
        type="tcp", path="transparent", host="db.example", port=5432),
    ("signature", "-", "-", "1"): dict(kind="signature", action="ssh-sign"),
    ("stored token", "login.example:443", "github", "1"): dict(
        kind="credential-use", action="keep", host="login.example", port=443, rule="github"),
    ("credential use", "api.example:443", "openai", "1"): dict(
        kind="credential-use", action="use", host="api.example", port=443, rule="openai", count=9),
    ("workspace file", "-", "write Makefile", "1"): dict(
        action="guard", type="reported", op="write Makefile"),
}
HARMLESS = [
    dict(type="https", path="forward", host="read.example", port=443, op="GET /a"),
    dict(type="dns", host="name.example"), dict(kind="lifecycle", action="start"),
    dict(type="https", path="forward", host="no.example", port=443, op="POST /a", verdict="deny"),
    dict(kind="credential-use", action="refuse", host="no.example", rule="openai", verdict="deny")]


def checkpoints(inst):
    o = json.loads(inst.sbx("checkpoint", "--ls", "--json", "demo", check=0).stdout)
    return [c["auto"] for c in o["checkpoints"]]


def test_an_apply_is_preceded_by_a_checkpoint_if_that_is_set(inst):
    create(inst)
    send(inst, *CHANGES)
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "-y", "demo", "./inside", check=0)
    assert checkpoints(inst) == [], "off by default"
    inst.sbx("settings", "set", "checkpoint.before-apply", "true", check=0)
    p = inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert "Checkpoint 'auto-" in p.stderr and checkpoints(inst) == [True], p.stderr
    shown = inst.sbx("checkpoint", "--ls", "demo", check=0).stdout.splitlines()
    kind, memory = shown[1].split()[-2:]
    assert shown[0].split()[-2:] == ["KIND", "MEMORY"], shown
    assert shown[1].startswith("auto-") and (kind, memory) == ("auto", "no"), shown
    inst.sbx("stop", "demo", check=0)
    p = inst.sbx("apply", "-y", "demo", "./Makefile", check=0)
    assert "heckpoint" not in p.stderr and (inst.work / "Makefile").exists(), p.stderr


def test_an_apply_does_not_depend_on_its_checkpoint(inst):
    create(inst)
    send(inst, *CHANGES)
    inst.sbx("settings", "set", "checkpoint.before-apply", "true", check=0)
    inst.sbx("review", "--list", "demo", check=0)
    at, = (inst.root / "state").rglob("sandboxes/*")
    (at / "checkpoints").write_text("damaged")
    p = inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert "no checkpoint before the apply: invalid list of checkpoints" in p.stderr, p.stderr
    assert "Applied 3 changes" in p.stderr


def test_a_rewind_forgets_the_review(inst):
    """What was reviewed before it is not what the sandbox has."""
    create(inst)
    inst.sbx("checkpoint", "demo", "c1", check=0)
    send(inst, *CHANGES)
    before = tree(inst.work)
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("rewind", "demo", "--to", "c1", "--dry-run", check=0)
    at, = (inst.root / "state").rglob("sandboxes/*/stage")
    assert (at / "bundle").exists()
    inst.sbx("rewind", "demo", "--to", "c1", check=0)
    p = inst.sbx("apply", "--all", "-y", "demo", check=1)
    assert "were not reviewed" in p.stderr and "try: sbx review demo" in p.stderr, p.stderr
    assert tree(inst.work) == before and not (at / "bundle").exists()
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("rewind", "demo", "--undo", check=0)
    assert not (at / "bundle").exists()


def test_a_rewind_waits_for_an_interrupted_apply(inst):
    create(inst)
    inst.sbx("checkpoint", "demo", "c1", check=0)
    send(inst, *CHANGES)
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    at, = (inst.root / "state").rglob("sandboxes/*/stage")
    (at / "undo/1/done").unlink()
    p = inst.sbx("rewind", "demo", "--to", "c1", check=1)
    assert "an apply to the workspace of sandbox 'demo' was interrupted" in p.stderr
    assert inst.sbx("ls", "--json", check=0).stdout.count('"running"') == 1, "it was stopped"


def test_the_list_of_a_rewind_is_complete_for_a_recorded_run(inst):
    """The user's part is done by the commands; the sandbox has another name in between."""
    create(inst)
    early = dict(type="tcp", path="transparent", host="early.example", port=1)
    at = next((inst.root / "state").rglob("sandboxes/*"))
    logs = Logs(inst)
    logs.event(id=at.name, verdict="allow", **early)
    logs.finish()
    inst.sbx("ports", "demo", "--publish", "18081:81", check=0)
    time.sleep(0.01)
    inst.sbx("checkpoint", "demo", "c1", check=0)
    listed = json.loads((at / "checkpoints").read_text())
    listed["checkpoints"][0]["seq"] = sum(
        f.read_text().count("\n") for f in (inst.root / f"state/sbx/audit/{at.name}").iterdir())
    (at / "checkpoints").write_text(json.dumps(listed))
    logs = Logs(inst)
    for e in (*LASTING.values(), *HARMLESS):
        logs.event(**{"id": at.name, "verdict": "allow", **e})
    logs.finish()
    send(inst, *CHANGES)
    inst.sbx("review", "demo", check=0)
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    inst.sbx("rename", "demo", "other", check=0)
    inst.sbx("apply", "-y", "other", "./Makefile", check=0)
    inst.sbx("undo", "other", check=0)
    inst.sbx("ports", "other", "--publish", "18082:82", check=0)
    out = inst.sbx("rewind", "other", "--to", "c1", "--dry-run", check=0).stdout.splitlines()
    assert out[0] == "A rewind does not take these back:", out
    rows = {tuple(re.split("  +", line)) for line in out[2:] if "changed on the host" not in line}
    want = set(LASTING) | {
        ("applied files", "-", "b.txt, a.txt, src/new.c", "3"),
        ("applied files", "-", "Makefile", "1"), ("undone apply", "-", "-", "1"),
        ("published port", "-", "127.0.0.1:18082 -> 82/tcp4", "1")}
    assert rows == want, (rows - want, want - rows)
    assert any("changed on the host since then" in line for line in out)


def test_the_names_of_an_apply_fit_into_its_record(inst):
    create(inst)
    names = [f"{i:03}-{'n' * 40}" for i in range(40)]
    send(inst, *((f"f/{n}", F, "", b"x") for n in names), ("f/\x1bz", F, "", b"x"))
    inst.sbx("review", "demo", check=0)
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    log = b"".join(f.read_bytes() for f in (inst.root / "state").rglob("audit/sbxd/*")).decode()
    row, = [json.loads(line) for line in log.splitlines() if '"stage-apply"' in line]
    told = row["op"].split(" and ")
    assert told[0].split(", ") == ["?z", *names][:len(told[0].split(", "))]
    assert told[1] == f"{row['count'] - len(told[0].split(', '))} more" and row["count"] == 41


def test_rm_does_not_lose_changes_without_a_word(inst):
    create(inst)
    send(inst, ("f/a.txt", F, "", b"agent\n"), ("l/out", L, "/etc/passwd", b""))
    p = inst.sbx("rm", "--force", "demo", check=1)
    assert "sandbox 'demo' has 1 staged change that was not applied" in p.stderr
    assert "try: sbx rm --discard --force demo" in p.stderr
    text, status = on_terminal(inst, ["rm", "demo"], b"y\nn\n")
    assert status == 1 and "1 staged change of sandbox 'demo' not applied. Discard?" in text, text
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    inst.sbx("rm", "--force", "demo", check=0)
    inst.create("other", inst.work, "--staged")
    send(inst, ("f/b.txt", F, "", b"agent\n"))
    inst.sbx("rm", "--force", "--discard", "other", check=0)


def test_only_the_reviewed_bundle_is_applied(inst):
    create(inst)
    send(inst, ("f/a.txt", F, "", b"reviewed\n"))
    inst.sbx("review", "demo", check=0)
    send(inst, ("f/a.txt", F, "", b"evil\n"), ("f/more", F, "", b"evil\n"))
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert (inst.work / "a.txt").read_text() == "reviewed\n" and not (inst.work / "more").exists()
    inst.sbx("undo", "demo", check=0)
    stored, = (inst.root / "state/sbx/sandboxes").glob("*/stage/bundle/0.tar")
    stored.write_bytes(stored.read_bytes().replace(b"reviewed", b"replaced"))
    p = inst.sbx("apply", "--all", "-y", "demo", check=1)
    assert "differs from its manifest" in p.stderr and "try: sbx review demo" in p.stderr
    assert (inst.work / "a.txt").read_text() == "one\ntwo\n"


def test_directories_that_are_replaced_deleted_and_renamed(inst):
    create(inst)
    for name in ("old/deep/x", "old/y", "kind/z"):
        at = inst.work / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(name)
    before = tree(inst.work)
    # newer than the sandbox: the host's own
    send(inst, ("x/old", F, "", b""), ("o/src", D, "", b""), ("f/src/d.c", F, "", b"d\n"))
    p = inst.sbx("review", "--list", "demo", check=0)
    assert "  conflict     deleted  old/deep/x" in p.stdout
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert (inst.work / "old/deep/x").exists() and os.listdir(inst.work / "src") == ["d.c"]
    inst.sbx("undo", "demo", check=0)
    inst.sbx("rm", "-f", "--discard", "demo", check=0)
    inst.create("demo", inst.work, "--staged")
    send(inst, ("x/old", F, "", b""), ("o/new", D, "", b""), ("o/new/deep", D, "", b""),
         ("f/new/deep/x", F, "", b"old/deep/x"), ("f/new/y", F, "", b"old/y"),
         ("f/kind", F, "", b"now a file\n"), ("d/b.txt", D, "", b""),
         ("f/b.txt/in", F, "", b"in\n"))
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    now = tree(inst.work)
    assert not any(k == "old" or k.startswith("old/") for k in now)
    assert now["new/deep/x"][2] == b"old/deep/x" and now["kind"][2] == b"now a file\n"
    assert now["b.txt"][0] == "dir" and now["b.txt/in"][2] == b"in\n"
    inst.sbx("undo", "demo", check=0)
    assert tree(inst.work) == before


def test_a_file_that_the_host_changed_too_is_a_conflict(inst):
    create(inst)
    send(inst, ("f/a.txt", F, "", b"guest\n"), ("f/b.txt", F, "", b"guest\n"))
    (inst.work / "a.txt").write_text("host\n")
    p = inst.sbx("review", "--list", "demo", check=0)
    assert ("  conflict     changed  a.txt" in p.stdout
            and "  plain        changed  b.txt" in p.stdout)
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert (inst.work / "a.txt").read_text() == "host\n"
    assert (inst.work / "b.txt").read_text() == "guest\n"
    inst.sbx("apply", "-y", "demo", "a.txt", check=0)
    assert (inst.work / "a.txt").read_text() == "guest\n"
    inst.sbx("undo", "demo", check=0)
    assert (inst.work / "a.txt").read_text() == "host\n"
    # a file that was changed after the apply is not undone
    (inst.work / "b.txt").write_text("later\n")
    p = inst.sbx("undo", "demo", check=0)
    assert "skipped b.txt: changed since it was applied" in p.stderr and "old versions" in p.stderr
    assert (inst.work / "b.txt").read_text() == "later\n"


def test_hidden_files_are_not_deleted_with_their_directory(inst):
    (inst.work / "conf").mkdir()
    for name in (".env", "x"):
        (inst.work / "conf" / name).write_text("secret")
    time.sleep(0.02)
    inst.create("demo", inst.work, "--staged", "--hide", ".env")
    send(inst, ("x/conf", F, "", b""), ("o/moved", D, "", b""), ("m/moved/.env", F, "", b""),
         ("f/moved/x", F, "", b"secret"))
    inst.sbx("review", "--list", "demo", check=0)
    p = inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert os.listdir(inst.work / "conf") == [".env"] and "the directory is not empty" in p.stderr
    assert os.listdir(inst.work / "moved") == ["x"]


def test_hostile_streams_have_no_effect(inst):
    create(inst)
    out = inst.root / "out"
    out.mkdir()
    (inst.work / "lnk").symlink_to(out)
    before = tree(inst.work)
    for members in ([("f/../pwn", F, "", b"x")], [(f"f/{out}/pwn", F, "", b"x")],
                    [("f/a/../../pwn", F, "", b"x")], [("f/.", F, "", b"x")],
                    [("f/lnk/pwn", F, "", b"x")],
                    [("l/src", L, str(out), b""), ("f/src/pwn", F, "", b"x")],
                    [("f/src", F, "", b"x"), ("f/src/pwn", F, "", b"x")],
                    [("x/src", F, "", b""), ("f/src/pwn", F, "", b"x")],
                    [("f/c", C, "", b"")], [("f/h", H, "f/a.txt", b"")],
                    [("f/h", H, "/etc/passwd", b"")], [("q/a", F, "", b"")],
                    [("f/.sbx-apply-1-0", F, "", b"x")], [("f/" + "a/" * 200 + "b", F, "", b"x")],
                    [("x/a.txt", F, "", b"x")]):
        send(inst, *members)
        p = inst.sbx("review", "demo", check=1)
        assert "the sandbox sent" in p.stderr, (members, p.stderr)
        assert "were not reviewed" in inst.sbx("apply", "--all", "-y", "demo", check=1).stderr
        assert tree(inst.work) == before and os.listdir(out) == []
    send(inst, root=False)
    assert inst.sbx("review", "demo", check=0).stdout.startswith("No changes")
    send(inst, ("f/a.txt", F, "", b"x"))
    stream = inst.root / "stream"
    stream.write_bytes(stream.read_bytes()[:1600])
    assert "incomplete" in inst.sbx("review", "demo", check=1).stderr


def test_set_id_bits_and_a_link_in_the_place_of_a_directory(inst):
    create(inst)
    out = inst.root / "out"
    out.mkdir()
    send(inst, ("f/suid", F, "", b"x", 0o6755), ("d/src", D, "", b"", 0o7755),
         ("f/src/pwn", F, "", b"x"))
    inst.sbx("review", "--list", "demo", check=0)
    # between review and apply the directory becomes a link: nothing is written through it
    (inst.work / "src/c.c").unlink()
    (inst.work / "src").rmdir()
    (inst.work / "src").symlink_to(out)
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert os.listdir(out) == [] and (inst.work / "src").is_symlink()
    assert stat.S_IMODE((inst.work / "suid").stat().st_mode) == 0o755


def test_names_and_contents_do_not_reach_the_terminal(inst):
    create(inst)
    send(inst, ("f/\x1b[2Jx", F, "", b"\x1b]0;owned\x07\n"), ("l/l", L, "\x1b[31m", b""),
         ("f/a.txt", F, "", "one\n\u202etwo\n".encode()))
    p = inst.sbx("review", "demo", check=0, binary=True)
    assert b"\x1b" not in p.stdout + p.stderr and "\u202e".encode() not in p.stdout
    assert b"<U+202E>two" in p.stdout


def test_prompts_and_usage(inst):
    create(inst)
    send(inst, ("f/a.txt", F, "", b"x\n"), ("f/run.sh", F, "", b"x\n", 0o755))
    inst.sbx("review", "demo", check=0)
    p = inst.sbx("apply", "demo", check=2)
    assert "stdin is not a terminal: use --yes" in p.stderr
    p = inst.sbx("apply", "--all", "demo", "a.txt", "-y", check=2)
    assert "mutually exclusive" in p.stderr
    p = inst.sbx("apply", "-y", "demo", "nowhere", check=1)
    assert "no staged change at 'nowhere'" in p.stderr
    assert "error: nothing to continue" in inst.sbx("apply", "--continue", "demo", check=1).stderr
    on_terminal(inst, ["apply", "demo"], b"y\nn\n")
    assert (inst.work / "a.txt").read_text() == "x\n" and not (inst.work / "run.sh").exists()
    inst.create("direct", inst.work)
    p = inst.sbx("review", "direct", check=1)
    assert "sandbox 'direct' was not created with --staged" in p.stderr


def test_a_staged_sandbox_is_not_suspended(inst):
    create(inst)
    p = inst.sbx("stop", "--suspend", "demo", check=1)
    assert "cannot be suspended" in p.stderr and "try: sbx stop demo" in p.stderr
    p = inst.sbx("create", "shell", "--name", "idle", "--staged", "--idle-timeout", "5m", inst.work)
    assert p.returncode and "idle_timeout" in p.stderr
    (inst.work / "src/in").mkdir()
    p = inst.sbx("create", "shell", "--name", "nested", "--staged", inst.work, inst.work / "src")
    assert p.returncode and "inside the staged workspace" in p.stderr
    p = inst.sbx("create", "shell", "--name", "both", "--staged", "--clone", inst.work)
    assert p.returncode and "--clone and --staged are mutually exclusive" in p.stderr


def test_a_killed_apply_is_continued_or_undone(inst):
    create(inst)
    before = tree(inst.work)
    files = {f"f/new/{i}": b"%d\n" % i * 300 for i in range(400)}
    files["f/new/200"] *= 2000  # is too large for a process with the limit, which it kills
    send(inst, ("o/new", D, "", b""), *((n, F, "", text) for n, text in files.items()),
         ("f/a.txt", F, "", b"x\n"))
    inst.sbx("review", "--list", "demo", check=0)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for how in ("--continue", "--undo"):
        p = subprocess.run([SBX, "apply", "--all", "-y", "demo"], env=inst.env, cwd=inst.work,
                           stderr=subprocess.DEVNULL, preexec_fn=limit)
        assert p.returncode == -signal.SIGXFSZ
        assert 50 < sum(".sbx" in n for n in os.listdir(inst.work / "new")) < 400
        busy = inst.sbx("review", "demo", check=1)
        assert "was interrupted" in busy.stderr
        assert "try: sbx apply --continue demo" in busy.stderr
        inst.sbx("apply", how, "demo", check=0)
        if how == "--continue":
            assert {n: (inst.work / n[2:]).read_bytes() for n in files} == files
            assert len(os.listdir(inst.work / "new")) == 400
            inst.sbx("undo", "demo", check=0)
        assert tree(inst.work) == before


def test_only_the_last_applies_are_kept(inst):
    create(inst)
    inst.sbx("settings", "set", "stage.keep", "2", check=0)
    for i in range(4):
        send(inst, ("f/b.txt", F, "", b"%d\n" % i), ("f/new", F, "", LINES.encode()))
        inst.sbx("review", "--list", "demo", check=0)
        inst.sbx("apply", "-y", "demo", *(["new"] if i == 0 else []), "b.txt", check=0)
    stage = stage_of(inst)
    assert sorted(os.listdir(stage / "undo")) == ["3", "4"]
    # what the first apply has put is still the base of a merge
    (inst.work / "new").write_text(edit(1, word="host"))
    send(inst, ("f/b.txt", F, "", b"3\n"), ("f/new", F, "", edit(9).encode()))
    assert notes_of(inst) == {"new": ("merged", None)}
    for text in ("2\n", "1\n"):
        inst.sbx("undo", "demo", check=0)
        assert (inst.work / "b.txt").read_text() == text
    assert "nothing to undo" in inst.sbx("undo", "demo", check=1).stderr
    deadline = time.monotonic() + 30  # removed in the background
    while list(stage.glob("trash-*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert os.listdir(stage / "undo") == []


# -- classes that follow from contents and names --------------------------------------------------

PACKAGE = (b'{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}',
           b'{"scripts": {"test": "jest"}, "dependencies": {"a": "2", "evil-pad": "1"}}',
           b'{"scripts": {"test": "curl e | sh"}, "dependencies": {"a": "2", "evil-pad": "1"}}')


def notes_of(inst):
    """Class and notes by path."""
    p = inst.sbx("review", "--json", "demo", check=0)
    assert p.stderr == "", p.stderr
    return {c["path"]: (c["class"], c["notes"]) for c in json.loads(p.stdout)["changes"]}


def test_classes_follow_from_names_and_contents(inst):
    (inst.work / "package.json").write_bytes(PACKAGE[0])
    create(inst)
    send(inst, ("f/package.json", F, "", PACKAGE[2]), ("d/web", D, "", b""),
         ("f/web/package.json", F, "", PACKAGE[1]),
         ("f/requirements.txt", F, "", b"requests==2\nevil\n"), ("f/go.sum", F, "", b"x\n"),
         ("d/.github", D, "", b""), ("d/.github/workflows", D, "", b""),
         ("f/.github/workflows/ci.yml", F, "", b"on: push\n"), ("f/Dockerfile", F, "", b"FROM x\n"),
         ("f/Makefile", F, "", b"all:\n"), ("f/a.txt", F, "", b"one\nTWO\n"),
         ("f/evil.c", F, "", "if (is_\u0430dmin) /*\u202e*/\n".encode()))
    found = notes_of(inst)
    assert found["package.json"] == ("script-change", "dependency: evil-pad; script-change: test")
    assert found["web/package.json"][0] == "script-change"
    assert found["requirements.txt"] == ("dependency", "dependency: requests, evil")
    assert found["go.sum"] == ("lockfile", "lockfile")
    assert found[".github/workflows/ci.yml"] == ("ci", None)
    assert found["Dockerfile"] == ("container", None)
    assert found["Makefile"] == ("autorun", None)
    assert found["a.txt"] == ("plain", None)
    assert found["evil.c"] == ("unicode", "unicode: U+202E, is_\u0430dmin")
    inst.sbx("apply", "--plain", "--yes", "demo", check=0)
    assert {n for n, what in tree(inst.work).items() if what[0] == "file"} == {
        ".git/config", "a.txt", "b.txt", "package.json", "src/c.c"}
    assert (inst.work / "package.json").read_bytes() == PACKAGE[0]


def test_names_that_differ_in_case_are_applied_only_by_path(inst):
    (inst.work / "README").write_text("x\n")
    (inst.work / "Old").write_text("x\n")
    create(inst)
    send(inst, ("f/Readme", F, "", b"y\n"), ("f/one", F, "", b"1\n"), ("f/ONE", F, "", b"2\n"),
         ("x/Old", F, "", b""), ("f/old", F, "", b"renamed\n"), ("f/\u00c4", F, "", b"3\n"),
         ("f/\u00e4", F, "", b"4\n"))
    found = notes_of(inst)
    assert found["Readme"] == ("case-clash", "case-clash: README")
    assert found["one"] == ("case-clash", "case-clash: ONE")
    assert found["ONE"] == ("case-clash", "case-clash: one")
    assert found["\u00c4"][0] == found["\u00e4"][0] == "case-clash"
    assert found["old"] == ("plain", None)
    inst.sbx("apply", "--all", "--yes", "demo", check=0)
    assert not (inst.work / "Readme").exists() and not (inst.work / "ONE").exists()
    assert (inst.work / "old").read_text() == "renamed\n"
    inst.sbx("apply", "--yes", "demo", "Readme", check=0)
    assert (inst.work / "Readme").exists()


def test_notes_are_clean_for_a_terminal(inst):
    create(inst)
    send(inst, ("f/requirements.txt", F, "", b"-e \x1b[2Jx\n"))
    p = inst.sbx("review", "--list", "demo", check=0)
    assert "dependency: -e ?[2Jx" in p.stdout and "\x1b" not in p.stdout


# -- three-way merges -----------------------------------------------------------------------------

LINES = "".join(f"line {i}\n" for i in range(1, 10))


def edit(*numbers, word="guest", text=LINES):
    """The text with some lines changed."""
    for n in numbers:
        text = text.replace(f"line {n}\n", f"{word} {n}\n")
    return text


def git(inst, *args, later=0):
    """git on the host, `later` seconds from now."""
    date = f"{int(time.time()) + later} +0000"
    who = {f"GIT_{w}_{k}": v for w in ("AUTHOR", "COMMITTER")
           for k, v in (("NAME", "u"), ("EMAIL", "u@example.test"), ("DATE", date))}
    env = {**inst.env, "GIT_CONFIG_NOSYSTEM": "1", **who}
    return subprocess.run(["git", "-C", inst.work, *map(str, args)], env=env, check=True,
                          capture_output=True).stdout.decode()


def commit(inst, later=0):
    if not (inst.work / ".git").exists():
        git(inst, "init", "-q", "-b", "main")
    git(inst, "add", "-A")
    git(inst, "commit", "-qm", "x", later=later)


def create_repo(inst, **files):
    """Committed files, all with LINES unless their text is given, and the sandbox."""
    for name, text in {"a.txt": LINES, **files}.items():
        at = inst.work / name
        at.parent.mkdir(exist_ok=True)
        at.write_bytes(text if isinstance(text, bytes) else text.encode())
        at.chmod(0o644)
    commit(inst)
    time.sleep(0.02)
    inst.create("demo", inst.work, "--staged")


def stage_of(inst):
    return next((inst.root / "state").rglob("sandboxes/*/stage"))


def test_changes_of_host_and_sandbox_are_merged(inst):
    create_repo(inst)
    file = inst.work / "a.txt"
    file.write_text(edit(1, word="host"))
    send(inst, ("f/a.txt", F, "", edit(9).encode()))
    p = inst.sbx("review", "demo", check=0)
    assert "  merged       changed  a.txt" in p.stdout.splitlines(), p.stdout
    # the diff is against the file of the host
    assert "\n-line 9\n+guest 9\n" in p.stdout and "host 1" not in p.stdout.replace(" host 1", "")
    assert "-host 1" not in p.stdout and file.read_text() == edit(1, word="host")
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    both = edit(9, text=edit(1, word="host"))
    assert file.read_text() == both and stat.S_IMODE(file.stat().st_mode) == 0o644
    # merged changes are not listed again; the next change is relative to them
    assert inst.sbx("review", "demo", check=0).stdout.startswith("No changes")
    send(inst, ("f/a.txt", F, "", edit(5, 9).encode()))
    assert notes_of(inst) == {"a.txt": ("merged", None)}
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert file.read_text() == edit(5, text=both)
    for text in (both, edit(1, word="host")):
        inst.sbx("undo", "demo", check=0)
        assert file.read_text() == text
    # the undone change is not lost, and the host's own is not sbx's
    assert notes_of(inst) == {"a.txt": ("merged", None)}
    assert list(stage_of(inst).parent.glob("git-*")) == [], "a quarantine was left"


def test_a_merge_uses_the_commit_at_the_start_of_the_sandbox(inst):
    create_repo(inst)
    (inst.work / "a.txt").write_text(edit(1, word="host"))
    commit(inst, later=100)
    send(inst, ("f/a.txt", F, "", edit(9).encode()))
    assert notes_of(inst) == {"a.txt": ("merged", None)}
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert (inst.work / "a.txt").read_text() == edit(9, text=edit(1, word="host"))


def test_without_a_commit_at_the_start_nothing_is_guessed(inst):
    (inst.work / "a.txt").write_text(LINES)
    time.sleep(0.02)
    inst.create("demo", inst.work, "--staged")
    (inst.work / "a.txt").write_text(edit(1, word="host"))
    commit(inst, later=100)  # a HEAD with the change of the host
    send(inst, ("f/a.txt", F, "", edit(9).encode()))
    unknown = ("conflict", "conflict: the version before both changes is unknown")
    assert notes_of(inst) == {"a.txt": unknown}


def test_a_base_is_what_an_earlier_review_or_apply_has_seen(inst):
    (inst.work / "a.txt").write_text(LINES)
    (inst.work / "b.txt").write_text(LINES)
    time.sleep(0.02)
    inst.create("demo", inst.work, "--staged")
    send(inst, ("f/a.txt", F, "", edit(9).encode()), ("f/b.txt", F, "", edit(9).encode()))
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "-y", "demo", "b.txt", check=0)
    (inst.work / "a.txt").write_text(edit(1, word="host"))
    # the host goes back to line 9: with the first version as the base it would come again
    (inst.work / "b.txt").write_text(edit(1, word="host"))
    send(inst, ("f/a.txt", F, "", edit(8, 9).encode()), ("f/b.txt", F, "", edit(5, 9).encode()))
    assert notes_of(inst) == {"a.txt": ("merged", None), "b.txt": ("merged", None)}
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert (inst.work / "a.txt").read_text() == edit(8, 9, text=edit(1, word="host"))
    assert (inst.work / "b.txt").read_text() == edit(5, text=edit(1, word="host"))


def test_what_cannot_be_merged_stays_a_conflict(inst):
    big = LINES * 70000
    create_repo(inst, **{"same": LINES, "bin": b"\0" + LINES.encode(), "huge": big, "gone": LINES})
    for name, text in (("a.txt", edit(1, word="host")), ("same", edit(3, word="host")),
                       ("bin", "host\0"), ("huge", "host\n" + big)):
        (inst.work / name).write_text(text)
    (inst.work / "gone").unlink()
    send(inst, ("f/same", F, "", edit(3).encode()), ("f/bin", F, "", b"guest\0"),
         ("f/huge", F, "", big.encode() + b"guest\n"), ("f/gone", F, "", edit(1).encode()),
         ("f/a.txt", F, "", b"guest\0" + LINES.encode()), ("f/new", F, "", b"new\n"))
    before = tree(inst.work)
    assert notes_of(inst) == {
        "same": ("conflict", "conflict: the host and the sandbox changed the same lines"),
        "bin": ("conflict", "conflict: the file is not text"),
        "a.txt": ("conflict", "conflict: the file is not text"),
        "huge": ("conflict", "conflict: the file is larger than 4 MiB"),
        "gone": ("conflict", "conflict: the host deleted the file"), "new": ("plain", None)}
    p = inst.sbx("review", "--list", "demo", check=0)
    assert "5 conflicts" in p.stderr and "try: sbx apply demo a.txt" in p.stderr
    assert f"try: sbx cp demo:{inst.work}/a.txt a.txt.sandbox" in p.stderr
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert tree(inst.work) == {**before, "new": ("file", 0o644, b"new\n")}
    assert list((stage_of(inst) / "merged").iterdir()) == []
    inst.sbx("apply", "-y", "demo", "gone", check=0)
    assert (inst.work / "gone").read_text() == edit(1)


def test_a_file_that_sbx_removed_is_not_deleted_by_the_host(inst):
    create_repo(inst)
    send(inst, ("f/new", F, "", b"1\n"), ("x/a.txt", F, "", b""))
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert not (inst.work / "a.txt").exists()
    send(inst, ("f/new", F, "", b"1\n"), ("f/a.txt", F, "", b"again\n"))
    assert notes_of(inst) == {"a.txt": ("plain", None)}
    inst.sbx("undo", "demo", check=0)
    send(inst, ("f/new", F, "", b"1\n"), ("x/a.txt", F, "", b""))
    assert notes_of(inst) == {"new": ("plain", None), "a.txt": ("plain", None)}
    inst.sbx("apply", "-y", "demo", "new", check=0)
    (inst.work / "new").unlink()
    assert notes_of(inst)["new"] == ("conflict", "conflict: the host deleted the file")


def test_a_merge_is_applied_only_to_the_file_that_was_merged(inst):
    create_repo(inst)
    file = inst.work / "a.txt"
    file.write_text(edit(1, word="host"))
    send(inst, ("f/a.txt", F, "", edit(9).encode()))
    inst.sbx("review", "--list", "demo", check=0)
    file.write_text(edit(1, 2, word="host"))
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert file.read_text() == edit(1, 2, word="host")
    inst.sbx("review", "--list", "demo", check=0)
    saved, = (stage_of(inst) / "merged").iterdir()
    saved.write_bytes(saved.read_bytes().replace(b"guest 9", b"owned 9"))
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    assert file.read_text() == edit(1, 2, word="host")
    inst.sbx("review", "--list", "demo", check=0)
    inst.sbx("apply", "--all", "-y", "demo", check=0)
    merged = edit(9, text=edit(1, 2, word="host"))
    assert file.read_text() == merged
    # killed after its last step: the journal and the result of the merge are enough
    (stage_of(inst) / "undo/1/done").unlink()
    inst.sbx("apply", "--continue", "demo", check=0)
    assert file.read_text() == merged
    inst.sbx("undo", "demo", check=0)
    assert file.read_text() == edit(1, 2, word="host")


def test_a_merge_keeps_the_class_of_its_content(inst):
    odd = "od\nd \x1b[2Jname"
    marks = "<<<<<<< ours\nline 9\n=======\nx\n>>>>>>> theirs\n"
    create_repo(inst, **{"Makefile": LINES, odd: LINES, "marks": LINES, "run": LINES})
    for name in ("Makefile", odd, "marks", "run"):
        (inst.work / name).write_text(edit(1, word="host"))
    (inst.work / "run").chmod(0o600)
    marked = LINES.replace("line 9\n", marks)
    send(inst, ("f/Makefile", F, "", edit(9).encode()), ("f/" + odd, F, "", edit(9).encode()),
         ("f/marks", F, "", marked.encode()), ("f/run", F, "", edit(9).encode(), 0o755))
    found = notes_of(inst)
    assert found["Makefile"] == ("autorun", "merged: with the change on the host")
    assert found["run"] == ("exec-bit", "merged: with the change on the host")
    assert found["marks"] == ("merged", None)
    assert [c for n, c in found.items() if n.startswith("od")] == [("merged", None)]
    inst.sbx("apply", "--plain", "-y", "demo", check=0)
    assert (inst.work / odd).read_text() == edit(9, text=edit(1, word="host"))
    # marks in the text of the sandbox are text
    assert (inst.work / "marks").read_text() == marked.replace("line 1\n", "host 1\n")
    assert (inst.work / "Makefile").read_text() == edit(1, word="host")
    inst.sbx("apply", "-y", "demo", "run", check=0)
    assert stat.S_IMODE((inst.work / "run").stat().st_mode) == 0o755


def test_a_merge_runs_no_program_of_the_repository(inst):
    create_repo(inst, **{".gitattributes": "* merge=evil filter=evil diff=evil\n"})
    canary, script = inst.root / "canary", inst.root / "plant"
    script.write_text(f"#!/bin/sh\ntouch '{canary}'\n")
    script.chmod(0o755)
    for key in ("merge.evil.driver", "filter.evil.smudge", "filter.evil.clean", "core.fsmonitor",
                "diff.evil.textconv", "core.pager", "core.sshCommand", "core.alternateRefsCommand",
                "alias.merge-file"):
        git(inst, "config", key, f"!{script}" if key.startswith("alias") else script)
    git(inst, "config", "core.hooksPath", inst.root)
    git(inst, "config", "protocol.ext.allow", "always")
    git(inst, "config", "remote.evil.url", f"ext::{script}")
    git(inst, "config", "remote.evil.promisor", "true")
    git(inst, "config", "extensions.partialClone", "evil")
    blob = git(inst, "rev-parse", "HEAD:a.txt").strip()
    (inst.work / "a.txt").write_text(edit(1, word="host"))
    send(inst, ("f/a.txt", F, "", edit(9).encode()))
    assert notes_of(inst) == {"a.txt": ("merged", None)}
    # a missing object would be fetched from a promisor
    (inst.work / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    unknown = ("conflict", "conflict: the version before both changes is unknown")
    assert notes_of(inst) == {"a.txt": unknown}
    assert not canary.exists()
    subprocess.run([script], check=True)
    assert canary.exists(), "the canary cannot be seen"
