# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in the API of sbxd: the list, the labels, and keepers that misbehave."""
import json
import os
import re
import socket
import time

import pytest

from test_api import d, wait_for  # noqa: F401
from test_policy import ok, records


def checkpoint(d, name, **body):
    return d.call("POST", f"/v1/sandboxes/{name}/checkpoints", body or None)


def listed(d, name):
    o = ok(d.call("GET", f"/v1/sandboxes/{name}/checkpoints"))
    assert o["sandbox"] == name
    return o["checkpoints"]


def folder(d, name):
    return d.state / "sandboxes" / d.get(name)["id"]


def labels(d, name):
    return [c["label"] for c in listed(d, name)]


def test_a_checkpoint_is_listed_with_its_layers_and_its_record(d):
    d.run("demo")
    assert listed(d, "demo") == []
    status, first = checkpoint(d, "demo")
    assert status == 201 and first["label"] == "c1", first
    assert first["layers"] == {"root": 1, "docker": 1}
    assert first["seq"] == 41 and first["pause_ms"] == 12
    assert first["bytes"] > 0, "the layers have a size"
    status, second = checkpoint(d, "demo", label="before-merge")
    assert status == 201 and second["layers"] == {"root": 2, "docker": 2}, second
    assert listed(d, "demo") == [first, second]
    assert checkpoint(d, "demo")[1]["label"] == "c2"


def test_the_list_outlives_sbxd_and_a_stop(d):
    d.run("demo")
    checkpoint(d, "demo", label="kept")
    d.kill()
    d.start()
    assert labels(d, "demo") == ["kept"]
    d.wait_status("demo", "running")
    ok(d.call("POST", "/v1/sandboxes/demo/stop", {"timeout_ms": 0}))
    assert labels(d, "demo") == ["kept"]


def test_a_label_is_used_once(d):
    d.run("demo")
    assert checkpoint(d, "demo", label="twice")[0] == 201
    status, o = checkpoint(d, "demo", label="twice")
    assert status == 409 and "'twice' already exists" in o["error"]["message"], o
    assert o["error"]["hint"] == "sbx checkpoint --ls SANDBOX"
    assert labels(d, "demo") == ["twice"]


@pytest.mark.parametrize("body", [
    {"label": "../x"}, {"label": "a/b"}, {"label": "Upper"}, {"label": "1st"}, {"label": "-x"},
    {"label": "x" * 33}, {"label": 7}, {"label": "a\n"}, {"what": "x"}])
def test_wrong_labels_are_refused(d, body):
    d.run("demo")
    status, o = checkpoint(d, "demo", **body)
    assert status == 400, o
    assert not (folder(d, "demo") / "root.1.qcow2").exists(), "the disks were frozen"


def test_a_sandbox_that_is_not_running_is_refused(d):
    d.create("demo")
    status, o = checkpoint(d, "demo")
    assert status == 409 and o["error"]["hint"] == "sbx start SANDBOX", o
    assert d.call("GET", "/v1/sandboxes/nobody/checkpoints")[0] == 404


def test_a_full_chain_is_refused(d):
    d.run("demo", "freeze-full")
    status, o = checkpoint(d, "demo")
    assert status == 409 and o["error"]["code"] == "not-frozen", o
    assert listed(d, "demo") == []


def test_a_keeper_that_reports_another_label_adds_nothing(d):
    d.run("demo", "freeze-lie")
    status, o = checkpoint(d, "demo", label="good")
    assert status == 400 and "unexpected checkpoint" in o["error"]["message"], o
    assert listed(d, "demo") == []


def test_a_template_save_is_not_a_checkpoint(d):
    d.run("demo")
    o = ok(d.call("POST", "/v1/sandboxes/demo/freeze"))
    assert [p.rsplit("/", 1)[1] for p in o["layers"]["root"]] == ["root.1.qcow2"]
    assert listed(d, "demo") == []
    assert checkpoint(d, "demo")[1]["layers"] == {"root": 2, "docker": 2}


def test_a_missing_number_is_skipped(d):
    d.run("demo")
    for _ in range(3):
        checkpoint(d, "demo")
    (folder(d, "demo") / "root.2.qcow2").unlink()
    o = ok(d.call("POST", "/v1/sandboxes/demo/freeze"))
    assert [p.rsplit("/", 1)[1] for p in o["layers"]["root"]] == [
        "root.1.qcow2", "root.3.qcow2", "root.4.qcow2"]


ENTRY = {"label": "a", "created_at": 1, "seq": 1, "bytes": 1, "pause_ms": 1,
         "layers": {"root": 1, "docker": 1}}


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"checkpoints":{}}', json.dumps({"checkpoints": [ENTRY, ENTRY]}),
    json.dumps({"checkpoints": [{**ENTRY, "label": "../../etc"}]}),
    json.dumps({"checkpoints": [{**ENTRY, "layers": {"root": 10000, "docker": 1}}]}),
    json.dumps({"checkpoints": [{**ENTRY, "seq": -1}]}),
    json.dumps({"checkpoints": [{**ENTRY, "auto": 1}]}), "x" * 70000])
def test_a_damaged_list_is_an_error_and_is_kept(d, text):
    d.run("demo")
    path = folder(d, "demo") / "checkpoints"
    path.write_text(text)
    assert d.call("GET", "/v1/sandboxes/demo/checkpoints")[0] >= 400
    assert checkpoint(d, "demo")[0] >= 400
    assert path.read_text() == text


def test_a_list_that_is_a_link_is_not_followed(d):
    d.run("demo")
    away = d.root / "away"
    away.write_text(json.dumps({"checkpoints": [ENTRY]}))
    (folder(d, "demo") / "checkpoints").symlink_to(away)
    assert d.call("GET", "/v1/sandboxes/demo/checkpoints")[0] >= 400


def test_a_client_that_left_has_its_checkpoint(d):
    """Its audit record is written by then."""
    d.run("demo", "freeze-late")
    body = b'{"label":"alone"}'
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(d.sock)
        s.sendall(b"POST /v1/sandboxes/demo/checkpoints HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(body), body))
        wait_for((folder(d, "demo") / "docker.1.qcow2").exists)
    assert labels(d, "demo") == []
    wait_for(lambda: labels(d, "demo") == ["alone"])


# -- rewind ---------------------------------------------------------------------------------------

def rewind(d, name, **body):
    return d.call("POST", f"/v1/sandboxes/{name}/rewind", body)


def stop(d, name):
    ok(d.call("POST", f"/v1/sandboxes/{name}/stop", {"timeout_ms": 0}))


def disks(d, name):
    return sorted(p.name for p in folder(d, name).glob("*.qcow2"))


@pytest.fixture
def two(d):
    """A stopped sandbox with the checkpoints c1 and c2, and tops."""
    d.run("demo")
    checkpoint(d, "demo")
    checkpoint(d, "demo")
    stop(d, "demo")
    for disk in ("root", "docker"):
        (folder(d, "demo") / f"{disk}.qcow2").write_text("newer")
    return d


def test_a_rewind_sets_layers_aside_and_undo_puts_them_back(two):
    before = disks(two, "demo")
    assert rewind(two, "demo", label="c1")[0] == 204
    assert disks(two, "demo") == [
        "docker.1.qcow2", "docker.aside.2.qcow2", "docker.aside.qcow2",
        "root.1.qcow2", "root.aside.2.qcow2", "root.aside.qcow2"]
    o = ok(two.call("GET", "/v1/sandboxes/demo/checkpoints"))
    assert [c["label"] for c in o["checkpoints"]] == ["c1"]
    assert o["aside"]["layers"] == {"root": 1, "docker": 1}
    assert [c["label"] for c in o["aside"]["checkpoints"]] == ["c2"]
    assert rewind(two, "demo", undo=True)[0] == 204
    assert disks(two, "demo") == before and labels(two, "demo") == ["c1", "c2"]


def test_a_rewind_is_recorded_and_the_log_is_not_rewound(two):
    n = len(records(two, "lifecycle"))
    rewind(two, "demo", label="c1")
    rewind(two, "demo", undo=True)
    assert [(r["action"], r["name"], r["reason"]) for r in records(two, "lifecycle")[n:]] == [
        ("rewind", "demo", "to checkpoint c1"), ("rewind", "demo", "undo")]


def test_a_running_or_suspended_sandbox_is_not_rewound(d):
    d.run("demo")
    checkpoint(d, "demo")
    status, o = rewind(d, "demo", label="c1")
    assert status == 409 and o["error"]["hint"] == "sbx stop --cold SANDBOX", o
    stop(d, "demo")
    memory = folder(d, "demo") / "suspend"
    memory.mkdir()
    (memory / "image.json").write_text("{}")
    status, o = rewind(d, "demo", label="c1")
    assert status == 409 and "suspended" in o["error"]["message"], o
    assert disks(d, "demo") == ["docker.1.qcow2", "root.1.qcow2"]


# -- memory ---------------------------------------------------------------------------------------

def memories(d, name):
    return sorted(p.name for p in folder(d, name).glob("memory.*"))


@pytest.fixture
def with_memory(d):
    """A stopped sandbox with the checkpoints c1 (with memory) and c2, and tops."""
    d.run("demo")
    status, first = checkpoint(d, "demo", with_memory=True)
    assert status == 201 and first["with_memory"] is True and first["label"] == "c1", first
    assert checkpoint(d, "demo", with_memory=False)[1]["with_memory"] is False
    assert [c["with_memory"] for c in listed(d, "demo")] == [True, False]
    stop(d, "demo")
    for disk in ("root", "docker"):
        (folder(d, "demo") / f"{disk}.qcow2").write_text("newer")
    return d


def suspended_at(d, name):
    """What the next start resumes: the tops are those that the snapshot names."""
    at = folder(d, name)
    told = json.loads((at / "suspend/image.json").read_text())
    for disk in told["disks"]:
        st = (at / disk["name"]).stat()
        assert (disk["size"], disk["mtime_ns"]) == (st.st_size, st.st_mtime_ns)
        assert (at / disk["name"]).read_text() == disk["name"], "not the empty top"
    assert [disk["name"] for disk in told["disks"]] == ["root.qcow2", "docker.qcow2"]
    assert told["version"] == 3
    return sorted(p.name for p in (at / "suspend").iterdir())


def test_a_rewind_to_memory_is_a_suspended_sandbox(with_memory):
    d, at = with_memory, folder(with_memory, "demo")
    for _ in range(2):  # the memory of a checkpoint is used any number of times
        assert rewind(d, "demo", label="c1")[0] == 204
        assert d.get("demo")["status"] == "suspended"
        assert suspended_at(d, "demo") == ["ca", "image.json", "memory", "memory.sums", "state"]
        assert os.stat(at / "suspend/memory").st_ino == os.stat(at / "memory.41/memory").st_ino
        (at / "root.qcow2").write_text("changed by the guest")
        stop(d, "demo")
        assert not (at / "suspend").exists() and memories(d, "demo") == ["memory.41"]
        assert (at / "memory.41/root.qcow2").read_text() == "root.qcow2"
    assert rewind(d, "demo", undo=True)[0] == 204
    assert d.get("demo")["status"] == "stopped", "an undo has no memory"


def test_the_memory_of_a_checkpoint_goes_with_it(with_memory):
    d = with_memory
    ok(d.call("DELETE", "/v1/sandboxes/demo/checkpoints?label=c2"))
    assert memories(d, "demo") == ["memory.41"]
    ok(d.call("DELETE", "/v1/sandboxes/demo/checkpoints?label=c1"))
    assert memories(d, "demo") == []


def test_memory_that_was_set_aside_is_kept_for_an_undo(d):
    d.run("demo")
    checkpoint(d, "demo")
    checkpoint(d, "demo", with_memory=True)
    stop(d, "demo")
    assert rewind(d, "demo", label="c1")[0] == 204
    assert memories(d, "demo") == ["memory.42"]
    assert rewind(d, "demo", undo=True)[0] == 204
    assert rewind(d, "demo", label="c2")[0] == 204
    assert d.get("demo")["status"] == "suspended"
    stop(d, "demo")
    for _ in range(2):
        assert rewind(d, "demo", label="c1")[0] == 204
    assert memories(d, "demo") == [], "what no undo brings back is left"


@pytest.mark.parametrize("name, text", [
    ("image.json", "{"), ("image.json", None), ("memory", None), ("root.qcow2", None)])
def test_without_its_memory_a_checkpoint_is_one_of_disks(with_memory, name, text):
    d, path = with_memory, folder(with_memory, "demo") / "memory.41" / name
    path.unlink()
    if text:
        path.write_text(text)
    assert rewind(d, "demo", label="c1")[0] == 204
    assert d.get("demo")["status"] == "stopped"
    assert not (folder(d, "demo") / "suspend").exists()


def test_a_start_completes_a_rewind_to_memory_that_was_interrupted(with_memory):
    """sbxd was killed when the memory was in its place and the plan was not yet removed."""
    d, at = with_memory, folder(with_memory, "demo")
    assert rewind(d, "demo", label="c1")[0] == 204
    done = json.loads((at / "checkpoints").read_text())
    (at / "rewind").write_text(json.dumps({"undo": False, "step": 3, "memory": 41, "list": done}))
    assert d.get("demo")["status"] == "suspended"
    status, o = d.call("POST", "/v1/sandboxes/demo/start")
    assert status == 202, o
    assert not (at / "rewind").exists() and not (at / "root.aside.3.qcow2").exists()


def test_other_commands_complete_it_too_and_find_a_suspended_sandbox(with_memory):
    d, at = with_memory, folder(with_memory, "demo")
    assert rewind(d, "demo", label="c1")[0] == 204
    done = json.loads((at / "checkpoints").read_text())
    (at / "suspend").rename(at / "suspend.new")  # killed just before
    (at / "rewind").write_text(json.dumps({"undo": False, "step": 3, "memory": 41, "list": done}))
    status, o = rewind(d, "demo", undo=True)
    assert status == 409 and "is suspended" in o["error"]["message"], o
    assert suspended_at(d, "demo") == ["ca", "image.json", "memory", "memory.sums", "state"]
    assert not (at / "rewind").exists() and not (at / "suspend.new").exists()


def test_a_checkpoint_that_was_killed_does_not_block_the_memory_of_another(with_memory):
    """The keeper was killed while suspend.new had the empty tops of a checkpoint."""
    d, left = with_memory, folder(with_memory, "demo") / "suspend.new"
    left.mkdir()
    for name in ("state", "memory", "memory.sums", "root.qcow2", "docker.qcow2"):
        (left / name).write_text("incomplete")
    assert rewind(d, "demo", label="c1")[0] == 204
    assert d.get("demo")["status"] == "suspended"


def test_memory_of_no_checkpoint_is_removed_after_a_stop(d):
    """Of a keeper that was killed before it reported the checkpoint."""
    d.run("demo")
    checkpoint(d, "demo", with_memory=True)
    left = folder(d, "demo") / "memory.99"
    left.mkdir()
    (left / "memory").write_text("of nobody")
    stop(d, "demo")
    wait_for(lambda: memories(d, "demo") == ["memory.41"])


@pytest.mark.parametrize("name", ["memory.41", "suspend", "suspend.new", "memory.99"])
def test_no_link_leads_to_the_files_of_another_sandbox(with_memory, name):
    d, at = with_memory, folder(with_memory, "demo")
    other = at.parent / "0123456789ab"
    other.mkdir()
    for file in ("image.json", "state", "memory", "memory.sums", "root.qcow2", "docker.qcow2"):
        (other / file).write_text("{}")
    if name == "memory.41":
        (at / name).rename(at / "moved")
    (at / name).symlink_to(other)
    ok(d.call("POST", "/v1/sandboxes/demo/stop", {}))
    assert rewind(d, "demo", label="c1")[0] == 204
    assert len(list(other.iterdir())) == 6, "files of another directory were removed"
    assert not (at / name).is_symlink() or name == "memory.41"
    assert all(os.stat(p).st_nlink == 1 for p in other.iterdir()), "they were linked"
    assert d.get("demo")["status"] == ("stopped" if name == "memory.41" else "suspended")


def test_memory_is_refused_where_a_suspend_is(d):
    d.run("demo")
    assert checkpoint(d, "demo", auto=True, with_memory=True)[0] == 400
    assert checkpoint(d, "demo", with_memory=1)[0] == 400
    work = d.root / "work"
    work.mkdir()
    d.create("staged", staged=True, workspaces=[{"host": str(work)}])
    assert d.call("POST", "/v1/sandboxes/staged/start")[0] == 202
    d.wait_status("staged", "running")
    status, o = checkpoint(d, "staged", with_memory=True)
    assert status == 409 and "--staged" in o["error"]["message"], o
    assert o["error"]["hint"] == "sbx checkpoint staged"


@pytest.mark.parametrize("body, status", [
    ({"label": "gone"}, 404), ({"undo": True}, 404), ({}, 400),
    ({"label": "c1", "undo": True}, 400),
    ({"undo": False}, 400), ({"label": 1}, 400), ({"label": ""}, 400), ({"to": "c1"}, 400)])
def test_a_wrong_rewind_changes_nothing(two, body, status):
    before, n = disks(two, "demo"), len(records(two, "lifecycle"))
    assert rewind(two, "demo", **body)[0] == status
    assert disks(two, "demo") == before and len(records(two, "lifecycle")) == n


def interrupted(d):
    """What a kill after half of the first step leaves."""
    rewind(d, "demo", label="c1")
    at = folder(d, "demo")
    done = json.loads((at / "checkpoints").read_text())
    (at / "rewind").write_text(json.dumps({"undo": False, "step": 1, "list": done}))
    (at / "root.aside.2.qcow2").rename(at / "root.2.qcow2")
    (at / "docker.aside.2.qcow2").rename(at / "docker.hold.2.qcow2")
    (at / "root.aside.qcow2").rename(at / "root.hold.qcow2")
    (at / "docker.aside.qcow2").unlink()
    d.kill()
    d.start()


def test_an_interrupted_rewind_is_completed_before_a_start(two):
    interrupted(two)
    assert two.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    two.wait_status("demo", "running")
    assert disks(two, "demo") == [
        "docker.1.qcow2", "docker.aside.2.qcow2",
        "root.1.qcow2", "root.aside.2.qcow2", "root.aside.qcow2"]
    assert not (folder(two, "demo") / "rewind").exists()


def test_an_interrupted_rewind_is_completed_before_a_template_is_saved(two):
    interrupted(two)
    o = ok(two.call("POST", "/v1/sandboxes/demo/freeze"))
    assert [p.rsplit("/", 1)[1] for p in o["layers"]["root"]] == ["root.1.qcow2"]


def test_a_sandbox_with_a_bad_plan_does_not_start(two):
    (folder(two, "demo") / "rewind").write_text("{}")
    status, o = two.call("POST", "/v1/sandboxes/demo/start")
    assert status >= 400 and "invalid plan of a rewind" in o["error"]["message"], o
    assert two.get("demo")["status"] == "stopped"


def test_rm_removes_what_was_set_aside(two):
    rewind(two, "demo", label="c1")
    at = folder(two, "demo")
    assert two.call("DELETE", "/v1/sandboxes/demo?force=1")[0] == 204
    assert not at.exists()


# -- remove ---------------------------------------------------------------------------------------

def remove(d, name, label):
    return d.call("DELETE", f"/v1/sandboxes/{name}/checkpoints?label={label}")


def test_a_removed_checkpoint_names_the_layers_that_can_be_merged(two):
    assert remove(two, "demo", "gone")[0] == 404
    o = ok(remove(two, "demo", "c1"))
    assert o["merge"] == {"root": [1], "docker": [1]} and o["dir"] == str(folder(two, "demo"))
    assert labels(two, "demo") == ["c2"]
    assert [r["action"] for r in records(two, "lifecycle")][-1] == "checkpoint-rm"
    assert ok(remove(two, "demo", "c2"))["merge"] == {"root": [1], "docker": [1]}, (
        "the highest layer has none to be merged with")


def test_layers_that_an_undo_needs_are_not_merged(two):
    rewind(two, "demo", label="c1")
    for disk in ("root", "docker"):
        (folder(two, "demo") / f"{disk}.2.qcow2").write_text("after the rewind")
    assert ok(remove(two, "demo", "c1"))["merge"] == {"root": [], "docker": []}


def test_a_checkpoint_of_a_running_sandbox_is_not_removed(d):
    d.run("demo")
    checkpoint(d, "demo")
    status, o = remove(d, "demo", "c1")
    assert status == 409 and o["error"]["hint"] == "sbx stop --cold SANDBOX", o
    assert labels(d, "demo") == ["c1"]
    assert d.call("DELETE", "/v1/sandboxes/demo/checkpoints")[0] == 400


def test_a_full_chain_names_the_oldest_checkpoint(d):
    d.run("demo", "freeze-full")
    (folder(d, "demo") / "checkpoints").write_text(json.dumps({"checkpoints": [ENTRY]}))
    status, o = checkpoint(d, "demo")
    assert status == 409, o
    assert o["error"]["hint"] == "sbx stop --cold SANDBOX && sbx checkpoint --rm a SANDBOX"


# -- automatic ------------------------------------------------------------------------------------

def settings(d, text):
    (d.root / "c/sbx/settings.conf").write_text(text)
    assert d.call("POST", "/v1/reload")[0] == 200


def write(d, name, size=5 << 20, at=None):
    """The guest writes: after a freeze, the stand-in has no top."""
    new = folder(d, name) / "new"
    new.write_bytes(bytes([1]) * size)
    if at:
        os.utime(new, (at, at))
    new.rename(folder(d, name) / "root.qcow2")


def automatic(d, name):
    return [c["label"] for c in listed(d, name) if c["auto"]]


def test_an_automatic_checkpoint_follows_writes(d):
    settings(d, "checkpoint.every = 1s\n")
    d.run("demo")
    write(d, "demo")
    wait_for(lambda: automatic(d, "demo"))
    one, = listed(d, "demo")
    assert re.fullmatch(r"auto-\d{8}-\d{6}", one["label"]) and one["seq"] == 41, one
    time.sleep(2.5)
    assert labels(d, "demo") == [one["label"]], "nothing was written since"
    write(d, "demo")
    wait_for(lambda: len(automatic(d, "demo")) == 2)
    at = listed(d, "demo")[1]["created_at"] / 1000 + 0.1
    write(d, "demo", 4096, at)
    time.sleep(2.5)
    assert len(automatic(d, "demo")) == 2, "a guest writes its journal after a checkpoint"
    write(d, "demo", 4096)
    wait_for(lambda: len(automatic(d, "demo")) == 3)


def test_the_setting_applies_to_running_sandboxes_and_after_a_restart(d):
    d.run("demo")
    write(d, "demo")
    time.sleep(1.5)
    assert labels(d, "demo") == [], "off by default"
    settings(d, "checkpoint.every = 1s\n")
    wait_for(lambda: automatic(d, "demo"))
    d.kill()
    d.start()
    d.wait_status("demo", "running")
    write(d, "demo")
    wait_for(lambda: len(automatic(d, "demo")) == 2)
    settings(d, "")
    time.sleep(1.5)
    n = len(labels(d, "demo"))
    write(d, "demo")
    time.sleep(2)
    assert len(labels(d, "demo")) == n, "the setting was removed"


def test_the_oldest_automatic_checkpoint_is_removed(d):
    settings(d, "checkpoint.keep = 2\n")
    d.run("demo")
    checkpoint(d, "demo", label="mine")
    made = []
    for _ in range(3):
        status, o = checkpoint(d, "demo", auto=True)
        assert status == 201 and o["auto"], o
        made.append(o["label"])
        time.sleep(1.1)
    assert labels(d, "demo") == ["mine", *made[1:]] and automatic(d, "demo") == made[1:]
    last = records(d, "lifecycle")[-1]
    assert (last["action"], last["name"], last["reason"]) == (
        "checkpoint-rm", "demo", f"checkpoint {made[0]}, by the setting checkpoint.keep")


def test_a_failed_automatic_checkpoint_is_logged_and_changes_nothing(d):
    settings(d, "checkpoint.every = 1s\n")
    d.run("demo", "freeze-full")
    write(d, "demo")
    wait_for(lambda: "automatic checkpoint of demo failed" in d.log_text())
    assert d.get("demo")["status"] == "running" and labels(d, "demo") == []


def test_a_label_and_auto_exclude_each_other(d):
    d.run("demo")
    for body in ({"auto": True, "label": "x"}, {"auto": 1}):
        assert d.call("POST", "/v1/sandboxes/demo/checkpoints", body)[0] == 400
    assert not checkpoint(d, "demo")[1]["auto"]


def test_a_list_of_an_earlier_version_has_no_automatic_checkpoint(d):
    d.run("demo")
    (folder(d, "demo") / "checkpoints").write_text(json.dumps({"checkpoints": [ENTRY]}))
    assert listed(d, "demo") == [{**ENTRY, "auto": False, "with_memory": False}]


# -- merges of stopped sandboxes ------------------------------------------------------------------

def merges(d, name):
    path = folder(d, name) / "merges"
    return path.read_text().splitlines() if path.exists() else []


def make_layers(d, mode=None):
    """A running sandbox with five layers, of which checkpoints need 2 and 4."""
    d.run("demo", mode)
    for n in range(5):
        if n in (1, 3):
            checkpoint(d, "demo", label=f"l{n}")
        else:
            ok(d.call("POST", "/v1/sandboxes/demo/freeze"))


def test_layers_that_no_checkpoint_needs_are_merged_after_a_stop(d):
    make_layers(d)
    time.sleep(4)
    assert merges(d, "demo") == [], "the sandbox is running"
    stop(d, "demo")
    wait_for(lambda: merges(d, "demo"))
    assert merges(d, "demo") == ["root 1,3 docker 1,3"]


def test_a_sandbox_without_such_layers_is_left_alone(two):
    time.sleep(4)
    assert merges(two, "demo") == []


def test_a_merge_is_killed_before_the_disks_are_used(d):
    make_layers(d, "merge-hang")
    for act in (
            lambda: d.call("POST", "/v1/sandboxes/demo/start")[0] == 202,
            lambda: d.call("POST", "/v1/sandboxes/demo/freeze")[0] == 200,
            lambda: remove(d, "demo", "l3")[0] == 200,
            lambda: rewind(d, "demo", label="l1")[0] == 204):
        n = len(merges(d, "demo"))
        if d.get("demo")["status"] != "running":
            assert d.call("POST", "/v1/sandboxes/demo/start")[0] in (202, 200)  # it starts already
            d.wait_status("demo", "running")
        stop(d, "demo")
        wait_for(lambda n=n: len(merges(d, "demo")) == n + 1)
        began = time.monotonic()
        assert act()
        assert time.monotonic() - began < 60
    assert d.call("DELETE", "/v1/sandboxes/demo?force=1")[0] == 204


def test_a_failed_merge_is_logged_and_the_sandbox_starts(d):
    make_layers(d, "merge-fail")
    stop(d, "demo")
    wait_for(lambda: "cannot merge layers of" in d.log_text())
    assert d.call("POST", "/v1/sandboxes/demo/start")[0] == 202
    d.wait_status("demo", "running")


def test_disks_between_two_states_are_not_merged(d):
    make_layers(d)
    (folder(d, "demo") / "rewind").write_text("{}")
    stop(d, "demo")
    time.sleep(4)
    assert merges(d, "demo") == []
