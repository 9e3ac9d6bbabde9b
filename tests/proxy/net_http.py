#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_http.py - HTTP of all kinds through the real edge and egress, to an upstream whose behavior
the path selects.

Each function whose name begins with `check_` is one case, over one connection to the proxy port.
One JSON line.
"""
import hashlib
import http.client
import json
import os
import pathlib
import socket
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402

HOST = "site.test"
LARGE = 8 << 20
BLOCK = os.urandom(1 << 16)


def read_head(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = conn.recv(1)
        if not piece:
            return None
        data += piece
    return data.decode()


def header(head, name):
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(": ")
        if key == name:
            return value
    return None


def read_body(conn, head):
    stream = conn.makefile("rb")
    if header(head, "content-length"):
        return stream.read(int(header(head, "content-length")))
    data = b""
    while header(head, "transfer-encoding"):
        n = int(stream.readline(), 16)
        data += stream.read(n) if n else b""
        while stream.readline() != b"\r\n":  # trailers, or the end of the chunk
            pass
        if n == 0:
            break
    return data


def answer(conn, body=b"", status="200 OK", more=""):
    conn.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)


def serve_large(conn, _head):
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(LARGE >> 16):
        conn.sendall(b"10000;x=y\r\n" + BLOCK + b"\r\n")
    conn.sendall(b"0\r\nX-Sum: 7\r\n\r\n")


def serve_until_close(conn, _head):
    conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")


def serve_cut(conn, _head):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")


def serve_events(conn, _head):
    conn.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n")
    for i in range(5):
        conn.sendall(b"9\r\ndata: %d\n\n\r\n" % i)
        time.sleep(0.2)
    conn.sendall(b"0\r\n\r\n")


def serve_expect(conn, head):
    assert header(head, "expect") == "100-continue"
    conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    answer(conn, hashlib.sha256(read_body(conn, head)).hexdigest().encode())


def serve_websocket(conn, head):
    assert header(head, "upgrade") == "websocket"
    conn.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                 b"Sec-WebSocket-Accept: x\r\n\r\nhello")
    rig.echo(conn)


SERVE = {"/large": serve_large, "/close": serve_until_close, "/cut": serve_cut,
         "/events": serve_events,
         "/expect": serve_expect, "/ws": serve_websocket, "/gone": lambda conn, head: None,
         "/refuse": lambda conn,
         head: answer(conn, b"no", "413 Content Too Large", "Connection: close\r\n")}


def serve(conn):
    head = read_head(conn)
    if head is None:
        return
    path = head.split()[1]
    if path in SERVE:
        SERVE[path](conn, head)
    elif head.startswith("HEAD"):
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n")
    elif path == "/304":
        conn.sendall(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n")
    else:
        answer(conn, hashlib.sha256(read_body(conn, head)).hexdigest().encode(),
               more="Sbx-Reason: forged\r\nSet-Cookie: a\r\n")


class Guest(http.client.HTTPConnection):
    """http.client over a stream of the rig."""

    def __init__(self, box):
        super().__init__(HOST)
        self.stream = box.proxy()
        self.sock = self.stream.sock
        self.sock.settimeout(60)

    def connect(self):
        raise ConnectionError("the connection was not kept")

    def ask(self, method, path, body=None, headers=None, host=HOST, **how):
        self.request(method, f"http://{host}{path}", body, {"Host": host, **(headers or {})}, **how)
        return self.getresponse()


def check_bodies(box):
    guest = Guest(box)
    for n in (0, 1, 100, 65536, LARGE):
        body = (BLOCK * (n // len(BLOCK) + 1))[:n]
        for chunked in (False, True):
            reply = guest.ask("PUT", "/x", iter([body]) if chunked else body,
                              encode_chunked=chunked,
                              headers={"Transfer-Encoding": "chunked"} if chunked else {})
            assert reply.status == 200 and reply.read().decode() == hashlib.sha256(
                body).hexdigest(), n
            assert reply.getheader("sbx-reason") is None and reply.getheader("set-cookie") == "a"


def check_large_answer(box):
    guest = Guest(box)
    for _ in range(2):
        reply = guest.ask("GET", "/large")
        assert hashlib.sha256(reply.read()).digest() == hashlib.sha256(
            BLOCK * (LARGE >> 16)).digest()


def check_no_content(box):
    guest = Guest(box)
    reply = guest.ask("HEAD", "/x")
    assert reply.getheader("content-length") == "77" and reply.read() == b""
    reply = guest.ask("GET", "/304")
    assert reply.status == 304 and reply.read() == b""
    assert guest.ask("GET", "/x").read() == hashlib.sha256(b"").hexdigest().encode()


def check_until_close_keeps_the_guest(box):
    guest = Guest(box)
    for _ in range(3):
        assert guest.ask("GET", "/close").read() == b"until the end"


def check_events_come_at_once(box):
    reply, before = Guest(box).ask("GET", "/events"), time.monotonic()
    assert reply.fp.readline() == b"9\r\n" and time.monotonic() - before < 0.5


def check_cut_is_seen(box):
    reply = Guest(box).ask("GET", "/cut")
    try:
        reply.read()
    except http.client.IncompleteRead as e:
        assert e.partial == b"short"
    else:
        raise AssertionError("a short body passed for a whole one")


def check_failures(box):
    guest = Guest(box)
    reply = guest.ask("GET", "/gone")
    assert reply.status == 502 and b"failed (the host is allowed)" in reply.read()
    reply = guest.ask("GET", "/", host="dead.test")
    assert reply.status == 502 and b"failed (the host is allowed)" in reply.read()
    for i in range(1, 4):
        reply = guest.ask("GET", "/", host="denied.test")
        assert reply.status == 403 and f"blocked: {i} time" in reply.read().decode()
    reply = guest.ask("POST", "/", b"x" * 100, host="denied.test",
                      headers={"Accept": "application/json"})
    assert reply.status == 403 and json.loads(reply.read())["target"] == "denied.test:80"
    assert guest.ask("GET", "/x").status == 200


def check_early_answer(box):
    stream = box.proxy()
    stream.send(
        f"PUT http://{HOST}/refuse HTTP/1.1\r\nHost: {HOST}\r\n"
        f"Content-Length: {LARGE}\r\n\r\n".encode() + BLOCK)
    got = stream.rest()
    assert got.startswith(b"HTTP/1.1 413 ") and got.endswith(b"\r\n\r\nno"), got[:200]


def check_expect(box):
    stream, body = box.proxy(), BLOCK
    stream.send(
        f"PUT http://{HOST}/expect HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n"
                "Expect: 100-continue\r\n\r\n".encode())
    assert stream.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    stream.send(body)
    assert stream.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
    assert stream.exactly(64).decode() == hashlib.sha256(body).hexdigest()


def check_websocket(box):
    stream = box.proxy()
    stream.send(
        f"GET http://{HOST}/ws HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\nearly".encode())
    assert stream.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    assert stream.exactly(10) == b"helloearly"
    stream.send(BLOCK)
    assert stream.exactly(len(BLOCK)) == BLOCK
    stream.half_close()
    assert stream.rest() == b""


def check_http10(box):
    stream = box.proxy()
    stream.send(f"GET http://{HOST}/close HTTP/1.0\r\n\r\n".encode())
    got = stream.rest()
    assert got.endswith(b"connection: close\r\n\r\nuntil the end") and b"chunked" not in got, got


def check_pipeline(box):
    stream = box.proxy()
    for i in range(100):
        host = "denied.test" if i % 10 == 9 else HOST
        stream.send(f"HEAD http://{host}/{i} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    for i in range(100):
        assert stream.until(b"\r\n\r\n").split()[1] == (b"403" if i % 10 == 9 else b"200"), i


def main():
    policy = [f"allow network {HOST}:80", "allow network dead.test:80"]
    with socket.socket() as dead, rig.Listener(0, serve, "127.0.0.1") as listener:
        dead.bind(("127.0.0.1", 0))  # bound and not listening: refused
        with rig.Rig(policy, {f"{HOST}:80": f"127.0.0.1:{listener.port}",
                              "dead.test:80": f"127.0.0.1:{dead.getsockname()[1]}"}) as box:
            failed, checks = [], [f for name,
                                  f in sorted(globals().items()) if name.startswith("check_")]
            for check in checks:
                try:
                    check(box)
                except Exception:
                    failed.append(check.__name__)
                    traceback.print_exc()
            stats = box.stats()
    ok = not failed and stats["violations"] == 0
    print(json.dumps({"id": "http", "ok": ok, "checks": len(checks), "failed": failed}))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
