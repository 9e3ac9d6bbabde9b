# SPDX-License-Identifier: Apache-2.0
"""Makes holes, has `sbx prove` look at them, closes them again. tests/e2e/test_prove.py and
tests/long/mutations call it.

A world is an installation with a sandbox, a twin of it that is made once, and servers on loopback
behind the name of a real service, for which there is a credential: `--twin` and `--echo` of the
command. The twin's layout is the one that `sbx prove` makes.
"""
import contextlib
import dataclasses
import importlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
for folder in ("rigs", "rigs/lab", "prove"):
    if str(TREE / "tests" / folder) not in sys.path:
        sys.path.insert(0, str(TREE / "tests" / folder))
import credlab  # noqa: E402
import host  # noqa: E402
import probes  # noqa: E402
from build_holes import build_holes  # noqa: E402
from installation import BUILD, START_SECONDS, private  # noqa: E402

FULL_SECONDS, QUICK_SECONDS = 300, 30  # what is promised, on a machine that does nothing else
PATIENCE = 1500                        # what a test waits for at most
TRIES = 3                              # for what was late
# of data/probes/prelude/inside: the only reason to skip that depends on the load
LATE = "Docker was not up in time"
SERVICE, HOST = "anthropic", "api.anthropic.com"
MODEL = "api.mistral.ai"  # allowed, and no credential is set for it
HIDDEN = "hidden.env"


# SIGTERM

class Ended(SystemExit):
    """Raised by SIGTERM after every process below this one was killed: what is left to do is to
    remove directories."""


def end_on_sigterm():
    """sbxd and keepers have sessions of their own and outlive whoever started them: a signal does
    not reach them."""
    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        host.end_children()
        raise Ended(3)
    host.adopt_orphans()
    signal.signal(signal.SIGTERM, end)


# what there is

def load_probes():
    """id -> Probe of the tree."""
    root = TREE / "data" / "probes"
    found = {}
    for group in probes.GROUPS:
        for path in sorted((root / group).glob("[!.]*")) if (root / group).is_dir() else []:
            if path.name != "README":
                found[f"{group}/{path.name}"] = probes.read(f"{group}/{path.name}",
                                                            path.read_text(encoding="utf-8"))
    return found


def load_mutations():
    """group -> its mutations; only those that have a table."""
    return {g: importlib.import_module(f"mutations_{g}").MUTATIONS for g in probes.GROUPS
            if (HERE / f"mutations_{g}.py").exists()}


PROBES = load_probes()
MUTATIONS = load_mutations()
# after the tables, which add theirs
HOLES = {h.name: h for h in importlib.import_module("holes").HOLES}


def listed_skips():
    """The probes that a full run skips: tests/prove/skips."""
    lines = (HERE / "skips").read_text(encoding="utf-8").splitlines()
    entries = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    assert all(len(e) == 2 for e in entries), "tests/prove/skips: an entry is PROBE REASON"
    return {e[0] for e in entries}


def in_the_end_skipped(world, report):
    """id -> why. Docker starts at its first use and is late on a busy machine: probes that had to
    wait for it are tried again, TRIES times."""
    skipped = {p["id"]: p["why"] for p in report["probes"] if p["verdict"] == "skip"}
    for _ in range(TRIES):
        late = sorted(i for i, why in skipped.items() if why.startswith(LATE))
        if not late:
            break
        print(f"tried again: {late}")
        status, again, _ = world.prove(*(word for i in late for word in ("--probe", i)))
        assert status == 0, again
        skipped = {**{i: why for i, why in skipped.items() if i not in late},
                   **{p["id"]: p["why"] for p in again["probes"] if p["verdict"] == "skip"}}
    return skipped


def wrong_skips(skipped, listed):
    """id -> what is wrong: skipped without an entry, or an entry that is not needed. What an event
    tries again (EVENT+ID) is skipped with its event."""
    found = {i: f"skipped: {why}" for i,
             why in skipped.items() if i.partition("+")[0] not in listed}
    return {**found,
            **{i: "tests/prove/skips lists it, and it is not skipped: remove the entry"
               for i in listed - set(skipped)}}


def is_on_twin(probe_id):
    """Of `recovery/X+GROUP/NAME` too: what is tried again is tried on the twin."""
    return PROBES[probe_id.partition("+")[0]].is_on_twin


def of_group(ids, group):
    return {i for i in ids if i.startswith(f"{group}/")}


# a world

@dataclasses.dataclass
class World:
    """What a host mutation gets as ctx, too."""
    env: typing.Any
    box: typing.Any
    twin: typing.Any
    lab: typing.Any
    folder: pathlib.Path
    keep: dict = dataclasses.field(default_factory=dict)

    @property
    def echo(self):
        return f"https://{HOST}/mirror"

    def prove(self, *args, twin=True, timeout=PATIENCE, box=None, shared=True):
        """(exit status, report, seconds) of one run with --json. `shared`: what all sandboxes share
        is killed too."""
        more = ["--twin", self.twin.name] if twin else []
        begin = time.monotonic()
        done = self.env.sbx("prove", box or self.box.name, "--json", "--echo", self.echo, *more,
                            *args, timeout=timeout, check=False,
                            env={"SBX_PROVE_SHARED": "yes" if shared else "no"})
        took = time.monotonic() - begin
        try:
            return done.returncode, json.loads(done.stdout), took
        except ValueError:
            raise AssertionError(
                f"sbx prove {args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}") from None

    def red(self, *args, **kwargs):
        """id -> why of the red ones; the exit status agrees. What an event has tried again
        (EVENT+ID) makes its event red and is not listed by itself."""
        status, report, _ = self.prove(*args, **kwargs)
        red = {p["id"]: p["why"] for p in report["probes"] if p["verdict"] == "fail"}
        assert status == (1 if red else 0), (status, red)
        assert {i.partition("+")[0] for i in red} <= set(red), red
        return {i: why for i, why in red.items() if "+" not in i}


def make_layout(env, name):
    """The workspaces of a sandbox and of its twin: one to write with a hidden file, one to read,
    and one to read inside the first."""
    folder, read_only = env.make_folder(name), env.make_folder(f"{name}-ro")
    (folder / HIDDEN).write_text("KEY=of-the-host\n")
    (folder / "README").write_text("a workspace\n")
    (read_only / "README").write_text("to be read\n")
    kept = folder / "held" / "kept"
    kept.mkdir(parents=True)
    return folder, read_only, kept


def make_box(env, name, flags=()):
    folder, read_only, kept = make_layout(env, name)
    box = env.create(name, folder, f"{read_only}:ro", f"{kept}:ro",
                     flags=["--hide", HIDDEN, *flags])
    box.workspace, box.read_only, box.hidden = folder, read_only, folder / HIDDEN
    return box


@contextlib.contextmanager
def ssh_agent(folder):
    """The socket of an agent with one key, and that key's fingerprint."""
    sock, key = folder / "agent", folder / "key"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True,
                       timeout=60)
        subprocess.run(["ssh-add", "-q", key], check=True, timeout=60,
                       env={**os.environ, "SSH_AUTH_SOCK": str(sock)})
        said = subprocess.run(["ssh-keygen", "-l", "-f", key], check=True, timeout=60,
                              capture_output=True, text=True).stdout
        yield sock, said.split()[1]
    finally:
        process.terminate()
        process.wait()


def make_proved(env, agent):
    """The sandbox of a world; it may use a key of the user's SSH agent."""
    sock, key = agent
    env.env["SSH_AUTH_SOCK"] = str(sock)
    try:
        return make_box(env, "proved", [f"--ssh-agent={key}"])
    finally:
        del env.env["SSH_AUTH_SOCK"]


@contextlib.contextmanager
def world(twin=True, connect_to=(), rules=(), **kwargs):
    """An installation with all that a prover needs, for the length of a with block; `connect_to`
    and `rules` are for more origins."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="sbx-prove-"))
    (scratch / "lab").mkdir()
    try:
        with credlab.Lab(scratch
                         / "lab") as lab, ssh_agent(scratch) as agent, private(policy="none",
                                                                               **kwargs) as env:
            lab.server = lab.origin()
            for key, value in (("network.connect-to",
                                ",".join([f"{host}:443=127.0.0.1:{lab.server.port}"
                                          for host in (HOST, MODEL)] + list(connect_to))),
                               ("network.extra-ca", lab.ca.pem),
                               ("warm.images", "false")):
                env.sbx("settings", "set", key, value)
            env.sbx("policy", "set-default", "balanced")
            env.sbx("policy", "allow", "network", ",".join([HOST, MODEL, *rules]))
            env.sbx("secret", "set", SERVICE, input="sk-ant-api03-" + secrets.token_hex(24))
            box = make_proved(env, agent)
            yield World(env, box, make_box(env, "second") if twin else None, lab, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def holed_world(names, **kwargs):
    """A world of programs with these holes in them."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="sbx-holes-"))
    try:
        tree, build = build_holes(TREE, BUILD, [HOLES[n] for n in names], scratch)
        with world(tree=tree, build=build, **kwargs) as made:
            yield made
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# mutations

def places(world_, one):
    """The sandboxes that a mutation is made in: where its probes are tried."""
    twin = {is_on_twin(i) for i in one.red}
    return ([world_.box] if False in twin else []) + ([world_.twin] if True in twin else [])


def run_in_guest(world_, mutations, field):
    """All of them in one session: an exec under emulation is dear."""
    scripts = {}
    for one in mutations:
        for box in places(world_, one) if getattr(one, field) else []:
            scripts.setdefault(box.name, (box, []))[1].append((one, getattr(one, field)))
    for box, parts in scripts.values():
        text = "".join(
            f"(\n{script}\n) </dev/null || echo 'failed: {field} of {' '.join(one.red)}'\n" for one,
            script in parts)
        said = box.exec("sh", user="root", input=text, timeout=300).stdout
        assert "failed: " not in said, said


def apply(world_, mutations):
    """Makes the holes of guest, allow and host."""
    run_in_guest(world_, mutations, "guest")
    for one in mutations:
        for box in places(world_, one) if one.allow else []:
            world_.env.sbx("policy", "allow", "network", ",".join(one.allow), "--sandbox", box.name)
    for one in mutations:
        if one.host:
            one.host(world_)


def undo(world_, mutations):
    for one in reversed(mutations):
        if one.undo_host:
            one.undo_host(world_)
    for one in mutations:
        for box in places(world_, one) if one.allow else []:
            for resource in one.allow:
                world_.env.sbx("policy", "rm", "network", "--resource", resource, "--sandbox",
                               box.name)
    run_in_guest(world_, list(reversed(mutations)), "undo_guest")


@contextlib.contextmanager
def mutated(world_, mutations):
    try:
        apply(world_, mutations)
        yield
    except Ended:
        raise  # the sandboxes are gone
    except BaseException:
        undo(world_, mutations)
        raise
    undo(world_, mutations)


def together(group):
    """The mutations of a group that are made in one go, without those in a build."""
    return [m for m in MUTATIONS.get(group, []) if not m.alone and not m.hole]


def union(mutations):
    return {i for m in mutations for i in m.red}


def compare(red, want, what):
    """Exactly these: what stayed green is a probe that proves nothing, what else turned red is not
    understood."""
    blind, more = sorted(want - set(red)), {i: red[i] for i in sorted(set(red) - want)}
    assert not blind and not more, (
        f"{what}\n  stayed green: {blind}\n  red as well: {json.dumps(more, indent=2)}")
