/* SPDX-License-Identifier: Apache-2.0 */
/* Common programs as clients in a guest: they use a sealed sbx-edge as their proxy, by CONNECT, and
 * it intercepts their TLS. The test forwards data between loopback and the wire, and answers as
 * keeper and origin. */
#include "open_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define HOST NET_RIG_HOST
#define MAX_LINKS 16
#define MAX_BYTES (1024 * 1024)
#define LIMIT_MS 60000

struct link { /* a connection of a client */
	int fd;
	struct net_conn *c;
	bool shut;
};

struct origin { /* the other end of an allowed request */
	struct net_way *w;
	struct canon_reader rd;
	uint64_t n;
	bool over, answered;
};

static struct world {
	struct net_rig *n;
	int listener;
	uint16_t port;
	char ca[64];
	struct link links[MAX_LINKS];
	unsigned n_links;
	struct origin origins[MAX_LINKS];
	unsigned n_origins;
	uint64_t n_body; /* of the last request */
	bool distrusted;
} w;

static void on_got(void *ctx, struct slice bytes)
{
	const struct link *l = ctx;
	size_t at = 0;

	/* The data is small; the client may have closed. */
	while (at < bytes.n) {
		ssize_t r = send(l->fd, bytes.p + at, bytes.n - at, MSG_NOSIGNAL);

		if (r < 0)
			return;
		at += (size_t)r;
	}
}

static void accept_one(void)
{
	int fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC);
	struct link *l = &w.links[w.n_links];

	if (fd < 0)
		return;
	assert_true(w.n_links < MAX_LINKS);
	*l = (struct link){.fd = fd, .c = net_open(w.n, "/proxy")};
	l->c->side.on_got = on_got;
	l->c->side.ctx = l;
	w.n_links++;
}

static void carry(struct link *l)
{
	static uint8_t buf[65536];
	ssize_t r;

	if (l->fd < 0)
		return;
	/* No more than the wire accepts: the client is slowed down as in a guest. */
	if (l->c->open && l->c->side.sent == l->c->side.n_send && !l->c->side.end) {
		r = recv(l->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (r > 0)
			net_say(w.n, l->c, buf, (size_t)r);
		else if (r == 0)
			net_end(w.n, l->c);
	}
	if (l->c->side.eof && !l->shut) {
		l->shut = true;
		(void)shutdown(l->fd, SHUT_WR);
	}
	if (l->c->closed)
		fd_close(&l->fd);
}

static void on_frames(void *ctx, struct slice in)
{
	struct origin *o = ctx;
	struct canon_frame frame;

	while (canon_reader_feed(&o->rd, &in, &frame) == 1) {
		o->n += frame.kind == CANON_DATA ? frame.payload.n : 0;
		o->over = o->over || frame.kind == CANON_END;
	}
}

static void answer_http(struct net_ask *a)
{
	struct origin *o = &w.origins[w.n_origins++];

	assert_true(w.n_origins <= MAX_LINKS && a->ask.tls);
	*o = (struct origin){.w = net_allow(w.n, a)};
	canon_reader_init(&o->rd);
	o->w->has_head = true;
	o->w->side.on_got = on_frames;
	o->w->side.ctx = o;
}

static void answer_asks(void)
{
	for (unsigned i = 0; i < w.n->n_asks; i++) {
		struct net_ask *a = &w.n->asks[i];

		if (a->answered)
			continue;
		if (a->ask.fault[0]) {
			w.distrusted = w.distrusted || strstr(a->ask.fault, "does not trust");
			net_deny(w.n, a, "");
		} else if (a->ask.kind == EDGE_ASK_TUNNEL) {
			net_allow_opened(w.n, a);
		} else {
			answer_http(a);
		}
	}
	for (unsigned i = 0; i < w.n_origins; i++) {
		struct origin *o = &w.origins[i];

		if (o->over && !o->answered) {
			o->answered = true;
			w.n_body = o->n;
			way_answer(o->w, "hello from the origin\n");
		}
	}
}

static int serve(pid_t pid)
{
	uint64_t end = clock_mono_ms() + LIMIT_MS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		assert_true(clock_mono_ms() < end);
		net_step(w.n, 2);
		accept_one();
		for (unsigned i = 0; i < w.n_links; i++)
			carry(&w.links[i]);
		answer_asks();
	}
	net_for(w.n, 50);
	answer_asks();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void forget(void)
{
	for (unsigned i = 0; i < w.n_links; i++) {
		w.links[i].c->side.on_got = NULL;
		fd_close(&w.links[i].fd);
	}
	for (unsigned i = 0; i < w.n_origins; i++) {
		w.origins[i].w->side.on_got = NULL;
		canon_reader_done(&w.origins[i].rd);
	}
	w.n_links = w.n_origins = 0;
}

static int run(const char *command)
{
	pid_t pid = fork();
	int r;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(LIMIT_MS / 1000);
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	w.distrusted = false;
	w.n_body = UINT64_MAX;
	r = serve(pid);
	forget();
	return r;
}

static int set_up(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	FILE *f;
	int fd;

	w = (struct world){.n = net_new(), .ca = "/tmp/sbx-open-XXXXXX"};
	w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(w.listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(w.listener, 16), 0);
	assert_int_equal(getsockname(w.listener, (struct sockaddr *)&at, &n), 0);
	w.port = ntohs(at.sin_port);
	fd = mkstemp(w.ca);
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	assert_true(fputs(w.n->rig->ca.pem, f) >= 0 && fclose(f) == 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)unlink(w.ca);
	fd_close(&w.listener);
	net_free(w.n);
	return 0;
}

/* %1$u port of the proxy, %2$s file of the CA. */
static const struct program {
	const char *name, *command;
	uint64_t n_body;
} programs[] = {
	{"curl",
		"curl -sS -x http://127.0.0.1:%1$u --cacert %2$s https://" HOST
		"/a | grep -q hello",
		0},
	{"curl",
		"curl -sS --tls-max 1.2 -x http://127.0.0.1:%1$u --cacert %2$s https://" HOST "/a "
		"https://" HOST "/b | grep -c hello | grep -q 2",
		0},
	{"curl",
		"head -c 1048576 /dev/zero | curl -sS --http1.1 -T - -x http://127.0.0.1:%1$u "
		"--cacert %2$s "
		"https://" HOST "/up | grep -q hello",
		MAX_BYTES},
	{"openssl",
		"printf 'GET /a HTTP/1.1\\r\\nHost: " HOST "\\r\\nConnection: close\\r\\n\\r\\n' | "
		"openssl s_client -quiet -verify_return_error -x509_strict -verify_hostname " HOST
		" -servername " HOST " -CAfile %2$s -proxy 127.0.0.1:%1$u -connect " HOST
		":443 2>/dev/null | grep -q hello",
		0},
	{"python3",
		"python3 -c 'import http.client, ssl, sys\n"
		"c = http.client.HTTPSConnection(\"127.0.0.1\", %1$u, timeout=20, "
		"context=ssl.create_default_context(cafile=\"%2$s\"))\n"
		"c.set_tunnel(\"" HOST "\", 443)\n"
		"for i in range(3):\n"
		"    c.request(\"POST\", \"/a\", b\"x\" * 100000)\n"
		"    r = c.getresponse()\n"
		"    assert r.status == 200 and b\"hello\" in r.read()'",
		100000},
	{"node",
		"NODE_EXTRA_CA_CERTS=%2$s node -e 'require(\"http\").request({port: %1$u, host: "
		"\"127.0.0.1\", "
		"method: \"CONNECT\", path: \"" HOST ":443\", headers: {host: \"" HOST
		":443\"}}).on(\"connect\", (r, s) => "
		"require(\"https\").get({socket: s, agent: false, host: \"" HOST
		"\", path: \"/a\"}, (a) => process.exit(a.statusCode == 200 ? 0 : 9))).end()'",
		0},
};

static char *command_of(const char *format)
{
	/* The format is constant. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return xasprintf(format, w.port, w.ca);
#pragma GCC diagnostic pop
}

static bool is_there(const char *program)
{
	AUTO_FREE char *command = xasprintf("command -v %s >/dev/null 2>&1", program);

	return system(command) == 0;
}

static void test_programs_of_a_guest(void **state)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *p = &programs[i];
		AUTO_FREE char *command = command_of(p->command);
		int r;

		if (!is_there(p->name))
			continue;
		n++;
		r = run(command);
		if (r != 0 || w.n_body != p->n_body)
			fail_msg("%s: exit %d, a body of %llu bytes", command, r,
				(unsigned long long)w.n_body);
	}
	assert_true(n > 0);
}

/* Without the CA clients disconnect, and the keeper gets the reason. */
static void test_programs_that_do_not_trust_us(void **state)
{
	static const char *const commands[] = {
		"curl -sS -x http://127.0.0.1:%1$u https://" HOST "/a 2>/dev/null",
		"python3 -c 'import http.client\n"
		"c = http.client.HTTPSConnection(\"127.0.0.1\", %1$u, timeout=20)\n"
		"c.set_tunnel(\"" HOST "\", 443)\n"
		"c.request(\"GET\", \"/a\")' 2>/dev/null",
	};

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		AUTO_FREE char *command = command_of(commands[i]);

		if (!is_there(i == 0 ? "curl" : "python3"))
			continue;
		assert_int_not_equal(run(command), 0);
		assert_true(w.distrusted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_programs_of_a_guest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_programs_that_do_not_trust_us, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
