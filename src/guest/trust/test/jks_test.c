/* SPDX-License-Identifier: Apache-2.0 */
/* If a JVM is installed, its keytool reads the store too. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "src/guest/trust/jks.h"
#include "src/guest/trust/pem.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/secret/mint/mint.h"

static char *bundle; /* two certificates */
static struct mint *mints[2];

/* The empty store, as keytool creates it (checked with it: test_keytool). */
static const uint8_t empty[] = {0xfe, 0xed, 0xfe, 0xed, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x00, 0xe2, 0x68, 0x6e, 0x45, 0xfb, 0x43, 0xdf, 0xa4, 0xd9, 0x92, 0xdd, 0x41, 0xce, 0xb6,
	0xb2, 0x1c, 0x63, 0x30, 0xd7, 0x92};

static void test_empty(void **state)
{
	AUTO_FREE uint8_t *store = NULL;
	size_t n;

	assert_int_equal(jks_from_pem("no certificate", &store, &n), 0);
	assert_int_equal(n, sizeof(empty));
	assert_memory_equal(store, empty, n);
}

static void test_content(void **state)
{
	AUTO_FREE uint8_t *store = NULL;
	struct slice der = mint_ca_der(mints[0]);
	static const uint8_t head[] = {0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2,
		0, 5, 's', 'b', 'x', '-', '0', 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 'X', '.', '5', '0',
		'9', 0, 0};
	size_t n;

	assert_int_equal(jks_from_pem(bundle, &store, &n), 0);
	assert_memory_equal(store, head, sizeof(head));
	assert_int_equal(store[sizeof(head)] << 8 | store[sizeof(head) + 1], der.n);
	assert_memory_equal(store + sizeof(head) + 2, der.p, der.n);
}

static void test_put(void **state)
{
	AUTO_FREE uint8_t *store = NULL, *more = NULL, *same = NULL, *less = NULL;
	struct slice der = mint_ca_der(mints[0]), none = {0};
	size_t n, n_more, n_same, n_less;

	assert_int_equal(jks_from_pem(bundle, &store, &n), 0);
	assert_int_equal(jks_put(slice_of(store, n), "own", der, &more, &n_more), 0);
	assert_int_equal(more[11], 3);
	assert_int_equal(jks_put(slice_of(more, n_more), "own", der, &same, &n_same), 0);
	assert_true(slice_eq(slice_of(more, n_more), slice_of(same, n_same)));
	assert_int_equal(jks_put(slice_of(more, n_more), "own", none, &less, &n_less), 0);
	assert_true(slice_eq(slice_of(store, n), slice_of(less, n_less)));
}

/* A store with another password, with keys, truncated or modified is not changed. */
static void test_put_refused(void **state)
{
	AUTO_FREE uint8_t *store = NULL;
	struct slice der = mint_ca_der(mints[0]);
	uint8_t *ret;
	size_t n, n_ret;

	assert_int_equal(jks_from_pem(bundle, &store, &n), 0);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(jks_put(slice_of(store, k), "a", der, &ret, &n_ret), -EBADMSG);
	store[n / 2] ^= 1;
	assert_int_equal(jks_put(slice_of(store, n), "a", der, &ret, &n_ret), -EBADMSG);
	assert_int_equal(
		jks_put(slice_from_str("0\x82\x01\x02"), "a", der, &ret, &n_ret), -EBADMSG);
}

static int keytool(const char *path, const char *wanted)
{
	AUTO_FREE char *command = xasprintf("keytool -list -keystore %s -storepass " JKS_PASSWORD
					    " 2>&1 | grep -q '%s'",
		path, wanted);

	return system(command);
}

static void test_keytool(void **state)
{
	char path[] = "/tmp/sbx-jks-XXXXXX";
	AUTO_FREE uint8_t *store = NULL;
	AUTO_CLOSE int fd = mkstemp(path);
	int two, none;
	size_t n;

	assert_int_equal(jks_from_pem(bundle, &store, &n), 0);
	if (system("keytool -help >/dev/null 2>&1") != 0) {
		(void)unlink(path);
		skip();
	}
	assert_int_equal(fd_write_all(fd, store, n), 0);
	two = keytool(path, "sbx-1,.*trustedCertEntry");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, empty, sizeof(empty), 0), sizeof(empty));
	none = keytool(path, "contains 0 entries");
	(void)unlink(path);
	assert_int_equal(two, 0);
	assert_int_equal(none, 0);
}

static int setup(void **state)
{
	struct err err;
	struct slice a, b;

	if (mint_new("a", 1700000000, &mints[0], &err) < 0 ||
		mint_new("b", 1700000000, &mints[1], &err) < 0)
		return -1;
	a = mint_ca_pem(mints[0]);
	b = mint_ca_pem(mints[1]);
	bundle = xasprintf("# x\n%.*s\n%.*s", (int)a.n, a.p, (int)b.n, b.p);
	return 0;
}

static int teardown(void **state)
{
	mint_free(mints[0]);
	mint_free(mints[1]);
	free(bundle);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_put_refused),
		cmocka_unit_test(test_keytool),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
