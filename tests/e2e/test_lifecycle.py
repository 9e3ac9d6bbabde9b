# SPDX-License-Identifier: Apache-2.0
"""From create to rm, and nothing is left behind."""
import json
import os
import subprocess
import threading
import time

import host
import pytest
from host import until
from installation import START_SECONDS
from term import Terminal


@pytest.fixture
def quiet(env, sandbox):
    """The shared installation in use (daemon, registry, cached initrd, the lock of the templates):
    its state before a test."""
    assert env.api("POST", "/v1/templates/collect")[0] == 204
    return host.snapshot(env)


def test_the_whole_life_leaves_nothing(env, quiet):
    folder = env.work / "life"
    folder.mkdir()
    quiet["files"].add(str(folder))
    env.sbx("create", "shell", ".", "--name", "life", "--memory", "1g", cwd=folder,
            timeout=START_SECONDS)
    assert [s["status"] for s in env.ls() if s["name"] == "life"] == ["running"]
    env.sbx("exec", "life", "sh", "-c", "echo kept > ~/kept; echo shared > shared")
    env.sbx("stop", "--cold", "life", timeout=60)
    assert [s["status"] for s in env.ls() if s["name"] == "life"] == ["stopped"]
    assert env.sbx("exec", "life", "cat", "/home/agent/kept",
                   timeout=START_SECONDS).stdout == "kept\n"
    env.sbx("rm", "-f", "life", timeout=60)
    assert (folder / "shared").read_text() == "shared\n"
    (folder / "shared").unlink()
    host.expect_nothing_left(env, quiet)
    # The record of it outlives it.
    assert "start" in env.sbx("audit", "show", "life").stdout
    env.sbx("audit", "verify", "life")


def test_stopped_sandboxes_have_no_process(env, quiet):
    box = env.create("still")
    box.stop()
    left = host.added(quiet, host.snapshot(env))
    assert "processes" not in left and "mounts" not in left and "sockets" not in left, left
    box.rm()
    host.expect_nothing_left(env, quiet)


def test_a_failed_create_leaves_nothing(env, quiet):
    for bad in (["/no/such/folder"], ["--memory", "1x"], ["--cpus", "none"]):
        done = env.sbx("create", "shell", *bad, "--name", "failed", check=False)
        assert done.returncode != 0 and done.stderr.strip()
    for name in ("x", "a_b", "-a", "a-", "default", "a" * 64, "../up", "a/b"):
        assert env.sbx("create", "shell", "--name", name, check=False).returncode != 0, name
    host.expect_nothing_left(env, quiet)


def test_rm_while_it_starts(env, quiet):
    starting = env.popen("create", "shell", "--name", "hasty", "--memory", "1g", "--cold",
                         stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    env.sbx("rm", "-f", "hasty", timeout=60)
    assert starting.wait(30) != 0
    host.expect_nothing_left(env, quiet)


def test_run_attaches_a_shell(env, quiet):
    folder = env.make_folder("attached")
    quiet["files"].add(str(folder))
    with Terminal(env, "sbx", "run", "shell", folder, "--name", "attached") as term:
        term.wait_for("$", START_SECONDS)
        term.line("echo in $(pwd) as $(id -un)")
        term.wait_for(f"in {folder} as agent")
        term.line("exit 7")
        assert term.wait_end() == 7
    env.sbx("stop", "--cold", "attached", timeout=60)
    with Terminal(env, "sbx", "run", "--name", "attached") as term:
        term.wait_for("$", START_SECONDS)
        term.line("exit")
        assert term.wait_end() == 0
    env.sbx("rm", "-f", "attached", timeout=60)
    host.expect_nothing_left(env, quiet)


def test_rm_needs_force_while_somebody_is_in_it(env):
    box = env.create("busy")
    p = env.popen("exec", "busy", "sleep", "600", stdin=subprocess.DEVNULL)
    try:
        until(lambda: box.info()["sessions"], 30)
        assert env.sbx("rm", "busy", check=False, timeout=30).returncode != 0
        assert box.info()["status"] == "running"
        box.rm()
        assert p.wait(20) != 0
    finally:
        p.kill()
        p.wait()


def test_update_and_rename_count_from_the_next_start(env):
    box = env.create("before", cpus=2)
    extra = env.make_folder("extra")
    (extra / "f").write_text("shared")
    env.sbx("update", "before", "--cpus", "1", "--memory", "768m", "--env", "ADDED=later",
            "--add-path", f"{extra}:ro", "--hide", "*.key")
    (extra / "a.key").write_text("secret")
    assert box.guest("nproc") == "2" and box.guest("echo $ADDED") == ""
    assert box.fails(f"ls {extra}")
    env.sbx("rename", "before", "after-it")
    box.name = "after-it"
    box.stop()
    assert box.guest("nproc", timeout=START_SECONDS) == "1"
    assert box.guest("echo $ADDED") == "later" and box.guest(f"cat {extra}/f") == "shared"
    assert box.fails(f"touch {extra}/g") and box.fails(f"cat {extra}/a.key")
    total = int(box.guest("awk '/MemTotal/ { print $2 }' /proc/meminfo"))
    assert 600 << 10 < total < 768 << 10
    box.rm()


def test_ls_and_inspect_say_the_same(env, sandbox):
    info = sandbox.info()
    assert (info["status"], info["agent"], info["accel"]) == ("running", "shell", "tcg")
    assert str(sandbox.workspace) in json.dumps(info["workspaces"])
    shown = json.loads(env.sbx("inspect", sandbox.name, "--json").stdout)
    assert info["id"] in json.dumps(shown)
    table = env.sbx("ls").stdout
    assert table.splitlines()[0].split()[:3] == ["SANDBOX", "AGENT", "STATUS"]
    assert sandbox.name in env.sbx("ls", "-q").stdout.split()


def test_software_emulation_is_said_loudly(env):
    done = env.sbx("create", "shell", "--name", "loud", "--memory", "1g", timeout=START_SECONDS)
    assert "emulation" in done.stderr.lower() or "tcg" in done.stderr.lower()
    assert "tcg" in env.sbx("ls").stdout.lower()
    env.sbx("rm", "-f", "loud")


def test_prune_takes_stopped_ones_only(env, sandbox):
    env.register("unused")
    would = json.loads(env.sbx("prune", "--dry-run", "--json").stdout)
    assert "unused" in [s["name"] for s in would["would_remove"]]
    assert sandbox.name not in json.dumps(would["would_remove"])
    env.sbx("prune", "-f", timeout=60)
    names = [s["name"] for s in env.ls()]
    assert "unused" not in names and sandbox.name in names


def test_create_is_idempotent_by_id(env):
    spec = {"id": "0123456789ab", "name": "by-id", "memory": 1 << 30}
    assert env.api("POST", "/v1/sandboxes", spec)[0] == 201
    status, same = env.api("POST", "/v1/sandboxes", spec)
    assert (status, same["id"]) == (200, spec["id"])
    assert env.api("POST", "/v1/sandboxes", {**spec, "memory": 2 << 30})[0] == 409
    assert env.api("POST", "/v1/sandboxes", {"name": "by-id"})[0] == 409
    generation = same["generation"]
    status, changed = env.api("PATCH", "/v1/sandboxes/by-id", {"cpus": 1, "generation": generation})
    assert status == 200 and changed["generation"] > generation
    assert env.api("PATCH", "/v1/sandboxes/by-id", {"cpus": 2, "generation": generation})[0] == 409
    assert env.api("DELETE", "/v1/sandboxes/by-id")[0] == 204
    assert env.api("DELETE", "/v1/sandboxes/by-id")[0] == 404


@pytest.mark.parametrize("body",
                         [{}, {"name": 5}, {"name": "x y"}, {"name": "good-name", "typo": 1},
                                  {"name": "good-name", "cpus": -1},
                          {"name": "good-name", "memory": "1g"},
                                  {"name": "good-name", "id": "XYZ"}, [], "text", None])
def test_the_api_refuses_what_it_does_not_know(env, body):
    status, answer = env.api("POST", "/v1/sandboxes", body)
    assert status == 400 and answer["error"]["code"] == "bad-request" and answer["error"]["message"]


def test_watch_tells_of_changes(env):
    from installation import Unix
    conn = Unix(env.socket, 30)
    conn.request("GET", "/v1/watch")
    answer = conn.getresponse()
    while json.loads(answer.readline())["type"] != "live":
        pass
    env.register("watched")
    seen = json.loads(answer.readline())
    assert (seen["type"], seen["sandbox"]["name"]) == ("changed", "watched")
    env.sbx("rm", "-f", "watched")
    while (seen := json.loads(answer.readline()))["type"] != "removed":
        pass
    conn.close()


def test_daemon_stop_leaves_sandboxes_running(fresh_env):
    box = fresh_env.create("goes-on")
    keeper = box.pids()["keeper"]
    old = fresh_env.daemon_pid()
    fresh_env.sbx("daemon", "stop")
    assert not host.is_alive(old)
    assert host.is_alive(keeper)
    assert box.guest("echo still here") == "still here"
    assert fresh_env.daemon_pid() != old and box.pids()["keeper"] == keeper
    assert json.loads(fresh_env.sbx("daemon", "status", "--json").stdout)["status"] == "running"


def test_many_first_uses_start_one_daemon(fresh_env):
    threads = [threading.Thread(target=fresh_env.sbx, args=("ls",)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert list(host.processes(fresh_env.folder).values()).count("sbxd") == 1


def test_settings_diagnose_version_completion(env):
    env.sbx("settings", "set", "vm.accel", "tcg")
    assert env.sbx("settings", "get", "vm.accel").stdout.strip() == "tcg"
    assert "vm.accel" in env.sbx("settings", "list").stdout
    assert env.sbx("settings", "set", "no.such", "x", check=False).returncode != 0
    report = json.loads(env.sbx("diagnose", "--json", check=False, timeout=120).stdout)
    assert {c["status"] for c in report["checks"]} <= {"pass", "warn", "fail", "skip"}
    assert env.sbx("version").stdout.strip()
    for shell in ("bash", "zsh", "fish"):
        assert "exec" in env.sbx("completion", shell).stdout


@pytest.mark.parametrize("args",
                         [["nonsense"], ["exec"], ["exec", "no-such-box", "true"],
                          ["stop", "no-such-box"],
                                  ["rm", "-f", "no-such-box"], ["inspect", "no-such-box"],
                          ["create", "nobody", "."],
                                  ["ls", "--nonsense"], ["cp", "a"]])
def test_errors_are_errors_and_say_something(env, args):
    done = env.sbx(*args, check=False)
    assert done.returncode not in (0, None) and done.returncode < 128
    assert done.stderr.strip() and "Traceback" not in done.stderr


def test_without_a_terminal_nobody_is_asked(bare_env):
    """The template is missing: offer to build it to a person, fail at once for a script."""
    done = bare_env.sbx("create", "shell", "--name", "no-template", check=False, timeout=30)
    assert done.returncode != 0 and "template" in done.stderr
    assert os.listdir(bare_env.folder / "data") in ([], ["sbx"])


def test_the_disk_has_the_size_that_was_asked_for(env):
    """Guest root sees the whole disk, a template saved from it keeps its size, and no disk is
    smaller than that of its template."""
    def size(box):
        return int(box.guest("df -B1 --output=size / | tail -1")) / 2**30

    plain = 20
    box = env.create("large", flags=["--disk", "24g", "--cold"])
    assert plain + 3 < size(box) < 24, size(box)
    box.guest("echo kept >/kept; sync")
    env.sbx("template", "save", "large", "large-disk", timeout=START_SECONDS)
    box.rm()
    done = env.sbx("create", "shell", "--name", "small", "-t", "large-disk", "--disk", "22g",
                   check=False, timeout=START_SECONDS)
    assert done.returncode == 1, done.stderr
    assert ("disk size 22 GiB is smaller than that of the template: use --disk 24g or more"
            in done.stderr), done.stderr
    box = env.create("again", flags=["-t", "large-disk", "--cold"])
    assert plain + 3 < size(box) < 24 and box.guest("cat /kept") == "kept"
    box.rm()
    env.sbx("template", "rm", "-f", "large-disk")
