# SPDX-License-Identifier: Apache-2.0
"""One private installation of sbx, and its sandboxes, as the tests see them.

Everything is done through the command line and the API, as an ordinary user does it.
"""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import host

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SBX_BUILD") or TREE / "build").resolve()
HOSTILE = BUILD / "tests" / "rigs" / "hostile"
# Snapshots of the VMs that most tests use. Concurrent processes share the directory SBX_E2E_IMAGE.
IMAGE = pathlib.Path(os.environ.get("SBX_E2E_IMAGE")
                     or pathlib.Path(tempfile.gettempdir())
                     / f"sbx-e2e-image-{os.getuid()}-{os.getpid()}")
WITH_DOCKER = "1536m"
START_SECONDS = 120  # a boot under software emulation, on a busy machine


class Unix(http.client.HTTPConnection):
    """HTTP/1.1 over a unix socket."""

    def __init__(self, path, timeout):
        super().__init__("sbx", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Installation:
    def __init__(self, templates=True, prefix=(), policy="balanced", warm=True, tree=TREE,
                 build=BUILD):
        # and its build: replaced by tests that change the programs
        self.tree = pathlib.Path(tree)
        # prefix of every sbx command: enters the namespaces of a laboratory
        self.prefix = list(prefix)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sbx-e2e-", dir="/tmp"))
        # Below the home directory, as with users; also shows that the rest of it is not visible.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="sbx-e2e-", dir=pathlib.Path.home()))
        outer = {**os.environ, "SBX_DEVENV": str(self.folder), "SBX_POLICY": policy,
                 "SBX_BUILD": str(build)}
        outer.pop("SBX_TEMPLATES", None)
        if templates:
            outer["SBX_TEMPLATES"] = str(template_store())
        got = subprocess.run([self.tree / "tools" / "devenv", "env", "-0"], env=outer, check=True,
                             stdout=subprocess.PIPE, timeout=60).stdout
        self.env = dict(pair.split("=", 1) for pair in got.decode().split("\0") if pair)
        self.env["SBX_ACCEL"] = "tcg"
        self.runtime = self.folder / "run" / "sbx"
        self.state = self.folder / "state" / "sbx"
        if templates and warm:
            self.take_images()

    def take_images(self):
        """Uses the snapshots that the first installation made: links, so that each may remove its
        own."""
        if not IMAGE.exists():
            return
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copytree(IMAGE, self.state / "warm", copy_function=os.link, dirs_exist_ok=True)
        # a snapshot of an unknown template is removed
        store = self.folder / "data" / "sbx" / "templates" / ".store"
        store.mkdir(mode=0o700, exist_ok=True)
        for ident in {json.loads(f.read_text())["template"] for f in IMAGE.glob("*/image.json")}:
            if not os.path.lexists(store / ident):
                (store / ident).symlink_to((template_store() / "debian").resolve())

    def give_images(self):
        for memory in ("1g", WITH_DOCKER):
            self.sbx("template", "warm", "debian", "--cpus", 2, "--memory", memory,
                     timeout=3 * START_SECONDS)
        shutil.copytree(self.state / "warm", IMAGE, copy_function=os.link)

    def close(self):
        """Stops everything; returns the processes that did not exit."""
        subprocess.run([TREE / "tools" / "devenv", "--stop"], env=self.env, check=False, timeout=60)
        left = host.processes(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)
        return left

    # the command line

    def popen(self, *args, env=None, **kwargs):
        return subprocess.Popen([*self.prefix, "sbx", *map(str, args)],
                                env={**self.env, **(env or {})}, **kwargs)

    def sbx(self, *args, input=None, timeout=60, check=True, binary=False, cwd=None, env=None):
        """Runs one command to its end. `check` fails the test with its output."""
        if isinstance(input, str):
            input = input.encode()
        feed = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        try:
            done = subprocess.run([*self.prefix, "sbx", *map(str, args)],
                                  env={**self.env, **(env or {})}, cwd=cwd,
                                  capture_output=True, timeout=timeout, check=False, **feed)
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"sbx {args} did not end in {timeout} s\n"
                                 f"stdout: {e.stdout}\nstderr: {e.stderr}") from None
        if not binary:
            done.stdout = done.stdout.decode("utf-8", "replace")
            done.stderr = done.stderr.decode("utf-8", "replace")
        if check and done.returncode != 0:
            raise AssertionError(f"sbx {args} ended with {done.returncode}\n"
                                 f"stdout: {done.stdout}\nstderr: {done.stderr}")
        return done

    def ls(self, timeout=20):
        return json.loads(self.sbx("ls", "--json", timeout=timeout).stdout)["sandboxes"]

    # the API

    @property
    def socket(self):
        return self.runtime / "sbxd.sock"

    def api(self, method, path, body=None, timeout=30):
        """Returns (status, parsed answer)."""
        conn = Unix(self.socket, timeout)
        with contextlib.closing(conn):
            headers = {"Content-Type": "application/json"} if body is not None else {}
            conn.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = conn.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def daemon_pid(self):
        return self.api("GET", "/v1/version")[1]["pid"]

    # sandboxes

    def make_folder(self, name):
        path = self.work / name
        path.mkdir(parents=True)
        return path

    def create(self, name, *paths, flags=(), cpus=2, memory="1g"):
        """Creates and starts a sandbox, as a user does."""
        self.sbx("create", "shell", *paths, "--name", name, "--cpus", cpus, "--memory", memory,
                 *flags,
                 timeout=START_SECONDS)
        # tests/long/suspended: everything else is done with a sandbox that was suspended
        if os.environ.get("SBX_SUSPENDED"):
            self.sbx("stop", "--suspend", name, timeout=START_SECONDS)
            self.sbx("exec", name, "true", timeout=START_SECONDS)
        return Sandbox(self, name)

    def register(self, name):
        """Creates a sandbox without starting it, which only the API does."""
        self.sbx("ls")
        status, answer = self.api("POST", "/v1/sandboxes",
                                  {"name": name, "memory": 1 << 30, "cpus": 1})
        assert status == 201, answer
        return Sandbox(self, name)


@contextlib.contextmanager
def private(**kwargs):
    """An installation for a with block; it is an error if its processes do not exit."""
    env = Installation(**kwargs)
    try:
        yield env
    finally:
        left = env.close()
    assert not left, f"did not end when the installation was stopped: {left}"


class Sandbox:
    def __init__(self, env, name):
        self.env, self.name = env, name

    def exec(self, *argv, user=None, flags=(), **kwargs):
        """Runs sbx exec to its end."""
        who = ("-u", user) if user else ()
        more = ("-i",) if kwargs.get("input") is not None and "-i" not in flags else ()
        return self.env.sbx("exec", *who, *more, *flags, self.name, *argv, **kwargs)

    def guest(self, script, user="root", **kwargs):
        """Returns the output of a shell script in the guest, without the last newline."""
        out = self.exec("sh", "-c", script, user=user, **kwargs).stdout
        return out[:-1] if out.endswith("\n") else out

    def fails(self, script, user="root", **kwargs):
        return self.exec("sh", "-c", script, user=user, check=False, **kwargs).returncode != 0

    def info(self):
        found = [s for s in self.env.ls() if s["name"] == self.name]
        assert len(found) == 1, f"{self.name} is {len(found)} times in sbx ls --json"
        return found[0]

    @property
    def state(self):
        return self.env.state / "sandboxes" / self.info()["id"]

    def pids(self):
        """Returns name -> pid of the processes of this running sandbox."""
        keeper = self.env.api("GET", f"/v1/sandboxes/{self.name}")[1]["keeper_pid"]
        assert keeper > 0, f"{self.name} has no keeper"
        found = {"keeper": keeper}
        for pid in host.descendants(keeper):
            comm = host.comm(pid)
            for name in ("qemu", "virtiofsd", "sbx-edge", "sbx-egress", "sbx-origin"):
                if comm and comm.startswith(name):
                    # The lowest one is the program; those above are its jailer.
                    found[name.removeprefix("sbx-")] = pid
        return found

    def wait_status(self, status, seconds=20):
        deadline = time.monotonic() + seconds
        while (now := self.info()["status"]) != status:
            assert time.monotonic() < deadline, (
                f"{self.name} is {now}, not {status}, after {seconds} s")
            time.sleep(0.1)

    def stop(self, **kwargs):
        self.env.sbx("stop", "--cold", self.name, timeout=60, **kwargs)

    def rm(self, **kwargs):
        self.env.sbx("rm", "-f", self.name, timeout=60, **kwargs)


def template_store():
    """Returns the directory with the template `debian`, which the tests share read-only."""
    data = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share"
    store = pathlib.Path(os.environ.get("SBX_TEMPLATES")
                         or pathlib.Path(data) / "sbx" / "templates")
    if not (store / "debian" / "manifest.json").exists():
        raise AssertionError(f"no template `debian` in {store}\n"
                             "  try: tools/devenv sbx template build, or SBX_TEMPLATES=DIR")
    return store
