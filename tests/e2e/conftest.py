# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: real VMs, as an ordinary user, under software emulation."""
import fcntl
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import host  # noqa: E402
from installation import IMAGE, Installation, private  # noqa: E402

LOG_BYTES = 4000


def pytest_configure(config):
    if os.geteuid() == 0:
        pytest.exit("the end-to-end tests run as an ordinary user: nothing of sbx needs root", 2)
    host.adopt_orphans()


def pytest_collection_modifyitems(config, items):
    """Long tests are part of this suite only on request: otherwise omitted, not skipped."""
    if not os.environ.get("SBX_LONG"):
        config.hook.pytest_deselected(items=[i for i in items if i.name.startswith("test_long_")])
        items[:] = [i for i in items if not i.name.startswith("test_long_")]


@pytest.fixture(scope="session", autouse=True)
def image():
    """The snapshots that sandboxes of the two usual sizes start from. A stopped sandbox boots
    in any case, and so do the machines of test_kill9.py."""
    with open(f"{IMAGE}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first process makes them, the others wait
        if not IMAGE.exists():
            with private(warm=False) as made:
                made.give_images()
    yield
    if not os.environ.get("SBX_E2E_IMAGE"):  # otherwise the caller removes them
        shutil.rmtree(IMAGE, ignore_errors=True)
        os.unlink(f"{IMAGE}.lock")


@pytest.fixture(scope="session")
def env():
    """The installation that most tests share."""
    with private() as made:
        yield made


@pytest.fixture
def fresh_env():
    """One for tests that break things."""
    with private() as made:
        yield made


@pytest.fixture
def bare_env():
    """One without any template."""
    with private(templates=False) as made:
        yield made


@pytest.fixture(scope="session")
def sandbox(env):
    """A running sandbox with one workspace; `sandbox.workspace` is the directory on the host."""
    folder = env.make_folder("shared")
    box = env.create("shared", folder, flags=["--cold"])  # one that was booted, too
    box.workspace = folder
    return box


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    used = [getattr(v, "env", v) for v in getattr(item, "funcargs", {}).values()]
    for env in {v for v in used if isinstance(v, Installation)}:
        for path in sorted(env.state.rglob("*.log")) if env.state.exists() else []:
            text = path.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
            report.sections.append((str(path), text))
