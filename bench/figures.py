# SPDX-License-Identifier: Apache-2.0
"""What the benches share: paired measurement, and one JSON line.

Two arms are measured in turn (A B A B ...). The figure is the median of the pairwise ratios with a
bootstrap interval; the lower end of the interval decides. Figures under software emulation are
marked and compared only with each other. Each line names the commit, the CPU and the load.
"""
import datetime
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests" / "rigs"))

MAX_NULL = 0.03  # how far the ratio of two equal arms may be from 1


def bootstrap(values, rounds=2000):
    """A 95 % interval of the median."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def paired(ours, bare, n, say=True):
    """n pairs of measurements in turn, the first of each alternating; gives two lists."""
    a, b = [], []
    for i in range(n):
        for arm, out in ((ours, a), (bare, b)) if i % 2 else ((bare, b), (ours, a)):
            out.append(arm())
        if say:
            print(f"{i + 1}/{n}: ours {a[-1]:.4f}, bare {b[-1]:.4f}", file=sys.stderr)
    return a, b


def ratio(a, b):
    """Median of the pairwise ratios and its interval."""
    ratios = [x / y for x, y in zip(a, b)]
    low, high = bootstrap(ratios)
    return {"ratio": round(statistics.median(ratios), 4), "low": round(low, 4),
            "high": round(high, 4),
            "pairs": len(ratios)}


def commit():
    """The commit that was measured, with + when files in it are changed; None outside of a
    repository."""
    def git(*args):
        return subprocess.run(["git", "-c", f"safe.directory={TREE}", "-C", TREE, *args],
                              check=True, capture_output=True, text=True).stdout.strip()
    try:
        return git("rev-parse", "--short",
                   "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.partition(":")[2].strip() for line in f if line.startswith("model name")),
                    platform.machine())


LOAD_BEFORE = os.getloadavg()[0]  # the bench itself is a load


def circumstances():
    """What a figure is worthless without."""
    return {"commit": commit(), "date": datetime.date.today().isoformat(), "cpu": processor(),
            "load": [round(LOAD_BEFORE, 1), round(os.getloadavg()[0], 1)],
            "machine": f"{os.cpu_count()} cores, {platform.release()}"}


def report(name, bound, ok, **fields):
    """The one line, and the exit status."""
    print(json.dumps({"id": name, "bound": bound, "ok": bool(ok), **fields, **circumstances()}))
    sys.exit(0 if ok else 1)
