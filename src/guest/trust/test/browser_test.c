/* SPDX-License-Identifier: Apache-2.0 */
#include <ftw.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/guest/trust/browser.h"
#include "src/guest/base/file.h"
#include "lib/base/mem.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"
#define ONE BEGIN "AAAA\nBB==\n" END
#define TWO BEGIN "CCCC\n" END

static char root[] = "/tmp/sbx-browser.XXXXXX";

static char *path_of(const char *name)
{
	return xasprintf("%s%s", root, name);
}

static bool exists(const char *name)
{
	AUTO_FREE char *path = path_of(name);

	return access(path, F_OK) == 0;
}

static json_t *load(const char *name)
{
	AUTO_FREE char *path = path_of(name);
	json_t *o = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(o);
	return o;
}

static void apply(const char *pem)
{
	struct err err = {0};

	if (browser_write(root, pem, &err) < 0)
		fail_msg("%s", err.text);
}

static void must_be_for_chromium(const char *name, const char *const *cas, size_t n)
{
	json_t *o = load(name), *list = json_object_get(o, "CACertificates");

	assert_true(json_is_false(json_object_get(o, "EncryptedClientHelloEnabled")));
	assert_int_equal(json_array_size(list), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(json_string_value(json_array_get(list, i)), cas[i]);
	json_decref(o);
}

static void must_be_for_firefox(const char *name, size_t n)
{
	json_t *o = load(name), *p = json_object_get(o, "policies");
	json_t *list = json_object_get(json_object_get(p, "Certificates"), "Install");

	assert_true(json_is_true(json_object_get(p, "DisableEncryptedClientHello")));
	assert_int_equal(json_array_size(list), n);
	for (size_t i = 0; i < n; i++)
		assert_true(exists(json_string_value(json_array_get(list, i))));
	json_decref(o);
}

static void browsers_trust_our_cas_and_hide_no_name(void **state)
{
	static const char *const cas[] = {"AAAABB==", "CCCC"};
	AUTO_FREE char *first = path_of("/run/sbx/browser-ca-1.pem"), *text = NULL;
	AUTO_FREE char *js = path_of("/etc/firefox/defaults/pref/sbx.js"), *prefs = NULL;

	apply(ONE TWO);
	must_be_for_chromium("/etc/chromium/policies/managed/sbx.json", cas, 2);
	must_be_for_chromium("/etc/opt/chrome/policies/managed/sbx.json", cas, 2);
	must_be_for_firefox("/etc/firefox/policies/policies.json", 2);
	must_be_for_firefox("/etc/firefox-esr/policies/policies.json", 2);
	assert_int_equal(file_read(first, &text), 0);
	assert_string_equal(text, TWO);
	assert_int_equal(file_read(js, &prefs), 0);
	assert_non_null(strstr(prefs, "pref(\"security.tls.ech.grease_probability\", 0);\n"));
	/* The next start has another CA, and fewer. */
	apply(TWO);
	must_be_for_chromium("/etc/chromium/policies/managed/sbx.json", cas + 1, 1);
	must_be_for_firefox("/etc/firefox/policies/policies.json", 1);
	assert_false(exists("/run/sbx/browser-ca-1.pem"));
	apply("");
	assert_false(exists("/etc/chromium/policies/managed/sbx.json") ||
		     exists("/etc/firefox/policies/policies.json") ||
		     exists("/etc/firefox-esr/defaults/pref/sbx.js") ||
		     exists("/run/sbx/browser-ca-0.pem"));
}

static void a_policy_of_the_user_stays(void **state)
{
	AUTO_FREE char *path = path_of("/etc/firefox/policies/policies.json"), *text = NULL;
	struct err err = {0};

	assert_int_equal(file_make_parents(path, &err), 0);
	assert_int_equal(file_say(path, "{\"policies\": {}}\n", &err), 0);
	apply(ONE);
	apply("");
	assert_int_equal(file_read(path, &text), 0);
	assert_string_equal(text, "{\"policies\": {}}\n");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(browsers_trust_our_cas_and_hide_no_name),
		cmocka_unit_test(a_policy_of_the_user_stays),
	};

	return cmocka_run_group_tests_name("guest/browser", tests, setup, teardown);
}
