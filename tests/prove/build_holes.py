# SPDX-License-Identifier: Apache-2.0
"""Builds the programs with holes in them, outside of the tree and its build, which do not change.

How     Copies the tree and its build to a scratch directory with their times, cuts the holes into
        the copy, and runs ninja in a mount namespace in which the copies replace the originals:
        only files with holes are compiled.
Needs   User namespaces, as netlab.py. The build may be the one of CI, in a separate directory.
Never   Writes into the tree or the build it started from.
"""
import pathlib
import shutil
import subprocess

SKIP = shutil.ignore_patterns(".git", "build*", "__pycache__", ".pytest_cache")
SECONDS = 600
BUILD = """
set -eu
mount --bind "$1" "$2"
mkdir -p "$4"
mount --bind "$3" "$4"
cd "$4"
shift 4
exec ninja "$@"
"""


class Broken(Exception):
    """The build fails; the text has the reason."""


def cut(tree, holes):
    """Cuts the holes into that tree. The text that a hole replaces must occur exactly once."""
    for name, (file, old, new) in ((one.name, change) for one in holes for change in one.changes):
        path = tree / file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(old) != 1:
            raise Broken(f"the hole {name} finds its text {text.count(old)} times in {file}, not once")
        path.write_text(text.replace(old, new), encoding="utf-8")


def programs(build):
    """The programs that tools/devenv finds in a build, by their ninja names."""
    found = []
    for path in sorted((build / "src").rglob("sbx*")):
        if path.is_file() and path.stat().st_mode & 0o111:
            found.append(str(path.relative_to(build)))
    if not found:
        raise Broken(f"there is no program in {build}")
    return found


def build_holes(tree, build, holes, folder):
    """Returns (tree, build) in the directory `folder` with the holes."""
    new_tree, new_build = folder / "tree", folder / "build"
    # symlinks=True: not followed; ninja rebuilds by the times of files
    shutil.copytree(tree, new_tree, ignore=SKIP, symlinks=True)
    shutil.copytree(build, new_build, symlinks=True)
    cut(new_tree, holes)
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", BUILD, "sh", new_tree,
            tree, new_build, build, *programs(build)]
    # ninja prints errors on stdout
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, check=False)
    if done.returncode:
        raise Broken(f"holes {', '.join(h.name for h in holes)}:\n{done.stdout[-4000:]}")
    return new_tree, new_build
