# SPDX-License-Identifier: Apache-2.0
"""Two sandboxes share one small file system, and one of them fills it.

The state directory is a tmpfs in a mount namespace of the tests; ROUNDS is for
tests/long/disk-full. FILED_ROUNDS, FILED_MIB and FILED_FOLDER are for tests/long/memory-file: a
sandbox whose memory is a file on such a file system, or on that of an existing directory.
"""
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import time

import pytest

import host
from installation import START_SECONDS, private

ROUNDS = int(os.environ.get("SBX_DISK_FULL_ROUNDS", "1"))
SIZE = 220 << 20
FILED_ROUNDS = int(os.environ.get("SBX_MEMORY_FILE_ROUNDS", "1"))
FILED_MIB = int(os.environ.get("SBX_MEMORY_FILE_MIB", "512"))
FILED_FOLDER = os.environ.get("SBX_MEMORY_FILE_FOLDER")
FILED_SIZE = (FILED_MIB + 700) << 20  # the start requires space for all of the memory
TOUCHED = (FILED_MIB << 20) // 2
# A file in the guest's memory: its kernel writes zeros to each page. With time for `fill` after it.
TOUCH = ("mount -t tmpfs -o size=90% touched /mnt && "
         f"fallocate -l {TOUCHED} /mnt/x && stat -c %s /mnt/x && sleep 5; umount /mnt")
REPORT_SECONDS = 2
CONTINUE_SECONDS = 5
PAUSED = "paused (disk full)"
# Only the holder has the right to change the mount.
ON_A_TMPFS = ('mount -t tmpfs -o mode=0700,size="$2" tmpfs "$1" && echo ready && '
              'while read -r size; do mount -o remount,size="$size" "$1" && echo ready; done')
ON_A_FOLDER = 'mount --bind "$2" "$1" && echo ready && while read -r size; do echo ready; done'


class Disk:
    """A tmpfs on the state folder, or the file system of another folder, seen by everything that is
    started with `prefix`."""

    def __init__(self, env, folder=None):
        self.env, self.state = env, env.folder / "state"
        self.state.mkdir(exist_ok=True)
        script, what = (ON_A_FOLDER, folder) if folder else (ON_A_TMPFS, str(SIZE))
        argv = [shutil.which("unshare"), "--user", "--map-current-user", "--keep-caps", "--mount",
                "sh", "-c", script, "sh", self.state, what]
        self.holder = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"
        env.prefix = [shutil.which("nsenter"), "-t", str(self.holder.pid), "-U", "-m",
                      "--preserve-credentials", "--"]

    def run(self, script, *args):
        return subprocess.run([*self.env.prefix, "sh", "-c", script, "sh", *map(str, args)],
                              check=True, capture_output=True, text=True, timeout=60).stdout

    def resize(self, size):
        self.holder.stdin.write(f"{size}\n".encode())
        self.holder.stdin.flush()
        assert self.holder.stdout.readline() == b"ready\n"

    def free(self):
        return int(self.run("stat -f -c '%a %S' \"$1\" | { read a s; echo $((a * s)); }",
                            self.state))

    def used(self):
        script = "stat -f -c '%b %f %S' \"$1\" | { read b f s; echo $(((b - f) * s)); }"
        return int(self.run(script, self.state))

    def fill(self, leave=0):
        """Fills the disk to the last byte, not by a sandbox; then frees a number of bytes."""
        script = 'cat /dev/zero >"$1/fill" 2>/dev/null; truncate -s "-$2" "$1/fill"'
        self.run(script, self.state, leave)

    def empty(self):
        self.run('rm -f "$1/fill"', self.state)

    def close(self):
        self.holder.kill()
        self.holder.wait()


@pytest.fixture(scope="module", params=range(ROUNDS))
def disk():
    with private(policy="none", warm=False) as env:
        env.sbx("daemon", "stop", check=False)
        made = Disk(env)
        try:
            env.sbx("settings", "set", "warm.images", "false")
            env.sbx("policy", "set-default", "balanced")
            made.boxes = [env.create(name, env.make_folder(name), memory="512m")
                          for name in ("writer", "other")]
            yield made
        finally:
            env.sbx("rm", "-f", "--all", check=False)
            env.sbx("daemon", "stop", check=False)
            made.close()


def status(env, name):
    row = next(line for line in env.sbx("ls").stdout.splitlines() if line.startswith(f"{name} "))
    return PAUSED if PAUSED in row else row


def wait_for(what, seconds, why):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.1)


def answers_or_reports(env, name):
    """`exec true` succeeds, or reports within 2 s that the sandbox is paused."""
    start = time.monotonic()
    p = env.popen("exec", name, "true", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                  stderr=subprocess.PIPE)
    os.set_blocking(p.stderr.fileno(), False)
    said = ""
    try:
        while p.poll() is None and PAUSED not in said:
            said += (p.stderr.read() or b"").decode()
            late = time.monotonic() - start > REPORT_SECONDS
            # On a busy machine the command may just be slow: a sandbox that is not paused has the
            # time it needs.
            reported = not late or status(env, name) != PAUSED or PAUSED in said + (
                p.stderr.read() or b"").decode()
            assert reported, f"{name}: no report after {time.monotonic() - start:.1f} s"
            assert time.monotonic() - start < 60
            time.sleep(0.05)
        said += (p.stderr.read() or b"").decode()
        assert p.poll() == 0 or PAUSED in said, said
        return p.poll() == 0
    finally:
        p.kill()
        p.wait()


def fill_from(env, mib):
    return env.popen("exec", "-u", "root", "writer", "sh", "-c",
                     f"head -c {mib}M /dev/zero >/x; sync; echo done", stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def suspend_on_full(disk):
    """The disk fills when the programs stand still and the guest has not written everything."""
    disk.boxes[1].guest("sysctl -qw vm.dirty_background_ratio=80 vm.dirty_ratio=90; "
                        "head -c 100M /dev/zero >/x")
    log = disk.boxes[1].state / "keeper.log"
    p = disk.env.popen("stop", "--suspend", "other", stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    disk.run('until grep -q "freezing programs" "$1"; do :; done; '
             'cat /dev/zero >"$2/fill" 2>/dev/null; true', log, disk.state)
    return p.communicate(timeout=60)[1], p.returncode


def test_a_start_without_space_for_its_memory_uses_memory_of_the_host(disk):
    for box in disk.boxes:
        log = disk.run('cat "$1"', box.state / "keeper.log")
        assert "the memory of the VM is a memfd: not enough disk space" in log, log
        folder = f"/proc/{box.pids()['qemu']}/fd"
        assert any(os.readlink(f"{folder}/{fd}").startswith("/memfd:") for fd in os.listdir(folder))


def test_a_sandbox_that_is_suspended_on_a_full_disk_keeps_its_programs(disk):
    env, other = disk.env, disk.boxes[1]
    pid = other.guest("nohup sleep 24680 >/dev/null 2>&1 & echo $!")
    find = "pgrep -f 2468[0]"
    # A warning before any sandbox pauses.
    disk.fill(leave=80 << 20)
    said = env.sbx("stop", "--suspend", "other", check=False)
    assert said.returncode == 1 and "cannot store the snapshot" in said.stderr, said.stderr
    assert "try: df -h" in said.stderr, said.stderr
    disk.empty()
    assert other.guest(find) == pid
    # There is room at first.
    disk.resize(4 * SIZE)
    said, code = suspend_on_full(disk)
    assert code == 1 and "not suspended" in said, said
    disk.empty()
    other.wait_status("running", 60)
    assert other.guest(find) == pid
    # What comes back finds a full disk: its own memory was on it.
    env.sbx("stop", "--suspend", "other", timeout=60)
    disk.fill(leave=2 << 20)
    assert other.guest(find, timeout=60) == pid and other.info()["start"] == "resumed"
    disk.empty()
    other.guest("rm /x; fstrim /")
    wait_for(lambda: disk.used() < SIZE - (64 << 20), 10, "the guest's disk does not shrink")
    disk.resize(SIZE)


def test_one_fills_the_disk_of_both(disk):
    env, (writer, other) = disk.env, disk.boxes
    writer.guest("echo before >/kept; sync")
    filler = fill_from(env, 250)
    wait_for(lambda: status(env, "writer") == PAUSED, 60, "the writer was not paused")
    assert not answers_or_reports(env, "writer")
    answers_or_reports(env, "other")
    # Not one byte left: what forbids something works.
    disk.fill()
    assert disk.free() == 0
    answers_or_reports(env, "other")
    env.sbx("policy", "deny", "network", "full.example.com")
    # What sbxd gave up for that is taken at once: the next one works as well.
    for effect in ("deny", "allow", "deny"):
        disk.fill()
        assert disk.free() == 0
        env.sbx("policy", effect, "network", f"{effect}.full.example.com")
    # There is space again: both continue automatically.
    disk.empty()
    disk.resize(2 * SIZE)
    wait_for(lambda: PAUSED not in status(env, "writer") + status(env, "other"), CONTINUE_SECONDS,
             "they do not continue")
    assert filler.communicate(timeout=60)[0] == b"done\n"
    assert answers_or_reports(env, "other")
    # A keeper that is killed while its machine is paused loses nothing.
    filler = fill_from(env, 600)
    wait_for(lambda: status(env, "writer") == PAUSED, 60, "the writer was not paused again")
    os.kill(writer.pids()["keeper"], signal.SIGKILL)
    filler.wait(60)
    disk.resize(4 * SIZE)
    assert writer.guest("cat /kept", timeout=START_SECONDS) == "before"
    # What ends a sandbox and frees its space works without a byte.
    disk.fill()
    assert disk.free() == 0
    pids = {f"{box.name} {name}": pid for box in disk.boxes for name, pid in box.pids().items()}
    env.sbx("stop", "--cold", "other", timeout=60)
    # Its keeper had reserved space for that.
    records = [json.loads(line)
               for line in env.sbx("audit", "show", "other", "--json", "-n",
                                   "0").stdout.splitlines()]
    assert [r["action"] for r in records if r["kind"] == "lifecycle"
            and r["sandbox"] != "sbxd"][-1] == "stop"
    env.sbx("audit", "verify", "other")
    # sbxd starts without a byte, too.
    env.sbx("daemon", "stop")
    disk.fill()
    assert disk.free() == 0
    env.sbx("rm", "-f", "writer", timeout=60)
    host.wait_gone(pids, 15, "left behind")
    assert [s["name"] for s in env.ls()] == ["other"]


@pytest.fixture(scope="module")
def filed():
    with private(policy="none", warm=False) as env:
        env.sbx("daemon", "stop", check=False)
        made = Disk(env, FILED_FOLDER)
        try:
            made.resize(FILED_SIZE)
            env.sbx("settings", "set", "warm.images", "false")
            env.sbx("policy", "set-default", "balanced")
            made.box = env.create("filed", env.make_folder("filed"), memory=f"{FILED_MIB}m")
            yield made
        finally:
            env.sbx("rm", "-f", "--all", check=False)
            env.sbx("daemon", "stop", check=False)
            made.close()


def memory_of(box):
    """The number of the file without a name that qemu has open."""
    folder = f"/proc/{box.pids()['qemu']}/fd"
    found = {
        s.st_ino
        for fd in os.listdir(folder)
        for s in [os.stat(f"{folder}/{fd}")]
        if stat.S_ISREG(s.st_mode) and s.st_nlink == 0 and
        not os.readlink(f"{folder}/{fd}").startswith("/memfd:")
    }
    assert len(found) == 1, found
    return found.pop()


def test_a_search_for_credentials_finds_the_memory(filed):
    value = "sk-ant-api03-" + secrets.token_hex(24)
    filed.env.sbx("secret", "set", "anthropic", input=value)
    scan = ("secret", "scan", "--sandbox", "filed", "--what", "ram")
    assert filed.env.sbx(*scan, check=False).returncode == 0
    filed.box.guest("cat >/run/planted", input=value)
    said = filed.env.sbx(*scan, check=False)
    assert said.returncode == 1 and "anthropic" in said.stdout, said.stdout


def test_the_memory_is_kept_and_not_copied_when_the_sandbox_is_suspended(filed):
    box = filed.box
    pid = box.guest("nohup sleep 24681 >/dev/null 2>&1 & echo $!")
    number = memory_of(box)
    filed.env.sbx("stop", "--suspend", "filed", timeout=120)
    script = 'stat -c "%i %a %h" "$1"'
    assert filed.run(script, box.state / "suspend" / "memory") == f"{number} 400 1\n"
    assert box.guest("pgrep -f 2468[1]", timeout=START_SECONDS) == pid
    assert box.info()["start"] == "resumed"
    memory_of(box)
    assert not filed.run('ls "$1"', box.state).count("suspend"), "the snapshot takes no space"


def test_a_full_disk_pauses_a_sandbox_that_touches_memory_and_never_kills_it(filed):
    env, qemu = filed.env, filed.box.pids()["qemu"]
    for n in range(FILED_ROUNDS):
        # The disk is full at another moment of the work in each round.
        p = env.popen("exec", "-u", "root", "filed", "sh", "-c", f"sleep 0.{n % 10}; {TOUCH}",
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      text=True)
        time.sleep(n % 7 / 3)
        filed.fill()
        wait_for(lambda: status(env, "filed") == PAUSED, 10, f"round {n}: not paused")
        assert filed.free() < 64 << 20 and p.poll() is None
        assert filed.box.pids()["qemu"] == qemu
        filed.empty()
        wait_for(lambda: status(env, "filed") != PAUSED, CONTINUE_SECONDS, f"round {n}: paused")
        out, err = p.communicate(timeout=300)
        assert out == f"{TOUCHED}\n", (n, out, err)
        assert filed.box.pids()["qemu"] == qemu, n
        print(f"round {n}: touched {TOUCHED >> 20} MiB", flush=True)
