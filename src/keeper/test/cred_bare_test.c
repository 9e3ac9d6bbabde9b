/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that are intercepted without a credential, and what changes that while a sandbox runs. */
#include "cred_rig.h"

#include <stdio.h>
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
