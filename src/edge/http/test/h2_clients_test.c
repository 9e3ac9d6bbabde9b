/* SPDX-License-Identifier: Apache-2.0 */
/* Common HTTP/2 clients with a real, sealed sbx-edge: TCP on loopback replaces the wire of the
 * guest, and the origin echoes. */
#include "src/edge/tls/test/open_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define HOST NET_RIG_HOST
#define MAX_LINES 16
#define MAX_EXCHANGES 256
#define CLIENT_MS 60000
/* No more than this is read from a client before the wire has forwarded it. */
#define MAX_AHEAD 262144

/* One connection of a client. */
struct line {
	int fd;
	struct net_conn *c;
	struct bufq out;
	bool established, over; /* over: the client has closed its side */
};

struct exchange {
	struct canon_reader rd;
	struct net_way *w;
};

static struct net_rig *n;
static struct exchange exchanges[MAX_EXCHANGES];
static unsigned n_exchanges;
static struct line lines[MAX_LINES];
static unsigned n_lines;
static int listener;
static uint16_t port;
static char folder[] = "/tmp/h2-clients-XXXXXX";

static void on_got(void *ctx, struct slice bytes)
{
	struct line *l = ctx;

	assert_int_equal(bufq_put(&l->out, bytes), bytes.n);
}

static void take_line(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct line *l = &lines[n_lines];

	if (fd < 0)
		return;
	assert_true(++n_lines <= MAX_LINES);
	*l = (struct line){.fd = fd, .c = net_open_connect(n, HOST ":443")};
	bufq_init(&l->out, 64 * 1024 * 1024);
}

static void establish(struct line *l)
{
	struct net_ask *a = net_asked(n, EDGE_ASK_TUNNEL, HOST, 443);

	if (a)
		net_allow_opened(n, a);
	if (!net_got(&l->c->side, net_established, strlen(net_established)))
		return;
	l->established = true;
	l->c->side.n_got = 0;
	l->c->side.on_got = on_got;
	l->c->side.ctx = l;
}

static void move_line(struct line *l)
{
	static uint8_t buf[65536];
	ssize_t r;

	if (!l->established) {
		establish(l);
		return;
	}
	if (bufq_len(&l->out))
		(void)!bufq_drain(&l->out, l->fd);
	else if (l->c->side.eof || l->c->closed)
		(void)shutdown(l->fd, SHUT_WR);
	if (l->over || l->c->side.n_send - l->c->side.sent > MAX_AHEAD)
		return;
	r = recv(l->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (r > 0)
		net_say(n, l->c, buf, (size_t)r);
	if (r == 0 || (r < 0 && errno != EAGAIN)) {
		net_end(n, l->c);
		l->over = true;
	}
}

/* The origin echoes its input. */
static void say_head(struct net_way *w, struct slice payload)
{
	struct http_resp resp = {.status = 200, .body = {.kind = HTTP_BODY_CHUNKED}};
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct http_req req;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(canon_get_req(payload, &arena, &req), 0);
	if (slice_eq_str(req.method, "HEAD"))
		resp.body = (struct http_body){HTTP_BODY_LENGTH, 7, true};
	assert_int_equal(canon_put_resp(&wr, 1, &resp), 0);
	way_say(w, buf, wr.n);
	arena_done(&arena);
}

static void on_frames(void *ctx, struct slice in)
{
	struct exchange *x = ctx;
	struct canon_frame f;

	while (canon_reader_feed(&x->rd, &in, &f) == 1) {
		if (f.kind == CANON_HEAD)
			say_head(x->w, f.payload);
		else if (f.kind == CANON_DATA)
			way_say_data(x->w, f.payload);
		else if (f.kind == CANON_END)
			way_say_end(x->w);
	}
}

static void answer_asks(void)
{
	for (unsigned i = 0; i < n->n_asks; i++) {
		struct net_ask *a = &n->asks[i];
		struct exchange *x = &exchanges[n_exchanges];

		if (a->answered || a->ask.kind != EDGE_ASK_HTTP || a->ask.fault[0])
			continue;
		assert_true(++n_exchanges <= MAX_EXCHANGES);
		canon_reader_init(&x->rd);
		x->w = net_allow(n, a);
		x->w->has_head = true;
		x->w->side.on_got = on_frames;
		x->w->side.ctx = x;
	}
}

static pid_t start(const char *script)
{
	char text[8];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)snprintf(text, sizeof(text), "%u", port);
	(void)setenv("PORT", text, 1);
	if (chdir(folder) == 0)
		execl("/bin/sh", "sh", "-euc", script, (char *)NULL);
	_exit(127);
}

/* Runs the script and returns its exit status. */
static int run(const char *script)
{
	uint64_t end = clock_mono_ms() + CLIENT_MS;
	pid_t pid = start(script);
	int status = -1;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		take_line();
		net_step(n, 2);
		for (unsigned i = 0; i < n_lines; i++)
			move_line(&lines[i]);
		answer_asks();
		assert_true(clock_mono_ms() < end);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_ca(void)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/ca.pem", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(n->rig->ca.pem, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(addr);

	if (!mkdtemp(folder))
		return -1;
	n = net_new();
	write_ca();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		listen(listener, 16) < 0 ||
		getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
		return -1;
	port = ntohs(addr.sin_port);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < n_lines; i++) {
		(void)close(lines[i].fd);
		bufq_done(&lines[i].out);
	}
	for (unsigned i = 0; i < n_exchanges; i++)
		canon_reader_done(&exchanges[i].rd);
	(void)close(listener);
	(void)!run("rm -f ca.pem body got* head; rmdir \"$PWD\"");
	net_free(n);
	return 0;
}

#define CURL                                                                         \
	"curl -sS --max-time 50 --http2 --cacert ca.pem --noproxy '*' --connect-to " \
	"::127.0.0.1:$PORT "

static void curl_uploads_and_downloads(void **state)
{
	assert_int_equal(
		run("head -c 3000000 /dev/urandom > body;" CURL
		    "-o got -w '%{http_version} %{http_code}' --data-binary @body https://" HOST
		    "/echo > head; cmp body got; grep -qx '2 200' head"),
		0);
}

static void curl_sends_without_a_length(void **state)
{
	assert_int_equal(run("head -c 500000 body | " CURL "-o got -T - https://" HOST
			     "/put; head -c 500000 body | cmp - got"),
		0);
}

static void curl_asks_for_the_head(void **state)
{
	assert_int_equal(
		run(CURL "-I https://" HOST "/h > head; grep -q 'content-length: 7' head"), 0);
}

static void curl_has_twenty_at_once(void **state)
{
	assert_int_equal(
		run(CURL "--parallel --parallel-max 20 -o 'got#1' -d hello"
			 " 'https://" HOST "/[1-20]'; test $(cat got? got?? | wc -c) = 100"),
		0);
}

static void node_has_fifty_streams(void **state)
{
	static const char script[] =
		"command -v node > /dev/null || exit 77; node -e \"\n"
		"const tls = require('tls'), h2 = require('http2'), fs = require('fs');\n"
		"const ca = fs.readFileSync('ca.pem');\n"
		"const s = h2.connect('https://" HOST "', {createConnection: () => tls.connect({\n"
		"  host: '127.0.0.1', port: +process.env.PORT, servername: '" HOST "', ca,\n"
		"  ALPNProtocols: ['h2']})});\n"
		"const one = (i) => new Promise((ok, no) => {\n"
		"  const q = s.request({':method': 'POST', ':path': '/' + i, cookie: ['a=1', "
		"'b=2']});\n"
		"  const want = Buffer.alloc(20000 + i, i), got = [];\n"
		"  q.on('data', (d) => got.push(d)); q.on('error', no);\n"
		"  q.on('end', () => Buffer.concat(got).equals(want) ? ok() : no(new "
		"Error('bytes')));\n"
		"  q.write(want.subarray(0, 10)); setTimeout(() => q.end(want.subarray(10)), 20);\n"
		"});\n"
		"Promise.all(Array.from({length: 50}, (_, i) => one(i))).then(() => s.close(),\n"
		"  (e) => { console.error(e); process.exit(1); });\"";
	int status = run(script);

	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curl_uploads_and_downloads),
		cmocka_unit_test(curl_sends_without_a_length),
		cmocka_unit_test(curl_asks_for_the_head),
		cmocka_unit_test(curl_has_twenty_at_once),
		cmocka_unit_test(node_has_fifty_streams),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
