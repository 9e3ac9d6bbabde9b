# SPDX-License-Identifier: Apache-2.0
"""Published ports: real services in a real VM, reached from this host and from nowhere else. Those
of a container: test_docker.py. Links that a guest asks the user to open.
"""
import base64
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request

import host
import pytest
from host import until
from installation import START_SECONDS, private
from term import Terminal

MIB, LONG_MIB = 96, 256  # that go each way
ROUNDS, LONG_ROUNDS = 250, 10_000  # connections one after the other
GROWTH_KIB = 24 << 10  # of a process while so much passes through it: windows, not bodies
START_INSIDE = 300  # of a program, emulated
SECONDS = 60
BLOCK = hashlib.shake_256(b"ports").digest(1 << 20)

# port: what the service does. All on 127.0.0.1.
DIGEST, SOURCE, ECHO, DEAF, RUDE, FIRST = 7001, 7002, 7003, 7004, 7005, 7006
NOBODY = 7999
SERVICES = f"""
import hashlib, socket, struct, threading, time
BLOCK = hashlib.shake_256(b"ports").digest(1 << 20)

def digest(c):
    h, n = hashlib.sha256(), 0
    while data := c.recv(1 << 18):
        h.update(data)
        n += len(data)
    c.sendall(f"{{n}} {{h.hexdigest()}}".encode())

def source(c):
    n = int(c.makefile().readline())
    for _ in range(n):
        c.sendall(BLOCK)

def echo(c):
    while data := c.recv(1 << 16):
        c.sendall(data)

def deaf(c):
    time.sleep(600)

def rude(c):
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

def first(c):
    c.sendall(b"welcome")
    c.shutdown(socket.SHUT_WR)
    c.recv(100)

def serve(port, what):
    s = socket.create_server(("127.0.0.1", port), backlog=200)
    def one(c):
        with c:
            try:
                what(c)
            except OSError:
                pass
    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()

for port, what in (({DIGEST}, digest), ({SOURCE}, source), ({ECHO}, echo),
                   ({DEAF}, deaf), ({RUDE}, rude), ({FIRST}, first)):
    threading.Thread(target=serve, args=(port, what)).start()
"""
WEBSOCKET = """
const http = require('http'), crypto = require('crypto');
http.createServer().on('upgrade', (q, s) => {
  const text = q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const key = crypto.createHash('sha1').update(text).digest('base64');
  s.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
    + `Sec-WebSocket-Accept: ${key}\\r\\n\\r\\n`);
  s.on('data', d => {
    const n = d[1] & 127, mask = d.subarray(2, 6);
    const text = d.subarray(6, 6 + n).map((b, i) => b ^ mask[i % 4]);
    s.write(Buffer.concat([Buffer.from([0x81, n]), text]));
  });
}).listen(7010, '127.0.0.1');
"""


@pytest.fixture(scope="module")
def env():
    with private() as made:
        yield made


@pytest.fixture(scope="module")
def box(env):
    folder = env.make_folder("ports")
    made = env.create("ports", folder)
    made.folder = folder
    (folder / "services.py").write_text(SERVICES)
    (folder / "socket.js").write_text(WEBSOCKET)
    (folder / "page").write_text("from inside\n")
    start_services(made)
    made.at = {}
    for port in (DIGEST, SOURCE, ECHO, DEAF, RUDE, FIRST, NOBODY, 7010, 8001, 8002, 8003):
        made.at[port] = publish(made, str(port))
    yield made
    made.rm()


def start_services(box):
    for argv in (("python3", "services.py"),
                 ("python3", "-m", "http.server", "8001", "--bind", "127.0.0.1"),
                 ("python3", "-m", "http.server", "8002", "--bind", "0.0.0.0"),
                 ("python3", "-m", "http.server", "8003", "--bind", "::1")):
        box.exec(*argv, flags=("-d",))
    for port in (ECHO, 8001, 8002, 8003):
        wait_inside(box, port)


def wait_inside(box, port):
    """Under emulation and load a program may start slowly."""
    box.guest(
        f"timeout {START_INSIDE} sh -c 'until ss -Hltn sport = :{port} | grep -q .; do sleep 0.5; done'",
        timeout=START_INSIDE + 10)


def publish(box, spec):
    """Gives the port of this host."""
    said = box.env.sbx("ports", box.name, "--publish", spec).stdout
    assert said.startswith("Published 127.0.0.1:"), said
    return int(said.split()[1].rpartition(":")[2])


def listed(box):
    return json.loads(box.env.sbx("ports", box.name, "--json").stdout)["ports"]


def dial(port, address="127.0.0.1"):
    s = socket.create_connection((address, port), SECONDS)
    s.settimeout(SECONDS)
    return s


def cut(s):
    """By RST: FIN closes one direction only, and the other stays open until the kernel probes the
    peer."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def read_all(s):
    parts = []
    while data := s.recv(1 << 18):
        parts.append(data)
    return b"".join(parts)


def get(port, path="page", address="127.0.0.1"):
    with urllib.request.urlopen(f"http://{address}:{port}/{path}", timeout=SECONDS) as r:
        return r.read().decode()


def peak_kib(pid):
    return int(host.status(pid)["VmHWM"].split()[0])


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def listens(port):
    try:
        dial(port).close()
        return True
    except ConnectionRefusedError:
        return False


# -- who is reached

@pytest.mark.parametrize("port", [8001, 8002, 8003])
def test_services_on_loopback_on_all_addresses_and_on_ipv6_are_reached(box, port):
    assert get(box.at[port]) == "from inside\n"


def test_a_websocket_of_node(box):
    box.exec("node", "socket.js", flags=("-d",))
    wait_inside(box, 7010)
    with dial(box.at[7010]) as s:
        key = base64.b64encode(b"sixteen bytes...").decode()
        s.sendall(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += s.recv(1000)
        assert head.startswith(b"HTTP/1.1 101")
        for text in (b"one", b"two", b"three"):
            s.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
            assert s.recv(100) == bytes([0x81, len(text)]) + text
        cut(s)  # node keeps its side open


def test_a_hundred_at_once(box):
    def one(n):
        with dial(box.at[ECHO]) as s:
            text = f"{n} ".encode() * 2000
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            return read_all(s) == text
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert all(pool.map(one, range(100)))


# -- bytes and ends

def test_each_direction_ends_by_itself(box):
    with dial(box.at[DIGEST]) as s:
        s.sendall(b"abc")
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).decode() == "3 " + hashlib.sha256(b"abc").hexdigest()
    with dial(box.at[FIRST]) as s:
        assert read_all(s) == b"welcome"
        s.sendall(b"still here")


def test_much_goes_each_way_whole_and_in_bounded_memory(box):
    send_each_way(box, MIB)


def test_long_more_goes_each_way_whole_and_in_bounded_memory(box):
    send_each_way(box, LONG_MIB)


def send_each_way(box, mib):
    pids = box.pids()
    before = {name: peak_kib(pids[name]) for name in ("keeper", "edge")}
    inside = int(box.guest("awk '/VmHWM/ {print $2}' /proc/1/status"))
    whole = hashlib.sha256()
    for _ in range(mib):
        whole.update(BLOCK)
    with dial(box.at[DIGEST]) as s:
        s.settimeout(600)
        for _ in range(mib):
            s.sendall(BLOCK)
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).decode() == f"{mib << 20} {whole.hexdigest()}"
    got, n = hashlib.sha256(), 0
    with dial(box.at[SOURCE]) as s:
        s.settimeout(600)
        s.sendall(f"{mib}\n".encode())
        while data := s.recv(1 << 18):
            got.update(data)
            n += len(data)
    assert n == mib << 20 and got.digest() == whole.digest()
    assert box.pids() == pids
    for name in before:
        assert peak_kib(pids[name]) - before[name] < GROWTH_KIB, name
    assert int(box.guest("awk '/VmHWM/ {print $2}' /proc/1/status")) - inside < GROWTH_KIB


def test_who_does_not_read_stops_only_himself(box):
    """A client that reads nothing, and a service that reads nothing: both are stopped, others are
    not."""
    pids = box.pids()
    with dial(box.at[SOURCE]) as slow, dial(box.at[DEAF]) as s:
        before = peak_kib(pids["edge"])
        slow.sendall(b"64\n")
        s.setblocking(False)
        sent = 0
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and sent < 64 << 20:
            try:
                sent += s.send(BLOCK)
            except BlockingIOError:
                time.sleep(0.05)
        assert sent < 32 << 20, "no client reads it, and the sender does not block"
        assert get(box.at[8001]) == "from inside\n"
        assert peak_kib(pids["edge"]) - before < GROWTH_KIB
        n = 0
        while data := slow.recv(1 << 18):
            n += len(data)
        assert n == 64 << 20
        cut(s)  # unread data stays in transit as long as a client waits for a response


def test_nobody_there_is_a_reset_at_once(box):
    begin = time.monotonic()
    with pytest.raises(ConnectionResetError), dial(box.at[NOBODY]) as s:
        s.recv(1)
    assert time.monotonic() - begin < 5
    with pytest.raises(ConnectionResetError), dial(box.at[RUDE]) as s:
        s.recv(1)


# -- the list

def test_what_people_see(box):
    env = box.env
    again = env.sbx("ports", "ports", "--publish", "8001", check=False)
    assert (again.returncode == 1 and "any free port of 127.0.0.1 to 8001/tcp is already published"
            in again.stderr)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
        done = env.sbx("ports", "ports", "--publish", f"{free}:8001", check=False)
        assert done.returncode == 1
        assert "address already in use by another program" in done.stderr
        assert "--publish 8001" in done.stderr
    assert env.sbx("ports", "ports", "--publish",
                   f"{free}:8001").stdout == f"Published 127.0.0.1:{free} -> 8001/tcp4\n"
    assert get(free) == "from inside\n"
    again = env.sbx("ports", "ports", "--publish", f"{free}:8001", check=False)
    assert (again.returncode == 1
            and f"publish port: port 127.0.0.1:{free}/tcp is already published" in again.stderr)
    rows = [line.split() for line in env.sbx("ports", "ports").stdout.splitlines()]
    assert ["127.0.0.1", str(free), "8001", "tcp4", "open"] in rows
    assert {"host_ip": "127.0.0.1", "host_port": free, "sandbox_port": 8001, "protocol": "tcp4",
            "state": "open", "ephemeral": False,
            "reason": None} in listed(box)
    assert env.sbx("ports", "ports", "--unpublish",
                   f"{free}:8001").stdout == f"Unpublished 127.0.0.1:{free} -> 8001/tcp\n"
    assert not listens(free)
    done = env.sbx("ports", "ports", "--publish", "53:53/udp", check=False)
    assert done.returncode == 2 and "only TCP is supported" in done.stderr
    done = env.sbx("ports", "ports", "--publish", f"80:{ECHO}", check=False)
    assert done.returncode == 1 and "ports below 1024" in done.stderr
    both = env.sbx("ports", "ports", "--publish", f"localhost:{free}:8001").stdout
    assert both == f"Published 127.0.0.1:{free} -> 8001/tcp4\nPublished [::1]:{free} -> 8001/tcp6\n"
    assert get(free, address="[::1]") == "from inside\n"
    env.sbx("ports", "ports", "--unpublish", f"{free}:8001")


def test_an_open_connection_is_no_session_of_a_user(box):
    with dial(box.at[ECHO]) as s:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        assert box.info()["sessions"] == 0


def test_all_of_it_is_in_the_audit_log(box):
    logs = [json.loads(line) for path in sorted((box.env.state / "audit/sbxd").glob("*.jsonl"))
            for line in path.read_text().splitlines()]
    said = [(r["action"], r["reason"]) for r in logs if r.get("name") == "ports"
            and r["kind"] == "policy-change"]
    assert ("publish", f"127.0.0.1:0 -> {ECHO}/tcp4") in said
    assert any(action == "unpublish" for action, _ in said)


# -- attacks

def test_the_guest_opens_no_port_of_the_host(box):
    """It may listen on any port: only published ports listen on this host."""
    def ours():
        has = {t for pid in (box.env.daemon_pid(), box.pids()["keeper"])
               for t in host.descriptors(box.env, pid)}
        lines = subprocess.run(["ss", "-Hltne"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        return {line.split()[3] for line in lines
                if f"socket:[{re.search(r' ino:([0-9]+) ', line)[1]}]" in has}
    before = ours()
    assert before == {f"{p['host_ip']}:{p['host_port']}" for p in listed(box)}
    box.exec("python3", "-c",
             "import socket,time\nl=[socket.create_server(('0.0.0.0', p)) for p in range(20000, 20050)]\ntime.sleep(8)", flags=("-d",))
    time.sleep(3)
    assert ours() == before


def test_a_service_that_refuses_and_resets_without_end(box):
    pids = box.pids()
    for _ in range(300):
        for port in (NOBODY, RUDE):
            with pytest.raises((ConnectionResetError, BrokenPipeError)), dial(box.at[port]) as s:
                while s.send(b"x" * 1000) and s.recv(1):
                    pass
    assert get(box.at[8001]) == "from inside\n" and box.pids() == pids


def test_a_flood_that_says_nothing_holds_nobody_up(box):
    """More connections than places: connections with a place are served, execs keep running, and
    afterwards the state is as before."""
    held = [dial(box.at[DEAF]) for _ in range(250)]
    assert box.guest("echo alive", timeout=30) == "alive"
    assert len(box.env.ls()) == 1
    for s in held:
        cut(s)
    assert get(box.at[8001]) == "from inside\n"


def test_many_connections_leave_nothing(box):
    connect_in_a_row(box, ROUNDS)


def test_long_thousands_of_connections_leave_nothing(box):
    connect_in_a_row(box, LONG_ROUNDS)


def connect_in_a_row(box, rounds):
    pids = box.pids()

    def count():
        here = subprocess.run(["ss", "-Htn", "state", "connected", "exclude", "time-wait",
                               f"sport = :{box.at[ECHO]}"], capture_output=True, text=True,
                              check=True).stdout
        return {"keeper": len(host.descriptors(box.env, pids["keeper"])),
                "edge": host.status(pids["edge"])["FDSize"], "connections": len(here.splitlines()),
                "guest": int(box.guest("ls /proc/1/fd | wc -l"))}

    def one():
        with dial(box.at[ECHO]) as s:
            s.sendall(b"ping")
            s.shutdown(socket.SHUT_WR)
            assert read_all(s) == b"ping"
    one()
    # those of the tests before this one, too
    until(lambda: box.guest("ss -Htnp | grep -c pid=1, || true") == "0", 60)
    before, rss = count(), {name: int(host.status(pids[name])["VmRSS"].split()[0])
                            for name in ("keeper", "edge")}
    begin = time.monotonic()
    for _ in range(rounds):
        one()
    print(f"{rounds} connections in {time.monotonic() - begin:.1f} s")
    until(lambda: box.guest("ss -Htnp | grep -c pid=1, || true") == "0", 60)
    after = count()
    assert after == before, f"{before} became {after}"
    assert box.pids() == pids
    for name in rss:
        assert int(host.status(pids[name])["VmRSS"].split()[0]) - rss[name] < 4096, name


# -- over ends and beginnings

def test_ports_outlive_sbxd_and_edge(box):
    env = box.env
    with dial(box.at[ECHO]) as s:
        s.sendall(b"a")
        assert s.recv(1) == b"a"
        os.kill(env.daemon_pid(), signal.SIGKILL)
        s.sendall(b"b")
        assert s.recv(1) == b"b"
        assert {p["host_port"] for p in listed(box)} == set(box.at.values())
        until(lambda: all(p["state"] == "open" for p in listed(box)))
        edge = box.pids()["edge"]
        os.kill(edge, signal.SIGKILL)
        with pytest.raises(ConnectionResetError):  # never a clean end
            s.recv(1)
        # what it was given before it let go of the last file ends with it
        until(lambda: has_ended(edge))
    assert get(box.at[8001]) == "from inside\n"  # who comes meanwhile waits


def test_ports_are_kept_over_stop_and_start_and_the_death_of_the_keeper(box):
    env = box.env
    fixed = box.at[8002]
    env.sbx("ports", "ports", "--unpublish", "8002")
    env.sbx("ports", "ports", "--publish", f"{fixed}:8002")
    loose = box.at[8001]
    box.stop()
    assert not listens(fixed) and not listens(loose)
    assert {p["state"] for p in listed(box)} == {"stopped"}
    # Another process uses the port: the sandbox starts anyway and prints a warning.
    with socket.create_server(("127.0.0.1", fixed)):
        env.sbx("exec", "ports", "true", timeout=START_SECONDS)
        row = next(p for p in listed(box) if p["sandbox_port"] == 8002)
        assert row["state"] == "failed" and row[
            "reason"] == "address already in use by another program"
        assert f"failed: {row['reason']}" in env.sbx("ports", "ports").stdout
    os.kill(box.pids()["keeper"], signal.SIGKILL)
    until(lambda: box.info()["status"] == "stopped", 30)
    assert not listens(fixed)
    env.sbx("exec", "ports", "true", timeout=START_SECONDS)
    start_services(box)
    assert get(fixed) == "from inside\n"
    assert get(next(p["host_port"] for p in listed(box)
                    if p["sandbox_port"] == 8001)) == "from inside\n"


# -- from another machine

LAN = "192.0.2.1"
FAR = """
ip link set lo up
unshare --net sh -c 'echo $$ > "$1/far.tmp"; mv "$1/far.tmp" "$1/far"; exec sleep 900' sh "$1" &
while [ ! -e "$1/far" ]; do sleep 0.1; done
far=$(cat "$1/far")
ip link add lan0 type veth peer name far0 netns "$far"
ip addr add 192.0.2.1/24 dev lan0
ip link set lan0 up
nsenter -t "$far" -n sh -c 'ip link set lo up
ip addr add 192.0.2.2/24 dev far0
ip link set far0 up'
touch "$1/ready"
exec sleep 900
"""


@pytest.fixture
def lan(tmp_path):
    """Two machines with a wire between them: the prefixes to run something on each."""
    for tool in ("unshare", "nsenter"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-m", "-t"]
    path = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    holder = subprocess.Popen(["unshare", "--user", "--map-current-user", "--keep-caps", "--net",
                               "--mount", "sh", "-ec", FAR, "sh", str(tmp_path)],
                              env=path, start_new_session=True, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "ready").exists():
            if holder.poll() is not None:
                pytest.skip("no namespaces for an ordinary user here: "
                            + holder.stderr.read().decode())
            assert time.monotonic() < deadline
            time.sleep(0.1)
        far = (tmp_path / "far").read_text().strip()
        yield [*enter, str(holder.pid), "--"], [*enter, far, "--"]
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stderr.close()


def test_only_this_machine_unless_an_address_is_said(lan):
    near, far = lan
    ask = ["curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}"]

    def code(prefix, url):
        return subprocess.run([*prefix, *ask, url], capture_output=True, text=True, check=False,
                              timeout=30).stdout

    with private(prefix=near) as env:
        folder = env.make_folder("lan")
        made = env.create("lan", folder, flags=("-p", "18090:8080"))
        made.exec("python3", "-m", "http.server", "8080", flags=("-d",))
        wait_inside(made, 8080)
        assert code(near, "http://127.0.0.1:18090/") == "200"
        assert code(near, f"http://{LAN}:18090/") == "000"
        assert code(far, f"http://{LAN}:18090/") == "000"
        done = env.sbx("ports", "lan", "--publish", f"{LAN}:18091:8080")
        assert f"any machine that can reach {LAN} can connect to this port 18091" in done.stderr
        assert code(far, f"http://{LAN}:18091/") == "200"
        assert code(near, "http://127.0.0.1:18091/") == "000"
        done = env.sbx("ports", "lan", "--publish", "0.0.0.0:18092:8080")
        assert "any machine that can reach an address of this host" in done.stderr
        assert code(far, f"http://{LAN}:18092/") == "200"
        # A running sandbox has it: the error for the other one names that sandbox.
        done = env.sbx("create", "shell", folder, "--name", "second", "-p", "18090:1", check=False,
                       timeout=START_SECONDS)
        assert done.returncode == 1 and "already published by sandbox lan" in done.stderr
        made.rm()


# Links: xdg-open, open and $BROWSER in the guest, until the browser of the host

URL = "https://login.example/authorize?state=1&next=%2F"


@pytest.fixture(scope="module")
def linked(env):
    made = env.create("links", env.make_folder("links"))
    yield made
    made.rm()


@pytest.fixture
def browser(env, tmp_path):
    program, args = tmp_path / "browser", tmp_path / "arguments"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{args}\n')
    program.chmod(0o755)
    env.env["BROWSER"] = str(program)
    yield lambda: args.read_text().splitlines() if args.exists() else []
    del env.env["BROWSER"]


def links(env):
    return json.loads(env.sbx("open", "--json").stdout)["links"]


def answer(env, ident, key):
    with Terminal(env, "sbx", "open", ident) as t:
        t.wait_for("[y]es, [n]o, [q]uit", 60)
        t.line(key)
        return t.wait_end(60), t.screen()


@pytest.mark.parametrize("program", ["xdg-open", "open", "sbx-open", "$BROWSER"])
def test_a_link_of_the_guest_opens_in_the_browser_of_the_host(linked, env, browser, program):
    said = linked.guest(f"{program} '{URL}' 2>&1", user="agent")
    link, = links(env)
    assert f"sbx open {link['id']}" in said and link["effects"] == [URL]
    assert answer(env, link["id"], "y")[0] == 0
    assert browser() == [URL] and links(env) == []


def test_a_refused_link_is_not_shown_again(linked, env, browser):
    linked.guest(f"xdg-open '{URL}&no'", user="agent")
    link, = links(env)
    assert answer(env, link["id"], "n")[0] == 0
    assert "refused by the user" in linked.guest(f"xdg-open '{URL}&no' 2>&1 || true", user="agent")
    assert not browser()


def test_other_links_are_refused_in_the_guest(linked, env):
    for url, why in {"file:///etc/passwd": "http", "javascript:alert(1)": "http", "x": "http",
                     "http://127.0.0.1:8080/": "loopback", "http://[::1]/": "loopback",
                     "http://localhost:3000/": "local network", "https://a@b.example/": "user name",
                     "http://169.254.169.254/": "metadata", "https://b.example/$(printf '\\033')x":
                     "0x1b", "https://b.example/" + "x" * 4000: "4000"}.items():
        said = linked.guest(f'xdg-open "{url}" 2>&1; echo status $?', user="agent")
        assert said.startswith("error: ") and why in said and "status 4" in said, (url, said)
    assert [h for h in links(env) if h["state"] == "open"] == []


def test_raw_bytes_on_the_socket_of_the_guest_show_nothing(linked, env):
    """Guest root, without our program."""
    out = linked.guest("""python3 - <<'END'
import socket
def say(data, end=True):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/sbx/link.sock")
    s.settimeout(120)
    try:
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        return s.recv(1000)[:1]
    except OSError:
        return b"reset"
print([say(d) for d in (b"", b"\\0", b"https://a.example/\\n", b"h" * 60000, bytes(range(256)))])
END""", user="root")
    assert out.strip() == str([b"-"] * 5), out
    assert [h for h in links(env) if h["state"] == "open"] == []


# An OAuth client as agents have one: listens, opens the link, waits for the callback, and ends
# when the page after it was fetched.
CLIENT = """
import http.server, subprocess, sys
class Login(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        first = self.path.startswith("/auth/callback?")
        print("GET", self.path, sorted(k.lower() for k in self.headers), flush=True)
        self.send_response(302 if first else 200)
        if first:
            self.send_header("Location", "http://localhost:%d/success" % self.server.server_port)
        self.end_headers()
        self.server.ended = not first
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 14550), Login)
server.ended = False
subprocess.run(["xdg-open", "https://login.example/oauth/authorize?client_id=x&redirect_uri="
                "http%3A%2F%2Flocalhost%3A14550%2Fauth%2Fcallback&state=s1"], check=True)
while not server.ended:
    server.handle_request()
print("logged in", flush=True)
"""


def test_the_callback_of_a_login_reaches_its_program(linked, env, browser):
    client = subprocess.Popen(["sbx", "exec", "-i", linked.name, "python3", "-"], env=env.env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client.stdin.write(CLIENT)
    client.stdin.close()
    until(lambda: [link for link in links(env) if "14550" in link["effects"][0]], START_INSIDE)
    link, = [link for link in links(env) if "14550" in link["effects"][0]]
    with Terminal(env, "sbx", "open", link["id"]) as t:
        t.wait_for("127.0.0.1:14550/auth/callback is passed into the sandbox", 60)
        t.line("y")
        t.wait_for("Waiting for the browser", 60)
        base = "http://localhost:14550/auth/callback?code=c1"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(base + "&state=s2", timeout=60)
        request = urllib.request.Request(base + "&state=s1", headers={"Cookie": "a=b"})
        page = urllib.request.urlopen(request, timeout=SECONDS).read().decode()
        assert "received the login" in page
        t.wait_for("Passed the callback", 60)
        assert t.wait_end(60) == 0
    out = client.stdout.read()
    assert client.wait(START_INSIDE) == 0
    assert out.splitlines() == [
        "GET /auth/callback?code=c1&state=s1 ['accept', 'connection', 'host']",
        "GET /success ['accept', 'connection', 'host']", "logged in"], out
    assert browser()[0].startswith("https://login.example/oauth/")


SPEAKS = """
import socket
s = socket.create_server(("127.0.0.1", 7321))
open("/tmp/speaks", "w").close()
while True:
    s.accept()[0].sendall(b"reached")
"""


def test_no_other_port_of_the_guest_is_reached_by_a_callback(linked, env):
    """The call of the API, without a link that the user has opened."""
    linked.guest(f"nohup python3 -c '{SPEAKS}' >/dev/null 2>&1 &", user="agent")
    until(lambda: not linked.fails("test -e /tmp/speaks"), START_INSIDE)
    for port in 7321, 14551:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(env.env["XDG_RUNTIME_DIR"] + "/sbx/sbxd.sock")
            s.settimeout(60)
            s.sendall(f"POST /v1/sandboxes/{linked.name}/exec?callback={port} HTTP/1.1\r\n"
                      "Host: sbxd\r\nConnection: Upgrade\r\nUpgrade: sbx-stream\r\n"
                      "\r\n".encode())
            said = b""
            while part := s.recv(4096):
                said += part
        assert b"no such stream" in said and b"reached" not in said, said
