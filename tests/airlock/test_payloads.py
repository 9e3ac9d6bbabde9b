# SPDX-License-Identifier: Apache-2.0
"""Each payload runs on a host without a guard: its program creates the canary."""
import os
import pathlib
import subprocess

import pytest
from payloads import PAYLOADS

PERSON = "[user]\n\tname = a\n\temail = a@example.org\n[init]\n\tdefaultBranch = master\n"
SECONDS = 60


class Host:
    """A folder of a person, with settings of the person's own in another."""

    def __init__(self, root, payload):
        self.payload, self.work, self.home = payload, root / "work", root / "person"
        self.canary = root / "canary"
        self.work.mkdir()
        self.home.mkdir()
        self.write(self.home, ".gitconfig", PERSON + payload.home.get(".gitconfig", ""))
        for name, text in payload.home.items():
            if name != ".gitconfig":
                self.write(self.home, name, text)
        if payload.before:
            done = self.shell(payload.before)
            assert done.returncode == 0, done.stdout

    def text(self, text):
        return text.replace("%C", str(self.canary)).replace("%W", str(self.work))

    def write(self, folder, name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(text), encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)

    def plant(self):
        for name, text in self.payload.plant.items():
            self.write(self.work, name, text)

    def shell(self, command):
        env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
               "GIT_EDITOR": "true", "GIT_PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1",
               "COMPOSER_HOME": str(self.home / ".composer"), "TERM": "dumb"}
        return subprocess.run(["/bin/sh", "-c", self.text(command)], cwd=self.work, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: f"{p.kind}-{p.name}")
def test_a_planted_file_runs(payload, tmp_path):
    host = Host(pathlib.Path(os.path.realpath(tmp_path)), payload)
    host.shell(payload.run)
    assert not host.canary.exists(), "the command creates the canary without a planted file"
    host.plant()
    done = host.shell(payload.run)
    assert host.canary.exists(), done.stdout
