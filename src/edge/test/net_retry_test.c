/* SPDX-License-Identifier: Apache-2.0 */
/* A second ClientHello, after the server's HelloRetryRequest: a real, sealed sbx-edge with
 * guest, keeper and egress played by the test. */
#include "net_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "lib/base/clock.h"

#define HOST NET_RIG_HOST
#define RETRY                                                              \
	"\x16\3\3\0\x2c\2\0\0\x28\3\3"                                     \
	"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" \
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c\0\x13\1\0\0\0"
#define SERVER_HELLO "\x16\3\3\0\x2c\2\0\0\x28\3\3thirty-two bytes of some server.\0\x13\1\0\0\0"
#define CCS "\x14\3\3\0\1\1"
#define EARLY "\x17\3\3\0\5early"

/* A tunnel whose first ClientHello has passed. */
static struct net_way *begin_tls(struct net_rig *n, struct net_conn **ret, size_t *ret_len)
{
	struct net_conn *c = net_open_caught(n, HOST, 443);
	uint8_t hello[512];
	struct net_way *w;

	*ret_len = net_hello(hello, sizeof(hello), HOST, false);
	net_say(n, c, hello, *ret_len);
	w = net_accept_tunnel(n, HOST, 443);
	net_until(n, net_got(&w->side, hello, *ret_len));
	*ret = c;
	return w;
}

struct second_case {
	const char *what, *name; /* NULL: no server name */
	const char *front;	 /* records before it */
	size_t n_front;
	bool early; /* sent before the server's answer */
	const char *fault;
};

static void try_second(struct net_rig *n, const struct second_case *row, size_t step)
{
	uint8_t second[512];
	size_t len = net_hello(second, sizeof(second), row->name, false), first;
	struct net_conn *c;
	struct net_way *w = begin_tls(n, &c, &first);

	if (!row->early) {
		way_say(w, RETRY, sizeof(RETRY) - 1);
		net_until(n, c->side.n_got == sizeof(RETRY) - 1);
	}
	net_say(n, c, row->front, row->n_front);
	for (size_t i = 0; i < len; i += step) {
		net_say(n, c, second + i, MIN(step, len - i));
		net_step(n, 1);
	}
	if (row->early) {
		/* The server's requirements are not known yet. */
		net_for(n, 50);
		assert_int_equal(w->side.n_got, first);
		way_say(w, RETRY, sizeof(RETRY) - 1);
	}
	if (!row->fault) {
		net_until(n, w->side.n_got == first + row->n_front + len);
		assert_memory_equal(w->side.got + first + row->n_front, second, len);
		net_say(n, c, "encrypted", 9);
		net_until(n, w->side.n_got == first + row->n_front + len + 9);
		wire_reset(n->guest, c->sid);
		net_until(n, w->side.eof);
		return;
	}
	net_until(n, net_faulted(n, row->fault));
	net_until(n, c->closed && w->side.eof);
	/* Preceding records may have been sent, but not one byte of the ClientHello. */
	assert_in_range(w->side.n_got, first, first + row->n_front);
}

static void test_second_hello_names_another_host(void **state)
{
	static const struct second_case rows[] = {
		{"right", HOST, "", 0, false, NULL},
		{"right, CCS", HOST, CCS, 6, false, NULL},
		{"right, early data", HOST, EARLY CCS, 16, true, NULL},
		{"other", "evil.test", "", 0, false, "is not the target"},
		{"other, CCS", "evil.test", CCS, 6, false, "is not the target"},
		{"other, early data", "evil.test", EARLY CCS EARLY, 26, false, "is not the target"},
		{"other, at once", "evil.test", CCS, 6, true, "is not the target"},
		{"none", NULL, CCS, 6, false, "without a server name"},
		{"another message", HOST, "\x16\3\3\0\4\x10\0\0\0", 9, false, "ClientHello alone"},
		{"empty record", HOST, "\x16\3\3\0\0", 5, false, "a TLS record is invalid"},
		{"junk", HOST, "junk", 4, false, "a TLS record is invalid"},
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		try_second(n, &rows[i], 512);
		try_second(n, &rows[i], 7);
	}
	net_free(n);
}

/* Without HelloRetryRequest, later data is not inspected: encrypted data may look like anything. */
static void test_no_second_hello_is_asked_for(void **state)
{
	static const struct slice servers[] = {
		{(const uint8_t *)SERVER_HELLO, sizeof(SERVER_HELLO) - 1},
		{(const uint8_t *)"\x15\3\3\0\2\2\x28\x16\3\3\0\1\xb", 13},
		{(const uint8_t *)"hello", 5},
	};
	struct net_rig *n = net_new();
	struct net_conn *c;
	struct net_way *w;
	size_t first;

	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		w = begin_tls(n, &c, &first);
		way_say(w, servers[i].p, servers[i].n);
		net_say(n, c, CCS "\x16\3\3\0\4\1\0\0\0", 15);
		net_until(n, w->side.n_got == first + 15);
		net_end(n, c);
		net_until(n, w->side.eof);
	}
	/* The guest has closed already, then the server closes without data. */
	w = begin_tls(n, &c, &first);
	net_say(n, c, CCS, 6);
	net_end(n, c);
	w->side.end = true;
	net_until(n, c->closed && w->side.eof);
	assert_int_equal(w->side.n_got, first + 6);
	/* Closed within a second ClientHello. */
	w = begin_tls(n, &c, &first);
	way_say(w, RETRY, sizeof(RETRY) - 1);
	net_say(n, c, "\x16\3\3\0\1\1", 6);
	net_end(n, c);
	net_until(n, net_faulted(n, "ClientHello rejected: incomplete"));
	net_until(n, c->closed && w->side.eof);
	assert_int_equal(w->side.n_got, first);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_hello_names_another_host),
		cmocka_unit_test(test_no_second_hello_is_asked_for),
	};

	return cmocka_run_group_tests_name("edge_net_retry", tests, NULL, NULL);
}
