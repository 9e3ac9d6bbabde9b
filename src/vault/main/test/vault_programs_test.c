/* SPDX-License-Identifier: Apache-2.0 */
/* Values from other programs: docker-credential programs and commands. */
#include "vault_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

static const char *const by_file[] = {"--key=file", NULL};
static struct rig *r;
static int admin, keeper;
static char program[96], counter[96];

static int setup(void **state)
{
	r = rig_new(by_file);
	admin = rig_admin(r);
	keeper = rig_keeper(r, "s");
	(void)snprintf(program, sizeof(program), "%s/docker-credential-x", r->dir);
	(void)snprintf(counter, sizeof(counter), "%s/counter", r->dir);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&admin);
	fd_close(&keeper);
	rig_free(r);
	return 0;
}

/* Each call adds a byte to the counter. */
static void write_program(const char *body)
{
	AUTO_FREE char *text = xasprintf("#!/bin/sh\nprintf x >>%s\n%s\n", counter, body);

	assert_int_equal(file_save(program, slice_from_str(text), NULL), 0);
	assert_int_equal(chmod(program, 0700), 0);
}

static unsigned n_calls(void)
{
	struct stat st;

	return stat(counter, &st) == 0 ? (unsigned)st.st_size : 0;
}

static void assert_value(const char *name, const char *want)
{
	AUTO_FREE char *value = NULL;
	int code = rig_release(keeper, name, 0, &value, NULL);

	if (code < 0)
		fail_msg("%s", rig_text);
	assert_string_equal(value, want);
}

static void assert_fails(int want, const char *word)
{
	AUTO_FREE char *value = NULL;

	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), want);
	if (!strstr(rig_text, word))
		fail_msg("no \"%s\" in: %s", word, rig_text);
}

static void test_docker(void **state)
{
	AUTO_FREE char *value = NULL;
	struct vault_frame frame;

	write_program(
		"[ \"$*\" = get ] || exit 9\nread url\n"
		"[ \"$url\" = https://registry.example.com ] || exit 8\n"
		"printf '{\"ServerURL\":\"%s\",\"Username\":\"me\",\"Secret\":\"s3\\\\u0041\"}\\n' "
		"$url");
	assert_int_equal(rig_set_ref(admin, "a", VAULT_REF_DOCKER, program,
				 "https://registry.example.com", 600),
		0);
	assert_int_equal(n_calls(), 0);
	if (rig_release(keeper, "a", 0, &value, &frame) < 0)
		fail_msg("%s", rig_text);
	assert_string_equal(value, "s3A");
	assert_string_equal(frame.user, "me");
}

static void test_refresh(void **state)
{
	write_program("echo value $(wc -c <$0)");
	assert_int_equal(rig_set_ref(admin, "a", VAULT_REF_FIRST_LINE, program, NULL, 1), 0);
	assert_int_equal(rig_set_ref(admin, "each", VAULT_REF_WHOLE, program, NULL, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		AUTO_FREE char *value = NULL;

		assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	}
	assert_int_equal(n_calls(), 1);
	(void)usleep(1100000);
	AUTO_FREE char *value = NULL, *again = NULL;
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	assert_int_equal(n_calls(), 2);
	assert_int_equal(rig_release(keeper, "each", 0, &again, NULL), 0);
	free(TAKE(again));
	assert_int_equal(rig_release(keeper, "each", 0, &again, NULL), 0);
	assert_int_equal(n_calls(), 4);
}

static void test_failures(void **state)
{
	assert_int_equal(rig_set_ref(admin, "a", VAULT_REF_FIRST_LINE, program, NULL, 60), 0);
	assert_fails(-ENOENT, "cannot start the program");
	write_program("echo half a value; exit 3");
	assert_fails(-EIO, "status 3");
	write_program("kill -9 $$");
	assert_fails(-EIO, "killed");
	write_program("exit 0");
	assert_fails(-EBADMSG, "no value");
	write_program("head -c 400000 /dev/zero | tr '\\0' x");
	assert_fails(-EMSGSIZE, "output is too large");
	/* after all that it works */
	write_program("echo good");
	assert_value("a", "good");
}

/* Many wait for one call. */
static void test_one_call_for_many(void **state)
{
	static struct vault_item items[RIG_MAX_ITEMS];
	struct vault_done done;
	int fds[12][2];

	write_program("sleep 0.5; echo shared");
	assert_int_equal(rig_set_ref(admin, "a", VAULT_REF_FIRST_LINE, program, NULL, 60), 0);
	assert_int_equal(rig_list(keeper, items), 1);
	for (uint32_t i = 0; i < ARRAY_LEN(fds); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
		assert_int_equal(vault_ask_release(keeper, i, "a", items[0].serial, fds[i][1]), 0);
		(void)close(fds[i][1]);
	}
	for (uint32_t i = 0; i < ARRAY_LEN(fds); i++) {
		rig_done(keeper, i, &done);
		assert_int_equal(done.code, 0);
		(void)close(fds[i][0]);
	}
	assert_int_equal(n_calls(), 1);
}

/* Removed or replaced while it is fetched: it is not released. */
static void test_removed_while_it_is_fetched(void **state)
{
	static struct vault_item items[RIG_MAX_ITEMS];
	struct vault_done done;
	char byte;
	int fds[2];

	for (unsigned i = 0; i < 2; i++) {
		write_program("sleep 0.7; echo late");
		assert_int_equal(
			rig_set_ref(admin, "a", VAULT_REF_FIRST_LINE, program, NULL, 60), 0);
		assert_int_equal(rig_list(keeper, items), 1);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		assert_int_equal(vault_ask_release(keeper, 7, "a", items[0].serial, fds[1]), 0);
		(void)close(fds[1]);
		(void)usleep(200000);
		if (i == 0)
			assert_int_equal(rig_remove(admin, "a", ""), 0);
		else
			assert_int_equal(rig_set_str(admin, "a", "", "another"), 0);
		rig_done(keeper, 7, &done);
		assert_int_equal(done.code, -ECANCELED);
		(void)usleep(800000);
		assert_int_equal(read(fds[0], &byte, 1), 0);
		(void)close(fds[0]);
	}
	assert_value("a", "another");
}

/* Its environment is clean, it inherits no descriptor, and stderr is discarded. */
static void test_what_a_program_gets(void **state)
{
	AUTO_FREE char *value = NULL, *log = NULL;

	write_program("echo complaint-with-a-secret >&2\n"
		      "env | grep -c CANARY_OF_THE_ENVIRONMENT\nls /proc/self/fd | wc -l\npwd");
	assert_int_equal(rig_set_ref(admin, "a", VAULT_REF_WHOLE, program, NULL, 60), 0);
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	assert_string_equal(value, "0\n4\n/"); /* 0, 1, 2 and the descriptor that ls opens */
	log = rig_log(r);
	assert_null(strstr(log, "complaint-with-a-secret"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_docker),
		TEST(test_refresh),
		TEST(test_failures),
		TEST(test_one_call_for_many),
		TEST(test_removed_while_it_is_fetched),
		TEST(test_what_a_program_gets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
