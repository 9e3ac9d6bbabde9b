# SPDX-License-Identifier: Apache-2.0
"""tools/devenv: a separate installation, and it stops only the processes started in it."""
import os
import pathlib
import signal
import subprocess
import time

import host
from installation import TREE

DEVENV = TREE / "tools" / "devenv"


def devenv(*argv, kept=None, **kwargs):
    env = {k: v for k, v in os.environ.items() if k not in ("SBX_DEVENV", "SBX_TEMPLATES")}
    if kept:
        env["SBX_DEVENV"] = str(kept)
    return subprocess.run([DEVENV, *argv], env=env, capture_output=True, text=True, timeout=60,
                          check=False, **kwargs)


def test_exit_status_and_folders():
    done = devenv("sh", "-c",
                  "echo $XDG_STATE_HOME $XDG_RUNTIME_DIR $XDG_DATA_HOME $XDG_CONFIG_HOME; "
                  "command -v sbx; ls $SBX_LIBEXEC; exit 7")
    assert done.returncode == 7
    *folders, program = done.stdout.splitlines()[0].split() + [done.stdout.splitlines()[1]]
    assert len(set(folders)) == 4 and all(f.startswith("/tmp/sbx-") for f in folders)
    assert program.startswith("/tmp/sbx-")
    assert {"sbxd", "sbx-keeper", "sbx-edge", "sbx-egress", "sbx-guest",
            "template-build"} <= set(done.stdout.split())
    assert not any(pathlib.Path(f).parent.exists() for f in folders)
    assert devenv("sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert devenv("no-such-program").returncode == 127


def test_everything_started_in_it_ends():
    """A daemon with the environment, one without, and one that is stopped and deaf."""
    done = devenv("sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!; "
                  "(setsid env -i sleep 301 >/dev/null 2>&1 & echo $!); "
                  "sh -c 'trap \"\" TERM; kill -STOP $$; sleep 302' >/dev/null 2>&1 & echo $!")
    pids = [int(p) for p in done.stdout.split()]
    assert len(pids) == 3 and done.returncode == 0
    assert not [p for p in pids if host.is_alive(p)]


def test_nothing_else_ends():
    other = subprocess.Popen(["sleep", "303"])
    try:
        devenv("sbx", "ls")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_kept_folder_keeps_what_runs_in_it():
    kept = pathlib.Path(f"/tmp/sbx-kept-{os.getpid()}")
    try:
        assert devenv("sbx", "ls", kept=kept).returncode == 0
        deadline = time.monotonic() + 60
        while "sbxd" not in host.processes(kept).values():
            assert time.monotonic() < deadline, "sbxd does not run in the kept directory"
            time.sleep(0.1)
        assert devenv("--stop", kept=kept).returncode == 0
        assert host.processes(kept) == {}
        assert (kept / "state").is_dir()
    finally:
        devenv("--stop", kept=kept)
        subprocess.run(["rm", "-rf", str(kept)], check=False)


def test_it_says_what_is_missing(tmp_path):
    done = subprocess.run([DEVENV, "true"], env={**os.environ, "SBX_BUILD": str(tmp_path)},
                          capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 1 and "meson setup" in done.stderr
    assert devenv("true", kept="/tmp/" + "x" * 80).returncode == 1
