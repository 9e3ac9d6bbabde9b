# SPDX-License-Identifier: Apache-2.0
"""Calls of GraphQL under rules of kind api: Debian's gh and raw requests around the real keeper,
edge, clerk, origin and vault (CredRig), against a server that answers as GitHub does.

A refused request has three ends: what gh prints, the bodies that the server got, and the audit log.
"""
import http.client
import http.server
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
from rig import CredRig  # noqa: E402

HOST, TOKEN = "api.github.com", "gho_" + secrets.token_hex(18)
NETWORK = f"allow network {HOST}:443"
READ = "allow api github do any risk read"
CREATE = "allow api github do pull-request.create"
PULL = {"id": "PR_1", "number": 7, "title": "t", "state": "OPEN", "headRefName": "x",
        "baseRefName": "main", "url": "https://example.com/acme/app/pull/7",
        "createdAt": "2024-01-01T00:00:00Z"}
REPO = {"id": "R_1", "name": "app", "owner": {"login": "acme"}, "viewerPermission": "WRITE",
        "hasIssuesEnabled": True, "defaultBranchRef": {"name": "main"}}


class GitHub(http.server.ThreadingHTTPServer):
    """`seen` has (method, path, body) of each request with the right token."""
    daemon_threads = True

    def __init__(self, lab):
        self.seen = []
        super().__init__(("127.0.0.1", 0), Answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(lab.cert, lab.key)
        self.socket = context.wrap_socket(self.socket, server_side=True,
                                          do_handshake_on_connect=False)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass

    def posts(self):
        return [body for method, path, body in self.seen if (method, path) == ("POST", "/graphql")]


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while n := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(n)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _serve(self):
        body = self._body()
        if TOKEN not in self.headers.get("Authorization", ""):
            self.send_error(401)
            return
        self.server.seen.append((self.command, self.path, body))
        pulls = [] if b"PullRequestForBranch" in body else [PULL]
        data = {"repository": {**REPO, "pullRequest": PULL, "pullRequests":
                               {"nodes": pulls, "totalCount": len(pulls)}}}
        if b"createPullRequest" in body:
            data = {"createPullRequest": {"pullRequest": PULL}}
        if b"__type" in body:
            data = {"PullRequest": {"fields": []}}
        if b"mergePullRequest" in body:
            data = {"mergePullRequest": {"clientMutationId": ""}}
        reply = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_DELETE = _serve


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as lab:
        server = GitHub(lab)
        server.ca = lab.ca.pem
        yield server
        server.stop()


@pytest.fixture(scope="module")
def rig(hub):
    with CredRig([NETWORK], {f"{HOST}:443": f"127.0.0.1:{hub.port}"}, hub.ca) as made:
        made.set_secret("github", TOKEN)
        made.trusted = made.ca()
        yield made
        assert made.process.poll() is None, made.text()[-3000:]
        assert TOKEN not in made.text()


class World:
    def __init__(self, rig, hub, folder):
        self.rig, self.hub, self.folder = rig, hub, folder
        hub.seen.clear()
        self.before = len(rig.records())
        placeholder = rig.variables()["GH_TOKEN"]
        self.token = f"token {placeholder}"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GH_TOKEN": placeholder,
                    "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder),
                    "HTTPS_PROXY": f"http://127.0.0.1:{rig.bridge()}",
                    "SSL_CERT_FILE": str(rig.trusted), "SSL_CERT_DIR": "/nonexistent",
                    "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}

    def rules(self, *lines):
        self.rig.policy.write_text("\n".join(("policy 2", NETWORK, *lines, "end", "")))
        assert self.rig.command("reload") == "ok"
        self.rig.until_up()

    def records(self, **want):
        return [r for r in self.rig.records()[self.before:]
                if all(re.search(str(p), str(r.get(n, ""))) for n, p in want.items())]

    def gh_start(self, *argv):
        return subprocess.Popen([shutil.which("gh") or "/usr/bin/gh", *argv], env=self.env,
                                text=True, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def gh(self, *argv, code=0):
        """What it printed."""
        process = self.gh_start(*argv)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (argv, out, err)
        return out + err

    def connect(self):
        conn = http.client.HTTPSConnection("127.0.0.1", self.rig.bridge(), timeout=60,
                                           context=ssl.create_default_context(
                                               cafile=str(self.rig.trusted)))
        conn.set_tunnel(HOST, 443)
        return conn

    def post(self, body, path="/graphql", method="POST", **headers):
        """The status and the text of the answer."""
        conn = self.connect()
        named = {"Authorization": self.token, "Content-Type": "application/json"}
        named.update({name.replace("_", "-"): value for name, value in headers.items()})
        conn.request(method, path, body, {n: v for n, v in named.items() if v is not None})
        got = conn.getresponse()
        text = got.read().decode()
        conn.close()
        return got.status, text

    def clerks(self, n):
        for _ in range(600):
            found = self.rig.pids()["clerk"]
            if len(found) == n:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{len(found)} processes instead of {n}")

    def held(self):
        for _ in range(600):
            text = self.rig.lines("held")
            if " open " in text.splitlines()[0]:
                return text
            time.sleep(0.1)
        raise AssertionError("no request waits for a person")


@pytest.fixture()
def world(rig, hub, tmp_path):
    return World(rig, hub, tmp_path)


def call(document, **more):
    return json.dumps({"query": document, **more})


CREATED = 'createPullRequest(input: {repositoryId: "R_1"}) {clientMutationId}'
MERGED = 'mergePullRequest(input: {pullRequestId: "PR_1"}) {clientMutationId}'
PR_CREATE = ("pr", "create", "-R", "acme/app", "-t", "A title", "-b", "text", "-H", "x", "-B",
             "main")


def test_gh_reads_and_opens_pull_requests_and_nothing_else(world):
    world.rules(READ, CREATE)
    assert "7" in world.gh("pr", "list", "-R", "acme/app")
    assert world.gh("pr", "view", "7", "-R", "acme/app")
    assert '"name":"app"' in world.gh("repo", "view", "acme/app", "--json", "name,owner")
    assert "pull/7" in world.gh(*PR_CREATE)
    assert any(b"createPullRequest" in body for body in world.hub.posts())
    found = world.records(kind="decision", op="POST /graphql")
    assert found and {r["decision"] for r in found} == {"allow"}
    assert any("api:pull-request.create github node/R_1" in r["effects"] for r in found)
    assert world.records(kind="credential-use", op="POST /graphql")
    # a deletion is refused, with the reason and what is allowed instead
    said = world.gh("repo", "delete", "acme/app", "--yes", code=1)
    assert "none of them permits http:DELETE api.github.com /repos/acme/app" in said, said
    assert "allowed: allow api github" in said, said
    assert not [m for m, _, _ in world.hub.seen if m == "DELETE"]
    # so is a mutation
    said = world.gh("pr", "merge", "7", "-R", "acme/app", "--merge", code=1)
    assert "api:pull-request.merge github node/PR_1" in said, said
    assert "allowed: allow api" in said, said
    assert not any(b"mergePullRequest" in body for body in world.hub.posts())
    refused = world.records(kind="decision", op="POST /graphql", decision="deny")
    assert len(refused) == 1 and "risk=danger" in refused[0]["effects"]
    # the command that is printed works
    words = re.search(r"sbx policy (allow api [^\n]*)", said)[1].replace("'", "").split()
    world.rules(READ, " ".join(w.removeprefix("--") for w in words[:words.index("--sandbox")]))
    world.gh("pr", "merge", "7", "-R", "acme/app", "--merge")
    assert any(b"mergePullRequest" in body for body in world.hub.posts())


def test_without_rules_about_the_api_nothing_reads_calls(world):
    world.rules()
    assert world.post(call("mutation {" + MERGED + "}"))[0] == 200
    world.rules("allow api github do any,unknown")
    assert world.post("not json")[0] == 200
    assert len(world.hub.posts()) == 2
    assert not re.search(r"sbx-clerk\b(?!-)", world.rig.text())


def test_what_is_sent_is_what_was_read(world):
    world.rules(READ, CREATE)
    body = ' {"variables" :{"o":"acme\\u0041"}, "query":"query($o: String){' \
           'repository(owner:$o,name:\\"x\\"){id}}" }\n'
    assert world.post(body)[0] == 200
    assert world.post(call("{viewer {login}}" + " " * 100_000), Expect="100-continue")[0] == 200
    assert world.hub.posts()[0] == body.encode() and len(world.hub.posts()[1]) > 100_000
    conn = world.connect()
    conn.request("POST", "/graphql", iter([b'{"query": ', b'"{viewer {login}}"}']),
                 {"Authorization": world.token, "Content-Type": "application/json"},
                 encode_chunked=True)
    assert conn.getresponse().status == 200
    assert world.hub.posts()[2] == b'{"query": "{viewer {login}}"}'


def refused(world, body, effect, **more):
    n = len(world.hub.seen)
    status, text = world.post(body, **more)
    assert len(world.hub.seen) == n, (body, text)
    assert status == 200, (body, text)
    answer = json.loads(text)
    assert answer["data"] is None and answer["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    assert effect in answer["errors"][0]["message"], (body, answer)
    return answer["errors"][0]


def test_each_field_of_each_operation_counts(world):
    world.rules(READ, CREATE)
    merge = "api:pull-request.merge github node/PR_1"
    for body in (
            call("mutation {" + CREATED + " " + MERGED + "}"),
            call("mutation {" + CREATED + " other: " + MERGED + "}"),
            call("mutation A {" + CREATED + "} mutation B {" + MERGED + "}", operationName="A"),
            call("mutation {" + CREATED + " ...F} fragment F on Mutation {" + MERGED + "}"),
            call("mutation {" + CREATED + " ... on Mutation {" + MERGED + "}}"),
            call("mutation($no: Boolean = true) {" + MERGED.replace(") {", ") @skip(if: $no) {")
                 + "}"),
            json.dumps([{"query": "{viewer {login}}"}, {"query": "mutation {" + MERGED + "}"}])):
        refused(world, body, merge)
    assert world.post(call("mutation {a: " + CREATED + " b: " + CREATED + "}"))[0] == 200
    assert world.post(json.dumps([{"query": "{viewer {login}}"}] * 2))[0] == 200
    world.rules(READ, CREATE, "allow api github do pull-request.merge",
                "deny api github risk danger")
    assert "denied" in refused(world, call("mutation {" + MERGED + "}"), merge)["message"]


QUERY = "{viewer {login}}"
UNREADABLE = {
    "empty": ("", {}),
    "no json": ("query {viewer {login}}", {}),
    "cut json": (call(QUERY)[:-1], {}),
    "more behind": (call(QUERY) + "{}", {}),
    "a string": (json.dumps(QUERY), {}),
    "no query": ("{}", {}),
    "null": ('{"query": null}', {}),
    "a number": ('{"query": 1}', {}),
    "two queries": ('{"query": "{viewer {login}}", "query": "mutation {deleteRef}"}', {}),
    "two escaped": ('{"query": "{viewer {login}}", "qu\\u0065ry": "mutation {deleteRef}"}', {}),
    "other case": ('{"query": "{viewer {login}}", "Query": "mutation {deleteRef}"}', {}),
    "other member": (call(QUERY, id="stored"), {}),
    "stored": (json.dumps({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}
                           }), {}),
    "a document id": (json.dumps({"documentId": "x"}), {}),
    "batch with a gap": (json.dumps([{"query": QUERY}, {}]), {}),
    "large batch": (json.dumps([{"query": QUERY}] * 40), {}),
    "empty batch": ("[]", {}),
    "no such operation": (call("query A {viewer {login}}", operationName="B"), {}),
    "two operations": (call("query A {viewer {login}} query B {viewer {login}}"), {}),
    "syntax": (call("{viewer {login}"), {}),
    "a schema": (call("type Query {a: Int}"), {}),
    "cycle": (call("{...F} fragment F on Query {...G} fragment G on Query {...F}"), {}),
    "missing fragment": (call("{...F}"), {}),
    "two fragments": (call("{...F} fragment F on Query {a} fragment F on Query {b}"), {}),
    "other directive": (call("{viewer @sbx {login}}"), {}),
    "unknown variable": (call("mutation {createPullRequest(input: {repositoryId: $x}) {a}}"), {}),
    "unknown field": (call("mutation {somethingNew {id}}"), {}),
    "subscription": (call("subscription {viewer {login}}"), {}),
    "deep": (call("{a" * 100 + "}" * 100), {}),
    "many fields": (call("{" + " ".join(f"a{i}: viewer {{login}}" for i in range(100)) + "}"), {}),
    "encoded": (call(QUERY), {"Content_Encoding": "identity"}),
    "multipart": (call(QUERY), {"Content_Type": "multipart/form-data; boundary=x"}),
    "a form": ("query=x", {"Content_Type": "application/x-www-form-urlencoded"}),
    "graphql": (QUERY, {"Content_Type": "application/graphql"}),
    "other charset": (call(QUERY), {"Content_Type": "application/json; charset=utf-7"}),
    "no type": (call(QUERY), {"Content_Type": None}),
    "a byte order mark": ("\ufeff" + call(QUERY), {}),
    "a query string": (call(QUERY), {"path": "/graphql?query=mutation"}),
    "too long": (call(QUERY + " " * (1 << 20)), {}),
}


def test_what_cannot_be_read_is_unknown(world):
    world.rules(READ, CREATE, "allow api github do pull-request.merge")
    for name, (body, more) in UNREADABLE.items():
        message = refused(world, body.encode(), "unknown:api github - why=body", **more)["message"]
        assert "reason:" in message and "time" in message, (name, message)
    assert not world.hub.seen
    found = world.records(kind="decision", op="POST /graphql")
    assert len(found) == len(UNREADABLE) and {r["decision"] for r in found} == {"deny"}
    for why in ("contains itself", "too long to be read"):
        assert any(why in r["reason"] for r in found), {r["reason"] for r in found}
    # a rule that names unknown covers them, and one that denies still applies to them
    world.rules(READ, "allow api github do unknown")
    for name, (body, more) in UNREADABLE.items():
        assert world.post(body.encode(), **more)[0] == 200, name
    assert len(world.hub.seen) == len(UNREADABLE)
    world.rules(READ, "allow api github do unknown", "deny api github do pull-request.merge")
    refused(world, "no json", "unknown:api github - why=body")
    assert world.post(call("{viewer {login}}"))[0] == 200


def test_other_methods_and_paths_are_not_calls(world):
    world.rules(READ, CREATE)
    for path, method in (("/graphql?query=%7Bviewer%7Blogin%7D%7D", "GET"), ("/graphql", "PUT"),
                         ("/GraphQL", "POST"), ("/graphql/", "POST"), ("//graphql", "POST"),
                         ("/graphql;x", "POST"), ("/x/../graphql", "POST")):
        status, text = world.post(call(QUERY), path=path, method=method)
        assert status in (400, 403), (path, status, text)
    assert not world.hub.seen


def test_a_held_call_is_sent_when_a_person_approves_it(world):
    world.rules(READ, "ask api github do pull-request.create")
    process = world.gh_start(*PR_CREATE)
    text = world.held()
    assert "api:pull-request.create github node/R_1" in text, text
    assert "open the pull request 'A title' from x into main" in text, text
    assert not any(b"createPullRequest" in body for body in world.hub.posts())
    assert world.rig.command("answer once") == "ok"
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "pull/7" in out, err
    allowed = world.records(kind="decision", decision="allow", effects="pull-request.create")
    assert [r["hold"] for r in allowed] == [text.split()[0]]
    # another body is another request
    process = world.gh_start(*(a.replace("A title", "Other") for a in PR_CREATE))
    other = world.held()
    assert "Other" in other and other.split()[2] != text.split()[2]  # the digest
    assert world.rig.command("answer no") == "ok"
    assert "refused by the user" in process.communicate(timeout=60)[1]
    assert sum(b"createPullRequest" in body for body in world.hub.posts()) == 1


def test_a_clerk_that_dies_sends_nothing(world):
    world.rules(READ, CREATE)
    conn = world.connect()
    conn.putrequest("POST", "/graphql")
    for name, value in (("Authorization", world.token), ("Content-Type", "application/json"),
                        ("Content-Length", "100000")):
        conn.putheader(name, value)
    conn.endheaders(call(QUERY).encode())
    os.kill(world.clerks(1)[0], signal.SIGKILL)
    assert conn.getresponse().status == 502
    world.clerks(0)
    assert not world.hub.seen
    assert world.records(decision="deny", reason="sbx-clerk ended")
    # the next request has its own
    assert world.post(call(QUERY))[0] == 200
