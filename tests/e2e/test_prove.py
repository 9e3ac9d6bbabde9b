# SPDX-License-Identifier: Apache-2.0
"""`sbx prove` on a real sandbox: all probes pass without a hole, exactly the right probes fail with
one, and no trace remains.

The holes are the mutations of tests/prove/mutations_GROUP.py. Here the mutations that need no
separate build and do not conflict are active together. The tests named test_long_ are too long for
CI, and so is tests/long/mutations, which opens the holes in our programs, and all others in halves
or one by one.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys

import pytest

import host
import installation

sys.path.insert(0, str(installation.TREE / "tests" / "prove"))
import harness  # noqa: E402
import load  # noqa: E402
import probes  # noqa: E402
import series  # noqa: E402

GROUPS = sorted({i.split("/")[0] for i in harness.PROBES})
TABLES = [g for g in GROUPS if g in harness.MUTATIONS]
# one to five minutes each: with test_long_ and tests/long/mutations
SLOW = ["docker", "network", "recovery"]
ALONE = [(g, n) for g in TABLES for n,
         m in enumerate(harness.MUTATIONS[g]) if m.alone and not m.hole]
KEYS = {"id", "group", "title", "tried", "inside", "outside", "verdict", "why"}


@pytest.fixture(scope="module")
def world():
    with load.laboratory() as (_, entries), harness.world(connect_to=entries,
                                                          rules=[load.NAME]) as made:
        yield made


@pytest.fixture(scope="module")
def full(world):
    """One full run with its own scratch sandbox, with the state before and after it."""
    before, patience = trace(world), Patience()
    status, report, took = world.prove(twin=False, shared=False)  # as people run it
    return status, report, (took, patience), before, trace(world)


# what a run could leave behind

GUEST = r"""
echo files
find /etc /root /home /run /tmp /var /usr/local /opt /srv /mnt /dev/shm -xdev \
	! -path '/var/log/*' ! -path '/var/cache/*' | sort
echo processes
for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null | grep . ; done |
	grep -v 'sbx-trace\|^tr \|^find \|^sort \|^grep ' | sort
echo mounts; cut -d' ' -f1-4 /proc/mounts | sort
echo rules; nft list ruleset 2>/dev/null | grep -v 'packets\|elements'
echo links; ip -o link | awk '{print $2}'
echo users; sort /etc/passwd
"""


def sockets_of(env, pids):
    """Inodes of the sockets that these processes hold, as far as the kernel shows them, and as sbxd
    and keepers say."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for target in host.descriptors(env, pid):
                found |= set(re.findall(r"^socket:\[(\d+)\]$", target))
    return found


def listening(env):
    """Sockets that listen or are bound on the host and belong to what these tests started: every
    process that they start is below this one, also when its parent has ended (host.adopt_orphans).
    Other tests may run at the same time. Jailed processes show no descriptors; none of those can
    bind or listen (test_jail.py)."""
    ours = host.descendants(os.getpid())
    brokers = [env.daemon_pid(),
               *filter(None,
                       (env.api("GET", f"/v1/sandboxes/{s['name']}")[1].get("keeper_pid")
                        for s in env.ls()))]
    assert len(brokers) >= 2 and set(brokers) <= set(ours)
    assert all(sockets_of(env, [pid]) for pid in brokers), "no sockets of sbxd and keeper are seen"
    mine, found = sockets_of(env, [os.getpid(), *ours]), set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in mine and fields[3] in ("0A", "07"):
                found.add((name, fields[1]))
    return found


def files(folder, leave=()):
    return {str(p.relative_to(folder)) for p in folder.rglob("*")
            if not any(word in str(p) for word in leave)}


def trace(world):
    """All that a run could change, as sets that can be compared."""
    env = world.env
    guest = world.box.guest(": sbx-trace\n" + GUEST, timeout=120).splitlines()
    return {
        "guest": set(guest),
        "sandboxes": {s["name"] for s in env.ls()},
        "rules": env.sbx("policy", "ls", "--json").stdout,
        "settings": env.sbx("settings", "ls", "--json", check=False).stdout,
        # which there are; when one was last used changes, and that is right
        "secrets": {(one["name"], str(one.get("sandbox")))
                    for one in json.loads(env.sbx("secret", "ls", "--json").stdout)["secrets"]},
        # the audit log grows, and that is right
        "files": files(env.folder, ("/audit", ".log", "sbx.db-", "store.db-", "/.store/.lock")),
        "workspaces": files(env.work),
        # those that the first request of the sandbox creates come and go
        "processes": sorted(n for n in host.processes(env.folder).values()
                            if n not in ("node", "sbx-origin", "sbx-egress", "sbx-ssh-agent")),
        "machines": sorted(n for n in host.processes(env.folder).values()
                           if n in ("qemu-system-x86", "virtiofsd", "sbx-keeper", "sbx-edge")),
        "sockets": listening(env),
        "scratch": {p.name for p in pathlib.Path("/tmp").iterdir() if p.name.startswith("sbx-prove")
                    and p.stat().st_uid == os.getuid()},
    }


def difference(before, after):
    found = {}
    for name, was in before.items():
        now = after[name]
        if name == "scratch":
            now = was | now  # what a killed run has left is removed by the next one
        if was != now:
            found[name] = {"gone": sorted(was - now),
                           "new": sorted(now - was)} if isinstance(was, set) else {"was": was,
                                                                                   "is": now}
    return found


MOST_LOAD = 4  # times the processors: on a machine with more load than that no time means anything


def scaled(seconds, load, cores):
    """The promised time of a quiet machine, for a machine on which `load` processes share `cores`
    processors."""
    return seconds * min(max(1, load / cores), MOST_LOAD)


class Patience:
    """The time that a run may take: the promise, times the load before or after the run, whichever
    is higher. The bound counts on every machine."""

    def __init__(self):
        self.load = max(os.getloadavg()[:2])

    def allows(self, took, seconds):
        most = scaled(seconds, max(self.load, *os.getloadavg()[:2]), os.cpu_count() or 1)
        assert took <= most, (
            f"{took:.0f} s, and {most:.0f} s are allowed ({seconds} s on a quiet machine)")


# a normal sandbox

def test_every_probe_has_its_form():
    assert len(harness.PROBES) >= 1
    assert not {i: p.wrong for i, p in harness.PROBES.items() if p.wrong}


def test_a_full_run_is_green_and_in_time(full):
    status, report, (took, patience), _, _ = full
    slow = sorted(((p.get("ms", 0), p["id"]) for p in report["probes"]), reverse=True)[:12]
    print(
        f"full: {took:.1f} s, {len(report['probes'])} probes, load {os.getloadavg()[0]:.1f}; slowest {slow}")
    assert {p["id"]: p["why"] for p in report["probes"] if p["verdict"] == "fail"} == {}
    assert status == 0
    assert set(harness.PROBES) <= {p["id"] for p in report["probes"]}
    patience.allows(took, harness.FULL_SECONDS)


def test_the_report_is_what_was_promised(full):
    _, report, _, _, _ = full
    assert report["sandbox"] == "proved" and report["accel"] == "tcg"
    for p in report["probes"]:
        assert KEYS <= set(p), p
        assert p["verdict"] in ("pass", "fail", "skip") and all(isinstance(p[k], str) for k in KEYS)
        of = harness.PROBES[p["id"].rpartition("+")[2]]
        assert p["group"] in probes.GROUPS and p["tried"] == of.header["tried"], p
        # A skipped probe names the missing item, and a passed probe prints its observation.
        assert p["why"] if p["verdict"] == "skip" else p["inside"] + p["outside"], p
    assert len({p["id"] for p in report["probes"]}) == len(report["probes"])


def test_exactly_the_listed_probes_are_skipped(world, full):
    """tests/prove/skips."""
    assert harness.wrong_skips(harness.in_the_end_skipped(world, full[1]),
                               harness.listed_skips()) == {}


def test_a_probe_is_not_repeated_after_a_skipped_event(full):
    repeated = {p["id"]: p["why"] for p in full[1]["probes"]
                if p["verdict"] == "skip" and p["id"].startswith("recovery/kill-sbxd+")}
    assert repeated and set(repeated.values()) == {
        "not run again: recovery/kill-sbxd was skipped"}


def test_a_probe_is_tried_again_while_docker_is_late():
    class World:
        calls = 0

        def prove(self, *args):
            self.calls += 1
            late = [i for i in args if i != "--probe"][1:]  # one more each time has its Docker
            return 0, {"probes": [{"id": i, "verdict": "skip", "why": f"{harness.LATE} x"}
                                  for i in late]}, 0
    for n, calls, left in ((2, 2, set()), (9, harness.TRIES, {f"docker/{n}" for n in range(3, 9)})):
        world, report = World(), {"probes": [{"id": f"docker/{i}", "verdict": "skip",
                                              "why": f"{harness.LATE} y"} for i in range(n)]}
        assert (set(harness.in_the_end_skipped(world, report)), world.calls) == (left, calls)


def test_a_probe_that_begins_or_ceases_to_skip_is_an_error():
    listed = {"recovery/kill-sbxd"}
    assert harness.wrong_skips({"recovery/kill-sbxd": "shared",
                                "recovery/kill-sbxd+network/metadata": "not tried"}, listed) == {}
    assert set(harness.wrong_skips({"recovery/kill-sbxd": "shared", "files/x": "no tool"},
                                   listed)) == {"files/x"}
    assert set(harness.wrong_skips({"recovery/kill-sbxd": "shared",
                                    "recovery/kill-edge+network/metadata": "why"},
                                   listed)) == {"recovery/kill-edge+network/metadata"}
    assert set(harness.wrong_skips({}, listed)) == {"recovery/kill-sbxd"}
    assert harness.listed_skips() <= set(harness.PROBES)


def test_the_time_that_a_run_may_take_has_a_bound_on_every_machine():
    assert [scaled(300, load, 2) for load in (0, 2, 3, 8, 100)] == [300, 300, 450, 1200, 1200]


def test_nothing_is_left_behind(full):
    _, _, _, before, after = full
    assert difference(before, after) == {}


def test_quick_is_quick_and_leaves_nothing_behind(world):
    before, patience = trace(world), Patience()
    status, report, took = world.prove("--quick", twin=False)
    print(f"quick: {took:.1f} s, {len(report['probes'])} probes, load {os.getloadavg()[0]:.1f}")
    assert {p["id"]: p["why"] for p in report["probes"]
            if p["verdict"] == "fail"} == {} and status == 0
    assert {p["id"] for p in report["probes"]} == {i for i,
                                                   p in harness.PROBES.items() if p.is_quick}
    patience.allows(took, harness.QUICK_SECONDS)
    assert difference(before, trace(world)) == {}


def test_exit_statuses(world):
    env = world.env
    assert env.sbx("prove", "proved", "--group", "cups", check=False).returncode == 2
    assert env.sbx("prove", "proved", "--probe", "files/cups", check=False).returncode == 2
    assert env.sbx("prove", "nobody", "--quick", check=False).returncode == 125
    one = next(i for i, p in harness.PROBES.items() if p.is_quick)
    assert env.sbx("prove", "proved", "--probe", one, check=False).returncode == 0


def test_what_an_agent_leaves_in_its_history_is_no_hole(world):
    """Codex writes files of mode 644 there: the probe failed in a sandbox that codex had used."""
    history = world.env.state / "history"
    agent = history / "codex"
    left = agent / "0123456789abcdef" / "codex-sessions" / "rollout.jsonl"

    def red():
        said = world.env.sbx("prove", "proved", "--json", "--probe", "host/file-modes", "--probe",
                             "host/folder-modes", check=False).stdout
        return [p["id"] for p in json.loads(said)["probes"] if p["verdict"] != "pass"]
    left.parent.mkdir(parents=True)
    try:
        left.write_text("{}\n", encoding="ascii")
        for path, mode in ((history, 0o700), (agent, 0o700), (left.parent.parent, 0o755),
                           (left.parent, 0o755), (left, 0o644)):
            path.chmod(mode)
        assert red() == []
        # not the directory above, and not a file next to it
        agent.chmod(0o711)
        assert red() == ["host/folder-modes"]
        agent.chmod(0o700)
        left.rename(history / "loose")
        assert red() == ["host/file-modes"]
    finally:
        shutil.rmtree(history)


def test_quick_while_the_sandbox_works(world):
    """500 requests and 50 execs meanwhile; tests/long/prove-load has 10,000, 1,000 and a docker
    build during a full run."""
    (status, report, took), work = load.work_while(world,
                                                   lambda: world.prove("--quick", twin=False), 500,
                                                   50, docker=False)
    print(
        f"quick during {work.requests} requests and {work.execs} execs: {took:.1f} s; slowest request {work.slowest} s, exec {work.slowest_exec:.1f} s")
    assert not work.wrong and work.requests >= 500 and work.execs >= 50
    assert {p["id"]: p["why"] for p in report["probes"]
            if p["verdict"] == "fail"} == {} and status == 0


# holes

@pytest.mark.parametrize("group", SLOW)
def test_long_holes_of_slow_groups(world, group):
    test_holes_turn_exactly_their_probes_red(world, group)


@pytest.mark.parametrize("group", [g for g in TABLES if g not in SLOW])
def test_holes_turn_exactly_their_probes_red(world, group):
    mutations = harness.together(group)
    assert mutations, f"{group} has no mutation that can be made without a build"
    with harness.mutated(world, mutations):
        red = world.red("--group", group)
    harness.compare(red, harness.of_group(harness.union(mutations), group),
                    f"{len(mutations)} mutations of {group}")


def test_the_holes_are_closed_again(world):
    assert world.red("--quick") == {}


def test_long_the_holes_are_closed_again_in_every_group(world):
    assert world.red("--group", ",".join(TABLES)) == {}


@pytest.mark.parametrize("group,number", ALONE)
def test_long_a_hole_alone(world, group, number):
    one = harness.MUTATIONS[group][number]
    with harness.mutated(world, [one]):
        red = world.red("--group", group)
    harness.compare(red, harness.of_group(one.red, group), f"{group} {number}")


def make_series(true_red):
    """Runs in halves over mutations a, b, ...; each names files/LETTER, and makes the probes in
    `true_red` fail."""
    from mutation import Mutation
    names = "abcdefghijk"
    runs = series.halves("files", "plain",
                         [Mutation(red=(f"files/{n}",), guest="x", alone=n == "k") for n in names])
    for run in runs:
        run.red = {i: "why" for m in run.mutations for i in true_red(m.red[0])}
    return {v.id: v for v in series.judge([f"files/{n}" for n in names], runs)}, runs


def test_halves_tell_any_two_mutations_apart():
    for n in (1, 2, 3, 7, 68, 101):
        runs, words = series.words(n)
        assert len(set(words)) == n and not any(a < b for a in words for b in words) and runs <= 9
    verdicts, runs = make_series(lambda i: [i])
    # ten in five runs, one alone
    assert all(v.is_ok for v in verdicts.values()) and len(runs) == 5 + 1


def test_halves_find_a_probe_that_another_hole_turns_red():
    """b's hole does nothing; what turns files/b red is c's."""
    verdicts, _ = make_series(lambda i: {"files/b": [],
                                         "files/c": ["files/c", "files/b"]}.get(i, [i]))
    bad = verdicts["files/b"]
    assert {i for i, v in verdicts.items() if not v.is_ok} == {"files/b"}
    assert bad.blind and bad.more and bad.suspects == ["files/c"]


def test_a_hole_that_is_not_there_any_more_is_an_error(tmp_path):
    from build_holes import Broken, cut
    from mutation import Hole
    (tmp_path / "x.c").write_text("one two two\n")
    cut(tmp_path, [Hole("fits", "x.c", "one", "1")])
    assert (tmp_path / "x.c").read_text() == "1 two two\n"
    for old in ("two", "three"):
        with pytest.raises(Broken):
            cut(tmp_path, [Hole("gone", "x.c", old, "2")])
