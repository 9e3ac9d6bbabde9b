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
        self.root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default
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

    def finish(self):
        sys.exit(1 if self.findings else 0)


def header_comment(text):
    """The comment at the very top of a header, without its frame; '' when there is none."""
    m = re.match(r"/\*\n((?: \*.*\n)+?) \*/\n", text)
    return re.sub(r"(?m)^ \* ?", "", m.group(1)) if m else ""


def strip_comments(text):
    """C text without comments; line numbers stay."""
    def blank(m):
        return m.group(0) if m.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text,
                  flags=re.S)
