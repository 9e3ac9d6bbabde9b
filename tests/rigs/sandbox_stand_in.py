#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A keeper and its guest without a VM, so that sbx and sbxd can be tested where none can run.

Speaks the keeper channel of lib/os/ipc/keeper_chan.h to the real sbxd, and PROTOCOL.exec to the
real sbx: commands run on this machine. Written from proto/ alone, so that it also tests that page.
The sandbox's env MODE makes it misbehave: mute, garbage, lost, escape, fail (with the reason WHY).
MODE slow: it never starts. MODE late: it needs two seconds. MODE talks: its session agent can be
queried. MODE floods, MODE empty: the response to that query has no end. MODE machine: it is also
the machine, with memory and a file of its template open, as qemu has them. MODE idle: it is
suspended when it is stopped, and cannot resume. HOLDS is a list of requests that
wait for approval, as JSON; answers are written to the file answers. SESSIONS is a list of [NAME,
FLAGS, STATUS]. PORT plays the ports of the guest for callbacks."""
import array
import errno
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

HELLO, STATE, PING, STREAM, STOP, STATS, DONE, STATS_IS, RELOAD, SUSPEND, FREEZE, FROZEN = range(
    1, 13)
MEMORY, SUSPEND_IDLE = 19, 20
HELD, UNHELD, ANSWER = 22, 23, 24
SPEC, STDIN, STDIN_EOF, RESIZE, SIGNAL = range(1, 6)
STARTED, STDOUT, STDERR, EXIT, ERROR = range(16, 21)
HOME = os.environ.get("XDG_STATE_HOME", "") + "/agent-home"
RUN = os.environ.get("XDG_STATE_HOME", "") + "/sbx-prove"
ATTACH, ATTACHED, TAKEN, REPLAY, TAKEN_STEP = 6, 21, 22, 24, 32768
BUILTIN = os.environ.get("XDG_STATE_HOME", "") + "/guest_builtin"


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<H", len(b)) + b


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, n):
        assert len(self.data) >= n
        out, self.data = self.data[:n], self.data[n:]
        return out

    def num(self, fmt):
        return struct.unpack("<" + fmt, self.take(struct.calcsize("<" + fmt)))[0]

    def str(self):
        return self.take(self.num("H"))

    def strs(self):
        return [self.str() for _ in range(self.num("H"))]


class Exec:
    """One stream."""

    def __init__(self, sock, mode, env):
        self.sock, self.mode, self.env = sock, mode, env
        self.lock = threading.Lock()

    def send(self, kind, payload=b""):
        with self.lock:
            for i in range(0, max(len(payload), 1), 65536):
                part = payload[i:i + 65536]
                self.sock.sendall(bytes([kind]) + len(part).to_bytes(3, "little") + part)

    def frame(self):
        head = self.read(4)
        return head[0], self.read(int.from_bytes(head[1:], "little"))

    def read(self, n):
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def run(self):
        try:
            kind, payload = self.frame()
            if kind == ATTACH and payload[0] == 2 and self.mode in ("floods", "empty"):
                self.flood(b"x" * 60000 if self.mode == "floods" else b"")
                return
            if kind == ATTACH and payload[0] == 2 and self.mode == "talks":
                self.look(int.from_bytes(payload[21:29], "little"))
                return
            if kind == ATTACH:
                self.send(ERROR, b"\x01session not found")
                return
            assert kind == SPEC
            self.serve(Reader(payload))
        except (EOFError, OSError):
            pass
        finally:
            self.sock.close()

    def look(self, at):
        """A session that has printed two texts, and has exited before the request for the second."""
        said = [b"\x1b[31mfirst\x1b[0m \x1b]0;owned\x07line\r\n",
                b"second \xe2\x80\xaeline\r\nno newline"]
        done = min(at // 100, 1)
        self.send(ATTACHED,
                  struct.pack("<IBQQQQ", 1, 1 | (8 if at else 0), 0, 100 * (done + 1),
                              len(said[done]), 0))
        self.send(REPLAY, said[done])

    def flood(self, piece):
        self.send(ATTACHED, struct.pack("<IBQQQQ", 1, 1, 0, 100, (1 << 64) - 1 if piece else 1, 0))
        while True:
            self.send(REPLAY, piece)

    def serve(self, r):
        flags, rows, cols = r.num("B"), r.num("H"), r.num("H")
        user, cwd, argv, extra = r.str(), r.str(), r.strs(), r.strs()
        if flags & 16:
            r.data = r.data[16:]  # the token: no client reattaches to a simulated session
        if flags & 32:
            r.str()
        assert not r.data, "bytes after the SPEC"
        if self.mode == "mute":
            signal.pause()
        if self.mode == "garbage":
            self.sock.sendall(b"\xff" * 64)
            return
        env = dict(os.environ, **self.env, SBX_USER=user.decode())
        for pair in extra:
            name, _, value = pair.decode().partition("=")
            env[name] = value
        argv = [word.replace(b"/home/agent",
                             os.fsencode(HOME)).replace(b"/run/sbx-prove-", os.fsencode(RUN) + b"-")
                for word in argv]
        if flags & 8:
            argv = [os.fsencode(BUILTIN)] + argv
        if self.mode == "escape":
            self.send(ERROR, b"\x7f\x1b]0;owned\x07no")
            return
        try:
            self.spawn(flags, rows, cols, argv, env, os.fsdecode(cwd) or self.env.get("HOME", "/"))
        except FileNotFoundError:
            self.send(ERROR, bytes([127]) + argv[0] + b": not found")

    def spawn(self, flags, rows, cols, argv, env, cwd):
        tty = flags & 1
        if tty:
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            p = subprocess.Popen(argv, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
                                 start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(slave)
            outs, stdin = {master: STDOUT}, master
        else:
            sink = subprocess.DEVNULL if flags & 2 else subprocess.PIPE
            p = subprocess.Popen(argv, env=env, cwd=cwd, stdout=sink, stderr=sink,
                                 stdin=subprocess.PIPE if flags & 4 else subprocess.DEVNULL,
                                 start_new_session=True)
            outs = {} if flags & 2 else {p.stdout.fileno(): STDOUT, p.stderr.fileno(): STDERR}
            stdin = p.stdin.fileno() if p.stdin else -1
        self.send(STARTED, struct.pack("<I", p.pid))
        if self.mode == "lost":
            p.kill()
            self.sock.shutdown(socket.SHUT_RDWR)
            return
        threading.Thread(target=self.listen, args=(p, stdin, tty, flags & 2), daemon=True).start()
        self.pump(outs)
        code = p.wait()
        self.send(EXIT, bytes([1, -code]) if code < 0 else bytes([0, code]))

    def pump(self, outs):
        outs = dict(outs)
        while outs:
            for fd in select.select(list(outs), [], [])[0]:
                try:
                    data = os.read(fd, 32768)
                except OSError:
                    data = b""
                if data:
                    self.send(outs[fd], data)
                else:
                    del outs[fd]

    def listen(self, p, stdin, tty, detached):
        taken = told = 0
        try:
            while True:
                kind, payload = self.frame()
                if kind == STDIN:
                    taken += len(payload)
                    if taken - told >= TAKEN_STEP:
                        told = taken
                        self.send(TAKEN, struct.pack("<Q", taken))
                    try:
                        while payload:
                            payload = payload[os.write(stdin, payload):]
                    except OSError:
                        pass
                elif kind == STDIN_EOF:
                    os.write(stdin, b"\x04") if tty else p.stdin.close()
                elif kind == RESIZE:
                    rows, cols = struct.unpack("<HH", payload)
                    fcntl.ioctl(stdin, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                elif kind == SIGNAL:
                    os.killpg(p.pid, payload[0])
        except (EOFError, OSError):
            if not detached and p.poll() is None:
                os.killpg(p.pid, signal.SIGHUP)


class Keeper:
    def __init__(self, ident):
        self.id = ident
        self.sandbox = os.path.join(os.environ["XDG_STATE_HOME"], "sbx/sandboxes", ident)
        with open(os.path.join(os.environ["XDG_STATE_HOME"], "sbx/specs", ident, "spec.json")) as f:
            self.env = json.load(f).get("env", {})
        self.lockfile = open(self.sandbox + "/lock", "w")
        fcntl.flock(self.lockfile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.chan = socket.socket(fileno=3)
        self.chan.setblocking(True)
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], "sbx/s", ident, "keeper.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(4)
        self.holds = json.loads(self.env.get("HOLDS", "[]"))
        self.sessions = json.loads(self.env.get("SESSIONS", "[]"))
        self.qemu_pid = 0
        self.cold_why = "the snapshot is corrupt" if os.path.exists(self.sandbox
                                                                    + "/suspend") else ""
        shutil.rmtree(self.sandbox + "/suspend", ignore_errors=True)
        if self.env.get("MODE") == "machine":
            self.qemu_pid = os.getpid()
            self.memory = os.memfd_create("memory-backend-memfd")
            os.write(self.memory, bytes(4096))
            self.base = open(os.path.join(os.environ["XDG_DATA_HOME"],
                                          "sbx/templates/debian/root.img"), "rb")

    def say(self, kind, ident, body):
        self.chan.send(struct.pack("<HHII", kind, 0, ident, len(body)) + body)

    def state(self, phase, progress=0, why="", ident=0):
        self.say(STATE, ident,
                 struct.pack("<BBIIIB", phase, progress, len(self.sessions), 7,
                             self.qemu_pid, 0) + text("tcg") + text(why)
                 + struct.pack("<BBB", 0, 0,
                               os.path.exists(os.path.join(self.sandbox, "paused")))
                 + text(self.cold_why) + struct.pack("<QQ", *self.net()))

    def net(self):
        """Bytes sent and received: the numbers in the file `net`."""
        try:
            with open(os.path.join(self.sandbox, "net")) as f:
                return [int(word) for word in f.read().split()]
        except FileNotFoundError:
            return [0, 0]

    def freeze(self, ident, label, memory):
        """Makes the next layers; MODE full: there are too many. The memory is not complete."""
        full = self.env.get("MODE") == "full"
        numbers = [int(n.split(".")[1]) for n in os.listdir(self.sandbox)
                   if re.fullmatch(r"root\.\d+\.qcow2", n)]
        last = max(numbers, default=0) + 1
        for disk in () if full else ("root", "docker"):
            with open(f"{self.sandbox}/{disk}.{last}.qcow2", "wb") as f:
                f.write(bytes(4096))
        if memory:
            os.makedirs(f"{self.sandbox}/memory.7", exist_ok=True)
            with open(f"{self.sandbox}/memory.7/image.json", "w") as f:
                f.write("{}")
        self.say(FROZEN, ident,
                 struct.pack("<iHHQI", -errno.EMLINK if full else 0, last, last, 7, 31)
                 + text(label) + text("the disks have too many layers" if full else ""))

    def suspend(self):
        os.mkdir(self.sandbox + "/suspend")
        for name, content in (("memory", "x" * 8192), ("by", "stop"), ("image.json", "{}")):
            with open(f"{self.sandbox}/suspend/{name}", "w") as f:
                f.write(content)

    def held(self, place):
        """State 0 of a hold: it is not there any more."""
        h = self.holds[place]
        if h.get("state", 1) == 0:
            self.say(UNHELD, place, b"")
            return
        self.say(HELD, place, text(h["id"]) + struct.pack("<BBQQI", h.get("kind", 0),
                                                          h.get("state", 1), 1000,
                                                          h.get("left", 600000), 1)
                 + hashlib.sha256(h["effects"].encode()).digest()
                 + b"".join(text(h.get(k, "")) for k in ("effects", "rule", "preview")))

    def answer(self, ident, r):
        """As the keeper: of two answers, the first counts. The reason `vanish` removes the hold."""
        name, digest, choice = r.str().decode(), r.take(32), r.num("B")
        seconds, uid = r.num("I"), r.num("I")
        where, reason = r.str().decode(), r.str().decode()
        with open(self.sandbox + "/answers", "a") as f:
            print(json.dumps([name, choice, uid, where, reason, seconds]), file=f)
        code = -errno.ENOENT
        for place, h in enumerate(self.holds):
            if h["id"] != name or h.get("state", 1) == 0:
                continue
            code = (-errno.ESTALE if hashlib.sha256(h["effects"].encode()).digest() != digest else
                    -errno.ECANCELED if h.get("state", 1) == 4 else
                    -errno.EALREADY if h.get("state", 1) != 1 else
                    -errno.EINVAL if choice and (choice == 4) != h.get("kind", 0) else 0)
            if code == 0:
                h["state"] = 0 if reason == "vanish" or choice == 4 else 2 if choice else 3
                if choice == 3:
                    h["left"] = (1 << 64) - 1  # without end
                self.held(place)
        self.say(DONE, ident, struct.pack("<i", code) + text("no" if code else ""))

    def tcp(self, sock, path):
        """A port of the guest: PORT is the one of this machine that plays it."""
        with open(self.sandbox + "/dialed", "a") as f:
            print(path, file=f)
        try:
            guest = socket.create_connection(("127.0.0.1", int(self.env["PORT"])), 60)
        except OSError:
            sock.close()
            return
        with sock, guest:
            guest.sendall(sock.recv(65536))
            while data := guest.recv(65536):
                sock.sendall(data)

    def hello(self):
        self.say(HELLO, 0,
                 text(open(os.path.join(os.environ["SBX_LIBEXEC"], "version")).read())
                 + text(self.id) + struct.pack("<I", os.getpid()))

    def adopted(self):
        """sbxd exited; the next sbxd finds this keeper."""
        self.chan.close()
        self.chan = self.listener.accept()[0]
        self.hello()
        self.state(1, 100)
        for place in range(len(self.holds)):
            self.held(place)

    def run(self):
        self.hello()
        self.state(0, 50, "booting")
        if self.env.get("MODE") == "fail":
            why = self.env.get("WHY", "the kernel did not start")
            with open(self.sandbox + "/last", "w") as f:
                f.write(why + "\n")
            self.state(3, 0, why)
            return
        if self.env.get("MODE") == "late":
            time.sleep(2)
        up = int(self.env.get("MODE") != "slow")
        self.state(up, 100 * up, "" if up else "booting")
        for place in range(len(self.holds)):
            self.held(place)
        while True:
            data, fds, _, _ = socket.recv_fds(self.chan, 20000, 4)
            if not data:
                self.adopted()
                continue
            kind, _, ident, _ = struct.unpack("<HHII", data[:12])
            if kind == PING:
                self.state(up, 100 * up, ident=ident)
            elif kind == STREAM:
                sock = socket.socket(fileno=fds[0])
                sock.setblocking(True)
                path = Reader(data[12:]).str().decode()
                self.say(DONE, ident, struct.pack("<I", 0) + text(""))
                if path.startswith("/tcp/"):
                    threading.Thread(target=self.tcp, args=(sock, path), daemon=True).start()
                    continue
                threading.Thread(target=Exec(sock, self.env.get("MODE", ""), self.env).run,
                                 daemon=True).start()
            elif kind == RELOAD:
                with open(self.sandbox + "/reloads", "a") as f:
                    f.write(Reader(data[12:]).str().decode() + "\n")
                self.say(DONE, ident, struct.pack("<I", 0) + text(""))
            elif kind == STATS:
                kept = self.sessions
                self.say(STATS_IS, ident, bytes(68) + struct.pack("<H", len(kept)) + b"".join(
                    text(name) + struct.pack("<BB", flags, value) for name, flags, value in kept))
            elif kind == ANSWER:
                self.answer(ident, Reader(data[12:]))
            elif kind in (FREEZE, MEMORY):
                self.freeze(ident, Reader(data[12:]).str(), kind == MEMORY)
            elif kind in (SUSPEND, SUSPEND_IDLE) and self.env.get("MODE") == "idle":
                self.suspend()
                self.say(DONE, ident, struct.pack("<I", 0) + text(""))
                self.state(3)
                return
            elif kind == SUSPEND_IDLE:
                self.say(DONE, ident, struct.pack("<i", -errno.EBUSY) + text("it is in use"))
            elif kind == STOP:
                self.state(2)
                self.say(DONE, ident, struct.pack("<I", 0) + text(""))
                self.state(3)
                return


if __name__ == "__main__":
    if sys.argv[1] == "--merge":
        sys.exit(0)
    assert sys.argv[1] == "--id"
    Keeper(sys.argv[2]).run()
    os._exit(0)
