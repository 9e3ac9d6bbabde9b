# SPDX-License-Identifier: Apache-2.0
"""The Debian package: its content, the output of lintian, and the messages that a new user of a
bare Debian 12 reads.

The package is built once with tools/package, from this tree. The bare Debian is a directory
(bareroot), in which no user can open /dev/kvm, no user has a template, and one user has no
subordinate ids. For each missing item a program must print the command to run, immediately, and
exit.
"""
import json
import os
import pathlib
import re
import subprocess
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
BARE = HERE / "bareroot"
BUILD_SECONDS, ROOT_SECONDS, INSTALL_SECONDS, COMMAND_SECONDS = 1800, 960, 600, 60
# What no user is to see.
CRASH = re.compile(
    r"Traceback|Assertion|core dumped|Segmentation|Aborted|stack smashing|double free|\(null\)|%s")
# Tags that debian/sbx.lintian-overrides silences, each with its reason there. A new one is a
# decision.
OVERRIDDEN = {"shared-library-lacks-prerequisites", "embedded-library", "spelling-error-in-binary",
              "non-standard-executable-perm",
              "executable-is-not-world-readable", "uses-dpkg-database-directly",
              "python3-script-but-no-python3-dep", "script-not-executable",
              "initial-upload-closes-no-bugs",
              "unknown-field"}


def run(argv, seconds, **more):
    return subprocess.run([str(a) for a in argv], timeout=seconds, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


@pytest.fixture(scope="session")
def bare_tree(tmp_path_factory):
    """The root directory is created while the package is built; join() waits for it."""
    root = pathlib.Path(tmp_path_factory.mktemp("bare")) / "root"
    os.chmod(root.parent, 0o755)
    done = {}
    thread = threading.Thread(
        target=lambda: done.update(made=run([BARE, "make", root], ROOT_SECONDS)))
    thread.start()

    def join():
        thread.join()
        assert done["made"].returncode == 0, done["made"].stdout
        return root
    yield join
    thread.join()
    run([BARE, "remove", root], ROOT_SECONDS)


@pytest.fixture(scope="session")
def package(bare_tree, tmp_path_factory):
    """The directory with the .deb and the .changes; SBX_PACKAGE=DIR is one that tools/package has
    filled."""
    if os.environ.get("SBX_PACKAGE"):
        return pathlib.Path(os.environ["SBX_PACKAGE"])
    out = tmp_path_factory.mktemp("package")
    env = dict(os.environ)
    if os.path.isdir("/usr/lib/ccache"):
        env["PATH"] = f"/usr/lib/ccache:{env['PATH']}"
    built = run([TREE / "tools" / "package", out], BUILD_SECONDS, env=env)
    assert built.returncode == 0, built.stdout
    return out


@pytest.fixture(scope="session")
def deb(package):
    found = list(package.glob("sbx_*.deb"))
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="session")
def unpacked(deb, tmp_path_factory):
    to = tmp_path_factory.mktemp("unpacked")
    assert run(["dpkg-deb", "-x", deb, to], 60).returncode == 0
    return to


class Bare:
    """The bare Debian with the package in it."""

    def __init__(self, root):
        self.root = root

    def as_root(self, script, seconds=COMMAND_SECONDS):
        return run([BARE, "enter", self.root, "bash", "-c", script], seconds,
                   stdin=subprocess.DEVNULL)

    def user(self, command, name="me", before="true"):
        """The output of a command for a user without a terminal; root runs `before` first."""
        done = run([BARE, "enter", self.root, "bash", "-c", f'{before}; exec su - {name} -c "$1"',
                    "-", command], COMMAND_SECONDS,
                   stdin=subprocess.DEVNULL)
        assert not CRASH.search(done.stdout), done.stdout
        return done

    def typed(self, command, text, name="me"):
        """The same on a terminal, where the text is typed."""
        done = run([BARE, "enter", self.root, "su", "-", name, "-c",
                    f"script -qec '{command}' /dev/null"], COMMAND_SECONDS, input=text)
        assert not CRASH.search(done.stdout), done.stdout
        done.stdout = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", done.stdout)
        return done


@pytest.fixture(scope="session")
def bare(bare_tree, deb):
    """dpkg -i, apt-get -f install, and two users: one as useradd makes them, one without
    subordinate ids."""
    it = Bare(bare_tree())
    with open(deb, "rb") as f:
        copied = run([BARE, "enter", it.root, "sh", "-c", "cat >/root/sbx.deb"], 60, stdin=f)
    assert copied.returncode == 0
    done = it.as_root(
        "apt-get -qq update && ! dpkg -i /root/sbx.deb && DEBIAN_FRONTEND=noninteractive apt-get -y -q"
                      " --no-install-recommends -f install", INSTALL_SECONDS)
    assert done.returncode == 0, done.stdout
    done = it.as_root(
        "useradd -m -s /bin/bash me && useradd -m -s /bin/bash user && sed -i /^user:/d /etc/subuid /etc/subgid &&"
                      " mkdir /home/me/p /home/user/p && chown me: /home/me/p && chown user: /home/user/p")
    assert done.returncode == 0, done.stdout
    return it


def programs():
    """The helpers as tools/devenv lists them."""
    text = (TREE / "tools" / "devenv").read_text(encoding="utf-8")
    return set(re.findall(r'"([\w-]+)"', re.search(r"PROGRAMS = \((.*?)\)", text, re.S).group(1)))


# of data/: files without directories
LISTS = ("policies", "services", "agents", "airlock", "apis", "openapi")


def test_contents(unpacked):
    files = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if not p.is_dir()}
    helpers = {f"usr/libexec/sbx/{name}" for name in programs() - {"sbx", "git-remote-sbx"}}
    recipe = {f"usr/libexec/sbx/{p.relative_to(TREE)}" for p in (TREE / "image").rglob("*")
              if p.is_file() and p.name not in ("README", "meson.build")}
    data = {f"usr/share/sbx/{p.parent.name}/{p.name}" for part in LISTS
            for p in (TREE / "data" / part).iterdir()
            if p.name != "meson.build"}
    data |= {f"usr/share/sbx/{p.relative_to(TREE / 'data')}" for part in ("probes", "prove")
             for p in (TREE / "data" / part).rglob("*")
             if p.is_file() and p.name not in ("README", "meson.build")}
    pages = {f"usr/share/man/man1/{p.stem}.gz" for p in (TREE / "man").glob("*.scd")}
    others = {"usr/bin/sbx", "usr/bin/git-remote-sbx", "usr/libexec/sbx/template-build",
              "usr/libexec/sbx/template-oci",
              "usr/share/bash-completion/completions/sbx", "usr/share/zsh/site-functions/_sbx",
              "usr/share/fish/vendor_completions.d/sbx.fish", "usr/lib/systemd/user/sbxd.socket",
              "usr/lib/systemd/user/sbxd.service",
              "usr/share/doc/sbx/copyright", "usr/share/doc/sbx/changelog.gz",
              "usr/share/doc/sbx/changelog.Debian.gz",
              "usr/share/doc/sbx/README.md.gz", "usr/share/doc/sbx/THREAT_MODEL.md.gz",
              "usr/share/lintian/overrides/sbx"}
    assert len(data) > 15 and len(pages) > 15 and len(helpers) >= 10
    assert files == helpers | recipe | data | pages | others


def test_modes(unpacked):
    """Nothing has more than it needs; who cannot read the vault, origin, sbxd and the keeper cannot
    trace them."""
    special = {f"usr/libexec/sbx/{name}": 0o711
               for name in ("sbx-vault", "sbx-origin", "sbxd", "sbx-keeper")}
    for path in unpacked.rglob("*"):
        name = str(path.relative_to(unpacked))
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            assert not os.readlink(path).startswith("/"), name
        elif path.is_dir():
            assert mode == 0o755, name
        else:
            assert mode == special.get(name, mode) and mode in (0o755, 0o644, 0o711), (
                (name, oct(mode)))
            assert (mode == 0o711) == (name in special), (name, oct(mode))


def test_no_path_of_the_build(unpacked):
    """No file names the scratch directory of tools/package or this tree."""
    marks = [b"sbx-package.", str(TREE).encode(), b"obj-sbx"]
    for path in unpacked.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes() if os.access(path, os.R_OK) else b""
            assert content, path
            for mark in marks:
                assert mark not in content, (path, mark)


def test_depends(deb):
    """The programs that template-build needs are dependencies; no dependency installs a desktop."""
    fields = run(["dpkg-deb", "-f", deb], 30).stdout
    depends = re.search(r"^Depends: (.*)$", fields, re.M).group(1)
    asked = set(re.findall(r"^\tcheck_tool \S+ (\S+)$",
                           (TREE / "image" / "template-build").read_text(encoding="utf-8"), re.M))
    asked -= {"util-linux"}  # essential
    assert asked and all(re.search(rf"(^|[ ,]){name}\b", depends) for name in asked), (
        (asked, depends))
    assert not re.search(r"gtk|gnome|qemu-system-gui",
                         fields.replace("Suggests: bash-completion, gnome-keyring", ""))
    assert re.search(r"^Recommends: git, openssh-client, skopeo, umoci$", fields, re.M)


def test_what_is_linked_statically_is_named(deb):
    """A fixed library is not in the programs before they are built again."""
    using = run(["dpkg-deb", "-f", deb, "Static-Built-Using"], 30).stdout
    names = {re.fullmatch(r"(\S+) \(= \S+\)", item).group(1) for item in using.strip().split(", ")}
    names = {re.sub(r"^gcc-\d+$", "gcc", n) for n in names} - {"node-undici", "llhttp"}
    assert names == {"brotli", "c-ares", "gcc", "glibc", "libidn2", "libseccomp", "libunistring",
                     "libzstd", "nghttp2", "openssl", "zlib"}
    assert set(run(["dpkg-deb", "-f", deb, "Built-Using"],
                   30).stdout.strip().split(", ")) <= set(using.strip().split(", "))


def test_each_file_is_compiled_with_fortify_level_3(package):
    log = (package / "log").read_text(encoding="utf-8", errors="replace")
    levels = [set(re.findall(r"-D_FORTIFY_SOURCE=(\d)", line)) for line in log.splitlines()
              if re.match(r"\[\d+/\d+\] .*cc .* -c \S+\.c$", line)]
    assert len(levels) > 300 and all(found == {"3"} for found in levels), levels[:9]


def test_lintian(package):
    changes = next(package.glob("*.changes"))
    done = run(["lintian", "-I", "--pedantic", "--show-overrides", changes], 300)
    said = [line for line in done.stdout.splitlines() if re.match(r"[EWIP]: ", line)]
    assert not said, done.stdout
    silenced = set(re.findall(r"^O: \S+: (\S+)", done.stdout, re.M))
    assert silenced == OVERRIDDEN, silenced ^ OVERRIDDEN


def test_version_and_help(bare):
    assert bare.user("sbx version").returncode == 0
    assert "sbx run claude" in bare.user("sbx help").stdout
    assert bare.as_root("test -s /usr/share/bash-completion/completions/sbx").returncode == 0


def test_diagnose_names_the_next_command(bare):
    done = bare.user("sbx diagnose --json")
    checks = json.loads(done.stdout)["checks"]
    status = {c["name"]: c["status"] for c in checks}
    assert status["Virtualization"] == "warn" and status["Template"] == "warn", status
    assert "fail" not in status.values(), status
    for check in checks:
        assert check["status"] != "warn" or check["hint"], check
    assert "not an isolation boundary" in done.stdout


def test_home_is_refused_with_a_way(bare):
    done = bare.user("sbx run shell")
    assert (done.returncode == 125 and "refusing to share '/home/me'" in done.stdout
            and "mkdir -p ~/project" in done.stdout)


def test_first_run_without_a_terminal(bare):
    """Each missing thing in its turn: policy, KVM, template."""
    go = "cd p && sbx run shell"
    done = bare.user(go)
    assert done.returncode == 125 and "sbx policy set-default balanced" in done.stdout, done.stdout
    assert bare.user("sbx policy set-default balanced").returncode == 0
    done = bare.user(go)
    assert done.returncode == 125, done.stdout
    assert "KVM is not available" in done.stdout, done.stdout
    assert "not an isolation boundary" in done.stdout, done.stdout
    assert "sbx settings set vm.accel tcg" in done.stdout and "--accel tcg" in done.stdout
    done = bare.user("cd p && sbx run --accel kvm shell")
    assert done.returncode == 125 and "KVM is not available" in done.stdout, done.stdout
    done = bare.user("cd p && sbx run --accel tcg shell")
    assert done.returncode == 125 and "sbx template build" in done.stdout, done.stdout
    assert "set" not in bare.user("sbx settings get vm.accel").stdout.replace("settings", "")


def test_kvm_of_somebody_else(bare):
    done = bare.user("sbx policy set-default balanced && cd p && sbx run shell",
                     before="touch /dev/kvm; chmod 600 /dev/kvm")
    assert done.returncode == 125, done.stdout
    assert "cannot open /dev/kvm: permission denied" in done.stdout, done.stdout
    assert "sudo usermod -aG kvm" in done.stdout, done.stdout
    status = bare.user("sbx diagnose", before="touch /dev/kvm; chmod 600 /dev/kvm").stdout
    assert "usermod -aG kvm" in status, status


def test_subordinate_ids(bare):
    """The user me has 100000-165535."""
    done = bare.user("sbx template build", name="user")
    give = "sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071 user"
    assert done.returncode == 1 and give in done.stdout, done.stdout
    assert give in bare.user("sbx diagnose", name="user").stdout


def test_questions_on_a_terminal(bare):
    """Policy, emulation, template; no is no, and the last word is a command."""
    done = bare.typed("cd p && sbx run shell", "\nn\n", name="user")
    assert "Policy set to balanced" in done.stdout and "not an isolation boundary" in done.stdout, (
        done.stdout)
    assert "Use software emulation from now on" in done.stdout
    assert "try: sbx settings set vm.accel tcg" in done.stdout.split("[y/N]")[-1]
    done = bare.typed("cd p && sbx run shell", "y\nn\n", name="user")
    assert "Build it now?" in done.stdout and "try: sbx template build" in done.stdout, done.stdout
    assert bare.user("sbx settings get vm.accel", name="user").stdout.strip() == "tcg"


def test_a_missing_program_is_named_with_its_package(bare):
    gone = ("mv /usr/bin/mmdebstrap /usr/bin/mmdebstrap.away; "
            "trap 'mv /usr/bin/mmdebstrap.away /usr/bin/mmdebstrap' EXIT")
    done = bare.as_root(f"{gone}; su - me -c 'sbx template build'; su - me -c 'sbx diagnose'")
    assert done.stdout.count("sudo apt-get install mmdebstrap") == 2, done.stdout
    assert not CRASH.search(done.stdout)


def test_z_removal_leaves_nothing(bare):
    done = bare.as_root(
        "dpkg -P sbx && find / -xdev -name '*sbx*' -not -path '/home/*' -not -path '/root/*' -not -path '/proc/*'")
    left = [line for line in done.stdout.splitlines() if line.startswith("/")]
    assert done.returncode == 0 and left == [], done.stdout

