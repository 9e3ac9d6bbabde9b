# SPDX-License-Identifier: Apache-2.0
"""Holes around containers: rules that allow their requests, a Docker client that lies, and foreign
processes in the guest."""
import pathlib
import socket

from mutation import Mutation
from mutations_network import ANSWER_UDP, lan

D = "docker/"


def ids(*names):
    return tuple(D + n for n in names)


# Clients of the daemon get an answer as from the host's.
LIE = """
cat >/usr/local/bin/curl <<'END'
#!/bin/sh
case $* in
*docker.sock*)
	printf '{"ID":"0000","KernelVersion":"0.0.0-of-the-host",'
	echo '"DockerRootDir":"/root","ServerVersion":"1"}'
	;;
*) exec /usr/bin/curl "$@" ;;
esac
END
chmod 755 /usr/local/bin/curl
"""
STRANGER = "cp /usr/bin/sleep /run/sbx-keeper && { setsid /run/sbx-keeper 900 >/dev/null 2>&1 & }"
ANSWER = ANSWER_UDP + """
nft add chain inet prove_hole in '{ type nat hook prerouting priority -150; }'
nft add rule inet prove_hole in iifname docker0 udp dport != 53 dnat ip to 198.18.0.1:5999
"""
STOP_ANSWER = (
    "nft delete table inet prove_hole; kill $(cat /run/prove-hole.pid); rm /run/prove-hole.*")


def open_lan(ctx):
    ctx.env.sbx("policy", "allow", "network", f"{lan()}:1-65535", "--sandbox", ctx.twin.name)


def close_lan(ctx):
    ctx.env.sbx("policy", "rm", "network", "--resource", f"{lan()}:1-65535", "--sandbox",
                ctx.twin.name)


def listen(ctx):
    ctx.keep["docker"] = socket.create_server(("127.0.0.1", 2375))


def stop_listening(ctx):
    if "docker" in ctx.keep:
        ctx.keep.pop("docker").close()


def same_kernel(ctx):
    """The guest's boot id and machine id read as the host's."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    machine = pathlib.Path("/etc/machine-id").read_text(encoding="ascii").strip()
    ctx.twin.guest(f"cp -p /etc/machine-id /run/prove-machine && echo {machine} >/etc/machine-id")
    ctx.twin.guest(
        f"echo {boot} >/run/prove-boot && mount --bind /run/prove-boot /proc/sys/kernel/random/boot_id")


def own_kernel(ctx):
    ctx.twin.guest("cp -p /run/prove-machine /etc/machine-id; rm -f /run/prove-machine")
    ctx.twin.guest("umount /proc/sys/kernel/random/boot_id; rm -f /run/prove-boot")


MUTATIONS = [
    Mutation(red=ids("denied-name"), allow=("dock-name-*.invalid",)),
    Mutation(red=ids("metadata"), allow=("169.254.169.254:8775",)),
    Mutation(red=ids("host-loopback"), allow=("host.docker.internal:1-65535",)),
    Mutation(red=ids("lan"), host=open_lan, undo_host=close_lan),
    Mutation(red=ids("dns"), allow=("dock-dns-*.invalid",)),
    Mutation(red=ids("privileged"), allow=("dock-priv-*.invalid",)),
    Mutation(red=ids("host-network"), allow=("dock-host-*.invalid",)),
    Mutation(red=ids("user-network"), allow=("dock-own-*.invalid",)),
    Mutation(red=ids("udp"), guest=ANSWER, undo_guest=STOP_ANSWER),
    Mutation(red=ids("privileged-raw"), guest="ip addr add 192.0.2.22/32 dev lo",
             undo_guest="ip addr del 192.0.2.22/32 dev lo"),
    Mutation(red=ids("ca"), # its containers got the CA at creation
             guest="rm -rf /run/sbx-dock; cp -p /run/sbx/ca.pem /run/prove-ca && "
                   "echo '# PRIVATE KEY' >>/run/sbx/ca.pem",
             undo_guest="rm -rf /run/sbx-dock; cp -p /run/prove-ca /run/sbx/ca.pem"),
    Mutation(red=ids("proxy-variables"), # its containers got their environment at creation
             guest="rm -rf /run/sbx-dock; mkdir -p ~root/.docker; "
                   "cp -p ~root/.docker/config.json /run/prove-docker 2>/dev/null; "
                   "echo '{\"proxies\":{\"default\":{\"httpProxy\":\"http://gateway.docker.internal:3128\"}}}' >~root/.docker/config.json",
             undo_guest="rm -rf /run/sbx-dock; if [ -f /run/prove-docker ]; "
                        "then mv /run/prove-docker ~root/.docker/config.json; "
                        "else rm -f ~root/.docker/config.json; fi"),
    Mutation(red=ids("pull"), allow=("dock-pull-*.invalid",)),
    Mutation(red=ids("own-daemon", "data-root"), guest=LIE, undo_guest="rm /usr/local/bin/curl"),
    Mutation(red=ids("host-pid"), guest=STRANGER,
             undo_guest="pkill -x sbx-keeper; rm /run/sbx-keeper"),
    Mutation(red=ids("host-sockets"), guest=": >/run/host-docker.sock",
             undo_guest="rm /run/host-docker.sock"),
    Mutation(red=ids("not-from-host"), host=listen, undo_host=stop_listening),
    Mutation(red=ids("escape", "host-root"), host=same_kernel, undo_host=own_kernel),
]
