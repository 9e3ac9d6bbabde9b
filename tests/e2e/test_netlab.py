# SPDX-License-Identifier: Apache-2.0
"""The laboratory itself, from the host, without a sandbox: each server answers, counts and ends."""
import os
import pathlib
import socket
import struct
import subprocess
import time

import pytest

import host
import netlab

NOWHERE = "192.0.2.1"


@pytest.fixture(scope="module")
def lab():
    with netlab.lab() as made:
        yield made


def connect(lab, server):
    s = socket.create_connection(("127.0.0.1", lab.servers[server].port), 10)
    s.settimeout(10)
    return s


def dns_query(name, kind=1):
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    return b"\x12\x34" + struct.pack("!HHHHH", 0x0100, 1, 0, 0,
                                     0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def ask(lab, name, kind=1):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.sendto(dns_query(name, kind), ("127.0.0.1", lab.dns.port))
        return s.recv(4096)


def test_http_and_https_in_both_versions(lab):
    for url, want in (("http://allowed.test/", "server=http host=allowed.test sni= proto=HTTP/1.1"),
                      ("https://allowed.test/",
                       "server=https host=allowed.test sni=allowed.test proto=HTTP/2.0"),
                      ("https://www.wild.test/", "sni=www.wild.test")):
        with lab.nobody_connects("http", "https"):
            p = lab.curl(url)
        assert p.returncode == 0 and netlab.BODY in p.stdout and want in p.stdout, p.stderr
    p = lab.curl("https://other.test/", "--http1.1")
    assert "proto=HTTP/1.1" in p.stdout
    assert lab.curl("https://raw.test/", "--connect-to",
                    f"::127.0.0.1:{lab.servers['https'].port}").returncode == 60


def test_bodies_both_ways(lab):
    p = lab.curl("https://allowed.test/files/big", "-o", "/dev/null", "-w", "%{size_download}")
    assert p.stdout == str(64 << 20), p.stderr
    p = lab.curl("http://allowed.test/put", "--data-binary", "x" * 100000)
    assert p.stdout == "took 100000\n", (p.stdout, p.stderr)


def test_denied_names_lead_to_the_trap_and_are_counted(lab):
    before = lab.connections()["trap-https"]
    assert "server=trap-https" in lab.curl("https://denied.test/").stdout
    assert lab.connections()["trap-https"] == before + 1
    with pytest.raises(AssertionError, match="should not have been"), lab.nobody_connects("http"):
        lab.curl("http://denied.test/")


def read_exactly(s, n):
    """MSG_WAITALL of a socket with a timeout can give less: the kernel's socket does not block."""
    parts = []
    while n and (part := s.recv(n)):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def test_raw_servers(lab):
    with connect(lab, "echo") as s:
        s.sendall(b"ping")
        assert read_exactly(s, 4) == b"ping"
        s.shutdown(socket.SHUT_WR)
        assert s.recv(4) == b""
    with connect(lab, "first") as s:
        assert read_exactly(s, len(netlab.BANNER)) == netlab.BANNER
    with connect(lab, "source") as s:
        assert len(read_exactly(s, 1 << 16)) == 1 << 16


def test_the_stopped_reader_stops_the_sender_until_it_goes_on(lab):
    server = lab.servers["stopped"]
    with connect(lab, "stopped") as s:
        s.setblocking(False)
        sent, idle = 0, 0
        while idle < 5:
            try:
                sent += s.send(bytes(65536))
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.05)
            assert sent < 64 << 20, "it reads"
        server.go.set()
        s.settimeout(10)
        s.shutdown(socket.SHUT_WR)
        assert s.recv(100) == b"%d\n" % sent
    server.go.clear()


def test_ssh_with_the_laboratorys_key(lab):
    argv = ["ssh", "-F", "none", "-i", lab.key, "-p", str(lab.servers["sshd"].port), "-o",
            "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", f"{lab.user}@127.0.0.1",
            "echo", "through"]
    p = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert p.returncode == 0 and p.stdout == "through\n", p.stderr


def test_the_resolver_counts(lab):
    lab.dns.table["there.test"] = ["127.0.0.1", "::1"]
    answer = ask(lab, "there.test")
    assert answer[3] & 15 == 0 and answer.endswith(socket.inet_aton("127.0.0.1"))
    assert ask(lab, "there.test", 28).endswith(socket.inet_pton(socket.AF_INET6, "::1"))
    assert ask(lab, "not.there.test")[3] & 15 == 3
    assert lab.dns.queries[("there.test",
                            "A")] == 1 and lab.dns.queries[("there.test", "AAAA")] == 1
    assert lab.dns.asked_for("there.test") == 3 and lab.dns.asked_for("denied.test") == 0
    with socket.create_connection(("127.0.0.1", lab.dns.port), 5) as s:
        query = dns_query("there.test")
        s.sendall(struct.pack("!H", len(query)) + query)
        assert len(s.recv(4096)) > len(query)
    assert lab.dns.queries[("there.test", "A")] == 2


def test_the_upstream_proxy(lab):
    proxy = lab.servers["proxy"]
    via = ["--proxy", f"http://127.0.0.1:{proxy.port}", "--noproxy", "none"]
    for url in ("http://allowed.test/", "https://allowed.test/"):
        p = subprocess.run(["curl", "-sS", "--cacert", lab.ca, *via, url], capture_output=True,
                           text=True, timeout=30,
                           check=False)
        assert netlab.BODY in p.stdout, p.stderr
    assert proxy.asked[-2:] == ["GET http://allowed.test/", "CONNECT allowed.test:443"]
    p = subprocess.run(["curl", "-sS", *via, "https://unknown.test/"], capture_output=True,
                       text=True, timeout=30, check=False)
    assert p.returncode == 56


def test_many_connections_at_once(lab):
    open_ones = [connect(lab, "echo") for _ in range(200)]
    for i, s in enumerate(open_ones):
        s.sendall(b"%d" % i)
    for i, s in enumerate(open_ones):
        assert s.recv(10) == b"%d" % i
        s.close()


def test_a_world_apart():
    with netlab.lab(apart=True) as made:
        curl = ["curl", "-sS", "--noproxy", "*", "--max-time", "20", "--cacert", made.ca]
        for url, server in (("https://real.test/", "real-https"),
                            ("http://real.test/", "real-http"),
                            ("https://[2001:503:ba3e::2:30]/", "real-https6")):
            with made.nobody_connects(server):
                p = made.apart.run(*curl, "-k", "-6" if "6" in server else "-4", url,
                                   capture_output=True, text=True)
            assert netlab.BODY in p.stdout and made.servers[server].count == 1, p.stderr
        assert made.dns.asked_for("real.test") > 0
        p = made.apart.run(*curl, f"http://{NOWHERE}/", capture_output=True, text=True)
        assert p.returncode == 7, p
        # Who enters is an ordinary user, also there.
        assert made.apart.run("id", "-u", capture_output=True,
                              text=True).stdout == f"{os.getuid()}\n"
        assert "CapEff:\t0000000000000000" in made.apart.run("cat", "/proc/self/status",
                                                             capture_output=True, text=True).stdout
        small = made.folder / "small"
        small.mkdir()
        made.apart.do(do="tmpfs", at=str(small), size="1m")
        p = made.apart.run("dd", "if=/dev/zero", f"of={small}/f", "bs=1M", "count=2",
                           capture_output=True, text=True)
        assert "No space left" in p.stderr and not list(small.iterdir())
    assert made.apart.proc.poll() is not None


def test_nothing_is_left():
    with netlab.lab() as made:
        folder, ports = made.folder, [s.port for s in made.servers.values()]
        pids = [p.pid for p in made.programs]
        assert all(e.count("=") == 1
                   for e in made.connect_to()) and pathlib.Path(
            made.settings()["network.extra-ca"]).exists()
    assert not folder.exists() and not any(host.is_alive(pid) for pid in pids)
    for port in ports:
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), 1)
    assert os.geteuid() != 0
