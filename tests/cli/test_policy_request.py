# SPDX-License-Identifier: Apache-2.0
"""Rules about requests in `sbx policy`, against the real sbxd; no VM."""
import hashlib
import json

import pytest

from test_policy import own, policy_file, rule_id

GET_V1 = ("http", "api.example.com/v1/**", "--method", "GET")


def check(inst, request, *args, status=None):
    p = inst.sbx("policy", "check", "http", request, "--json", *args)
    assert status is None or p.returncode == status
    return json.loads(p.stdout)


def export(inst):
    return inst.sbx("policy", "export", check=0).stdout


def test_the_first_rule_changes_the_form_of_the_file_and_keeps_the_old_one(inst):
    inst.sbx("policy", "allow", "network", "api.example.com", check=0)
    before = policy_file(inst).read_text()
    assert before.startswith("policy 1\n")
    p = inst.sbx("policy", "allow", *GET_V1, check=0)
    assert "api.example.com is now governed" in p.stderr
    assert "No network rule allows" not in p.stderr
    assert policy_file(inst).read_text().startswith("policy 2\n")
    kept = policy_file(inst).with_name("policy.1")
    assert kept.read_text() == before
    again = inst.sbx("policy", "allow", "http", "api.example.com/v2/x", check=0)
    assert "governed" not in again.stderr
    assert kept.read_text() == before
    notes = [inst.sbx("policy", "rm", "http", "--id", rule["id"], check=0).stderr
             for rule in own(inst) if rule["resource_type"] == "http"]
    assert notes[0] == ""
    assert notes[1] == "api.example.com is no longer governed: the network rules decide about it\n"
    assert policy_file(inst).read_text().startswith("policy 1\n")
    assert not kept.exists()


def test_rules_of_each_kind_are_listed_inspected_and_removed(inst):
    added = [inst.sbx("policy", *words, check=0) for words in (
        ("allow", "http", "*.example.com:8443/a*/**", "--query", "x=1", "--query", "y=*",
         "--header", "X-Kind=b"),
        ("ask", "git", "github.com/acme/app", "--do", "push", "--ref", "refs/heads/main"),
        ("deny", "api", "github", "--do", "repo.delete,key.*", "--comment", "never"))]
    rules = {r["resource_type"]: r for r in own(inst)}
    assert rules["http"]["options"] == "query x=1 query y=* header x-kind=b"
    assert (rules["git"]["decision"], rules["git"]["actions"]) == ("ask", ["git:request"])
    assert rules["api"]["text"] == "deny api github do repo.delete,key.*  # never"
    shown = inst.sbx("policy", "ls", "--summary", check=0).stdout
    assert "http: 1 allow" in shown and "git: 1 ask" in shown and "api: 1 deny" in shown
    assert "git github.com/acme/app do push ref refs/heads/main" in inst.sbx(
        "policy", "ls", "--wide", "--decision", "ask", check=0).stdout
    assert "options    do push ref refs/heads/main" in inst.sbx(
        "policy", "inspect", rule_id(added[1]), check=0).stdout
    for p, kind in zip(added, ("http", "git", "api")):
        inst.sbx("policy", "rm", kind, "--id", rule_id(p), check=0)
    assert not own(inst)


def test_a_rule_about_requests_does_not_open_its_host(inst):
    p = inst.sbx("policy", "allow", *GET_V1, "--sandbox", "demo", check=1)
    assert "demo" in p.stderr
    inst.create("demo")
    p = inst.sbx("policy", "allow", *GET_V1, "--sandbox", "demo", check=0)
    assert "try: sbx policy allow network api.example.com --sandbox demo" in p.stderr
    assert check(inst, "GET https://api.example.com/v1/x", "--sandbox", "demo",
                 status=1)["decision"] == "deny"


def test_the_content_of_a_push_decides_if_a_rule_is_about_it(inst):
    inst.sbx("policy", "allow", "network", "git.example.com,other.example.com", check=0)
    push, repo = "POST https://{}/acme/app/git-receive-pack", ("git", "git.example.com/acme/app")
    inst.sbx("policy", "allow", *repo, "--do", "fetch", check=0)
    assert check(inst, push.format("git.example.com"), status=1)["decision"] == "deny"
    inst.sbx("policy", "allow", *repo, "--do", "push", "--ref", "refs/heads/x", check=0)
    assert check(inst, push.format("git.example.com"), status=1)["decision"] == "read"
    inst.sbx("policy", "ask", "git", "other.example.com/acme/app", "--do", "push", "--ref",
             "refs/heads/main", check=0)
    text = inst.sbx("policy", "check", "http", push.format("other.example.com"), check=1).stdout
    assert text.startswith("Decided by the content: POST https://other.example.com/")
    inst.sbx("policy", "allow", *repo, "--do", "unknown", check=0)
    assert check(inst, push.format("git.example.com"), status=0)["decision"] == "allow"


def test_check_says_which_rule_and_whether_the_host_is_governed(inst):
    inst.sbx("policy", "allow", "network", "api.example.com,x.example.com", check=0)
    rule = rule_id(inst.sbx("policy", "allow", *GET_V1, check=0))
    got = check(inst, "GET https://api.example.com/v1/x", status=0)
    assert (got["decision"], got["governed"], got["rule"]) == ("allow", True, rule)
    got = check(inst, "DELETE https://api.example.com/v1/x?a=1", status=1)
    assert (got["decision"], got["governed"], got["rule"]) == ("deny", True, None)
    assert got["effects"] == ["http:DELETE api.example.com /v1/x query=a=1"]
    assert got["instead"] == "allow http api.example.com/v1/** method GET"
    text = "".join(e + "\n" for e in sorted(got["effects"]))
    assert got["digest"] == hashlib.sha256(text.encode()).hexdigest()
    got = check(inst, "DELETE https://x.example.com/v1/x", status=0)
    assert (got["decision"], got["governed"]) == ("allow", False)
    asked = rule_id(inst.sbx("policy", "ask", "http", "x.example.com/**", "--header",
                             "x-a=1", check=0))
    assert check(inst, "GET https://x.example.com/", status=0)["rule"] != asked
    got = check(inst, "GET https://x.example.com/", "--header", "X-A: 1", status=1)
    assert (got["decision"], got["governed"], got["rule"]) == ("ask", False, asked)
    text = inst.sbx("policy", "check", "http", "PUT https://api.example.com/v1/", check=1).stdout
    assert text.startswith("Denied: PUT https://api.example.com/v1/\n") and "governed" in text


def test_a_request_to_an_api_is_checked_by_its_pack(inst):
    inst.sbx("policy", "allow", "network", "api.github.com", check=0)
    p = inst.sbx("policy", "allow", "api", "github", "--do", "pull-request.create", "--on",
                 "repo/acme/app", check=0)
    assert "service github is now governed" in p.stderr
    assert check(inst, "POST api.github.com/repos/acme/app/pulls", status=0)["governed"]
    got = check(inst, "DELETE api.github.com/repos/acme/app", status=1)
    assert "api:repo.delete github repo/acme/app risk=danger" in got["effects"]
    got = check(inst, "POST api.github.com/nothing/here", status=1)
    assert "unknown:api github - why=no-row" in got["effects"]


def test_read_only_covers_the_pack_and_the_other_hosts_of_a_service(inst):
    inst.create("demo")
    inst.sbx("policy", "allow", "network", "api.github.com,github.com", check=0)
    inst.sbx("policy", "read-only", "github", "--sandbox", "demo", check=0)
    found = [r["text"] for r in own(inst) if r["resource_type"] != "network"]
    assert found[0] == "allow api github do any risk read for sandbox demo"
    assert len(found) == 3 and "github.com:443/**" in found[1] and "do fetch" in found[2]
    assert "api.github.com" not in found[1]
    for request, status in (("GET api.github.com/repos/a/b", 0),
                            ("PUT api.github.com/repos/a/b/pulls/1/merge", 1),
                            ("DELETE api.github.com/repos/a/b", 1),
                            ("POST github.com/a/b.git/git-upload-pack", 0),
                            ("POST github.com/a/b.git/git-receive-pack", 1),
                            ("GET github.com/a/b", 0), ("POST github.com/a", 1)):
        assert check(inst, request, "--sandbox", "demo")["allowed"] == (status == 0), request
        assert check(inst, request)["governed"] is False
    assert "service 'nope' not found" in inst.sbx("policy", "read-only", "nope", check=1).stderr


def test_read_only_without_a_pack(inst):
    inst.sbx("policy", "read-only", "huggingface", check=0)
    kinds = sorted(r["resource_type"] for r in own(inst))
    assert kinds == ["git", "http"]
    assert all("huggingface.co" in r["text"] for r in own(inst))


def test_import_and_export_keep_rules_about_requests(inst):
    text = ("policy 2\nallow network a.example\n"
            "ask http a.example/v1/** method POST  # for a person\n\nend\n")
    inst.sbx("policy", "import", "-", "--yes", input=text, check=0)
    assert export(inst) == text
    shown = inst.sbx("policy", "import", "-", "--yes", input="policy 1\nallow network a.example\n"
                     "end\n", check=0)
    assert "- ask http a.example/v1/** method POST" in shown.stdout + shown.stderr
    for bad in ("policy 1\nallow http a.example/x\nend\n", "policy 2\nallow sql a do read\nend\n",
                "policy 2\nallow api nosuch do any\nend\n", "policy 3\nend\n"):
        inst.sbx("policy", "import", "-", "--yes", input=bad, check=1)


@pytest.mark.parametrize("args,says", [
    (["allow", "http", "a.example"], "missing path"),
    (["allow", "http", "a.example/x?y=1"], "begins the query"),
    (["allow", "http", "a.example/x", "--do", "push"], "unknown option 'do'"),
    (["allow", "http", "a.example/x", "--query", "a=b id=c"], "without blanks"),
    (["allow", "http", "a.example/x", "--method", ""], "without blanks"),
    (["allow", "git", "a.example/x"], "missing 'do'"),
    (["ask", "api", "github"], "missing 'do'"),
    (["ask", "network", "a.example"], "ask rules are for http, git and api"),
    (["allow", "network", "a.example", "--method", "GET"], "unknown option 'method'"),
    (["allow", "kube", "x", "--do", "get"], "'kube' are not supported yet"),
    (["deny", "htpp", "a.example/x"], "did you mean http?"),
    (["ask", "git"], "missing RESOURCES"),
    (["rm", "http", "--resource", "a.example/x"], "removed by their --id"),
    (["check", "git", "github.com/a/b"], "check http 'METHOD URL'"),
    (["check", "http"], "check http 'METHOD URL'"),
    (["check", "http", "example.com"], "expected 'METHOD URL'"),
])
def test_wrong_rules_are_refused_before_sbxd_is_called(inst, args, says):
    before = policy_file(inst).read_text()
    assert says in inst.sbx("policy", *args, check=2).stderr
    assert policy_file(inst).read_text() == before
