/* SPDX-License-Identifier: Apache-2.0 */
/* Playbooks: what qemu sends, what must come out. Each is fed whole, byte by byte and split at
 * every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/vm/vmm/qmp.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"

#define GREETING "{\"QMP\":{\"version\":{\"qemu\":{\"major\":7}},\"capabilities\":[\"oob\"]}}\r\n"
#define AGREED "{\"return\":{},\"id\":1}\r\n"
#define UP GREETING AGREED

struct play {
	const char *name;
	int n_commands; /* queued before the greeting, ids 2.. after that of the capabilities */
	const char *in;
	const char *out; /* one word for each item; ends with "dead" when it must */
};

static const struct play plays[] = {
	{"greeting", 0, UP, "ready"},
	{"result", 1, UP "{\"return\":{\"a\":1},\"id\":2}\n", "ready result:0"},
	{"two results", 2, UP "{\"return\":{},\"id\":2}\n{\"return\":\"x\",\"id\":3}\n",
		"ready result:0 result:1"},
	{"error", 1,
		UP "{\"id\":2,\"error\":{\"class\":\"GenericError\",\"desc\":\"no \\u001b[m\"}}\n",
		"ready error:0:no ?[m"},
	{"event", 0, UP "{\"event\":\"STOP\",\"timestamp\":{\"seconds\":1}}\n", "ready event:STOP"},
	{"event between", 1, UP "{\"event\":\"RESUME\"}\n{\"return\":{},\"id\":2}\n",
		"ready event:RESUME result:0"},
	{"unknown kind of message", 0, UP "{\"hello\":1}\n\r\n{\"event\":\"X\"}\n",
		"ready event:X"},
	{"NUL and quotes in a string", 1, UP "{\"return\":\"a\\u0000\\\"]]\\\\\",\"id\":2}\n",
		"ready result:0"},
	{"no greeting", 0, "{\"return\":{}}\n", "dead"},
	{"refused", 0, GREETING "{\"error\":{\"class\":\"a\",\"desc\":\"b\"},\"id\":1}\n", "dead"},
	{"not asked", 0, UP "{\"return\":{},\"id\":2}\n", "ready dead"},
	{"wrong id", 1, UP "{\"return\":{},\"id\":3}\n", "ready dead"},
	{"id of a string", 1, UP "{\"return\":{},\"id\":\"2\"}\n", "ready dead"},
	{"no id", 1, UP "{\"return\":{}}\n", "ready dead"},
	{"answered twice", 1, UP "{\"return\":{},\"id\":2}\n{\"return\":{},\"id\":2}\n",
		"ready result:0 dead"},
	{"no JSON", 0, UP "{nonsense\n", "ready dead"},
	{"array", 0, UP "[1]\n", "ready dead"},
	{"key twice", 0, UP "{\"event\":\"A\",\"event\":\"B\"}\n", "ready dead"},
	{"event without a name", 0, UP "{\"event\":7}\n", "ready dead"},
	{"event with an array", 0, UP "{\"event\":\"A\",\"data\":[]}\n", "ready dead"},
	{"error without text", 1, UP "{\"error\":{\"class\":\"x\"},\"id\":2}\n", "ready dead"},
	{"error that is a number", 1, UP "{\"error\":3,\"id\":2}\n", "ready dead"},
	{"too deep", 0, UP "{\"x\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}\n", "ready dead"},
	{"depth inside a string is none", 0,
		UP "{\"event\":\"A\",\"x\":\"\\\"[[[[[[[[[[[[[[[[[[[[[[\"}\n", "ready event:A"},
};

static void note(char *out, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void note(char *out, size_t size, const char *fmt, ...)
{
	size_t n = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	n += (size_t)snprintf(out + n, size - n, "%s", n ? " " : "");
	(void)vsnprintf(out + n, size - n, fmt, ap);
	va_end(ap);
}

static void note_item(char *out, size_t size, const struct qmp_item *it)
{
	switch (it->kind) {
	case QMP_GREETED:
		break;
	case QMP_READY:
		note(out, size, "ready");
		break;
	case QMP_RESULT:
		assert_non_null(it->data);
		note(out, size, "result:%d", it->tag);
		break;
	case QMP_ERROR:
		note(out, size, "error:%d:%s", it->tag, it->text);
		break;
	case QMP_EVENT:
		note(out, size, "event:%s", it->name);
		break;
	}
}

static void write_out(struct qmp *q)
{
	int fd;
	struct slice s = qmp_out(q, &fd);

	while (s.n) { /* one byte at a time: a full socket takes what it can */
		qmp_wrote(q, 1);
		s = qmp_out(q, &fd);
	}
}

/* Feeds one piece; false when the reader died. */
static bool feed_piece(struct qmp *q, struct slice s, char *out, size_t size)
{
	while (s.n) {
		struct qmp_item it = {};
		struct err err = {};
		int r = qmp_feed(q, &s, &it, &err);

		if (r < 0) {
			assert_true(err.text[0] != 0);
			note(out, size, "dead");
			return false;
		}
		if (r > 0) {
			note_item(out, size, &it);
			qmp_item_done(&it);
		}
		write_out(q);
	}
	return true;
}

static void run_play(const struct play *p, size_t cut, bool bytewise)
{
	struct slice all = slice_from_str(p->in);
	char out[256] = "";
	bool alive = true;
	struct qmp q;

	qmp_init(&q);
	for (int i = 0; i < p->n_commands; i++)
		assert_int_equal(qmp_send(&q, i, "query-status", NULL, -1), 0);
	/* The capabilities take the next id; the playbooks are written with it as the first. */
	for (int i = 0; i < p->n_commands; i++)
		q.queue[i].id = (uint32_t)i + 2;
	q.next_id = 1;
	if (bytewise) {
		for (size_t i = 0; i < all.n && alive; i++)
			alive = feed_piece(&q, slice_of(all.p + i, 1), out, sizeof(out));
	} else {
		alive = feed_piece(&q, slice_of(all.p, cut), out, sizeof(out));
		if (alive)
			(void)feed_piece(&q, slice_of(all.p + cut, all.n - cut), out, sizeof(out));
	}
	if (strcmp(out, p->out) != 0)
		fail_msg("%s, cut at %zu: \"%s\" instead of \"%s\"", p->name, cut, out, p->out);
	qmp_done(&q);
}

static void playbooks(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
		size_t n = strlen(plays[i].in);

		run_play(&plays[i], n, false);
		run_play(&plays[i], 0, true);
		for (size_t cut = 1; cut < n; cut++)
			run_play(&plays[i], cut, false);
	}
}

static void dead_stays_dead(void **state)
{
	struct slice bad = slice_from_str("x\n"), good = slice_from_str(GREETING);
	struct qmp_item it;
	struct qmp q;

	qmp_init(&q);
	assert_int_equal(qmp_feed(&q, &bad, &it, NULL), -EBADMSG);
	assert_int_equal(qmp_feed(&q, &good, &it, NULL), -EBADMSG);
	assert_int_equal(qmp_send(&q, 0, "quit", NULL, -1), -EPIPE);
	assert_false(qmp_is_waiting(&q));
	qmp_done(&q);
}

static void long_lines(void **state)
{
	size_t n = QMP_MAX_LINE + 1;
	AUTO_FREE char *line = xmalloc(n);
	struct slice s = slice_of(line, QMP_MAX_LINE);
	struct qmp_item it;
	struct qmp q;

	memset(line, ' ', n);
	qmp_init(&q);
	assert_int_equal(qmp_feed(&q, &s, &it, NULL), 0);
	s = slice_of(line, 1);
	assert_int_equal(qmp_feed(&q, &s, &it, NULL), -EBADMSG);
	qmp_done(&q);
}

/* Commands go out one at a time, the fd with the first byte of its own. */
static void one_command_at_a_time(void **state)
{
	struct slice in = slice_from_str(GREETING);
	int fd, out_fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct qmp_item it;
	struct slice s;
	struct qmp q;

	qmp_init(&q);
	assert_int_equal(qmp_send(&q, 4, "getfd", json_pack("{s:s}", "fdname", "x"), null), 0);
	assert_int_equal(qmp_out(&q, &fd).n, 0);
	assert_int_equal(qmp_feed(&q, &in, &it, NULL), 1);
	s = qmp_out(&q, &out_fd);
	assert_memory_equal(s.p, "{\"execute\":\"qmp_capabilities\",\"id\":2}\n", s.n);
	assert_int_equal(out_fd, -1);
	qmp_wrote(&q, s.n);
	assert_int_equal(qmp_out(&q, &out_fd).n, 0);
	in = slice_from_str("{\"return\":{},\"id\":2}\n");
	assert_int_equal(qmp_feed(&q, &in, &it, NULL), 1);
	s = qmp_out(&q, &out_fd);
	assert_memory_equal(
		s.p, "{\"execute\":\"getfd\",\"id\":1,\"arguments\":{\"fdname\":\"x\"}}\n", s.n);
	assert_int_equal(out_fd, null);
	qmp_wrote(&q, 1);
	assert_int_equal(fcntl(null, F_GETFD), -1); /* handed over and closed here */
	assert_int_equal(qmp_out(&q, &out_fd).n, s.n - 1);
	assert_int_equal(out_fd, -1);
	/* An answer before the whole command is out is no answer to it. */
	in = slice_from_str("{\"return\":{},\"id\":1}\n");
	assert_int_equal(qmp_feed(&q, &in, &it, NULL), -EBADMSG);
	qmp_done(&q);
}

static void queue_is_bounded(void **state)
{
	AUTO_FREE char *big = xmalloc(QMP_MAX_COMMAND + 1);
	struct qmp q;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	memset(big, 'a', QMP_MAX_COMMAND);
	big[QMP_MAX_COMMAND] = 0;
	qmp_init(&q);
	assert_int_equal(qmp_send(&q, 0, "x", json_pack("{s:s}", "a", big), -1), -EMSGSIZE);
	for (int i = 0; i < QMP_MAX_QUEUE; i++)
		assert_int_equal(qmp_send(&q, 0, "x", NULL, -1), 0);
	assert_int_equal(qmp_send(&q, 0, "x", NULL, null), -ENOBUFS);
	assert_int_equal(fcntl(null, F_GETFD), -1); /* taken all the same */
	qmp_done(&q);
}

/* Names only: an argument may be a path of the user, an error text has it too. */
static void the_trace_has_names_and_no_arguments(void **state)
{
	char path[] = "/tmp/qmp_test.XXXXXX", text[4096] = "";
	struct slice in = slice_from_str(
		UP "{\"event\":\"STOP\",\"data\":{\"a\":\"canary\"}}\n"
		   "{\"id\":2,\"error\":{\"class\":\"GenericError\",\"desc\":\"canary\"}}\n");
	struct qmp_item it;
	int fd = mkstemp(path);
	struct qmp q;

	assert_int_equal(setenv("SBX_TRACE", "vm", 1), 0);
	assert_int_equal(trace_init(NULL), 0);
	trace_open(path);
	qmp_init(&q);
	q.next_id = 2;
	assert_int_equal(qmp_send(&q, 0, "getfd", json_pack("{s:s}", "fdname", "canary"), -1), 0);
	q.next_id = 1;
	while (in.n) {
		assert_int_equal(qmp_feed(&q, &in, &it, NULL), 1);
		qmp_item_done(&it);
		write_out(&q);
	}
	qmp_done(&q);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "trace vm: qmp command getfd id=2\n"));
	assert_non_null(strstr(text, "trace vm: qmp command qmp_capabilities id=1\n"));
	assert_non_null(strstr(text, "trace vm: qmp return id=1\n"));
	assert_non_null(strstr(text, "trace vm: qmp event STOP\n"));
	assert_non_null(strstr(text, "trace vm: qmp GenericError id=2\n"));
	assert_null(strstr(text, "canary"));
	(void)close(fd);
	(void)unlink(path);
	(void)unsetenv("SBX_TRACE");
	assert_int_equal(trace_init(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(playbooks),
		cmocka_unit_test(dead_stays_dead),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(one_command_at_a_time),
		cmocka_unit_test(queue_is_bounded),
		cmocka_unit_test(the_trace_has_names_and_no_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
