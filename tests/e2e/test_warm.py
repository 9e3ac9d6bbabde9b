# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that start from the snapshot of their template: they are complete, each is unique, and
a modified snapshot is never used. Docker in one of them: test_docker.py."""
import json
import os
import signal
import subprocess
import time

import pytest

import host
from installation import START_SECONDS
from warmlab import (CPUS, FACTS, MAKE_SECONDS, MEMORY, Kept, edit_json, facts, flip, images,
                     make_image, start_of,
                     warm_installation)

CLONES = 3  # tests/long/clones has a hundred
CANARY = "sk-ant-api03-" + os.urandom(24).hex()


@pytest.fixture(scope="module")
def env():
    with warm_installation() as made:
        made.sbx("secret", "set", "anthropic", input=CANARY)
        yield made


@pytest.fixture(scope="module")
def box(env):
    folder = env.make_folder("warm")
    (folder / "here").write_text("before\n")
    made = env.create("warm", folder)
    made.folder = folder
    yield made
    made.rm()


@pytest.fixture(scope="module")
def kept(env, tmp_path_factory):
    return Kept(env, tmp_path_factory.mktemp("kept"))


def create(env, name, *paths, flags=()):
    return env.create(name, *paths, flags=flags, cpus=CPUS, memory=MEMORY)


# a whole sandbox

def test_it_went_on_from_the_image(env, box):
    assert start_of(box) == ("warm", "")
    assert "start" in env.sbx("inspect",
                              "warm").stdout and "warm, " in env.sbx("inspect", "warm").stdout
    log = (box.state / "keeper.log").read_text()
    assert "restored" in log and "the share is plugged in" in log


def test_qemu_does_not_hold_the_kernel(env, box):
    """A restored guest has it in its memory: 11 MiB of each sandbox."""
    assert host.mount_root(box.pids()["qemu"], "/kernel").endswith(".kernel")
    cold = create(env, "booted", flags=("--cold",))
    try:
        assert host.mount_root(cold.pids()["qemu"], "/kernel").endswith("/vmlinuz")
    finally:
        cold.rm()


def test_a_reboot_ends_it_and_the_next_start_boots(env):
    box = create(env, "rebooted")
    try:
        assert start_of(box)[0] == "warm"
        box.guest("echo 1 > /var/tmp/kept; sync; echo b > /proc/sysrq-trigger", check=False)
        box.wait_status("stopped", 60)
        assert box.guest("cat /var/tmp/kept", timeout=START_SECONDS) == "1"
        assert start_of(box)[0] == "cold"
    finally:
        box.rm()


def test_workspace_both_ways(box):
    assert box.guest(f"cat {box.folder}/here", user="agent") == "before"
    box.guest(f"echo inside > {box.folder}/there", user="agent")
    assert (box.folder / "there").read_text() == "inside\n"
    (box.folder / "later").write_text("later\n")
    assert box.guest(f"cat {box.folder}/later", user="agent") == "later"


def test_clock_name_and_users(box):
    assert abs(float(box.guest("date +%s.%N")) - time.time()) < 5
    assert box.guest("hostname") == "warm"
    assert box.guest("id -u", user="agent") == str(os.getuid())
    assert box.guest("cat /etc/hostname /proc/sys/kernel/hostname").split() == ["warm", "warm"]


def test_timers_go_on(box):
    begin = time.monotonic()
    box.guest("sleep 1; timeout 1 sleep 100; true")
    assert 1.5 < time.monotonic() - begin < 30


def test_the_policy_counts(env, box):
    env.sbx("policy", "deny", "network", "denied.test")
    out = box.exec("curl", "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}",
                   "http://denied.test/", user="agent", check=False)
    assert out.stdout == "403"
    assert "denied.test" in env.sbx("policy", "log", "warm").stdout


def test_credentials_are_sentinels(box):
    value = box.guest("printenv ANTHROPIC_API_KEY", user="agent")
    assert value and value != CANARY and "managed" in value
    assert CANARY not in box.guest("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")


def test_its_disks_are_its_own_from_then_on(env):
    box = create(env, "second")
    try:
        assert start_of(box)[0] == "warm"
        box.guest("echo mine > /var/tmp/mine; sync")
        before = box.guest("cat /etc/machine-id")
        box.stop()
        env.sbx("exec", "second", "true", timeout=START_SECONDS)
        assert start_of(box) == ("cold", "the sandbox was started before and has its own disks")
        assert box.guest("cat /var/tmp/mine") == "mine"
        assert box.guest("cat /etc/machine-id") == before
    finally:
        box.rm()


# no two are alike

def test_clones_differ_in_everything(env):
    boxes = []
    try:
        for i in range(CLONES):
            boxes.append(create(env, f"clone{i}"))
        assert [start_of(b)[0] for b in boxes] == ["warm"] * CLONES
        found = [facts(b) for b in boxes]
        for name in FACTS:
            values = [f[name] for f in found]
            assert all(values), (name, values)
            assert len(set(values)) == CLONES, (name, values)
        # What the kernel calls random and what it calls its boot stay what they are inside one
        # machine, too.
        again = facts(boxes[0])
        assert again["boot"] == found[0]["boot"] and again["random"] != found[0]["random"]
        assert all(b.info()["id"] in f["sentinel"] and CANARY not in f["sentinel"] for b,
                   f in zip(boxes, found))
        dmesg = boxes[0].guest("dmesg")
        assert "crng reseeded due to virtual machine fork" in dmesg
    finally:
        for b in boxes:
            b.rm()


# a boot instead

def test_cold_is_a_boot(env):
    box = create(env, "cold", flags=("--cold",))
    try:
        assert start_of(box) == ("cold", "requested")
        assert len(images(env)) == 1
    finally:
        box.rm()


def test_another_class_has_no_image(env):
    box = env.create("small", cpus=1, memory="512m")
    try:
        how, why = start_of(box)
        assert how == "cold" and "no snapshot" in why and "1 CPUs and 512 MiB" in why
        assert "no snapshot" in env.sbx("inspect", "small").stdout
    finally:
        box.rm()


def used_byte(memory):
    """A place of the memory file that holds data."""
    with open(memory, "rb") as f:
        return os.lseek(f.fileno(), memory.stat().st_size // 2, os.SEEK_DATA) + 1


def cut(image):
    (image / "memory").chmod(0o600)
    with open(image / "memory", "r+b") as f:
        f.truncate((image / "memory").stat().st_size - 4096)


DAMAGE = {
    "a flipped byte of memory": (lambda i: flip(i / "memory", used_byte(i / "memory")),
                                 "was changed"),
    "a flipped byte of a disk": (lambda i: flip(i / "root.qcow2", 300000),
                                 "root.qcow2 of the snapshot was changed"),
    "cut off": (cut, "original size"),
    "no overlay": (lambda i: (i / "docker.qcow2").unlink(), "no file docker.qcow2"),
    "of another machine": (lambda i: edit_json(i / "image.json", key="0" * 32), "does not match"),
    "no list of files": (lambda i: (i / "image.json").write_text("{"), "cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_image_is_refused_and_removed(env, kept, damage):
    image = kept.put_back()
    how, reason = DAMAGE[damage]
    how(image)
    box = create(env, "damaged")
    try:
        start, why = start_of(box)
        assert start == "cold" and reason in why, why
        assert box.guest("echo alive") == "alive"
        assert images(env) == []
    finally:
        box.rm()


def is_checker(env, pid):
    """A fork of a keeper that is sealed, as the keeper is by then: it starts nothing else
    itself."""
    seen = host.stat(pid)
    return bool(seen and seen[0] == "sbx-keeper" and host.comm(seen[2]) == "sbx-keeper"
                and f"--state={env.state}" in host.arguments(pid)
                and host.status(pid).get("Seccomp") == "2")


def hold_checker(env, start):
    """Stops the process that compares the image; no process can list its open files. None: it
    exited too soon."""
    while start.poll() is None:
        for pid in host.pids():
            if is_checker(env, pid):
                os.kill(pid, signal.SIGSTOP)
                return pid
    return None


def log_of(env, name):
    ident = env.api("GET", f"/v1/sandboxes/{name}")[1]["id"]
    return (env.state / "sandboxes" / ident / "keeper.log").read_text()


def test_nothing_runs_before_the_check_has_said_yes(env, kept):
    """qemu waits for the process that compares a changed image."""
    for _ in range(5):
        image = kept.put_back()
        flip(image / "memory", used_byte(image / "memory"))
        start = env.popen("create", "shell", "--name", "held", "--cpus", CPUS, "--memory", MEMORY,
                          stdout=subprocess.DEVNULL)
        held = hold_checker(env, start)
        if held:
            break
        start.wait(START_SECONDS)
        env.sbx("rm", "-f", "held")
    assert held, "the check was never met"
    try:
        deadline = time.monotonic() + 50
        while " ms: qemu is ready" not in log_of(env, "held"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)
        assert "the guest runs" not in log_of(env,
                                              "held") and " ms: restored" not in log_of(env, "held")
    finally:
        os.kill(held, signal.SIGCONT)
    assert start.wait(START_SECONDS) == 0
    try:
        info = env.api("GET", "/v1/sandboxes/held")[1]
        assert info["start"] == "cold" and "was changed" in info["cold_why"], info
        assert "the guest runs" not in log_of(env, "held")
        assert images(env) == []
    finally:
        env.sbx("rm", "-f", "held")


def test_an_image_that_qemu_cannot_read(env, kept):
    """Its checksums are correct, but its content is garbage."""
    import hashlib
    image = kept.put_back()
    junk = (image / "state").read_bytes()[:200000] + b"\0" * 100000
    (image / "state").chmod(0o600)
    (image / "state").write_bytes(junk)
    files = {name: {"size": (image / name).stat().st_size,
                    "blake2b": hashlib.blake2b((image / name).read_bytes()).hexdigest()[:64]}
             for name in ("state", "root.qcow2", "docker.qcow2")}
    files["memory"] = json.loads((image / "image.json").read_text())["files"]["memory"]
    edit_json(image / "image.json", files=files)
    box = create(env, "junk")
    try:
        start, why = start_of(box)
        assert start == "cold" and why
        assert box.guest("echo alive") == "alive"
    finally:
        box.rm()


# making them

def test_the_command_says_what_is_there(env, kept):
    kept.put_back()  # after those above
    assert "already" in make_image(env).stdout
    bad = env.sbx("template", "warm", "nosuch", check=False)
    assert bad.returncode != 0 and "nosuch" in bad.stderr
    assert env.sbx("template", "warm", "--memory", "much", check=False).returncode != 0


def test_in_the_background_after_a_boot(env):
    env.sbx("settings", "set", "warm.images", "true")
    before = set(images(env))
    first = env.create("first", cpus=1, memory="768m")
    try:
        assert start_of(first)[0] == "cold"
        deadline = time.monotonic() + MAKE_SECONDS
        while not (new := set(images(env)) - before):
            assert time.monotonic() < deadline, (env.state / "images.log").read_text()[-2000:]
            time.sleep(0.5)
        second = env.create("later", cpus=1, memory="768m")
        assert start_of(second)[0] == "warm"
        second.rm()
        assert len(new) == 1
    finally:
        env.sbx("settings", "set", "warm.images", "false")
        first.rm()


def test_one_that_is_killed_leaves_nothing_that_counts(env):
    before = images(env)
    maker = env.popen("template", "warm", "--cpus", "2", "--memory", "600m", start_new_session=True)
    draft = env.state / "warm" / ".new"
    deadline = time.monotonic() + 60
    while not (draft / "root.qcow2").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    busy = env.sbx("template", "warm", "--cpus", "2", "--memory", "500m", check=False)
    assert busy.returncode != 0 and "being created" in busy.stderr
    os.killpg(maker.pid, signal.SIGKILL)
    maker.wait(30)
    deadline = time.monotonic() + 30
    while make_image(env, cpus=1, memory="768m").returncode != 0:
        assert time.monotonic() < deadline
    assert images(env) == before
