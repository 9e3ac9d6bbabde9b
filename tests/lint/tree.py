# SPDX-License-Identifier: Apache-2.0
"""What the lint scripts share: the files of the tree, and one way to report.

A lint is called with the root of a tree (default: this one), prints `path:line: what is wrong` for
each finding and exits with 1 when there was one.
"""
import pathlib
import re
import sys

SKIP = re.compile(r"^(\.git|build.*|__pycache__|\.cache|\.pytest_cache)$")


class Tree:
    def __init__(self):
        default = pathlib.Path(__file__).resolve().parent.parent.parent
        self.root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 and sys.argv[1][
            :2] != "--" else default
        self.paths = sorted(self._walk(self.root))
        self.findings = 0
        if not self.paths:
            sys.exit(f"{sys.argv[0]}: no files below {self.root}")

    def _walk(self, folder):
        for entry in folder.iterdir():
            if SKIP.match(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                yield from self._walk(entry)
            elif entry.is_file():
                yield entry.relative_to(self.root).as_posix()

    def matching(self, *patterns):
        """Paths that match one of the patterns, with * also over slashes."""
        exps = [re.compile(re.escape(p).replace(r"\*", ".*") + r"\Z") for p in patterns]
        return [p for p in self.paths if any(e.match(p) for e in exps)]

    def text(self, path):
        return (self.root / path).read_bytes().decode("utf-8", "replace")

    def lines(self, path):
        return enumerate(self.text(path).split("\n"), 1)

    def report(self, path, line, what):
        print(f"{path}:{line}: {what}")
        self.findings += 1

    def limit(self, rule, found):
        """Reports findings beyond what tests/lint/allowed.txt permits.

        `found` is {place: [(path, line, what)]}.

        A row of that file is `RULE PLACE COUNT`. It is for what an older tree had; a count may only
        shrink, and it must be the number of findings: repairing one lowers the row.
        """
        allowed, rows = {}, {}
        at = self.root / "tests/lint/allowed.txt"
        text = at.read_text(encoding="ascii") if at.exists() else ""
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if len(words) == 3 and words[0] == rule:
                allowed[words[1]], rows[words[1]] = int(words[2]), number
        if "--counts" in sys.argv:
            for place, list_ in sorted(found.items()):
                print(rule, place, len(list_))
            return
        for place in sorted(set(found) | set(allowed)):
            have, may = found.get(place, []), allowed.get(place, 0)
            if len(have) > may:
                for path, line, what in have:
                    self.report(path, line, what)
                if may:
                    print(f"{place}: {len(have)} of {rule}, tests/lint/allowed.txt has {may}")
            elif len(have) < may:
                self.report("tests/lint/allowed.txt", rows[place],
                            f"{rule} {place} {may}: {len(have)} found, lower or remove the row")

    def finish(self):
        sys.exit(1 if self.findings else 0)


def header_comment(text):
    """The comment after the SPDX line of a header, without its frame; '' when there is none."""
    m = re.match(r"(?:/\* SPDX-\S+ \S+ \*/\n)?/\*\n((?: \*.*\n)+?) \*/\n", text)
    return re.sub(r"(?m)^ \* ?", "", m.group(1)) if m else ""


def strip_comments(text):
    """C text without comments; line numbers stay."""
    def blank(m):
        return m.group(0) if m.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text,
                  flags=re.S)


def is_test(path):
    return "/test/" in path or path.startswith(("tests/", "fuzz/"))


def program_of(path):
    """The directory of the program or library that a path of src or lib belongs to."""
    parts = path.split("/")
    if parts[0] == "lib":
        return "/".join(parts[:2 if parts[1] == "base" else 3])
    inner = "/".join(parts[:3])
    return inner if inner in INNER_PROGRAMS else "/".join(parts[:2])


# Programs in the directory of another one.
INNER_PROGRAMS = {"src/vault/main", "src/vault/runner", "src/vault/keyring", "src/guest/sudo",
                  "src/guest/graft", "src/guest/probe", "src/clerk/git",
                  "src/clerk/api"}
