# SPDX-License-Identifier: Apache-2.0
"""GET /v1/metrics of the real sbxd, judged by Debian's promtool and scraped by Debian's prometheus,
and as a textfile by Debian's node_exporter."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request

from test_api import MEASURED, UnixConnection, d, quickest, wait_for  # noqa: F401

SERIES = re.compile(r'([a-z_]+)(?:\{([a-z]+)="([^"\\\n]*)"\})? ([0-9]+(?:\.[0-9]+)?)\n')
TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FIXED = 60  # series that do not belong to one sandbox
EACH, MOST = 7, 256  # series of one running sandbox, and sandboxes that have their own
DEBIAN = "prometheus, prometheus-node-exporter, socat"


def program(name):
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert path, f"{name} is missing: the Debian packages {DEBIAN}"
    return path


def fetch(d):
    c = UnixConnection(d.sock, 20)
    c.request("GET", "/v1/metrics")
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    assert r.status == 200 and r.getheader("Content-Type") == TYPE, (r.status, r.getheaders())
    return text


def parse(text):
    """Name, label and value; each line is of the form that both formats have, each series once,
    and the series of a family follow their HELP and TYPE."""
    assert text.endswith("# EOF\n")
    found, kind, family = {}, {}, None
    for line in text[:-len("# EOF\n")].splitlines(keepends=True):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in kind and len(line.split(" ", 3)[3]) > 10, line
            kind[family] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind[family] = line.split()
            assert name == family and kind[family] in ("gauge", "summary"), line
        else:
            m = SERIES.fullmatch(line)
            assert m, f"not a series: {line!r}"
            name, label, value, number = m.groups()
            ends = ("_sum", "_count") if kind[family] == "summary" else ("",)
            assert name in [family + end for end in ends], line
            key = (name, label, value)
            assert key not in found, f"twice: {line}"
            found[key] = float(number)
    return found


def lint(text):
    r = subprocess.run([program("promtool"), "check", "metrics"], input=text, text=True,
                       capture_output=True, timeout=60, check=False)
    assert r.returncode == 0 and not r.stdout + r.stderr, r.stdout + r.stderr


def total(found, name):
    return sum(v for (n, _, _), v in found.items() if n == name)


def test_counts_what_the_api_shows(d):
    (d.state / "policy").write_text("policy 1\nallow network a.example\nend\n")
    run = d.run("running-one")
    d.run("stopped-by-user")
    d.call("POST", "/v1/sandboxes/stopped-by-user/stop", {"timeout_ms": 0})
    d.create("never-started")
    assert d.call("GET", "/v1/sandboxes/none")[0] == 404
    text = fetch(d)
    lint(text)
    found = parse(text)
    assert {s: found["sbx_sandboxes", "status", s] for s in ("running", "stopped", "paused")} == {
        "running": 1, "stopped": 2, "paused": 0}
    assert found["sbx_policy_rules", None, None] == 1
    assert found["sbx_policy_denies_all", None, None] == 0
    assert total(found, "sbx_sandbox_start_duration_seconds_count") == 2
    assert found["sbx_sandbox_run_duration_seconds_count", "end", "request"] == 1
    assert found["sbx_api_request_duration_seconds_count", "code", "4xx"] == 1
    assert found["sbx_api_request_duration_seconds_count", "code", "5xx"] == 0
    assert found["sbx_api_request_duration_seconds_sum", "code", "2xx"] > 0
    of_run = {n: v for (n, label, value), v in found.items() if value == run["id"]}
    assert len(of_run) == EACH and of_run["sbx_sandbox_up"] == 1
    assert of_run["sbx_sandbox_memory_bytes"] == run["memory"]
    assert of_run["sbx_sandbox_cpus"] == run["cpus"]
    assert abs(of_run["sbx_sandbox_start_time_seconds"] * 1000 - run["started_at"]) < 1
    assert 0 < found["sbx_state_filesystem_free_bytes", None, None] < \
        found["sbx_state_filesystem_size_bytes", None, None]


def test_end_of_a_run_that_nobody_requested(d):
    pid = d.run("demo")["keeper_pid"]
    os.kill(pid, 9)
    d.wait_status("demo", "stopped")
    found = parse(fetch(d))
    assert found["sbx_sandbox_run_duration_seconds_count", "end", "other"] == 1
    assert found["sbx_sandbox_run_duration_seconds_count", "end", "request"] == 0


def test_no_name_and_no_text_of_others_is_printed(d):
    """Labels are words of sbx, ids, and the version."""
    words = ["Customer-Project.x", "secret-text-of-a-rule", "secret-variable"]
    (d.state / "policy").write_text(
        f"policy 1\nallow network a.example comment={words[1]}\nend\n")
    d.create(words[0], None, env={"A": words[2]})
    d.call("POST", f"/v1/sandboxes/{words[0]}/start")
    ident = d.wait_status(words[0], "running")["id"]
    text = fetch(d)
    assert not [w for w in words if w in text]
    labels = collections.defaultdict(set)
    for (_, label, value) in parse(text):
        if label:
            labels[label].add(value)
    assert set(labels) == {"version", "status", "state", "code", "how", "end", "sandbox"}
    assert labels["sandbox"] == {ident}
    assert all(re.fullmatch(r"[0-9a-z.+~-]{2,40}", v) for vs in labels.values() for v in vs)


def test_without_a_policy_all_is_denied(d):
    assert parse(fetch(d))["sbx_policy_denies_all", None, None] == 1
    (d.state / "policy").write_text("no policy\n")
    assert parse(fetch(d))["sbx_policy_denies_all", None, None] == 1


def test_a_thousand_registered_sandboxes(d):
    c = UnixConnection(d.sock, 20)
    for i in range(1000):
        c.request("POST", "/v1/sandboxes", json.dumps({"name": f"box-{i:04}", "env": {"A": "b"}}))
        r = c.getresponse()
        r.read()
        assert r.status == 201
    c.close()
    found = parse(fetch(d))
    assert found["sbx_sandboxes", "status", "stopped"] == 1000
    assert len(found) <= FIXED
    took = quickest(lambda: fetch(d))
    print(f"metrics of 1000: {took * 1000:.1f} ms")
    assert not MEASURED or took <= 0.05, f"{took * 1000:.0f} ms"
    d.kill()  # and no thousand deletions at the end


def test_series_are_bounded(d):
    for i in range(MOST + 3):
        d.create(f"s{i}")
        assert d.call("POST", f"/v1/sandboxes/s{i}/start")[0] == 202
    wait_for(lambda: parse(fetch(d))["sbx_sandboxes", "status", "running"] == MOST + 3)
    text = fetch(d)
    found = parse(text)
    lint(text)
    assert found["sbx_sandboxes_without_series", None, None] == 3
    assert MOST * EACH < len(found) <= FIXED + MOST * EACH


# -- Debian's programs ----------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(*argv, env=None):
    p = subprocess.Popen([program(argv[0]), *map(str, argv[1:])], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env=env)
    try:
        yield p
    finally:
        p.terminate()
        p.wait(30)


def get(url):
    with urllib.request.urlopen(url, timeout=20) as r:
        return r.read().decode()


def answers(url):
    try:
        return get(url)
    except OSError:
        return None


def test_prometheus_scrapes_the_socket(d):
    """Through socat on the loopback: prometheus cannot connect to a Unix socket."""
    run = d.run("demo")
    bridge, port = free_port(), free_port()
    folder = d.root / "prometheus"
    folder.mkdir()
    (folder / "p.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
        "- {job_name: sbx, metrics_path: /v1/metrics, static_configs: [{targets: "
        f"['127.0.0.1:{bridge}']}}]}}\n")
    url = f"http://127.0.0.1:{port}/api/v1/query?query="
    with running("socat", f"TCP-LISTEN:{bridge},bind=127.0.0.1,fork,reuseaddr",
                 f"UNIX-CONNECT:{d.sock}"), \
         running("prometheus", f"--config.file={folder}/p.yml", f"--storage.tsdb.path={folder}/db",
                 f"--web.listen-address=127.0.0.1:{port}"):
        wait_for(lambda: json.loads(answers(url + "sbx_sandbox_up") or '{"data":{"result":[]}}')
                 ["data"]["result"])
        up = json.loads(get(url + "sbx_sandbox_up"))["data"]["result"]
        assert [(r["metric"]["sandbox"], r["value"][1]) for r in up] == [(run["id"], "1")]
        scraped = json.loads(get(url + "up"))["data"]["result"]
        assert [r["value"][1] for r in scraped] == ["1"]
        count = json.loads(get(url + "sum(sbx_sandboxes)"))["data"]["result"]
        assert count[0]["value"][1] == "1"


def test_textfile_for_node_exporter(d):
    sbx = pathlib.Path(os.environ["SBX_TEST_SBXD"]).parents[1] / "sbx" / "sbx"
    folder, port = d.root / "textfiles", free_port()
    folder.mkdir()
    run = d.run("demo")
    target = folder / "sbx.prom"

    def write(path):
        return subprocess.run([sbx, "metrics", "--textfile", path], env=d.env, text=True,
                              capture_output=True, timeout=60, check=False)

    assert write(target).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o644 and os.listdir(folder) == ["sbx.prom"]
    lint(target.read_text())
    parse(target.read_text())
    refused = write(folder / "sbx.txt")
    assert refused.returncode == 1 and "invalid --textfile" in refused.stderr
    assert os.listdir(folder) == ["sbx.prom"]
    with running("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                 f"--collector.textfile.directory={folder}",
                 f"--web.listen-address=127.0.0.1:{port}"):
        url = f"http://127.0.0.1:{port}/metrics"
        wait_for(lambda: answers(url))
        text = get(url)
        assert f'sbx_sandbox_up{{sandbox="{run["id"]}"}} 1\n' in text
        assert "node_textfile_scrape_error 0\n" in text
        # readers see the old or the new text, never a part
        until = time.monotonic() + 1
        writer = subprocess.Popen(["sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {sbx} metrics "
                                   f"--textfile {target}; done"], env=d.env)
        while writer.poll() is None or time.monotonic() < until:
            assert target.read_text().endswith("# EOF\n")
        assert writer.wait() == 0
