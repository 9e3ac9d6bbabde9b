# SPDX-License-Identifier: Apache-2.0
"""Holes in the network: a rule that allows a probe's request, a program in the guest that answers,
and gaps in our own programs.

Each probe requests its own name, so that a rule allows only that one.
"""
import re
import socket

from holes import HOLES
from mutation import Hole, Mutation

N = "network/"


def ids(*names):
    return tuple(N + n for n in names)


HOLES += [
    Hole("net-card", "lib/vm/vmm/args.c", '\tadd2(a, "-device", "vmgenid,guid=auto");\n',
         '\tadd2(a, "-device", "vmgenid,guid=auto");\n\tadd2(a, "-device", "virtio-net-pci,romfile=");\n'),
    Hole("net-shared", "lib/os/jail/spawn.c", "\tif (s->row->host_net)\n",
         "\tif (s->row->host_net || true)\n"),
    Hole("net-reverse", "src/edge/tunnel/name.c", "\t\t\tfacts.ptr = (struct slice){0};\n",
         "\t\t\tfacts.ptr = slice_from_str(gateway_names[0]);\n"),
    Hole("net-dns-unsaid", "src/edge/tunnel/name.c",
         "\t\tif (status == 0 && q.kind == DNS_NAME_INVALID)\n", "\t\tif (false)\n"),
    Hole("net-synthetic", "src/edge/tunnel/caught.c",
         "\tif (name_is_synthetic(a) && find_name(e, c, a) < 0)\n",
         "\tif (name_is_synthetic(a) && find_name(e, c, a) < 0 && false)\n"),
    Hole("net-names-agree", "lib/wire/http/canon/canon_name.c", "\t\treturn CANON_NO_TARGET;\n",
         "\t\treturn CANON_NO_TARGET;\n\tif (target->given)\n\t\treturn CANON_AGREE;\n"),
    Hole("net-sni-any", "src/edge/tunnel/check.c",
         '\t\t\treturn "the TLS server name is not a host name";\n', "\t\t\treturn NULL;\n"),
    Hole("net-hello-unsaid", "src/edge/tunnel/check.c",
         "static void cut_bad_hello(struct edge *e, struct conn *c)\n{\n\tchar fault[EDGE_MAX_TEXT];\n\n",
         "static void cut_bad_hello(struct edge *e, struct conn *c)\n{\n\tchar fault[EDGE_MAX_TEXT];\n\n\tif (c->hello->state == HELLO_BAD) {\n\t\tconn_end(e, c);\n\t\treturn;\n\t}\n"),
    Hole("net-ech", "src/edge/tunnel/check.c", "\tif (hello_hides_name(h))\n",
         "\tif (hello_hides_name(h) && false)\n"),
    Hole("net-second-hello", "src/edge/tunnel/check.c", "\tif (hello) {\n",
         "\tif (hello && false) {\n"),
    Hole("net-own", "lib/rules/policy/locals.c",
         "\tif (class != ADDR_LOOPBACK && find_locals(l, a, true)) {\n", "\tif (false) {\n"),
    Hole("net-deny-two-ports", "lib/rules/policy/rule.c",
         "netrule_get_ports(net, rule->effect != RULE_ALLOW, ret)",
         "netrule_get_ports(net, false, ret)"),
    Hole("net-no-extra-ca", "src/keeper/credential/trust.c", ".extra_pem = k->trust->extra,",
         ".extra_pem = NULL,"),
    Hole("net-junk", "src/edge/tunnel/check.c",
         '\t\tcut_check(e, c, "the first bytes are neither TLS nor HTTP");\n',
         "\t\tconn_end(e, c);\n"),
    Hole("net-two-hosts", "lib/wire/http/http1_framing.c",
         '\tif (said.n_host > 1)\n\t\treturn http1_fail(h, 400, "more than one Host header");\n',
         "\tif (said.n_host > 1)\n\t\treq->headers.n--;\n"),
    Hole("net-userinfo", "lib/wire/http/http1_head.c", "\tif (n == 0 || memchr(rest.p, '@', n))\n",
         "\tif (n == 0)\n"),
    Hole("net-cr", "lib/wire/http/http1_head.c",
         '\t\treturn c == \'\\n\' ? 1 : http1_fail(h, 400, "a CR that is not followed by LF");\n',
         "\t\treturn 1;\n"),
    Hole("net-control", "lib/wire/http/http1_head.c",
         "\tif ((c < 0x20 && c != '\\t') || c == 0x7f)\n", "\tif (c == 0x7f)\n"),
    Hole("net-target", "lib/wire/http/canon/canon.c",
         '\t\tif (take_name(where, req->authority, arena, &names->authority) < 0)\n'
         '\t\t\treturn canon_refuse(fault, 400, "the target is not a host name and port");\n',
         "\t\t(void)!take_name(where, req->authority, arena, &names->authority);\n"),
    Hole("net-two-lengths", "lib/wire/http/http1_framing.c",
         "\tif (said->n_length && said->n_encoding)\n",
         "\tif (said->n_length && said->n_encoding && false)\n"),
    Hole("net-https", "lib/wire/http/canon/canon.c",
         "\tif (!where->target.given && is_absolute && names->scheme == HTTP_SCHEME_HTTPS)\n",
         "\tif (!where->target.given && is_absolute && names->scheme == HTTP_SCHEME_HTTPS && false)\n"),
    Hole("net-version", "lib/wire/http/http1_head.c",
         '\t\treturn http1_fail(h, 505, "only HTTP/1.1 and HTTP/1.0 are supported");\n',
         "\t\treturn 0;\n"),
]

# Their names begin with their own id.
BY_NAME = ("denied-name", "connect-443", "connect-80", "plain-get", "plain-post", "methods",
           "websocket", "http10", "second-request", "curl-fails",
           "no-proxy-set", "says-why", "audit-complete", "dns-txt", "dns-null", "dns-mx", "dns-srv",
           "dns-https", "dns-svcb", "dns-any", "dns-cname",
           "dns-aaaa", "dns-unknown-type", "dns-name", "dns-foreign", "resolv-conf", "doh-name",
           "no-filters", "own-route", "own-interface", "tap",
           "stop-guest-net", "redirect")
# Other spellings of the requested address are decided as this one.
SPELLED = ("metadata", "metadata-decimal", "metadata-octal", "metadata-hex", "metadata-short",
           "metadata-mixed", "metadata-mapped",
           "metadata-mapped-hex", "metadata-token")
BY_RULE = {
    "connect-22": "connect-22-*.invalid:22", "look-alike": "**.look-alike-*.invalid",
    "below-allowed": "below-allowed-*.*.*.com",
    "ip-literal": "198.51.100.7", "ip6-literal": "[2001:db8::7]", "transparent-tls": "203.0.113.7",
    "transparent-http": "203.0.113.8",
    "transparent-raw": "203.0.113.9:22", "metadata-nat64": "[64:ff9b::a9fe:a9fe]",
    "metadata-nat64-local": "[64:ff9b:1::a9fe:a9fe]",
    "metadata-6to4": "[2002:a9fe:a9fe::1]", "metadata-compatible": "[::a9fe:a9fe]",
    "metadata-siit": "[::ffff:0:a9fe:a9fe]",
    "metadata-teredo": "[2001:0:a9fe:a9fe::1]", "metadata-isatap": "[2001:4860::5efe:a9fe:a9fe]",
    "metadata-aws-v6": "[fd00:ec2::254]",
    "metadata-google-v6": "[fd20:ce::254]", "metadata-ecs": "169.254.170.2",
    "metadata-eks": "169.254.170.23", "metadata-alibaba": "100.100.100.200",
    "metadata-azure": "168.63.129.16", "metadata-oracle": "192.0.0.192",
    "metadata-name": "instance-data", "loopback-2": "127.0.0.2:1-65535",
    "loopback-v6": "[::1]:1-65535", "any-address": "0.0.0.0:1-65535",
    "any-address-v6": "[::]:1-65535", "localhost-name": "localhost:1-65535",
    "host-names": "host.docker.internal:1-65535", "gateway-name": "gateway.docker.internal:1-65535",
    "private-10": "10.11.12.13",
    "private-172": "172.16.5.4", "private-192": "192.168.1.1", "cgnat": "100.64.0.1",
    "link-local": "169.254.1.1", "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255", "link-local-v6": "[fe80::1]",
    "unique-local-v6": "[fd12:3456:789a::1]", "multicast-v6": "[ff02::1]",
    "other-sandboxes": "sandbox-*.sbx.internal", "dns-long-label": "**.dns-long-label-*.invalid",
    "dns-many-labels": "**.dns-many-labels-*.invalid",
    "doh-address": "192.0.2.53", "dot": "192.0.2.54:853",
}

UDP = ("udp-host", "udp-quic", "udp-ntp", "udp-doq", "udp-mdns", "udp-llmnr", "udp-broadcast",
       "udp-v6", "udp-netbios")
IP = ("icmp", "icmp-v6", "raw-ip", "sctp", "dccp", "gre")
ALONE = ("qemu-alone", "edge-alone", "dns-ptr", "packet-socket", "xdp-socket", "vsock",
         "no-filters", "own-route", "own-interface", "tap", *UDP, *IP)

# All UDP traffic is redirected to a program in the guest that answers.
ANSWER_UDP = """
cat >/run/prove-hole.py <<'END'
import select, socket
all = []
for family, at in ((socket.AF_INET, "198.18.0.1"), (socket.AF_INET6, "fd5b:7862:19d3:1::1")):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.bind((at, 5999))
    all.append(s)
while True:
    for s in select.select(all, [], [])[0]:
        s.sendto(b"here", s.recvfrom(2000)[1])
END
setsid python3 /run/prove-hole.py >/dev/null 2>&1 &
echo $! >/run/prove-hole.pid
nft -f - <<'END'
table inet prove_hole {
	chain out {
		type nat hook output priority -150
		meta nfproto ipv4 udp dport != 53 ip daddr != 127.0.0.0/8 dnat ip to 198.18.0.1:5999
		meta nfproto ipv6 udp dport != 53 ip6 daddr != ::1 \
			dnat ip6 to [fd5b:7862:19d3:1::1]:5999
	}
}
END
sleep 2
"""
# An address of the guest itself is not a foreign one, but it answers.
ANSWER_IP = "ip addr add 192.0.2.11/32 dev lo\nip addr add 2001:db8::11/128 dev lo\n"
ANSWER_ARP = """
ip netns add prove_hole && ip link add prove_h0 type veth peer name prove_h1 &&
	ip link set prove_h1 netns prove_hole
ip link set prove_h0 up && ip -n prove_hole link set prove_h1 up &&
	ip -n prove_hole addr add 192.0.2.11/24 dev prove_h1
sleep 1
"""
ANSWER_VSOCK = """
cat >/run/prove-vsock.py <<'END'
import socket
s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
s.bind((socket.VMADDR_CID_ANY, 23416))
s.listen(8)
while True:
    s.accept()
END
modprobe vsock_loopback 2>/dev/null
setsid python3 /run/prove-vsock.py >/dev/null 2>&1 &
echo $! >/run/prove-vsock.pid
sleep 2
"""


def lan():
    """The address that the probes find too: the first of this host that is not loopback."""
    last, found = "", []
    with open("/proc/net/fib_trie", encoding="ascii") as f:
        for line in f:
            if "/32 host LOCAL" in line:
                found.append(last)
            last = (line.split() + [""])[1]
    return [a for a in found if not a.startswith("127.")][0]


def open_lan(ctx):
    ctx.env.sbx("policy", "allow", "network", f"{lan()}:1-65535", "--sandbox", ctx.box.name)


def close_lan(ctx):
    ctx.env.sbx("policy", "rm", "network", "--resource", f"{lan()}:1-65535", "--sandbox",
                ctx.box.name)


PORTS = (22, 25, 9999)


def open_ports(ctx):
    """Opens these ports of the host that the probes choose; it is an address of this machine, so no
    traffic leaves it."""
    ctx.keep["connect-to"] = ctx.env.sbx("settings", "get", "network.connect-to").stdout.strip()
    host = ctx.keep["port-host"] = re.search(r"^allow network ([a-z0-9.-]*\.[a-z]*):443( .*)*$",
                                             ctx.env.sbx("policy", "export").stdout,
                                             re.MULTILINE)[1]
    ctx.env.sbx("settings", "set", "network.connect-to",
                ",".join([ctx.keep["connect-to"], *(f"{host}:{p}=127.0.0.1:9" for p in PORTS)]))
    ctx.env.sbx("policy", "allow", "network", ",".join(f"{host}:{p}" for p in PORTS), "--sandbox",
                ctx.box.name)


def close_ports(ctx):
    if "port-host" not in ctx.keep:
        return
    host = ctx.keep.pop("port-host")
    for port in PORTS:
        ctx.env.sbx("policy", "rm", "network", "--resource", f"{host}:{port}", "--sandbox",
                    ctx.box.name)
    ctx.env.sbx("settings", "set", "network.connect-to", ctx.keep.pop("connect-to"))


MUTATIONS = [
    *(Mutation(red=ids(name), allow=(f"{name}-*.invalid",)) for name in BY_NAME),
    *(Mutation(red=ids(name), allow=(resource,)) for name, resource in BY_RULE.items()),
    Mutation(red=ids(*SPELLED), allow=("169.254.169.254",)),
    Mutation(red=ids("host-loopback", "loopback-spellings", "loopback-mapped"),
             allow=("127.0.0.1:1-65535",)),
    Mutation(red=ids("lan"), host=open_lan, undo_host=close_lan),
    Mutation(red=ids("allowed-port-22", "allowed-port-25", "allowed-port-9999"), host=open_ports,
             undo_host=close_ports),
    Mutation(red=ids(*UDP), guest=ANSWER_UDP,
             undo_guest="nft delete table inet prove_hole; kill $(cat /run/prove-hole.pid); "
                        "rm /run/prove-hole.*"),
    Mutation(red=ids(*IP), guest=ANSWER_IP,
             undo_guest="ip addr del 192.0.2.11/32 dev lo; ip addr del 2001:db8::11/128 dev lo"),
    Mutation(red=ids("packet-socket", "xdp-socket"), guest=ANSWER_ARP,
             undo_guest="ip netns del prove_hole"),
    Mutation(red=ids("vsock"), guest=ANSWER_VSOCK,
             undo_guest="kill $(cat /run/prove-vsock.pid); rm /run/prove-vsock.*"),
    Mutation(red=ids("no-card", "no-virtio-net", "no-pci-net"), hole="net-card", alone=True),
    Mutation(red=ids(*ALONE), hole="net-shared", alone=True),  # other groups detect it too
    Mutation(red=ids("dns-ptr"), hole="net-reverse"),
    Mutation(red=ids("dns-bytes"), hole="net-dns-unsaid"),
    Mutation(red=ids("unknown-synthetic"), hole="net-synthetic"),
    Mutation(red=ids("sni-other", "sni-missing", "sni-address", "sni-spelling", "host-mismatch",
                     "metadata-host-header", "tunnel-http", "transparent-sni",
                     "h2-authority"), hole="net-names-agree"),
    Mutation(red=ids("sni-nul"), hole="net-sni-any"),
    Mutation(red=ids("sni-long"), hole="net-hello-unsaid"),
    Mutation(red=ids("ech"), hole="net-ech"),
    Mutation(red=ids("own-address"), hole="net-own"),
    Mutation(red=ids("sni-second"), hole="net-second-hello"),
    Mutation(red=ids("deny-ports"), hole="net-deny-two-ports"),
    Mutation(red=ids("extra-ca"), hole="net-no-extra-ca"),
    Mutation(red=ids("connect-junk"), hole="net-junk"),
    Mutation(red=ids("host-twice"), hole="net-two-hosts"),
    Mutation(red=ids("userinfo", "backslash"), hole="net-userinfo"),
    Mutation(red=ids("crlf"), hole="net-cr"),
    Mutation(red=ids("connect-nul", "socks"), hole="net-control"),
    Mutation(red=ids("percent", "odd-ports"), hole="net-target"),
    Mutation(red=ids("two-lengths"), hole="net-two-lengths"),
    Mutation(red=ids("https-url"), hole="net-https"),
    Mutation(red=ids("h2-preface"), hole="net-version"),
]
