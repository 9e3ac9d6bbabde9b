/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of apt's configuration that a build may reach. */
#include "src/sbx/agent/mirror.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

/* Regression: a base template named 127.0.0.1:18631 as its mirror, and the build could reach it. */
static void only_names_with_the_usual_ports_are_mirrors(void **state)
{
	static const struct {
		const char *uri, *want;
	} rows[] = {
		{"http://mirror.example/debian/", "mirror.example:80"},
		{"https://mirror.example/debian/", "mirror.example:443"},
		{"http://mirror.example", "mirror.example:80"},
		{"http://mirror.example:80/x", "mirror.example:80"},
		{"https://mirror.example:443/x", "mirror.example:443"},
		{"http://user:secret@mirror.example/x", "mirror.example:80"},
		{"http://Mirror-2.example/x", "Mirror-2.example:80"},
		{"http://mirror.example:443/x", NULL},
		{"https://mirror.example:80/x", NULL},
		{"http://mirror.example:22/x", NULL},
		{"http://mirror.example:8/x", NULL},
		{"http://mirror.example:/x", NULL},
		{"http://127.0.0.1:18631/debian", NULL},
		{"http://127.0.0.1/debian", NULL},
		{"http://127.1/debian", NULL},
		{"http://2130706433/debian", NULL},
		{"http://0x7f.0x1/debian", NULL},
		{"http://169.254.169.254/", NULL},
		{"http://[::1]/debian", NULL},
		{"http://localhost/debian", NULL},
		{"http://LOCALHOST/debian", NULL},
		{"http:/"
		 "/a.localhost/debian",
			NULL},
		{"http://a.example@127.0.0.1/", NULL},
		{"http://*.example/", NULL},
		{"http://a.example,b.example/", NULL},
		{"http:///x", NULL},
		{"http://.../", NULL},
		{"ftp://mirror.example/", NULL},
		{"cdrom:[Debian]/", NULL},
		{"file:/srv/mirror", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mirrors m = {0};

		mirror_add(&m, rows[i].uri);
		if ((m.n == 1) != (rows[i].want != NULL) ||
			(m.n && strcmp(m.v[0], rows[i].want) != 0))
			fail_msg("%s: %s", rows[i].uri, m.n ? m.v[0] : "none");
	}
}

static void a_host_counts_once_and_there_are_few(void **state)
{
	struct mirrors m = {0};

	mirror_add(&m, "http://a.example/debian/");
	mirror_add(&m, "http://A.example/debian-security/");
	assert_int_equal(m.n, 1);
	for (char c = 'b'; c < 'z'; c++) {
		AUTO_FREE char *uri = xasprintf("http://%c.example/", c);

		mirror_add(&m, uri);
	}
	assert_int_equal(m.n, MIRROR_MAX);
	assert_string_equal(m.v[3], "d.example:80");
}

static void a_mirror_list_is_its_first_address(void **state)
{
	char dir[] = "/tmp/mirror_test.XXXXXX";
	AUTO_FREE char *path = NULL, *line = NULL;
	struct mirrors m = {0};
	struct err err = {0};

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/list", dir);
	line = xasprintf("mirror+file:%s/", path);
	mirror_add(&m, line);
	assert_int_equal(m.n, 0);
	assert_int_equal(
		file_save(path,
			slice_from_str("# a list\n\n https://first.example/debian\tpriority:1\n"
				       "http://second.example/\n"),
			&err),
		0);
	mirror_add(&m, line);
	assert_int_equal(m.n, 1);
	assert_string_equal(m.v[0], "first.example:443");
	assert_int_equal(unlink(path) + rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_names_with_the_usual_ports_are_mirrors),
		cmocka_unit_test(a_host_counts_once_and_there_are_few),
		cmocka_unit_test(a_mirror_list_is_its_first_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
