# SPDX-License-Identifier: Apache-2.0
"""API packs as a person meets them: listed, shown, tested, added. No VM and no daemon."""
import json

import pytest

PACK = """api 1
service demo
about a demo
host api.example.com:443
object thing thing/{id}
object all all
op read thing.get GET /things/{id} on thing
op danger thing.delete DELETE /things/{id} on thing say "delete {id}"
op money job.run POST /jobs on all when json /size=big*
op write job.start POST /jobs on all
case GET /things/7 = read thing.get thing/7
case DELETE /things/7 = danger thing.delete thing/7
case POST /jobs body {"size": "big"} = money job.run all
case POST /jobs body {} = write job.start all
case GET /jobs = unknown
end
"""


@pytest.fixture
def demo(inst):
    inst.pack = inst.work / "demo.api"
    inst.pack.write_text(PACK)
    inst.added = inst.root / "config/sbx/apis/demo.api"
    return inst


def effect(inst, request, *args):
    shown = inst.sbx("api", "test", "--json", *args, request, check=0)
    return json.loads(shown.stdout)["effects"][0]


def test_the_built_in_packs_are_listed(inst):
    names = inst.sbx("api", "ls", "-q", check=0).stdout.split()
    assert names == ["anthropic", "github", "gitlab", "npm", "openai", "registry"]
    packs = json.loads(inst.sbx("api", "ls", "--json", check=0).stdout)["packs"]
    github = next(p for p in packs if p["service"] == "github")
    assert github["rows"] > 900 and github["cases"] >= github["rows"] and not github["own"]
    assert {"host": "api.github.com", "port": 443} in github["hosts"]


def test_a_request_has_an_effect(inst):
    shown = inst.sbx("api", "test", "DELETE api.github.com/repos/Acme/app", check=0)
    assert shown.stdout.split("\n")[0].split() == ["danger", "repo.delete", "on", "repo/acme/app"]
    assert "delete the repository Acme/app" in shown.stdout
    for scheme in ("https", "http"):
        url = f"{scheme}://api.github.com/repos/a/b"
        p = inst.sbx("api", "test", f"DELETE {url}")
        assert p.returncode == (0 if scheme == "https" else 1)
    merge = effect(inst, "PUT api.github.com/repos/acme/app/pulls/7/merge")
    assert (merge["risk"], merge["verb"], merge["object"]) == (
        "danger", "pull-request.merge", "repo/acme/app")
    assert merge["say"] == "merge #7 into acme/app, method ?"


@pytest.mark.parametrize("request_text, why", [
    ("DELETE api.github.com/repos/acme/x/../app", "different ways"),
    ("DELETE api.github.com/repos/acme//app", "different ways"),
    ("DELETE api.github.com/Repos/acme/app", "another case"),
    ("PURGE api.github.com/repos/acme/app", "no row"),
    ("DELETE api.github.com/repositories/7", "no row"),
    ("POST gitlab.com/api/v4/projects/a%2F..%2Fb/issues", "no row"),
])
def test_a_request_that_is_not_understood_is_unknown(inst, request_text, why):
    found = effect(inst, request_text)
    assert found["risk"] == "unknown" and found["verb"] is None
    assert why in found["why"]


def test_another_method_in_a_header_is_unknown(inst):
    request = "POST gitlab.com/api/v4/projects/7/issues"
    assert effect(inst, request)["verb"] == "issue.create"
    for header in ("X-HTTP-Method-Override: DELETE", "content-type: multipart/form-data; b=x"):
        assert effect(inst, request, "--header", header)["risk"] == "unknown"


def test_a_body_decides(demo):
    demo.sbx("api", "add", "--yes", demo.pack, check=0)
    body = demo.work / "body"
    request = "POST https://api.example.com/jobs"
    assert effect(demo, request)["why"] == "a condition of the row cannot be decided"
    body.write_text('{"size": "bigger"}')
    assert effect(demo, request, "--body", body)["verb"] == "job.run"
    body.write_text('{"size": "small"}')
    assert effect(demo, request, "--body", body)["verb"] == "job.start"
    body.write_text('{"size": "small", "size": "big"}')
    assert effect(demo, request, "--body", body)["risk"] == "unknown"


def test_what_is_wrong_with_a_request_is_said(inst):
    for text, why in [("GET https://x.example/", "no API pack has the host x.example:443"),
                      ("GET ftp://x.example/", "expected https:// or http://"),
                      ("GET me@api.github.com/", "user name"),
                      ("GET api.github.com/%zz", "invalid path"),
                      ("GET api.github.com:443x/", "port")]:
        p = inst.sbx("api", "test", text)
        assert p.returncode in (1, 2) and why in p.stderr
    p = inst.sbx("api", "test", "--body", "/dev/null")
    assert p.returncode == 2 and "require a request" in p.stderr
    p = inst.sbx("api", "show", "--risk", "high", "npm")
    assert p.returncode == 2 and "invalid --risk 'high'" in p.stderr
    p = inst.sbx("api", "show", "nothing", check=1)
    assert "no API pack 'nothing'" in p.stderr and "sbx api ls" in p.stderr


def test_rows_are_shown_by_risk(inst):
    lines = inst.sbx("api", "show", "--risk", "credential", "npm", check=0).stdout.split("\n")
    assert any("token.create  POST /-/npm/v1/tokens  on me" in line for line in lines)
    assert all(line.startswith("credential") for line in lines if line)
    rows = json.loads(inst.sbx("api", "show", "--json", "registry", check=0).stdout)["rows"]
    paths = {row["path"] for row in rows}
    assert "/v2/{name**}/manifests/{reference}" in paths
    assert [row["risk"] for row in rows] == sorted(
        (row["risk"] for row in rows),
        key=["read", "write", "danger", "money", "credential", "send", "admin"].index)


def test_a_pack_of_ones_own(demo):
    p = demo.sbx("api", "add", demo.pack, check=1)
    assert "not a terminal" in p.stderr and not demo.added.exists()
    demo.sbx("api", "add", "--yes", demo.pack, check=0)
    assert demo.added.read_text() == PACK
    assert "demo" in demo.sbx("api", "ls", "-q", check=0).stdout.split()
    assert effect(demo, "DELETE https://api.example.com/things/7")["say"] == "delete 7"
    p = demo.sbx("api", "add", "--yes", demo.pack, check=1)
    assert "service 'demo' already has a pack" in p.stderr


def test_a_built_in_pack_is_never_replaced(demo):
    for old, new, why in [("service demo", "service github", "service 'github' already"),
                          ("api.example.com", "api.github.com", "already in the pack 'github'")]:
        demo.pack.write_text(PACK.replace(old, new))
        assert why in demo.sbx("api", "add", "--yes", demo.pack, check=1).stderr
    demo.added.parent.mkdir(parents=True)
    (demo.added.parent / "github.api").write_text(PACK.replace("service demo", "service github"))
    demo.added.write_text(PACK.replace("api.example.com", "api.github.com"))
    p = demo.sbx("api", "test", "--json", "DELETE api.github.com/repos/a/b", check=0)
    assert json.loads(p.stdout)["effects"][0]["verb"] == "repo.delete"
    assert p.stderr.count("API pack skipped") == 2
    assert demo.sbx("api", "test").returncode == 1


def test_an_invalid_pack_is_refused(demo):
    for old, new, why in [
            ("case GET /things/7 = read thing.get thing/7\n", "", "line 7: the row has no case"),
            ("= danger thing.delete thing/7", "= read thing.delete thing/7", "line 12: the case"),
            ("op read thing.get", "op write thing.put PUT /** on all\nop read thing.get",
             "line 7: a row with **"),
            ("op read thing.get", "op read a.b GET /things/{x} on all\nop read thing.get",
             "lines 7 and 8: one request can match both rows")]:
        demo.pack.write_text(PACK.replace(old, new))
        for verb in (("test",), ("add", "--yes")):
            assert why in demo.sbx("api", *verb, demo.pack, check=1).stderr
    assert not demo.added.exists()
