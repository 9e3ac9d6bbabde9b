# SPDX-License-Identifier: Apache-2.0
"""Templates from the command line, without a machine: a simulated sandbox has disks from
qemu-img."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from conftest import SBX, Installation, on_terminal
from test_staged import LINES, F, edit, send

MIB = 1 << 20
KEEPER = os.environ["SBX_TEST_REAL_KEEPER"]


def store(inst):
    return inst.root / "data/sbx/templates/.store"


def ids(inst):
    return sorted(p.name for p in store(inst).iterdir() if not p.name.startswith("."))


def listing(inst):
    return {t["name"]: t
            for t in json.loads(inst.sbx("template", "ls", "--json", check=0).stdout)["templates"]}


@pytest.fixture
def base(bare):
    """A template of the helper: a real ext4 would be no different here."""
    bare.policy()
    helper = bare.libexec / "template-build"
    helper.write_text("""#!/bin/sh
mkdir "$2" && cd "$2" || exit 1
head -c 300000 /dev/urandom > root.img && truncate -s 8M root.img && truncate -s 8M docker.img
printf x | dd of=docker.img bs=1 seek=100000 conv=notrunc 2>/dev/null
head -c 5000 /dev/urandom > vmlinuz; echo modules > modules.cpio
echo '{"name": "debian", "suite": "trixie", "kernel": "6.12", "packages": 3}' > manifest.json
""")
    helper.chmod(0o755)
    bare.sbx("template", "build", check=0)
    return bare


def give_disks(inst, name, text=b"tool"):
    """As a stopped sandbox has them: overlays on its template, with something written."""
    sandbox = json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)
    folder = inst.root / "state/sbx/sandboxes" / sandbox["id"]
    folder.mkdir(parents=True, exist_ok=True)
    template = store(inst) / sandbox["template_id"]
    for disk in ("root", "docker"):
        top = folder / f"{disk}.qcow2"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b",
                        template / f"{disk}.img", top, "8M"],
                       check=True)
        subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -P {text[0]} 1M 64k", top],
                       check=True, capture_output=True)
    return folder


def child(inst, name="child", sandbox="demo"):
    inst.create(sandbox)
    inst.sbx("stop", sandbox, check=0)
    give_disks(inst, sandbox)
    return inst.sbx("template", "save", sandbox, name, check=0)


def test_a_built_template_has_an_id_and_hashes(base):
    t = listing(base)["debian"]
    assert ids(base) == [t["id"]] and t["kind"] == "base" and t["suite"] == "trixie"
    assert all(len(f["hash"]) == 64 for f in t["files"].values())
    assert "debian" in base.sbx("template", "inspect", "debian", check=0).stdout
    again = base.sbx("template", "build", check=0).stdout
    assert "--force" in again


def test_a_sandbox_is_pinned_and_a_name_may_move_on(base):
    base.create("demo")
    old = listing(base)["debian"]["id"]
    assert json.loads(base.sbx("inspect", "demo", "--json", check=0).stdout)["template_id"] == old
    base.sbx("template", "build", "--force", check=0)
    new = listing(base)["debian"]["id"]
    assert old != new and ids(base) == sorted([old, new])
    base.sbx("rm", "-f", "demo", check=0)
    assert ids(base) == [new]


def test_a_template_is_saved_shares_its_base_and_outlives_its_parent(base):
    said = child(base)
    assert "Saved sandbox demo as template child" in said.stderr
    assert "--template child" in said.stderr
    t = listing(base)
    assert t["child"]["parent"] == "debian" and t["child"]["kind"] == "saved" and t["child"][
        "parent_id"] == t["debian"]["id"]
    assert "root.1.qcow2" in t["child"]["files"] and t["child"]["shared"] > 0
    a, b = (os.stat(store(base) / t[n]["id"] / "root.img") for n in ("debian", "child"))
    assert a.st_ino == b.st_ino and a.st_nlink == 2
    base.sbx("rm", "-f", "demo", check=0)
    base.sbx("template", "rm", "-f", "debian", check=0)
    assert list(listing(base)) == ["child"] and ids(base) == [t["child"]["id"]]
    assert "is intact" in base.sbx("template", "verify", check=0).stdout
    base.sbx("create", "shell", "--name", "second", "--template", "child", check=0)


def test_saving_twice_makes_two_layers_and_the_first_stays(base):
    child(base, "one")
    base.sbx("template", "save", "demo", "same", check=0)
    t = listing(base)
    assert t["one"]["id"] == t["same"]["id"]
    give_disks(base, "demo", b"more")
    base.sbx("template", "save", "demo", "two", check=0)
    assert "root.2.qcow2" in listing(base)["two"]["files"]


def test_removing_and_replacing_a_template_asks(base):
    child(base, "one")
    before = listing(base)["one"]["id"]
    give_disks(base, "demo", b"more")
    p = base.sbx("template", "save", "demo", "one", check=1)
    assert "already exists" in p.stderr and "try: sbx template save --force demo one" in p.stderr
    p = base.sbx("template", "rm", "one", check=1)
    assert "try: sbx template rm --force one" in p.stderr
    for args in (["template", "rm", "one"], ["template", "save", "demo", "one"]):
        out, status = on_terminal(base, args, b"n\n")
        assert status == 1 and "[y/N]" in out, out
    assert listing(base)["one"]["id"] == before
    base.sbx("template", "save", "--force", "demo", "one", check=0)
    assert listing(base)["one"]["id"] != before
    out, status = on_terminal(base, ["template", "rm", "one"], b"y\n")
    assert status == 0 and "one" not in listing(base)


def test_flat_is_one_file_with_the_same_content(base):
    child(base, "layers")
    base.sbx("template", "save", "demo", "flat", "--flat", check=0)
    t = listing(base)
    assert sorted(t["flat"]["files"]) == ["docker.img", "modules.cpio", "root.img", "vmlinuz"]
    folder = store(base) / t["layers"]["id"]
    chain = json.dumps({"driver": "qcow2",
                        "file": {"driver": "file", "filename": str(folder / "root.1.qcow2")},
                        "backing": {
        "driver": "raw", "file": {"driver": "file", "filename": str(folder / "root.img")}}})
    subprocess.run(["qemu-img", "compare", "-q", f"json:{chain}",
                    store(base) / t["flat"]["id"] / "root.img"], check=True)
    assert sorted(p.name for p in (store(base) / t["flat"]["id"]).iterdir()) == [
        "docker.img", "manifest.json", "modules.cpio", "root.img", "stamps.json", "vmlinuz"]


def test_a_file_carries_it_to_another_installation(base, tmp_path):
    child(base)
    file = tmp_path / "child.sbx"
    base.sbx("template", "save", "child", "-o", file, check=0)
    again = base.sbx("template", "save", "child", "-o", "-", check=0, binary=True).stdout
    assert file.read_bytes() == again
    (tmp_path / "other").mkdir()
    other = Installation(tmp_path / "other")
    try:
        assert "Loaded template child" in other.sbx("template", "load", file, check=0).stdout
        assert listing(other)["child"]["id"] == listing(base)["child"]["id"]
        assert {n: f["hash"] for n, f in listing(other)["child"]["files"].items()} == {
            n: f["hash"] for n, f in listing(base)["child"]["files"].items()}
        data = bytearray(again)
        data[len(data) // 2] ^= 1
        p = other.sbx("template", "load", "-", "bad", input=bytes(data), check=1)
        assert "corrupt" in p.stderr and "sbx template save" in p.stderr
        assert list(listing(other)) == ["child"] and len(ids(other)) == 1
    finally:
        other.close()


@pytest.mark.parametrize("file", ["root.img", "root.1.qcow2", "vmlinuz"])
def test_a_changed_file_is_refused_with_the_command_to_type(base, file):
    child(base)
    t = listing(base)["child"]
    path = store(base) / t["id"] / file
    path.chmod(0o600)
    with open(path, "r+b") as f:
        f.seek(4321)
        byte = f.read(1)
        f.seek(4321)
        f.write(bytes([byte[0] ^ 1]))
    p = base.sbx("create", "shell", "--name", "second", "--template", "child", check=1)
    assert file in p.stderr and "sbx template rm child" in p.stderr
    assert file in base.sbx("template", "verify", "child", check=1).stderr
    with open(path, "r+b") as f:
        f.truncate(1000)
    p = base.sbx("create", "shell", "--name", "second", "--template", "child", check=1)
    assert "original size" in p.stderr


def test_what_is_wrong_is_said(base):
    assert "sbx template ls" in base.sbx("template", "inspect", "nothing", check=1).stderr
    assert "template 'nothing' not found" in base.sbx("template", "rm", "nothing", check=1).stderr
    assert "no sandbox" in base.sbx("template", "save", "nothing", "x", check=1).stderr
    base.create("demo")
    assert "invalid template name 'a/b'" in base.sbx(
        "template", "save", "demo", "a/b", check=1).stderr
    assert "-o FILE" in base.sbx("template", "save", "demo", check=2).stderr
    assert "sbx template save demo demo-template -o x" in base.sbx("template", "save", "demo", "-o",
                                                                   "x", check=1).stderr
    assert "No such file" in base.sbx("template", "load", "nowhere", check=1).stderr
    assert "template 'x' not found" in base.sbx(
        "create", "shell", "--template", "x", check=1).stderr


def named(blob, name):
    """The same file with another name in its manifest: what a stranger can write."""
    n = int.from_bytes(blob[8:12], "little")
    manifest = json.loads(blob[12:12 + n])
    manifest.update(name=name, loaded=False)
    text = json.dumps(manifest, separators=(",", ":"), sort_keys=True).encode()
    body = blob[:8] + len(text).to_bytes(4, "little") + text + blob[12 + n:-32]
    return body + hashlib.sha256(body).digest()


@pytest.fixture
def stranger(base, tmp_path):
    """A template file of another installation, with the given name."""
    child(base)
    blob = base.sbx("template", "save", "child", "-o", "-", check=0, binary=True).stdout
    base.sbx("rm", "-f", "demo", check=0)
    base.sbx("template", "rm", "-f", "child", check=0)

    def make(name):
        path = tmp_path / "tools.sbx"
        path.write_bytes(named(blob, name))
        return path
    return make


@pytest.mark.parametrize("name", ["debian", "claude"])
def test_a_loaded_file_takes_no_name_that_means_something_else(base, stranger, name):
    before = listing(base)
    p = base.sbx("template", "load", stranger(name), check=1)
    assert (f"'{name}'" in p.stderr and f"sbx template load {stranger(name)} {name}-loaded"
            in p.stderr)
    assert listing(base) == before and ids(base) == [before["debian"]["id"]]
    if name == "debian":
        assert before["debian"]["id"] in p.stderr
    # Typed, it is the user's own wish.
    assert f"Loaded template {name} " in base.sbx("template", "load", stranger("x"), name,
                                                  check=0).stdout
    assert listing(base)[name]["id"] != before["debian"]["id"]


def test_a_loaded_file_with_an_existing_name_asks_with_both_ids(base, stranger):
    base.sbx("template", "load", stranger("tools"), check=0)
    old = listing(base)["debian"]["id"]
    new = listing(base)["tools"]["id"]
    screen = on_terminal(base, ["template", "load", stranger("debian")], b"n\n")[0]
    assert old in screen and new in screen and "[y/N]" in screen
    assert listing(base)["debian"]["id"] == old
    assert f"Loaded template debian ({new})" in on_terminal(base,
                                                            ["template", "load",
                                                             stranger("debian")], b"y\n")[0]
    assert listing(base)["debian"]["id"] == new


def test_an_image_on_a_loaded_base_is_marked_as_loaded(base, stranger):
    """Kernel, modules and Docker's disk of such a template are the stranger's."""
    helper = base.libexec / "template-oci"
    helper.write_text("""#!/bin/sh
while [ "$1" != --out ]; do shift; done
mkdir "$2" && cd "$2" || exit 1
for f in root.img docker.img vmlinuz modules.cpio; do head -c 8192 /dev/urandom > $f; done
echo '{"kind": "oci", "image": "x", "digest": "sha256:00",
       "docker": true, "sudo": "own"}' > facts.json
""")
    helper.chmod(0o755)
    base.sbx("template", "build", "--image", "oci:x", "before", check=0)
    assert listing(base)["before"]["loaded"] is False
    base.sbx("template", "load", stranger("x"), "debian", check=0)
    base.sbx("template", "build", "--image", "oci:x", "after", check=0)
    assert listing(base)["after"]["loaded"] is True and listing(base)["after"]["kind"] == "oci"
    assert "Template 'after' was loaded from a file" in base.sbx("create", "shell", "--name",
                                                                 "second", "--template", "after",
                                                                 check=0).stderr


def test_the_name_that_was_given_is_shown(base, stranger):
    base.sbx("template", "load", stranger("imp"), check=0)
    said = base.sbx("template", "load", stranger("second"), check=0).stdout
    assert "Loaded template second " in said and "--template second" in said
    # The same content under the same name changes nothing.
    base.sbx("template", "load", stranger("second"), check=0)


def test_what_was_loaded_is_remembered_and_shown(base, stranger):
    base.sbx("template", "load", stranger("tools"), check=0)
    assert listing(base)["tools"]["loaded"] is True and listing(base)["debian"]["loaded"] is False
    line = next(t for t in base.sbx("template", "ls", check=0).stdout.splitlines()
                if t.startswith("tools"))
    assert "saved (loaded)" in line
    p = base.sbx("create", "shell", "--name", "second", "--template", "tools", check=0)
    assert "Template 'tools' was loaded from a file" in p.stderr
    assert "loaded from a file" not in base.sbx("create", "shell", "--name", "third",
                                                check=0).stderr


def test_a_dockerfile_is_built_without_credentials_and_beyond_the_policy(base, tmp_path):
    """The build of a stranger's Dockerfile had the user's credentials and any mirror that its base
    template named."""
    (tmp_path / "Dockerfile").write_text("FROM sbx/debian\nRUN true\n")
    build = subprocess.Popen([SBX, "template", "build", "--file", tmp_path / "Dockerfile",
                              "--allow-network", "files.example:443,b.example",
                              "--allow-network", "c.example", "mine"], env=base.env, cwd=base.work,
                             stderr=subprocess.PIPE, text=True)
    spec = None
    while build.poll() is None:
        for path in (base.root / "state/sbx/specs").glob("*/spec.json"):
            with contextlib.suppress(OSError, ValueError):
                spec = json.loads(path.read_text())
        time.sleep(0.002)
    said = build.communicate()[1]
    assert spec and spec["name"].startswith("template-build-"), said
    assert {"files.example:443", "b.example", "c.example"} < set(spec["only"])
    mirrors = set(spec["only"]) - {"files.example:443", "b.example", "c.example"}
    assert "template-build.invalid:443" in mirrors  # so that the list is never empty
    assert all(re.fullmatch(r"[A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9-]*:(80|443)", m) for m in mirrors), (
        mirrors)
    assert spec["workspaces"][0][
        "ro"] and "The build can reach files.example:443,b.example." in said
    assert "template-build" not in base.sbx("policy", "ls", "--json", check=0).stdout
    assert base.sbx("ls", "-q", check=0).stdout == ""


def test_a_link_among_left_over_folders_is_left_alone(tmp_path):
    """Another user's link in /var/tmp to a directory of the user: chmod followed it."""
    script = (pathlib.Path(__file__).resolve().parents[2] / "image/template-build").read_text()
    parts = [re.search(rf"(?ms)^{name}\(\) \{{.*?^\}}", script).group(0)
             for name in ("alive", "remove_scratch", "remove_stale")]
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "tmp").mkdir(mode=0o700)
    (tmp_path / "sbx-template.999999.x").symlink_to(victim)
    left = tmp_path / "sbx-template.999999.y"
    (left / "tmp").mkdir(parents=True)
    subprocess.run(["bash", "-c",
                    "mmdebstrap() { :; }; say() { :; }; remove_work() { :; }\n"
                    + "\n".join(parts).replace("/var/tmp", str(tmp_path)) +
                    f"\nout={tmp_path}/out scratch_in={tmp_path}; remove_stale"], check=True)
    assert victim.stat().st_mode & 0o777 == 0o700 and (victim / "tmp").exists()
    assert not left.exists(), "the control: what is left over goes"


def test_a_step_that_ends_leaves_no_process_that_writes(tmp_path):
    """The program that unpacked an image was killed, and its child still wrote into the directory
    during the removal: the directory remained."""
    common = (pathlib.Path(__file__).resolve().parents[2] / "image/common").read_text()
    parts = [re.search(rf"(?ms)^{name}\(\) \{{.*?^\}}", common).group(0)
             for name in ("end_job", "run")]
    late = tmp_path / "late"
    done = subprocess.run(["bash", "-c", "set -eu; job=''\n" + "\n".join(parts) +
                           f"\nrun bash -c '(sleep 1; echo late >{late}) & exit 7'"], check=False,
                          timeout=30)
    assert done.returncode == 7
    time.sleep(1.5)
    assert not late.exists()


# ---- forks ----

def inspect(inst, name):
    return json.loads(inst.sbx("inspect", name, "--json", check=0).stdout)


def own_rules(inst, name):
    rules = json.loads(inst.sbx("policy", "ls", "--json", check=0).stdout)["rules"]
    return sorted(r["text"].rsplit(" for sandbox ", 1)[0] for r in rules
                  if r["scope"] == f"sandbox:{name}")


@pytest.fixture
def source(base):
    """A stopped sandbox with disks, a workspace, a port and rules."""
    base.create("demo", ".", "--hide", ".env", "--guard", "strict", "-e", "WORD=one",
                "--allow-network", "a.example", "--deny-network", "b.example", "-p", "8080")
    base.sbx("stop", "demo", check=0)
    give_disks(base, "demo")
    return base


def test_forks_share_layers_and_have_the_settings_of_their_source(source):
    p = source.sbx("fork", "demo", "try", "--n", "2", check=0)
    assert p.stdout == "Created sandbox 'try-1' from 'demo'\nCreated sandbox 'try-2' from 'demo'\n"
    demo, one, two = (inspect(source, n) for n in ("demo", "try-1", "try-2"))
    assert one["status"] == two["status"] == "running" and demo["status"] == "stopped"
    for key in ("agent", "cpus", "memory", "disk", "accel", "workspaces", "hide", "guard", "env"):
        assert one[key] == demo[key] and two[key] == demo[key], key
    assert one["ports"] == [] and demo["ports"], "a host port has one sandbox"
    assert own_rules(source, "try-1") == own_rules(source, "try-2") == own_rules(source, "demo")
    assert own_rules(source, "demo") == ["allow network a.example", "deny network b.example"]
    assert one["template_id"] == two["template_id"] != demo["template_id"]
    assert one["id"] != two["id"]
    assert list(listing(source)) == ["debian"], "the name of the layers is left"
    layer = store(source) / one["template_id"] / "root.1.qcow2"
    mine = source.root / "state/sbx/sandboxes" / demo["id"] / "root.1.qcow2"
    assert os.stat(layer).st_ino == os.stat(mine).st_ino, "the layer was copied"


def test_a_removed_source_or_fork_leaves_the_others_their_layers(source):
    source.sbx("fork", "demo", "try", "--n", "2", check=0)
    shared = inspect(source, "try-1")["template_id"]
    source.sbx("rm", "-f", "demo", "try-2", check=0)
    source.sbx("template", "rm", "-f", "debian", check=0)
    assert ids(source) == [shared]
    source.sbx("stop", "try-1", check=0)
    source.sbx("start", "try-1", check=0)
    source.sbx("rm", "-f", "try-1", check=0)
    assert ids(source) == []


@pytest.mark.parametrize("args, status, said", [
    (("demo", "demo"), 1, "a sandbox named demo already exists"),
    (("demo", "Bad/Name"), 2, "name"), (("gone", "x"), 1, "no sandbox named gone"),
    (("demo", "x", "--n", "0"), 2, "invalid --n '0': expected 1 to 16"),
    (("demo", "x", "--n", "17"), 2, "invalid --n '17'"), (("demo",), 2, "usage")])
def test_a_wrong_fork_changes_nothing(source, args, status, said):
    at = source.root / "state/sbx/sandboxes" / inspect(source, "demo")["id"]
    assert said in source.sbx("fork", *args, check=status).stderr
    assert not (at / "root.1.qcow2").exists() and ids(source) == [listing(source)["debian"]["id"]]


def test_a_fork_that_does_not_start_leaves_no_template(source):
    (source.libexec / "sbx-keeper").unlink()
    assert source.sbx("fork", "demo", "new", check=1).stderr
    assert list(listing(source)) == ["debian"]
    assert [s["name"] for s in json.loads(
        source.sbx("ls", "--json", check=0).stdout)["sandboxes"]] == ["demo"]


def test_a_fork_of_a_staged_sandbox_knows_what_its_source_knew(base):
    """Which files the host has changed, and which contents are from an apply."""
    for name in ("a.txt", "b.txt", "c.txt"):
        (base.work / name).write_text(LINES)
    time.sleep(0.02)
    base.create("demo", base.work, "--staged")
    first = [(f"f/{name}.txt", F, "", edit(9).encode()) for name in "abc"]
    send(base, *first)
    base.sbx("review", "--list", "demo", check=0)
    base.sbx("apply", "-y", "demo", "b.txt", check=0)
    (base.work / "a.txt").write_text(edit(1, word="host"))
    base.sbx("stop", "demo", check=0)
    give_disks(base, "demo")
    base.sbx("fork", "demo", "try", check=0)
    base.sbx("stop", "try", check=0)
    give_disks(base, "try")
    base.sbx("fork", "try", "again", check=0)
    since = {inspect(base, name)["staged_since"] for name in ("try", "again")}
    assert len(since) == 1 and None not in since, "a fork of a fork forgets the first source"

    send(base, first[0], ("f/b.txt", F, "", edit(5, 9).encode()), first[2])
    for fork in ("try", "again"):
        said = base.sbx("review", "--list", fork, check=0).stdout
        assert "  merged       changed  a.txt\n" in said, "the host's change would be overwritten"
        assert "  plain        changed  b.txt\n" in said, "the apply is a change of the host"
    base.sbx("apply", "--plain", "-y", "try", check=0)
    assert (base.work / "a.txt").read_text() == edit(9, text=edit(1, word="host"))
    said = base.sbx("review", "--list", "again", check=0).stdout
    assert "c.txt" not in said and "plain        changed  b.txt" not in said, said
    base.sbx("undo", "try", check=0)
    assert (base.work / "a.txt").read_text() == edit(1, word="host")
    assert (base.work / "b.txt").read_text() == edit(9)
    assert base.sbx("undo", "try", check=1).stderr, "the fork undoes an apply of its source"


def test_a_fork_waits_for_no_review_and_no_broken_apply(base):
    (base.work / "a.txt").write_text("a\n")
    base.create("demo", base.work, "--staged")
    stage = base.root / "state/sbx/sandboxes" / inspect(base, "demo")["id"] / "stage"
    (stage / "undo/1").mkdir(parents=True)
    with open(stage / "lock", "w", encoding="utf-8") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "or fork of sandbox 'demo' is running" in base.sbx(
            "fork", "demo", "try", check=1).stderr
    (stage / "undo/1/journal").write_text("")
    assert "sbx apply --continue demo" in base.sbx("fork", "demo", "try", check=1).stderr
    assert ids(base) == [listing(base)["debian"]["id"]]


# ---- removed checkpoints ----

def content(inst, folder, disk, *layers):
    """What a guest sees of a chain."""
    sandbox = json.loads((folder / "about").read_text())
    below = {"driver": "raw", "file": {"driver": "file", "filename": str(
        store(inst) / sandbox["template_id"] / f"{disk}.img")}}
    for layer in layers:
        below = {"driver": "qcow2", "backing": below,
                 "file": {"driver": "file", "filename": str(folder / layer)}}
    out = inst.root / "flat"
    subprocess.run(["qemu-img", "convert", "-U", "-O", "raw", "json:" + json.dumps(below), out],
                   check=True)
    return hashlib.sha256(out.read_bytes()).hexdigest()


def write(folder, top, *commands):
    args = [a for c in commands for a in ("-c", c)]
    subprocess.run(["qemu-io", "-f", "qcow2", *args, folder / top], check=True, capture_output=True)


@pytest.fixture
def deep(base):
    """A stopped sandbox with the checkpoints c1 to c3 and a top, as qemu writes them."""
    base.create("demo")
    base.sbx("stop", "demo", check=0)
    folder = give_disks(base, "demo")
    (folder / "about").write_text(json.dumps(inspect(base, "demo")))
    image = (folder / "root.qcow2").read_bytes(), (folder / "docker.qcow2").read_bytes()
    for n, name in enumerate(("1.", "2.", "3.", "")):
        for disk, data in zip(("root", "docker"), image):
            (folder / f"{disk}.{name}qcow2").write_bytes(data)
            # data, zeros over data of the base and of a layer, part of a cluster, a discard
            write(folder, f"{disk}.{name}qcow2", f"write -P {n + 1} {n}M 128k",
                  f"write -z {64 * n}k 64k", f"write -P {n + 9} {5000 + n}k 3k",
                  f"discard {n + 3}M 64k")
    entry = {"created_at": 1, "seq": 1, "bytes": 1, "pause_ms": 1}
    (folder / "checkpoints").write_text(json.dumps({"checkpoints": [
        {**entry, "label": f"c{n}", "layers": {"root": n, "docker": n}} for n in (1, 2, 3)]}))
    base.folder = folder
    return base


def chain(inst, disk):
    return [f"{disk}.{n}.qcow2" for n in (1, 2, 3)
            if (inst.folder / f"{disk}.{n}.qcow2").exists()] + [f"{disk}.qcow2"]


def test_a_removed_checkpoint_frees_a_layer_and_changes_no_content(deep):
    before = {disk: {n: content(deep, deep.folder, disk, *chain(deep, disk)[:n])
                     for n in (1, 2, 3, 4)} for disk in ("root", "docker")}
    inode = os.stat(deep.folder / "root.2.qcow2").st_ino
    os.link(deep.folder / "root.2.qcow2", deep.root / "of-a-template")
    kept = (deep.root / "of-a-template").read_bytes()
    p = deep.sbx("checkpoint", "--rm", "c1", "demo", check=0)
    assert p.stdout == "Checkpoint 'c1' of sandbox 'demo' removed\n"
    for disk in ("root", "docker"):
        assert chain(deep, disk) == [f"{disk}.2.qcow2", f"{disk}.3.qcow2", f"{disk}.qcow2"]
        for n in (1, 2, 3):
            assert content(deep, deep.folder, disk, *chain(deep, disk)[:n]) == before[disk][n + 1]
    assert os.stat(deep.folder / "root.2.qcow2").st_ino != inode
    assert (deep.root / "of-a-template").read_bytes() == kept, "a shared layer was written"
    deep.sbx("checkpoint", "--rm", "c2", "demo", check=0)
    assert chain(deep, "root") == ["root.3.qcow2", "root.qcow2"]
    assert content(deep, deep.folder, "root", "root.3.qcow2", "root.qcow2") == before["root"][4]
    left = sorted(p.name for p in deep.folder.iterdir() if "qcow2" in p.name)
    assert left == ["docker.3.qcow2", "docker.qcow2", "root.3.qcow2", "root.qcow2"]


def merge(inst, root="", docker=""):
    """What sbxd starts after the sandbox has stopped."""
    return subprocess.run(
        [KEEPER, "--merge", f"--state={inst.root}/state/sbx", "--id", inst.folder.name, "--root",
         root, "--docker", docker], env=inst.env, capture_output=True, text=True, timeout=120)


def test_the_merge_after_a_stop_changes_no_content(deep):
    before = {disk: content(deep, deep.folder, disk, *chain(deep, disk))
              for disk in ("root", "docker")}
    top = os.stat(deep.folder / "root.qcow2")
    p = merge(deep, "1,2", "2")
    assert p.returncode == 0, p.stderr
    assert chain(deep, "root") == ["root.3.qcow2", "root.qcow2"]
    assert chain(deep, "docker") == ["docker.1.qcow2", "docker.3.qcow2", "docker.qcow2"]
    for disk in ("root", "docker"):
        assert content(deep, deep.folder, disk, *chain(deep, disk)) == before[disk]
    now = os.stat(deep.folder / "root.qcow2")
    assert (now.st_mtime_ns, now.st_size) == (top.st_mtime_ns, top.st_size), "of a suspend"


def test_a_merge_needs_the_lock_and_a_valid_list(deep):
    for bad in ("x", "1;2", "0", "10000", "-1"):
        assert "invalid list of layers" in merge(deep, bad).stderr
    with open(deep.folder / "lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert merge(deep, "1").returncode == 75
    assert len(chain(deep, "root")) == 4


def test_a_merge_that_fails_changes_no_disk(deep):
    before = content(deep, deep.folder, "root", *chain(deep, "root"))
    broken = (deep.folder / "docker.2.qcow2")
    broken.write_bytes(b"not an image")
    p = deep.sbx("checkpoint", "--rm", "c1", "demo", check=1)
    assert "cannot merge" in p.stderr, p.stderr
    assert chain(deep, "docker")[:2] == ["docker.1.qcow2", "docker.2.qcow2"]
    assert broken.read_bytes() == b"not an image"
    assert content(deep, deep.folder, "root", *chain(deep, "root")) == before


def test_a_wrong_removal_is_refused(deep):
    for args, status, said in (
            (("--rm", "gone", "demo"), 1, "no checkpoint 'gone'"),
            (("--rm", "c1", "demo", "x"), 2, "take only SANDBOX"),
            (("--rm", "c1", "--ls", "demo"), 2, "take only SANDBOX")):
        p = deep.sbx("checkpoint", *args, check=status)
        assert said in p.stderr and "try:" in p.stderr, p.stderr
    assert len(chain(deep, "root")) == 4
