# SPDX-License-Identifier: Apache-2.0
"""The template: built by anyone, again the same. .ci/run has this file in a process of its own,
beside the unit tests."""
import contextlib
import json
import resource

import pytest
from installation import private

BUILD_SECONDS = 900


def manifest(env):
    """As the store knows it: one of the recipe alone is hashed by the first look."""
    env.sbx("template", "verify", "debian", timeout=120)
    return json.loads(env.sbx("template", "inspect", "debian", "--json").stdout)


def processor_seconds():
    """Of all processes that this one has waited for: .ci/run does other things at the same time, so
    the wall time depends on them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def built():
    with private(templates=False) as env:
        begin = processor_seconds()
        done = env.sbx("template", "build", timeout=BUILD_SECONDS)
        env.took, env.said = processor_seconds() - begin, done.stdout + done.stderr
        yield env


@pytest.fixture(scope="module")
def second():
    with built() as env:
        yield env


def is_of_one_mirror(a, b):
    return a["released"] == b["released"] and a["packages"] == b["packages"]


def test_two_builds_have_the_same_content(second, env):
    """The first build can be hours old. When the mirror changed since, the second one is compared
    with a third."""
    first, again = manifest(env), manifest(second)
    if not is_of_one_mirror(first, again):
        print(f"the mirror changed between the builds: {first['released']}, {again['released']}")
        with built() as third:
            first = manifest(third)
    assert is_of_one_mirror(first, again), "the mirror changed between two builds, twice"
    assert first["content"] == again["content"]
    for name, file in first["files"].items():
        assert file["hash"] == again["files"][name]["hash"], name
    assert first["id"] == again["id"]


def test_it_is_quiet_without_a_terminal(second):
    assert "\r" not in second.said and "\x1b" not in second.said


def test_it_takes_at_most_five_minutes(second):
    print(f"built in {second.took:.0f} s of processor time")
    assert 5 <= second.took <= 300, "below 5 s the time of the build was not seen"


def test_nothing_but_the_template_is_left(second):
    folder = second.folder / "data" / "sbx" / "templates"
    assert sorted(p.name for p in folder.iterdir()) == [".store", "debian"]
    assert sorted(p.name
                  for p in (folder / ".store").iterdir()) == [".lock",
                                                              (folder / "debian").readlink().name]


def test_the_guest_has_what_it_promises(sandbox):
    for name in ("git", "curl", "sudo", "gcc", "make", "python3", "node", "npm", "jq", "rg", "ssh",
                 "docker", "dockerd",
                 "containerd", "nft", "ip", "ps", "dig"):
        assert not sandbox.fails(f"command -v {name}"), f"{name} is not in the template"
    assert sandbox.guest(". /etc/os-release; echo $VERSION_CODENAME") == "trixie"
    assert not sandbox.fails("docker compose version") and not sandbox.fails(
        "docker buildx version")
