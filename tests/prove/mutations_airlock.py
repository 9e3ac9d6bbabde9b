# SPDX-License-Identifier: Apache-2.0
"""Holes in the guard of workspaces: all of it, its list, and the review of that list."""
from holes import HOLES
from mutation import Hole, Mutation

HOLES += [
    Hole("guard-denies-nothing", "src/keeper/worker/hands.c",
         "[SPEC_GUARD_DEFAULT] = GUARD_DEFAULT,", "[SPEC_GUARD_DEFAULT] = GUARD_REPORT,"),
    Hole("guard-lists-nothing", "lib/vm/share/guard_dirty.c",
         "\tr = add_row(g, &at, m->row, op, tree > 0);\n",
         "\tr = tree > 4096 ? add_row(g, &at, m->row, op, tree > 0) : 0;\n"),
    Hole("review-prints-raw", "lib/rules/airlock/textdiff.c",
         "\t\tput_string(out, escape);\n",
         "\t\tout->put(out->arg, (const char *)rest.p, n);\n"),
]

# The directory is no longer the share: nothing in it is refused, and nothing reaches the host.
COVER = r"""
work=$(awk '$1 == "none" && $3 == "virtiofs" &&
	$2 !~ "^/run/" && $4 ~ /^rw/ { print $2; exit }' /proc/mounts)
mount -t tmpfs -o mode=0777 none "$work"
"""
UNCOVER = COVER.replace("mount -t tmpfs -o mode=0777 none", "umount -l")

DENIED = tuple(f"airlock/{n}" for n in (
    "bare-repository", "claude-local", "claude-settings", "commondir", "descriptor",
    "desktop-entry", "envrc", "git-attributes", "git-config", "git-config-keys", "git-hooks",
    "hard-link", "host-files", "link-names", "node", "parent-rename", "recorded",
    "submodule-config", "worktree-config"))
LISTED = tuple(f"airlock/{n}" for n in ("listed", "names-escaped", "removed-listed"))

MUTATIONS = [
    Mutation(red=DENIED + LISTED, guest=COVER, undo_guest=UNCOVER),
    Mutation(red=DENIED, hole="guard-denies-nothing"),
    Mutation(red=LISTED, hole="guard-lists-nothing"),
    Mutation(red=("airlock/names-escaped",), hole="review-prints-raw"),
]
