"""Fixtures of the end-to-end tests: real VMs, as an ordinary user, under software emulation."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import host  # noqa: E402
from installation import Installation, private  # noqa: E402

LOG_BYTES = 4000


def pytest_configure(config):
    if os.geteuid() == 0:
        pytest.exit("the end-to-end tests run as an ordinary user: nothing of sbx needs root", 2)
    host.adopt_orphans()


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
    """A running sandbox with one workspace; `sandbox.workspace` is the folder on the host."""
    folder = env.make_folder("shared")
    box = env.create("shared", folder)
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
