/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/rules/audit/audit_crypto_internal.h"

static char dir[] = "/tmp/audit_crypto_test.XXXXXX";

static int make_dir(void **state)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	return system(rm);
}

static struct audit_key *must_load(void)
{
	struct audit_key *k = NULL;
	struct err err = {0};

	if (audit_key_load(dir, &k, &err) < 0)
		fail_msg("%s", err.text);
	return k;
}

static void hash_is_sha256(void **state)
{
	struct audit_hash h;
	uint8_t got[AUDIT_HASH_LEN];
	char hex[2 * AUDIT_HASH_LEN + 1] = "";

	audit_hash_init(&h);
	for (int i = 0; i < 2; i++) {
		audit_hash_of(&h, slice_from_str("abc"), got);
		hex_encode(got, sizeof(got), hex);
		assert_string_equal(
			hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	}
	audit_hash_done(&h);
}

static void a_signature_is_good_for_its_bytes_and_key_only(void **state)
{
	uint8_t seed[AUDIT_KEY_LEN] = {1}, other[AUDIT_KEY_LEN] = {2}, sig[AUDIT_SIG_LEN];
	struct audit_pub pub, wrong;
	struct slice text = slice_from_str("{\"seq\":1");

	assert_int_equal(audit_seed_pub(seed, &pub), 0);
	assert_int_equal(audit_seed_pub(other, &wrong), 0);
	assert_int_equal(audit_seed_sign(seed, text, sig), 0);
	assert_int_equal(audit_check(&pub, text, sig), 0);
	assert_int_equal(audit_check(&wrong, text, sig), -EBADMSG);
	assert_int_equal(audit_check(&pub, slice_from_str("{\"seq\":2"), sig), -EBADMSG);
	for (size_t i = 0; i < 8 * sizeof(sig); i++) {
		sig[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(audit_check(&pub, text, sig), -EBADMSG);
		sig[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

static void the_key_is_made_once_and_only_for_its_owner(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/key", dir);
	struct audit_key *a = must_load(), *b = must_load();
	struct audit_pub pub;
	struct stat st;

	assert_memory_equal(audit_key_pub(a), audit_key_pub(b), sizeof(struct audit_pub));
	assert_int_equal(audit_pub_load(dir, &pub, NULL), 0);
	assert_memory_equal(audit_key_pub(a), &pub, sizeof(pub));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_size, AUDIT_KEY_LEN);
	audit_key_free(a);
	audit_key_free(b);
}

/* The supervisor of hidden names is a fork of the keeper, and reads what a guest chose. */
static void a_child_need_not_have_the_key(void **state)
{
	struct audit_key *k = must_load();
	uint8_t sig[AUDIT_SIG_LEN];
	int status;
	pid_t pid;

	audit_key_keep_from_children(k);
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = {0};

		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
		(void)!audit_sign(k, slice_from_str("x"), sig);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	assert_int_equal(audit_sign(k, slice_from_str("x"), sig), 0);
	audit_key_free(k);
}

static void many_makers_agree_on_one_key(void **state)
{
	struct audit_pub pub;

	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			struct audit_key *k = NULL;
			int r = audit_key_load(dir, &k, NULL);

			audit_key_free(k);
			_exit(r < 0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(audit_pub_load(dir, &pub, NULL), 0);
	audit_key_free(must_load());
}

static void a_key_that_others_can_read_is_refused(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/key", dir);
	struct audit_key *k = NULL;
	struct err err = {0};

	audit_key_free(must_load());
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(audit_key_load(dir, &k, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 600"));
}

static void a_lost_key_is_not_replaced(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/key", dir);
	struct audit_key *k = NULL;

	audit_key_free(must_load());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(audit_key_load(dir, &k, NULL), -ENOKEY);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_damaged_or_exchanged_key_is_refused(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/key", dir);
	struct audit_key *k = NULL;

	audit_key_free(must_load());
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(audit_key_load(dir, &k, NULL), -EBADMSG);
	assert_int_equal(truncate(path, 32), 0);
	assert_int_equal(audit_key_load(dir, &k, NULL), -EBADMSG);
	assert_int_equal(truncate(path, 33), 0);
	assert_int_equal(audit_key_load(dir, &k, NULL), -EBADMSG);
}

static void without_a_key_there_is_no_public_one(void **state)
{
	struct audit_pub pub;
	struct err err = {0};

	assert_int_equal(audit_pub_load(dir, &pub, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no audit key"));
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_sha256),
		cmocka_unit_test(a_signature_is_good_for_its_bytes_and_key_only),
		IN_DIR(the_key_is_made_once_and_only_for_its_owner),
		IN_DIR(a_child_need_not_have_the_key),
		IN_DIR(many_makers_agree_on_one_key),
		IN_DIR(a_key_that_others_can_read_is_refused),
		IN_DIR(a_lost_key_is_not_replaced),
		IN_DIR(a_damaged_or_exchanged_key_is_refused),
		IN_DIR(without_a_key_there_is_no_public_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
