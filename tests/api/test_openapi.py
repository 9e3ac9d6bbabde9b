# SPDX-License-Identifier: Apache-2.0
"""data/openapi/sbxd.json against the real sbxd: the description has every call and every error of
the program, its schemas match the answers, and no request that they generate breaks sbxd.

SBX_TEST_REQUESTS is the number of generated requests (tests/long/api_requests: 100,000)."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
from urllib.parse import quote

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies as st

from test_api import MEASURED, PATIENCE, SBXD, UnixConnection, d, exec_stream  # noqa: F401

TREE = pathlib.Path(__file__).resolve().parents[2]
DOC = json.loads((TREE / "data" / "openapi" / "sbxd.json").read_text())
REQUESTS = int(os.environ.get("SBX_TEST_REQUESTS", 1200 if MEASURED else 200))
BATCH = 40
hypothesis.configuration.set_hypothesis_home_dir(
    tempfile.gettempdir() + "/sbx-hypothesis")  # otherwise a directory in the tree
RESOLVER = jsonschema.RefResolver.from_schema(DOC)


def operations():
    """Method, path and description of each call."""
    for path, item in DOC["paths"].items():
        for method, op in item.items():
            yield method.upper(), path, op


OPERATIONS = {op["operationId"]: (method, path, op) for method, path, op in operations()}


def follow(o):
    while "$ref" in o:
        _, _, group, name = o["$ref"].split("/")
        o = DOC["components"][group][name]
    return o


def parameters(op, where):
    return [p for p in op.get("parameters", []) if p["in"] == where]


def body_schema(op):
    body = op.get("requestBody")
    return body and body["content"]["application/json"]["schema"]


# -- the description ------------------------------------------------------------------------------

def all_nodes(o):
    if isinstance(o, (dict, list)):
        yield o
        for child in o.values() if isinstance(o, dict) else o:
            yield from all_nodes(child)


def test_description_is_well_formed():
    assert DOC["openapi"] == "3.1.0"
    used = set()
    for node in all_nodes(DOC):
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            follow(node)
            used.add(node["$ref"])
    for group in ("schemas", "responses"):
        for name in DOC["components"][group]:
            assert f"#/components/{group}/{name}" in used, f"nothing refers to {name}"
    for schema in DOC["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert len(OPERATIONS) == len(list(operations()))
    for _, path, op in operations():
        assert [p["name"] for p in parameters(op, "path")] == re.findall(r"\{(\w+)\}", path)
        assert op["summary"] and op["responses"]
        for r in map(follow, op["responses"].values()):
            for content in r.get("content", {}).values():
                jsonschema.Draft202012Validator.check_schema(content["schema"])


def test_every_call_of_the_program_is_described():
    lines = subprocess.run([SBXD, "--calls"], capture_output=True, text=True, timeout=20,
                           check=True).stdout.splitlines()
    calls = {}
    for line in lines:
        method, path, *rest = line.split()
        calls[method, path.replace(":ref", "{ref}")] = (
            "body" in rest, {w[1:] for w in rest if w.startswith("?")})
    assert len(calls) == len(lines) > 40
    assert {(m, p): ("requestBody" in op, {q["name"] for q in parameters(op, "query")})
            for m, p, op in operations()} == calls


def test_every_error_of_the_program_is_described():
    """The codes are in the source of sbxd: api_fail, api_refuse, turn_away and the rows of
    api_error."""
    found = set()
    for path in (TREE / "src" / "sbxd").rglob("*.c"):
        text = path.read_text()
        found |= set(re.findall(
            r'(?:api_fail|api_refuse|turn_away)\([^;"]*?\b(\d{3}),\s*"([a-z-]+)"', text))
        found |= set(re.findall(r'\{-E[A-Z0-9]+, (\d{3}), "([a-z-]+)"\}', text))
        # a status that depends: `x ? 409 : 503, "code"`
        for a, b, code in re.findall(r'\? (\d{3}) : (\d{3}),\s*"([a-z-]+)"', text):
            found |= {(a, code), (b, code)}
        for status, a, b in re.findall(r'\b(\d{3}),\s*\w+ \? "([a-z-]+)"\s*: "([a-z-]+)"', text):
            found |= {(status, a), (status, b)}
        for a, b, x, y in re.findall(
                r'\? (\d{3}) : (\d{3}), \w+ \? "([a-z-]+)" : "([a-z-]+)"', text):
            found = found - {(b, x)} | {(a, x), (b, y)}
    described = set()
    for name, r in DOC["components"]["responses"].items():
        status = next(s for _, _, op in operations() for s, ref in op["responses"].items()
                      if ref.get("$ref", "").endswith("/" + name))
        schema = r["content"]["application/json"]["schema"]
        for code in schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]:
            described.add((status, code))
    assert ("default", "bad-request") in described
    assert described - {("default", "bad-request")} == found | {("500", "internal")}


# -- answers --------------------------------------------------------------------------------------

def undescribed(schema, value, at=""):
    """Fields of an answer that its schema does not name."""
    schema = follow(schema)
    parts = [follow(s) for s in schema.get("allOf", [])] + [schema]
    if isinstance(value, list):
        return [f for s in parts if "items" in s for i, v in enumerate(value)
                for f in undescribed(s["items"], v, f"{at}[{i}]")]
    if not isinstance(value, dict) or "oneOf" in schema:
        return [] if "oneOf" not in schema else min(
            (undescribed(s, value, at) for s in schema["oneOf"]), key=len)
    if any(isinstance(s.get("additionalProperties"), dict) for s in parts):
        return []
    known = {}
    for part in parts:
        for k, v in part.get("properties", {}).items():
            known[k] = {"allOf": known[k]["allOf"] + [v]} if k in known else {"allOf": [v]}
    found = [f"{at}.{k}" for k in value if k not in known] if known else []
    return found + [f for k, v in value.items() if k in known
                    for f in undescribed(known[k], v, f"{at}.{k}")]


def check_answer(op, status, kind, text):
    """The status is described and the body has its form."""
    described = op["responses"]
    if str(status) not in described:
        assert status in (405, 411, 417, 431, 501, 505), f"{op['operationId']}: {status} {text}"
        described = {str(status): described["default"]}
    content = follow(described[str(status)]).get("content")
    if not content:
        assert not text, f"{op['operationId']}: {status} {text}"
        return
    (wanted, of), = content.items()
    assert kind == wanted, f"{op['operationId']}: {kind}"
    value = text if wanted.startswith("application/openmetrics") else json.loads(text)
    validator = jsonschema.Draft202012Validator(of["schema"], resolver=RESOLVER)
    for e in validator.iter_errors(value):
        raise AssertionError(f"{op['operationId']} {status}: {list(e.absolute_path)} {e.message}")
    assert not undescribed(of["schema"], value), f"{op['operationId']} {status}"


class Client:
    """Sends described requests on one connection and checks each answer."""

    def __init__(self, d):
        self.c, self.seen = UnixConnection(d.sock, 20), set()

    def send(self, method, target, body):
        # a head that is refused is answered before the body is sent
        with contextlib.suppress(BrokenPipeError):
            self.c.request(method, target, body)
        r = self.c.getresponse()
        return r.status, r.getheader("Content-Type"), r.read().decode()

    def __call__(self, ident, ref=None, body=None, status=None, **query):
        method, path, op = OPERATIONS[ident]
        target = path.replace("{ref}", quote(ref or "", safe="")) \
            if ref is not None else path
        if query:
            target += "?" + "&".join(f"{k}={quote(str(v), safe='')}"
                                     for k, v in query.items())
        got = self.send(method, target, None if body is None else json.dumps(body))
        check_answer(op, *got)
        self.seen.add((ident, got[0]))
        if status:
            assert got[0] == status, (ident, got)
        is_json = got[1] == "application/json" and got[2]
        return json.loads(got[2]) if is_json else got[2]


# Answers that need a person, a guest, a vault or a log; other tests have them.
NOT_HERE = {("getHold", 200), ("answerHold", 200), ("unlockVault", 204), ("setSecret", 200),
            ("removeSecret", 204), ("removeTemplate", 204), ("watch", 200), ("exec", 101),
            ("recordStage", 204), ("rewind", 204), ("shutdown", 204)}


def test_answers_have_the_described_form(d, tmp_path):
    call = Client(d)
    (tmp_path / "w").mkdir()
    home = [{"host": str(tmp_path / "w"), "guest": "/w", "ro": False}]
    call("getVersion", status=200)
    call("getPolicy", status=200)
    call("removePolicy", status=404)
    call("addRule", body={"effect": "allow", "resources": "a.example"}, status=409)
    call("setPolicy", body={"preset": "balanced"}, status=200)
    call("getPolicy", text=1, status=200)
    rule = call("addRule", body={"effect": "allow", "resources": ["a.example", "b.example"],
                                 "comment": "why", "for_ms": 3600000}, status=201)["rule"]
    call("addRule", body={"effect": "deny", "resources": "a.example"}, status=201)
    call("addRule", body={"effect": "deny", "resources": "a.example"}, status=200)
    call("addRule", body={"effect": "allow", "kind": "http", "resources": "c.example/**",
                          "options": "method GET"}, status=201)
    call("checkPolicy", target="a.example:443", status=200)
    call("checkPolicy", target="10.0.0.1:22", status=200)
    call("removeRule", rule["id"], status=200)
    call("removeRule", rule["id"], status=404)
    call("removeResources", resource="a.example", effect="deny", status=200)
    made = {"name": "one", "workspaces": home, "env": {"A": "b"}, "id": "0123456789ab",
            "cpus": 1, "memory": 1 << 30, "ports": [{"sandbox_port": 80}]}
    call("createSandbox", body=made, status=201)
    call("createSandbox", body=made, status=200)
    call("createSandbox", body={"name": "one"}, status=409)
    call("createSandbox", body={"name": "two", "start": True, "rules": [
        {"effect": "allow", "resources": "d.example"}]}, status=201)
    call("listSandboxes", status=200)
    call("getSandbox", "one", wait=10, status=200)
    call("getSandbox", "none", status=404)
    call("changeSandbox", "one", body={"name": "uno"}, status=200)
    call("changeSandbox", "uno", body={"name": "one", "generation": 1}, status=409)
    call("changeSandbox", "uno", body={"name": "one", "cpus": 2}, status=200)
    call("startSandbox", "one", body={"cold": True}, status=202)
    d.wait_status("one", "running")
    call("startSandbox", "one", status=200)
    call("getStats", "one", status=200)
    call("freezeDisks", "one", status=200)
    call("addCheckpoint", "one", body={"label": "c1"}, status=201)
    call("addCheckpoint", "one", body={"label": "c1"}, status=409)
    call("listCheckpoints", "one", status=200)
    call("listPorts", "one", status=200)
    call("publishPorts", "one", body={"ports": [{"sandbox_port": 81}]}, status=200)
    call("unpublishPorts", "one", sandbox_port=81, status=200)
    call("unpublishPorts", "one", sandbox_port=81, status=404)
    call("getGuard", "one", status=200)
    call("forgetGuard", "one", total=0, status=204)
    call("forgetGuard", "one", total=1, status=409)
    call("recordStage", "one", body={"action": "review"}, status=409)
    call("setOwnCredential", "one", body={"service": "openai", "own": True}, status=200)
    call("setOwnCredential", "one", body={"service": "none", "own": True}, status=404)
    call("exec", "one", status=400)
    call("listHolds", sandbox="one", status=200)
    call("getHold", "aaaa", status=404)
    call("answerHold", "aaaa", body={"answer": "no", "digest": "0" * 64}, status=404)
    call("stopSandbox", "one", body={"suspend": True}, status=409)
    call("stopSandbox", "one", body={"timeout_ms": 0}, status=200)
    call("removeCheckpoint", "one", label="c1", status=200)
    call("rewind", "one", body={"undo": True}, status=404)
    call("listSecrets", status=200)
    call("getSecretStatus", status=200)
    call("scanForSecrets", status=400)
    call("unlockVault", status=400)
    call("setSecret", "openai", body={"kind": "service"}, status=400)
    call("setSecret", "none", body={"kind": "service"}, status=404)
    call("removeSecret", "openai", status=404)
    call("listServices", status=200)
    call("removeTemplate", "none", status=404)
    call("collectTemplates", status=204)
    call("pruneAudit", "sbxd", keep_bytes=1, dry=1, status=200)
    call("getMetrics", status=200)
    call("reload", status=200)
    call("adjustPool", status=200)
    call("removeSandbox", "one", force=1, status=204)
    call("removePolicy", status=200)
    good = {(i, int(s)) for i, (_, _, op) in OPERATIONS.items() for s in op["responses"]
            if s[0] in "12"}
    seen = {s for s in call.seen if s[1] < 300}
    assert good - seen - NOT_HERE == {("scanForSecrets", 200)}
    assert not seen & NOT_HERE, "remove it from NOT_HERE"


def test_streams_have_the_described_form(d):
    d.run("one")
    of = OPERATIONS["watch"][2]["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
    validator = jsonschema.Draft202012Validator(of, resolver=RESOLVER)
    sandbox = jsonschema.Draft202012Validator(DOC["components"]["schemas"]["Sandbox"],
                                              resolver=RESOLVER)
    c = UnixConnection(d.sock, 20)
    c.request("GET", "/v1/watch")
    r = c.getresponse()
    assert r.getheader("Content-Type") == "application/x-ndjson"
    types = []
    d.call("DELETE", "/v1/sandboxes/one")
    while "removed" not in types:
        line = json.loads(r.readline())
        validator.validate(line)
        assert set(line) <= {"seq", "type", "sandbox", "hold"}
        if line["type"] in ("snapshot", "changed"):
            sandbox.validate(line["sandbox"])
        types.append(line["type"])
    assert types[:2] == ["snapshot", "live"]
    c.close()
    d.run("two")
    s, head = exec_stream(d, "two")
    assert b" 101 " in head.splitlines()[0]
    s.close()


# -- generated requests ---------------------------------------------------------------------------

NAMES = ["aa", "bb", "cc", "0123456789ab"]
HINTS = {  # values with which more of the program is reached
    "name": NAMES, "ref": NAMES + ["openai", "sbxd", "c1", "none"], "sandbox": NAMES,
    "label": ["c1", "c2"], "resources": ["a.example", "*.b.example:443", "10.0.0.0/8", "**"],
    "resource": ["a.example", "*.b.example:443", "**"], "target": ["a.example", "10.0.0.1:22"],
    "host": ["/tmp"], "guest": ["/w"], "agent": ["shell"], "template": ["debian"],
    "options": ["method GET", ""], "service": ["openai"], "text": ["policy 1\nend\n"],
    "host_ip": ["127.0.0.1", "::1"]}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda s: st.lists(s, max_size=2) | st.dictionaries(st.text(max_size=4), s, max_size=2),
    max_leaves=3)


def of_string(schema, key):
    text = st.text(st.characters(blacklist_categories=("Cs",)), min_size=schema.get("minLength", 0),
                   max_size=min(schema.get("maxLength", 12), 12))
    if "pattern" in schema:
        text = st.from_regex(schema["pattern"], fullmatch=True)
    return st.sampled_from(HINTS[key]) | text if key in HINTS else text


@st.composite
def some_of(draw, required, optional, most=3):
    """An object with few of the optional fields: with many, one of them is always refused."""
    names = draw(st.lists(st.sampled_from(sorted(optional)), max_size=most)) if optional else []
    return {k: draw((required | optional)[k]) for k in [*required, *dict.fromkeys(names)]}


def of_object(schema):
    fields = {k: of_schema(v, k) for k, v in schema.get("properties", {}).items()}
    needed = {k: fields.pop(k) for k in schema.get("required", [])}
    return some_of(needed, fields)


def of_schema(schema, key=""):
    """Values of a schema."""
    schema = follow(schema)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "oneOf" in schema:
        return st.one_of([of_schema(s, key) for s in schema["oneOf"]])
    kind = schema.get("type")
    if kind == "string":
        return of_string(schema, key)
    if kind == "integer":
        low, high = schema.get("minimum", 0), schema.get("maximum", 1 << 40)
        return st.sampled_from([low, high]) | st.integers(low, min(high, low + 1000))
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(of_schema(schema["items"], key), min_size=schema.get("minItems", 0),
                        max_size=3)
    return of_object(schema)


@st.composite
def spoiled(draw, values):
    """A value of the schema with one field of another type or name."""
    value = draw(values)
    if not isinstance(value, dict):
        return draw(JUNK)
    value = dict(value)
    value[draw(st.sampled_from(sorted(value) + ["unknown"]))] = draw(JUNK)
    return value


def mostly(values):
    return st.one_of(values, values, values, spoiled(values))


def request_of(ident):
    _, _, op = OPERATIONS[ident]
    body = body_schema(op)
    query = {p["name"]: (p.get("required", False), of_schema(p["schema"], p["name"]))
             for p in parameters(op, "query")}
    # a wait or a stop may take as long as it says
    short = {"wait": st.integers(0, 50)}
    return st.fixed_dictionaries({
        "ident": st.just(ident),
        "ref": of_schema({"type": "string"}, "ref") if "{ref}" in OPERATIONS[ident][1]
        else st.none(),
        "body": mostly(of_schema(body)) if body else st.none(),
        "query": some_of({k: short.get(k, v) for k, (need, v) in query.items() if need},
                         {k: short.get(k, v) for k, (need, v) in query.items() if not need})})


# A watch never ends; a shutdown is a test of its own in test_api.
FUZZED = sorted(set(OPERATIONS) - {"watch", "shutdown"})
BATCHES = st.lists(st.one_of([request_of(i) for i in FUZZED]), min_size=BATCH, max_size=BATCH)


def resident(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))


def flush(d, call):
    """Removes all sandboxes, and waits until their processes are gone."""
    for s in d.list():
        call("removeSandbox", s["id"], force=1, status=204)


def test_generated_requests_break_nothing(d, request):
    call = Client(d)
    sizes, done, statuses = [], [0], {}
    call("setPolicy", body={"preset": "deny-all"}, status=200)

    @hypothesis.seed(int(os.environ.get("SBX_TEST_SEED", 1)))
    @hypothesis.settings(max_examples=max(REQUESTS // BATCH, 2), deadline=None, database=None,
                         phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(BATCHES)
    def run(batch):
        for r in batch:
            call.last = r
            begin = time.monotonic()
            call(r["ident"], r["ref"], r["body"], **r["query"])
            assert time.monotonic() - begin < 15 * PATIENCE, r
            done[0] += 1
        if not sizes and done[0] >= REQUESTS // 4 or done[0] % (25 * BATCH) == 0:
            flush(d, call)
            sizes.append((resident(d.proc.pid), d.descriptors()))

    try:
        run()
    except BaseException:
        print(f"after {done[0]} requests: {call.last}")
        raise
    flush(d, call)
    for _, status in call.seen:
        statuses[status] = statuses.get(status, 0) + 1
    print(f"{done[0]} requests, {statuses}, resident and descriptors {sizes}")
    assert d.proc.poll() is None and d.call("GET", "/v1/version")[1]["pid"] == d.proc.pid
    assert not [s for s in call.seen if s[1] >= 500 and s[1] != 503]
    assert done[0] >= REQUESTS * 0.9
    # nothing is kept per request; the audit log and the compiled policy stay open
    assert sizes[-1][1] <= sizes[0][1] + 2, sizes
    assert not MEASURED or sizes[-1][0] < sizes[0][0] * 1.5 + 4096, sizes
    assert "ERROR" not in d.log_text() and "sanitizer" not in d.log_text().lower()
