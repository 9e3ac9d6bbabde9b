# SPDX-License-Identifier: Apache-2.0
"""What gh does at GitHub, by the API pack: gh runs against a server of this test, and each request
that it sends is read by `sbx api test`. No VM and no daemon."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

PULL = {"id": "PR_1", "number": 7, "title": "t", "state": "OPEN", "headRefName": "x",
        "baseRefName": "main", "url": "https://example.com/acme/app/pull/7",
        "createdAt": "2024-01-01T00:00:00Z"}
REPO = {"id": "R_1", "name": "app", "owner": {"login": "acme"}, "viewerPermission": "WRITE",
        "hasIssuesEnabled": True, "defaultBranchRef": {"name": "main"}}


def answer(method, body):
    """What GitHub would answer, as far as gh needs it."""
    if method == "DELETE":
        return 204, b""
    query = json.loads(body)["query"] if body else ""
    pulls = [] if "PullRequestForBranch" in query else [PULL]
    data = {"repository": {**REPO, "pullRequest": PULL,
                           "pullRequests": {"nodes": pulls, "totalCount": len(pulls)}},
            "createPullRequest": {"pullRequest": PULL}, "createIssue": {"issue": PULL}}
    return 200, json.dumps({"data": data}).encode()


class GitHub:
    """A proxy that is api.github.com behind each CONNECT."""

    def __init__(self, work):
        self.key, self.cert = work / "key.pem", work / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                        self.key, "-out", self.cert, "-days", "2", "-subj", "/CN=api.github.com",
                        "-addext", "subjectAltName=DNS:api.github.com"], check=True,
                       capture_output=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.cert, self.key)
        self.seen = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[one], daemon=True).start()

    def serve(self, one):
        head = one.makefile("rb")
        host = head.readline().split()[1].decode()
        while head.readline() not in (b"\r\n", b""):
            pass
        one.sendall(b"HTTP/1.1 200 connected\r\n\r\n")
        one = self.tls.wrap_socket(one, server_side=True)
        stream = one.makefile("rb")
        while line := stream.readline().decode().split():
            headers = {}
            while text := stream.readline().decode().strip():
                name, headers[name.lower()] = text.split(": ", 1)[0], text.split(": ", 1)[1]
            body = stream.read(int(headers.get("Content-Length", headers.get("content-length", 0))))
            self.seen.append((f"{line[0]} https://{host}{line[1]}", headers, body))
            status, reply = answer(line[0], body)
            one.sendall(f"HTTP/1.1 {status} ok\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(reply)}\r\n\r\n".encode() + reply)


@pytest.fixture
def github(inst):
    server = GitHub(inst.work)
    yield server
    server.listener.close()


def run_gh(inst, github, *args):
    """The requests of one command."""
    env = {"PATH": os.environ["PATH"], "HOME": str(inst.work), "GH_TOKEN": "x",
           "HTTPS_PROXY": f"http://127.0.0.1:{github.listener.getsockname()[1]}",
           "SSL_CERT_FILE": str(github.cert), "SSL_CERT_DIR": "/nonexistent",
           "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    github.seen.clear()
    done = subprocess.run([shutil.which("gh") or "/usr/bin/gh", *args], env=env, text=True,
                          cwd=inst.work, capture_output=True, timeout=120)
    assert done.returncode == 0 and github.seen, done.stderr
    return list(github.seen)


def effects(inst, requests):
    """[risk verb object] of all requests, each once."""
    found = []
    for number, (request, headers, body) in enumerate(requests):
        path = inst.work / f"body{number}"
        path.write_bytes(body)
        args = [f"--header={n}: {v}" for n, v in headers.items() if n.lower() == "content-type"]
        args += [f"--body={path}"] if body else []
        shown = inst.sbx("api", "test", "--json", *args, request, check=0)
        for e in json.loads(shown.stdout)["effects"]:
            assert e["risk"] != "unknown", (request, body, e["why"])
            found.append(f"{e['risk']} {e['verb']} {e['object']}")
    return sorted(set(found))


QUERY = "read graphql.query github"


@pytest.mark.parametrize("args, expected", [
    (["pr", "list", "-R", "acme/app"], [QUERY]),
    (["pr", "view", "7", "-R", "acme/app"], [QUERY]),
    (["repo", "view", "acme/app"], [QUERY, "read file.get repo/acme/app"]),
    (["pr", "create", "-R", "acme/app", "-t", "A title", "-b", "text", "-H", "x", "-B", "main"],
     [QUERY, "write pull-request.create node/R_1"]),
    (["issue", "create", "-R", "acme/app", "-t", "A title", "-b", "text"],
     [QUERY, "write issue.create node/R_1"]),
    (["repo", "delete", "acme/app", "--yes"], ["danger repo.delete repo/acme/app"]),
])
def test_the_requests_of_gh_have_effects(inst, github, args, expected):
    got = effects(inst, run_gh(inst, github, *args))
    assert got == sorted(expected)


def test_the_title_of_a_pull_request_is_shown(inst, github):
    requests = run_gh(inst, github, "pr", "create", "-R", "acme/app", "-t", 'One "x"', "-b", "y",
                      "-H", "x", "-B", "main")
    body = inst.work / "body"
    body.write_bytes(requests[-1][2])
    shown = inst.sbx("api", "test", "--header=content-type: application/json", f"--body={body}",
                     "POST api.github.com/graphql", check=0).stdout
    assert 'open the pull request \'One "x"\' from x into main' in shown


def test_a_read_only_user_sees_each_mutation_of_a_document(inst):
    body = inst.work / "body"
    document = ("query A {viewer {login}} mutation B {...F} fragment F on Mutation {x: deleteIssue("
                "input: {issueId: $i}) {clientMutationId}}")
    body.write_text(json.dumps({"query": document, "operationName": "A", "variables": {"i": "I"}}))
    shown = inst.sbx("api", "test", "--json", "--header=content-type: application/json",
                     f"--body={body}", "POST api.github.com/graphql", check=0)
    got = json.loads(shown.stdout)["effects"]
    assert [e["risk"] for e in got] == ["read", "unknown"]  # $i is not defined
