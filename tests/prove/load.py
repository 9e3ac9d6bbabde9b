# SPDX-License-Identifier: Apache-2.0
"""A busy sandbox that is proved: requests, execs, a docker build. None may fail, and no verdict may
be false.

tests/long/prove-load has the large counts, tests/e2e/test_prove.py small ones.
"""
import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import sys
import threading
import time

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TREE / "tests" / "rigs"))
import netlab  # noqa: E402
from test_docker import busybox_image  # noqa: E402

NAME = "allowed.test"
WORKERS = 2     # concurrent execs
MOST = 1800     # timeout of each step
# In the guest: half of the requests through the proxy, half direct, 50 per connection; at least N,
# and until the file `stop` exists.
CLIENT = """
import http.client, json, os, sys, time
name, least, body = sys.argv[1], int(sys.argv[2]), sys.argv[3]
done, wrong, slowest, turn = 0, [], 0.0, 0
while (done < least or not os.path.exists("stop")) and len(wrong) < 20:
    turn += 1
    straight = turn % 2
    try:
        to = (name, 80) if straight else ("gateway.docker.internal", 3128)
        c = http.client.HTTPConnection(*to, timeout=60)
        for _ in range(50):
            begin = time.monotonic()
            c.request("GET", "/" if straight else f"http://{name}/", headers={"Host": name})
            r = c.getresponse()
            text = r.read().decode()
            slowest = max(slowest, time.monotonic() - begin)
            if r.status != 200 or body not in text:
                wrong.append(f"{r.status} {text[:200]}")
                break
            done += 1
        c.close()
    except Exception as e:
        wrong.append(f"after {done}, {'straight' if straight else 'by the proxy'}: {e!r}")
print(json.dumps({"requests": done, "wrong": wrong, "slowest": round(slowest, 2)}))
"""
BUILD = (
    "cd {folder} && docker load -q -i image.tar >/dev/null && mkdir -p build && cd build && head -c 1000000 /dev/urandom >data && "
         "printf 'FROM tiny:1\\nCOPY data /data\\nRUN ls -l /data >/list\\nRUN cat /data /data >/two\\n' >Dockerfile && n=0 && "
         "while [ $n = 0 ] || [ ! -e ../stop ]; do docker build --no-cache -q -t built:$n . >/dev/null || exit 1; n=$((n+1)); done; echo $n")


@dataclasses.dataclass
class Work:
    """The work done meanwhile, and its failures."""
    requests: int = 0
    slowest: float = 0
    execs: int = 0
    slowest_exec: float = 0
    builds: int = 0
    seconds: float = 0
    wrong: list = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def laboratory():
    """Returns the server, and the settings and rules that a world needs for it."""
    with netlab.lab() as made:
        yield made, [f"{NAME}:80=127.0.0.1:{made.servers['http'].port}"]


def run_execs(world, least, stop, work):
    lock, left = threading.Lock(), [least]

    def worker():
        while True:
            with lock:
                if left[0] <= 0 and stop.is_set() or len(work.wrong) > 20:
                    return
                left[0] -= 1
                n = work.execs = work.execs + 1
            begin = time.monotonic()
            done = world.env.sbx("exec", world.box.name, "echo", f"exec {n}", check=False,
                                 timeout=300)
            with lock:
                work.slowest_exec = max(work.slowest_exec, time.monotonic() - begin)
                if done.returncode != 0 or done.stdout != f"exec {n}\n":
                    work.wrong.append(f"exec {n}: {done.returncode} {done.stdout} {done.stderr}")

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for future in [pool.submit(worker) for _ in range(WORKERS)]:
            future.result()


def run_requests(world, least, work):
    folder = world.box.workspace
    (folder / "client.py").write_text(CLIENT)
    done = world.box.exec("sh", "-c",
                          f"cd '{folder}' && exec python3 client.py {NAME} {least} '{netlab.BODY}'",
                          timeout=MOST, check=False)
    try:
        said = json.loads(done.stdout)
        work.requests, work.slowest = said["requests"], said["slowest"]
        work.wrong += said["wrong"]
    except ValueError:
        work.wrong.append(f"the client ended with {done.returncode}: {done.stdout} {done.stderr}")


def run_builds(world, work):
    busybox_image(world.box.workspace / "image.tar", "tiny:1")
    done = world.box.exec("sh", "-c", BUILD.format(folder=world.box.workspace), timeout=MOST,
                          check=False)
    try:
        work.builds = int(done.stdout.split()[-1])
    except (ValueError, IndexError):
        work.wrong.append(
            f"docker build ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")


def work_while(world, prove, requests, execs, docker=True):
    """Returns (result of prove(), Work): the work begins before and continues until the end."""
    stop, work, begin = threading.Event(), Work(), time.monotonic()
    jobs = [(run_requests, world, requests, work),
            (run_execs, world, execs, stop, work)] + ([(run_builds, world, work)] if docker else [])
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(*job) for job in jobs]
        try:
            time.sleep(3)
            got = prove()
        finally:
            stop.set()
            (world.box.workspace / "stop").touch()
        for future in futures:
            future.result()
    for name in ("stop", "client.py", "image.tar"):
        (world.box.workspace / name).unlink(missing_ok=True)
    work.seconds = time.monotonic() - begin
    return got, work
