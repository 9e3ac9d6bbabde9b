# SPDX-License-Identifier: Apache-2.0
"""The parts of `sbx prove` that run on the host, in a workspace where a guest has put links in the
place of every name."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/probes"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "prove"))
import probes  # noqa: E402

PRELUDE = (DATA / "prelude/outside").read_text() + (DATA / "prelude/outside.files").read_text()
BEFORE = {p.name: probes.read(f"files/{p.name}", p.read_text()).parts.get("before")
          for p in sorted((DATA / "files").iterdir())}
# What the parts above call their files in the workspace.
NAMES = ["TAG", "TAG-own", "TAG-file", "TAG-folder", "TAG-by-host", "TAG-good", "TAG.link", "raw",
         "probe.pipe"]


class Place:
    """The directories of a scratch sandbox, and a directory of the user next to them."""

    def __init__(self, top):
        self.ws, self.ro, self.dir, self.victim = (top / n
                                                   for n in ("run/work", "run/readonly",
                                                             "run/of-TAG", "victim"))
        for d in (self.ws, self.ro, self.dir, self.victim):
            d.mkdir(parents=True)
        for name in ("seen", "hidden.env", "file", "link"):
            (self.victim / name).write_text("precious\n")

    def host(self, script):
        """Runs a part as sbx prove does; gives its status and what it printed."""
        env = {"PATH": "/usr/bin:/bin", "WORKSPACE": str(self.ws), "RO": str(self.ro),
               "DIR": str(self.dir), "TAG": "TAG",
               "HIDDEN": f"{self.ws}/hidden.env", "TOOL": os.environ["SBX_TEST_PROBE"],
               "SBX": "/bin/false", "HOME": str(self.victim)}
        with open(self.dir / "said", "w+", encoding="utf-8") as out:
            with subprocess.Popen(["/bin/sh", "-c", PRELUDE + script, "sh"], env=env, stdout=out,
                                  stderr=out, start_new_session=True) as p:
                try:
                    status = p.wait(20)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(p.pid, signal.SIGKILL)  # what it left in the background
            out.seek(0)
            return status, out.read()

    def state(self):
        return {p.name: (p.lstat().st_mode, p.read_text()) for p in self.victim.iterdir()}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize("target", ["", "file"])
@pytest.mark.parametrize("probe",
                         [n for n,
                          part in BEFORE.items() if part
                          and re.search(r"plant|put|WORKSPACE", part)])
def test_nothing_is_written_through_a_link(place, probe, target):
    for name in NAMES:
        (place.ws / name).symlink_to(place.victim / target)
    before = place.state()
    place.host(BEFORE[probe])
    assert place.state() == before


def test_a_file_that_is_a_link_is_replaced(place):
    (place.ws / "raw").mkdir()
    for name in ("seen", "hidden.env"):
        (place.ws / "raw" / name).symlink_to(place.victim / "file")
    before = place.state()
    status, said = place.host('plant_raw "$WORKSPACE/raw/seen"')
    assert status == 0, said
    assert (place.ws
            / "raw/seen").read_text() == "planted\n" and not (place.ws / "raw/seen").is_symlink()
    assert place.state() == before


def test_a_folder_that_became_a_link_is_not_entered_to_remove_files(place):
    assert place.host('plant "$WORKSPACE/$TAG/seen"')[0] == 0
    assert (place.ws / "TAG/seen").read_text() == "TAG\n"
    (place.ws / "TAG").rename(place.ws / "moved")
    (place.ws / "TAG").symlink_to(place.victim)
    before = place.state()
    assert place.host('planted "$WORKSPACE/$TAG/seen"')[0] == 1
    assert place.state() == before and not (place.ws / "TAG").is_symlink()


def test_what_is_no_pipe_is_not_written_to(place):
    part = probes.read("files/host-pipe", (DATA / "files/host-pipe").read_text()).parts["outside"]
    before = place.state()
    for make in (lambda p: p.symlink_to(place.victim / "file"),
                 lambda p: p.write_text("its own\n")):
        pipe = place.ws / "probe.pipe"
        make(pipe)
        assert place.host(part) == (1, "no process read from it: the probe is blind\n")
        assert place.state() == before
        pipe.unlink()


def test_a_pipe_is_read_and_written(place):
    status, said = place.host(
        '"$TOOL" plant pipe "$WORKSPACE/p" && "$TOOL" plant pipe "$WORKSPACE/p"\n"$TOOL" pipe "$WORKSPACE/p" 10 >"$DIR/got" &\n'
                              'until said=$("$TOOL" change write-pipe "$WORKSPACE/p"); do sleep 0.1; done; echo "$said"; wait $!; cat "$DIR/got"')
    assert (status, said) == (0, "planted\nplanted\nwrite-pipe went through\nchanged\n")
