# SPDX-License-Identifier: Apache-2.0
"""The form of a probe (data/probes/README) for the lint and the tests; src/prove has its own
parser."""
import dataclasses
import re

GROUPS = ("files", "airlock", "kernel", "network", "credentials", "authority", "docker", "host",
          "recovery")
KEYS = ("title", "tried", "means", "quick", "on", "seconds", "again")
PARTS = ("before", "inside", "outside")
MOST_SECONDS = 180
MOST_BYTES = 32768  # of a file, PROBE_MAX_FILE


@dataclasses.dataclass
class Probe:
    id: str
    header: dict = dataclasses.field(default_factory=dict)
    parts: dict = dataclasses.field(default_factory=dict)   # name -> script
    # name -> first line of the script in the file
    begins: dict = dataclasses.field(default_factory=dict)
    wrong: list = dataclasses.field(default_factory=list)   # (line, error)

    @property
    def is_on_twin(self):
        return self.header.get("on") == "twin"

    @property
    def is_quick(self):
        return self.header.get("quick") == "yes"

    @property
    def again(self):
        return self.header.get("again", "").split()


def read(probe_id, text):
    """Parses a probe; errors of its form are in `wrong`."""
    probe = Probe(probe_id)
    if not re.fullmatch(rf"(?:{'|'.join(GROUPS)})/[a-z0-9][a-z0-9-]*", probe_id):
        probe.wrong.append((1,
                            f"{probe_id} is no id: GROUP/NAME, the group one of {', '.join(GROUPS)}"))
    lines = text.split("\n")
    if lines.pop() != "":
        probe.wrong.append((len(lines) + 1, "the last line does not end"))
    at = _read_header(probe, lines)
    _read_parts(probe, lines, at)
    _check(probe)
    return probe


def _read_header(probe, lines):
    key = None
    for at, line in enumerate(lines):
        pair = re.fullmatch(r"# ([a-z]+): (\S.*)", line)
        if pair:
            key = pair[1]
            if key not in KEYS or key in probe.header:
                probe.wrong.append((at + 1,
                                    f"`{key}` is {'there twice' if key in probe.header else 'no key of a header'}"))
            probe.header[key] = pair[2].strip()
        elif line.startswith("#   ") and key:
            probe.header[key] += " " + line[4:].strip()
        else:
            return at
    return len(lines)


def _read_parts(probe, lines, at):
    part = None
    for number, line in enumerate(lines[at:], at + 1):
        begin = re.fullmatch(r"#: (.*)", line)
        if begin:
            part = begin[1]
            if part not in PARTS or part in probe.parts:
                probe.wrong.append((number,
                                    f"`#: {part}` is {'there twice' if part in probe.parts else 'no part'}"))
            probe.parts[part], probe.begins[part] = "", number + 1
        elif part:
            probe.parts[part] += line + "\n"
        else:
            probe.wrong.append((number, "between header and first part there is something else"))
            part = ""
            probe.parts[part] = ""
    probe.parts.pop("", None)
    if list(probe.parts) != [p for p in PARTS if p in probe.parts]:
        probe.wrong.append((1, f"the parts are not in the order {', '.join(PARTS)}"))


def _check(probe):
    header = probe.header

    def wrong(what):
        probe.wrong.append((1, what))

    for key in ("title", "tried", "means"):
        if key not in header:
            wrong(f"no `{key}`")
    if header.get("title", "").endswith("."):
        wrong("`title` is a claim without a full stop")
    if header.get("quick", "yes") not in ("yes", "no"):
        wrong("`quick` is yes or no")
    if header.get("on", "twin") not in ("twin", "sandbox"):
        wrong("`on` is twin or sandbox")
    if probe.is_quick and probe.is_on_twin:
        wrong("--quick has no twin")
    if not re.fullmatch(r"[1-9][0-9]{0,2}",
                        header.get("seconds",
                                   "1")) or int(header.get("seconds", "1")) > MOST_SECONDS:
        wrong(f"`seconds` is 1 to {MOST_SECONDS}")
    if "again" in header and not (probe.id.startswith("recovery/") and probe.is_on_twin):
        wrong("`again` is for recovery, on the twin")
    if not any(script.strip() for script in probe.parts.values()):
        wrong("no part")
    for part, script in probe.parts.items():
        if re.search(r"\$\{?(RO|HIDDEN)\b", script) and not probe.is_on_twin:
            wrong(f"`{part}` needs $RO or $HIDDEN, which are on the twin only")
        if re.search(r"(?m)^\s*give ", script) and part != "before":
            wrong(f"`{part}` calls give, which is for `before`")
