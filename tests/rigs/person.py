# SPDX-License-Identifier: Apache-2.0
"""A person who works on the host in a directory that gets a payload."""
import subprocess

SETTINGS = "[user]\n\tname = a\n\temail = a@example.org\n[init]\n\tdefaultBranch = master\n"
SECONDS = 60
# Writes the files of standard input as guest root. A way that fails is followed by the next one: in
# place, by a rename of the name that git uses, by a hard link, by a symbolic link, by a new node or
# by a directory that replaces the one above. An argument is the number of ways to try. Prints the
# files that could not be written.
FORCE = """
import json, os, sys

def write(name, text):
    with open(name, "w") as f:
        f.write(text)

def replace_folder(path, text):
    old = os.path.dirname(path)
    new = old + ".new"
    os.makedirs(new, exist_ok=True)
    write(os.path.join(new, os.path.basename(path)), text)
    os.rename(old, old + ".old")
    try:
        os.rename(new, old)
    except OSError:
        os.rename(old + ".old", old)
        raise

def force(path, mode, text):
    new = path + ".lock"
    ways = (lambda: write(path, text),
            lambda: (write(new, text), os.rename(new, path)),
            lambda: (write(new, text), os.link(new, path)),
            lambda: os.symlink(os.path.basename(new), path),
            lambda: (os.mknod(path, 0o100755), write(path, text)),
            lambda: replace_folder(path, text))
    for way in ways[:int(sys.argv[1])]:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            way()
            os.chmod(path, mode)
            return True
        except OSError:
            pass
    return False

print(json.dumps([file[0] for file in json.load(sys.stdin) if not force(*file)]))
"""


class Person:
    def __init__(self, payload, work, aside):
        """`work` is the directory of the payload; no sandbox can see `aside`."""
        self.payload, self.work, self.home = payload, work, aside / "person"
        self.canary = aside / "canary"
        self.work.mkdir(parents=True)
        self.home.mkdir(parents=True)
        self.write(self.home / ".gitconfig", SETTINGS + payload.home.get(".gitconfig", ""))
        for name, text in payload.home.items():
            if name != ".gitconfig":
                self.write(self.home / name, text)
        if payload.before:
            done = self.shell(payload.before)
            assert done.returncode == 0, done.stdout

    def text(self, text):
        return (text.replace("%C", str(self.canary)).replace("%W", str(self.work))
                .replace("%H", str(self.home)))

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(text), encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)

    def plant(self):
        for name, text in self.payload.plant.items():
            self.write(self.work / name, text)

    def files(self):
        """The input of the script FORCE."""
        return [(str(self.work / name), 0o755 if text.startswith("#!") else 0o644, self.text(text))
                for name, text in self.payload.plant.items()]

    def has(self, name):
        """Whether a planted file exists, also through a link."""
        path = self.work / name
        return path.is_file() and path.read_text(
            encoding="utf-8", errors="replace") == self.text(self.payload.plant[name])

    def shell(self, command):
        env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
               "GIT_EDITOR": "true", "GIT_PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1",
               "COMPOSER_HOME": str(self.home / ".composer"), "TERM": "dumb"}
        return subprocess.run(["/bin/sh", "-c", self.text(command)], cwd=self.work, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)

    def run(self):
        """Returns the output of the command. `canary` exists if the command ran the payload."""
        return self.shell(self.payload.run).stdout
