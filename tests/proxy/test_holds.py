# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a person while their client leaves, with the real keeper, edge and egress
(CredRig). Pushes of git: test_pushes.py."""
import collections
import http.server
import pathlib
import socket
import sys
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "rigs")]
from rig import CredRig  # noqa: E402

HOST, RACES = "api.test", 200
RULES = ("policy 2", f"allow network {HOST}:80", f"ask http {HOST}/**", "end", "")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.paths = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    return Server()


@pytest.fixture(scope="module")
def rig(server):
    where = f"127.0.0.1:{server.server_address[1]}"
    with CredRig([f"allow network {HOST}:80"], {f"{HOST}:80": where}) as made:
        made.settings |= {"ask.max-open": "32", "ask.max-hour": "240"}
        made.write_settings()
        made.policy.write_text("\n".join(RULES))
        assert made.command("reload") == "ok"
        made.until_up()
        yield made
        assert made.process.poll() is None, made.text()[-3000:]


def ask(rig, path):
    sock = socket.create_connection(("127.0.0.1", rig.bridge()), 60)
    sock.sendall(f"POST http://{HOST}{path} HTTP/1.1\r\nHost: {HOST}\r\n"
                 "Content-Length: 5\r\n\r\nhello".encode())
    return sock


def held(rig, path, state="open"):
    """The ID of the request, when it waits."""
    for _ in range(6000):
        lines = rig.lines("held").splitlines()
        if f" {state} " in lines[0] and f" {path}" in lines[1]:
            return lines[0].split()[0]
        time.sleep(0.005)
    raise AssertionError(f"{path} is not {state}: {lines}")


def ends(rig):
    """IDs of requests by what became of them."""
    found = collections.defaultdict(set)
    for r in rig.records():
        if r["kind"] == "approval":
            found[r["action"]].add(r["hold"])
    return found


def test_nothing_is_sent_for_a_client_that_has_left(rig, server):
    ask(rig, "/gone").close()
    held(rig, "/gone", "withdrawn")
    rig.command("answer once")
    half = ask(rig, "/half")
    held(rig, "/half")
    half.shutdown(socket.SHUT_WR)
    assert b"403" in half.recv(65536)
    held(rig, "/half", "withdrawn")
    rig.command("answer once")
    stays = ask(rig, "/stays")
    held(rig, "/stays")
    rig.command("answer once")
    assert b" 204 " in stays.recv(65536)
    assert server.paths == ["/stays"]


def test_leaving_races_with_the_approval(rig, server):
    """An approval counts only for a client that was there when it was given."""
    ids = {}
    server.paths.clear()
    for i in range(RACES):
        path = f"/race/{i}"
        sock = ask(rig, path)
        ids[path] = held(rig, path)
        if i == 0:  # one that has certainly left, and one that certainly stays
            sock.close()
            held(rig, path, "withdrawn")
        leave = threading.Timer(60 if i == 1 else i % 7 / 1000, sock.close)
        leave.start()
        time.sleep(i // 7 % 9 / 500)
        rig.command("answer once")
        if i == 1:
            assert b" 204 " in sock.recv(65536)
            leave.cancel()
        leave.join()
    for _ in range(6000):
        found = ends(rig)
        if set(ids.values()) <= found["use"] | found["withdraw"]:
            break
        time.sleep(0.01)
    used = {path for path, ident in ids.items() if ident in found["use"]}
    left = {path for path, ident in ids.items() if ident in found["withdraw"]}
    assert used | left == set(ids) and not used & left
    assert set(server.paths) <= used and len(set(server.paths)) == len(server.paths)
    assert left and used, (len(left), len(used))
    print(len(left), "withdrawn,", len(used), "approved,", len(server.paths), "sent")
