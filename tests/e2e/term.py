"""A terminal with somebody typing in it: tmux with a server of its own."""
import pathlib
import subprocess
import time
import uuid


class Terminal:
    def __init__(self, env, *argv, columns=100, rows=30):
        self.socket = str(env.folder / f"tmux-{uuid.uuid4().hex[:6]}")
        self.env = {**env.env, "TERM": "xterm-256color"}
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), "env", "TERM=xterm-256color",
                  *map(str, argv))
        self.tmux("set-option", "-t", "t", "remain-on-exit", "on")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, check=False,
                       capture_output=True, timeout=10)
        pathlib.Path(self.socket).unlink(missing_ok=True)

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
        """Until the text is on the screen; gives the screen."""
        deadline = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} did not appear in {seconds} s on:\n{screen}"
            time.sleep(0.05)
        return screen

    def wait_end(self, seconds=30):
        """Until the command has ended; gives its exit status."""
        deadline = time.monotonic() + seconds
        while True:
            dead, status = self.tmux("display-message", "-p", "-t", "t",
                                     "#{pane_dead},#{pane_dead_status}").strip().split(",")
            if dead == "1":
                return int(status or -1)
            assert time.monotonic() < deadline, f"still running after {seconds} s:\n{self.screen()}"
            time.sleep(0.05)
