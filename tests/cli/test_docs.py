# SPDX-License-Identifier: Apache-2.0
"""The commands in README.md, in the guides and in the manual pages: each verb and each option
exists."""
import pathlib
import re
import shlex

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [TREE / "README.md", TREE / "docs/index.md", *sorted((TREE / "docs/guides").glob("*.md")),
         *sorted((TREE / "man").glob("*.scd"))]


def lines(page):
    """Commands of sbx: in code blocks, split at pipes and redirections, and in the text."""
    quote = r"\*" if page.suffix == ".scd" else "`"
    for n, text in enumerate(re.split(r"(?m)^```.*$", page.read_text(encoding="utf-8"))):
        if n % 2 == 0:
            text = " ".join(text.split())
            yield from re.findall(rf"{quote}(sbx (?:-D )?[a-z][^{quote}]*){quote}", text)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            parts = re.split(r" [|] | > ", re.sub(r"\s+# .*", "", line))
            yield from (part for part in parts if part.startswith("sbx "))


def own_words(argv, taken):
    """What sbx itself reads: exec takes the command's own options, -- those of the agent."""
    if "--" in argv:
        argv = argv[:argv.index("--")]
    if argv[:1] != ["exec"]:
        return argv
    n = 1
    while n < len(argv) and argv[n].startswith("-"):
        n += 2 if argv[n] in taken else 1
    return argv[:n + 1]


def help_of(bare, argv):
    """The help of the longest verb that argv begins with."""
    found = bare.sbx("help", *argv[:2])
    return found if found.returncode == 0 else bare.sbx("help", argv[0])


def unknown(bare, line):
    """The options and verbs of a command line that do not exist."""
    argv = shlex.split(line)[1:]
    if argv[0] in ("-D", "help"):
        argv = argv[1:]
    found = help_of(bare, argv)
    if found.returncode != 0 or len(argv) > 1 and re.search(r"(?m)^commands:", found.stdout):
        return [" ".join(argv[:2])]
    known = set(re.findall(r"(?<![\w-])(--?[\w-]+)", found.stdout))
    valued = set(re.findall(r"(--?[\w-]+) [A-Z]", found.stdout))
    valued |= set(re.findall(r"(-\w), --[\w-]+ [A-Z]", found.stdout))
    words = [w.split("=")[0] for w in own_words(argv, valued) if re.match(r"--?[a-zA-Z]", w)]
    short = [f"-{c}" for w in words if w[1] != "-" for c in w[1:]]
    return [w for w in short + [w for w in words if w[1] == "-"] if w not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_exist(bare, page):
    wrong = {line: bad for line in lines(page) if (bad := unknown(bare, line))}
    assert not wrong


def test_a_command_that_does_not_exist_is_found(bare):
    assert unknown(bare, "sbx craete shell .") == ["craete shell"]
    assert unknown(bare, "sbx create shell . --nmae demo") == ["--nmae"]
    assert unknown(bare, "sbx policy alow network example.com") == ["policy alow"]
    assert unknown(bare, "sbx policy allow network example.com --for 30m") == []
    assert unknown(bare, "sbx exec -it demo bash -c 'x --y'") == []
    assert unknown(bare, "sbx exec -x demo bash") == ["-x"]
    assert unknown(bare, "sbx run claude -- --continue") == []
    assert unknown(bare, "sbx help create") == [] and unknown(bare, "sbx help craete") == ["craete"]
