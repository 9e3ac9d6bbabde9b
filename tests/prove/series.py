# SPDX-License-Identifier: Apache-2.0
"""Which mutations are made together, and what the runs say about each probe. tests/long/mutations
makes the runs.

A run makes some mutations at once and demands exactly the union of what they name. In a series each
mutation is in about half of the runs, and no mutation's runs are among those of another: for each
two of them there is a run with the first and without the second. So a probe that another mutation
turns red than the one that names it is green where it should be red, or red where it should be
green, in one run at least. That takes 8 runs for 70 mutations, where one by one takes 70.
"""
import dataclasses
import itertools
import math
import typing


@dataclasses.dataclass
class Run:
    name: str
    groups: typing.Tuple[str, ...]  # that are proved
    mutations: list
    red: dict = None                # id -> why, when it was made

    @property
    def want(self):
        return {i for m in self.mutations for i in m.red if i.split("/")[0] in self.groups}


def words(n):
    """n sets of the same size, none within another, over the smallest number of runs; (that number,
    the sets). Runs are loaded evenly."""
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
    """All in one run, but for those that can only be made alone: the cheapest way to see each probe
    red. It does not show which mutation did it."""
    many = [m for m in mutations if not m.alone]
    made = [Run(f"{group} {kind} together", (group,), many)] if many else []
    return made + one_by_one(group, f"{kind} alone", [m for m in mutations if m.alone])


def halves(group, kind, mutations):
    """Those that can only be made alone are."""
    many = [m for m in mutations if not m.alone]
    runs, chosen = words(len(many)) if many else (0, [])
    made = [Run(f"{group} {kind} half {r}", (group,),
                [m for m, word in zip(many, chosen) if r in word]) for r in range(runs)]
    return made + one_by_one(group, f"{kind} alone", [m for m in mutations if m.alone])


@dataclasses.dataclass
class Verdict:
    """Of one probe over all runs that were made."""
    id: str
    red: int = 0                                              # runs in which it was red as named
    blind: list = dataclasses.field(default_factory=list)     # runs in which it stayed green
    # runs in which it was red as well -> why
    more: dict = dataclasses.field(default_factory=dict)
    # mutations that were there whenever it was red and do not name it
    suspects: list = dataclasses.field(default_factory=list)

    @property
    def is_ok(self):
        return self.red > 0 and not self.blind and not self.more


def judge(ids, runs):
    """A Verdict for each id."""
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
