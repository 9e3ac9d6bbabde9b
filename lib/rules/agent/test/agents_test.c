/* SPDX-License-Identifier: Apache-2.0 */
/* Many agents together, and those that are shipped; the arguments are the folders of agents and
 * services. */
#include "lib/rules/agent/agents.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/secret/service/services.h"

static const char *shipped, *services;

static void write_agent(const char *folder, const char *name, const char *about)
{
	AUTO_FREE char *path = xasprintf("%s/%s.conf", folder, name);
	AUTO_FREE char *text = xasprintf("agent 1\nname %s\ntitle T\nabout %s\ntemplate debian\n"
					 "command x\nend\n",
		name, about);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

/* A program keeps its agents until it exits. */
static void free_agents(struct agents *set)
{
	for (size_t i = 0; i < set->n; i++) {
		agent_done(set->v[i]);
		free(set->v[i]);
	}
	for (size_t i = 0; i < set->n_gone; i++) {
		agent_done(set->gone[i]);
		free(set->gone[i]);
	}
	for (size_t i = 0; i < set->n_faults; i++)
		free(set->fault[i]);
}

static void shipped_ones_are_right(void **state)
{
	static const char *const names[] = {"amp", "claude", "codex", "copilot", "droid", "gemini",
		"opencode", "qwen", "shell"};
	CLEANUP(free_agents) struct agents set = {0};
	struct services *all = services_new();
	struct err err = {0};

	assert_int_equal(agents_load(&set, shipped, false, &err), 0);
	for (size_t i = 0; i < set.n_faults; i++)
		fail_msg("%s", set.fault[i]);
	assert_int_equal(set.n, ARRAY_LEN(names));
	assert_int_equal(services_load(all, services, &err), 0);
	for (size_t i = 0; i < set.n; i++) {
		assert_string_equal(set.v[i]->name, names[i]);
		for (size_t k = 0; k < set.v[i]->service.n; k++)
			assert_non_null(services_by_name(all, set.v[i]->service.v[k].a));
	}
	services_free(all);
}

/* The npm packages `aider` and `cursor-agent` belong to other people, @sourcegraph/amp is the old
 * name of @ampcode/cli. */
static void packages_are_those_of_their_vendors(void **state)
{
	static const char *const packages[][2] = {{"amp", "@ampcode/cli"},
		{"claude", "@anthropic-ai/claude-code"}, {"codex", "@openai/codex"},
		{"copilot", "@github/copilot"}, {"droid", "droid"},
		{"gemini", "@google/gemini-cli"}, {"opencode", "opencode-ai"},
		{"qwen", "@qwen-code/qwen-code"}};
	static const char *const gone[] = {"aider", "cursor", "kiro"};
	CLEANUP(free_agents) struct agents set = {0};
	struct err err = {0};

	assert_int_equal(agents_load(&set, shipped, false, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(packages); i++) {
		const struct agent *a = agents_find(&set, packages[i][0]);

		assert_non_null(a);
		assert_int_equal(a->package.n, 1);
		assert_string_equal(a->package.v[0].a, packages[i][1]);
		assert_string_equal(a->pin.v[0].a, packages[i][1]);
		assert_non_null(strstr(a->publisher, "vendor: "));
		assert_null(agents_unavailable(&set, a->name));
	}
	assert_int_equal(set.n, ARRAY_LEN(packages) + 1); /* shell */
	assert_int_equal(set.n_gone, ARRAY_LEN(gone));
	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		assert_null(agents_find(&set, gone[i]));
		assert_non_null(agents_unavailable(&set, gone[i]));
	}
}

/* A user who knows how to install one can write its file. */
static void an_own_file_replaces_one_that_cannot_be_installed(void **state)
{
	char one[] = "/tmp/sbx-agents-XXXXXX", two[] = "/tmp/sbx-agents-XXXXXX";
	AUTO_FREE char *path = NULL;
	CLEANUP(free_agents) struct agents set = {0};
	struct err err = {0};

	assert_non_null(mkdtemp(one));
	assert_non_null(mkdtemp(two));
	path = xasprintf("%s/aa.conf", one);
	assert_int_equal(file_save(path,
				 slice_from_str("agent 1\nname aa\ntitle T\nabout x\n"
						"unavailable because\nend\n"),
				 NULL),
		0);
	write_agent(two, "aa", "own");
	assert_int_equal(agents_load(&set, one, false, &err), 0);
	assert_string_equal(agents_unavailable(&set, "aa"), "because");
	assert_int_equal(agents_load(&set, two, true, &err), 0);
	assert_null(agents_unavailable(&set, "aa"));
	assert_string_equal(agents_find(&set, "aa")->about, "own");
}

/* A service whose host the agent does not name could not be reached with the agent's rules
 * alone. */
static void agents_reach_what_their_credential_is_for(void **state)
{
	CLEANUP(free_agents) struct agents set = {0};
	struct services *all = services_new();
	struct err err = {0};

	assert_int_equal(agents_load(&set, shipped, false, &err), 0);
	assert_int_equal(services_load(all, services, &err), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct agent *a = set.v[i];

		for (size_t k = 0; k < a->service.n; k++) {
			bool met = false;

			for (size_t h = 0; h < a->host.n; h++) {
				struct slice text;
				struct host host;
				uint16_t port;
				const struct service *s;

				assert_int_equal(host_split(slice_from_str(a->host.v[h].a), &text,
							 &port, NULL),
					0);
				assert_int_equal(host_from_wire(text, &host, NULL), 0);
				s = services_find(all, &host, port);
				met = met || (s && strcmp(s->name, a->service.v[k].a) == 0);
			}
			if (!met)
				fail_msg("%s: no host of service %s", a->name, a->service.v[k].a);
		}
	}
	services_free(all);
}

static void own_files_take_the_place_of_shipped_ones(void **state)
{
	char one[] = "/tmp/sbx-agents-XXXXXX", two[] = "/tmp/sbx-agents-XXXXXX";
	AUTO_FREE char *bad = NULL, *wrong = NULL, *fifo = NULL;
	CLEANUP(free_agents) struct agents set = {0};
	struct err err = {0};

	assert_non_null(mkdtemp(one));
	assert_non_null(mkdtemp(two));
	write_agent(one, "aa", "shipped");
	write_agent(one, "bb", "shipped");
	write_agent(one, "dd", "shipped");
	write_agent(two, "bb", "own");
	write_agent(two, "cc", "own");
	bad = xasprintf("%s/dd.conf", two);
	wrong = xasprintf("%s/ee.conf", two);
	fifo = xasprintf("%s/gg.conf", two);
	assert_int_equal(file_save(bad, slice_from_str("agent 1\nend\n"), NULL), 0);
	assert_int_equal(file_save(wrong,
				 slice_from_str("agent 1\nname ff\ntitle T\nabout x\n"
						"template debian\ncommand x\nend\n"),
				 NULL),
		0);
	assert_int_equal(agents_load(&set, one, false, &err), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	(void)alarm(10); /* a reader that waits for a writer of the FIFO */
	assert_int_equal(agents_load(&set, two, true, &err), 0);
	(void)alarm(0);
	assert_int_equal(agents_load(&set, "/nonexistent", true, &err), 0);
	assert_int_equal(set.n, 3);
	assert_string_equal(agents_find(&set, "aa")->about, "shipped");
	assert_string_equal(agents_find(&set, "bb")->about, "own");
	assert_true(set.own[1]);
	assert_non_null(agents_find(&set, "cc"));
	assert_null(agents_find(&set, "dd")); /* a broken one hides the shipped one */
	assert_int_equal(set.n_faults, 3);
	assert_non_null(strstr(set.fault[0], "dd.conf: line 2"));
	assert_non_null(strstr(set.fault[1], "the agent name 'ff'"));
	assert_non_null(strstr(set.fault[2], "gg.conf is not a regular file"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_ones_are_right),
		cmocka_unit_test(packages_are_those_of_their_vendors),
		cmocka_unit_test(an_own_file_replaces_one_that_cannot_be_installed),
		cmocka_unit_test(agents_reach_what_their_credential_is_for),
		cmocka_unit_test(own_files_take_the_place_of_shipped_ones),
	};

	shipped = argv[1];
	services = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
