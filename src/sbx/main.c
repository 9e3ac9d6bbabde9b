/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/client/cli/ui.h"
#include "src/sbx/agent/agent.h"
#include "src/sbx/audit/audit.h"
#include "src/sbx/clone/clone.h"
#include "src/sbx/host/host.h"
#include "src/sbx/open/open.h"
#include "src/sbx/policy/policy.h"
#include "src/sbx/rewind/rewind.h"
#include "src/sbx/sandbox/sandbox.h"
#include "src/sbx/secret/secret.h"
#include "src/sbx/session/session.h"
#include "src/sbx/ssh/ssh.h"
#include "src/sbx/stage/stage.h"
#include "src/sbx/template/template.h"
#include "src/sbx/top/top.h"
#include "completion.h"

const struct verb *const verb_table[] = {
	&verb_create,
	&verb_run,
	&verb_exec,
	&verb_ssh,
	&verb_code,
	&verb_attach,
	&verb_ls,
	&verb_stats,
	&verb_top,
	&verb_inspect,
	&verb_start,
	&verb_restart,
	&verb_logs,
	&verb_stop,
	&verb_rm,
	&verb_prune,
	&verb_reset,
	&verb_cp,
	&verb_rename,
	&verb_update,
	&verb_checkpoint,
	&verb_rewind,
	&verb_fork,
	&verb_ports,
	&verb_review,
	&verb_apply,
	&verb_undo,
	&verb_discard,
	&verb_agent,
	&verb_template,
	&verb_audit,
	&verb_policy,
	&verb_approve,
	&verb_refuse,
	&verb_open,
	&verb_api,
	&verb_secret,
	&verb_settings,
	&verb_setup,
	&verb_daemon,
	&verb_diagnose,
	&verb_debug,
	&verb_metrics,
	&verb_prove,
	&verb_version,
	&verb_completion,
	NULL,
};

/* Names known from docker and podman. Help and completion show only our own names. */
static const struct alias {
	const char *name, *verb, *sub; /* sub NULL: the verb has none */
} aliases[] = {
	{"ps", "ls", NULL},
	{"list", "ls", NULL},
	{"images", "template", "ls"},
};

static const struct alias *find_alias(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (strcmp(aliases[i].name, name) == 0)
			return &aliases[i];
	return NULL;
}

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *const *v = verb_table; *v; v++)
		if (strcmp((*v)->name, name) == 0)
			return *v;
	return NULL;
}

static void print_opts(const struct opt_def *defs)
{
	for (; defs && defs->name; defs++) {
		char left[64];

		if (defs->hidden)
			continue;
		if (defs->heading)
			printf("\n%s:\n", defs->heading);
		(void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s%s", defs->letter ? '-' : ' ',
			defs->letter ? defs->letter : ' ', defs->letter ? ", " : "  ", defs->name,
			defs->optional ? "[=" : (defs->arg ? " " : ""), defs->arg ? defs->arg : "",
			defs->optional ? "]" : "");
		printf("  %-29s %s%s\n", left, defs->help, defs->many ? " (repeatable)" : "");
	}
	printf("  %-29s %s\n", "-h, --help", "print help");
}

static void print_help(const struct verb *v, const char *path)
{
	printf("usage: sbx %s%s%s%s%s\n\n%s\n", path,
		v->opts && v->opts->name ? " [OPTION...]" : "", v->args[0] ? " " : "", v->args,
		v->rest ? " [-- ARG...]" : "", v->about);
	if (v->subs) {
		printf("\ncommands:\n");
		for (const struct verb *s = v->subs; s->name; s++)
			printf("  %-26s %s\n", s->name, s->summary);
		printf("\n"
		       "sbx help %s COMMAND prints the help of a command.\n",
			path);
	}
	if (!v->subs) {
		printf("\noptions:\n");
		print_opts(v->opts);
	}
	if (v->examples)
		printf("\nexamples:\n%s", v->examples);
}

static void print_overview(void)
{
	const char *group = "";

	printf("usage: sbx [-D] COMMAND [OPTION...] [ARG...]\n"
	       "       sbx help [COMMAND...]\n\n"
	       "sbx runs coding agents in microVMs, as an ordinary user.\n");
	for (const struct verb *const *v = verb_table; *v; v++) {
		if (strcmp(group, (*v)->group) != 0)
			printf("\n%s:\n", (*v)->group);
		group = (*v)->group;
		printf("  %-12s %s\n", (*v)->name, (*v)->summary);
	}
	printf("\n"
	       "options before the command:\n"
	       "  -D, --debug  print debug messages\n"
	       "  -h, --help   print help\n\n"
	       "sbx help COMMAND prints the help of a command. To begin, in the directory of a\n"
	       "project: sbx run claude. sbx agent ls lists the agents.\n");
}

static int unknown_sbx(const char *what, const char *prefix, const char *const *words)
{
	const char *near = opt_nearest(what, words);

	ui_error("unknown command '%s%s'", prefix, what);
	if (near)
		ui_hint("sbx %s%s", prefix, near);
	else
		ui_hint("sbx help%s%.*s", prefix[0] ? " " : "", (int)strcspn(prefix, " "), prefix);
	return EXIT_USAGE;
}

static int unknown_verb(const char *name)
{
	const char *words[ARRAY_LEN(verb_table) + 1] = {"help"};

	for (size_t i = 0; verb_table[i]; i++)
		words[i + 1] = verb_table[i]->name;
	return unknown_sbx(name, "", words);
}

static int unknown_sub(const struct verb *v, const char *name)
{
	const char *words[16] = {NULL};
	char prefix[32];

	for (size_t i = 0; v->subs[i].name && i + 1 < ARRAY_LEN(words); i++)
		words[i] = v->subs[i].name;
	(void)snprintf(prefix, sizeof(prefix), "%s ", v->name);
	return unknown_sbx(name, prefix, words);
}

static const struct verb *find_sub(const struct verb *v, const char *name)
{
	if (v == &verb_settings && strcmp(name, "ls") == 0)
		name = "list";
	for (const struct verb *s = v->subs; s && s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

static int usage_sbx(const char *path, const char *text)
{
	ui_error("sbx %s: %s", path, text);
	ui_hint("sbx help %s", path);
	return EXIT_USAGE;
}

static int check_count(
	const struct verb *v, const char *path, const struct opts *o, struct err *err)
{
	if (o->args.n < v->min)
		return err_set(err, -EINVAL, "missing argument; usage: sbx %s %s", path, v->args);
	if (o->args.n > v->max)
		return err_set(err, -EINVAL, "unexpected argument '%s'", o->args.v[v->max]);
	if (o->has_rest && !v->rest && o->rest.n > 0)
		return err_set(err, -EINVAL, "unexpected arguments after --");
	return 0;
}

/* Help is accepted anywhere before `--`, but not in the command line that exec passes on. */
static bool wants_help(const struct verb *v, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0 || (v->stop_after && argv[i][0] != '-'))
			return false;
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return true;
	}
	return false;
}

static int run_verb(const struct verb *v, const char *path, int argc, char **argv)
{
	CLEANUP(opts_done) struct opts o = {0};
	struct err err = {0};

	if (wants_help(v, argc, argv)) {
		print_help(v, path);
		return EXIT_OK;
	}
	if (opt_parse(v->opts, v->stop_after, argc, argv, &o, &err) < 0 ||
		check_count(v, path, &o, &err) < 0)
		return usage_sbx(path, err.text);
	return v->run(&o);
}

static int run_group(const struct verb *v, int argc, char **argv)
{
	const struct verb *sub = argc > 0 ? find_sub(v, argv[0]) : NULL;
	char path[64];

	if (argc == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0) {
		print_help(v, v->name);
		return argc == 0 ? EXIT_USAGE : EXIT_OK;
	}
	if (!sub)
		return unknown_sub(v, argv[0]);
	(void)snprintf(path, sizeof(path), "%s %s", v->name, sub->name);
	return run_verb(sub, path, argc - 1, argv + 1);
}

static int run_help(int argc, char **argv)
{
	const struct alias *a = argc == 1 ? find_alias(argv[0]) : NULL;
	const char *words[] = {a ? a->verb : NULL, a ? a->sub : NULL};
	const struct verb *v = NULL, *sub = NULL;
	char path[64];

	if (argc == 0) {
		print_overview();
		return EXIT_OK;
	}
	if (a)
		return run_help(a->sub ? 2 : 1, (char **)words);
	v = find_verb(argv[0]);
	if (!v)
		return unknown_verb(argv[0]);
	if (argc > 1 && !(sub = find_sub(v, argv[1])))
		return v->subs ? unknown_sub(v, argv[1])
			       : usage_sbx(v->name, "the command has no subcommands");
	(void)snprintf(path, sizeof(path), "%s%s%s", v->name, sub ? " " : "", sub ? sub->name : "");
	print_help(sub ? sub : v, path);
	return EXIT_OK;
}

static int run_alias(const struct alias *a, int argc, char **argv)
{
	const struct verb *v = find_verb(a->verb), *sub = a->sub ? find_sub(v, a->sub) : NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s%s%s", v->name, sub ? " " : "", sub ? sub->name : "");
	return run_verb(sub ? sub : v, path, argc, argv);
}

static int dispatch_sbx(int argc, char **argv)
{
	static char version[] = "version";
	const struct verb *v;

	if (argc == 0 && top_is_wanted())
		return top_run();
	if (argc == 0) {
		print_overview();
		return EXIT_USAGE;
	}
	if (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "-h") == 0 ||
		strcmp(argv[0], "--help") == 0)
		return run_help(argc - 1, argv + 1);
	if (strcmp(argv[0], "--version") == 0)
		argv[0] = version;
	if (find_alias(argv[0]))
		return run_alias(find_alias(argv[0]), argc - 1, argv + 1);
	v = find_verb(argv[0]);
	if (!v && argv[0][0] == '-') {
		ui_error("unknown option %s", argv[0]);
		ui_hint("sbx help");
		return EXIT_USAGE;
	}
	if (!v)
		return unknown_verb(argv[0]);
	return v->subs ? run_group(v, argc - 1, argv + 1)
		       : run_verb(v, v->name, argc - 1, argv + 1);
}

/* git runs sbx by this name, for a remote with the URL sbx::NAME. */
static bool is_remote_helper(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "git-remote-sbx") == 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};

	log_init("sbx");
	ui_init();
	if (trace_init(&err) < 0) {
		ui_error("%s", err.text);
		return EXIT_USAGE;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (is_remote_helper(argv[0]))
		return ui_finish(remote_main(argc, argv));
	argc--, argv++;
	while (argc > 0 && (strcmp(argv[0], "-D") == 0 || strcmp(argv[0], "--debug") == 0)) {
		ui_set_debug(true);
		argc--, argv++;
	}
	return ui_finish(dispatch_sbx(argc, argv));
}
