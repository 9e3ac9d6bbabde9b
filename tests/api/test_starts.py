# SPDX-License-Identifier: Apache-2.0
"""The limit of sandboxes that start at the same time: daemon.max-starts."""
import http.client
import threading

from test_api import UnixConnection, d, wait_for  # noqa: F401


def limit(d, n):
    folder = d.root / "c/sbx"
    folder.mkdir(exist_ok=True)
    (folder / "settings.conf").write_text(f"daemon.max-starts = {n}\n")


def start(d, name, mode=None):
    d.create(name, mode)
    status, o = d.call("POST", f"/v1/sandboxes/{name}/start")
    assert status == 202, o
    return o


def stop(d, name, **body):
    status, o = d.call("POST", f"/v1/sandboxes/{name}/stop", body or {"timeout_ms": 0})
    assert status == 200, o
    return o


def queue(d):
    """The names of the waiting ones, in their order."""
    waiting = [(s["start_queue"], s["name"]) for s in d.list() if s["start_queue"]]
    return [name for _, name in sorted(waiting)]


def block(d):
    """One start that never ends has the only place."""
    limit(d, 1)
    start(d, "first", "silent")


def test_starts_wait_in_order_and_all_succeed(d):
    block(d)
    for name in ("cc", "aa", "bb"):
        o = start(d, name)
        assert (o["status"], o["keeper_pid"]) == ("starting", 0), o
    assert queue(d) == ["cc", "aa", "bb"]
    assert d.get("bb")["detail"] == "waiting to start, 2 before it"
    assert start_again(d, "bb") == 3, "a second request keeps the place"
    stop(d, "first")
    for name in ("cc", "aa", "bb"):
        d.wait_status(name, "running")
    began = [d.get(name)["started_at"] for name in ("cc", "aa", "bb")]
    assert queue(d) == [] and began == sorted(began)


def start_again(d, name):
    status, o = d.call("POST", f"/v1/sandboxes/{name}/start")
    assert status == 202, o
    return o["start_queue"]


def test_a_higher_limit_and_none_by_hand(d):
    limit(d, 2)
    start(d, "one", "silent")
    assert start(d, "two", "silent")["start_queue"] == 0
    assert start(d, "three")["start_queue"] == 1


def test_a_stop_removes_a_waiting_start(d):
    block(d)
    start(d, "one")
    start(d, "two")
    assert stop(d, "one")["status"] == "stopped"
    assert queue(d) == ["two"] and d.get("one")["detail"] == ""
    assert stop(d, "two", suspend=True)["status"] == "stopped", "as Ctrl-C in sbx start"
    assert queue(d) == []
    stop(d, "first")
    assert [s["status"] for s in d.list()] == ["stopped"] * 3


def test_a_removal_removes_a_waiting_start(d):
    block(d)
    start(d, "one")
    start(d, "two")
    assert d.call("DELETE", "/v1/sandboxes/one")[0] == 204
    assert queue(d) == ["two"]
    stop(d, "first")
    d.wait_status("two", "running")


def test_a_create_waits_and_is_removed_with_its_client(d):
    block(d)
    c = UnixConnection(d.sock, 60)
    c.request("POST", "/v1/sandboxes", '{"name": "lost", "start": true}')
    wait_for(lambda: queue(d) == ["lost"])
    replies = []
    t = threading.Thread(target=lambda: replies.append(
        d.call("POST", "/v1/sandboxes", {"name": "kept", "start": True}, 60)))
    t.start()
    wait_for(lambda: queue(d) == ["lost", "kept"])
    c.close()
    wait_for(lambda: queue(d) == ["kept"])
    wait_for(lambda: sorted(s["name"] for s in d.list()) == ["first", "kept"])
    stop(d, "first")
    t.join()
    assert replies[0][0] == 201 and replies[0][1]["status"] == "running", replies


def test_a_failed_start_gives_its_place_to_the_next(d):
    block(d)
    start(d, "bad", "fail")
    start(d, "good")
    stop(d, "first")
    d.wait_status("good", "running")
    assert "the kernel did not start" in d.wait_status("bad", "stopped")["detail"]


def test_a_policy_change_does_not_wait_for_a_waiting_start(d):
    assert d.call("PUT", "/v1/policy", {"preset": "deny-all"})[0] == 200
    block(d)
    stop(d, "first")
    limit(d, 1)
    start(d, "slow", "slow")
    start(d, "waits")
    status, o = d.call("POST", "/v1/policy/rules",
                       {"effect": "allow", "resources": "a.example"})
    assert status in (200, 201), o
    assert not o.get("not_applied"), o


def test_a_waiting_start_has_a_reason_after_sbxd(d):
    """Also after an orderly exit."""
    for end in (d.kill, lambda: d.proc.terminate() or d.proc.wait(60)):
        block(d) if not d.list() else start_again(d, "first")
        if not [s for s in d.list() if s["name"] == "waits"]:
            d.create("waits")
        assert start_again(d, "waits") == 1
        end()
        d.start()
        o = d.wait_status("waits", "stopped")
        assert o["detail"] == "sbxd exited while the start waited for others: start it again", o
        stop(d, "first")
    assert start_again(d, "waits") == 0
    assert d.wait_status("waits", "running")["detail"] == ""


def test_the_wait_of_a_client_covers_the_queue(d):
    block(d)
    start(d, "one")
    threading.Timer(1, lambda: stop(d, "first")).start()
    c = UnixConnection(d.sock, 60)
    c.request("GET", "/v1/sandboxes/one?wait=50000")
    r = c.getresponse()
    assert isinstance(r, http.client.HTTPResponse) and b'"running"' in r.read()


def test_waiting_starts_count_for_the_limit_of_sandboxes(d):
    block(d)
    with open(d.root / "c/sbx/settings.conf", "a") as f:
        f.write("daemon.max-sandboxes = 2\n")
    start(d, "one")
    d.create("two")
    status, o = d.call("POST", "/v1/sandboxes/two/start")
    assert status == 409 and "daemon.max-sandboxes is 2" in o["error"]["message"], o
