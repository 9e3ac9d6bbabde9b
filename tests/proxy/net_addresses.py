#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_addresses.py [--n 500] [--seed 1] - forbidden addresses in every spelling: not one connection
is tried.

Forty addresses that no rule names (loopback, private, link-local, metadata, ...) are spelled in the
ways that parsers have disagreed about, and sent as CONNECT, as an absolute URL, as Host, as a
caught connection, and as the resolver's answer for a name. The policy allows every host, so only
the class of the address is a reason to deny. In the namespace every address is local and a server
accepts on the ports, and nft counts what opens a connection. Then a public address is connected to,
so that the counters are known to count. One JSON line.
"""
import argparse
import ipaddress
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

FORBIDDEN = """127.0.0.1 127.0.0.53 127.255.255.254 10.0.0.1 10.255.255.254 172.16.0.1
172.31.255.254 192.168.0.1 192.168.255.254 169.254.169.254 169.254.170.2 169.254.0.1
100.64.0.1 100.100.100.200 100.127.255.254 0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.250 240.0.0.1
255.255.255.255 198.18.0.1 198.19.255.254 192.0.2.1 198.51.100.1 203.0.113.1 192.0.0.8
168.63.129.16 ::1 :: fe80::1 fe80::a9fe:a9fe fc00::1 fd00:ec2::254 fd5b:7862:19d3:1::1 ff02::1
ff05::2 fec0::1 2001:db8::1 100::1""".split()
PUBLIC = "93.184.216.34"
WIDE = {ord(str(d)): 0xff10 + d for d in range(10)}
CIRCLED = {ord(str(d)): 0x2460 + d - 1 for d in range(1, 10)}


def number(rng, v):
    form = rng.randrange(6)
    text = (str(v), f"0{v:o}", f"0x{v:x}", f"0X{v:02X}", f"0x{'0' * rng.randrange(1, 9)}{v:x}",
            f"{'0' * rng.randrange(1, 4)}{v:o}" if v else "00")[form]
    return text


def spell_v4(rng, a):
    v = int(a)
    b = a.packed
    parts = {1: [v], 2: [b[0], v & 0xffffff], 3: [b[0], b[1], v & 0xffff],
             4: list(b)}[rng.choice((1, 2, 3, 4, 4))]
    text = ".".join(number(rng, p) for p in parts)
    how = rng.randrange(12)
    if how == 0:
        return str(a).translate(WIDE)
    if how == 1:
        return str(a).replace(".", rng.choice("\u3002\uff0e\uff61"))
    if how == 2:
        return str(a).translate(CIRCLED)
    if how == 3:
        return text + "."
    if how == 4:
        return str(a) + rng.choice(["..", "%00", "%2e", "\0", " ", "\t", "#", "@" + PUBLIC, ":80"])
    if how == 5:
        return "".join(f"%{ord(c):02x}" if rng.random() < 0.3 else c for c in str(a))
    if how == 6:
        return f"[{a}]"
    if how == 7:
        return str(v + (1 << 32))  # too large: some parsers cut it
    return text


def embed(rng, a):
    """An IPv6 address that carries this IPv4 address."""
    v = int(a)
    ways = [0xffff << 32 | v, v, 0x64ff9b << 96 | v, 0x64ff9b0001 << 80 | v,
            0x2002 << 112 | v << 80,
            0x2002 << 112 | v << 80 | 1, 0x20010000 << 96 | 0x5db8d822 << 64 | (v ^ 0xffffffff),
            0x20010000 << 96 | v << 64 | 0xa24727dd, 0xfe80 << 112 | 0x5efe << 32 | v,
            0xfe80 << 112 | 0x02005efe << 32 | v,
            0x26064700 << 96 | 0x5efe << 32 | v, 0xffff0000 << 16 | v]
    return ipaddress.IPv6Address(rng.choice(ways))


def spell_v6(rng, a):
    low = int(a) & 0xffffffff
    dotted = str(ipaddress.IPv4Address(low))
    high = str(ipaddress.IPv6Address(int(a) >> 32 << 32 | 0x10001)).rsplit(":", 2)[0]
    text = rng.choice([str(a), a.exploded, a.exploded.upper(), str(a).upper(),
                       a.exploded.replace(":0000", ":0"),
                       f"{high}:{dotted}"])
    if rng.random() < 0.15:
        text += rng.choice(["%eth0", "%25lo", "%1", "%", ".", "/64"])
    return f"[{text}]" if rng.random() < 0.9 else text


def spell(rng, address):
    """(text, address or None): the address when the text is its plain form, which a caught
    connection can have."""
    if address.version == 4 and rng.random() < 0.6:
        return spell_v4(rng, address), None
    if address.version == 4:
        address = embed(rng, address)
    return spell_v6(rng, address), address


def status(data):
    words = data.split(b"\r\n")[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def try_connect(box, text, port):
    head, stream = box.connect(f"{text}:{port}")
    stream.close()
    return status(head)


def try_url(box, text, port):
    with box.proxy() as stream:
        target = f"{text}:{port}" if port != 80 else text
        stream.send(
            f"GET http://{target}/latest/ HTTP/1.1\r\nHost: {target}\r\n"
            "Connection: close\r\n\r\n".encode())
        return status(stream.until(b"\r\n\r\n"))


def try_host(box, text, port, addr=PUBLIC):
    with box.tcp(addr, 80) as stream:
        stream.send(f"GET / HTTP/1.1\r\nHost: {text}\r\nConnection: close\r\n\r\n".encode())
        return status(stream.until(b"\r\n\r\n"))


def try_caught(box, address, port):
    with box.tcp(address, port) as stream:
        stream.send(b"GET / HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n" if port == 80
                    else b"\x16\x03\x01hello")
        return status(stream.until(b"\r\n\r\n"))


def run(n, seed):
    rng = random.Random(seed)
    resolver, listeners = rig.Resolver(), [rig.Listener(p, rig.http_ok) for p in (80, 443, 8080)]
    tried, bad, count = {}, [], 0
    with rig.Rig(["allow network **", "allow network **:8080"],
                 resolver="nameserver 192.0.2.53\n") as box:
        started = time.time()
        for i in range(n):
            forbidden = ipaddress.ip_address(FORBIDDEN[i % len(FORBIDDEN)])
            text, plain = spell(rng, forbidden)
            plain = plain or forbidden
            port = rng.choice((80, 443, 8080))
            # Any other name would be resolved: to the same address.
            resolver.answers = Everything([str(forbidden), str(plain)])
            way = rng.choice(("connect", "url", "host", "caught", "name"))
            if way == "connect":
                got = try_connect(box, text, port)
            elif way == "url":
                got = try_url(box, text, port)
            elif way == "host":
                got = try_host(box, text, port, rng.choice((plain, forbidden)))
            elif way == "caught":
                got = try_caught(box, rng.choice((plain, forbidden)), port)
            else:
                got = rng.choice((try_connect, try_url))(box, f"n{i}.answers.test", port)
            tried[way] = tried.get(way, 0) + 1
            if got == 200 or sum(x.count for x in listeners) != count:
                bad.append((way, text, str(forbidden), got))
                count = sum(x.count for x in listeners)
        seconds, counted, stats = time.time() - started, rig.packets(), box.stats()
        control = try_connect(box, PUBLIC, 8080)
        after = rig.packets()
    control = (control == 200 and after["syn"] > counted["syn"]
               and sum(x.count for x in listeners) == count + 1)
    ok = not bad and counted["syn"] == 0 and control and stats["edge"]["starts"] == 1 and stats[
        "egress"]["starts"] == 1
    return {"id": "forbidden-addresses", "ok": ok, "spellings": n, "addresses": len(FORBIDDEN),
            "connects": counted["syn"], "bad": bad[:5],
            "tried": tried, "names_resolved": len(resolver.queries), "outcomes": stats["outcomes"],
            "faults": stats["faults"],
            "control": control, "per_second": round(n / seconds)}


class Everything(dict):
    """Answers for every name."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def get(self, name, default=None):
        return self.found

    def __contains__(self, name):
        return True


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--n", type=int, default=500)
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    assert len(FORBIDDEN) == 40
    rig.namespace()
    result = run(args.n, args.seed)
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
