# SPDX-License-Identifier: Apache-2.0
"""Makes holes, runs `sbx prove` on them, closes them again. Used by tests/e2e/test_prove.py and
tests/long/mutations.

A world is an installation with a sandbox, a twin of it that is created once, and servers on
loopback for the name of a real service with a credential: `--twin` and `--echo` of the command. The
twin's layout is the one that `sbx prove` creates.
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

FULL_SECONDS, QUICK_SECONDS = 300, 30  # promised on an idle machine
PATIENCE = 1500                        # timeout of a test
TRIES = 3                              # for late parts
# of data/probes/prelude/inside: the only skip reason that depends on the load
LATE = "Docker was not up in time"
SERVICE, HOST = "anthropic", "api.anthropic.com"
MODEL = "api.mistral.ai"  # allowed, without a credential
HIDDEN = "hidden.env"


# SIGTERM

class Ended(SystemExit):
    """Raised by SIGTERM after every process below this one was killed: only directories are left to
    remove."""


def end_on_sigterm():
    """sbxd and keepers have their own sessions and outlive their parent: a signal does not reach
    them."""
    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        host.end_children()
        raise Ended(3)
    host.adopt_orphans()
    signal.signal(signal.SIGTERM, end)


# files of the tree

def load_probes():
    """Returns id -> Probe of the tree."""
    root = TREE / "data" / "probes"
    found = {}
    for group in probes.GROUPS:
        for path in sorted((root / group).glob("[!.]*")) if (root / group).is_dir() else []:
            if path.name != "README":
                found[f"{group}/{path.name}"] = probes.read(f"{group}/{path.name}",
                                                            path.read_text(encoding="utf-8"))
    return found


def load_mutations():
    """Returns group -> its mutations, for groups with a table."""
    return {g: importlib.import_module(f"mutations_{g}").MUTATIONS for g in probes.GROUPS
            if (HERE / f"mutations_{g}.py").exists()}


PROBES = load_probes()
MUTATIONS = load_mutations()
# after the tables, which add to it
HOLES = {h.name: h for h in importlib.import_module("holes").HOLES}


def listed_skips():
    """The probes that a full run skips: tests/prove/skips."""
    lines = (HERE / "skips").read_text(encoding="utf-8").splitlines()
    entries = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    assert all(len(e) == 2 for e in entries), "tests/prove/skips: an entry is PROBE REASON"
    return {e[0] for e in entries}


def in_the_end_skipped(world, report):
    """Returns id -> reason. Docker starts at its first use and is late on a busy machine: probes
    that waited for it are repeated, TRIES times."""
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
    """Returns id -> error: skipped without an entry, or an unused entry. A probe that an event
    repeats (EVENT+ID) is skipped with its event."""
    found = {i: f"skipped: {why}" for i,
             why in skipped.items() if i.partition("+")[0] not in listed}
    return {**found,
            **{i: "tests/prove/skips lists it, and it is not skipped: remove the entry"
               for i in listed - set(skipped)}}


def is_on_twin(probe_id):
    """Also true for `recovery/X+GROUP/NAME`: repeated probes run on the twin."""
    return PROBES[probe_id.partition("+")[0]].is_on_twin


def of_group(ids, group):
    return {i for i in ids if i.startswith(f"{group}/")}


# a world

@dataclasses.dataclass
class World:
    """Also the ctx of a host mutation."""
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
        """Runs with --json; returns (exit status, report, seconds). `shared`: also kills processes
        that all sandboxes share."""
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
                f"sbx prove {args} ended with {done.returncode}\n{done.stdout}\n"
                f"{done.stderr}") from None

    def red(self, *args, **kwargs):
        """Returns id -> reason of failed probes; checks the exit status. A probe that an event
        repeats (EVENT+ID) makes its event fail and is not listed itself."""
        status, report, _ = self.prove(*args, **kwargs)
        red = {p["id"]: p["why"] for p in report["probes"] if p["verdict"] == "fail"}
        assert status == (1 if red else 0), (status, red)
        assert {i.partition("+")[0] for i in red} <= set(red), red
        return {i: why for i, why in red.items() if "+" not in i}


def make_layout(env, name):
    """Creates the workspaces of a sandbox and of its twin: a writable one with a hidden file, a
    read-only one, and a read-only one inside the first."""
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
    """Returns the socket of an agent with one key, and that key's fingerprint."""
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
    """Creates the sandbox of a world; it may use a key of the user's SSH agent."""
    sock, key = agent
    env.env["SSH_AUTH_SOCK"] = str(sock)
    try:
        return make_box(env, "proved", [f"--ssh-agent={key}"])
    finally:
        del env.env["SSH_AUTH_SOCK"]


@contextlib.contextmanager
def world(twin=True, connect_to=(), rules=(), **kwargs):
    """An installation with everything that a prover needs, as a context manager; `connect_to` and
    `rules` are for additional servers."""
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
                               ("warm.images", "false"),
                               ("ask.max-hour", "240")):  # the probes of many runs
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
    """A world of programs with these holes."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="sbx-holes-"))
    try:
        tree, build = build_holes(TREE, BUILD, [HOLES[n] for n in names], scratch)
        with world(tree=tree, build=build, **kwargs) as made:
            yield made
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# mutations

def places(world_, one):
    """Returns the sandboxes for a mutation: where its probes run."""
    twin = {is_on_twin(i) for i in one.red}
    return ([world_.box] if False in twin else []) + ([world_.twin] if True in twin else [])


def run_in_guest(world_, mutations, field):
    """Runs all scripts in one session: an exec under emulation is expensive."""
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
        raise  # the sandboxes were removed
    except BaseException:
        undo(world_, mutations)
        raise
    undo(world_, mutations)


def together(group):
    """Returns the mutations of a group that run together, without those in a build."""
    return [m for m in MUTATIONS.get(group, []) if not m.alone and not m.hole]


def union(mutations):
    return {i for m in mutations for i in m.red}


def compare(red, want, what):
    """Requires exactly these: a probe that still passes proves nothing, another failing one is not
    understood."""
    blind, more = sorted(want - set(red)), {i: red[i] for i in sorted(set(red) - want)}
    assert not blind and not more, (
        f"{what}\n  stayed green: {blind}\n  red as well: {json.dumps(more, indent=2)}")
