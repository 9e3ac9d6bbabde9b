/* SPDX-License-Identifier: Apache-2.0 */
/* denied.c with a fake guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "src/keeper/keeper.h"
#include "lib/base/mem.h"

static struct keeper k;
static struct denied denied;
static char body[DENIED_MAX * DENIED_TEXT + 1];
static unsigned n_sent;
static const struct ask_kind *last_ask;
static int answer;

int ask_guest(struct keeper *keeper, const struct ask_kind *kind, struct slice text,
	uint32_t timeout_ms, int link, uint32_t link_msg)
{
	assert_string_equal(kind->path, GUEST_PATH_DENIED);
	assert_true(text.n < GUEST_MAX_BODY);
	if (answer < 0)
		return answer;
	memcpy(body, text.p, text.n);
	body[text.n] = '\0';
	n_sent++;
	last_ask = kind;
	return 0;
}

static void refuse(const char *host, uint16_t port, const char *reason)
{
	struct edge_ask ask = {.kind = EDGE_ASK_TUNNEL, .port = port};
	struct edge_verdict v = {.count = 1, .sandbox = "demo"};

	(void)snprintf(ask.host, sizeof(ask.host), "%s", host);
	(void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
	denied_note(&k, &ask, &v);
}

/* As the loop does it when the timer is due. */
static void tick(void)
{
	assert_true(k.denied->timer.pos);
	loop_timer_clear(&k.loop, &k.denied->timer);
	denied_on_timer(&k);
}

static int up(void **state)
{
	memset(&k, 0, sizeof(k));
	denied = (struct denied){0};
	k.denied = &denied;
	k.state.phase = KEEPER_RUNNING;
	n_sent = 0;
	answer = 0;
	return loop_init(&k.loop);
}

static int down(void **state)
{
	for (size_t i = 0; i < k.denied->n; i++)
		free(k.denied->texts[i]);
	loop_done(&k.loop);
	return 0;
}

static void the_guest_gets_the_reason_and_the_command(void **state)
{
	refuse("a.example", 443, "");
	assert_int_equal(n_sent, 0);
	tick();
	assert_int_equal(n_sent, 1);
	assert_string_equal(body,
		"Blocked by network policy: a.example:443\n"
		"  reason:  no applicable policies for op(action=net:connect:tcp, "
		"resource=net:domain:a.example:443)\n"
		"  blocked: 1 time; retrying will not help\n"
		"  allow:   sbx policy allow network a.example:443 --sandbox demo     (run on "
		"the host)\n");
	assert_false(k.denied->timer.pos);
	/* A sent list is not sent again without a new entry. */
	denied_on_timer(&k);
	assert_int_equal(n_sent, 1);
}

static void a_target_is_there_once_with_its_last_reason(void **state)
{
	refuse("a.example", 443, "first");
	refuse("b.example", 443, "other");
	refuse("a.example", 443, "second");
	tick();
	assert_null(strstr(body, "first"));
	assert_true(strstr(body, "other") < strstr(body, "second"));
}

static void the_oldest_goes_and_all_fits(void **state)
{
	char host[EDGE_MAX_HOST], reason[EDGE_MAX_REASON];

	memset(reason, 'r', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	for (unsigned i = 0; i < 3 * DENIED_MAX; i++) {
		memset(host, 'h', sizeof(host) - 1);
		host[sizeof(host) - 1] = '\0';
		(void)snprintf(host, sizeof(host), "%03u", i);
		host[3] = '.';
		refuse(host, 443, reason);
	}
	tick();
	assert_int_equal(k.denied->n, DENIED_MAX);
	assert_null(strstr(body, " 047."));
	assert_non_null(strstr(body, " 048."));
	assert_non_null(strstr(body, " 071."));
}

static void it_waits_while_the_guest_cannot_be_told(void **state)
{
	refuse("a.example", 443, "one");
	k.state.phase = KEEPER_STOPPING;
	tick();
	k.state.phase = KEEPER_RUNNING;
	answer = -EMFILE;
	tick();
	answer = 0;
	tick();
	assert_int_equal(n_sent, 1);
	/* The guest has not answered. */
	refuse("b.example", 443, "two");
	tick();
	assert_int_equal(n_sent, 1);
	last_ask->on_over(&k);
	tick();
	assert_int_equal(n_sent, 2);
	assert_non_null(strstr(body, "two"));
}

static void nothing_of_a_peer_gets_to_a_terminal(void **state)
{
	refuse("a\x1b[2J.example", 443, "b\x1b]0;x\a\n");
	tick();
	for (const char *c = body; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
	assert_non_null(strstr(body, "a?[2J.example"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
	const struct CMUnitTest tests[] = {
		TEST(the_guest_gets_the_reason_and_the_command),
		TEST(a_target_is_there_once_with_its_last_reason),
		TEST(the_oldest_goes_and_all_fits),
		TEST(it_waits_while_the_guest_cannot_be_told),
		TEST(nothing_of_a_peer_gets_to_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
