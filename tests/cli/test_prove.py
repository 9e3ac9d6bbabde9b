# SPDX-License-Identifier: Apache-2.0
"""sbx prove: verdicts, probes and usage. See prove_rig.py."""
import json
import pathlib
import re

import pytest

from prove_rig import HEAD, prove  # noqa: F401


# ---- verdicts ----

def test_verdicts_and_exit_status(prove):
    prove.probe("files/pass", HEAD + "#: inside\nsaw inner\n#: outside\nsaw outer\n")
    prove.probe("files/skip", HEAD + "#: inside\nneed nosuchprogram\n#: outside\nhole no\n")
    whole, by = prove.json("demo", check=0)
    assert whole["sandbox"] == "demo" and whole["accel"] == "tcg" and whole["boundary"] is False
    assert whole["counts"] == {"pass": 1, "fail": 0, "skip": 1} and whole["twin"] is None
    assert by["files/pass"]["verdict"] == "pass" and by["files/pass"]["inside"] == "inner"
    assert by["files/pass"]["outside"] == "outer" and by["files/pass"]["why"] == ""
    assert by["files/skip"]["verdict"] == "skip" and "nosuchprogram" in by["files/skip"]["why"]
    for one in by.values():
        assert {"id", "group", "title", "tried", "inside", "outside", "verdict", "why",
                "means"} <= set(one)


RED = [
    ("#: inside\nhole 'there it is'\n", "there it is"),
    ("#: inside\nsaw x\n#: outside\nhole 'seen from here'\n", "seen from here"),
    ("#: before\nhole 'not prepared'\n#: inside\nsaw x\n", "not prepared"),
    ("#: inside\nsaw x; exit 3\n", "aborted with status 3"),
    ("#: inside\ntrue\n", "printed no result"),
    ("#: inside\nsaw begun; sleep 20\n", "did not finish within 4 seconds"),
    ("#: inside\nsaw x\n#: outside\nsleep 20\n", "did not finish within 4 seconds"),
    ("#: inside\nsaw x; kill -9 $$\n", "aborted with status 137"),
    ("#: inside\nsaw x; syntax error (\n", "aborted with status 2"),
    ("#: inside\nexit 1\n", "gave no reason"),
]


def test_everything_else_is_red(prove):
    for i, (parts, _) in enumerate(RED):
        prove.probe(f"files/p{i}", HEAD + "# seconds: 1\n" + parts)
    p = prove.run("demo", check=1)
    blocks = re.split(r"\n  ✗ ", p.stdout)[1:]
    assert len(blocks) == len(RED) and f"{len(RED)} failed" in p.stdout
    for i, (_, why) in enumerate(RED):
        text = re.sub(r"\n {15}", " ", blocks[i])
        assert text.startswith(f"files/p{i} ") and f" {why}" in text and "It matters." in text, text
        assert f"next     sbx prove demo --probe files/p{i} -v" in text


def test_who_is_late_is_tried_once_more(prove):
    mark, all_tags = prove.inst.root / "first", prove.inst.root / "tags"
    late = f"if [ ! -e {mark}-$PROBE_PART ]; then touch {mark}-$PROBE_PART; sleep 20; fi\n"
    prove.probe("files/in",
                HEAD
                + f"# seconds: 1\n#: before\necho $TAG >>{all_tags}\n#: inside\nPROBE_PART=in\n"
                  f"{late}saw fine\n")
    prove.probe("files/out",
                HEAD
                + "# seconds: 1\n#: inside\nsaw fine\n#: outside\nPROBE_PART=out\n"
                  f"{late}saw fine\n")
    by = prove.json("demo", check=0)[1]
    assert [p["inside"] for p in by.values()] == ["fine", "fine"]
    assert len(set(all_tags.read_text().split())) == 2


def test_a_sandbox_under_load_has_more_time_the_second_time(prove):
    """credentials/request-works was late twice during a docker build and failed for no reason."""
    prove.probe("files/slow",
                HEAD
                + "# seconds: 1\n#: inside\nsleep 2\nsaw fine\n#: outside\nsleep 2\nsaw fine\n")
    assert prove.json("demo", check=0)[1]["files/slow"]["verdict"] == "pass"


def test_red_inside_still_shows_what_the_host_sees(prove):
    prove.probe("files/one", HEAD + "#: inside\nhole bad\n#: outside\nsaw 'from outside'\n")
    assert prove.json("demo", check=1)[1]["files/one"]["outside"] == "from outside"


def test_no_probe_at_all_is_no_success(prove):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    prove.run("demo", "--group", "docker", check=1)
    prove.run("demo", "--quick", check=1)


# ---- what a part finds ----

def test_variables(prove):
    prove.probe("host/vars", HEAD + """#: before
give one "it's \\"one\\"  \\$HOME"
give two 2
#: inside
saw "$GIVEN_one|$GIVEN_two|$PROBE|$TAG|$WORKSPACE|$ACCEL"
[ "$PATIENCE" = 30 ] || hole "30 seconds are $PATIENCE"
[ "$(pwd)" = "$DIR" ] && [ -x "$TOOL" ] || hole "no directory, no tool"
#: outside
[ "$(pwd)" = "$DIR" ] && [ -x "$TOOL" ] && [ -x "$SBX" ] || hole "no directory, no tool"
[ "$PATIENCE" = 30 ] || hole "30 seconds are $PATIENCE"
cat "$DIR/inside"
saw "$SANDBOX|$SANDBOX_ID|$ECHO_URL"
[ -f "$STATE/specs/${STATE_SANDBOX##*/}/spec.json" ] && [ -S "$RUN_SANDBOX/keeper.sock" ] ||
	hole "no directories of the sandbox"
[ "$STATE/sandboxes/$SANDBOX_ID" = "$STATE_SANDBOX" ] && [ "${CONFIG##*/}" = sbx ] &&
	[ -d "$DATA" ] && [ -d "$RUNTIME" ] || hole "no directories"
for f in inspect.json workspaces version.json shares; do [ -s "$FACTS/$f" ] || hole "no $f"; done
fact workspaces
[ -d "/proc/$(pid keeper)" ] && [ -d "/proc/$(pid sbxd)" ] || hole "no processes"
command -v find_ours >/dev/null && ! command -v within >/dev/null ||
	hole "not the prelude of its own group, or that of another"
saw "guest: $(guest echo hello)"
""")
    whole, by = prove.json("demo", "--echo", "http://e.invalid", check=0)
    inside = by["host/vars"]["inside"]
    assert re.fullmatch(
        rf"""it's "one"  \$HOME\|2\|host/vars\|\w+\|{re.escape(str(prove.inst.work))}\|tcg""",
        inside), inside
    lines = by["host/vars"]["outside"].split("\n")
    assert lines == [inside, f"demo|{whole['id']}|http://e.invalid", f"rw {prove.inst.work}",
                     "guest: hello"]


def test_all_before_parts_of_a_group_come_first(prove):
    log = prove.inst.root / "log"
    for name in ("a", "b"):
        prove.probe(f"host/{name}", HEAD + "".join(f"#: {part}\necho {part} {name} >>{log}; saw x\n"
                                                   for part in ("before", "inside", "outside")))
    prove.run("demo", check=0)
    seen = log.read_text().split("\n")
    assert seen[:2] == ["before a", "before b"] and seen.index("inside a") < seen.index("inside b")
    assert seen.index("inside a") < seen.index("outside a")


def test_what_a_part_leaves_is_killed(prove):
    pids = prove.inst.root / "pids"
    prove.probe("host/one", HEAD + f"""#: before
sleep 300 & echo $! >>{pids}
#: inside
sleep 300 & echo $! >>{pids}
setsid sleep 300 & echo $! >>{pids}
saw x
#: outside
kill -0 $(head -n 1 {pids}) || hole "the listener of before exited too early"
sleep 300 & echo $! >>{pids}
""")
    prove.run("demo", check=0)
    for pid in pids.read_text().split():
        stat = pathlib.Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().split(")")[1].split()[0] == "Z"


def test_output_is_bounded(prove):
    prove.probe("host/one",
                HEAD
                + "#: inside\nyes abc | head -c 3000000\nsaw end\n#: outside\n"
                  "yes abc | head -c 3000000\n")
    by = prove.json("demo", check=0)[1]
    assert 1000 < len(by["host/one"]["inside"]) < 5000 and 1000 < len(
        by["host/one"]["outside"]) < 5000


# ---- files of probes ----

@pytest.mark.parametrize("ident, text, says", [
    ("files/bad", "# title: T\n#: inside\nsaw\n", "files/bad:1: tried is missing"),
    ("files/bad", HEAD + "# colour: red\n#: inside\nsaw\n",
     "files/bad:4: unknown key 'colour'"),
    ("files/shipped", HEAD + "#: inside\nsaw x\n", "a built-in probe files/shipped exists"),
    ("moon/x", HEAD + "#: inside\nsaw x\n", "moon: unknown group"),
])
def test_an_own_probe_that_is_not_in_order_stops_the_run(prove, ident, text, says):
    prove.probe("files/shipped", HEAD + "#: inside\nsaw x\n")
    prove.probe(ident, text, own=True)
    p = prove.run("demo", check=125)
    assert says in p.stderr and p.stdout == ""


def test_own_probes_and_the_list(prove):
    prove.probe("files/shipped", HEAD + "# quick: yes\n#: inside\nsaw x\n")
    prove.probe("network/mine", HEAD + "#: outside\nsaw x\n", own=True)
    assert prove.run("--list",
                     check=0).stdout == (
        "files\n  files/shipped                    A claim (quick)\n\n"
                                                   "network\n  network/mine                     A claim (own)\n")
    assert "mine" not in prove.run("--list", "--quick", check=0).stdout
    assert prove.json("demo", check=0)[1]["network/mine"]["own"] is True
    assert list(prove.json("demo", "--group", "network", check=0)[1]) == ["network/mine"]
    assert list(prove.json("demo", "--probe", "files/shipped", check=0)[1]) == ["files/shipped"]
    assert list(prove.json("demo", "--quick", check=0)[1]) == ["files/shipped"]


@pytest.mark.parametrize("args, says",
                         [(["--group", "flies"], "sbx prove --group files"),
                          (["--probe", "files/none"], "sbx prove --list"),
                                        (["--nosuch"], "unknown option"),
                          (["a", "b"], "unexpected argument")])
def test_wrong_usage(prove, args, says):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    assert says in prove.run(*args, check=2).stderr


# ---- which sandbox ----

def test_the_only_one_that_runs_is_meant(prove):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    assert prove.json(check=0)[0]["sandbox"] == "demo"
    prove.inst.create("other")
    p = prove.run(check=2)
    assert "2 sandboxes are running: demo, other" in p.stderr
    prove.inst.sbx("stop", "other", check=0)
    p = prove.run("other", check=125)
    assert "sandbox 'other' is stopped" in p.stderr and "sbx start other" in p.stderr
    assert json.loads(prove.inst.sbx("inspect", "other", "--json").stdout)["status"] == "stopped"
    prove.inst.sbx("stop", "demo", check=0)
    assert "no sandbox is running" in prove.run(check=125).stderr
    assert "nosuch" in prove.run("nosuch", check=125).stderr


def test_tcg_is_said_first(prove):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    first = prove.run("demo", check=0).stdout.split("files:")[0]
    assert "not an isolation\nboundary" in first and "jail around QEMU" in first
