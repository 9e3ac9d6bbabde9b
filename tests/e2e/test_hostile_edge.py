"""A taken-over edge: it says the wrong thing at the wrong time, and the keeper ends it.

The programs are built from tests/hostile/hostile_edge.c and take sbx-edge's place.
"""
import os
import pathlib

import host
import pytest
from installation import HOSTILE

HOW = ("out_of_phase", "wrong_build", "oversized", "extra_fd", "ready_twice", "unknown_stream",
       "unasked_pong", "keepers_words", "trailing_bytes", "truncated_text", "early_ask",
       "ask_with_fd", "ask_twice", "ask_flood", "own_verdict")


def put_in_place(env, how):
    edge = pathlib.Path(env.env["SBX_LIBEXEC"]) / "sbx-edge"
    edge.unlink()
    edge.symlink_to(HOSTILE / f"hostile_edge_{how}")


@pytest.mark.parametrize("how", HOW)
def test_a_hostile_edge_is_killed_and_then_the_sandbox_is_stopped(fresh_env, how):
    put_in_place(fresh_env, how)
    before = host.mounts()
    done = fresh_env.sbx("-D", "create", "shell", "--name", "victim", "--cpus", 1, "--memory", "512m",
                         check=False, timeout=60)
    assert done.returncode != 0
    assert "sbx-edge broke its protocol" in done.stderr
    (box,) = fresh_env.ls()
    assert box["status"] == "stopped"
    log = (fresh_env.state / "sandboxes" / box["id"] / "keeper.log").read_text()
    assert log.count("worker violation") == 3
    names = set(host.processes(fresh_env.folder).values())
    assert not names & {"sbx-keeper", "sbx-edge", "qemu-system-x86"}, names
    assert host.mounts() == before
    assert not os.path.exists(fresh_env.runtime / "s" / box["id"])
