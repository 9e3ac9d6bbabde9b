# SPDX-License-Identifier: Apache-2.0
"""A compromised edge: it sends wrong messages at the wrong time, and the keeper kills it.

The programs are built from tests/rigs/hostile/hostile_edge.c and take sbx-edge's place.
"""
import os
import pathlib

import host
import pytest
from installation import HOSTILE, private

HOW = ("out_of_phase", "wrong_build", "oversized", "extra_fd", "ready_twice", "unknown_stream",
       "unused_number", "keepers_words", "trailing_bytes", "truncated_text", "early_ask",
       "ask_with_fd", "ask_twice", "ask_flood", "own_verdict")


@pytest.fixture(scope="module")
def own():
    """One installation for all: sbx-edge is replaced in it, and each sandbox is removed before the
    next."""
    with private() as made:
        yield made


def put_in_place(env, how):
    edge = pathlib.Path(env.env["SBX_LIBEXEC"]) / "sbx-edge"
    edge.unlink()
    edge.symlink_to(HOSTILE / f"hostile_edge_{how}")


@pytest.mark.parametrize("how", HOW)
def test_a_hostile_edge_is_killed_and_then_the_sandbox_is_stopped(own, how):
    put_in_place(own, how)
    before = host.mounts()
    done = own.sbx("-D", "create", "shell", "--name", "victim", "--cpus", 1, "--memory", "512m",
                   check=False, timeout=60)
    assert done.returncode != 0
    assert "sbx-edge violated its protocol" in done.stderr
    # A create that fails leaves nothing but the log of its keeper.
    assert own.ls() == []
    assert (own.state / "failed-create.log").read_text().count("worker violation") == 3
    names = set(host.processes(own.folder).values())
    assert not names & {"sbx-keeper", "sbx-edge", "qemu-system-x86"}, names
    assert host.mounts() == before
    assert os.listdir(own.runtime / "s") == os.listdir(own.state / "sandboxes") == []
