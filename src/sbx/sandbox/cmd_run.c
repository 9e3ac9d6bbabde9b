/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "src/sbx/agent/agent.h"
#include "src/sbx/clone/clone.h"
#include "src/sbx/review/review.h"
#include "src/sbx/session/session.h"
#include "src/sbx/stage/stage.h"
#include "create.h"
#include "existing.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"
#include "src/sbx/sandbox/project/project.h"

static const struct opt_def opts[] = {
	CREATE_OPTS,
	{'d', "detached", NULL, "start the sandbox, print its name and exit",
		.heading = "options of the session"},
	{0, "rm", NULL, "remove the sandbox when the session exits"},
	{0, "detach-keys", "KEYS", "keys that detach from the agent (default: ctrl-\\)"},
	{0},
};

/* Meaning of the arguments. */
struct plan {
	const char *agent; /* NULL: not given */
	const char *name;  /* NULL: derived from agent and directory */
	const char *const *paths;
	size_t n_paths;
	json_t *there; /* the sandbox, if it exists */
};

static void plan_done(struct plan *plan)
{
	json_decref(plan->there);
}

/* Returns 1 if the sandbox exists, 0 if not. */
static int look_up(const char *name, json_t **ret, struct problem *p)
{
	struct problem q = {0};
	int r = sandbox_get(name, ret, &q);

	if (r == 0 || r == -ENOENT)
		return r == 0;
	*p = q;
	return r;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int fail_unknown(const char *word, struct problem *p)
{
	const char *near = agent_need_nearest(word),
		   *why = agents_unavailable(agent_need_all(), word);

	if (why) {
		(void)err_set(
			&p->err, -ENOENT, "the agent '%s' cannot be installed: %s", word, why);
		return problem_hint(p, -ENOENT, "sbx run shell");
	}
	(void)err_set(&p->err, -ENOENT, "no agent or sandbox named '%s'", word);
	if (near)
		return problem_hint(p, -ENOENT, "sbx run %s", near);
	return problem_hint(
		p, -ENOENT, is_folder(word) ? "sbx run shell ./%s" : "sbx agent ls", word);
}

/* [AGENT] [PATH...], or the name of an existing sandbox. */
static int read_args(const struct opts *o, struct plan *plan, struct problem *p)
{
	const char *word = o->args.n > 0 ? o->args.v[0] : NULL;
	bool agent = word && create_is_agent(word);
	int r;

	*plan = (struct plan){.agent = agent ? word : NULL, .name = opts_value(o, "name")};
	plan->paths = o->args.v + (agent ? 1 : 0);
	plan->n_paths = o->args.n - (agent ? 1 : 0);
	if (word && !agent && !strchr(word, '/') && word[0] != '.') {
		r = plan->name ? 0 : look_up(word, &plan->there, p);
		if (r < 0)
			return r;
		if (r == 0)
			return fail_unknown(word, p);
		plan->name = word;
		plan->paths++;
		plan->n_paths--;
	}
	return 0;
}

/* An agent that differs from the sandbox's must not be accepted silently. */
static int check_agent(const struct plan *plan, struct problem *p)
{
	const char *has = api_str(plan->there, "agent");

	if (!plan->agent || strcmp(plan->agent, has) == 0)
		return 0;
	(void)err_set(&p->err, -EEXIST,
		"sandbox '%s' already exists with agent %s, not %s: use another --name for a new sandbox",
		plan->name, has, plan->agent);
	return problem_hint(p, -EEXIST, "sbx run --name %s", plan->name);
}

static void warn_about_policy(void)
{
	if (policy_is_there())
		return;
	ui_warning("no network policy is set: all traffic is denied");
	ui_hint("sbx policy set-default balanced");
}

/* The options as for a new sandbox, with the name and the agent of the existing one. */
static int use_existing(
	const struct opts *o, const struct plan *plan, struct creation *want, struct problem *p)
{
	int r = check_agent(plan, p);

	if (r == 0)
		r = existing_check(o, want, plan->there, p);
	if (r == 0)
		r = existing_apply(want, plan->there, p);
	if (r == 0)
		warn_about_policy();
	return r;
}

static int find_or_make(const struct opts *o, struct plan *plan, struct creation *c, bool *ret_made,
	struct problem *p)
{
	const char *agent = plan->agent ? plan->agent : "shell";
	int r = 0;

	if (plan->name && !plan->there)
		r = look_up(plan->name, &plan->there, p);
	if (r == 0 && plan->there && create_is_agent(api_str(plan->there, "agent")))
		agent = api_str(plan->there, "agent");
	if (r >= 0)
		r = create_parse(o, agent, plan->paths, plan->n_paths, !plan->there, c, p);
	if (r < 0)
		return r;
	if (!plan->name)
		r = look_up(c->name, &plan->there, p);
	if (r < 0)
		return r;
	if (!plan->name || !plan->there)
		plan->name = c->name;
	c->name = plan->name;
	if (plan->there)
		return use_existing(o, plan, c, p);
	r = project_apply(o, c, p);
	if (r < 0)
		return problem_usage(p, r, "run");
	*ret_made = true;
	/* if stdout is a pipe, it gets only the command's own output */
	return create_make(c, opts_has(o, "detached") || !isatty(STDOUT_FILENO), &plan->there, p);
}

/* The agent with its flags. After `--`: options are added to them; other words replace them, and
 * for a shell the shell too. */
static void build_argv(const struct opts *o, const struct agent *a, struct opt_list *argv)
{
	bool own = o->rest.n > 0 && o->rest.v[0][0] != '-';

	if (!own || strcmp(a->name, "shell") != 0)
		opt_list_add(argv, a->command);
	for (size_t i = 0; !own && i < a->flag.n; i++)
		opt_list_add(argv, a->flag.v[i].a);
	for (size_t i = 0; i < o->rest.n; i++)
		opt_list_add(argv, o->rest.v[i]);
}

/* On a terminal the agent is a kept session: the user can detach and reattach. The user's own
 * command is a plain one, and so is everything in a script. */
static int run_session(
	const struct opts *o, const struct plan *plan, struct env *env, bool *ret_left)
{
	const char *name = api_str(plan->there, "agent");
	const struct agent *agent = agent_need_find(name);
	bool tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct opt_list argv = {0};
	struct attach a = {.ref = plan->name,
		.accel = opts_value(o, "accel"),
		.env = env,
		.in = true,
		.tty = tty,
		.session = tty && o->rest.n == 0 ? ATTACH_AGENT : NULL,
		.detach_keys = opts_value(o, "detach-keys")};
	int status;

	if (!agent) {
		ui_error("sandbox '%s' uses the unknown agent '%s'", plan->name, name);
		ui_hint("sbx exec -it %s bash", plan->name);
		return EXIT_OURS;
	}
	build_argv(o, agent, &argv);
	a.argv = argv.v;
	if (a.session && strcmp(agent->name, "shell") != 0)
		a.starting = agent->title;
	status = attach_run(&a);
	*ret_left = a.left != SESSION_NOT_LEFT;
	free(argv.v);
	return status;
}

static int remove_after(const char *name)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = sandbox_get(name, &s, &p);

	if (r == 0)
		r = clone_keep(s, &p);
	if (r == 0)
		r = stage_may_remove(s, true, &p);
	if (r == 0)
		r = sandbox_remove(name, true, &p);
	if (r < 0)
		return ui_problem(&p, r);
	clone_forget(s);
	if (ui_is_terminal())
		ui_note("Sandbox '%s' removed", name);
	return EXIT_OK;
}

static int start_detached(const struct opts *o, const struct plan *plan)
{
	struct problem p = {0};
	int r = sandbox_start(plan->name, opts_value(o, "accel"), NULL, &p);

	if (r < 0)
		return ui_problem(&p, r);
	printf("%s\n", plan->name);
	return EXIT_OK;
}

static int import_again(
	const struct opts *o, const struct plan *plan, const struct creation *c, struct problem *p)
{
	int r = sandbox_start(plan->name, opts_value(o, "accel"), NULL, p);

	return r < 0 ? r : existing_import(c, plan->there, p);
}

/* Options that contradict each other, or have no effect together. */
static bool are_contrary(const struct opts *o)
{
	static const char *const with[] = {"rm", "detach-keys"};

	for (size_t i = 0; opts_has(o, "detached") && i < ARRAY_LEN(with); i++)
		if (opts_has(o, with[i])) {
			ui_error("sbx run: --%s and --detached are mutually exclusive", with[i]);
			ui_hint("sbx help run");
			return true;
		}
	if (opts_has(o, "detached") && o->has_rest) {
		ui_error("sbx run: --detached starts no command: unexpected arguments after --");
		ui_hint("sbx help exec");
		return true;
	}
	return false;
}

/* The last line of a session: what changed, and where to look at it. */
static void print_end(const char *name, uint64_t began, bool removed)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	bool is_clone, is_staged;

	if (sandbox_get(name, &s, &p) < 0)
		return;
	is_clone = json_object_get(s, "clone");
	is_staged = json_is_true(json_object_get(s, "staged"));
	if (removed)
		review_note_removed(s, began);
	else
		review_note(s, began, !is_clone && !is_staged);
	if (is_clone && !removed)
		clone_note(s);
	else if (is_staged && !removed)
		stage_note(s);
}

static int run_all(struct opts *o)
{
	CLEANUP(creation_done) struct creation c = {0};
	CLEANUP(plan_done) struct plan plan = {0};
	AUTO_ENV struct env env = {0};
	struct problem p = {0};
	bool made = false, left = false;
	uint64_t began;
	int r, status;

	if (opts_has(o, "cold"))
		sandbox_want_cold();
	if (are_contrary(o))
		return EXIT_USAGE;
	r = env_from_opts(&env, opts_list(o, "env-file"), opts_list(o, "env"), &p);
	if (r < 0)
		r = problem_usage(&p, r, "run");
	if (r == 0)
		r = read_args(o, &plan, &p);
	if (r == 0 && create_only_lists(o, plan.agent ? plan.agent : "shell", &status))
		return status;
	if (r == 0)
		r = find_or_make(o, &plan, &c, &made, &p);
	if (r == 0 && !made && c.import)
		r = import_again(o, &plan, &c, &p);
	if (r < 0)
		return ui_problem(&p, r) == EXIT_USAGE ? EXIT_USAGE : EXIT_OURS;
	if (made && !opts_has(o, "detached") && isatty(STDOUT_FILENO))
		printf("%s Created sandbox %s\n", ui_tick(), plan.name);
	(void)fflush(stdout);
	if (opts_has(o, "detached"))
		return start_detached(o, &plan) == EXIT_OK ? EXIT_OK : EXIT_OURS;
	began = clock_wall_ms();
	status = run_session(o, &plan, &env, &left);
	if (left && opts_has(o, "rm")) {
		ui_note("Sandbox '%s' is still running and was not removed. To remove it:",
			plan.name);
		ui_hint("sbx rm %s", plan.name);
		return status;
	}
	if (!left)
		print_end(plan.name, began, opts_has(o, "rm"));
	if (opts_has(o, "rm") && remove_after(plan.name) != EXIT_OK && status == EXIT_OK)
		status = EXIT_OURS;
	return status;
}

const struct verb verb_run = {
	.name = "run",
	.group = "sandboxes",
	.args = "[AGENT|SANDBOX] [PATH...]",
	.summary = "create a sandbox if needed and run its agent",
	.about =
		"Opens a session in a sandbox. Creates the sandbox if it does not exist, starts it if it\n"
		"is stopped, and attaches the agent (claude, codex, gemini ...; a login shell for shell)\n"
		"to this terminal. Without a PATH, the current directory is shared. The same command in\n"
		"the same directory uses the same sandbox; sbx run SANDBOX does so from any directory. If\n"
		"the sandbox exists, each option is applied, or refused with the command to run instead.\n\n"
		"For a new sandbox, the hosts that the agent needs are listed. Hosts that the policy does\n"
		"not allow are allowed for this sandbox only after you confirm. --import-config copies\n"
		"your agent configuration, never credentials, and prints each file.\n\n"
		"Arguments after -- are passed to the agent. Options are added to the agent's own\n"
		"(-- --continue), other words replace them (-- mcp list). For shell they are a command\n"
		"(-- make test). The exit status is that of the session, or 125 if sbx fails.",
	.examples = "  sbx run claude\n"
		    "  sbx run codex ~/src/app ~/docs:ro\n"
		    "  sbx run claude -- --continue\n"
		    "  sbx run shell . ~/docs:ro --hide '.env*'\n"
		    "  sbx run --name demo\n"
		    "  sbx run --rm -- make test\n",
	.opts = opts,
	.max = 66,
	.rest = true,
	.first = VERB_RUN,
	.others = VERB_PATH,
	.run = run_all,
};
