# SPDX-License-Identifier: Apache-2.0
"""sbx prove with the real sbxd and sbx-probe, for test_prove.py and test_prove_twin.py; keeper and
guest are sandbox_stand_in.py, so that inside is this machine too."""
import json
import os
import pathlib
import subprocess
import time

import pytest

from conftest import SBX

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
PROBE = os.environ["SBX_TEST_PROBE"]
HEAD = "# title: A claim\n# tried: something\n# means: It matters.\n"
TWIN = HEAD + "# on: twin\n"
MARK = 0x31584253


class Prove:
    """An installation whose shipped probes are the test's own."""

    def __init__(self, inst):
        self.inst = inst
        self.share = inst.root / "share"
        self.share.mkdir()
        for part in DATA.iterdir():
            if part.name != "probes":
                (self.share / part.name).symlink_to(part)
        (self.share / "probes").mkdir()
        (self.share / "probes/prelude").symlink_to(DATA / "probes/prelude")
        self.tmp = inst.root / "tmp"
        self.tmp.mkdir()
        self.env = {"SBX_SHARE": str(self.share), "TMPDIR": str(self.tmp)}
        self.tool(pathlib.Path(PROBE))

    def tool(self, path):
        link = self.inst.libexec / "sbx-probe"
        link.unlink(missing_ok=True)
        link.symlink_to(path)

    def hostile(self, text):
        """A driver in the guest that sends arbitrary bytes. It reads the request first."""
        path = self.inst.root / "hostile"
        path.write_text("#!/usr/bin/env python3\nimport os, struct, sys, time\nMARK = %d\n"
                        "def frame(number, status, out, n=None):\n"
                        "    os.write(1, struct.pack('<IIII', MARK, number, status, len(out) if n is None else n) + out)\n"
                        "def ask():\n"
                        "    head = b''\n"
                        "    while len(head) < 12:\n"
                        "        more = os.read(0, 12 - len(head))\n"
                        "        if not more:\n"
                        "            sys.exit(0)\n"
                        "        head += more\n"
                        "    number, _, n = struct.unpack('<III', head)\n"
                        "    while n > 0:\n"
                        "        n -= len(os.read(0, n))\n"
                        "    return number\n%s\n" % (MARK, text))
        path.chmod(0o755)
        self.tool(path)

    def probe(self, ident, text, own=False):
        path = (self.inst.root / "config/sbx/probes" if own else self.share / "probes") / ident
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *args, check=None):
        return self.inst.sbx("prove", *args, check=check, env=self.env)

    def json(self, *args, check=None):
        whole = json.loads(self.run("--json", *args, check=check).stdout)
        return whole, {p["id"]: p for p in whole["probes"]}

    def start(self, *args, **kwargs):
        return subprocess.Popen([SBX, "prove", *args], env={**self.inst.env, **self.env},
                                cwd=self.inst.work, **kwargs)

    def names(self):
        return self.inst.sbx("ls", "-q", check=0).stdout.split()

    def drivers(self):
        """The number of sandboxes that a tool of sbx is querying."""
        found = subprocess.run(["pgrep", "-fc",
                                f"^{self.inst.root}/state/sbx-prove-[0-9a-f]*/sbx-probe drive"],
                               capture_output=True, check=False)
        return int(found.stdout)

    def left(self):
        """Directories that a run must not leave: on the host, in the guest."""
        return [*self.tmp.iterdir(), *(self.inst.root / "state").glob("sbx-prove-*")]


@pytest.fixture
def prove(inst):
    p = Prove(inst)
    inst.create("demo", inst.work)
    yield p
    assert p.left() == []


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)
