# SPDX-License-Identifier: Apache-2.0
"""The pool of sbxd: waiting machines, their claims, and machines that die, hang or no longer
fit."""
import json
import os
import signal
import time

import pytest

from test_api import d, is_alive, wait_for  # noqa: F401
from test_policy import ok

READY = 20.0  # the pool is filled one at a time, each after a pause


def make_template(d, name="debian", size=1):
    folder = d.root / "d/sbx/templates" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(
        {"files": {f: {"size": size, "hash": "ab" * 32}
                   for f in ("root.img", "docker.img", "vmlinuz", "modules.cpio")}}))


def settings(d, **values):
    """Writes settings as `sbx settings` does, and notifies sbxd."""
    folder = d.root / "c/sbx"
    folder.mkdir(exist_ok=True)
    everything = {"vm.cpus": 2, "vm.memory": "1g", "vm.accel": "tcg", "warm.images": "false",
                  **{k.replace("_", ".", 1): v for k, v in values.items()}}
    (folder / "settings.conf").write_text("".join(f"{k} = {v}\n" for k, v in everything.items()))
    ok(d.call("POST", "/v1/pool"))


def state(d):
    pool = ok(d.call("GET", "/v1/version"))["pool"]
    return pool["ready"], pool["size"]


def waiting(d):
    """Ids of the unclaimed machines."""
    return {p.parent.name for p in (d.state / "sandboxes").glob("*/pool")}


def pid_of(d, ident):
    for pid in d.left():
        try:
            if ident.encode() in open(f"/proc/{pid}/cmdline", "rb").read():
                return pid
        except OSError:
            pass
    return 0


def folders(d):
    return {p.name for p in (d.state / "sandboxes").iterdir()}


@pytest.fixture
def pool(d):
    make_template(d)
    settings(d, pool_size=1)
    wait_for(lambda: state(d) == (1, 1), READY)
    return d


def one(d):
    (ident,) = waiting(d)
    return ident


def test_off_unless_set(d):
    make_template(d)
    settings(d)
    time.sleep(2.5)
    assert state(d) == (0, 0) and folders(d) == set()


def test_one_that_waits_is_in_no_list(pool):
    ident = one(pool)
    assert pool.list() == []
    assert pool.call("GET", f"/v1/sandboxes/{ident}")[0] == 404
    assert pool.call("POST", f"/v1/sandboxes/{ident}/start")[0] == 404
    assert pool.call("DELETE", f"/v1/sandboxes/{ident}?force=1")[0] == 404
    begin = time.monotonic()
    ok(pool.call("POST", "/v1/reload"))  # no sandbox needs a notification, and no reply is awaited
    assert time.monotonic() - begin < 3.5  # RELOAD_MS is 4 s
    assert one(pool) == ident


def test_a_claim_takes_it_and_another_one_is_made(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    made = pool.create("demo")
    assert made["id"] == ident and made["status"] == "stopped"
    assert pool.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    o = pool.wait_status("demo", "running")
    assert o["start"] == "pool"
    assert pid_of(pool, ident) == keeper
    spec = json.loads((pool.state / "specs" / ident / "spec.json").read_text())
    assert spec["name"] == "demo"
    assert not (pool.state / "sandboxes" / ident / "pool").exists()
    wait_for(lambda: state(pool) == (1, 1), READY)
    assert one(pool) != ident
    # the sandbox is one like any other
    pool.kill()
    pool.start()
    assert pool.wait_status("demo", "running")["id"] == ident and is_alive(keeper)
    ok(pool.call("POST", "/v1/sandboxes/demo/stop", {"timeout_ms": 0}))
    pool.call("DELETE", "/v1/sandboxes/demo")
    wait_for(lambda: ident not in folders(pool))


@pytest.mark.parametrize("other",
                         [{"cpus": 1}, {"memory": 512 << 20}, {"disk": 30 << 30},
                          {"template": "other"}, {"accel": "kvm"},
                                   {"id": "0123456789ab"}])
def test_another_class_does_not_get_it(pool, other):
    ident = one(pool)
    make_template(pool, "other", 2)
    assert pool.create("demo", **other)["id"] != ident
    assert pool.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    assert pool.wait_status("demo", "running")["start"] != "pool"
    assert waiting(pool) == {ident}


def test_two_at_once_get_different_ones(pool):
    settings(pool, pool_size=2)
    wait_for(lambda: state(pool) == (2, 2), READY)
    both = waiting(pool)
    a, b = pool.create("first"), pool.create("second")
    assert {a["id"], b["id"]} == both
    assert pool.create("third")["id"] not in both
    for name in ("first", "second", "third"):
        assert pool.call("POST", f"/v1/sandboxes/{name}/start")[0] == 202
    assert [pool.wait_status(n, "running")["start"]
            for n in ("first", "second")] == ["pool", "pool"]
    assert pool.wait_status("third", "running")["start"] == "cold"


def test_a_name_in_use_takes_nothing(pool):
    pool.create("demo", cpus=1)
    ident = one(pool)
    assert pool.call("POST", "/v1/sandboxes", {"name": "demo"})[0] == 409
    assert state(pool) == (1, 1) and one(pool) == ident


@pytest.mark.parametrize("mode", ["claim-no", "claim-mute", "claim-die"])
def test_a_claim_that_fails_is_a_start_without(pool, mode):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    (pool.state / "sandboxes" / ident / "root.qcow2").write_text("the image's")
    assert pool.create("demo", mode)["id"] == ident
    assert pool.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    wait_for(lambda: pool.get("demo")["status"] == "running", READY)
    assert pool.get("demo")["start"] == "cold"
    wait_for(lambda: not is_alive(keeper))
    assert not (pool.state / "sandboxes" / ident / "root.qcow2").exists()


def test_stopped_while_it_is_claimed(pool):
    ident = one(pool)
    pool.create("demo", "claim-mute")
    assert pool.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    assert pool.call("DELETE", "/v1/sandboxes/demo?force=1")[0] == 204
    assert ident not in folders(pool) and not pid_of(pool, ident)


def test_cold_is_not_from_the_pool(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    (pool.state / "sandboxes" / ident / "root.qcow2").write_text("the image's")
    pool.create("demo", "slow")
    pool.call("POST", "/v1/sandboxes/demo/start", {"cold": True})
    wait_for(lambda: not is_alive(keeper))
    assert not (pool.state / "sandboxes" / ident / "root.qcow2").exists()


def test_changed_between_create_and_start(pool):
    ident = one(pool)
    pool.create("demo")
    ok(pool.call("PATCH", "/v1/sandboxes/demo", {"cpus": 1}))
    assert pool.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    o = pool.wait_status("demo", "running")
    assert (o["id"], o["start"]) == (ident, "cold")


def test_removed_before_its_start(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    pool.create("demo")
    assert pool.call("DELETE", "/v1/sandboxes/demo")[0] == 204
    assert ident not in folders(pool) and not is_alive(keeper)
    wait_for(lambda: state(pool) == (1, 1), READY)


def test_a_killed_one_is_made_anew(pool):
    ident = one(pool)
    os.kill(pid_of(pool, ident), signal.SIGKILL)
    wait_for(lambda: waiting(pool) and ident not in folders(pool) and state(pool) == (1, 1), READY)


def test_shrunk_to_nothing(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    settings(pool, pool_size=0)
    wait_for(lambda: folders(pool) == set() and not is_alive(keeper))
    assert list((pool.runtime / "s").iterdir()) == []


def test_another_class_in_the_settings(pool):
    ident = one(pool)
    settings(pool, pool_size=1, vm_cpus=1)
    wait_for(lambda: waiting(pool) and ident not in folders(pool) and state(pool) == (1, 1), READY)
    assert pool.create("demo")["cpus"] == 1


def test_a_new_template(pool):
    ident = one(pool)
    make_template(pool, size=7)
    ok(pool.call("POST", "/v1/pool"))
    wait_for(lambda: waiting(pool) and ident not in folders(pool) and state(pool) == (1, 1), READY)


def test_sbxd_ends(pool):
    keeper = pid_of(pool, one(pool))
    pool.proc.terminate()
    pool.proc.wait(10)
    assert not is_alive(keeper) and folders(pool) == set()
    pool.start()
    wait_for(lambda: state(pool) == (1, 1), READY)


def test_sbxd_is_killed(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    pool.create("taken")
    pool.kill()
    wait_for(lambda: not is_alive(keeper))  # a machine that cannot be claimed exits
    pool.start()
    wait_for(lambda: state(pool) == (1, 1), READY)
    assert one(pool) != ident and not (pool.state / "sandboxes" / ident / "pool").exists()
    assert pool.call("POST", "/v1/sandboxes/taken/start")[0] == 202
    assert pool.wait_status("taken", "running")["start"] == "cold"


def test_one_that_hangs_is_killed_by_the_next_sbxd(pool):
    ident = one(pool)
    keeper = pid_of(pool, ident)
    os.kill(keeper, signal.SIGSTOP)
    pool.kill()
    pool.start()
    wait_for(lambda: not is_alive(keeper) and ident not in folders(pool))


@pytest.mark.parametrize("how", ["die", "cold"])
def test_one_that_never_is_ready_is_tried_less_and_less(d, how):
    (d.libexec / "pool").symlink_to(how)
    d.kill()
    d.start()
    make_template(d)
    settings(d, pool_size=1)
    time.sleep(6)
    assert state(d) == (0, 1) and folders(d) == set()
    assert d.log_text().count("did not become ready") == 1  # and not one after the other
    d.run("demo")  # no client waits for it
