/* SPDX-License-Identifier: Apache-2.0 */
#include "create.h"
#include "create_clone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/rules/spec/spec.h"
#include "git_identity.h"
#include "lib/client/api/accel.h"
#include "src/sbx/session/session.h"
#include "src/sbx/audit/audit.h"
#include "src/sbx/label/label.h"
#include "overlap.h"
#include "port_spec.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/disk/disk.h"
#include "workspace.h"

void creation_done(struct creation *c)
{
	json_decref(c->body);
	free(c->project_hosts);
	c->project_hosts = NULL;
	c->body = NULL;
}

bool create_is_agent(const char *word)
{
	return agent_need_find(word) != NULL;
}

static int set_numbers(const struct opts *o, json_t *body, struct err *err)
{
	const char *cpus = opts_value(o, "cpus"), *memory = opts_value(o, "memory");
	uint64_t v;

	if (cpus && str_to_u64(cpus, 1, SPEC_MAX_CPUS, &v) < 0)
		return err_set(
			err, -EINVAL, "invalid --cpus '%s': expected 1 to %d", cpus, SPEC_MAX_CPUS);
	if (cpus)
		(void)json_object_set_new(body, "cpus", json_integer((json_int_t)v));
	if (memory && (str_to_size(memory, &v) < 0 || v < SPEC_MIN_MEMORY || v > SPEC_MAX_MEMORY))
		return err_set(err, -EINVAL,
			"invalid --memory '%s': expected at least 256m, such as 512m or 2g",
			memory);
	if (memory)
		(void)json_object_set_new(body, "memory", json_integer((json_int_t)v));
	return 0;
}

/* From the option, else from the setting. sbxd and builds of templates do not use the setting: a
 * template would inherit it. */
static int set_disk(const struct opts *o, json_t *body, struct err *err)
{
	AUTO_SETTINGS struct settings settings = {0};
	const char *text = opts_value(o, "disk");
	uint64_t v = 0;
	int r = text ? 0 : settings_load(&settings, err);

	if (r < 0)
		return r;
	if (text && (str_to_size(text, &v) < 0 || v < SPEC_MIN_DISK || v > SPEC_MAX_DISK))
		return err_set(err, -EINVAL,
			"invalid --disk '%s': expected 1g to 1t, for example 40g", text);
	if (!text)
		v = settings_get_u64(&settings, SETTINGS_VM_DISK);
	if (v)
		(void)json_object_set_new(body, "disk", json_integer((json_int_t)v));
	return 0;
}

/* From the option, otherwise from the setting. */
static int set_idle(const struct opts *o, json_t *body, struct err *err)
{
	AUTO_SETTINGS struct settings settings = {0};
	const char *text = opts_value(o, "idle-timeout");
	uint64_t v = 0;
	int r = text ? 0 : settings_load(&settings, err);

	if (r < 0)
		return r;
	if (!text && !opts_has(o, "staged"))
		v = settings_get_u64(&settings, SETTINGS_VM_IDLE_TIMEOUT);
	else if (!text)
		return 0; /* a staged sandbox cannot be suspended */
	else if (strcmp(text, "0") != 0 && (str_to_seconds(text, &v) < 0 || v > SPEC_MAX_IDLE))
		return err_set(err, -EINVAL,
			"invalid duration '%s': use a form such as 90s, 30m or 2h", text);
	if (v)
		(void)json_object_set_new(body, "idle_timeout", json_integer((json_int_t)v));
	return 0;
}

/* From the option, otherwise from SBX_ACCEL or the setting. */
static int set_accel(const struct opts *o, json_t *body, struct err *err)
{
	AUTO_SETTINGS struct settings settings = {0};
	const char *accel = opts_value(o, "accel");
	enum spec_accel kind;
	int r = 0;

	if (!accel)
		r = settings_load(&settings, err);
	if (!accel && r == 0)
		r = settings_accel(&settings, &accel, err);
	if (r < 0)
		return r;
	if (spec_accel_parse(accel, &kind) < 0)
		return err_set(
			err, -EINVAL, "invalid --accel '%s': expected auto, kvm or tcg", accel);
	(void)json_object_set_new(body, "accel", json_string(accel));
	return 0;
}

static int set_env(const struct opts *o, const struct agent *a, json_t *body, struct problem *p)
{
	AUTO_ENV struct env env = {0};
	json_t *object = json_object();
	int r = env_from_opts(&env, opts_list(o, "env-file"), opts_list(o, "env"), p);

	(void)json_object_set_new(body, "env", object);
	for (size_t i = 0; i < a->env.n; i++)
		(void)json_object_set_new(object, a->env.v[i].a, json_string(a->env.v[i].b));
	for (size_t i = 0; r == 0 && i < env.n; i++) {
		size_t n = strcspn(env.v[i], "=");
		AUTO_FREE char *name = xstrndup(env.v[i], n);
		json_t *value = json_string(env.v[i] + n + 1);

		if (!value)
			return err_set(&p->err, -EINVAL, "the value of %s is not UTF-8", name);
		(void)json_object_set_new(object, name, value);
	}
	return r;
}

int create_add_workspace(json_t *list, const char *arg, bool force, struct problem *p)
{
	CLEANUP(workspace_done) struct workspace w = {0};
	int r = workspace_parse(arg, force, &w, p);
	json_t *other, *row;
	size_t i;

	if (r < 0)
		return r;
	json_array_foreach (list, i, other)
		if (strcmp(api_str(other, "guest"), w.guest) == 0)
			return err_set(&p->err, -EINVAL, "duplicate workspace path '%s'", w.guest);
	row = json_pack("{s:s, s:s, s:s, s:b, s:b}", "host", w.host, "typed", w.typed, "guest",
		w.guest, "ro", w.ro, "file", w.file);
	if (!row)
		return err_set(&p->err, -EINVAL, "the path '%s' is not UTF-8", arg);
	(void)json_array_append_new(list, row);
	return 0;
}

static int set_workspaces(struct creation *c, const char *const *paths, size_t n, struct problem *p)
{
	json_t *list = json_array();
	int r = 0;

	(void)json_object_set_new(c->body, "workspaces", list);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = create_add_workspace(list, paths[i], c->force, p);
	return r;
}

static int set_name(const struct opts *o, struct creation *c, const char *agent, struct err *err)
{
	const json_t *first = create_clone_place(c);
	const char *name = opts_value(o, "name"), *branch = c->clone.branch;
	char made[SPEC_MAX_NAME + 1];
	int r;

	if (!name) {
		AUTO_FREE char *host =
			first ? create_clone_host(api_str(first, "host"), branch) : NULL;

		workspace_default_name(agent, host, made, sizeof(made));
		name = made;
	}
	r = spec_check_name(name, err);
	if (r < 0)
		return r;
	(void)json_object_set_new(c->body, "name", json_string(name));
	c->name = api_str(c->body, "name");
	return 0;
}

/* Without an option the field is absent, as for sandboxes that have none. */
static int set_labels(const struct opts *o, json_t *body, struct err *err)
{
	json_t *labels = json_object();

	if (opts_has(o, "label"))
		(void)json_object_set(body, "labels", labels);
	json_decref(labels);
	return label_set(opts_list(o, "label"), json_object_get(body, "labels"), err);
}

static int set_words(const struct opts *o, const struct agent *a, json_t *body, struct err *err)
{
	const struct opt_list *hide = opts_list(o, "hide");
	const char *template = opts_value(o, "template");
	json_t *globs = json_array();

	(void)json_object_set_new(body, "hide", globs);
	(void)json_object_set_new(
		body, "template", json_string(template ? template : agent_template(a)));
	for (size_t i = 0; i < hide->n; i++)
		if (!hide->v[i][0] || json_array_append_new(globs, json_string(hide->v[i])) < 0)
			return err_set(err, -EINVAL, "invalid --hide pattern '%s'", hide->v[i]);
	return 0;
}

/* Without the option sbxd uses the setting share.guard. */
static int set_guard(const struct opts *o, json_t *body, struct err *err)
{
	const struct opt_list *except = opts_list(o, "guard-except");
	const char *level = opts_value(o, "guard");
	json_t *globs = json_array();
	enum spec_guard kind;

	(void)json_object_set_new(body, "guard_except", globs);
	if (level && spec_guard_parse(level, &kind) < 0)
		return err_set(err, -EINVAL,
			"invalid --guard '%s': expected default, strict, report or off", level);
	if (level)
		(void)json_object_set_new(body, "guard", json_string(level));
	if (except->n && level && kind == SPEC_GUARD_OFF)
		return err_set(err, -EINVAL, "--guard-except has no effect with --guard off");
	for (size_t i = 0; i < except->n; i++)
		if (!except->v[i][0] || except->v[i][0] == '/' ||
			json_array_append_new(globs, json_string(except->v[i])) < 0)
			return err_set(err, -EINVAL,
				"invalid --guard-except '%s': expected a path relative to a workspace",
				except->v[i]);
	return 0;
}

/* Variables that locate a dialog. */
static json_t *display_env(void)
{
	static const char *const names[] = {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
		"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "HOME"};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);
		AUTO_FREE char *text = value ? xasprintf("%s=%s", names[i], value) : NULL;

		if (text)
			(void)json_array_append_new(list, json_string(text));
	}
	return list;
}

static int set_confirm(json_t *ssh, struct err *err)
{
	const char *askpass = getenv("SSH_ASKPASS");

	if (!askpass || askpass[0] != '/')
		return err_set(err, -EINVAL,
			"--ssh-agent-confirm requires SSH_ASKPASS: expected the absolute path of a program");
	(void)json_object_set_new(ssh, "confirm", json_true());
	(void)json_object_set_new(ssh, "askpass", json_string(askpass));
	(void)json_object_set_new(ssh, "env", display_env());
	return 0;
}

static int set_keys(json_t *ssh, const char *list, struct err *err)
{
	json_t *keys = json_array();

	(void)json_object_set_new(ssh, "keys", keys);
	while (*list) {
		size_t n = strcspn(list, ",");
		AUTO_FREE char *key = xstrndup(list, n);

		if (n == 0 || n > SPEC_MAX_SSH_KEY ||
			json_array_append_new(keys, json_string(key)) < 0)
			return err_set(err, -EINVAL,
				"invalid --ssh-agent key '%.80s': expected a fingerprint or comment",
				key);
		list += n + (list[n] == ',');
	}
	return 0;
}

/* The SSH agent of the user who creates the sandbox: the socket is stored, no key. */
static int set_ssh_agent(const struct opts *o, json_t *body, struct err *err)
{
	const char *keys = opts_value(o, "ssh-agent"), *socket = getenv("SSH_AUTH_SOCK");
	json_t *ssh;
	int r;

	if (!keys && !opts_has(o, "ssh-agent-confirm"))
		return 0;
	if (!keys)
		return err_set(err, -EINVAL, "--ssh-agent-confirm requires --ssh-agent");
	if (!socket || socket[0] != '/')
		return err_set(err, -EINVAL,
			"--ssh-agent requires SSH_AUTH_SOCK: expected the absolute path of a socket");
	ssh = json_pack("{s:s}", "socket", socket);
	if (!ssh)
		return err_set(err, -EINVAL, "SSH_AUTH_SOCK is not UTF-8");
	(void)json_object_set_new(body, "ssh_agent", ssh);
	r = set_keys(ssh, keys, err);
	return r == 0 && opts_has(o, "ssh-agent-confirm") ? set_confirm(ssh, err) : r;
}

static int set_ports(const struct opts *o, json_t *body, struct err *err)
{
	const struct opt_list *specs = opts_list(o, "publish");
	json_t *list = json_array();

	(void)json_object_set_new(body, "ports", list);
	return port_spec_list(specs, list, err);
}

static int check_rules(const struct opt_list *l, const char *option, struct problem *p)
{
	for (size_t i = 0; i < l->n; i++)
		if (policy_check_resources(l->v[i], p) < 0)
			return err_wrap(&p->err, -EINVAL, "--%s", option);
	return 0;
}

int create_parse(const struct opts *o, const char *agent, const char *const *paths, size_t n_paths,
	bool cwd, struct creation *ret, struct problem *p)
{
	static const char *const here[] = {"."};
	const struct agent *a = agent_need_find(agent);
	int r;

	if (!a)
		return err_set(&p->err, -ENOENT, "unknown agent '%s'", agent);
	*ret = (struct creation){.body = json_pack("{s:s}", "agent", agent),
		.force = opts_has(o, "force"),
		.allow = opts_list(o, "allow-network"),
		.deny = opts_list(o, "deny-network"),
		.agent = a,
		.allow_hosts = opts_has(o, "allow-hosts"),
		.import = opts_has(o, "import-config")};
	if (ret->force)
		(void)json_object_set_new(ret->body, "force", json_true());
	if (n_paths == 0 && cwd) {
		paths = here;
		n_paths = 1;
	}
	if (opts_has(o, "staged"))
		(void)json_object_set_new(ret->body, "staged", json_true());
	r = create_clone_parse(o, ret, &paths, &n_paths, p);
	if (r < 0)
		return problem_usage(p, r, "create");
	r = set_workspaces(ret, paths, n_paths, p);
	if (r < 0)
		return r;
	r = set_name(o, ret, agent, &p->err);
	if (r == 0)
		r = set_numbers(o, ret->body, &p->err);
	if (r == 0)
		r = set_disk(o, ret->body, &p->err);
	if (r == 0)
		r = set_idle(o, ret->body, &p->err);
	if (r == 0)
		r = set_accel(o, ret->body, &p->err);
	if (opts_has(o, "cold"))
		sandbox_want_cold();
	if (r == 0)
		r = set_env(o, a, ret->body, p);
	if (r == 0)
		r = set_words(o, a, ret->body, &p->err);
	if (r == 0)
		r = set_labels(o, ret->body, &p->err);
	if (r == 0)
		r = set_guard(o, ret->body, &p->err);
	if (r == 0)
		r = set_ssh_agent(o, ret->body, &p->err);
	if (r == 0)
		r = set_ports(o, ret->body, &p->err);
	if (r == 0)
		r = check_rules(ret->allow, "allow-network", p);
	if (r == 0)
		r = check_rules(ret->deny, "deny-network", p);
	return r < 0 ? problem_usage(p, r, "create") : 0;
}

static void print_facts(const json_t *s)
{
	const json_t *w;
	char size[32];
	size_t i;

	str_from_size((uint64_t)api_int(s, "memory"), size, sizeof(size));
	printf("\nsandbox    %s\nagent      %s\n", api_str(s, "name"), api_str(s, "agent"));
	json_array_foreach (json_object_get(s, "workspaces"), i, w) {
		bool ro = json_is_true(json_object_get(w, "ro"));
		AUTO_FREE char *text =
			workspace_describe(api_str(w, "host"), api_str(w, "guest"), ro);

		printf("%-11s", i == 0 ? "workspace" : "");
		ui_put(text);
		printf("%s\n", json_is_true(json_object_get(s, "staged")) && !ro ? " staged" : "");
	}
	create_clone_print(s);
	if (json_array_size(json_object_get(s, "workspaces")) == 0 && !json_object_get(s, "clone"))
		printf("workspace  none (to share this directory, add: .)\n");
	printf("cpu        %lld\nmemory     %s\n", api_int(s, "cpus"), size);
	if (api_int(s, "disk")) {
		str_from_size((uint64_t)api_int(s, "disk"), size, sizeof(size));
		printf("disk       %s\n", size);
	}
	printf("\n");
	(void)fflush(stdout);
}

/* An incomplete home is worse than none: the user can repeat the command. */
static void undo_create(const char *name)
{
	struct problem ignored = {0};

	if (ui_is_debug())
		ui_note("sandbox '%s' was not removed because of --debug", name);
	else if (sandbox_remove(name, true, &ignored) < 0)
		ui_warning("cannot remove sandbox '%s' after the failed start: %s", name,
			ignored.err.text);
}

static int put_rule(json_t *list, const char *resources, const char *effect, const char *origin,
	struct problem *p)
{
	json_t *rule = json_pack(
		"{s:s, s:s, s:s}", "effect", effect, "resources", resources, "origin", origin);

	return json_array_append_new(list, rule) == 0
		       ? 0
		       : err_set(&p->err, -EINVAL, "the resources are not UTF-8");
}

static int put_rules(json_t *list, const struct opt_list *l, const char *effect, struct problem *p)
{
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		r = put_rule(list, l->v[i], effect, "create", p);
	return r;
}

/* In the format of the API. */
static int list_rules(
	const struct creation *c, const struct agent_hosts *h, json_t *list, struct problem *p)
{
	AUTO_FREE char *origin = xasprintf("agent:%s", c->agent->name);
	int r = put_rules(list, c->deny, "deny", p);

	if (r == 0)
		r = put_rules(list, c->allow, "allow", p);
	if (r == 0 && c->project_hosts)
		r = put_rule(list, c->project_hosts, "allow", "create", p);
	return r < 0 || !h->granted ? r : put_rule(list, h->granted, "allow", origin, p);
}

int create_add_rules(const struct creation *c, const struct agent_hosts *h, struct problem *p)
{
	AUTO_JSON json_t *list = json_array();
	int r = list_rules(c, h, list, p);
	const json_t *rule;
	size_t i;

	json_array_foreach (list, i, rule) {
		AUTO_JSON json_t *answer = NULL;
		struct policy_wish w = {.effect = api_str(rule, "effect"),
			.resources = api_str(rule, "resources"),
			.sandbox = c->name,
			.origin = api_str(rule, "origin")};

		if (r == 0)
			r = policy_add(&w, &answer, p);
		if (r < 0)
			return r;
		policy_say_conflicts(answer);
	}
	return r;
}

static void tell_import(void *arg, const char *line)
{
	ui_note("%s", line);
}

static int collect_create(const struct agent *a, struct import *im, struct err *err)
{
	const char *home = getenv("HOME");

	im->tell = tell_import;
	if (a->import.n == 0)
		ui_note("No configuration of %s can be imported", a->title);
	else
		ui_note("Your configuration of %s, for its home directory in the sandbox:",
			a->title);
	return import_collect(im, a, home ? home : "/", err);
}

static int list_import(const char *agent)
{
	CLEANUP(import_done) struct import im = {0};
	const struct agent *a = agent_need_find(agent);
	struct problem p = {0};
	int r = a ? collect_create(a, &im, &p.err)
		  : err_set(&p.err, -ENOENT, "unknown agent '%s'", agent);

	if (r < 0)
		return ui_problem(&p, r);
	ui_note("%zu files to copy, %zu skipped. Copy them with --import-config", im.n, im.n_left);
	return EXIT_OK;
}

bool create_only_lists(const struct opts *o, const char *agent, int *ret_status)
{
	const char *word = opts_value(o, "import-config");

	if (!word || !word[0])
		return false;
	if (strcmp(word, "list") == 0) {
		*ret_status = list_import(agent);
	} else {
		ui_error("invalid --import-config value: expected 'list' or no value");
		*ret_status = EXIT_USAGE;
	}
	return true;
}

int create_import(const struct creation *c, const char *ref, struct problem *p)
{
	CLEANUP(import_done) struct import im = {0};
	int r = collect_create(c->agent, &im, &p->err);

	return r < 0 ? r : import_write(&im, ref, true, p);
}

/* An identity in the template is kept. */
static int write_identity(const struct git_identity *git, const char *ref, struct problem *p)
{
	CLEANUP(import_done) struct import im = {0};

	if (!git->name)
		return 0;
	im.v[im.n++] =
		(struct import_file){.path = xstrdup(".gitconfig"), .text = git_identity_file(git)};
	return import_write(&im, ref, false, p);
}

/* Files in the agent's home at its first start. */
static int fill_home(const struct creation *c, const struct git_identity *git, const char *id,
	bool has_key, struct problem *p)
{
	CLEANUP(import_done) struct import im = {0};
	const json_t *first = create_clone_place(c);
	const char *workspace = first ? api_str(first, "guest") : SPEC_HOME;
	int r = c->import ? collect_create(c->agent, &im, &p->err) : 0;

	if (r < 0)
		return r;
	import_seed(&im, &c->agent->seed, workspace, id);
	if (has_key)
		import_seed(&im, &c->agent->key_seed, workspace, id);
	r = import_write(&im, c->name, c->import, p);
	return r < 0 ? r : write_identity(git, c->name, p);
}

static void note_loaded(const char *template)
{
	AUTO_JSON json_t *m = template_manifest(template);

	if (m && json_is_true(json_object_get(m, "loaded")))
		ui_note("Template '%s' was loaded from a file. The author of the file chose "
			"every program in it.",
			template);
}

/* Prints notes and prompts before the sandbox is created. */
static int get_ready(
	const struct creation *c, struct agent_hosts *h, bool *ret_has_key, struct problem *p)
{
	int r = c->clone.host ? clone_check(&c->clone, c->name, p) : 0;

	if (r == 0)
		r = policy_require(p);
	if (r == 0)
		r = accel_require(c->body, p);
	if (r == 0)
		r = agent_need_template(c->agent, api_str(c->body, "template"), p);
	if (r == 0) {
		note_loaded(api_str(c->body, "template"));
		agent_need_match(c->agent, api_str(c->body, "template"));
		r = agent_need_hosts(c->agent, c->name, c->allow_hosts, h, p);
	}
	if (r == 0)
		*ret_has_key = agent_need_services(c->agent);
	/* The history of a clone is on its own disk: ten sandboxes of one repository share none. */
	return r == 0 && !c->clone.host ? history_add(c->agent, c->body, p) : r;
}

/* Records the home directory before the first run; `sbx prove` compares it. It protects nothing, so
 * a failure does not stop the creation. */
static char *take_home(void)
{
	AUTO_FREE char *key = paths_get(PATHS_STATE, "home-record.key");
	const char *home = getenv("HOME");
	struct err err = {0};
	char *text = NULL;
	int r = home ? home_record_take(key, home, &text, &err) : 0;

	if (r < 0)
		ui_warning("%s", err_text(&err, r));
	return text;
}

static void save_home(const char *id, const char *text)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	struct err err = {0};
	int r = text ? home_record_save(dir, text, &err) : 0;

	if (r < 0)
		ui_warning("%s", err_text(&err, r));
}

/* One call: the sandbox runs with its rules, or does not exist. */
static int call_create(
	const struct creation *c, const struct agent_hosts *h, json_t **ret, struct problem *p)
{
	json_t *list = json_array();
	int r = list_rules(c, h, list, p);

	(void)json_object_set_new(c->body, "rules", list);
	if (r == 0)
		r = sandbox_create(c->body, ret, p);
	if (r == -EEXIST && !p->hint[0])
		(void)problem_hint(p, r, "sbx run --name %s", c->name);
	return r;
}

/* Prints notes about a created sandbox. */
static void tell_created(const json_t *s, bool quiet)
{
	const json_t *rule;
	size_t i;

	overlap_warn(s);
	json_array_foreach (json_object_get(s, "rules"), i, rule)
		policy_say_conflicts(rule);
	if (!quiet)
		print_facts(s);
}

int create_make(const struct creation *c, bool quiet, json_t **ret, struct problem *p)
{
	CLEANUP(agent_hosts_done) struct agent_hosts hosts = {0};
	AUTO_JSON json_t *s = NULL;
	AUTO_GIT_IDENTITY struct git_identity git = {0};
	AUTO_FREE char *home = NULL;
	bool has_key = false;
	int r = get_ready(c, &hosts, &has_key, p);

	if (r < 0)
		return r;
	git_identity_get(&git);
	home = take_home();
	r = call_create(c, &hosts, &s, p);
	if (r < 0)
		return r;
	tell_created(s, quiet);
	save_home(api_str(s, "id"), home);
	r = fill_home(c, &git, api_str(s, "id"), has_key, p);
	if (r == 0 && c->clone.host)
		r = clone_seed(&c->clone, s, p);
	if (r < 0)
		undo_create(c->name);
	if (r == -EINTR && !ui_is_debug()) {
		*p = (struct problem){0};
		(void)err_set(&p->err, r, "interrupted: sandbox '%s' was removed", c->name);
	}
	if (r == 0)
		*ret = TAKE(s);
	return r;
}
