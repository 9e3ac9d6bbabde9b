# SPDX-License-Identifier: Apache-2.0
"""Published ports in the API of sbxd: the list, notified sandboxes, audit records, and refused
ports."""
import contextlib
import socket

import pytest

from test_api import d, wait_for  # noqa: F401
from test_policy import ok, records


def ports(d, name):
    return ok(d.call("GET", f"/v1/sandboxes/{name}/ports"))["ports"]


def publish(d, name, *wanted):
    return d.call("POST", f"/v1/sandboxes/{name}/ports", {"ports": list(wanted)})


def unpublish(d, name, query):
    return d.call("DELETE", f"/v1/sandboxes/{name}/ports?{query}")


def port(host, inside, ip="127.0.0.1"):
    return {"host_ip": ip, "host_port": host, "sandbox_port": inside}


def told(d, name):
    path = d.state / "sandboxes" / d.get(name)["id"] / "ports"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def short(p):
    return p["host_ip"], p["host_port"], p["sandbox_port"], p["protocol"], p["state"]


def test_a_stopped_sandbox_keeps_the_list_for_its_start(d):
    d.create("demo")
    assert ports(d, "demo") == [] and d.get("demo")["ports"] == []
    o = ok(publish(d, "demo", port(18081, 8080), {"sandbox_port": 3000, "protocol": "tcp6"}))
    assert o["status"] == "stopped" and o["sandbox"] == "demo"
    assert [short(p) for p in o["ports"]] == [("127.0.0.1", 18081, 8080, "tcp4", "stopped"),
                                              ("::1", 0, 3000, "tcp6", "stopped")]
    assert d.get("demo")["generation"] == 2
    d.kill()
    d.start()
    ok(d.call("POST", "/v1/sandboxes/demo/start"), 202)
    d.wait_status("demo", "running")
    assert [short(p) for p in ports(d, "demo")] == [("127.0.0.1", 18081, 8080, "tcp4", "open"),
                                                    ("::1", 40001, 3000, "tcp6", "open")]
    assert d.get("demo")["ports"] == ports(d, "demo")
    ok(d.call("POST", "/v1/sandboxes/demo/stop", {"timeout_ms": 0}))
    assert [short(p)[1:] for p in ports(d, "demo")] == [(18081, 8080, "tcp4", "stopped"),
                                                        (0, 3000, "tcp6", "stopped")]
    assert ports(d, "demo")[1]["ephemeral"] is True and "ephemeral" not in ports(d, "demo")[0]


def test_a_change_counts_when_the_keeper_has_it(d):
    d.run("demo")
    o = ok(publish(d, "demo", port(18081, 8080)))
    assert short(o["ports"][0]) == ("127.0.0.1", 18081, 8080, "tcp4", "open")
    assert told(d, "demo") == [["127.0.0.1:18081:8080"]]
    ok(publish(d, "demo", port(0, 8080, "0.0.0.0"), port(18082, 8080)))
    assert told(d, "demo")[-1] == ["127.0.0.1:18081:8080", "0.0.0.0:0:8080", "127.0.0.1:18082:8080"]
    # One with any port is named by the port it has.
    o = ok(unpublish(d, "demo", "sandbox_port=8080&host_port=40001"))
    assert [(p["host_ip"], p["host_port"]) for p in o["ports"]] == [("0.0.0.0", 40001)]
    o = ok(unpublish(d, "demo", "sandbox_port=8080&host_ip=127.0.0.1&host_port=18082"))
    assert len(o["ports"]) == 1
    assert unpublish(d, "demo", "sandbox_port=8080&protocol=tcp6")[0] == 404
    ok(unpublish(d, "demo", "sandbox_port=8080"))
    assert told(d, "demo")[-1] == [] and ports(d, "demo") == []
    assert unpublish(d, "demo", "sandbox_port=8080")[0] == 404


def test_one_that_is_there_is_refused(d):
    d.run("demo")
    ok(publish(d, "demo", port(8080, 80)))
    for again in (port(8080, 80), port(8080, 81), port(8080, 80, "0.0.0.0")):
        status, o = publish(d, "demo", again)
        assert status == 409, o
        assert o["error"][
            "message"] == f"publish port: port {again['host_ip']}:8080/tcp is already published"
    assert publish(d, "demo", port(1, 2), port(1, 3))[0] == 409
    assert len(ports(d, "demo")) == 1 and len(told(d, "demo")) == 1


def test_another_sandbox_is_named(d):
    d.run("one")
    d.run("two")
    ok(publish(d, "one", port(8080, 80)))
    status, o = publish(d, "two", port(8080, 80))
    assert status == 409 and "already published by sandbox one" in o["error"]["message"]
    assert ports(d, "two") == []
    status, o = d.call("POST", "/v1/sandboxes", {"name": "three", "ports": [port(8080, 1)]})
    assert status == 409 and "sandbox one" in o["error"]["message"]
    # A stopped sandbox does not use its port.
    ok(d.call("POST", "/v1/sandboxes/one/stop", {"timeout_ms": 0}))
    ok(publish(d, "two", port(8080, 80)))


@pytest.mark.parametrize("number, why",
                         [(6666, "address already in use by another program"),
                          (80, "ports below 1024")])
def test_what_cannot_be_had_is_taken_back(d, number, why):
    d.run("demo")
    ok(publish(d, "demo", port(8080, 80)))
    status, o = publish(d, "demo", port(9090, 90), port(number, 70))
    assert status == 409 and why in o["error"]["message"] and "--publish 70" in o["error"]["hint"]
    assert [p["host_port"] for p in ports(d, "demo")] == [8080, 9090]
    wait_for(lambda: told(d, "demo")[-1] == ["127.0.0.1:8080:80", "127.0.0.1:9090:90"])
    assert [r["action"] for r in records(d)] == ["publish"] * 3 + ["unpublish"]


def test_at_a_start_it_is_shown_and_keeps_nobody_back(d):
    d.create("demo", ports=[port(6666, 80), port(8080, 81)])
    ok(d.call("POST", "/v1/sandboxes/demo/start"), 202)
    d.wait_status("demo", "running")
    bad, good = ports(d, "demo")
    assert bad["state"] == "failed" and bad[
        "reason"] == "address already in use by another program" and good["state"] == "open"
    assert bad["host_port"] == 6666


def test_each_change_is_a_record(d):
    d.create("demo", ports=[port(8080, 80)])
    ok(publish(d, "demo", {"sandbox_port": 81, "host_ip": "::"}))
    ok(unpublish(d, "demo", "sandbox_port=80"))
    assert [(r["action"], r["name"], r["reason"]) for r in records(d)] == [
        ("publish", "demo", "127.0.0.1:8080 -> 80/tcp4"), ("publish", "demo", ":::0 -> 81/tcp6"),
        ("unpublish", "demo", "127.0.0.1:8080 -> 80/tcp4")]


def test_patch_puts_a_whole_list(d):
    d.run("demo")
    ok(publish(d, "demo", port(8080, 80)))
    o = ok(d.call("PATCH", "/v1/sandboxes/demo", {"ports": [port(8081, 80), port(8080, 80)]}))
    assert [short(p) for p in o["ports"]] == [("127.0.0.1", 8081, 80, "tcp4", "open"),
                                              ("127.0.0.1", 8080, 80, "tcp4", "open")]
    n = len(told(d, "demo"))
    ok(d.call("PATCH", "/v1/sandboxes/demo", {"cpus": 2}))
    assert len(told(d, "demo")) == n and len(ports(d, "demo")) == 2
    assert d.call("PATCH", "/v1/sandboxes/demo", {"ports": [port(1, 1), port(1, 2)]})[0] == 400
    assert d.call("PATCH", "/v1/sandboxes/demo", {"name": "other", "ports": []})[0] == 400
    ok(d.call("PATCH", "/v1/sandboxes/demo", {"ports": []}))
    assert ports(d, "demo") == [] and told(d, "demo")[-1] == []


def test_a_keeper_that_says_nothing_is_not_waited_for_for_ever(d):
    d.run("demo", "ports-mute")
    o = ok(publish(d, "demo", port(8080, 80)))
    assert o["not_taken"] == "sbx-keeper did not respond in time" and o["ports"][0][
        "state"] == "starting"
    assert len(ports(d, "demo")) == 1


def test_a_keeper_that_lies_about_ports_is_killed(d):
    d.run("demo", "ports-lie")
    publish(d, "demo", port(8080, 80))
    wait_for(lambda: d.get("demo")["status"] == "stopped")
    assert "violated its protocol" in d.get("demo")["detail"]


def test_a_new_sbxd_tells_the_list_and_learns_the_state(d):
    d.run("demo")
    ok(publish(d, "demo", port(0, 80)))
    d.kill()
    d.start()
    wait_for(lambda: len(told(d, "demo")) == 2)
    wait_for(lambda: [short(p) for p in ports(d, "demo")]
             == [("127.0.0.1", 40000, 80, "tcp4", "open")])


@pytest.mark.parametrize("body",
                         [{}, {"ports": []}, {"ports": {}}, {"ports": [{}]},
                          {"ports": [{"sandbox_port": 0}]}, {"ports": [port(1, 1)], "more": 1},
                                  {"ports": [{"sandbox_port": 53, "protocol": "udp"}]},
                          {"ports": [port(1, 1, "localhost")]}])
def test_bodies_that_are_none(d, body):
    d.create("demo")
    assert d.call("POST", "/v1/sandboxes/demo/ports", body)[0] == 400
    assert ports(d, "demo") == [] and records(d) == []


def test_at_most_64(d):
    d.create("demo")
    ok(publish(d, "demo", *(port(10000 + n, n) for n in range(1, 65))))
    assert publish(d, "demo", port(9999, 99))[0] == 413
    assert len(ports(d, "demo")) == 64
    assert publish(d, "nobody",
                   port(1, 1))[0] == 404 and unpublish(d, "demo", "host_port=10001")[0] == 400


# ---- ports of suspended sandboxes ----

@pytest.fixture
def number():
    """A free port of this host."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def park(d, name, number, mode="park"):
    """A sandbox that its idle timeout has suspended (MODE park)."""
    if name not in [s["name"] for s in d.list()]:
        o = d.create(name, mode, ports=[port(number, 80)])
        ok(d.call("POST", f"/v1/sandboxes/{name}/start"), 202)
        d.wait_status(name, "running")
    o = ok(d.call("POST", f"/v1/sandboxes/{name}/stop", {"suspend_idle": True}))
    by = {"park": "idle", "idle": "stop"}[mode]
    assert o["status"] == "suspended" and o["suspended_by"] == by
    return d.state / "sandboxes" / o["id"]


def connect(number):
    return socket.create_connection(("127.0.0.1", number), 60)


def is_refused(number):
    try:
        connect(number).close()
    except ConnectionRefusedError:
        return True
    return False


def starts(folder):
    return (folder / "starts").read_text().count("start")


def test_a_connection_resumes_a_sandbox_and_keeps_its_bytes(d, number):
    folder = park(d, "demo", number)
    with connect(number) as c:
        c.sendall(b"first bytes")
        assert c.recv(100) == b"first bytes"
    assert d.get("demo")["status"] == "running" and starts(folder) == 2
    assert "resumes" in d.log_text()


def test_the_next_sbxd_listens_too(d, number):
    folder = park(d, "demo", number)
    d.kill()
    assert is_refused(number)
    d.start()
    with connect(number) as c:
        c.sendall(b"x")
        assert c.recv(1) == b"x"
    assert starts(folder) == 2


def test_a_thousand_connections_start_one_sandbox(d, number):
    folder = park(d, "demo", number)
    fds = []
    for _ in range(1000):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", number))
        fds.append(s)
    d.wait_status("demo", "running")
    fds[0].setblocking(True)
    fds[0].settimeout(60)
    fds[0].sendall(b"x")
    assert fds[0].recv(1) == b"x"
    for s in fds:
        s.close()
    assert starts(folder) == 2 and d.log_text().count("resumes") == 1


def test_a_resume_that_fails_closes_the_connections_and_is_not_repeated(d, number):
    folder = park(d, "demo", number)
    (folder / "fail").touch()
    with contextlib.suppress(ConnectionError), connect(number) as c:
        c.sendall(b"x")
        assert c.recv(1) == b""
    d.wait_status("demo", "suspended")
    assert d.get("demo")["detail"] == "cannot resume" and "cannot resume" in d.log_text()
    assert all(is_refused(number) for _ in range(20)) and starts(folder) == 2
    (folder / "fail").unlink()
    wait_for(lambda: not is_refused(number))  # after ten seconds
    d.wait_status("demo", "running")


def test_a_start_that_is_impossible_closes_the_connections(d, number):
    park(d, "demo", number)
    (d.root / "c/sbx").mkdir(exist_ok=True)
    (d.root / "c/sbx/settings.conf").write_text("bogus\n")
    with contextlib.suppress(ConnectionError), connect(number) as c:
        assert c.recv(1) == b""
    assert is_refused(number) and "connections to published ports of" in d.log_text()
    assert d.get("demo")["status"] == "suspended"


def test_two_sandboxes_are_resumed_one_after_the_other(d, number):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        other = s.getsockname()[1]
    park(d, "one", number)
    park(d, "two", other)
    used = d.processor_seconds()
    with connect(number) as a, connect(other) as b:
        for c in (a, b):
            c.sendall(b"x")
        assert a.recv(1) == b.recv(1) == b"x"
    assert d.processor_seconds() - used < 0.5


def test_only_ports_of_a_parked_sandbox_are_open(d, number):
    def open_again():
        park(d, "demo", number)
        assert not is_refused(number)
        d.wait_status("demo", "running")
        d.call("DELETE", "/v1/sandboxes/demo?force=1", timeout=60)
    park(d, "stopped", number, "idle")  # by sbx stop
    assert is_refused(number)
    ok(d.call("POST", "/v1/sandboxes/stopped/stop", {"timeout_ms": 0}))
    open_again()
    park(d, "demo", number)
    status, o = d.call("POST", "/v1/sandboxes", {"name": "other", "ports": [port(number, 1)]})
    assert status == 201 or "sandbox demo" in o["error"]["message"], o
    ok(unpublish(d, "demo", "sandbox_port=80"))
    assert is_refused(number)
    ok(publish(d, "demo", port(number, 80)))
    assert d.get("demo")["status"] == "suspended"
    ok(d.call("POST", "/v1/sandboxes/demo/stop", {"timeout_ms": 0}))  # discards the memory
    assert is_refused(number)
    d.call("DELETE", "/v1/sandboxes/demo?force=1")
    folder = park(d, "last", number)
    d.call("DELETE", "/v1/sandboxes/last?force=1")
    assert is_refused(number) and not folder.exists()
