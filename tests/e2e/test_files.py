# SPDX-License-Identifier: Apache-2.0
"""The workspace: one directory, two machines, the same files."""
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import time
import uuid

import pytest

from installation import private

DESCRIPTORS, FILES = 1000, 1600  # limit of a process, number of files


@pytest.fixture
def folder(sandbox, request):
    """A directory of the workspace for one test."""
    path = sandbox.workspace / f"{request.function.__name__}-{uuid.uuid4().hex[:6]}"
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("user", ["agent", "root"])
def test_made_in_the_guest_belongs_to_the_host_user(sandbox, folder, user):
    for mode in ("600", "640", "644", "755", "400"):
        sandbox.guest(f"cd '{folder}' && umask 0 && echo x > f{mode} && chmod {mode} f{mode}",
                      user=user)
        st = (folder / f"f{mode}").stat()
        assert (st.st_uid, st.st_gid) == (os.getuid(), os.getgid())
        assert stat.S_IMODE(st.st_mode) == int(mode, 8)
    sandbox.guest(f"umask 027; mkdir '{folder}/d'", user=user)
    st = (folder / "d").stat()
    assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (os.getuid(), 0o750)


def test_made_on_the_host_belongs_to_agent(sandbox, folder):
    for mode in (0o600, 0o644, 0o755):
        path = folder / f"h{mode:o}"
        path.write_text("x")
        path.chmod(mode)
        assert sandbox.guest(f"stat -c '%U %a' '{path}'") == f"agent {mode:o}"
    assert sandbox.exec("sh", "-c", f"echo more >> '{folder}/h600'").returncode == 0
    assert (folder / "h600").read_text() == "xmore\n"


def test_guest_root_cannot_give_files_away_or_make_devices(sandbox, folder):
    path = folder / "f"
    path.write_text("x")
    sandbox.guest(
        f"chown 12345:12345 '{path}'; mknod '{folder}/dev' b 8 0; mknod '{folder}/chr' c 1 3",
        check=False)
    assert path.stat().st_uid == os.getuid()
    for name in ("dev", "chr"):
        at = folder / name
        assert not at.exists() or not (stat.S_ISBLK(at.lstat().st_mode)
                                       or stat.S_ISCHR(at.lstat().st_mode))


def test_links(sandbox, folder):
    (folder / "a").write_text("x")
    (folder / "sym-host").symlink_to("a")
    sandbox.guest(f"cd '{folder}' && ln a hard && ln -s a sym-guest && ln -s /no/where dangling",
                  user="agent")
    assert os.readlink(folder / "sym-guest") == "a"
    assert os.readlink(folder / "dangling") == "/no/where"
    assert (folder / "hard").stat().st_ino == (folder / "a").stat().st_ino
    assert (folder / "a").stat().st_nlink == 2
    assert sandbox.guest(f"readlink '{folder}/sym-host'; stat -c %h '{folder}/a'") == "a\n2"


def test_times_are_exact(sandbox, folder):
    path = folder / "f"
    path.write_text("x")
    ns = 1234567890_123456789
    os.utime(path, ns=(ns, ns))
    assert sandbox.guest(f"stat -c %.9Y '{path}'") == "1234567890.123456789"
    sandbox.guest(f"touch -d '2015-05-05 05:05:05.050505050 UTC' '{path}'", user="agent")
    assert path.stat().st_mtime_ns == 1430802305_050505050


TAKE_LOCK = ("import fcntl,sys\nf=open(sys.argv[1],'r+')\n"
             "try: fcntl.{0}(f, fcntl.LOCK_EX|fcntl.LOCK_NB)\n"
             "except BlockingIOError: sys.exit(3)\n"
             "print('locked',flush=True)\nsys.stdin.read()\n")
WAIT_LOCK = (
    "import fcntl,sys\nf=open(sys.argv[1],'r+')\nfcntl.{0}(f, fcntl.LOCK_EX)\nprint('mine')\n")


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_locks_hold_between_processes_of_the_guest(sandbox, folder, kind):
    """One holds it, one is refused, one waits for it."""
    path = folder / "lock"
    path.write_text("x")
    holder = sandbox.env.popen("exec", "-i", sandbox.name, "python3", "-c", TAKE_LOCK.format(kind),
                               path,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiter = None
    try:
        assert holder.stdout.readline() == b"locked\n"
        refused = sandbox.exec("python3", "-c", TAKE_LOCK.format(kind), path, check=False)
        assert refused.returncode == 3, refused.stderr
        waiter = sandbox.env.popen("exec", sandbox.name, "python3", "-c", WAIT_LOCK.format(kind),
                                   path,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            waiter.wait(2)
        holder.stdin.close()
        assert holder.wait(30) == 0
        assert waiter.stdout.read() == b"mine\n" and waiter.wait(30) == 0
    finally:
        for p in (holder, waiter):
            if p:
                p.kill()
                p.wait()


@pytest.mark.parametrize("name",
                         ["with space", "new\nline", "tab\there", "-dash", "é-ü-漢", "q'uote\"",
                          "x" * 255])
def test_names(sandbox, folder, name):
    (folder / name).write_text("from host")
    assert sandbox.exec("cat", f"{folder}/{name}").stdout == "from host"
    sandbox.exec("mv", f"{folder}/{name}", f"{folder}/moved")
    assert (folder / "moved").read_text() == "from host"


def test_large_file_both_ways(sandbox, folder):
    data = os.urandom(1 << 20) * 64
    (folder / "down").write_bytes(data)
    want = hashlib.sha256(data).hexdigest()
    assert sandbox.exec("sha256sum", f"{folder}/down").stdout.split()[0] == want
    sandbox.exec("cp", f"{folder}/down", f"{folder}/up")
    assert hashlib.sha256((folder / "up").read_bytes()).hexdigest() == want


def test_changes_are_seen_at_once(sandbox, folder):
    path = folder / "f"
    for i in range(20):
        path.write_text(f"host {i} {'x' * i}\n")
        assert sandbox.guest(f"cat '{path}'", user="agent") == f"host {i} {'x' * i}"
        sandbox.guest(f"echo guest {i} > '{path}'", user="agent")
        assert path.read_text() == f"guest {i}\n"


def git(folder, *args):
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=t", "-c",
                           "user.email=t@example.org", *args],
                          check=True, capture_output=True, text=True).stdout


GUEST_GIT = "git -c user.name=t -c user.email=t@example.org"


# Looks without pause, so that what it sees is what is cached; the time is the guest's own, from its
# last look without the change.
WATCH = r"""
import os, sys, time
kind, path, want = sys.argv[1:]
def look():
    try:
        if kind == 'content': return open(path).read()
        if kind == 'size': return str(os.stat(path).st_size)
        return str(os.path.exists(path))
    except OSError as e: return 'errno %d' % e.errno
print(look(), flush=True)
end = time.monotonic() + 15
while time.monotonic() < end:
    if look() == want:
        print('seen', flush=True)
        break
"""


@pytest.mark.parametrize("kind", ["content", "size", "new", "deletion", "rename"])
def test_an_edit_of_the_host_is_seen_within_a_second(env, sandbox, folder, kind):
    """Also if the guest has just read the file, and keeps reading. One try in three may be late
    because of other load on the machine."""
    took = []
    for i in range(3):
        a, b = folder / f"{kind}{i}", folder / f"{kind}{i}.new"
        a.write_text("before")
        how, path, want, edit = {
            "content": ("content", a, "afterw", lambda: a.write_text("afterw")),
            "size": ("size", a, "4000", lambda: a.write_text("x" * 4000)),
            "new": ("exists", b, "True", b.touch),
            "deletion": ("exists", a, "False", a.unlink),
            "rename": ("exists", b, "True", lambda: a.rename(b)),
        }[kind]
        with env.popen("exec", "-i", sandbox.name, "python3", "-c", WATCH, how, path, want,
                       stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, text=True) as watcher:
            try:
                assert watcher.stdout.readline().strip() != want
                time.sleep(0.2 + 0.3 * i)
                edit()
                begin = time.monotonic()
                assert watcher.stdout.readline().strip() == "seen", "not within 15 s"
                took.append(time.monotonic() - begin)
            finally:
                watcher.kill()
    assert sorted(took)[1] <= 1.0 and max(took) <= 3.0, took


def test_git_is_clean_on_both_sides(sandbox, folder):
    git(folder, "init", "-q")
    (folder / "one").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    assert sandbox.exec("git", "-C", folder, "status", "--porcelain").stdout == ""
    sandbox.guest(f"cd '{folder}' && echo 2 > two && git add two && {GUEST_GIT} commit -qm two",
                  user="agent")
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%s").split() == ["two", "one"]
    git(folder, "fsck", "--strict")
    assert sandbox.exec("git", "-C", folder, "status", "--porcelain").stdout == ""


def test_a_thousand_small_files(sandbox, folder):
    sandbox.guest(f"cd '{folder}' && for i in $(seq 500); do echo $i > g$i; done", user="agent",
                  timeout=120)
    for i in range(1, 501):
        (folder / f"h{i}").write_text(f"{i}\n")
    assert sorted(int(p.read_text()) for p in folder.glob("g*")) == list(range(1, 501))
    assert sandbox.guest(f"cat '{folder}'/h* | sort -n | sha256sum", user="agent").split()[0] == \
        hashlib.sha256("".join(f"{i}\n" for i in range(1, 501)).encode()).hexdigest()


# sbx cp

def test_cp_file_both_ways(env, sandbox, tmp_path):
    data = os.urandom(300000)
    (tmp_path / "in").write_bytes(data)
    (tmp_path / "in").chmod(0o750)
    env.sbx("cp", tmp_path / "in", f"{sandbox.name}:/home/agent/copied")
    assert sandbox.guest("stat -c '%a %U' /home/agent/copied") == "750 agent"
    env.sbx("cp", f"{sandbox.name}:/home/agent/copied", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data


def test_cp_folder_both_ways(env, sandbox, tmp_path):
    src = tmp_path / "tree"
    (src / "deep" / "er").mkdir(parents=True)
    (src / "deep" / "er" / "f").write_text("x")
    (src / "link").symlink_to("deep/er/f")
    env.sbx("cp", src, f"{sandbox.name}:/home/agent/tree")
    assert sandbox.guest(
        "readlink /home/agent/tree/link; cat /home/agent/tree/deep/er/f") == "deep/er/f\nx"
    env.sbx("cp", f"{sandbox.name}:/home/agent/tree", tmp_path / "back")
    assert (tmp_path / "back" / "deep" / "er" / "f").read_text() == "x"
    assert os.readlink(tmp_path / "back" / "link") == "deep/er/f"


def test_cp_follows_the_source_itself_with_L(env, sandbox, tmp_path):
    sandbox.guest("echo x > ~agent/target; ln -sf target ~agent/alias")
    env.sbx("cp", f"{sandbox.name}:/home/agent/alias", tmp_path / "kept")
    env.sbx("cp", "-L", f"{sandbox.name}:/home/agent/alias", tmp_path / "followed")
    assert os.readlink(tmp_path / "kept") == "target"
    assert (tmp_path / "followed").read_text() == "x\n" and not (tmp_path / "followed").is_symlink()


def test_cp_out_never_writes_outside_the_destination(env, sandbox, tmp_path):
    """CVE-2026-17106: a link in what the guest sends led the copy out of its destination."""
    outside = tmp_path / "outside"
    outside.mkdir()
    sandbox.guest(
        f"mkdir -p /tmp/evil && ln -s '{outside}' /tmp/evil/way && ln -s / /tmp/evil/root "
                  "&& ln -s ../.. /tmp/evil/up")
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest" / "evil").symlink_to(outside)
    env.sbx("cp", f"{sandbox.name}:/tmp/evil", tmp_path / "dest", check=False)
    env.sbx("cp", f"{sandbox.name}:/tmp/evil/way", tmp_path / "dest", check=False)
    assert list(outside.iterdir()) == []


def test_cp_refuses_what_it_does_not_do(env, sandbox):
    assert env.sbx("cp", f"{sandbox.name}:/no/such", "/tmp/x", check=False).returncode != 0


@pytest.fixture(scope="module")
def few_descriptors():
    """An installation on a host with this limit of descriptors per process."""
    with private(prefix=("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")) as made:
        yield made


@pytest.mark.parametrize("flags", [(), ("--hide", ".env*")], ids=["plain", "hide"])
def test_more_files_than_the_host_lets_a_process_open(few_descriptors, flags):
    """virtiofsd holds a descriptor for each file that the guest knows (lib/vm/share/room.h)."""
    name = "few" + "-hide" * bool(flags)
    work = few_descriptors.make_folder(name)
    for i in range(FILES):
        if i % 400 == 0:
            (work / f"d{i // 400}").mkdir()
        (work / f"d{i // 400}" / f"f{i}").write_text(f"{i}\n", encoding="ascii")
    box = few_descriptors.create(name, work, flags=flags)
    limits = pathlib.Path(f"/proc/{box.pids()['virtiofsd']}/limits").read_text(encoding="ascii")
    assert re.search(r"Max open files +999 +999 ", limits), limits
    # All of them twice: forgotten files are found again. An open file and a directory in use stay
    # valid.
    got = box.guest(
        f"cd {work}/d0 && exec 3<f7 && find .. -type f -exec cat {{}} + | sort -n | uniq | wc -l && "
                    "find .. -type f -size -2 | wc -l && cat f8 - <&3 && echo new >made && "
                    "cat made", timeout=240)
    assert got.split() == [str(FILES), str(FILES), "8", "7", "new"]
    assert (work / "d0" / "made").read_text(encoding="ascii") == "new\n"
    log = (box.state / "keeper.log").read_text(encoding="utf-8")
    assert "requesting it to drop unused ones" in log
    box.rm()


WHO = ["-c", "user.name=u", "-c", "user.email=u@example.test"]


def git_of(env, folder, *args):
    done = subprocess.run(["git", "-C", folder, *WHO, *args], env=env.env, capture_output=True,
                          timeout=300, text=True)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout.strip()


def test_work_in_a_clone_goes_both_ways_and_the_host_is_not_shared(env):
    folder = env.make_folder("cloned")
    git_of(env, folder, "init", "-q", "-b", "main")
    (folder / "kept").write_text("one\n")
    (folder / ".gitignore").write_text("*.local\nother\n")
    git_of(env, folder, "add", "-A")
    git_of(env, folder, "commit", "-qm", "one")
    (folder / "kept").write_text("changed\n")
    (folder / "new").write_text("untracked\n")
    (folder / "a.local").write_text("carried\n")
    (folder / "other").write_text("stays\n")
    before = git_of(env, folder, "status", "--porcelain")
    box = env.create("cloned", folder, flags=["--clone", "--branch", "fix", "--carry", "*.local"])
    assert git_of(env, folder, "status", "--porcelain") == before
    assert box.guest("git status --porcelain && git branch --show-current && cat kept a.local && "
                     "ls other; findmnt -t virtiofs", user="agent", check=False) == (
        " M kept\n?? new\nfix\nchanged\ncarried")
    box.guest("git -c user.name=a -c user.email=a@example.test commit -qam two", user="agent")
    git_of(env, folder, "fetch", "-q", "sandbox-cloned")
    assert git_of(env, folder, "show", "sandbox-cloned/fix:kept") == "changed"
    assert git_of(env, folder, "fsck", "--strict") == ""
    git_of(env, folder, "commit", "-qam", "three")
    git_of(env, folder, "push", "-q", "sandbox-cloned", "main:refs/heads/from-host")
    assert box.guest("git log -1 --format=%s from-host", user="agent") == "three"
    env.sbx("rm", "--force", "cloned", timeout=120)
