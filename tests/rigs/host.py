# SPDX-License-Identifier: Apache-2.0
"""Observes the host from outside: processes, mounts, sockets, files."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

JAILED = ("sbx-edge", "sbx-egress", "sbx-origin", "sbx-ssh-agent", "qemu-system-x86", "virtiofsd")
OURS = ("sbxd", "sbx-keeper", "sbx-spawner", "sbx-hide", "sbx-guard", "sbx-vault",
        "sbx-vault-run", "sbx-notify", *JAILED)
PR_SET_CHILD_SUBREAPER = 36


def _read(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def stat(pid):
    """Returns (comm, state, parent), or None if it has exited."""
    text = _read(pid, "stat").decode("utf-8", "replace")
    if not text:
        return None
    comm, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return comm, fields[0], int(fields[1])


def comm(pid):
    seen = stat(pid)
    return seen[0] if seen else None


def is_alive(pid):
    seen = stat(pid)
    return seen is not None and seen[1] not in "ZX"


def until(check, seconds=10, text="waited in vain"):
    """Returns the result of check, once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    return found


def mount_root(pid, at):
    """Returns the path in its file system of what is mounted at `at` for a process."""
    rows = (line.split() for line in _read(pid, "mountinfo").decode().splitlines())
    return next(row[3] for row in rows if row[4] == at)


def wait_gone(pids_by_name, seconds, text):
    deadline = time.monotonic() + seconds
    while left := [(name, pid) for name, pid in pids_by_name.items() if is_alive(pid)]:
        assert time.monotonic() < deadline, f"{text}: {left}"
        time.sleep(0.05)


def uid(pid):
    return int(status(pid).get("Uid", "-1").split()[0])


def status(pid):
    """The fields of /proc/PID/status."""
    lines = _read(pid, "status").decode().splitlines()
    return {k: v.strip() for k, _, v in (line.partition(":") for line in lines)}


def descendants(root):
    """Returns every live process below root, parents before children."""
    parents = {pid: seen[2] for pid in pids() if (seen := stat(pid))}
    found, todo = [], [root]
    while todo:
        parent = todo.pop(0)
        below = sorted(pid for pid, up in parents.items() if up == parent)
        found += below
        todo += below
    return [pid for pid in found if is_alive(pid)]


def namespaces(pid):
    names = ("user", "pid", "mnt", "net", "ipc", "uts")
    return {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in names}


def interfaces(pid):
    """Returns the network interfaces that a process can see."""
    lines = _read(pid, "net/dev").decode().splitlines()[2:]
    assert lines, f"/proc/{pid}/net/dev is empty or not readable"
    return [line.partition(":")[0].strip() for line in lines]


def arguments(pid):
    return _read(pid, "cmdline").decode("utf-8", "replace").split("\0")[:-1]


def inventory(env, pid):
    """Returns lines (kind, text) of the inventory that sbxd or a keeper prints: kind is fd or env.
    The kernel does not show it to other processes."""
    words = arguments(pid)
    state = next(pathlib.Path(w.partition("=")[2]) for w in words if w.startswith("--state="))
    runtime = state.parents[1] / "run/sbx"  # other installations of these tests have their own
    assert runtime == env.runtime or state != env.state, (state, runtime)
    path = runtime / "sbxd.inventory"
    if "--id" in words:
        path = runtime / "s" / words[words.index("--id") + 1] / "inventory"
    path.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    until(path.exists, text=f"process {pid} wrote no {path}")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    path.unlink()
    return [tuple(line.split(" ", 1)) for line in lines]


def descriptors(env, pid):
    """Returns the targets of its descriptors. PermissionError: not readable."""
    if comm(pid) in ("sbxd", "sbx-keeper"):
        return [text.split(" ", 1)[1] for kind, text in inventory(env, pid) if kind == "fd"]
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def adopt_orphans():
    """From now on a process whose parent died becomes a child of this one, and is visible."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_children(seconds=10):
    """Kills every process below this one, also in other sessions, and also adopted orphans. Returns
    those that are left."""
    deadline = time.monotonic() + seconds
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return left


def processes(folder):
    """Returns pid -> name of the live processes of an installation: those with its directory in
    their environment or (sbxd and keepers, whose environment is not readable) on their command
    line, their descendants, and jailed ones (which have neither) that lost their keeper."""
    mark, mine = str(folder).encode(), os.getuid()
    found = set()
    for pid in pids():
        seen = stat(pid)
        if not seen or pid == os.getpid() or uid(pid) != mine:
            continue
        if mark in _read(pid,
                         "environ") or b"--state=" + mark in _read(pid,
                                                                   "cmdline") or (
            seen[2] == os.getpid() and seen[0] in JAILED):
            found |= {pid, *descendants(pid)}
    return {pid: comm(pid) for pid in found if is_alive(pid)}


def unix_sockets(folder):
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8",
                                                     errors="replace").splitlines()
    return {f[7] for f in (line.split(None, 7) for line in lines) if len(f) > 7
            and str(folder) in f[7]}


def mounts():
    return set(pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines())


def files(folder):
    found = set()
    for at, folders, names in os.walk(folder):
        found |= {os.path.join(at, name) for name in folders + names}
    return found


def audit_logs(env):
    """Returns the files that `rm` must keep: the record of a sandbox's actions."""
    return {path for path in files(env.folder) if "/state/sbx/audit/" in path}


def snapshot(env):
    """Returns everything an installation may leave on the host, except its audit logs."""
    return {"processes": processes(env.folder), "mounts": mounts(),
            "sockets": unix_sockets(env.folder),
            "files": (files(env.folder) | files(env.work)) - audit_logs(env)}


def added(before, after):
    """Returns what is in `after` and not in `before`; {} if nothing was left behind."""
    diff = {}
    for key, old in before.items():
        new = set(after[key]) - set(old)
        if key == "processes":
            new = {(pid, after[key][pid]) for pid in new}
        if new:
            diff[key] = sorted(map(str, new))
    return diff


def expect_nothing_left(env, before, seconds=30):
    """Waits a little for exiting processes, then fails."""
    deadline = time.monotonic() + seconds
    while (diff := added(before, snapshot(env))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not diff, f"left behind: {diff}"


def check_disk(qcow2, scratch):
    """Runs fsck on a stopped sandbox's disk after replaying its journal, as the next boot would."""
    raw = pathlib.Path(scratch) / "disk.raw"
    tools = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def run(*argv):
        done = subprocess.run(argv, env=tools, capture_output=True, text=True, check=False,
                              timeout=300)
        return done.returncode, done.stdout + done.stderr
    # The threads of a killed qemu may hold the lock for a moment after its main thread has exited.
    deadline = time.monotonic() + 30
    while "lock" in (result := run("qemu-img", "check",
                                   str(qcow2)))[1] and time.monotonic() < deadline:
        time.sleep(0.1)
    code, text = result
    # 3 means leaked clusters: space that a killed qemu did not free, not damage.
    assert code in (0, 3), text
    code, text = run("qemu-img", "convert", "-O", "raw", str(qcow2), str(raw))
    assert code == 0, text
    try:
        code, text = run("e2fsck", "-E", "journal_only", "-y", str(raw))
        assert code in (0, 1), text
        code, text = run("e2fsck", "-fn", str(raw))
        assert code == 0, text
    finally:
        raw.unlink(missing_ok=True)
