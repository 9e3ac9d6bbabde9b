/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that are intercepted without a credential, and what changes that while a sandbox runs. */
#include "cred_rig.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/secret/service/own.h"

#define MODEL "api.model.example"
#define FORGE "code.forge.example"

static void put_service(const char *name, const char *host, const char *more)
{
	AUTO_FREE char *path = xasprintf("%s/services/%s.conf", rig_dir, name);
	AUTO_FREE char *text = xasprintf("service 1\nname %s\nabout A test\nslot api\nhost %s:%u\n"
					 "header authorization Bearer %%s\n%send\n",
		name, host, cred_port, more);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

static int up(void **state)
{
	int r = cred_up(state);
	AUTO_FREE char *rules = xasprintf("allow network " MODEL ":1-65535\n"
					  "allow network " FORGE ":1-65535\n");

	put_service("model", MODEL, "intercept always\n");
	put_service("forge", FORGE, "");
	rig_set_policy(rules);
	rig_reload(98, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
	cred_n_items = 0;
	return r;
}

static void save_own(const char *list)
{
	AUTO_FREE char *dir = spec_dir(rig_k.spec.id);

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(own_save(dir, list, NULL), 0);
}

static void permit(const char *list)
{
	save_own(list);
	vault_set_rules(&rig_k, true, rig_k.vault->all);
}

/* 'o': intercepted, 't': a tunnel, 'n': denied. */
static char look_at(uint32_t id, const char *host, uint16_t port)
{
	rig_ask(id, EDGE_ASK_TUNNEL, host, port);
	if (rig_run_until(rig_egress, 100))
		rig_must_get(rig_egress, EGRESS_OPEN);
	if (!rig_must_answer(id))
		return 'n';
	return rig_verdict.opened ? 'o' : 't';
}

static char look(uint32_t id, const char *host)
{
	return look_at(id, host, cred_port);
}

/* This user has never stored a credential: nothing else is denied while the vault is down. */
static void a_model_api_is_no_tunnel_before_the_vault_answers(void **state)
{
	rig_bring_egress_up();
	assert_int_equal(look(1, MODEL), 'n');
	assert_non_null(strstr(
		rig_verdict.reason, "cannot use credential model: the vault is not available"));
	assert_int_equal(look(2, FORGE), 't');
	rig_k.vault->all = true;
	assert_int_equal(look(3, FORGE), 'n');
	permit("forge\nmodel\n");
	assert_int_equal(look(4, MODEL), 't');
	assert_int_equal(look(5, FORGE), 't');
}

static void a_model_api_is_opened_without_a_credential(void **state)
{
	struct origin_config config;

	rig_bring_egress_up();
	cred_vault_up();
	assert_int_equal(look(1, MODEL), 'o');
	assert_int_equal(look(2, FORGE), 't');
	cred_ask(3, MODEL, "POST");
	assert_true(rig_must_answer(3));
	assert_int_equal(chan_send_hello(cred_origins[0], SBX_BUILD), 0);
	rig_must_get(cred_origins[0], ORIGIN_CONFIG);
	assert_int_equal(origin_get_config(&rig_msg, &config), 0);
	assert_int_equal(config.has, 0);
	assert_string_equal(config.sandbox, "demo");
	rig_ask(4, EDGE_ASK_HTTP, MODEL, 80); /* nor around it */
	assert_false(rig_must_answer(4));
}

/* Front ends of vendors answer on several ports (8443, 2053). A port that the service file does not
 * name must not bypass interception, not even before the vault has answered. */
static void no_other_port_leads_around_a_model_api(void **state)
{
	uint16_t port = cred_port == 8443 ? 2053 : 8443;

	rig_bring_egress_up();
	assert_int_equal(look_at(1, MODEL, port), 'n');
	rig_ask(2, EDGE_ASK_HTTP, MODEL, 80);
	assert_false(rig_must_answer(2));
	assert_int_equal(look_at(3, FORGE, port), 't');
	cred_vault_up();
	assert_int_equal(look_at(4, MODEL, port), 'n');
	assert_non_null(strstr(rig_verdict.reason, "cannot be on this port"));
	assert_int_equal(look_at(5, FORGE, 22), 't');
	permit("model\n");
	assert_int_equal(look_at(6, MODEL, port), 't');
}

static void what_the_user_permits_counts_at_once(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	cred_ask(1, MODEL, "POST");
	assert_true(rig_must_answer(1));
	assert_true(rig_k.origins->list[0].worker.alive);
	permit("model\n");
	assert_false(rig_k.origins->list[0].worker.alive);
	assert_int_equal(look(2, MODEL), 't');
	cred_ask(3, MODEL, "POST"); /* in a connection that was intercepted before */
	assert_false(rig_must_answer(3));
	permit("");
	assert_int_equal(look(4, MODEL), 'o');
	/* also while the vault is down: a host that is no longer permitted is not tunneled */
	permit("model\n");
	fd_close(&cred_vault);
	RIG_UNTIL(rig_k.vault->sock < 0);
	assert_int_equal(look(5, MODEL), 't');
	permit("");
	assert_int_equal(look(6, MODEL), 'n');
}

static void a_list_that_cannot_be_read_permits_nothing(void **state)
{
	AUTO_FREE char *dir = spec_dir(rig_k.spec.id), *path = xasprintf("%s/" OWN_FILE, dir);

	rig_bring_egress_up();
	cred_vault_up();
	permit("model\n");
	assert_int_equal(look(1, MODEL), 't');
	assert_int_equal(file_save(path, slice_of("model\n\0", 7), NULL), 0);
	vault_set_rules(&rig_k, true, false);
	assert_int_equal(look(2, MODEL), 'o');
}

static void the_setting_and_the_list_are_read_on_reload(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/settings.conf", rig_dir);

	rig_bring_egress_up();
	cred_vault_up();
	assert_int_equal(
		file_save(path, slice_from_str("credentials.intercept = true\n"), NULL), 0);
	save_own("model\n");
	rig_reload(97, "demo");
	RIG_UNTIL(creds_find(rig_k.creds, FORGE, cred_port));
	assert_null(creds_find(rig_k.creds, MODEL, cred_port));
	assert_int_equal(
		file_save(path, slice_from_str("credentials.intercept = false\n"), NULL), 0);
	save_own("");
	rig_reload(98, "demo");
	RIG_UNTIL(creds_find(rig_k.creds, MODEL, cred_port));
	assert_null(creds_find(rig_k.creds, FORGE, cred_port));
}

/* A build has no credential; a key in its files is denied as well. */
static void a_closed_sandbox_is_no_exception(void **state)
{
	rig_bring_egress_up();
	(void)cred_add_item("demo", CRED_SERIAL);
	rig_k.spec.n_only = 1;
	cred_vault_up();
	assert_null(creds_find(rig_k.creds, CRED_HOST, cred_port));
	assert_int_equal(creds_find(rig_k.creds, MODEL, cred_port)->has, 0);
	rig_k.spec.n_only = 0;
}

#define BARE_TEST(f) cmocka_unit_test_setup_teardown(f, up, cred_down)

/* ---- the channel between edge and origin ---- */

static void all_requests_share_one_channel(void **state)
{
	struct cred_run run = cred_run_up();
	uint32_t stream = rig_verdict.stream, channel = rig_verdict.channel;
	int none;

	for (uint32_t i = 1; i < 20; i++) {
		assert_int_equal(cred_must_open(i), -1);
		assert_int_equal(rig_verdict.channel, channel);
		assert_true(rig_verdict.stream != stream);
		assert_true(rig_verdict.stream > 0 && rig_verdict.stream <= 0xffffff);
		stream = rig_verdict.stream;
		/* it was sent before the VERDICT */
		assert_true(rig_has_next(run.origin, ORIGIN_OPEN));
		assert_int_equal(cred_must_get_open(run.origin, &none), stream);
		assert_int_equal(none, -1);
	}
	cred_run_down(&run);
}

/* Edge was restarted: another channel, which comes before its first OPEN. */
static void a_new_edge_gets_a_new_channel(void **state)
{
	struct cred_run run = cred_run_up();
	uint32_t old = rig_verdict.channel;
	char none;

	edge_kill(&rig_k);
	rig_put_edge(EDGE_PHASE_RUN);
	fd_close(&run.edge_fd);
	assert_int_equal(recv(run.origin_fd, &none, 1, 0), 0);
	run.edge_fd = cred_must_open(2);
	assert_true(run.edge_fd >= 0 && rig_verdict.channel != old);
	rig_must_get(run.origin, ORIGIN_CHANNEL);
	fd_close(&run.origin_fd);
	run.origin_fd = TAKE_FD(rig_msg.fd);
	rig_must_get(run.origin, ORIGIN_OPEN);
	assert_int_equal(rig_msg.id, rig_verdict.stream);
	assert_int_equal(write(run.edge_fd, "x", 1), 1);
	assert_int_equal(recv(run.origin_fd, &none, 1, 0), 1);
	assert_int_equal(cred_n_origins, 1);
	cred_run_down(&run);
}

/* An origin that has not started would give the tickets of the old edge to the new one. */
static void an_origin_that_starts_ends_with_its_edge(void **state)
{
	int fd;

	cred_vault_up();
	rig_bring_egress_up();
	fd = cred_must_open(1);
	assert_true(rig_k.origins->list[0].worker.alive);
	edge_kill(&rig_k);
	assert_false(rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->n_blamed, 0);
	assert_non_null(strstr(cred_last_use().reason, "sbx-edge has exited"));
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BARE_TEST(a_model_api_is_no_tunnel_before_the_vault_answers),
		BARE_TEST(a_model_api_is_opened_without_a_credential),
		BARE_TEST(no_other_port_leads_around_a_model_api),
		BARE_TEST(what_the_user_permits_counts_at_once),
		BARE_TEST(a_list_that_cannot_be_read_permits_nothing),
		BARE_TEST(the_setting_and_the_list_are_read_on_reload),
		BARE_TEST(a_closed_sandbox_is_no_exception),
		cmocka_unit_test_setup_teardown(all_requests_share_one_channel, cred_up, cred_down),
		cmocka_unit_test_setup_teardown(a_new_edge_gets_a_new_channel, cred_up, cred_down),
		cmocka_unit_test_setup_teardown(
			an_origin_that_starts_ends_with_its_edge, cred_up, cred_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
