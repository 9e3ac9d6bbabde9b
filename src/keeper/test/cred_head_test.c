/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that are intercepted because rules are about their requests, and policies of origins. */
#include "cred_rig.h"

#include <stdio.h>
#include <unistd.h>
#include "lib/base/mem.h"

#define PLAIN "plain.example"

static void set_rules(const char *more)
{
	AUTO_FREE char *rules = xasprintf("allow network " PLAIN ":1-65535\n"
					  "allow network " CRED_HOST ":1-65535\n%s",
		more);

	rig_set_policy(rules);
	rig_reload(98, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
}

static int up(void **state)
{
	int r = cred_up(state);
	AUTO_FREE char *rule = xasprintf("allow http " PLAIN ":%u/v1 method GET\n", cred_port);

	set_rules(rule);
	return r;
}

static bool is_opened(uint32_t id, const char *host)
{
	rig_ask(id, EDGE_ASK_TUNNEL, host, cred_port);
	return rig_must_answer(id) && rig_verdict.opened;
}

/* HELLO and the configuration of an origin without a credential; returns its end. */
static int bare_up(void)
{
	int origin = cred_origins[cred_n_origins - 1];
	struct origin_config config;
	char c;

	assert_int_equal(chan_send_hello(origin, SBX_BUILD), 0);
	rig_must_get(origin, ORIGIN_CONFIG);
	assert_int_equal(origin_get_config(&rig_msg, &config), 0);
	assert_string_equal(config.host, PLAIN);
	assert_int_equal(config.has, 0);
	assert_int_equal(pread(rig_msg.fd, &c, 1, 0), 0); /* no service */
	rig_must_get(origin, ORIGIN_ROOTS);
	cred_must_get_policy(origin);
	return origin;
}

static int open_bare(uint32_t id)
{
	int fd = -1, origin;

	cred_ask(id, PLAIN, "GET");
	assert_true(rig_must_answer(id));
	fd_close(&rig_msg.fd);
	origin = bare_up();
	(void)cred_must_get_open(origin, &fd);
	fd_close(&fd);
	return origin;
}

static void a_host_of_a_rule_has_an_origin_without_a_value(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	assert_true(is_opened(1, PLAIN));
	(void)open_bare(2);
	cred_ask(3, PLAIN, "POST");
	assert_false(rig_must_answer(3));
	assert_non_null(strstr(rig_verdict.effect, "http:POST " PLAIN));
	assert_non_null(strstr(rig_verdict.instead, "/v1 method GET"));
}

/* Nothing was denied: the keeper decides when it has the headers. */
static void a_request_whose_headers_are_wanted_is_not_denied(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	set_rules("allow http " PLAIN ":1-65535/v1 method GET header x-role=dev\n");
	cred_ask(1, PLAIN, "GET");
	assert_false(rig_must_answer(1));
	assert_string_equal(rig_verdict.wants, "x-role");
	assert_int_equal(rig_k.denied->n, 0);
	cred_ask(2, PLAIN, "POST");
	assert_false(rig_must_answer(2));
	assert_int_equal(rig_k.denied->n, 0);
}

/* It is not needed for them. */
static void the_vault_may_be_down(void **state)
{
	rig_bring_egress_up();
	assert_true(is_opened(1, PLAIN));
	(void)open_bare(2);
}

static void such_an_origin_gets_no_value(void **state)
{
	int origin;

	rig_bring_egress_up();
	cred_vault_up();
	origin = open_bare(1);
	cred_need(origin, 1, 1);
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->blamed[0].n_violations, 1);
}

static void origins_get_a_new_policy(void **state)
{
	int origin;

	rig_bring_egress_up();
	cred_vault_up();
	origin = open_bare(1);
	set_rules("allow http " PLAIN ":1-65535/** method GET\n");
	cred_must_get_policy(origin);
	assert_true(rig_k.origins->list[0].worker.alive);
}

/* A response that has begun, or a websocket. */
static void a_new_rule_ends_the_requests_that_it_denies(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	(void)open_bare(1);
	set_rules("deny http " PLAIN "/v1\n");
	assert_false(rig_k.origins->list[0].worker.alive);
}

static void a_credential_that_comes_later_counts(void **state)
{
	struct cred_run run;

	rig_bring_egress_up();
	cred_vault_up();
	set_rules("allow http " CRED_HOST ":1-65535/v1 method GET\n");
	(void)cred_add_item("demo", CRED_SERIAL);
	cred_changed();
	assert_true(is_opened(1, CRED_HOST));
	run = cred_run_up();
	cred_ask(7, CRED_HOST, "POST");
	assert_false(rig_must_answer(7));
	assert_non_null(strstr(rig_verdict.effect, "http:POST " CRED_HOST));
	cred_run_down(&run);
}

/* HELD and UNHELD of other requests may come first. */
static void must_get_soon(uint16_t type)
{
	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 4000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != type);
}

/* A person's answer, with the digest that is displayed. */
static void answer_held(enum hold_choice choice)
{
	static struct hold_msg held;
	struct hold_reply reply = {.choice = (uint8_t)choice, .where = "api"};

	must_get_soon(KEEPER_HELD);
	assert_int_equal(hold_get_held(&rig_msg, &held), 0);
	assert_non_null(strstr(held.effects, "http:POST " PLAIN));
	assert_int_equal(cred_n_origins, 0);
	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	assert_int_equal(hold_send_reply(rig_sbxd, 5, &reply), 0);
	must_get_soon(KEEPER_DONE);
}

static void a_request_that_a_rule_asks_about_waits_for_a_person(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	set_rules("ask http " PLAIN ":1-65535/** method POST\n");
	cred_ask(3, PLAIN, "POST");
	answer_held(HOLD_CHOICE_NO);
	assert_false(rig_must_answer(3));
	assert_string_equal(rig_verdict.reason, "refused by the user");
	assert_non_null(strstr(rig_verdict.effect, "http:POST " PLAIN));
	/* The policy changes, so the no is forgotten. */
	rig_set_policy("allow network " PLAIN ":1-65535\n"
		       "ask http " PLAIN ":1-65535/v1 method POST\n");
	rig_reload(99, "demo");
	must_get_soon(KEEPER_DONE);
	cred_ask(4, PLAIN, "POST");
	answer_held(HOLD_CHOICE_ONCE);
	assert_true(rig_must_answer(4));
	fd_close(&rig_msg.fd);
	assert_int_equal(cred_n_origins, 1);
}

#define HEAD_TEST(f) cmocka_unit_test_setup_teardown(f, up, cred_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HEAD_TEST(a_host_of_a_rule_has_an_origin_without_a_value),
		HEAD_TEST(a_request_whose_headers_are_wanted_is_not_denied),
		HEAD_TEST(a_request_that_a_rule_asks_about_waits_for_a_person),
		HEAD_TEST(the_vault_may_be_down),
		HEAD_TEST(such_an_origin_gets_no_value),
		HEAD_TEST(origins_get_a_new_policy),
		HEAD_TEST(a_new_rule_ends_the_requests_that_it_denies),
		HEAD_TEST(a_credential_that_comes_later_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
