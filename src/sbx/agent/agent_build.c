/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_build.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/client/api/api.h"
#include "src/sbx/session/session.h"
#include "npmrc.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/disk/disk.h"

#define MAX_SCRIPT 65536
#define MAX_CA (4u << 20)
#define CA_PATH "/var/tmp/sbx-npm-ca.pem"
#define NAME_PREFIX "build-"
#define BUILD_MS (60u * 60 * 1000)

/* One build. */
struct build {
	const struct agent *a;
	struct npmrc npm;
	char *name;			   /* of the scratch sandbox */
	char *script;			   /* install.sh */
	char *version[AGENT_MAX_LIST];	   /* of each package */
	bool newest;			   /* not the versions that are pinned */
	size_t n_shown;			   /* bytes of progress that were shown */
	json_t *packages;		   /* for the manifest */
	char told_version[BUILD_MAX_WORD]; /* version reported by the program */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = sig;
}

static void build_done(struct build *b)
{
	npmrc_done(&b->npm);
	free(b->name);
	free(b->script);
	for (size_t i = 0; i < AGENT_MAX_LIST; i++)
		free(b->version[i]);
	json_decref(b->packages);
}

/* ---- the scratch sandbox ---- */

static int add_target(json_t *only, const char *target)
{
	return json_array_append_new(only, json_string(target));
}

static int make_body(const struct build *b, json_t **ret, struct err *err)
{
	AUTO_SETTINGS struct settings settings = {0};
	AUTO_FREE char *target = npmrc_target(&b->npm, err);
	const char *accel = NULL;
	json_t *only = json_array();
	int r = target ? settings_load(&settings, err) : -EINVAL;

	if (r == 0)
		r = settings_accel(&settings, &accel, err);
	if (r < 0) {
		json_decref(only);
		return r;
	}
	(void)add_target(only, target);
	for (size_t i = 0; i < b->a->setup_host.n; i++)
		(void)add_target(only, b->a->setup_host.v[i].a);
	*ret = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", b->name, "agent", "shell", "template",
		b->a->base, "accel", accel, "only", only);
	return *ret ? 0 : err_set(err, -EINVAL, "npm registry: the URL is not UTF-8");
}

/* Files of a killed build: its process no longer exists. */
static void remove_leftovers(void)
{
	AUTO_JSON json_t *list = NULL;
	struct problem ignored = {0};
	const json_t *s;
	size_t i;

	if (sandbox_list(&list, &ignored) < 0)
		return;
	json_array_foreach (list, i, s) {
		const char *name = api_str(s, "name"), *dash = strrchr(name, '-');
		uint64_t pid;

		if (!str_starts(name, NAME_PREFIX) || !json_object_get(s, "only") || !dash ||
			str_to_u64(dash + 1, 1, INT32_MAX, &pid) < 0)
			continue;
		if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			(void)!sandbox_remove(name, true, &ignored);
	}
}

static int make_scratch(struct build *b, struct problem *p)
{
	AUTO_JSON json_t *body = NULL;
	int r = make_body(b, &body, &p->err);

	return r < 0 ? r : sandbox_create(body, NULL, p);
}

/* Also after Ctrl-C: a scratch sandbox uses memory and disk. */
static void remove_scratch(const struct build *b)
{
	struct problem ignored = {0};
	int r = sandbox_remove(b->name, true, &ignored);

	if (r < 0 && r != -ENOENT) {
		ui_warning("cannot remove the scratch sandbox '%s': %s", b->name, ignored.err.text);
		ui_hint("sbx rm --force %s", b->name);
	}
}

/* ---- the script ---- */

static void show_progress(void *arg, const char *out)
{
	struct build *b = arg;
	const char *line = out + MIN(b->n_shown, strlen(out)), *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		AUTO_FREE char *text = xstrndup(line, (size_t)(end - line));

		ui_clean(text);
		if (str_starts(text, "# ") && ui_is_terminal())
			ui_busy(text + 2);
		else if (str_starts(text, "# ") && !str_starts(text, "# installing:"))
			ui_note("%s", text + 2);
	}
	b->n_shown = (size_t)(line - out);
}

/* A rule for the address would not help: a build reaches only the registry, by its name. */
static void hint_refused(const struct build *b, struct problem *p)
{
	struct err ignored = {0};
	AUTO_FREE char *target = npmrc_target(&b->npm, &ignored);

	ui_note("A registry at a private address requires: sbx settings set network.connect-to "
		"%s=ADDRESS:PORT",
		target ? target : "HOST:PORT");
	(void)problem_hint(p, 0, "sbx policy log %s", b->name);
}

/* "SBX_PINS=PACKAGE DIGEST\n...": only for the versions in the file of the agent. */
static char *pins_build(const struct build *b)
{
	char *text = xstrdup("SBX_PINS=");

	for (size_t i = 0; !b->newest && i < b->a->pin.n; i++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s %s\n", old, b->a->pin.v[i].a, b->a->pin.v[i].b);
	}
	return text;
}

static int run_script(struct build *b, const char *const *args, char **ret, struct problem *p)
{
	AUTO_FREE char *registry = xasprintf("npm_config_registry=%s", b->npm.registry);
	AUTO_FREE char *pins = pins_build(b);
	const char *argv[16 + 2 * AGENT_MAX_LIST] = {"env", registry, pins};
	char *env[AGENT_MAX_LIST];
	size_t n = 3;
	struct guest_run g = {.ref = b->name,
		.user = "root",
		.argv = argv,
		.in = slice_from_str(b->script),
		.watch = show_progress,
		.arg = b,
		.max_ms = BUILD_MS};
	int r;

	/* The agent's own variables: it is started once, to check that it runs. */
	for (size_t i = 0; i < b->a->env.n; i++)
		argv[n++] = env[i] = xasprintf("%s=%s", b->a->env.v[i].a, b->a->env.v[i].b);
	argv[n++] = "sh";
	argv[n++] = "-s";
	argv[n++] = "--";
	for (size_t i = 0; args[i]; i++)
		argv[n++] = args[i];
	b->n_shown = 0;
	r = guest_run(&g, p);
	for (size_t i = 0; i < b->a->env.n; i++)
		free(env[i]);
	ui_progress_end();
	if (r == 0)
		*ret = g.out;
	else
		free(g.out);
	if (r < 0 && r != -EINTR)
		hint_refused(b, p);
	return r;
}

/* The host's certificate authorities: a private registry may need them. */
static int send_ca(const struct build *b, struct problem *p)
{
	static const char *const argv[] = {"sh", "-c", "cat > " CA_PATH, NULL};
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	struct guest_run g = {.ref = b->name, .user = "root", .argv = argv};
	int r;

	if (!b->npm.cafile)
		return 0;
	r = file_load(b->npm.cafile, MAX_CA, &text, &n, &p->err);
	if (r == -ENOENT) {
		ui_warning("npm cafile %s does not exist", b->npm.cafile);
		return 0;
	}
	if (r < 0)
		return r;
	if (memmem(text, n, "PRIVATE KEY", 11))
		return err_set(
			&p->err, -EPERM, "npm cafile %s contains a private key", b->npm.cafile);
	g.in = slice_of(text, n);
	r = guest_run(&g, p);
	free(g.out);
	return r;
}

/* Splits one line of the script and checks its words: third-party programs ran there. */
static size_t split_build(char *line, char *words[4])
{
	size_t n = 0;

	for (char *save = NULL, *w = strtok_r(line, " ", &save); w && n < 4;
		w = strtok_r(NULL, " ", &save))
		if (strlen(w) < BUILD_MAX_WORD)
			words[n++] = w;
	return n;
}

static bool is_integrity(const char *s)
{
	return str_starts(s, "sha") &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=-")];
}

static void take_fact(struct build *b, char *line)
{
	char *w[4];
	size_t n;

	if (str_starts(line, "version ")) {
		(void)snprintf(b->told_version, sizeof(b->told_version), "%s", line + 8);
		ui_clean(b->told_version);
		return;
	}
	n = split_build(line, w);
	if (n < 3 || !agent_is_package(w[1]) || !agent_is_version(w[2]))
		return;
	if (strcmp(w[0], "package") == 0 && n == 4 && is_integrity(w[3]))
		(void)json_array_append_new(
			b->packages, json_pack("{s:s, s:s, s:s}", "name", w[1], "version", w[2],
					     "integrity", w[3]));
	for (size_t i = 0; strcmp(w[0], "newest") == 0 && i < b->a->package.n; i++)
		if (strcmp(w[1], b->a->package.v[i].a) == 0) {
			free(b->version[i]);
			b->version[i] = xstrdup(w[2]);
		}
}

static void take_facts(struct build *b, char *out)
{
	for (char *save = NULL, *line = strtok_r(out, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save))
		take_fact(b, line);
}

static int look_for_newest(struct build *b, struct problem *p)
{
	const char *args[AGENT_MAX_LIST + 2] = {"look"};
	AUTO_FREE char *out = NULL;
	int r;

	for (size_t i = 0; i < b->a->package.n; i++)
		args[1 + i] = b->a->package.v[i].a;
	r = run_script(b, args, &out, p);
	if (r == 0)
		take_facts(b, out);
	return r;
}

static int install_build(struct build *b, struct problem *p)
{
	const char *args[AGENT_MAX_LIST + 4] = {
		"install", b->a->node ? b->a->node : "-", b->a->command};
	char *wanted[AGENT_MAX_LIST] = {NULL};
	AUTO_FREE char *out = NULL;
	int r;

	for (size_t i = 0; i < b->a->package.n; i++)
		args[3 + i] = wanted[i] = xasprintf("%s@%s", b->a->package.v[i].a, b->version[i]);
	r = run_script(b, args, &out, p);
	for (size_t i = 0; i < b->a->package.n; i++)
		free(wanted[i]);
	if (r < 0)
		return r;
	take_facts(b, out);
	if (json_array_size(b->packages) != b->a->package.n)
		return err_set(&p->err, -EIO,
			"invalid response from the scratch sandbox: no list of installed packages");
	return 0;
}

/* ---- the whole ---- */

static int keep_build(struct build *b, struct problem *p)
{
	AUTO_JSON json_t *facts = json_pack("{s:s, s:s, s:s, s:O}", "kind", "agent", "agent",
		b->a->name, "parent", b->a->base, "packages", b->packages);

	if (b->told_version[0])
		(void)json_object_set_new(facts, "told_version", json_string(b->told_version));
	return template_save(b->name, b->a->name, facts, p);
}

/* The version in the template, else in the agent's file. */
static const char *version_now(const struct build *b, const json_t *manifest, size_t i)
{
	const json_t *list = json_object_get(manifest, "packages"), *one;
	size_t k;

	json_array_foreach (list, k, one)
		if (strcmp(api_str(one, "name"), b->a->package.v[i].a) == 0)
			return api_str(one, "version");
	return b->a->package.v[i].b;
}

/* Whether it was created from a base of another recipe (image/README) than the base of now. */
static bool is_of_other_base(const struct build *b, const json_t *manifest)
{
	AUTO_JSON json_t *base = template_manifest(b->a->base);

	return strcmp(api_str(manifest, "recipe"), api_str(base, "recipe")) != 0;
}

/* Prints old and new versions. Returns true if there is a newer one. */
static bool compare_build(const struct build *b)
{
	AUTO_JSON json_t *manifest = template_manifest(b->a->name);
	bool changed = !manifest || is_of_other_base(b, manifest);

	for (size_t i = 0; i < b->a->package.n; i++) {
		const char *now = version_now(b, manifest, i);
		bool same = strcmp(now, b->version[i]) == 0;

		ui_note("  %s  %s%s%s", b->a->package.v[i].a, now, same ? "" : " -> ",
			same ? "" : b->version[i]);
		changed = changed || !same;
	}
	return changed;
}

static int work_build(struct build *b, bool newest, bool *ret_changed, struct problem *p)
{
	int r = make_scratch(b, p);

	b->newest = newest;
	*ret_changed = true;
	if (r == 0 && interrupted)
		r = err_set(&p->err, -EINTR, "interrupted");
	if (r == 0)
		r = send_ca(b, p);
	if (r == 0 && newest)
		r = look_for_newest(b, p);
	if (r == 0 && newest && !compare_build(b)) {
		*ret_changed = false;
		return 0;
	}
	if (r == 0)
		r = install_build(b, p);
	return r < 0 ? r : keep_build(b, p);
}

static int prepare_build(struct build *b, struct problem *p)
{
	AUTO_FREE char *path = paths_get(PATHS_SHARE, "agents/install.sh");
	size_t n;
	int r = npmrc_read(&b->npm, &p->err);

	if (r == 0)
		r = file_load(path, MAX_SCRIPT, &b->script, &n, &p->err);
	if (r == -ENOENT)
		r = err_errno(&p->err, r, "cannot find %s", path);
	if (r == 0)
		r = policy_require(p);
	if (r == 0)
		r = template_require(b->a->base, p);
	if (r < 0)
		return r;
	if (b->npm.has_token)
		ui_note("The token in your npm configuration is not used: a build receives no "
			"credentials");
	b->name = xasprintf(NAME_PREFIX "%s-%d", b->a->name, (int)getpid());
	b->packages = json_array();
	for (size_t i = 0; i < b->a->package.n; i++)
		b->version[i] = xstrdup(b->a->package.v[i].b);
	return 0;
}

static int run_build(const struct agent *a, bool newest, bool *ret_changed, struct problem *p)
{
	CLEANUP(build_done) struct build b = {.a = a};
	struct sigaction catch = {.sa_handler = on_signal}, old[3];
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int r;

	if (!agent_is_built(a))
		return err_set(&p->err, -EINVAL,
			"agent %s uses the template '%s': nothing to build", a->name, a->base);
	r = prepare_build(&b, p);
	if (r < 0)
		return r;
	remove_leftovers();
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &catch, &old[i]);
	r = work_build(&b, newest, ret_changed, p);
	remove_scratch(&b);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &old[i], NULL);
	if (r == 0 && *ret_changed)
		ui_done("Template '%s' is ready: %s", a->name,
			b.told_version[0] ? b.told_version : a->title);
	return r;
}

int agent_build(const struct agent *a, struct problem *p)
{
	bool changed;

	return run_build(a, false, &changed, p);
}

int agent_update(const struct agent *a, bool *ret_changed, struct problem *p)
{
	return run_build(a, true, ret_changed, p);
}
