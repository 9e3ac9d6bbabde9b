# SPDX-License-Identifier: Apache-2.0
"""`sbx policy` as a person uses it, with the real programs; what decides in a VM is in
test_network.py.

What the commands print and refuse is in tests/cli/test_policy.py, what sbxd does in
tests/api/test_policy.py."""
import json
import os
import signal
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
