/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/sandbox/project/project_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define FIRST "sandbox 1\n"

static void everything_that_a_project_can_request(void **state)
{
	static const char text[] =
		FIRST "# a comment\n"
		      "template node\npath ../library\npath ../data/set:rw\npath ../plain:ro\n"
		      "host registry.example.com:443 packages of the company\n"
		      "port 3000\nport 8080:80\n\nend\n";
	AUTO_PROJECT_FILE struct project_file f = {0};
	struct err err = {0};

	assert_int_equal(project_parse(slice_from_str(text), "p", &f, &err), 0);
	assert_string_equal(f.template, "node");
	assert_int_equal(f.path.n, 3);
	assert_string_equal(f.path.v[0].text, "../library");
	assert_false(f.path.v[0].is_writable);
	assert_string_equal(f.path.v[1].text, "../data/set");
	assert_true(f.path.v[1].is_writable);
	assert_false(f.path.v[2].is_writable);
	assert_string_equal(f.host.v[0].text, "registry.example.com:443");
	assert_string_equal(f.host.v[0].why, "packages of the company");
	assert_int_equal(f.port.n, 2);
	assert_string_equal(f.port.v[1].text, "8080:80");
}

static void what_a_guest_would_write_is_refused(void **state)
{
	static const char *const rows[] = {
		"command id",
		"run curl example.com",
		"env A=B",
		"ref pass:x",
		"template ../x",
		"template -x",
		"template a b",
		"template a\ntemplate b",
		"path /etc",
		"path ~/.ssh",
		"path .",
		"path ..",
		"path ../",
		"path ../..",
		"path ../../.ssh",
		"path ../a/../../b",
		"path ../a//b",
		"path ../a/",
		"path ../$HOME",
		"path ../a:/etc",
		"path ../a b",
		"path ../a\npath ../a:rw",
		"host example.com why",
		"host *.example.com:443 why",
		"host **:443 why",
		"host 10.0.0.0/8:443 why",
		"host 127.0.0.1:22 why",
		"host example.com:1-65535 why",
		"host example.com:443",
		"host example.com:443 \x1b[2J",
		"port 0",
		"port 65536",
		"port 0.0.0.0:80:80",
		"port 80:80:80",
		"port 80/udp",
		"port :80",
		"port 80:",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text = xasprintf(FIRST "%s\nend\n", rows[i]);
		struct project_file f = {0};
		struct err err = {0};

		if (project_parse(slice_from_str(text), "p", &f, &err) >= 0)
			fail_msg("'%s' was accepted", rows[i]);
		assert_non_null(strstr(err.text, "p: line"));
		assert_null(f.template);
		assert_int_equal(f.path.n + f.host.n + f.port.n, 0);
	}
}

static void a_file_without_its_end_is_refused(void **state)
{
	static const char *const rows[] = {"", "sandbox 2\nend\n", FIRST, FIRST "port 80\n"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct project_file f = {0};
		struct err err = {0};

		assert_true(project_parse(slice_from_str(rows[i]), "p", &f, &err) < 0);
		assert_int_equal(f.port.n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_that_a_project_can_request),
		cmocka_unit_test(what_a_guest_would_write_is_refused),
		cmocka_unit_test(a_file_without_its_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
