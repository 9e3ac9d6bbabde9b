# SPDX-License-Identifier: Apache-2.0
"""Templates from OCI images and Dockerfiles: images are strangers', and there is no Docker on the
host."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time

import pytest
from installation import BUILD, START_SECONDS, TREE, private, template_store

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rigs/lab"))
from ociimage import Image, busybox, entry, folder, hard, link  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("skopeo") or not shutil.which("umoci"),
                                reason="needs skopeo and umoci")
IMAGE_SECONDS = 120
BUILD_SECONDS = 600
REGISTRY = """version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: '127.0.0.1:{port}'}}
{auth}
"""


class Home:
    """An installation with the base template and its own store."""

    def __init__(self, env):
        self.env, self.made = env, 0
        self.templates = env.folder / "data" / "sbx" / "templates"
        self.templates.mkdir(parents=True, exist_ok=True)
        if not (self.templates / "debian").exists():
            (self.templates / "debian").symlink_to((template_store() / "debian").resolve())

    def write(self, image):
        self.made += 1
        return image.write(self.env.folder / f"image-{self.made}")

    def build(self, ref, name, *flags, check=True, env=None):
        return self.env.sbx("template", "build", "--image", ref, *flags, name, check=check,
                            timeout=IMAGE_SECONDS, env=env)

    def refused(self, image, name="never"):
        """The error for a rejected image."""
        done = self.build(image if isinstance(image, str) else self.write(image), name, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        assert not (self.templates / name).exists()
        assert self.left() == []
        return done.stderr

    def manifest(self, name):
        return json.loads((self.templates / name / "manifest.json").read_text())

    def left(self):
        """What a build left behind."""
        store = self.templates / ".store"
        names = list(os.listdir(self.templates)) + (os.listdir(store) if store.exists() else [])
        return [n for n in names if n.startswith((".oci", ".save", ".new"))]

    def debugfs(self, name, command):
        """Of the lowest disk of a template."""
        return subprocess.run(["/usr/sbin/debugfs", "-R", command,
                               self.templates / name / "root.img"], check=True, capture_output=True,
                              timeout=30).stdout.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def home():
    with private(templates=False) as env:
        yield Home(env)


@contextlib.contextmanager
def registry(where, auth=""):
    where.mkdir()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (where / "config.yml").write_text(REGISTRY.format(folder=where, port=port, auth=auth))
    server = subprocess.Popen(["docker-registry", "serve", where / "config.yml"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < deadline and server.poll() is None, (
                "docker-registry did not start")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def push(ref, to, *flags):
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", *flags,
                    ref, f"docker://{to}"], check=True,
                   capture_output=True, timeout=60)


def tiny(**config):
    return Image(**config).layer(busybox())


# ---- where images come from ----

def test_an_image_of_a_registry_becomes_a_template(home):
    image = tiny(Env=["FOO=a b", "PATH=/opt/x:/bin", "BAD LINE=1", "X"], User="nobody",
                 Cmd=["/bin/sh"])
    image.layer([entry("opt/x/tool", b"#!/bin/sh\necho tool\n", 0o755)])
    ref = home.write(image)
    with registry(home.env.folder / "registry") as at:
        push(ref, f"{at}/team/tiny:1")
        done = home.build(f"docker://{at}/team/tiny:1", "tiny", "--plain-http")
        assert "✓" in done.stdout and "sbx create shell" in done.stdout
        assert home.build(f"docker://{at}/team/tiny:1", "never", check=False).returncode == 1, (
            "TLS is not optional by default")
        assert home.build(f"docker://{at}/team/none:1", "never", "--plain-http",
                          check=False).returncode == 1
        made = home.manifest("tiny")
        assert (made["kind"], made["image"],
                made["digest"]) == ("oci", f"docker://{at}/team/tiny:1", image.digest)
        assert made["env"] == ["FOO=a b", "PATH=/opt/x:/bin"]
        assert made["config"] == {"user": "nobody", "workdir": None, "entrypoint": None,
                                  "cmd": ["/bin/sh"]}
        home.build(f"docker://{at}/team/tiny@{image.digest}", "pinned", "--plain-http")
    # the same image is the same template
    home.build(ref, "again")
    ids = {home.manifest(name)["id"] for name in ("tiny", "pinned", "again")}
    assert len(ids) == 1
    assert home.left() == []


def test_a_password_is_used_only_when_said(home):
    where = home.env.folder / "login"
    made = subprocess.run(["htpasswd", "-nbB", "me", "correct-horse"], capture_output=True,
                          text=True, check=True).stdout
    (home.env.folder / "htpasswd").write_text(made)
    docker = home.env.folder / "docker"
    docker.mkdir()
    with registry(where,
                  f"auth: {{htpasswd: {{realm: lab, path: {home.env.folder}/htpasswd}}}}") as at:
        push(home.write(tiny()), f"{at}/private:1", "--dest-creds", "me:correct-horse")
        (docker
         / "config.json").write_text(
            json.dumps({"auths": {at: {"auth": "bWU6Y29ycmVjdC1ob3JzZQ=="}}}))
        env = {"DOCKER_CONFIG": str(docker)}
        done = home.build(f"docker://{at}/private:1", "never", "--plain-http", check=False, env=env)
        assert done.returncode == 1 and "--use-docker-login" in done.stderr
        home.build(f"docker://{at}/private:1", "private", "--plain-http", "--use-docker-login",
                   env=env)
    assert "correct-horse" not in json.dumps(home.manifest("private"))


@pytest.mark.parametrize("ref,flags,says", [
    ("debian:12", [], "docker://"),
    ("docker://debian", [], "docker.io/library/debian"),
    ("docker://registry.example/x:1", ["--plain-http"], "requires a registry on this host"),
    ("docker://127.0.0.1.example:5000/x", ["--plain-http"], "requires a registry on this host"),
    ("docker-daemon:x:1", [], "invalid image 'docker-daemon:x:1': expected docker://"),
    ("oci:/nowhere:it", [], "cannot download oci:/nowhere:it"),
])
def test_references_that_are_refused(home, ref, flags, says):
    done = home.build(ref, "never", *flags, check=False)
    assert done.returncode == 1 and says in done.stderr, done.stderr


@pytest.mark.parametrize("args,says", [
    (["--image", "oci:x"], "missing NAME"),
    (["--image", "oci:x", "debian"], "base template"),
    (["--image", "oci:x", "--file", "Dockerfile", "n1"], "mutually exclusive"),
    (["--image", "oci:x", "../n1"], "invalid template name"),
])
def test_wrong_command_lines(home, args, says):
    done = home.env.sbx("template", "build", *args, check=False)
    assert done.returncode == 2 and says in done.stderr


# ---- hostile images ----

@pytest.fixture
def canary(home):
    """A directory of the user that an image tries to change or to read."""
    where = home.env.work / "canary"
    where.mkdir(exist_ok=True)
    (where / "secret").write_text("root:SECRETSECRET:0:0::/root:/bin/sh\n")
    before = sorted(os.listdir(where)), (where / "secret").stat()
    yield where
    after = sorted(os.listdir(where)), (where / "secret").stat()
    assert before[0] == after[0] and before[1] == after[1], "the image reached a file of the user's"


def climbing(canary):
    return ["../" * 40 + str(canary)[1:] + "/planted", str(canary) + "/planted"]


HOSTILE = {
    "path with dots": lambda c: [entry(climbing(c)[0], b"x")],
    "absolute path": lambda c: [entry(climbing(c)[1], b"x")],
    "file through a link": lambda c: [link("out", str(c)), entry("out/planted", b"x")],
    "file through a climbing link": lambda c: [link("out", "../" * 40 + str(c)[1:]),
                                               entry("out/planted", b"x")],
    "hard link to a file of the user's": lambda c: [hard("stolen",
                                                         "../" * 40 + str(c)[1:] + "/secret")],
    "hard link, absolute": lambda c: [hard("stolen", str(c) + "/secret")],
    "whiteout outside": lambda c: [entry("../" * 40 + str(c)[1:] + "/.wh.secret")],
    "whiteout through a link": lambda c: [link("out", str(c)), entry("out/.wh.secret")],
    "opaque through a link": lambda c: [link("out", str(c)), entry("out/.wh..wh..opq")],
    "etc is a link": lambda c: [entry(".wh.etc"), link("etc", str(c))],
    "etc is a climbing link": lambda c: [entry(".wh.etc"), link("etc", "../" * 40 + str(c)[1:])],
    "passwd is a link": lambda c: [link("etc/passwd", str(c) + "/secret")],
    "passwd is a fifo": lambda c: [entry("etc/passwd", type=tarfile.FIFOTYPE)],
    "passwd is endless": lambda c: [entry("etc/passwd", b"a:x:1:1::/:/x\n" * 100000)],
    "home is a link": lambda c: [link("home", str(c))],
    "modules are a link": lambda c: [folder("usr/lib"), link("usr/lib/modules", str(c))],
    "resolv.conf is a link": lambda c: [link("etc/resolv.conf", str(c) + "/secret")],
    "new name is a link": lambda c: [link("etc/resolv.conf.sbx-new", str(c) + "/planted"),
                                     link("etc/passwd.sbx-new", str(c) + "/secret")],
    "certificates are a link": lambda c: [folder("etc/ssl"), link("etc/ssl/certs", str(c))],
    "link in a circle": lambda c: [entry(".wh.etc"), link("etc", "etc")],
    "tmp is a file": lambda c: [entry("tmp", b"x")],
    "a device": lambda c: [entry("dev/mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1)],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_layer_reaches_nothing(home, canary, kind):
    image = tiny().layer(HOSTILE[kind](canary))
    done = home.build(home.write(image), "hostile", "--force", check=False)
    assert done.returncode in (0, 1), done.stderr
    if done.returncode == 1:
        assert "try:" in done.stderr and "Traceback" not in done.stderr
    else:
        assert "SECRETSECRET" not in home.debugfs("hostile", "cat /etc/passwd")
        assert "Type: regular" in home.debugfs("hostile",
                                               "stat /etc/passwd") or "symlink" in home.debugfs(
            "hostile", "stat /etc")
    assert home.left() == []


def evil_base(folder, climb):
    """A base template as `sbx template load` takes it, whose ext4 contains a name that leaves every
    directory."""
    tree = folder / "tree"
    modules = tree / "usr/lib/modules/6.0-evil"
    modules.mkdir(parents=True)
    (tree / "etc/ssl/certs").mkdir(parents=True)
    (modules / "modules.dep").write_text("x\n")
    (tree / "etc/ssl/certs/ca-certificates.crt").write_text("x\n")
    stand_in = "A" * len(climb)
    (modules / stand_in).write_text("planted\n")
    base = folder / "base"
    base.mkdir()
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^metadata_csum", "-d", tree,
                    base / "root.img", "8M"], check=True)
    data = (base / "root.img").read_bytes()
    assert data.count(stand_in.encode()) == 1
    (base / "root.img").write_bytes(data.replace(stand_in.encode(), climb.encode()))
    for name in ("docker.img", "vmlinuz", "modules.cpio"):
        (base / name).write_bytes(b"x")
    (base / "manifest.json").write_text(json.dumps({"kernel": "6.0-evil"}))
    return base


def test_a_base_template_with_climbing_names_reaches_nothing(home, canary, tmp_path):
    """debugfs joins the names of a directory to its output path, unchecked."""
    base = evil_base(tmp_path, "../" * 20 + str(canary)[1:] + "/planted")
    rdump = ["/usr/sbin/debugfs", "-R", f"rdump /usr/lib/modules/6.0-evil {tmp_path}",
             base / "root.img"]
    subprocess.run(rdump, check=True, capture_output=True)
    (canary / "planted").unlink()  # the control: it would
    done = subprocess.run([TREE / "image/template-oci", "--image", home.write(tiny()), "--base",
                           base, "--out", tmp_path / "out", "--graft",
                           BUILD / "src/guest/graft/sbx-graft", "--sudo",
                           BUILD / "src/guest/sudo/sbx-sudo"], capture_output=True, text=True,
                          timeout=IMAGE_SECONDS)
    assert done.returncode in (0, 1), done.stderr
    assert not (canary / "planted").exists()
    assert not list(tmp_path.glob("out.tmp.*"))


IN_JAIL = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def no(what, call):
    try:
        if call() == -1:
            raise OSError(ctypes.get_errno(), "")
    except OSError as e:
        return print(what, "refused:", e.errno)
    print(what, "WAS POSSIBLE")
no("reading home", lambda: os.listdir("/home"))
no("writing the root", lambda: open("/new", "w"))
no("writing /usr", lambda: open("/usr/bin/new", "w"))
no("writing what is read-only", lambda: open("/kit/graft", "w"))
no("a mount", lambda: libc.mount(b"x", b"/scratch", b"tmpfs", 0, None))
no("a user namespace", lambda: libc.unshare(0x10000000))
no("a mount namespace", lambda: libc.unshare(0x20000))
no("a socket", lambda: socket.socket())
no("a key", lambda: libc.syscall(248, b"user", b"x", b"x", 1, -3))
no("ptrace", lambda: libc.ptrace(16, 1, 0, 0))
open("/scratch/log", "w")
os.symlink("/etc/passwd", "/scratch/facts")
print("new privileges:", libc.prctl(39, 0, 0, 0, 0), "seccomp:", libc.prctl(21, 0, 0, 0, 0))
"""


def test_a_tool_that_was_taken_over_finds_a_jail(home, tmp_path):
    """A hole in umoci or mke2fs: what it may write is neither executed nor opened by the host
    afterwards."""
    for name in ("kit", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "kit/graft").write_text("ours")
    unshare = ["unshare", "--map-root-user", "--map-auto", "--mount", "--pid", "--fork",
               "--kill-child", "--net", "--ipc", "--uts", "--cgroup", "--"]
    done = subprocess.run([*unshare, BUILD / "src/guest/graft/sbx-graft", "--jail", "--ro",
                           f"{tmp_path}/kit:/kit", "--rw", f"{tmp_path}/scratch:/scratch",
                           "--", "/usr/bin/python3", "-c", IN_JAIL], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    assert "POSSIBLE" not in done.stdout and done.stdout.count("refused") == 10, done.stdout
    assert "new privileges: 1 seccomp: 2" in done.stdout
    assert (tmp_path / "kit/graft").read_text() == "ours"
    script = (TREE / "image/template-oci").read_text()
    rw = set(re.findall(r'--rw "([^":]*):', script))
    assert rw == {"$work/build/scratch", "$work/build/tree", "$work/root.img"}
    outside = [line for line in script.splitlines() if re.search("build/(scratch|tree)", line)
               and "--r" not in line]
    assert outside == [], "the host touches what a jailed tool may have written"


def test_owners_and_set_id_bits_are_the_images(home):
    """No user of the host can run them: during the build, only the user can access their
    directory."""
    image = tiny().layer([entry("opt/suid", b"x", 0o4755),
                          entry("opt/other", b"x", 0o2755, uid=1234, gid=65000)])
    home.build(home.write(image), "modes")
    assert "Mode:  04755" in home.debugfs("modes", "stat /opt/suid")
    other = home.debugfs("modes", "stat /opt/other")
    assert "User:  1234" in other and "Group: 65000" in other and "02755" in other
    assert "an ordinary user cannot create" in home.refused(
        tiny().layer([entry("opt/far", b"x", uid=1 << 20)]))


def test_too_large_is_refused_before_the_disk_is_full(home):
    bomb = tiny()
    bomb.layer([entry(f"opt/{i}", bytes(32 << 20)) for i in range(12)])
    done = home.build(home.write(bomb), "never", check=False, env={"SBX_IMAGE_MIB": "100"})
    assert done.returncode == 1 and "too large" in done.stderr, done.stderr
    assert home.left() == []


def test_images_that_cannot_work_are_refused_with_a_reason(home):
    assert "no shell /bin/sh" in home.refused(Image().layer([entry("app", b"x", 0o755)]))
    assert "its architecture is 's390x'" in home.refused(
        Image(architecture="s390x").layer(busybox()))
    assert "agent is root" in home.refused(
        Image().layer(busybox(entry("etc/passwd", b"agent:x:0:0::/root:/bin/sh\n"))))
    assert "cannot download" in home.refused(broken_layer(home))


def broken_layer(home):
    """One byte of a layer changed."""
    image = tiny()
    ref = home.write(image)
    blob = home.env.folder / f"image-{home.made}" / "blobs" / "sha256" / image.layers[0]["digest"][
        7:]
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.write_bytes(data)
    return ref


def test_an_interrupted_build_leaves_nothing(home):
    image = tiny().layer([entry(f"opt/{i}", os.urandom(1 << 20)) for i in range(64)])
    p = home.env.popen("template", "build", "--image", home.write(image), "never",
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, start_new_session=True)
    time.sleep(1)
    os.killpg(p.pid, signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    assert p.returncode != 0, out
    assert home.left() == [] and not (home.templates / "never").exists()


# ---- a sandbox of an image ----

def test_a_sandbox_of_a_small_image_works(home):
    """No bash, no sudo, no package manager, no Docker, no certificates: sbx provides everything it
    needs."""
    image = tiny(Env=["FOO=a b",
                      "PATH=/opt/x:/bin"]).layer([entry("opt/x/tool", b"#!/bin/sh\necho tool\n",
                                                        0o755)])
    home.build(home.write(image), "small", "--force")
    work = home.env.make_folder("small")
    box = home.env.create("small", work, flags=("--template", "small"))
    try:
        assert box.guest("whoami; tool; echo $FOO; touch made", user="agent") == "agent\ntool\na b"
        assert (work / "made").exists()
        assert box.guest("sudo id -u; sudo -u agent id -un", user="agent").split() == ["0", "agent"]
        assert int(box.guest("grep -c BEGIN /etc/ssl/certs/ca-certificates.crt")) > 50
        assert box.guest("test -e /usr/lib/modules/*/modules.dep && echo modules") == "modules"
        assert box.fails("docker version") and "not found" in box.exec("sh", "-c", "docker version",
                                                                       check=False).stderr
        # the proxy is reachable, and the policy applies
        assert "403" in box.exec("wget", "-O", "-", "http://never-allowed.example/",
                                 check=False).stderr
        box.stop()
        assert box.guest("test -e /etc/passwd && echo again", timeout=START_SECONDS) == "again"
    finally:
        box.rm()


# ---- a Dockerfile ----

REFERENCE = """# syntax=docker/dockerfile:1
FROM docker/sandbox-templates:shell-docker
USER root
RUN printf '#!/bin/sh\\necho from the tool\\n' >/usr/local/bin/mytool \\
 && chmod 755 /usr/local/bin/mytool \\
 && ln /usr/local/bin/mytool /usr/local/bin/same && rm /usr/bin/zip && rm -r /etc/skel \\
 && mkdir /etc/skel && touch /etc/skel/new
USER agent
ENV GREETING="hello \\"you\\"" PATH=$PATH:/opt/mine
COPY --chown=agent notes.txt /home/agent/notes.txt
CMD ["mytool"]
"""


def test_dockerfiles_that_are_refused_before_anything_starts(home, tmp_path):
    for text, says in (("RUN x\n", "no FROM"), ("FROM sbx/one\nFROM sbx/two\n", "two templates"),
                       ("FROM sbx/nothing-like-this\n",
                        "template 'nothing-like-this' not found")):
        (tmp_path / "Dockerfile").write_text(text)
        done = home.env.sbx("template", "build", "--file", tmp_path / "Dockerfile", "never",
                            check=False)
        assert done.returncode == 1 and says in done.stderr, done.stderr
    assert home.env.ls() == []


def test_a_dockerfile_becomes_a_template_without_docker_on_the_host(home):
    context = home.env.make_folder("context")
    (context / "Dockerfile").write_text(REFERENCE)
    (context / "notes.txt").write_text("notes\n")
    path = ":".join(p for p in home.env.env["PATH"].split(":")
                    if not (pathlib.Path(p) / "docker").exists())
    done = home.env.sbx("template", "build", "--file", context / "Dockerfile", "mine",
                        timeout=BUILD_SECONDS, env={"PATH": path})
    assert "Template 'mine' is ready" in done.stdout
    assert "package mirror of this host" in done.stderr
    assert "Ignored the line '# syntax='" in done.stderr
    assert "CMD is recorded" in done.stderr
    assert home.env.ls() == [], "the sandbox of the build was removed"
    made = home.manifest("mine")
    assert (made["kind"], made["parent"], made["from"]) == ("dockerfile", "debian",
                                                            "docker/sandbox-templates:shell-docker")
    assert made["config"]["cmd"] == ["mytool"] and made["config"]["user"] == "agent"
    # only what differs is new
    assert os.path.samefile(home.templates / "mine" / "root.img",
                            home.templates / "debian" / "root.img")
    box = home.env.create("mine", flags=("--template", "mine"))
    try:
        assert box.guest("mytool; echo $GREETING; cat ~/notes.txt",
                         user="agent") == 'from the tool\nhello "you"\nnotes'
        assert box.guest(
            "ls -A /etc/skel; stat -c %h /usr/local/bin/same; stat -c %U /home/agent/notes.txt").split() == ["new", "2", "agent"]
        assert box.fails("test -e /usr/bin/zip") and box.fails(
            "test -e /mnt/sbx-context") and box.fails("test -e /.dockerenv")
        assert box.guest("echo $PATH").endswith(":/opt/mine")
        assert box.guest("cat /etc/hostname") == "mine"
    finally:
        box.rm()


# ---- what takes long: tests/long/e2e ----

# The names begin with test_long_: only tests/long/e2e runs them (conftest.py).


def build_file(home, text, name="never", **kwargs):
    context = home.env.make_folder(f"context-{time.monotonic_ns()}")
    (context / "Dockerfile").write_text(text)
    (context / "busybox").write_bytes(pathlib.Path("/bin/busybox").read_bytes())
    (context / "busybox").chmod(0o755)
    return home.env.sbx("template", "build", "--file", context / "Dockerfile", name,
                        timeout=BUILD_SECONDS, check=False, **kwargs)


def test_long_a_step_that_fails_is_shown_and_nothing_is_left(home):
    done = build_file(home, "FROM docker/sandbox-templates:shell\nRUN echo last words; exit 7\n")
    assert done.returncode == 1 and "last words" in done.stderr and "--allow-network" in done.stderr
    assert home.env.ls() == [] and home.left() == [] and not (home.templates / "never").exists()


def test_long_an_interrupted_build_removes_its_sandbox(home):
    context = home.env.make_folder("interrupted")
    (context
     / "Dockerfile").write_text(
        "FROM docker/sandbox-templates:shell\nRUN echo it runs; sleep 600\n")
    p = home.env.popen("template", "build", "--file", context / "Dockerfile", "never",
                       stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    for line in p.stderr:
        if b"it runs" in line and b"RUN" not in line:
            break
    os.killpg(p.pid, signal.SIGINT)
    p.stderr.read()
    assert p.wait(120) == 1
    assert home.env.ls() == [] and home.left() == []


def test_long_an_image_of_its_own_is_taken_out_of_the_sandbox(home):
    """FROM an image that is not a template: the result is exported as a file and imported like any
    image."""
    done = build_file(home,
                      'FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\n'
                      'ENV A="b c"\n', "alone")
    assert done.returncode == 0, done.stderr
    made = home.manifest("alone")
    assert made["kind"] == "dockerfile" and made[
        "from"] == "scratch" and "image" not in made and "A=b c" in made["env"]
    assert home.env.ls() == [] and home.left() == []
    box = home.env.create("alone", flags=("--template", "alone"))
    try:
        assert box.guest("echo $A; busybox id -un", user="agent") == "b c\nagent"
    finally:
        box.rm()


def test_long_a_debian_image(home, tmp_path):
    """As a registry has it: apt, no sudo, no certificates, owners of many kinds."""
    tree = tmp_path / "debian.tar"
    subprocess.run(["mmdebstrap", "--mode=unshare", "--variant=minbase", "--include=procps",
                    "trixie", tree], check=True, timeout=600,
                   capture_output=True)
    image = Image(Env=["DEBIAN=yes"], Cmd=["bash"])
    image.raw_layer(tree.read_bytes())
    home.build(home.write(image), "debian-image")
    box = home.env.create("debian-image", flags=("--template", "debian-image"))
    try:
        assert box.guest("whoami; echo $DEBIAN; sudo -n id -u",
                         user="agent").split() == ["agent", "yes", "0"]
        assert box.guest("apt-get --version | head -n 1").startswith("apt ")
        assert box.guest("stat -c %G /etc/shadow") == "shadow"
    finally:
        box.rm()
