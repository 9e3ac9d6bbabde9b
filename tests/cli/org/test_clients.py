# SPDX-License-Identifier: Apache-2.0
"""The clients in clients/ against the real sbxd; a simulated keeper runs programs on the host."""
import pathlib
import subprocess

import pytest

from conftest import PATIENCE

CLIENTS = pathlib.Path(__file__).resolve().parents[3] / "clients"
RUN = {"python": ["/usr/bin/python3", CLIENTS / "python/scenarios.py"],
       "typescript": ["node", CLIENTS / "typescript/scenarios.js"]}


@pytest.mark.parametrize("language", RUN)
def test_all_scenarios(inst, language):
    files = inst.root / "files"
    files.mkdir()
    p = subprocess.run([*RUN[language], CLIENTS / "scenarios.json",
                        inst.root / "run/sbx/sbxd.sock", files], env=inst.env, text=True,
                       capture_output=True, timeout=240 * PATIENCE, check=False)
    results = p.stdout.splitlines()
    assert p.returncode == 0 and p.stderr == "", (p.stdout, p.stderr)
    assert len(results) == 40 and all(line.startswith("ok ") for line in results), p.stdout


def test_the_python_client_is_typed():
    """Each public function has types; py.typed says so to checkers."""
    assert (CLIENTS / "python/sbx_client/py.typed").exists()
    code = ("import inspect, sbx_client as m\n"
            "for c in (m.Client, m.Process):\n"
            "    for n, f in inspect.getmembers(c, inspect.isfunction):\n"
            "        s = inspect.signature(f)\n"
            "        for p in list(s.parameters.values())[1:]:\n"
            "            assert p.annotation is not p.empty, (c, n, p)\n"
            "        assert n == '__init__' or s.return_annotation is not s.empty, (c, n)\n")
    subprocess.run(["/usr/bin/python3", "-c", code], cwd=CLIENTS / "python", check=True)
