# SPDX-License-Identifier: Apache-2.0
"""exec: every byte, every exit status, as many as one likes."""
import hashlib
import os
import signal
import statistics
import subprocess
import threading
import time

import pytest
from host import until
from term import Terminal

MIB = 1 << 20


def run_in_a_row(sandbox, n):
    """Each answer is its own."""
    for i in range(n):
        done = sandbox.exec("sh", "-c", f"echo {i}; exit {i % 256}", check=False)
        assert (done.returncode, done.stdout) == (i % 256, f"{i}\n"), done.stderr


def test_every_exit_status(sandbox):
    run_in_a_row(sandbox, 256)


def test_long_a_thousand_in_a_row(sandbox):
    run_in_a_row(sandbox, 1000)


@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 11, 13, 15])
def test_killed_by_a_signal_is_128_and_the_signal(sandbox, number):
    assert sandbox.exec("sh", "-c", f"kill -{number} $$", check=False).returncode == 128 + number


def test_what_cannot_start_says_so(sandbox):
    done = sandbox.exec("no-such-program", check=False)
    assert done.returncode == 127 and "no-such-program" in done.stderr
    done = sandbox.exec("/etc/passwd", check=False)
    assert done.returncode == 126 and "/etc/passwd" in done.stderr
    assert sandbox.exec("true", user="nobody-here", check=False).returncode not in (0, None)
    assert sandbox.exec("true", flags=("-w", "/no/such/folder"), check=False).returncode != 0


def test_stdout_and_stderr_are_separate(sandbox):
    done = sandbox.exec("sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_every_byte_value_passes(sandbox):
    data = bytes(range(256)) * 300
    done = sandbox.exec("cat", input=data, binary=True)
    assert done.stdout == data


def test_stdin_is_read_only_with_i(sandbox):
    assert sandbox.env.sbx("exec", sandbox.name, "cat", input="x").stdout == ""
    assert sandbox.exec("cat", input="x").stdout == "x"


def test_defaults_user_folder_and_environment(sandbox):
    uid, gid = os.getuid(), os.getgid()
    assert sandbox.exec("id", "-un").stdout == "agent\n"
    assert sandbox.exec("sh", "-c", "id -u; id -g").stdout == f"{uid}\n{gid}\n"
    assert sandbox.exec("pwd").stdout == f"{sandbox.workspace}\n"
    assert sandbox.exec("sh", "-c", "echo $HOME").stdout == "/home/agent\n"
    assert sandbox.exec("sh", "-c", "echo $SANDBOX_NAME $(hostname) ${#SANDBOX_ID} $WORKSPACE_DIR"
                        ).stdout == f"{sandbox.name} {sandbox.name} 12 {sandbox.workspace}\n"
    assert sandbox.exec("sudo", "-n", "id", "-u").stdout == "0\n"


def test_what_a_command_finds(env, sandbox):
    """pip is not kept from installing, a tunnel can be opened, and a terminal has a description."""
    assert sandbox.exec("sh", "-c",
                        "echo $PIP_BREAK_SYSTEM_PACKAGES; sudo -n sh -c 'echo $PIP_BREAK_SYSTEM_PACKAGES'").stdout == "1\n1\n"
    assert "externally-managed" not in sandbox.exec("python3", "-m", "pip", "install", "--no-index",
                                                    "no-such-package", check=False).stderr
    assert sandbox.exec("sh", "-c", "exec 3<>/dev/net/tun && echo open").stdout == "open\n"
    for said, seen in (("xterm-kitty", "xterm-256color"), ("xterm", "xterm"),
                       ("alacritty", "xterm-256color"), ("", "xterm-256color")):
        got = sandbox.exec("sh", "-c", "echo $TERM; tput longname >/dev/null && echo known",
                           flags=("-t", "-e", f"TERM={said}")).stdout
        assert got.split() == [seen, "known"], (said, got)


def test_host_environment_stays_out(sandbox):
    seen = sandbox.exec("env",
                        env={"AWS_SECRET_ACCESS_KEY": "canary-env",
                             "LD_PRELOAD_X": "canary-env"}).stdout
    assert "canary-env" not in seen and "PATH=" in seen


def test_flags_user_workdir_env(sandbox, tmp_path):
    file = tmp_path / "vars"
    file.write_text("# comment\nFROM_FILE=one two\nBOTH=file\n")
    done = sandbox.exec("sh", "-c", "id -un; pwd; echo $A-$FROM_FILE-$BOTH", user="root",
                        flags=("-w", "/etc", "-e", "A=b c", "--env-file", str(file), "-e",
                               "BOTH=flag"))
    assert done.stdout == "root\n/etc\nb c-one two-flag\n"
    assert sandbox.exec("id", "-u", user="1:1").stdout == "1\n"


def test_sixty_four_at_once(sandbox):
    """All are open at the same time before the first one gets its input."""
    running = [sandbox.env.popen("exec", "-i", sandbox.name, "sh", "-c",
                                 f"echo up; read x; echo $x-{i}; exit {i}",
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(64)]
    try:
        for p in running:
            assert p.stdout.readline() == b"up\n"
        for i, p in reversed(list(enumerate(running))):
            p.stdin.write(b"go\n")
            p.stdin.close()
        for i, p in enumerate(running):
            assert p.stdout.read() == f"go-{i}\n".encode()
            assert p.wait(30) == i
    finally:
        for p in running:
            p.kill()
            p.wait()


def echo_times(box, stop):
    """Milliseconds of round trips through an open exec until the stop command."""
    p = box.env.popen("exec", "-i", box.name, "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    times = []
    try:
        while not stop.is_set():
            begin = time.monotonic()
            p.stdin.write(b"x\n")
            p.stdin.flush()
            assert p.stdout.readline() == b"x\n"
            times.append((time.monotonic() - begin) * 1000)
            time.sleep(0.05)
    finally:
        p.kill()
        p.wait()
    return times


def test_256_mib_each_way_beside_an_interactive_one(sandbox, tmp_path):
    blob = tmp_path / "blob"
    want = hashlib.sha256()
    with open(blob, "wb") as f:
        for _ in range(256):
            piece = os.urandom(MIB)
            want.update(piece)
            f.write(piece)
    stop, times = threading.Event(), []
    beside = threading.Thread(target=lambda: times.extend(echo_times(sandbox, stop)))
    beside.start()
    try:
        with open(blob, "rb") as f:
            p = sandbox.env.popen("exec", "-i", sandbox.name, "cat", stdin=f,
                                  stdout=subprocess.PIPE)
        got = hashlib.sha256()
        while piece := p.stdout.read(MIB):
            got.update(piece)
        assert p.wait(60) == 0
    finally:
        stop.set()
        beside.join(60)
    assert got.hexdigest() == want.hexdigest()
    assert len(times) >= 20
    print(
        f"{len(times)} echoes: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms")
    assert max(times[1:]) <= 250, f"slowest answers: {sorted(times)[-5:]} ms"


def is_running(box, mark):
    return not box.fails(f"pgrep -f '[{mark[0]}]{mark[1:]}'")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_killed_client_takes_the_process_group_along(sandbox, how):
    mark = f"7{int(how)}41.5"
    p = sandbox.env.popen("exec", sandbox.name, "sh", "-c",
                          f"sleep {mark} & echo up; sleep {mark}; echo not-here",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    assert is_running(sandbox, f"sleep {mark}")
    p.send_signal(how)
    p.wait(15)
    until(lambda: not is_running(sandbox, f"sleep {mark}"), 60, "still runs in the guest")


def test_one_that_ignores_hangup_is_killed(sandbox):
    p = sandbox.env.popen("exec", sandbox.name, "sh", "-c",
                          "trap '' HUP TERM INT; echo up; while :; do sleep 0.73; done",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    p.kill()
    p.wait()
    until(lambda: not is_running(sandbox, "sleep 0.73"), 60, "still runs in the guest")


def test_detached_returns_at_once_and_goes_on(sandbox):
    begin = time.monotonic()
    sandbox.exec("sleep", "61.25", flags=("-d",))
    assert time.monotonic() - begin < 3
    assert is_running(sandbox, "sleep 61.25")
    sandbox.guest("pkill -f '[s]leep 61.25'")


def test_reader_gone_ends_the_writer(sandbox):
    p = sandbox.env.popen("exec", sandbox.name, "yes", "flood", stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    assert p.stdout.read(5) == b"flood"
    p.stdout.close()
    assert p.wait(20) != 0
    until(lambda: not is_running(sandbox, "yes flood"), 60, "still runs in the guest")


def test_a_slow_reader_stops_only_itself(sandbox):
    """The output of one exec is not read; others keep running, and no output is lost."""
    n = 64 * MIB
    p = sandbox.env.popen("exec", sandbox.name, "head", "-c", str(n), "/dev/zero",
                          stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    try:
        time.sleep(2)
        assert sandbox.exec("echo", "alive", timeout=10).stdout == "alive\n"
        got = 0
        while piece := p.stdout.read(MIB):
            got += len(piece)
        assert got == n and p.wait(30) == 0
    finally:
        p.kill()
        p.wait()


def test_no_zombies_are_left_in_the_guest(sandbox):
    for _ in range(5):
        sandbox.guest("(sleep 0.1 &) ; (true &)")
    until(lambda: sandbox.guest("ps -eo stat= | grep -c '^Z' || :") == "0", 60, "zombies stay")


def test_interactive_shell_resize_interrupt_exit(env, sandbox):
    with Terminal(env, "sbx", "exec", "-it", sandbox.name, "bash", columns=100, rows=30) as term:
        term.line("echo tty is $(tty | cut -c1-8), size $(stty size)")
        term.wait_for("tty is /dev/pts, size 30 100")
        term.resize(120, 40)
        time.sleep(0.5)
        term.line("echo now $(stty size)")
        term.wait_for("now 40 120")
        term.line("sleep 1000")
        time.sleep(0.5)
        term.key("C-c")
        term.line("echo status $? term $TERM")
        term.wait_for("status 130 term")
        term.line("exit 42")
        assert term.wait_end() == 42


def test_the_terminal_is_put_back(env, sandbox):
    with Terminal(env, "sh", "-c", f"stty -a > {env.folder}/b; sbx exec -it {sandbox.name} true; "
                  f"stty -a > {env.folder}/a; cmp {env.folder}/a {env.folder}/b") as term:
        assert term.wait_end() == 0
