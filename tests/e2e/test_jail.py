# SPDX-License-Identifier: Apache-2.0
"""The jails of qemu, virtiofsd, edge and egress, as /proc shows them."""
import os
import pathlib
import re
import subprocess

import host
import pytest

JAILED = ("qemu", "virtiofsd", "edge", "egress")
# egress is what goes out: it alone has the host's network
WITHOUT_NET = ("qemu", "virtiofsd", "edge")
NO_CAPS = "0000000000000000"


@pytest.fixture(scope="module")
def pids(sandbox):
    found = sandbox.pids()
    assert set(JAILED) <= set(found), f"running: {found}"
    return found


@pytest.mark.parametrize("name", JAILED)
def test_seccomp_and_no_new_privs(pids, name):
    status = host.status(pids[name])
    assert status["Seccomp"] == "2"
    assert status["NoNewPrivs"] == "1"
    assert int(status["Uid"].split()[0]) == os.getuid()


@pytest.mark.parametrize("name", ("qemu", "edge", "egress"))
def test_no_capability_at_all(pids, name):
    status = host.status(pids[name])
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert status[kind] == NO_CAPS, kind


@pytest.mark.parametrize("name", JAILED)
def test_own_namespaces(pids, name):
    """A capability that virtiofsd has counts in its own user namespace only."""
    ours, theirs = host.namespaces(os.getpid()), host.namespaces(pids[name])
    for kind in ("user", "mnt", "pid", "ipc"):
        assert theirs[kind] != ours[kind], f"{name} shares the {kind} namespace of the host"
    assert (theirs["net"] != ours["net"]) == (name in WITHOUT_NET)
    for other in JAILED:
        if other != name:
            assert host.namespaces(pids[other])["user"] != theirs["user"]


@pytest.mark.parametrize("name", WITHOUT_NET)
def test_net_namespace_is_empty(pids, name):
    assert host.interfaces(pids[name]) == ["lo"]
    counters = pathlib.Path(f"/proc/{pids[name]}/net/dev").read_text().splitlines()[2].split()[1:]
    assert set(counters) == {"0"}, "lo was used"
    assert pathlib.Path(f"/proc/{pids[name]}/net/route").read_text().count("\n") <= 1
    for table in ("tcp", "udp"):
        assert pathlib.Path(f"/proc/{pids[name]}/net/{table}").read_text().count("\n") <= 1


@pytest.mark.parametrize("name", JAILED)
def test_uid_map_is_one_line(pids, name):
    lines = pathlib.Path(f"/proc/{pids[name]}/uid_map").read_text().splitlines()
    assert len(lines) == 1
    assert [int(n) for n in lines[0].split()[1:]] == [os.getuid(), 1]


@pytest.mark.parametrize("name", ("edge", "egress"))
def test_ours_have_an_empty_root(pids, name):
    root = pathlib.Path(f"/proc/{pids[name]}/root")
    assert [p.name for p in root.iterdir()] == []
    mounts = pathlib.Path(f"/proc/{pids[name]}/mounts").read_text().splitlines()
    assert len(mounts) <= 1, mounts


def test_qemu_sees_no_home(pids):
    root = pathlib.Path(f"/proc/{pids['qemu']}/root")
    for path in (pathlib.Path.home(), pathlib.Path("/etc/passwd"), pathlib.Path("/run"),
                 pathlib.Path("/var/lib")):
        at = root / str(path).lstrip("/")
        assert not at.exists() or not any(at.iterdir() if at.is_dir() else [at]), (
            f"qemu can see {path}")


def test_virtiofsd_sees_the_workspace_only(sandbox, pids):
    root = pathlib.Path(f"/proc/{pids['virtiofsd']}/root")
    home = root / str(pathlib.Path.home()).lstrip("/")
    for name in (".ssh", ".bashrc", ".profile", ".local"):
        assert not (home / name).exists(), f"virtiofsd can see {name} of the home directory"


def test_the_keeper_is_sealed(sandbox, pids):
    """Its files are tried from within by lib/os/jail/test/broker_test.c: no other process can see a
    Landlock ruleset."""
    seen = host.status(pids["keeper"])
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")


def test_descriptors_in_flight_of_a_keeper_do_not_block_sbxd(env, pids):
    """The kernel compares all descriptors that the user has in flight with the limit of who sends
    the next one."""
    def limit(pid):
        row = re.search(r"Max open files +(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text())
        return int(row.group(1))
    jails = max(limit(pids[name]) for name in ("qemu", "virtiofsd", "edge", "egress"))
    assert jails < limit(pids["keeper"]) < limit(env.daemon_pid())


def test_sbxd_is_sealed(env, pids):
    """Its spawner is not: what it starts may be set-uid. Questions that are out of form are tried
    by src/sbxd/test/hands_test.c."""
    daemon = env.daemon_pid()
    seen = host.status(daemon)
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")
    (spawner,
     ) = [p for p in host.descendants(daemon) if host.status(p)["PPid"] == str(daemon)
          and host.comm(p) == "sbx-spawner"]
    assert host.status(spawner)["NoNewPrivs"] == "0" and looked_into(spawner) == []
    assert pids["keeper"] in host.descendants(spawner)


def looked_into(pid):
    """What this process, of the same user, can see of another one."""
    seen = []
    for name in ("environ", "maps", "mem", "auxv"):
        try:
            open(f"/proc/{pid}/{name}", "rb").close()
            seen.append(name)
        except PermissionError:
            pass
    try:
        seen += os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        pass
    return seen


def test_nobody_looks_into_the_brokers(env, sandbox, pids):
    """Tracing and taking descriptors are tried by lib/os/jail/test/broker_test.c."""
    spawner = [p for p in host.descendants(pids["keeper"]) if host.comm(p) == "sbx-spawner"]
    assert len(spawner) == 1
    for pid in (pids["keeper"], env.daemon_pid(), *spawner):
        assert looked_into(pid) == [], f"{host.comm(pid)} can be inspected"
    with subprocess.Popen(["sleep", "60"]) as other:
        assert "environ" in looked_into(other.pid) and "0" in looked_into(other.pid)
        other.kill()


def test_the_brokers_say_what_they_have_open(env, pids):
    for pid in (pids["keeper"], env.daemon_pid()):
        said = host.inventory(env, pid)
        assert ("fd",
                "0 /dev/null") in said and any(kind == "env" and text.startswith("HOME=") for kind,
                                               text in said)
        assert any(text.endswith(".lock") or text.endswith("/lock") for kind,
                   text in said if kind == "fd"), said


def test_they_die_with_their_keeper(env):
    box = env.create("orphans")
    pids = box.pids()
    os.kill(pids["keeper"], 9)
    host.wait_gone(pids, 10, "outlived their keeper")
    box.rm()


@pytest.mark.parametrize("name, words", [("edge", ("open", "socket", "connect", "exec", "ptrace")),
                                         ("egress",
                                          ("open", "bind", "listen", "accept", "exec", "ptrace")),
                                         ("vault", ("socket", "bind", "exec", "ptrace")),
                                         ("origin", ("open", "socket", "exec", "ptrace")),
                                         ("ssh-agent", ("open", "socket", "exec", "ptrace"))])
def test_ours_prove_their_own_jail(env, name, words):
    done = subprocess.run([f"{env.env['SBX_LIBEXEC']}/sbx-{name}", "--jail-selftest"], env=env.env,
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout, f"the self-test does not print {word}"


def test_nothing_of_ours_listens_on_the_network(env, sandbox):
    """Every process is in an empty net namespace, or is seen to hold no network socket, or could
    not listen with one."""
    inodes = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            inodes.add(f"socket:[{line.split()[9]}]")
    mine, looked = os.readlink("/proc/self/ns/net"), 0
    for pid, name in host.processes(env.folder).items():
        try:
            if name in ("sbxd", "sbx-keeper"):
                looked += 1
            elif os.readlink(f"/proc/{pid}/ns/net") != mine:
                assert host.interfaces(pid) == ["lo"], f"{name} has a network"
                continue
            targets = host.descriptors(env, pid)
        except PermissionError:
            # Not dumpable. Most are jailed, see above: egress has the host's network, and can
            # neither bind nor listen; the vault and origins can make no socket at all (their
            # self-tests). The spawner keeps one socket of the keeper's
            # (lib/os/worker/test/worker_test.c).
            assert name in ("sbx-spawner", "sbx-edge", "sbx-egress", "virtiofsd", "sbx-hide",
                            "sbx-guard", "sbx-vault", "sbx-origin"), name
            continue
        assert not inodes & set(targets), f"{name} has a network socket"
    assert looked >= 2, "sbxd and the keeper were not checked"
