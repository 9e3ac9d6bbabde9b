#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the targets `ssh_agent_chan` and `sshagent` below fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus"


def text(s):
    return struct.pack("<H", len(s)) + s


def packet(kind, body=b"", fd=0, ident=0):
    return bytes([fd]) + struct.pack("<HHII", kind, 0, ident, len(body)) + body


def blob(s):
    return struct.pack(">I", len(s)) + s


ssh_agent_chan = {
    "hello": packet(1, text(b"0.1.0")),
    "config": packet(2, b"\2" + text(b"SHA256:abc") + text(b"me@example.com"), 1),
    "config_all": packet(2, b"\0", 1),
    "config_empty_rule": packet(2, b"\1" + text(b""), 1),
    "open": packet(3, b"", 1, 1),
    "closed": packet(4, b"", 0, 1),
    "ask": packet(5, b"\0" + text(b"SHA256:abc") + text(b"me@example.com") + text(b"git"), 0, 2),
    "ask_control_character": packet(5, b"\1" + text(b"SHA256:abc") + text(b"\x1b[2J") + text(b""),
                                    0, 2),
    "verdict": packet(6, b"\1", 0, 2),
}
KEY = blob(b"ssh-ed25519") + blob(b"k" * 32)
LOGIN = blob(b"session") + b"\x32" + blob(b"git") + blob(b"ssh-connection") + blob(
    b"publickey") + b"\1" + \
    blob(b"ssh-ed25519") + blob(b"key")
sshagent = {
    "list": b"\0\x0b",
    "sign": b"\0\x0d" + blob(KEY) + blob(LOGIN) + struct.pack(">I", 4),
    "sign_cut": b"\0\x0d" + blob(KEY) + blob(LOGIN)[:-3],
    "add": b"\0\x11" + blob(b"ssh-ed25519"),
    "extension": b"\0\x1b" + blob(b"session-bind@openssh.com"),
    "answer": b"\1\x0c" + struct.pack(">I",
                                      2) + blob(KEY) + blob(b"me@example.com") + blob(b"ssh")
    + blob(b""),
    "answer_cut": b"\1\x0c" + struct.pack(">I", 3) + blob(KEY) + blob(b"me@example.com"),
    "answer_many": b"\1\x0c\xff\xff\xff\xff",
    "login": b"\2" + LOGIN,
    "login_bound": b"\2" + LOGIN.replace(blob(b"publickey"),
                                         blob(b"publickey-hostbound-v00@openssh.com"))
    + blob(b"host"),
    "file": b"\2SSHSIG" + blob(b"git") + blob(b"") + blob(b"sha512") + blob(b"h" * 64),
    "signed": b"\3\x0e" + blob(b"signature"),
    "failure": b"\3\x05",
}
for name, entries in (("ssh_agent_chan", ssh_agent_chan), ("sshagent", sshagent)):
    folder = corpus / name
    folder.mkdir(parents=True, exist_ok=True)
    for key, data in entries.items():
        (folder / key).write_bytes(data)
