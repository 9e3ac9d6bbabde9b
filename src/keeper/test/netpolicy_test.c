/* SPDX-License-Identifier: Apache-2.0 */
/* Policy, settings and audit log of a running keeper. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/test/policy_text.h"
#include "net_rig.h"

static struct keeper_done must_be_done(uint32_t id)
{
	struct keeper_done done;

	rig_must_get(rig_sbxd, KEEPER_DONE);
	assert_int_equal(rig_msg.id, id);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	return done;
}

static void a_reload_counts_when_egress_has_it(void **state)
{
	char text[4096] = "";
	uint8_t part = 0;

	rig_bring_egress_up();
	rig_set_policy("allow network other.example for sandbox renamed\n");
	rig_reload(9, "renamed");
	rig_must_get(rig_egress, EGRESS_CONFIG);
	rig_must_get(rig_egress, EGRESS_DIRECT);
	rig_must_get(rig_egress, EGRESS_RESOLVER);
	rig_must_get(rig_egress, EGRESS_LOCALS);
	for (unsigned i = 0; i < POLICY_N_PARTS; i++)
		rig_must_get(rig_egress, EGRESS_POLICY);
	assert_int_equal(egress_get_policy(&rig_msg, &part), 0);
	assert_int_equal(part, POLICY_OWN);
	assert_true(pread(rig_msg.fd, text, sizeof(text), 0) > 0);
	assert_non_null(memmem(text, sizeof(text), "other.example", 13));
	/* Read-only, and it cannot be reopened for writing. */
	assert_int_equal(write(rig_msg.fd, "x", 1), -1);
	assert_true(fcntl(rig_msg.fd, F_GET_SEALS) & F_SEAL_WRITE);
	rig_must_be_quiet(rig_sbxd);
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, ""), 0);
	assert_int_equal(must_be_done(9).code, 0);
	rig_ask(1, EDGE_ASK_DNS, "other.example", 0);
	assert_true(rig_must_answer(1));
	assert_string_equal(rig_verdict.sandbox, "renamed");
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(2));
}

static void a_broken_policy_denies_and_the_reload_says_so(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/policy", rig_dir);
	struct keeper_done done;

	assert_int_equal(file_save(path, slice_from_str("policy 1\nallow network **\n"), NULL), 0);
	rig_reload(1, "demo");
	done = must_be_done(1); /* no egress: no wait */
	assert_int_equal(done.code, 0);
	assert_true(strlen(done.text) > 10);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(1));
	assert_int_equal(unlink(path), 0);
	rig_reload(2, "demo");
	done = must_be_done(2);
	assert_int_equal(done.code, 0);
	assert_non_null(strstr(done.text, "no network policy is set"));
	rig_set_policy("allow network good.example\n");
	rig_reload(3, "demo");
	done = must_be_done(3);
	assert_string_equal(done.text, "");
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
}

/* sbxd could not make the tables, or was killed before it sent them. */
static void a_reload_without_tables_denies_everything(void **state)
{
	rig_bring_egress_up();
	assert_int_equal(keeper_ask_reload(rig_sbxd, 3, "demo"), 0);
	rig_must_get(rig_egress, EGRESS_CONFIG);
	rig_must_get(rig_egress, EGRESS_DIRECT);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(1));
	rig_must_get(rig_egress, EGRESS_RESOLVER);
	rig_must_get(rig_egress, EGRESS_LOCALS);
	for (unsigned i = 0; i < POLICY_N_PARTS; i++) {
		struct stat st;

		rig_must_get(rig_egress, EGRESS_POLICY);
		assert_int_equal(fstat(rig_msg.fd, &st), 0);
		assert_int_equal(st.st_size, 0);
	}
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, "empty"), 0);
	assert_string_equal(must_be_done(3).text, "empty");
	rig_reload(2, "demo");
	rig_must_get(rig_egress, EGRESS_CONFIG);
	rig_must_get(rig_egress, EGRESS_DIRECT);
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
}

/* Killed in the middle: what was in effect stays until a RELOAD. */
static void half_a_policy_changes_nothing(void **state)
{
	int files[POLICY_N_PARTS];

	policy_text_files(slice_from_str("policy 1\nend\n"), "x", "demo", files);
	assert_int_equal(keeper_send_policy(rig_sbxd, 5, POLICY_ALL, files[POLICY_ALL]), 0);
	(void)rig_run_until(-1, 20);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(1));
	/* The second part of another policy violates the protocol. */
	assert_int_equal(keeper_send_policy(rig_sbxd, 6, POLICY_OWN, files[POLICY_OWN]), 0);
	(void)rig_run_until(-1, 20);
	assert_true(rig_k.links[0].fd < 0);
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
}

static void rules_for_all_do_not_open_a_closed_sandbox(void **state)
{
	rig_k.spec.n_only = 1;
	rig_reload(1, "demo");
	assert_int_equal(must_be_done(1).code, 0);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(1));
	rig_k.spec.n_only = 0;
}

static void an_egress_that_does_not_load_is_killed(void **state)
{
	AUTO_CLOSE int a = -1, b = -1;

	rig_bring_egress_up();
	(void)rig_must_open(1, &a, &b);
	rig_reload(1, "demo");
	rig_must_be_quiet(rig_sbxd);
	assert_int_equal(must_be_done(1).code, 0);
	assert_false(rig_k.egress->worker.alive);
	assert_int_equal(rig_k.egress->worker.violations, 0);
	assert_int_equal(rig_k.net->n_free, EGRESS_MAX_OPEN);
}

static void broken_settings_keep_the_old_ones(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/settings.conf", rig_dir);
	static struct egress_config config;

	assert_int_equal(
		file_save(path, slice_from_str("network.connect-to = a.example:1=127.0.0.1:2\n"),
			NULL),
		0);
	rig_reload(1, "demo");
	assert_int_equal(must_be_done(1).code, 0);
	assert_int_equal(file_save(path, slice_from_str("network.connect-to = a\n"), NULL), 0);
	rig_reload(2, "demo");
	assert_true(must_be_done(2).code < 0);
	rig_put_egress();
	assert_int_equal(chan_send_hello(rig_egress, SBX_BUILD), 0);
	rig_must_get(rig_egress, EGRESS_CONFIG);
	assert_int_equal(egress_get_config(&rig_msg, &config), 0);
	rig_must_get(rig_egress, EGRESS_DIRECT);
	assert_int_equal(config.n_pins, 1);
	assert_string_equal(config.pins[0].host, "a.example");
}

static void a_full_disk_refuses_and_the_sandbox_lives_on(void **state)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(1));
	assert_non_null(strstr(rig_verdict.reason, "cannot write the audit log"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
}

static void a_log_that_is_taken_is_tried_again(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/audit", rig_dir);
	struct audit_options o = {
		.dir = path, .sandbox = RIG_ID, .name = "demo", .key = rig_k.record->key};
	struct audit *other = NULL;

	(void)audit_close(TAKE(rig_k.record->audit), NULL);
	assert_int_equal(audit_open(&o, &other, NULL), 0);
	rig_k.record->tried_ms = 0;
	record_check(&rig_k);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(1));
	assert_non_null(strstr(rig_verdict.reason, "another process is writing"));
	(void)audit_close(other, NULL);
	rig_k.record->tried_ms -= KEEPER_RECORD_MS;
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
}

static void set_max_size(const char *value, uint32_t id)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/settings.conf", rig_dir);
	AUTO_FREE char *line = xasprintf("audit.max-size = %s\n", value);

	assert_int_equal(file_save(path, slice_from_str(line), NULL), 0);
	rig_reload(id, "demo");
	assert_int_equal(must_be_done(id).code, 0);
}

static void a_reload_counts_for_the_reserve_of_the_disk(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/settings.conf", rig_dir);

	assert_int_equal(rig_k.disk_reserve, 256ull << 20); /* default */
	assert_int_equal(file_save(path, slice_from_str("disk.reserve = 2g\n"), NULL), 0);
	rig_reload(1, "demo");
	assert_int_equal(must_be_done(1).code, 0);
	assert_int_equal(rig_k.disk_reserve, 2ull << 30);
}

static void a_guest_that_asks_without_end_cannot_fill_the_disk(void **state)
{
	uint32_t id = 0;

	assert_int_equal(rig_k.record->max_bytes, 1ull << 30); /* default */
	set_max_size("1m", 1);
	do {
		rig_ask(++id, EDGE_ASK_DNS, "bad.example", 0);
		assert_false(rig_must_answer(id));
	} while (!strstr(rig_verdict.reason, "audit.max-size") && id < 20000);
	assert_true(id > 1000 && id < 20000);
	assert_non_null(strstr(rig_verdict.reason, "sbx settings set audit.max-size 2m"));
	assert_string_equal(rig_last_record().reason,
		"the log has reached audit.max-size (1 MiB): further requests are denied without a record");
	rig_ask(++id, EDGE_ASK_DNS, "good.example", 0);
	assert_false(rig_must_answer(id));
	record_life(&rig_k, "stop", "as the user said");
	assert_string_equal(rig_last_record().reason, "as the user said");
	/* The suggested command takes effect immediately. */
	set_max_size("2m", 2);
	rig_ask(++id, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_reload_counts_when_egress_has_it),
		RIG_TEST(a_reload_counts_for_the_reserve_of_the_disk),
		RIG_TEST(a_broken_policy_denies_and_the_reload_says_so),
		RIG_TEST(a_reload_without_tables_denies_everything),
		RIG_TEST(half_a_policy_changes_nothing),
		RIG_TEST(rules_for_all_do_not_open_a_closed_sandbox),
		RIG_TEST(an_egress_that_does_not_load_is_killed),
		RIG_TEST(broken_settings_keep_the_old_ones),
		RIG_TEST(a_full_disk_refuses_and_the_sandbox_lives_on),
		RIG_TEST(a_log_that_is_taken_is_tried_again),
		RIG_TEST(a_guest_that_asks_without_end_cannot_fill_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
