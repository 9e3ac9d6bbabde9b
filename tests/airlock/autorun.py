# SPDX-License-Identifier: Apache-2.0
"""data/airlock/autorun.list as the tests read it: its rows, and what they say about a path."""
import dataclasses
import functools
import pathlib
import re

LIST = pathlib.Path(__file__).resolve().parents[2] / "data/airlock/autorun.list"
# From weak to strict. `allow` and `check` replace the rows above them.
MODES = ["report-tree", "report-new", "report", "fixed", "check", "deny"]
REFUSED = ("fixed", "check", "deny")
WILD = {"**/": "(?:.*/)?", "**": ".+", "*": "[^/]*", "?": "[^/]"}


@dataclasses.dataclass
class Row:
    line: int
    kind: int
    mode: str
    pattern: str
    program: str

    @functools.cached_property
    def expression(self):
        """Matches in each directory; a row about a directory also matches everything below it."""
        text = re.sub(r"\*\*/|\*\*$|[*?.+^$]", lambda m: WILD.get(m[0], "\\" + m[0]), self.pattern)
        return re.compile(f"(?:.*/)?{text}" + ("(?:/.*)?" if self.mode == "report-tree" else ""))

    def matches(self, path):
        return bool(self.expression.fullmatch(path))


def rows():
    found = []
    for number, line in enumerate(LIST.read_text(encoding="ascii").splitlines(), 1):
        if line and not line.startswith("#"):
            kind, mode, pattern, program = re.split(r"\t+| {2,}", line, maxsplit=3)
            found.append(Row(number, int(kind), mode, pattern, program))
    return found


ROWS = rows()
KINDS = sorted({row.kind for row in ROWS})


def judge(path):
    """The row for a path of a workspace; None for an ordinary path."""
    best = None
    for row in (r for r in ROWS if r.matches(path)):
        if row.mode == "allow":
            best = None
        elif row.mode == "check" or not best or MODES.index(row.mode) > MODES.index(best.mode):
            best = row
    return best


def mode_of(path):
    row = judge(path)
    return row.mode if row else None


WORDS = {"deny": "refused", "check": "checked", "fixed": "fixed"}


def table():
    """The rows as the table of docs/guides/workspaces.md has them: one line per kind and mode."""
    lines = ["| kind | files | program | by default |", "|---|---|---|---|"]
    for kind in KINDS:
        named = [row for row in ROWS if row.kind == kind and row.mode != "allow"]
        for word in ("refused", "checked", "fixed", "reported"):
            found = [row for row in named if WORDS.get(row.mode, "reported") == word]
            if found:
                files = " ".join(f"`{row.pattern}`" for row in found)
                programs = ", ".join(dict.fromkeys(row.program for row in found))
                lines.append(f"| {kind} | {files} | {programs} | {word} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
