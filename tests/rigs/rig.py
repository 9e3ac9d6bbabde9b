# SPDX-License-Identifier: Apache-2.0
"""rig - netrig from Python: the real edge and egress on the host; this program is the guest.

`Rig` starts tests/rigs/netrig; its streams are plain sockets. `namespace()` moves the whole program
into a network namespace, where every address is local and nft counts each packet that edge and
egress send. `Resolver` and `Listener` are the servers there, and they also count.
"""
import atexit
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WAIT = 10
TYPES = {"A": 1, "AAAA": 28}


def build_folder():
    return pathlib.Path(os.environ.get("SBX_BUILD", ROOT / "build")).resolve()


class Stream:
    """A connection of the guest."""

    def __init__(self, rig, line):
        self.rig, self.sock, self.number = rig, rig.say(line), 0
        words = rig.answer(self.sock).split()
        if words[:1] != ["ok"]:
            self.sock.close()
            raise ConnectionError(f"{line}: {' '.join(words)}")
        if len(words) > 1:
            self.number = int(words[1])

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a denial shows as the end of the stream

    def recv(self, n=65536):
        try:
            return self.sock.recv(n)
        except ConnectionResetError:
            return b""

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.recv(n - len(data))
            if not piece:
                break
            data += piece
        return data

    def until(self, mark):
        data = b""
        while mark not in data:
            piece = self.recv(1)
            if not piece:
                break
            data += piece
        return data

    def rest(self):
        data = b""
        while True:
            piece = self.recv()
            if not piece:
                return data
            data += piece

    def half_close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def ending(self):
        return self.rig.command(f"how {self.number}")

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Rig:
    """edge, egress, a policy and an audit log; connect_to is {"host:port": "addr:port"}."""

    def __init__(self, policy, connect_to=None, resolver=None, raw=False, jail=True, proxy=None,
                 cpus=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sbx-rig."))
        self.policy = self.dir / "policy"
        self.write_policy(policy)
        build = build_folder()
        argv = [build / "tests/rigs/netrig/netrig", "--socket", self.dir / "s", "--folder",
                self.dir,
                "--edge", build / "src/edge/sbx-edge", "--egress", build / "src/egress/sbx-egress",
                "--policy", self.policy]
        if connect_to:
            argv += ["--connect-to", ",".join(f"{k}={v}" for k, v in connect_to.items())]
        if resolver:
            (self.dir / "resolv.conf").write_text(resolver)
            argv += ["--resolver", self.dir / "resolv.conf"]
        jail = jail and os.environ.get("SBX_RIG_JAIL") != "no"
        argv += ["--raw"] * raw + ["--no-jail"] * (not jail)
        argv += ["--proxy", proxy] if proxy else []
        argv += ["--cpus", cpus] if cpus else []
        self.log = open(self.dir / "log", "wb")
        # It makes unused memory resident, and some tests measure memory.
        env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
        self.process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE,
                                        stderr=self.log, env=env)
        atexit.register(self.close)
        timer = threading.Timer(WAIT, self.process.kill)
        timer.start()
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("netrig does not start:\n" + (self.dir / "log").read_text()[-4000:])
        timer.cancel()

    def write_policy(self, policy):
        lines = policy if isinstance(policy, str) else "\n".join(policy)
        self.policy.write_text(f"policy 1\n{lines}\nend\n")

    def reload(self, policy):
        self.write_policy(policy)
        assert self.command("reload") == "ok"
        self.until_up()

    def say(self, line):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(WAIT)
        try:
            sock.connect(str(self.dir / "s"))
        except (FileNotFoundError, ConnectionRefusedError) as err:
            raise RuntimeError(f"netrig exited (status {self.process.poll()}):\n"
                               + self.text()[-4000:]) from err
        sock.sendall(line.encode() + b"\n")
        return sock

    @staticmethod
    def answer(sock):
        data = b""
        while not data.endswith(b"\n"):
            piece = sock.recv(1)
            if not piece:
                break
            data += piece
        return data.decode().strip()

    def command(self, line):
        with self.say(line) as sock:
            data = b""
            while not data.endswith(b"\n"):
                piece = sock.recv(65536)
                if not piece:
                    break
                data += piece
            return data.decode().strip()

    def stats(self):
        return json.loads(self.command("stats"))

    def until_up(self):
        for _ in range(WAIT * 100):
            if self.command("up") == "yes":
                return
            time.sleep(0.01)
        raise RuntimeError("edge and egress do not come up:\n" + self.text())

    def text(self):
        return (self.dir / "log").read_text(errors="replace")

    def tcp(self, addr, port):
        return Stream(self, f"tcp {addr} {port}")

    def proxy(self):
        return Stream(self, "proxy")

    def wire(self):
        return Stream(self, "wire")

    def dns(self, tcp=False):
        return Dns(self, tcp)

    def connect(self, target, host=None):
        """CONNECT through the proxy; returns (status line, stream)."""
        stream = self.proxy()
        stream.send(f"CONNECT {target} HTTP/1.1\r\nHost: {host or target}\r\n\r\n".encode())
        return stream.until(b"\r\n\r\n"), stream

    def close(self):
        atexit.unregister(self.close)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(WAIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def query(name, kind=1, rng=random, edns=True, klass=1):
    """A DNS query; name is text with dots, or a list of labels as bytes."""
    labels = [p.encode("latin-1")
              for p in name.rstrip(".").split(".")] if isinstance(name, str) else name
    data = struct.pack(">HHHHHH", rng.randrange(65536), 0x0100, 1, 0, 0, int(edns))
    data += b"".join(bytes([len(p)]) + p for p in labels
                     if p) + b"\0" + struct.pack(">HH", kind, klass)
    return data + (b"\0\0\x29\x10\0\0\0\0\0\0\0" if edns else b"")


def rcode(message):
    return message[3] & 15 if len(message) >= 12 else -1


def addresses(message):
    """Returns the addresses of A and AAAA records in an answer with one question."""
    found, at = [], 12
    while message[at]:
        at += 1 + message[at]
    at += 5
    for _ in range(struct.unpack_from(">H", message, 6)[0]):
        if message[at] & 0xc0 == 0xc0:
            at += 2
        else:
            while message[at]:
                at += 1 + message[at]
            at += 1
        kind, _, _, n = struct.unpack_from(">HHIH", message, at)
        at += 10
        if kind in (1, 28):
            found.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6,
                                          message[at:at + n]))
        at += n
    return found


class Dns(Stream):
    """Queries, one after the other."""

    def __init__(self, rig, tcp):
        super().__init__(rig, "dns tcp" if tcp else "dns udp")

    def ask(self, message):
        self.send(struct.pack(">H", len(message)) + message)
        n = struct.unpack(">H", self.exactly(2))[0]
        return self.exactly(n)

    def lookup(self, name, kind="A"):
        return addresses(self.ask(query(name, TYPES[kind])))


# --- the outside world ---

class Listener:
    """Accepts on one port of every address and counts; `talk` handles a connection, else it is
    closed."""

    def __init__(self, port=0, talk=None, host="::", stop=None):
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.sock.bind((host, port))
        self.sock.listen(2048)
        self.port, self.count, self.talk = self.sock.getsockname()[1], 0, talk
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            self.count += 1
            if not self.talk:
                conn.close()
                continue
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        with conn, contextlib.suppress(OSError):
            conn.settimeout(10 * WAIT)
            self.talk(conn)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def echo(conn):
    while True:
        data = conn.recv(65536)
        if not data:
            return
        conn.sendall(data)


def http_ok(conn):
    """A server that answers each request with the data it read."""
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return
            data += piece
        head, _, data = data.partition(b"\r\n\r\n")
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)


class Resolver:
    """A resolver on UDP and TCP port 53 of every address; `answers` maps names to lists of
    addresses."""

    def __init__(self, answers=None):
        self.answers, self.queries, self.lock = answers or {}, [], threading.Lock()
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        # Answers must come from the queried address.
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        self.udp.bind(("::", 53))
        self.tcp = Listener(53, self.talk)
        threading.Thread(target=self.run, daemon=True).start()

    def reply(self, message):
        at, labels = 12, []
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]])
            at += 1 + message[at]
        kind, _ = struct.unpack_from(">HH", message, at + 1)
        name = b".".join(labels).decode("latin-1").lower()
        with self.lock:
            self.queries.append(name)
        found = [a for a in self.answers.get(name, [])
                 if (":" in a) == (kind == 28)] if kind in (1, 28) else []
        known = name in self.answers
        out = message[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known else 3), 1, len(found), 0,
                                        0) + message[12:at + 5]
        for text in found:
            data = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
            out += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data
        return out

    def run(self):
        while True:
            try:
                message, ancillary, _, peer = self.udp.recvmsg(65536, 256)
                back = [a for a in ancillary if a[1] == socket.IPV6_PKTINFO]
                self.udp.sendmsg([self.reply(message)], back, 0, peer)
            except (OSError, IndexError, struct.error):
                if self.udp.fileno() < 0:
                    return

    def talk(self, conn):
        while True:
            n = conn.recv(2, socket.MSG_WAITALL)
            if len(n) < 2:
                return
            out = self.reply(conn.recv(struct.unpack(">H", n)[0], socket.MSG_WAITALL))
            conn.sendall(struct.pack(">H", len(out)) + out)

    def close(self):
        self.udp.close()
        self.tcp.close()


# --- a namespace that counts ---

def namespace():
    """Runs this program again in a network namespace where every address is local; returns there.

    Connections come from 127.0.0.1: sbx treats a connection with the same address at both ends as a
    connection to the host itself.
    """
    if os.environ.get("SBX_RIG_NAMESPACE") != "yes":
        os.environ["SBX_RIG_NAMESPACE"] = "yes"
        os.execvp("unshare", ["unshare", "-rn", sys.executable, "-B"] + sys.argv)
    for line in ("ip link set lo up", "ip route add local 0.0.0.0/0 dev lo src 127.0.0.1",
                 "ip -6 route add local ::/0 dev lo"):
        subprocess.run(line.split(), check=True)
    subprocess.run(["nft", "-f", "-"], input=RULES, text=True, check=True)


RULES = """table inet count {
    counter dns { }
    counter syn { }
    counter any { }
    chain out {
        type filter hook output priority 0;
        th dport 53 counter name dns
        tcp flags & (syn|ack) == syn counter name syn
        counter name any
    }
}
"""


def packets():
    """Returns the packets of this namespace so far: to port 53, that open a connection, all."""
    out = subprocess.run(["nft", "-j", "list", "counters"], stdout=subprocess.PIPE,
                         check=True).stdout
    found = [c["counter"] for c in json.loads(out)["nftables"] if "counter" in c]
    return {c["name"]: c["packets"] for c in found}


# --- credentials ---

def children(pid):
    """Returns all processes below this one: {pid: name}."""
    below, found = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text(errors="replace").partition("(")[2].rpartition(")")
            below.setdefault(int(rest.split()[1]), []).append((int(path.parent.name), name))
    todo = [pid]
    while todo:
        for child, name in below.get(todo.pop(), []):
            found[child] = name
            todo.append(child)
    return found


class CredRig(Rig):
    """The real keeper, edge, egress, origins and vault; only the VM is simulated
    (tests/rigs/credrig).

    policy as in Rig. connect_to is {"host:port": "addr:port"}; extra_ca a file; services {name:
    text} are the user's own.
    """

    def __init__(self, policy, connect_to=None, extra_ca=None, services=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sbx-rig."))
        self.settings = {}
        if connect_to:
            self.settings["network.connect-to"] = ",".join(f"{k}={v}" for k,
                                                           v in connect_to.items())
        if extra_ca:
            self.settings["network.extra-ca"] = str(extra_ca)
        for name in ("state/sbx", "config/sbx/services", "run", "libexec"):
            (self.dir / name).mkdir(parents=True, mode=0o700)
        self.policy = self.dir / "state/sbx/policy"
        self.write_policy(policy)
        self.write_settings()
        for name, text in (services or {}).items():
            (self.dir / "config/sbx/services" / f"{name}.conf").write_text(text)
        self.build = build_folder()
        for name in ("edge", "egress", "origin", "vault/main/sbx-vault",
                     "vault/runner/sbx-vault-run",
                     "vault/keyring/sbx-vault-keyring", "clerk/git/sbx-clerk-git",
                     "clerk/api/sbx-clerk"):
            program = self.build / "src" / (name if "/" in name else f"{name}/sbx-{name}")
            (self.dir / "libexec" / program.name).symlink_to(program)
        self.env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
        self.env.update(XDG_STATE_HOME=str(self.dir / "state"),
                        XDG_CONFIG_HOME=str(self.dir / "config"),
                        XDG_RUNTIME_DIR=str(self.dir / "run"),
                        XDG_DATA_HOME=str(self.dir / "data"), SBX_LIBEXEC=str(self.dir / "libexec"),
                        SBX_SHARE=str(ROOT / "data"))
        self.log = open(self.dir / "log", "wb")
        self.bridges = {}
        self.process = subprocess.Popen([self.build / "tests/rigs/credrig/credrig", self.dir / "s",
                                         self.dir, self.build / "tests/rigs/credrig/rigkeeper"],
                                        stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        atexit.register(self.close)
        timer = threading.Timer(2 * WAIT, self.process.kill)
        timer.start()
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("credrig does not start:\n" + self.text()[-4000:])
        timer.cancel()

    def write_settings(self):
        extra_ca = self.settings.get("network.extra-ca")
        if extra_ca:  # as `sbx settings set` copies it
            (self.dir
             / "config/sbx/extra-ca.pem").write_text(f"# copied by sbx settings from {extra_ca}\n"
                                                     + pathlib.Path(extra_ca).read_text())
        (self.dir
         / "config/sbx/settings.conf").write_text("".join(f"{k} = {v}\n" for k,
                                                          v in self.settings.items()))

    def lines(self, command):
        """Reads an answer that ends with a line `end`."""
        with self.say(command) as sock:
            data = b""
            while not data.endswith(b"end\n"):
                piece = sock.recv(65536)
                if not piece:
                    break
                data += piece
            return data[:-4].decode()

    def ca(self):
        """Returns a file with the certificates that the guest trusts."""
        path = self.dir / "guest-ca.pem"
        path.write_text(self.lines("ca"))
        return path

    def variables(self):
        return dict(line.split("=", 1) for line in self.lines("env").splitlines())

    def pids(self):
        """{"keeper": pid, "vault": pid, "edge": pid, "egress": pid, "origin": [pids], "clerk-git":
        [pids], "clerk": [pids]}"""
        said = json.loads(self.command("pids"))
        found = {"keeper": said["keeper"], "vault": 0, "edge": 0, "egress": 0, "origin": [],
                 "clerk-git": [], "clerk": []}
        for pid, name in {**children(said["keeper"]), **children(said["vault_run"] or -1)}.items():
            short = name.removeprefix("sbx-")
            if short in ("origin", "clerk-git", "clerk"):
                found[short].append(pid)
            elif short in found:
                found[short] = pid
        return found

    def vault(self, *argv, value=b""):
        done = subprocess.run([self.build / "tests/rigs/credrig/vaultctl", *argv], input=value,
                              capture_output=True, env=self.env, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"vaultctl {argv}: {done.stderr.decode()}")
        return done.stdout.decode().strip()

    def told(self, change):
        """Calls `change` and waits until the guest got the resulting update."""
        before = json.loads(self.command("pids"))["trusts"]
        change()
        for _ in range(WAIT * 100):
            if json.loads(self.command("pids"))["trusts"] > before:
                return
            time.sleep(0.01)
        raise RuntimeError("the guest received no message:\n" + self.text()[-4000:])

    def set_secret(self, name, value, scope=""):
        self.told(lambda: self.vault("set", name, scope, value=value.encode()))

    def set_custom(self, name, value, hosts, header="authorization", fmt="Bearer %s", env="",
                   sentinel="", scope=""):
        self.told(lambda: self.vault("custom", name, scope, hosts, header, fmt, env, sentinel,
                                     value=value.encode()))

    def remove_secret(self, name, scope=""):
        self.told(lambda: self.vault("rm", name, scope))

    def bridge(self, path="/proxy"):
        """Returns the port on loopback whose connections are streams of this path."""
        if path not in self.bridges:
            words = self.command(f"bridge {path}").split()
            assert words[0] == "ok", words
            self.bridges[path] = int(words[1])
        return self.bridges[path]

    def records(self):
        """Returns the records of the audit log, oldest first."""
        done = subprocess.run([self.build / "src/sbx/sbx", "audit", "show", "--json", "--limit",
                               "0", "0123456789ab"], capture_output=True, env=self.env,
                              timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        return [json.loads(line) for line in done.stdout.splitlines()]
