# SPDX-License-Identifier: Apache-2.0
"""Starts of a sandbox against bare qemu: `sbx create` and the first exec, booted and from a memory
image.

usage: bare_pairs.py PID-OF-QEMU cold|warm [PAIRS]

The process belongs to the sandbox `model`, which is removed. Prints one line of JSON.

The bare arm boots up to the first byte of the guest, or restores the same image: a copy of its
memory, its disks and its `state`, up to the guest's answer to a new session."""
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bare import Machine, Recipe, connect, frame

MEMORY = 1 << 30


def sbx(*words):
    subprocess.run(["sbx", *words], check=True, stdout=subprocess.DEVNULL)


def ours(*flags):
    begin = time.monotonic()
    sbx("create", "shell", "--name", "pair", "--cpus", "1", "--memory", "1g", *flags)
    sbx("exec", "pair", "true")
    took = time.monotonic() - begin
    how = json.loads(subprocess.run(["sbx", "inspect", "pair", "--json"], check=True,
                                    stdout=subprocess.PIPE).stdout)["start"]
    sbx("rm", "-f", "pair")
    assert how == ("cold" if flags else "warm"), how
    return took


class Qmp:
    def __init__(self, path):
        self.sock = connect(path)
        self.file = self.sock.makefile("r")
        self.file.readline()
        self.do("qmp_capabilities")
        self.do("migrate-set-capabilities",
                capabilities=[{"capability": name, "state": True}
                              for name in ("events", "x-ignore-shared")])

    def do(self, command, **arguments):
        self.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while "return" not in (answer := json.loads(self.file.readline())):
            assert "error" not in answer, answer

    def wait_restored(self):
        while (event := json.loads(self.file.readline())).get("data",
                                                              {}).get("status") != "completed":
            assert event.get("data", {}).get("status") != "failed", event


def restore_bare(recipe, image):
    ctl, qmp, memory = recipe.folder / "c", recipe.folder / "q", recipe.folder / "memory"
    argv = recipe.command(ctl)
    for name in ("root", "docker"):
        # without its mode: the image is read-only
        shutil.copyfile(image / f"{name}.qcow2", ctl.with_suffix(f".{name}"))
    argv = [w.replace("memory-backend-memfd,",
                      f"memory-backend-file,mem-path={memory},").replace("spawn=deny",
                                                                         "spawn=allow")
            for w in argv]
    argv += ["-chardev", f"socket,id=q,path={qmp},server=on,wait=off", "-mon",
             "chardev=q,mode=control"]
    begin = time.monotonic()
    subprocess.run(["cp", "--sparse=always", "--no-preserve=mode", image / "memory", memory],
                   check=True)
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        monitor = Qmp(qmp)
        wire = connect(ctl)
        wire.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
        monitor.do("migrate-incoming", uri=f"exec:cat {image}/state")
        monitor.wait_restored()
        monitor.do("cont")
        wire.settimeout(300)
        assert wire.recv(1)
        return time.monotonic() - begin
    finally:
        process.kill()
        process.wait()
        for path in (*recipe.folder.glob("[cq]*"), memory):
            path.unlink()


def boot_bare(recipe):
    machine = Machine(recipe)
    machine.close()
    return machine.ready_s


def newest_image():
    """Of the class that is measured: other steps have made others, and an upgrade makes new
    ones."""
    images = (pathlib.Path.home() / ".local/state/sbx/warm").glob("*/image.json")
    return max((i.parent for i in images if (i.parent / "memory").stat().st_size == MEMORY),
               key=lambda p: p.stat().st_mtime)


def main():
    pid, how, pairs = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        recipe = Recipe(pid, pathlib.Path(folder))
        sbx("rm", "-f", "model")
        rows = []
        for _ in range(pairs):
            if how == "cold":
                rows.append((ours("--cold"), boot_bare(recipe)))
            else:
                rows.append((ours(), restore_bare(recipe, newest_image())))
    ratios = sorted(a / b for a, b in rows)
    print(json.dumps({"figure": how, "ratio_to_bare": round(statistics.median(ratios), 2),
                      "lowest": round(ratios[0], 2), "highest": round(ratios[-1], 2),
                      "pairs": pairs, "ours_s": round(statistics.median(a for a, _ in rows), 1),
                      "bare_s": round(statistics.median(b for _, b in rows), 1)}))


main()
