# SPDX-License-Identifier: Apache-2.0
"""Which mutations are active together, and what the runs show about each probe.
tests/long/mutations starts the runs.

A run makes some mutations together and requires exactly the union of the probes that they name. In
a series each mutation is in about half of the runs, and no mutation's runs are a subset of
another's: for each two of them there is a run with the first and without the second. So a probe
that fails because of another mutation than the one that names it gives a wrong result in at least
one run. That takes 8 runs for 70 mutations, instead of 70 one by one.
"""
import dataclasses
import itertools
import math
import typing


@dataclasses.dataclass
class Run:
    name: str
    groups: typing.Tuple[str, ...]  # that were proved
    mutations: list
    red: dict = None                # id -> reason, if the run has finished

    @property
    def want(self):
        return {i for m in self.mutations for i in m.red if i.split("/")[0] in self.groups}


def words(n):
    """Returns (runs, sets): n sets of the same size, none a subset of another, over the smallest
    number of runs. Runs are loaded evenly."""
    runs = 1
    while math.comb(runs, (runs + 1) // 2) < n:
        runs += 1
    left = [frozenset(c) for c in itertools.combinations(range(runs), (runs + 1) // 2)]
    load, chosen = [0] * runs, []
    for _ in range(n):
        best = min(left, key=lambda w: (sum(load[r] for r in w), sorted(w)))
        left.remove(best)
        chosen.append(best)
        for r in best:
            load[r] += 1
    return runs, chosen


def one_by_one(group, kind, mutations):
    return [Run(f"{group} {kind} {n}", (group,), [m]) for n, m in enumerate(mutations)]


def together(group, kind, mutations):
    """All in one run, except those that must be made alone: the cheapest way to see each probe
    fail. It does not show which mutation caused it."""
    many = [m for m in mutations if not m.alone]
    made = [Run(f"{group} {kind} together", (group,), many)] if many else []
    return made + one_by_one(group, f"{kind} alone", [m for m in mutations if m.alone])


def halves(group, kind, mutations):
    """Those that must be made alone are."""
    many = [m for m in mutations if not m.alone]
    runs, chosen = words(len(many)) if many else (0, [])
    made = [Run(f"{group} {kind} half {r}", (group,),
                [m for m, word in zip(many, chosen) if r in word]) for r in range(runs)]
    return made + one_by_one(group, f"{kind} alone", [m for m in mutations if m.alone])


@dataclasses.dataclass
class Verdict:
    """Of one probe over all runs."""
    id: str
    red: int = 0                                              # runs in which it failed as named
    blind: list = dataclasses.field(default_factory=list)     # runs in which it still passed
    # runs in which it failed unexpectedly -> reason
    more: dict = dataclasses.field(default_factory=dict)
    # mutations present in all runs in which it failed that do not name it
    suspects: list = dataclasses.field(default_factory=list)

    @property
    def is_ok(self):
        return self.red > 0 and not self.blind and not self.more


def judge(ids, runs):
    """Returns a Verdict for each id."""
    made = [r for r in runs if r.red is not None]
    return [_judge_one(i, [r for r in made if i.split("/")[0] in r.groups]) for i in ids]


def _judge_one(probe, runs):
    verdict = Verdict(probe)
    for run in runs:
        if probe in run.want and probe in run.red:
            verdict.red += 1
        elif probe in run.want:
            verdict.blind.append(run.name)
        elif probe in run.red:
            verdict.more[run.name] = run.red[probe]
    if verdict.more:
        first = next(r for r in runs if r.name in verdict.more)
        green = [m for r in runs if probe not in r.red for m in r.mutations]
        verdict.suspects = [" ".join(m.red[:1]) for m in first.mutations
                            if not any(m is g for g in green)]
    return verdict
