# SPDX-License-Identifier: Apache-2.0
"""The limits of sbxd: running sandboxes, connections and descriptors."""
import resource
import socket
import subprocess

from test_api import SBXD, d, is_alive, raw, wait_for  # noqa: F401


def settings(d, **values):
    folder = d.root / "c/sbx"
    folder.mkdir(exist_ok=True)
    (folder / "settings.conf").write_text(
        "".join(f"daemon.max-{k} = {v}\n" for k, v in values.items()))


def start(d, name):
    d.create(name)
    return d.call("POST", f"/v1/sandboxes/{name}/start")


def test_the_number_of_running_sandboxes_is_a_setting(d):
    settings(d, sandboxes=1)
    d.run("one")
    status, o = start(d, "two")
    assert status == 409 and "daemon.max-sandboxes is 1" in o["error"]["message"], o
    assert d.get("two")["status"] == "stopped"
    settings(d, sandboxes=2)
    assert d.call("POST", "/v1/sandboxes/two/start")[0] == 202
    d.wait_status("two", "running")
    assert start(d, "three")[0] >= 400
    settings(d, sandboxes=0)
    assert d.call("POST", "/v1/sandboxes/three/start")[0] == 202
    d.wait_status("three", "running")


def test_a_place_is_free_after_a_stop(d):
    settings(d, sandboxes=1)
    for name in ("one", "two", "three"):
        d.run(name)
        assert d.call("POST", f"/v1/sandboxes/{name}/stop", {"timeout_ms": 1000})[0] == 200


def test_running_sandboxes_above_the_limit_are_adopted(d):
    pids = [d.run(name)["keeper_pid"] for name in ("one", "two", "three")]
    d.kill()
    settings(d, sandboxes=1)
    d.start()
    for name, pid in zip(("one", "two", "three"), pids):
        assert d.wait_status(name, "running")["keeper_pid"] == pid and is_alive(pid)


def connect(d, n):
    socks = [socket.socket(socket.AF_UNIX) for _ in range(n)]
    for s in socks:
        s.connect(d.sock)
    return socks


def test_the_number_of_connections_is_a_setting(d):
    settings(d, connections=20)
    socks = connect(d, 20)
    answer = raw(d, b"")
    assert answer.startswith(b"HTTP/1.1 503") and b"daemon.max-connections" in answer
    settings(d, connections=40)
    more = connect(d, 15)
    assert raw(d, b"GET /v1/version HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 200")
    settings(d, connections=20)
    assert raw(d, b"").startswith(b"HTTP/1.1 503"), "a lower limit applies at once"
    for s in socks + more:
        s.close()
    wait_for(lambda: raw(d, b"GET /v1/version HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 200"))


def test_sbxd_uses_all_descriptors_that_it_may_have(d):
    """The usual soft limit is enough for 330 sandboxes."""
    d.kill()
    few, hard = 40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    d.log = open(d.root / "log", "ab")
    d.proc = subprocess.Popen(
        [SBXD, f"--state={d.state}"], env=d.env, stderr=d.log, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard)))
    wait_for(d.ready)
    for i in range(16):
        d.run(f"box-{i}")
    assert d.descriptors() > few
