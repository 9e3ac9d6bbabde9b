# SPDX-License-Identifier: Apache-2.0
"""tools/test selects tests by directory, by file and by name."""
import functools
import pathlib
import subprocess

TREE = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def select(*words, status=0):
    """(names, stderr) of tools/test --list."""
    done = subprocess.run([TREE / "tools/test", "--list", *words], cwd=TREE, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.split(), done.stderr


def test_a_directory_selects_its_tests_and_those_below():
    names, _ = select("lib/base")
    assert {"base/mem", "base/fs/paths"} <= set(names)
    assert all(n.startswith(("base/", "fuzz/")) for n in names)
    assert select("base/fs")[0] == sorted(n for n in names if n.startswith("base/fs/"))
    assert select("./lib/base/fs/")[0] == select("base/fs")[0]


def test_a_directory_selects_the_corpora_of_its_fuzz_targets():
    names, _ = select("wire/http")
    assert {"wire/http/http1", "fuzz/http1"} <= set(names) and "fuzz/tar" not in names


def test_a_file_selects_its_directory_or_its_test():
    assert select("lib/base/fs/paths.c")[0] == select("base/fs")[0]
    assert select("lib/base/fs/test/paths_test.c")[0] == ["base/fs/paths"]
    assert select("tests/api/test_own.py")[0] == ["api/own"]


def test_a_directory_without_tests_stands_for_the_one_above():
    names, said = select("data/policies", status=1)
    assert not names and "no tests for 'data/policies'" in said
    names, said = select("src/guest/sudo")
    assert "guest/sudo has no tests: using guest" in said
    assert names == select("guest")[0]


def test_a_name_selects_programs_and_functions():
    assert select("-k", "paths")[0].count("base/fs/paths") == 1
    names, _ = select("-k", "a_directory_without_tests_stands_for_the_one_above")
    assert names == ["tools/test"]
    assert select("base", "-k", "nothing_has_this_name", status=1)[1].startswith("error: ")


def test_no_test_boots_a_vm():
    names, _ = select()
    assert "vm/vmm/vmm_boot" not in names and "guest/net/net_vm" not in names
    assert len(names) > 300 and "lint/words" in names


def test_an_unknown_directory_is_an_error():
    names, said = select("lib/cups", status=1)
    assert not names and said == "error: directory 'lib/cups' not found\n  try: tools/test --list\n"
