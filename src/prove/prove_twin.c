/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_twin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/policy_file.h"
#include "prove_clean.h"
#include "lib/client/api/sandbox.h"

#define PREFIX "prove-"
#define REMOVE_SECONDS 90
#define MAX_SWEPT 16

bool prove_twin_is_name(const char *name)
{
	const char *word = name + strlen(PREFIX);

	return str_starts(name, PREFIX) && hex_is(word, PROVE_WORD);
}

static void fail_twin(struct prove_twin *t, const char *why)
{
	AUTO_FREE char *clean = prove_clean(slice_from_str(why), sizeof(t->why) - 8);

	for (char *p = clean; *p; p++)
		if (*p == '\n')
			*p = ' ';
	(void)snprintf(t->why, sizeof(t->why), "%s", clean);
	t->state = PROVE_TWIN_FAILED;
}

struct words {
	const char *v[64 + 2 * PROVE_TWIN_MAX_RULES];
	char *own[PROVE_TWIN_MAX_RULES + 16];
	size_t n, n_own;
};

static void add_twin(struct words *w, const char *word)
{
	if (w->n + 1 < ARRAY_LEN(w->v))
		w->v[w->n++] = word;
}

static void add_own(struct words *w, char *word)
{
	w->own[w->n_own++] = word;
	add_twin(w, word);
}

static void add_option(struct words *w, const char *name, char *value)
{
	add_twin(w, name);
	add_own(w, value);
}

/* The network rules of this sandbox only; global rules apply to the twin anyway. Its rules about
 * requests are about hosts that no probe requests. */
static int add_rules(struct words *w, const char *sandbox, struct problem *p)
{
	AUTO_RULES struct rules rules = {0};
	size_t n = 0;
	int r = policy_file_load(&rules, p);

	for (size_t i = 0; r == 0 && i < rules.n; i++) {
		const struct rule *rule = &rules.rule[i];

		if (rule->kind != RULE_NETWORK || !rule->sandbox ||
			strcmp(rule->sandbox, sandbox) != 0 || rule_is_over(rule, clock_wall_ms()))
			continue;
		if (n++ == PROVE_TWIN_MAX_RULES)
			return err_set(&p->err, -E2BIG, "sandbox '%s' has more than %d rules",
				sandbox, PROVE_TWIN_MAX_RULES);
		add_option(w, rule->effect == RULE_ALLOW ? "--allow-network" : "--deny-network",
			rule_print_resources(rule));
	}
	return r;
}

static int make_folders(const char *top, struct err *err)
{
	static const char text[] = "hidden from the sandbox\n";
	AUTO_FREE char *rw = xasprintf("%s/work", top), *ro = xasprintf("%s/readonly", top);
	AUTO_FREE char *hidden = xasprintf("%s/work/%s", top, PROVE_TWIN_HIDDEN);
	AUTO_FREE char *plain = xasprintf("%s/work/README", top);
	AUTO_FREE char *fixed = xasprintf("%s/readonly/README", top);
	AUTO_FREE char *held = xasprintf("%s/work/held", top);
	AUTO_FREE char *kept = xasprintf("%s/work/held/kept", top);
	int r;

	if (mkdir(rw, 0700) < 0 || mkdir(ro, 0700) < 0 || mkdir(held, 0700) < 0 ||
		mkdir(kept, 0700) < 0)
		return err_errno(err, -errno, "cannot create directories in %s", top);
	r = file_save(hidden, slice_from_str(text), err);
	if (r == 0)
		r = file_save(plain, slice_from_str("a temporary workspace\n"), err);
	return r < 0 ? r
		     : file_save(fixed, slice_from_str("a temporary workspace, read-only\n"), err);
}

static int start_create(struct prove_twin *t, const struct prove_place *like,
	const struct prove_folder *folder, struct problem *p)
{
	AUTO_FREE struct words *w = xcalloc(1, sizeof(*w));
	const struct prove_job_spec spec = {.argv = w->v, .seconds = PROVE_TWIN_SECONDS};
	int r = make_folders(folder->path, &p->err);

	for (const char *const *s = (const char *const[]){t->sbx, "create", "shell", NULL}; *s; s++)
		add_twin(w, *s);
	add_own(w, xasprintf("%s/work", folder->path));
	add_own(w, xasprintf("%s/readonly:ro", folder->path));
	add_own(w, xasprintf("%s/work/held/kept:ro", folder->path));
	add_option(w, "--name", xstrdup(t->name));
	add_option(w, "--template", xstrdup(like->template));
	add_option(w, "--cpus", xasprintf("%lld", like->cpus));
	add_option(w, "--memory", xasprintf("%lld", like->memory));
	if (like->disk)
		add_option(w, "--disk", xasprintf("%lld", like->disk));
	add_option(w, "--accel", xstrdup(like->accel));
	add_option(w, "--hide", xstrdup(PROVE_TWIN_HIDDEN));
	add_option(w, "--idle-timeout", xstrdup("0"));
	add_twin(w, "-q");
	if (r == 0)
		r = add_rules(w, like->name, p);
	if (r == 0)
		r = prove_job_start(&t->job, &spec, &p->err);
	for (size_t i = 0; i < w->n_own; i++)
		free(w->own[i]);
	return r;
}

void prove_twin_start(struct prove_twin *t, const char *given, const struct prove_place *like,
	const struct prove_folder *folder)
{
	struct problem p = {0};

	if (given) {
		t->name = xstrdup(given);
		t->state = PROVE_TWIN_UP;
		return;
	}
	t->name = xasprintf(PREFIX "%s", folder->word);
	t->ours = true;
	t->state = PROVE_TWIN_MAKING;
	if (start_create(t, like, folder, &p) < 0)
		fail_twin(t, p.err.text);
}

void prove_twin_look(struct prove_twin *t)
{
	AUTO_FREE char *text = NULL;

	if (t->state != PROVE_TWIN_MAKING || !prove_job_look(&t->job))
		return;
	text = xstrndup(t->job.text, t->job.n);
	if (t->job.status == 0)
		t->state = PROVE_TWIN_UP;
	else if (t->job.status == PROVE_JOB_LATE)
		fail_twin(t, "timed out");
	else
		fail_twin(t, text);
	prove_job_end(&t->job);
}

size_t prove_twin_poll(const struct prove_twin *t, struct pollfd *ret)
{
	return t->state == PROVE_TWIN_MAKING ? prove_job_poll(&t->job, ret) : 0;
}

static void remove_sandbox(const char *sbx, const char *name)
{
	const char *const argv[] = {sbx, "rm", "-f", name, NULL};
	const struct prove_job_spec spec = {.argv = argv, .seconds = REMOVE_SECONDS};
	AUTO_FREE struct prove_job *job = xcalloc(1, sizeof(*job));
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};

	if (sandbox_get(name, &s, &p) == -ENOENT)
		return;
	if (prove_job_run(job, &spec, &p.err) != 0) {
		ui_warning("cannot remove the scratch sandbox %s", name);
		ui_hint("sbx rm -f %s", name);
	}
}

void prove_twin_remove(struct prove_twin *t)
{
	prove_job_end(&t->job);
	if (t->ours)
		remove_sandbox(t->sbx, t->name);
	free(TAKE(t->name));
	t->state = PROVE_TWIN_NONE;
}

/* Our twins share directories of a run, whatever their names. */
static bool is_left(const json_t *s)
{
	AUTO_FREE char *work = xasprintf(
		"sbx-prove-%u-%s/work", (unsigned)geteuid(), api_str(s, "name") + strlen(PREFIX));
	const char *host = api_str(json_array_get(json_object_get(s, "workspaces"), 0), "host");
	AUTO_FREE char *top = xstrdup(host);
	char *slash = strrchr(top, '/');
	struct prove_folder held = {.lock = -1};

	if (!str_ends(host, work) || !slash)
		return false;
	*slash = '\0';
	/* Removed, or exists without a run that holds it. */
	held.path = top;
	return access(top, F_OK) < 0 || prove_folder_is_left(&held);
}

void prove_twin_sweep(const char *top, const char *sbx)
{
	struct prove_folder left = {.lock = -1};
	AUTO_JSON json_t *all = NULL;
	struct problem p = {0};
	const json_t *s;
	size_t i;

	if (api_peek("GET", "/v1/sandboxes", API_TIMEOUT_MS, &all, &p) == 0)
		json_array_foreach (json_object_get(all, "sandboxes"), i, s)
			if (prove_twin_is_name(api_str(s, "name")) && is_left(s))
				remove_sandbox(sbx, api_str(s, "name"));
	for (int n = 0; n < MAX_SWEPT && prove_folder_find_left(top, &left); n++)
		prove_folder_remove(&left);
}
