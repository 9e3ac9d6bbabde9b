/* SPDX-License-Identifier: Apache-2.0 */
/* Everything is below a directory that represents the guest's root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/guest/trust/certname.h"
#include "src/guest/base/file.h"
#include "src/guest/trust/jks.h"
#include "src/guest/trust/trust.h"
#include "lib/base/mem.h"
#include "lib/secret/mint/mint.h"

#define OTHER "# other\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
#define LOCAL "/usr/local/share/ca-certificates/sbx.crt"

static char root[] = "/tmp/sbx-trust-test-XXXXXX";
static struct mint *mints[2];
static char *cas[2];
static uint32_t hashes[2];

static char *read_below(const char *path)
{
	AUTO_FREE char *full = xasprintf("%s%s", root, path);
	char *text = NULL;

	return file_read(full, &text) < 0 ? NULL : text;
}

static void put_below(const char *path, struct slice bytes)
{
	AUTO_FREE char *full = xasprintf("%s%s", root, path);
	struct err err;

	assert_int_equal(file_make_parents(full, &err), 0);
	assert_int_equal(file_replace_bytes(full, bytes, &err), 0);
}

static bool exists(const char *path)
{
	AUTO_FREE char *full = xasprintf("%s%s", root, path);
	struct stat st;

	return lstat(full, &st) == 0;
}

static bool is_hashed(unsigned which, unsigned slot)
{
	AUTO_FREE char *path = xasprintf("/etc/ssl/certs/%08x.%u", hashes[which], slot);

	return exists(path);
}

static void apply(const char *ca, char **env, size_t n_env)
{
	struct guest_trust t = {.ca_pem = (char *)ca, .env = env, .n_env = n_env};
	struct err err = {0};

	if (trust_write(root, &t, &err) < 0)
		fail_msg("%s", err.text);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *p = text; p && (p = strstr(p, part)); p++)
		n++;
	return n;
}

static void must_be_trusted(unsigned which)
{
	AUTO_FREE char *bundle = read_below(TRUST_BUNDLE), *local = read_below(LOCAL);
	AUTO_FREE char *ca = read_below(TRUST_CA);

	assert_non_null(bundle);
	assert_int_equal(count(bundle, cas[which]), 1);
	assert_int_equal(count(bundle, cas[!which]), 0);
	assert_int_equal(count(bundle, "# sbx"), 1);
	assert_int_equal(count(bundle, OTHER), 1);
	assert_int_equal(count(local, cas[which]), 1);
	assert_string_equal(ca, cas[which]);
	assert_true(is_hashed(which, 0));
	assert_false(is_hashed(!which, 0));
	assert_true(exists("/etc/ssl/certs/sbx.pem"));
	assert_true(exists(TRUST_JKS));
}

/* Debian's store has this many of our certificates, in order. */
static void must_have_in_java(unsigned n_ours)
{
	AUTO_FREE char *path = xasprintf("%s/etc/ssl/certs/java/cacerts", root), *text = NULL;
	size_t n;

	assert_int_equal(file_read_bytes(path, &text, &n), 0);
	assert_int_equal(text[11], n_ours);
	for (unsigned i = 0; i < MIN(n_ours, 2U); i++) {
		struct slice der = mint_ca_der(mints[i]);

		assert_non_null(memmem(text, n, der.p, der.n));
	}
}

/* The user's own CA is installed with the sandbox's, and removed when it is no longer sent. */
static void test_the_users_own_ca(void **state)
{
	struct guest_trust t = {.ca_pem = (char *)cas[0], .extra_pem = (char *)cas[1]};
	AUTO_FREE char *bundle = NULL, *ca = NULL, *local = NULL, *more = NULL;
	AUTO_FREE uint8_t *store = NULL;
	struct err err = {0};
	size_t n;

	put_below(TRUST_BUNDLE, slice_from_str(OTHER));
	assert_int_equal(jks_from_pem("", &store, &n), 0);
	put_below("/etc/ssl/certs/java/cacerts", slice_of(store, n));
	for (unsigned twice = 0; twice < 2; twice++) {
		assert_int_equal(trust_write(root, &t, &err), 0);
		free(bundle);
		bundle = read_below(TRUST_BUNDLE);
		assert_int_equal(count(bundle, cas[0]), 1);
		assert_int_equal(count(bundle, cas[1]), 1);
		assert_int_equal(count(bundle, "# sbx"), 2);
		assert_int_equal(count(bundle, OTHER), 1);
	}
	ca = read_below(TRUST_CA);
	assert_int_equal(strlen(ca), strlen(cas[0]) + strlen(cas[1]));
	assert_true(count(ca, cas[0]) == 1 && count(ca, cas[1]) == 1);
	local = read_below(LOCAL);
	assert_true(count(local, cas[0]) == 1 && count(local, cas[1]) == 1);
	assert_true(is_hashed(0, 0) && is_hashed(1, 0));
	must_have_in_java(2);
	apply(cas[0], NULL, 0);
	must_be_trusted(0);
	must_have_in_java(1);
	/* Removing several at the same time leaves nothing behind. */
	t.extra_pem = more = xasprintf("%s%s%s", cas[1], cas[1], cas[1]);
	assert_int_equal(trust_write(root, &t, &err), 0);
	must_have_in_java(4);
	apply("", NULL, 0);
	assert_false(is_hashed(0, 0) || is_hashed(1, 0));
	must_have_in_java(0);
}

static void test_each_start_its_own(void **state)
{
	AUTO_FREE char *bundle = NULL;

	put_below(TRUST_BUNDLE, slice_from_str(OTHER));
	apply(cas[0], NULL, 0);
	must_be_trusted(0);
	apply(cas[1], NULL, 0);
	must_be_trusted(1);
	apply("", NULL, 0);
	bundle = read_below(TRUST_BUNDLE);
	assert_string_equal(bundle, OTHER);
	assert_false(is_hashed(1, 0));
	assert_false(exists(LOCAL) || exists(TRUST_CA) || exists(TRUST_JKS));
	assert_false(exists("/etc/ssl/certs/sbx.pem") || exists("/etc/sudoers.d/sbx-trust"));
}

/* The inodes stay: no file was rewritten. */
static void test_twice_writes_nothing(void **state)
{
	static const char *const paths[] = {TRUST_BUNDLE, LOCAL, TRUST_CA, TRUST_JKS,
		TRUST_VARIABLES, "/etc/sudoers.d/sbx-trust", "/etc/ssl/certs/sbx.pem",
		"/etc/ssl/certs/java/cacerts"};
	char *env[] = {(char *)"A=1", NULL};
	struct stat before[ARRAY_LEN(paths)], after;
	AUTO_FREE uint8_t *store = NULL;
	size_t n;

	assert_int_equal(jks_from_pem("", &store, &n), 0);
	put_below("/etc/ssl/certs/java/cacerts", slice_of(store, n));
	apply(cas[0], env, 1);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_FREE char *full = xasprintf("%s%s", root, paths[i]);

		assert_int_equal(lstat(full, &before[i]), 0);
	}
	apply(cas[0], env, 1);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_FREE char *full = xasprintf("%s%s", root, paths[i]);

		assert_int_equal(lstat(full, &after), 0);
		if (after.st_ino != before[i].st_ino)
			fail_msg("%s was written again", paths[i]);
	}
}

/* What update-ca-certificates does: builds the bundle from the files, including ours. */
static void test_after_the_users_update(void **state)
{
	AUTO_FREE char *local = NULL, *made = NULL;

	apply(cas[0], NULL, 0);
	local = read_below(LOCAL);
	made = xasprintf("%s%s%s", local, OTHER, local);
	put_below(TRUST_BUNDLE, slice_from_str(made));
	apply(cas[1], NULL, 0);
	must_be_trusted(1);
}

static void test_hash_that_is_taken(void **state)
{
	AUTO_FREE char *path = xasprintf("/etc/ssl/certs/%08x.0", hashes[0]);

	apply("", NULL, 0);
	put_below(path, slice_from_str("the user's"));
	apply(cas[0], NULL, 0);
	assert_true(is_hashed(0, 0) && is_hashed(0, 1));
	apply("", NULL, 0);
	assert_true(is_hashed(0, 0));
	assert_false(is_hashed(0, 1));
}

static void test_java_of_debian(void **state)
{
	static const char path[] = "/etc/ssl/certs/java/cacerts";
	AUTO_FREE char *full = xasprintf("%s%s", root, path), *text = NULL, *foreign = NULL;
	AUTO_FREE uint8_t *store = NULL;
	struct slice der = mint_ca_der(mints[1]);
	size_t n;

	assert_int_equal(jks_from_pem(cas[0], &store, &n), 0);
	put_below(path, slice_of(store, n));
	apply(cas[1], NULL, 0);
	assert_int_equal(file_read_bytes(full, &text, &n), 0);
	assert_int_equal(text[11], 2);
	assert_non_null(memmem(text, n, der.p, der.n));
	/* An unreadable store is not changed. */
	put_below(path, slice_from_str("PKCS12"));
	apply(cas[0], NULL, 0);
	foreign = read_below(path);
	assert_string_equal(foreign, "PKCS12");
}

static void test_variables(void **state)
{
	char *env[] = {(char *)"GH_TOKEN=ghp_proxymanaged", (char *)"BAD NAME=x",
		(char *)"TWO=a\nb", (char *)"Q=\"\\", NULL};
	AUTO_FREE char *lines = NULL, *sudoers = NULL, *path = NULL;
	struct stat st;

	apply(cas[0], env, 4);
	lines = read_below(TRUST_VARIABLES);
	assert_string_equal(lines, "GH_TOKEN=ghp_proxymanaged\nQ=\"\\\n");
	sudoers = read_below("/etc/sudoers.d/sbx-trust");
	assert_non_null(strstr(sudoers, "SSL_CERT_FILE "));
	assert_non_null(strstr(sudoers, " GH_TOKEN Q\"\n"));
	assert_null(strstr(sudoers, "BAD"));
	path = xasprintf("%s/etc/sudoers.d/sbx-trust", root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0440);
	apply(cas[0], NULL, 0);
	assert_false(exists(TRUST_VARIABLES));
}

static void test_env(void **state)
{
	struct env e = {0};

	env_put(&e, "JAVA_TOOL_OPTIONS=-Dx=y");
	trust_env(&e, &trust_of_guest);
	assert_string_equal(env_get(&e, "JAVA_TOOL_OPTIONS"),
		"-Dx=y -Djavax.net.ssl.trustStore=/run/sbx/cacerts");
	assert_string_equal(env_get(&e, "NODE_EXTRA_CA_CERTS"), "/run/sbx/ca.pem");
	assert_string_equal(env_get(&e, "SSL_CERT_FILE"), TRUST_BUNDLE);
	assert_string_equal(env_get(&e, "GIT_SSL_CAINFO"), TRUST_BUNDLE);
	env_done(&e);
}

static void expect_bundle(const char *old, const char *ca, const char *want)
{
	AUTO_FREE char *got = trust_bundle(old, ca);

	assert_string_equal(got, want);
}

static void test_bundle_texts(void **state)
{
	static const char mark[] = "# sbx: the CA of this sandbox\n";
	AUTO_FREE char *cut = xasprintf("%s%s", mark, "-----BEGIN CERTIFICATE-----\nMI");
	AUTO_FREE char *none = xasprintf("%s" OTHER, mark);

	expect_bundle("", "", "");
	expect_bundle("a", "", "a");
	/* A mark without a certificate right after it removes no other certificate. */
	expect_bundle(none, "", OTHER);
	expect_bundle(cut, "", "-----BEGIN CERTIFICATE-----\nMI");
	expect_bundle("# sbx: the CA of this sandbox", "", "");
}

/* A file that cannot be written is reported, and the rest is done. */
static void test_failure_is_told(void **state)
{
	struct guest_trust t = {.ca_pem = cas[1]};
	struct err err = {0};

	apply("", NULL, 0);
	put_below("/run/sbx/keep", slice_from_str(""));
	put_below("/etc/ssl/certs/keep", slice_from_str(""));
	put_below(LOCAL "/folder", slice_from_str(""));
	assert_true(trust_write(root, &t, &err) < 0);
	assert_non_null(strstr(err.text, "sbx.crt"));
	assert_true(exists(TRUST_CA));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	struct err err;

	if (!mkdtemp(root) || mint_new("a", 1700000000, &mints[0], &err) < 0 ||
		mint_new("b", 1700000000, &mints[1], &err) < 0)
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		cas[i] = slice_dup(mint_ca_pem(mints[i]));
		if (certname_hash(mint_ca_der(mints[i]), &hashes[i]) < 0)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		mint_free(mints[i]);
		free(cas[i]);
	}
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_users_own_ca),
		cmocka_unit_test(test_each_start_its_own),
		cmocka_unit_test(test_twice_writes_nothing),
		cmocka_unit_test(test_after_the_users_update),
		cmocka_unit_test(test_hash_that_is_taken),
		cmocka_unit_test(test_java_of_debian),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_bundle_texts),
		cmocka_unit_test(test_failure_is_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
