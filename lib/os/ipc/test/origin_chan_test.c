/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/origin_chan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;

static int setup(void **state)
{
	msg.fd = -1;
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(uint16_t type, uint32_t id)
{
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, type);
	assert_int_equal(msg.id, id);
}

static void test_origin_to_keeper(void **state)
{
	const struct origin_result result = {.outcome = ORIGIN_BAD_CERT,
		.status = 200,
		.used = true,
		.serial = UINT64_MAX,
		.n_removed = 3,
		.slot = "api",
		.addr = "192.0.2.1",
		.text = "why"};
	struct origin_result got = {0};
	char build[CHAN_MAX_BUILD];
	uint64_t up, down;

	assert_int_equal(chan_send_hello(pair[0], "build 1"), 0);
	receive(ORIGIN_HELLO, 0);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, "build 1");
	assert_int_equal(origin_send_result(pair[0], 4, &result), 0);
	receive(ORIGIN_RESULT, 4);
	assert_int_equal(origin_get_result(&msg, &got), 0);
	assert_int_equal(got.outcome, ORIGIN_BAD_CERT);
	assert_true(got.status == 200 && got.used && got.serial == UINT64_MAX);
	assert_int_equal(got.n_removed, 3);
	assert_string_equal(got.slot, "api");
	assert_string_equal(got.addr, "192.0.2.1");
	assert_string_equal(got.text, "why");
	assert_int_equal(origin_send_closed(pair[0], 5, 1, UINT64_MAX), 0);
	receive(ORIGIN_CLOSED, 5);
	assert_int_equal(origin_get_closed(&msg, &up, &down), 0);
	assert_true(up == 1 && down == UINT64_MAX);
	assert_int_equal(chan_send_plain(pair[0], ORIGIN_WANT, 6, -1), 0);
	receive(ORIGIN_WANT, 6);
	assert_int_equal(chan_get_plain(&origin_chan, &msg, ORIGIN_WANT), 0);
}

static void test_need_and_tokens(void **state)
{
	struct origin_need need = {.which = ORIGIN_ACCESS, .conn = 9}, got = {0};
	const struct origin_tokens tokens = {.which = ORIGIN_REFRESH, .expires_s = 3600};
	struct origin_tokens got_tokens;

	memset(need.cert, 0xa5, sizeof(need.cert));
	assert_int_equal(origin_send_need(pair[0], 7, &need), 0);
	receive(ORIGIN_NEED, 7);
	assert_int_equal(origin_get_need(&msg, &got), 0);
	assert_true(got.which == ORIGIN_ACCESS && got.conn == 9);
	assert_memory_equal(got.cert, need.cert, sizeof(need.cert));
	assert_int_equal(origin_send_tokens(pair[0], 5, &tokens, 0), 0);
	receive(ORIGIN_TOKENS, 5);
	assert_int_equal(origin_get_tokens(&msg, &got_tokens), 0);
	assert_true(got_tokens.which == ORIGIN_REFRESH && got_tokens.expires_s == 3600);
	assert_true(msg.fd > 2 && fcntl(msg.fd, F_GETFD) == FD_CLOEXEC);
}

static void test_keeper_to_origin(void **state)
{
	const struct origin_stored stored = {.text = "full"};
	struct origin_stored got_stored;
	uint8_t has;
	const struct origin_config config = {
		.sandbox = "demo", .host = "api.example.com", .port = 443, .has = ORIGIN_HAS_ALL};
	const struct egress_result socket = {
		.outcome = EGRESS_CONNECTED, .addr = "192.0.2.1", .text = "connected"};
	const struct origin_value value = {.given = true, .use_s = 60};
	const struct ticket ticket = {TICKET_VERSION, "the digest of a request"};
	struct ticket got_ticket = {0};
	struct origin_config got_config = {0};
	struct egress_result got_socket;
	struct origin_value got_value;

	assert_int_equal(origin_ask_config(pair[0], &config, 0), 0);
	receive(ORIGIN_CONFIG, 0);
	assert_int_equal(origin_get_config(&msg, &got_config), 0);
	assert_memory_equal(&got_config, &config, sizeof(config));
	assert_true(msg.fd > 2 && fcntl(msg.fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(chan_send_plain(pair[0], ORIGIN_ROOTS, 0, 0), 0);
	receive(ORIGIN_ROOTS, 0);
	assert_int_equal(chan_get_plain(&origin_chan, &msg, ORIGIN_ROOTS), 0);
	assert_int_equal(origin_ask_open(pair[0], 3, &ticket, -1), 0);
	receive(ORIGIN_OPEN, 3);
	assert_int_equal(origin_get_open(&msg, &got_ticket), 0);
	assert_memory_equal(&got_ticket, &ticket, sizeof(ticket));
	assert_int_equal(origin_answer_want(pair[0], 4, &socket, 0), 0);
	receive(ORIGIN_SOCKET, 4);
	assert_int_equal(origin_get_socket(&msg, &got_socket), 0);
	assert_int_equal(got_socket.outcome, EGRESS_CONNECTED);
	assert_string_equal(got_socket.addr, "192.0.2.1");
	assert_int_equal(origin_answer_need(pair[0], 5, &value, 0), 0);
	receive(ORIGIN_VALUE, 5);
	assert_int_equal(origin_get_value(&msg, &got_value), 0);
	assert_true(got_value.given && got_value.use_s == 60 && got_value.text[0] == '\0');
	assert_int_equal(origin_answer_tokens(pair[0], 5, &stored), 0);
	receive(ORIGIN_STORED, 5);
	assert_int_equal(origin_get_stored(&msg, &got_stored), 0);
	assert_true(!got_stored.kept && strcmp(got_stored.text, "full") == 0);
	assert_int_equal(origin_ask_renew(pair[0], ORIGIN_HAS_ACCESS), 0);
	receive(ORIGIN_RENEW, 0);
	assert_int_equal(origin_get_renew(&msg, &has), 0);
	assert_int_equal(has, ORIGIN_HAS_ACCESS);
}

/* Decodes by type, as a receiver does. */
static int decode(const struct ipc_msg *m)
{
	struct origin_config config;
	struct egress_result socket;
	struct origin_need need;
	struct origin_value value;
	struct origin_tokens tokens;
	struct origin_stored stored;
	struct origin_result result;
	struct ticket ticket;
	uint8_t has;
	char build[CHAN_MAX_BUILD];
	uint64_t up, down;

	switch (m->type) {
	case ORIGIN_HELLO:
		return chan_get_hello(m, build);
	case ORIGIN_CONFIG:
		return origin_get_config(m, &config);
	case ORIGIN_SOCKET:
		return origin_get_socket(m, &socket);
	case ORIGIN_NEED:
		return origin_get_need(m, &need);
	case ORIGIN_VALUE:
		return origin_get_value(m, &value);
	case ORIGIN_TOKENS:
		return origin_get_tokens(m, &tokens);
	case ORIGIN_STORED:
		return origin_get_stored(m, &stored);
	case ORIGIN_RENEW:
		return origin_get_renew(m, &has);
	case ORIGIN_POLICY:
		return origin_get_policy(m, &has);
	case ORIGIN_RESULT:
		return origin_get_result(m, &result);
	case ORIGIN_CLOSED:
		return origin_get_closed(m, &up, &down);
	case ORIGIN_OPEN:
		return origin_get_open(m, &ticket);
	case ORIGIN_ROOTS:
	case ORIGIN_WANT:
	case ORIGIN_CHANNEL:
		return chan_get_plain(&origin_chan, m, m->type);
	default:
		return -EBADMSG;
	}
}

#define BODY(text) text, sizeof(text) - 1
#define BAD -EBADMSG
#define CERT "0123456789abcdef0123456789ABCDEF"
/* outcome, status, used; serial and count; slot, address, text */
#define RESULT(front, back) front "\1\0\0\0\0\0\0\0\0\0\0\0" back

static const struct {
	const char *what;
	uint16_t type;
	uint32_t id;
	bool fd;
	const char *body;
	size_t n;
	int r;
} rows[] = {
	{"good hello", ORIGIN_HELLO, 0, false, BODY("\2\0b1"), 0},
	{"hello with an id", ORIGIN_HELLO, 1, false, BODY("\2\0b1"), BAD},
	{"hello with an fd", ORIGIN_HELLO, 0, true, BODY("\2\0b1"), BAD},
	{"hello with a NUL", ORIGIN_HELLO, 0, false, BODY("\2\0b\0"), BAD},
	{"good config", ORIGIN_CONFIG, 0, true, BODY("\1\0d\1\0h\1\0\7"), 0},
	{"config without fd", ORIGIN_CONFIG, 0, false, BODY("\1\0d\1\0h\1\0\7"), BAD},
	{"config with an id", ORIGIN_CONFIG, 1, true, BODY("\1\0d\1\0h\1\0\7"), BAD},
	{"config of no host", ORIGIN_CONFIG, 0, true, BODY("\1\0d\0\0\1\0\7"), BAD},
	{"config of no port", ORIGIN_CONFIG, 0, true, BODY("\1\0d\1\0h\0\0\7"), BAD},
	{"config of unknown values", ORIGIN_CONFIG, 0, true, BODY("\1\0d\1\0h\1\0\x8"), BAD},
	{"config and more", ORIGIN_CONFIG, 0, true, BODY("\1\0d\1\0h\1\0\7x"), BAD},
	{"good roots", ORIGIN_ROOTS, 0, true, BODY(""), 0},
	{"good policy", ORIGIN_POLICY, 7, true, BODY("\1"), 0},
	{"policy of no part", ORIGIN_POLICY, 7, true, BODY("\3"), BAD},
	{"policy without fd", ORIGIN_POLICY, 7, false, BODY("\0"), BAD},
	{"roots without fd", ORIGIN_ROOTS, 0, false, BODY(""), BAD},
	{"roots with an id", ORIGIN_ROOTS, 1, true, BODY(""), BAD},
	{"good open", ORIGIN_OPEN, 7, false, BODY("\2" CERT "\0"), 0},
	{"open without its last field", ORIGIN_OPEN, 7, true, BODY("\2" CERT), BAD},
	{"open neither judged nor not", ORIGIN_OPEN, 7, true, BODY("\2" CERT "\2"), BAD},
	{"open with an old ticket", ORIGIN_OPEN, 7, true, BODY("\1" CERT "\1"), BAD},
	{"good open with a socket", ORIGIN_OPEN, 7, true, BODY("\2" CERT "\1"), 0},
	{"open without a ticket", ORIGIN_OPEN, 7, true, BODY(""), BAD},
	{"open with half a ticket", ORIGIN_OPEN, 7, true,
		BODY("\1"
		     "0123456789abcdef"),
		BAD},
	{"open with no ticket", ORIGIN_OPEN, 7, true, BODY("\0" CERT "\1"), BAD},
	{"open with a later ticket", ORIGIN_OPEN, 7, true, BODY("\3" CERT "\1"), BAD},
	{"open and more", ORIGIN_OPEN, 7, true, BODY("\2" CERT "\1x"), BAD},
	{"good channel", ORIGIN_CHANNEL, 0, true, BODY(""), 0},
	{"channel without fd", ORIGIN_CHANNEL, 0, false, BODY(""), BAD},
	{"channel and more", ORIGIN_CHANNEL, 0, true, BODY("x"), BAD},
	{"good want", ORIGIN_WANT, 7, false, BODY(""), 0},
	{"want with an fd", ORIGIN_WANT, 7, true, BODY(""), BAD},
	{"good socket", ORIGIN_SOCKET, 7, true, BODY("\0\1\0a\1\0t"), 0},
	{"socket without fd", ORIGIN_SOCKET, 7, false, BODY("\0\1\0a\1\0t"), BAD},
	{"no socket", ORIGIN_SOCKET, 7, false, BODY("\6\1\0a\1\0t"), 0},
	{"a failure with an fd", ORIGIN_SOCKET, 7, true, BODY("\6\1\0a\1\0t"), BAD},
	{"socket of no outcome", ORIGIN_SOCKET, 7, false, BODY("\xe\1\0a\1\0t"), BAD},
	{"socket with an escape", ORIGIN_SOCKET, 7, false, BODY("\6\1\0a\1\0\x1b"), BAD},
	{"good need", ORIGIN_NEED, 7, false, BODY("\0\1\0\0\0" CERT), 0},
	{"need of nothing", ORIGIN_NEED, 7, false, BODY("\3\1\0\0\0" CERT), BAD},
	{"need with half a hash", ORIGIN_NEED, 7, false,
		BODY("\0\1\0\0\0"
		     "0123"),
		BAD},
	{"need with an fd", ORIGIN_NEED, 7, true, BODY("\0\1\0\0\0" CERT), BAD},
	{"good value", ORIGIN_VALUE, 7, true, BODY("\1\0\0\0\0\0\0"), 0},
	{"value without fd", ORIGIN_VALUE, 7, false, BODY("\1\0\0\0\0\0\0"), BAD},
	{"no value", ORIGIN_VALUE, 7, false, BODY("\0\0\0\0\0\1\0t"), 0},
	{"no value with an fd", ORIGIN_VALUE, 7, true, BODY("\0\0\0\0\0\1\0t"), BAD},
	{"half a value", ORIGIN_VALUE, 7, true, BODY("\2\0\0\0\0\0\0"), BAD},
	{"good tokens", ORIGIN_TOKENS, 7, true, BODY("\1\0\0\0\0"), 0},
	{"tokens of the user", ORIGIN_TOKENS, 7, true, BODY("\0\0\0\0\0"), BAD},
	{"tokens without fd", ORIGIN_TOKENS, 7, false, BODY("\1\0\0\0\0"), BAD},
	{"tokens without id", ORIGIN_TOKENS, 0, true, BODY("\1\0\0\0\0"), BAD},
	{"good stored", ORIGIN_STORED, 7, false, BODY("\1\0\0"), 0},
	{"stored without id", ORIGIN_STORED, 0, false, BODY("\1\0\0"), BAD},
	{"half stored", ORIGIN_STORED, 7, false, BODY("\2\0\0"), BAD},
	{"stored with an escape", ORIGIN_STORED, 7, false, BODY("\0\1\0\x1b"), BAD},
	{"stored with an fd", ORIGIN_STORED, 7, true, BODY("\1\0\0"), BAD},
	{"good renew", ORIGIN_RENEW, 0, false, BODY("\6"), 0},
	{"renew of unknown values", ORIGIN_RENEW, 0, false, BODY("\x8"), BAD},
	{"renew with an id", ORIGIN_RENEW, 1, false, BODY("\6"), BAD},
	{"renew and more", ORIGIN_RENEW, 0, false, BODY("\6\0"), BAD},
	{"good result", ORIGIN_RESULT, 7, false, BODY(RESULT("\0\xc8\0\1", "\1\0s\1\0a\1\0t")), 0},
	{"result of no outcome", ORIGIN_RESULT, 7, false,
		BODY(RESULT("\x10\xc8\0\1", "\1\0s\1\0a\1\0t")), BAD},
	{"used in no slot", ORIGIN_RESULT, 7, false, BODY(RESULT("\0\xc8\0\1", "\0\0\1\0a\1\0t")),
		BAD},
	{"used twice", ORIGIN_RESULT, 7, false, BODY(RESULT("\0\xc8\0\2", "\1\0s\1\0a\1\0t")), BAD},
	{"result of status 99", ORIGIN_RESULT, 7, false,
		BODY(RESULT("\0\x63\0\1", "\1\0s\1\0a\1\0t")), BAD},
	{"result of status 600", ORIGIN_RESULT, 7, false,
		BODY(RESULT("\0\x58\2\1", "\1\0s\1\0a\1\0t")), BAD},
	{"result with a line end", ORIGIN_RESULT, 7, false,
		BODY(RESULT("\0\xc8\0\1", "\1\0s\1\0a\1\0\n")), BAD},
	{"good closed", ORIGIN_CLOSED, 7, false, BODY("12345678abcdefgh"), 0},
	{"closed cut", ORIGIN_CLOSED, 7, false, BODY("12345678abcdefg"), BAD},
	{"roots with an id", ORIGIN_ROOTS, 1, true, BODY(""), BAD},
	{"no type", 0, 0, false, BODY(""), BAD},
	{"unknown type", ORIGIN_N_MSGS, 0, false, BODY(""), BAD},
};

static void test_strict(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		msg = (struct ipc_msg){
			.type = rows[i].type, .id = rows[i].id, .n = rows[i].n, .fd = -1};
		memcpy(msg.body, rows[i].body, rows[i].n);
		msg.fd = rows[i].fd ? 1000 : -1;
		if (decode(&msg) != rows[i].r)
			fail_msg("%s: %d", rows[i].what, decode(&msg));
		msg.fd = -1;
	}
}

/* The table in the header comment, written out a second time by hand. */
static void test_phases(void **state)
{
	static const char *const keeper[ORIGIN_N_PHASES] = {
		[ORIGIN_PHASE_START] = ".................",
		[ORIGIN_PHASE_CONFIG] = ".C...............",
		[ORIGIN_PHASE_ROOTS] = "..R..............",
		[ORIGIN_PHASE_RUN] = "...O...S.V..SRPAC",
		[ORIGIN_PHASE_END] = ".................",
	};
	static const char *const origin[ORIGIN_N_PHASES] = {
		[ORIGIN_PHASE_START] = "H................",
		[ORIGIN_PHASE_CONFIG] = ".................",
		[ORIGIN_PHASE_ROOTS] = ".................",
		[ORIGIN_PHASE_RUN] = "....RCW.N.T......",
		[ORIGIN_PHASE_END] = ".................",
	};

	for (enum origin_phase p = 0; p < ORIGIN_N_PHASES; p++) {
		for (uint16_t t = 1; t < ORIGIN_N_MSGS; t++) {
			assert_int_equal(chan_allows(&origin_chan, p, CHAN_FROM_KEEPER, t),
				keeper[p][t - 1] != '.');
			assert_int_equal(chan_allows(&origin_chan, p, CHAN_FROM_WORKER, t),
				origin[p][t - 1] != '.');
		}
		assert_false(chan_allows(&origin_chan, p, CHAN_FROM_WORKER, 0));
		assert_false(chan_allows(&origin_chan, p, CHAN_FROM_KEEPER, ORIGIN_N_MSGS));
		assert_false(chan_allows(&origin_chan, p, CHAN_FROM_KEEPER, 65535));
	}
	assert_int_equal(
		chan_after(&origin_chan, ORIGIN_PHASE_START, ORIGIN_HELLO), ORIGIN_PHASE_CONFIG);
	assert_int_equal(
		chan_after(&origin_chan, ORIGIN_PHASE_CONFIG, ORIGIN_CONFIG), ORIGIN_PHASE_ROOTS);
	assert_int_equal(
		chan_after(&origin_chan, ORIGIN_PHASE_ROOTS, ORIGIN_ROOTS), ORIGIN_PHASE_RUN);
	assert_int_equal(chan_after(&origin_chan, ORIGIN_PHASE_RUN, ORIGIN_OPEN), ORIGIN_PHASE_RUN);
}

static void test_outcomes_have_words(void **state)
{
	for (enum origin_outcome o = 0; o < ORIGIN_N_OUTCOMES; o++)
		assert_true(strlen(origin_outcome_text(o)) >= 8);
	assert_non_null(origin_outcome_text(ORIGIN_N_OUTCOMES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_origin_to_keeper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_need_and_tokens, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeper_to_origin, setup, teardown),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_outcomes_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
