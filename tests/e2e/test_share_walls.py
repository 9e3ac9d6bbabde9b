# SPDX-License-Identifier: Apache-2.0
"""What a guest cannot do through its own workspaces: lead one elsewhere, replace what is read-only,
see sbx itself.

One sandbox with a workspace inside another one at another place (data), one at the same place
(hooks), and, forced, the directory in which this installation has its state."""
import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from installation import START_SECONDS, Sandbox, private

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "airlock"))
from autorun import KINDS, REFUSED, judge  # noqa: E402
from payloads import EVERY  # noqa: E402
from person import FORCE, Person  # noqa: E402


class Walls:
    def __init__(self, env):
        self.env = env
        self.base = env.make_folder("walls")
        self.ws, self.secret = self.base / "ws", self.base / "secret"
        for path in (self.ws / "data", self.ws / ".git/hooks", self.secret):
            path.mkdir(parents=True)
        (self.secret / "id_ed25519").write_text("PRIVATE-KEY-CANARY\n")
        self.said = env.sbx("create", "shell", self.ws, f"{self.ws}/data:/data",
                            f"{self.ws}/.git/hooks:ro",
                            f"{env.folder}:/inst", "--name", "walls", "--force", "--memory", "1g",
                            "--cpus", "2",
                            timeout=START_SECONDS)
        self.box = Sandbox(env, "walls")


@pytest.fixture(scope="module")
def walls():
    with private() as env:
        made = Walls(env)
        yield made


def test_create_warns_about_a_workspace_inside_another(walls):
    assert (f"workspace {walls.ws}/data is inside {walls.ws}, which the sandbox can change"
            in walls.said.stderr)
    assert "hooks is inside" not in walls.said.stderr


def test_renaming_the_parent_does_not_replace_read_only_hooks(walls):
    """Guest root moves .git away and makes another one, as raw as mv can."""
    out = walls.box.guest(
        f"cd '{walls.ws}'; mv .git .git.old; mv -T .git .g2; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; "
                          f"python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); "
                          "print(l.renameat2(-100, b\".git\", -100, b\"data\", 2), "
                          "ctypes.get_errno())' || true", check=False)
    assert not (walls.ws / ".git/hooks/pre-commit").exists(), out
    assert sorted(os.listdir(walls.ws)) == [".git", "data"], out
    walls.box.guest(f"cd '{walls.ws}/.git' && printf '[user]\\n\\tname = x\\n' > config.lock && "
                    "python3 -c 'import os; os.rename(\"config.lock\", \"config\")' && cat config")
    assert (walls.ws / ".git/config").read_text() == "[user]\n\tname = x\n"


def test_sbx_itself_is_not_visible(walls):
    """Through a parent directory that was shared by force."""
    (walls.env.state / "canary").write_text("STATE-CANARY")
    seen = walls.box.guest(
        "cd /inst && ls -A state/sbx run/sbx config/sbx data/sbx | grep -v ':$' | grep -v "
        "'^$'; true", check=False)
    assert seen == "", seen
    walls.box.guest(
        "echo 'allow network planted.example' >> /inst/state/sbx/policy; "
        "mv /inst/state /inst/state2; rm -rf /inst/state/sbx; true", check=False)
    assert walls.env.state.is_dir() and (walls.env.state / "canary").read_text() == "STATE-CANARY"
    assert "planted.example" not in (walls.env.state / "policy").read_text()
    assert walls.box.fails("grep -r CANARY /inst/state")


def test_fifos_and_sockets_need_the_setting(walls):
    """A change of the setting applies at the next start or resume."""
    fifo = walls.ws / "fifo"
    make = f"mkfifo '{fifo}'"
    bind = (f"cd '{walls.ws}' && python3 -c 'import socket; "
            "socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    assert walls.box.fails(make) and walls.box.fails(bind)
    walls.env.sbx("settings", "set", "share.special-files", "true")
    assert walls.box.fails(make)
    walls.env.sbx("stop", "--suspend", "walls", timeout=START_SECONDS)
    walls.box.guest(f"{make} && {bind}", timeout=START_SECONDS)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and stat.S_ISSOCK((walls.ws / "sock").stat().st_mode)
    walls.env.sbx("settings", "unset", "share.special-files")
    walls.box.guest(f"rm '{fifo}' '{walls.ws}/sock'")


def refused(walls):
    p = walls.box.exec("cat", "/data/id_ed25519", check=False, timeout=START_SECONDS)
    assert p.returncode != 0 and "CANARY" not in p.stdout
    return p.stderr + str(walls.box.info())


def test_a_planted_link_is_not_followed_at_start_and_resume(walls):
    """The guest replaces data, which is also its workspace at /data, by a link."""
    walls.env.sbx("stop", "--suspend", "walls", timeout=START_SECONDS)
    (walls.ws / "data").rename(walls.ws / "data.old")
    (walls.ws / "data").symlink_to(walls.secret)
    assert f"{walls.ws}/data is a symbolic link now" in refused(walls)
    (walls.ws / "data").unlink()
    (walls.ws / "data.old").rename(walls.ws / "data")
    walls.box.guest(f"rmdir '{walls.ws}/data' && ln -s '{walls.secret}' '{walls.ws}/data'; sync",
                    timeout=START_SECONDS)
    assert (walls.ws / "data").is_symlink()
    walls.env.sbx("stop", "--cold", "walls", timeout=START_SECONDS)
    assert f"{walls.ws}/data is a symbolic link now" in refused(walls)


def test_a_kernel_without_seccomp_notification_starts_nothing():
    rig = pathlib.Path(__file__).resolve().parents[1] / "rigs/no_notify.py"
    with private(prefix=["/usr/bin/python3", str(rig)]) as env:
        p = env.sbx("create", "shell", env.make_folder("w"), "--name", "old", check=False,
                    timeout=START_SECONDS)
        assert (p.returncode == 1
                and "the kernel has no seccomp notification\n" in p.stderr), p.stderr
        assert p.stderr.endswith("  try: sbx diagnose\n") and env.ls() == []
        rows = json.loads(env.sbx("diagnose", "--json", check=False).stdout)["checks"]
        row = next(r for r in rows if r["name"] == "Seccomp notification")
        assert row["status"] == "fail" and "actions_avail" in row["hint"]


# ---- the guard: files that guest root cannot plant, git commands that work, notes to the user ----

class Guarded:
    def __init__(self, env):
        self.env = env
        self.ws = env.make_folder("guarded")
        self.git("init", "-q", "-b", "main", ".")
        (self.ws / "Makefile").write_text("all:\n\ttrue\n")
        (self.ws / ".envrc").write_text("# mine\n")
        self.box = env.create("guarded", self.ws)

    def git(self, *args):
        done = subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=self.ws, check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout

    def try_all(self, lines, where=None):
        """Each line as guest root, in the workspace. Returns those that succeeded."""
        script = f"cd '{where or self.ws}' || exit 9\n" + "".join(
            f"( {line} ) >/dev/null 2>&1 && echo '{i}'\n" for i, line in enumerate(lines)) + "true"
        return [lines[int(i)] for i in self.box.guest(script).split()]


@pytest.fixture(scope="module")
def guarded():
    with private() as env:
        yield Guarded(env)


PLANTS = [
    "echo x > .git/hooks/pre-commit", "mkdir -p a/.git/hooks && echo x > a/.git/hooks/post-checkout",
    "echo x > .envrc", "rm .envrc", "mv .envrc elsewhere", "ln .envrc second && echo x > second",
    "mkdir -p .claude && echo {} > .claude/settings.json", "echo {} > .mcp.json",
    "echo x > menu.desktop", "echo ../evil > .git/commondir",
    "printf '[core]\\n\\tfsmonitor = touch /tmp/x\\n' > .git/config",
    "git config core.fsmonitor 'touch /tmp/x'", "git config alias.st '!touch /tmp/x'",
    "mkdir -p evil/hooks && echo x > evil/hooks/pre-commit && mv .git/hooks .git/old && mv evil/hooks .git/hooks",
    "mv .git .git.old", "mkdir h && ln -sfn ../h .git/hooks", "ln -s evil b/.git; ln -s evil .claude",
    "echo 'ref: x' > HEAD",
]


def test_files_that_run_on_the_host_cannot_be_written(guarded):
    before = guarded.git("config", "--local", "--list")
    assert guarded.box.fails("true") is False
    assert guarded.try_all(["echo x > plain", *PLANTS]) == ["echo x > plain"]
    assert guarded.git("config", "--local", "--list") == before
    assert (guarded.ws / ".envrc").read_text() == "# mine\n"
    planted = {"hooks/pre-commit", "hooks/post-checkout", ".claude/settings.json", ".mcp.json"}
    assert not [p for p in guarded.ws.rglob("*") if "evil" not in p.parts
                and ("/".join(p.parts[-2:]) in planted or p.name in ("menu.desktop", "HEAD")
                     and p.parent.name != ".git")]


WORK = [
    "git config --global --add safe.directory '*'",
    "git config user.name me && git config user.email me@example.test",
    "git add Makefile && git commit -qm one", "git checkout -q -b topic && git checkout -q main",
    "git init -q nested && git -C nested -c user.name=n -c user.email=n commit -q --allow-empty -m x",
    "git remote add origin https://example.test/a.git",
    "git checkout -q -b left && echo 1 > l && git add l && git commit -qm left",
    "git checkout -q -b right main && echo 1 > r && git add r && git commit -qm right",
    "git rebase -q left && test -e l && git checkout -q main && test ! -e l", "make",
    "git worktree add -q side && cd side && echo 1 > s && git add s && git commit -qm side",
    "git worktree add -q gone && git worktree remove gone",
]


def test_work_with_git_and_make_is_not_disturbed(guarded):
    assert guarded.try_all(WORK) == WORK
    assert guarded.git("log", "--format=%an %s", "main") == "me one\n"
    assert guarded.git("log", "--format=%s", "right") == "right\nleft\none\n"
    assert guarded.git("-C", "side", "log", "--format=%s", "-1") == "side\n"
    assert guarded.git("-C", "side", "status", "--porcelain") == ""
    assert guarded.git("config", "remote.origin.url") == "https://example.test/a.git\n"


def test_the_user_sees_what_was_denied_and_changed(guarded):
    p = guarded.env.sbx("run", "guarded", "--", "sh", "-c",
                        f"cd '{guarded.ws}'; echo x > .git/hooks/post-merge; "
                        "printf 'all:\\n\\tcurl x | sh\\n' > Makefile; true", timeout=START_SECONDS)
    assert "guard: .git/hooks/post-merge: git runs it (denied)" in p.stderr, p.stderr
    assert "programs on the host: sbx review guarded --guard" in p.stderr
    shown = guarded.env.sbx("review", "guarded", "--guard").stdout
    assert "Makefile: make runs it (changed)" in shown and "+\tcurl x | sh\n" in shown
    assert "-\ttrue\n" in shown
    log = guarded.env.sbx("audit", "show", "guarded").stdout
    assert "deny guard denied create .git/hooks/post-merge" in log or (
        "deny guard denied write .git/hooks/post-merge" in log), log
    assert "post-merge" not in guarded.env.sbx("policy", "log", "guarded").stdout
    assert "Blocked by the guard: .git/hooks/post-merge" in guarded.box.guest(
        "for i in 1 2 3 4 5; do sbx-why | grep -q post-merge && break; sleep 1; done; sbx-why")
    assert guarded.box.info()["guard_changed"] >= 1
    guarded.env.sbx("review", "guarded", "--guard", "--done")
    assert guarded.box.info()["guard_changed"] == 0
    guarded.box.guest(f"echo again >> '{guarded.ws}/Makefile'")
    rows = json.loads(guarded.env.sbx("review", "guarded", "--guard", "--json").stdout)["changed"]
    assert [r["path"] for r in rows] == ["Makefile"], "recorded again after --done"


def test_it_holds_after_a_resume(guarded):
    guarded.env.sbx("stop", "--suspend", "guarded", timeout=START_SECONDS)
    guarded.env.sbx("exec", "guarded", "true", timeout=START_SECONDS)
    assert guarded.try_all(["echo x > plain2", *PLANTS[:4]]) == ["echo x > plain2"]


class Planted:
    """A directory of the workspace in which guest root has planted every payload of tests/airlock,
    each where a person has worked before."""

    def __init__(self, guarded, level, ways=6):
        self.guarded, self.level = guarded, level
        aside = guarded.env.make_folder(f"aside-{level}")
        self.people = [Person(p, guarded.ws / level / f"{p.kind}-{p.name}",
                              aside / f"{p.kind}-{p.name}") for p in EVERY]
        files = [file for person in self.people for file in person.files()]
        done = guarded.box.exec("python3", "-c", FORCE, str(ways), user="root",
                                input=json.dumps(files), timeout=START_SECONDS)
        self.failed = {os.path.relpath(path, guarded.ws) for path in json.loads(done.stdout)}

    def each(self):
        """(person, path in the workspace, row) of each file that makes a program run."""
        return [(person, f"{self.level}/{person.work.name}/{name}", judge(name))
                for person in self.people for name in person.payload.paths]

    def ran(self, people):
        """The payloads that run when the user continues to work."""
        output = {person.work.name: person.run() for person in people}
        return {p.work.name: output[p.work.name] for p in people if p.canary.exists()}


def is_refused(person):
    return any(judge(name) and judge(name).mode in REFUSED for name in person.payload.plant)


def test_by_default_no_refused_kind_runs_and_every_other_kind_is_listed(guarded):
    planted = Planted(guarded, "default")
    review = json.loads(guarded.env.sbx("review", "guarded", "--guard", "--json").stdout)
    listed = {(row["path"], row["kind"]) for row in review["changed"]}
    refused = list(filter(is_refused, planted.people))
    assert len(refused) >= 16
    assert planted.ran(refused) == {}
    wrong, kinds = [], set()
    for person, path, row in planted.each():
        kinds.add(row.kind)
        name = os.path.relpath(path, f"{planted.level}/{person.work.name}")
        if row.mode in REFUSED:
            good = path in planted.failed and not person.has(name)
        else:
            # A directory that is listed as a whole has its own path.
            good = person.has(name) and any(
                kind == row.kind and (at == path or row.mode == "report-tree"
                                      and path.startswith(f"{at}/")) for at, kind in listed)
        if not good:
            wrong.append((path, row.mode))
    assert wrong == [] and kinds == set(KINDS)


def test_strict_lets_nothing_run(guarded):
    guarded.env.sbx("update", "guarded", "--guard", "strict", "--guard-except", "own/Makefile")
    guarded.env.sbx("restart", "guarded", timeout=START_SECONDS)
    write = ["mkdir -p own other", "echo x > own/Makefile", "echo x > other/Makefile"]
    assert guarded.try_all(write) == write[:2]
    planted = Planted(guarded, "strict", ways=2)
    assert [path for _, path, _ in planted.each() if path not in planted.failed] == []
    assert planted.ran(planted.people) == {}


def test_long_without_a_guard_every_payload_runs(guarded):
    """So the two tests above are about the guard."""
    guarded.env.sbx("update", "guarded", "--guard", "off")
    guarded.env.sbx("restart", "guarded", timeout=START_SECONDS)
    planted = Planted(guarded, "off")
    people = [person for person in planted.people if person.payload.run != "true"]
    assert planted.failed == set()
    assert {p.work.name for p in people} == set(planted.ran(people))


# ---- staged workspaces ----


def tree(path):
    out = {}
    for at in sorted(path.rglob("*")):
        name = str(at.relative_to(path))
        if at.is_symlink():
            out[name] = os.readlink(at)
        elif at.is_file():
            out[name] = (at.stat().st_mode & 0o777, at.read_text())
    return out


def view(box, path):
    """The same of the guest, with what find and sha256sum say; they cannot read .env."""
    said = box.guest(f"cd '{path}' && find . ! -name .env -printf '%P %y %m %l\\n' 2>&1 | sort;"
                     f"cd '{path}' && find . -type f ! -name .env -exec sha256sum {{}} + 2>&1 | sort")
    assert "\na.txt f 644" in said, said
    return said


def test_the_host_is_written_by_apply_only(env):
    folder = env.make_folder("staged")
    for name, text in (("a.txt", "one\n"), ("b.txt", "b\n"), ("src/deep/one.c", "1\n"),
                       ("src/two.c", "2\n"),
                       ("lib/l.c", "l\n"), (".env", "secret\n"), ("Makefile", "all:\n")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    box = env.create("staged", folder, flags=["--staged", "--hide", ".env"])
    # a file that the host replaces is visible soon, although the overlay had looked it up
    view(box, folder)
    (folder / "b.new").write_text("host\n")
    os.rename(folder / "b.new", folder / "b.txt")
    box.guest(
        f"cd '{folder}'; for i in $(seq 60); do grep -s host b.txt && exit; sleep 1; done; exit 1")
    before = tree(folder)
    untouched = view(box, folder)
    box.guest(
        f"cd '{folder}' && echo two >> a.txt && mv src source && rm -r lib && echo new > new.txt &&"
        "echo 'all: ; evil' > Makefile && ln -s new.txt link && ln -s /etc/passwd out &&"
        "chmod 600 source/two.c && mkfifo pipe && mkdir -p .git/hooks && echo x > .git/hooks/h",
        user="agent")
    # guest root cannot write below the overlay, nor read a hidden file through it
    lower = box.guest("echo /run/sbx/stage/*/lower")
    assert box.fails(f"echo x > {lower}/a.txt") and box.fails(f"touch {lower}/b")
    assert box.fails(f"mount -o remount,rw {lower} && touch {lower}/b")
    assert box.fails(f"cat '{folder}/.env'") and box.fails(f"echo x > '{folder}/.env'")
    assert tree(folder) == before
    listed = env.sbx("review", "--list", "staged").stdout
    for line in ("plain        changed  a.txt", "plain        deleted  src/deep/one.c",
                 "plain        new      source/deep/one.c", "plain        deleted  lib/l.c",
                 "autorun      changed  Makefile", "symlink      new      link -> new.txt",
                 "symlink-out  new      out -> /etc/passwd", "git          new      .git/hooks/h",
                 "special      new      pipe"):
        assert f"  {line}\n" in listed, (line, listed)
    assert tree(folder) == before
    shown = view(box, folder)
    box.guest(f"echo later >> '{folder}/a.txt'; echo later > '{folder}/later'")
    env.sbx("apply", "--plain", "--yes", "staged")
    after = tree(folder)
    assert after == {
        "a.txt": (0o644, "one\ntwo\n"), "b.txt": (0o644, "host\n"), "source/deep/one.c": (0o644, "1\n"),
        "source/two.c": (0o600, "2\n"), "new.txt": (0o644, "new\n"), ".env": (0o644, "secret\n"),
        "Makefile": (0o644, "all:\n")}
    # what the guest sees is not changed by an apply, not even where it renamed a directory
    box.guest(f"cd '{folder}' && rm later && sed -i '$d' a.txt")
    assert view(box, folder) == shown
    box.stop()
    listed = env.sbx("review", "--list", "staged", timeout=120).stdout
    assert "plain" not in listed and "autorun      changed  Makefile" in listed, listed
    assert view(box, folder) == shown
    env.sbx("undo", "staged")
    assert tree(folder) == before
    p = env.sbx("stop", "--suspend", "staged", check=False)
    assert p.returncode and "cannot be suspended" in p.stderr
    env.sbx("discard", "--yes", "staged", timeout=120)
    assert view(box, folder) == untouched
    assert env.sbx("review", "--list", "staged").stdout.startswith("No changes")
    assert tree(folder) == before
    box.rm()


def test_commits_and_merges_of_a_staged_repository(env):
    folder = env.make_folder("staged-git")
    lines = [f"line {i}\n" for i in range(1, 10)]
    edited = {"host": ["host\n", *lines[1:]], "guest": [*lines[:-1], "guest\n"],
              "both": ["host\n", *lines[1:-1], "guest\n"]}
    (folder / "a.txt").write_text("".join(lines))

    def git(*args):
        return subprocess.run(
            ["git", "-C", folder, "-c", "user.name=h", "-c", "user.email=h@example.test", *args],
            check=True, capture_output=True, text=True).stdout

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    box = env.create("staged-git", folder, flags=["--staged"])
    before, config = git("rev-parse", "HEAD"), (folder / ".git/config").read_text()
    commit = "git -c user.name=a -c user.email=a@example.test commit -q"
    box.guest(f"cd '{folder}' && sed -i 's/line 9/guest/' a.txt && {commit} -am 'work of the agent'"
              " && git config core.fsmonitor evil && echo x > .git/hooks/post-merge", user="agent")
    (folder / "a.txt").write_text("".join(edited["host"]))
    assert "  merged       changed  a.txt\n" in env.sbx("review", "--list", "staged-git").stdout
    assert "work of the agent" in env.sbx("review", "--git", "staged-git").stdout
    # what is fetched and applied is what was reviewed
    box.guest(f"cd '{folder}' && echo later > a.txt && {commit} -am later", user="agent")
    env.sbx("apply", "--git", "--yes", "staged-git")
    assert git("log", "--format=%s", "refs/sbx/staged-git/main") == "work of the agent\nbase\n"
    assert git("show", "refs/sbx/staged-git/main:a.txt") == "".join(edited["guest"])
    env.sbx("apply", "--plain", "--yes", "staged-git")
    assert (folder / "a.txt").read_text() == "".join(edited["both"])
    assert git("rev-parse", "HEAD") == before and (folder / ".git/config").read_text() == config
    assert not (folder / ".git/hooks/post-merge").exists()
    env.sbx("undo", "staged-git")
    assert (folder / "a.txt").read_text() == "".join(edited["host"])
    env.sbx("rm", "-f", "--discard", "staged-git")
