# SPDX-License-Identifier: Apache-2.0
"""What can be known without any sandbox: usage, help, completion."""
import os
import pty
import select
import re
import subprocess

import pytest

SBX = os.environ["SBX_TEST_SBX"]


def verbs(bare):
    return re.findall(r"^  (\w+) {2,}", bare.sbx("help", check=0).stdout, re.M)


def commands(bare):
    """The arguments of `sbx help` for each command and each command of a group."""
    for v in verbs(bare):
        yield [v]
        text = bare.sbx("help", v, check=0).stdout.partition("\ncommands:\n")[2]
        yield from ([v, sub] for sub in re.findall(r"^  ([\w-]+) {2,}", text, re.M))


def options(text):
    return [o for o in re.findall(r"^  (?:-\w, |    )--([\w-]+)", text, re.M) if o != "help"]


def test_no_command_shows_the_commands_and_fails(bare):
    p = bare.sbx(check=2)
    assert "create" in p.stdout and "usage: sbx" in p.stdout


@pytest.mark.parametrize("typed,near",
                         [("craete", "sbx create"), ("lst", "sbx ls"), ("xyzzy", "sbx help"),
                                        ("Daemon", "sbx daemon")])
def test_unknown_command_is_an_error_with_the_nearest_one(bare, typed, near):
    p = bare.sbx(typed, check=2)
    assert f"unknown command '{typed}'" in p.stderr and f"try: {near}" in p.stderr
    assert p.stdout == ""
    bare.sbx("help", typed, check=2)


@pytest.mark.parametrize("args,says", [
    (["create", "--nmae", "x", "shell"], "unknown option --nmae: did you mean --name?"),
    (["create"], "missing argument; usage: sbx"),
    (["create", "nosuch"], "unknown agent 'nosuch'"),
    (["create", "shell", "--cpus", "0"], "invalid --cpus"),
    (["create", "shell", "--memory", "12q"], "invalid --memory"),
    (["create", "shell", "--disk", "40q"], "invalid --disk '40q': expected 1g to 1t"),
    (["create", "shell", "--disk", "100m"], "invalid --disk '100m': expected 1g to 1t"),
    (["run", "shell", "--disk", "2t"], "invalid --disk '2t': expected 1g to 1t"),
    (["create", "shell", "--accel", "fast"], "invalid --accel 'fast': expected auto, kvm or tcg"),
    (["create", "shell", "--name", "bad_name"], "bad_name"),
    (["create", "shell", "-e", "1=2"], "NAME=VALUE"),
    (["exec"], "missing argument; usage: sbx"),
    (["exec", "demo"], "missing COMMAND"),
    (["exec", "-dt", "demo", "ls"], "-d cannot be combined with"),
    (["run", "--rm", "-d"], "mutually exclusive"),
    (["rm"], "--all"),
    (["rm", "--all", "x"], "--all"),
    (["cp", "a", "b"], "SANDBOX:/PATH"),
    (["cp", "a", "demo:relative"], "must be absolute"),
    (["prune", "--filter", "since=1h"], "unknown filter 'since=1h'"),
    (["stop", "--timeout", "x", "demo"], "invalid --timeout"),
    (["update", "demo"], "nothing to change"),
    (["rename", "demo", "a_b"], "a_b"),
    (["settings", "set", "vm.accel", "fast"], "vm.accel"),
    (["settings", "frob"], "unknown command 'settings frob'"),
    (["audit", "show", "--limit", "x"], "invalid --limit"),
    (["audit", "show", "--since", "soon"], "invalid time 'soon'"),
    (["audit", "verify", "--key", "00"], "--key requires --file"),
    (["audit", "verify", "--file", "f", "demo"], "--file cannot be combined with SANDBOX"),
    (["policy", "allwo"], "unknown command 'policy allwo'"),
    (["policy", "set-default"], "missing argument; usage: sbx"),
    (["policy", "set-default", "balancd"], "unknown preset 'balancd'"),
    (["policy", "init"], "missing PRESET"),
    (["policy", "allow", "example.com"], "missing 'network'"),
    (["policy", "deny", "netwrok", "example.com"], "did you mean network?"),
    (["policy", "allow", "network"], "missing RESOURCES"),
    (["policy", "allow", "network", "*"], "'*'"),
    (["policy", "allow", "network", "a.example:0"], "a.example:0"),
    (["policy", "allow", "network", "a.example", "--for", "soon"], "invalid duration 'soon'"),
    (["policy", "rm", "network"], "expected one of --id ID and --resource LIST"),
    (["policy", "rm", "network", "--id", "x", "--resource", "y"],
     "expected one of --id ID and --resource LIST"),
    (["policy", "rm", "network", "--id", "x", "--sandbox", "y"], "--id cannot be combined with"),
    (["policy", "rm", "network", "--resource", "a..b"], "a..b"),
    (["policy", "ls", "--decision", "maybe"], "allow, deny or ask"),
    (["policy", "check", "example.com"], "sbx policy check network example.com"),
    (["create", "shell", "--allow-network", "*"], "--allow-network: '*'"),
    (["create", "shell", "--deny-network", "a b"], "--deny-network: 'a b'"),
    (["completion", "tcsh"], "expected bash, zsh or fish"),
    (["ls", "extra"], "unexpected argument 'extra'"),
    (["--frob"], "unknown option --frob"),
])
def test_wrong_command_lines_exit_2_and_start_nothing(bare, args, says):
    p = bare.sbx(*args, check=2)
    assert says in p.stderr and p.stdout == ""
    assert not (bare.root / "run/sbx/sbxd.sock").exists()


def test_help_of_every_verb_in_every_way(bare):
    for words in commands(bare):
        text = bare.sbx("help", *words, check=0).stdout
        assert text.startswith(f"usage: sbx {' '.join(words)}")
        assert bare.sbx(*words, "--help", check=0).stdout == text
        assert bare.sbx(*words, "-h", check=0).stdout == text
        assert ("\ncommands:\n" in text) != ("\n  -h, --help " in text), words


def test_options_stand_in_straight_columns_and_in_groups(bare):
    """What an option does begins in one column, its defaults are named, and long lists have
    headings."""
    for words in commands(bare):
        text = bare.sbx("help", *words, check=0).stdout
        lines = [line for line in text.splitlines() if re.match(r"  (?:-\w, |    )--", line)]
        assert {re.match(r"  (?:-\w, |    )--\S+(?: \S+)? +", line).end()
                for line in lines} <= {32}, text
        assert max(map(len, text.splitlines())) <= 110, text
    for v, own in (("create", "other options"), ("run", "options of the session")):
        text = bare.sbx("help", v, check=0).stdout
        assert re.findall(r"^(.*options.*):$", text, re.M) == [
            "options", "options of the machine", "options of files and environment",
            "options of the network",
            "options of the agent and of your keys", own]
        for setting in ("vm.cpus", "vm.memory", "vm.disk"):
            assert f"(setting {setting})" in text
        assert "--import-config[=list] " in text and "with =list, only list them" in text


def test_options_behind_the_sandbox_belong_to_the_command(bare):
    assert "usage: sbx exec" in bare.sbx("exec", "--help", check=0).stdout
    p = bare.sbx("exec", "demo", "ls", "--help")
    assert "usage: sbx" not in p.stdout


def complete(bare, words):
    script = f"""
source <({SBX} completion bash)
COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}
_sbx
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    env = {**bare.env, "PATH": os.path.dirname(SBX) + ":" + bare.env["PATH"]}
    p = subprocess.run(["bash", "-euc", script], env=env, cwd=bare.work, capture_output=True,
                       text=True, timeout=30)
    assert p.returncode == 0 and not p.stderr, p.stderr
    return p.stdout.split()


def test_completion_starts_no_sbxd(inst):
    """TAB after `daemon stop`, and with an sbxd of another version: nothing is started, stopped or
    waited for."""
    inst.create("demo")
    inst.sbx("daemon", "stop", check=0)
    assert complete(inst, ["sbx", "stop", ""]) == []
    assert complete(inst, ["sbx", "secret", "set", ""]) == []
    assert not (inst.root / "run/sbx/sbxd.sock").exists()
    for shell in ("bash", "zsh", "fish"):
        text = inst.sbx("completion", shell, check=0).stdout
        assert "(sbx " not in text and "(env SBX_COMPLETE=1 sbx ls -q " in text, shell
    inst.sbx("ls", check=0)
    assert complete(inst, ["sbx", "stop", ""]) == ["demo"]


def test_bash_completion(inst):
    inst.create("demo")
    inst.create("other")
    assert complete(inst, ["sbx", "cr"]) == ["create"]
    assert set(complete(inst, ["sbx", "settings", ""])) == {"list", "get", "set", "unset"}
    assert "vm.accel" in complete(inst, ["sbx", "settings", "get", "vm."])
    assert complete(inst, ["sbx", "stop", ""]) == ["demo", "other"]
    assert complete(inst, ["sbx", "stop", "demo", "o"]) == ["other"]
    assert complete(inst, ["sbx", "cp", "dem"]) == ["demo:"]
    assert "--memory" in complete(inst, ["sbx", "create", "--m"])
    for word in ("--template", "-t"):
        assert complete(inst, ["sbx", "create", "shell", word, ""]) == ["debian"], word
        assert complete(inst, ["sbx", "run", word, "deb"]) == ["debian"], word
    assert complete(inst, ["sbx", "exec", "-t", "o"]) == ["other"]
    assert "claude" in complete(inst, ["sbx", "create", "--import-config", ""])
    assert {"demo", "other", "claude", "shell"} <= set(complete(inst, ["sbx", "run", ""]))
    assert complete(inst, ["sbx", "completion", "z"]) == ["zsh"]
    assert complete(inst, ["sbx", "policy", "set-default", "b"]) == ["balanced"]
    assert complete(inst, ["sbx", "policy", "allow", ""]) == ["network", "http", "git", "api"]
    assert complete(inst, ["sbx", "policy", "allow", "network", "--sandbox", "d"]) == ["demo"]
    assert complete(inst, ["sbx", "policy", "ls", "o"]) == ["other"]
    assert "--comment" in complete(inst, ["sbx", "policy", "deny", "--c"])
    for v in verbs(inst):
        for o in options(inst.sbx("help", v).stdout):
            assert f"--{o}" in complete(inst, ["sbx", v, f"--{o}"]), (v, o)


HOSTILE = "notes$(touch${IFS}PWNED).txt"


@pytest.mark.parametrize("line",
                         ["sbx cp no", "sbx cp demo:/x no", "sbx create shell no",
                          "sbx create --env-file no", "sbx cp n"])
def test_bash_completes_file_names_quoted(tmp_path, line):
    """A guest can give a file of the workspace any name; TAB and ENTER must not run it. Typed on a
    terminal."""
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin/sbx"
    stub.write_text(
        f'#!/bin/sh\n[ "$1" = completion ] && exec {SBX} "$@"\n[ "$1 $2" = "ls -q" ] && echo nnn && exit\n'
                    'printf "<%s>" "$@" >> "$OUT"\n')
    stub.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / HOSTILE).write_text("x")
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb",
           "PS1": "READY>", "OUT": str(tmp_path / "out")}
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], env)
    try:
        os.write(fd, b"source <(sbx completion bash); bind 'set bell-style none'; echo SET\n")
        wait_text(fd, b"\nSET")
        tail = "otes" if line.endswith("cp n") else ""
        os.write(fd, line.encode() + (b"\t" + tail.encode() if tail else b"") + b"\t\n")
        os.write(fd, b"echo E\"\"ND\nexit\n")
        wait_text(fd, b"\nEND")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
    assert not (work / "PWNED").exists()
    assert (tmp_path / "out").read_text().endswith(f"<{HOSTILE}>")


def wait_text(fd, text):
    got = b""
    while text not in got.replace(b"\r", b""):
        assert select.select([fd], [], [], 20)[0], got
        got += os.read(fd, 4096)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_completions_are_complete_and_parse(bare, shell):
    text = bare.sbx("completion", shell, check=0).stdout
    for v in verbs(bare):
        assert re.search(rf"\b{v}\b", text)
        for o in options(bare.sbx("help", v).stdout):
            assert f"--{o}" in text or f"-l {o}" in text, (v, o)
    found = subprocess.run(["sh", "-c", f"command -v {shell}"], capture_output=True)
    if found.returncode == 0:
        subprocess.run([shell, "-n", "/dev/stdin"], input=text, text=True, check=True, env=bare.env)
