# SPDX-License-Identifier: Apache-2.0
"""Model APIs without a credential of the user's: keys that the guest brings are refused (H2), until
the user permits them for the sandbox.

The real keeper, edge, egress, origins and vault (CredRig) with the services of the installation;
the clients run as guest root.
"""
import json
import pathlib
import secrets
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
from rig import CredRig  # noqa: E402

MODEL, OTHER = "api.anthropic.com", "api.openai.com"
COPILOT, FORGE = "api.githubcopilot.com", "api.github.com"
LOGIN = "console.anthropic.com"
THIEF = "sk-ant-api03-thief" + secrets.token_hex(16)
PLACEHOLDER = "sk-ant-api03-proxy-managed-" + "0" * 79 + "AA"
BOTH = (b"sbx secret set anthropic", b"sbx secret own anthropic --sandbox rig")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.server = made.origin()
        yield made


@pytest.fixture(scope="module")
def rig(lab):
    names = (MODEL, OTHER, COPILOT, FORGE)
    around = (f"{MODEL}:8443", f"{LOGIN}:2053")
    pins = {target: f"127.0.0.1:{lab.server.port}"
            for target in [f"{name}:443" for name in names] + list(around)}
    with CredRig([f"allow network {target}" for target in (*pins, f"{MODEL}:80")], pins,
                 lab.ca.pem) as made:
        made.rules = made.policy.read_text()
        made.trusted = made.ca()
        yield made
        assert made.process.poll() is None, made.text()[-3000:]


@pytest.fixture(autouse=True)
def as_before(rig, lab):
    lab.server.clear()
    yield
    permit(rig)
    setting(rig, None)


def reload(rig):
    assert rig.command("reload") == "ok"
    rig.until_up()


def permit(rig, *services):
    """As sbxd does for `sbx secret own`."""
    folder = rig.dir / "state/sbx/specs/0123456789ab"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own-services").write_text("".join(f"{name}\n" for name in services))
    reload(rig)


def setting(rig, value):
    rig.settings.pop("credentials.intercept", None)
    if value:
        rig.settings["credentials.intercept"] = value
    rig.write_settings()
    reload(rig)


def ask(rig, *argv, cacert=None):
    """(status, body) of curl's one answer."""
    done = subprocess.run(["curl", "-sS", "-m", "20", "--suppress-connect-headers", "-w",
                           "\n%{http_code}", "--proxy", f"http://127.0.0.1:{rig.bridge()}",
                           "--cacert",
                           cacert or rig.trusted, *argv], capture_output=True, timeout=40,
                          check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    body, _, code = done.stdout.rpartition(b"\n")
    return int(code), body


def refused(rig, path):
    """The record of the refusal."""
    for _ in range(60):
        for record in rig.records():
            if record["kind"] == "credential-use" and record[
                    "decision"] == "deny" and path in record.get("op", ""):
                return record
        time.sleep(0.05)
    raise AssertionError(path)


KEYS = {
    "slot": ["-H", f"x-api-key: {THIEF}"],
    "bearer": ["-H", f"Authorization: Bearer {THIEF}"],
    "short": ["-H", "x-api-key: thief"],
    "cookie": ["-H", "Cookie: sessionKey=thief"],
    "query": ["?api_key=thief"],
    "any-header": ["-H", f"x-note: {THIEF}"],
    "websocket": ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H",
                  "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
                  "-H", f"x-api-key: {THIEF}"],
}


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_the_guests_is_refused_though_no_credential_is_set(rig, lab, name, how):
    path = f"/own-{name}{how}"
    query = "".join(a for a in KEYS[name] if a[0] == "?")
    code, body = ask(rig, how, *(a for a in KEYS[name] if a[0] != "?"),
                     f"https://{MODEL}{path}{query}")
    assert code == 403 and all(text in body for text in BOTH), (code, body)
    assert not lab.server.requests
    record = refused(rig, path)
    assert record["rule"] == "anthropic" and record[
        "action"] == "refuse" and THIEF not in json.dumps(record)


@pytest.mark.parametrize("host, service", ((OTHER, b"openai"), (COPILOT, b"github")))
def test_other_model_apis_too(rig, lab, host, service):
    code, body = ask(rig, "-H", "Authorization: Bearer thief", f"https://{host}/others")
    assert code == 403 and b"sbx secret own " + service + b" --sandbox" in body, (code, body)
    assert not lab.server.requests


@pytest.mark.parametrize("host, port", ((MODEL, 8443), (LOGIN, 2053)))
def test_another_port_of_the_same_server_is_no_way_around(rig, lab, host, port):
    """The policy allows it and the server answers there, as front ends of vendors do."""
    done = subprocess.run(["curl", "-sS", "-m", "20", "--proxy", f"http://127.0.0.1:{rig.bridge()}",
                           "--cacert", lab.ca.pem, "-H", f"x-api-key: {THIEF}",
                           f"https://{host}:{port}/around"], capture_output=True, timeout=40,
                          check=False)
    assert not lab.server.requests and b"403" in done.stderr, done
    denied = [r for r in rig.records() if r["kind"] == "decision" and r.get("host") == host
              and r.get("port") == port]
    assert denied and all(r["decision"] == "deny" and "cannot be on this port" in r["reason"]
                          for r in denied), denied


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
def test_a_request_without_a_key_passes_and_nothing_is_added(rig, lab, how):
    code, _ = ask(rig, how, "-d", "question", f"https://{MODEL}/plain")
    assert code == 200
    request = lab.server.wait("/plain", 1)[0]
    assert not lab.server.header(request,
                                 "x-api-key") and not lab.server.header(request, "authorization")


@pytest.mark.parametrize("header",
                         (f"x-api-key: {PLACEHOLDER}",
                          "Authorization: Bearer sk-ant-oat01-proxy-managed"))
def test_a_placeholder_without_a_credential_is_refused(rig, lab, header):
    code, body = ask(rig, "-H", header, f"https://{MODEL}/placeholder")
    assert (code == 403 and b"no credential is set" in body
            and b"sbx secret set anthropic" in body), (code, body)
    assert not lab.server.requests
    assert refused(rig, "/placeholder")["rule"] == "anthropic"


def test_plain_http_does_not_lead_around_it(rig, lab):
    code, body = ask(rig, "-H", f"x-api-key: {THIEF}", f"http://{MODEL}/clear")
    assert code == 403 and b"is intercepted in this sandbox: use https" in body, (code, body)


def test_a_credential_that_is_set_counts_and_one_that_is_removed_does_not(rig, lab):
    rig.set_secret("anthropic", "sk-ant-api03-users-own")
    assert ask(rig, "-H", f"x-api-key: {PLACEHOLDER}", f"https://{MODEL}/set")[0] == 200
    assert lab.server.header(lab.server.wait("/set", 1)[0],
                             "x-api-key") == ["sk-ant-api03-users-own"]
    rig.remove_secret("anthropic")
    lab.server.clear()
    assert ask(rig, "-H", f"x-api-key: {THIEF}", f"https://{MODEL}/removed")[0] == 403
    assert not lab.server.requests


@pytest.mark.parametrize("how", ("--http1.1", "--http2"))
def test_what_the_user_permits_passes_untouched(rig, lab, how):
    permit(rig, "anthropic")
    # only the server's own certificate is trusted: the tunnel is not intercepted, as clients with
    # pinned certificates need it
    code, _ = ask(rig, how, "-H", f"x-api-key: {THIEF}", f"https://{MODEL}/permitted",
                  cacert=lab.ca.pem)
    assert code == 200
    assert lab.server.header(lab.server.wait("/permitted", 1)[0], "x-api-key") == [THIEF]
    assert ask(rig, how, "-H", "Authorization: Bearer thief",
               f"https://{OTHER}/permitted")[0] == 403
    permit(rig)
    assert ask(rig, how, "-H", f"x-api-key: {THIEF}", f"https://{MODEL}/again")[0] == 403


def test_a_permitted_service_has_no_credential_of_the_users(rig, lab):
    rig.set_secret("anthropic", "sk-ant-api03-users-own")
    try:
        assert "ANTHROPIC_API_KEY" in rig.variables()
        rig.told(lambda: permit(rig, "anthropic"))
        assert "ANTHROPIC_API_KEY" not in rig.variables()
        assert ask(rig, "-H", f"x-api-key: {THIEF}", f"https://{MODEL}/mine",
                   cacert=lab.ca.pem)[0] == 200
        assert "users-own" not in json.dumps(lab.server.requests)
    finally:
        rig.remove_secret("anthropic")


def test_forges_are_intercepted_only_by_the_setting(rig, lab):
    """THREAT_MODEL.md, "A foreign key at a host without a credential"."""
    assert ask(rig, "-H", "Authorization: Bearer thief", f"https://{FORGE}/off",
               cacert=lab.ca.pem)[0] == 200
    assert lab.server.header(lab.server.wait("/off", 1)[0], "authorization") == ["Bearer thief"]
    setting(rig, "true")
    lab.server.clear()
    code, body = ask(rig, "-H", "Authorization: Bearer thief", f"https://{FORGE}/on")
    assert code == 403 and b"sbx secret own github" in body, (code, body)
    assert not lab.server.requests
    assert ask(rig, f"https://{FORGE}/anonymous")[0] == 200
    permit(rig, "github")
    assert ask(rig, "-H", "Authorization: Bearer thief", f"https://{FORGE}/permitted",
               cacert=lab.ca.pem)[0] == 200
