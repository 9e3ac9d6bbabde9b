/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/egress_chan.h"

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

static void test_egress_to_keeper(void **state)
{
	const struct egress_result result = {
		.outcome = EGRESS_DENIED_ADDRESS, .addr = "10.0.0.1", .text = "it leads inside"};
	struct egress_result got;
	char build[CHAN_MAX_BUILD], text[EGRESS_MAX_TEXT];
	uint64_t up, down;

	assert_int_equal(chan_send_hello(pair[0], "build 1"), 0);
	receive(EGRESS_HELLO, 0);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, "build 1");
	assert_int_equal(egress_send_loaded(pair[0], 3, "line 7: no"), 0);
	receive(EGRESS_LOADED, 3);
	assert_int_equal(egress_get_loaded(&msg, text), 0);
	assert_string_equal(text, "line 7: no");
	assert_int_equal(egress_send_result(pair[0], 4, &result, -1), 0);
	receive(EGRESS_RESULT, 4);
	assert_int_equal(egress_get_result(&msg, &got), 0);
	assert_int_equal(got.outcome, EGRESS_DENIED_ADDRESS);
	assert_string_equal(got.addr, "10.0.0.1");
	assert_string_equal(got.text, "it leads inside");
	assert_int_equal(egress_send_closed(pair[0], 5, 1, UINT64_MAX), 0);
	receive(EGRESS_CLOSED, 5);
	assert_int_equal(egress_get_closed(&msg, &up, &down), 0);
	assert_true(up == 1 && down == UINT64_MAX);
}

static void test_keeper_to_egress(void **state)
{
	const struct egress_open open = {.kind = EGRESS_HTTP,
		.host = "api.example.com",
		.port = 80,
		.ticket = {TICKET_VERSION, "the digest of a request"}};
	struct egress_open got;
	uint8_t part = 7;

	assert_int_equal(chan_send_plain(pair[0], EGRESS_RESOLVER, 0, 0), 0);
	receive(EGRESS_RESOLVER, 0);
	assert_int_equal(chan_get_plain(&egress_chan, &msg, EGRESS_RESOLVER), 0);
	assert_true(msg.fd > 2 && fcntl(msg.fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(egress_ask_policy(pair[0], 9, 1, 0), 0);
	receive(EGRESS_POLICY, 9);
	assert_int_equal(egress_get_policy(&msg, &part), 0);
	assert_int_equal(part, 1);
	assert_int_equal(egress_ask_open(pair[0], 5, &open, 0), 0);
	receive(EGRESS_OPEN, 5);
	assert_int_equal(egress_get_open(&msg, &got), 0);
	assert_int_equal(got.kind, EGRESS_HTTP);
	assert_string_equal(got.host, "api.example.com");
	assert_int_equal(got.port, 80);
	assert_memory_equal(&got.ticket, &open.ticket, sizeof(got.ticket));
}

/* As many pins as there may be, each as long as it may be, fit into one message. */
static void test_the_largest_config(void **state)
{
	static struct egress_config config = {.proxy = EGRESS_PROXY_SOCKS,
					    .proxy_port = 3128,
					    .n_pins = EGRESS_MAX_PINS,
					    .n_direct = EGRESS_MAX_DIRECT},
				    got;

	memset(config.proxy_host, 'p', EGRESS_MAX_HOST - 1);
	memset(config.proxy_user, 'u', EGRESS_MAX_USER - 1);
	for (size_t i = 0; i < EGRESS_MAX_PINS; i++) {
		struct egress_pin *pin = &config.pins[i];

		memset(pin->host, 'h', EGRESS_MAX_HOST - 1);
		memset(pin->addr, 'a', EGRESS_MAX_ADDR - 1);
		pin->port = (uint16_t)(i + 1);
		pin->addr_port = UINT16_MAX;
	}
	for (size_t i = 0; i < EGRESS_MAX_DIRECT; i++) {
		struct egress_direct *d = &config.direct[i];

		d->port = (uint16_t)i;
		if (i % 2) {
			d->n = 16;
			memset(d->addr, 7, 16);
			d->prefix = 128;
		} else {
			d->is_below = i % 4 == 0;
			memset(d->host, 'd', EGRESS_MAX_HOST - 1);
		}
	}
	assert_int_equal(egress_ask_config(pair[0], &config), 0);
	receive(EGRESS_CONFIG, 0);
	assert_int_equal(egress_get_config(&msg, &got), 0);
	receive(EGRESS_DIRECT, 0);
	assert_int_equal(egress_get_direct(&msg, &got), 0);
	assert_memory_equal(&got, &config, sizeof(got));
}

/* As many networks as there may be, too. */
static void test_the_largest_locals(void **state)
{
	static struct egress_locals locals = {.n = EGRESS_MAX_LOCALS}, got;

	for (size_t i = 0; i < EGRESS_MAX_LOCALS; i++) {
		struct egress_local *l = &locals.list[i];

		*l = (struct egress_local){.is_own = i % 2 == 0, .n = i % 3 ? 16 : 4};
		memset(l->addr, (int)i, l->n);
		l->prefix = (uint8_t)(l->n * 8);
	}
	assert_int_equal(egress_ask_locals(pair[0], &locals), 0);
	receive(EGRESS_LOCALS, 0);
	assert_int_equal(egress_get_locals(&msg, &got), 0);
	assert_memory_equal(&got, &locals, sizeof(got));
}

static void test_long_text_is_cut_or_refused(void **state)
{
	char text[400], got[EGRESS_MAX_TEXT];

	memset(text, 'x', sizeof(text));
	text[399] = 0;
	assert_int_equal(egress_send_loaded(pair[0], 0, text), 0);
	receive(EGRESS_LOADED, 0);
	assert_int_equal(egress_get_loaded(&msg, got), 0);
	assert_int_equal(strlen(got), EGRESS_MAX_TEXT - 1);
	assert_int_equal(chan_send_hello(pair[0], text), -EMSGSIZE);
}

/* Decodes by type, as a receiver does. */
static int decode(const struct ipc_msg *m)
{
	static struct egress_config config;
	static struct egress_locals locals;
	struct egress_open open;
	struct egress_result result;
	char text[EGRESS_MAX_TEXT];
	uint64_t up, down;
	uint8_t part;

	switch (m->type) {
	case EGRESS_HELLO:
		return chan_get_hello(m, text);
	case EGRESS_CONFIG:
		return egress_get_config(m, &config);
	case EGRESS_DIRECT:
		return egress_get_direct(m, &config);
	case EGRESS_RESOLVER:
		return chan_get_plain(&egress_chan, m, EGRESS_RESOLVER);
	case EGRESS_POLICY:
		return egress_get_policy(m, &part);
	case EGRESS_LOCALS:
		return egress_get_locals(m, &locals);
	case EGRESS_LOADED:
		return egress_get_loaded(m, text);
	case EGRESS_LOGIN:
		return chan_get_plain(&egress_chan, m, EGRESS_LOGIN);
	case EGRESS_LOGGED:
		return egress_get_logged(m, text);
	case EGRESS_OPEN:
		return egress_get_open(m, &open);
	case EGRESS_RESULT:
		return egress_get_result(m, &result);
	case EGRESS_CLOSED:
		return egress_get_closed(m, &up, &down);
	default:
		return -EBADMSG;
	}
}

#define BODY(text) text, sizeof(text) - 1
#define BAD -EBADMSG
#define DIGEST "0123456789abcdef0123456789ABCDEF"

static const struct {
	const char *what;
	uint16_t type;
	uint32_t id;
	bool fd;
	const char *body;
	size_t n;
	int r;
} rows[] = {
	{"good hello", EGRESS_HELLO, 0, false, BODY("\2\0b1"), 0},
	{"hello with an id", EGRESS_HELLO, 1, false, BODY("\2\0b1"), BAD},
	{"hello with an fd", EGRESS_HELLO, 0, true, BODY("\2\0b1"), BAD},
	{"hello with a NUL", EGRESS_HELLO, 0, false, BODY("\2\0b\0"), BAD},
	{"hello and more", EGRESS_HELLO, 0, false, BODY("\2\0b1x"), BAD},
	{"empty config", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\0\0"), 0},
	{"config with an id", EGRESS_CONFIG, 1, false, BODY("\0\0\0\0\0\0\0\0\0"), BAD},
	{"config with an fd", EGRESS_CONFIG, 0, true, BODY("\0\0\0\0\0\0\0\0\0"), BAD},
	{"good proxy", EGRESS_CONFIG, 0, false, BODY("\0\1\0p\1\0\0\0\0\0"), 0},
	{"proxy without a port", EGRESS_CONFIG, 0, false, BODY("\0\1\0p\0\0\0\0\0\0"), BAD},
	{"port without a proxy", EGRESS_CONFIG, 0, false, BODY("\0\0\0\1\0\0\0\0\0"), BAD},
	{"good pin", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\1\0\1\0h\1\0\1\0a\1\0"), 0},
	{"pin of no host", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\1\0\0\0\1\0\1\0a\1\0"),
		BAD},
	{"pin of no port", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\1\0\1\0h\0\0\1\0a\1\0"),
		BAD},
	{"pin to nowhere", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\1\0\1\0h\1\0\0\0\1\0"),
		BAD},
	{"pin to no port", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\1\0\1\0h\1\0\1\0a\0\0"),
		BAD},
	{"a pin too few", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\2\0\1\0h\1\0\1\0a\1\0"),
		BAD},
	{"49 pins", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\0\0\x31\0"), BAD},
	{"SOCKS", EGRESS_CONFIG, 0, false, BODY("\1\1\0p\1\0\0\0\0\0"), 0},
	{"SOCKS without a proxy", EGRESS_CONFIG, 0, false, BODY("\1\0\0\0\0\0\0\0\0"), BAD},
	{"proxy of no kind", EGRESS_CONFIG, 0, false, BODY("\2\1\0p\1\0\0\0\0\0"), BAD},
	{"a user", EGRESS_CONFIG, 0, false, BODY("\0\1\0p\1\0\1\0u\0\0"), 0},
	{"a user without a proxy", EGRESS_CONFIG, 0, false, BODY("\0\0\0\0\0\1\0u\0\0"), BAD},
	{"good login", EGRESS_LOGIN, 7, true, BODY(""), 0},
	{"login without a connection", EGRESS_LOGIN, 7, false, BODY(""), BAD},
	{"login with fields", EGRESS_LOGIN, 7, true, BODY("x"), BAD},
	{"good logged", EGRESS_LOGGED, 7, false, BODY("\0\0"), 0},
	{"logged with a line end", EGRESS_LOGGED, 7, false, BODY("\1\0\n"), BAD},
	{"logged with an fd", EGRESS_LOGGED, 7, true, BODY("\0\0"), BAD},
	{"nothing direct", EGRESS_DIRECT, 0, false, BODY("\0\0"), 0},
	{"a name", EGRESS_DIRECT, 0, false, BODY("\1\0\1\0h\1\0\0\0\0"), 0},
	{"a network", EGRESS_DIRECT, 0, false, BODY("\1\0\0\0\0\4abcd\x18\1\0"), 0},
	{"neither", EGRESS_DIRECT, 0, false, BODY("\1\0\0\0\0\0\0\0\0"), BAD},
	{"both", EGRESS_DIRECT, 0, false, BODY("\1\0\1\0h\0\4abcd\x18\0\0"), BAD},
	{"a prefix of a name", EGRESS_DIRECT, 0, false, BODY("\1\0\1\0h\0\0\1\0\0"), BAD},
	{"below a network", EGRESS_DIRECT, 0, false, BODY("\1\0\0\0\1\4abcd\1\0\0"), BAD},
	{"a prefix too long", EGRESS_DIRECT, 0, false, BODY("\1\0\0\0\0\4abcd\x21\0\0"), BAD},
	{"an address of 5 bytes", EGRESS_DIRECT, 0, false, BODY("\1\0\0\0\0\5abcde\1\0\0"), BAD},
	{"direct with more", EGRESS_DIRECT, 0, false, BODY("\0\0x"), BAD},
	{"49 direct", EGRESS_DIRECT, 0, false, BODY("\x31\0"), BAD},
	{"good resolver", EGRESS_RESOLVER, 0, true, BODY(""), 0},
	{"resolver without fd", EGRESS_RESOLVER, 0, false, BODY(""), BAD},
	{"resolver with fields", EGRESS_RESOLVER, 0, true, BODY("x"), BAD},
	{"good policy", EGRESS_POLICY, 7, true, BODY("\1"), 0},
	{"policy without fd", EGRESS_POLICY, 7, false, BODY("\1"), BAD},
	{"policy of no part", EGRESS_POLICY, 7, true, BODY("\3"), BAD},
	{"good loaded", EGRESS_LOADED, 7, false, BODY("\1\0d"), 0},
	{"loaded with an escape", EGRESS_LOADED, 7, false, BODY("\1\0\x1b"), BAD},
	{"loaded above ASCII", EGRESS_LOADED, 7, false, BODY("\2\0\xc3\xa9"), BAD},
	{"good tunnel", EGRESS_OPEN, 7, true, BODY("\0\1\0h\1\0"), 0},
	{"open without fd", EGRESS_OPEN, 7, false, BODY("\0\1\0h\1\0"), BAD},
	{"tunnel with a ticket", EGRESS_OPEN, 7, true, BODY("\0\1\0h\1\0\2" DIGEST "\0"), BAD},
	{"good http", EGRESS_OPEN, 7, true, BODY("\1\1\0h\1\0\2" DIGEST "\0"), 0},
	{"http without a ticket", EGRESS_OPEN, 7, true, BODY("\1\1\0h\1\0"), BAD},
	{"http with an old ticket", EGRESS_OPEN, 7, true, BODY("\1\1\0h\1\0\1" DIGEST "\0"), BAD},
	{"good socket", EGRESS_OPEN, 7, false, BODY("\2\1\0h\1\0"), 0},
	{"socket with an fd", EGRESS_OPEN, 7, true, BODY("\2\1\0h\1\0"), BAD},
	{"open of no kind", EGRESS_OPEN, 7, true, BODY("\3\1\0h\1\0"), BAD},
	{"open of no host", EGRESS_OPEN, 7, true, BODY("\0\0\0\1\0"), BAD},
	{"open of no port", EGRESS_OPEN, 7, true, BODY("\0\1\0h\0\0"), BAD},
	{"open with a NUL in its host", EGRESS_OPEN, 7, true, BODY("\0\2\0h\0\1\0"), BAD},
	{"good result", EGRESS_RESULT, 7, false, BODY("\0\1\0a\1\0t"), 0},
	{"result of no outcome", EGRESS_RESULT, 7, false, BODY("\xe\1\0a\1\0t"), BAD},
	{"result with a connection", EGRESS_RESULT, 7, true, BODY("\0\1\0a\1\0t"), 0},
	{"failure with a connection", EGRESS_RESULT, 7, true, BODY("\1\1\0a\1\0t"), BAD},
	{"result with a line end", EGRESS_RESULT, 7, false, BODY("\0\1\0a\1\0\n"), BAD},
	{"result with an odd address", EGRESS_RESULT, 7, false, BODY("\0\1\0\t\1\0t"), BAD},
	{"good closed", EGRESS_CLOSED, 7, false, BODY("12345678abcdefgh"), 0},
	{"closed cut", EGRESS_CLOSED, 7, false, BODY("12345678abcdefg"), BAD},
	{"good locals", EGRESS_LOCALS, 0, false, BODY("\1\0\1\4abcd\x20"), 0},
	{"no locals", EGRESS_LOCALS, 0, false, BODY("\0\0"), 0},
	{"locals with an id", EGRESS_LOCALS, 1, false, BODY("\0\0"), BAD},
	{"locals with an fd", EGRESS_LOCALS, 0, true, BODY("\0\0"), BAD},
	{"too many locals", EGRESS_LOCALS, 0, false, BODY("\1\1"), BAD},
	{"locals cut", EGRESS_LOCALS, 0, false, BODY("\1\0\1\4abcd"), BAD},
	{"locals with more", EGRESS_LOCALS, 0, false, BODY("\1\0\1\4abcd\x20x"), BAD},
	{"local of 5 bytes", EGRESS_LOCALS, 0, false, BODY("\1\0\1\5abcde\x20"), BAD},
	{"local prefix too long", EGRESS_LOCALS, 0, false, BODY("\1\0\1\4abcd\x21"), BAD},
	{"local of an odd kind", EGRESS_LOCALS, 0, false, BODY("\1\0\2\4abcd\x20"), BAD},
	{"no type", 0, 0, false, BODY(""), BAD},
	{"unknown type", EGRESS_N_MSGS, 0, false, BODY(""), BAD},
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
	static const char *const keeper[EGRESS_N_PHASES] = {
		[EGRESS_PHASE_START] = "............",
		[EGRESS_PHASE_CONFIG] = ".C..........",
		[EGRESS_PHASE_RUN] = ".CRP.O..DL.G",
		[EGRESS_PHASE_END] = "............",
	};
	static const char *const egress[EGRESS_N_PHASES] = {
		[EGRESS_PHASE_START] = "H...........",
		[EGRESS_PHASE_CONFIG] = "............",
		[EGRESS_PHASE_RUN] = "....L.RC..I.",
		[EGRESS_PHASE_END] = "............",
	};

	for (enum egress_phase p = 0; p < EGRESS_N_PHASES; p++) {
		for (uint16_t t = 1; t < EGRESS_N_MSGS; t++) {
			assert_int_equal(chan_allows(&egress_chan, p, CHAN_FROM_KEEPER, t),
				keeper[p][t - 1] != '.');
			assert_int_equal(chan_allows(&egress_chan, p, CHAN_FROM_WORKER, t),
				egress[p][t - 1] != '.');
		}
		assert_false(chan_allows(&egress_chan, p, CHAN_FROM_WORKER, 0));
		assert_false(chan_allows(&egress_chan, p, CHAN_FROM_KEEPER, EGRESS_N_MSGS));
		assert_false(chan_allows(&egress_chan, p, CHAN_FROM_KEEPER, 65535));
	}
	assert_int_equal(
		chan_after(&egress_chan, EGRESS_PHASE_START, EGRESS_HELLO), EGRESS_PHASE_CONFIG);
	assert_int_equal(
		chan_after(&egress_chan, EGRESS_PHASE_CONFIG, EGRESS_CONFIG), EGRESS_PHASE_RUN);
	assert_int_equal(
		chan_after(&egress_chan, EGRESS_PHASE_RUN, EGRESS_CONFIG), EGRESS_PHASE_RUN);
	assert_int_equal(chan_after(&egress_chan, EGRESS_PHASE_RUN, EGRESS_OPEN), EGRESS_PHASE_RUN);
}

static bool is_direct(
	const struct egress_config *c, const char *host, const char *addr, uint16_t port)
{
	return egress_is_direct(c, host, slice_from_str(addr), port);
}

static void names_below_a_name_and_networks_are_direct(void **state)
{
	static const struct egress_config c = {.n_direct = 4,
		.direct = {{.host = "one.example"}, {.host = "corp.example", .is_below = true},
			{.n = 4, .addr = {10, 16}, .prefix = 12},
			{.host = "two.example", .port = 8080}}};

	assert_true(is_direct(&c, "one.example", "", 443));
	assert_false(is_direct(&c, "a.one.example", "", 443));
	assert_true(is_direct(&c, "git.corp.example", "", 443));
	assert_true(is_direct(&c, "a.b.corp.example", "", 443));
	assert_false(is_direct(&c, "corp.example", "", 443));
	assert_false(is_direct(&c, "notcorp.example", "", 443));
	assert_false(is_direct(&c, ".corp.example", "", 443));
	assert_true(is_direct(&c, "10.31.255.255", "\x0a\x1f\xff\xff", 1));
	assert_false(is_direct(&c, "10.32.1.1", "\x0a\x20\1\1", 1));
	assert_false(is_direct(&c, "::", "0123456789abcdef", 1));
	assert_true(is_direct(&c, "two.example", "", 8080));
	assert_false(is_direct(&c, "two.example", "", 443));
}

static void test_outcomes_have_words(void **state)
{
	for (enum egress_outcome o = 0; o < EGRESS_N_OUTCOMES; o++)
		assert_true(strlen(egress_outcome_text(o)) > 8);
	assert_non_null(egress_outcome_text(EGRESS_N_OUTCOMES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_egress_to_keeper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeper_to_egress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_largest_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_largest_locals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_text_is_cut_or_refused, setup, teardown),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(names_below_a_name_and_networks_are_direct),
		cmocka_unit_test(test_outcomes_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
