# SPDX-License-Identifier: Apache-2.0
"""screens - type commands in a terminal of a bare Debian and write a page of its screens. For
tools/first-minute and tools/two-days.

A scene is a heading, a sentence and the steps. A step is the text to type (or a key of KEYS), the
pattern to wait for, and a timeout in seconds. Every screen on the page is a capture of tmux. If the
pattern does not appear in time, the run fails and prints the screen.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import time

BARE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "package" / "bareroot"
COLUMNS, ROWS, HISTORY = 110, 45, 5000
WIDTH = 100  # of the page's own text
PROMPT = r"(me@debian:\S*\$|root@debian:\S*#) $"
INSIDE = r"agent@\S+:\S*\$ $"
SHORT, LONG, BUILD = 90, 600, 2400
KEYS = ("C-c", "Enter")
INSTALL = ("Installing",
           "As root, on a Debian with only its base system. `dpkg -i` lists the missing packages, "
           "and apt installs them.", [
    ("apt-get -qq update", PROMPT, LONG),
    ("dpkg -i sbx.deb 2>&1 | tail -n 3", PROMPT, LONG),
    ("apt-get -y --no-install-recommends -f install 2>&1 | tail -n 3", PROMPT, LONG),
    ("useradd --create-home --shell /bin/bash me", PROMPT, SHORT),
    ("su - me", PROMPT, SHORT),
])


class Terminal:
    """One pane of a separate tmux server."""

    def __init__(self, command):
        self.name = f"screens-{os.getpid()}"
        self.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command)
        self.tmux("set-option", "-g", "history-limit", str(HISTORY))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", self.name, "-f", "/dev/null", *args], check=True,
                              timeout=20,
                              capture_output=True, text=True).stdout

    def screen(self):
        # -N keeps the blank after a prompt, by which patterns recognize it
        text = self.tmux("capture-pane", "-p", "-N", "-S", "-")
        return "\n".join(line.rstrip() + (" " if re.search(r"[$#:)\]] +$", line) else "")
                         for line in text.split("\n")).rstrip("\n")

    def clear(self):
        self.tmux("send-keys", "C-l")
        time.sleep(0.3)
        self.tmux("clear-history")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, pattern, seconds):
        """Returns the screen as soon as its end matches."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
            text = self.screen()
            if re.search(pattern, text.rstrip("\n")):
                time.sleep(0.3)
                return self.screen()
        raise TimeoutError(
            f"no {pattern!r} on the screen after {seconds} s:\n{self.screen()}")

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, timeout=20,
                       capture_output=True)


def play(terminal, steps):
    """Types the steps and returns the last screen, in a list."""
    screens = []
    terminal.clear()
    for typed, until, seconds in steps:
        if typed in KEYS:
            terminal.press(typed)
        else:
            terminal.press("-l", typed)
            terminal.press("Enter")
        last = terminal.wait(until, seconds)
    screens.append(last)
    return screens


def tidy(text):
    """Removes empty lines at both ends and the prompt that waits for the next step."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    while lines and re.fullmatch(PROMPT.rstrip("$").rstrip(), lines[-1]):
        lines.pop()
    return "\n".join(lines)


def write(out, head, scenes):
    with open(out, "w", encoding="utf-8") as f:
        f.write(head)
        for title, text, screens in scenes:
            f.write(f"\n## {title}\n\n" + (textwrap.fill(text, WIDTH) + "\n\n" if text else ""))
            for screen in screens:
                f.write(f"```\n{tidy(screen)}\n```\n")


def perform(packages, out, head, scenes, keep=None):
    """packages: file name in /root -> file. keep: directory of a root to reuse and keep."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="screens.", dir="/var/tmp"))
    root = pathlib.Path(keep) if keep else scratch / "root"
    terminal = None
    done = []
    try:
        if not root.exists():
            subprocess.run([BARE, "make", root], check=True, timeout=600)
        for name, path in packages.items():
            shutil.copy(path, root / "root" / name)
        terminal = Terminal(f"{BARE} enter {root} bash -c 'cd; exec bash -l'")
        terminal.wait(PROMPT, SHORT)
        for title, text, steps in scenes:
            print(title, flush=True)
            done.append((title, text, play(terminal, steps)))
            write(out, head, done)
    finally:
        if terminal:
            terminal.close()
        if not keep:
            subprocess.run([BARE, "remove", root], check=False, timeout=300)
        shutil.rmtree(scratch, ignore_errors=True)
