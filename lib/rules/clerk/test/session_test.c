/* SPDX-License-Identifier: Apache-2.0 */
/* A session in a process of its own; the test is the keeper, sbx-edge and sbx-origin. */
#include "lib/rules/clerk/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BODY "{\"query\": \"{a}\"}"

/* ---- the program: one record, the first byte of the body; of "many" too many ---- */

static uint8_t body[4096];
static size_t n_body;

static int open_none(struct session *s, struct slice config)
{
	return slice_eq_str(config, "config") ? 0 : -EBADMSG;
}

static void close_none(struct session *s)
{
}

static void take_body(struct session *s, struct slice data)
{
	size_t n = MIN(data.n, sizeof(body) - n_body);

	memcpy(body + n_body, data.p, n);
	n_body += n;
}

static void take_end(struct session *s)
{
	size_t n = n_body == 4 && memcmp(body, "many", 4) == 0 ? CLERK_MAX_EFFECTS + 1 : 1;

	for (size_t i = 0; i < n; i++)
		session_add(s, slice_of(body, 1));
	if (n_body == 0)
		session_fail(s, "the body is empty");
	session_judge(s);
}

static void get_body(struct session *s, struct slice ret[2])
{
	ret[0] = slice_of(body, n_body / 2);
	ret[1] = slice_of(body + n_body / 2, n_body - n_body / 2);
}

static const char *refuse(struct session *s, const struct clerk_decided *why)
{
	session_answer(s, slice_from_str(why->report));
	return why->report[0] ? "text/x-refused" : NULL;
}

static int skip_byte(struct slice *records)
{
	if (records->n == 0)
		return 0;
	(void)slice_take(records, 1);
	return 1;
}

static int no_selftest(void)
{
	return 0;
}

static const struct session_program program = {.name = "test",
	.too_much = "too much",
	.profile = JAIL_CLERK,
	.selftest = no_selftest,
	.open = open_none,
	.close = close_none,
	.head = close_none,
	.body = take_body,
	.end = take_end,
	.get_body = get_body,
	.refuse = refuse,
	.skip = skip_byte};

/* ---- the process ---- */

static int chan_fd, edge_fd;
static pid_t child;
static struct ipc_msg msg = {.fd = -1};

static void must_get(uint16_t type)
{
	struct pollfd p = {.fd = chan_fd, .events = POLLIN};

	ipc_msg_done(&msg);
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(ipc_recv(chan_fd, &msg), 1);
	assert_int_equal(msg.type, type);
}

static int config_file(void)
{
	int fd = memfd_create("config", MFD_CLOEXEC);

	assert_int_equal(write(fd, "config", 6), 6);
	return fd;
}

static int up(void **state)
{
	const struct clerk_open open = {.max_bytes = 100};
	AUTO_CLOSE int config = config_file();
	char name[] = "test", *argv[] = {name, NULL};
	int chan[2], edge[2];

	assert_int_equal(ipc_pair(chan), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, edge), 0);
	n_body = 0;
	child = fork();
	if (child == 0) {
		int sock = fcntl(chan[1], F_DUPFD_CLOEXEC, 64);

		(void)alarm(30); /* nothing is left when the test fails */
		close(edge[0]);
		close(chan[0]);
		close(chan[1]);
		(void)dup2(sock, CONTROL_FD);
		close(sock);
		_exit(session_main(1, argv, &program));
	}
	close(chan[1]);
	chan_fd = chan[0];
	edge_fd = edge[0];
	must_get(CLERK_HELLO);
	assert_int_equal(chan_send_plain(chan_fd, CLERK_CONFIG, 0, config), 0);
	assert_int_equal(clerk_ask_open(chan_fd, &open, edge[1]), 0);
	close(edge[1]);
	return 0;
}

static int down(void **state)
{
	int status = -1;

	ipc_msg_done(&msg);
	fd_close(&chan_fd);
	fd_close(&edge_fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0 ? 0 : -1;
}

/* The frames of a request with this body. */
static size_t make_request(const char *text, uint8_t *buf, size_t size)
{
	struct wr wr = wr_init(buf, size);
	const struct http_req req = {.method = slice_from_str("POST"),
		.host = slice_from_str("api.test"),
		.port = 443,
		.path = slice_from_str("/graphql"),
		.body = {.kind = HTTP_BODY_LENGTH, .length = strlen(text)}};

	assert_int_equal(canon_put_req(&wr, OUT_STREAM, &req), 0);
	for (size_t i = 0, n = strlen(text); i < n; i += n / 2) {
		struct slice some = slice_of(text + i, MIN(n / 2, n - i));

		assert_int_equal(canon_put_data_head(&wr, OUT_STREAM, some.n), 0);
		wr_bytes(&wr, some);
	}
	assert_int_equal(canon_put_end(&wr, OUT_STREAM, NULL), 0);
	assert_false(wr.bad);
	return wr.n;
}

static size_t send_request(const char *text, uint8_t *buf, size_t size)
{
	size_t n = make_request(text, buf, size);

	assert_int_equal(write(edge_fd, buf, n), n);
	return n;
}

static struct clerk_judged judged;

static void must_be_judged(void)
{
	must_get(CLERK_JUDGED);
	assert_int_equal(clerk_get_judged(&msg, &judged), 0);
}

static void must_end(void)
{
	char c;

	must_get(CLERK_DONE);
	fd_close(&chan_fd);
	assert_true(recv(edge_fd, &c, 1, 0) <= 0);
}

static void read_all(int fd, uint8_t *buf, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = recv(fd, buf + at, n - at, 0);

		assert_true(r > 0);
		at += (size_t)r;
	}
}

/* ---- tests ---- */

static void what_is_sent_is_what_was_judged(void **state)
{
	static const char answer[] = "any bytes of an answer";
	const struct clerk_decided yes = {.allowed = true};
	uint8_t sent[2048], got[2048];
	size_t n = send_request(BODY, sent, sizeof(sent));
	int line[2];

	must_get(CLERK_EFFECTS);
	assert_int_equal(ipc_body(&msg).n, 1);
	assert_int_equal(ipc_body(&msg).p[0], '{');
	must_be_judged();
	assert_false(judged.is_unknown);
	assert_int_equal(recv(edge_fd, got, 1, MSG_DONTWAIT), -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	assert_int_equal(clerk_answer_judged(chan_fd, &yes, line[1]), 0);
	close(line[1]);
	read_all(line[0], got, n);
	assert_memory_equal(got, sent, n);
	assert_int_equal(write(line[0], answer, sizeof(answer)), sizeof(answer));
	close(line[0]);
	read_all(edge_fd, got, sizeof(answer));
	assert_memory_equal(got, answer, sizeof(answer));
	must_end();
}

static void a_refusal_is_the_answer_of_the_program(void **state)
{
	const struct clerk_decided no = {.why = "no", .report = "it is refused\n"};
	uint8_t buf[4096];
	ssize_t n = 0, r;

	(void)send_request(BODY, buf, sizeof(buf));
	must_get(CLERK_EFFECTS);
	must_be_judged();
	assert_int_equal(clerk_answer_judged(chan_fd, &no, -1), 0);
	must_get(CLERK_DONE);
	fd_close(&chan_fd);
	while ((r = recv(edge_fd, buf + n, sizeof(buf) - (size_t)n, 0)) > 0)
		n += r;
	assert_non_null(memmem(buf, (size_t)n, "text/x-refused", 14));
	assert_non_null(memmem(buf, (size_t)n, "it is refused\n", 14));
}

static void what_does_not_fit_is_unknown(void **state)
{
	uint8_t buf[2048];

	(void)send_request("many", buf, sizeof(buf));
	must_be_judged();
	assert_true(judged.is_unknown);
	assert_string_equal(judged.text, "too much");
}

static void frames_out_of_order_end_it(void **state)
{
	uint8_t buf[2048];
	size_t n = make_request(BODY, buf, sizeof(buf));

	assert_int_equal(write(edge_fd, buf, n / 2), n / 2);
	assert_int_equal(write(edge_fd, buf, n), n);
	must_end();
}

static void a_client_that_leaves_ends_it(void **state)
{
	uint8_t buf[2048];

	(void)send_request(BODY, buf, sizeof(buf));
	must_get(CLERK_EFFECTS);
	must_be_judged();
	(void)shutdown(edge_fd, SHUT_RDWR);
	must_end();
}

static void a_keeper_that_leaves_ends_it(void **state)
{
	uint8_t buf[2048];
	char c;

	(void)send_request(BODY, buf, sizeof(buf));
	must_get(CLERK_EFFECTS);
	must_be_judged();
	fd_close(&chan_fd);
	assert_true(recv(edge_fd, &c, 1, 0) <= 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_sent_is_what_was_judged),
		TEST(a_refusal_is_the_answer_of_the_program),
		TEST(what_does_not_fit_is_unknown),
		TEST(frames_out_of_order_end_it),
		TEST(a_client_that_leaves_ends_it),
		TEST(a_keeper_that_leaves_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
