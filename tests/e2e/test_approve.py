# SPDX-License-Identifier: Apache-2.0
"""A request that a rule with the effect ask holds, from a real VM to a real server: nothing is sent
before a person's answer, and nothing if a process of sbx is killed meanwhile."""
import http.server
import json
import os
import signal
import threading
import time

import pytest

from installation import private

HOST = "api.test"


class Server:
    """Counts the requests that it gets."""

    def __init__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append(self.path)
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(200)
                self.send_header("content-length", "5")
                self.end_headers()
                self.wfile.write(b"done\n")

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.http.shutdown()


@pytest.fixture(scope="module")
def env(server):
    with private(policy="none") as made:
        made.sbx("settings", "set", "network.connect-to", f"{HOST}:80=127.0.0.1:{server.port}")
        made.sbx("policy", "set-default", "balanced")
        made.sbx("policy", "allow", "network", f"{HOST}:80")
        made.sbx("policy", "ask", "http", f"{HOST}:80/**", "--method", "POST")
        yield made


@pytest.fixture(scope="module", autouse=True)
def box(env):
    return env.create("demo")


class Post:
    """A POST of the sandbox that is under way."""

    def __init__(self, env, path):
        self.out = None

        def run():
            self.out = env.sbx("exec", "demo", "curl", "-sS", "-X", "POST", "-d", "a",
                               f"http://{HOST}{path}", check=None, timeout=300).stdout

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def end(self):
        self.thread.join(300)
        assert self.out is not None
        return self.out


def held(env, effect):
    """Waits for the request; returns it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for hold in json.loads(env.sbx("approve", "--json").stdout)["holds"]:
            if hold["state"] == "open" and effect in hold["effects"]:
                return hold
        time.sleep(0.2)
    raise AssertionError("no request waits")


def test_a_held_request_is_sent_after_the_answer(env, server):
    post = Post(env, "/one")
    hold = held(env, f"http:POST {HOST}:80 /one")
    assert server.seen == []
    env.sbx("approve", hold["id"], "--once", "--digest", hold["digest"])
    assert post.end() == "done\n" and server.seen == ["/one"]
    # The approval is used up.
    post = Post(env, "/one")
    hold = held(env, f"http:POST {HOST}:80 /one")
    env.sbx("refuse", hold["id"], "--reason", "once is enough")
    assert "refused by the user: once is enough" in post.end() and server.seen == ["/one"]


def test_always_lasts_until_the_policy_changes(env, server):
    post = Post(env, "/always")
    hold = held(env, f"http:POST {HOST}:80 /always")
    env.sbx("approve", hold["id"], "--always", "--digest", hold["digest"])
    assert post.end() == "done\n"
    for n in 2, 3:
        assert Post(env, "/always").end() == "done\n"
        assert server.seen.count("/always") == n
    env.sbx("policy", "allow", "network", "x.example")
    post = Post(env, "/always")
    again = held(env, f"http:POST {HOST}:80 /always")
    assert again["digest"] == hold["digest"] and server.seen.count("/always") == 3
    env.sbx("refuse", again["id"])
    assert "done" not in post.end() and server.seen.count("/always") == 3


def answer(env, hold):
    return env.sbx("approve", hold["id"], "--once", "--digest", hold["digest"], check=None)


def test_a_wrong_digest_approves_nothing(env, server):
    before = list(server.seen)
    post = Post(env, "/digest")
    hold = held(env, f"http:POST {HOST}:80 /digest")
    wrong = answer(env, {**hold, "digest": "0" * 64})
    assert wrong.returncode == 1 and "changed" in wrong.stderr
    assert server.seen == before
    env.sbx("refuse", hold["id"])
    assert "done" not in post.end() and server.seen == before
    assert answer(env, hold).returncode == 1 and server.seen == before


def test_a_request_waits_for_the_next_sbxd(env, server):
    post = Post(env, "/sbxd")
    hold = held(env, f"http:POST {HOST}:80 /sbxd")
    os.kill(env.daemon_pid(), signal.SIGKILL)
    assert held(env, f"http:POST {HOST}:80 /sbxd")["id"] == hold["id"]
    assert "/sbxd" not in server.seen
    answer(env, hold)
    assert post.end() == "done\n" and server.seen.count("/sbxd") == 1


def test_nobody_answers_for_a_client_that_is_gone(env, server, box):
    """sbx-edge is killed: the client gets an error, and the approval sends nothing."""
    post = Post(env, "/edge")
    hold = held(env, f"http:POST {HOST}:80 /edge")
    os.kill(box.pids()["edge"], signal.SIGKILL)
    assert "done" not in post.end()
    answer(env, hold)
    time.sleep(1)
    assert "/edge" not in server.seen


def test_nothing_is_sent_if_the_keeper_is_killed(env, server, box):
    post = Post(env, "/keeper")
    held(env, f"http:POST {HOST}:80 /keeper")
    os.kill(box.pids()["keeper"], signal.SIGKILL)
    assert "done" not in post.end() and "/keeper" not in server.seen
    assert json.loads(env.sbx("approve", "--json").stdout)["holds"] == []
