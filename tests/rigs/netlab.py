# SPDX-License-Identifier: Apache-2.0
"""The laboratory of the network tests: real servers on loopback, unprivileged, on free ports.

`lab()` starts them and stops them at the end. Nothing here needs a sandbox: `settings()`
(network.connect-to, network.extra-ca) is for the sbx under test, and `lab.connections()` returns
the result for a test: every server counts its connections, so that a test can require that there
was none.

`lab(apart=True)` puts the servers into a separate network namespace, with a mount namespace, in
which the sbx under test is then started (`lab.apart.prefix` is the prefix of its command line).
There the resolver has port 53 and is in resolv.conf, and no packet can leave: what is not counted
here was not sent. Servers with addresses of the Internet (PUBLIC) are in a second network
namespace, which a gateway connects: their addresses are not those of the sandbox's host or network.

    server       what it is                                            its names (NAMES)
    http         nginx, HTTP/1.1                                       port 80 of the allowed names
    https        nginx, TLS, HTTP/1.1 and HTTP/2                       port 443 of the allowed names
    trap         nginx, http and https: must get no connection         every port of the denied
                 names
    echo         TCP, echoes                                           allowed.test:9999,
                 raw.test:7000
    first        TCP, speaks first                                     raw.test:7001
    sshd         OpenSSH, key of the laboratory                        allowed.test:22, raw.test:22
    stopped      TCP, accepts and reads only on request                raw.test:7002
    source       TCP, sends zeros for as long as it can                raw.test:7003
    proxy        an upstream HTTP proxy                                -
    dns          answers by a table and counts each query              -
"""
import collections
import contextlib
import ctypes
import getpass
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

SBIN = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
ALLOWED = ("allowed.test", "other.test", "www.wild.test", "xn--bcher-kva.test", "pinned.test")
DENIED = ("denied.test", "evil.allowed.test")
CERT_NAMES = ("real.test", *ALLOWED, *DENIED, "*.wild.test", "localhost")
BANNER = b"220 lab first\r\n"
BODY = "hello from the laboratory"
COPY = 65536
# On the loopback device of the network namespace of the gateway.
PUBLIC = {"real.test": ["198.41.0.4", "2001:503:ba3e::2:30"]}
# both ends of the link to it
NEAR, FAR = ("10.99.0.1/30", "fd99::1/64"), ("10.99.0.2/30", "fd99::2/64")
CLONE_NEWNET = 0x40000000  # not in Python's os before 3.12


def need(program):
    path = shutil.which(program, path=SBIN)
    assert path, f"no {program} on this host\n  try: tools/setup --test"
    return path


def free_port():
    """Returns a port that is free now; another process may still bind it first, so servers are
    checked."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, seconds=10):
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"connection refused: port {port} after {seconds} s"
            time.sleep(0.02)


# separate namespaces

class Apart:
    """User, network and mount namespaces, held by a process that creates sockets in them for this
    one."""

    def __init__(self, folder):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [need("unshare"), "--user", "--map-current-user", "--keep-caps", "--net", "--mount",
                sys.executable,
                str(pathlib.Path(__file__).resolve()), str(theirs.fileno()), str(folder)]
        self.proc = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self.ours.settimeout(20)
        assert self.ours.recv(100) == b"ready", "the namespaces were not made"
        self.prefix = [need("nsenter"), "-t", str(self.proc.pid), "-U", "-n", "-m",
                       "--preserve-credentials", "--"]

    def do(self, **what):
        """Sends the holder a request; returns the descriptor of the answer, if there is one."""
        self.ours.send(json.dumps(what).encode())
        data, fds, _, _ = socket.recv_fds(self.ours, 65536, 1)
        answer = json.loads(data)
        assert answer["error"] is None, answer
        return fds[0] if fds else None

    def socket(self, kind, address, family=socket.AF_INET):
        fd = self.do(do="bind", kind=int(kind), address=list(address), family=int(family))
        return socket.socket(family, kind, fileno=fd)

    def run(self, *argv, **kwargs):
        return subprocess.run([*self.prefix, *map(str, argv)], check=False, timeout=60, **kwargs)

    def stop(self):
        self.ours.close()
        try:
            self.proc.wait(10)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


def call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)


def add_addresses(run, device, *addresses):
    for address in addresses:
        run("ip", "address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
    run("ip", "link", "set", device, "up")


def make_far(run):
    """Returns descriptors of this network namespace and of a second one with the addresses of
    PUBLIC, routed through a gateway."""
    near = os.open("/proc/self/ns/net", os.O_RDONLY)
    call("unshare", CLONE_NEWNET)
    far = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.set_inheritable(near, True)
    add_addresses(run, "lo",
                  *(f"{a}/{128 if ':' in a else 32}" for addresses in PUBLIC.values()
                    for a in addresses))
    run("ip", "link", "add", "name", "far", "type", "veth", "peer", "name", "near", "netns",
        f"/proc/self/fd/{near}")
    add_addresses(run, "far", *FAR)
    call("setns", near, CLONE_NEWNET)
    add_addresses(run, "near", *NEAR)
    for v4, v6 in PUBLIC.values():
        run("ip", "route", "add", v4, "via", FAR[0].partition("/")[0])
        run("ip", "-6", "route", "add", v6, "via", FAR[1].partition("/")[0])
    return near, far


def bind(want):
    s = socket.socket(want["family"], want["kind"])
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if want["family"] == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(tuple(want["address"]))
    return s


def hold(fd, folder):
    """The process that holds the namespaces: it has their capabilities, and drops them at the end
    of its setup."""
    control = socket.socket(fileno=fd)
    tools = {"PATH": SBIN}
    public = {a for addresses in PUBLIC.values() for a in addresses}

    def run(*argv):
        subprocess.run(argv, check=True, env=tools, stdin=subprocess.DEVNULL, timeout=20,
                       close_fds=False)

    run("ip", "link", "set", "lo", "up")
    near, far = make_far(run)
    resolv = pathlib.Path(folder) / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
    run("mount", "--bind", str(resolv), os.path.realpath("/etc/resolv.conf"))
    control.send(b"ready")
    while data := control.recv(65536):
        want, error, made = json.loads(data), None, []
        try:
            if want["do"] == "bind":
                call("setns", far if want["address"][0] in public else near, CLONE_NEWNET)
                s = bind(want)
                made = [s.fileno()]
            elif want["do"] == "tmpfs":
                run("mount", "-t", "tmpfs", "-o", f"size={want['size']},mode=0700", "lab",
                    want["at"])
        except (OSError, subprocess.SubprocessError) as e:
            error = str(e)
        call("setns", near, CLONE_NEWNET)
        socket.send_fds(control, [json.dumps({"error": error}).encode()], made)
        if made:
            s.close()


# servers that are threads of this process

class Listener(socketserver.ThreadingTCPServer):
    """Counts accepted connections and passes each to `serve` on its own thread."""
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, serve, apart=None, address=("127.0.0.1", 0)):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.serve = serve
        self.count = 0
        self.open = set()
        self.ended = threading.Event()
        super().__init__(address, None, bind_and_activate=False)
        if apart:
            self.socket.close()
            self.socket = apart.socket(socket.SOCK_STREAM, address, self.address_family)
        else:
            self.server_bind()
        self.server_activate()
        self.server_address = self.socket.getsockname()
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2},
                         daemon=True).start()

    def get_request(self):
        got = super().get_request()
        self.count += 1
        return got

    def finish_request(self, request, client_address):
        self.open.add(request)
        try:
            with contextlib.suppress(OSError):
                self.serve(self, request)
        finally:
            self.open.discard(request)

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.ended.set()
        self.shutdown()
        self.server_close()
        for s in list(self.open):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def echo(_, s):
    while data := s.recv(COPY):
        s.sendall(data)


def speak_first(_, s):
    s.sendall(BANNER)
    echo(_, s)


def source(listener, s):
    zeros = bytes(COPY)
    while not listener.ended.is_set():
        s.sendall(zeros)


class Stopped(Listener):
    """Reads nothing until `go` is set; then everything, and answers with the number of bytes."""

    def __init__(self, apart=None):
        self.go = threading.Event()
        super().__init__(self._serve, apart)

    def _serve(self, _, s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262144)
        while not self.go.wait(0.1) and not self.ended.is_set():
            pass
        n = 0
        while data := s.recv(COPY):
            n += len(data)
        s.sendall(b"%d\n" % n)


def pipe(a, b):
    """Copies both ways until both are done; forwards the end of one direction."""
    other, live = {a: b, b: a}, {a, b}
    with contextlib.suppress(OSError):
        while live:
            for s in select.select(list(live), [], [], 60)[0]:
                if data := s.recv(COPY):
                    other[s].sendall(data)
                else:
                    live.discard(s)
                    other[s].shutdown(socket.SHUT_WR)
    a.close()
    b.close()


class Front(Listener):
    """Counts connections to a server that is a program, and forwards them."""

    def __init__(self, behind, apart=None, address=("127.0.0.1", 0)):
        self.behind = behind
        super().__init__(lambda _, s: pipe(s, socket.create_connection(("127.0.0.1", behind), 10)),
                         apart, address)


class Proxy(Listener):
    """CONNECT and absolute-form requests, to names that the laboratory knows. `asked` has their
    first lines."""

    def __init__(self, where, apart=None):
        self.where, self.asked, self.refuse = where, [], False
        super().__init__(self._serve, apart)

    def _serve(self, _, s):
        head = b""
        while b"\r\n\r\n" not in head and len(head) < COPY and (part := s.recv(4096)):
            head += part
        first, _, rest = head.partition(b"\r\n")
        method, target, _ = (first.decode("latin-1") + "  ").split(" ", 2)
        self.asked.append(f"{method} {target}")
        name = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        name = name if ":" in name else name + ":80"
        if self.refuse or name not in self.where:
            s.sendall(
                b"HTTP/1.1 502 no such origin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        up = self.where[name]()
        if method == "CONNECT":
            s.sendall(b"HTTP/1.1 200 here you are\r\n\r\n")
            up.sendall(rest.partition(b"\r\n\r\n")[2])
        else:
            path = "/" + target.removeprefix("http://").partition("/")[2]
            up.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + rest)
        pipe(s, up)


class Dns:
    """A resolver on UDP and TCP of one port. `queries[(name, type)]` counts; names not in `table`
    do not exist."""

    TYPES = {1: "A", 28: "AAAA", 5: "CNAME", 12: "PTR", 15: "MX", 16: "TXT", 64: "SVCB",
             65: "HTTPS"}

    def __init__(self, apart=None):
        self.table = {}  # name -> list of addresses
        self.queries = collections.Counter()
        if apart:
            self.udp, self.tcp = (apart.socket(kind, ("127.0.0.1", 53))
                                  for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM))
            self.tcp.listen(16)
        else:
            self.udp, self.tcp = self._bind()
        self.port = self.udp.getsockname()[1]
        self.ended = False
        for target in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=target, daemon=True).start()

    @staticmethod
    def _bind():
        for _ in range(20):
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", 0))
            tcp = socket.socket()
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tcp.bind(udp.getsockname())
                tcp.listen(16)
                return udp, tcp
            except OSError:
                udp.close()
                tcp.close()
        raise AssertionError("no port is free for both UDP and TCP")

    def _answer(self, query):
        if len(query) < 17:
            return None
        at, labels = 12, []
        while at < len(query) and query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1").lower())
            at += 1 + query[at]
        if at + 5 > len(query):
            return None
        kind = struct.unpack_from("!H", query, at + 1)[0]
        name, question = ".".join(labels), query[12:at + 5]
        self.queries[(name, self.TYPES.get(kind, str(kind)))] += 1
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        records = []
        for address in self.table.get(name, ()):
            if family and (":" in address) == (family == socket.AF_INET6):
                packed = socket.inet_pton(family, address)
                records.append(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 5, len(packed)) + packed)
        code = 0 if name in self.table else 3
        flags = 0x8180 | code | (struct.unpack_from("!H", query, 2)[0] & 0x0100)
        return query[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0,
                                       0) + question + b"".join(records)

    def _serve_udp(self):
        with contextlib.suppress(OSError):
            while not self.ended:
                query, peer = self.udp.recvfrom(4096)
                if answer := self._answer(query):
                    self.udp.sendto(answer, peer)

    def _serve_tcp(self):
        with contextlib.suppress(OSError):
            while not self.ended:
                s, _ = self.tcp.accept()
                with s, contextlib.suppress(OSError, struct.error):
                    s.settimeout(5)
                    n = struct.unpack("!H", s.recv(2))[0]
                    if answer := self._answer(s.recv(n)):
                        s.sendall(struct.pack("!H", len(answer)) + answer)

    def asked_for(self, name):
        """Returns the number of queries for a name or names below it."""
        return sum(n for (q, _), n in self.queries.items() if q == name or q.endswith("." + name))

    def stop(self):
        self.ended = True
        for s in (self.udp, self.tcp):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()


# servers that are programs

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 2048; }}
http {{
    access_log {folder}/nginx-access.log;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    client_max_body_size 0; default_type text/plain; sendfile on; server_names_hash_bucket_size 128;
{servers}
}}
"""
# `return` does not read a body; /put does, and discards it.
SERVER = """
    server {{
        listen 127.0.0.1:{port} {flags};
        server_name _;
        {tls}
        location = / {{
            set $about "host=$http_host sni=$ssl_server_name proto=$server_protocol";
            return 200 "{body}\\nserver={name} $about\\n";
        }}
        location = /echo-request {{ return 200 "$request\\n$http_x_lab\\n"; }}
        location /files/ {{ alias {folder}/files/; }}
        location = /put {{
            proxy_pass http://127.0.0.1:{sink}/; proxy_request_buffering off;
            proxy_http_version 1.1;
        }}
        location = /slow {{ limit_rate 1k; alias {folder}/files/small; }}
        location = /redirect {{ return 302 http://denied.test/; }}
    }}
"""
SINK = """
    server {{
        listen 127.0.0.1:{sink};
        location / {{ client_body_buffer_size 64k; proxy_pass http://127.0.0.1:{sink2}/; }}
    }}
    server {{ listen 127.0.0.1:{sink2}; location / {{ return 200 "took $content_length\\n"; }} }}
"""
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/client_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
LogLevel ERROR
"""


class Lab:
    def __init__(self, apart=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sbx-lab-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.programs, self.servers = [], {}
        self.ca = self.folder / "ca.crt"
        self.user = getpass.getuser()
        self.key = self.folder / "client_key"
        self.apart = Apart(self.folder) if apart else None

    # starting

    def start(self):
        self._make_certificates()
        (self.folder / "files").mkdir()
        (self.folder / "files" / "small").write_text(BODY + "\n")
        with open(self.folder / "files" / "big", "wb") as f:
            f.truncate(64 << 20)
        self._start_nginx()
        self._start_sshd()
        self.servers |= {"echo": Listener(echo, self.apart),
                         "first": Listener(speak_first, self.apart),
                         "source": Listener(source, self.apart), "stopped": Stopped(self.apart)}
        known = self.names() | {f"{n}:{p}": s for n in PUBLIC for p,
                                s in ((80, "http"), (443, "https"))}
        self.servers["proxy"] = Proxy({name: self._origin(s) for name, s in known.items()},
                                      self.apart)
        self.dns = Dns(self.apart)
        self.dns.table |= PUBLIC

    def _run(self, *argv):
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"

    def _make_certificates(self):
        """Creates a CA and one leaf for all names; and a leaf of an unknown CA, which must be
        rejected."""
        f, openssl = self.folder, need("openssl")
        for who in ("ca", "stranger"):
            self._run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                      "-subj",
                      f"/CN=sbx test {who}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                      "-keyout", f / f"{who}.key", "-out", f / f"{who}.crt")
        (f / "ext").write_text("authorityKeyIdentifier=keyid\nsubjectAltName="
                               + ",".join(f"DNS:{n}" for n in CERT_NAMES)
                               + ",IP:127.0.0.1,IP:::1\n")
        self._run(openssl, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=allowed.test",
                  "-keyout", f / "leaf.key",
                  "-out", f / "leaf.csr")
        for who, leaf in (("ca", "leaf"), ("stranger", "strange-leaf")):
            self._run(openssl, "x509", "-req", "-in", f / "leaf.csr", "-CA", f / f"{who}.crt",
                      "-CAkey", f / f"{who}.key",
                      "-CAcreateserial", "-days", "3650", "-extfile", f / "ext", "-out",
                      f / f"{leaf}.crt")

    def _program(self, name, argv, port):
        log = open(self.folder / f"{name}.log", "wb")
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                cwd=self.folder,
                                start_new_session=True)
        log.close()
        self.programs.append(proc)
        try:
            wait_port(port)
            assert proc.poll() is None
        except AssertionError:
            said = "".join(p.read_text(errors="replace")[-2000:] for p in self.folder.glob("*.log"))
            raise AssertionError(f"{name} did not start: {said}") from None

    def _start_nginx(self):
        ports = {name: free_port() for name in ("http", "https", "trap-http", "trap-https")}
        more = {"sink": free_port(), "sink2": free_port(), "folder": self.folder, "body": BODY}
        tls = f"ssl_certificate {self.folder}/leaf.crt; ssl_certificate_key {self.folder}/leaf.key;"
        servers = SINK.format(**more)
        for name, port in ports.items():
            is_tls = name.endswith("https")
            servers += SERVER.format(name=name, port=port, flags="ssl http2" if is_tls else "",
                                     tls=tls if is_tls else "",
                                     **more)
        (self.folder / "nginx.conf").write_text(NGINX.format(servers=servers, folder=self.folder))
        self._program("nginx",
                      [need("nginx"), "-p", str(self.folder), "-e",
                       f"{self.folder}/nginx-error.log", "-c",
                                str(self.folder / "nginx.conf")], ports["trap-https"])
        self.servers |= {name: Front(port, self.apart) for name, port in ports.items()}
        if self.apart:
            # no connect-to for these: the resolver has their names
            for v4, v6 in PUBLIC.values():
                for n, (at, port) in enumerate((at, port) for at in (v4, v6) for port in (80, 443)):
                    self.servers[
                        f"real-{'http' if port == 80 else 'https'}{'6' if n > 1 else ''}"] = Front(
                        ports["http" if port == 80 else "https"], self.apart, (at, port))

    def _start_sshd(self):
        port = free_port()
        for key in ("host_key", "client_key"):
            self._run(need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f",
                      self.folder / key)
        (self.folder / "sshd.conf").write_text(SSHD.format(port=port, folder=self.folder))
        self._program("sshd", [need("sshd"), "-D", "-e", "-f", str(self.folder / "sshd.conf")],
                      port)
        self.servers["sshd"] = Front(port, self.apart)

    def stop(self):
        for proc in self.programs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGTERM)
        for proc in self.programs:
            try:
                proc.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(proc.pid, signal.SIGKILL)
                proc.wait(5)
        for server in self.servers.values():
            server.stop()
        if hasattr(self, "dns"):
            self.dns.stop()
        if self.apart:
            self.apart.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _origin(self, server):
        """How the upstream proxy connects: it is outside the sandbox's namespace, as a company's
        proxy is."""
        behind = self.servers[server]
        if isinstance(behind, Front):
            return lambda: socket.create_connection(("127.0.0.1", behind.behind), 10)

        def served():
            ours, theirs = socket.socketpair()
            threading.Thread(target=lambda: behind.serve(behind, theirs), daemon=True).start()
            return ours
        return served

    # results for tests

    def names(self):
        """Returns "host:port" -> its server."""
        found = {}
        for name in ALLOWED:
            found |= {f"{name}:80": "http", f"{name}:443": "https"}
        for name in DENIED:
            found |= {f"{name}:80": "trap-http", f"{name}:443": "trap-https",
                      f"{name}:22": "trap-http",
                      f"{name}:9999": "trap-http"}
        return found | {"allowed.test:22": "sshd", "allowed.test:9999": "echo",
                        "raw.test:7000": "echo",
                        "raw.test:7001": "first", "raw.test:7002": "stopped",
                        "raw.test:7003": "source",
                        "raw.test:22": "sshd", "allowed.test:8443": "trap-https"}

    def connect_to(self):
        """Returns the entries of network.connect-to."""
        return [f"{name}=127.0.0.1:{self.servers[server].port}" for name,
                server in self.names().items()]

    def settings(self):
        return {"network.connect-to": ",".join(self.connect_to()), "network.extra-ca": str(self.ca)}

    def connections(self):
        """Returns server -> connections so far."""
        return {name: s.count for name, s in self.servers.items()}

    @contextlib.contextmanager
    def nobody_connects(self, *but):
        """Fails if a server other than those named got a connection meanwhile."""
        before = self.connections()
        yield
        time.sleep(0.1)  # an accept may be under way
        new = {n: c - before[n] for n,
               c in self.connections().items() if c != before[n] and n not in but}
        assert not new, f"connections that should not have been: {new}"

    def curl(self, url, *args, timeout=20):
        """curl on the host, to the name's address in this laboratory."""
        to = [arg for entry in self.connect_to()
              for arg in ("--connect-to", entry.replace("=", ":"))]
        return subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", str(timeout),
                               "--cacert", self.ca, *to, *args,
                               url], capture_output=True, text=True, check=False,
                              timeout=timeout + 10,
                              env={"PATH": SBIN})


@contextlib.contextmanager
def lab(apart=False):
    made = Lab(apart)
    try:
        made.start()
        yield made
    finally:
        made.stop()


if __name__ == "__main__":
    hold(int(sys.argv[1]), sys.argv[2])
