#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scenarios.py FILE SOCKET DIRECTORY - runs the scenarios of FILE (clients/README.md)."""
import itertools
import json
import re
import sys
import traceback

from sbx_client import Client, SbxError, StreamError

NAMES = {"setPreset": "set_preset", "removeRule": "remove_rule"}


class Runner:
    def __init__(self, socket, directory):
        self.client, self.directory, self.kept = Client(socket), directory, ""

    def value(self, v):
        if isinstance(v, dict) and "repeat" in v:
            return v["repeat"][0] * v["repeat"][1]
        if isinstance(v, str):
            return v.replace("$TMP", self.directory).replace("$KEPT", self.kept)
        if isinstance(v, list):
            return [self.value(x) for x in v]
        return {k: self.value(x) for k, x in v.items()} if isinstance(v, dict) else v

    def is_like(self, got, want):
        if isinstance(want, dict):
            return isinstance(got, dict) and all(
                k in got and self.is_like(got[k], x) for k, x in want.items())
        if isinstance(want, list):
            return isinstance(got, list) and len(got) == len(want) and all(
                map(self.is_like, got, want))
        return got == want

    def expect(self, good, got):
        if not good:
            raise AssertionError(f"got {str(got)[:300]}")

    def call(self, step):
        op, args, options = step["do"], self.value(step["args"]), dict(step.get("options", {}))
        if op == "create":
            return self.client.create(*args, start=step.get("start", False))
        if op == "remove":
            return self.client.remove(*args, force=step.get("force", False))
        if op == "stop":
            return self.client.stop(*args, timeout_ms=step.get("timeout"),
                                    suspend=step.get("suspend", False))
        if op == "addRule":
            return self.client.add_rule(*args, **step.get("fields", {}))
        if op == "run":
            r = self.client.run(*args, input=self.value(step.get("input", "")).encode(), **options)
            return {"status": r.status, "stdout": r.stdout.decode(), "stderr": r.stderr.decode()}
        if op == "readFile":
            return self.client.read_file(*args).decode()
        if op == "writeFile":
            return self.client.write_file(args[0], args[1], args[2].encode())
        return getattr(self.client, NAMES.get(op, op))(*args)

    def converse(self, step):
        with self.client.exec(*self.value(step["args"]), **step.get("options", {})) as process:
            output, seen = iter(process), {1: b"", 2: b""}
            for what, *args in step["script"]:
                if what == "write":
                    process.write(args[0].encode())
                elif what == "closeStdin":
                    process.close_stdin()
                elif what in ("signal", "resize"):
                    getattr(process, what)(*args)
                elif what == "read":
                    while seen[args[0]] != args[1].encode():
                        stream, data = next(output)
                        seen[stream] += data
                    seen[args[0]] = b""
                else:
                    self.expect(list(output) == [] and process.status == args[0], process.status)

    def watch(self, step):
        events = self.client.watch()
        before = list(itertools.takewhile(lambda e: e["type"] != "live", events))
        for want in step.get("before", []):
            self.expect(any(self.is_like(e, want) for e in before), before)
        for inner in step.get("then", []):
            self.step(inner)
        for want in step.get("after", []):
            next(e for e in events if self.is_like(e, want))
        events.close()

    def failure(self, step, error):
        if "error" in step:
            want = step["error"]
            return isinstance(error, SbxError) and all(getattr(error, k) == v
                                                       for k, v in want.items())
        if "streamError" in step:
            return isinstance(error, StreamError) and error.status == step["streamError"]["status"]
        return "fails" in step and step["fails"] in str(error)

    def step(self, step):
        if step["do"] == "exec":
            return self.converse(step)
        if step["do"] == "watch":
            return self.watch(step)
        try:
            got = self.call(step)
        except (SbxError, StreamError, OSError) as e:
            if not self.failure(step, e):
                raise
            return None
        self.expect(not {"error", "streamError", "fails"} & set(step), got)
        if "is" in step:
            self.expect(self.is_like(got, self.value(step["is"])), got)
        if "has" in step:
            self.expect(any(self.is_like(x, step["has"]) for x in got), got)
        if "matches" in step:
            self.expect(re.search(step["matches"], got), got)
        if "keep" in step:
            for key in step["keep"].split("."):
                got = got[int(key) if isinstance(got, list) else key]
            self.kept = got
        return None


def main():
    runner, failed = Runner(*sys.argv[2:4]), 0
    with open(sys.argv[1], encoding="utf-8") as f:
        scenarios = json.load(f)["scenarios"]
    for scenario in scenarios:
        try:
            for step in scenario["steps"]:
                runner.step(step)
            print("ok", scenario["name"], flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print("FAILED", scenario["name"], traceback.format_exc(), flush=True)
            for left in runner.client.sandboxes():
                runner.client.remove(left["id"], force=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
