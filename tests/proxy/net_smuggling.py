#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""net_smuggling.py [--n 2000] [--seed 1] [--servers] - smuggling end to end: guest, edge, egress,
origin.

The scripts of smuggling.wire and N mutations of them go into a caught connection to example.test.
canon_pipe prints the bytes that may be forwarded. Without --servers the upstream is a recorder in
this program, which must receive exactly those bytes, one request per connection. With --servers the
upstreams are nginx, haproxy, apache, node and squid, and each must have read exactly those
requests. For every other request edge must respond with a refusal or close the connection. Prints
one line of JSON.
"""
import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import pathlib
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402
import smuggling  # noqa: E402

PATH = str(rig.ROOT / "tests/long/smuggling")
SPEC = importlib.util.spec_from_loader("long_smuggling",
                                       importlib.machinery.SourceFileLoader("long_smuggling", PATH))
long_smuggling = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(long_smuggling)
SILENCE = 10


def body_end(head, data):
    """The end of the body in data; None while it is incomplete."""
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        n = int(fields[b"content-length"])
        return n if len(data) >= n else None
    if fields.get(b"transfer-encoding") != b"chunked":
        return 0
    at = 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        n = int(data[at:end].split(b";")[0], 16)
        at = end + 2 + (n + 2 if n else 0)
        if n == 0:
            stop = data.find(b"\r\n\r\n", end)
            return stop + 4 if stop >= 0 else None


class Recorder:
    """An upstream that keeps the bytes of each connection."""

    def __init__(self):
        self.lock, self.whole, self.parts, self.extra = threading.Lock(), [], [], []
        self.listener = rig.Listener(0, self.talk, "127.0.0.1")

    def talk(self, conn):
        data = b""
        while True:
            head, mark, rest = data.partition(b"\r\n\r\n")
            end = body_end(head, rest) if mark else None
            if end is not None:
                break
            piece = conn.recv(65536)
            if not piece:
                with self.lock:
                    self.parts.append(data)
                return
            data += piece
        n = len(head) + 4 + end
        with self.lock:
            self.whole.append(data[:n])
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                     % (0 if head.startswith(b"HEAD ") else 2) +
                     (b"" if head.startswith(b"HEAD ") else b"ok"))
        conn.settimeout(0.05 if data[n:] else SILENCE)
        more = data[n:]
        try:
            more += conn.recv(65536)
        except OSError:
            pass
        if more:
            with self.lock:
                self.extra.append((data[:n], more))

    def take(self):
        with self.lock:
            found = self.whole, self.parts, self.extra
            self.whole, self.parts, self.extra = [], [], []
        return found


def caught(box):
    """The address that example.test has for the guest."""
    with box.dns() as dns:
        return dns.lookup("example.test")[0]


def statuses(data, methods):
    """Status codes of the answers in data."""
    left, right = socket.socketpair()
    with left, right:
        threading.Thread(target=lambda: (left.sendall(data), left.shutdown(socket.SHUT_WR)),
                         daemon=True).start()
        right.settimeout(SILENCE)
        answers, found = long_smuggling.Answers(right), []
        while len(found) < 60:
            got = answers.next(methods[len(found)] if len(found) < len(methods) else "GET")
            if not got:
                return found
            found.append(got)
    return found


def judge_recorded(expected, recorded, answers, back):
    """"" or what is wrong: expected are the whole requests that may be forwarded."""
    whole, _, extra = recorded
    good = sum(1 for status, _ in answers if status == 200)
    if extra:
        return f"the origin got more than one request: {extra}"
    if whole != expected[:len(whole)]:
        return f"the origin got {whole}, not {expected}"
    if good != len(whole):
        return f"{good} answers for {len(whole)} requests"
    if len(whole) < len(expected) and good == len(
            answers) and b"connection: close" not in back.lower():
        return f"the origin got {len(whole)} of {len(expected)} requests and the guest was not told"
    return ""


def run_recorded(n, seed):
    recorder, pipe = Recorder(), smuggling.Pipe(str(rig.build_folder() / "tests/proxy/canon_pipe"))
    totals, bad = {"inputs": 0, "forwarded": 0, "refused": 0, "silent": 0, "cut": 0}, []
    with rig.Rig("allow network example.test",
                 {"example.test:80": f"127.0.0.1:{recorder.listener.port}"}) as box:
        address, started = caught(box), time.time()
        for name, data in long_smuggling.cases(n, seed):
            forwarded = pipe.ask(data)[3]
            expected = [r[1] for r in long_smuggling.split(forwarded)]
            with box.tcp(address, 80) as stream:
                stream.send(data)
                stream.half_close()
                back = stream.rest()
            methods = [r[0][0] for r in long_smuggling.split(forwarded)]
            answers = statuses(back, methods)
            recorded = recorder.take()
            wrong = judge_recorded(expected, recorded, answers, back)
            totals["inputs"] += 1
            totals["forwarded"] += bool(recorded[0])
            totals["refused"] += any(s >= 400 for s, _ in answers)
            totals["silent"] += not answers
            # heads whose body was refused, perhaps of the case before
            totals["cut"] += len(recorded[1])
            if wrong:
                bad.append((name, repr(data), wrong))
        seconds, stats = time.time() - started, box.stats()
    pipe.close()
    ok = not bad and totals["forwarded"] > 0 and totals["refused"] > 0 and stats["edge"][
        "starts"] == 1 and stats["egress"]["starts"] == 1
    return {"id": "smuggling-recorded", "ok": ok, **totals, "bad": len(bad), "first": bad[:3],
            "per_second": round(totals["inputs"] / seconds)}


def talk(box, address, data, methods):
    found = []
    with box.tcp(address, 80) as stream:
        stream.sock.settimeout(SILENCE)
        stream.send(data)
        stream.half_close()
        answers = long_smuggling.Answers(stream.sock)
        try:
            while len(found) < 60:
                got = answers.next(methods[len(found)] if len(found) < len(methods) else "GET")
                if not got:
                    return found, "end"
                found.append(got)
        except socket.timeout:
            return found, "silence"
        except (OSError, ValueError, IndexError):
            return found, "reset"
    return found, "end"


def judge_served(expected, found, how):
    """As long_smuggling.judge, but the last answer may be edge's refusal of what follows."""
    if how == "silence":
        return f"silence after {len(found)} of {len(expected)} requests"
    if found and found[-1][1] is None and found[-1][0] >= 400 and len(found) <= len(expected) + 1:
        verdict = long_smuggling.judge(expected[:len(found) - 1], found[:-1], how)
        return "refused" if verdict == "same" else verdict
    if not found:
        return "refused by closing"
    return long_smuggling.judge(expected[:len(found)], found, how)


class Served:
    """Five servers in front of one recorder, each with its own sandbox."""

    def __init__(self, folder):
        self.servers = long_smuggling.Servers(pathlib.Path(folder), [])
        self.boxes = {s: rig.Rig("allow network example.test",
                                 {"example.test:80": f"127.0.0.1:{p}"})
                      for s, p in self.servers.ports.items()}
        self.caught = {s: caught(b) for s, b in self.boxes.items()}
        self.per, self.bad, self.seen = {s: {} for s in self.boxes}, [], 0
        self.before = self.total()  # squid probes its peer when it starts

    def send(self, pool, names, name, data, expected):
        methods = [e[0] for e in expected]
        jobs = {s: pool.submit(talk, self.boxes[s], self.caught[s], data, methods) for s in names}
        for server, job in jobs.items():
            found, how = job.result()
            self.seen += sum(1 for _, seen in found if seen)
            verdict = judge_served(expected, found, how)
            good = verdict == "same" or verdict.startswith("refused")
            key = verdict.split(" ")[0] if good else "different"
            self.per[server][key] = self.per[server].get(key, 0) + 1
            if not good:
                self.bad.append((server, name, verdict, repr(data)))

    def total(self):
        """Requests that the recorder has read, for any client."""
        with socket.create_connection(("127.0.0.1", self.servers.origin)) as sock:
            sock.sendall(long_smuggling.OURS)
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(65536)
        return int(head.lower().split(b"x-total: ")[1].split(b"\r\n")[0])

    def stop(self):
        starts = {b.stats()["edge"]["starts"] + b.stats()["egress"]["starts"]
                  for b in self.boxes.values()}
        for box in self.boxes.values():
            box.close()
        self.servers.stop()
        return starts == {2}


def run_served(n, seed, limit):
    totals = {"inputs": 0, "forwarded": 0}
    with tempfile.TemporaryDirectory(prefix="sbx-smuggling.") as folder:
        served, pipe, started = Served(folder), smuggling.Pipe(
            str(rig.build_folder() / "tests/proxy/canon_pipe")), time.time()
        names = list(served.boxes)
        try:
            with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
                for name, data in long_smuggling.cases(n, seed):
                    if time.time() - started > limit or len(served.bad) > 20:
                        break
                    expected = [r[0] for r in long_smuggling.split(pipe.ask(data)[3])]
                    # What is refused needs no server: one sandbox after the other gets it.
                    served.send(pool, names if expected else [names[totals["inputs"] % len(names)]],
                                name, data, expected)
                    totals["inputs"] += 1
                    totals["forwarded"] += bool(expected)
            hidden = served.total() - 1 - served.before - served.seen
        finally:
            steady = served.stop()
            pipe.close()
    seconds = time.time() - started
    ok = not served.bad and hidden == 0 and totals["forwarded"] > 0 and steady and len(names) == 5
    return {"id": "smuggling-served", "ok": ok, "seed": seed, **totals, "hidden": hidden,
            "servers": served.per, "bad": len(served.bad),
            "first": served.bad[:3], "steady": steady,
            "per_second": round(totals["inputs"] / seconds), "seconds": round(seconds)}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--n", type=int, default=2000)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--servers", action="store_true")
    args.add_argument("--limit", type=int, default=600, help="seconds, with --servers")
    args = args.parse_args()
    result = run_served(args.n, args.seed,
                        args.limit) if args.servers else run_recorded(args.n, args.seed)
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
