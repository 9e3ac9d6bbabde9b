# SPDX-License-Identifier: Apache-2.0
"""Holes in the sandbox's view of the host's files.

Most are created in the guest: a forbidden file is put on a file system that is not its own disk.
Requests that the host must deny are let through by a hole in our source.
"""
import os
import pathlib
import resource
import shutil
import stat

from holes import HOLES
from mutation import Hole, Mutation

HOME = str(pathlib.Path.home())
NAMES = {"agent-logins": ".codex/auth.json", "browser-profiles": ".mozilla/firefox",
         "cloud-keys": ".aws/credentials", "docker-login": ".docker/config.json",
         "gpg-keys": ".gnupg/key", "kubeconfig": ".kube/config", "package-tokens": ".npmrc",
         "password-stores": ".vault-token",
         "shell-history": ".bash_history", "ssh-keys": ".ssh/id_rsa"}

# open_folder AT SCRIPT - makes AT a writable directory with its previous contents; the script adds
# to it
OPEN = r"""
open_folder() {
	new=$(mktemp -d /run/opened.XXXXXX) && mount -t tmpfs none "$new" || exit 1
	mkdir -p "$1"
	for old in "$1"/* "$1"/.[!.]*; do
		[ -d "$old" ] || continue
		mkdir "$new/${old##*/}" && mount --rbind "$old" "$new/${old##*/}" || exit 1
	done
	(cd "$new" && eval "$2") && mount --rbind "$new" "$1"
}
share=/run/sbx/workspaces/share
work=$(awk '$3 == "virtiofs" && $2 !~ "^/run/" && $4 ~ /^rw/ && $1 == "none" { print $2; exit }' \
	/proc/mounts)
"""
CLOSE = r"""
share=/run/sbx/workspaces/share
work=$(awk '$3 == "virtiofs" && $2 !~ "^/run/" && $4 ~ /^rw/ && $1 == "none" { print $2; exit }' \
	/proc/mounts)
"""


def plant(path):
    """sh: a file at that path below the current directory."""
    folder = path.rpartition("/")[0]
    return (f"mkdir -p {folder} && " if folder else "") + f"echo planted >{path}"


def lower_limit(ctx):
    pid = server(ctx.box)
    ctx.keep["limit"] = (pid, resource.prlimit(pid, resource.RLIMIT_NOFILE))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (1000, ctx.keep["limit"][1][1]))


def raise_limit(ctx):
    pid, limits = ctx.keep["limit"]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def server(box):
    """The virtiofsd that serves: the child of the keeper's."""
    keeper = box.info()["keeper_pid"]
    outer = [p for q in children(keeper) for p in children(q)
             if pathlib.Path(f"/proc/{p}/comm").read_text().startswith("virtiofsd")]
    return children(outer[0])[0]


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state_of(ctx, box):
    return ctx.env.state / "sandboxes" / box.info()["id"]


def move_disk(ctx):
    """A disk that is open and no longer in the sandbox's directory."""
    folder = state_of(ctx, ctx.box)
    ctx.keep["disk"] = (folder / "docker.qcow2", folder.parent / "docker.elsewhere")
    ctx.keep["disk"][0].rename(ctx.keep["disk"][1])


def move_disk_back(ctx):
    ctx.keep["disk"][1].rename(ctx.keep["disk"][0])


def show_folders(ctx):
    """sbx's directories at their paths in the guest, with contents."""
    ctx.box.exec("sh", "-c", f"mkdir -p '{ctx.env.state}' && : >'{ctx.env.state}/policy'",
                 user="root")


def hide_folders(ctx):
    ctx.box.exec("sh", "-c", f"rm -rf '{ctx.env.folder}'", user="root")


def link_read_only(ctx):
    (ctx.twin.read_only / "second-name").hardlink_to(ctx.twin.read_only / "README")


def unlink_read_only(ctx):
    (ctx.twin.read_only / "second-name").unlink()


def link_flag(ctx):
    """A file next to the workspace is also in it, and the guest has seen it."""
    flag = ctx.twin.workspace.parent / "flag-handles"
    flag.write_text("flag\n")
    (ctx.twin.workspace / "linked").hardlink_to(flag)
    raw = ctx.twin.workspace.parent / "flag-raw"
    raw.touch()
    (ctx.twin.workspace / "linked-raw").hardlink_to(raw)
    ctx.twin.exec("sh", "-c",
                  f"sleep 900 <'{ctx.twin.workspace}/linked' >/dev/null 2>&1 & echo $! >/run/linked.pid", user="root")


def unlink_flag(ctx):
    ctx.twin.exec("sh", "-c", "kill $(cat /run/linked.pid)", user="root", check=False)
    (ctx.twin.workspace / "linked").unlink()
    (ctx.twin.workspace / "linked-raw").unlink()
    (ctx.twin.workspace.parent / "flag-handles").unlink(missing_ok=True)


def listen_in_guest(ctx):
    """A socket of the guest replaces the host's. The guest cannot create one in the workspace, so
    the host creates the name."""
    at = ctx.twin.workspace / "probe.sock"
    os.mknod(at, stat.S_IFSOCK | 0o600)
    ctx.twin.exec("sh", "-c",
                  "python3 -c \"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('/run/probe.sock'); s.listen(9); time.sleep(900)\" "
                  ">/dev/null 2>&1 & echo $! >/run/listener.pid; i=0; while [ ! -S /run/probe.sock ] && [ $i -lt 300 ]; do i=$((i + 1)); sleep 0.1; done; "
                  f"mount --bind /run/probe.sock '{at}'", user="root")


def stop_listening(ctx):
    at = ctx.twin.workspace / "probe.sock"
    ctx.twin.exec("sh", "-c",
                  f"umount '{at}'; kill $(cat /run/listener.pid); rm -f /run/probe.sock",
                  user="root", check=False)
    at.unlink(missing_ok=True)


def read_in_guest(ctx):
    """A pipe of the host that a program of the guest reads: data that another program of the guest
    writes arrives."""
    at = ctx.twin.workspace / "probe.pipe"
    os.mkfifo(at)
    ctx.twin.exec("sh", "-c", f"cat '{at}' >/dev/null 2>&1 & echo $! >/run/reader.pid", user="root")


def stop_reading(ctx):
    ctx.twin.exec("sh", "-c", "kill $(cat /run/reader.pid)", user="root", check=False)
    (ctx.twin.workspace / "probe.pipe").unlink(missing_ok=True)


def forget_raw(ctx):
    """The target of raw requests is planted once for all; a mutation of it requires planting it
    again."""
    shutil.rmtree(ctx.twin.workspace / "raw", ignore_errors=True)
    for path in (ctx.twin.read_only / "raw-file", ctx.twin.workspace.parent / "escaped-raw"):
        path.unlink(missing_ok=True)


def make_escaped(ctx):
    forget_raw(ctx)
    (ctx.twin.workspace.parent / "escaped-raw").write_text("escaped\n")


def make_link_a_file(ctx):
    forget_raw(ctx)
    (ctx.twin.workspace / "raw").mkdir()
    (ctx.twin.workspace / "raw" / "link").write_text("no link\n")


def shadow_of_host():
    st = pathlib.Path("/etc/shadow").stat()
    return (f"truncate -s {st.st_size} /run/shadow && touch -d @{int(st.st_mtime)} /run/shadow && "
            "mount --bind /run/shadow /etc/shadow")


RO = tuple(f"files/ro-{n}"
           for n in ("chmod", "chown", "create", "link", "mmap", "remount", "rename", "times",
                     "truncate", "unlink", "write")) + (
    "files/raw-ro-names", "files/raw-ro-open", "files/raw-ro-setattr", "files/held-parent")
HIDE = tuple(f"files/hide-{n}"
             for n in ("create", "link", "mounts", "read", "rename", "stat", "unlink",
                       "write")) + ("files/raw-hidden",)

HOLES += [
    # CVE-2026-46695: read-only only according to the guest
    Hole("files-planted-page", "lib/base/fs/file.c", "f->fd = mkostemp(f->temp, O_CLOEXEC);",
         "f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);\n"
         "\t\tfree(f->temp);\n\t\tf->temp = xstrdup(path);"),  # renamed to itself
    Hole("ro-is-rw", "lib/vm/share/scaffold.c", "tree_clone(fd, pin->ro ? 0 : TREE_RW, ret_tree)",
         "tree_clone(fd, TREE_RW, ret_tree)"),
    Hole("hide-nothing", "lib/vm/share/hide.c",
         "\t\tif (fnmatch(globs[i], name, 0) == 0)\n\t\t\treturn true;\n\treturn false;",
         "\t\tif (fnmatch(globs[i], name, 0) == 2)\n\t\t\treturn true;\n\treturn false;"),
    Hole("xattrs-pass", "lib/vm/share/share.c", "no_writeback,no_xattr,", "no_writeback,xattr,"),
    # CVE-2026-47243: the server's own sandbox is off
    Hole("server-in-chroot", "lib/vm/share/share.c", "sandbox=namespace,cache=auto",
         "sandbox=chroot,cache=auto"),
    Hole("set-user-id-passes", "lib/os/jail/profiles.c",
         '"open/no-suid openat/no-suid fchmod/no-suid fchmodat/no-suid fchmodat2/no-suid"',
         '"open openat fchmod fchmodat fchmodat2"'),
    Hole("special-files-pass", "lib/os/jail/profiles.c", '"mknodat/regular mknodat/no-type"',
         '"mknodat/regular mknodat/no-type mknodat/fifo mknodat/socket"'),
    Hole("copy-follows-links", "lib/client/api/cp_dest.c", "if (root_of(arg, w->at) || lstat(",
         "if (lstat("),
    Hole("parents-not-held", "lib/vm/share/scaffold.c", "\tif (outer && !outer->ro)\n",
         "\tif (outer && !outer->ro && false)\n"),
    # a directory of the host next to the workspaces
    Hole("one-folder-more", "lib/vm/share/scaffold.c", "\tr = tree_set_readonly(source);\n",
         "\tstatic struct scaffold more = {.n = 1, .pins = {{.host = (char *)\"/etc\", .guest = (char *)\"/more\", .ro = true, .dir = true}}};\n\tstruct stat st;\n\n"
         "\tif (stat(\"/etc\", &st) < 0)\n\t\treturn -errno;\n\tmore.pins[0].dev = st.st_dev;\n\tmore.pins[0].ino = st.st_ino;\n"
         "\tr = bind_pin(&more, 0, source, err);\n\tif (r < 0)\n\t\treturn r;\n\tr = tree_set_readonly(source);\n"),
    # CVE-2026-24834: a file of the host as memory of the VM
    Hole("kernel-mapped", "lib/vm/vmm/args.c", '\tadd2(a, "-object", "rng-builtin,id=rng");\n',
         '\tadd2(a, "-object", "memory-backend-file,id=more,mem-path=/kernel,share=on,readonly=on,size=2M");\n'
         '\tadd2(a, "-object", "rng-builtin,id=rng");\n'),
]

MUTATIONS = [
    Mutation(red=(*(f"files/{n}" for n in NAMES), "files/home", "files/parents"),
             guest=OPEN + f"open_folder '{HOME}' '{' && '.join(plant(n) for n in NAMES.values())}'",
             undo_guest=f"umount -l '{HOME}'"),
    Mutation(red=("files/parents", "files/siblings"),
             guest=OPEN
             + "open_folder \"${work%/*}\" 'mkdir proved second proved-ro second-ro other "
               "2>/dev/null; :'",
             undo_guest=CLOSE
             + "umount -l \"${work%/*}\" || :  # the raw session may have taken it down"),
    Mutation(red=("files/system-files",), guest=shadow_of_host(), undo_guest="umount /etc/shadow"),
    Mutation(red=("files/sbx-folders",), host=show_folders, undo_host=hide_folders),
    Mutation(red=("files/block-devices",),
             guest="mkdir -p /run/block/vdz/device && echo 2048 >/run/block/vdz/size && "
                   "cp -a /sys/block/vd? /run/block/ && mount --bind /run/block /sys/block",
             undo_guest="umount /sys/block && rm -rf /run/block"),
    Mutation(red=("files/other-share-kinds", "files/unknown-shares"),
             guest="mkdir -p /run/virtio/virtio8 /run/virtio/virtio9 && "
                   "cp -a /sys/bus/virtio/devices/virtio? /run/virtio/ 2>/dev/null; "
                   "echo 0x001a >/run/virtio/virtio8/device && echo 0x0009 >/run/virtio/virtio9/device && mount --bind /run/virtio /sys/bus/virtio/devices",
             undo_guest="umount /sys/bus/virtio/devices && rm -rf /run/virtio"),
    Mutation(red=("files/dax",),
             # the last capability of the first virtio device becomes a region of shared memory
             guest="for at in /sys/bus/pci/devices/*; do [ \"$(cat $at/vendor)\" != 0x1af4 ] || "
                   "break; done; cp $at/config /run/config && "
                   "p=$(od -An -t u1 -j 52 -N 1 /run/config | tr -d ' ') && while n=$(od -An -t u1 -j $p -N 1 /run/config | tr -d ' ') && [ $n != 9 ]; do "
                   "p=$(od -An -t u1 -j $((p + 1)) -N 1 /run/config | tr -d ' '); done && printf '\\010' | dd of=/run/config bs=1 seek=$((p + 3)) conv=notrunc 2>/dev/null && "
                   "echo $at/config >/run/config.at && mount --bind /run/config $at/config",
             undo_guest="umount \"$(cat /run/config.at)\""),
    Mutation(red=("files/server-limits",), host=lower_limit, undo_host=raise_limit),
    Mutation(red=("files/disks-of-others", "files/block-devices"), host=move_disk,
             undo_host=move_disk_back, alone=True),
    Mutation(red=("files/links-absolute", "files/links-relative", "files/links-write",
                  "files/links-race", "files/dot-dot", "files/proc-roots"),
             guest=OPEN
             + "open_folder \"${work%/*}\" 'for n in absolute relative dots proc; "
               "do echo flag >flag-$n; done; for n in write race; do mkdir flag-$n && "
               "echo flag >flag-$n/file; done'",
             undo_guest=CLOSE
             + "umount -l \"${work%/*}\" || :  # the raw session may have taken it down"),
    Mutation(red=("files/planted-page",), hole="files-planted-page"),
    Mutation(red=("files/parents-refuse-writes",),
             guest=OPEN + "open_folder \"$share${work%/*}\" :",
             undo_guest=CLOSE + "umount -l \"$share${work%/*}\" || :"),
    Mutation(red=("files/hard-links",), host=link_read_only, undo_host=unlink_read_only),
    Mutation(red=("files/handles", "files/hard-links", "files/raw-nodes"), host=link_flag,
             undo_host=unlink_flag),
    Mutation(red=("files/raw-link",), host=make_link_a_file, undo_host=forget_raw),
    Mutation(red=("files/raw-names",), host=make_escaped, undo_host=forget_raw, alone=True),
    Mutation(red=("files/device-nodes",), guest="mount --bind /bin/true /usr/bin/mknod",
             undo_guest="umount /usr/bin/mknod"),
    Mutation(red=("files/owners",), guest="mount --bind /bin/true /usr/bin/chown",
             undo_guest="umount /usr/bin/chown"),
    Mutation(red=("files/host-socket",), host=listen_in_guest, undo_host=stop_listening),
    Mutation(red=("files/host-pipe",), host=read_in_guest, undo_host=stop_reading),
    Mutation(red=(*RO, "files/served-tree"), hole="ro-is-rw"),
    Mutation(red=HIDE, hole="hide-nothing"),
    Mutation(red=("files/xattrs",), hole="xattrs-pass"),
    Mutation(red=("files/server-sandbox",), hole="server-in-chroot"),
    Mutation(red=("files/set-user-id", "files/raw-set-user-id"), hole="set-user-id-passes"),
    Mutation(red=("files/special-files",), hole="special-files-pass"),
    Mutation(red=("files/copy-link",), hole="copy-follows-links"),
    Mutation(red=("files/held-parent",), hole="parents-not-held"),
    Mutation(red=("files/mount-again", "files/parents", "files/raw-parents", "files/served-tree"),
             hole="one-folder-more"),
    Mutation(red=("files/base-not-mapped",), hole="kernel-mapped"),
]
