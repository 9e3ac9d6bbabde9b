# SPDX-License-Identifier: Apache-2.0
"""What guest root can reach: its own machine and the workspaces, nothing else."""
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess

import pytest

SECRET = "canary-7f3a90c1"


@pytest.fixture(scope="module")
def views(env):
    """A sandbox with every kind of workspace."""
    base = env.make_folder("views")
    for name in ("main", "fixed", "elsewhere", "main/sub"):
        (base / name).mkdir(exist_ok=True)
    (base / "main" / "plain").write_text("plain\n")
    (base / "main" / ".env").write_text(SECRET + "\n")
    (base / "main" / "sub" / ".env.local").write_text(SECRET + "\n")
    (base / "fixed" / "data").write_text("fixed\n")
    (base / "single").write_text("single\n")
    (base / "outside").write_text(SECRET + "\n")
    box = env.create("views", base / "main", f"{base}/fixed:ro", f"{base}/single:ro",
                     f"{base}/elsewhere:/srv/mapped", flags=("--hide", ".env*"))
    box.base = base
    return box


def test_own_kernel(sandbox):
    assert sandbox.guest("uname -r") != os.uname().release


def test_own_processes_only(sandbox):
    marker = subprocess.Popen(["sleep", "98761"])
    try:
        seen = sandbox.guest("ps -eo args")
    finally:
        marker.kill()
        marker.wait()
    assert "98761" not in seen
    assert sandbox.guest("cat /proc/1/comm") == "sbx-guest"


def test_no_network_device(sandbox):
    # eth0 is a dummy without a device
    assert sandbox.guest("ls /sys/class/net").split() == ["eth0", "lo"]
    assert sandbox.fails("ls -d /sys/class/net/*/device")
    # virtio ids: 1 is a network card, 19 is vsock
    ids = {int(i, 16) for i in sandbox.guest("cat /sys/bus/virtio/devices/*/device").split()}
    assert ids and not ids & {1, 19}


def test_no_way_out(sandbox):
    script = ("import socket\n"
              "for to in (('192.0.2.1', 80), ('198.51.100.1', 53)):\n"
              "    try:\n"
              "        s = socket.create_connection(to, 5)\n"
              "        s.sendall(b'\\0\\1x')\n"
              "        if not s.recv(1): continue\n"
              "    except OSError: continue\n"
              "    raise SystemExit('a host answered')\n")
    assert sandbox.exec("python3", "-c", script, user="root", timeout=60).returncode == 0
    assert sandbox.fails("getent hosts example.org")


def test_host_folders_do_not_exist(env, sandbox):
    home = pathlib.Path.home()
    for path in (home / ".ssh", home / ".aws", home / ".bashrc", home / ".profile", env.folder,
                 env.state,
                 env.work / "views"):
        assert sandbox.fails(f"test -e '{path}'"), f"{path} exists in the guest"


def test_parents_of_a_workspace_are_empty_and_read_only(env, sandbox):
    other = env.make_folder("beside-shared")
    (other / "f").write_text(SECRET)
    parent = sandbox.workspace.parent
    assert sandbox.guest(f"ls -A '{parent}'").split() == [sandbox.workspace.name]
    for script in (f"touch '{parent}/made'",
                   f"mount -o remount,rw '{parent}'; touch '{parent}/made'",
                   f"rmdir '{parent}/{sandbox.workspace.name}'", f"chmod 777 '{parent}'"):
        assert sandbox.fails(script), script
    assert not (parent / "made").exists()


def test_parents_in_the_share_itself_are_read_only(sandbox):
    """The device, mounted again by guest root, shows the stubs that virtiofsd serves."""
    script = (
        "mkdir -p /mnt/share && mount -t virtiofs sbx /mnt/share && cd /mnt/share && find . -xdev -maxdepth 6 "
              "| head -n 50; touch made-by-root; mkdir d; for d in $(find . -xdev -type d); do touch $d/made-by-root; done")
    seen = sandbox.exec("unshare", "-m", "sh", "-c", script, user="root", check=False).stdout
    assert "beside-shared" not in seen
    assert not (sandbox.workspace.parent / "made-by-root").exists()
    (sandbox.workspace / "made-by-root").unlink(missing_ok=True)


def test_dot_dot_does_not_leave_the_workspace(sandbox):
    seen = sandbox.guest(f"cd '{sandbox.workspace}' && ls -A ../ ../../ ../../../ 2>/dev/null || :")
    assert "beside-shared" not in seen


def test_links_lead_to_the_guests_own_files(sandbox):
    shadow = sandbox.workspace / "shadow"
    shadow.symlink_to("/etc/shadow")
    assert sandbox.guest(f"cat '{shadow}'") == sandbox.guest("cat /etc/shadow")
    name = sandbox.workspace / "hostname"
    name.symlink_to("/etc/hostname")
    assert sandbox.guest(f"cat '{name}'") != pathlib.Path("/etc/hostname").read_text().strip()


def test_links_out_of_the_workspace_lead_nowhere(views):
    outside = views.base / "outside"
    (views.base / "main" / "by-host").symlink_to(outside)
    (views.base / "main" / "relative").symlink_to("../outside")
    assert views.fails(f"cat '{views.base}/main/by-host'")
    assert views.fails(f"cat '{views.base}/main/relative'")
    assert views.fails(
        f"ln -s '{outside}' '{views.base}/main/by-guest' && cat '{views.base}/main/by-guest'")


def test_a_hard_link_out_of_the_workspace_cannot_be_made(views):
    views.guest(f"ln '{views.base}/outside' '{views.base}/main/hard'", check=False)
    views.guest(f"ln '{views.base}/main/../outside' '{views.base}/main/hard'", check=False)
    assert not (views.base / "main" / "hard").exists()


# The share refuses extended attributes everywhere, also where writing is allowed.
XATTR = "python3 -c \"import os; os.setxattr('$D/data', 'user.x', b'y')\""
# A second mount of the device shows one of the workspaces; which one is the kernel's choice.
AGAIN = ("mkdir -p /mnt/again; mount -t virtiofs sbx /mnt/again; "
         "find /mnt/again -name data -exec sh -c 'echo x > $1' _ {} ';'")
SHARE = ("mount -o remount,rw /run/sbx/workspaces/share; find /run/sbx/workspaces/share -name data "
         "-exec sh -c 'echo x > $1' _ {} ';'")
# Each is an attempt of guest root to write below the read-only directory D (its file is data) or
# file F.
ATTEMPTS = [
    "echo x > $D/data",
    "echo x > $D/new",
    "rm $D/data",
    "mv $D/data $D/moved",
    "ln $D/data $D/linked",
    "ln -s x $D/symlink",
    "mkdir $D/folder",
    "chmod 777 $D/data",
    "touch -d 2001-01-01 $D/data",
    "truncate -s 0 $D/data",
    XATTR,
    "echo x > $F",
    "rm $F",
    "truncate -s 0 $F",
    "mount -o remount,rw $D; echo x > $D/data",
    "mount -o remount,bind,rw $D; echo x > $D/data",
    "umount $D; echo x > $D/data",
    "umount -l $D; mkdir -p $D; echo x > $D/data",
    "mkdir -p /mnt/b; mount --bind $D /mnt/b; mount -o remount,bind,rw /mnt/b; echo x > /mnt/b/data",
    AGAIN,
    SHARE,
    "unshare -m sh -c \"mount -o remount,rw $D; echo x > $D/data\"",
    "exec 3<>$D/data; echo x >&3",
    "dd if=/dev/zero of=$D/data bs=1 count=1 conv=notrunc",
    "python3 -c \"import os,mmap; f=os.open('$D/data',os.O_RDWR); m=mmap.mmap(f,6,mmap.MAP_SHARED,mmap.PROT_WRITE); m[0:1]=b'x'\"",
]


def state_of(path):
    """Names, content, mode, time and extended attributes of everything below."""
    found = {}
    for at in sorted([path, *path.rglob("*")] if path.is_dir() else [path]):
        st = at.lstat()
        content = hashlib.sha256(at.read_bytes()).hexdigest() if at.is_file() else ""
        attributes = {name: os.getxattr(at, name, follow_symlinks=False)
                      for name in os.listxattr(at, follow_symlinks=False)}
        found[str(at)] = (st.st_mode, st.st_mtime_ns, st.st_nlink, content, attributes)
    return found


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_read_only_holds_against_guest_root(views, attempt):
    folder, file = views.base / "fixed", views.base / "single"
    before = state_of(folder), state_of(file)
    # In a separate mount namespace, so that one attempt does not change the view of the next one.
    views.exec("unshare", "-m", "sh", "-c", f"D='{folder}' F='{file}'; {attempt}; sync",
               user="root",
               check=False)
    assert (state_of(folder), state_of(file)) == before


def test_the_attempts_write_where_writing_is_allowed(views):
    """The same commands in the workspace that can be written: an attempt that does nothing there
    proves nothing above."""
    places, scripts = {}, {}
    for n, attempt in enumerate(ATTEMPTS):
        place = places[attempt] = views.base / "main" / f"attempt-{n}"
        (place / "fixed").mkdir(parents=True)
        (place / "fixed" / "data").write_text("fixed\n")
        (place / "single").write_text("single\n")
        inner = shlex.quote(f"D={place}/fixed F={place}/single; {attempt}")
        scripts[attempt] = f"unshare -m sh -c {inner}"
    before = {attempt: state_of(place) for attempt, place in places.items()}

    def idle(attempts):
        views.exec("sh", user="root", input="\n".join(scripts[a] for a in attempts) + "\nsync\n",
                   check=False, timeout=120)
        return [a for a in attempts if state_of(places[a]) == before[a]]
    # SHARE writes to every file of that name: after all others.
    assert idle([a for a in ATTEMPTS if a not in (AGAIN, SHARE)]) == [XATTR]
    views.exec("unshare", "-m", "sh", "-c",
               "mkdir -p /mnt/again; mount -t virtiofs sbx /mnt/again && mountpoint -q /mnt/again",
               user="root")
    assert idle([SHARE]) == []
    for place in places.values():
        shutil.rmtree(place)


def test_read_only_is_readable(views):
    assert views.guest(f"cat '{views.base}/fixed/data' '{views.base}/single'") == "fixed\nsingle"


HIDDEN = [
    "cat $W/.env $W/sub/.env.local",
    "umount $W/.env; cat $W/.env",
    "umount -l $W; cat $W/.env",
    "ln $W/.env $W/copy; cat $W/copy",
    "mv $W/.env $W/moved; cat $W/moved",
    "mv $W/sub $W/sub2; cat $W/sub2/.env.local; mv $W/sub2 $W/sub",
    "chmod 777 $W/.env; cat $W/.env",
    "rm -f $W/.env; cat $W/.env",
    "mkdir -p /mnt/again; mount -t virtiofs sbx /mnt/again; grep -ra canary /mnt/again",
    "grep -ra canary $W",
    "python3 -c \"import os; d=os.open('$W',os.O_PATH); print(os.read(os.open('.env',os.O_RDONLY,dir_fd=d),99))\"",
    "cp -a $W /tmp/copied; tar -C $W -cf - . | grep -a canary; cat /tmp/copied/.env",
]


@pytest.mark.parametrize("attempt", HIDDEN)
def test_hide_holds_against_guest_root(views, attempt):
    done = views.exec("unshare", "-m", "sh", "-c", f"W='{views.base}/main'; {attempt}", user="root",
                      check=False, timeout=120)
    assert SECRET not in done.stdout + done.stderr
    assert (views.base / "main" / ".env").read_text() == SECRET + "\n"
    assert (views.base / "main" / "sub" / ".env.local").read_text() == SECRET + "\n"


def test_hide_leaves_the_rest(views):
    assert views.guest(f"cat '{views.base}/main/plain'") == "plain"


def test_remapped_workspace_is_at_its_other_path(views):
    views.guest("echo mapped > /srv/mapped/made", user="agent")
    assert (views.base / "elsewhere" / "made").read_text() == "mapped\n"
    assert views.fails(f"test -e '{views.base}/elsewhere/made'")


def test_without_a_path_there_is_no_workspace(env):
    box = env.create("mountless")
    try:
        assert "virtiofs" not in box.guest("cat /proc/mounts")
        assert box.guest("pwd", user="agent") == "/home/agent"
    finally:
        box.rm()


@pytest.mark.parametrize("path", ["/", str(pathlib.Path.home())])
def test_sharing_everything_is_refused(env, path):
    done = env.sbx("create", "shell", path, "--name", "too-much", check=False)
    assert done.returncode != 0
    assert "too-much" not in [s["name"] for s in env.ls()]


def test_other_users_of_the_host_cannot_reach_the_sockets(env, sandbox):
    for path in env.runtime.rglob("*"):
        assert path.lstat().st_mode & 0o077 == 0 or path.is_symlink(), f"{path} is open to others"
    assert env.runtime.stat().st_mode & 0o077 == 0
