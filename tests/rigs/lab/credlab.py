# SPDX-License-Identifier: Apache-2.0
"""Real servers on loopback for the tests of credentials. Each requires a credential and reports the
received one.

    with Lab(folder) as lab:
        origin = lab.origin()                 # Node's HTTP/1.1 and HTTP/2 server: origin.mjs
        git = lab.git("token")                # git http-backend behind Basic
        registry = lab.registry("me", "pw")   # docker-registry with htpasswd
        npm = lab.npm()                       # verdaccio
        s3 = lab.s3()                         # s3rver: checks the key's id, but not SigV4

sigv4_server.py checks SigV4.

`lab.ca` is the CA that signed them all (setting network.extra-ca); the caller sets
`NAME:443=127.0.0.1:PORT` in network.connect-to. tools/setup --test installs the programs,
`npm_folder` those from npm.
"""
import base64
import collections
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com",
         "api.github.com", "github.com",
         "api.groq.com", "s3.us-east-1.amazonaws.com", "*.s3.us-east-1.amazonaws.com", "api.test",
         "*.api.test",
         "git.test", "registry.test", "npm.test", "s3.test", "evil.test", "plain.test", "bare.test",
         "platform.claude.com", "mcp-proxy.anthropic.com", "claude.ai", "auth.openai.com",
         "chatgpt.com", "accounts.google.com", "oauth2.googleapis.com",
         "cloudcode-pa.googleapis.com")
WAIT = 20


def need(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    assert path, f"no {program} on this host\n  try: tools/setup --test"
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, process, seconds=WAIT):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < end, f"connection refused: port {port} after {seconds} s"
            time.sleep(0.05)


def npm_folder(names=HERE / "package.json", after=()):
    """node_modules with the packages of a package.json, in the user's cache: created once. `after`
    are scripts in it that node runs then."""
    import hashlib
    text = names.read_text()
    folder = pathlib.Path.home() / ".cache" / "sbx-lab" / hashlib.sha256(text.encode()).hexdigest()[
        :12]
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(text)
        subprocess.run([need("npm"), "install", "--no-audit", "--no-fund", "--ignore-scripts"],
                       cwd=folder, check=True, timeout=400,
                       stdin=subprocess.DEVNULL, capture_output=True)
        for script in after:
            subprocess.run([need("node"), folder / "node_modules" / script],
                           cwd=(folder / "node_modules" / script).parent, check=True, timeout=60,
                           stdin=subprocess.DEVNULL, capture_output=True)
        (folder / "done").touch()
    return folder / "node_modules"


def openssl(*argv, cwd):
    subprocess.run([need("openssl"), *map(str, argv)], cwd=cwd, check=True, capture_output=True,
                   timeout=30)


class Ca:
    """A CA and, by `leaf`, its certificates."""

    def __init__(self, folder, name="lab"):
        self.folder, self.name = folder, name
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out",
                f"{name}.pem", "-subj", f"/CN=sbx test {name}", "-days", "2", "-addext",
                "basicConstraints=critical,CA:TRUE", cwd=folder)
        self.pem = folder / f"{name}.pem"

    def leaf(self, label, names, days=2):
        alt = ",".join(f"IP:{n}" if n[0].isdigit() else f"DNS:{n}" for n in names)
        (self.folder
         / f"{label}.ext").write_text(f"subjectAltName={alt}\nextendedKeyUsage=serverAuth\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                f"{label}.key", "-out", f"{label}.csr",
                "-subj", "/CN=leaf", cwd=self.folder)
        openssl("x509", "-req", "-in", f"{label}.csr", "-CA", self.pem, "-CAkey",
                f"{self.name}.key", "-CAcreateserial", "-days", str(days),
                "-extfile", f"{label}.ext", "-out", f"{label}.pem", cwd=self.folder)
        return self.folder / f"{label}.pem", self.folder / f"{label}.key"


class Program:
    """A server that is a separate program."""

    def __init__(self, argv, log, env=None, cwd=None):
        self.log = open(log, "wb")
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, cwd=cwd,
                                        env={**os.environ, **(env or {})}, start_new_session=True)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Origin:
    """origin.mjs, or another with the same reports; `requests` has the received requests in order.
    """

    def __init__(self, cert, key, program="origin.mjs", more=(), env=None):
        self.process = subprocess.Popen([need("node"), HERE / program, cert, key, *more],
                                        env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE)
        self.requests, self.faults, self.came = [], [], threading.Condition()
        self.port = json.loads(self.process.stdout.readline())["port"]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            what = json.loads(line)
            with self.came:
                (self.requests if "method" in what else self.faults).append(what)
                self.came.notify_all()

    def wait(self, path, n=1, seconds=WAIT):
        """Returns the first n requests with this path."""
        with self.came:
            def found():
                return [r for r in self.requests if r["path"].split("?")[0] == path]
            assert self.came.wait_for(lambda: len(found()) >= n, seconds), (
                f"{path}: {len(found())} of {n} requests came")
            return found()

    def clear(self):
        with self.came:
            self.requests.clear()

    @staticmethod
    def header(request, name):
        """Returns all values of a header."""
        return [value for key, value in request["headers"] if key == name]

    def stop(self):
        self.process.kill()
        self.process.wait()


class GitServer(http.server.ThreadingHTTPServer):
    """git http-backend over TLS; without the right password it returns 401. `users` counts the
    users, `pushes` has the contents of git-receive-pack in their order."""
    daemon_threads = True

    def __init__(self, folder, cert, key, token, user="x-access-token"):
        self.root, self.users = folder / "repositories", collections.Counter()
        self.pushes = []
        self.want = "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()
        self.root.mkdir()
        super().__init__(("127.0.0.1", 0), GitHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.socket = context.wrap_socket(self.socket, server_side=True,
                                          do_handshake_on_connect=False)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def make(self, name):
        path = self.root / name
        subprocess.run(["git", "init", "-q", "--bare", path], check=True)
        subprocess.run(["git", "-C", path, "config", "http.receivepack", "true"], check=True)
        return path

    def stop(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass


class GitHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while n := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(n)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _serve(self):
        body, said = self._body(), self.headers.get("Authorization", "")
        self.server.users[said] += 1
        if said != self.server.want:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="lab"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        if path.endswith("/git-receive-pack"):
            self.server.pushes.append(body)
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.server.root),
               "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
               "PATH_INFO": path, "QUERY_STRING": query,
               "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)),
               "REMOTE_USER": "lab", "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True,
                              timeout=60, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve


REGISTRY = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}/data}}}}
http: {{addr: "127.0.0.1:{port}", tls: {{certificate: {cert}, key: {key}}}}}
auth: {{htpasswd: {{realm: lab, path: {folder}/htpasswd}}}}
log: {{level: warn}}
"""
VERDACCIO = """
storage: {folder}/storage
auth: {{htpasswd: {{file: {folder}/htpasswd, max_users: 10}}}}
packages: {{"**": {{access: {access}, publish: $authenticated}}}}
listen: https://127.0.0.1:{port}/
https: {{key: {key}, cert: {cert}}}
log: {{type: stdout, format: json, level: http}}
"""


class Lab:
    def __init__(self, folder, names=NAMES):
        self.folder = pathlib.Path(folder)
        self.stack = contextlib.ExitStack()
        self.ca = Ca(self.folder)
        self.cert, self.key = self.ca.leaf("leaf", names)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _keep(self, server):
        self.stack.callback(server.stop)
        return server

    def origin(self, cert=None, key=None, tokens="token"):
        """`tokens` is the prefix of the tokens that it issues."""
        return self._keep(Origin(cert or self.cert, key or self.key, env={"LAB_TOKENS": tokens}))

    def provider(self, answer, work=None):
        """provider.mjs: three model APIs that answer every request with `answer`; `work` (file,
        old, new, command) is done before."""
        return self._keep(Origin(self.cert, self.key, "provider.mjs",
                                 [answer, *(["0", json.dumps(work)] if work else [])]))

    def git(self, token, user="x-access-token"):
        return self._keep(GitServer(self.folder, self.cert, self.key, token, user))

    def _folder(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def registry(self, user, password):
        folder, port = self._folder("registry"), free_port()
        done = subprocess.run([need("htpasswd"), "-nbB", user, password], capture_output=True,
                              text=True, check=True)
        (folder / "htpasswd").write_text(done.stdout.strip() + "\n")
        (folder / "config.yml").write_text(REGISTRY.format(folder=folder, port=port, cert=self.cert,
                                                           key=self.key))
        server = self._keep(Program([need("docker-registry"), "serve", folder / "config.yml"],
                                    folder / "log"))
        server.port = port
        wait_port(port, server.process)
        return server

    def npm(self, access="$authenticated"):
        """verdaccio; `token` of one user that is created here. access: who may read."""
        folder, port = self._folder("npm"), free_port()
        (folder / "config.yml").write_text(VERDACCIO.format(folder=folder, port=port,
                                                            cert=self.cert, key=self.key,
                                                            access=access))
        server = self._keep(Program([need("node"), npm_folder() / "verdaccio" / "bin" / "verdaccio",
                                     "--config", folder / "config.yml"],
                                    folder / "log", cwd=folder))
        server.port = port
        wait_port(port, server.process, 60)
        server.token = self._npm_token(port)
        return server

    def _put(self, port, path, body, token=None):
        import urllib.request
        context = ssl.create_default_context(cafile=str(self.ca.pem))
        context.check_hostname = False
        headers = {"Content-Type": "application/json",
                   **({"Authorization": f"Bearer {token}"} if token else {})}
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}",
                                         json.dumps(body).encode(), headers, method="PUT")
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return json.load(answer)

    def _npm_token(self, port):
        return self._put(port, "/-/user/org.couchdb.user:lab",
                         {"name": "lab", "password": "laboratory1"})["token"]

    def npm_publish(self, server, name, version, files, **more):
        """The body of `npm publish`: a package with these files (name -> text)."""
        import hashlib
        import io
        import tarfile
        meta = {"name": name, "version": version, **more}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path, text in {"package.json": json.dumps(meta), **files}.items():
                info = tarfile.TarInfo(f"package/{path}")
                info.size, info.mode = len(text.encode()), 0o755
                tar.addfile(info, io.BytesIO(text.encode()))
        data, at = packed.getvalue(), f"{name}-{version}.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": f"https://npm.test/{name}/-/{at}",
                "shasum": hashlib.sha1(data).hexdigest(), "integrity": integrity}
        self._put(server.port, f"/{name}", {
            "_id": name, "name": name, "dist-tags": {"latest": version},
            "versions": {version: {**meta, "_id": f"{name}@{version}", "dist": dist}},
            "_attachments": {at: {"content_type": "application/octet-stream",
                                  "data": base64.b64encode(data).decode(), "length": len(data)}}},
                  server.token)
        return integrity

    def s3(self):
        """s3rver: its key is S3RVER, its secret S3RVER. It rejects other ids, but does not
        calculate SigV4."""
        folder, port = self._folder("s3"), free_port()
        server = self._keep(Program([need("node"), npm_folder() / "s3rver" / "bin" / "s3rver.js",
                                     "-d", folder, "-a", "127.0.0.1", "-p", port,
                                     "--key", self.key, "--cert", self.cert, "--configure-bucket",
                                     "lab"], folder / "log"))
        server.port = port
        wait_port(port, server.process, 30)
        return server
