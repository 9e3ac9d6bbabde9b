/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c with a false supervisor: what it records, lists and tells the guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/keeper/keeper.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static struct keeper k;
static struct guard guard;
static struct denied denied;
static struct spec_workspace workspaces[] = {{.host = (char *)"/w"}, {.host = (char *)"/w/in"}};
static int supervisor = -1;
static char dir[] = "/tmp/guard_test.XXXXXX";
static char *list;

/* Replace record.c and hands.c. */
static unsigned n_records;
static struct audit_event last;
static char op[512], reason[512];

void record_decision(struct keeper *keeper, const struct audit_event *ev)
{
	n_records++;
	last = *ev;
	(void)snprintf(op, sizeof(op), "%.*s", (int)ev->op.n, (const char *)ev->op.p);
	(void)snprintf(
		reason, sizeof(reason), "%.*s", (int)ev->reason.n, (const char *)ev->reason.p);
}

const struct spec_workspace *hands_nth_mount(const struct keeper *keeper, size_t i)
{
	return &workspaces[i];
}

int ask_guest(struct keeper *keeper, const struct ask_kind *kind, struct slice text,
	uint32_t timeout_ms, int link, uint32_t link_msg)
{
	return 0;
}

static int set_up(void **state)
{
	AUTO_FREE char *sub = xasprintf("%s/guard", dir);

	(void)mkdir(sub, 0700);
	list = xasprintf("%s/denied", sub);
	(void)unlink(list);
	guard = (struct guard){0};
	denied = (struct denied){0};
	k = (struct keeper){.guard = &guard,
		.denied = &denied,
		.dir = dir,
		.share = SHARE_EMPTY,
		.spec = {.name = "demo", .workspaces = workspaces, .n_workspaces = 2}};
	n_records = 0;
	assert_int_equal(loop_init(&k.loop), 0);
	guard_init(&k);
	assert_int_equal(guard_open(&k, &supervisor, NULL), 0);
	assert_true(supervisor >= 0);
	assert_int_equal(guard_watch(&k), 0);
	return 0;
}

static int tear_down(void **state)
{
	guard_drop(&k);
	autorun_free(&guard.list);
	for (size_t i = 0; i < denied.n; i++)
		free(denied.texts[i]);
	fd_close(&supervisor);
	loop_done(&k.loop);
	free(list);
	return 0;
}

static void send_event(enum guard_what what, unsigned kind, const char *path, const char *why)
{
	struct guard_event e = {.what = what, .op = DIRTY_CREATE, .kind = kind};

	(void)snprintf(e.path, sizeof(e.path), "%s", path);
	(void)snprintf(e.reason, sizeof(e.reason), "%s", why);
	assert_int_equal(send(supervisor, &e, sizeof(e), 0), sizeof(e));
	guard_on_event(&k);
}

static size_t n_rows(struct dirty_row *ret)
{
	AUTO_FREE char *text = NULL;
	struct slice rest = {0};
	size_t n = 0;

	if (file_load(list, 1 << 20, &text, &rest.n, NULL) < 0)
		return 0;
	rest.p = (const uint8_t *)text;
	while (dirty_next(&rest, ret))
		n++;
	return n;
}

static void a_denied_write_is_recorded_listed_and_told(void **state)
{
	static struct dirty_row row;

	send_event(GUARD_DENIED, 1, "/w/in/.git/hooks/pre-commit", "");
	assert_int_equal(n_records, 1);
	assert_int_equal(last.decision, AUDIT_DENY);
	assert_string_equal(op, "create .git/hooks/pre-commit");
	assert_string_equal(reason, "git runs it");
	assert_int_equal(n_rows(&row), 1);
	assert_string_equal(row.mount, "/w/in");
	assert_string_equal(row.path, ".git/hooks/pre-commit");
	assert_int_equal(row.state, DIRTY_DENIED);
	assert_int_equal(denied.n, 1);
	assert_string_equal(denied.texts[0],
		"Blocked by the guard: .git/hooks/pre-commit\n"
		"  reason:  git runs it on the host\n"
		"  allow:   sbx update demo --guard-except .git/hooks/pre-commit && sbx restart demo     (run on the host)\n");
}

/* A name that a shell or a pattern would change is not put into a command. */
static void a_strange_name_is_in_no_command(void **state)
{
	static const char *const names[] = {"/w/a b.desktop", "/w/$(x).desktop", "/w/*.desktop",
		"/w/-x.desktop", "/w/a/../.envrc"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		send_event(GUARD_DENIED, 60, names[i], "");
		assert_non_null(strstr(denied.texts[i],
			"  allow:   sbx update demo --guard report && sbx restart demo     "));
	}
}

static void a_denied_key_is_named(void **state)
{
	static struct dirty_row row;

	send_event(GUARD_DENIED, 2, "/w/.git/config", "core.fsmonitor");
	assert_string_equal(reason, "git runs it: core.fsmonitor");
	assert_int_equal(n_rows(&row), 1);
	assert_string_equal(row.detail, "core.fsmonitor");
}

static void a_reported_change_is_only_recorded(void **state)
{
	static struct dirty_row row;

	send_event(GUARD_REPORTED, 42, "/w/Makefile", "");
	assert_int_equal(n_records, 1);
	assert_int_equal(last.decision, AUDIT_ALLOW);
	assert_string_equal(reason, "make runs it");
	assert_int_equal(n_rows(&row), 0);
	assert_int_equal(denied.n, 0);
}

/* A guest that tries a million times gets a few records, and the rest is counted. */
static void a_flood_is_counted(void **state)
{
	static struct dirty_row row;

	for (unsigned i = 0; i < 2000; i++)
		send_event(GUARD_DENIED, 15, "/w/.envrc", "");
	assert_in_range(n_records, GUARD_BURST, GUARD_BURST + 50);
	assert_in_range(guard.n_lost, 1000, 2000);
	assert_in_range(n_rows(&row), 1, 3);
	guard.bucket = bucket_init(1, 0);
	send_event(GUARD_DENIED, 15, "/w/.envrc", "");
	assert_in_range(last.count, 1000, 2001);
	assert_int_equal(guard.n_lost, 0);
}

static void a_name_is_never_a_line(void **state)
{
	send_event(GUARD_DENIED, 1, "/w/x\nBlocked by network policy: a.example/.git/hooks/a", "");
	assert_int_equal(denied.n, 1);
	assert_null(strstr(denied.texts[0], "\nBlocked"));
}

static void a_malformed_event_is_counted_and_nothing_else(void **state)
{
	struct guard_event bad[] = {
		{.what = GUARD_N_WHATS, .path = "/w/a"},
		{.op = DIRTY_N_OPS, .path = "/w/a"},
		{.kind = DIRTY_MAX_KIND + 1, .path = "/w/a"},
		{.path = ""},
		{.path = "/w/a"},
		{.path = "/w/a"},
	};
	char large[sizeof(bad[0]) + 1] = {0};

	memset(bad[4].path, '/', sizeof(bad[4].path));
	memset(bad[5].reason, 'x', sizeof(bad[5].reason));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(send(supervisor, &bad[i], sizeof(bad[i]), 0), sizeof(bad[i]));
	assert_int_equal(send(supervisor, large, sizeof(large), 0), sizeof(large));
	assert_int_equal(send(supervisor, large, 5, 0), 5);
	guard_on_event(&k);
	assert_int_equal(n_records, 0);
	assert_int_equal(guard.n_lost, ARRAY_LEN(bad) + 2);
}

static void the_end_of_the_supervisor_is_the_end_of_events(void **state)
{
	fd_close(&supervisor);
	guard_on_event(&k);
	assert_int_equal(guard.fd, -1);
}

static void without_a_guard_there_is_no_socket(void **state)
{
	int fd = 0;

	k.spec.guard = SPEC_GUARD_OFF;
	guard_drop(&k);
	assert_int_equal(guard_open(&k, &fd, NULL), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(guard_watch(&k), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_denied_write_is_recorded_listed_and_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_denied_key_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_strange_name_is_in_no_command, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_reported_change_is_only_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flood_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_is_never_a_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_malformed_event_is_counted_and_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_end_of_the_supervisor_is_the_end_of_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			without_a_guard_there_is_no_socket, set_up, tear_down),
	};
	int r;

	assert_non_null(mkdtemp(dir));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir(dir) == 0) {
		(void)unlink("guard/denied");
		(void)rmdir("guard");
		(void)rmdir(dir);
	}
	return r;
}
