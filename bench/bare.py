# SPDX-License-Identifier: Apache-2.0
"""The same virtual machine without sbx around it: the yardstick.

The command line is that of a running sandbox, read from /proc. The paths of its jail are replaced
by those of the host. The overlays are new, the wire is a socket of this program, and QMP and the
share are removed.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time

BOOT_SECONDS = 120 * int(os.environ.get("SBX_TIME_FACTOR", "1"))


def host_path(pid, inside):
    """The host file that is bound at `inside` in the mount namespace of pid."""
    def mounts(who):
        for line in pathlib.Path(f"/proc/{who}/mountinfo").read_text(encoding="utf-8").splitlines():
            fields = line.split()
            yield fields[2], fields[3], fields[4]
    for device, root, at in mounts(pid):
        if at != inside:
            continue
        for host_device, host_root, host_at in mounts("self"):
            if host_device == device and root.startswith(host_root):
                path = pathlib.Path(host_at) / root[len(host_root):].lstrip("/")
                if path.exists():
                    return path
    raise SystemExit(
        f"bench: {inside} of process {pid} is not a file that can be found on the host")


class Recipe:
    """How a sandbox starts its machine; taken once, while the sandbox runs."""

    def __init__(self, qemu_pid, folder):
        self.folder = pathlib.Path(folder)
        argv = pathlib.Path(f"/proc/{qemu_pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        # files of the disks: read-only ones; the written one -> its base
        self.lower, self.tops = {}, {}
        self.argv = ["qemu-system-x86_64"]
        args = iter(argv[1:])
        for option in args:
            value = next(args, None) if takes_value(option) else None
            self.keep(qemu_pid, option, value)

    def keep(self, pid, option, value):
        if value and re.search(r"\bid=(qmp|share)\b|chardev=(qmp|share)\b", value):
            return
        if option in ("-kernel", "-initrd"):
            copy = self.folder / option[1:]
            shutil.copy(host_path(pid, value), copy)
            value = str(copy)
        elif option == "-blockdev":
            files = sorted(re.findall(r"/disk/\w+\.\d+", value),
                           key=lambda f: int(f.rpartition(".")[2]))
            for inside in files[:-1]:
                self.lower[inside] = host_path(pid, inside)
            self.tops[files[-1]] = files[0]
        elif value and value.startswith("memory-backend-file,"):
            # the keeper's descriptor
            value = re.sub(r"^memory-backend-file,|mem-path=[^,]*,", "", value)
            value = "memory-backend-memfd," + value
        elif value and "id=ctl," in value and option == "-chardev":
            value = "socket,id=ctl,path={ctl},server=on,wait=off"
        elif value and "id=net," in value and option == "-chardev":
            value = "socket,id=net,path={ctl}n,server=on,wait=off"
        self.argv += [option] if value is None else [option, value]

    def overlay(self, ctl, top, bottom):
        path = ctl.with_suffix("." + pathlib.Path(top).stem)
        path.unlink(missing_ok=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b",
                        str(self.lower[bottom]),
                        str(path)], check=True)
        return path

    def command(self, ctl, echo=None):
        """A command line with new overlays; `echo` is the socket of one more port."""
        out = []
        for word in self.argv:
            word = word.replace("{ctl}", str(ctl))
            for top, bottom in self.tops.items():
                if f'"{top}"' in word:
                    word = word.replace(f'"{top}"', f'"{self.overlay(ctl, top, bottom)}"')
            for inside, path in self.lower.items():
                word = word.replace(f'"{inside}"', f'"{path}"')
            out.append(word)
        if echo:
            out += ["-chardev", f"socket,id=echo,path={echo},server=on,wait=off",
                    "-device", "virtserialport,chardev=echo,nr=3,name=bench.echo"]
        return out


def takes_value(option):
    return option not in ("-nodefaults", "-no-user-config", "-no-reboot", "-no-shutdown", "-S",
                          "-nographic",
                          "-no-acpi", "-no-hpet", "-enable-kvm")


class Machine:
    """A bare machine; `ready_s` is the time from the start of qemu to the first byte of the
    guest."""

    def __init__(self, recipe, echo=False):
        self.ctl_path = recipe.folder / f"c{os.getpid()}"
        self.echo_path = recipe.folder / f"e{os.getpid()}" if echo else None
        argv = recipe.command(self.ctl_path, self.echo_path)
        begin = time.monotonic()
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            self.ctl = connect(self.ctl_path)
            self.ctl.settimeout(BOOT_SECONDS)
            self.first = self.ctl.recv(1)
        except OSError:
            self.process.kill()  # it would keep the output open that the caller reads to its end
            raise
        self.ready_s = time.monotonic() - begin

    def close(self):
        self.process.kill()
        self.process.wait()
        self.ctl.close()
        for path in self.ctl_path.parent.glob(f"[ce]{os.getpid()}*"):
            path.unlink()


def connect(path, seconds=10):
    deadline = time.monotonic() + seconds
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):
            s.connect(str(path))
            return s
        s.close()
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: nothing listens on {path}")
        time.sleep(0.01)


# Just enough of HTTP/2 to start one program in the guest (proto/PROTOCOL.exec in a POST /exec).

def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes((kind,
                                                  flags)) + struct.pack(">I", stream) + payload


def text(s):
    return struct.pack("<H", len(s)) + s.encode()


def start_in_guest(ctl, argv):
    """Starts argv as root, detached from the stream."""
    def literal(name, value):
        return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value
    # 0x20: the guest keeps no table of headers, and requires the acknowledgment.
    head = b"\x20" + b"".join(literal(n, v) for n,
                              v in ((b":method", b"POST"), (b":scheme", b"http"),
                                               (b":authority", b"sbx"), (b":path", b"/exec")))
    spec = bytes((2,)) + struct.pack("<HH", 0, 0) + text("root") + text("/")
    spec += struct.pack("<H", len(argv)) + b"".join(map(text, argv)) + struct.pack("<H", 0)
    body = bytes((1,)) + struct.pack("<I", len(spec))[:3] + spec
    ctl.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(4, 1, 0) +
                frame(1, 4, 1, head) + frame(0, 0, 1, body))
