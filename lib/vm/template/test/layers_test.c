/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/vm/template/layers.h"

static char dir[] = "/tmp/layers_test.XXXXXX";

static void put(const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void clear(void)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s/*", dir);

	assert_int_equal(system(command), 0);
}

static void numbers_may_be_missing_and_are_sorted_as_numbers(void **state)
{
	struct layers l;

	put("root.qcow2");
	put("root.10.qcow2");
	put("root.2.qcow2");
	put("docker.7.qcow2");
	assert_int_equal(layers_find(dir, TEMPLATE_ROOT, &l), 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.number[0], 2);
	assert_int_equal(layers_last(&l), 10);
	assert_int_equal(layers_find(dir, TEMPLATE_DOCKER, &l), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(layers_last(&l), 7);
	clear();
}

static void other_names_are_not_layers(void **state)
{
	static const char *const names[] = {"root.next.qcow2", "root.01.qcow2", "root.0.qcow2",
		"root.1.qcow2.new-5", "root.10000.qcow2", "root.99999999999.qcow2", "xroot.1.qcow2",
		"root.-1.qcow2", "root..qcow2", "root1.qcow2"};
	struct layers l;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		put(names[i]);
	assert_int_equal(layers_find(dir, TEMPLATE_ROOT, &l), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(layers_last(&l), 0);
	clear();
}

static void too_many_are_an_error(void **state)
{
	struct layers l;

	for (int i = 1; i <= LAYERS_MAX + 1; i++) {
		AUTO_FREE char *name = xasprintf("root.%d.qcow2", i);

		put(name);
	}
	assert_int_equal(layers_find(dir, TEMPLATE_ROOT, &l), -EMLINK);
	clear();
	assert_int_equal(layers_find("/does/not/exist", TEMPLATE_ROOT, &l), 0);
	assert_int_equal(l.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_may_be_missing_and_are_sorted_as_numbers),
		cmocka_unit_test(other_names_are_not_layers),
		cmocka_unit_test(too_many_are_an_error),
	};
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(dir);
	return r;
}
