# SPDX-License-Identifier: Apache-2.0
"""sbx secret own: one sandbox may use its own credentials for a service."""
import json

import pytest


def inspect(inst, name="demo"):
    return json.loads(inst.sbx("inspect", "--json", name, check=0).stdout)


def test_on_and_off(vault):
    vault.create("demo")
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 95, check=0)
    assert [c["name"] for c in inspect(vault)["credentials"]] == ["anthropic"]
    p = vault.sbx("secret", "own", "anthropic", "--sandbox", "demo", check=0)
    assert p.stdout == "Sandbox demo can use its own credentials for anthropic\n"
    assert "does not intercept the hosts of anthropic in this sandbox" in p.stderr
    assert "key of another account" in p.stderr
    assert inspect(vault)["own_services"] == ["anthropic"] and inspect(vault)["credentials"] == []
    assert "anthropic: the sandbox uses its own; not intercepted" in vault.sbx("inspect", "demo",
                                                                               check=0).stdout
    p = vault.sbx("secret", "own", "--off", "anthropic", "--sandbox", "demo", check=0)
    assert p.stdout == "Sandbox demo can no longer use its own credentials for anthropic\n"
    assert p.stderr == ""
    assert inspect(vault)["own_services"] == [] and [c["name"]
                                                     for c in inspect(vault)["credentials"]] == [
        "anthropic"]
    text = "".join(f.read_text()
                   for f in sorted((vault.root / "state/sbx/audit/sbxd").glob("*.jsonl")))
    records = [(r["action"], r["reason"]) for r in map(json.loads, text.splitlines())
               if r.get("action", "").startswith("own")]
    assert records == [("own-credential", "anthropic, sandbox demo"),
                       ("own-credential-off", "anthropic, sandbox demo")]
    assert "own-credential" in vault.sbx("audit", "show", check=0).stdout
    vault.sbx("audit", "verify", check=0)


def test_another_sandbox_and_another_service_are_not_concerned(vault):
    vault.create("demo")
    vault.create("other")
    vault.sbx("secret", "own", "openai", "--sandbox", "demo", check=0)
    assert inspect(vault, "other")["own_services"] == []
    vault.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + "a" * 95, check=0)
    assert [c["name"] for c in inspect(vault)["credentials"]] == ["anthropic"]


@pytest.mark.parametrize("args, status, says", [
    (["anthropic"], 1, "missing --sandbox NAME\ntry: sbx secret own --help"),
    (["anthropic", "--sandbox", "dmo"], 1, "dmo"),
    (["antropic", "--sandbox", "demo"], 1, "anthropic"),
    (["--sandbox", "demo"], 2, "SERVICE"),
    (["anthropic", "openai", "--sandbox", "demo"], 2, "openai"),
])
def test_what_cannot_be(vault, args, status, says):
    vault.create("demo")
    p = vault.sbx("secret", "own", *args, check=status)
    assert says in p.stderr.replace("  try:", "try:"), p.stderr
    assert inspect(vault)["own_services"] == []
