# SPDX-License-Identifier: Apache-2.0
"""sbx prove with a hostile guest, with a twin, and when it is interrupted. See prove_rig.py."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess

import pytest

from conftest import on_terminal
from prove_rig import DATA, HEAD, PROBE, TWIN, prove, wait_for  # noqa: F401


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
        prove.probe(f"files/{name}",
                    HEAD + "# seconds: 2\n#: inside\nsaw x\n#: outside\nsaw seen\n")
    prove.hostile(text + "\n__import__('shutil').rmtree(sys.argv[2])" if "os._exit" not in text else
                  "__import__('shutil').rmtree(sys.argv[2])\n" + text)
    p = prove.run("demo", "--json", check=1)
    by = {x["id"]: x for x in json.loads(p.stdout)["probes"]}
    assert "files/b" in by and by["files/b"]["verdict"] == "fail", p.stdout
    assert "\x1b" not in p.stdout + p.stderr
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        # what this guest did not remove is its own
        subprocess.run(["rm", "-rf", folder], check=True)


def test_no_control_character_comes_through(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    prove.hostile(
        r"n = ask(); frame(n, 1, b'\x1b]0;owned\x07\x9b31m\xe2\x80\xaeabc\x00\r\xff'); ask()"
                  "\n__import__('shutil').rmtree(sys.argv[2])")
    for args in ((), ("-v",), ("--json",)):
        p = prove.inst.sbx("prove", "demo", *args, env=prove.env, binary=True)
        assert p.returncode == 1
        text = p.stdout.decode()  # valid UTF-8
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), text
        assert "owned" in text
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        subprocess.run(["rm", "-rf", folder], check=True)


def test_the_directory_of_a_run_is_outside_of_writable_workspaces(prove):
    """A guest that writes to it leads the parts on the host to any file of the user."""
    tmp, victim = prove.inst.work / "tmp", prove.inst.root / "victim"
    tmp.mkdir()
    (prove.inst.root / "link").symlink_to(tmp)
    victim.write_text("precious\n")
    prove.probe("files/a", HEAD + f"""#: inside
for d in {tmp}/sbx-prove-*; do
	[ ! -d "$d" ] || {{ mkdir "$d/of-$TAG" && ln -s {victim} "$d/of-$TAG/served"; }}
done
saw x
#: outside
echo 'what the guest printed' >"$DIR/served"
saw "in $DIR"
""")
    for top in (tmp, prove.inst.root / "link"):
        prove.env["TMPDIR"] = str(top)
        by = prove.json("demo", check=0)[1]
        assert victim.read_text() == "precious\n"
        where = re.search("in (/.*)/of-", by["files/a"]["outside"])[1]
        assert where.startswith("/tmp/sbx-prove-") and not os.path.exists(where)
    assert list(tmp.iterdir()) == []


def test_a_run_without_a_private_directory_is_refused(prove):
    prove.probe("files/a", HEAD + "#: outside\nsaw x\n")
    prove.inst.create("all", "/:/mnt/all", "--force")
    p = prove.run("demo", check=125)
    assert "are in writable workspaces of sandboxes" in p.stderr
    prove.inst.sbx("rm", "-f", "all", check=0)
    prove.inst.create("all", "/:/mnt/all:ro", "--force")
    prove.run("demo", check=0)


def test_the_page_follows_no_link_that_a_guest_planted(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    precious = prove.inst.root / "authorized_keys"
    precious.write_text("mine\n")
    page = prove.inst.work / "proof.html"
    page.symlink_to(precious)
    prove.run("demo", "--html", "proof.html", check=0)
    assert (precious.read_text() == "mine\n" and not page.is_symlink()
            and "<html" in page.read_text())
    # Nothing is left of a page that could not be written.
    prove.run("demo", "--html", "none/proof.html", check=125)
    assert [f.name for f in prove.inst.work.iterdir() if "proof" in f.name] == ["proof.html"]


def test_the_page_is_named_and_for_its_owner_only(prove):
    """On a terminal, with a mark in colour; the codes of the colour were once printed as text."""
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    out, status = on_terminal(prove.inst, ["prove", "demo", "--html", "proof.html"], env=prove.env)
    assert (status == 0 and "\x1b[32m✓ \x1b[0mWrote proof.html. The report contains paths of "
                            "this host." in out), out
    assert "?[" not in out
    assert (prove.inst.work / "proof.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("probe", ["host/clock", "kernel/memory"])
def test_the_text_of_a_hostile_guest_runs_nothing_on_the_host(prove, probe):
    """Where sh is bash, arithmetic ran the commands in it."""
    canary = prove.inst.root / "ran"
    text = (DATA / "probes" / probe).read_text()
    prove.probe(probe, text)
    prove.hostile(
        f"n = ask(); frame(n, 0, b'now[$(touch {canary})]'); ask()\n__import__('shutil').rmtree(sys.argv[2])")
    path = prove.inst.root / "bin"
    path.mkdir()
    (path / "sh").symlink_to("/bin/bash")
    p = prove.inst.sbx("prove", "demo", "--json",
                       env={**prove.env, "PATH": f"{path}:{os.environ['PATH']}"})
    by = {x["id"]: x for x in json.loads(p.stdout)["probes"]}
    assert not canary.exists() and by[probe]["verdict"] == "fail", p.stdout
    for folder in (prove.inst.root / "state").glob("sbx-prove-*"):
        subprocess.run(["rm", "-rf", folder], check=True)


def test_the_guest_is_not_told_what_it_must_not_learn(prove):
    """files/siblings sent each name to the guest, so that the guest knew all names."""
    (prove.inst.work.parent / "merger-with-acme").mkdir()
    prove.inst.create("other-client")
    rw, ro, heard = (prove.inst.root / name for name in ("rw", "ro", "heard"))
    for folder in (rw, ro):
        folder.mkdir()
    prove.inst.create("mine", rw, f"{ro}:ro")
    for probe in ("files/siblings", "network/other-sandboxes", "docker/host-root", "docker/escape"):
        prove.probe(probe, (DATA / "probes" / probe).read_text().replace("\ndock\n", "\n"))
    prove.hostile(f"""
if sys.argv[1] != 'drive':
    os.execv({PROBE!r}, ['sbx-probe', *sys.argv[1:]])
__import__('shutil').rmtree(sys.argv[2])
while True:
    head = os.read(0, 12)
    if not head:
        sys.exit(0)
    n, _, size = struct.unpack('<III', head)
    said = b''
    while len(said) < size:
        said += os.read(0, size - len(said))
    open({str(heard)!r}, 'ab').write(said)
    frame(n, 0, b'there: work')
""")
    by = prove.json("demo", "--twin", "mine")[1]
    said = heard.read_text()
    asked = [i for i in by if f"PROBE={i} " in said]
    secrets = ["merger-with-acme", "other-client",
               pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()]
    if os.path.exists("/etc/machine-id"):
        secrets.append(pathlib.Path("/etc/machine-id").read_text().strip())
    assert "files/siblings" in asked and "docker/escape" in asked, by
    assert [s for s in secrets if s and s in said] == []


def test_no_program_of_a_workspace_in_the_path_is_run(prove):
    """With a virtual environment of the workspace in PATH, sbx prove ran the guest's sed and rm."""
    bin_, ran = prove.inst.work / ".venv/bin", prove.inst.root / "ran"
    bin_.mkdir(parents=True)
    for name in ("sed", "rm", "grep", "tail"):
        (bin_ / name).write_text(f"#!/bin/sh\necho {name} >>{ran}\n")
        (bin_ / name).chmod(0o755)
    prove.probe("files/a", HEAD + '#: outside\nsaw "$(echo x | sed s/x/seen/) $USER_PATH"\n')
    path = f"{bin_}:{prove.inst.env['PATH']}"
    p = prove.inst.sbx("prove", "demo", "--json", env={**prove.env, "PATH": path}, check=0)
    assert not ran.exists(), ran.read_text()
    assert json.loads(p.stdout)["probes"][0]["outside"] == f"seen {path}"


def test_the_shell_of_the_probes_is_not_the_one_of_the_path(prove):
    """The probe fails if the shell runs a command in the value of a variable, as bash does."""
    prove.probe("host/probe-shell", (DATA / "probes/host/probe-shell").read_text())
    path = prove.inst.root / "bin"
    path.mkdir()
    (path / "sh").symlink_to("/bin/bash")
    p = prove.inst.sbx("prove", "demo", "--json",
                       env={**prove.env, "PATH": f"{path}:{os.environ['PATH']}"})
    assert p.returncode == 0, p.stdout


def test_a_guest_that_never_answers(prove):
    prove.probe("files/a", HEAD + "# seconds: 1\n#: inside\nsaw x\n")
    prove.hostile("ask(); __import__('shutil').rmtree(sys.argv[2]); time.sleep(100)")
    whole, by = prove.json("demo", check=1)
    assert "did not respond" in by["files/a"]["why"] and whole["seconds"] < 40


def test_a_sandbox_without_a_shell_says_so(prove):
    prove.probe("files/a", HEAD + "#: inside\nsaw x\n")
    prove.inst.sbx("rm", "-f", "demo", check=0)
    prove.inst.create("demo", "-e", "PATH=/nowhere")
    why = prove.json("demo", check=1)[1]["files/a"]["why"]
    assert "no shell in the sandbox" in why or "did not respond" in why


# ---- the twin ----

def twin_probe(prove):
    prove.probe("files/twin", TWIN + "#: inside\n"
                '[ -w "$WORKSPACE" ] && [ -d "$RO" ] && [ -f "$HIDDEN" ] || hole "$WORKSPACE $RO $HIDDEN"\nsaw "$WORKSPACE"\n'
                '#: outside\n"$SBX" inspect --json "$SANDBOX"\n"$SBX" policy ls --json --sandbox "$SANDBOX" | grep -A 9 "$SANDBOX" >"$DIR/rules"\n'
                'grep -q allowed.example "$DIR/rules" && grep -q denied.example "$DIR/rules" || hole "no rules"\n')


def test_the_twin_is_like_the_sandbox_and_goes(prove):
    prove.inst.sbx("rm", "-f", "demo", check=0)
    prove.inst.create("demo", prove.inst.work, "--cpus", "3", "-m", "768m", "--allow-network",
                      "allowed.example:443", "--deny-network",
                      "denied.example")
    # Rules about requests are not for the twin: no option of create takes them.
    for effect in "allow", "ask":
        prove.inst.sbx("policy", effect, "http", "allowed.example/v1/**", "--method", "GET",
                       "--sandbox", "demo", check=0)
    twin_probe(prove)
    prove.probe("files/plain", HEAD + "#: inside\nsaw x\n")
    whole, by = prove.json("demo", check=0)
    assert re.fullmatch(r"prove-[0-9a-f]{8}", whole["twin"])
    assert by["files/twin"]["on"] == "twin" and by["files/plain"]["on"] == "sandbox"
    seen = by["files/twin"]["outside"]
    assert ('"cpus": 3' in seen and f'"memory": {768 << 20}' in seen
            and '"template": "debian"' in seen)
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
    assert by["files/twin"]["outside"] == f"mine {rw} {ro} {rw}/a.hidden" and whole[
        "twin"] == "mine"
    assert prove.names() == ["demo", "mine"]


def test_a_twin_that_cannot_be_made_is_red(prove):
    prove.probe("files/twin", TWIN + "#: inside\nsaw x\n")
    (prove.inst.root / "data/sbx/templates/debian/manifest.json").unlink()
    why = prove.json("demo", check=1)[1]["files/twin"]["why"]
    assert "cannot create the scratch sandbox" in why
    assert prove.names() == ["demo"]


def test_recovery_tries_again_on_the_twin(prove):
    flag = prove.inst.root / "flag"
    prove.probe("network/a",
                HEAD
                + f'#: inside\n[ -e {flag} ] && hole "a hole afterwards"\nsaw fine\n#: outside\n'
                  'saw "$SANDBOX $(pid keeper)"\n')
    prove.probe("network/b", HEAD + "#: outside\nsaw fine\n")
    prove.probe("recovery/harm",
                TWIN
                + '# again: network/a network/b\n#: before\n"$SBX" stop "$SANDBOX" && '
                  '"$SBX" exec "$SANDBOX" true\n'
                f'case $SANDBOX in prove-*) touch {flag};; esac\n')
    prove.probe("recovery/plain",
                TWIN + f"# again: network/b\n#: before\ntrue\n#: outside\nsaw after\n")
    whole, by = prove.json("demo", check=1)
    assert {i: by[i]["verdict"] for i in by} == {
        "network/a": "pass", "network/b": "pass", "recovery/harm": "fail",
        "recovery/harm+network/a": "fail",
        "recovery/harm+network/b": "pass", "recovery/plain": "pass",
        "recovery/plain+network/b": "pass"}
    assert "a hole afterwards" in by["recovery/harm"]["why"]
    assert by["recovery/harm+network/a"]["group"] == "recovery" and by["recovery/harm+network/a"][
        "outside"].startswith("prove-")
    assert by["network/a"]["outside"].startswith("demo ")


def test_harm_that_did_not_work_is_red_with_all_behind_it(prove):
    prove.probe("network/a", HEAD + "#: inside\nsaw fine\n")
    prove.probe("recovery/harm", TWIN + "# again: network/a\n#: before\nhole 'could not'\n")
    by = prove.json("demo", "--group", "recovery", check=1)[1]
    assert by["recovery/harm"]["why"] == "could not" and by["recovery/harm+network/a"][
        "verdict"] == "fail"


def test_harm_that_is_left_out_leaves_out_all_behind_it(prove):
    prove.probe("network/a", HEAD + "#: inside\nsaw fine\n")
    prove.probe("recovery/harm",
                TWIN + "# again: network/a\n#: before\nskip 'not here'\n#: inside\nsaw x\n")
    by = prove.json("demo", "--group", "recovery", check=0)[1]
    assert by["recovery/harm"]["why"] == "not here"
    assert by["recovery/harm"]["verdict"] == by["recovery/harm+network/a"]["verdict"] == "skip"


# ---- the end, whatever the end ----

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_nothing(prove, number):
    mark = prove.inst.root / "began"
    prove.probe("files/slow",
                HEAD
                + "# seconds: 60\n#: before\nsleep 301 &\n#: inside\n"
                  f"touch {mark}; saw x; sleep 302\n")
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
    # The directory of the scratch sandbox is removed with it; in a simulated sandbox only after the
    # driver that removes it has started.
    wait_for(lambda: mark.exists() and len(prove.names()) == 2 and prove.drivers() == 2)
    prove.run("demo", "--probe", "files/fast", check=0)
    assert len(prove.names()) == 2, "the twin of a running run stays"
    p.kill()
    p.wait()
    assert len(list(prove.tmp.iterdir())) == 1
    prove.inst.create("prove-0123abcd")  # a sandbox of the user with that name
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
    assert re.search(
        r"✓ files/a.*✓ files/b.*✗ files/c.*WHY +broken.*files: 2 passed, "
        r"1 FAILED.*3 probes: 2 passed, 1 failed", text, re.S), text
