/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings_internal.h"

static void values_and_defaults(void **state)
{
	static const char text[] = "# mine\n\n  vm.accel =tcg\nvm.memory= 2g \r\nstop.timeout=1m";
	AUTO_SETTINGS struct settings s = {0};
	const char *accel;

	assert_int_equal(settings_parse(slice_from_str(text), "f", &s, NULL), 0);
	assert_string_equal(settings_get(&s, SETTINGS_VM_ACCEL), "tcg");
	assert_int_equal(settings_get_u64(&s, SETTINGS_VM_MEMORY), 2ull << 30);
	assert_int_equal(settings_get_u64(&s, SETTINGS_VM_CPUS), 0);
	assert_int_equal(settings_get_u64(&s, SETTINGS_AUDIT_MAX_SIZE), 1ull << 30);
	assert_int_equal(settings_get_u64(&s, SETTINGS_STOP_TIMEOUT), 60);
	assert_string_equal(settings_get(&s, SETTINGS_VM_MEMORY_BACKING), "file");
	assert_false(settings_is_set(&s, SETTINGS_VM_CPUS));
	assert_true(settings_is_set(&s, SETTINGS_VM_ACCEL));
	setenv("SBX_ACCEL", "kvm", 1);
	assert_int_equal(settings_accel(&s, &accel, NULL), 0);
	assert_string_equal(accel, "kvm");
	setenv("SBX_ACCEL", "fast", 1);
	assert_int_equal(settings_accel(&s, &accel, NULL), -EINVAL);
	unsetenv("SBX_ACCEL");
	assert_int_equal(settings_accel(&s, &accel, NULL), 0);
	assert_string_equal(accel, "tcg");
}

static void a_broken_line_is_named(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"# a\nvm.accel\n", "conf line 2: expected 'key = value'"},
		{"vm.speed = 1\n", "line 1: unknown setting 'vm.speed'"},
		{"vm.accel = quick\n", "must be one of auto|kvm|tcg"},
		{"vm.cpus = 2\nvm.cpus = 3\n", "line 2: vm.cpus is set twice"},
		{"vm.cpus = 257\n", "0 or 0 to 256"},
		{"vm.cpus = two\n", "a whole number"},
		{"vm.cpus =\n", "a whole number"},
		{"vm.memory = 1m\n", "cannot be '1m'"},
		{"vm.disk = 1m\n", "cannot be '1m'"},
		{"vm.disk = 2t\n", "cannot be '2t'"},
		{"audit.max-size = 1023k\n", "cannot be '1023k'"},
		{"audit.max-size = large\n", "a size such as"},
		{"stop.timeout = 5\n", "a duration"},
		{"= 5\n", "unknown setting ''"},
		{"vm.accel = auto|kvm\n", "one of"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct settings s = {0};
		struct err err = {0};

		assert_true(settings_parse(slice_from_str(rows[i].text), "conf", &s, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("'%s' lacks '%s'", err.text, rows[i].says);
		for (size_t k = 0; k < SETTINGS_N; k++)
			assert_null(s.value[k]);
	}
}

/* The parser took a vertical tab for a blank and the rewriter did not: `set` then wrote the key a
 * second time, and the file was broken. */
static void a_key_after_a_vertical_tab_is_no_key(void **state)
{
	AUTO_SETTINGS struct settings s = {0}, t = {0};
	struct err err;

	assert_true(settings_parse(slice_from_str("\vvm.cpus = 4\n"), "x", &s, &err) < 0);
	assert_int_equal(settings_parse(slice_from_str("\t vm.cpus = 4\r\n"), "x", &t, &err), 0);
	assert_int_equal(settings_get_u64(&t, SETTINGS_VM_CPUS), 4);
}

static void nul_and_long_lines_are_refused(void **state)
{
	struct settings s = {0};
	char line[SETTINGS_MAX_LINE + 1];

	assert_int_equal(settings_parse(slice_of("# \0\n", 4), "f", &s, NULL), -EINVAL);
	assert_int_equal(settings_parse(slice_of("vm.cpus = 1\0\n", 13), "f", &s, NULL), -EINVAL);
	memset(line, '#', sizeof(line));
	assert_int_equal(settings_parse(slice_of(line, sizeof(line)), "f", &s, NULL), -E2BIG);
}

static void a_rewrite_keeps_the_rest(void **state)
{
	static const char old[] = "# top\nvm.cpus = 2 \n\n  # vm.accel = kvm\nvm.accel=tcg\n# end";
	AUTO_FREE char *set = settings_rewrite(slice_from_str(old), "vm.accel", "auto");
	AUTO_FREE char *gone = settings_rewrite(slice_from_str(old), "vm.cpus", NULL);
	AUTO_FREE char *more = settings_rewrite(slice_from_str(old), "vm.memory", "1g");
	AUTO_FREE char *first = settings_rewrite(slice_of(NULL, 0), "vm.memory", "1g");

	assert_string_equal(
		set, "# top\nvm.cpus = 2 \n\n  # vm.accel = kvm\nvm.accel = auto\n# end\n");
	assert_string_equal(gone, "# top\n\n  # vm.accel = kvm\nvm.accel=tcg\n# end\n");
	assert_string_equal(more,
		"# top\nvm.cpus = 2 \n\n  # vm.accel = kvm\nvm.accel=tcg\n# end\nvm.memory = 1g\n");
	assert_string_equal(first, "vm.memory = 1g\n");
}

static void the_file_is_changed_in_place(void **state)
{
	char dir[] = "/tmp/settings_test.XXXXXX";
	AUTO_FREE char *path = NULL, *text = NULL, *rm = NULL;
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};
	size_t n;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	path = xasprintf("%s/sbx/settings.conf", dir);
	assert_int_equal(settings_load(&s, NULL), 0);
	assert_int_equal(settings_change(SETTINGS_VM_CPUS, "x", &err), -EINVAL);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(settings_change(SETTINGS_VM_CPUS, "3", &err), 0);
	assert_int_equal(settings_load(&s, &err), 0);
	assert_int_equal(settings_get_u64(&s, SETTINGS_VM_CPUS), 3);
	/* A broken file stays as it is: it may hold what the user typed. */
	assert_int_equal(file_save(path, slice_from_str("oops\n"), NULL), 0);
	assert_true(settings_change(SETTINGS_VM_CPUS, "4", &err) < 0);
	assert_non_null(strstr(err.text, "line 1"));
	assert_int_equal(file_load(path, 100, &text, &n, NULL), 0);
	assert_string_equal(text, "oops\n");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(10); /* a reader that waits for a writer of the FIFO */
	assert_int_equal(settings_load(&s, &err), -EINVAL);
	assert_int_equal(settings_change(SETTINGS_VM_CPUS, "4", &err), -EINVAL);
	(void)alarm(0);
	assert_non_null(strstr(err.text, "is not a regular file"));
	rm = xasprintf("rm -r %s", dir);
	assert_int_equal(system(rm), 0);
}

static void every_default_is_valid(void **state)
{
	for (size_t i = 0; i < SETTINGS_N; i++) {
		assert_int_equal(
			settings_check_value((enum settings_id)i, settings_keys[i].standard, NULL),
			0);
		assert_non_null(settings_keys[i].help);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_and_defaults),
		cmocka_unit_test(a_broken_line_is_named),
		cmocka_unit_test(nul_and_long_lines_are_refused),
		cmocka_unit_test(a_key_after_a_vertical_tab_is_no_key),
		cmocka_unit_test(a_rewrite_keeps_the_rest),
		cmocka_unit_test(the_file_is_changed_in_place),
		cmocka_unit_test(every_default_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
