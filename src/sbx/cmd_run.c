#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_need.h"
#include "attach.h"
#include "create.h"
#include "policy_api.h"
#include "sandbox.h"
#include "verb.h"
#include "workspace.h"

static const struct opt_def opts[] = {
	CREATE_OPTS,
	{'d', "detached", NULL, "start it, print its name and return"},
	{0, "rm", NULL, "remove it when the session ends"},
	{0, "detach-keys", "KEYS", "leave the agent running with these keys (ctrl-\\)"},
	{0},
};

/* What the arguments come to. */
struct plan {
	const char *agent; /* NULL: not said */
	const char *name;  /* NULL: made from agent and folder */
	const char *const *paths;
	size_t n_paths;
	json_t *there; /* the sandbox, when it exists */
};

static void plan_done(struct plan *plan)
{
	json_decref(plan->there);
}

/* 1 when there is such a sandbox, 0 when not. */
static int look_up(const char *name, json_t **ret, struct problem *p)
{
	struct problem q = {0};
	int r = sandbox_get(name, ret, &q);

	if (r == 0 || r == -ENOENT)
		return r == 0;
	*p = q;
	return r;
}

static int fail_unknown(const char *word, struct problem *p)
{
	const char *near = agent_need_nearest(word);

	(void)err_set(&p->err, -ENOENT, "'%s' is neither an agent nor a sandbox", word);
	if (near)
		return problem_hint(p, -ENOENT, "sbx run %s", near);
	return problem_hint(
		p, -ENOENT, "sbx agent ls, sbx ls, or for a folder: sbx run shell ./%s", word);
}

/* [AGENT] [PATH...], or the name of a sandbox that is there. */
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

/* Workspaces are fixed when a sandbox is made: naming others must not pass in silence. */
static int check_paths(const struct plan *plan, bool force, struct problem *p)
{
	const json_t *list = json_object_get(plan->there, "workspaces"), *w;
	size_t k;

	for (size_t i = 0; i < plan->n_paths; i++) {
		CLEANUP(workspace_done) struct workspace want = {0};
		bool found = false;
		int r = workspace_parse(plan->paths[i], force, &want, p);

		if (r < 0)
			return r;
		json_array_foreach(list, k, w) found =
			found || strcmp(api_str(w, "host"), want.host) == 0;
		if (!found) {
			(void)err_set(&p->err, -EEXIST,
				"the sandbox '%s' is there and does not share '%s'", plan->name,
				want.host);
			return problem_hint(p, -EEXIST, "another --name makes a new one");
		}
	}
	return 0;
}

/* An agent that is named and another one inside must not pass in silence. */
static int check_agent(const struct plan *plan, struct problem *p)
{
	const char *has = api_str(plan->there, "agent");

	if (!plan->agent || strcmp(plan->agent, has) == 0)
		return 0;
	(void)err_set(&p->err, -EEXIST, "the sandbox '%s' is there, and runs %s, not %s",
		plan->name, has, plan->agent);
	return problem_hint(p, -EEXIST, "sbx run --name %s, or another --name", plan->name);
}

/* What counts only when a sandbox is made must not pass in silence either. */
static void warn_about_policy(const struct opts *o, const char *name)
{
	if (opts_has(o, "allow-network") || opts_has(o, "deny-network")) {
		ui_warning("'%s' is there already: --allow-network and --deny-network count only "
			   "when it is made",
			name);
		ui_hint("sbx policy allow network HOST --sandbox %s", name);
	}
	if (opts_has(o, "allow-hosts") || opts_has(o, "import-config"))
		ui_warning(
			"'%s' is there already: --allow-hosts and --import-config count only when "
			"it is made",
			name);
	if (!policy_is_there()) {
		ui_warning("there is no network policy: nothing is allowed");
		ui_hint("sbx policy set-default balanced");
	}
}

static int find_or_make(const struct opts *o, struct plan *plan, struct creation *c, bool *ret_made,
	struct problem *p)
{
	bool force = opts_has(o, "force");
	int r = 0;

	if (plan->name && !plan->there)
		r = look_up(plan->name, &plan->there, p);
	if (r < 0)
		return r;
	if (!plan->there) {
		r = create_parse(o, plan->agent ? plan->agent : "shell", plan->paths, plan->n_paths,
			true, c, p);
		if (r < 0)
			return r;
		if (!plan->name)
			r = look_up(c->name, &plan->there, p);
		plan->name = c->name;
	}
	if (r < 0)
		return r;
	if (plan->there) {
		warn_about_policy(o, plan->name);
		r = check_agent(plan, p);
		return r < 0 ? r : check_paths(plan, force, p);
	}
	*ret_made = true;
	/* with a pipe behind stdout only the command's own output goes there */
	return create_make(c, opts_has(o, "detached") || !isatty(STDOUT_FILENO), &plan->there, p);
}

/* The agent with its flags. Behind `--`: options are added to them; other words take their place, and for a
 * shell that of the shell too. */
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

/* In a terminal the agent is kept: it can be left and come back to. A command of the user's own is
 * a plain one, and so is everything in a script. */
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
		ui_error("'%s' runs the agent '%s', of which nothing is known here", plan->name,
			name);
		ui_hint("sbx exec -it %s bash, or sbx agent ls", plan->name);
		return EXIT_OURS;
	}
	build_argv(o, agent, &argv);
	a.argv = argv.v;
	status = attach_run(&a);
	*ret_left = a.left != SESSION_NOT_LEFT;
	free(argv.v);
	return status;
}

static int remove_after(const char *name)
{
	struct problem p = {0};
	int r = sandbox_remove(name, true, &p);

	if (r < 0)
		return ui_problem(&p, r);
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

static int run(struct opts *o)
{
	CLEANUP(creation_done) struct creation c = {0};
	CLEANUP(plan_done) struct plan plan = {0};
	AUTO_ENV struct env env = {0};
	struct problem p = {0};
	bool made = false, left = false;
	int r, status;

	if (opts_has(o, "cold"))
		sandbox_want_cold();
	if (opts_has(o, "rm") && opts_has(o, "detached")) {
		ui_error("sbx run: --rm and --detached do not go together");
		return EXIT_USAGE;
	}
	r = env_from_opts(&env, opts_list(o, "env-file"), opts_list(o, "env"), &p.err);
	if (r < 0)
		r = problem_usage(&p, r, "run");
	if (r == 0)
		r = read_args(o, &plan, &p);
	if (r == 0 && create_only_lists(o, plan.agent ? plan.agent : "shell", &status))
		return status;
	if (r == 0)
		r = find_or_make(o, &plan, &c, &made, &p);
	if (r < 0)
		return ui_problem(&p, r) == EXIT_USAGE ? EXIT_USAGE : EXIT_OURS;
	if (made && !opts_has(o, "detached") && isatty(STDOUT_FILENO))
		printf("%s Created sandbox %s\n", ui_tick(), plan.name);
	(void)fflush(stdout);
	if (opts_has(o, "detached"))
		return start_detached(o, &plan) == EXIT_OK ? EXIT_OK : EXIT_OURS;
	status = run_session(o, &plan, &env, &left);
	if (left && opts_has(o, "rm")) {
		ui_note("'%s' is kept running and was not removed", plan.name);
		ui_hint("sbx rm %s, when it is done", plan.name);
		return status;
	}
	if (opts_has(o, "rm") && remove_after(plan.name) != EXIT_OK && status == EXIT_OK)
		status = EXIT_OURS;
	return status;
}

const struct verb verb_run = {
	.name = "run",
	.group = "sandboxes",
	.args = "[AGENT|SANDBOX] [PATH...]",
	.summary = "make a sandbox if needed, and work in it",
	.about =
		"Opens a session in a sandbox: makes it when it is not there, starts it when it "
		"is\n"
		"stopped, and attaches the agent (claude, codex, gemini ...; for shell a login "
		"shell) to\n"
		"this terminal. Without a PATH the current folder is shared. The same command in "
		"the "
		"same\n"
		"folder comes back to the same sandbox; run NAME does so from anywhere.\n\n"
		"When it makes one, it shows the hosts that the agent needs; those that the policy "
		"does\n"
		"not allow are allowed for this sandbox only when you say yes. --import-config "
		"copies\n"
		"your own settings of the agent, never credentials, and shows each file.\n\n"
		"What stands behind -- goes to the agent: options are added to its own (-- "
		"--continue),\n"
		"other words take their place (-- mcp list); for shell they are a command (-- make "
		"test).\n"
		"The exit status is the session's; 125 when sbx failed.",
	.examples = "  sbx run claude\n"
		    "  sbx run codex ~/src/app ~/docs:ro\n"
		    "  sbx run claude -- --continue\n"
		    "  sbx run shell . ~/docs:ro --hide '.env*'\n"
		    "  sbx run --name demo\n"
		    "  sbx run --rm -- make test\n",
	.opts = opts,
	.max = 66,
	.rest = true,
	.first = VERB_AGENT,
	.others = VERB_PATH,
	.run = run,
};
