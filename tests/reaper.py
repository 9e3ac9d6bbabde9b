# SPDX-License-Identifier: Apache-2.0
"""Kills the processes that the tests of an installation started, also if the test run is killed.

Keepers and the vault outlive sbxd by design, and remain if pytest is killed. A second process
therefore waits at a pipe. If the pipe closes without a goodbye, it kills each process whose
environment or command line names a directory that is still open, and removes these directories.

In a build with sanitizers the programs write reports to their logs. The exit status of a program
that is killed anyway fails no test, so the logs of a directory are searched when it is closed."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time


def find(root):
    """Processes of the installation in this directory."""
    word, found = str(root).encode(), []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in (os.getpid(), os.getppid()):
            continue
        for name in ("environ", "cmdline"):
            try:
                if word in (entry / name).read_bytes() and not is_dead(entry):
                    found.append(int(entry.name))
                    break
            except OSError:
                pass
    return found


def is_dead(entry):
    return (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def kill(root, seconds=5):
    until = time.monotonic() + seconds
    while (pids := find(root)) and time.monotonic() < until:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    return pids


REPORT = re.compile(rb"ERROR: \w+Sanitizer|runtime error: ")
MOST_LOG = 16 << 20


def sanitizer_options():
    """The options of the sanitizers, for the separate environment of the programs."""
    return {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")
            if name in os.environ}


def sanitizer_reports(root):
    """The beginning of each report in the logs below this directory. Only logs: a test may record
    the output of a program."""
    found = []
    for path in [p for pattern in ("log", "*.log") for p in pathlib.Path(root).rglob(pattern)]:
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as f:
                text = f.read(MOST_LOG)
            found += [f"{path}: {text[m.start():m.start() + 3000].decode(errors='replace')}"
                      for m in REPORT.finditer(text)]
    return found


class Guard:
    def __init__(self):
        self.proc = None

    def say(self, mark, root):
        if not self.proc:
            self.proc = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
                                         start_new_session=True)
        self.proc.stdin.write(f"{mark}{root}\n".encode())
        self.proc.stdin.flush()

    def open(self, root):
        self.say("+", root)

    def close(self, root):
        """Kills all processes of this directory and stops watching it."""
        left = kill(root)
        reports = sanitizer_reports(root)
        # The directory stays watched, so it is removed when the tests exit.
        assert not reports, "\n".join(reports)
        self.say("-", root)
        assert not left, f"processes {left} do not exit"


guard = Guard()


def main():
    roots = set()
    for line in sys.stdin:
        (roots.add if line[0] == "+" else roots.discard)(line[1:].rstrip("\n"))
    for root in roots:
        if root.startswith("/tmp/"):
            kill(root)
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
