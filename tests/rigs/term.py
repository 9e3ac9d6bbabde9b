# SPDX-License-Identifier: Apache-2.0
"""A terminal with simulated input: tmux with a separate server."""
import pathlib
import shutil
import subprocess
import tempfile
import time


# A shell around the command writes the exit status: tmux 3.3 sometimes loses it. Signal keys reach
# that shell too, which continues; a trap, unlike an ignored signal, is not inherited by the
# command.
AROUND = 'trap : INT QUIT HUP; "$@"; echo $? > "$0.new" && mv "$0.new" "$0"; sleep 1'


class Terminal:
    def __init__(self, env, *argv, columns=100, rows=30):
        # Not in the installation's directory: files left there count against sbx.
        self.folder = tempfile.mkdtemp(prefix="sbx-tmux-", dir="/tmp")
        self.socket = f"{self.folder}/s"
        self.status = pathlib.Path(self.folder) / "status"
        self.env = {**env.env, "TERM": "xterm-256color"}
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), "env",
                  "TERM=xterm-256color",
                  "sh", "-c", AROUND, str(self.status), *map(str, argv))
        self.tmux("set-option", "-t", "t", "remain-on-exit", "on")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, check=False,
                       capture_output=True, timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *args], env=self.env,
                              check=True, capture_output=True, text=True, timeout=10).stdout

    def type(self, text):
        self.tmux("send-keys", "-t", "t", "-l", text)

    def key(self, name):
        """Enter, C-c, C-d, ..."""
        self.tmux("send-keys", "-t", "t", name)

    def line(self, text):
        self.type(text)
        self.key("Enter")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def screen(self):
        return self.tmux("capture-pane", "-p", "-J", "-t", "t")

    def wait_for(self, text, seconds=30):
        """Waits until the text is on the screen; returns the screen."""
        deadline = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, (
                f"{text!r} did not appear in {seconds} s on:\n{screen}")
            time.sleep(0.05)
        return screen

    def wait_end(self, seconds=30):
        """Waits until the command has exited; returns its exit status."""
        deadline = time.monotonic() + seconds
        while not self.status.exists():
            assert time.monotonic() < deadline, f"still running after {seconds} s:\n{self.screen()}"
            time.sleep(0.05)
        return int(self.status.read_text(encoding="ascii"))
