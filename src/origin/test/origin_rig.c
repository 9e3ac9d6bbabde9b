/* SPDX-License-Identifier: Apache-2.0 */
#include "origin_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/unsealed.h"
#include "lib/rules/policy/test/policy_text.h"

#define WAIT_S 60

struct rig_cert rig_ca, rig_good;

const char rig_service[] = "service 1\n"
			   "name demo\n"
			   "about Demo: a service for tests\n"
			   "env DEMO_KEY " RIG_SENTINEL "\n"
			   "known header x-api-key  # the older way\n"
			   "known query key  # links\n"
			   "known cookie session  # browsers\n"
			   "\n"
			   "slot git\n"
			   "host api.example.com:443  # code\n"
			   "path /git/**\n"
			   "basic x-access-token\n"
			   "\n"
			   "slot api\n"
			   "host api.example.com:443,127.0.0.1:443  # all the rest\n"
			   "header authorization Bearer %s\n"
			   "\n"
			   "end\n";

/* ---- certificates ---- */

static void add_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(ext);
	assert_int_equal(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

void rig_make_cert(struct rig_cert *ret, const struct rig_cert_want *want)
{
	static long serial = 1000;
	const struct rig_cert *issuer = want->is_self_signed ? ret
					: want->issuer	     ? want->issuer
							     : &rig_ca;
	bool has_times = want->from_s || want->to_s;
	X509_NAME *name;

	ret->key = EVP_EC_gen("P-256");
	ret->cert = X509_new();
	assert_non_null(ret->key);
	assert_non_null(ret->cert);
	(void)X509_set_version(ret->cert, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(ret->cert), ++serial);
	(void)X509_gmtime_adj(X509_getm_notBefore(ret->cert), has_times ? want->from_s : -86400);
	(void)X509_gmtime_adj(X509_getm_notAfter(ret->cert), has_times ? want->to_s : 86400);
	name = X509_get_subject_name(ret->cert);
	/* the host is here too, and must be ignored */
	(void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		(const unsigned char *)(want->is_ca ? "Test CA" : RIG_HOST), -1, -1, 0);
	(void)X509_set_issuer_name(ret->cert, X509_get_subject_name(issuer->cert));
	(void)X509_set_pubkey(ret->cert, ret->key);
	if (want->is_ca) {
		add_ext(ret->cert, issuer->cert, NID_basic_constraints, "critical,CA:TRUE");
		add_ext(ret->cert, issuer->cert, NID_key_usage, "critical,keyCertSign");
	} else {
		add_ext(ret->cert, issuer->cert, NID_subject_alt_name,
			want->san ? want->san : "DNS:" RIG_HOST);
		add_ext(ret->cert, issuer->cert, NID_ext_key_usage, "serverAuth");
	}
	assert_true(X509_sign(ret->cert, issuer->key, EVP_sha256()) > 0);
}

void rig_make_pki(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	rig_make_cert(&rig_ca, &(struct rig_cert_want){.is_self_signed = true, .is_ca = true});
	rig_make_cert(&rig_good, &(struct rig_cert_want){0});
}

/* ---- the program ---- */

int rig_file(const char *text, size_t n)
{
	int fd = memfd_create("rig", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	return fd;
}

struct rig *rig_start(const char *arg)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	char *argv[] = {(char *)"sbx-origin", (char *)arg, NULL};
	char *envp[] = {NULL};
	int pair[2];

	r->msg.fd = r->edge.sock = -1;
	assert_int_equal(ipc_pair(pair), 0);
	r->keeper = pair[0];
	r->pid = fork();
	if (r->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (dup2(pair[1], 3) < 0)
			_exit(126);
		(void)fcntl(3, F_SETFD, 0);
		(void)close_range(4, ~0U, 0);
		(void)execve(getenv("SBX_ORIGIN"), argv, envp);
		_exit(127);
	}
	assert_true(r->pid > 0);
	(void)close(pair[1]);
	return r;
}

static void wait_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)poll(&p, 1, ms);
}

void rig_policy(struct rig *r, const char *rules)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%send\n", rules);
	int files[POLICY_N_PARTS];

	policy_text_files(slice_from_str(text), "policy", "demo", files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		assert_int_equal(origin_ask_policy(r->keeper, 1, (uint8_t)i, files[i]), 0);
		fd_close(&files[i]);
	}
}

void rig_channel(struct rig *r)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(chan_send_plain(r->keeper, ORIGIN_CHANNEL, 0, pair[1]), 0);
	(void)close(pair[1]);
	mux_rig_stop(&r->edge);
	mux_rig_start(&r->edge, pair[0], false);
}

void rig_up_as(struct rig *r, const char *host, uint8_t has, const char *service)
{
	struct origin_config config = {.sandbox = "demo", .port = 443, .has = has};
	char build[CHAN_MAX_BUILD], *pem;
	BIO *bio = BIO_new(BIO_s_mem());
	long n;
	int file;

	wait_readable(r->keeper, WAIT_S * 1000);
	assert_int_equal(ipc_recv(r->keeper, &r->msg), 1);
	assert_int_equal(chan_get_hello(&r->msg, build), 0);
	(void)snprintf(config.host, sizeof(config.host), "%s", host);
	file = rig_file(service, strlen(service));
	assert_int_equal(origin_ask_config(r->keeper, &config, file), 0);
	(void)close(file);
	/* an unreadable certificate does not hide the others */
	(void)BIO_puts(bio, "# roots\n-----BEGIN CERTIFICATE-----\nMIIBAAAA\n"
			    "-----END CERTIFICATE-----\n");
	(void)PEM_write_bio_X509(bio, rig_ca.cert);
	n = BIO_get_mem_data(bio, &pem);
	file = rig_file(pem, (size_t)n);
	assert_int_equal(chan_send_plain(r->keeper, ORIGIN_ROOTS, 0, file), 0);
	(void)close(file);
	BIO_free(bio);
	rig_policy(r, "allow network **:1-65535,127.0.0.1:443\n");
	rig_channel(r);
}

void rig_up(struct rig *r, const char *host, uint8_t has)
{
	rig_up_as(r, host, has, rig_service);
}

struct rig *rig_new(void)
{
	struct rig *r = rig_start(NULL);

	rig_up(r, RIG_HOST, ORIGIN_HAS_SECRET);
	return r;
}

int rig_exit(struct rig *r)
{
	uint64_t end = clock_mono_ms() + WAIT_S * 1000;
	int status = 0;

	while (clock_mono_ms() < end) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			r->pid = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
		}
		(void)usleep(2000);
	}
	fail_msg("it does not end");
	return 0;
}

void rig_free(struct rig *r)
{
	if (r->pid) {
		fd_close(&r->keeper);
		assert_int_equal(rig_exit(r), 0);
	}
	ipc_msg_done(&r->msg);
	mux_rig_stop(&r->edge);
	fd_close(&r->keeper);
	free(r);
}

/* ---- messages to the keeper ---- */

static void note(struct rig *r)
{
	struct rig_seen *s = &r->seen[r->msg.id];

	assert_true(r->msg.id < RIG_IDS);
	if (r->msg.type == ORIGIN_RESULT) {
		assert_false(s->has_result || s->closed);
		assert_int_equal(origin_get_result(&r->msg, &s->result), 0);
		s->has_result = true;
		return;
	}
	assert_false(s->closed);
	assert_int_equal(origin_get_closed(&r->msg, &s->up, &s->down), 0);
	s->closed = true;
}

bool rig_next(struct rig *r, int ms)
{
	uint64_t end = clock_mono_ms() + (uint64_t)ms;

	for (;;) {
		uint64_t now = clock_mono_ms();
		int got;

		ipc_msg_done(&r->msg);
		got = ipc_recv(r->keeper, &r->msg);
		if (got == 1 && (r->msg.type == ORIGIN_RESULT || r->msg.type == ORIGIN_CLOSED)) {
			note(r);
			return false;
		}
		if (got == 1) {
			r->n_wants += r->msg.type == ORIGIN_WANT;
			r->n_needs += r->msg.type == ORIGIN_NEED;
			if (r->msg.type == ORIGIN_NEED)
				assert_int_equal(origin_get_need(&r->msg, &r->need), 0);
			return true;
		}
		if (got != -EAGAIN || now >= end)
			return false;
		wait_readable(r->keeper, (int)(end - now));
	}
}

uint32_t rig_expect(struct rig *r, enum origin_msg type)
{
	uint64_t end = clock_mono_ms() + WAIT_S * 1000;

	while (!rig_next(r, 100)) {
		if (clock_mono_ms() > end)
			fail_msg("message %d never came", type);
	}
	assert_int_equal(r->msg.type, type);
	return r->msg.id;
}

struct origin_result *rig_result(struct rig *r, uint32_t id)
{
	uint64_t end = clock_mono_ms() + WAIT_S * 1000;

	while (!r->seen[id].has_result) {
		if (rig_next(r, 100))
			fail_msg("message %d instead of a result", r->msg.type);
		if (clock_mono_ms() > end)
			fail_msg("no result of %u", id);
	}
	return &r->seen[id].result;
}

void rig_until_closed(struct rig *r, uint32_t id)
{
	uint64_t end = clock_mono_ms() + WAIT_S * 1000;

	while (!r->seen[id].closed) {
		(void)rig_next(r, 100);
		if (clock_mono_ms() > end)
			fail_msg("%u is never closed", id);
	}
}

uint64_t rig_memory(const struct rig *r)
{
	char path[64], line[256];
	unsigned long long sum = 0, kib;
	FILE *f;

	/* the only such file that its own user may read too */
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		/* not the program's text, which may be private or dirty for other reasons */
		if (sscanf(line, "RssAnon: %llu", &kib) == 1)
			sum += kib * 1024;
	}
	(void)fclose(f);
	assert_true(sum > 0);
	return sum / JAIL_MEMORY_FACTOR;
}

/* ---- edge ---- */

static void set_timeouts(int fd)
{
	const struct timeval tv = {.tv_sec = WAIT_S};

	(void)fcntl(fd, F_SETFL, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

static struct ticket make_ticket(const struct rig_req *req)
{
	const struct ticket_request t = {.tls = !req->is_plain,
		.method = slice_from_str(req->method ? req->method : "GET"),
		.host = slice_from_str(req->host ? req->host : RIG_HOST),
		.port = req->port ? req->port : 443,
		.path = slice_from_str(req->path ? req->path : "/"),
		.has_query = req->query != NULL,
		.query = slice_from_str(req->query ? req->query : "")};
	struct ticket ticket;

	ticket_make(&t, &ticket);
	return ticket;
}

int rig_open(struct rig *r, const struct rig_req *req)
{
	struct ticket ticket = make_ticket(req);
	int fd;

	assert_int_equal(origin_ask_open(r->keeper, ++r->n_ids, &ticket, -1), 0);
	fd = mux_rig_add(&r->edge, r->n_ids);
	set_timeouts(fd);
	return fd;
}

int rig_open_clerk(struct rig *r, const struct rig_req *req)
{
	struct ticket ticket = make_ticket(req);
	int pair[2];

	ticket.is_judged = true;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(origin_ask_open(r->keeper, ++r->n_ids, &ticket, pair[1]), 0);
	(void)close(pair[1]);
	set_timeouts(pair[0]);
	return pair[0];
}

static void send_all(int fd, const void *p, size_t n)
{
	int r = fd_write_all(fd, p, n);

	/* an answer may be complete before the request */
	if (r != -EPIPE)
		assert_int_equal(r, 0);
}

static size_t split_headers(const char *text, struct http_header *list, size_t max)
{
	size_t n = 0;

	while (text && *text) {
		const char *colon = strchr(text, ':'), *end = strchr(text, '\n');
		const char *value = colon + 1 + (colon[1] == ' ');

		assert_true(n < max && end);
		list[n++] = (struct http_header){slice_of(text, (size_t)(colon - text)),
			slice_of(value, (size_t)(end - value))};
		text = end + 1;
	}
	return n;
}

void rig_send_head(int fd, const struct rig_req *req)
{
	static uint8_t buf[CANON_MAX_HEAD + CANON_FRAME_HEADER];
	struct http_header list[32];
	struct http_req q = {.method = slice_from_str(req->method ? req->method : "GET"),
		.scheme = req->is_plain ? HTTP_SCHEME_HTTP : HTTP_SCHEME_HTTPS,
		.host = slice_from_str(req->host ? req->host : RIG_HOST),
		.port = req->port ? req->port : 443,
		.path = slice_from_str(req->path ? req->path : "/"),
		.has_query = req->query != NULL,
		.query = slice_from_str(req->query ? req->query : ""),
		.body = {.kind = req->body, .length = req->length},
		.expect_continue = req->expect,
		.te_trailers = req->te,
		.websocket = req->websocket,
		.headers = {.list = list, .max = 32}};
	struct wr wr = wr_init(buf, sizeof(buf));

	q.headers.n = split_headers(req->headers, list, 32);
	assert_int_equal(canon_put_req(&wr, 1, &q), 0);
	send_all(fd, buf, wr.n);
}

void rig_send_data(int fd, const void *p, size_t n)
{
	uint8_t head[16];
	struct wr wr = wr_init(head, sizeof(head));

	assert_int_equal(canon_put_data_head(&wr, 1, n), 0);
	send_all(fd, head, wr.n);
	send_all(fd, p, n);
}

void rig_send_end(int fd, const char *trailer)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct http_header list[4];
	struct http_headers trailers = {.list = list, .max = 4};

	trailers.n = split_headers(trailer, list, 4);
	assert_int_equal(canon_put_end(&wr, 1, &trailers), 0);
	send_all(fd, buf, wr.n);
}

int rig_ask(struct rig *r, const struct rig_req *req)
{
	int fd = rig_open(r, req);

	rig_send_head(fd, req);
	if (req->body == HTTP_BODY_NONE && !req->websocket)
		rig_send_end(fd, NULL);
	return fd;
}

static bool read_all(int fd, void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = recv(fd, (uint8_t *)p + at, n - at, 0);

		if (r < 0 && errno == EAGAIN)
			fail_msg("nothing comes");
		if (r <= 0)
			return false;
		at += (size_t)r;
	}
	return true;
}

static void print_headers(const struct http_headers *headers, char *buf, size_t size)
{
	size_t n = strlen(buf);

	for (size_t i = 0; i < headers->n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%.*s: %.*s\n",
			(int)headers->list[i].name.n, headers->list[i].name.p,
			(int)headers->list[i].value.n, headers->list[i].value.p);
}

static void take_head(struct rig_answer *a, struct slice payload, struct arena *arena)
{
	struct http_resp resp;
	size_t at;

	assert_int_equal(canon_get_resp(payload, arena, &resp), 0);
	a->status = resp.status;
	a->headers[0] = '\0';
	print_headers(&resp.headers, a->headers, sizeof(a->headers));
	if (canon_find_header(&resp.headers, "sbx-reason", &at) == 0)
		(void)!slice_to_cstr(resp.headers.list[at].value, a->reason, sizeof(a->reason));
}

static void put_body(struct rig_answer *a, struct slice data)
{
	if (a->n_body + data.n >= a->size) {
		a->size = MAX(2 * a->size, a->n_body + data.n + 65536);
		a->body = xrealloc(a->body, a->size);
	}
	memcpy(a->body + a->n_body, data.p, data.n);
	a->n_body += data.n;
	a->body[a->n_body] = 0;
}

bool rig_read_frame(int fd, struct rig_answer *a)
{
	static uint8_t head[CANON_FRAME_HEADER], payload[CANON_MAX_HEAD];
	struct arena arena;
	struct http_headers trailers;
	struct slice in;
	size_t n;

	if (!read_all(fd, head, sizeof(head)))
		return false;
	n = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
	assert_true(n <= sizeof(payload) && head[5] == 1);
	if (!read_all(fd, payload, n))
		return false;
	in = slice_of(payload, n);
	arena_init(&arena, HTTP_ARENA_SIZE);
	switch (head[4]) {
	case CANON_HEAD:
		take_head(a, in, &arena);
		break;
	case CANON_DATA:
		put_body(a, in);
		break;
	case CANON_END:
		assert_int_equal(canon_get_end(in, &arena, &trailers), 0);
		print_headers(&trailers, a->trailers, sizeof(a->trailers));
		a->ended = true;
		break;
	default:
		a->reset = true;
	}
	arena_done(&arena);
	return true;
}

void rig_read_answer(int fd, struct rig_answer *a)
{
	*a = (struct rig_answer){0};
	while (!a->ended && !a->reset && rig_read_frame(fd, a))
		;
}

void rig_answer_done(struct rig_answer *a)
{
	free(a->body);
	a->body = NULL;
	a->n_body = a->size = 0;
}

/* ---- the server ---- */

int rig_give_socket(struct rig *r, uint32_t want)
{
	const struct egress_result result = {.outcome = EGRESS_CONNECTED, .addr = "192.0.2.7"};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(origin_answer_want(r->keeper, want, &result, pair[1]), 0);
	(void)close(pair[1]);
	set_timeouts(pair[0]);
	return pair[0];
}

void rig_refuse_socket(struct rig *r, uint32_t want, enum egress_outcome outcome, const char *text)
{
	struct egress_result result = {.outcome = outcome};

	(void)snprintf(result.text, sizeof(result.text), "%s", text);
	assert_int_equal(origin_answer_want(r->keeper, want, &result, -1), 0);
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *n_out,
	const unsigned char *in, unsigned n, void *arg)
{
	const char *want = arg;

	if (SSL_select_next_proto((unsigned char **)out, n_out, (const unsigned char *)want,
		    (unsigned)strlen(want), in, n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

SSL *rig_accept(int fd, const struct rig_cert *cert, const char *alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl;

	assert_int_equal(SSL_CTX_use_certificate(ctx, cert->cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, cert->key), 1);
	if (alpn)
		SSL_CTX_set_alpn_select_cb(ctx, choose, (void *)alpn);
	ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	(void)SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1)
		return ssl;
	ERR_clear_error();
	SSL_free(ssl);
	(void)close(fd);
	return NULL;
}

SSL *rig_serve(struct rig *r)
{
	uint32_t want = rig_expect(r, ORIGIN_WANT);
	SSL *ssl = rig_accept(rig_give_socket(r, want), &rig_good, NULL);

	assert_non_null(ssl);
	return ssl;
}

void rig_hang_up(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	(void)SSL_shutdown(ssl);
	SSL_free(ssl);
	(void)close(fd);
}

void rig_send_value(struct rig *r, uint32_t need, const char *value, uint32_t use_s)
{
	const struct origin_value answer = {.given = true, .use_s = use_s};
	struct vault_frame frame = {.serial = 77, .name = "demo", .value = slice_from_str(value)};
	uint8_t head[VAULT_FRAME_MAX_HEAD];
	struct wr wr = wr_init(head, sizeof(head));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(origin_answer_need(r->keeper, need, &answer, pair[1]), 0);
	(void)close(pair[1]);
	assert_int_equal(vault_frame_head(&frame, &wr), 0);
	send_all(pair[0], head, wr.n);
	send_all(pair[0], value, strlen(value));
	(void)close(pair[0]);
}

void rig_give_value(struct rig *r, const char *value)
{
	rig_send_value(r, rig_expect(r, ORIGIN_NEED), value, 0);
}

bool rig_read_http(SSL *ssl, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	while (n < 4 || memcmp(buf + n - 4, "\r\n\r\n", 4) != 0) {
		int r = SSL_read(ssl, buf + n, 1);

		if (r <= 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_READ)
			fail_msg("neither bytes nor an end come");
		if (r <= 0)
			return false;
		assert_true(n + 2 < size);
		buf[++n] = '\0';
	}
	return true;
}

void rig_write(SSL *ssl, const char *text)
{
	assert_int_equal(SSL_write(ssl, text, (int)strlen(text)), (int)strlen(text));
}

unsigned rig_count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}
