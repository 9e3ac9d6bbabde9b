/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: a token endpoint is intercepted before any credential is set, origin sends its tokens to
 * the vault, and open exchanges continue. */
#include "cred_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_chan.h"

#define AUTH "auth.acct.example"
#define API "api.acct.example"

static int pipe_fd = -1;

/* A service with logins, and an empty vault. */
static void put_login(void)
{
	AUTO_FREE char *path = xasprintf("%s/services/acct.conf", rig_dir);
	AUTO_FREE char *text = xasprintf("service 1\nname acct\nabout A test\n"
					 "env ACCT_KEY ak-proxy-managed-0\n"
					 "token " AUTH ":%u /token\n"
					 "field access access_token at-proxy-managed\n"
					 "field refresh refresh_token rt-proxy-managed\n"
					 "slot account\nhost " API ":%u\n"
					 "header authorization Bearer %%s\nvalue access\nend\n",
		cred_port, cred_port);
	AUTO_FREE char *rules = xasprintf("allow network *.acct.example:%u\n"
					  "allow network " CRED_HOST ":1-65535 id r1\n"
					  "allow network 127.0.0.0/8:%u\n",
		cred_port, cred_port);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	rig_set_policy(rules);
	rig_reload(98, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
	cred_n_items = 0;
}

static bool is_opened(uint32_t id, const char *host)
{
	rig_ask(id, EDGE_ASK_TUNNEL, host, cred_port);
	/* tunnels go to egress */
	for (unsigned i = 0; i < 2; i++) {
		if (rig_run_until(rig_egress, 100))
			rig_must_get(rig_egress, EGRESS_OPEN);
	}
	assert_true(rig_must_answer(id));
	return rig_verdict.opened;
}

/* The newest origin, configured. */
static int origin_up(uint8_t has)
{
	int origin = cred_origins[cred_n_origins - 1];
	struct origin_config config;
	int fd;

	assert_int_equal(chan_send_hello(origin, SBX_BUILD), 0);
	rig_must_get(origin, ORIGIN_CONFIG);
	assert_int_equal(origin_get_config(&rig_msg, &config), 0);
	assert_int_equal(config.has, has);
	rig_must_get(origin, ORIGIN_ROOTS);
	cred_must_get_policy(origin);
	(void)cred_must_get_open(origin, &fd);
	fd_close(&fd);
	return origin;
}

static int login_up(void)
{
	put_login();
	rig_bring_egress_up();
	cred_vault_up();
	cred_ask(1, AUTH, "POST");
	assert_true(rig_must_answer(1));
	return origin_up(0);
}

static void send_tokens(int origin, uint32_t id, enum origin_which which)
{
	const struct origin_tokens tokens = {.which = which};
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(origin_send_tokens(origin, id, &tokens, fds[0]), 0);
	(void)close(fds[0]);
	fd_close(&pipe_fd);
	pipe_fd = fds[1];
}

/* Receives a STORE with the other end of origin's pipe; returns its id. */
static uint32_t must_get_store(const char *name)
{
	char got[VAULT_MAX_NAME], c = 0;

	rig_must_get(cred_vault, VAULT_STORE);
	assert_int_equal(vault_get_store(&rig_msg, got), 0);
	assert_string_equal(got, name);
	assert_int_equal(write(pipe_fd, "x", 1), 1);
	assert_int_equal(read(rig_msg.fd, &c, 1), 1);
	return rig_msg.id;
}

static struct origin_stored must_get_stored(int origin, uint32_t id)
{
	struct origin_stored stored;

	rig_must_get(origin, ORIGIN_STORED);
	assert_int_equal(rig_msg.id, id);
	assert_int_equal(origin_get_stored(&rig_msg, &stored), 0);
	return stored;
}

/* In the vault's order: CHANGED, then DONE; the keeper's LIST arrives in between. */
static void keep(uint32_t store, const char *name, uint64_t serial)
{
	const struct vault_done done = {.number = serial};

	if (cred_n_items == 0 || strcmp(cred_items[cred_n_items - 1].meta.name, name) != 0)
		(void)cred_add_item(name, serial);
	cred_items[cred_n_items - 1].serial = serial;
	(void)!str_copy(cred_items[cred_n_items - 1].meta.scope, VAULT_MAX_SCOPE, RIG_ID);
	assert_int_equal(vault_send_changed(cred_vault, 3), 0);
	assert_int_equal(vault_send_done(cred_vault, store, &done), 0);
	cred_answer_list();
}

static void must_get_renew(int origin, uint8_t want)
{
	uint8_t has;

	rig_must_get(origin, ORIGIN_RENEW);
	assert_int_equal(origin_get_renew(&rig_msg, &has), 0);
	assert_int_equal(has, want);
}

static void a_login_is_caught_though_nothing_is_set(void **state)
{
	put_login();
	rig_bring_egress_up();
	cred_vault_up();
	assert_true(is_opened(1, AUTH));
	/* hosts where the guest may use its own keys are not intercepted */
	assert_false(is_opened(2, API));
	assert_false(creds_has_host(rig_k.creds, API));
	rig_ask(3, EDGE_ASK_HTTP, AUTH, cred_port);
	assert_false(rig_must_answer(3)); /* not without TLS */
	assert_int_equal(cred_n_origins, 0);
}

static void tokens_become_the_sandboxes(void **state)
{
	int origin = login_up();

	send_tokens(origin, 5, ORIGIN_REFRESH);
	/* no answer before the bindings have the token */
	uint32_t store = must_get_store("acct.refresh");

	rig_must_be_quiet(origin);
	keep(store, "acct.refresh", 7);
	must_get_renew(origin, ORIGIN_HAS_REFRESH);
	assert_true(must_get_stored(origin, 5).kept);
	assert_string_equal(cred_last_use().action, "keep");
	send_tokens(origin, 6, ORIGIN_ACCESS);
	keep(must_get_store("acct.access"), "acct.access", 8);
	must_get_renew(origin, ORIGIN_HAS_REFRESH | ORIGIN_HAS_ACCESS);
	assert_true(must_get_stored(origin, 6).kept);
	/* origin and its open exchange survive */
	assert_true(rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->list[0].n_exchanges, 1);
	/* the API is intercepted now; no variable is set after a login */
	assert_true(is_opened(2, API));
	char field[CREDS_MAX_FIELD];

	assert_false(creds_env(rig_k.creds, 0, field));
	cred_ask(3, API, "GET");
	assert_true(rig_must_answer(3));
	(void)origin_up(ORIGIN_HAS_REFRESH | ORIGIN_HAS_ACCESS);
}

/* A response that uses the token from before the refresh is still under way. */
static void a_refresh_breaks_nobody(void **state)
{
	const struct origin_result used = {
		.status = 200, .used = true, .serial = 8, .slot = "account"};
	const struct origin_need need = {.which = ORIGIN_ACCESS, .conn = 1, .cert = {1}};
	const struct vault_done done = {.number = 8};
	int origin;

	put_login();
	(void)!str_copy(cred_add_item("acct.access", 8)->meta.scope, VAULT_MAX_SCOPE, RIG_ID);
	rig_bring_egress_up();
	cred_vault_up();
	cred_ask(1, API, "GET");
	assert_true(rig_must_answer(1));
	origin = origin_up(ORIGIN_HAS_ACCESS);
	uint32_t exchange = rig_verdict.stream;

	assert_int_equal(cred_want(origin, 1), EGRESS_CONNECTED);
	assert_int_equal(origin_send_need(origin, 2, &need), 0);
	cred_must_get_release("acct.access", 8);
	assert_int_equal(vault_send_done(cred_vault, rig_msg.id, &done), 0);
	assert_true(cred_must_get_value(origin, 2).given);
	cred_items[0].serial = 9;
	cred_changed();
	must_get_renew(origin, ORIGIN_HAS_ACCESS);
	assert_int_equal(origin_send_result(origin, exchange, &used), 0);
	(void)rig_run_until(-1, 50);
	assert_true(rig_k.origins->list[0].worker.alive);
	/* the next one is new */
	cred_ask(2, API, "GET");
	assert_true(rig_must_answer(2));
	assert_int_equal(origin_send_need(origin, 3, &need), 0);
	cred_must_get_release("acct.access", 9);
	/* removing the credential stops the origin */
	cred_n_items = 0;
	cred_changed();
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
}

static void a_vault_that_does_not_keep_it(void **state)
{
	const struct vault_done full = {.code = -ENOSPC, .text = "the vault is full"};
	struct origin_stored stored;
	int origin = login_up();

	send_tokens(origin, 5, ORIGIN_ACCESS);
	assert_int_equal(vault_send_done(cred_vault, must_get_store("acct.access"), &full), 0);
	stored = must_get_stored(origin, 5);
	assert_false(stored.kept);
	assert_string_equal(stored.text, "the vault is full");
	assert_string_equal(cred_last_use().reason, "not kept: the vault is full");
	/* the vault disconnects in between, and stays down */
	send_tokens(origin, 6, ORIGIN_ACCESS);
	(void)must_get_store("acct.access");
	fd_close(&cred_vault);
	assert_false(must_get_stored(origin, 6).kept);
	send_tokens(origin, 7, ORIGIN_ACCESS);
	assert_false(must_get_stored(origin, 7).kept);
	assert_true(rig_k.origins->list[0].worker.alive);
}

/* The vault had the token already: no CHANGED, and nothing to bind. */
static void a_token_that_is_kept_already(void **state)
{
	const struct vault_done done = {.number = 7};
	int origin = login_up();
	const struct creds *bound;

	send_tokens(origin, 5, ORIGIN_REFRESH);
	keep(must_get_store("acct.refresh"), "acct.refresh", 7);
	must_get_renew(origin, ORIGIN_HAS_REFRESH);
	assert_true(must_get_stored(origin, 5).kept);
	bound = rig_k.creds;
	send_tokens(origin, 6, ORIGIN_REFRESH);
	assert_int_equal(vault_send_done(cred_vault, must_get_store("acct.refresh"), &done), 0);
	assert_true(must_get_stored(origin, 6).kept);
	rig_must_be_quiet(cred_vault);
	/* and an identical list */
	cred_changed();
	assert_ptr_equal(rig_k.creds, bound);
}

/* DONE arrives first if the keeper has not read for a while. */
static void a_token_whose_change_comes_late(void **state)
{
	const struct vault_done done = {.number = 7};
	int origin = login_up();

	send_tokens(origin, 5, ORIGIN_REFRESH);
	assert_int_equal(vault_send_done(cred_vault, must_get_store("acct.refresh"), &done), 0);
	(void)!str_copy(cred_add_item("acct.refresh", 7)->meta.scope, VAULT_MAX_SCOPE, RIG_ID);
	cred_answer_list();
	must_get_renew(origin, ORIGIN_HAS_REFRESH);
	assert_true(must_get_stored(origin, 5).kept);
}

static void tokens_of_a_host_that_gives_none(void **state)
{
	struct cred_run run = cred_run_up();

	send_tokens(run.origin, 1, ORIGIN_ACCESS);
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->blamed[0].n_violations, 1);
	rig_must_be_quiet(cred_vault);
	cred_run_down(&run);
}

static void too_many_tokens(void **state)
{
	int origin = login_up();

	for (uint32_t i = 1; i <= KEEPER_ORIGIN_TOKENS; i++) {
		send_tokens(origin, i, ORIGIN_ACCESS);
		(void)must_get_store("acct.access");
	}
	assert_true(rig_k.origins->list[0].worker.alive);
	send_tokens(origin, 1000, ORIGIN_ACCESS);
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->blamed[0].n_violations, 1);
}

static void the_user_can_have_it_otherwise(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/settings.conf", rig_dir);

	put_login();
	rig_bring_egress_up();
	cred_vault_up();
	assert_true(is_opened(1, AUTH));
	assert_int_equal(file_save(path, slice_from_str("credentials.oauth = false\n"), NULL), 0);
	rig_reload(97, "demo");
	RIG_UNTIL(!creds_find(rig_k.creds, AUTH, cred_port));
	assert_false(creds_has_host(rig_k.creds, AUTH));
}

static int down(void **state)
{
	fd_close(&pipe_fd);
	return cred_down(state);
}

#define TOKEN_TEST(f) cmocka_unit_test_setup_teardown(f, cred_up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOKEN_TEST(a_login_is_caught_though_nothing_is_set),
		TOKEN_TEST(tokens_become_the_sandboxes),
		TOKEN_TEST(a_refresh_breaks_nobody),
		TOKEN_TEST(a_vault_that_does_not_keep_it),
		TOKEN_TEST(a_token_that_is_kept_already),
		TOKEN_TEST(a_token_whose_change_comes_late),
		TOKEN_TEST(tokens_of_a_host_that_gives_none),
		TOKEN_TEST(too_many_tokens),
		TOKEN_TEST(the_user_can_have_it_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
