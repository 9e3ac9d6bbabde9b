/* SPDX-License-Identifier: Apache-2.0 */
/* Violations of peers, and places where the value must never be found. */
#include "origin_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/unsealed.h"

#define OK "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
#define ECHO "HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n" RIG_VALUE

static char head[8192];
static const struct ticket ticket = {TICKET_VERSION, {0}};

/* ---- the keeper ---- */

static void say(struct rig *r, uint16_t type, uint32_t id, const char *body, size_t n, bool fd)
{
	int file = rig_file("x", 1);

	assert_int_equal(ipc_send(r->keeper, type, id, slice_of(body, n), fd ? file : -1), 0);
	(void)close(file);
}

static void test_a_keeper_that_breaks_the_protocol(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t id;
		const char *body;
		size_t n;
		bool fd;
	} rows[] = {
		{ORIGIN_CONFIG, 0, "\0\0\1\0h\1\0\1", 8, true},
		{ORIGIN_ROOTS, 0, "", 0, true},
		{ORIGIN_OPEN, 9, "x", 1, false},
		{ORIGIN_OPEN, 9, "", 0, true},
		{ORIGIN_CHANNEL, 0, "", 0, false},
		{ORIGIN_CHANNEL, 0, "x", 1, true},
		{ORIGIN_SOCKET, 1, "\0\0\0\0\0", 5, true}, /* not wanted */
		{ORIGIN_SOCKET, 1, "\1\0\0\0\0", 5, false},
		{ORIGIN_VALUE, 1, "\1\0\0\0\0\0\0", 7, true}, /* not needed */
		{ORIGIN_VALUE, 1, "\0\0\0\0\0\0\0", 7, false},
		{ORIGIN_HELLO, 0, "\0\0", 2, false},
		{ORIGIN_NEED, 0, "", 0, false},
		{ORIGIN_TOKENS, 0, "\1\0\0\0\0", 5, true},
		{ORIGIN_N_MSGS, 0, "", 0, false},
		{0, 0, "", 0, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rig *r = rig_new();

		say(r, rows[i].type, rows[i].id, rows[i].body, rows[i].n, rows[i].fd);
		if (rig_exit(r) != 4)
			fail_msg("row %zu", i);
		rig_free(r);
	}
}

static void test_a_keeper_that_begins_badly(void **state)
{
	static const struct origin_config good = {.host = RIG_HOST, .port = 443, .has = 1};
	static const struct origin_config odd = {.host = "API.example.com", .port = 443, .has = 1};

	for (int i = 0; i < 5; i++) {
		struct rig *r = rig_start(NULL);
		int pair[2], service = rig_file(rig_service, strlen(rig_service));
		int none = rig_file("", 0);

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		if (i == 0) /* before anything else */
			assert_int_equal(origin_ask_open(r->keeper, 1, &ticket, -1), 0);
		if (i == 1)
			assert_int_equal(chan_send_plain(r->keeper, ORIGIN_ROOTS, 0, none), 0);
		if (i == 2) /* no service */
			assert_int_equal(origin_ask_config(r->keeper, &good, none), 0);
		if (i == 3) /* not canonical */
			assert_int_equal(origin_ask_config(r->keeper, &odd, service), 0);
		if (i == 4) { /* no roots: nothing could be verified */
			assert_int_equal(origin_ask_config(r->keeper, &good, service), 0);
			assert_int_equal(chan_send_plain(r->keeper, ORIGIN_ROOTS, 0, none), 0);
		}
		assert_int_equal(rig_exit(r), 4);
		(void)close(pair[0]);
		(void)close(pair[1]);
		(void)close(service);
		(void)close(none);
		rig_free(r);
	}
}

static void test_the_same_id_twice(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_open(r, &(struct rig_req){0});

	assert_int_equal(origin_ask_open(r->keeper, r->n_ids, &ticket, -1), 0);
	assert_int_equal(rig_exit(r), 4);
	(void)close(edge);
	rig_free(r);
}

/* An answer with another id, while a request is pending. */
static void test_answers_of_another_id(void **state)
{
	static const struct origin_value no = {.text = "no"};

	for (int i = 0; i < 3; i++) {
		struct rig *r = rig_new();
		uint32_t want, need;
		SSL *ssl = NULL;

		(void)rig_ask(r, &(struct rig_req){0});
		want = rig_expect(r, ORIGIN_WANT);
		if (i == 0) {
			rig_refuse_socket(r, want + 1, EGRESS_REFUSED, "no");
		} else {
			ssl = rig_accept(rig_give_socket(r, want), &rig_good, NULL);
			need = rig_expect(r, ORIGIN_NEED);
			if (i == 1)
				rig_refuse_socket(r, want, EGRESS_REFUSED, "a second time");
			else
				assert_int_equal(
					origin_answer_need(r->keeper, need + 1, &no, -1), 0);
		}
		assert_int_equal(rig_exit(r), 4);
		if (ssl)
			rig_hang_up(ssl);
		rig_free(r);
	}
}

static void test_the_keeper_goes(void **state)
{
	struct rig *r = rig_new();

	(void)rig_ask(r, &(struct rig_req){0});
	(void)rig_expect(r, ORIGIN_WANT);
	(void)shutdown(r->keeper, SHUT_RDWR);
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

/* A keeper that does not read gets no more messages, and all of them when it reads again. */
static void test_a_keeper_that_does_not_read(void **state)
{
	struct rig *r = rig_new();
	int edges[RIG_IDS - 1];
	unsigned n = 0;

	for (; n < 500; n++) {
		if (origin_ask_open(r->keeper, r->n_ids + 1, &ticket, -1) < 0)
			break;
		edges[n] = mux_rig_add(&r->edge, ++r->n_ids);
		(void)!send(edges[n], "garbage!garbage!", 16, MSG_NOSIGNAL); /* or is closed */
		(void)usleep(200);
	}
	for (unsigned i = 0; i < n; i++)
		(void)close(edges[i]);
	for (uint32_t id = 1; id <= r->n_ids; id++)
		rig_until_closed(r, id);
	rig_free(r);
}

/* ---- edge ---- */

#define FRAME(n, kind, rest) \
	n "\0\0\0" kind "\1\0\0" rest, sizeof(n "\0\0\0" kind "\1\0\0" rest) - 1

static void test_edge_that_breaks_the_protocol(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{FRAME("\1", "\2", "x")},		   /* DATA first */
		{FRAME("\2", "\3", "\0\0")},		   /* END first */
		{FRAME("\1", "\4", "\1")},		   /* RESET first */
		{FRAME("\1", "\1", "\1")},		   /* a truncated HEAD */
		{FRAME("\1", "\7", "x")},		   /* no kind */
		{"\xff\xff\xff\xff\1\1\0\0", 8},	   /* far too long */
		{"\0\0\0\0\1\1\0\0", 8},		   /* empty */
		{"\1\0\0\0\1\2\0\0\1", 9},		   /* another stream */
		{"GET / HTTP/1.1\r\nhost: x\r\n\r\n", 27}, /* no frames at all */
	};
	struct rig *r = rig_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = rig_open(r, &(struct rig_req){0});
		struct rig_answer a;

		assert_int_equal(write(edge, rows[i].bytes, rows[i].n), (ssize_t)rows[i].n);
		rig_read_answer(edge, &a);
		if (a.status != 403)
			fail_msg("row %zu: %u", i, a.status);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_BAD_REQUEST);
		(void)close(edge);
		rig_until_closed(r, r->n_ids);
	}
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

/* The keeper decided one request, and edge sends another one to the same host. */
static void test_edge_that_sends_another_request(void **state)
{
	static const struct rig_req decided = {.method = "GET", .path = "/a", .query = "b=c"};
	static const struct rig_req sent[] = {{.method = "POST", .path = "/a", .query = "b=c"},
		{.method = "get", .path = "/a", .query = "b=c"}, {.path = "/b", .query = "b=c"},
		{.path = "/a/", .query = "b=c"}, {.path = "//a", .query = "b=c"},
		{.path = "/%61", .query = "b=c"}, {.path = "/a", .query = "b=d"},
		{.path = "/a", .query = "b=c&d"}, {.path = "/a", .query = ""}, {.path = "/a"},
		{.path = "/a", .query = "b=c", .host = "api.example.org"},
		{.path = "/a", .query = "b=c", .port = 444},
		{.path = "/a", .query = "b=c", .is_plain = true}};
	struct rig *r = rig_new();

	for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
		int edge = rig_open(r, &decided);
		struct rig_answer a;

		rig_send_head(edge, &sent[i]);
		rig_send_end(edge, NULL);
		rig_read_answer(edge, &a);
		if (a.status != 403)
			fail_msg("row %zu: %u", i, a.status);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_BAD_REQUEST);
		assert_false(rig_result(r, r->n_ids)->used);
		(void)close(edge);
		rig_until_closed(r, r->n_ids);
	}
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

/* A ticket is for one request: the second one, even the same, does not reach the server. */
static void test_edge_that_sends_a_request_twice(void **state)
{
	static const struct rig_req upload = {.method = "POST", .body = HTTP_BODY_CHUNKED};

	for (int i = 0; i < 2; i++) {
		const struct rig_req *req = i ? &upload : &(struct rig_req){0};
		struct rig *r = rig_new();
		int edge = rig_open(r, req);
		char rest[64] = "";
		SSL *ssl;

		rig_send_head(edge, req);
		rig_send_head(edge, req);
		rig_send_end(edge, NULL);
		ssl = rig_serve(r);
		rig_give_value(r, RIG_VALUE);
		if (rig_read_http(ssl, head, sizeof(head)))
			assert_false(rig_read_http(ssl, rest, sizeof(rest)));
		assert_null(strstr(rest, "HTTP"));
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_BAD_REQUEST);
		(void)close(edge);
		rig_hang_up(ssl);
		rig_free(r);
	}
}

/* A body of another length would be a second request, with our credential. */
static void test_edge_that_sends_another_body(void **state)
{
	static const struct {
		uint64_t length;
		const char *data;
		bool end;
	} rows[] = {
		{3, "abcd", false},
		{3, "ab", true},
		{0, "GET /evil HTTP/1.1\r\n\r\n", false},
	};
	struct rig *r = rig_new();
	bool has_value = false;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct rig_req req = {
			.method = "POST", .body = HTTP_BODY_LENGTH, .length = rows[i].length};
		int edge = rig_open(r, &req);
		struct rig_answer a;
		char rest[64] = "";
		SSL *ssl;

		rig_send_head(edge, &req);
		rig_send_data(edge, rows[i].data, strlen(rows[i].data));
		if (rows[i].end)
			rig_send_end(edge, NULL);
		ssl = rig_serve(r);
		if (!has_value)
			rig_give_value(r, RIG_VALUE);
		has_value = true;
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		assert_false(rig_read_http(ssl, rest, sizeof(rest)));
		assert_null(strstr(rest, "evil"));
		assert_true(strlen(rest) <= rows[i].length);
		rig_read_answer(edge, &a);
		assert_int_equal(a.status, 403);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_BAD_REQUEST);
		(void)close(edge);
		rig_hang_up(ssl);
		rig_until_closed(r, r->n_ids);
	}
	rig_free(r);
}

static void test_edge_gives_up(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){.method = "POST", .body = HTTP_BODY_CHUNKED});
	SSL *ssl = rig_serve(r);
	char rest[64];

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(write(edge, "\1\0\0\0\4\1\0\0\1", 9), 9); /* RESET */
	assert_false(rig_read_http(ssl, rest, sizeof(rest)));
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_GONE);
	assert_true(rig_result(r, 1)->used);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

/* ---- where the value is ---- */

static unsigned count_bytes(const uint8_t *p, size_t n)
{
	unsigned found = 0;

	for (const uint8_t *at; (at = memmem(p, n, RIG_VALUE, strlen(RIG_VALUE)));) {
		found++;
		n -= (size_t)(at - p) + 1;
		p = at + 1;
	}
	return found;
}

static unsigned count_in_file(const struct rig *r, const char *name)
{
	static uint8_t buf[1 << 20];
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)r->pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && geteuid() != 0)
		return 0; /* not even its user may read it */
	assert_true(fd >= 0);
	n = read(fd, buf, sizeof(buf));
	(void)close(fd);
	return n > 0 ? count_bytes(buf, (size_t)n) : 0;
}

/* Searches all readable memory of the process. -1: none is readable. */
static int count_in_memory(const struct rig *r)
{
	char path[64], line[512];
	unsigned found = 0;
	FILE *maps;
	int mem;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)r->pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)r->pid);
	maps = fopen(path, "re");
	if (mem < 0 || !maps) {
		fd_close(&mem);
		if (maps)
			(void)fclose(maps);
		return -1;
	}
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		ssize_t n;
		AUTO_FREE uint8_t *p = NULL;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to - from > 1UL << 28)
			continue;
		p = xmalloc(to - from);
		n = pread(mem, p, to - from, (off_t)from);
		if (n > 0)
			found += count_bytes(p, (size_t)n);
	}
	(void)fclose(maps);
	(void)close(mem);
	return (int)found;
}

static void test_the_value_is_nowhere_else(void **state)
{
	char path[2048];

	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	for (int hidden = 0; hidden < 2; hidden++) {
		struct rig *r = rig_start(hidden ? NULL : "--no-hidden-memory");
		SSL *ssl = NULL;
		int found;

		rig_up(r, RIG_HOST, ORIGIN_HAS_SECRET);
		for (int i = 0; i < 5; i++) {
			/* the first head is the longest: the later ones do not cover it */
			int edge = rig_ask(r, &(struct rig_req){.path = i ? NULL : path});
			struct rig_answer a;

			if (!ssl) {
				ssl = rig_serve(r);
				rig_give_value(r, RIG_VALUE);
			}
			assert_true(rig_read_http(ssl, head, sizeof(head)));
			rig_write(ssl, i == 4 ? ECHO : OK);
			rig_read_answer(edge, &a);
			assert_int_equal(a.status, 200);
			rig_answer_done(&a);
			(void)close(edge);
			rig_until_closed(r, r->n_ids);
		}
		assert_int_equal(count_in_file(r, "environ"), 0);
		assert_int_equal(count_in_file(r, "cmdline"), 0);
		assert_int_equal(count_in_file(r, "comm"), 0);
		found = count_in_memory(r);
		/* Only root can read it. The search finds the value in its own memory: as received,
		 * as in the slot, and in the search set; heads that contained it are wiped, and so
		 * are OpenSSL's buffers, also of the last answer, which repeated it. Hidden
		 * memory, where the kernel supports it, cannot be read. */
		assert_true((geteuid() == 0) == (found >= 0));
		if (found >= 0)
			assert_true(found == 3 || (hidden && found == 0));
		print_message("%s memory: found %d times\n", hidden ? "hidden" : "locked", found);
		rig_hang_up(ssl);
		rig_free(r);
	}
}

static bool has_line(const struct rig *r, const char *name, const char *want)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)r->pid, name);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found = found || strncmp(line, want, strlen(want)) == 0;
	(void)fclose(f);
	return found;
}

static void test_the_jail_around_it(void **state)
{
	struct rig *r = rig_new();
	char path[64], own[64] = "", its[64] = "";

	/* it has sent HELLO, so it is sealed */
	assert_true(has_line(r, "limits", "Max core file size        0                    0"));
	assert_true(has_line(r, "limits", "Max processes             0"));
	assert_true(has_line(r, "status", "Seccomp:\t2"));
	assert_true(has_line(r, "status", "NoNewPrivs:\t1"));
	assert_true(has_line(r, "status", "CapEff:\t0000000000000000"));
	assert_true(readlink("/proc/self/ns/net", own, sizeof(own) - 1) > 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)r->pid);
	if (geteuid() == 0) {
		assert_true(readlink(path, its, sizeof(its) - 1) > 0);
		assert_string_not_equal(own, its);
	} else { /* not even this is readable */
		assert_int_equal(readlink(path, its, sizeof(its) - 1), -1);
		assert_int_equal(ptrace(PTRACE_ATTACH, r->pid, NULL, NULL), -1);
		assert_int_equal(errno, EPERM);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_keeper_that_breaks_the_protocol),
		cmocka_unit_test(test_a_keeper_that_begins_badly),
		cmocka_unit_test(test_the_same_id_twice),
		cmocka_unit_test(test_answers_of_another_id),
		cmocka_unit_test(test_the_keeper_goes),
		cmocka_unit_test(test_a_keeper_that_does_not_read),
		cmocka_unit_test(test_edge_that_breaks_the_protocol),
		cmocka_unit_test(test_edge_that_sends_another_request),
		cmocka_unit_test(test_edge_that_sends_a_request_twice),
		cmocka_unit_test(test_edge_that_sends_another_body),
		cmocka_unit_test(test_edge_gives_up),
	};
	/* effects of jail and seal, unless disabled: see lib/os/jail/unsealed.h */
	const struct CMUnitTest jail_tests[] = {
		cmocka_unit_test(test_the_value_is_nowhere_else),
		cmocka_unit_test(test_the_jail_around_it),
	};
	int n_failed;

	rig_make_pki();
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(jail_tests, NULL, NULL);
	return n_failed;
}
