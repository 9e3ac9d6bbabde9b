#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_own.py - the host's own addresses and its network need a rule that names them, even when they
are public.

In a namespace the host has public addresses and an on-link prefix, and servers listen on all of
them. Under a policy that allows everything, and behind an allowed name, not one byte may reach
them. Two of them are on no interface, but routes of the table `local`: connections to one come from
itself, those to the other from 127.0.0.1. Rules that name them open them, and a public address is
reached, so that the test could fail. The same rig shows that a deny without a port covers every
port. One JSON line.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

OWN4, OWN6, HIDDEN = "93.184.216.34", "2a00:1:2:3::99", "93.184.218.1"
ROUTED, LAN, PUBLIC = "93.184.219.1", "93.184.217.9", "8.8.8.8"
PORT = 5432
SETUP = (f"ip addr add {OWN4}/32 dev lo", f"ip addr add {OWN6}/128 dev lo",
         f"ip route add local {HIDDEN}/32 dev lo",
         f"ip route add local {ROUTED}/32 dev lo src 127.0.0.1",
         "ip route add 93.184.217.0/24 dev lo")
ALL = "allow network **:1-65535"


class Server:
    """Sends nothing, and keeps the received bytes."""

    def __init__(self):
        self.said = []
        self.listener = rig.Listener(PORT, self.talk)

    def talk(self, conn):
        data = conn.recv(100)
        if data:
            self.said.append(data)
            conn.sendall(b"reached")


def text(address):
    return f"[{address}]" if ":" in address else address


def reached(box, target, port=PORT):
    """Whether the server answers through a tunnel."""
    head, stream = box.connect(f"{target}:{port}")
    with stream:
        if b" 200 " not in head.split(b"\r\n")[0]:
            return False
        stream.send(b"\1hello")
        return stream.exactly(7) == b"reached"


def check(found, what, got, want):
    if got != want:
        found.append([what, got])


def here(found, server):
    """The names of the host: a rule with the name and the port, and nothing else, allows its
    loopback."""
    names = ("host.docker.internal", "gateway.docker.internal")
    count = len(server.said)
    for policy in (ALL, f"allow network *.docker.internal:{PORT},**.internal:{PORT}",
                   f"allow network 127.0.0.1:{PORT}", "allow network " + ",".join(names)):
        with rig.Rig([policy]) as box:
            for name in names:
                check(found, f"{name} by {policy}", reached(box, name), False)
    check(found, "bytes to the host", len(server.said) - count, 0)
    with rig.Rig([f"allow network {name}:{PORT}" for name in names]) as box:
        for name in names:
            check(found, f"{name} by its rule", reached(box, name), True)
            check(found, f"{name}, another port", reached(box, name, PORT + 1), False)
        with box.dns() as dns:
            check(found, "its address inside", bool(dns.lookup(names[0])), True)


def run():
    found, server, resolver = [], Server(), rig.Resolver({})
    inside = (OWN4, OWN6, HIDDEN, ROUTED, LAN)
    with rig.Rig([ALL], resolver="nameserver 192.0.2.53\n") as box:
        for address in inside:
            resolver.answers["name.test"] = [address]
            check(found, f"{address} under allow-all", reached(box, text(address)), False)
            check(found, f"name of {address}", reached(box, "name.test"), False)
        check(found, "bytes that came", len(server.said), 0)
        check(found, "a public address", reached(box, PUBLIC), True)
    with rig.Rig([f"allow network name.test:{PORT},93.184.0.0/16:{PORT}"],
                 resolver="nameserver 192.0.2.53\n") as box:
        for address in (OWN4, HIDDEN, ROUTED):
            resolver.answers["name.test"] = [address]
            check(found, f"{address} by a rule for its network", reached(box, "name.test"), False)
    count = len(server.said)
    with rig.Rig([f"allow network {text(a)}:{PORT}" for a in (OWN4, OWN6, HIDDEN, ROUTED)]
                 + [f"allow network 8.0.0.0/8:{PORT}"]) as box:
        for address in (OWN4, OWN6, HIDDEN, ROUTED, PUBLIC):
            check(found, f"{address} by its rule", reached(box, text(address)), True)
    check(found, "bytes by rules", len(server.said) - count, 5)
    with rig.Rig([ALL, f"deny network {PUBLIC}", "deny network name.test"],
                 resolver="nameserver 192.0.2.53\n") as box:
        resolver.answers["name.test"], resolver.answers["other.test"] = [PUBLIC], ["8.8.4.4"]
        for port in (1, 22, 80, 443, PORT, 10000, 65535):
            check(found, f"denied, port {port}",
                  reached(box, PUBLIC, port) or reached(box, "name.test", port), False)
        check(found, "not denied", reached(box, "other.test"), True)
    here(found, server)
    print(json.dumps({"id": "own-addresses", "addresses": len(inside), "wrong": found,
                      "ok": not found}))
    return 1 if found else 0


if __name__ == "__main__":
    rig.namespace()
    for line in SETUP:
        subprocess.run(line.split(), check=True)
    sys.exit(run())
