# SPDX-License-Identifier: Apache-2.0
"""The files that contributors' programs read: pre-commit hooks, devcontainer and GitHub workflow.

These programs are not required here. The tests run the commands of the hooks and check that the
files name what exists in this tree.
"""
import json
import pathlib
import re
import shlex
import subprocess

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
HOOKS = dict(re.findall(r"- id: (\S+)\n(?: +.*\n)*? +entry: (.+)\n",
                        (TREE / ".pre-commit-config.yaml").read_text(encoding="utf-8")))


def hook(name, *files):
    """The exit status and the output of a hook for these files."""
    done = subprocess.run([*shlex.split(HOOKS[name]), *map(str, files)], cwd=TREE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", ["image/template-build", "image/template-oci", "tools/lint"])
def test_a_script_passes_alone_although_it_reads_another(name):
    assert hook("shellcheck", name) == (0, "")


def test_a_script_with_a_mistake_is_refused(tmp_path):
    (tmp_path / "x").write_text("#!/bin/sh\necho $1\n", encoding="utf-8")
    status, said = hook("shellcheck", tmp_path / "x")
    assert status == 1 and "SC2086" in said


def test_a_source_file_with_another_format_is_refused(tmp_path):
    path = tmp_path / "x.c"
    path.write_text("int f(void)\n{\n\treturn 0;\n}\n", encoding="utf-8")
    (tmp_path / ".clang-format").symlink_to(TREE / ".clang-format")
    assert hook("clang-format", path) == (0, "")
    path.write_text("int f(void) { return 0; }\n", encoding="utf-8")
    assert hook("clang-format", path)[0] == 1


def test_the_hooks_run_lints_that_exist():
    lints = [entry.split()[1:] for entry in HOOKS.values() if entry.startswith("tools/lint")]
    assert [] in lints and len(lints) == 3
    assert [n for names in lints for n in names if not (TREE / "tests/lint" / n).is_file()] == []


def test_the_devcontainer_names_files_of_this_tree():
    at = TREE / ".devcontainer"
    made = json.loads((at / "devcontainer.json").read_text(encoding="utf-8"))["build"]
    context = (at / made["context"]).resolve()
    recipe = (at / made["dockerfile"]).read_text(encoding="utf-8")
    assert context == TREE
    copied = re.findall(r"^COPY (\S+) ", recipe, re.M)
    assert copied and all((context / name).is_file() for name in copied)


def test_the_workflow_starts_ci_run_and_keeps_its_logs():
    text = (TREE / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"^ +run: (.+)$", text, re.M) == [".ci/run"]
    assert 'mktemp -d "$HOME/sbx-ci.XXXXXX"' in (TREE / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"^ +path: (.+)$", text, re.M) == ["/home/*/sbx-ci.*/logs"]
