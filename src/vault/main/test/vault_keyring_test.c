/* SPDX-License-Identifier: Apache-2.0 */
/* The key in a real Secret Service: run by vault_keyring_session inside a private D-Bus session
 * with an unlocked gnome-keyring. */
#include "vault_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static const char *const by_service[] = {"--key=secret-service", NULL};

static void call_service(const char *method)
{
	AUTO_FREE char *command =
		xasprintf("dbus-send --session --print-reply --reply-timeout=5000 "
			  "--dest=org.freedesktop.secrets /org/freedesktop/secrets "
			  "org.freedesktop.Secret.Service.%s "
			  "array:objpath:/org/freedesktop/secrets/collection/login >/dev/null",
			method);

	assert_int_equal(system(command), 0);
}

static void test_key_in_the_service(void **state)
{
	struct rig *r = rig_new(NULL); /* by default it uses the best available */
	int admin = rig_admin(r), keeper;
	AUTO_FREE char *key = rig_file(r, "key"), *value = NULL;
	struct vault_status status;

	rig_status(admin, &status);
	if (status.state != VAULT_READY)
		fail_msg("%s", status.text);
	assert_int_equal(status.key, VAULT_KEY_SECRET_SERVICE);
	assert_int_equal(access(key, F_OK), -1);
	assert_int_equal(rig_set_str(admin, "a", "", "kept by the service's key"), 0);
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	rig_start(r, NULL);
	keeper = rig_keeper(r, "s");
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	assert_string_equal(value, "kept by the service's key");
	(void)close(keeper);
	rig_free(r);
}

/* The service stores which copy is the newest: restoring the whole directory is detected. */
static void test_old_copy_of_the_whole_folder(void **state)
{
	struct rig *r = rig_new(by_service);
	int admin = rig_admin(r);
	AUTO_FREE char *dir = rig_file(r, ""), *save = xasprintf("cp -a %s %s/backup", dir, r->dir),
		       *restore = xasprintf("rm -r %s && cp -a %s/backup %s", dir, r->dir, dir);
	struct vault_status status = {.state = VAULT_READY};

	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	assert_int_equal(system(save), 0);
	assert_int_equal(rig_remove(admin, "a", ""), 0);
	(void)sleep(1); /* the service is updated after the answer */
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	assert_int_equal(system(restore), 0);
	rig_start(r, by_service);
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_FAILED);
	assert_non_null(strstr(status.text, "old copy"));
	(void)close(admin);
	rig_free(r);
}

static void test_locked_and_unlocked_again(void **state)
{
	struct rig *r = rig_new(by_service);
	int admin = rig_admin(r);
	struct vault_status status;

	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	(void)sleep(1);
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	call_service("Lock");
	rig_start(r, NULL);
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_FAILED);
	assert_non_null(strstr(status.text, "locked"));
	assert_int_equal(rig_set_str(admin, "b", "", "v"), -EAGAIN);
	/* as a user would at the login screen */
	assert_int_equal(system("printf %s \"$SBX_TEST_KEYRING\" | "
				"gnome-keyring-daemon --replace --unlock --components=secrets "
				">/dev/null 2>&1"),
		0);
	for (unsigned i = 0; i < 200 && status.state != VAULT_READY; i++) {
		(void)usleep(300000);
		rig_status(admin, &status);
	}
	if (status.state != VAULT_READY)
		fail_msg("%s", status.text);
	assert_int_equal(rig_list(admin, NULL), 1);
	(void)close(admin);
	rig_free(r);
}

/* Without a session its sealed file stays closed; a new vault reports its key source. */
static void test_no_session(void **state)
{
	struct rig *r = rig_new(by_service);
	int admin = rig_admin(r);
	struct vault_status status;

	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	assert_int_equal(setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1), 0);
	rig_start(r, NULL);
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_FAILED);
	assert_non_null(strstr(status.text, "Secret Service"));
	(void)close(admin);
	rig_free(r);
	r = rig_new(NULL);
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_READY);
	assert_true(status.key == VAULT_KEY_FILE || status.key == VAULT_KEY_SYSTEMD_CREDS);
	(void)printf("without a Secret Service the key is in: %s\n", vault_key_text(status.key));
	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	rig_start(r, NULL);
	admin = rig_admin(r);
	assert_int_equal(rig_list(admin, NULL), 1);
	(void)close(admin);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_in_the_service),
		cmocka_unit_test(test_old_copy_of_the_whole_folder),
		cmocka_unit_test(test_locked_and_unlocked_again),
		cmocka_unit_test(test_no_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
