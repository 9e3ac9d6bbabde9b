# SPDX-License-Identifier: Apache-2.0
"""Agents in real VMs: a package from a real registry (verdaccio) becomes a template, runs, is
updated, and what it remembers outlives its sandbox."""
import json
import os
import signal
import sys
import time

import pytest

from installation import TREE, Sandbox, private, template_store

sys.path.insert(0, str(TREE / "tests" / "rigs" / "lab"))
import credlab  # noqa: E402

SLOW = 600  # npm under software emulation
CANARY = "canary-81c0d2"
TOY = """agent 1
name toy
title Toy
about remembers what it was given
template debian
npm sbx-toy 1.0.0
command toy
flags --yes
env TOY_MODE on
history .toy/log
import .toy/settings.json
seed .toy/settings.json {"trusted": "%w"}
end
"""
PROGRAM = """#!/usr/bin/env node
const fs = require("fs");
const args = process.argv.slice(2);
const version = require("../package.json").version;
if (args[0] === "--version") { console.log(`toy ${version}`); process.exit(0); }
const home = process.env.HOME + "/.toy";
const past = fs.existsSync(home + "/log/past")
  ? fs.readFileSync(home + "/log/past", "utf8").trim().split("\\n") : [];
fs.mkdirSync(home + "/log", { recursive: true });
fs.appendFileSync(home + "/log/past", args.join(" ") + "\\n");
fs.writeFileSync("made-by-toy", version);
fs.writeFileSync(home + "/beside", "its own");
console.log(JSON.stringify({ args, version, past, cwd: process.cwd(), mode: process.env.TOY_MODE,
  settings: JSON.parse(fs.readFileSync(home + "/settings.json")) }));
"""
# Runs as root while it is installed: what it reaches and sees there is what an evil package would.
AFTER = """const fs = require("fs"), https = require("https");
const seen = { env: process.env };
const try_one = (host) => new Promise((done) => https.get(`https://${host}/`,
  (r) => done(r.statusCode)).on("error", (e) => done(e.code || String(e))));
(async () => {
  for (const host of ["npm.test", "github.com", "api.anthropic.com"])
    seen[host] = await try_one(host);
  fs.writeFileSync("/opt/seen.json", JSON.stringify(seen));
})();
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with credlab.Lab(tmp_path_factory.mktemp("lab")) as made:
        made.packages = made.npm(access="$all")
        made.other = made.origin()
        made.npm_publish(made.packages, "sbx-extra", "1.0.0", {"extra.js": "1"},
                         scripts={"postinstall": "touch /opt/extra"})
        made.npm_publish(made.packages, "sbx-toy-musl", "1.0.0", {"a": "1"}, libc=["musl"])
        made.integrity = publish(made, "1.0.0")
        yield made


def publish(lab, version):
    return lab.npm_publish(lab.packages, "sbx-toy", version,
                           {"bin/toy": PROGRAM, "after.js": AFTER}, bin={"toy": "bin/toy"},
                           scripts={"postinstall": "node after.js"},
                           optionalDependencies={"sbx-extra": "1.0.0", "sbx-toy-musl": "1.0.0"})


@pytest.fixture(scope="module")
def env(lab):
    with private(templates=False, policy="none") as made:
        store = made.folder / "data/sbx/templates"
        store.mkdir(parents=True, exist_ok=True)
        (store / "debian").symlink_to(template_store() / "debian")
        places = {"npm.test": lab.packages.port, "github.com": lab.other.port,
                  "api.anthropic.com": lab.other.port}
        made.sbx("settings", "set", "network.connect-to",
                 ",".join(f"{name}:443=127.0.0.1:{port}" for name, port in places.items()))
        made.sbx("policy", "set-default", "balanced")
        made.sbx("secret", "set", "anthropic", input="sk-ant-api03-" + CANARY + "a" * 60)
        agents = made.folder / "config/sbx/agents"
        agents.mkdir(parents=True)
        pinned = f"integrity sbx-toy {lab.integrity}\ncommand "
        (agents / "toy.conf").write_text(TOY.replace("command ", pinned, 1))
        other = TOY.replace("command ", f"integrity sbx-toy sha512-{'A' * 86}==\ncommand ", 1)
        (agents / "other.conf").write_text(other.replace("name toy", "name other"))
        home = made.folder / "home"
        (home / ".toy").mkdir(parents=True)
        (home
         / ".toy/settings.json").write_text(json.dumps({"theme": "dark", "apiKey": CANARY,
                                                        "env": {"A": CANARY}}))
        (home
         / ".npmrc").write_text(
            f"registry=https://npm.test/\ncafile={lab.ca.pem}\n//npm.test/:_authToken={CANARY}\n")
        made.env["HOME"] = str(home)
        yield made


@pytest.fixture(scope="module")
def built(env):
    done = env.sbx("template", "build", "toy", timeout=SLOW)
    env.said = done.stdout + done.stderr
    return env


def manifest(env, name):
    return next(t for t in json.loads(env.sbx("template", "ls", "--json").stdout)["templates"]
                if t["name"] == name)


def test_a_build_says_what_it_does_and_leaves_only_the_template(built, lab):
    assert "installing sbx-toy@1.0.0" in built.said and "toy 1.0.0" in built.said
    assert "token in your npm configuration is not used" in built.said and CANARY not in built.said
    assert built.ls() == []
    made = manifest(built, "toy")
    assert made["kind"] == "agent" and made["agent"] == "toy"
    assert made["packages"] == [{"name": "sbx-toy", "version": "1.0.0", "integrity": lab.integrity}]
    agent = json.loads(built.sbx("agent", "inspect", "toy", "--json").stdout)
    assert agent["built"] and agent["version"] == "1.0.0"
    assert "already exists" in built.sbx("template", "build", "toy").stdout


def test_it_runs_remembers_and_is_reached_again(built):
    work = built.make_folder("toy-project")
    first = json.loads(built.sbx("run", "toy", work, timeout=SLOW, input="").stdout)
    assert first["args"] == ["--yes"] and first["cwd"] == str(work) and first[
        "mode"] == "on" and first["past"] == []
    assert first["settings"] == {"trusted": str(work)} and (work
                                                            / "made-by-toy").read_text() == "1.0.0"
    second = json.loads(built.sbx("run", "toy", work, "--", "--more", timeout=SLOW,
                                  input="").stdout)
    assert second["args"] == ["--yes", "--more"] and second["past"] == ["--yes"]
    third = json.loads(built.sbx("run", "toy-toy-project", "--", "word", timeout=SLOW,
                                 input="").stdout)
    assert third["args"] == ["word"]
    box = Sandbox(built, "toy-toy-project")
    assert box.guest(
        "stat -c %U:%G /home/agent/.toy /home/agent/.toy/log /home/agent/.toy/beside") == "\n".join(
        ["agent:agent"] * 3)
    assert box.fails("ls /home/agent/.toy/log/..//../../workspace")
    box.rm()
    again = json.loads(built.sbx("run", "toy", work, timeout=SLOW, input="").stdout)
    assert again["past"] == ["--yes", "--yes --more", "word"]
    # new: the old one went with its disk
    assert box.guest("cat /home/agent/.toy/beside", user="agent") == "its own"
    said = built.sbx("rm", "-f", "--history", box.name, timeout=60).stdout
    assert "Removed the agent's history for this workspace" in said and not list(
        (built.state / "history/toy").iterdir())


def test_settings_go_along_without_credentials(built):
    work = built.make_folder("imported")
    done = built.sbx("run", "--rm", "toy", work, "--import-config", timeout=SLOW, input="")
    assert json.loads(done.stdout)["settings"] == {"theme": "dark", "trusted": str(work)}
    assert "removed: " in done.stderr
    assert "apiKey" in done.stderr
    assert CANARY not in done.stderr + done.stdout
    assert built.ls() == []


def test_what_a_package_can_do_while_it_is_installed(built):
    """Its script ran as root in the build: only the registry answered, and no secret was
    present."""
    box = built.create("look", flags=("-t", "toy"))
    seen = json.loads(box.guest("cat /opt/seen.json"))
    assert seen["npm.test"] == 200
    assert not isinstance(seen["github.com"],
                          int) and not isinstance(seen["api.anthropic.com"], int), seen
    assert seen["env"]["TOY_MODE"] == "on" and "ANTHROPIC_API_KEY" not in seen[
        "env"] and CANARY not in json.dumps(seen)
    assert box.guest("ls /usr/local/lib/node_modules") == "sbx-toy" and box.fails(
        "ls /opt/extra"), "an unexpected package is installed"
    assert box.fails("ls /var/tmp/sbx-npm-ca.pem /var/tmp/sbx-npm-cache ~/.npm")
    assert box.fails("grep -rlI " + CANARY + " /etc /home /root /opt /usr/local /var/tmp")
    box.rm()


def test_a_package_with_other_content_than_the_pinned_one_is_not_installed(env):
    done = env.sbx("template", "build", "other", timeout=SLOW, check=False)
    assert done.returncode == 1 and "sbx-toy: the registry has other content" in done.stderr
    assert env.ls() == [] and not any(
        t["name"] == "other"
        for t in json.loads(env.sbx("template", "ls", "--json").stdout)["templates"])


def test_an_interrupted_build_leaves_nothing(built):
    names = [t["name"]
             for t in json.loads(built.sbx("template", "ls", "--json").stdout)["templates"]]
    with built.popen("template", "build", "toy", "--force", start_new_session=True) as process:
        deadline = time.monotonic() + SLOW
        while not [s for s in built.ls() if s["status"] == "running"]:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.2)
        time.sleep(3)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(120) != 0
    assert built.ls() == []
    assert [t["name"]
            for t in json.loads(built.sbx("template", "ls", "--json").stdout)["templates"]] == names
    assert manifest(built, "toy")["packages"][0]["version"] == "1.0.0"


def test_long_an_update_moves_the_template_and_not_its_sandboxes(built, lab):
    work = built.make_folder("stays")
    built.sbx("run", "-d", "toy", work, timeout=SLOW)
    assert "newest" in built.sbx("template", "update", "toy", timeout=SLOW).stdout
    publish(lab, "1.1.0")
    done = built.sbx("template", "update", "toy", timeout=SLOW)
    assert "1.0.0 -> 1.1.0" in done.stdout + done.stderr
    assert manifest(built, "toy")["packages"][0]["version"] == "1.1.0"
    old = json.loads(built.sbx("run", "toy", work, timeout=SLOW, input="").stdout)
    assert old["version"] == "1.0.0"
    new = json.loads(built.sbx("run", "--rm", "toy", built.make_folder("fresh"), timeout=SLOW,
                               input="").stdout)
    assert new["version"] == "1.1.0"
    built.sbx("rm", "-f", "toy-stays", timeout=60)


def test_under_a_locked_policy_nothing_is_installed(built):
    built.sbx("policy", "set-default", "deny-all", "--lock")
    try:
        done = built.sbx("template", "build", "toy", "--force", timeout=SLOW, check=False)
        assert done.returncode != 0 and "in the sandbox" in done.stderr
        assert "sbx policy log " in done.stderr and "network.connect-to " in done.stderr
        assert built.ls() == []
    finally:
        built.sbx("policy", "set-default", "balanced")
