# SPDX-License-Identifier: Apache-2.0
"""screens - a terminal in a bare Debian, what is typed there, and a page of what it showed. For
tools/first-minute and tools/two-days.

A scene is a heading, a sentence and the steps. A step is what is typed (a key when it is one of
KEYS), what ends it, and its bound in seconds. Every screen on the page is what tmux has shown:
nothing in it is typed by hand. A step whose text does not come in time ends the run, with the
screen.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

BARE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "package" / "bareroot"
COLUMNS, ROWS, HISTORY = 110, 45, 5000
PROMPT = r"(me@debian:\S*\$|root@debian:\S*#) $"
INSIDE = r"agent@\S+:\S*\$ $"
SHORT, LONG, BUILD = 90, 600, 2400
KEYS = ("C-c", "Enter")
INSTALL = ("Installing",
           "As root, on a Debian with nothing but its base. `dpkg -i` finds out what is missing, apt brings it.", [
    ("apt-get -qq update", PROMPT, LONG),
    ("dpkg -i sbx.deb 2>&1 | tail -n 3", PROMPT, LONG),
    ("apt-get -y --no-install-recommends -f install 2>&1 | tail -n 3", PROMPT, LONG),
    ("useradd --create-home --shell /bin/bash me", PROMPT, SHORT),
    ("su - me", PROMPT, SHORT),
])


class Terminal:
    """One pane of a tmux server of our own."""

    def __init__(self, command):
        self.name = f"screens-{os.getpid()}"
        self.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command)
        self.tmux("set-option", "-g", "history-limit", str(HISTORY))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", self.name, "-f", "/dev/null", *args], check=True,
                              timeout=20,
                              capture_output=True, text=True).stdout

    def screen(self):
        # -N keeps the blank behind a prompt, which says that it is one
        text = self.tmux("capture-pane", "-p", "-N", "-S", "-")
        return "\n".join(line.rstrip() + (" " if re.search(r"[$#:)] +$", line) else "")
                         for line in text.split("\n")).rstrip("\n")

    def clear(self):
        self.tmux("send-keys", "C-l")
        time.sleep(0.3)
        self.tmux("clear-history")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, pattern, seconds):
        """The screen, as soon as its end matches."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
            text = self.screen()
            if re.search(pattern, text.rstrip("\n")):
                time.sleep(0.3)
                return self.screen()
        raise TimeoutError(
            f"after {seconds} s there is no {pattern!r} on the screen:\n{self.screen()}")

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, timeout=20,
                       capture_output=True)


def play(terminal, steps):
    """Types the steps; gives the screens, one where the picture was moving when a key was
    pressed."""
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
    """Without empty lines at the ends and without the prompt that waits for the next step."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    while lines and re.fullmatch(PROMPT.rstrip("$").rstrip(), lines[-1]):
        lines.pop()
    return "\n".join(lines)


def write(out, head, scenes):
    with open(out, "w", encoding="utf-8") as f:
        f.write(head)
        for title, text, screens in scenes:
            f.write(f"\n## {title}\n\n" + (f"{text}\n\n" if text else ""))
            for screen in screens:
                f.write(f"```\n{tidy(screen)}\n```\n")


def perform(packages, out, head, scenes, keep=None):
    """packages: file names in /root there, and the files. keep: the root is there already, or is
    left there."""
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
