# SPDX-License-Identifier: Apache-2.0
"""Every `try:` line is one command that can be pasted: those that can be provoked are run."""
import pathlib
import re
import subprocess

import pytest

from conftest import SBX

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
PROGRAMS = {"sbx", "mkdir", "cat", "tail", "df", "ls", "tar", "readlink", "realpath", "sudo", "rm"}
# These need an answer of a person, a VM, or another state of the machine: only their form is
# checked.
CALLS = re.compile(r'\b(?:ui_hint|problem_hint|api_fail)\(((?:[^;"]|"(?:[^"\\]|\\.)*")*)\);')
STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"')


def hints_in_source():
    for path in sorted(SRC.glob("sbx/**/*.c")) + sorted(SRC.glob("sbxd/**/*.c")):
        if path.name.endswith("_test.c"):
            continue
        for call in CALLS.finditer(path.read_text()):
            text = call.group(1)
            words = [s.replace('\\"', '"') for s in STRINGS.findall(text)]
            if call.group(0).startswith("api_fail"):
                words = words[2:] if '", "' in text or len(words) > 2 else []
            for word in words:
                yield path.name, word


def test_the_form_of_every_hint():
    """It begins with a program, has no alternative in words, and no placeholder but sbxd's SANDBOX
    at the end."""
    seen = 0
    for name, hint in hints_in_source():
        first = hint.split(" ")[0]
        if first not in PROGRAMS:
            continue  # a format of pieces, or a word of one
        seen += 1
        assert not re.search(r", or |; |\bor\b:?$|,? which |\.\.\.", hint), (name, hint)
        assert not re.search(r"\b[A-Z]{4,}\b", re.sub(r" SANDBOX$|\$USER", "", hint)), (name, hint)
        assert not hint.endswith((".", "it", "them", "are", "rules", "port")), (name, hint)
    assert seen > 80, seen


def wrong(inst):
    """Mistakes of people: the arguments of sbx, and the input."""
    (inst.work / "proj").mkdir()
    (inst.work / "single").write_text("x")
    (inst.work / "one.tar").write_text("no archive")
    return [
        ("rm", "demo"), ("rm",), ("rm", "demo", "other"), ("rm", "nosuch"), ("stop",),
        ("stop", "nosuch"), ("start", "nosuch"),
        ("exec", "nosuch", "true"), ("exec", "-it", "demo", "true"), ("exec", "demo"),
        ("attach", "demo"), ("attach", "stopped"),
        ("logs", "demo"), ("logs", "stopped"), ("logs", "nosuch"), ("ssh",), ("kill", "demo"),
        ("lss",), ("template", "nosuch"),
        ("create", "nosuch", "proj"), ("create", "clade"), ("create", "shell", "gone"),
        ("create", "shell", "proj:foo"),
        ("create", "shell", "single"), ("create", "shell", inst.home),
        ("create", "shell", "--name", "demo"),
        ("create", "shell", "--cpus", "900"), ("create", "shell", "--memory", "10m"),
        ("create", "shell", "-t", "nosuch", "--name", "t1"),
        ("create", "shell", "--name", "x"), ("create", "shell", "--name", "a_b"),
        ("create", "shell", "-p", "99999"),
        ("run", "nosuch"), ("run", "proj"), ("run", "claude", "--name", "demo"),
        ("run", "shell", "--name", "demo", "--hide", ".env"),
        ("stop", "--suspend", "stopped"), ("stop", "--timeout", "x", "demo"), ("update", "demo"),
        ("update", "demo", "--cpus", "x"),
        ("rename", "demo", "other"), ("inspect", "nosuch"), ("cp", "demo:/x", "other:/y"),
        ("cp", "a", "b"), ("cp", "-", "demo:/tmp"),
        ("cp", "gone", "demo:/tmp"), ("ports", "nosuch"), ("ports", "demo", "--unpublish", "5:5"),
        ("prune",), ("reset",),
        ("policy", "rm", "756b00000000"), ("policy", "rm", "network", "--id", "756b00000000"),
        ("policy", "allow", "a.example"),
        ("policy", "allow", "network"),
        ("policy", "allow", "network", "a.example", "--for", "soon"),
        ("policy", "check", "a.example"),
        ("policy", "check", "network", "a.example"),
        ("policy", "check", "network", "http://169.254.169.254/"),
        ("policy", "check", "network", "a.example", "--sandbox", "demo"),
        ("policy", "set-default", "balance"),
        ("policy", "set-default", "balanced", "--lock"), ("policy", "inspect", "nosuch"),
        ("policy", "log", "nosuch"), ("policy", "reset"),
        ("policy", "init", "nosuch"), ("secret", "set", "antropic"), ("secret", "set", "nosuch"),
        ("secret", "rm", "nosuch"),
        ("secret", "set", "anthropic"),
        ("secret", "set", "anthropic", "--command", "no-such-program"), ("secret", "ls"),
        ("secret", "import"), ("secret", "own", "anthropic"), ("template", "build", "nosuch"),
        ("template", "rm", "debian"),
        ("template", "save", "nosuch", "x"), ("template", "save", "demo"),
        ("template", "load", "gone"), ("template", "verify", "nosuch"),
        ("settings", "get", "nope"), ("settings", "set", "nope", "1"),
        ("settings", "set", "vm.cpus", "x"), ("agent", "inspect", "nosuch"),
        ("audit", "show", "nosuch"), ("audit", "prune", "demo", "--keep-size", "0"),
        ("prove", "stopped"), ("prove"),
        ("prove", "demo", "--group", "kernal"), ("prove", "demo", "--probe", "nosuch"),
        ("help", "nosuch"), ("--nosuch",),
    ]


def follow(inst, hint, env):
    """Runs it as a shell does, without a terminal; a usage error is not a
    result."""
    return subprocess.run(["sh", "-c", hint], input=b"", capture_output=True, cwd=inst.work,
                          env=env, timeout=60)


def test_every_hint_that_is_printed_can_be_typed(vault, tmp_path):
    inst = vault
    inst.create("demo")
    inst.create("other")
    inst.create("stopped")
    inst.sbx("stop", "stopped", check=0)
    (tmp_path / "sbx").symlink_to(SBX)
    env = {**inst.env, "PATH": f"{tmp_path}:{inst.env['PATH']}", "USER": "nobody"}
    hints, silent = {}, []
    for args in wrong(inst):
        args = (args,) if isinstance(args, str) else args
        p = inst.sbx(*args)
        found = re.findall(r"^ +try: (.*)$", p.stderr, re.M)
        if p.returncode and not found:
            silent.append(args)
        for hint in found:
            hints.setdefault(hint, args)
    for hint, args in hints.items():
        words = hint.split(" ")
        assert words[0] in PROGRAMS, (args, hint)
        if words[0] in ("sudo", "rm") or words[:2] == ["sbx",
                                                       "reset"] or words[:3] == ["sbx", "template",
                                                                                 "build"]:
            continue
        if words[:2] in (["sbx", "rm"],
                         ["sbx", "prune"]) or words[:3] == ["sbx", "policy", "reset"]:
            continue  # last, below
        p = follow(inst, hint, env)
        said = p.stderr.decode()
        assert p.returncode not in (126,
                                    127) and (words[0] != "sbx" or words[1] == "exec"
                                              or p.returncode != 2), (args, hint, p.returncode,
                                                                      said)
    for hint in [h for h in hints if re.match("sbx (rm|prune|policy reset)", h)]:
        p = follow(inst, hint, env)
        assert p.returncode == 0 or b"no sandbox named" in p.stderr, (hints[hint], hint, p.stderr)
    assert len(hints) > 35, sorted(hints)
    print(*(f"{h}  <- {a}" for h, a in hints.items()), "without a hint:", *silent, sep="\n")


@pytest.mark.parametrize("args, hint", [
    (("policy", "rm", "756b00000000"), "sbx policy rm network --id 756b00000000"),
    (("create", "nosuch", "proj"), "sbx agent ls"),
    (("policy", "check", "network", "http://169.254.169.254/"), "sbx help policy allow"),
    (("ports", "demo", "--unpublish", "5:5"), "sbx ports demo"),
    (("create", "shell", "proj:foo"), "sbx create shell 'proj:ro'"),
])
def test_hints_that_led_to_the_next_error(inst, args, hint):
    (inst.work / "proj").mkdir()
    if args[0] == "ports":
        inst.create("demo")
    assert f"  try: {hint}\n" in inst.sbx(*args).stderr
