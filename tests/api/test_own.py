# SPDX-License-Identifier: Apache-2.0
"""Services for which a sandbox may use its own credentials, in the API of sbxd: the list, the
notified processes, and the audit records."""
import shutil

import pytest

from test_api import d  # noqa: F401
from test_policy import ok, records


def own(d, name, service, is_own=True):
    return d.call("POST", f"/v1/sandboxes/{name}/own", {"service": service, "own": is_own})


def listed(d, name):
    return d.get(name)["own_services"]


def changes(d):
    return [(r["action"], r["reason"], r["name"]) for r in records(d)
            if r.get("action", "").startswith("own-credential")]


def test_it_is_recorded_and_outlives_sbxd(d):
    d.create("demo")
    assert listed(d, "demo") == []
    assert ok(own(d, "demo", "anthropic")) == {"sandbox": "demo", "service": "anthropic",
                                               "own": True, "changed": True, "not_taken": []}
    ok(own(d, "demo", "xai"))
    d.kill()
    d.start()
    assert listed(d, "demo") == ["anthropic", "xai"]
    assert (d.state / "specs" / d.get("demo")["id"]
            / "own-services").read_text() == "anthropic\nxai\n"
    ok(own(d, "demo", "anthropic", False))
    assert listed(d, "demo") == ["xai"]
    assert changes(d) == [("own-credential", "anthropic, sandbox demo", "demo"),
                          ("own-credential", "xai, sandbox demo", "demo"),
                          ("own-credential-off", "anthropic, sandbox demo", "demo")]


def test_what_is_so_already_is_no_change(d):
    d.create("demo")
    ok(own(d, "demo", "xai"))
    assert ok(own(d, "demo", "xai"))["changed"] is False
    assert ok(own(d, "demo", "groq", False))["changed"] is False
    assert listed(d, "demo") == ["xai"] and len(changes(d)) == 1


def test_it_goes_with_the_sandbox_and_keeps_another_name(d):
    d.create("demo")
    ok(own(d, "demo", "xai"))
    ok(d.call("PATCH", "/v1/sandboxes/demo", {"name": "other"}))
    assert listed(d, "other") == ["xai"]
    assert d.call("DELETE", "/v1/sandboxes/other?force=1")[0] in (200, 204)
    d.create("other")
    assert listed(d, "other") == []


def test_a_running_sandbox_is_told_before_the_answer(d):
    d.run("demo")
    assert ok(own(d, "demo", "xai"))["not_taken"] == []


def test_what_cannot_be_recorded_is_not_done(d):
    d.create("demo")
    d.kill()
    shutil.rmtree(d.state / "audit", ignore_errors=True)
    (d.state / "audit").write_text("no folder")
    d.start()
    status, o = own(d, "demo", "xai")
    assert status == 500 and "audit" in o["error"]["message"], o
    assert listed(d, "demo") == []


@pytest.mark.parametrize("body",
                         [{}, {"service": "xai"}, {"own": True}, {"service": "xai", "own": 1},
                          {"service": "x\ny", "own": True},
                                  {"service": "xai", "own": True, "more": 1}])
def test_bad_bodies(d, body):
    d.create("demo")
    assert d.call("POST", "/v1/sandboxes/demo/own", body)[0] == 400
    assert listed(d, "demo") == []


def test_what_is_not_there(d):
    d.create("demo")
    status, o = own(d, "demo", "nothing")
    assert status == 404 and o["error"]["code"] == "no-service" and o["error"][
        "hint"] == "sbx secret services"
    assert own(d, "nobody", "xai")[0] == 404
    # one whose file was removed can be taken off
    (d.state / "specs" / d.get("demo")["id"]).mkdir(parents=True, exist_ok=True)
    (d.state / "specs" / d.get("demo")["id"] / "own-services").write_text("gone\n")
    assert listed(d, "demo") == ["gone"]
    ok(own(d, "demo", "gone", False))
    assert listed(d, "demo") == []
