/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/cli/quote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/base/mem.h"

static void a_shell_reads_the_word_as_it_was(void **state)
{
	static const char *const words[] = {"", "plain", "two  words", "it's", "''", "'",
		"$(id) `id` $HOME \\ \"x\" ; | & > * ? ~ #", "a\nb\tc"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		AUTO_FREE char *quoted = quote_sh(words[i]);
		AUTO_FREE char *command = xasprintf("printf '<%%s>' %s", quoted);
		AUTO_FREE char *expected = xasprintf("<%s>", words[i]);
		char text[256] = "";
		FILE *f = popen(command, "r");

		assert_non_null(f);
		assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
		assert_int_equal(pclose(f), 0);
		assert_string_equal(text, expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shell_reads_the_word_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
