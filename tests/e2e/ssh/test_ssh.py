# SPDX-License-Identifier: Apache-2.0
"""SSH to a sandbox: the real client, scp, sftp, rsync and git on the host, the real sshd inside."""
import contextlib
import os
import socket
import subprocess

import pytest

import host
from installation import START_SECONDS

SECONDS = 120


class Client:
    """ssh and its relatives with the configuration of sbx."""

    def __init__(self, env, name):
        self.env, self.name, self.host = env, name, f"{name}.sbx"
        self.config = env.state / "ssh" / "config"

    def run(self, *argv, check=True, **kwargs):
        done = subprocess.run(list(map(str, argv)), env=self.env.env, capture_output=True,
                              timeout=SECONDS, check=False, **kwargs)
        assert not check or done.returncode == 0, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def ssh(self, *argv, flags=(), **kwargs):
        return self.run("ssh", "-F", self.config, *flags, self.host, *argv, **kwargs)

    def out(self, *argv, **kwargs):
        return self.ssh(*argv, **kwargs).stdout.decode()

    @contextlib.contextmanager
    def connected(self, *argv, flags=()):
        """A client that is not awaited. Killed at the end."""
        client = subprocess.Popen(["ssh", "-F", self.config, *flags, self.host, *argv],
                                  env=self.env.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            yield client
        finally:
            client.kill()
            client.wait()
            client.stderr.close()


@pytest.fixture(scope="module")
def box(env):
    box = env.create("ssh-box", env.make_folder("ssh-box"))
    yield box
    box.rm()


@pytest.fixture(scope="module")
def client(box):
    """The first `sbx ssh` creates the keys and the configuration."""
    assert box.env.sbx("ssh", box.name, "id", "-un", timeout=SECONDS).stdout == "agent\n"
    return Client(box.env, box.name)


def until_gone(box, pattern):
    host.until(lambda: box.fails(f"pgrep -f '{pattern}'"), 60,
               f"{pattern} still runs: {box.guest('ps -ef')}")


def nothing_is_left(box):
    until_gone(box, "^/usr/sbin/sshd|^sshd")
    host.until(lambda: box.guest("ls -d /run/sbx/ssh.* 2>/dev/null || true") == "", 60,
               "the directory of a connection is left")


def test_a_command_has_its_bytes_and_its_status(client):
    data = os.urandom(1 << 20)
    assert client.ssh("cat", input=data).stdout == data
    assert client.ssh("exit 7", check=False).returncode == 7
    assert client.env.sbx("ssh", client.name, "exit 7", check=False,
                          timeout=SECONDS).returncode == 7
    assert client.ssh("echo out; echo err >&2").stderr == b"err\n"
    assert client.out("tty && stty size", flags=["-tt"]).startswith("/dev/pts/")


def test_programs_have_the_environment_of_exec(client, box):
    wanted = dict(line.split("=", 1) for line in box.guest("env", user="agent").splitlines())
    for found in (client.out("env"), client.out("bash -lc env")):
        has = dict(line.split("=", 1) for line in found.splitlines() if "=" in line)
        for name in ("PATH", "HTTPS_PROXY", "SSL_CERT_FILE", "SANDBOX_NAME", "HOME", "USER"):
            assert has[name] == wanted[name], name


def test_the_server_is_not_root_and_nothing_listens(client, box):
    with client.connected("sleep", "1000"):
        host.until(lambda: not box.fails("pgrep -f '^sleep 1000'"), 60, "no connection")
        assert set(box.guest("ps -eo user=,args= | awk '/sshd/ && !/awk/ {print $1}'").split()) \
            == {"agent"}
        assert box.guest("cat /proc/net/tcp /proc/net/tcp6 | grep -c ':0016 ' || true") == "0"
    nothing_is_left(box)


def test_only_the_agent_with_the_key_of_the_installation_gets_in(client, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"],
                   check=True)
    other = tmp_path / "config"
    other.write_text(client.config.read_text().replace(str(client.env.state / "ssh/key"),
                                                       str(tmp_path / "other")))
    for flags in (["-l", "root"], ["-F", other]):
        done = client.ssh("true", flags=flags, check=False)
        assert done.returncode == 255 and b"Permission denied (publickey)" in done.stderr, done


def test_scp_sftp_rsync_and_git_work(client, box, tmp_path):
    data = os.urandom(300_000)
    (tmp_path / "a").write_bytes(data)
    client.run("scp", "-q", "-F", client.config, tmp_path / "a", f"{client.host}:b")
    client.run("sftp", "-q", "-F", client.config, "-b", "-", client.host,
               input=f"get b {tmp_path}/c\nrename b d\n".encode())
    assert (tmp_path / "c").read_bytes() == data
    tree = tmp_path / "tree"
    tree.mkdir()
    for i in range(50):
        (tree / str(i)).write_bytes(os.urandom(i * 100))
    shell = f"ssh -F {client.config}"
    client.run("rsync", "-a", "-e", shell, f"{tree}/", f"{client.host}:tree/")
    client.run("rsync", "-a", "-e", shell, f"{client.host}:tree/", f"{tmp_path}/back/")
    for i in range(50):
        assert (tree / str(i)).read_bytes() == (tmp_path / "back" / str(i)).read_bytes()
    box.guest("git init -q r && cd r && git -c user.name=x -c user.email=x@x "
              "commit -q --allow-empty -m first", user="agent", flags=["-w", "/home/agent"])
    client.run("git", "-c", f"core.sshCommand={shell}", "clone", "-q",
               f"ssh://{client.host}/home/agent/r", tmp_path / "clone")
    assert (tmp_path / "clone/.git").is_dir()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(port):
    done = subprocess.run(["curl", "-s", "--noproxy", "*", f"http://127.0.0.1:{port}/d"],
                          capture_output=True, timeout=60, check=False)
    return done.stdout


def test_ports_of_the_sandbox_can_be_forwarded(client, box):
    box.guest("mkdir -p /tmp/web && echo inside >/tmp/web/d && cd /tmp/web && "
              "setsid python3 -m http.server 8123 >/dev/null 2>&1 &", user="agent")
    port = free_port()
    with client.connected(flags=["-N", "-L", f"{port}:127.0.0.1:8123"]):
        host.until(lambda: fetch(port) == b"inside\n", 60, "no answer through -L")


def test_the_host_is_reached_from_inside_only_on_request(client, box, tmp_path):
    refused = client.ssh("true", flags=["-R", "8124:127.0.0.1:9", "-oExitOnForwardFailure=yes"],
                         check=False)
    assert refused.returncode != 0 and b"remote port forwarding failed" in refused.stderr
    (tmp_path / "d").write_text("of the host\n")
    port = free_port()
    with subprocess.Popen(["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"],
                          cwd=tmp_path, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            host.until(lambda: fetch(port), 60, "no server")
            done = client.env.sbx("ssh", "-R", f"8124:127.0.0.1:{port}", client.name,
                                  "curl -s --noproxy '*' http://127.0.0.1:8124/d", timeout=SECONDS)
            assert done.stdout == "of the host\n"
        finally:
            server.kill()
    nothing_is_left(box)


@pytest.mark.parametrize("who", ["client", "sshd"])
def test_a_killed_end_leaves_nothing_but_what_left_the_connection(client, box, who):
    script = ("setsid sleep 3001 >/dev/null 2>&1 </dev/null & "
              "sleep 3002 & trap '' HUP; sleep 3003 | sleep 3004; echo end")
    with client.connected(script) as ssh:
        host.until(lambda: not box.fails("pgrep -f '^sleep 3001' && pgrep -f '^sleep 3004'"), 60,
                   "the command did not start")
        if who == "client":
            ssh.kill()
        else:
            box.guest("pkill -9 -f '^sshd'")
        ssh.wait(60)
    nothing_is_left(box)
    until_gone(box, "^sleep 300[234]")
    assert not box.fails("pgrep -f '^sleep 3001'"), "it had left the connection"
    box.guest("pkill -f '^sleep 3001'")


def test_a_connection_resumes_the_sandbox(client, box):
    box.env.sbx("stop", "--suspend", box.name, timeout=START_SECONDS)
    assert client.out("echo awake") == "awake\n"


def test_a_connection_survives_a_suspension(client, box):
    ssh = subprocess.Popen(["ssh", "-F", client.config, client.host, "cat"], env=client.env.env,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with ssh:
        ssh.stdin.write(b"before\n")
        ssh.stdin.flush()
        assert ssh.stdout.readline() == b"before\n"
        box.env.sbx("stop", "--suspend", box.name, timeout=START_SECONDS)
        box.env.sbx("start", box.name, timeout=START_SECONDS)
        out, _ = ssh.communicate(b"after\n", timeout=SECONDS)
        assert out == b"after\n" and ssh.returncode == 0


def test_a_template_without_a_server_names_the_command(client, box):
    box.guest("mv /usr/sbin/sshd /usr/sbin/sshd.away")
    try:
        done = box.env.sbx("ssh", box.name, "true", check=False, timeout=SECONDS)
    finally:
        box.guest("mv /usr/sbin/sshd.away /usr/sbin/sshd")
    assert done.returncode == 255 and "has no SSH server" in done.stderr, done
    assert "try: sbx template update" in done.stderr, done


def test_editors_can_use_their_ways_of_ssh(client, box, tmp_path):
    """A script on stdin of a shell with a SOCKS port, a shared connection, a forwarded socket, and
    a server that outlives the connection that has started it."""
    port = free_port()
    script = b"""cd /tmp && mkdir -p web && echo inside >web/d && cd web
nohup python3 -m http.server --bind 127.0.0.1 8126 >/tmp/web.log 2>&1 </dev/null &
echo "listening pid=$!"
"""
    said = client.ssh("sh", flags=["-T", "-D", port], input=script).stdout
    assert said.startswith(b"listening pid=")
    control = tmp_path / "control"
    with client.connected(flags=["-N", "-o", "ControlMaster=yes", "-o", f"ControlPath={control}",
                                 "-L", f"{tmp_path}/sock:127.0.0.1:8126", "-D", str(port)]):
        host.until(control.exists, 60, "no shared connection")
        assert client.out("echo shared", flags=["-o", "ControlMaster=no", "-o",
                                                f"ControlPath={control}"]) == "shared\n"
        socks = ["curl", "-s", "--socks5-hostname", f"127.0.0.1:{port}", "http://127.0.0.1:8126/d"]
        local = ["curl", "-s", "--noproxy", "*", "--unix-socket", f"{tmp_path}/sock",
                 "http://x/d"]
        for command in (socks, local):
            host.until(lambda c=command: subprocess.run(c, capture_output=True, check=False,
                                                        timeout=60).stdout == b"inside\n", 60,
                       f"no answer: {command}")
    box.guest("pkill -f '[h]ttp.server --bind'")
