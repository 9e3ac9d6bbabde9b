/* SPDX-License-Identifier: Apache-2.0 */
#include "edge_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"
#include "lib/os/jail/unsealed.h"

#define OUT_BYTES 65536

uint8_t rig_pattern(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

/* --- the guest --- */

static bool is(const struct rig_stream *s, const char *path)
{
	return strcmp(s->path, path) == 0;
}

static int on_open(void *ctx, uint32_t sid, const char *path, uint32_t *ret_slot)
{
	struct rig *r = ctx;
	struct rig_stream *s;

	if (strcmp(path, "/refuse") == 0)
		return -EPERM;
	assert_true(r->n_streams < RIG_STREAMS);
	*ret_slot = r->n_streams++;
	s = &r->streams[*ret_slot];
	*s = (struct rig_stream){.sid = sid};
	(void)snprintf(s->path, sizeof(s->path), "%s", path);
	bufq_init(&s->q, WIRE_STREAM_WINDOW);
	assert_int_equal(wire_reply(r->guest, sid, is(s, "/404") ? 404 : 200), 0);
	return 0;
}

static void on_data(void *ctx, uint32_t sid, uint32_t slot, struct slice bytes)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];

	s->got += bytes.n;
	if (is(s, "/hold"))
		return;
	if (is(s, "/pour")) {
		wire_consumed(r->guest, sid, bytes.n);
		return;
	}
	assert_int_equal(bufq_put(&s->q, bytes), bytes.n);
	wire_resume(r->guest, sid);
}

static void on_end(void *ctx, uint32_t sid, uint32_t slot)
{
	struct rig *r = ctx;

	r->streams[slot].ended = true;
	wire_resume(r->guest, sid);
}

static void on_close(void *ctx, uint32_t sid, uint32_t slot, int error)
{
	struct rig *r = ctx;

	r->streams[slot].closed = true;
	r->streams[slot].reset = error != 0;
	bufq_done(&r->streams[slot].q);
}

static ssize_t pull(void *ctx, uint32_t sid, uint32_t slot, uint8_t *buf, size_t n)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];

	if (is(s, "/404"))
		return 0;
	if (is(s, "/pour")) {
		for (size_t i = 0; i < n; i++)
			buf[i] = rig_pattern(s->sent + i);
	} else if (is(s, "/hold") || (is(s, "/late") && !s->ended)) {
		return -EAGAIN;
	} else {
		n = bufq_take(&s->q, buf, n);
		wire_consumed(r->guest, sid, n);
	}
	s->sent += n;
	return n || s->ended ? (ssize_t)n : -EAGAIN;
}

static const struct wire_ops guest_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

static void guest_read(struct rig *r)
{
	static uint8_t buf[OUT_BYTES];
	ssize_t n = read(r->guest_fd, buf, sizeof(buf));

	if (n > 0)
		assert_int_equal(wire_feed(r->guest, slice_of(buf, (size_t)n), clock_mono_ms()), 0);
}

static void guest_write(struct rig *r)
{
	ssize_t n;

	if (r->n_out == 0) {
		n = wire_pull(r->guest, r->out, OUT_BYTES);
		assert_true(n >= 0);
		r->n_out = (size_t)n;
		r->out_at = 0;
	}
	if (r->n_out == 0)
		return;
	n = send(r->guest_fd, r->out + r->out_at, r->n_out, MSG_NOSIGNAL);
	if (n > 0) {
		r->out_at += (size_t)n;
		r->n_out -= (size_t)n;
	}
}

/* --- the clients --- */

static void client_write(struct rig_client *c)
{
	uint8_t buf[16384];
	size_t n = MIN(sizeof(buf), c->total - c->sent);
	ssize_t r;

	for (size_t i = 0; i < n; i++)
		buf[i] = rig_pattern(c->sent + i);
	r = n ? send(c->fd, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	if (r > 0)
		c->sent += (uint64_t)r;
	if (c->sent == c->total && c->total && !c->done_sending) {
		c->done_sending = true;
		assert_int_equal(shutdown(c->fd, SHUT_WR), 0);
	}
}

static void client_read(struct rig_client *c)
{
	static uint8_t buf[OUT_BYTES];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n == 0)
		c->eof = true;
	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(buf[i], rig_pattern(c->got + (uint64_t)i));
	if (n > 0)
		c->got += (uint64_t)n;
}

/* --- the keeper --- */

static void keeper_read(struct rig *r)
{
	static struct ipc_msg msg;
	struct rig_client *c = NULL;
	int n;

	while ((n = ipc_recv(r->keeper, &msg)) == 1) {
		if (msg.id >= 1 && msg.id <= r->n_clients)
			c = &r->clients[msg.id - 1];
		switch (msg.type) {
		case EDGE_READY:
			assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
			r->ready = true;
			break;
		case EDGE_OPENED:
			assert_int_equal(edge_get_opened(&msg, &c->status), 0);
			assert_false(c->opened || c->refused || c->closed);
			c->opened = true;
			break;
		case EDGE_REFUSED:
			assert_int_equal(edge_get_refused(&msg, &c->reason), 0);
			assert_false(c->opened || c->refused || c->closed);
			c->refused = true;
			break;
		case EDGE_CLOSED:
			assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
			assert_true(c->opened && !c->closed);
			c->closed = true;
			break;
		case EDGE_LOST:
			assert_int_equal(edge_get_lost(&msg, r->lost_text), 0);
			r->lost = true;
			break;
		case EDGE_CA:
			assert_false(r->ready || r->ca.n_saved);
			assert_int_equal(edge_get_ca(&msg, &r->ca), 0);
			break;
		case EDGE_ASK:
			assert_non_null(r->on_ask);
			r->on_ask(r->ask_ctx, &msg);
			break;
		case EDGE_GONE:
			assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
			r->n_gone++;
			r->gone = msg.id;
			break;
		case EDGE_ENDED:
			assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
			r->n_ended++;
			r->ended = msg.id;
			break;
		default:
			fail_msg("message %u from edge", msg.type);
		}
	}
}

/* --- the rig --- */

const char *rig_first_ms;

static pid_t start_edge(int keeper_end, char *const *envp)
{
	char *const argv[] = {(char *)"sbx-edge", rig_first_ms ? (char *)"--first-ms" : NULL,
		(char *)(uintptr_t)rig_first_ms, NULL},
		    *const none[] = {NULL};
	pid_t pid = fork();

	if (pid == 0) {
		/* Through a number that is not 3, so that dup2 always clears close-on-exec. */
		int high = fcntl(keeper_end, F_DUPFD, 100);

		if (dup2(high, 3) == 3) {
			(void)close_range(4, ~0U, 0);
			(void)execve(getenv("SBX_EDGE"), argv, envp ? envp : none);
		}
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static pid_t spawn_edge(int keeper_end)
{
	char *const argv[] = {(char *)"sbx-edge", NULL};
	const struct jail_fd fd = {.from = keeper_end, .to = 3};
	const struct jail_plan plan = {
		.profile = JAIL_EDGE,
		.program = getenv("SBX_EDGE"),
		.argv = argv,
		.fds = &fd,
		.n_fds = 1,
		.log_fd = STDERR_FILENO,
	};
	struct jail_child child;
	struct err err = {0};
	int r = jail_spawn(&plan, &child, &err);

	if (r < 0)
		fail_msg("jail: %s", err_text(&err, r));
	fd_close(&child.pidfd);
	return child.pid;
}

static struct rig *make(char *const *envp, bool jailed)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	char build[CHAN_MAX_BUILD];
	static struct ipc_msg msg;
	int fds[2], few = 1; /* the kernel's minimum: a handful of messages */
	int n;

	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	r->keeper = fds[0];
	r->guest_fd = -1;
	r->pid = jailed ? spawn_edge(fds[1]) : start_edge(fds[1], envp);
	fd_close(&fds[1]);
	r->guest = wire_new(WIRE_SERVER, WIRE_CTL, &guest_ops, r);
	r->out = xmalloc(OUT_BYTES);
	for (unsigned i = 0; i < 6000 && (n = ipc_recv(r->keeper, &msg)) == -EAGAIN; i++)
		(void)usleep(10000);
	assert_int_equal(n, 1);
	assert_int_equal(msg.type, EDGE_HELLO);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, SBX_BUILD);
	return r;
}

struct rig *rig_new(char *const *envp)
{
	return make(envp, false);
}

struct rig *rig_new_jailed(void)
{
	return make(NULL, true);
}

void rig_free(struct rig *r)
{
	if (r->pid > 0) {
		(void)kill(r->pid, SIGKILL);
		(void)waitpid(r->pid, NULL, 0);
	}
	for (unsigned i = 0; i < r->n_clients; i++)
		fd_close(&r->clients[i].fd);
	for (unsigned i = 0; i < r->n_streams; i++)
		bufq_done(&r->streams[i].q);
	fd_close(&r->keeper);
	fd_close(&r->guest_fd);
	wire_free(r->guest);
	free(r->out);
	free(r);
}

void rig_config(struct rig *r, uint32_t ready_ms)
{
	rig_config_saved(r, ready_ms, &(struct edge_ca){0});
}

void rig_config_saved(struct rig *r, uint32_t ready_ms, const struct edge_ca *ca)
{
	struct edge_config config = {.sandbox = "0123456789ab", .ready_ms = ready_ms};
	int fds[2];

	config.n_saved = ca->n_saved;
	memcpy(config.saved, ca->saved, ca->n_saved);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	r->guest_fd = fds[0];
	assert_int_equal(fd_set_nonblock(r->guest_fd, true), 0);
	assert_int_equal(edge_ask_config(r->keeper, &config, fds[1]), 0);
	fd_close(&fds[1]);
}

void rig_up(struct rig *r)
{
	rig_config(r, 60000);
	rig_until(r, r->ready);
}

static struct rig_client *open_with(struct rig *r, const char *path, uint64_t total, int fds[2])
{
	struct rig_client *c = &r->clients[r->n_clients++];

	assert_true(r->n_clients <= RIG_STREAMS);
	*c = (struct rig_client){.fd = fds[0], .total = total};
	assert_int_equal(edge_ask_open(r->keeper, r->n_clients, path, fds[1]), 0);
	fd_close(&fds[1]);
	return c;
}

/* As the keeper accepts it (src/keeper/network/ports.c), with small buffers. */
static void tcp_pair(int fds[2])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger reset = {.l_onoff = 1};
	socklen_t n = sizeof(sa);
	const int small = 4096;
	AUTO_CLOSE int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(listen(l, 1), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&sa, n), 0);
	fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
}

struct rig_client *rig_open(struct rig *r, const char *path, uint64_t total)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	return open_with(r, path, total, fds);
}

struct rig_client *rig_open_tcp(struct rig *r, const char *path, uint64_t total)
{
	int fds[2];

	tcp_pair(fds);
	return open_with(r, path, total, fds);
}

static short client_events(const struct rig_client *c)
{
	return (short)((c->paused || c->eof ? 0 : POLLIN) | (c->done_sending ? 0 : POLLOUT));
}

void rig_step(struct rig *r, int ms)
{
	struct pollfd p[RIG_STREAMS + 2] = {
		{.fd = r->keeper_deaf ? -1 : r->keeper, .events = POLLIN},
		{.fd = r->deaf ? -1 : r->guest_fd,
			.events = (short)(POLLIN |
					  (r->n_out || wire_wants_write(r->guest) ? POLLOUT : 0))},
	};

	for (unsigned i = 0; i < r->n_clients; i++) {
		short events = client_events(&r->clients[i]);

		if (r->clients[i].total == 0)
			events &= ~POLLOUT;
		p[i + 2] = (struct pollfd){.fd = events ? r->clients[i].fd : -1, .events = events};
	}
	(void)poll(p, r->n_clients + 2, ms);
	if (p[1].revents & (POLLIN | POLLHUP))
		guest_read(r);
	if (p[1].revents & POLLOUT)
		guest_write(r);
	for (unsigned i = 0; i < r->n_clients; i++) {
		if (p[i + 2].revents & POLLOUT)
			client_write(&r->clients[i]);
		if (p[i + 2].revents & (POLLIN | POLLHUP) && p[i + 2].events & POLLIN)
			client_read(&r->clients[i]);
	}
	if (p[0].revents)
		keeper_read(r);
}

void rig_for(struct rig *r, unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	while (clock_mono_ms() < end)
		rig_step(r, 10);
}

int rig_exit(struct rig *r)
{
	uint64_t end = clock_mono_ms() + 60000;
	int status = -1;

	while (clock_mono_ms() < end) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			r->pid = 0;
			break;
		}
		rig_step(r, 10);
	}
	if (r->pid != 0)
		fail_msg("edge does not end");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

uint64_t rig_memory_or_ended(const struct rig *r, const char *field)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, field, strlen(field)) == 0)
			kib = strtoul(line + strlen(field), NULL, 10);
	}
	(void)fclose(f);
	return (uint64_t)kib * 1024 / JAIL_MEMORY_FACTOR;
}

uint64_t rig_memory(const struct rig *r, const char *field)
{
	uint64_t bytes = rig_memory_or_ended(r, field);

	assert_true(bytes > 0);
	return bytes;
}
