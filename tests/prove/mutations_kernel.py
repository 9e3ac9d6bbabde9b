# SPDX-License-Identifier: Apache-2.0
"""Holes for the probes of data/probes/kernel: false data of the guest, and jails without one step.
"""
import os
import pathlib

import holes
from mutation import Hole, Mutation


def cover(path, text, red, make=""):
    """The guest shows other contents at that path: those of another kernel, device tree or process.
    """
    at = "/run/mutation" + path.replace("/", "-")
    return Mutation(red=red,
                    guest=f"{make}\nprintf '%s\\n' '{text}' >{at}; mount --bind {at} {path}",
                    undo_guest=f"umount {path}; rm -f {at}")


def node(path, red, what="c 1 3"):
    """A device that is not declared."""
    return Mutation(red=red,
                    guest=f"[ ! -e {path} ] && mkdir -p $(dirname {path}) && mknod {path} {what}",
                    undo_guest=f"rm -f {path}")


# data of the host, shown in the guest

def show_host_file(path, key):
    def make(ctx):
        text = pathlib.Path(path).read_text(encoding="utf-8").strip()
        ctx.box.guest(
            f"echo '{text}' >/run/mutation-{key}; mount --bind /run/mutation-{key} {path}")
    return make


def hide_host_file(path, key):
    def undo(ctx):
        ctx.box.guest(f"umount {path}; rm -f /run/mutation-{key}")
    return undo


def listen_in_guest(name):
    at = "/run/mutation-" + name.strip("@/").replace("/", "-")

    def make(ctx):
        tool = pathlib.Path(ctx.env.env["SBX_LIBEXEC"]) / "sbx-probe"
        ctx.box.exec("sh", "-c", f"cat >{at} && chmod 755 {at}", user="root",
                     input=tool.read_bytes())
        ctx.box.guest(
            f"for i in 1 2 3 4; do {at} local listen {name} 120; rm -f {name}; done </dev/null >/dev/null 2>&1 & echo $! >{at}.pid")

    def undo(ctx):
        ctx.box.guest(
            f"p=$(cat {at}.pid); kill $p $(cat /proc/$p/task/$p/children); rm -f {at}.pid {name} {at}")
    return {"host": make, "undo_host": undo}


# S8 of docs/review.md: a file that QEMU writes is also a template's

def link_top(ctx):
    os.link(ctx.box.state / "root.qcow2", ctx.env.folder / "mutation-top")


def unlink_top(ctx):
    (ctx.env.folder / "mutation-top").unlink()


GUEST = [
    Mutation(red=("kernel/qemu-disks",), host=link_top, undo_host=unlink_top),
    Mutation(red=("kernel/own-kernel",),
             guest="printf '#!/bin/sh\\n[ \"$1\" = -r ] && exec echo 5.4.0-host\\n"
                   "exec /run/mutation-uname-real \"$@\"\\n' >/run/mutation-uname; "
                   "chmod 755 /run/mutation-uname; cp /usr/bin/uname /run/mutation-uname-real; "
                   "mount --bind /run/mutation-uname /usr/bin/uname",
             undo_guest="umount /usr/bin/uname; rm -f /run/mutation-uname*"),
    Mutation(red=("kernel/boot-id",),
             host=show_host_file("/proc/sys/kernel/random/boot_id", "boot-id"),
             undo_host=hide_host_file("/proc/sys/kernel/random/boot_id", "boot-id")),
    Mutation(red=("kernel/machine-id",), host=show_host_file("/etc/machine-id", "machine-id"),
             undo_host=hide_host_file("/etc/machine-id", "machine-id")),
    cover("/proc/1/comm", "systemd", ("kernel/own-init",)),
    Mutation(red=("kernel/host-name",),
             host=lambda ctx: ctx.box.guest(
    f"uname -n >/run/mutation-name; echo {os.uname().nodename} >/proc/sys/kernel/hostname"),
             undo_host=lambda ctx: ctx.box.guest(
    "cat /run/mutation-name >/proc/sys/kernel/hostname; rm /run/mutation-name")),
    cover("/proc/cpuinfo", "processor : 0", ("kernel/cpus",)),
    cover("/proc/meminfo", "MemTotal: 99999999 kB", ("kernel/memory",)),
    cover("/proc/cmdline", "console=hvc0 host=secret", ("kernel/boot-arguments",)),
    Mutation(red=("kernel/host-processes",),
             guest="sh -c 'sleep 1200; :' sbx-prove-marker >/dev/null 2>&1 & echo $! "
                   ">/run/mutation-marker", undo_guest="p=$(cat /run/mutation-marker); "
                                                       "kill $p $(cat /proc/$p/task/$p/children); "
                                                       "rm /run/mutation-marker"),
    Mutation(red=("kernel/own-processes",),
             guest="cp /usr/bin/sleep /run/sbxd; /run/sbxd 1200 >/dev/null 2>&1 & echo $! "
                   ">/run/mutation-sbxd",
             undo_guest="kill $(cat /run/mutation-sbxd); rm /run/mutation-sbxd /run/sbxd"),
    Mutation(red=("kernel/host-socket-abstract",), **listen_in_guest("@sbx-prove-socket")),
    Mutation(red=("kernel/host-socket-file",), **listen_in_guest("/tmp/sbx-prove.sock")),
    Mutation(red=("kernel/desktop-sockets",),
             guest="mkdir -p /run/user/1000 && python3 -c 'import os, stat; "
                   "os.mknod(\"/run/user/1000/bus\", 0o600 | stat.S_IFSOCK)'",
             undo_guest="rm /run/user/1000/bus"),
    node("/dev/bus/usb", ("kernel/no-usb",)),
    node("/dev/snd", ("kernel/no-display",)),
    node("/dev/ttyS0", ("kernel/no-old-devices",), "c 4 64"),
    node("/dev/pmem0", ("kernel/no-shared-memory",)),
    Mutation(red=("kernel/wire-ports",),
             guest="mkdir -p /run/mutation-ports/a; echo org.qemu.guest_agent.0 "
                   ">/run/mutation-ports/a/name; mount --bind /run/mutation-ports "
                   "/sys/class/virtio-ports",
             undo_guest="umount /sys/class/virtio-ports; rm -r /run/mutation-ports"),
]

# possible only in another build; all of them are combined

JAIL, SPAWN, SEAL, FILTER, PROFILES, ARGS = (
    f"lib/{n}.c" for n in ("os/jail/jail", "os/jail/spawn", "os/jail/seal", "os/jail/filter",
                           "os/jail/profiles", "vm/vmm/args"))
EVERY = ("qemu", "virtiofsd", "edge", "egress")


def each(form, names=EVERY):
    return tuple(f"kernel/jail-{n}-{form}" for n in names)


def hole(name, file, old, new, red, also=(), **kwargs):
    holes.HOLES.append(Hole(f"kernel-{name}", file, old, new, also))
    return Mutation(red=red, hole=f"kernel-{name}", **kwargs)


IN_THE_BUILD = [
    hole("extra-device", ARGS, 'add2(a, "-device", "vmgenid,guid=auto");',
         'add2(a, "-device", "vmgenid,guid=auto");\n\tadd2(a, "-device", "pci-testdev");',
         ("kernel/pci-devices",)),
    hole("extra-option", ARGS, 'add2(a, "-display", "none");',
         'add2(a, "-display", "none");\n'
         '\tadd2(a, "-fw_cfg", "name=opt/org.example.key,string=secret");',
         ("kernel/qemu-options",)),
    hole("extra-file", ARGS, "add_fd(a, qmp_fd, ARGS_FD_QMP);",
         'add_fd(a, qmp_fd, ARGS_FD_QMP);\n\textern int open(const char *path, int flags, ...);\n'
         '\n\tadd_fd(a, open("/etc/passwd", 0), (enum args_fd)90);', ("kernel/qemu-files",)),
    # after the spawner's check, which rejects a writable template
    hole("base-writable", JAIL, "(m->flags & JAIL_MOUNT_RW ? TREE_RW : 0)",
         '(m->flags & JAIL_MOUNT_RW || strncmp(m->to, "/disk/", 6) == 0 ? TREE_RW : 0)',
         ("kernel/qemu-disks",)),
    hole("qemu-own-filter", ARGS,
         '"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"', '"off"',
         ("kernel/jail-qemu-filters",)),
    hole("extra-process", "src/keeper/main.c", "\tint r = start_prepare(k, &err);",
         "\tint r = start_prepare(k, &err);\n\tpid_t keeper = getpid();\n\n\tif (fork() == 0) {\n\t\twhile (getppid() == keeper)\n\t\t\t(void)usleep(100000);\n\t\t_exit(0);\n\t}", ("kernel/helpers", "kernel/jail-hide")),
    hole("qemu-caps", PROFILES, '[JAIL_QEMU] = {.name = "qemu",',
         '[JAIL_QEMU] = {.name = "qemu", .caps = CAP(CAP_CHOWN),',
         ("kernel/jail-qemu-privileges",)),
    hole("edge-caps", PROFILES, '[JAIL_EDGE] = {.name = "edge",',
         '[JAIL_EDGE] = {.name = "edge", .caps = CAP(CAP_CHOWN),',
         ("kernel/jail-edge-privileges",)),
    hole("egress-caps", PROFILES, '[JAIL_EGRESS] = {.name = "egress",',
         '[JAIL_EGRESS] = {.name = "egress", .caps = CAP(CAP_CHOWN),',
         ("kernel/jail-egress-privileges",)),
    # virtiofsd drops its own capabilities; the test shows that it could regain them. It also
    # inherits no_new_privs from the spawner, which sets it together with its filter.
    hole("new-privs", JAIL, "if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)",
         "if (s->row != jail_row(JAIL_VIRTIOFSD) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)",
         ("kernel/jail-virtiofsd-privileges", "kernel/jail-keeper") + each("filters"),
         also=(("lib/os/jail/broker.c", "int jail_broker_spawner(struct err *err)\n{\n",
                "int jail_broker_spawner(struct err *err)\n{\n\tif (getpid() > 0)\n\t\treturn 0;\n"),)),
    # virtiofsd does not run without our filter, which answers for it; with more filters than
    # declared it does: two more, because the hole spawner-list removes one
    hole("start-filter", SPAWN, "int r = filter_install(&s->filter, false);",
         "int r = s->row == jail_row(JAIL_EDGE) || s->row == jail_row(JAIL_EGRESS) ? 0 : filter_install(&s->filter, false);\n\n\tfor (int i = 0; r == 0 && i < 2 && s->row == jail_row(JAIL_VIRTIOFSD); i++)\n\t\tr = filter_install(&s->filter, false);", each("filters", ("virtiofsd", "edge", "egress"))),
    hole("ipc", SPAWN, "{.flags = NAMESPACES | CLONE_PIDFD,",
         "{.flags = (NAMESPACES & ~CLONE_NEWIPC) | CLONE_PIDFD,", each("namespaces")),
    hole("net", SPAWN, "\tif (s->row->host_net)\n", "\tif (true)\n",
         each("network", ("qemu", "edge")) + each("namespaces", ("qemu", "edge")) +
         ("kernel/jail-ssh-agent",)),
    hole("nproc", JAIL, "r = set_limit(RLIMIT_NPROC, row->limit.nproc);", "r = 0;",
         each("limits") + ("kernel/jail-vault", "kernel/jail-origin", "kernel/jail-ssh-agent")),
    hole("address-space", JAIL, "if (r == 0 && row->limit.as)", "if (r == 0 && row->limit.as == 1)",
         ("kernel/address-space",)),
    hole("root", JAIL, "int r = s->row->dev_null ? bind_mount(p, root, &jail_dev_null, err) : 0;",
         'int r = s->row->dev_null ? bind_mount(p, root, &jail_dev_null, err) : 0;\n\n'
         '\tif (r == 0)\n\t\tr = bind_mount(&(const struct jail_plan){0}, root, '
         '&(const struct jail_mount){"/etc/passwd", "/etc/passwd", 0}, err);',
         each("root", ("qemu", "edge", "egress")) + ("kernel/jail-template",)),
    hole("share-root", "lib/vm/share/scaffold.c", "	r = tree_set_readonly(source);\n",
         '	int other, place2, extra = open("/etc", O_PATH | O_CLOEXEC);\n\n	if (tree_clone(extra, 0, &other) < 0 || tree_place(source, "/etc", true, 0555, &place2, err) < 0 || tree_attach(other, place2) < 0)\n'
         '		return -EIO;\n	r = tree_set_readonly(source);\n',
         each("root", ("virtiofsd",))),
    hole("dumpable", SEAL, "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || ", "",
         each("closed", ("edge", "egress")) + ("kernel/jail-guard", "kernel/jail-hide",
                                               "kernel/jail-vault", "kernel/jail-origin",
                                               "kernel/jail-ssh-agent")),
    hole("seal-list", FILTER, "int r = new_ctx(SCMP_ACT_KILL_PROCESS, &ctx, err);",
         "int r = new_ctx(SCMP_ACT_LOG, &ctx, err);",
         tuple(f"kernel/seccomp-{n}"
               for n in ("edge", "egress", "origin", "vault", "ssh-agent", "guard", "hand",
                         "hide"))),
    hole("start-list", FILTER, "int r = new_ctx(SCMP_ACT_ERRNO(EPERM), &ctx, err);",
         "int r = new_ctx(SCMP_ACT_LOG, &ctx, err);",
         ("kernel/seccomp-qemu", "kernel/seccomp-virtiofsd", "kernel/seccomp-keeper",
          "kernel/seccomp-sbxd")),
    hole("keeper-seal", "lib/os/jail/broker.c", "\tr = jail_broker_files(dirs, n, err);\n",
         "\tif (true)\n\t\treturn 0;\n\tr = jail_broker_files(dirs, n, err);\n",
         ("kernel/jail-keeper", "kernel/jail-sbxd")),
    hole("sbxd-seal", "src/sbxd/main.c", "\tif (r == 0)\n\t\tr = hands_seal(&err);\n", "",
         ("kernel/jail-sbxd",)),
    hole("spawner-list", "lib/os/worker/worker.c",
         "\t\t(!rules->keeps_privileges && jail_broker_spawner(NULL) < 0))\n",
         "\t\t(getpid() < 1 && jail_broker_spawner(NULL) < 0))\n",
         ("kernel/jail-keeper",) + each("filters")),
    hole("broker-dumpable", "lib/os/jail/broker.c",
         "\tif (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)\n",
         "\tif (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)\n",
         ("kernel/jail-keeper", "kernel/jail-sbxd")),
]

MUTATIONS = GUEST + IN_THE_BUILD
