#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_sshd - a small SSH server on stdin and stdout that does what no sshd does.

usage:  hostile_sshd.py CASE KEY CERTIFICATE LOG

The host key and its certificate are those of OpenSSH. The server accepts every login. What the
client answers to the hostile messages of CASE is written to LOG. Run as the ProxyCommand of ssh.
"""
import base64
import hashlib
import hmac
import os
import struct
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ESC = b"\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b2J"
DISCONNECT, IGNORE, DEBUG, SERVICE_REQUEST, SERVICE_ACCEPT, EXT_INFO = 1, 2, 4, 5, 6, 7
KEXINIT, NEWKEYS, ECDH_INIT, ECDH_REPLY = 20, 21, 30, 31
AUTH_REQUEST, AUTH_FAILURE, AUTH_SUCCESS, AUTH_BANNER, AUTH_60 = 50, 51, 52, 53, 60
GLOBAL, GLOBAL_OK, GLOBAL_FAIL = 80, 81, 82
OPEN, OPEN_OK, OPEN_FAIL = 90, 91, 92
EOF, CLOSE, REQUEST, SUCCESS = 96, 97, 98, 99


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack(">I", len(s)) + s


def mpint(b):
    b = b.lstrip(b"\0") or b"\0"
    return text(b"\0" + b if b[0] & 0x80 else b)


def u32(n):
    return struct.pack(">I", n)


class Server:
    def __init__(self, case, key, cert, log):
        self.case, self.log = case, open(log, "a", encoding="ascii")
        with open(key, "rb") as f:
            self.key = serialization.load_ssh_private_key(f.read(), None)
        with open(cert, "rb") as f:
            self.blob = base64.b64decode(f.read().split()[1])
        self.n_in = self.n_out = 0
        self.decrypt = self.encrypt = self.mac_in = self.mac_out = None
        self.sent = False

    def note(self, words):
        self.log.write(words + "\n")
        self.log.flush()

    # packets

    def raw(self, data):
        while data:
            data = data[os.write(1, data):]

    def take(self, n):
        out = b""
        while len(out) < n:
            part = os.read(0, n - len(out))
            if not part:
                self.note("end")
                sys.exit(0)
            out += part
        return out

    def send(self, payload):
        block = 16 if self.encrypt else 8
        pad = block - (len(payload) + 5) % block
        pad += block if pad < 4 else 0
        packet = struct.pack(">IB", len(payload) + pad + 1, pad) + payload + bytes(pad)
        if self.encrypt:
            mac = hmac.new(self.mac_out, u32(self.n_out) + packet, hashlib.sha256).digest()
            packet = self.encrypt.update(packet) + mac
        self.n_out += 1
        self.raw(packet)

    def receive(self):
        if not self.decrypt:
            length, pad = struct.unpack(">IB", self.take(5))
            payload = self.take(length - 1)
        else:
            first = self.decrypt.update(self.take(16))
            length, pad = struct.unpack(">IB", first[:5])
            payload = first[5:] + self.decrypt.update(self.take(length + 4 - 16))
            self.take(32)
        self.n_in += 1
        return payload[:len(payload) - pad]

    # the handshake

    def identify(self):
        if self.case == "lines before the version":
            self.raw((ESC + b" welcome\r\n") * 500)
        version = {"version with escapes": b"SSH-2.0-" + ESC, "version 1": b"SSH-1.5-old",
                   "endless version": b"SSH-2.0-" + b"A" * 300000}.get(self.case, b"SSH-2.0-hostile")
        self.raw(version + b"\r\n")
        self.theirs = b""
        while not self.theirs.endswith(b"\n"):
            self.theirs += self.take(1)
        self.theirs, self.ours = self.theirs.rstrip(b"\r\n"), version

    def keys(self):
        mine = bytes([KEXINIT]) + os.urandom(16)
        name = self.blob[4:4 + struct.unpack(">I", self.blob[:4])[0]]
        for names in ("curve25519-sha256", name, "aes128-ctr", "aes128-ctr", "hmac-sha2-256",
                      "hmac-sha2-256", "none", "none", "", ""):
            mine += text(names)
        mine += bytes(5)
        self.send(mine)
        their = self.receive()
        if self.case == "a packet of 4 GiB":
            self.raw(b"\xff\xff\xff\xf0" + bytes(64))
        init = self.receive()
        peer = init[5:37]
        pair = x25519.X25519PrivateKey.generate()
        public = pair.public_key().public_bytes(serialization.Encoding.Raw,
                                                serialization.PublicFormat.Raw)
        shared = mpint(pair.exchange(x25519.X25519PublicKey.from_public_bytes(peer)))
        digest = hashlib.sha256(text(self.theirs) + text(self.ours) + text(their) + text(mine)
                                + text(self.blob) + text(peer) + text(public) + shared).digest()
        signature = self.key.sign(digest if self.case != "a wrong signature" else bytes(32))
        self.send(bytes([ECDH_REPLY]) + text(self.blob) + text(public)
                  + text(text("ssh-ed25519") + text(signature)))
        self.send(bytes([NEWKEYS]))

        def derive(letter):
            return hashlib.sha256(shared + digest + letter + digest).digest()
        while self.receive()[0] != NEWKEYS:
            pass
        self.encrypt = Cipher(algorithms.AES(derive(b"D")[:16]),
                              modes.CTR(derive(b"B")[:16])).encryptor()
        self.decrypt = Cipher(algorithms.AES(derive(b"C")[:16]),
                              modes.CTR(derive(b"A")[:16])).decryptor()
        self.mac_in, self.mac_out = derive(b"E"), derive(b"F")

    def log_in(self):
        self.receive()
        self.send(bytes([SERVICE_ACCEPT]) + text("ssh-userauth"))
        if self.case == "a disconnect with escapes":
            self.send(bytes([DISCONNECT]) + u32(2) + text(ESC + b"bye") + text(""))
        if self.case == "debug messages with escapes":
            self.send(bytes([DEBUG, 1]) + text(ESC) + text(""))
        if self.case == "a login banner with escapes":
            self.send(bytes([AUTH_BANNER]) + text(ESC + b"\r\nbanner\n") + text(""))
        if self.case == "a login banner of 200 kB":
            self.send(bytes([AUTH_BANNER]) + text(ESC * 10000) + text(""))
        while True:
            request = self.receive()
            if request[0] != AUTH_REQUEST:
                continue
            method = request[1:].split(b"ssh-connection", 1)[1]
            self.note("auth " + method[4:4 + method[3]].decode())
            if self.case == "only passwords":
                self.send(bytes([AUTH_FAILURE]) + text("password,keyboard-interactive") + b"\0")
            elif self.case == "a question without a request":
                self.send(bytes([AUTH_60]) + text("Password") + text("") + text("") + u32(1)
                          + text("Password of the host: ") + b"\0")
            elif b"publickey" not in method[:16]:
                self.send(bytes([AUTH_FAILURE]) + text("publickey") + b"\0")
            elif method[4 + 9] == 0:  # would this key do?
                rest = method[4 + 10:]
                self.send(bytes([AUTH_60]) + rest)
            else:
                self.send(bytes([AUTH_SUCCESS]))
                return

    # after the login

    def attack(self):
        """Sends the message of the case; the client answers in the loop of serve()."""
        def channel(kind, more=b""):
            return bytes([OPEN]) + text(kind) + u32(7) + u32(1 << 20) + u32(32768) + more
        where = text("127.0.0.1") + u32(int(os.environ["HOSTILE_PORT"]))
        message = {
            "open the agent": channel("auth-agent@openssh.com"),
            "open the display": channel("x11", where),
            "open a forwarded port": channel("forwarded-tcpip", where + where),
            "open a forwarded socket": channel("forwarded-streamlocal@openssh.com",
                                               text(os.environ["SSH_AUTH_SOCK"]) + text("")),
            "open a port of the host": channel("direct-tcpip", where + where),
            "open a session on the host": channel("session"),
            "open a tunnel": channel("tun@openssh.com", u32(1) + u32(0)),
            "listen on the host": bytes([GLOBAL]) + text("tcpip-forward") + b"\1"
                                  + text("127.0.0.1") + u32(int(os.environ["HOSTILE_LISTEN"])),
            "new host keys": bytes([GLOBAL]) + text("hostkeys-00@openssh.com") + b"\0" + text(
                text("ssh-ed25519") + text(self.key.public_key().public_bytes(
                    serialization.Encoding.Raw, serialization.PublicFormat.Raw))),
            "an unknown request": bytes([GLOBAL]) + text(ESC) + b"\1",
        }.get(self.case)
        if message:
            self.send(message)

    def serve(self):
        self.attack()
        peer = None
        while True:
            m = self.receive()
            if m[0] == OPEN:
                peer = m[1 + 4 + 7:1 + 4 + 7 + 4]
                self.send(bytes([OPEN_OK]) + peer + u32(0) + u32(1 << 20) + u32(32768))
            elif m[0] in (OPEN_OK, OPEN_FAIL, GLOBAL_OK, GLOBAL_FAIL):
                self.note({OPEN_OK: "opened", OPEN_FAIL: "refused", GLOBAL_OK: "accepted",
                           GLOBAL_FAIL: "refused"}[m[0]])
                if m[0] == OPEN_OK:
                    self.send(bytes([CLOSE]) + m[5:9])
            elif m[0] == REQUEST:
                size = struct.unpack(">I", m[5:9])[0]
                kind = m[9:9 + size].decode()
                self.note("request " + kind)
                if m[9 + size]:
                    self.send(bytes([SUCCESS]) + peer)
                if kind in ("exec", "shell"):
                    self.finish(peer)
            elif m[0] == GLOBAL and m[5:].find(b"keepalive") < 0:
                self.note("global " + m[5:5 + m[4]].decode("ascii", "replace"))
                self.send(bytes([GLOBAL_OK]))

    def finish(self, peer):
        if self.case == "an agent request on the session":
            self.send(bytes([REQUEST]) + peer + text("auth-agent-req@openssh.com") + b"\1")
        if self.case == "an exit signal with escapes":
            self.send(bytes([REQUEST]) + peer + text("exit-signal") + b"\0" + text(b"KILL" + ESC)
                      + b"\0" + text(ESC) + text(""))
        else:
            self.send(bytes([REQUEST]) + peer + text("exit-status") + b"\0" + u32(0))
        # the answers to the attack come before the client's end
        self.send(bytes([GLOBAL]) + text("last@sbx") + b"\1")
        self.send(bytes([EOF]) + peer)
        self.send(bytes([CLOSE]) + peer)


def main():
    server = Server(*sys.argv[1:5])
    server.identify()
    server.keys()
    server.log_in()
    server.note("in")
    server.serve()


main()
