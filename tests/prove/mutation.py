# SPDX-License-Identifier: Apache-2.0
"""What a mutation is: one hole, and the probes of `sbx prove` that must turn red by it, no more and
no fewer.

Each group has a table, mutations_GROUP.py, a list named MUTATIONS. tests/e2e/test_prove.py applies
them; tests/lint/probes refuses a probe that stands in no `red`.
"""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Exactly one of guest, host, allow, hole says how the hole is made. `undo_*` closes it again;
    a hole in a build needs none."""
    red: typing.Tuple[str, ...]  # ids of probes, all that turn red
    guest: str = ""              # sh, as root in the sandbox (of a probe on the twin: in the twin)
    undo_guest: str = ""
    # f(ctx) on the host; ctx: env (Installation), box, twin, folder, keep (a dict for undo_host)
    host: typing.Callable = None
    undo_host: typing.Callable = None
    # resources that `sbx policy allow network` opens for the sandbox
    allow: typing.Tuple[str, ...] = ()
    # a name of holes.py: a change of our source, built, and a sandbox of that build
    hole: str = ""
    alone: bool = False          # cannot be made together with others


@dataclasses.dataclass(frozen=True)
class Hole:
    """A change of the source: `old`, which stands in `file` exactly once, becomes `new`. `also` has
    further changes, for a wall that two places make: (file, old, new)."""
    name: str
    file: str
    old: str
    new: str
    also: tuple = ()

    @property
    def changes(self):
        return ((self.file, self.old, self.new), *self.also)
