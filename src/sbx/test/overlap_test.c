/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/sandbox/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/client/api/api.h"
#include "lib/base/mem.h"

static json_t *workspace(const char *host, const char *guest, bool ro)
{
	return json_pack("{s:s, s:s, s:b}", "host", host, "guest", guest, "ro", ro);
}

/* want NULL: no warning */
static void row(json_t *a, json_t *b, const char *other, const char *want)
{
	AUTO_JSON json_t *x = a;
	AUTO_JSON json_t *y = b;
	AUTO_FREE char *text = overlap_text(x, y, other);

	if (!want)
		assert_null(text);
	else
		assert_non_null(text ? strstr(text, want) : NULL);
}

static void one_sandbox(void **state)
{
	row(workspace("/w", "/w", false), workspace("/w/data", "/data", false), NULL,
		"/w/data is inside /w, which the sandbox can change");
	row(workspace("/w/data", "/data", false), workspace("/w", "/w", false), NULL,
		"/w/data is inside /w, which the sandbox can change");
	row(workspace("/w", "/w", true), workspace("/w/data", "/data", false), NULL, NULL);
	row(workspace("/w", "/w", false), workspace("/w/data", "/w/data", true), NULL, NULL);
	row(workspace("/w", "/g", false), workspace("/w/data", "/g/data", true), NULL, NULL);
	row(workspace("/w", "/w", false), workspace("/wide", "/wide", false), NULL, NULL);
}

static void two_sandboxes(void **state)
{
	row(workspace("/w/web", "/w/web", false), workspace("/w", "/w", false), "aa",
		"/w/web is inside /w, which sandbox 'aa' can change");
	row(workspace("/w", "/w", false), workspace("/w/web", "/w/web", true), "bb",
		"/w/web is inside /w, which the new sandbox can change");
	row(workspace("/w", "/w", false), workspace("/w", "/w", false), "bb", NULL);
	row(workspace("/w/web", "/w/web", false), workspace("/w", "/w", true), "aa", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_sandbox),
		cmocka_unit_test(two_sandboxes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
