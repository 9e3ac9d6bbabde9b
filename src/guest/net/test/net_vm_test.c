/* SPDX-License-Identifier: Apache-2.0 */
/* A real VM under TCG whose network ends in the test (net_rig.h). Needs a template directory in
 * SBX_TEST_TEMPLATE; argv[1] is sbx-guest. SBX_TEST_FILTER selects tests; those with Docker take
 * minutes and run if SBX_LONG is set (tests/long/machines). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "net_rig.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define STEP_MS 120000
#define DOCKER_MS 400000

static const char *template, *guest_path;
static struct rig rig;

/* Shared by scripts in the guest: prints events and their duration. */
#define PY                                                                                  \
	"cat >/tmp/p.py <<'END'\n"                                                          \
	"import socket, struct, time, sys, select, errno\n"                                 \
	"def fam(a): return socket.AF_INET6 if ':' in a else socket.AF_INET\n"              \
	"def tcp(a, port):\n"                                                               \
	"    s = socket.socket(fam(a)); s.settimeout(30); s.connect((a, port)); return s\n" \
	"def rest(s):\n"                                                                    \
	"    got = b''\n"                                                                   \
	"    while True:\n"                                                                 \
	"        b = s.recv(65536)\n"                                                       \
	"        if not b: return got\n"                                                    \
	"        got += b\n"
#define PY_END "\nEND\npython3 /tmp/p.py\n"

static void run(const char *script, unsigned timeout_ms)
{
	int status;

	rig.n_paths = 0;
	rig.paths[0] = '\0';
	status = rig_run(&rig, script, timeout_ms);
	if (status != 0) {
		print_message("%s\n%s\npaths:\n%s\n", script, rig.output, rig.paths);
		fail_msg("status %d", status);
	}
}

static void must_have(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s\npaths:\n%s", part, text, rig.paths);
}

static void must_lack(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s\npaths:\n%s", part, text, rig.paths);
}

static void ready_with_setup(void **state)
{
	print_message("qemu's start to /setup answered: %u ms\n", (unsigned)rig.setup_ms);
	rig_console(&rig);
	print_message("%s", rig.output);
	run("nft list table inet sbx; ip -br addr; ip route; ip -6 route; cat /etc/resolv.conf",
		STEP_MS);
	must_have(rig.output, "fib daddr oifname \"eth0\" goto caught");
	must_have(rig.output, "198.18.0.1/15");
	must_have(rig.output, "nameserver 198.18.0.1");
	must_have(rig.output, "default dev eth0");
	run("env; sudo -u agent sudo env | sed s/^/sudo:/; getent hosts gateway.sbx.internal",
		STEP_MS);
	must_have(rig.output, "\nHTTPS_PROXY=http://gateway.docker.internal:3128\n");
	must_have(rig.output, "\nno_proxy=localhost,127.0.0.1,::1,gateway.docker.internal,");
	must_have(rig.output, "sudo:JAVA_TOOL_OPTIONS=-Dhttp.proxyHost");
	must_have(rig.output, "sudo:https_proxy=http");
	must_have(rig.output, "gateway.docker.internal gateway.sbx.internal");
}

static void caught_and_proxied(void **state)
{
	run("curl -sS --noproxy '*' 203.0.113.5/ &&"
	    "curl -sS --noproxy '*' -g '[2001:db8::5]/' &&"
	    "curl -sS http://example.com/ &&"
	    "curl -sS -x http://gateway.sbx.internal:3128 http://example.com/",
		STEP_MS);
	assert_string_equal(
		rig.paths, "/tcp/203.0.113.5/80\n/tcp/2001:db8::5/80\n/proxy\n/proxy\n");
	must_have(rig.output, "you are on /tcp/2001:db8::5/80\n");
	/* Names are queried, then redirected. */
	run("curl -sS --noproxy '*' some.example/", STEP_MS);
	must_have(rig.paths, "/dns/udp\n");
	must_have(rig.paths, "/80\n");
}

static void what_stays_inside_is_not_caught(void **state)
{
	run(PY "s = socket.socket(); s.bind(('0.0.0.0', 8888)); s.listen()\n"
	       "for a in ('127.0.0.1', '198.18.0.1', '127.0.0.53'):\n"
	       "    c = tcp(a, 8888); k, _ = s.accept(); k.sendall(b'x'); print(a, c.recv(9))\n"
	       /* The redirect port itself rejects connections. */
	       "try: print('bad', tcp('198.18.0.1', 15001).recv(9))\n"
	       "except ConnectionResetError: print('reset')\n"
	       /* The guest itself refuses a connection to its own closed port. */
	       "try: tcp('127.0.0.1', 8889); print('bad')\n"
	       "except ConnectionRefusedError: print('refused')\n" PY_END,
		STEP_MS);
	assert_string_equal(rig.paths, "");
	must_have(rig.output, "reset\nrefused\n");
}

static void names(void **state)
{
	run("dig +short a.example; dig +short AAAA a.example; dig +short @8.8.8.8 a.example;"
	    "dig +short @2001:4860:4860::8888 a.example; dig +short +tcp a.example;"
	    "dig +short +tcp @9.9.9.9 a.example; getent ahostsv4 b.example",
		STEP_MS);
	must_have(rig.output,
		"198.18.7.7\nfd00::7\n198.18.7.7\n198.18.7.7\n198.18.7.7\n198.18.7.7\n");
	must_have(rig.paths, "/dns/udp\n/dns/udp\n/dns/udp\n/dns/udp\n/dns/tcp\n/dns/tcp\n");
	/* Forty in one connection, and two hundred datagrams at the same time. */
	run(PY "q = "
	       "b'\\x01\\x02\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x01a\\x02bc\\0\\0\\x01\\0\\x01'\n"
	       "c = tcp('198.18.0.1', 53)\n"
	       "c.sendall((struct.pack('>H', len(q)) + q) * 40); c.shutdown(1)\n"
	       "print('tcp', len(rest(c)) / (2 + len(q) + 16))\n"
	       "socks = [socket.socket(2, 2) for _ in range(200)]\n"
	       "for s in socks: s.sendto(q, ('1.2.3.4', 53))\n"
	       "for s in socks: s.settimeout(20); assert s.recvfrom(999)[1] == ('1.2.3.4', 53)\n"
	       "print('udp all')\n" PY_END,
		STEP_MS);
	must_have(rig.output, "tcp 40.0\nudp all\n");
}

static void the_rest_is_refused_at_once(void **state)
{
	run("ping -c1 -W5 1.1.1.1; ping -6 -c1 -W5 2001:db8::1; "
	    "ping -c1 -W5 127.0.0.1 >/dev/null && echo own\n" PY "def udp(a):\n"
	    "    t = time.time(); s = socket.socket(fam(a), 2); s.settimeout(5); s.connect((a, "
	    "443))\n"
	    "    try: s.send(b'x'); s.recv(9); print('bad')\n"
	    "    except OSError as e: print('udp', errno.errorcode.get(e.errno, e), time.time() - "
	    "t < 1)\n"
	    "udp('1.1.1.1'); udp('2001:db8::1')\n" PY_END,
		STEP_MS);
	must_have(rig.output, "Packet filtered");
	must_have(rig.output, "Administratively prohibited");
	must_have(rig.output, "own\n");
	must_have(rig.output, "udp EPERM True\nudp EPERM True\n");
	assert_string_equal(rig.paths, "");
}

/* A denied connection fails in connect(); a query without an answer lets it connect. */
static void refused_when_it_connects(void **state)
{
	run("nft list chain inet sbx held\n" PY "def tried(a, port):\n"
	    "    t = time.time()\n"
	    "    try: tcp(a, port); got = 'connected'\n"
	    "    except OSError as e: got = errno.errorcode[e.errno]\n"
	    "    print(a, port, got, 'at once' if time.time() - t < 1 else 'later')\n"
	    "for a in ('203.0.113.1', '2001:db8::1'):\n"
	    "    for port in (97, 7, 96): tried(a, port)\n"
	    /* A probe tests the host's decision about the stream. */
	    "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 36, 0x73627802)\n"
	    "s.connect(('203.0.113.1', 97)); print('past it')\n"
	    "for i in range(300):\n"
	    "    try: tcp('203.0.113.1', 97); print('bad')\n"
	    "    except ConnectionRefusedError: pass\n" PY_END,
		STEP_MS);
	must_have(rig.output, "queue flags bypass to 29538");
	must_have(rig.output, "203.0.113.1 97 ECONNREFUSED at once\n"
			      "203.0.113.1 7 connected at once\n"
			      "203.0.113.1 96 connected later\n"
			      "2001:db8::1 97 ECONNREFUSED at once\n"
			      "2001:db8::1 7 connected at once\n"
			      "2001:db8::1 96 connected later\n");
	must_lack(rig.output, "bad");
	must_have(rig.output, "past it\n");
	assert_string_equal(strstr(rig.paths, "/97\n"), "/97\n"); /* only that one */
}

static void ends_and_resets(void **state)
{
	run(PY "c = tcp('203.0.113.1', 9); c.sendall(b'y' * 100000); c.shutdown(1); "
	       "print(rest(c))\n"
	       "c = tcp('203.0.113.1', 13); print(rest(c)); c.sendall(b'later'); c.close()\n"
	       "c = tcp('203.0.113.1', 99); c.send(b'x')\n"
	       "try: print('bad', c.recv(9))\n"
	       "except ConnectionResetError: print('reset')\n"
	       /* The program's own reset reaches the host: the stream ends. */
	       "c = tcp('203.0.113.1', 98); c.send(b'x'); time.sleep(.3)\n"
	       "c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); "
	       "c.close()\n"
	       "time.sleep(.5)\n" PY_END,
		STEP_MS);
	must_have(rig.output, "b'took 100000\\n'\nb'now\\n'\nreset\n");
	must_have(rig.paths, "late 5\n");
	assert_int_equal(rig.n_open, 0);
}

/* CPU time of the VM so far: more reliable than the clock on a busy host. */
static uint64_t cpu_ms(void)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/stat", (int)vmm_child(rig.vmm)->pid);
	unsigned long user = 0, sys = 0;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(
		fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			&sys),
		2);
	(void)fclose(f);
	return (user + sys) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

static void print_rate(const char *what, uint64_t began_ms, uint64_t began_cpu_ms)
{
	uint64_t ms = clock_mono_ms() - began_ms, cpu = cpu_ms() - began_cpu_ms;

	print_message("%s, with python: %u MB in %u ms, %u ms of qemu's CPU\n", what,
		RIG_BULK / 1000000, (unsigned)ms, (unsigned)cpu);
}

static void much(void **state)
{
	uint64_t t = clock_mono_ms(), cpu = cpu_ms();

	run(PY "c = tcp('203.0.113.1', 9); b = b'z' * 65536\n"
	       "for _ in range(1024): c.sendall(b)\n"
	       "c.shutdown(1); print(rest(c))\n" PY_END,
		STEP_MS);
	must_have(rig.output, "took 67108864");
	print_rate("guest to host", t, cpu);
	t = clock_mono_ms();
	cpu = cpu_ms();
	run(PY "c = tcp('203.0.113.1', 19); n = 0; b = bytearray(262144)\n"
	       "while True:\n"
	       "    k = c.recv_into(b)\n"
	       "    if not k: break\n"
	       "    n += k\n"
	       "print(n)\n" PY_END,
		STEP_MS);
	must_have(rig.output, "67108864");
	print_rate("host to guest", t, cpu);
	/* Both directions at the same time, compared byte for byte. */
	run("head -c 5000000 /dev/urandom >/tmp/r\n" PY "import threading\n"
	    "c = tcp('2001:db8::1', 7); d = open('/tmp/r', 'rb').read()\n"
	    "t = threading.Thread(target=lambda: (c.sendall(d), c.shutdown(1))); t.start()\n"
	    "print(rest(c) == d)\n" PY_END,
		STEP_MS);
	must_have(rig.output, "True");
}

/* An end that does not read does not make sbx-guest-net grow. */
static void stalls_cost_nothing(void **state)
{
	run(PY "def rss():\n"
	       "    import subprocess\n"
	       "    p = subprocess.check_output(['pgrep', '-f', "
	       "'^sbx-guest-net']).split()[0].decode()\n"
	       "    return int([l for l in open('/proc/' + p + '/status') if 'VmRSS' in "
	       "l][0].split()[1])\n"
	       "before = rss(); c = tcp('203.0.113.1', 98); d = tcp('203.0.113.1', 19)\n"
	       "c.setblocking(False); n = 0; end = time.time() + 2\n"
	       "while time.time() < end:\n"
	       "    try: n += c.send(b'x' * 65536)\n"
	       "    except BlockingIOError: time.sleep(.05)\n"
	       "print('sent', n, 'grown', rss() - before)\n"
	       "assert n < 32 << 20 and rss() - before < 2048\n"
	       "print('other', tcp('203.0.113.1', 13).recv(9))\n"
	       /* A reset: unread data would keep its slot, and the next test needs all of them. */
	       "c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); "
	       "c.close()\n" PY_END,
		STEP_MS);
	must_have(rig.output, "other b'now\\n'");
	print_message("%s", rig.output);
}

static void many(void **state)
{
	run(PY "import resource\n"
	       "resource.setrlimit(resource.RLIMIT_NOFILE, (8000, 8000)); t = time.time()\n"
	       "c = [tcp('203.0.113.%d' % (i % 200), 7) for i in range(1000)]\n"
	       "for i, s in enumerate(c): s.sendall(b'%d' % i)\n"
	       "for i, s in enumerate(c): assert s.recv(99) == b'%d' % i\n"
	       "print('all', time.time() - t)\n"
	       /* The 1,201st is reset, possibly before it is connected; the others stay. */
	       "c += [tcp('203.0.113.1', 7) for i in range(200)]\n"
	       "try: print('bad', tcp('203.0.113.1', 7).recv(9))\n"
	       "except ConnectionResetError: print('reset')\n"
	       "c[0].send(b'!'); print(c[0].recv(9))\n" PY_END,
		STEP_MS);
	must_have(rig.output, "reset\nb'!'\n");
	assert_true(rig.max_open >= 1200);
	print_message("1000 connections: %s", rig.output);
	/* One source port to many addresses: redirected to one address, they must not clash. */
	run(PY "def one(a):\n"
	       "    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
	       "    s.bind(('', 40001)); s.settimeout(5); s.connect((a, 7)); s.send(a.encode())\n"
	       "    return s\n"
	       "c = {a: one(a) for a in ('203.0.113.%d' % i for i in range(1, 20))}\n"
	       "for a, s in c.items(): assert s.recv(99) == a.encode()\n"
	       "print('no clash')\n" PY_END,
		STEP_MS);
	must_have(rig.output, "no clash");
}

static void edge_goes_and_comes(void **state)
{
	int status;

	run(PY_END "nohup python3 - >/tmp/held 2>&1 <<'END' &\n"
		   "import socket\n"
		   "s = socket.create_connection(('203.0.113.1', 7)); print('up', flush=True)\n"
		   "try: print('bad', s.recv(9))\n"
		   "except ConnectionResetError: print('cut', flush=True)\n"
		   "END\nfor i in $(seq 100); do grep -q up /tmp/held && break; sleep .1; done",
		STEP_MS);
	rig_net_leave(&rig);
	/* A connection made before the guest has noticed is cut like the held one, so that is
	 * awaited first. */
	assert_int_equal(
		rig_run(&rig,
			"for i in $(seq 100); do grep -q cut /tmp/held && break; sleep .1; done;"
			"cat /tmp/held",
			STEP_MS),
		0);
	must_have(rig.output, "cut");
	/* A connection made meanwhile waits. */
	assert_int_equal(rig_run(&rig,
				 "curl -sS --noproxy '*' -m 30 203.0.113.5/ "
				 ">/tmp/waited 2>&1 & sleep .5",
				 STEP_MS),
		0);
	rig_net_return(&rig);
	run("wait; for i in $(seq 100); do grep -q you /tmp/waited && break; sleep .1; done;"
	    "cat /tmp/waited",
		STEP_MS);
	must_have(rig.output, "you are on");
	/* Away for long: refused, not left waiting. */
	rig_net_leave(&rig);
	rig_serve(&rig, 6000);
	status = rig_run(&rig, "curl -sS --noproxy '*' -m 30 203.0.113.5/", STEP_MS);
	/* Reset before it is noticed, while sending, or while waiting for the answer. */
	assert_true(status == 7 || status == 55 || status == 56);
	rig_net_return(&rig);
	run("for i in $(seq 50); do curl -sS --noproxy '*' 203.0.113.5/ && exit 0;"
	    "sleep .1; done; exit 1",
		STEP_MS);
}

/* Another edge immediately: the guest has no time to see the port closed. */
static void edge_is_replaced_at_once(void **state)
{
	for (int i = 0; i < 5; i++) {
		rig_net_leave(&rig);
		rig_net_return(&rig);
		run("for i in $(seq 50); do curl -sS -m 2 --noproxy '*' 203.0.113.5/ && "
		    "exit 0;"
		    "sleep .1; done; exit 1",
			STEP_MS);
	}
}

static void comes_again_when_killed(void **state)
{
	run("pkill -9 -f ^sbx-guest-net; sleep .2; for i in $(seq 100); do"
	    " curl -sS -m 3 --noproxy '*' 203.0.113.5/ && exit 0; sleep .1; done; exit 1",
		STEP_MS);
	must_have(rig.output, "you are on");
}

/* A container from one static program: there is no registry here. */
#define PROBE                                                                                     \
	"mkdir -p /tmp/i && cat >/tmp/i/p.c <<'END'\n"                                            \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"     \
	"#include <netdb.h>\n#include <sys/socket.h>\n#include <errno.h>\n"                       \
	"int main(int c, char **v) {\n"                                                           \
	" char b[500]; int n, s; struct addrinfo h = {.ai_socktype = !strcmp(v[1], \"udp\") ? 2 " \
	": 1}, *a;\n"                                                                             \
	" if (!strcmp(v[1], \"serve\")) { struct sockaddr_in6 l = {.sin6_family = AF_INET6,\n"    \
	"   .sin6_port = htons(atoi(v[2]))};\n"                                                   \
	"  s = socket(AF_INET6, 1, 0); bind(s, (void *)&l, sizeof(l)); listen(s, 5);\n"           \
	"  for (;;) { int k = accept(s, 0, 0); write(k, \"inside\\n\", 7); close(k); } }\n"       \
	" if (!strcmp(v[1], \"env\")) { printf(\"%s\\n\", getenv(\"http_proxy\")); return 0; }\n" \
	" if ((n = getaddrinfo(v[2], v[3], &h, &a))) { puts(gai_strerror(n)); return 3; }\n"      \
	" s = socket(a->ai_family, h.ai_socktype, 0);\n"                                          \
	" if (connect(s, a->ai_addr, a->ai_addrlen) || write(s, \"GET / HTTP/1.0\\r\\n\\r\\n\", " \
	"18) < 0 ||\n"                                                                            \
	"  (n = read(s, b, 400)) < 0) { printf(\"%s\\n\", strerror(errno)); return 1; }\n"        \
	" while (n > 0) { fwrite(b, 1, n, stdout); n = read(s, b, 400); }\n"                      \
	" return 0; }\n"                                                                          \
	"END\ncd /tmp/i && gcc -static -w -o p p.c 2>/dev/null && tar c p | docker import - "     \
	"probe >/dev/null\n"

static void docker_containers(void **state)
{
	uint64_t t = clock_mono_ms();

	run(PROBE, DOCKER_MS);
	print_message("docker and the image: %u ms\n", (unsigned)(clock_mono_ms() - t));
	run("r='docker run --rm probe /p'\n"
	    "$r tcp 203.0.113.5 80; $r tcp 2001:db8::5 80; $r tcp a.example 80;"
	    "$r tcp gateway.docker.internal 3128; $r udp 203.0.113.5 443; $r udp 2001:db8::5 443; "
	    "$r env",
		DOCKER_MS);
	must_have(rig.output, "on /tcp/203.0.113.5/80");
	must_have(rig.output, "on /tcp/2001:db8::5/80");
	must_have(rig.output, "on /tcp/fd00::7/80");
	must_have(rig.output, "on /proxy");
	must_have(rig.output, "(null)"); /* no http_proxy: services could not reach each other */
	must_lack(rig.output, "timed out");
	print_message("%s\npaths:\n%s", rig.output, rig.paths);
}

static void docker_containers_among_themselves(void **state)
{
	run("docker network create n1 >/dev/null; docker network create --ipv6 n6 >/dev/null\n"
	    "docker run -d --name web -p 8081:8080 probe /p serve 8080 >/dev/null\n"
	    "docker run -d --name w1 --network n1 probe /p serve 8080 >/dev/null\n"
	    "docker run -d --name w6 --network n6 probe /p serve 8080 >/dev/null",
		DOCKER_MS);
	run("ip=$(docker inspect -f '{{.NetworkSettings.IPAddress}}' web)\n"
	    "echo host-published; curl -sS --http0.9 --noproxy '*' 127.0.0.1:8081/\n"
	    "echo host-direct; curl -sS --http0.9 --noproxy '*' $ip:8080/\n"
	    "echo same-bridge; docker run --rm probe /p tcp $ip 8080\n"
	    "echo published; docker run --rm probe /p tcp 172.17.0.1 8081\n",
		DOCKER_MS);
	assert_string_equal(rig.output, "host-published\ninside\nhost-direct\ninside\n"
					"same-bridge\ninside\npublished\ninside\n");
	run("docker run --rm --network n1 probe /p tcp w1 8080;"
	    "docker run --rm --network n6 probe /p tcp w6 8080",
		DOCKER_MS);
	assert_string_equal(rig.output, "inside\ninside\n");
	must_lack(rig.paths, "/tcp/");
	/* User networks have the same redirection. */
	run("docker run --rm --network n1 probe /p tcp a.example 80;"
	    "docker run --rm --network n6 probe /p tcp 2001:db8::5 80",
		DOCKER_MS);
	must_have(rig.output, "on /tcp/198.18.7.7/80");
	must_have(rig.output, "on /tcp/2001:db8::5/80");
	/* dockerd's own rules have not removed ours. */
	run("nft list table inet sbx | grep -c caught", STEP_MS);
}

static int boot(void **state)
{
	rig_start(&rig, template, guest_path, 1024ULL << 20);
	return 0;
}

static int halt(void **state)
{
	rig_stop(&rig);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_with_setup),
		cmocka_unit_test(caught_and_proxied),
		cmocka_unit_test(what_stays_inside_is_not_caught),
		cmocka_unit_test(names),
		cmocka_unit_test(the_rest_is_refused_at_once),
		cmocka_unit_test(refused_when_it_connects),
		cmocka_unit_test(ends_and_resets),
		cmocka_unit_test(much),
		cmocka_unit_test(stalls_cost_nothing),
		cmocka_unit_test(many),
		cmocka_unit_test(edge_goes_and_comes),
		cmocka_unit_test(edge_is_replaced_at_once),
		cmocka_unit_test(comes_again_when_killed),
		cmocka_unit_test(docker_containers),
		cmocka_unit_test(docker_containers_among_themselves),
	};

	template = getenv("SBX_TEST_TEMPLATE");
	if (!template || argc < 2) {
		printf("SBX_TEST_TEMPLATE names no template: skipped\n");
		return 77;
	}
	guest_path = argv[1];
	cmocka_set_message_output(CM_OUTPUT_STDOUT);
	cmocka_set_test_filter(getenv("SBX_TEST_FILTER"));
	rig_leave_docker_out(tests, ARRAY_LEN(tests));
	return cmocka_run_group_tests(tests, boot, halt);
}
