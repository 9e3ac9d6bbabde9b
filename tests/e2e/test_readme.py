# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, typed in a fresh home, with the programs of the build.

Each line of a code block is run as it is written, in the order of the page, in one project
directory. ELSEWHERE has the commands that need root, the Internet or minutes, with the test that
runs them. The agent claude is an agent file without packages: hosts, credential, sandbox and
session are real, the program in it is true(1).
"""
import re
import subprocess

import pytest

from installation import START_SECONDS, TREE, private
from term import Terminal

README = TREE / "README.md"
PACKAGE = "tests/package/test_package.py"
PAGE = "tests/e2e/test_prove_html.py"
ELSEWHERE = {
    "sudo tools/setup --build --package": ".ci/run::tools/setup",
    "tools/package out": f"{PACKAGE}::def package",
    "sudo apt-get install --no-install-recommends ./out/sbx_*.deb": f"{PACKAGE}::def bare",
    "sbx template build claude": "tests/e2e/test_agents.py::test_a_build_says_what_it_does",
    "sbx prove demo --quick": "tests/e2e/test_prove.py::test_quick_is_quick",
    "sbx prove demo --html report.html": f"{PAGE}::test_every_probe_is_in_the_page",
}
KEY = "sk-ant-api03-" + "a" * 80
STDIN = {
    "sbx secret set anthropic": KEY,
    "sbx secret set github": "ghp_" + "a" * 36,
    "sbx secret set-custom --host api.example.com --env EXAMPLE_KEY example": "k" * 32,
}
# On a terminal: text to wait for, line to type.
TYPED = {
    "sbx run claude": [("y/N", "y")],
    "sbx exec -it demo bash": [("$", "mkdir ~/out && echo made >~/out/file; exit")],
    "sbx rm demo": [("y/N", "y")],
}


def commands():
    """The lines of the code blocks, without comments."""
    blocks = re.findall(r"(?ms)^```\n(.*?)^```$", README.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.splitlines()]
    return [re.sub(r"\s+# .*", "", line) for line in lines if line.strip()]


def stand_in_agent(env):
    text = (TREE / "data/agents/claude.conf").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^(npm|integrity) .*\n", "", text)
    text = text.replace("\ncommand claude\n", "\ncommand true\n")
    folder = env.folder / "config/sbx/agents"
    folder.mkdir(parents=True)
    (folder / "claude.conf").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def env():
    """An installation without a policy, in a home with one project, on a machine without KVM."""
    with private(policy="none") as made:
        made.project = made.work / "home" / "project"
        made.project.mkdir(parents=True)
        made.env.update(HOME=str(made.work / "home"), ANTHROPIC_API_KEY=KEY)
        made.env.pop("SBX_ACCEL")
        made.sbx("settings", "set", "vm.accel", "tcg")
        made.sbx("settings", "set", "vm.memory", "1g")  # for which the tests have a snapshot
        stand_in_agent(made)
        yield made


def run_typed(env, command):
    with Terminal(env, "bash", "-c", f"cd '{env.project}' && {command}") as terminal:
        for text, line in TYPED[command]:
            terminal.wait_for(text, START_SECONDS)
            terminal.line(line)
        return terminal.wait_end(START_SECONDS), terminal.screen()


def run(env, command):
    """(exit status, output)"""
    if command in TYPED:
        return run_typed(env, command)
    done = subprocess.run(["bash", "-c", command], cwd=env.project, env=env.env, text=True,
                          input=STDIN.get(command, ""), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=START_SECONDS, check=False)
    return done.returncode, done.stdout


def test_commands_that_are_not_run_here_are_run_by_another_test():
    listed = commands()
    for command, test in ELSEWHERE.items():
        path, _, name = test.partition("::")
        assert command in listed, f"README.md has no command {command!r} any more"
        assert name in (TREE / path).read_text(encoding="utf-8"), f"{path} has no {name}"
    assert not (set(STDIN) | set(TYPED)) - set(listed)


def test_every_other_command_of_the_readme_succeeds(env):
    for command in commands():
        if command in ELSEWHERE:
            continue
        status, output = run(env, command)
        assert status == 0, f"{command}: exit status {status}\n{output}"
    assert (env.project / "out/file").read_text() == "made\n"
    assert sorted(s["name"] for s in env.ls()) == ["claude-project", "fix"]
    assert not (env.project / "notes.txt").exists()  # reverted
    assert "my-tools" in env.sbx("template", "ls", "-q").stdout.split()
