/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_load - the load of bench/proxy: client and origin in one process, edge and egress or
 * another proxy between.
 *
 * How      One line on standard input is one measurement: `PORT MODE N SIZE PIDS`. PORT 0 is a rig
 *          of our own (the client is the guest's end of sbx.net, each connection a CONNECT), else a
 *          port of loopback where a forwarder listens that leads to our origin. MODE is rr (N round
 *          trips of SIZE bytes in one connection), conn (N times: connect, SIZE bytes there and
 *          back, close), down and up (N connections at once, SIZE bytes each). The answer is one
 *          line: seconds, p50 of a round trip in us, and the processor seconds of PIDS meanwhile.
 * Trust    Test program.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define HEAD 9 /* a byte for the mode, 8 for the size */
#define CHUNK 65536
#define MAX_FLOWS 1024
#define MAX_ROUNDS 100000
#define GIVE_UP_MS 60000
#define TARGET "bench.test:9000"

enum { EV_ORIGIN_LISTEN = RIG_EV_USER, EV_ORIGIN, EV_CLIENT, EV_GIVE_UP };
enum mode { MODE_NONE, MODE_ECHO, MODE_DOWN, MODE_UP };

struct origin {
	int fd;
	uint32_t gen;
	uint8_t head[HEAD];
	size_t n_head;
	enum mode mode;
	uint64_t left;
};

struct client {
	bool used, sbx, open, failed, over;
	int fd;
	uint32_t gen;
	uint32_t sid;
	char text[512]; /* sbx: the answer to CONNECT */
	size_t n_text, request_at;
	uint8_t head[HEAD];
	size_t head_at;
	uint64_t to_send, got;
};

static struct rig *rig;
static struct client clients[MAX_FLOWS];
static struct origin origins[MAX_FLOWS];
static uint8_t chunk[CHUNK], sink[CHUNK];
static uint64_t origin_got;
static int origin_fd;
static const char request[] = "CONNECT " TARGET " HTTP/1.1\r\nHost: " TARGET "\r\n\r\n";

/* --- the origin --- */

static void origin_drop(struct origin *o)
{
	loop_del(&rig->loop, o->fd);
	fd_close(&o->fd);
	*o = (struct origin){.fd = -1, .gen = o->gen + 1};
}

static void origin_accept(void)
{
	int one = 1, fd = accept4(origin_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint32_t i = 0;

	if (fd < 0)
		return;
	while (i < MAX_FLOWS && origins[i].fd >= 0)
		i++;
	if (i == MAX_FLOWS)
		die("too many connections at the origin");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	origins[i] = (struct origin){.fd = fd, .gen = origins[i].gen};
	if (loop_add(&rig->loop, fd, EPOLLIN,
		    (struct loop_key){.kind = EV_ORIGIN, .gen = origins[i].gen, .idx = i}) < 0)
		die("watching a connection");
}

static bool origin_read_head(struct origin *o)
{
	ssize_t n = read(o->fd, o->head + o->n_head, HEAD - o->n_head);
	struct loop_key key = {.kind = EV_ORIGIN, .gen = o->gen, .idx = (uint32_t)(o - origins)};

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			origin_drop(o);
		return false;
	}
	o->n_head += (size_t)n;
	if (o->n_head < HEAD)
		return false;
	o->mode = (enum mode)o->head[0];
	memcpy(&o->left, o->head + 1, sizeof(o->left));
	if (o->mode == MODE_DOWN && loop_mod(&rig->loop, o->fd, EPOLLIN | EPOLLOUT, key) < 0)
		die("watching a connection");
	return true;
}

static void origin_pour(struct origin *o)
{
	ssize_t n = 1;

	for (unsigned i = 0; i < 8 && n > 0 && o->left; i++) {
		n = send(o->fd, chunk, MIN(sizeof(chunk), o->left), MSG_NOSIGNAL);
		if (n > 0)
			o->left -= (uint64_t)n;
	}
	if (o->left == 0)
		origin_drop(o);
}

static void origin_event(struct origin *o)
{
	ssize_t n = 1;

	if (o->fd < 0 || (o->n_head < HEAD && !origin_read_head(o)))
		return;
	if (o->mode == MODE_DOWN) {
		origin_pour(o);
		return;
	}
	for (unsigned i = 0; i < 8 && n > 0; i++) {
		n = read(o->fd, sink, sizeof(sink));
		if (n > 0 && o->mode == MODE_UP)
			origin_got += (uint64_t)n;
		else if (n > 0 && send(o->fd, sink, (size_t)n, MSG_NOSIGNAL) != n)
			die("the echo does not fit");
	}
	if (n == 0 || (n < 0 && errno != EAGAIN))
		origin_drop(o);
}

static int origin_listen(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);

	for (size_t i = 0; i < MAX_FLOWS; i++)
		origins[i].fd = -1;
	origin_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (origin_fd < 0 || bind(origin_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		listen(origin_fd, MAX_FLOWS) < 0 ||
		getsockname(origin_fd, (struct sockaddr *)&sa, &len) < 0)
		die("listening");
	return ntohs(sa.sin_port);
}

/* --- the clients --- */

/* Up to n bytes of what the client says: its head, then the payload. */
static size_t client_bytes(struct client *c, uint8_t *buf, size_t n)
{
	size_t head = MIN(n, HEAD - c->head_at), body;

	memcpy(buf, c->head + c->head_at, head);
	c->head_at += head;
	body = MIN(n - head, c->to_send);
	memcpy(buf + head, chunk, MIN(body, sizeof(chunk)));
	body = MIN(body, sizeof(chunk));
	c->to_send -= body;
	return head + body;
}

static void on_data(void *ctx, uint32_t slot, struct slice bytes)
{
	struct client *c = &clients[slot];
	size_t n = bytes.n;

	if (!c->open) {
		size_t room = sizeof(c->text) - 1 - c->n_text;
		char *end;

		memcpy(c->text + c->n_text, bytes.p, MIN(room, n));
		c->n_text += MIN(room, n);
		end = strstr(c->text, "\r\n\r\n");
		if (end && strstr(c->text, " 200 ")) {
			c->open = true;
			c->got += c->n_text - (size_t)(end + 4 - c->text);
			wire_resume(rig->net.wire, c->sid);
		} else if (end || room <= n) {
			die("CONNECT was answered: %s", c->text);
		}
	} else {
		c->got += n;
	}
	wire_consumed(rig->net.wire, c->sid, n);
}

static void on_end(void *ctx, uint32_t slot)
{
	clients[slot].over = true;
}

static void on_close(void *ctx, uint32_t slot, bool reset)
{
	if (slot == RIG_ALL)
		die("the wire broke");
	clients[slot].over = true;
	clients[slot].failed = reset;
}

static ssize_t pull(void *ctx, uint32_t slot, uint8_t *buf, size_t n)
{
	struct client *c = &clients[slot];
	size_t left = sizeof(request) - 1 - c->request_at;

	if (left) {
		n = MIN(n, left);
		memcpy(buf, request + c->request_at, n);
		c->request_at += n;
		return (ssize_t)n;
	}
	if (!c->open)
		return -EAGAIN;
	n = client_bytes(c, buf, n);
	return n ? (ssize_t)n : -EAGAIN;
}

static const struct rig_guest_ops guest_ops = {on_data, on_end, on_close, pull};

static void client_write(struct client *c)
{
	static uint8_t buf[CHUNK + HEAD];
	static size_t n_buf;
	ssize_t n = 1;

	if (c->head_at < HEAD) { /* with the first bytes, and small: it fits */
		n_buf = client_bytes(c, buf, HEAD + MIN(c->to_send, 4096));
		if (send(c->fd, buf, n_buf, MSG_NOSIGNAL) != (ssize_t)n_buf)
			die("sending the first bytes: %m");
	}
	for (unsigned i = 0; i < 8 && n > 0 && c->to_send; i++) {
		n = send(c->fd, chunk, MIN(sizeof(chunk), c->to_send), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			c->to_send -= (uint64_t)n;
	}
}

static void client_event(struct client *c, uint32_t events)
{
	ssize_t n = 1;

	if (!c->used)
		return;
	if (events & EPOLLOUT)
		client_write(c);
	for (unsigned i = 0; i < 8 && n > 0; i++) {
		n = recv(c->fd, sink, sizeof(sink), MSG_DONTWAIT);
		if (n > 0)
			c->got += (uint64_t)n;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->over = true;
}

static void client_connect(struct client *c, uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct loop_key key = {.kind = EV_CLIENT, .gen = c->gen, .idx = (uint32_t)(c - clients)};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		die("connecting to port %u: %m", port);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd_set_nonblock(c->fd, true) < 0 ||
		loop_add(&rig->loop, c->fd, c->to_send > CHUNK ? EPOLLIN | EPOLLOUT : EPOLLIN,
			key) < 0)
		die("watching a connection");
	c->open = true;
	client_write(c);
}

/* port 0: through edge. */
static struct client *client_open(uint16_t port, enum mode mode, uint64_t size)
{
	uint32_t i = 0;
	struct client *c;

	while (i < MAX_FLOWS && clients[i].used)
		i++;
	if (i == MAX_FLOWS)
		die("too many connections");
	c = &clients[i];
	*c = (struct client){.used = true, .sbx = port == 0, .fd = -1, .gen = c->gen + 1};
	c->head[0] = (uint8_t)mode;
	memcpy(c->head + 1, &size, sizeof(size));
	c->to_send = mode == MODE_DOWN ? 0 : size;
	if (port)
		client_connect(c, port);
	else if (rig_guest_open(rig, "/proxy", i, &c->sid) < 0)
		die("opening a stream");
	return c;
}

static void client_say(struct client *c, uint64_t size)
{
	c->to_send = size;
	if (c->sbx)
		wire_resume(rig->net.wire, c->sid);
	else
		client_write(c);
}

static void client_close(struct client *c)
{
	if (!c->sbx) {
		loop_del(&rig->loop, c->fd);
		fd_close(&c->fd);
	} else if (!c->over) {
		wire_reset(rig->net.wire, c->sid);
	}
	c->used = false;
}

/* --- measuring --- */

static void step(void)
{
	struct loop_event ev;

	rig_flush(rig);
	loop_next(&rig->loop, &ev);
	switch (ev.key.kind) {
	case EV_ORIGIN_LISTEN:
		origin_accept();
		break;
	case EV_ORIGIN:
		if (origins[ev.key.idx].gen == ev.key.gen)
			origin_event(&origins[ev.key.idx]);
		break;
	case EV_CLIENT:
		if (clients[ev.key.idx].gen == ev.key.gen) /* else of one that is closed */
			client_event(&clients[ev.key.idx], ev.events);
		break;
	case EV_GIVE_UP:
		die("nothing more came for %d s", GIVE_UP_MS / 1000);
	default:
		(void)rig_on_event(rig, &ev);
	}
	if (rig->stopping)
		die("the rig ended: %s", rig->why);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void until_got(struct client *c, uint64_t n)
{
	while (c->got < n && !c->over)
		step();
	if (c->got < n)
		die("the connection ended after %lu of %lu bytes", c->got, n);
}

static double p50(double *took, unsigned n)
{
	qsort(took, n, sizeof(*took), by_size);
	return took[n / 2] * 1e6;
}

static double measure_rr(uint16_t port, unsigned n, uint64_t size)
{
	static double took[MAX_ROUNDS];
	struct client *c = client_open(port, MODE_ECHO, size);

	until_got(c, size);
	for (unsigned i = 0; i < n; i++) {
		double from = now();

		client_say(c, size);
		until_got(c, (i + 2) * size);
		took[i] = now() - from;
	}
	client_close(c);
	return p50(took, n);
}

static double measure_conn(uint16_t port, unsigned n, uint64_t size)
{
	static double took[MAX_ROUNDS];

	for (unsigned i = 0; i < n; i++) {
		double from = now();
		struct client *c = client_open(port, MODE_ECHO, size);

		until_got(c, size);
		client_close(c);
		took[i] = now() - from;
	}
	return p50(took, n);
}

static double measure_bulk(uint16_t port, enum mode mode, unsigned n, uint64_t size)
{
	struct client *flows[MAX_FLOWS];

	origin_got = 0;
	for (unsigned i = 0; i < n; i++)
		flows[i] = client_open(port, mode, size);
	while (mode == MODE_UP && origin_got < n * size)
		step();
	for (unsigned i = 0; i < n; i++) {
		if (mode == MODE_DOWN)
			until_got(flows[i], size);
		client_close(flows[i]);
	}
	return 0;
}

static double cpu_of(const char *pids)
{
	AUTO_FREE char *list = xstrdup(pids);
	char *save = NULL;
	double total = 0;

	for (char *pid = strtok_r(list, ",", &save); pid; pid = strtok_r(NULL, ",", &save)) {
		char path[64], line[64] = "";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
		f = fopen(path, "re");
		if (f && fgets(line, sizeof(line), f))
			total += strtod(line, NULL) / 1e9;
		if (f)
			(void)fclose(f);
	}
	return total;
}

static void measure(uint16_t port, const char *mode, unsigned n, uint64_t size, const char *pids)
{
	struct loop_timer timer = {0};
	double from, cpu, median = 0;

	loop_timer_set(&rig->loop, &timer, clock_mono_ms() + GIVE_UP_MS,
		(struct loop_key){.kind = EV_GIVE_UP});
	cpu = cpu_of(pids);
	from = now();
	if (strcmp(mode, "rr") == 0)
		median = measure_rr(port, n, size);
	else if (strcmp(mode, "conn") == 0)
		median = measure_conn(port, n, size);
	else
		median = measure_bulk(port, strcmp(mode, "up") == 0 ? MODE_UP : MODE_DOWN, n, size);
	(void)printf("{\"seconds\": %.6f, \"p50_us\": %.2f, \"cpu\": %.6f}\n", now() - from, median,
		cpu_of(pids) - cpu);
	(void)fflush(stdout);
	loop_timer_clear(&rig->loop, &timer);
}

static void start(char **argv, int port)
{
	AUTO_FREE char *pin = xasprintf(TARGET "=127.0.0.1:%d", port);
	AUTO_FREE char *policy = xasprintf("%s/policy", argv[3]);
	struct rig_options o = {.edge = argv[1],
		.egress = argv[2],
		.folder = argv[3],
		.cpu_list = argv[4],
		.connect_to = pin,
		.policy = policy,
		/* without it perf can look inside */
		.jailed = !getenv("SBX_RIG_JAIL")};
	FILE *f = fopen(policy, "we");
	struct err err = {0};

	if (!f || fputs("policy 1\nallow network " TARGET "\nend\n", f) < 0 || fclose(f) != 0)
		die("writing %s", policy);
	rig = rig_new(&o, &err);
	if (!rig)
		die("%s", err.text);
	rig_guest_set(rig, &guest_ops, NULL);
	if (loop_add(&rig->loop, origin_fd, EPOLLIN, (struct loop_key){.kind = EV_ORIGIN_LISTEN}) <
		0)
		die("watching the listener");
	while (!rig_is_up(rig))
		step();
	(void)printf("%d %d,%d\n", port, (int)rig->edge.pid, (int)rig->egress.pid);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[256], mode[16], pids[128];
	unsigned n, port;
	uint64_t size;

	log_init("proxy_load");
	if (argc != 5)
		die("usage: proxy_load EDGE EGRESS FOLDER HEXMASK");
	start(argv, origin_listen());
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%u %15s %u %lu %127s", &port, mode, &n, &size, pids) != 5 ||
			n > MAX_ROUNDS || port > UINT16_MAX)
			die("what? %s", line);
		measure((uint16_t)port, mode, n, size, pids);
	}
	rig->guest_ops = NULL;
	rig_free(rig);
	return 0;
}
