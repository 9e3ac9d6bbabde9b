# SPDX-License-Identifier: Apache-2.0
"""Real upstream proxies: tinyproxy, microsocks and ssh -D. The real edge and egress, no VM.

The servers are on the loopback of this host, which the policy allows with their ports: names and
addresses both reach them through a proxy.
"""
import contextlib
import getpass
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

WAIT = 60
SSHD = """Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
"""


def need(name):
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
    assert found, f"{name} is missing: run tools/setup"
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(argv, port, folder):
    """A program that listens on a port; yields the port."""
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, cwd=folder)
    try:
        end = time.monotonic() + WAIT
        while True:
            assert process.poll() is None and time.monotonic() < end, \
                (folder / "log").read_text(errors="replace")
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(WAIT)


@contextlib.contextmanager
def tinyproxy(folder, more=""):
    port = free_port()
    (folder / "tinyproxy.conf").write_text(
        f"Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nLogLevel Info\n{more}\n")
    with running([need("tinyproxy"), "-d", "-c", folder / "tinyproxy.conf"], port, folder):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def microsocks(folder, *more):
    port = free_port()
    with running([need("microsocks"), "-i", "127.0.0.1", "-p", port, *more], port, folder):
        yield f"socks5://127.0.0.1:{port}"


@contextlib.contextmanager
def ssh_socks(folder):
    """ssh -D to an sshd of this test."""
    port, forward = free_port(), free_port()
    subprocess.run([need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"],
                   check=True, timeout=WAIT)
    (folder / "sshd.conf").write_text(SSHD.format(port=port, folder=folder))
    with running([need("sshd"), "-D", "-e", "-f", folder / "sshd.conf"], port, folder):
        argv = [need("ssh"), "-F", "none", "-N", "-D", f"127.0.0.1:{forward}", "-i", folder / "key",
                "-p", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", "BatchMode=yes", f"{getpass.getuser()}@127.0.0.1"]
        with running(argv, forward, folder):
            yield f"socks5://127.0.0.1:{forward}"


class Servers:
    def __init__(self):
        self.http = rig.Listener(0, rig.http_ok, "127.0.0.1")
        self.echo = rig.Listener(0, rig.echo, "127.0.0.1")
        self.policy = [f"allow network {host}:{server.port}" for server in (self.http, self.echo)
                       for host in ("127.0.0.1", "localhost")]

    def close(self):
        self.http.close()
        self.echo.close()


@pytest.fixture(scope="module", name="servers")
def fixture_servers():
    made = Servers()
    yield made
    made.close()


def tunnels(made, servers):
    for host in ("127.0.0.1", "localhost"):
        answer, stream = made.connect(f"{host}:{servers.echo.port}")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        stream.send(b"x" * 100_000)
        assert stream.exactly(100_000) == b"x" * 100_000
        stream.close()


def request(made, target):
    """A plain HTTP request through the proxy of the guest."""
    stream = made.proxy()
    stream.send(f"GET http://{target}/x HTTP/1.1\r\nHost: {target}\r\n"
                "Connection: close\r\n\r\n".encode())
    return stream.rest()


@pytest.mark.parametrize("start", [tinyproxy, microsocks, ssh_socks])
def test_tunnels_and_requests_through_a_real_proxy(start, servers, tmp_path):
    with start(tmp_path) as proxy, rig.Rig(servers.policy, proxy=proxy) as made:
        tunnels(made, servers)
        for host in ("127.0.0.1", "localhost"):
            answer = request(made, f"{host}:{servers.http.port}")
            assert answer.startswith(b"HTTP/1.1 200") and b"GET /x HTTP/1." in answer, answer


@pytest.mark.parametrize("start", [tinyproxy, microsocks])
def test_a_port_where_nothing_listens_is_reported_as_the_proxys_answer(start, servers, tmp_path):
    closed = free_port()
    policy = servers.policy + [f"allow network 127.0.0.1:{closed}"]
    with start(tmp_path) as proxy, rig.Rig(policy, proxy=proxy) as made:
        answer, stream = made.connect(f"127.0.0.1:{closed}")
        text = answer + stream.rest()
        assert b" 502 " in answer and b"upstream proxy 127.0.0.1" in text, text


def test_a_proxy_that_refuses_the_host_is_named(servers, tmp_path):
    with tinyproxy(tmp_path, "ConnectPort 563") as proxy, \
            rig.Rig(servers.policy, proxy=proxy) as made:
        answer, stream = made.connect(f"127.0.0.1:{servers.echo.port}")
        text = answer + stream.rest()
        assert b" 502 " in answer, text
        assert f"refused 127.0.0.1, port {servers.echo.port}: 403".encode() in text, text


def test_a_proxy_that_is_away_is_named(servers):
    with rig.Rig(servers.policy, proxy=f"socks5://127.0.0.1:{free_port()}") as made:
        answer, stream = made.connect(f"127.0.0.1:{servers.echo.port}")
        text = answer + stream.rest()
        assert b" 502 " in answer and b"upstream proxy 127.0.0.1" in text, text
        assert b"connection refused" in text


@pytest.mark.parametrize("start", [tinyproxy, microsocks])
def test_what_the_policy_denies_does_not_reach_the_proxy(start, servers, tmp_path):
    with start(tmp_path) as proxy, \
            rig.Rig([f"allow network **:{servers.echo.port}"], proxy=proxy) as made:
        before = servers.echo.count
        for host in ("127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]"):
            answer, stream = made.connect(f"{host}:{servers.echo.port}")
            assert b" 403 " in answer, answer
            stream.close()
        assert servers.echo.count == before


# logins: the real keeper and vault, too

USER, PASSWORD = "alice", "correcthorse7"


def http_login(folder):
    return tinyproxy(folder, f"BasicAuth {USER} {PASSWORD}")


def socks_login(folder):
    return microsocks(folder, "-u", USER, "-P", PASSWORD)


@contextlib.contextmanager
def with_user(start, servers, folder, user=USER):
    with start(folder) as proxy:
        scheme, _, where = proxy.rpartition("://")
        made = rig.CredRig(servers.policy)
        try:
            made.settings["network.proxy"] = f"{scheme or 'http'}://{user}@{where}"
            made.write_settings()
            made.reload(servers.policy)
            yield made, scheme or "http", where
        finally:
            made.close()


def reason(made, servers):
    answer, stream = made.connect(f"127.0.0.1:{servers.echo.port}")
    text = (answer + stream.rest()).decode()
    stream.close()
    return text


@pytest.mark.parametrize("start", [http_login, socks_login])
def test_the_login_of_the_vault_opens_the_proxy(start, servers, tmp_path):
    with with_user(start, servers, tmp_path) as (made, scheme, where):
        assert "no password is stored for this user and proxy" in reason(made, servers)
        password = PASSWORD.encode()
        made.vault("proxy", where, scheme, USER, value=b"wrong")
        wait_for(lambda: "wrong user or password" in reason(made, servers))
        made.vault("proxy", where, scheme, USER, value=password)
        wait_for(lambda: " 200 " in made.connect(f"127.0.0.1:{servers.echo.port}")[0].decode())
        tunnels(made, servers)
        answer = request(made, f"127.0.0.1:{servers.http.port}")
        assert answer.startswith(b"HTTP/1.1 200") and b"GET /x HTTP/1." in answer, answer
        assert b"uthorization" not in answer  # the server does not get the login
        # the password of another proxy is not sent to this one
        made.vault("proxy", "127.0.0.1:1", scheme, USER, value=password)
        wait_for(lambda: "no password is stored" in reason(made, servers))
        log = made.text()
        assert PASSWORD not in log


def wait_for(what):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)
