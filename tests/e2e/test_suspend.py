# SPDX-License-Identifier: Apache-2.0
"""Suspended sandboxes: their memory is saved to disk, and their processes continue after resume.

One sandbox for all of it, with a workspace, a credential and real servers on loopback
(tests/rigs/lab/credlab.py).
"""
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

import host
import warmlab
from installation import START_SECONDS, TREE, private
from test_credentials import memory
from test_docker import busybox_image

sys.path.insert(0, str(TREE / "tests" / "rigs" / "lab"))
import credlab  # noqa: E402

SUSPEND_SECONDS = 180
DOCKER_SECONDS = 600  # dockerd under software emulation
HOST = "api.anthropic.com"
CANARY = "sk-ant-api03-" + secrets.token_hex(24)
# Counts into a file of the workspace that it holds open, and into one of the guest's own disk; its
# directory is the workspace.
COUNTER = ("exec 5>>count; i=0; while :; do echo $i >&5; echo $i > /var/tmp/own; i=$((i+1)); "
           "[ -e stop-count ] && exit; sleep 0.1; done")
# Started before the suspension: has read the certificates, and sends requests on command.
ASKER = """
import json, os, ssl, time, urllib.request
context = ssl.create_default_context()
first = os.urandom(16).hex()
n = 0
while True:
    n += 1
    while not os.path.exists(f"ask-{n}"):
        time.sleep(0.1)
    try:
        url = f"https://HOST/after-{n}"
        said = urllib.request.urlopen(url, timeout=60, context=context).read().decode()
    except Exception as e:
        said = repr(e)
    with open(f"said-{n}.new", "w") as f:
        json.dump({"said": said, "pid": os.getpid(), "random": os.urandom(16).hex(),
                   "time": time.time(), "cwd": os.getcwd()}, f)
    os.rename(f"said-{n}.new", f"said-{n}")
""".replace("HOST", HOST)

# Written so that the shell that looks does not find itself.
FIND = "pgrep -f 'exec [5]'; pgrep -f asker[.]py; pgrep -f 812[3]"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.server = made.origin()
        yield made


@pytest.fixture(scope="module")
def env(lab):
    with private(policy="none") as made:
        made.sbx("settings", "set", "network.connect-to", f"{HOST}:443=127.0.0.1:{lab.server.port}")
        made.sbx("settings", "set", "network.extra-ca", lab.ca.pem)
        made.sbx("policy", "set-default", "balanced")
        made.sbx("policy", "allow", "network", HOST)
        made.sbx("settings", "set", "warm.images", "false")  # one sandbox, no use for one
        made.sbx("secret", "set", "anthropic", input=CANARY)
        yield made


@pytest.fixture(scope="module")
def box(env):
    folder = env.make_folder("suspended")
    made = env.create("sus", folder, memory="1g")
    made.folder = folder
    (folder / "asker.py").write_text(ASKER)
    yield made
    made.rm()


def suspend(box, timeout=SUSPEND_SECONDS):
    said = box.env.sbx("stop", "--suspend", box.name, timeout=timeout).stdout
    assert "Suspended sandbox" in said and "sbx run" in said, said


def resume(box, script="true"):
    return box.guest(script, timeout=START_SECONDS)


def start(box, script):
    """A program without an attached terminal, in the workspace."""
    box.exec("bash", "-c", script, flags=("-d", "-w", str(box.folder)), timeout=START_SECONDS)


def wait_file(path, seconds=90):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not exist after {seconds} s"
        time.sleep(0.05)
    return path.read_text()


def lines(path):
    return path.read_text().split()


def wait_more(path, seconds=60):
    n, deadline = len(lines(path)), time.monotonic() + seconds
    while len(lines(path)) <= n + 2:
        assert time.monotonic() < deadline, f"{path} does not grow"
        time.sleep(0.1)


def expect_no_gap(path):
    got = lines(path)
    assert got == [str(i) for i in range(len(got))]


def ask(box, n):
    (box.folder / f"ask-{n}").touch()
    return json.loads(wait_file(box.folder / f"said-{n}"))


def kept(box):
    return box.state / "suspend"


# The programs started here keep running to the end of the module.
@pytest.fixture(scope="module")
def programs(box):
    start(box, COUNTER)
    start(box, "exec python3 asker.py")
    start(box, "cd /tmp; exec python3 -m http.server 8123 --bind 127.0.0.1")
    wait_file(box.folder / "count")
    wait_more(box.folder / "count")
    return box.guest(FIND)


def test_everything_goes_on(box, programs, lab):
    before = ask(box, 1)
    assert '"ok":true' in before["said"].replace("\\", ""), before
    watcher = box.env.popen("exec", box.name, "bash", "-c",
                            "i=0; while [ ! -e stop-watch ]; do echo $i; i=$((i+1)); sleep 0.1; done; echo end",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        assert watcher.stdout.readline() == "0\n"
        pids = box.pids()
        with warmlab.PeakMemory(pids["keeper"]) as memory:
            suspend(box)
        assert memory.peak <= 1.2 * memory.before, (
            f"suspending held {memory.peak} KiB, {memory.before} before")
        host.wait_gone(pids, 5, "still there after it was suspended")
        info = box.info()
        assert info["status"] == "suspended" and info["suspended_bytes"] > 10 << 20, info
        assert all((kept(box) / name).stat().st_mode & 0o777 == 0o400
                   for name in ("state", "memory", "memory.sums"))
        frozen = lines(box.folder / "count")
        time.sleep(2)
        assert lines(box.folder / "count") == frozen
        assert resume(box, FIND) == programs
        info = box.info()
        assert (info["status"], info["start"]) == ("running", "resumed"), info
        assert host.mount_root(box.pids()["qemu"], "/kernel").endswith(".kernel")
        assert not kept(box).exists(), "the memory is used once"
        wait_more(box.folder / "count")
        expect_no_gap(box.folder / "count")
        assert abs(int(box.guest("date +%s")) - time.time()) < 5
        assert int(box.guest("cat /var/tmp/own")) >= len(frozen) - 1
        assert "Directory listing" in box.guest("curl -sS -m 30 http://127.0.0.1:8123/")
        (box.folder / "stop-watch").touch()
        out, err = watcher.communicate(timeout=90)
        got = out.split()
        assert watcher.returncode == 0 and got[-1] == "end", (watcher.returncode, got[-3:], err)
        assert got[:-1] == [str(i) for i in range(1, len(got))], "the output has a gap"
    finally:
        watcher.kill()
        watcher.wait()


def test_network_and_credentials_are_as_before(box, programs, lab):
    """The same program, which read the certificates before it slept."""
    first = json.loads((box.folder / "said-1").read_text())
    after = ask(box, 2)
    assert '"ok":true' in after["said"].replace("\\", ""), after
    assert (after["pid"], after["cwd"]) == (first["pid"], str(box.folder))
    assert abs(after["time"] - time.time()) < 60
    request = lab.server.wait("/after-2", 1)[-1]
    assert lab.server.header(request, "x-api-key") == [CANARY]
    said = box.guest("curl -sS -m 30 https://not-allowed.test/ 2>&1; true", user="agent")
    assert "403" in said or "resolve" in said, said
    assert box.guest("cat /sys/class/net/*/type | sort -u | tr '\\n' ' '") == "1 772 "
    for path in sorted(box.state.rglob("*")):
        if path.is_file() and path.stat().st_size < 64 << 20:
            assert CANARY.encode() not in path.read_bytes(), path


def copy_state(box, to):
    """All that a suspended sandbox is; the times of files count."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(box.state, to, ignore=shutil.ignore_patterns("lock"))


def test_two_restores_of_one_memory_differ(box, programs, tmp_path):
    suspend(box)
    copy_state(box, tmp_path / "copy")
    resume(box)
    one = ask(box, 3)
    box.env.sbx("stop", "--timeout", "0", box.name, timeout=60)
    assert box.info()["status"] == "stopped"
    (box.folder / "ask-3").unlink()
    (box.folder / "said-3").unlink()
    for path in (tmp_path / "copy").iterdir():
        to = box.state / path.name
        shutil.copytree(path, to, dirs_exist_ok=True) if path.is_dir() else shutil.copy2(path, to)
    resume(box)
    assert box.info()["start"] == "resumed"
    two = ask(box, 3)
    assert one["pid"] == two["pid"] and one["random"] != two["random"]


TICKER = ("nohup sh -c 'i=0; while :; do i=$((i+1)); echo $i >/var/tmp/t; "
          "mv /var/tmp/t /var/tmp/ticks; sleep 0.1; done' "
          ">/dev/null 2>&1 & echo $!; until [ -e /var/tmp/ticks ]; do sleep 0.1; done")
STATE = "cat /var/tmp/ticks /proc/sys/kernel/random/boot_id; od -An -tx8 -N8 /dev/urandom"


def state_of(box, pid):
    """Count, boot id and a random number of a guest whose counter runs."""
    ticks = box.guest(f"kill -0 {pid} && {STATE}").split()
    assert int(box.guest("sleep 0.5; cat /var/tmp/ticks")) > int(ticks[0]), "the counter stands"
    return int(ticks[0]), ticks[1], ticks[2]


def has_text(box, text):
    """Where qemu's memory, which has all of the guest's, and the disks of the VM have a text."""
    found = [f"memory of {pid}" for pid in [box.pids()["qemu"]]
             if any(text.encode() in part for part in memory(pid))]
    return found + [p.name for p in box.state.glob("*.qcow2")
                    if ".aside." not in p.name and text.encode() in p.read_bytes()]


SEND = """for m in GET POST PUT DELETE PATCH; do
curl -sS -m 60 -o /dev/null -X $m https://HOST/late-$m -d x; done
curl -sS -m 60 -o /dev/null http://not-allowed.test/late -d x; true""".replace("HOST", HOST)


def expect_all_listed(box, lab):
    """What the server has received since the checkpoint, against what the rewind lists."""
    box.guest(SEND, user="agent", timeout=START_SECONDS)
    received = [(r["method"], r["path"]) for r in lab.server.requests
                if r["path"].startswith("/late-")]
    assert {m for m, _ in received} >= {"GET", "POST", "PUT", "DELETE", "PATCH"}, received
    said = box.env.sbx("rewind", box.name, "--to", "ready", "--dry-run", timeout=60).stdout
    rows = [line for line in said.splitlines() if "/late" in line]
    for method, path in received:
        found = [line for line in rows if line.startswith("request") and HOST in line
                 and f" {method} {path} " in line]
        assert len(found) == (method != "GET"), (method, path, said)
    assert not any("not-allowed" in line for line in said.splitlines()), said
    assert any(line.startswith("credential use") for line in said.splitlines()), said


def test_a_rewind_to_memory_resumes_the_programs(box, lab):
    resume(box)
    pid = box.guest(TICKER)
    before = state_of(box, pid)
    box.env.sbx("checkpoint", box.name, "ready", "--memory", timeout=SUSPEND_SECONDS)
    listed = json.loads(box.env.sbx("checkpoint", "--ls", box.name, "--json").stdout)
    one = listed["checkpoints"][-1]
    print(f"checkpoint with memory: {one['pause_ms']} ms, {one['bytes']} bytes")
    assert one["with_memory"] is True and one["bytes"] > 10 << 20 and one["label"] == "ready"
    files = {p.name: p.stat().st_size for p in (box.state / f"memory.{one['seq']}").iterdir()}
    assert set(files) >= {"state", "memory", "memory.sums", "image.json", "root.qcow2"}
    later = state_of(box, pid)
    assert later[0] > before[0] and later[1] == before[1], "the checkpoint stopped the programs"

    expect_all_listed(box, lab)
    canary = secrets.token_hex(20)
    half = len(canary) // 2
    box.guest(f"printf '%s%s\\n' {canary[:half]} {canary[half:]} >/root/newer; "
              "cp /root/newer /dev/shm/newer; sync; sleep 3")
    newest = state_of(box, pid)
    assert len(has_text(box, canary)) > 1, "the search does not find memory and disk"
    for _ in range(2):  # the memory of a checkpoint is used any number of times
        box.env.sbx("rewind", box.name, "--to", "ready", timeout=SUSPEND_SECONDS)
        assert box.info()["start"] == "resumed", box.info()
        now = state_of(box, pid)
        assert before[0] < now[0] < newest[0] and now[1] == before[1], (before, now, newest)
        assert now[2] not in (before[2], later[2], newest[2]), "the random numbers come again"
        assert box.guest("ls /root/newer /dev/shm/newer 2>&1 | grep -c 'No such file'") == "2"
        assert has_text(box, canary) == []
        newest = state_of(box, pid)
    assert ask_again(box), "the workspace and the credential are not as before"
    box.env.sbx("rewind", box.name, "--undo", timeout=SUSPEND_SECONDS)
    assert box.info()["start"] == "cold" and box.fails(f"kill -0 {pid}")


def ask_again(box):
    """A program that reads and writes the workspace."""
    (box.folder / "asked").write_text("from the host")
    said = box.guest(f"cat {box.folder}/asked; echo from the guest >{box.folder}/asked")
    return said == "from the host" and (box.folder / "asked").read_text() == "from the guest\n"


def test_a_merge_of_layers_leaves_a_suspended_sandbox_its_programs(box):
    resume(box)
    pid = box.guest(TICKER)
    for _ in range(2):
        box.env.sbx("template", "save", "--force", box.name, "layers", timeout=SUSPEND_SECONDS)
    had = sorted(p.name for p in box.state.glob("root.[0-9]*.qcow2"))
    suspend(box)
    deadline = time.monotonic() + 120
    while sorted(p.name for p in box.state.glob("root.[0-9]*.qcow2")) == had:
        assert time.monotonic() < deadline, f"the layers {had} were not merged"
        time.sleep(0.5)
    resume(box)
    assert box.info()["start"] == "resumed", box.info()
    state_of(box, pid)
    box.env.sbx("template", "rm", "-f", "layers")


def test_long_a_container_goes_on(box, programs):
    busybox_image(box.folder / "image.tar", "tiny:1")
    box.guest(f"docker load -qi {box.folder}/image.tar", timeout=DOCKER_SECONDS)
    box.guest(f"docker run -d --name held -v {box.folder}:/w -w /w tiny:1 sh -c "
              "'exec 6>>inside; i=0; while :; do echo $i >&6; i=$((i+1)); sleep 0.2; done'",
              timeout=DOCKER_SECONDS)
    wait_file(box.folder / "inside")
    wait_more(box.folder / "inside")
    suspend(box)
    resume(box)
    assert box.info()["start"] == "resumed"
    wait_more(box.folder / "inside")
    expect_no_gap(box.folder / "inside")
    assert box.guest("docker exec held ls /w/asker.py", timeout=120) == "/w/asker.py"
    box.guest("docker rm -f held", timeout=120)


def flip(path):
    """A byte that the guest has used: the rest of the file is holes."""
    path.chmod(0o600)
    with open(path, "r+b") as f:
        at = os.lseek(f.fileno(), path.stat().st_size // 2, os.SEEK_DATA) + 1
        byte = os.pread(f.fileno(), 1, at)
        os.pwrite(f.fileno(), bytes([byte[0] ^ 1]), at)


def cut(path):
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size - 4096)


def other_key(path):
    told = json.loads(path.read_text())
    told["key"] = "0" * len(told["key"])
    path.write_text(json.dumps(told))


BROKEN = {
    "a flipped bit": ("suspend/memory", flip, "corrupt: the memory from "),
    "a flipped bit of a hash": ("suspend/memory.sums", flip, "corrupt"),
    "a cut file": ("suspend/memory", cut, "corrupt"),
    "another machine": ("suspend/image.json", other_key, "another"),
    "no description": ("suspend/image.json", lambda p: p.write_text("{"), "corrupt"),
    "changed disks": ("root.qcow2", lambda p: os.utime(p), "changed"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_refused(box, what):
    name, spoil, why = BROKEN[what]
    resume(box, "sh -c 'touch /var/tmp/kept; sync'; nohup sleep 12345 >/dev/null 2>&1 &")
    suspend(box)
    spoil(box.state / name)
    assert resume(box, "ls /var/tmp/kept; pgrep -f 1234[5]; true") == "/var/tmp/kept", (
        "booted from the disk, nothing of the memory")
    info = box.info()
    assert info["start"] == "cold" and why in info["cold_why"], info
    assert not kept(box).exists() and (box.state / "suspend.bad").exists()


def make_format_2(folder):
    """As the version before has written it: one hash of all pages with data."""
    memory, told = folder / "memory", json.loads((folder / "image.json").read_text())
    digest = hashlib.blake2b(memory.stat().st_size.to_bytes(8, "little"))
    with open(memory, "rb") as f:
        at, size = 0, memory.stat().st_size
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            for page in range(at, end, 4096):
                if any(data := os.pread(f.fileno(), 4096, page)):
                    digest.update((page // 4096).to_bytes(8, "little") + data)
            at = end
    told["version"], told["memory"]["blake2b"] = 2, digest.hexdigest()[:64]
    (folder / "image.json").write_text(json.dumps(told))
    (folder / "memory.sums").unlink()


def test_what_the_version_before_suspended_is_resumed(box):
    resume(box, "nohup sleep 13579 >/dev/null 2>&1 &")
    suspend(box)
    make_format_2(kept(box))
    assert resume(box, "pgrep -c -f 1357[9]; pkill -f 1357[9]") == "1"
    assert box.info()["start"] == "resumed" and not kept(box).exists()
    suspend(box)
    assert json.loads((kept(box) / "image.json").read_text())["version"] == 3
    assert resume(box, "echo up") == "up" and box.info()["start"] == "resumed"


def memory_file(box):
    """The name that the memory of the VM has in /proc."""
    folder, size = f"/proc/{box.pids()['qemu']}/fd", int(box.info()["memory"])
    (name,) = {os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)
               if os.stat(f"{folder}/{fd}").st_size == size}
    return name


def test_a_sandbox_resumes_when_the_place_of_its_memory_has_changed(box):
    """As after an upgrade that changes the default: it was suspended, or it runs."""
    resume(box, "nohup sleep 24680 >/dev/null 2>&1 &")
    assert memory_file(box).startswith(f"{box.state}/#"), "the default is a file without a name"
    try:
        box.env.sbx("settings", "set", "vm.memory-backing", "memfd")
        suspend(box)
        assert resume(box, "pgrep -c -f 2468[0]") == "1"
        assert box.info()["start"] == "resumed" and memory_file(box).startswith("/memfd:")
    finally:
        box.env.sbx("settings", "unset", "vm.memory-backing")
    suspend(box)
    assert resume(box, "pgrep -c -f 2468[0]; pkill -f 2468[0]") == "1"
    assert box.info()["start"] == "resumed" and memory_file(box).startswith(f"{box.state}/#")


def test_a_keeper_killed_on_the_way_down(box):
    """Either the memory is complete, or it does not exist."""
    for delay in (0.2, 1.0, 2.5):
        resume(box)
        pids = box.pids()
        p = box.env.popen("stop", "--suspend", box.name, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):  # on a quick machine it has ended already
            os.kill(pids["keeper"], signal.SIGKILL)
        p.wait(60)
        host.wait_gone(pids, 15, "left behind by a killed keeper")
        whole = box.info()["status"] == "suspended"
        assert resume(box, "echo up") == "up"
        assert box.info()["start"] == ("resumed" if whole else "cold")
        assert not (box.state / "suspend.new").exists() and not kept(box).exists()


def test_a_keeper_killed_on_the_way_up(box):
    resume(box)
    suspend(box)
    p = box.env.popen("exec", box.name, "true", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (pid := box.env.api("GET", f"/v1/sandboxes/{box.name}")[1]["keeper_pid"]):
        assert time.monotonic() < deadline
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    p.wait(START_SECONDS)
    assert resume(box, "echo up") == "up"
    assert box.info()["start"] in ("resumed", "cold") and not kept(box).exists()


def kill_reader(box):
    """Starts it, and kills the keeper's child that reads the memory, as the kernel does when memory
    is exhausted. None: the child was too quick."""
    p = box.env.popen("start", box.name, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True)
    keeper = host.until(lambda: box.env.api("GET", f"/v1/sandboxes/{box.name}")[1]["keeper_pid"])
    while p.poll() is None and host.is_alive(keeper):
        seen = {pid: host.stat(pid) for pid in host.pids()}
        children = {s[0]: pid for pid, s in seen.items() if s and s[2] == keeper}
        if {"sbx-keeper", "sbx-spawner"} <= children.keys():
            with contextlib.suppress(ProcessLookupError):
                os.kill(children["sbx-keeper"], signal.SIGKILL)
            break
    said = p.communicate(timeout=START_SECONDS)[1]
    return said if p.returncode else None


def test_a_reader_that_is_killed_loses_nothing(box):
    shutil.rmtree(box.state / "suspend.bad", ignore_errors=True)  # of the tests above
    resume(box, "nohup sleep 67890 >/dev/null 2>&1 &")
    for _ in range(3):
        suspend(box)
        if said := kill_reader(box):
            break
    assert said and "the snapshot is kept" in said, said
    assert f"sbx start --cold {box.name}" in said, said
    assert box.info()["status"] == "suspended" and kept(box).exists()
    assert not (box.state / "suspend.bad").exists()
    assert resume(box, "pgrep -c -f 6789[0]; pkill -f 6789[0]") == "1"
    assert box.info()["start"] == "resumed"


def test_sbxd_killed_meanwhile(box):
    resume(box)
    p = box.env.popen("stop", "--suspend", box.name, stdin=subprocess.DEVNULL,
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    os.kill(box.env.daemon_pid(), signal.SIGKILL)
    p.wait(60)
    box.wait_status("suspended", 60)
    assert resume(box, "echo up") == "up" and box.info()["start"] == "resumed"


def test_what_else_is_done_with_a_suspended_one(box):
    resume(box)
    suspend(box)
    said = box.env.sbx("update", box.name, "--memory", "2g", check=False)
    assert said.returncode != 0 and "suspended" in said.stderr and (
        f"try: sbx stop --cold {box.name}" in said.stderr), said.stderr
    assert "suspended" in box.env.sbx("inspect", box.name).stdout
    suspend(box)  # a second request changes nothing
    (box.state / "suspend.bad").mkdir(exist_ok=True)  # as test_what_is_wrong_is_refused leaves it
    (box.state / "suspend.bad" / "memory").touch()
    box.env.sbx("stop", "--cold", box.name)
    assert box.info()["status"] == "stopped" and not list(box.state.glob("suspend*"))
    said = box.env.sbx("stop", "--suspend", box.name, check=False)
    assert said.returncode != 0 and "not running" in said.stderr, said.stderr


def test_an_update_before_it_loses_nothing(box):
    """The memory is of the machine as it was: the new size is that of the start after a stop."""
    resume(box, "nohup sleep 54321 >/dev/null 2>&1 &")
    box.env.sbx("update", box.name, "--memory", "1200m", "--cpus", "1")
    suspend(box)
    assert resume(box, "pgrep -c -f 5432[1]; nproc") == "1\n2" and box.info()["start"] == "resumed"
    suspend(box)
    assert resume(box, "pgrep -c -f 5432[1]") == "1", "the second time"
    box.stop()
    assert resume(box, "nproc") == "1"
    box.env.sbx("update", box.name, "--memory", "1g", "--cpus", "2", "--accel", "kvm")
    said = box.env.sbx("stop", "--suspend", box.name, check=False)
    assert (said.returncode != 0 and "--accel was changed" in said.stderr
            and f"try: sbx stop {box.name}" in said.stderr), said.stderr
    assert box.info()["status"] == "running"
    box.env.sbx("update", box.name, "--accel", box.env.env["SBX_ACCEL"])
    box.stop()


def test_stop_suspends_it_if_no_session_uses_it(box):
    """Its memory must be a file. A session without a terminal is shut down with the sandbox."""
    box.stop()
    box.env.sbx("settings", "set", "vm.memory-backing", "file")
    resume(box, "nohup sleep 45678 >/dev/null 2>&1 &")
    assert "Suspended sandbox" in box.env.sbx("stop", box.name, timeout=SUSPEND_SECONDS).stdout
    assert box.info()["suspended_by"] == "stop"
    assert resume(box, "pgrep -c -f 4567[8]") == "1" and box.info()["start"] == "resumed"
    p = box.env.popen("exec", box.name, "sleep", "600", stdin=subprocess.DEVNULL,
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host.until(lambda: box.info()["sessions"] == 1)
    assert "Stopped sandbox" in box.env.sbx("stop", box.name, timeout=SUSPEND_SECONDS).stdout
    assert p.wait(60) != 0 and not list(box.state.glob("suspend*"))
    box.env.sbx("settings", "set", "vm.memory-backing", "memfd")
    resume(box)
    assert box.info()["start"] == "cold"
    assert "Stopped sandbox" in box.env.sbx("stop", box.name, timeout=60).stdout, "no file"
    box.env.sbx("settings", "unset", "vm.memory-backing")


def test_nobody_uses_it(box):
    box.env.sbx("update", box.name, "--idle-timeout", "4s")
    resume(box)
    box.wait_status("suspended", 90)
    # A busy sandbox is not suspended, even without an attached terminal.
    start(box, "while :; do :; done")
    time.sleep(15)
    assert box.info()["status"] == "running"
    box.env.sbx("update", box.name, "--idle-timeout", "0")
    box.stop()


def test_a_connection_to_a_published_port_resumes_it(box):
    """It was suspended by its idle timeout. The bytes that were sent meanwhile arrive."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    resume(box)
    box.env.sbx("ports", box.name, "--publish", f"{port}:8123")
    start(box, "exec python3 -m http.server 8123 --bind 127.0.0.1")
    box.env.sbx("update", box.name, "--idle-timeout", "4s")
    box.stop()  # the timeout applies at the next start
    resume(box)
    start(box, "exec python3 -m http.server 8123 --bind 127.0.0.1")
    for kill in (False, True):
        box.wait_status("suspended", 120)
        assert box.info()["suspended_by"] == "idle"
        if kill:
            pid = box.env.daemon_pid()
            os.kill(pid, signal.SIGKILL)
            host.until(lambda: not host.is_alive(pid))
            box.env.sbx("ls")  # starts the next sbxd
        with socket.create_connection(("127.0.0.1", port), START_SECONDS) as c:
            c.sendall(b"GET /asker.py HTTP/1.0\r\n\r\n")
            said = b""
            while data := c.recv(65536):
                said += data
        assert said.startswith(b"HTTP/1.0 200") and said.endswith(ASKER.encode()), said
        assert box.info()["start"] == "resumed"
        if not kill:
            box.env.sbx("stop", "--suspend", box.name, timeout=SUSPEND_SECONDS)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 60)
            resume(box)
    box.env.sbx("update", box.name, "--idle-timeout", "0")
    box.env.sbx("ports", box.name, "--unpublish", f"{port}:8123")
    box.stop()
