# SPDX-License-Identifier: Apache-2.0
"""What a guest cannot do through its own workspaces: lead one elsewhere, replace what is read-only,
see sbx itself.

One sandbox with a workspace inside another one at another place (data), one at the same place
(hooks), and, forced, the directory in which this installation has its state."""
import os
import stat

import pytest

from installation import START_SECONDS, Sandbox, private


class Walls:
    def __init__(self, env):
        self.env = env
        self.base = env.make_folder("walls")
        self.ws, self.secret = self.base / "ws", self.base / "secret"
        for path in (self.ws / "data", self.ws / ".git/hooks", self.secret):
            path.mkdir(parents=True)
        (self.secret / "id_ed25519").write_text("PRIVATE-KEY-CANARY\n")
        self.said = env.sbx("create", "shell", self.ws, f"{self.ws}/data:/data",
                            f"{self.ws}/.git/hooks:ro",
                            f"{env.folder}:/inst", "--name", "walls", "--force", "--memory", "1g",
                            "--cpus", "2",
                            timeout=START_SECONDS)
        self.box = Sandbox(env, "walls")


@pytest.fixture(scope="module")
def walls():
    with private() as env:
        made = Walls(env)
        yield made


def test_create_warns_about_a_workspace_inside_another(walls):
    assert f"workspace {walls.ws}/data is inside {walls.ws}, which the sandbox can change" in walls.said.stderr
    assert "hooks is inside" not in walls.said.stderr


def test_renaming_the_parent_does_not_replace_read_only_hooks(walls):
    """Guest root moves .git away and makes another one, as raw as mv can."""
    out = walls.box.guest(
        f"cd '{walls.ws}'; mv .git .git.old; mv -T .git .g2; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; "
                          f"python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); "
                          f"print(l.renameat2(-100, b\".git\", -100, b\"data\", 2), ctypes.get_errno())' || true", check=False)
    assert not (walls.ws / ".git/hooks/pre-commit").exists(), out
    assert sorted(os.listdir(walls.ws)) == [".git", "data"], out
    walls.box.guest(
        f"cd '{walls.ws}/.git' && echo x > config.lock && mv config.lock config && cat config")
    assert (walls.ws / ".git/config").read_text() == "x\n"


def test_sbx_itself_is_not_visible(walls):
    """Through a parent directory that was shared by force."""
    (walls.env.state / "canary").write_text("STATE-CANARY")
    seen = walls.box.guest(
        "cd /inst && ls -A state/sbx run/sbx config/sbx data/sbx | grep -v ':$' | grep -v '^$'; true", check=False)
    assert seen == "", seen
    walls.box.guest(
        "echo 'allow network planted.example' >> /inst/state/sbx/policy; mv /inst/state /inst/state2; rm -rf /inst/state/sbx; true", check=False)
    assert walls.env.state.is_dir() and (walls.env.state / "canary").read_text() == "STATE-CANARY"
    assert "planted.example" not in (walls.env.state / "policy").read_text()
    assert walls.box.fails("grep -r CANARY /inst/state")


def test_fifos_and_sockets_need_the_setting(walls):
    """A change of the setting applies at the next start or resume."""
    fifo = walls.ws / "fifo"
    make = f"mkfifo '{fifo}'"
    bind = f"cd '{walls.ws}' && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'"
    assert walls.box.fails(make) and walls.box.fails(bind)
    walls.env.sbx("settings", "set", "share.special-files", "true")
    assert walls.box.fails(make)
    walls.env.sbx("stop", "--suspend", "walls", timeout=START_SECONDS)
    walls.box.guest(f"{make} && {bind}", timeout=START_SECONDS)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and stat.S_ISSOCK((walls.ws / "sock").stat().st_mode)
    walls.env.sbx("settings", "unset", "share.special-files")
    walls.box.guest(f"rm '{fifo}' '{walls.ws}/sock'")


def refused(walls):
    p = walls.box.exec("cat", "/data/id_ed25519", check=False, timeout=START_SECONDS)
    assert p.returncode != 0 and "CANARY" not in p.stdout
    return p.stderr + str(walls.box.info())


def test_a_planted_link_is_not_followed_at_start_and_resume(walls):
    """The guest replaces data, which is also its workspace at /data, by a link."""
    walls.env.sbx("stop", "--suspend", "walls", timeout=START_SECONDS)
    (walls.ws / "data").rename(walls.ws / "data.old")
    (walls.ws / "data").symlink_to(walls.secret)
    assert f"{walls.ws}/data is a symbolic link now" in refused(walls)
    (walls.ws / "data").unlink()
    (walls.ws / "data.old").rename(walls.ws / "data")
    walls.box.guest(f"rmdir '{walls.ws}/data' && ln -s '{walls.secret}' '{walls.ws}/data'; sync",
                    timeout=START_SECONDS)
    assert (walls.ws / "data").is_symlink()
    walls.env.sbx("stop", "walls", timeout=START_SECONDS)
    assert f"{walls.ws}/data is a symbolic link now" in refused(walls)
