# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of snapshots: an installation with a snapshot, and data that distinguishes
VMs."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import threading

import host
from installation import private

MAKE_SECONDS = 300  # a boot, a pause and a file of some hundred megabytes, on a busy machine
CPUS, MEMORY = 2, "1g"
MEMORY_BYTES = 1 << 30

# Everything that must differ between two VMs of one snapshot, one per line; nothing is read twice.
FACTS = {
    "random": "head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n'",
    "getrandom": "python3 -c 'import os; print(os.getrandom(32).hex())'",
    "uuid": "cat /proc/sys/kernel/random/uuid",
    "machine": "cat /etc/machine-id",
    "boot": "cat /proc/sys/kernel/random/boot_id",
    "host": "hostname",
    "ca": "sha256sum < /usr/local/share/ca-certificates/sbx.crt",
    "hosts": "grep 127.0.1.1 /etc/hosts",
    "mktemp": "mktemp -u",
    # The random of a ClientHello of OpenSSL.
    "tls": "python3 -c 'import ssl\nc = ssl.create_default_context()\no = ssl.MemoryBIO()\ns = c.wrap_bio(ssl.MemoryBIO(), o, server_hostname=\"x\")\n"
           "try: s.do_handshake()\nexcept ssl.SSLWantReadError: pass\nprint(o.read()[11:43].hex())'",
    "sentinel": "echo $ANTHROPIC_API_KEY",  # of an installation with a key of Anthropic
    "aslr": "python3 -c 'print(id(object()), hash(\"sbx\"))'",
}


@contextlib.contextmanager
def warm_installation(**kwargs):
    """An installation whose template has a snapshot for CPUS and MEMORY and no other: that of
    tests/e2e, or a new one."""
    with private(**kwargs) as env:
        for image in images(env):
            if (image / "memory").stat().st_size != MEMORY_BYTES:
                shutil.rmtree(image)
        make_image(env)
        yield env


def make_image(env, cpus=CPUS, memory=MEMORY):
    return env.sbx("template", "warm", "debian", "--cpus", cpus, "--memory", memory,
                   timeout=MAKE_SECONDS)


def images(env):
    """Returns the directories of valid snapshots."""
    store = env.state / "warm"
    return sorted(p for p in store.iterdir()
                  if not p.name.startswith(".")) if store.exists() else []


def start_of(box):
    """Returns (how, why not warm)."""
    info = box.info()
    return info["start"], info["cold_why"]


def facts(box):
    """Returns name -> value, from one program in the guest."""
    script = "; ".join(f"echo {name}=\"$({command})\"" for name, command in FACTS.items())
    return dict(line.split("=", 1) for line in box.guest(script, timeout=120).splitlines())


class Kept:
    """A copy of the one snapshot, to restore it after a test has damaged it."""

    def __init__(self, env, folder):
        (self.image,) = images(env)
        self.copy = pathlib.Path(folder) / "image"
        copy_sparse(self.image, self.copy)

    def put_back(self):
        shutil.rmtree(self.image, ignore_errors=True)
        copy_sparse(self.copy, self.image)
        return self.image


def copy_sparse(folder, to):
    """Most of the memory is holes."""
    subprocess.run(["cp", "-a", "--sparse=auto", folder, to], check=True)


def flip(path, at):
    path.chmod(0o600)
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes((byte[0] ^ 1,)))


def edit_json(path, **changes):
    whole = json.loads(path.read_text())
    whole.update(changes)
    path.write_text(json.dumps(whole))


class PeakMemory:
    """Shmem and anonymous memory of a keeper and all processes below it, in KiB: at the start, and
    the maximum since."""

    def __init__(self, keeper):
        self.keeper, self.over = keeper, threading.Event()

    def now(self):
        total = 0
        for pid in (self.keeper, *host.descendants(self.keeper)):
            with contextlib.suppress(OSError):
                total += sum(int(n)
                             for n in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$",
                                                 pathlib.Path(f"/proc/{pid}/status").read_text(),
                                                 re.M))
        return total

    def watch(self):
        while not self.over.wait(0.02):
            self.peak = max(self.peak, self.now())

    def __enter__(self):
        self.before = self.peak = self.now()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.over.set()
        self.thread.join()
