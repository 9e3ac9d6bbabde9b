/* SPDX-License-Identifier: Apache-2.0 */
/* /link: URLs that a guest asks the user to open, through the real sbx-edge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/rules/url/url.h"
#include "net_rig.h"

static struct net_conn *say_link(struct net_rig *n, const char *url)
{
	struct net_conn *c = net_open(n, "/link");

	net_say(n, c, url, strlen(url));
	net_end(n, c);
	return c;
}

static void the_keeper_gets_the_one_form_of_a_link(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = say_link(n, "HTTPS://Login.example:443?a=%20&b=c#d");
	struct net_ask *a;

	net_until(n, (a = net_asked(n, EDGE_ASK_LINK, "login.example", 443)));
	assert_string_equal(a->ask.target, "https://login.example/?a=%20&b=c#d");
	assert_null(net_allow(n, a));
	net_until(n, c->closed);
	assert_true(net_got_text(&c->side, "+\n") && !c->reset);

	c = say_link(n, "http://login.example:8080/");
	net_until(n, (a = net_asked(n, EDGE_ASK_LINK, "login.example", 8080)));
	net_deny(n, a, "too many");
	net_until(n, c->closed);
	assert_true(net_got_text(&c->side, "-too many\n") && !c->reset);
	net_free(n);
}

static void no_other_link_reaches_the_keeper(void **state)
{
	static char longer[URL_MAX + 3] = "https://a.example/", flood[60000];
	static const char *const urls[] = {"", "file:///etc/passwd", "javascript:alert(1)",
		"http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0x0a000001/",
		"http://169.254.169.254/", "http://2130706433/", "https://u@a.example/",
		"https://a.example/\x1b[2J", "https://a.example/\nx", "https://\xd0\xb0.example/",
		"https://a.example/\\", longer, flood};
	struct net_rig *n = net_new();

	memset(longer + strlen(longer), 'x', URL_MAX + 1 - strlen(longer));
	memset(flood, 'h', sizeof(flood) - 1);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct net_conn *c = say_link(n, urls[i]);

		net_until(n, c->closed);
		if (c->reset || c->side.n_got < 2 || c->side.got[0] != '-')
			fail_msg(
				"%s: %.*s", urls[i], (int)c->side.n_got, (const char *)c->side.got);
	}
	assert_int_equal(n->n_asks, 0);
	net_free(n);
}

static void a_link_without_an_end_waits_and_more_than_the_window_is_reset(void **state)
{
	static char flood[1 << 20];
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/link");

	net_say(n, c, "https://a.example/", 18);
	net_for(n, 200);
	assert_false(c->closed);
	assert_int_equal(n->n_asks, 0);
	net_end(n, c);
	net_until(n, net_asked(n, EDGE_ASK_LINK, "a.example", 443));
	net_deny(n, net_asked(n, EDGE_ASK_LINK, "a.example", 443), "no");
	net_until(n, c->closed);

	memset(flood, 'h', sizeof(flood));
	c = net_open(n, "/link");
	net_say(n, c, flood, sizeof(flood));
	net_for(n, 200);
	assert_int_equal(n->n_asks, 1);
	c = net_open(n, "/link/x");
	net_until(n, c->closed);
	assert_true(c->reset);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keeper_gets_the_one_form_of_a_link),
		cmocka_unit_test(no_other_link_reaches_the_keeper),
		cmocka_unit_test(a_link_without_an_end_waits_and_more_than_the_window_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
