/* SPDX-License-Identifier: Apache-2.0 */
#include "line_h2_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nghttp2/nghttp2.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define ALPN "\x02h2"

struct srv {
	SSL *ssl;
	nghttp2_session *session;
	struct h2_rig_manner manner;
	unsigned n_requests;
	bool done;
};

struct req {
	char path[256], dump[8192], trailers[1024];
	size_t n_dump;
	bool is_head, ended, in_trailers, is_said;
	uint64_t left, n_got; /* of /big and /sink */
	uint8_t *echo;
	size_t echo_n, echo_at;
};

static bool is(const struct req *q, const char *path)
{
	return strncmp(q->path, path, strlen(path)) == 0;
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct req *q = nghttp2_session_get_stream_user_data(session, id);
	size_t n = MIN(max, is(q, "/big") ? q->left : q->echo_n - q->echo_at);

	if (is(q, "/big")) {
		memset(to, 'b', n);
		q->left -= n;
		if (q->left == 0)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
		return (ssize_t)n;
	}
	if (n == 0 && !q->ended)
		return NGHTTP2_ERR_DEFERRED;
	if (n)
		memcpy(to, q->echo + q->echo_at, n);
	q->echo_at += n;
	(void)nghttp2_session_consume(session, id, is(q, "/echo") ? n : 0);
	if (q->echo_at < q->echo_n || !q->ended)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (is(q, "/echo")) {
		nghttp2_nv t[] = {nv("grpc-status", "0"), nv("x-got", q->trailers)};

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		(void)nghttp2_submit_trailer(session, id, t, ARRAY_LEN(t));
	}
	return (ssize_t)n;
}

static void put_echo(struct req *q, const void *p, size_t n)
{
	if (q->echo_at == q->echo_n)
		q->echo_at = q->echo_n = 0;
	q->echo = xrealloc(q->echo, q->echo_n + n);
	memcpy(q->echo + q->echo_n, p, n);
	q->echo_n += n;
}

static void answer(struct srv *v, int32_t id, struct req *q)
{
	const nghttp2_data_provider provider = {.read_callback = on_read};
	nghttp2_nv list[] = {nv(":status", "200"), nv("x-server", "rig")};
	nghttp2_nv early[] = {nv(":status", "103"), nv("link", "</a>")};
	char text[32];

	if (q->is_said)
		return;
	if (is(q, "/hint"))
		(void)nghttp2_submit_headers(v->session, 0, id, NULL, early, 2, NULL);
	if (is(q, "/expect")) {
		early[0] = nv(":status", "100");
		(void)nghttp2_submit_headers(v->session, 0, id, NULL, early, 1, NULL);
	}
	q->is_said = true;
	if (is(q, "/dump") || is(q, "/hint"))
		put_echo(q, q->dump, q->n_dump);
	if (is(q, "/sink") || is(q, "/expect") || is(q, "/quiet")) {
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->n_got);
		put_echo(q, text, strlen(text));
	}
	if (is(q, "/big"))
		q->left = strtoull(strchr(q->path, '?') + 1, NULL, 10);
	(void)nghttp2_submit_response(v->session, id, list, 2, q->is_head ? NULL : &provider);
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t n, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct req *q = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	char text[1024], *at;

	if (!q) {
		q = xcalloc(1, sizeof(*q));
		(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, q);
	}
	if (slice_eq_str(slice_of(name, n), ":path"))
		(void)snprintf(q->path, sizeof(q->path), "%.*s", (int)n_value, value);
	if (slice_eq_str(slice_of(name, n), ":method"))
		q->is_head = slice_eq_str(slice_of(value, n_value), "HEAD");
	if (q->in_trailers) {
		(void)snprintf(q->trailers, sizeof(q->trailers), "%.*s=%.*s", (int)n, name,
			(int)n_value, value);
		return 0;
	}
	/* The echo would be searched for the value: so its presence is reported instead. */
	(void)snprintf(text, sizeof(text), "%.*s", (int)n_value, value);
	at = strstr(text, RIG_VALUE);
	if (at)
		(void)snprintf(at, sizeof(text) - (size_t)(at - text), "THE VALUE");
	q->n_dump += (size_t)snprintf(q->dump + q->n_dump, sizeof(q->dump) - q->n_dump,
		"%.*s: %s%s\n", (int)n, name, text,
		flags & NGHTTP2_NV_FLAG_NO_INDEX ? " (not indexed)" : "");
	return 0;
}

static int on_request(struct srv *v, int32_t id, struct req *q, bool ended)
{
	q->in_trailers = true;
	if (v->n_requests < v->manner.n_refused) {
		v->n_requests++;
		return nghttp2_submit_rst_stream(v->session, 0, id, NGHTTP2_REFUSED_STREAM);
	}
	if (++v->n_requests == v->manner.goaway_at)
		return nghttp2_submit_goaway(v->session, 0, id - 2, NGHTTP2_NO_ERROR, NULL, 0);
	if (is(q, "/old"))
		return nghttp2_submit_rst_stream(v->session, 0, id, NGHTTP2_HTTP_1_1_REQUIRED);
	if (is(q, "/reset"))
		return nghttp2_submit_rst_stream(v->session, 0, id, NGHTTP2_INTERNAL_ERROR);
	if (is(q, "/echo") || is(q, "/big") || (ended && !is(q, "/silent")))
		answer(v, id, q);
	if (is(q, "/expect")) {
		nghttp2_nv go_on = nv(":status", "100");

		(void)nghttp2_submit_headers(v->session, 0, id, NULL, &go_on, 1, NULL);
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct req *q = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	bool was_head = frame->hd.type == NGHTTP2_HEADERS;

	if (!q || (!was_head && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (ended)
		q->ended = true;
	if (was_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		return on_request(user, frame->hd.stream_id, q, ended);
	if (ended && !is(q, "/silent")) {
		answer(user, frame->hd.stream_id, q);
		(void)nghttp2_session_resume_data(session, frame->hd.stream_id);
	}
	return 0;
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct req *q = nghttp2_session_get_stream_user_data(session, id);

	q->n_got += n;
	if (!is(q, "/echo"))
		return nghttp2_session_consume(session, id, n);
	put_echo(q, p, n); /* consumed when it was echoed */
	(void)nghttp2_session_resume_data(session, id);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct req *q = nghttp2_session_get_stream_user_data(session, id);

	if (q)
		free(q->echo);
	free(q);
	return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *user)
{
	struct srv *v = user;
	int r = SSL_write(v->ssl, p, (int)MIN(n, 16384));

	if (r > 0)
		return r;
	return SSL_get_error(v->ssl, r) == SSL_ERROR_WANT_WRITE ? NGHTTP2_ERR_WOULDBLOCK
								: NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void start_session(struct srv *v)
{
	nghttp2_settings_entry max = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		v->manner.max_streams ? v->manner.max_streams : 1000};
	nghttp2_session_callbacks *c;
	nghttp2_option *option;

	(void)nghttp2_session_callbacks_new(&c);
	(void)nghttp2_option_new(&option);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_callbacks_set_send_callback(c, on_send);
	nghttp2_session_callbacks_set_on_header_callback(c, on_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
	(void)nghttp2_session_server_new2(&v->session, c, v, option);
	(void)nghttp2_submit_settings(v->session, 0, &max, 1);
	nghttp2_session_callbacks_del(c);
	nghttp2_option_del(option);
}

static void serve(int fd, const struct h2_rig_manner *manner)
{
	struct srv v = {.ssl = rig_accept(fd, &rig_good, ALPN), .manner = *manner};
	static uint8_t buf[65536];

	if (!v.ssl)
		_exit(3);
	start_session(&v);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int n = SSL_read(v.ssl, buf, manner->is_slow ? 1000 : (int)sizeof(buf));

		if (n > 0 && nghttp2_session_mem_recv(v.session, buf, (size_t)n) < 0)
			_exit(4);
		if (n <= 0 && SSL_get_error(v.ssl, n) != SSL_ERROR_WANT_READ)
			_exit(0);
		if (nghttp2_session_send(v.session) < 0)
			_exit(5);
		if (n > 0 && !manner->is_slow)
			continue;
		if (nghttp2_session_want_write(v.session) && n <= 0)
			p.events |= POLLOUT;
		if (manner->is_slow)
			(void)usleep(500);
		if (n <= 0 && poll(&p, 1, 30000) == 0)
			_exit(6);
	}
}

static pid_t fork_child(int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)alarm(60);
		/* no end of an edge stays open in the child */
		(void)close_range(3, (unsigned)fd - 1, 0);
		(void)close_range((unsigned)fd + 1, ~0U, 0);
		return 0;
	}
	(void)close(fd);
	return pid;
}

pid_t h2_rig_serve(struct rig *r, const struct h2_rig_manner *manner)
{
	const struct h2_rig_manner good = {0};
	int fd = rig_give_socket(r, rig_expect(r, ORIGIN_WANT));
	pid_t pid = fork_child(fd);

	if (pid == 0) {
		serve(fd, manner ? manner : &good);
		_exit(0);
	}
	return pid;
}

/* ---- by hand ---- */

bool h2_rig_frame(SSL *ssl, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n)
{
	static uint8_t buf[9 + 70000];

	buf[0] = (uint8_t)(n >> 16);
	buf[1] = (uint8_t)(n >> 8);
	buf[2] = (uint8_t)n;
	buf[3] = type;
	buf[4] = flags;
	buf[5] = (uint8_t)(stream >> 24);
	buf[6] = (uint8_t)(stream >> 16);
	buf[7] = (uint8_t)(stream >> 8);
	buf[8] = (uint8_t)stream;
	if (n)
		memcpy(buf + 9, p, n);
	return SSL_write(ssl, buf, (int)(9 + n)) == (int)(9 + n);
}

static size_t put_text(uint8_t *buf, const char *s, size_t n)
{
	size_t at = 1;

	if (n < 127) {
		buf[0] = (uint8_t)n;
	} else {
		size_t left = n - 127;

		buf[0] = 127;
		for (; left >= 128; left >>= 7)
			buf[at++] = (uint8_t)(left | 128);
		buf[at++] = (uint8_t)left;
	}
	memcpy(buf + at, s, n);
	return at + n;
}

size_t h2_rig_block(uint8_t *buf, const char *const *pairs, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		buf[at++] = 0; /* literal, not indexed, new name */
		at += put_text(buf + at, pairs[2 * i], strlen(pairs[2 * i]));
		at += put_text(buf + at, pairs[2 * i + 1], strlen(pairs[2 * i + 1]));
	}
	return at;
}

static bool read_all(SSL *ssl, uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		int r = SSL_read(ssl, p + at, (int)(n - at));

		if (r <= 0)
			return false;
		at += (size_t)r;
	}
	return true;
}

bool h2_rig_read_frame(SSL *ssl, struct h2_rig_head *ret)
{
	static uint8_t buf[70000];
	size_t n;

	if (!read_all(ssl, buf, 9))
		return false;
	n = (size_t)buf[0] << 16 | (size_t)buf[1] << 8 | buf[2];
	*ret = (struct h2_rig_head){.type = buf[3],
		.flags = buf[4],
		.stream = (uint32_t)buf[5] << 24 | (uint32_t)buf[6] << 16 | (uint32_t)buf[7] << 8 |
			  buf[8]};
	return n <= sizeof(buf) && read_all(ssl, buf, n);
}

/* Reads up to the first HEADERS; returns its stream. */
static uint32_t read_request(SSL *ssl)
{
	uint8_t preface[24];
	struct h2_rig_head frame;

	if (!read_all(ssl, preface, sizeof(preface)))
		return 0;
	while (h2_rig_read_frame(ssl, &frame))
		if (frame.type == NGHTTP2_HEADERS)
			return frame.stream;
	return 0;
}

pid_t h2_rig_attack(struct rig *r, h2_rig_script script)
{
	int fd = rig_give_socket(r, rig_expect(r, ORIGIN_WANT));
	pid_t pid = fork_child(fd);
	uint8_t rest[4096];
	uint32_t stream;
	SSL *ssl;

	if (pid > 0)
		return pid;
	ssl = rig_accept(fd, &rig_good, ALPN);
	if (!ssl || !h2_rig_frame(ssl, NGHTTP2_SETTINGS, 0, 0, NULL, 0))
		_exit(3);
	stream = read_request(ssl);
	script(ssl, stream);
	while (SSL_read(ssl, rest, sizeof(rest)) > 0)
		;
	_exit(0);
}

void h2_rig_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

void h2_rig_connect(struct rig *r, uint16_t port)
{
	const struct egress_result result = {.outcome = EGRESS_CONNECTED, .addr = "127.0.0.1"};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	uint32_t want = rig_expect(r, ORIGIN_WANT);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0; i++) {
		assert_true(i < 100);
		(void)usleep(50000);
	}
	assert_int_equal(origin_answer_want(r->keeper, want, &result, fd), 0);
	(void)close(fd);
}
