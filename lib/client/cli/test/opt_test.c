/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/cli/opt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/client/cli/prove_opts.h"

static const struct opt_def defs[] = {
	{'i', "interactive", NULL, ""},
	{'t', "tty", NULL, ""},
	{'m', "memory", "SIZE", ""},
	{'e', "env", "NAME", "", .many = true},
	{0, "name", "NAME", ""},
	{0, "agent", "KEY", "", .optional = true},
	{0},
};

/* "-i|-m|4g" against "i:- m:4g args rest". */
static void row(const char *line, unsigned stop, const char *want)
{
	char copy[256], got[512] = "", *argv[16], *save = NULL;
	struct opts o;
	struct err err;
	int argc = 0, r;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	r = opt_parse(defs, stop, argc, argv, &o, &err);
	if (r < 0) {
		assert_int_equal(r, -EINVAL);
		assert_string_equal(want, err.text);
		return;
	}
	for (size_t i = 0; defs[i].name; i++)
		for (size_t k = 0; k < o.values[i].n; k++)
			(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s=%s ",
				defs[i].name, o.values[i].v[k]);
	for (size_t k = 0; k < o.args.n; k++)
		(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%s]", o.args.v[k]);
	for (size_t k = 0; k < o.rest.n; k++)
		(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "<%s>", o.rest.v[k]);
	opts_done(&o);
	assert_string_equal(got, want);
}

static void forms(void **state)
{
	row("-it|a", 0, "interactive= tty= [a]");
	row("-itm4g|a", 0, "interactive= tty= memory=4g [a]");
	row("-itm|4g", 0, "interactive= tty= memory=4g ");
	row("-m=4g", 0, "memory=4g ");
	row("--memory=4g|--name|x", 0, "memory=4g name=x ");
	row("--memory=", 0, "memory= ");
	row("--agent|x", 0, "agent= [x]");
	row("--agent=k,l|x", 0, "agent=k,l [x]");
	row("--agent|--agent", 0, "duplicate option --agent");
	row("a|-i|b", 0, "interactive= [a][b]");
	row("-e|A=1|--env=B=2", 0, "env=A=1 env=B=2 ");
	row("a|--|-i|b", 0, "[a]<-i><b>");
	row("a|-", 0, "[a][-]");
	row("--name|--", 0, "name=-- ");
}

static void foreign_command_lines(void **state)
{
	row("-i|box|ls|-t|--name", 1, "interactive= [box][ls][-t][--name]");
	row("-i|--|box|ls|-t", 1, "interactive= [box][ls][-t]");
	row("box|--|ls", 1, "[box][--][ls]");
}

static void mistakes(void **state)
{
	row("--nam|x", 0, "unknown option --nam: did you mean --name?");
	row("--zzzzzz", 0, "unknown option --zzzzzz");
	row("-ix", 0, "unknown option -x");
	row("--tty=1", 0, "--tty takes no value");
	row("--name", 0, "--name requires a value: NAME");
	row("-m", 0, "-m requires a value: SIZE");
	row("--name|a|--name|b", 0, "duplicate option --name");
	row("---", 0, "unknown option ---");
}

static void nearest(void **state)
{
	static const char *const words[] = {"create", "run", "rm", "ls", "rename", NULL};

	assert_string_equal(opt_nearest("craete", words), "create");
	assert_string_equal(opt_nearest("rn", words), "run");
	assert_string_equal(opt_nearest("renam", words), "rename");
	assert_null(opt_nearest("xyzzy", words));
}

/* sbx and sbx-prove parse the same words with this table. */
static void words_of_sbx_prove(void **state)
{
	const char *argv[] = {
		"--quick", "demo", "--group=files,host", "--group", "docker", "-v", NULL};
	struct opts o;
	struct err err;

	assert_int_equal(opt_parse(prove_opts, 0, 6, (char **)argv, &o, &err), 0);
	assert_ptr_equal(o.argv, argv);
	assert_true(opts_has(&o, "quick") && opts_has(&o, "verbose") && !opts_has(&o, "json"));
	assert_int_equal(opts_list(&o, "group")->n, 2);
	assert_string_equal(opts_list(&o, "group")->v[0], "files,host");
	assert_null(opts_value(&o, "html"));
	assert_string_equal(o.args.v[0], "demo");
	opts_done(&o);
	argv[0] = "--quik";
	assert_int_equal(opt_parse(prove_opts, 0, 6, (char **)argv, &o, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(foreign_command_lines),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(nearest),
		cmocka_unit_test(words_of_sbx_prove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
