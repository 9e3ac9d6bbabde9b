# SPDX-License-Identifier: Apache-2.0
"""Docker in the guest: nothing runs before the first use, and then it is a real one."""
import hashlib
import io
import json
import os
import pathlib
import socket
import tarfile
import time

import pytest

from installation import WITH_DOCKER
from test_ports import dial, publish, read_all, wait_inside

# The first connection starts containerd and dockerd under software emulation.
SLOW = 300


def add(tar, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def busybox_image(path, tag):
    """A docker-archive with one layer: busybox as /bin/sh and friends."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("bin", "proc", "sys", "dev", "etc", "tmp"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        add(tar, "bin/busybox", pathlib.Path("/bin/busybox").read_bytes(), 0o755)
        for name in ("sh", "echo", "cat", "id", "ls", "true", "sleep", "touch"):
            info = tarfile.TarInfo(f"bin/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
    blob = layer.getvalue()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(blob).hexdigest()]},
        "history": [{"created": "2001-01-01T00:00:00Z", "created_by": "busybox"}]}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag],
                            "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        add(tar, config_name, config)
        add(tar, "layer.tar", blob)
        add(tar, "manifest.json", manifest)


@pytest.fixture(scope="module")
def docker(env):
    folder = env.make_folder("docker")
    box = env.create("docker", folder, memory=WITH_DOCKER)
    busybox_image(folder / "image.tar", "tiny:1")
    box.folder = folder
    yield box
    box.rm()


def test_nothing_runs_before_the_first_use(docker):
    """Also in a sandbox that started from the snapshot of its template."""
    assert docker.info()["start"] == ("resumed" if os.environ.get("SBX_SUSPENDED") else "warm")
    assert docker.fails("pgrep -x dockerd") and docker.fails("pgrep -x containerd")
    assert docker.guest("stat -c '%F' /var/run/docker.sock") == "socket"


def test_info_after_the_first_use(docker):
    info = json.loads(docker.guest("docker info --format '{{json .}}'", user="agent", timeout=SLOW))
    assert info["Driver"] == "overlay2"
    assert info["CgroupVersion"] == "2"
    assert not docker.fails("pgrep -x dockerd")


def test_load_and_run(docker):
    loaded = docker.guest(f"docker load -i '{docker.folder}/image.tar'", user="agent", timeout=SLOW)
    assert "tiny:1" in loaded
    assert docker.guest("docker run --rm tiny:1 echo from inside", user="agent",
                        timeout=SLOW) == "from inside"


COMPOSE = """services:
  web:
    image: tiny:1
    init: true
    command: [busybox, httpd, -f, -p, "8080", -h, /www]
    volumes: [./www:/www:ro]
  ask:
    image: tiny:1
    depends_on: [web]
    command:
      - sh
      - -c
      - |
        for i in 1 2 3 4 5 6 7 8; do
          busybox wget -q -O- http://web:8080/word && exit
          sleep 1
        done
        env
        exit 1
"""


def test_two_services_of_compose_talk_plain_http(docker):
    """With proxy variables the request for `web` went to the sandbox's proxy, which knows no such
    name."""
    folder = docker.folder / "compose"
    (folder / "www").mkdir(parents=True)
    (folder / "www/word").write_text("from the other service\n")
    (folder / "compose.yaml").write_text(COMPOSE)
    said = docker.exec("sh", "-c",
                       f"cd '{folder}' && docker compose up --no-color --exit-code-from ask "
                       "ask 2>&1", user="agent", check=False, timeout=SLOW)
    docker.exec("sh", "-c", f"cd '{folder}' && docker compose down -t 0", user="agent", check=False,
                timeout=SLOW)
    assert said.returncode == 0 and "from the other service" in said.stdout, said.stdout


def test_exit_status_volume_and_environment(docker):
    done = docker.exec("docker", "run", "--rm", "-v", f"{docker.folder}:/w", "tiny:1", "sh", "-c",
                       "touch /w/made; busybox env; exit 9", check=False, timeout=SLOW)
    assert done.returncode == 9, done.stderr
    assert (docker.folder / "made").exists()
    assert "PATH=" in done.stdout and "http_proxy" not in done.stdout


def test_a_published_port_leads_to_a_container_that_publishes(docker):
    at = publish(docker, "8004")
    docker.guest("docker run -d --name nc -p 8004:80 tiny:1 sh -c "
                 "'while :; do echo from a container | busybox nc -l -p 80; done'", user="agent",
                 timeout=SLOW)
    wait_inside(docker, 8004)
    deadline = time.monotonic() + 30
    text = b""
    while text != b"from a container\n":
        assert time.monotonic() < deadline, text
        with dial(at) as s:
            s.shutdown(socket.SHUT_WR)
            try:
                text = read_all(s)
            except ConnectionResetError:  # docker-proxy listens before the program
                time.sleep(0.3)
    docker.guest("docker rm -f nc", user="agent", timeout=SLOW)


KUBELET = r"""
set -eu
mount -t tmpfs none /tmp && cd /tmp && mkdir lower upper work merged run
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && echo overlay
mount --make-rshared / && mount --bind merged run && mount --make-shared run && echo rshared
mkdir /sys/fs/cgroup/init && echo 0 >/sys/fs/cgroup/init/cgroup.procs
echo '+cpu +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/kubepods/pod1 && echo 50 >/sys/fs/cgroup/kubepods/pids.max
echo 67108864 >/sys/fs/cgroup/kubepods/memory.max &&
	echo '+memory' >/sys/fs/cgroup/kubepods/cgroup.subtree_control && echo cgroups
for m in br_netfilter vxlan ip_vs ip_vs_rr nf_conntrack ip_tables overlay; do modprobe $m; done &&
	echo modules
echo 1 >/proc/sys/net/ipv4/ip_forward &&
	echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables && echo sysctls
mkdir -p /run && ip netns add pod && ip link add cni0 type bridge &&
	ip link add veth0 type veth peer name veth1
ip link set veth1 netns pod && ip link set veth0 master cni0 && ip addr add 10.244.0.1/24 dev cni0
ip link set cni0 up && ip link set veth0 up &&
	ip -n pod addr add 10.244.0.2/24 dev veth1 && ip -n pod link set veth1 up
ping -c1 -W5 10.244.0.2 >/dev/null && echo veth
ip link add flannel.1 type vxlan id 1 dev eth0 dstport 8472 && echo vxlan
iptables-nft -t nat -A POSTROUTING -s 10.244.0.0/16 ! -o cni0 \
	-m comment --comment pods -j MASQUERADE
iptables-nft -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
iptables-nft -t nat -A OUTPUT -d 10.96.0.1/32 -p tcp --dport 443 \
	-m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.244.0.2:6443 &&
	echo iptables
ip tuntap add dev tun0 mode tun && ip link set tun0 up && echo tun
[ -c /dev/kmsg ] && echo kmsg
"""


def test_a_privileged_container_does_what_a_kubelet_does(docker):
    """Mounts, cgroups, modules, interfaces, rules and tunnels: what kind and k3s need of the
    kernel. No cluster is started."""
    (docker.folder / "kubelet").write_text(KUBELET)
    said = docker.exec("sh", "-c",
                       "docker run --rm --privileged --cgroupns=private -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro "
                       f"-e PATH=/usr/sbin:/usr/bin:/bin -v '{docker.folder}:/w:ro' tiny:1 sh "
                       "/w/kubelet 2>&1", user="agent", check=False, timeout=SLOW)
    want = "overlay rshared cgroups modules sysctls veth vxlan iptables tun kmsg".split()
    assert said.stdout.split() == want, said.stdout


def test_data_is_on_its_own_disk(docker):
    assert docker.guest("findmnt -no SOURCE --target /var/lib/docker").startswith("/dev/vdb")


def test_images_survive_a_restart(docker):
    docker.stop()
    assert "tiny" in docker.guest("docker images", user="agent", timeout=SLOW)
