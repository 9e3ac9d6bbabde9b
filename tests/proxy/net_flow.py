#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_flow.py [--mib 64] [--pause 5] [--connections 1000] - bytes in flight are bounded, and many
connections work.

A peer that stops reading in the middle of a transfer, first the guest and then the origin, does not
grow edge or egress by more than 2 MiB; afterwards every byte arrives. Then CONNECTIONS tunnels are
open at once and all echo, three times round. One JSON line.
"""
import argparse
import hashlib
import json
import os
import pathlib
import resource
import selectors
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

GROWTH_KIB = 2048
TARGET = "bulk.test:9000"


class Origin:
    """Sends or receives `total` bytes, with an optional pause. The first byte selects the direction."""

    def __init__(self, total, pause):
        self.total, self.pause, self.got = total, pause, 0
        self.hash, self.pausing = hashlib.sha256(), threading.Event()
        self.block = os.urandom(1 << 20)
        self.done = threading.Event()

    def talk(self, conn):
        what = conn.recv(1)
        if what == b"\x01":
            for _ in range(self.total >> 20):
                self.hash.update(self.block)
                conn.sendall(self.block)
        else:
            while self.got < self.total:
                if self.got > self.total // 4 and not self.pausing.is_set():
                    self.pausing.set()
                    time.sleep(self.pause)
                piece = conn.recv(1 << 20)
                if not piece:
                    break
                self.hash.update(piece)
                self.got += len(piece)
            conn.sendall(b"\x03")
        self.done.set()


class Watch(threading.Thread):
    """The most that edge and egress had above their start."""

    def __init__(self, box):
        super().__init__(daemon=True)
        self.box, self.start_kib, self.most, self.over = box, self.memory(box), {"edge": 0,
                                                                                 "egress": 0}, False
        self.start()

    @staticmethod
    def memory(box):
        stats = box.stats()
        return {k: stats[k]["anon_kib"] for k in ("edge", "egress")}

    def run(self):
        while not self.over:
            for k, v in self.memory(self.box).items():
                self.most[k] = max(self.most[k], v - self.start_kib[k])
            time.sleep(0.1)

    def end(self):
        self.over = True
        self.join()
        return self.most


def tunnel(box, target=TARGET):
    head, stream = box.connect(target)
    assert b" 200 " in head, head
    stream.sock.settimeout(120)
    return stream


def guest_stops(total, pause):
    origin = Origin(total, pause)
    with rig.Listener(0, origin.talk, "127.0.0.1") as listener, \
            rig.Rig(f"allow network {TARGET}", {TARGET: f"127.0.0.1:{listener.port}"}) as box:
        stream = tunnel(box)
        watch, found, got = Watch(box), hashlib.sha256(), 0
        stream.send(b"\x01")
        stopped = False
        while got < total:
            if got > total // 4 and not stopped:
                stopped = True
                time.sleep(pause)
            piece = stream.recv(1 << 20)
            if not piece:
                break
            found.update(piece)
            got += len(piece)
        most = watch.end()
        return {"grew_kib": most, "whole": got == total and found.digest() == origin.hash.digest()}


def origin_stops(total, pause):
    origin = Origin(total, pause)
    with rig.Listener(0, origin.talk, "127.0.0.1") as listener, \
            rig.Rig(f"allow network {TARGET}", {TARGET: f"127.0.0.1:{listener.port}"}) as box:
        stream = tunnel(box)
        stream.sock.settimeout(pause + 60)
        watch, found = Watch(box), hashlib.sha256()
        stream.send(b"\x02")
        block = os.urandom(1 << 20)
        for _ in range(total >> 20):
            found.update(block)
            stream.send(block)
        answer = stream.recv(1)
        most = watch.end()
        return {"grew_kib": most,
                "whole": answer == b"\x03" and found.digest() == origin.hash.digest()}


def echo_all(port):
    """One thread that echoes for every connection."""
    listen = socket.create_server(("127.0.0.1", port), backlog=2048)
    listen.setblocking(False)
    chosen = selectors.DefaultSelector()
    chosen.register(listen, selectors.EVENT_READ)

    def run():
        while True:
            for key, _ in chosen.select():
                if key.fileobj is listen:
                    conn, _ = listen.accept()
                    chosen.register(conn, selectors.EVENT_READ)
                    continue
                try:
                    data = key.fileobj.recv(65536)
                    key.fileobj.sendall(data)
                except OSError:
                    data = b""
                if not data:
                    chosen.unregister(key.fileobj)
                    key.fileobj.close()
    threading.Thread(target=run, daemon=True).start()
    return listen.getsockname()[1]


def many(n):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, right = echo_all(0), 0
    with rig.Rig(f"allow network {TARGET}", {TARGET: f"127.0.0.1:{port}"}) as box:
        started = time.time()
        streams = [tunnel(box) for _ in range(n)]
        opened = time.time() - started
        for turn in range(3):
            texts = [f"{turn} {i} ".encode() * 100 for i in range(n)]
            for stream, text in zip(streams, texts):
                stream.send(text)
            right += sum(stream.exactly(len(text)) == text for stream, text in zip(streams, texts))
        stats = box.stats()
        for stream in streams:
            stream.close()
    return {"open": n, "right": right, "of": 3 * n, "opened_s": round(opened, 2),
            "edge_kib": stats["edge"]["anon_kib"],
            "egress_kib": stats["egress"]["anon_kib"]}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--mib", type=int, default=64)
    args.add_argument("--pause", type=int, default=5)
    args.add_argument("--connections", type=int, default=1000)
    args = args.parse_args()
    result = {"guest_stops": guest_stops(args.mib << 20, args.pause),
              "origin_stops": origin_stops(args.mib << 20, args.pause),
              "many": many(args.connections)}
    ok = (all(result[k]["whole"] and max(result[k]["grew_kib"].values()) <= GROWTH_KIB
              for k in ("guest_stops", "origin_stops")) and
          result["many"]["right"] == result["many"]["of"])
    print(json.dumps({"id": "flow", "ok": ok, "mib": args.mib, "pause_s": args.pause, **result}))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
