#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_floods.py [--seconds 0.6] [--only ping,...] - HTTP/2 floods on sbx.net by a hostile guest.

Each flood is frames made by hand, sent as fast as edge takes them (a new wire whenever edge has had
enough of the last, after the keeper's pause). Meanwhile another sandbox, a second rig, makes small
requests: their p50 must stay within 2 x of what it is while the attacker is stopped, no attacked
edge may grow by more than 8 MiB, and afterwards there must be one that works. One JSON line; rapid
reset is CVE-2023-44487, made-you-reset CVE-2025-8671.
"""
import argparse
import contextlib
import json
import pathlib
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

GROWTH_KIB = 8192
PAUSE = 0.25  # the keeper's, before it starts an edge again
TURN = 0.25
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes([kind,
                                                  flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that goes into no table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def head(path=b"/proxy"):
    return b"\x83\x86\x01\x03sbx\x04" + bytes([len(path)]) + path


def many(make, n=512):
    """Frames of streams that follow each other: the blob and the next stream."""
    def blob(stream):
        return b"".join(make(stream + 2 * i) for i in range(n)), stream + 2 * n
    return blob


def same(make, before=b"", n=512):
    """`before` once, then the same frames for ever."""
    def blob(stream):
        return (before if stream == 1 else b"") + make() * n, stream + 2
    return blob


def hpack_bomb(stream):
    block = head() + b"\x40\x03big\x7f\x81\x1e" + b"x" * 4000  # a 4,000 byte value into the table
    return frame(HEADERS, 0, stream, block) + frame(CONTINUATION, END_HEADERS, stream,
                                                    b"\xbe" * 8000)


def made_reset(stream):
    """What makes the server reset a stream that stays in work: a window that grows by nothing."""
    return frame(HEADERS, END_HEADERS, stream, head()) + frame(WINDOW, 0, stream, b"\0\0\0\0")


OPEN = frame(HEADERS, END_HEADERS, 1, head())
FLOODS = {
    "rapid-reset": many(lambda s: frame(HEADERS, END_HEADERS, s,
                                        head()) + frame(RST, 0, s, struct.pack(">I", 8))),
    "made-you-reset": many(made_reset),
    "continuation": same(lambda: frame(CONTINUATION, 0, 1, literal(b"x-pad", b"y" * 100) * 20),
                         frame(HEADERS, 0, 1, head())),
    "continuation-empty": same(lambda: frame(CONTINUATION, 0, 1), frame(HEADERS, 0, 1, head())),
    "settings": same(lambda: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100))),
    "ping": same(lambda: frame(PING, 0, 0, b"12345678")),
    "empty-data": same(lambda: frame(DATA, 0, 1), OPEN),
    "hpack-bomb": many(hpack_bomb, 16),
    "window-update": same(lambda: frame(WINDOW, 0, 0, struct.pack(">I", 1)), OPEN),
    "open-only": many(lambda s: frame(HEADERS, END_HEADERS, s, head())),
    "dns-asks": many(lambda s: frame(HEADERS, END_HEADERS, s, head(b"/dns/udp")) +
                     frame(DATA, END_STREAM, s, rig.query(f"n{s}.test"))),
    "slow-heads": many(lambda s: frame(HEADERS, END_HEADERS, s,
                                       head()) + frame(DATA, 0, s,
                                                       b"GET http://a.test/" + b"a" * 1000)),
}


def attack(path, kind, seconds):
    """Runs in a separate process: floods, and prints the number of connections and of the bytes
    that edge read."""
    blob, end, wires, sent = FLOODS[kind], time.time() + seconds, 0, 0
    while time.time() < end:
        wires += 1
        with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
            sock.connect(path)
            sock.sendall(b"wire\n")
            assert sock.recv(3) == b"ok\n"
            sock.sendall(PREFACE + frame(SETTINGS, 0, 0))
            sock.settimeout(max(0.1, end - time.time()))
            stream = 1
            while time.time() < end and stream < 1 << 30:
                data, stream = blob(stream)
                sock.sendall(data)
                sent += len(data)
                # answers are read, or edge soon gives up
                while select.select([sock], [], [], 0)[0]:
                    if not sock.recv(1 << 20):
                        raise ConnectionResetError
        time.sleep(min(PAUSE, max(0, end - time.time())))
    print(json.dumps({"wires": wires, "mib": round(sent / 1048576, 1)}))


def request(box):
    """Both ends close the stream: on a fast machine, streams that are reset would be another
    flood."""
    with box.proxy() as stream:
        stream.send(
            b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n")
        stream.half_close()
        return stream.rest().startswith(b"HTTP/1.1 200 ")


def latency(box, seconds, took):
    """Adds the ms of consecutive requests. Returns the number of failed requests."""
    failed, end = 0, time.time() + seconds
    while time.time() < end:
        start = time.perf_counter()
        failed += not request(box)
        took.append(1000 * (time.perf_counter() - start))
    return failed


def still_works(box):
    """A good wire and a stream that edge answers on it."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(rig.WAIT)
        sock.connect(str(box.dir / "s"))
        sock.sendall(b"wire\n" + PREFACE + frame(SETTINGS, 0, 0) + OPEN)
        got = b""
        while b"\x88" not in got:  # :status 200
            piece = sock.recv(65536)
            if not piece:
                return False
            got += piece
    return True


def flood(kind, box, other, seconds, idle_kib, tries=3):
    """The machine may be busy with something else: a slow round is done again, a fat one is not."""
    for _ in range(tries):
        result = flood_once(kind, box, other, seconds, idle_kib)
        if result["ok"] or result["ratio"] <= 2 or result["grew_kib"] > GROWTH_KIB:
            break
    return result


def growth(seen, idle_kib):
    """KiB above an idle edge, of those that live and of those that ended. Of an ended one the peak
    has the rig's own size from before the exec in it: what is below that is not seen, and the rig
    is smaller than the bound."""
    live = max(s["edge"]["peak_kib"] for s in seen)
    ended = max(s["edge"]["ended_peak_kib"] for s in seen)
    assert seen[-1]["rig_kib"] < idle_kib + GROWTH_KIB
    return max(live, ended if ended > seen[-1]["rig_kib"] else 0, idle_kib) - idle_kib


def flood_once(kind, box, other, seconds, idle_kib):
    """The attacker is stopped and let go in turns, so that what else the machine does is in
    both."""
    child = subprocess.Popen([sys.executable, "-B", __file__, "--attack", kind, "--socket",
                              str(box.dir / "s"), "--seconds", str(2 * seconds)],
                             stdout=subprocess.PIPE)
    calm, flooded, failed, seen = [], [], 0, []
    assert box.command("forget") == "ok"
    time.sleep(TURN)  # it starts, and floods
    while child.poll() is None:
        child.send_signal(signal.SIGCONT)
        failed += latency(other, TURN, flooded)
        seen.append(box.stats())
        child.send_signal(signal.SIGSTOP)
        failed += latency(other, TURN, calm)
        child.send_signal(signal.SIGCONT)
    result = json.loads(child.stdout.read())
    before, after = statistics.median(calm), statistics.median(flooded)
    grew = growth(seen + [box.stats()], idle_kib)
    ok = still_works(box) and failed == 0 and after <= 2 * before and grew <= GROWTH_KIB
    return {**result, "ok": ok, "p50_ms": [round(before, 2), round(after, 2)],
            "ratio": round(after / before, 2), "grew_kib": grew, "failed": failed}


def first_request(box):
    end = time.monotonic() + rig.WAIT
    while True:
        try:
            return request(box)
        except OSError:  # edge is still starting
            assert time.monotonic() < end, "no request gets through"
            time.sleep(0.1)


def idle_size(box):
    """Edge ends with its wire: the size of the next one, when it has started and grows no more."""
    end, before, kib = time.monotonic() + rig.WAIT, -1, 0
    while kib == 0 or kib != before:
        assert time.monotonic() < end, "no edge came back"
        time.sleep(0.3)
        before, kib = kib, box.stats()["edge"]["peak_kib"]
    return kib


def run(seconds, only):
    listener = rig.Listener(0, rig.http_ok, "127.0.0.1")
    with rig.Rig("allow network other.test", raw=True) as box, \
            rig.Rig("allow network other.test",
                    {"other.test:80": f"127.0.0.1:{listener.port}"}) as other:
        first_request(other)
        assert still_works(box)
        idle_kib = idle_size(box)
        found = {kind: flood(kind, box, other, seconds, idle_kib) for kind in FLOODS if not only
                 or kind in only}
        stats = box.stats()
    return {"id": "floods", "ok": all(f["ok"] for f in found.values()), "floods": found,
            "violations": stats["violations"],
            "edge_starts": stats["edge"]["starts"]}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=float, default=0.6)
    args.add_argument("--only", default="")
    args.add_argument("--attack")
    args.add_argument("--socket")
    args = args.parse_args()
    if args.attack:
        attack(args.socket, args.attack, args.seconds)
        return 0
    result = run(args.seconds, [k for k in args.only.split(",") if k])
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
