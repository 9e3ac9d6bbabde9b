#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""git_commands - the real git on a repository whose configuration is a checked file.

usage:  git_commands.py CHECKED_RENAME

CHECKED_RENAME is loaded into git and answers each rename onto `config` as the supervisor of a share
does. Everyday commands work; commands that set a key that runs programs fail and change nothing.
The remotes are on a git daemon of this test.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

LIBRARY = os.path.abspath(sys.argv[1])


class Host:
    """A folder with repositories, a daemon that serves them, and the workspace."""

    def __init__(self, folder):
        self.top = pathlib.Path(folder).resolve()
        self.space = self.top / "space"
        self.space.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.top), "LC_ALL": "C.UTF-8",
                    "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
                    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.test",
                    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.test"}
        self.checks = []
        for name in ("one", "two"):
            self.plain("init", "-q", "-b", "main", f"srv/{name}")
            self.plain("-C", f"srv/{name}", "commit", "-q", "--allow-empty", "-m", "first")
            self.plain("clone", "-q", "--bare", f"srv/{name}", f"srv/{name}.git")
        self.port, self.daemon = self.serve()

    def serve(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        daemon = subprocess.Popen(
            ["git", "daemon", "--export-all", "--enable=receive-pack", "--reuseaddr",
             "--listen=127.0.0.1", f"--port={port}", f"--base-path={self.top}/srv"],
            env=self.env, stderr=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return port, daemon
            time.sleep(0.05)
        raise SystemExit("git daemon does not listen")

    def url(self, name):
        return f"git://127.0.0.1:{self.port}/{name}.git"

    def plain(self, *args):
        subprocess.run(["git", *args], cwd=self.top, env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def git(self, *args, cwd="r", fails=False):
        """git with the library; returns its output."""
        env = dict(self.env, LD_PRELOAD=LIBRARY, SBX_TEST_ROOT=str(self.space))
        done = subprocess.run(["git", *args], cwd=self.space / cwd, env=env, text=True,
                              capture_output=True)
        lines = done.stderr.splitlines()
        self.checks += [line for line in lines if line.startswith("checked ")]
        assert (done.returncode != 0) == fails, (args, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def entries(self, repo="r/.git"):
        done = subprocess.run(["git", "config", "-f", str(self.space / repo / "config"), "--list"],
                              env=self.env, text=True, capture_output=True, check=True)
        return done.stdout.splitlines()


def everyday_commands_work(host):
    host.git("init", "-q", "-b", "main", "r", cwd=".")
    host.git("config", "user.name", "A B")
    host.git("config", "user.email", "a@example.test")
    host.git("commit", "-q", "--allow-empty", "-m", "x")
    host.git("remote", "add", "origin", host.url("one"))
    host.git("fetch", "-q")
    host.git("branch", "-u", "origin/main")
    host.git("switch", "-q", "-c", "topic", "--track", "origin/main")
    host.git("push", "-q", "-u", "origin", "topic")
    host.git("branch", "-m", "topic", "Topic/2")
    assert "branch.Topic/2.remote=origin" in host.entries()
    host.git("remote", "rename", "origin", "up")
    assert "branch.main.remote=up" in host.entries(), host.entries()
    host.git("remote", "set-url", "--add", "--push", "up", host.url("two"))
    host.git("worktree", "add", "-q", "../r2", "-b", "w")
    host.git("config", "pull.rebase", "true")
    host.git("config", "--unset", "pull.rebase")
    host.git("switch", "-q", "main")
    host.git("branch", "-q", "-D", "Topic/2", "w", fails=True)  # w is checked out in r2
    host.git("remote", "remove", "up")
    assert not [e for e in host.entries() if e.startswith(("remote.", "branch."))]


def clones_and_submodules_work(host):
    host.git("clone", "-q", host.url("one"), "c", cwd=".")
    host.git("submodule", "--quiet", "add", host.url("two"), "lib/two", cwd="c")
    assert "core.worktree=../../../../lib/two" in host.entries("c/.git/modules/lib/two")
    host.git("commit", "-q", "-m", "sub", cwd="c")
    host.git("mv", "lib", "deps", cwd="c")
    assert "core.worktree=../../../../deps/two" in host.entries("c/.git/modules/lib/two")
    host.git("submodule", "--quiet", "update", "--init", cwd="c")
    host.git("submodule", "--quiet", "deinit", "-f", "deps/two", cwd="c")
    host.git("-c", "init.defaultBranch=x", "init", "-q", "--object-format=sha256", "s", cwd=".")


def harmful_commands_fail_and_change_nothing(host):
    before = (host.space / "c/.git/config").read_bytes()
    for args in (("config", "core.fsmonitor", "x"), ("config", "core.hooksPath", "x"),
                 ("config", "alias.st", "!x"), ("config", "include.path", "../x"),
                 ("config", "filter.x.clean", "x"), ("config", "core.worktree", "../x"),
                 ("config", "core.pager", "x"), ("config", "branch.main.remote", "./x"),
                 ("remote", "add", "evil", "ext::sh -c x"), ("remote", "set-url", "origin", "../x"),
                 ("config", "--rename-section", "remote.origin", "credential"),
                 ("config", "submodule.x.update", "!x"), ("config", "core.sshCommand", "x")):
        host.git(*args, cwd="c", fails=True)
        assert (host.space / "c/.git/config").read_bytes() == before, args
    host.git("clone", "-q", "./c", "local", cwd=".", fails=True)
    assert "core.fsmonitor: " in host.git("config", "core.fsmonitor", "x", cwd="c", fails=True)


def settings_of_the_user_survive(host):
    path = host.space / "c/.git/config"
    path.write_text(path.read_text() + "[core]\n\tpager = less ; mine\n[alias]\n\tx = \"a # b\"\n")
    host.git("config", "user.name", "C", cwd="c")
    assert {"core.pager=less", "alias.x=a # b", "user.name=C"} <= set(host.entries("c/.git"))
    for args in (("config", "--unset", "core.pager"), ("config", "alias.x", "y"),
                 ("config", "--remove-section", "alias")):
        host.git(*args, cwd="c", fails=True)
    assert {"core.pager=less", "alias.x=a # b"} <= set(host.entries("c/.git"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder)
        try:
            for test in (everyday_commands_work, clones_and_submodules_work,
                         harmful_commands_fail_and_change_nothing, settings_of_the_user_survive):
                test(host)
        finally:
            host.daemon.terminate()
            host.daemon.wait()
        good = sum(line.endswith(": ok") for line in host.checks)
        print(f"{good} renames accepted, {len(host.checks) - good} refused")
        assert good > 50 and len(host.checks) - good > 15, host.checks


main()
