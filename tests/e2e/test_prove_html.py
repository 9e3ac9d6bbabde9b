# SPDX-License-Identifier: Apache-2.0
"""The page of `sbx prove --html`, from a real run, in a real browser: it is complete, it sends no
request, and it is visible."""
import html.parser
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import pytest

CHROMIUM = "chromium"
# The sandbox of the browser stays on. Its requests for updates fail.
QUIET = ("--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
         "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")
SECONDS = 120
PROVE_SECONDS = 400
GROUPS = ("files", "kernel", "network", "credentials", "docker", "host", "recovery")


class Server(http.server.ThreadingHTTPServer):
    """Serves one page and records the requests."""
    daemon_threads = True

    def __init__(self, page):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page, self.asked = page, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/page.html"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        found = self.path == "/page.html"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page if found else b"")

    def log_message(self, *_):
        pass


class Seen:
    """The result of loading a page: the DOM as text, the console output, the requests."""

    def __init__(self, page, folder, width=1280, height=2000, dark=False):
        folder.mkdir()
        argv = [CHROMIUM, *QUIET, f"--user-data-dir={folder}/profile",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                f"--window-size={width},{height}", f"--log-net-log={folder}/net.json",
                f"--screenshot={folder}/page.png", "--dump-dom"]
        with Server(page) as server:
            done = subprocess.run([*argv, server.url], env={**os.environ, "HOME": str(folder)},
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=SECONDS, check=False)
            server.shutdown()
            self.url, self.asked = server.url, server.asked
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
        self.dom = done.stdout.decode()
        self.console = [line for line in done.stderr.decode("utf-8", "replace").splitlines()
                        if "CONSOLE" in line]
        self.png = (folder / "page.png").read_bytes()
        self.by_page = list(asked_by(self.url.rsplit("/", 1)[0], folder / "net.json"))


def asked_by(origin, log):
    """The requests of the page in the log of the browser: one event per line."""
    for line in log.read_text(errors="replace").splitlines():
        if f'"initiator":"{origin}' in line:
            params = json.loads(line.rstrip(","))["params"]
            yield params.get("url", str(params))


class Reader(html.parser.HTMLParser):
    """id -> the text of each <details>, and whether it is open."""

    def __init__(self, text):
        super().__init__()
        self.probes, self.tags, self.at = {}, [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        if tag == "details":
            self.at = self.probes[attrs["id"]] = {"class": attrs["class"], "open": "open" in attrs,
                                                  "text": ""}

    def handle_endtag(self, tag):
        if tag == "details":
            self.at = None

    def handle_data(self, data):
        if self.at:
            self.at["text"] += data


@pytest.fixture(scope="module")
def run(env, sandbox, tmp_path_factory):
    """(page, the JSON of the same run); with a probe of the user that fails and prints hostile
    text."""
    assert shutil.which(CHROMIUM), "no chromium on this host\n  try: tools/setup --test"
    own = env.folder / "config/sbx/probes/files/own-hostile"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(
        "# title: A hostile text\n# tried: printing a script\n# means: The page shows it as text.\n# quick: yes\n#: inside\n"
                   "printf '</pre><script>document.title=\"taken\"</script><img src=x onerror=alert(1)>\\033[31m\\377\\n'\n"
                   "head -c 2000 /dev/zero | tr '\\0' x\necho\nhole '<script>alert(2)</script>'\n")
    path = tmp_path_factory.mktemp("prove") / "page.html"
    try:
        done = env.sbx("prove", sandbox.name, "--quick", "--json", "--html", path,
                       timeout=PROVE_SECONDS, check=False)
    finally:
        own.unlink()
    assert done.returncode == 1, done.stdout + done.stderr  # the failed probe
    return path.read_bytes(), json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen(run, tmp_path_factory):
    return Seen(run[0], tmp_path_factory.mktemp("browser") / "light")


def test_every_probe_is_in_the_page(run, seen):
    found = Reader(seen.dom).probes
    assert run[1]["probes"] and set(found) == {p["id"] for p in run[1]["probes"]}
    for probe in run[1]["probes"]:
        shown = found[probe["id"]]
        assert shown["class"] == probe["verdict"] and shown["open"] == (probe["verdict"] == "fail")
        for key in ("title", "tried", "means", "why"):
            assert probe[key] in shown["text"], (probe["id"], key)


def test_the_first_box_says_what_tcg_is(seen):
    assert seen.dom.index("TCG is not an isolation boundary") < seen.dom.index(
        'class="facts"') < seen.dom.index("<details")


def test_the_picture_has_all_groups(seen):
    for group in GROUPS:
        assert re.search(rf'class="pill {group}".*>{group} (\d+/\d+|–)<', seen.dom), group


def test_hostile_text_is_text(seen):
    tags = set(Reader(seen.dom).tags)
    assert not tags & {"script", "img", "iframe", "form", "object", "embed"}, tags
    assert "<title>sbx prove: " in seen.dom and "taken" not in re.search("<title>(.*?)</title>",
                                                                         seen.dom).group(1)
    assert "&lt;script&gt;alert(2)" in seen.dom


def test_nothing_is_asked_for_and_nothing_complains(seen):
    assert seen.asked == ["/page.html"]
    assert not seen.by_page
    assert not seen.console, seen.console


def test_the_check_would_see_a_request(run, tmp_path):
    """The same page with a picture from elsewhere: its policy refuses it, and that is seen. Without
    the policy the request is seen."""
    bad = run[0].replace(b"</body>", b'<img src="/stolen.png"><script>1</script></body>')
    refused = Seen(bad, tmp_path / "refused")
    assert refused.console and refused.asked == ["/page.html"]
    open_ = Seen(re.sub(rb'<meta http-equiv="Content-Security-Policy"[^>]*>', b"", bad),
                 tmp_path / "open")
    assert "/stolen.png" in open_.asked and any(url.endswith("/stolen.png")
                                                for url in open_.by_page)


def test_it_can_be_seen_in_both_colours_and_on_a_telephone(run, seen, tmp_path):
    dark = Seen(run[0], tmp_path / "dark", dark=True)
    small = Seen(run[0], tmp_path / "small", width=400)
    for one in (seen, dark, small):
        assert one.png[:8] == b"\x89PNG\r\n\x1a\n" and len(one.png) > 30000 and not one.console
    assert dark.png != seen.png
