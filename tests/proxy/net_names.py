#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_names.py [--n 2000] [--seed 1] - names that no rule allows: not one packet leaves the host.

N random names (short, long, coded bytes as a covert channel would use them, PTR, service names,
every query type and class, with and without EDNS, over UDP and TCP) are queried through the real
edge. A resolver that egress would ask counts, and nft counts every packet of the namespace. Then
one allowed name is connected to, so that the counters are known to count. One JSON line;
CVE-2026-12039 in another sandbox was this.
"""
import argparse
import base64
import json
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

KINDS = [1, 28, 2, 5, 6, 10, 12, 15, 16, 24, 25, 33, 35, 43, 46, 48, 52, 64, 65, 99, 249, 250, 251,
         252, 253, 254, 255, 257]
DENIED = (1, 2, 3, 4, 5)  # FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED
LDH = "abcdefghijklmnopqrstuvwxyz0123456789-_"


def label(rng, n):
    return "".join(rng.choice(LDH) for _ in range(n)).encode()


def name(rng):
    """Labels of a name below which nothing is allowed."""
    kind = rng.randrange(8)
    if kind == 0:  # data in labels, as tunnels do
        data = base64.b32encode(rng.randbytes(30)).rstrip(b"=").lower()
        return [data[:40], label(rng, 8), b"tunnel", b"test"]
    if kind == 1:
        return [label(rng, 63), label(rng, 63), label(rng, 63), label(rng, rng.randrange(1, 58))]
    if kind == 2:
        return [str(rng.randrange(256)).encode() for _ in range(4)] + [b"in-addr", b"arpa"]
    if kind == 3:
        return [b"%x" % rng.randrange(16) for _ in range(32)] + [b"ip6", b"arpa"]
    if kind == 4:
        return [b"_" + label(rng, 5), b"_tcp", label(rng, 9), b"test"]
    if kind == 5:  # any byte at all
        return [rng.randbytes(rng.randrange(1, 20)), b"test"]
    if kind == 6:  # in the same message as an allowed name
        return rng.choice([[label(rng, 6), b"allowed", b"test"],
                           [b"allowed", b"test", label(rng, 3)],
                           [b"allowed\0", b"test"], [label(rng, 4) + b"allowed", b"test"]])
    return [label(rng, rng.randrange(1, 20)) for _ in range(rng.randrange(1, 5))] + [b"test"]


def ask_many(box, n, seed, tcp, found):
    rng = random.Random(seed)
    with box.dns(tcp) as dns:
        for _ in range(n):
            kind = rng.choice(KINDS) if rng.random() < 0.8 else rng.randrange(65536)
            klass = 1 if rng.random() < 0.95 else rng.choice((3, 4, 254, 255))
            labels = name(rng)
            answer = dns.ask(rig.query(labels, kind, rng, rng.random() < 0.7, klass))
            if answer and (rig.rcode(answer) not in DENIED or int.from_bytes(answer[6:8], "big")):
                found["answered"].append((labels, kind, klass, answer.hex()))
            found["silent"] += not answer
            found["asked"] += 1


def run(n, seed):
    resolver = rig.Resolver({"allowed.test": ["93.184.216.34"]})
    listener = rig.Listener(443)
    found = {"asked": 0, "silent": 0, "answered": []}
    with rig.Rig("allow network allowed.test", resolver="nameserver 192.0.2.53\n") as box:
        started = time.time()
        threads = [threading.Thread(target=ask_many,
                                    args=(box, n // 4, seed + i, i % 2 == 1, found))
                   for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        seconds, counted, asked = time.time() - started, rig.packets(), len(resolver.queries)
        stats = box.stats()
        head, stream = box.connect("allowed.test:443")
        stream.close()
        after = rig.packets()
    control = b" 200 " in head and listener.count > 0 and after["dns"] > 0 and len(
        resolver.queries) > 0
    ok = (found["asked"] == n // 4 * 4 and not found["answered"] and not any(counted.values())
          and asked == 0 and
          stats["opens"] == 0 and control)
    return {"id": "denied-names", "ok": ok, "names": found["asked"],
            "answered": found["answered"][:5], "silent": found["silent"],
            "packets": counted, "at_resolver": asked, "opens": stats["opens"],
            "resets": stats["resets"], "control": control,
            "per_second": round(n / seconds), "edge_kib": stats["edge"]["anon_kib"],
            "edge_starts": stats["edge"]["starts"]}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--n", type=int, default=2000)
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    rig.namespace()
    result = run(args.n, args.seed)
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
