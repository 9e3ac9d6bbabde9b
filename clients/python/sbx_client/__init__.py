# SPDX-License-Identifier: Apache-2.0
"""A client of the API of sbxd (proto/PROTOCOL.api) without dependencies.

    with Client() as sbx:
        sbx.create({"name": "demo", "agent": "shell"}, start=True)
        print(sbx.run("demo", ["uname", "-a"]).stdout)

Each call is one request on its own connection; a Client has no state besides the path of the
socket, so threads can share it. Names of fields are those of PROTOCOL.api.
"""
from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union
from urllib.parse import quote, urlencode

__all__ = ["Client", "Process", "Result", "SbxError", "StreamError"]

Json = dict[str, Any]

_MAX_FRAME = 65536
_SPEC, _STDIN, _STDIN_EOF, _RESIZE, _SIGNAL = 1, 2, 3, 4, 5
_STARTED, _STDOUT, _STDERR, _EXIT, _ERROR, _TAKEN, _DETACHED = 16, 17, 18, 19, 20, 22, 23


class SbxError(Exception):
    """An error of sbxd: `status` of HTTP, `code` and `hint` of PROTOCOL.api."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint


class StreamError(Exception):
    """An exec stream that ended without EXIT, or a program that could not be started. Then
    `status` is 126 or 127."""

    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Result:
    """`status` is the exit status, or 128 + the signal that killed the program."""

    status: int
    stdout: bytes
    stderr: bytes


def _default_socket() -> str:
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    if run.startswith("/"):
        return f"{run}/sbx/sbxd.sock"
    state = os.environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.expanduser("~/.local/state")
    return f"{state}/sbx/run/sbxd.sock"


class _Connection:
    """One request and its response."""

    def __init__(self, path: str, timeout: Optional[float]) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.buf = b""
        try:
            self.sock.connect(path)
        except OSError:
            self.sock.close()
            raise

    def send(self, method: str, path: str, body: Optional[bytes], more: str = "") -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: sbxd\r\n{more}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + (body or b""))

    def more(self) -> bool:
        part = self.sock.recv(65536)
        self.buf += part
        return bool(part)

    def line(self) -> bytes:
        while b"\r\n" not in self.buf:
            if not self.more():
                raise ConnectionError("sbxd closed the connection")
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line

    def take(self, n: int) -> bytes:
        while len(self.buf) < n:
            if not self.more():
                raise ConnectionError("sbxd closed the connection")
        data, self.buf = self.buf[:n], self.buf[n:]
        return data

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self.line().split(b" ", 2)[1])
        fields: dict[str, str] = {}
        while line := self.line():
            name, _, value = line.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        return status, fields

    def chunks(self) -> Iterator[bytes]:
        while n := int(self.line().split(b";")[0], 16):
            yield self.take(n)
            self.take(2)

    def body(self, fields: Mapping[str, str]) -> bytes:
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(self.chunks())
        return self.take(int(fields.get("content-length", "0")))

    def close(self) -> None:
        self.sock.close()


def _fail(status: int, body: bytes) -> SbxError:
    try:
        error = json.loads(body)["error"]
        return SbxError(status, error["code"], error["message"], error.get("hint") or "")
    except (ValueError, KeyError, TypeError):
        return SbxError(status, "", body.decode("utf-8", "replace"))


def _string(text: Union[str, bytes]) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    if len(data) > 65535:
        raise ValueError("a string of an exec has at most 65535 bytes")
    return struct.pack("<H", len(data)) + data


class Process:
    """A program in a sandbox. Iterate over it for (1, bytes) of stdout and (2, bytes) of stderr;
    then `status` is set. Close it, or use it in a `with`: a program that still runs gets SIGHUP."""

    def __init__(self, conn: _Connection) -> None:
        self._conn = conn
        self.pid: Optional[int] = None
        self.status: Optional[int] = None

    def _send(self, kind: int, payload: bytes = b"") -> None:
        self._conn.sock.sendall(struct.pack("<I", kind | len(payload) << 8) + payload)

    def write(self, data: bytes) -> None:
        for at in range(0, len(data), _MAX_FRAME):
            self._send(_STDIN, data[at:at + _MAX_FRAME])

    def close_stdin(self) -> None:
        self._send(_STDIN_EOF)

    def signal(self, number: int) -> None:
        self._send(_SIGNAL, bytes([number]))

    def resize(self, rows: int, columns: int) -> None:
        self._send(_RESIZE, struct.pack("<HH", rows, columns))

    def _frame(self) -> tuple[int, bytes]:
        head: int = struct.unpack("<I", self._conn.take(4))[0]
        if head >> 8 > _MAX_FRAME:
            raise StreamError("a frame is too long")
        return head & 255, self._conn.take(head >> 8)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while self.status is None:
            try:
                kind, payload = self._frame()
            except ConnectionError:
                raise StreamError("the connection or the sandbox was lost") from None
            if kind == _STARTED:
                self.pid = struct.unpack("<I", payload)[0]
            elif kind in (_STDOUT, _STDERR):
                yield kind - _STDOUT + 1, payload
            elif kind == _EXIT:
                self.status = payload[1] + (128 if payload[0] else 0)
            elif kind == _ERROR:
                raise StreamError(payload[1:].decode("utf-8", "replace"), payload[0])
            elif kind == _DETACHED:
                raise StreamError("the sandbox is being suspended: the program continues in it")
            elif kind != _TAKEN:
                raise StreamError(f"unexpected frame {kind}")

    def wait(self) -> Result:
        """Reads all output."""
        out: dict[int, list[bytes]] = {1: [], 2: []}
        for stream, data in self:
            out[stream].append(data)
        assert self.status is not None
        return Result(self.status, b"".join(out[1]), b"".join(out[2]))

    def close(self) -> None:
        self._conn.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """`path`: the socket; default: that of the environment. `timeout`: seconds for a response."""

    def __init__(self, path: Optional[str] = None, timeout: Optional[float] = 330) -> None:
        self.path = path or _default_socket()
        self.timeout = timeout

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        """Any call of PROTOCOL.api. None for a response without a body."""
        conn = _Connection(self.path, self.timeout)
        try:
            conn.send(method, path, None if body is None else json.dumps(body).encode(),
                      "Connection: close\r\n")
            status, fields = conn.head()
            data = conn.body(fields)
        finally:
            conn.close()
        if status >= 400:
            raise _fail(status, data)
        if not data:
            return None
        return json.loads(data) if "json" in fields.get("content-type", "") else data.decode()

    # ---- sandboxes ----

    def version(self) -> Json:
        return self.call("GET", "/v1/version")

    def sandboxes(self) -> list[Json]:
        return self.call("GET", "/v1/sandboxes")["sandboxes"]

    def create(self, spec: Mapping[str, Any], start: bool = False) -> Json:
        """Fields of POST /v1/sandboxes. With `start` it returns when the sandbox runs."""
        return self.call("POST", "/v1/sandboxes", {**spec, "start": True} if start else spec)

    def sandbox(self, ref: str, wait_ms: int = 0) -> Json:
        return self.call("GET", _path(ref, wait=wait_ms or None))

    def update(self, ref: str, changes: Mapping[str, Any]) -> Json:
        return self.call("PATCH", _path(ref), changes)

    def remove(self, ref: str, force: bool = False) -> None:
        self.call("DELETE", _path(ref, force=1 if force else None))

    def start(self, ref: str, wait_ms: int = 300000) -> Json:
        """Returns when the sandbox is no longer starting; 0: at once."""
        started = self.call("POST", _path(ref, "/start"))
        return self.sandbox(ref, wait_ms) if wait_ms else started

    def stop(self, ref: str, timeout_ms: Optional[int] = None, suspend: bool = False) -> Json:
        body: Json = {"suspend": True} if suspend else (
            {} if timeout_ms is None else {"timeout_ms": timeout_ms})
        return self.call("POST", _path(ref, "/stop"), body)

    def stats(self, ref: str) -> Json:
        return self.call("GET", _path(ref, "/stats"))

    def ports(self, ref: str) -> list[Json]:
        return self.call("GET", _path(ref, "/ports"))["ports"]

    def watch(self) -> Iterator[Json]:
        """Snapshots, {"type": "live"}, then changes, without end. Close the iterator to stop."""
        conn = _Connection(self.path, None)
        try:
            conn.send("GET", "/v1/watch", None)
            status, fields = conn.head()
            if status >= 400:
                raise _fail(status, conn.body(fields))
            rest = b""
            for chunk in conn.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                yield from map(json.loads, filter(None, lines))
        finally:
            conn.close()

    # ---- programs and files ----

    def exec(self, ref: str, argv: Sequence[str], *, stdin: bool = False, tty: bool = False,
             user: str = "", cwd: str = "", env: Optional[Mapping[str, str]] = None,
             rows: int = 24, columns: int = 80) -> Process:
        """Starts a program. Without `stdin` it has none."""
        variables = [f"{k}={v}" for k, v in (env or {}).items()]
        spec = struct.pack("<BHH", tty | stdin << 2, rows, columns) + _string(user) + _string(cwd)
        for texts in (list(argv), variables):
            spec += struct.pack("<H", len(texts)) + b"".join(map(_string, texts))
        if len(spec) > _MAX_FRAME:
            raise ValueError("arguments and variables have more than 65536 bytes")
        conn = _Connection(self.path, None)
        try:
            conn.send("POST", _path(ref, "/exec"), None,
                      "Connection: Upgrade\r\nUpgrade: sbx-stream\r\n")
            status, fields = conn.head()
            if status != 101:
                raise _fail(status, conn.body(fields))
            process = Process(conn)
            process._send(_SPEC, spec)
            return process
        except BaseException:
            conn.close()
            raise

    def run(self, ref: str, argv: Sequence[str], input: bytes = b"", **options: Any) -> Result:
        """Runs a program to its end. `input` is sent before the output is read: for large ones
        in both directions use exec."""
        with self.exec(ref, argv, stdin=bool(input), **options) as process:
            if input:
                process.write(input)
                process.close_stdin()
            return process.wait()

    def read_file(self, ref: str, path: str, user: str = "") -> bytes:
        result = self.run(ref, ["cat", "--", path], user=user)
        if result.status:
            raise FileNotFoundError(result.stderr.decode("utf-8", "replace").strip())
        return result.stdout

    def write_file(self, ref: str, path: str, data: bytes, user: str = "") -> None:
        """Replaces the content, or creates the file. Its directory must exist."""
        with self.exec(ref, ["sh", "-c", 'cat >"$1"', "sh", path], stdin=True,
                       user=user) as process:
            process.write(data)
            process.close_stdin()
            result = process.wait()
        if result.status:
            raise OSError(result.stderr.decode("utf-8", "replace").strip())

    # ---- policy ----

    def policy(self) -> Json:
        return self.call("GET", "/v1/policy")

    def set_preset(self, preset: str) -> Json:
        return self.call("PUT", "/v1/policy", {"preset": preset})

    def check(self, target: str, sandbox: Optional[str] = None) -> Json:
        query = {"target": target, **({"sandbox": sandbox} if sandbox else {})}
        return self.call("GET", "/v1/policy/check?" + urlencode(query))

    def add_rule(self, effect: str, resources: Union[str, Sequence[str]], **fields: Any) -> Json:
        return self.call("POST", "/v1/policy/rules",
                         {"effect": effect, "resources": resources, **fields})

    def remove_rule(self, id: str) -> Json:
        return self.call("DELETE", f"/v1/policy/rules/{quote(id, safe='')}")

    def holds(self) -> list[Json]:
        return self.call("GET", "/v1/holds")["holds"]

    def answer(self, id: str, answer: str, digest: str, **fields: Any) -> Json:
        return self.call("POST", f"/v1/holds/{quote(id, safe='')}",
                         {"answer": answer, "digest": digest, **fields})

    def metrics(self) -> str:
        return self.call("GET", "/v1/metrics")


def _path(ref: str, rest: str = "", **query: Any) -> str:
    text = urlencode({k: v for k, v in query.items() if v is not None})
    return f"/v1/sandboxes/{quote(ref, safe='')}{rest}{'?' + text if text else ''}"
