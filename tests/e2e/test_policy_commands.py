# SPDX-License-Identifier: Apache-2.0
"""`sbx policy` as a person uses it, with the real programs; what decides in a VM is in
test_network.py.

What the commands print and refuse is in tests/cli/test_policy.py, what sbxd does in
tests/api/test_policy.py."""
import http.server
import json
import os
import signal
import threading
import time

import pytest

from installation import private
from term import Terminal


@pytest.fixture
def new_env():
    """As after an install: no template, no policy."""
    with private(templates=False, policy="none") as made:
        yield made


def check(env, target, *args):
    return env.sbx("policy", "check", "network", target, *args, check=False).returncode == 0


def not_taken(env, *args):
    return json.loads(env.sbx("policy", *args, "--json").stdout)["not_taken"]


def test_the_first_run_without_a_terminal_fails_at_once(new_env):
    begin = time.monotonic()
    done = new_env.sbx("create", "shell", "--name", "demo", check=False)
    assert done.returncode == 1 and "try: sbx policy set-default balanced" in done.stderr
    done = new_env.sbx("run", "--name", "demo", "--", "true", check=False)
    assert done.returncode == 125 and time.monotonic() - begin < 5
    assert new_env.ls() == [] and not (new_env.state / "policy").exists()


def test_the_first_run_on_a_terminal_asks(new_env):
    """No template either, so that it ends with the next question."""
    with Terminal(new_env, "sbx", "create", "shell") as t:
        t.wait_for("default: 2, balanced")
        t.key("Enter")
        t.wait_for("Build it now?")
        t.line("n")
        assert t.wait_end() == 1
    assert check(new_env, "github.com")


def test_the_whole_life_of_a_policy(new_env):
    env = new_env
    assert not check(env, "github.com")
    env.sbx("policy", "set-default", "balanced")
    assert check(env, "github.com") and not check(env,
                                                  "github.com:22") and not check(env, "example.com")
    env.sbx("policy", "allow", "network", "example.com,*.example.org:8080", "--comment", "work")
    assert check(env, "https://example.com/x") and check(env,
                                                         "a.example.org:8080") and not check(env,
                                                                                             "example.org:8080")
    env.sbx("policy", "deny", "network", "example.com")
    assert not check(env, "example.com")
    env.sbx("policy", "rm", "network", "--resource", "example.com", "--decision", "deny")
    assert check(env, "example.com")
    text = env.sbx("policy", "export").stdout
    env.sbx("policy", "set-default", "deny-all", "--lock")
    assert not check(env, "example.com") and not check(env, "github.com")
    env.sbx("policy", "import", "-", "--yes", input=text)
    assert env.sbx("policy", "export").stdout == text and check(env, "example.com")
    # what counts survives the daemon
    os.kill(env.daemon_pid(), signal.SIGKILL)
    assert check(env, "example.com")
    env.sbx("policy", "reset", "--yes")
    assert not check(env, "example.com") and not check(env, "github.com")
    log = env.sbx("audit", "show").stdout
    for action in ("set-default", "rule-add", "rule-rm", "import", "reset"):
        assert action in log
    time.sleep(1.2)
    env.sbx("audit", "verify")


def test_a_running_sandbox_takes_changes_over(env, sandbox):
    """The real keeper answers, also to a new sbxd."""
    begin = time.monotonic()
    assert not_taken(env, "allow", "network", "one.example") == []
    assert not_taken(env, "deny", "network", "two.example", "--sandbox", sandbox.name) == []
    assert time.monotonic() - begin < 4
    os.kill(env.daemon_pid(), signal.SIGKILL)
    env.sbx("ls")
    sandbox.wait_status("running")
    assert not_taken(env, "rm", "network", "--resource", "one.example") == []
    assert not_taken(env, "rm", "network", "--resource", "two.example", "--sandbox",
                     sandbox.name) == []
    sandbox.wait_status("running")
    assert sandbox.guest("echo fine") == "fine"


def test_rules_of_a_sandbox_live_and_die_with_it(env):
    box = env.create("ruled",
                     flags=("--allow-network", "mine.example", "--deny-network", "**.github.com"))
    try:
        assert check(env, "mine.example", "--sandbox", "ruled") and not check(env, "mine.example")
        assert not check(env, "api.github.com", "--sandbox",
                         "ruled") and check(env, "api.github.com")
        env.sbx("rename", "ruled", "renamed")
        box.name = "renamed"
        assert check(env, "mine.example", "--sandbox", "renamed")
    finally:
        box.rm()
    assert "mine.example" not in (env.state / "policy").read_text()


# A request that a rule with the effect ask holds: nothing is sent before a person's answer, and
# nothing if a process of sbx is killed meanwhile.

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
def asking(server):
    """An installation with a rule that asks."""
    with private(policy="none") as made:
        made.sbx("settings", "set", "network.connect-to", f"{HOST}:80=127.0.0.1:{server.port}")
        made.sbx("policy", "set-default", "balanced")
        made.sbx("policy", "allow", "network", f"{HOST}:80")
        made.sbx("policy", "ask", "http", f"{HOST}:80/**", "--method", "POST")
        yield made


@pytest.fixture(scope="module")
def box(asking):
    return asking.create("demo")


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


def test_a_held_request_is_sent_after_the_answer(asking, server, box):
    post = Post(asking, "/one")
    hold = held(asking, f"http:POST {HOST}:80 /one")
    assert server.seen == []
    asking.sbx("approve", hold["id"], "--once", "--digest", hold["digest"])
    assert post.end() == "done\n" and server.seen == ["/one"]
    # The approval is used up.
    post = Post(asking, "/one")
    hold = held(asking, f"http:POST {HOST}:80 /one")
    asking.sbx("refuse", hold["id"], "--reason", "once is enough")
    assert "refused by the user: once is enough" in post.end() and server.seen == ["/one"]


def test_always_lasts_until_the_policy_changes(asking, server, box):
    post = Post(asking, "/always")
    hold = held(asking, f"http:POST {HOST}:80 /always")
    asking.sbx("approve", hold["id"], "--always", "--digest", hold["digest"])
    assert post.end() == "done\n"
    for n in 2, 3:
        assert Post(asking, "/always").end() == "done\n"
        assert server.seen.count("/always") == n
    asking.sbx("policy", "allow", "network", "x.example")
    post = Post(asking, "/always")
    again = held(asking, f"http:POST {HOST}:80 /always")
    assert again["digest"] == hold["digest"] and server.seen.count("/always") == 3
    asking.sbx("refuse", again["id"])
    assert "done" not in post.end() and server.seen.count("/always") == 3


def answer(env, hold):
    return env.sbx("approve", hold["id"], "--once", "--digest", hold["digest"], check=None)


def test_a_wrong_digest_approves_nothing(asking, server, box):
    before = list(server.seen)
    post = Post(asking, "/digest")
    hold = held(asking, f"http:POST {HOST}:80 /digest")
    wrong = answer(asking, {**hold, "digest": "0" * 64})
    assert wrong.returncode == 1 and "changed" in wrong.stderr
    assert server.seen == before
    asking.sbx("refuse", hold["id"])
    assert "done" not in post.end() and server.seen == before
    assert answer(asking, hold).returncode == 1 and server.seen == before


def test_a_request_waits_for_the_next_sbxd(asking, server, box):
    post = Post(asking, "/sbxd")
    hold = held(asking, f"http:POST {HOST}:80 /sbxd")
    os.kill(asking.daemon_pid(), signal.SIGKILL)
    assert held(asking, f"http:POST {HOST}:80 /sbxd")["id"] == hold["id"]
    assert "/sbxd" not in server.seen
    answer(asking, hold)
    assert post.end() == "done\n" and server.seen.count("/sbxd") == 1


def test_nobody_answers_for_a_client_that_is_gone(asking, server, box):
    """sbx-edge is killed: the client gets an error, and the approval sends nothing."""
    post = Post(asking, "/edge")
    hold = held(asking, f"http:POST {HOST}:80 /edge")
    os.kill(box.pids()["edge"], signal.SIGKILL)
    assert "done" not in post.end()
    answer(asking, hold)
    time.sleep(1)
    assert "/edge" not in server.seen


def test_nothing_is_sent_if_the_keeper_is_killed(asking, server, box):
    post = Post(asking, "/keeper")
    held(asking, f"http:POST {HOST}:80 /keeper")
    os.kill(box.pids()["keeper"], signal.SIGKILL)
    assert "done" not in post.end() and "/keeper" not in server.seen
    assert json.loads(asking.sbx("approve", "--json").stdout)["holds"] == []
