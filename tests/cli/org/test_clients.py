# SPDX-License-Identifier: Apache-2.0
"""The clients in clients/ against the real sbxd; a simulated keeper runs programs on the host."""
import json
import pathlib
import re
import socket
import subprocess
import threading

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
    assert p.returncode == 0 and p.stderr == "", p.stderr + "\n".join(
        line for line in results if not line.startswith("ok "))
    written = json.loads((CLIENTS / "scenarios.json").read_text(encoding="utf-8"))["scenarios"]
    assert len(results) == len(written) >= 46, p.stdout
    assert all(line.startswith("ok ") for line in results), p.stdout


# The first event of watch, and its type.
FIRST = {"python": ["/usr/bin/python3", "-c", """
import sys, sbx_client
print(next(sbx_client.Client(sys.argv[1]).watch())["type"])
"""],
         "typescript": ["node", "--input-type=module", "-e", """
import { Client } from "./index.js";
for await (const e of new Client({ path: process.argv[1] }).watch()) {
  console.log(e.type);
  break;
}
"""]}


@pytest.mark.parametrize("language", RUN)
def test_an_event_of_watch_in_two_chunks(tmp_path, language):
    """sbxd writes an event into one chunk, but HTTP permits a proxy to divide it. The rest of the
    event comes after a moment, so that the client reads the first part alone."""
    path = str(tmp_path / "played.sock")

    def play():
        with listener.accept()[0] as conn:
            while not conn.recv(65536).endswith(b"\r\n\r\n"):
                pass
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n8\r\n{\"type\":\r\n")
            released.wait(1)
            conn.sendall(b"8\r\n \"live\"}\r\n1\r\n\n\r\n")
            conn.recv(1)  # until the client closes

    released = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        p = subprocess.run([*FIRST[language], path], cwd=CLIENTS / language, text=True,
                           capture_output=True, timeout=60 * PATIENCE, check=False)
        thread.join(60)
    assert p.stdout == "live\n", (p.stdout, p.stderr)


# What a program with types does, and what the compiler must refuse.
USE = """
import { Client, Event, Result, Sandbox, SbxError, StreamError } from "./index";
const sbx = new Client({ path: "/x", timeoutMs: 1 });
export async function use(): Promise<string> {
  const one: Sandbox = await sbx.create({ name: "one" }, { start: true });
  await sbx.stop(one.id, { suspend: true });
  const ran: Result = await sbx.run("one", ["true"], { input: "x" });
  const event: Event | void = (await sbx.watch().next()).value;
  for await (const [stream, data] of await sbx.exec("one", ["id"])) stream === data.length;
  await sbx.answer("id", "once", "00", { reason: "r" });
  const error = new SbxError("x") ?? new StreamError("x");
  return event?.sandbox?.name ?? `${ran.status} ${error.message}`;
}
"""
REFUSED = ['sbx.answer("id", "twice", "00")', "sbx.remove()", 'sbx.stop("a", { suspended: true })']


def compile_types(folder, text):
    # The types of Node.js are a package of their own; only Buffer of them is used.
    buffer = "declare global { class Buffer extends Uint8Array {} }\n"
    (folder / "use.ts").write_text("export {};\n" + buffer + text)
    (folder / "index.d.ts").write_bytes((CLIENTS / "typescript/index.d.ts").read_bytes())
    return subprocess.run(["tsc", "--noEmit", "--strict", "--target", "es2020", folder / "use.ts"],
                          text=True, capture_output=True, check=False)


def test_the_types_of_the_typescript_client(tmp_path):
    p = compile_types(tmp_path, USE)
    assert p.returncode == 0, p.stdout
    p = compile_types(tmp_path, USE + ";\n".join(REFUSED) + ";\n")
    assert p.stdout.count("error TS") == len(REFUSED), p.stdout


def test_the_types_of_the_typescript_client_are_complete():
    """index.d.ts has each public method of index.js, and no other."""
    code = ("import * as m from './index.js';"
            "for (const c of [m.Client, m.Process]) console.log(c.name, "
            "...Object.getOwnPropertyNames(c.prototype).filter((n) => n != 'constructor'))")
    said = subprocess.run(["node", "--input-type=module", "-e", code], check=True, text=True,
                          cwd=CLIENTS / "typescript", capture_output=True).stdout
    types = (CLIENTS / "typescript/index.d.ts").read_text(encoding="utf-8")
    for line in said.splitlines():
        name, *methods = line.split()
        body = types.split(f"export class {name} ")[1].split("\n}\n")[0]
        declared = set(re.findall(r"^  (\w+)\(", body, re.M)) - {"constructor"}
        assert declared == set(methods) - {"send"}, name  # send is for the class itself


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
