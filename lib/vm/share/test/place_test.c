/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vm/share/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[PATH_MAX];

static const char *at(const char *name)
{
	static char buf[8][PATH_MAX + 64];
	static unsigned i;
	char *p = buf[i++ % 8];

	(void)snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
	return p;
}

static int setup(void **state)
{
	char made[] = "/tmp/sbx-place.XXXXXX";

	if (!mkdtemp(made) || !realpath(made, dir) || chdir(dir) < 0)
		return -1;
	if (system("mkdir -p home/.ssh/old home/.local/share home/project/.config home/dotfiles "
		   "home/.configs ws/web secret far/state/sbx far/ws && "
		   "ln -s dotfiles home/.config && : > home/.ssh/known_hosts") != 0)
		return -1;
	(void)setenv("XDG_STATE_HOME", at("far/state"), 1);
	(void)setenv("XDG_DATA_HOME", at("home/.local/share"), 1);
	(void)setenv("XDG_CONFIG_HOME", at("home/.config"), 1); /* a link; its sbx does not exist */
	(void)setenv("XDG_RUNTIME_DIR", at("far/run"), 1);	/* does not exist */
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", dir);

	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void row(const char *path, bool force, int want, const char *text)
{
	struct err err = {0};
	int r = place_check(path, at("home"), force, &err);

	if (r != want || !strstr(err.text, text))
		fail_msg("%s: %d '%s' instead of %d '%s'", path, r, err.text, want, text);
}

static void ones_home_is_refused_unless_forced(void **state)
{
	row("/", false, -EPERM, "refusing to share '/'");
	row(at("home"), false, -EPERM, "it contains your keys, mail and settings");
	row(dir, false, -EPERM, "it contains your keys, mail and settings");
	row("/", true, 0, "");
	row(at("home"), true, 0, "");
	row(at("home/project"), false, 0, "");
	row(at("homeless"), false, 0, "");
}

static void keys_are_refused_like_the_home(void **state)
{
	static const char *const names[] = {".ssh", ".gnupg", ".aws", ".kube", ".local", ".docker"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", at("home"), names[i]);
		AUTO_FREE char *below = xasprintf("%s/x", path);

		row(path, false, -EPERM, "keys, tokens and settings");
		row(below, false, -EPERM, "keys, tokens and settings");
		row(path, true, 0, "");
	}
	row(at("home/.ssh/known_hosts"), false, -EPERM, "keys, tokens and settings");
	row(at("home/dotfiles"), false, -EPERM, "keys, tokens and settings"); /* = .config */
	row(at("home/.configs"), false, 0, "");
	row(at("home/project/.config"), false, 0, "");
}

static void what_belongs_to_sbx_is_refused_always(void **state)
{
	for (int force = 0; force < 2; force++) {
		row(at("far/state/sbx"), force, -EACCES, "belongs to sbx");
		row(at("far/state/sbx/vault"), force, -EACCES, "belongs to sbx");
		row(at("far/run/sbx"), force, -EACCES, "belongs to sbx");
		row(at("home/.local/share/sbx"), force, -EACCES, "belongs to sbx");
		row(at("home/dotfiles/sbx"), force, -EACCES, "belongs to sbx");
	}
	row(at("far/state"), false, -EPERM, "it contains the sbx directory");
	row(at("far"), false, -EPERM, "it contains the sbx directory");
	row(at("far"), true, 0, "");
	row(at("far/ws"), false, 0, "");
	row(at("far/state/sbxy"), false, 0, "");
}

static void assert_open(const char *path, int want, const char *text)
{
	struct err err = {0};
	AUTO_CLOSE int fd = place_open(path, &err);

	if ((fd < 0 ? fd : 0) != want || !strstr(err.text, text))
		fail_msg("%s: %d '%s' instead of %d '%s'", path, fd, err.text, want, text);
}

/* The second sandbox shares ws/web; the first one, which has ws, puts a link there. */
static void a_link_that_a_guest_planted_is_not_followed(void **state)
{
	assert_open(at("ws/web"), 0, "");
	assert_int_equal(rename(at("ws/web"), at("ws/web.old")), 0);
	assert_int_equal(symlink("../secret", at("ws/web")), 0);
	assert_open(at("ws/web"), -ELOOP, "ws/web is a symbolic link now");
	assert_open(at("ws/web/"), -ELOOP, "ws/web is a symbolic link now");
	assert_open(at("ws/web/x"), -ELOOP, "ws/web is a symbolic link now");
	assert_int_equal(unlink(at("ws/web")), 0);
	assert_open(at("ws/web"), -ENOENT, "mkdir -p");
	assert_int_equal(symlink("/proc/self/root", at("ws/web")), 0);
	assert_open(at("ws/web"), -ELOOP, "ws/web is a symbolic link now");
	assert_open("/proc/self/root/etc", -ELOOP, "is a symbolic link now");
}

static void links_are_resolved_once(void **state)
{
	AUTO_FREE char *real = NULL;
	struct err err = {0};

	assert_int_equal(place_resolve(at("home/.config"), &real, NULL), 0);
	assert_string_equal(real, at("home/dotfiles"));
	free(real);
	real = NULL;
	assert_int_equal(place_resolve(at("home/none"), &real, &err), -ENOENT);
	assert_non_null(strstr(err.text, "home/none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ones_home_is_refused_unless_forced),
		cmocka_unit_test(keys_are_refused_like_the_home),
		cmocka_unit_test(what_belongs_to_sbx_is_refused_always),
		cmocka_unit_test(a_link_that_a_guest_planted_is_not_followed),
		cmocka_unit_test(links_are_resolved_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
