/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define SYS_PORTS "/sys/class/virtio-ports"
#define OPEN_MS 5000
/* A port that does not exist at all is searched less often. */
#define SEARCH_MS 200
/* The first bytes of a client (RFC 9113, 3.4). */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
/* Of SETTINGS with the server's four values. */
#define SETTINGS_BYTES (9 + 4 * 6)

static bool has_name(const char *dev, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s/name", SYS_PORTS, dev);
	AUTO_FREE char *text = NULL;

	if (file_read(path, &text) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return !strcmp(text, name);
}

static int try_open(const char *name)
{
	AUTO_DIR DIR *d = opendir(SYS_PORTS);
	struct dirent *e;
	int fd = -ENOENT;

	while (fd == -ENOENT && (e = dir_next(d))) {
		AUTO_FREE char *dev = xasprintf("/dev/%s", e->d_name);

		if (e->d_name[0] == '.' || !has_name(e->d_name, name))
			continue;
		fd = open(dev, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	return fd;
}

int port_open_named(const char *name, struct err *err)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t end = clock_mono_ms() + OPEN_MS;
	int fd;

	while ((fd = try_open(name)) == -ENOENT && clock_mono_ms() < end)
		(void)nanosleep(&pause, NULL);
	return fd < 0 ? err_errno(err, fd, "cannot open the port %s", name) : fd;
}

static void set_interest(struct port *p, bool on, bool out)
{
	uint32_t events = EPOLLIN | (out ? EPOLLOUT : 0);

	if (on && !p->in_epoll)
		on = loop_add(p->loop, p->fd, events, p->key) == 0;
	else if (on && out != p->wants_out)
		(void)!loop_mod(p->loop, p->fd, events, p->key);
	else if (!on && p->in_epoll)
		loop_del(p->loop, p->fd);
	p->in_epoll = on;
	p->wants_out = on && out;
}

static void session_begin(struct port *p)
{
	p->wire = wire_new(p->role, p->kind, p->ops, p->ctx);
	p->out_at = p->out_n = 0;
	p->on_session(p->ctx, p->wire);
	set_interest(p, true, false);
}

static void session_end(struct port *p)
{
	struct wire *w = TAKE(p->wire);

	if (!w)
		return;
	p->on_session(p->ctx, NULL);
	wire_free(w);
	p->out_at = p->out_n = 0;
	p->pause_end = 0;
}

static void probe_later(struct port *p, unsigned ms)
{
	loop_timer_set(p->loop, &p->probe, clock_mono_ms() + ms, p->probe_key);
}

static void wait_for_host(struct port *p)
{
	session_end(p);
	set_interest(p, false, false);
	probe_later(p, PORT_PROBE_MS);
}

/* The hang-up may be of the host before the one whose first bytes were just read. */
static void hung_up(struct port *p)
{
	if (!p->wire || !wire_is_opening(p->wire)) {
		wait_for_host(p);
		return;
	}
	p->pause_end = clock_mono_ms() + PORT_PAUSE_MS;
	set_interest(p, false, false);
	probe_later(p, PORT_PROBE_MS);
}

/* The host removed the port; it may provide another one of that name. */
static void lose_port(struct port *p)
{
	wait_for_host(p);
	fd_close(&p->fd);
}

/* How the host's end of a new session begins. */
static void learn_hello(struct port *p)
{
	struct wire *server;
	ssize_t n;

	if (p->role == WIRE_SERVER) {
		p->n_hello = strlen(PREFACE);
		memcpy(p->hello, PREFACE, p->n_hello);
		return;
	}
	server = wire_new(WIRE_SERVER, p->kind, p->ops, NULL);
	n = wire_pull(server, p->hello, SETTINGS_BYTES);
	p->n_hello = n > 0 ? (size_t)n : 0;
	wire_free(server);
}

void port_start(struct port *p, struct loop *loop, int fd)
{
	static_assert(PORT_HELLO >= SETTINGS_BYTES && PORT_HELLO >= sizeof(PREFACE), "hello");
	p->loop = loop;
	p->fd = fd;
	learn_hello(p);
	port_on_probe(p);
}

/* Where a new session begins in data that the old one cannot parse. */
static struct slice find_hello(const struct port *p, struct slice s)
{
	const uint8_t *at = s.n ? memmem(s.p, s.n, p->hello, p->n_hello) : NULL;

	return at ? slice_of(at, s.n - (size_t)(at - s.p)) : slice_of(NULL, 0);
}

/* The session is broken: restart where the host restarted, else wait until it does. */
static void restart_port(struct port *p)
{
	struct slice s = find_hello(p, p->last);

	p->last = slice_of(NULL, 0);
	session_end(p);
	if (s.n == 0)
		return;
	session_begin(p);
	if (wire_feed(p->wire, s, clock_mono_ms()) < 0)
		session_end(p);
}

static void take_bytes(struct port *p, struct slice s)
{
	p->last = s;
	if (p->wire && wire_feed(p->wire, s, clock_mono_ms()) == 0)
		return;
	if (p->wire)
		log_warn("invalid data from the host: %s", wire_error(p->wire));
	restart_port(p);
}

static void read_port(struct port *p)
{
	static uint8_t buf[65536];
	size_t taken = 0;

	while (taken < PORT_TURN) {
		ssize_t n = read(p->fd, buf, sizeof(buf));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 && errno == ENODEV) {
			lose_port(p);
			return;
		}
		if (n <= 0) {
			hung_up(p);
			return;
		}
		take_bytes(p, slice_of(buf, (size_t)n));
		taken += (size_t)n;
	}
}

void port_on_event(struct port *p, uint32_t events)
{
	if (!p->in_epoll)
		return;
	/* Data that the host sent before it closed is read first; read then returns 0. */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_port(p);
}

/* Unread data of an ended session must not become the next one's start; but the host may return
 * meanwhile. Returns true if it has. */
static bool drop_rest(struct port *p)
{
	static uint8_t rest[4096];
	ssize_t n;

	while (!p->wire && (n = read(p->fd, rest, sizeof(rest))) > 0)
		take_bytes(p, slice_of(rest, (size_t)n));
	return p->wire != NULL;
}

static bool host_is_there(const struct port *p)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN | POLLOUT};

	return poll(&pfd, 1, 0) == 1 && !(pfd.revents & POLLHUP);
}

/* Reads before anything is sent: yet another host may be connected now. */
static void pause_is_over(struct port *p)
{
	p->pause_end = 0;
	set_interest(p, true, false);
	read_port(p);
}

void port_on_probe(struct port *p)
{
	if (p->fd < 0)
		p->fd = try_open(p->name);
	if (p->fd < 0) {
		probe_later(p, SEARCH_MS);
		return;
	}
	if (host_is_there(p)) {
		(p->wire ? pause_is_over : session_begin)(p);
		return;
	}
	if (clock_mono_ms() > p->pause_end)
		session_end(p);
	if (p->wire || !drop_rest(p))
		probe_later(p, PORT_PROBE_MS);
}

/* Enough prefaces to fill any incomplete frame of the server: it may take the first one for the
 * start of a session, but never the second. */
void port_kick(struct port *p)
{
	session_end(p);
	if (!p->in_epoll)
		return;
	for (size_t n = 0; n + strlen(PREFACE) <= sizeof(p->out); n += strlen(PREFACE)) {
		memcpy(p->out + n, PREFACE, strlen(PREFACE));
		p->out_n = n + strlen(PREFACE);
	}
	(void)!write(p->fd, p->out, p->out_n);
	p->out_n = 0;
}

static bool pull_out(struct port *p)
{
	ssize_t n = wire_pull(p->wire, p->out, sizeof(p->out));

	p->out_at = 0;
	p->out_n = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Fills p->out; false if there is nothing to send. */
static bool refill_port(struct port *p)
{
	bool some = pull_out(p);

	if (wire_error(p->wire)[0]) {
		/* A violation that is reported to the peer is detected here, after that data. */
		log_warn("channel to the host: %s", wire_error(p->wire));
		restart_port(p);
		return p->wire && pull_out(p);
	}
	return some;
}

void port_pump(struct port *p)
{
	size_t sent = 0;

	if (p->pause_end)
		return;
	while (p->wire && sent < PORT_TURN && (p->out_at < p->out_n || refill_port(p))) {
		ssize_t n = write(p->fd, p->out + p->out_at, p->out_n - p->out_at);

		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			wait_for_host(p);
			return;
		}
		if (n < 0)
			break;
		p->out_at += (size_t)n;
		sent += (size_t)n;
	}
	if (p->wire)
		set_interest(p, true, p->out_at < p->out_n || wire_wants_write(p->wire));
}
