/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "daemon.h"
#include "lib/client/cli/form.h"

#define MAX_POLL_MS 60000

/* The bytes of one answer. */
struct answer {
	char *buf;
	size_t n, room, n_head;
	int status;
	size_t length; /* of the body */
};

/* One request, and how its answer is awaited. */
struct call {
	const char *method, *path;
	json_t *body; /* NULL: none */
	int pass_fd;  /* -1: none */
	unsigned timeout_ms;
	api_tick_fn *tick; /* NULL: none */
	void *arg;
	bool is_repeatable;
	char **ret_text; /* for a body that is not JSON; NULL: the body is JSON */
};

static void answer_done(struct answer *a)
{
	free(a->buf);
}

void api_json_free(json_t **j)
{
	json_decref(*j);
}

const char *api_str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

long long api_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

void api_print(const json_t *j)
{
	AUTO_JSON json_t *copy = json_deep_copy(j);

	form_times(copy);
	if (json_dumpf(copy, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0)
		(void)putchar('\n');
}

char *api_quote(const char *s)
{
	char *out = xmalloc(3 * strlen(s) + 1), *o = out;

	for (; *s; s++)
		if (isalnum((unsigned char)*s) || strchr("-._", *s))
			*o++ = *s;
		else
			o += sprintf(o, "%%%02X", (unsigned)(unsigned char)*s);
	*o = '\0';
	return out;
}

static int wait_for(int fd, short events, uint64_t until, uint64_t most_ms)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	uint64_t now = clock_mono_ms();
	int r;

	if (now >= until)
		return -ETIMEDOUT;
	r = poll(&pfd, 1, (int)MIN(until - now, most_ms));
	if (r < 0 && errno != EINTR)
		return -errno;
	return r <= 0 ? -EAGAIN : 0;
}

static int send_all(int fd, const char *s, size_t n, uint64_t until)
{
	while (n > 0) {
		ssize_t k = send(fd, s, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r = 0;

		if (k < 0 && errno == EAGAIN)
			r = wait_for(fd, POLLOUT, until, MAX_POLL_MS);
		else if (k < 0 && errno != EINTR)
			return -errno;
		if (r < 0 && r != -EAGAIN)
			return r;
		if (k > 0) {
			s += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

/* Reads at least one byte more, at most `want`; 0 at the end. */
static ssize_t read_some(
	int fd, const struct call *call, struct answer *a, size_t want, uint64_t *until)
{
	if (a->room - a->n < want + 1) {
		a->room = a->n + want + 1;
		a->buf = xrealloc(a->buf, a->room);
	}
	for (;;) {
		ssize_t k = recv(fd, a->buf + a->n, want, MSG_DONTWAIT);
		int r;

		if (k >= 0) {
			a->n += (size_t)k;
			a->buf[a->n] = '\0';
			return k;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(fd, POLLIN, *until, call->tick ? API_TICK_MS : MAX_POLL_MS);
		if (r == -EAGAIN && call->tick)
			r = call->tick(call->arg);
		if (r > 0)
			*until = clock_mono_ms() + call->timeout_ms;
		if (r < 0 && r != -EAGAIN)
			return r;
	}
}

static int parse_head(struct answer *a)
{
	const char *line = strstr(a->buf, "\r\n");
	uint64_t v;

	if (strncmp(a->buf, "HTTP/1.1 ", 9) != 0 || strlen(a->buf) < 12)
		return -EPROTO;
	a->status = atoi(a->buf + 9);
	for (; line && line + 2 < a->buf + a->n_head; line = strstr(line + 2, "\r\n")) {
		char digits[24] = "";

		if (strncasecmp(line + 2, "Content-Length:", 15) != 0)
			continue;
		if (sscanf(line + 17, " %20[0-9]", digits) != 1 ||
			str_to_u64(digits, 0, API_MAX_ANSWER, &v) < 0)
			return -EPROTO;
		a->length = (size_t)v;
	}
	return a->status >= 100 && a->status <= 599 ? 0 : -EPROTO;
}

/* Byte by byte near the end of the head is not needed: only a 101 is followed by other bytes, and
 * the guest sends only after our SPEC. */
static int read_answer(int fd, const struct call *call, struct answer *a, uint64_t until)
{
	char *end = NULL;
	int r;

	while (!end) {
		ssize_t k = a->n >= API_MAX_HEAD ? -EPROTO : read_some(fd, call, a, 4096, &until);

		if (k <= 0)
			return k < 0 ? (int)k : -ECONNRESET;
		end = strstr(a->buf, "\r\n\r\n");
	}
	a->n_head = (size_t)(end - a->buf) + 4;
	r = parse_head(a);
	if (r < 0)
		return r;
	while (a->n < a->n_head + a->length) {
		ssize_t k = read_some(fd, call, a, a->n_head + a->length - a->n, &until);

		if (k <= 0)
			return k < 0 ? (int)k : -ECONNRESET;
	}
	return 0;
}

/* The failure that sbxd reports, as errno, message and hint. */
static int take_error(const struct answer *a, const json_t *answer, struct problem *p)
{
	const json_t *e = json_object_get(answer, "error");
	const char *message = api_str(e, "message");
	int r = a->status == 404 ? -ENOENT : a->status == 409 ? -EEXIST : -EIO;

	(void)snprintf(p->code, sizeof(p->code), "%s", api_str(e, "code"));
	(void)snprintf(p->hint, sizeof(p->hint), "%s", api_str(e, "hint"));
	if (strcmp(p->code, "busy") == 0)
		r = -EBUSY;
	if (a->status == 503 || a->status == 504)
		r = -ETIMEDOUT;
	if (!message[0])
		return err_set(&p->err, r, "sbxd returned status %d", a->status);
	return err_set(&p->err, r, "%s", message);
}

static int say_lost(int r, unsigned timeout_ms, struct problem *p)
{
	if (r == -ETIMEDOUT)
		(void)err_set(
			&p->err, r, "sbxd did not respond within %u seconds", timeout_ms / 1000);
	else
		(void)err_errno(&p->err, r, "cannot communicate with sbxd");
	return problem_hint(p, r, "sbx diagnose");
}

/* The first byte takes the descriptor along; the socket is new and takes it at once. */
static int send_passing(int fd, const char *byte, int pass_fd)
{
	const struct iovec iov = {.iov_base = (char *)byte, .iov_len = 1};
	ssize_t n;

	fd_raise_limit();
	n = fd_send(fd, &iov, 1, &pass_fd, 1, 0);
	return n < 0 ? (int)n : 0;
}

static int exchange_api(int fd, const struct call *call, struct answer *a)
{
	AUTO_FREE char *json = call->body ? json_dumps(call->body, JSON_COMPACT) : NULL;
	bool upgrade = strcmp(call->method, "UPGRADE") == 0;
	AUTO_FREE char *request = xasprintf("%s %s HTTP/1.1\r\nHost: sbxd\r\n%s%s%s%zu\r\n\r\n%s",
		upgrade ? "POST" : call->method, call->path,
		upgrade ? "Connection: Upgrade\r\nUpgrade: sbx-stream\r\n" : "",
		json ? "Content-Type: application/json\r\n" : "",
		"Content-Length: ", json ? strlen(json) : 0, json ? json : "");
	uint64_t until = clock_mono_ms() + call->timeout_ms;
	size_t sent = call->pass_fd >= 0;
	int r;

	ui_debug("%s %s %s", call->method, call->path, json ? json : "");
	r = sent ? send_passing(fd, request, call->pass_fd) : 0;
	if (r == 0)
		r = send_all(fd, request + sent, strlen(request) - sent, until);
	return r < 0 ? r : read_answer(fd, call, a, until);
}

/* Closes our side, so that sbxd undoes the call, and waits until sbxd has. True when the call was
 * answered just before. */
static bool cancel_api(int fd, struct answer *a)
{
	struct call no_tick = {0};

	(void)shutdown(fd, SHUT_WR);
	return read_answer(fd, &no_tick, a, clock_mono_ms() + API_TIMEOUT_MS) == 0;
}

static int call_on(int fd, const struct call *call, json_t **ret_answer, struct problem *p)
{
	CLEANUP(answer_done) struct answer a = {0};
	AUTO_JSON json_t *answer = NULL;
	int r = exchange_api(fd, call, &a), ended = r == -EINTR ? r : 0;

	if (ended)
		r = cancel_api(fd, &a) ? 0 : r;
	if (r < 0)
		return ended ? ended : say_lost(r, call->timeout_ms, p);
	ui_debug("status %d, %zu bytes", a.status, a.length);
	if (call->ret_text && a.status == 200) {
		*call->ret_text = xstrndup(a.length ? a.buf + a.n_head : "", a.length);
		return ended;
	}
	if (a.length > 0)
		answer = json_loadb(a.buf + a.n_head, a.length, JSON_REJECT_DUPLICATES, NULL);
	if (a.status == 101)
		return 0;
	if (a.status >= 300 || a.status < 200)
		return take_error(&a, answer, p);
	if (a.length > 0 && !answer)
		return err_set(&p->err, -EPROTO, "invalid response from sbxd: not JSON");
	if (ret_answer)
		*ret_answer = TAKE(answer);
	return ended;
}

static int call_again(const struct call *call, json_t **ret_answer, struct problem *p)
{
	for (int tries = 1;; tries++) {
		AUTO_CLOSE int fd = daemon_connect(p);
		int r = fd < 0 ? fd : call_on(fd, call, ret_answer, p);
		bool lost = r == -ECONNRESET || r == -EPIPE;

		/* An sbxd that dies takes along who waits for it. */
		if (!lost || tries == API_TRIES || (fd >= 0 && !call->is_repeatable))
			return r;
		*p = (struct problem){0};
	}
}

int api_call(const char *method, const char *path, json_t *body, unsigned timeout_ms,
	json_t **ret_answer, struct problem *p)
{
	struct call call = {.method = method,
		.path = path,
		.body = body,
		.pass_fd = -1,
		.timeout_ms = timeout_ms,
		.is_repeatable = strcmp(method, "GET") == 0};

	return call_again(&call, ret_answer, p);
}

int api_fetch(const char *path, unsigned timeout_ms, char **ret_text, struct problem *p)
{
	struct call call = {.method = "GET",
		.path = path,
		.pass_fd = -1,
		.timeout_ms = timeout_ms,
		.is_repeatable = true,
		.ret_text = ret_text};

	return call_again(&call, NULL, p);
}

int api_call_whole(const char *method, const char *path, json_t *body, unsigned timeout_ms,
	api_tick_fn *tick, void *arg, json_t **ret_answer, struct problem *p)
{
	struct call call = {.method = method,
		.path = path,
		.body = body,
		.pass_fd = -1,
		.timeout_ms = timeout_ms,
		.tick = tick,
		.arg = arg,
		.is_repeatable = true};

	return call_again(&call, ret_answer, p);
}

int api_call_passing(const char *method, const char *path, json_t *body, int pass_fd,
	unsigned timeout_ms, json_t **ret_answer, struct problem *p)
{
	struct call call = {.method = method,
		.path = path,
		.body = body,
		.pass_fd = pass_fd,
		.timeout_ms = timeout_ms};
	AUTO_CLOSE int fd = daemon_connect(p);

	return fd < 0 ? fd : call_on(fd, &call, ret_answer, p);
}

int api_peek(const char *method, const char *path, unsigned timeout_ms, json_t **ret_answer,
	struct problem *p)
{
	struct call call = {
		.method = method, .path = path, .pass_fd = -1, .timeout_ms = timeout_ms};
	AUTO_CLOSE int fd = daemon_try(p);

	return fd < 0 ? fd : call_on(fd, &call, ret_answer, p);
}

static int upgrade_call(const char *path, unsigned timeout_ms, struct problem *p)
{
	struct call call = {
		.method = "UPGRADE", .path = path, .pass_fd = -1, .timeout_ms = timeout_ms};
	AUTO_CLOSE int fd = daemon_connect(p);
	int r = fd < 0 ? fd : call_on(fd, &call, NULL, p);

	return r < 0 ? r : TAKE_FD(fd);
}

int api_stream(const char *ref, unsigned timeout_ms, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(ref);
	AUTO_FREE char *path = xasprintf("/v1/sandboxes/%s/exec", quoted);

	return upgrade_call(path, timeout_ms, p);
}

int api_callback(const char *ref, unsigned port, unsigned timeout_ms, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(ref);
	AUTO_FREE char *path = xasprintf("/v1/sandboxes/%s/exec?callback=%u", quoted, port);

	return upgrade_call(path, timeout_ms, p);
}
