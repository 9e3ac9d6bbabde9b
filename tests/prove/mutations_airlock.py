# SPDX-License-Identifier: Apache-2.0
"""Holes in the guard of workspaces: all of it, and its list."""
from holes import HOLES
from mutation import Hole, Mutation

HOLES += [
    Hole("guard-denies-nothing", "src/keeper/worker/hands.c",
         "[SPEC_GUARD_DEFAULT] = GUARD_DEFAULT,", "[SPEC_GUARD_DEFAULT] = GUARD_REPORT,"),
    Hole("guard-lists-nothing", "lib/vm/share/guard_dirty.c",
         "\tr = add_row(g, &at, m->row, op, tree > 0);\n",
         "\tr = tree > 4096 ? add_row(g, &at, m->row, op, tree > 0) : 0;\n"),
]

# The directory is no longer the share: nothing in it is refused, and nothing reaches the host.
COVER = r"""
work=$(awk '$1 == "none" && $3 == "virtiofs" &&
	$2 !~ "^/run/" && $4 ~ /^rw/ { print $2; exit }' /proc/mounts)
mount -t tmpfs -o mode=0777 none "$work"
"""
UNCOVER = COVER.replace("mount -t tmpfs -o mode=0777 none", "umount -l")

MUTATIONS = [
    Mutation(red=tuple(f"airlock/{n}" for n in (
        "claude-settings", "envrc", "git-config", "git-hooks", "hard-link", "link-names", "listed",
        "parent-rename")), guest=COVER, undo_guest=UNCOVER),
    Mutation(red=tuple(f"airlock/{n}" for n in (
        "claude-settings", "envrc", "git-config", "git-hooks", "hard-link", "link-names",
        "parent-rename")), hole="guard-denies-nothing"),
    Mutation(red=("airlock/listed",), hole="guard-lists-nothing"),
]
