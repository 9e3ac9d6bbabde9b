# SPDX-License-Identifier: Apache-2.0
"""The template: any user can build it, with the same result. .ci/run runs this file in a separate
process, during the unit tests.

Here the recipe of image/ is built twice with a few packages. The whole template is built a second
time by test_long_two_builds_of_the_template_have_the_same_content (tests/long/e2e).
"""
import contextlib
import json
import re
import resource
import shutil

import pytest
from installation import TREE, private

BUILD_SECONDS = 900
# In place of image/packages: what image/customize itself calls, and what is compiled when it is
# installed.
FEW = "sudo kmod xz-utils ca-certificates python3-minimal\n"
PROGRAMS = "bash sudo python3 modprobe"  # that the recipe finds in the result


def manifest(env):
    """As the store knows it: one of the recipe alone is hashed by the first look."""
    env.sbx("template", "verify", "debian", timeout=120)
    return json.loads(env.sbx("template", "inspect", "debian", "--json").stdout)


def processor_seconds():
    """CPU time of all awaited processes: .ci/run does other work at the same time, which changes
    the elapsed time."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def replace(path, pattern, by):
    text, n = re.subn(pattern, by, path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert n == 1, f"{path.name} has {pattern} {n} times"
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A tree whose template has few packages; the rest of the recipe is that of this tree."""
    tree = tmp_path_factory.mktemp("small")
    (tree / "tools").mkdir()
    shutil.copy2(TREE / "tools/devenv", tree / "tools")
    (tree / "data").symlink_to(TREE / "data")
    shutil.copytree(TREE / "image", tree / "image")
    (tree / "image/packages").write_text(FEW, encoding="ascii")
    replace(tree / "image/template-build", r"PROGRAMS=\([^)]*\)", f"PROGRAMS=({PROGRAMS})")
    replace(tree / "image/customize", "sudo,docker", "sudo")  # the group is docker.io's
    return tree


@contextlib.contextmanager
def built(**kwargs):
    with private(templates=False, **kwargs) as env:
        begin = processor_seconds()
        done = env.sbx("template", "build", timeout=BUILD_SECONDS)
        env.took, env.said = processor_seconds() - begin, done.stdout + done.stderr
        yield env


@pytest.fixture(scope="module")
def once(small):
    with built(tree=small) as env:
        yield env


@pytest.fixture(scope="module")
def second(small, tmp_path_factory):
    """The same again, in a tree that tests may change."""
    tree = tmp_path_factory.mktemp("second") / "tree"
    shutil.copytree(small, tree, symlinks=True)
    with built(tree=tree) as env:
        yield env


@pytest.fixture(scope="module")
def whole():
    with built() as env:
        yield env


def is_of_one_mirror(a, b):
    return a["released"] == b["released"] and a["packages"] == b["packages"]


def compare(first, again, **kwargs):
    """When the mirror changed between two builds, the second one is compared with a third."""
    if not is_of_one_mirror(first, again):
        print(f"the mirror changed between the builds: {first['released']}, {again['released']}")
        with built(**kwargs) as third:
            first = manifest(third)
    assert is_of_one_mirror(first, again), "the mirror changed between two builds, twice"
    assert first["content"] == again["content"]
    for name, file in first["files"].items():
        assert file["hash"] == again["files"][name]["hash"], name
    assert first["id"] == again["id"]


def test_two_builds_have_the_same_content(once, small, second):
    compare(manifest(once), manifest(second), tree=small)


def test_update_rebuilds_a_base_of_another_version_of_sbx(second):
    old = manifest(second)
    assert "is up to date" in second.sbx("template", "update", "debian").stdout
    with open(second.tree / "image/packages", "a", encoding="ascii") as f:
        f.write("# what a newer version needs\n")
    said = second.sbx("template", "update", timeout=BUILD_SECONDS)
    assert "was built by another version of sbx" in said.stderr, said.stderr
    new = manifest(second)
    assert new["recipe"] != old["recipe"] and new["id"] != old["id"]
    assert "'debian' is up to date" in second.sbx("template", "update").stdout


def test_long_two_builds_of_the_template_have_the_same_content(whole, env):
    """The first build can be hours old."""
    compare(manifest(env), manifest(whole))


def test_it_is_quiet_without_a_terminal(once):
    assert "\r" not in once.said and "\x1b" not in once.said


def test_long_it_takes_at_most_five_minutes(whole):
    print(f"built in {whole.took:.0f} s of processor time")
    assert 5 <= whole.took <= 300, "below 5 s the time of the build was not seen"


def test_nothing_but_the_template_is_left(once):
    folder = once.folder / "data" / "sbx" / "templates"
    assert sorted(p.name for p in folder.iterdir()) == [".store", "debian"]
    assert sorted(p.name
                  for p in (folder / ".store").iterdir()) == [".lock",
                                                              (folder / "debian").readlink().name]


def test_the_guest_has_what_it_promises(sandbox):
    for name in ("git", "curl", "sudo", "gcc", "make", "python3", "node", "npm", "jq", "rg", "ssh",
                 "docker", "dockerd", "sshd",
                 "containerd", "nft", "ip", "ps", "dig"):
        assert not sandbox.fails(f"command -v {name}"), f"{name} is not in the template"
    assert sandbox.guest(". /etc/os-release; echo $VERSION_CODENAME") == "trixie"
    assert not sandbox.fails("docker compose version") and not sandbox.fails(
        "docker buildx version")
