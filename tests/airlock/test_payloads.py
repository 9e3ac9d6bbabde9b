# SPDX-License-Identifier: Apache-2.0
"""Each payload runs on a host without a guard: its program creates the canary.
`tests/e2e/test_share_walls.py` plants the same payloads from a sandbox."""
import os
import pathlib
import sys

import pytest
from payloads import PAYLOADS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
from person import Person  # noqa: E402


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: f"{p.kind}-{p.name}")
def test_a_planted_file_runs(payload, tmp_path):
    root = pathlib.Path(os.path.realpath(tmp_path))
    person = Person(payload, root / "work", root)
    person.run()
    assert not person.canary.exists(), "the command creates the canary without a planted file"
    person.plant()
    said = person.run()
    assert person.canary.exists(), said
