# SPDX-License-Identifier: Apache-2.0
"""The only way out, from inside a real VM: one policy, the same verdict on every path, in every
state.

The laboratory (netlab.py) and the sbx under test run in separate namespaces: no packet can
leave, and every server there counts its connections. netprobe.py runs inside, once for each place
and state, and tries all cells.
"""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import tarfile
import time

import pytest

import host
import netlab
from installation import START_SECONDS, WITH_DOCKER, private

HERE = pathlib.Path(__file__).resolve().parent
SLOW = 600  # dockerd under software emulation
PRESET = "balanced"
RULES = "allowed.test,other.test,www.wild.test,real.test,raw.test:7000-7003"
LITERAL, LITERAL6 = "203.0.113.7", "2001:db8::7"
IMDS = "169.254.169.254"


# the matrix

def client_hello(name):
    """A real ClientHello with that name, for ports where TLS is not expected, as text of bytes."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(into, out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read().decode("latin-1")


def make_cells():
    """{forward, transparent} x {http, https, raw tcp} x the cases; id -> (cell, verdict)."""
    cells = {}

    def add(path, proto, case, verdict, host, port, **more):
        name = f"{path} {proto} {case}"
        cells[name] = ({"id": name, "path": path, "proto": proto, "host": host, "port": port,
                        **more}, verdict)

    for path in ("forward", "transparent"):
        for proto, good, port, other in (("http", "allowed.test", 80, 8080),
                                         ("https", "allowed.test", 443, 8443),
                                         ("tcp", "raw.test", 7000, 7009)):
            add(path, proto, "allowed", "allowed", good, port)
            add(path, proto, "denied", "denied", "denied.test", port)
            add(path, proto, "other port", "denied", good, other)
            add(path, proto, "IP literal", "denied", LITERAL, port)
            add(path, proto, "IPv6", "allowed", good, port, family=6)
            add(path, proto, "IPv6 literal", "denied", LITERAL6, port, family=6)
            # the bytes of another protocol, or with another name, on a connection that is allowed
            add(path, proto, "wrong SNI", "denied", good, port,
                **({"sni": "denied.test"} if proto == "https" else
                                                                   {
                "plain": client_hello("denied.test")}))
            request = "GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n"
            add(path, proto, "wrong Host", "denied", good, port,
                **({"header": "denied.test"} if proto == "http" else
                                                                    {"plain": request}))
        add(path, "https", "SNI of another allowed name", "denied", "allowed.test", 443,
            sni="other.test")
        add(path, "http", "Host of another allowed name", "denied", "allowed.test", 80,
            header="other.test")
        add(path, "tcp", "server speaks first", "allowed", "raw.test", 7001, first=True)
        add(path, "https", "below an allowed name", "denied", "evil.allowed.test", 443)
        add(path, "tcp", "port 22", "denied", "allowed.test", 22)
        add(path, "tcp", "port 9999", "denied", "allowed.test", 9999)
        add(path, "http", "metadata", "denied", IMDS, 80)
        add(path, "https", "found by the resolver", "allowed", "real.test", 443)
    return cells


CELLS = make_cells()
UDP = {"udp": ("192.0.2.1", 123), "udp port 443": ("198.51.100.1", 443)}
TABLE = json.dumps({"cells": [cell for cell, _ in CELLS.values()], "udp": UDP})
TRAPS = ("trap-http", "trap-https", "proxy", "stopped", "source", "sshd")


def check(results, place, everything_denied=False):
    """All wrong cells at once: one run under emulation is dear."""
    wrong = {}
    for name, (_, verdict) in CELLS.items():
        got, want = results[name], "denied" if everything_denied else verdict
        if got["verdict"] != want or got["ms"] > 15000:
            wrong[name] = {"want": want, **got}
    assert not wrong, f"from {place}: {json.dumps(wrong, indent=1)}"
    for name in UDP:
        assert results[name]["how"] not in ("silence", "answered") and results[name]["ms"] < 3000, (
            (place, name, results[name]))


# the laboratory, the installation, the sandbox

def container_image(path, tag):
    """A docker-archive: a root without files, into which the guest's /usr is mounted; and busybox
    for builds."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", "lab", "busy"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name in ("bin", "sbin", "lib", "lib64"):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(info)
        data = pathlib.Path("/bin/busybox").read_bytes()
        info = tarfile.TarInfo("busy/busybox")
        info.size, info.mode = len(data), 0o755
        tar.addfile(info, io.BytesIO(data))
        for name in ("sh", "wget", "env"):
            info = tarfile.TarInfo(f"busy/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
    blob = layer.getvalue()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin:/busy"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(blob).hexdigest()]},
        "history": [{"created": "2001-01-01T00:00:00Z", "created_by": "lab"}]}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for file, content in ((name, config), ("layer.tar", blob), ("manifest.json", manifest)):
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.fixture(scope="module")
def lab():
    with netlab.lab(apart=True) as made:
        made.dns.table |= {"inside.test": ["10.1.2.3"], "mapped.test": ["::ffff:127.0.0.1"],
                           "imds.test": [IMDS],
                           "looped.test": ["127.0.0.1", "::1"]}
        yield made


@pytest.fixture(scope="module")
def env(lab):
    """An installation in the laboratory's world, with a policy and a small disk for the audit
    log."""
    with private(prefix=lab.apart.prefix, policy="none") as made:
        audit = made.state / "audit"
        made.state.mkdir(mode=0o700, exist_ok=True)
        audit.mkdir(mode=0o700)
        lab.apart.do(do="tmpfs", at=str(audit), size="8m")
        for key, value in lab.settings().items():
            made.sbx("settings", "set", key, value)
        made.sbx("policy", "set-default", PRESET)
        made.sbx("policy", "allow", "network",
                 RULES + ",inside.test,mapped.test,imds.test,looped.test")
        yield made


class Box:
    """The sandbox of this module, with what these tests do with it."""

    def __init__(self, lab, env):
        self.lab, self.env = lab, env
        self.folder = env.make_folder("net")
        for name in ("netprobe.py",):
            shutil.copy(HERE.parent / "rigs" / name, self.folder)
        shutil.copy(lab.ca, self.folder / "ca.crt")
        shutil.copy(lab.key, self.folder / "key")
        (self.folder / "key").chmod(0o600)
        (self.folder / "table.json").write_text(TABLE)
        container_image(self.folder / "image.tar", "lab:1")
        self.box = env.create("net", self.folder, memory=WITH_DOCKER)
        self.has_container = False

    def __getattr__(self, name):
        return getattr(self.box, name)

    def probe_guest(self):
        f = shlex.quote(str(self.folder))
        return json.loads(self.guest(f"python3 {f}/netprobe.py {f} < {f}/table.json", timeout=120))

    def docker(self, script, **kwargs):
        return self.guest(script, timeout=SLOW, **kwargs)

    def start_container(self):
        f = shlex.quote(str(self.folder))
        if not self.has_container:
            self.docker(
                f"docker load -q -i {f}/image.tar && docker run -d --name lab -v /usr:/usr:ro -v {f}:/lab lab:1 "
                        "sleep 1000000")
            self.has_container = True

    def probe_container(self):
        self.start_container()
        f = shlex.quote(str(self.folder))
        return json.loads(
            self.docker("docker start lab >&2 && docker exec -i lab python3 /lab/netprobe.py /lab "
                                      f"< {f}/table.json"))

    def curl(self, *args, user="agent"):
        """curl as a person types it: the proxy variables count."""
        return self.exec("curl", "-sS", "--max-time", "30", "--cacert", self.folder / "ca.crt",
                         *args, user=user, check=False)

    def log(self):
        return json.loads(self.env.sbx("policy", "log", self.name, "--json").stdout)

    def blocked(self, target):
        return [row for row in self.log()["blocked_hosts"] if row["host"] == target]


@pytest.fixture(scope="module")
def box(lab, env):
    made = Box(lab, env)
    yield made
    made.rm()


@contextlib.contextmanager
def rule(env, verb, resource, *more):
    """A rule for the length of a with block."""
    env.sbx("policy", verb, "network", resource, *more)
    try:
        yield
    finally:
        env.sbx("policy", "rm", "network", "--resource", resource, *more)


# one matrix, nine states

def kill(box, victim):
    pid = box.env.daemon_pid() if victim == "sbxd" else box.pids()[victim]
    os.kill(pid, signal.SIGKILL)
    host.wait_gone({victim: pid}, 10, "it was killed")


def state_restored(box):
    """From the template's memory image, as any new one."""
    assert box.info()["start"] == ("resumed" if os.environ.get("SBX_SUSPENDED") else "warm")


def state_suspended(box):
    box.env.sbx("stop", "--suspend", box.name, timeout=SLOW)


def state_restarted(box):
    box.stop()


def state_sbxd_killed(box):
    kill(box, "sbxd")


def state_keeper_killed(box):
    kill(box, "keeper")
    box.wait_status("stopped", 30)


def state_edge_killed(box):
    kill(box, "edge")


def state_egress_killed(box):
    kill(box, "egress")


def state_reloaded(box):
    box.env.sbx("policy", "allow", "network", "reloaded.test")
    box.env.sbx("policy", "rm", "network", "--resource", "reloaded.test")


STATES = [state_restored, state_suspended, state_restarted, state_sbxd_killed, state_keeper_killed,
          state_edge_killed, state_egress_killed,
          state_reloaded]


@pytest.mark.parametrize("state", STATES, ids=lambda s: s.__name__.removeprefix("state_"))
def test_the_matrix(lab, box, state):
    state(box)
    with lab.nobody_connects("http", "https", "echo", "first", "real-https", "real-https6"):
        check(box.probe_guest(), "the guest")
        check(box.probe_container(), "a container")
    assert lab.dns.asked_for("denied.test") == 0 and lab.dns.asked_for("evil.allowed.test") == 0


def test_the_matrix_with_a_full_disk(lab, box):
    """What cannot be recorded is refused; and it works again when there is room."""
    audit = box.env.state / "audit"
    box.start_container()
    fill = f"dd if=/dev/zero of={audit}/filler bs=64k; dd if=/dev/zero of={audit}/filler2 bs=1"
    box.lab.apart.run("sh", "-c", fill, capture_output=True)
    try:
        box.probe_guest()  # what the last page of the log still had room for may pass
        with lab.nobody_connects():
            check(box.probe_guest(), "the guest", everything_denied=True)
            check(box.probe_container(), "a container", everything_denied=True)
    finally:
        box.lab.apart.run("sh", "-c", f"rm -f {audit}/filler*")
    check(box.probe_guest(), "the guest, with room again")
    assert "OK" in box.env.sbx("audit", "verify", box.name).stdout


# what people see

def test_curl_of_a_blocked_https_fails_on_both_paths(lab, box):
    with lab.nobody_connects():
        p = box.curl("https://denied.test/")
        assert p.returncode == 56 and "403" in p.stderr and p.stdout == "", (p.returncode, p.stderr)
        p = box.curl("--noproxy", "*", "https://denied.test/")
        assert p.returncode == 6, (p.returncode, p.stderr)


def test_curl_of_a_blocked_http_shows_the_text_and_403(lab, box):
    with lab.nobody_connects():
        p = box.curl("-w", "\n%{http_code}", "http://denied.test/")
    assert p.returncode == 0 and p.stdout.endswith("\n403")
    assert p.stdout.startswith("Blocked by network policy: ")
    assert ("no applicable policies for op(action=net:connect:tcp, "
            "resource=net:domain:denied.test:80)" in p.stdout)
    assert "sbx policy allow network denied.test" in p.stdout
    with rule(box.env, "deny", "other.test"):
        p = box.curl("-w", "\n%{http_code}", "http://other.test/")
    assert p.stdout.endswith(
        "\n403") and "no applicable" not in p.stdout and "Blocked by network policy: " in p.stdout


def test_metadata_is_refused_and_logged(lab, box):
    with lab.nobody_connects():
        assert box.curl("-f", f"http://{IMDS}/latest/meta-data/").returncode != 0
        assert box.curl("--noproxy", "*", "-f", f"http://{IMDS}/").returncode != 0
    rows = box.blocked(f"{IMDS}:80")
    assert rows and {r["vm_name"] for r in rows} == {box.name}
    assert {r["proxy_type"] for r in rows} >= {"forward", "transparent"}
    assert IMDS in box.env.sbx("audit", "show", box.name, "-n", "0").stdout


def test_ports_of_an_allowed_host_are_refused_until_a_rule_names_them(lab, box):
    ssh = (
        f"ssh -F none -i {box.folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes "
           f"-o ConnectTimeout=20 {lab.user}@allowed.test echo through")
    echo = (
        "python3 -c 'import socket; s = socket.create_connection((\"allowed.test\", 9999), 20); s.sendall(b\"1234\"); "
            "print(s.recv(4).decode())'")
    through = ssh.replace("-F none",
                          "-F none -o ProxyCommand='python3 " + str(box.folder / "connect.py")
                          + " %h %p'")
    (box.folder / "connect.py").write_text(CONNECT)
    # The key must be its user's alone, and a workspace shows the host's modes.
    with lab.nobody_connects():
        for script in (ssh, echo, through):
            assert box.fails(script, user="agent"), script
    with rule(box.env, "allow", "allowed.test:22,allowed.test:9999"):
        assert box.guest(ssh, user="agent") == "through"
        assert box.guest(through, user="agent") == "through"
        assert box.guest(echo) == "1234"
    with lab.nobody_connects():
        assert box.fails(ssh, user="agent") and box.fails(echo)


CONNECT = """
import os, select, socket, sys
s = socket.create_connection(("gateway.docker.internal", 3128), 20)
to = f"{sys.argv[1]}:{sys.argv[2]}"
s.sendall(f"CONNECT {to} HTTP/1.1\\r\\nHost: {to}\\r\\n\\r\\n".encode())
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    part = s.recv(1)
    if not part: sys.exit(1)
    head += part
if b" 200 " not in head.split(b"\\r\\n")[0]: sys.exit(head.decode("latin-1"))
while True:
    for r in select.select([s, 0], [], [])[0]:
        data = s.recv(65536) if r is s else os.read(0, 65536)
        if not data: sys.exit(0)
        if r is s: os.write(1, data)
        else: s.sendall(data)
"""


CONNECTS = """
import errno, json, socket, sys, time

def tried(host, port):
    began, family = time.monotonic(), socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(20)
        try:
            s.connect((host, port))
            how = "open"
        except OSError as e:
            how = errno.errorcode.get(e.errno, str(e))
        took = time.monotonic() - began
        if how == "open" and port == 7000:
            s.sendall(b"1234")
            how = s.recv(4).decode()
    return how, took

print(json.dumps({f"{host} {port}": tried(host, port) for host, port in json.load(sys.stdin)}))
"""


def test_what_is_denied_fails_when_it_connects(lab, box):
    """connect() itself: from a process and from a container, and a scan of ports finds none of them
    open."""
    denied = [(LITERAL, 443), (LITERAL, 80), (LITERAL6, 443), (IMDS, 80), ("10.1.2.3", 22),
              ("198.18.77.5", 443),
              ("allowed.test", 22),
              ("allowed.test", 9999)] + [("203.0.113.9", port) for port in range(20, 40)]
    allowed = [("raw.test", 7000), ("allowed.test", 443), ("allowed.test", 80)]
    (box.folder / "connects.py").write_text(CONNECTS)
    (box.folder / "connects.json").write_text(json.dumps(denied + allowed))
    f = shlex.quote(str(box.folder))
    box.start_container()
    for place, how in (("a process", f"python3 {f}/connects.py"),
                       ("a container",
                        "docker start lab >&2 && docker exec -i lab python3 /lab/connects.py")):
        with lab.nobody_connects("echo", "https", "http"):
            got = json.loads(box.docker(f"{how} < {f}/connects.json"))
        wrong = {f"{h} {p}": got[f"{h} {p}"] for h, p in denied
                 if got[f"{h} {p}"][0] != "ECONNREFUSED" or got[f"{h} {p}"][1] > 1}
        assert not wrong, f"from {place}: {wrong}"
        assert {k: got[k][0] for k in ("raw.test 7000", "allowed.test 443", "allowed.test 80")} == \
            {"raw.test 7000": "1234", "allowed.test 443": "open", "allowed.test 80": "open"}, place
    # Each was recorded, as one that was not made.
    assert {r["proxy_type"] for r in box.blocked("203.0.113.9:31")} == {"transparent"}


def test_a_rule_is_all_that_a_refused_connect_needs(lab, box):
    """And the rule applies to the next connect(): the guest caches no answer."""
    script = (
        f"echo '[[\"allowed.test\", 9999]]' | python3 {shlex.quote(str(box.folder))}/connects.py")
    (box.folder / "connects.py").write_text(CONNECTS)
    assert "ECONNREFUSED" in box.guest(script)
    with rule(box.env, "allow", "allowed.test:9999"):
        assert "open" in box.guest(script)
    assert "ECONNREFUSED" in box.guest(script)


def test_the_reason_of_a_refusal_is_readable_inside(lab, box):
    """A program that shows only "403" or "connection refused": the sandbox has the sentence and the
    command."""
    with lab.nobody_connects():
        assert box.curl("https://whyproxy.test/").returncode == 56
        said = box.guest("sbx-why whyproxy.test", user="agent")
        assert said.startswith("Blocked by network policy: whyproxy.test:443\n"), said
        command = re.search(r"allow: +(sbx policy allow network whyproxy\.test:443 --sandbox net) ",
                            said)
        assert command, said
        # A connection that is caught, from a container.
        box.start_container()
        box.docker("docker start lab >&2 && ! docker exec lab python3 -c 'import socket; "
                   "socket.create_connection((\"203.0.113.77\", 4711))' 2>&1 >/dev/null | grep -q Traceback || true")
        assert "sbx policy allow network 203.0.113.77:4711 --sandbox net" in box.guest(
            "sbx-why 203.0.113.77:4711")
        # An allowed name with a private address, which egress finds.
        box.curl("https://inside.test/")
        assert "10.1.2.3" in box.guest("sbx-why inside.test")
    every = box.guest("cat /run/sbx/denied; stat -c %a /run/sbx/denied", user="agent")
    assert "whyproxy.test:443" in every and every.endswith("644") and every.isascii()
    # The command that it prints is one that works.
    box.env.sbx(*shlex.split(command[1])[1:])
    assert "Allowed" in box.env.sbx("policy", "check", "network", "whyproxy.test:443", "--sandbox",
                                    "net").stdout
    box.env.sbx("policy", "rm", "network", "--resource", "whyproxy.test:443", "--sandbox", "net")
    assert box.fails("sbx-why never.test", user="agent")


# a missing service

def listening(env, pids):
    """(protocol, address) of every socket that these processes listen on, in whatever network
    namespace."""
    found = set()
    for pid in pids:
        inodes = set()
        with contextlib.suppress(OSError):
            for target in host.descriptors(env, pid):
                inodes |= set(re.findall(r"^socket:\[(\d+)\]$", target))
        for proto in ("tcp", "tcp6", "udp", "udp6", "raw", "packet"):
            with contextlib.suppress(OSError):
                for line in pathlib.Path(f"/proc/{pid}/net/{proto}").read_text().splitlines()[1:]:
                    f = line.split()
                    is_open = proto in ("raw",
                                        "packet") or f[3] == "0A" or (proto.startswith("udp")
                                                                      and f[2].endswith(":0000"))
                    if is_open and f[8 if proto == "packet" else 9] in inodes:
                        found.add((proto, f[1], host.comm(pid)))
    return found


def test_nothing_of_ours_listens_on_the_host(box):
    box.curl("http://allowed.test/")
    ours = host.processes(box.env.folder)
    assert {"sbxd", "sbx-keeper", "sbx-edge", "sbx-egress"} <= set(ours.values())
    assert not listening(box.env, ours)
    # And the look itself sees one when there is one.
    with netlab.lab() as other:
        assert any(proto == "tcp" for proto, _, _ in listening(box.env, [os.getpid()])), other


def test_no_network_card(box):
    names = set(box.guest("ls /sys/class/net").split())
    assert "lo" in names and not {n for n in names
                                  if os.path.basename(n).startswith(("ens", "enp"))}
    # virtio ids: 1 is a network card, 19 is vsock
    ids = {int(i, 16) for i in box.guest("cat /sys/bus/virtio/devices/*/device").split()}
    assert ids and not ids & {1, 19}
    # No PCI device of the class "network controller" either, and no interface has a
    # device.
    assert not [c for c in box.guest("cat /sys/bus/pci/devices/*/class").split()
                if c.startswith("0x02")]
    assert box.fails("ls -d /sys/class/net/*/device")
    assert host.interfaces(box.pids()["qemu"]) == ["lo"] and host.interfaces(
        box.pids()["edge"]) == ["lo"]


def test_denied_names_do_not_exist_and_nobody_is_asked(lab, box):
    before = sum(lab.dns.queries.values())
    names = [f"{c}{i}.denied.test" for i in range(3) for c in ("a", "long-label-" + "x" * 40)]
    queries = "\n".join(f"{n} {t}" for n in names
                        for t in ("A", "AAAA", "TXT", "NULL", "MX", "SVCB", "HTTPS", "ANY",
                                  "CNAME"))
    for transport in ("+notcp", "+tcp"):
        # one dig for all of them: it reads queries from a file
        answer = box.guest(
            f"printf %s {shlex.quote(queries)} > /tmp/q && dig {transport} +tries=1 +timeout=10 -f /tmp/q "
                           "| grep -E 'status:|EDE:'", timeout=120)
        assert answer.count("status: NXDOMAIN") == queries.count("\n") + 1, answer
        assert "EDE: " in answer
    assert box.fails("dig +tries=1 +timeout=5 -x 8.8.8.8 | grep -q 'status: NOERROR'")
    # Another resolver is not reached either: the question is caught and gets the same answer.
    assert "status: NXDOMAIN" in box.guest("dig +tries=1 +timeout=10 @9.9.9.9 x.denied.test")
    allowed = box.guest("dig +short allowed.test")
    assert re.fullmatch(r"198\.(18|19)\.\d+\.\d+", allowed), allowed
    assert sum(lab.dns.queries.values()) == before, lab.dns.queries
    assert not lab.dns.asked_for("denied.test")


def test_names_that_lead_inside_are_refused(lab, box):
    with lab.nobody_connects():
        for name in ("inside.test", "mapped.test", "imds.test", "looped.test"):
            p = box.curl("-w", "%{http_code}", f"http://{name}/")
            assert p.stdout.endswith(("403", "502")) and netlab.BODY not in p.stdout, (
                (name, p.stdout))
            assert box.curl(f"https://{name}/").returncode != 0
            assert box.curl("--noproxy", "*", f"https://{name}/").returncode != 0
            assert lab.dns.asked_for(name) > 0
            assert box.blocked(f"{name}:443"), name
    with lab.nobody_connects("real-http", "real-http6"):
        assert netlab.BODY in box.curl("http://real.test/").stdout


def test_other_packets_are_answered_at_once(box):
    begin = time.monotonic()
    said = box.exec("ping", "-c", "1", "-W", "60", "198.51.100.1", user="root", check=False)
    assert said.returncode != 0 and "Packet filtered" in said.stdout + said.stderr, (
        said.stdout + said.stderr)
    assert time.monotonic() - begin < 8
    said = box.exec("ping", "-c", "1", "-W", "60", "allowed.test", user="root", check=False)
    assert said.returncode != 0


# the settings of the guest

def test_proxy_variables(box):
    seen = dict(line.split("=", 1) for line in box.guest("env", user="agent").splitlines()
                if "=" in line)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        assert seen[name] == "http://gateway.docker.internal:3128", name
    for name in ("no_proxy", "NO_PROXY"):
        assert {"localhost", "127.0.0.1", "::1"} <= set(seen[name].split(","))
    assert "-Dhttp.proxyHost=gateway.docker.internal" in seen["JAVA_TOOL_OPTIONS"]
    assert "-Dhttps.proxyPort=3128" in seen["JAVA_TOOL_OPTIONS"]


def test_the_users_own_ca_is_trusted_inside(box):
    """network.extra-ca counted for hosts with a credential only: behind an opaque tunnel the guest
    itself verifies."""
    url = "https://allowed.test/"
    assert netlab.BODY in box.guest(f"curl -sS --max-time 30 {url}", user="agent")
    assert netlab.BODY in box.guest(
        f"python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{url}\").read().decode())'", user="agent")
    assert netlab.BODY in box.guest(
        f"node -e 'require(\"https\").get(\"{url}\", r => r.pipe(process.stdout))'", user="agent")
    box.start_container()
    assert netlab.BODY in box.docker(f"docker exec lab curl -sS --max-time 60 {url}")


def test_browser_policies(box):
    """Chromium and Firefox hide the server name with random bytes by default."""
    ca = box.guest("cat /run/sbx/browser-ca-0.pem")
    for name in ("chromium", "opt/chrome"):
        policy = json.loads(box.guest(f"cat /etc/{name}/policies/managed/sbx.json"))
        assert policy["EncryptedClientHelloEnabled"] is False and policy["CACertificates"][
            0] in ca.replace("\n", "")
        # the sandbox's, and the laboratory's as network.extra-ca
        assert len(policy["CACertificates"]) == 2
    for name in ("firefox", "firefox-esr"):
        policy = json.loads(box.guest(f"cat /etc/{name}/policies/policies.json"))["policies"]
        assert policy["DisableEncryptedClientHello"] is True and policy["Certificates"]["Install"][
            0] == "/run/sbx/browser-ca-0.pem"
        assert "grease_probability" in box.guest(f"cat /etc/{name}/defaults/pref/sbx.js")


def test_the_host_by_its_docker_name(lab, box):
    """Only a rule with the name and the port allows 127.0.0.1 of the host, in processes and in
    containers."""
    def answer(_, s):
        s.recv(4096)
        s.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\nfrom the host")

    server = netlab.Listener(answer, lab.apart)
    url = f"http://host.docker.internal:{server.port}/"
    ways = (f"curl -sS --max-time 30 {url}", f"curl -sS --noproxy '*' --max-time 30 {url}",
            f"docker exec lab curl -sS --max-time 60 {url}")
    try:
        box.start_container()
        for way in ways:
            assert "from the host" not in box.exec("sh", "-c", way, user="agent", check=False,
                                                   timeout=SLOW).stdout
        assert server.count == 0
        with rule(box.env, "allow", f"host.docker.internal:{server.port}"):
            assert [box.docker(way, user="agent") for way in ways] == ["from the host"] * 3
    finally:
        server.stop()
    said = box.env.sbx("policy", "allow", "network", "host.docker.internal", check=False)
    assert said.returncode != 0 and "must name a port" in said.stderr


def test_gateway_names(box):
    for name in ("gateway.docker.internal", "gateway.sbx.internal"):
        assert "198.18.0.1" in box.guest(f"getent ahostsv4 {name}")
        assert "fd5b:7862:19d3:1::1" in box.guest(f"getent ahostsv6 {name}")
    p = box.curl("--proxy", "http://gateway.sbx.internal:3128", "https://allowed.test/")
    assert netlab.BODY in p.stdout, p.stderr


def test_curl_of_what_is_allowed(lab, box):
    for args in ([], ["--noproxy", "*"]):
        for url in ("http://allowed.test/", "https://allowed.test/", "https://www.wild.test/"):
            p = box.curl(*args, url)
            assert p.returncode == 0 and netlab.BODY in p.stdout, (url, args, p.stderr)
        assert "proto=HTTP/2.0" in box.curl(*args, "https://allowed.test/").stdout
    p = box.curl("https://allowed.test/files/big", "-r", "0-16777215", "-o", "/dev/null", "-w",
                 "%{size_download}")
    assert p.stdout == str(16 << 20), p.stderr
    p = box.guest(
        f"head -c 3000000 /dev/zero | curl -sS --data-binary @- --cacert {box.folder}/ca.crt http://allowed.test/put")
    assert p == "took 3000000"


def test_many_connections_at_once(lab, box):
    script = ("import socket\n"
              "all = [socket.create_connection(('raw.test', 7000), 60) for _ in range(100)]\n"
              "for i, s in enumerate(all): s.sendall(b'%03d' % i)\n"
              "assert [s.recv(3) for s in all] == [b'%03d' % i for i in range(100)]\n"
              "print('all')\n")
    before = lab.connections()["echo"]
    assert box.exec("python3", "-c", script, timeout=120).stdout == "all\n"
    assert lab.connections()["echo"] == before + 100


def test_a_companys_proxy(lab, box):
    """It resolves and connects; what the policy denies does not even get there."""
    proxy = lab.servers["proxy"]
    box.env.sbx("settings", "set", "network.proxy", f"http://127.0.0.1:{proxy.port}")
    try:
        asked, queries = len(proxy.asked), lab.dns.asked_for("real.test")
        with lab.nobody_connects("proxy"):
            for args in ([], ["--noproxy", "*"]):
                assert netlab.BODY in box.curl(*args, "https://real.test/").stdout
                assert netlab.BODY in box.curl(*args, "http://real.test/").stdout
                assert box.curl(*args, "https://denied.test/").returncode != 0
        assert {line.partition(" ")[2]
                for line in proxy.asked[asked:]} <= {"real.test:443", "real.test:80",
                                                     "http://real.test/"}
        assert len(proxy.asked) == asked + 4 and lab.dns.asked_for("real.test") == queries
    finally:
        box.env.sbx("settings", "unset", "network.proxy")
    with lab.nobody_connects("real-https", "real-https6"):
        assert netlab.BODY in box.curl("https://real.test/").stdout


# Docker

def test_docker_pull_asks_by_policy(lab, box):
    box.docker(
        f"mkdir -p /etc/docker/certs.d/allowed.test && cp {box.folder}/ca.crt /etc/docker/certs.d/allowed.test/")
    with lab.nobody_connects():
        said = box.exec("docker", "pull", "denied.test/x/y", user="agent", check=False,
                        timeout=SLOW)
        assert said.returncode != 0
    with lab.nobody_connects("https"):
        before = lab.connections()["https"]
        said = box.exec("docker", "pull", "allowed.test/x/y", user="agent", check=False,
                        timeout=SLOW)
        # nginx is not a registry, but it received the query.
        assert said.returncode != 0 and lab.connections()["https"] > before, said.stderr


def test_docker_build_goes_the_same_way(lab, box):
    box.start_container()
    build = box.folder / "build"
    build.mkdir()
    (build
     / "Dockerfile").write_text("FROM lab:1\nENV PATH=/busy\nRUN [\"/busy/sh\", \"-c\", \"env; "
                                      "wget -q -O- http://allowed.test/ && ! wget -q -O- http://denied.test/ && "
                                      "export http_proxy=http://gateway.docker.internal:3128 && wget -q -O- http://allowed.test/ && "
                                      "! wget -q -O- http://denied.test/\"]\n")
    with lab.nobody_connects("http"):
        before = lab.connections()["http"]
        said = box.exec("docker", "build", "--no-cache", "--progress=plain", build, user="agent",
                        check=False, timeout=SLOW)
        assert said.returncode == 0, said.stdout + said.stderr
        assert lab.connections()["http"] >= before + 2
    assert not re.search(r"^#\d+ [0-9.]+ https?_proxy=", said.stdout + said.stderr,
                         re.IGNORECASE | re.MULTILINE)


def test_a_container_of_another_network_goes_the_same_way(lab, box):
    box.start_container()
    inside = (
        "curl -sS --proxy http://gateway.docker.internal:3128 --max-time 60 --cacert /lab/ca.crt https://allowed.test/ && "
              "curl -sS --max-time 60 --cacert /lab/ca.crt https://allowed.test/; "
              "for p in '' '*'; do curl -sS --proxy http://gateway.docker.internal:3128 --noproxy \"$p\" --max-time 60 https://denied.test/; echo exit=$?; done")
    with lab.nobody_connects("https"):
        out = box.docker(
            "docker network create apart >&2; docker run --rm --network apart -v /usr:/usr:ro "
                         f"-v {box.folder}:/lab lab:1 sh -c {shlex.quote(inside)}; docker network rm apart >&2")
    assert out.count(netlab.BODY) == 2 and re.findall(r"exit=(\d+)", out) == ["56", "6"], out


# changes

def test_a_change_reaches_an_open_connection(lab, box):
    hold = ("import socket, sys, time\n"
            "s = socket.create_connection((\"raw.test\", 7000), 20)\n"
            "while True:\n"
            "    s.sendall(b'1'); assert s.recv(1) == b'1'; print('up', flush=True); time.sleep(0.2)\n")
    p = box.env.popen("exec", box.name, "python3", "-c", hold, stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL)
    try:
        assert p.stdout.readline() == b"up\n"
        begin = time.monotonic()
        with rule(box.env, "deny", "raw.test:7000"):
            assert p.wait(60) != 0
            assert time.monotonic() - begin < 10
            assert box.fails(
                "python3 -c 'import socket; socket.create_connection((\"raw.test\", 7000), 20).recv(1) or 1/0'")
        assert box.guest(
            "python3 -c 'import socket; s = socket.create_connection((\"raw.test\", 7000), 20); s.sendall(b\"1\"); "
                         "print(s.recv(1).decode())'") == "1"
    finally:
        p.kill()
        p.wait()


def test_a_rule_for_one_sandbox_and_for_a_time(lab, box):
    with lab.nobody_connects():
        assert box.curl("https://pinned.test/").returncode == 56
    box.env.sbx("policy", "allow", "network", "pinned.test", "--sandbox", box.name, "--for", "15s")
    begin = time.monotonic()
    assert netlab.BODY in box.curl("https://pinned.test/").stdout
    time.sleep(max(0, 16 - (time.monotonic() - begin)))
    with lab.nobody_connects():
        assert box.curl("https://pinned.test/").returncode == 56


def test_without_a_policy_everything_is_denied(lab, box):
    policy = box.env.sbx("policy", "export").stdout
    path = box.env.work / "kept.policy"
    path.write_text(policy)
    box.env.sbx("policy", "reset", "--yes")
    try:
        with lab.nobody_connects():
            check(box.probe_guest(), "the guest", everything_denied=True)
    finally:
        box.env.sbx("policy", "import", str(path), "--yes")
    assert netlab.BODY in box.curl("https://allowed.test/").stdout


def test_the_published_recipe_without_a_terminal(lab, env):
    """Deny everything, allow three hosts, create, run, read the log: as documents about CI have
    it."""
    kept = env.work / "recipe.policy"
    kept.write_text(env.sbx("policy", "export").stdout)
    env.sbx("policy", "reset", "--yes")
    try:
        env.sbx("policy", "set-default", "deny-all")
        p = env.sbx("policy", "allow", "network", "allowed.test,other.test:80,real.test:443")
        assert p.stderr == ""
        folder = env.make_folder("recipe")
        box = env.create("recipe", folder)
        ask = ("for url in https://allowed.test/ http://other.test/ https://real.test/ "
               "https://denied.test/ https://evil.allowed.test/; do "
               "curl -sS --max-time 30 -o /dev/null $url; echo $url $?; done | tee result")
        with lab.nobody_connects("http", "https", "real-https", "real-https6"):
            said = env.sbx("run", "--name", "recipe", "--", "sh", "-c", ask, timeout=120).stdout
        assert said.split() == ["https://allowed.test/", "0", "http://other.test/", "0",
                                "https://real.test/", "0",
                                "https://denied.test/", "56", "https://evil.allowed.test/", "56"]
        assert (folder / "result").read_text() == said
        text = env.sbx("policy", "log", "recipe", "--limit", "50").stdout
        blocked, allowed = text.split("\n\n")
        assert blocked.startswith("Blocked requests:\n") and allowed.startswith(
            "Allowed requests:\n")
        assert all(re.search(rf"^recipe +\S+ +{h}:443 .* no rule allows it ", blocked, re.M)
                   for h in ("denied.test", "evil.allowed.test")), blocked
        assert all(re.search(rf"^recipe +\S+ +{h} ", allowed, re.M)
                   for h in ("allowed.test:443", "other.test:80", "real.test:443")), allowed
        assert len(blocked.splitlines()) == 4 and len(allowed.splitlines()) == 5, text
        assert "OK" in env.sbx("audit", "verify", "recipe").stdout
        box.rm()
        assert env.sbx("policy", "log", "recipe", "--limit", "50").stdout == text  # also after it
    finally:
        env.sbx("policy", "import", str(kept), "--yes")


def test_an_emulated_guest_has_a_minute_for_its_first_bytes(box):
    """10 s with KVM; a busy guest that is emulated can be silent for longer."""
    argv = pathlib.Path(f"/proc/{box.pids()['edge']}/cmdline").read_bytes().split(b"\0")
    assert argv[1:3] == [b"--first-ms", b"60000"], argv


def test_everything_is_in_the_log_and_the_log_is_good(box):
    log = box.log()
    seen = {(r["proxy_type"], r["host"]) for r in log["allowed_hosts"]}
    assert any(h == "allowed.test:443" for _,
               h in seen) and {"forward", "transparent"} & {p for p, _ in seen}
    assert box.blocked("denied.test:443")
    p = box.env.sbx("audit", "verify")
    assert box.name in p.stdout and "BAD" not in p.stdout
