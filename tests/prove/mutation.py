# SPDX-License-Identifier: Apache-2.0
"""A mutation is one hole, and the probes of `sbx prove` that must fail because of it, no more and
no fewer.

Each group has a table, mutations_GROUP.py, a list named MUTATIONS. tests/e2e/test_prove.py applies
them; tests/lint/probes rejects a probe that is in no `red`.
"""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Exactly one of guest, host, allow, hole defines the hole. `undo_*` closes it again; a hole in
    a build needs none."""
    red: typing.Tuple[str, ...]  # ids of all probes that fail
    guest: str = ""              # sh, as root in the sandbox (for a probe on the twin: in the twin)
    undo_guest: str = ""
    # f(ctx) on the host; ctx: env (Installation), box, twin, folder, keep (a dict for undo_host)
    host: typing.Callable = None
    undo_host: typing.Callable = None
    # resources that `sbx policy allow network` allows for the sandbox
    allow: typing.Tuple[str, ...] = ()
    # a name of holes.py: a change of our source, built, with a sandbox of that build
    hole: str = ""
    alone: bool = False          # cannot be combined with others


@dataclasses.dataclass(frozen=True)
class Hole:
    """A change of the source: `old`, which occurs in `file` exactly once, becomes `new`. `also` has
    further changes, for a check in two places: (file, old, new)."""
    name: str
    file: str
    old: str
    new: str
    also: tuple = ()

    @property
    def changes(self):
        return ((self.file, self.old, self.new), *self.also)
