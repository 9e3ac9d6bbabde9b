"""Fixtures of the end-to-end tests: real VMs, as an ordinary user, under software emulation."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from installation import Installation  # noqa: E402

LOG_BYTES = 4000


def pytest_configure(config):
    if os.geteuid() == 0:
        pytest.exit("the end-to-end tests run as an ordinary user: nothing of sbx needs root", 2)


def installation(**kwargs):
    env = Installation(**kwargs)
    try:
        yield env
    finally:
        left = env.close()
    assert not left, f"did not end when the installation was stopped: {left}"


@pytest.fixture(scope="session")
def env():
    """The installation that most tests share."""
    yield from installation()


@pytest.fixture
def fresh_env():
    """One for tests that break things."""
    yield from installation()


@pytest.fixture
def bare_env():
    """One without any template."""
    yield from installation(templates=False)


@pytest.fixture(scope="session")
def sandbox(env):
    """A running sandbox with one workspace; `sandbox.workspace` is the folder on the host."""
    folder = env.make_folder("shared")
    box = env.create("shared", folder)
    box.workspace = folder
    return box


@pytest.fixture(autouse=True)
def remember_logs(request):
    """For pytest_runtest_makereport: whose logs belong to a failure."""
    request.node.installations = [v for k, v in request.node.funcargs.items() if k.endswith("env")]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    for env in getattr(item, "installations", []):
        for path in sorted(env.state.rglob("*.log")) if env.state.exists() else []:
            text = path.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
            report.sections.append((str(path), text))
