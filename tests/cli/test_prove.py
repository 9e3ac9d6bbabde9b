"""sbx prove with the real sbxd and sbx-probe; keeper and guest are sandbox_stand_in.py, so that inside is this machine too."""
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import time

import pytest

from conftest import SBX

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
PROBE = os.environ["SBX_TEST_PROBE"]
HEAD = "# title: A claim\n# tried: something\n# means: It matters.\n"
TWIN = HEAD + "# on: twin\n"
MARK = 0x31584253


class Prove:
    """An installation whose shipped probes are the test's own."""

    def __init__(self, inst):
        self.inst = inst
        self.share = inst.root / "share"
        self.share.mkdir()
        for part in DATA.iterdir():
            if part.name != "probes":
                (self.share / part.name).symlink_to(part)
        (self.share / "probes").mkdir()
        (self.share / "probes/prelude").symlink_to(DATA / "probes/prelude")
        self.tmp = inst.root / "tmp"
        self.tmp.mkdir()
        self.env = {"SBX_SHARE": str(self.share), "TMPDIR": str(self.tmp)}
        self.tool(pathlib.Path(PROBE))

    def tool(self, path):
        link = self.inst.libexec / "sbx-probe"
        link.unlink(missing_ok=True)
        link.symlink_to(path)

    def hostile(self, text):
        """A driver in the guest that says what it likes. The request is read first."""
        path = self.inst.root / "hostile"
        path.write_text("#!/usr/bin/env python3\nimport os, struct, sys, time\nMARK = %d\n"
                        "def frame(number, status, out, n=None):\n"
                        "    os.write(1, struct.pack('<IIII', MARK, number, status, len(out) if n is None else n) + out)\n"
                        "def ask():\n"
                        "    head = b''\n"
                        "    while len(head) < 12:\n"
                        "        more = os.read(0, 12 - len(head))\n"
                        "        if not more:\n"
                        "            sys.exit(0)\n"
                        "        head += more\n"
                        "    number, _, n = struct.unpack('<III', head)\n"
                        "    while n > 0:\n"
                        "        n -= len(os.read(0, n))\n"
                        "    return number\n%s\n" % (MARK, text))
        path.chmod(0o755)
        self.tool(path)

    def probe(self, ident, text, own=False):
        path = (self.inst.root / "config/sbx/probes" if own else self.share / "probes") / ident
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *args, check=None):
        return self.inst.sbx("prove", *args, check=check, env=self.env)

    def json(self, *args, check=None):
        whole = json.loads(self.run("--json", *args, check=check).stdout)
        return whole, {p["id"]: p for p in whole["probes"]}

    def start(self, *args, **kwargs):
        return subprocess.Popen([SBX, "prove", *args], env={**self.inst.env, **self.env}, cwd=self.inst.work, **kwargs)

    def names(self):
        return self.inst.sbx("ls", "-q", check=0).stdout.split()

    def drivers(self):
        """How many sandboxes are being asked by a tool of ours."""
        found = subprocess.run(["pgrep", "-fc", f"^{self.inst.root}/state/sbx-prove-[0-9a-f]*/sbx-probe drive"], capture_output=True, check=False)
        return int(found.stdout)

    def left(self):
        """What a run may not leave: host folder, guest folder."""
        return [*self.tmp.iterdir(), *(self.inst.root / "state").glob("sbx-prove-*")]


@pytest.fixture
def prove(inst):
    p = Prove(inst)
    inst.create("demo", inst.work)
    yield p
    assert p.left() == []


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


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
        assert {"id", "group", "title", "tried", "inside", "outside", "verdict", "why", "means"} <= set(one)


RED = [
    ("#: inside\nhole 'there it is'\n", "there it is"),
    ("#: inside\nsaw x\n#: outside\nhole 'seen from here'\n", "seen from here"),
    ("#: before\nhole 'not prepared'\n#: inside\nsaw x\n", "not prepared"),
    ("#: inside\nsaw x; exit 3\n", "broke with status 3"),
    ("#: inside\ntrue\n", "printed nothing"),
    ("#: inside\nsaw begun; sleep 20\n", "took longer than 4 seconds"),
    ("#: inside\nsaw x\n#: outside\nsleep 20\n", "took longer than 4 seconds"),
    ("#: inside\nsaw x; kill -9 $$\n", "broke with status 137"),
    ("#: inside\nsaw x; syntax error (\n", "broke with status 2"),
    ("#: inside\nexit 1\n", "gave no reason"),
]


def test_everything_else_is_red(prove):
    for i, (parts, _) in enumerate(RED):
        prove.probe(f"files/p{i}", HEAD + "# seconds: 1\n" + parts)
    p = prove.run("demo", check=1)
    blocks = re.split(r"\n  ✗ ", p.stdout)[1:]
    assert len(blocks) == len(RED) and f"{len(RED)} red" in p.stdout
    for i, (_, why) in enumerate(RED):
        text = re.sub(r"\n {15}", " ", blocks[i])
        assert text.startswith(f"files/p{i} ") and f" {why}" in text and "It matters." in text, text
        assert f"next     sbx prove demo --probe files/p{i} -v" in text


def test_who_is_late_is_tried_once_more(prove):
    mark, all_tags = prove.inst.root / "first", prove.inst.root / "tags"
    late = f"if [ ! -e {mark}-$PROBE_PART ]; then touch {mark}-$PROBE_PART; sleep 20; fi\n"
    prove.probe("files/in", HEAD + f"# seconds: 1\n#: before\necho $TAG >>{all_tags}\n#: inside\nPROBE_PART=in\n{late}saw fine\n")
    prove.probe("files/out", HEAD + f"# seconds: 1\n#: inside\nsaw fine\n#: outside\nPROBE_PART=out\n{late}saw fine\n")
    by = prove.json("demo", check=0)[1]
    assert [p["inside"] for p in by.values()] == ["fine", "fine"]
    assert len(set(all_tags.read_text().split())) == 2


def test_a_sandbox_under_load_has_more_time_the_second_time(prove):
    """credentials/request-works was late twice beside a docker build: red, with nothing wrong."""
    prove.probe("files/slow", HEAD + "# seconds: 1\n#: inside\nsleep 2\nsaw fine\n#: outside\nsleep 2\nsaw fine\n")
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
[ "$(pwd)" = "$DIR" ] && [ -x "$TOOL" ] || hole "no folder, no tool"
#: outside
[ "$(pwd)" = "$DIR" ] && [ -x "$TOOL" ] && [ -x "$SBX" ] || hole "no folder, no tool"
[ "$PATIENCE" = 30 ] || hole "30 seconds are $PATIENCE"
cat "$DIR/inside"
saw "$SANDBOX|$SANDBOX_ID|$ECHO_URL"
[ -f "$STATE_SANDBOX/spec.json" ] && [ -S "$RUN_SANDBOX/keeper.sock" ] || hole "no folders of the sandbox"
[ "$STATE/sandboxes/$SANDBOX_ID" = "$STATE_SANDBOX" ] && [ "${CONFIG##*/}" = sbx ] && [ -d "$DATA" ] && [ -d "$RUNTIME" ] || hole "no folders"
for f in inspect.json workspaces version.json shares; do [ -s "$FACTS/$f" ] || hole "no $f"; done
fact workspaces
[ -d "/proc/$(pid keeper)" ] && [ -d "/proc/$(pid sbxd)" ] || hole "no processes"
command -v find_ours >/dev/null && ! command -v within >/dev/null || hole "not the prelude of its own group, or that of another"
saw "guest: $(guest echo hello)"
""")
    whole, by = prove.json("demo", "--echo", "http://e.invalid", check=0)
    inside = by["host/vars"]["inside"]
    assert re.fullmatch(rf"""it's "one"  \$HOME\|2\|host/vars\|\w+\|{re.escape(str(prove.inst.work))}\|tcg""", inside), inside
    lines = by["host/vars"]["outside"].split("\n")
    assert lines == [inside, f"demo|{whole['id']}|http://e.invalid", f"rw {prove.inst.work}", "guest: hello"]


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
kill -0 $(head -n 1 {pids}) || hole "the listener of before is gone too early"
sleep 300 & echo $! >>{pids}
""")
    prove.run("demo", check=0)
    for pid in pids.read_text().split():
        stat = pathlib.Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().split(")")[1].split()[0] == "Z"


def test_output_is_bounded(prove):
    prove.probe("host/one", HEAD + "#: inside\nyes abc | head -c 3000000\nsaw end\n#: outside\nyes abc | head -c 3000000\n")
    by = prove.json("demo", check=0)[1]
    assert 1000 < len(by["host/one"]["inside"]) < 5000 and 1000 < len(by["host/one"]["outside"]) < 5000


# ---- files of probes ----

@pytest.mark.parametrize("ident, text, says", [
    ("files/bad", "# title: T\n#: inside\nsaw\n", "files/bad:1: tried is missing"),
    ("files/bad", HEAD + "# colour: red\n#: inside\nsaw\n", "files/bad:4: there is no key 'colour'"),
    ("files/shipped", HEAD + "#: inside\nsaw x\n", "there is a probe files/shipped of ours"),
    ("moon/x", HEAD + "#: inside\nsaw x\n", "no such group"),
])
def test_an_own_probe_that_is_not_in_order_stops_the_run(prove, ident, text, says):
    prove.probe("files/shipped", HEAD + "#: inside\nsaw x\n")
    prove.probe(ident, text, own=True)
    p = prove.run("demo", check=125)
    assert says in p.stderr and p.stdout == ""


def test_own_probes_and_the_list(prove):
    prove.probe("files/shipped", HEAD + "# quick: yes\n#: inside\nsaw x\n")
    prove.probe("network/mine", HEAD + "#: outside\nsaw x\n", own=True)
    assert prove.run("--list", check=0).stdout == ("files\n  files/shipped                    A claim (quick)\n\n"
                                                   "network\n  network/mine                     A claim (own)\n")
    assert "mine" not in prove.run("--list", "--quick", check=0).stdout
    assert prove.json("demo", check=0)[1]["network/mine"]["own"] is True
    assert list(prove.json("demo", "--group", "network", check=0)[1]) == ["network/mine"]
    assert list(prove.json("demo", "--probe", "files/shipped", check=0)[1]) == ["files/shipped"]
    assert list(prove.json("demo", "--quick", check=0)[1]) == ["files/shipped"]


@pytest.mark.parametrize("args, says", [(["--group", "flies"], "sbx prove --group files"), (["--probe", "files/none"], "sbx prove --list"),
                                        (["--nosuch"], "unknown option"), (["a", "b"], "too many")])
def test_wrong_usage(prove, args, says):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    assert says in prove.run(*args, check=2).stderr


# ---- which sandbox ----

def test_the_only_one_that_runs_is_meant(prove):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    assert prove.json(check=0)[0]["sandbox"] == "demo"
    prove.inst.create("other")
    p = prove.run(check=2)
    assert "2 sandboxes run: demo, other" in p.stderr
    prove.inst.sbx("stop", "other", check=0)
    p = prove.run("other", check=125)
    assert "other is stopped" in p.stderr and "sbx exec other true" in p.stderr
    assert json.loads(prove.inst.sbx("inspect", "other", "--json").stdout)["status"] == "stopped"
    prove.inst.sbx("stop", "demo", check=0)
    assert "no sandbox runs" in prove.run(check=125).stderr
    assert "nosuch" in prove.run("nosuch", check=125).stderr


def test_tcg_is_said_first(prove):
    prove.probe("files/one", HEAD + "#: inside\nsaw x\n")
    first = prove.run("demo", check=0).stdout.split("files:")[0]
    assert "TCG is no\nisolation boundary" in first and "jail around qemu" in first


# ---- a hostile guest ----

GOOD = "frame(n, 0, b'all is well')"


@pytest.mark.parametrize("text", [
    "ask(); os.write(1, b'hello, I am no frame, but long enough')",
    "n = ask(); frame(n + 1, 0, b'of another one')",
    f"n = ask(); {GOOD}; {GOOD}; time.sleep(5)",
    "n = ask(); frame(n, 0, b'x', n=1 << 30); time.sleep(5)",
    "n = ask(); frame(n, 0, b'x' * 100, n=8193); time.sleep(5)",
    "n = ask(); frame(n, 0, b'half', n=4000)",
    "n = ask(); os._exit(0)",
    "os._exit(0)",
    "n = ask(); os.write(1, struct.pack('<II', MARK, n))",
    "n = ask(); frame(n, 1 << 31, b'x'); n = ask(); frame(n, 256, b'x')",
    "n = ask(); frame(n, 0, b'')\nos.write(2, b'\\x1b[2J' * 10000)\nos._exit(9)",
])
def test_a_hostile_guest_turns_nothing_green(prove, text):
    for name in ("a", "b"):
        prove.probe(f"files/{name}", HEAD + "# seconds: 2\n#: inside\nsaw x\n#: outside\nsaw seen\n")
    prove.hostile(text + "\n__import__('shutil').rmtree(sys.argv[2])" if "os._exit" not in text else
                  "__import__('shutil').rmtree(sys.argv[2])\n" + text)
    p = prove.run("demo", "--json", check=1)
    by = {x["id"]: x for x in json.loads(p.stdout)["probes"]}
    assert "files/b" in by and by["files/b"]["verdict"] == "fail", p.stdout
    assert "\x1b" not in p.stdout + p.stderr
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        subprocess.run(["rm", "-rf", folder], check=True)  # what this guest did not remove is its own


def test_no_control_character_comes_through(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    prove.hostile(r"n = ask(); frame(n, 1, b'\x1b]0;owned\x07\x9b31m\xe2\x80\xaeabc\x00\r\xff'); ask()"
                  "\n__import__('shutil').rmtree(sys.argv[2])")
    for args in ((), ("-v",), ("--json",)):
        p = prove.inst.sbx("prove", "demo", *args, env=prove.env, binary=True)
        assert p.returncode == 1
        text = p.stdout.decode()  # valid UTF-8
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), text
        assert "owned" in text
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        subprocess.run(["rm", "-rf", folder], check=True)


def test_the_page_follows_no_link_that_a_guest_planted(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    precious = prove.inst.root / "authorized_keys"
    precious.write_text("mine\n")
    page = prove.inst.work / "proof.html"
    page.symlink_to(precious)
    prove.run("demo", "--html", "proof.html", check=0)
    assert precious.read_text() == "mine\n" and not page.is_symlink() and "<html" in page.read_text()
    # Nothing is left of a page that could not be written.
    prove.run("demo", "--html", "none/proof.html", check=125)
    assert [f.name for f in prove.inst.work.iterdir() if "proof" in f.name] == ["proof.html"]


@pytest.mark.parametrize("probe", ["host/clock", "kernel/memory"])
def test_the_text_of_a_hostile_guest_runs_nothing_on_the_host(prove, probe):
    """Where sh is bash, arithmetic ran the commands in it."""
    canary = prove.inst.root / "ran"
    text = (DATA / "probes" / probe).read_text()
    prove.probe(probe, text)
    prove.hostile(f"n = ask(); frame(n, 0, b'now[$(touch {canary})]'); ask()\n__import__('shutil').rmtree(sys.argv[2])")
    path = prove.inst.root / "bin"
    path.mkdir()
    (path / "sh").symlink_to("/bin/bash")
    p = prove.inst.sbx("prove", "demo", "--json", env={**prove.env, "PATH": f"{path}:{os.environ['PATH']}"})
    by = {x["id"]: x for x in json.loads(p.stdout)["probes"]}
    assert not canary.exists() and by[probe]["verdict"] == "fail", p.stdout
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        subprocess.run(["rm", "-rf", folder], check=True)


def test_the_shell_of_the_probes_is_not_the_one_of_the_path(prove):
    """The probe is red where the shell runs a command in the value of a variable, as bash does."""
    prove.probe("host/probe-shell", (DATA / "probes/host/probe-shell").read_text())
    path = prove.inst.root / "bin"
    path.mkdir()
    (path / "sh").symlink_to("/bin/bash")
    p = prove.inst.sbx("prove", "demo", "--json", env={**prove.env, "PATH": f"{path}:{os.environ['PATH']}"})
    assert p.returncode == 0, p.stdout


def test_a_guest_that_never_answers(prove):
    prove.probe("files/a", HEAD + "# seconds: 1\n#: inside\nsaw x\n")
    prove.hostile("ask(); __import__('shutil').rmtree(sys.argv[2]); time.sleep(100)")
    whole, by = prove.json("demo", check=1)
    assert "did not answer" in by["files/a"]["why"] and whole["seconds"] < 40


def test_a_sandbox_without_a_shell_says_so(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    prove.inst.sbx("rm", "-f", "demo", check=0)
    prove.inst.create("demo", "-e", "PATH=/nowhere")
    why = prove.json("demo", check=1)[1]["files/a"]["why"]
    assert "no shell in this sandbox" in why or "did not answer" in why


# ---- the twin ----

def twin_probe(prove):
    prove.probe("files/twin", TWIN + "#: inside\n"
                '[ -w "$WORKSPACE" ] && [ -d "$RO" ] && [ -f "$HIDDEN" ] || hole "$WORKSPACE $RO $HIDDEN"\nsaw "$WORKSPACE"\n'
                '#: outside\n"$SBX" inspect --json "$SANDBOX"\n"$SBX" policy ls --json --sandbox "$SANDBOX" | grep -A 9 "$SANDBOX" >"$DIR/rules"\n'
                'grep -q allowed.example "$DIR/rules" && grep -q denied.example "$DIR/rules" || hole "no rules"\n')


def test_the_twin_is_like_the_sandbox_and_goes(prove):
    prove.inst.sbx("rm", "-f", "demo", check=0)
    prove.inst.create("demo", prove.inst.work, "--cpus", "3", "-m", "768m", "--allow-network", "allowed.example:443", "--deny-network",
                      "denied.example")
    twin_probe(prove)
    prove.probe("files/plain", HEAD + "#: inside\nsaw x\n")
    whole, by = prove.json("demo", check=0)
    assert re.fullmatch(r"prove-[0-9a-f]{8}", whole["twin"])
    assert by["files/twin"]["on"] == "twin" and by["files/plain"]["on"] == "sandbox"
    seen = by["files/twin"]["outside"]
    assert '"cpus": 3' in seen and f'"memory": {768 << 20}' in seen and '"template": "debian"' in seen
    assert prove.names() == ["demo"]
    assert "allowed.example" in prove.inst.sbx("policy", "ls", "--wide").stdout
    assert "prove-" not in prove.inst.sbx("policy", "ls", "--wide").stdout


def test_a_twin_that_is_given_stays(prove):
    rw, ro = prove.inst.root / "rw", prove.inst.root / "ro"
    rw.mkdir()
    ro.mkdir()
    (rw / "a.hidden").write_text("x")
    prove.inst.create("mine", rw, f"{ro}:ro", "--hide", "*.hidden")
    prove.probe("files/twin", TWIN + '#: outside\nsaw "$SANDBOX $WORKSPACE $RO $HIDDEN"\n')
    whole, by = prove.json("demo", "--twin", "mine", check=0)
    assert by["files/twin"]["outside"] == f"mine {rw} {ro} {rw}/a.hidden" and whole["twin"] == "mine"
    assert prove.names() == ["demo", "mine"]


def test_a_twin_that_cannot_be_made_is_red(prove):
    prove.probe("files/twin", TWIN + "#: inside\nsaw x\n")
    (prove.inst.root / "data/sbx/templates/debian/manifest.json").unlink()
    why = prove.json("demo", check=1)[1]["files/twin"]["why"]
    assert "the scratch twin could not be made" in why
    assert prove.names() == ["demo"]


def test_recovery_tries_again_on_the_twin(prove):
    flag = prove.inst.root / "flag"
    prove.probe("network/a", HEAD + f'#: inside\n[ -e {flag} ] && hole "a hole afterwards"\nsaw fine\n#: outside\nsaw "$SANDBOX $(pid keeper)"\n')
    prove.probe("network/b", HEAD + "#: outside\nsaw fine\n")
    prove.probe("recovery/harm", TWIN + f'# again: network/a network/b\n#: before\n"$SBX" stop "$SANDBOX" && "$SBX" exec "$SANDBOX" true\n'
                f'case $SANDBOX in prove-*) touch {flag};; esac\n')
    prove.probe("recovery/plain", TWIN + f"# again: network/b\n#: before\ntrue\n#: outside\nsaw after\n")
    whole, by = prove.json("demo", check=1)
    assert {i: by[i]["verdict"] for i in by} == {
        "network/a": "pass", "network/b": "pass", "recovery/harm": "fail", "recovery/harm+network/a": "fail",
        "recovery/harm+network/b": "pass", "recovery/plain": "pass", "recovery/plain+network/b": "pass"}
    assert "a hole afterwards" in by["recovery/harm"]["why"]
    assert by["recovery/harm+network/a"]["group"] == "recovery" and by["recovery/harm+network/a"]["outside"].startswith("prove-")
    assert by["network/a"]["outside"].startswith("demo ")


def test_harm_that_did_not_work_is_red_with_all_behind_it(prove):
    prove.probe("network/a", HEAD + "#: inside\nsaw fine\n")
    prove.probe("recovery/harm", TWIN + "# again: network/a\n#: before\nhole 'could not'\n")
    by = prove.json("demo", "--group", "recovery", check=1)[1]
    assert by["recovery/harm"]["why"] == "could not" and by["recovery/harm+network/a"]["verdict"] == "fail"


def test_harm_that_is_left_out_leaves_out_all_behind_it(prove):
    prove.probe("network/a", HEAD + "#: inside\nsaw fine\n")
    prove.probe("recovery/harm", TWIN + "# again: network/a\n#: before\nskip 'not here'\n#: inside\nsaw x\n")
    by = prove.json("demo", "--group", "recovery", check=0)[1]
    assert by["recovery/harm"]["why"] == "not here"
    assert by["recovery/harm"]["verdict"] == by["recovery/harm+network/a"]["verdict"] == "skip"


# ---- the end, whatever the end ----

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_nothing(prove, number):
    mark = prove.inst.root / "began"
    prove.probe("files/slow", HEAD + f"# seconds: 60\n#: before\nsleep 301 &\n#: inside\ntouch {mark}; saw x; sleep 302\n")
    prove.probe("files/later", HEAD + "#: inside\nsaw x\n")
    prove.probe("files/twin", TWIN + "# seconds: 60\n#: inside\nsaw x; sleep 303\n")
    p = prove.start("demo", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: mark.exists() and len(prove.names()) == 2)
    p.send_signal(number)
    out, err = p.communicate(timeout=30)
    assert p.returncode == 125 and b"Interrupted" in out, (out, err)
    assert prove.names() == ["demo"] and prove.left() == []
    ps = subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True).stdout
    assert not re.search(r"^sleep 30[123]$", ps, re.M)


def test_what_a_killed_run_left_goes_with_the_next(prove):
    mark = prove.inst.root / "began"
    prove.probe("files/slow", HEAD + f"# seconds: 60\n#: inside\ntouch {mark}; saw x; sleep 60\n")
    prove.probe("files/twin", TWIN + "# seconds: 60\n#: inside\nsaw x; sleep 60\n")
    prove.probe("files/fast", HEAD + "#: inside\nsaw x\n")
    p = prove.start("demo", stdout=subprocess.DEVNULL)
    # The twin's folder goes with the twin; where it is a stand-in, only when the driver that is to remove it has begun.
    wait_for(lambda: mark.exists() and len(prove.names()) == 2 and prove.drivers() == 2)
    prove.run("demo", "--probe", "files/fast", check=0)
    assert len(prove.names()) == 2, "the twin of a run that goes on stays"
    p.kill()
    p.wait()
    assert len(list(prove.tmp.iterdir())) == 1
    prove.inst.create("prove-0123abcd")  # somebody's own, of that name
    prove.run("demo", "--probe", "files/fast", check=0)
    assert prove.names() == ["demo", "prove-0123abcd"]
    wait_for(lambda: prove.left() == [])


def test_on_a_terminal_each_probe_has_its_line_as_it_ends(prove):
    for name in ("a", "b"):
        prove.probe(f"files/{name}", HEAD + "#: inside\nsaw x\n")
    prove.probe("files/c", HEAD + "#: inside\nhole broken\n")
    master, slave = pty.openpty()
    p = prove.start("demo", stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    text = b""
    try:
        while part := os.read(master, 4096):
            text += part
    except OSError:
        pass
    assert p.wait() == 1
    text = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r", "")
    assert re.search(r"✓ files/a.*✓ files/b.*✗ files/c.*WHY +broken.*files: 2 green, 1 RED.*3 probes: 2 green, 1 red", text, re.S), text
