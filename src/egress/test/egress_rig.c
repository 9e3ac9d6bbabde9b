/* SPDX-License-Identifier: Apache-2.0 */
#include "egress_rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "egress_rig_internal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"
#include "lib/os/jail/unsealed.h"
#include "lib/rules/policy/test/policy_text.h"

#define WAIT_S 60

uint8_t rig_pattern(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

/* --- the world --- */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	(void)close(fd);
}

/* "local default dev lo" of a family: every address is local. IPv4 connections come from 127.0.0.1,
 * as IPv6 ones come from ::1: with the same address at both ends they would count as the host's
 * own. */
static void add_any_route(int family, int lo)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg m;
		struct rtattr a;
		int oif;
		struct rtattr b;
		uint8_t src[4];
	} q = {.h = {.nlmsg_len = family == AF_INET ? sizeof(q) : offsetof(typeof(q), b),
		       .nlmsg_type = RTM_NEWROUTE,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
		.m = {.rtm_family = (unsigned char)family,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_scope = RT_SCOPE_HOST,
			.rtm_type = RTN_LOCAL},
		.a = {.rta_len = RTA_LENGTH(sizeof(int)), .rta_type = RTA_OIF},
		.oif = lo,
		.b = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_PREFSRC},
		.src = {127, 0, 0, 1}};
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	must(fd >= 0 && send(fd, &q, q.h.nlmsg_len, 0) > 0, "route");
	must(recv(fd, &answer, sizeof(answer), 0) > 0, "route answer");
	errno = -answer.e.error;
	must(answer.e.error == 0, "local default route");
	(void)close(fd);
}

void rig_enter_world(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	struct rlimit files;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];
	int fd;

	must(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0, "namespaces");
	write_text("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	write_text("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	write_text("/proc/self/gid_map", map);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0, "lo up");
	(void)close(fd);
	add_any_route(AF_INET, (int)if_nametoindex("lo"));
	add_any_route(AF_INET6, (int)if_nametoindex("lo"));
	must(getrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	files.rlim_cur = files.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	(void)signal(SIGPIPE, SIG_IGN); /* egress may close first */
	rig_dns_start();
}

/* --- egress --- */

static pid_t start(int keeper_end)
{
	char *const argv[] = {(char *)"sbx-egress", NULL}, *const none[] = {NULL};
	pid_t pid = fork();

	if (pid == 0) {
		/* Through a number that is not 3, so that dup2 always clears close-on-exec. */
		int high = fcntl(keeper_end, F_DUPFD, 100);

		if (dup2(high, 3) == 3) {
			(void)close_range(4, ~0U, 0);
			(void)execve(getenv("SBX_EGRESS"), argv, none);
		}
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static pid_t spawn(int keeper_end)
{
	char *const argv[] = {(char *)"sbx-egress", NULL};
	const struct jail_fd fd = {.from = keeper_end, .to = 3};
	const struct jail_plan plan = {
		.profile = JAIL_EGRESS,
		.program = getenv("SBX_EGRESS"),
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

static struct rig *make(bool jailed)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	char build[CHAN_MAX_BUILD];
	static struct ipc_msg msg;
	int fds[2], n = -EAGAIN;

	assert_int_equal(ipc_pair(fds), 0);
	r->keeper = fds[0];
	r->pid = jailed ? spawn(fds[1]) : start(fds[1]);
	fd_close(&fds[1]);
	for (unsigned i = 0; i < 6000 && (n = ipc_recv(r->keeper, &msg)) == -EAGAIN; i++)
		(void)usleep(10000);
	assert_int_equal(n, 1);
	assert_int_equal(msg.type, EGRESS_HELLO);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, SBX_BUILD);
	return r;
}

struct rig *rig_new(void)
{
	return make(false);
}

struct rig *rig_new_jailed(void)
{
	return make(true);
}

void rig_free(struct rig *r)
{
	if (r->pid > 0) {
		(void)kill(r->pid, SIGKILL);
		(void)waitpid(r->pid, NULL, 0);
	}
	fd_close(&r->keeper);
	free(r);
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
		(void)usleep(5000);
	}
	if (r->pid != 0)
		fail_msg("egress does not end");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

uint64_t rig_memory(const struct rig *r, const char *field)
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

/* --- the keeper --- */

static void take_message(struct rig *r, struct ipc_msg *msg)
{
	struct rig_seen *seen = &r->seen[msg->id];

	assert_true(msg->id < RIG_IDS);
	assert_true(chan_allows(&egress_chan, EGRESS_PHASE_RUN, CHAN_FROM_WORKER, msg->type));
	switch (msg->type) {
	case EGRESS_LOADED:
		assert_int_equal(egress_get_loaded(msg, r->loaded), 0);
		r->n_loaded++;
		break;
	case EGRESS_RESULT:
		assert_false(seen->has_result || seen->closed);
		assert_int_equal(egress_get_result(msg, &seen->result), 0);
		seen->has_result = true;
		if (msg->fd >= 0)
			seen->fd = TAKE_FD(msg->fd);
		break;
	case EGRESS_LOGIN:
		assert_false(seen->has_result || seen->closed || seen->login);
		seen->login = TAKE_FD(msg->fd);
		break;
	case EGRESS_CLOSED:
		assert_false(seen->closed);
		assert_int_equal(egress_get_closed(msg, &seen->up, &seen->down), 0);
		seen->closed = true;
		break;
	default:
		fail_msg("message %u from egress", msg->type);
	}
}

void rig_listen_keeper(struct rig *r, int ms)
{
	static struct ipc_msg msg;
	struct pollfd p = {.fd = r->keeper, .events = POLLIN};
	int n;

	if (poll(&p, 1, ms) <= 0)
		return;
	while ((n = ipc_recv(r->keeper, &msg)) == 1)
		take_message(r, &msg);
	if (n == 0)
		fail_msg("egress has ended: %d", rig_exit(r));
}

static int text_file(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

void rig_policy(struct rig *r, const char *policy)
{
	rig_policies(r, policy, NULL);
}

void rig_policies(struct rig *r, const char *policy, const char *managed)
{
	int files[POLICY_N_PARTS];
	unsigned n = r->n_loaded;

	policy_text_files(slice_from_str(policy), "policy", "demo", files);
	if (managed)
		policy_text_limit(slice_from_str(managed), files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		assert_int_equal(egress_ask_policy(r->keeper, 0, (uint8_t)i, files[i]), 0);
		fd_close(&files[i]);
	}
	rig_until(r, r->n_loaded > n);
}

void rig_resolver(struct rig *r, const char *text)
{
	AUTO_CLOSE int fd = text_file(text);

	assert_int_equal(chan_send_plain(r->keeper, EGRESS_RESOLVER, 0, fd), 0);
}

void rig_up(struct rig *r, const char *policy, const struct egress_config *config)
{
	static const struct egress_config none;

	assert_int_equal(egress_ask_config(r->keeper, config ? config : &none), 0);
	rig_resolver(r, "# made by the test\nnameserver " RIG_DNS "\nsearch example.org\n");
	rig_policy(r, policy);
}

static void bound_waits(int fd)
{
	const struct timeval wait = {.tv_sec = WAIT_S};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)), 0);
}

static int send_open(struct rig *r, const struct egress_open *open)
{
	int fds[2], n = -EAGAIN;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	bound_waits(fds[0]);
	for (unsigned i = 0; i < 6000 && n == -EAGAIN; i++) {
		n = egress_ask_open(r->keeper, r->n_ids + 1, open, fds[1]);
		if (n == -EAGAIN)
			rig_listen_keeper(r, 10);
	}
	assert_int_equal(n, 0);
	fd_close(&fds[1]);
	r->n_ids++;
	assert_true(r->n_ids < RIG_IDS);
	return fds[0];
}

int rig_open(struct rig *r, enum egress_kind kind, const char *host, uint16_t port)
{
	struct egress_open open = {
		.kind = kind, .port = port, .ticket = {.version = TICKET_VERSION}};

	(void)snprintf(open.host, sizeof(open.host), "%s", host);
	return send_open(r, &open);
}

int rig_open_http(struct rig *r, const struct http_req *req)
{
	return rig_open_named(r, req, "");
}

int rig_open_named(struct rig *r, const struct http_req *req, const char *named)
{
	struct egress_open open = {.kind = EGRESS_HTTP, .port = req->port};
	const struct ticket_request t = {.tls = req->scheme == HTTP_SCHEME_HTTPS,
		.method = req->method,
		.host = req->host,
		.port = req->port,
		.path = req->path,
		.query = req->query,
		.has_query = req->has_query,
		.named = slice_from_str(named)};

	assert_int_equal(slice_to_cstr(req->host, open.host, sizeof(open.host)), 0);
	ticket_make(&t, &open.ticket);
	return send_open(r, &open);
}

struct egress_result *rig_result(struct rig *r, uint32_t id)
{
	rig_until(r, r->seen[id].has_result);
	return &r->seen[id].result;
}

/* --- edge --- */

void rig_send_req(int fd, const struct http_req *req)
{
	AUTO_FREE uint8_t *buf = xmalloc(CANON_MAX_HEAD + CANON_FRAME_HEADER);
	struct wr wr = wr_init(buf, CANON_MAX_HEAD + CANON_FRAME_HEADER);

	assert_int_equal(canon_put_req(&wr, 1, req), 0);
	assert_int_equal(fd_write_all(fd, buf, wr.n), 0);
}

void rig_send_connect(int fd, const char *host, uint16_t port)
{
	const struct http_req req = {.method = slice_from_str("CONNECT"),
		.form = HTTP_FORM_AUTHORITY,
		.host = slice_from_str(host),
		.port = port,
		.body = {.kind = HTTP_BODY_TUNNEL}};

	rig_send_req(fd, &req);
}

void rig_open_socket(struct rig *r, const char *host, uint16_t port)
{
	struct egress_open open = {.kind = EGRESS_SOCKET, .port = port};

	(void)snprintf(open.host, sizeof(open.host), "%s", host);
	assert_int_equal(egress_ask_open(r->keeper, ++r->n_ids, &open, -1), 0);
}

struct egress_result *rig_socket(struct rig *r, int *ret_fd)
{
	struct rig_seen *seen = &r->seen[r->n_ids];

	rig_until(r, seen->closed);
	assert_true(seen->has_result);
	assert_int_equal(seen->fd > 0, seen->result.outcome == EGRESS_CONNECTED);
	assert_true(seen->up == 0 && seen->down == 0);
	*ret_fd = seen->fd ? seen->fd : -1;
	seen->fd = 0;
	return &seen->result;
}

int rig_connect(struct rig *r, const char *host, uint16_t port)
{
	int fd = rig_open(r, EGRESS_TUNNEL, host, port);

	rig_send_connect(fd, host, port);
	return fd;
}

void rig_send_data(int fd, const void *p, size_t n)
{
	uint8_t head[CANON_FRAME_HEADER];
	struct wr wr = wr_init(head, sizeof(head));

	assert_int_equal(canon_put_data_head(&wr, 1, n), 0);
	assert_int_equal(fd_write_all(fd, head, wr.n), 0);
	assert_int_equal(fd_write_all(fd, p, n), 0);
}

void rig_send_end(int fd)
{
	uint8_t buf[64];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(canon_put_end(&wr, 1, NULL), 0);
	assert_int_equal(fd_write_all(fd, buf, wr.n), 0);
}

static bool read_exactly(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = recv(fd, (uint8_t *)p + got, n - got, 0);

		if (r <= 0)
			return false;
		got += (size_t)r;
	}
	return true;
}

void rig_read_all(int fd, void *p, size_t n)
{
	if (!read_exactly(fd, p, n))
		fail_msg("fewer than %zu bytes came: %s", n, strerror(errno));
}

int rig_read_frame(int fd, uint8_t *buf, size_t size, size_t *ret_n)
{
	uint8_t head[CANON_FRAME_HEADER];
	struct rd rd = rd_init(slice_of(head, sizeof(head)));
	uint32_t n;
	int kind;

	if (!read_exactly(fd, head, sizeof(head)))
		return -1;
	n = rd_u32(&rd);
	kind = rd_u8(&rd);
	assert_int_equal(rd_u24(&rd), 1);
	assert_true(n <= size);
	rig_read_all(fd, buf, n);
	*ret_n = n;
	return kind;
}

void rig_read_head(int fd, struct rig_head *ret)
{
	AUTO_FREE uint8_t *buf = xmalloc(CANON_MAX_HEAD);
	struct arena arena;
	struct http_resp resp;
	size_t n = 0, at = 0;

	*ret = (struct rig_head){0};
	assert_int_equal(rig_read_frame(fd, buf, CANON_MAX_HEAD, &n), CANON_HEAD);
	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(canon_get_resp(slice_of(buf, n), &arena, &resp), 0);
	ret->status = resp.status;
	ret->body = resp.body;
	ret->n_headers = resp.headers.n;
	for (size_t i = 0; i < resp.headers.n; i++) {
		struct http_header h = resp.headers.list[i];

		at += (size_t)snprintf(ret->headers + at, sizeof(ret->headers) - at, "%.*s: %.*s\n",
			(int)h.name.n, h.name.p, (int)h.value.n, h.value.p);
		at = MIN(at, sizeof(ret->headers));
		if (slice_eq_str(h.name, "sbx-reason"))
			assert_int_equal(
				slice_to_cstr(h.value, ret->reason, sizeof(ret->reason)), 0);
	}
	arena_done(&arena);
}

ssize_t rig_read_body(int fd, uint8_t *buf, size_t size)
{
	AUTO_FREE uint8_t *piece = xmalloc(CANON_MAX_DATA);
	size_t n, got = 0;

	for (;;) {
		int kind = rig_read_frame(fd, piece, CANON_MAX_DATA, &n);

		if (kind == CANON_END)
			return (ssize_t)got;
		if (kind != CANON_DATA)
			return -1;
		assert_true(got + n <= size);
		memcpy(buf + got, piece, n);
		got += n;
	}
}

bool rig_is_ended(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t end = clock_mono_ms() + (uint64_t)ms;
	char buf[4096];

	while (clock_mono_ms() < end) {
		if (poll(&p, 1, 20) > 0 && recv(fd, buf, sizeof(buf), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

/* --- common steps of the tests --- */

struct egress_result *rig_refused(
	struct rig *r, int fd, enum egress_outcome outcome, unsigned status)
{
	uint32_t id = r->n_ids;
	struct egress_result *result = rig_result(r, id);
	struct rig_head head;
	uint8_t buf[64];

	if (result->outcome != outcome)
		fail_msg("%s (%s)", egress_outcome_text(result->outcome), result->text);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, status);
	assert_string_equal(head.reason, result->text);
	assert_int_equal(head.n_headers, 1);
	assert_true(head.reason[0]);
	assert_int_equal(rig_read_body(fd, buf, sizeof(buf)), 0);
	assert_true(rig_is_ended(fd, 3000));
	(void)close(fd);
	rig_until(r, r->seen[id].closed);
	return result;
}

void rig_passes(int fd, int upstream)
{
	char buf[8];

	assert_int_equal(write(fd, "ping", 4), 4);
	rig_read_all(upstream, buf, 4);
	assert_memory_equal(buf, "ping", 4);
	assert_int_equal(write(upstream, "pong", 4), 4);
	rig_read_all(fd, buf, 4);
	assert_memory_equal(buf, "pong", 4);
}

void rig_tunnel(struct rig *r, int listener, const char *host, const char *addr)
{
	int fd = rig_connect(r, host, 443), upstream;
	struct egress_result *result = rig_result(r, r->n_ids);
	struct rig_head head;

	if (result->outcome != EGRESS_CONNECTED)
		fail_msg("%s: %s", host, result->text);
	assert_string_equal(result->addr, addr);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, 200);
	assert_int_equal(head.body.kind, HTTP_BODY_TUNNEL);
	assert_int_equal(head.n_headers, 0);
	upstream = rig_accept(listener, 60000);
	assert_true(upstream >= 0);
	rig_passes(fd, upstream);
	(void)close(fd);
	(void)close(upstream);
	rig_until(r, r->seen[r->n_ids].closed);
	assert_true(r->seen[r->n_ids].up == 4 && r->seen[r->n_ids].down == 4);
}

/* --- upstreams --- */

int rig_listen(uint16_t port)
{
	const struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const int off = 0, on = 1;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1024), 0);
	return fd;
}

int rig_accept(int listener, int ms)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int fd;

	(void)poll(&p, 1, ms);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		bound_waits(fd);
	return fd;
}

void rig_read_http(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < 4 || memcmp(buf + n - 4, "\r\n\r\n", 4) != 0) {
		assert_true(n + 1 < size);
		rig_read_all(fd, buf + n, 1);
		n++;
	}
	buf[n] = '\0';
}

unsigned rig_n_fds(const struct rig *r)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)r->pid);
	d = opendir(path);
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}
