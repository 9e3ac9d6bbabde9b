# SPDX-License-Identifier: Apache-2.0
"""An empty installation: its messages, and no unnecessary waiting."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

from conftest import PROVE, SBX, VERSION, on_terminal


def test_a_listener_of_another_user_gets_no_request(bare):
    """XDG_RUNTIME_DIR where others can write: their process may listen at our socket."""
    os.chmod(bare.root, 0o755)
    run = bare.root / "run"
    os.chmod(run, 0o777)
    code = (
        "import os, socket\nos.umask(0)\nos.mkdir('sbx')\ns = socket.socket(socket.AF_UNIX)\ns.bind('sbx/sbxd.sock')\n"
            "s.listen()\nprint('listens', flush=True)\nwhile True: print('got', s.accept()[0].recv(4096), flush=True)")
    # One of this user's subordinate uids: another uid to the kernel, and no root is needed for it.
    with subprocess.Popen(["unshare", "--user", "--map-root-user", "--map-auto", "--setuid", "1",
                           "/usr/bin/python3", "-c", code],
                          cwd=run, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "listens\n"
            for args in (["ls"], ["secret", "ls"], ["diagnose"], ["daemon", "stop"]):
                done = bare.sbx(*args)
                assert "is owned by another user" in done.stdout + done.stderr, (
                    (args, done.stdout, done.stderr))
            assert f"ls -l '{run}/sbx/sbxd.sock'" in bare.sbx("ls", check=1).stderr
        finally:
            p.kill()
        lines, _, last = p.stdout.read().rpartition("\n")  # it was killed
        assert set(lines.split("\n")) <= {"got b''", ""} and "got b''".startswith(last)
    shutil.rmtree(run / "sbx")


def test_listings_of_nothing(bare):
    assert "No sandboxes found" in bare.sbx("ls", check=0).stdout
    assert json.loads(bare.sbx("ls", "--json", check=0).stdout) == {"sandboxes": []}
    assert bare.sbx("ls", "-q", check=0).stdout == ""
    assert json.loads(bare.sbx("template", "ls", "--json", check=0).stdout) == {"templates": []}
    assert json.loads(bare.sbx("prune", "--dry-run", "--json", check=0).stdout) == \
        {"would_remove": [], "skipped_unknown_stop": []}
    assert bare.sbx("rm", "--all", "-f", check=0).stdout == "No sandboxes found\n"


def test_missing_sandbox_is_an_error_everywhere(bare):
    for args in (["inspect", "x1"], ["stop", "x1"], ["rm", "-f", "x1"], ["rename", "x1", "y1"],
                 ["update", "x1", "--cpus", "2"], ["cp", "x1:/a", "."]):
        p = bare.sbx(*args, check=1)
        assert "no sandbox named x1" in p.stderr and "try: " in p.stderr
    assert "no sandbox named x1" in bare.sbx("exec", "x1", "true", check=125).stderr


def test_missing_template_without_a_terminal_fails_at_once(bare):
    bare.policy()
    begin = time.monotonic()
    p = bare.sbx("create", "shell", check=1)
    assert "template 'debian' not found" in p.stderr and "try: sbx template build" in p.stderr
    assert time.monotonic() - begin < 2
    assert bare.sbx("ls", "-q").stdout == ""


def test_missing_template_on_a_terminal_is_offered(bare):
    bare.policy()
    out, status = on_terminal(bare, ["create", "shell"], b"n\n")
    assert "Build it now?" in out and status == 1
    helper = bare.libexec / "template-build"
    helper.write_text("#!/bin/sh\necho '05 first' >&3\necho '99 last' >&3\n"
                      "mkdir -p \"$2\" && echo '{}' > \"$2/manifest.json\"\n")
    helper.chmod(0o755)
    for f in ("root.img", "docker.img", "vmlinuz", "modules.cpio"):
        helper.write_text(helper.read_text() + f"echo > \"$2/{f}\"\n")
    out, status = on_terminal(bare, ["create", "shell", "--name", "demo"], b"y\n")
    assert status == 0, out
    assert "  5% first" in out and " 99% last" in out and "Created sandbox demo" in out


def test_template_build_that_fails_says_so(bare):
    helper = bare.libexec / "template-build"
    helper.write_text("#!/bin/sh\necho 'sbx: template-build: no room' >&2\nexit 3\n")
    helper.chmod(0o755)
    p = bare.sbx("template", "build", check=1)
    assert "no room" in p.stderr and "status 3" in p.stderr


def test_no_colour_and_no_bar_without_a_terminal_or_with_no_color(bare):
    assert "\x1b" not in bare.sbx("nope").stderr
    out, _ = on_terminal(bare, ["nope"])
    assert "\x1b[31merror: " in out
    out, _ = on_terminal(bare, ["nope"], env={"NO_COLOR": "1"})
    assert "\x1b" not in out and "error: " in out
    out, _ = on_terminal(bare, ["nope"], env={"NO_COLOR": ""})
    assert "\x1b[31m" in out


def test_daemon_by_hand(bare):
    assert json.loads(bare.sbx("daemon", "status", "--json", check=1).stdout)["status"] == "stopped"
    assert "not running" in bare.sbx("version", check=0).stdout
    assert "started" in bare.sbx("daemon", "start", check=0).stdout
    assert "already" in bare.sbx("daemon", "start", check=0).stdout
    status = json.loads(bare.sbx("daemon", "status", "--json", check=0).stdout)
    assert status["status"] == "running" and status["pid"] > 1
    bare.sbx("daemon", "stop", check=0)
    bare.sbx("daemon", "status", check=1)
    bare.sbx("daemon", "stop", check=0)


def test_ten_commands_at_once_start_one_sbxd(bare):
    pids, threads = [], []

    def one():
        assert bare.sbx("ls").returncode == 0
        pids.append(json.loads(bare.sbx("daemon", "status", "--json").stdout)["pid"])

    for _ in range(10):
        threads.append(threading.Thread(target=one))
        threads[-1].start()
    for t in threads:
        t.join()
    assert len(pids) == 10 and len(set(pids)) == 1


def test_an_sbxd_that_cannot_start_is_said_in_time(bare):
    (bare.libexec / "sbxd").unlink()
    p = bare.sbx("ls", check=1)
    assert "cannot start " in p.stderr
    (bare.libexec / "sbxd").write_text("#!/bin/sh\nexit 7\n")
    (bare.libexec / "sbxd").chmod(0o755)
    p = bare.sbx("ls", check=1)
    assert "status 7" in p.stderr and "sbxd.log" in p.stderr
    (bare.libexec / "sbxd").write_text("#!/bin/sh\nexec sleep 100\n")
    begin = time.monotonic()
    p = bare.sbx("ls", check=1)
    assert "did not accept connections within 20 seconds" in p.stderr
    assert "waiting for sbxd to start" in p.stderr
    assert time.monotonic() - begin < 22


def test_an_sbxd_that_dies_between_two_connections_is_started_again(bare):
    """The exiting sbxd queues the first connection, and the second connection is refused."""
    run = bare.root / "run/sbx"
    run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(run / "sbxd.sock"))
        dying.listen(0)  # room for one: the second waits, and is refused when the socket is closed
        with subprocess.Popen([SBX, "ls", "--json"], env=bare.env, cwd=bare.work,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as command:
            time.sleep(1)
            dying.close()
            out, err = command.communicate(timeout=60)
    assert command.returncode == 0 and json.loads(out) is not None, err


def test_an_sbxd_of_another_version_is_replaced(bare):
    bare.sbx("daemon", "start", check=0)
    old = json.loads(bare.sbx("daemon", "status", "--json").stdout)["pid"]
    bare.sbx("ls", check=0)
    assert json.loads(bare.sbx("daemon", "status", "--json").stdout)["pid"] == old
    bare.sbx("daemon", "stop")
    fake = subprocess.Popen(["python3", "-c", FAKE_OLD, str(bare.root / "run/sbx/sbxd.sock")],
                            env=bare.env)
    try:
        while not (bare.root / "run/sbx/sbxd.sock").exists():
            time.sleep(0.05)
        assert "No sandboxes found" in bare.sbx("ls", check=0).stdout
        assert fake.wait(60) == 0
        assert json.loads(bare.sbx("version", "--json").stdout)["daemon"]["version"] != "0.0.1"
    finally:
        fake.kill()


FAKE_OLD = """
import http.server, json, os, socketserver, sys, threading
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, status, body):
        data = json.dumps(body).encode() if body else b''
        self.send_response(status)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        if data: self.wfile.write(data)
    def do_GET(self):
        self.answer(200, {'version': '0.0.1', 'build': 'x', 'pid': os.getpid(), 'api': 1})
    def do_POST(self):
        assert self.path == '/v1/shutdown'
        os.unlink(sys.argv[1]); self.answer(204, None); self.wfile.flush(); os._exit(0)
    def address_string(self): return 'x'
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): pass
S(sys.argv[1], H).serve_forever()
"""


def test_settings(bare):
    keys = json.loads(bare.sbx("settings", "list", "--json", check=0).stdout)["settings"]
    assert {"key": "vm.accel", "value": "auto", "default": "auto",
            "set": False}.items() <= keys[0].items()
    bare.sbx("settings", "set", "vm.memory", "2g", check=0)
    assert bare.sbx("settings", "get", "vm.memory", check=0).stdout == "2g\n"
    assert "vm.memory" in bare.sbx("settings", "list", check=0).stdout
    bare.sbx("settings", "unset", "vm.memory", check=0)
    assert bare.sbx("settings", "get", "vm.memory", check=0).stdout == "0\n"
    assert "try: sbx settings list" in bare.sbx("settings", "get", "nope", check=1).stderr


def check_of(inst, name, env=None):
    rows = json.loads(inst.sbx("diagnose", "--json", env=env).stdout)["checks"]
    return next(c for c in rows if c["name"] == name)


def test_diagnose_says_where_the_memory_of_sandboxes_is(bare):
    on_disk, in_memory = "in files that the host writes to the disk", "in memory of the host"
    state = bare.root / "state"
    found = check_of(bare, "Guest memory")
    assert found["status"] == "pass" and found["message"].startswith(on_disk), found
    assert re.match(re.escape(str(state)) + r": [0-9.]+ ?[KMGT]\S* free;", found["detail"]), found
    bare.sbx("settings", "set", "vm.memory-backing", "memfd", check=0)
    found = check_of(bare, "Guest memory")
    assert found["status"] == "pass" and found["message"].startswith(in_memory), found
    bare.sbx("settings", "unset", "vm.memory-backing", check=0)
    # A directory that cannot hold such a file, and a file system that is not one of the disk.
    (state / "sbx").mkdir(exist_ok=True)
    (state / "sbx").chmod(0o500)
    for env, why in ((None, "cannot create a file for the guest memory"),
                     ({"XDG_STATE_HOME": "/proc"}, "is not on a local file system")):
        found = check_of(bare, "Guest memory", env)
        assert found["status"] == "warn" and found["message"].startswith(in_memory), found
        assert why in found["detail"] and "vm.memory-backing memfd" in found["hint"], found


def test_diagnose_lists_snapshots_of_another_format(bare):
    state = bare.root / "state/sbx"

    def put(place, version):
        (state / place).mkdir(parents=True, exist_ok=True)
        (state / place / "image.json").write_text(json.dumps({"version": version}))

    assert check_of(bare, "Snapshots")["status"] == "skip"
    put("warm/11", 3)
    put("sandboxes/aaaaaaaaaaaa/suspend", 3)
    put("sandboxes/aaaaaaaaaaaa/memory.7", 3)
    found = check_of(bare, "Snapshots")
    assert found["status"] == "pass" and found["detail"] == "", found
    put("warm/22", 1)
    found = check_of(bare, "Snapshots")
    assert found["status"] == "pass" and found["message"].startswith("4,"), found
    assert found["detail"] == "snapshot of a template 22: format 1, will be created again"
    put("sandboxes/bbbbbbbbbbbb/suspend", 2)
    put("sandboxes/cccccccccccc/suspend", 1)
    put("sandboxes/cccccccccccc/memory.8", 2)
    found = check_of(bare, "Snapshots")
    assert found["status"] == "warn" and found["hint"] == "sbx start bbbbbbbbbbbb", found
    assert found["message"] == "3 of 7 have another format than 3", found
    assert set(found["detail"].split("; ")) == {
        "snapshot of a template 22: format 1, will be created again",
        "suspended sandbox bbbbbbbbbbbb: format 2",
        "suspended sandbox cccccccccccc: format 1, cannot be resumed",
        "checkpoint of sandbox cccccccccccc: format 2"}, found
    shutil.rmtree(state / "sandboxes/bbbbbbbbbbbb")
    assert check_of(bare, "Snapshots")["hint"] == "sbx ls"


def test_diagnose_names_the_sandbox_of_a_snapshot(inst):
    inst.create("demo")
    ident = json.loads(inst.sbx("inspect", "--json", "demo", check=0).stdout)["id"]
    suspend = inst.root / "state/sbx/sandboxes" / ident / "suspend"
    suspend.mkdir()
    (suspend / "image.json").write_text('{"version": 2}')
    found = check_of(inst, "Snapshots")
    assert found["detail"] == "suspended sandbox demo: format 2", found
    assert found["hint"] == "sbx start demo"


def test_diagnose_for_an_issue_has_no_names(bare):
    (bare.root / "state/sbx").mkdir()
    (bare.root / "state/sbx").chmod(0o777)
    env = {"HOME": str(bare.root)}
    p = bare.sbx("diagnose", "--issue", env=env)
    assert p.returncode == 1 and p.stdout.startswith(f"- sbx: {VERSION}\n- distribution: ")
    assert "\n| check | result |\n|---|---|\n| CLI binary | pass |\n" in p.stdout
    assert "| Folders | fail: '~/state/sbx' is writable by other users |" in p.stdout
    assert "| Template | warn: 'debian' is not built |" in p.stdout
    for name in (str(bare.root), os.uname().nodename, str(bare.libexec)):
        assert not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", p.stdout + p.stderr)
    assert "mutually exclusive" in bare.sbx("diagnose", "--issue", "--json", check=2).stderr


def test_diagnose(bare):
    p = bare.sbx("diagnose", "--json")
    d = json.loads(p.stdout)
    assert d["version"] == "1.0"
    names = {c["name"]: c for c in d["checks"]}
    assert {"CLI binary", "Helper programs", "qemu", "virtiofsd", "Virtualization",
            "User namespaces",
            "Subordinate ids", "Template", "Folders", "Free space", "Guest memory", "Snapshots",
            "Daemon", "Version match", "Control groups", "Landlock", "Seccomp notification",
            "KVM self-test"} <= set(names)
    for c in d["checks"]:
        assert c["status"] in ("pass", "warn", "fail", "skip")
        assert c["status"] in ("pass", "skip") or c["hint"], c
    for s in ("pass", "warn", "fail", "skip"):
        assert d["summary"][s] == sum(c["status"] == s for c in d["checks"])
    # sbx-edge and the others are not in this installation, and looking must not start sbxd
    assert names["Helper programs"]["status"] == "fail" and "sbx-edge" in names["Helper programs"][
        "detail"]
    assert p.returncode == 1 and names["Template"]["status"] == "warn" and names["Daemon"][
        "status"] == "skip"
    assert "sbx template build" in bare.sbx("diagnose").stdout
    assert not (bare.root / "run/sbx/sbxd.sock").exists()
    (bare.root / "state/sbx").mkdir(exist_ok=True)
    (bare.root / "state/sbx").chmod(0o777)
    d = json.loads(bare.sbx("diagnose", "--json").stdout)
    assert [c["status"] for c in d["checks"] if c["name"] == "Folders"] == ["fail"]


CLOSED_KVM = """
mount --bind "$0" /dev && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"
"""


def test_a_closed_kvm_is_a_failure_unless_emulation_is_chosen(bare):
    dev = bare.root / "dev"
    dev.mkdir()
    (dev / "kvm").touch(mode=0o000)
    enter = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c",
             CLOSED_KVM, dev]

    def kvm():
        p = subprocess.run([*enter, SBX, "diagnose", "--json"],
                           env={**bare.env, "SBX_ACCEL": "auto"}, stdin=subprocess.DEVNULL,
                           capture_output=True)
        return next(c for c in json.loads(p.stdout)["checks"] if c["name"] == "Virtualization")
    assert kvm()["status"] == "fail"
    assert "cannot open /dev/kvm: permission denied" in kvm()["message"]
    bare.sbx("settings", "set", "vm.accel", "tcg", check=0)
    assert kvm()["status"] == "warn"


def test_building_a_package_prints_its_steps(bare, tmp_path):
    """tools/package takes minutes; the test replaces the program that it runs."""
    (tmp_path / "bin").mkdir()
    for name, body in (("dpkg-buildpackage",
                        'echo "   dh_auto_build"; echo "noise of a compiler"; echo "   dh_auto_test"; touch ../sbx_1_amd64.deb ../sbx.changes ../sbx.buildinfo; exit $FAIL'),
                       ("dh", "")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "tree/tools").mkdir(parents=True)
    shutil.copy(pathlib.Path(__file__).parents[2] / "tools/package", tmp_path / "tree/tools")

    def package(fail):
        return subprocess.run([tmp_path / "tree/tools/package", tmp_path / "out"],
                              capture_output=True, text=True,
                              env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "FAIL": fail})
    p = package("0")
    assert p.returncode == 0 and p.stdout == f"{tmp_path}/out/sbx_1_amd64.deb\n", p
    assert p.stderr.splitlines()[-2:] == ["package: dh_auto_build",
                                          "package: dh_auto_test"] and "noise" not in p.stderr
    assert "noise of a compiler" in (tmp_path / "out/log").read_text()
    p = package("3")
    assert (p.returncode == 1 and "noise of a compiler" in p.stderr
            and "dpkg-buildpackage failed" in p.stderr)


def test_output_that_cannot_be_written_is_a_failure(bare):
    with open("/dev/full", "w") as full:
        for args in (["version"], ["prove", "--list"]):
            p = subprocess.run([SBX, *args], stdout=full, stderr=subprocess.PIPE, env=bare.env)
            assert p.returncode == 1 and b"cannot write the output" in p.stderr, (args, p.stderr)


def test_sbx_prove_gets_words_environment_process_and_terminal_of_sbx(bare):
    program = bare.libexec / "sbx-prove"
    words = ["--quick", "demo", "--group", "files,network", "-v"]
    program.unlink()
    program.write_text('#!/bin/sh\necho "$$|$ONE|$(tty)"\nprintf "<%s>" "$@"\nexit 42\n')
    program.chmod(0o755)
    with subprocess.Popen([SBX, "-D", "prove", *words], stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, env={**bare.env, "ONE": "two  words"}) as p:
        out = p.stdout.read()
    assert p.returncode == 42
    sbx = os.path.realpath(SBX)
    assert out == f"{p.pid}|two  words|not a tty\n" + "".join(
        f"<{w}>" for w in [sbx, "-D", *words]), out
    out, status = on_terminal(bare, ["prove"])
    assert status == 42 and re.search(r"\|/dev/pts/\d+\r\n", out) and out.endswith(f"<{sbx}>"), out


def test_without_sbx_prove_the_message_names_a_command_that_finds_it(bare):
    program = bare.libexec / "sbx-prove"
    program.unlink()
    p = bare.sbx("prove", "demo", check=125)
    assert p.stdout == "" and p.stderr == (
        f"error: {program} is missing: the installation is incomplete\n  try: sbx diagnose\n")
    assert str(program) in bare.sbx("diagnose", check=1).stdout
    assert bare.sbx("prove", "--help", check=0).stdout.startswith("usage: sbx prove")
    bare.sbx("prove", "--frob", check=2)
    program.write_text("")
    assert f"cannot start {program}: Permission denied" in bare.sbx("prove", check=125).stderr


def test_sbx_prove_alone_names_the_command(bare):
    for args in ([], ["demo"], [SBX, "--frob"]):
        p = subprocess.run([PROVE, *args], capture_output=True, text=True, env=bare.env)
        assert p.returncode == 2 and re.search(r"  try: sbx (help )?prove\n", p.stderr), p.stderr


def test_the_first_run_of_an_agent_offers_to_build_its_template(inst):
    out, status = on_terminal(inst, ["run", "claude"], b"n\n")
    assert "Template for Claude Code not found. Build it now?" in out, out
    assert "sbx template build claude" in out, out
    assert status == 125, out
    assert "try: sbx template build claude\n" in inst.sbx("run", "claude", check=125).stderr
