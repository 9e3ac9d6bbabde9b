/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_need.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "agent_build.h"
#include "lib/client/cli/opt.h"
#include "lib/client/api/policy_api.h"
#include "src/sbx/secret/secret.h"
#include "src/sbx/disk/disk.h"

const struct agents *agent_need_all(void)
{
	static struct agents all; /* for the lifetime of the program */
	static bool loaded;
	struct err err = {0};

	if (loaded)
		return &all;
	loaded = true;
	if (agents_load_installed(&all, &err) < 0)
		ui_warning("%s", err.text);
	for (size_t i = 0; i < all.n_faults; i++)
		ui_warning("%s: agent skipped", all.fault[i]);
	return &all;
}

const struct agent *agent_need_find(const char *name)
{
	return agents_find(agent_need_all(), name);
}

const char *agent_need_nearest(const char *typed)
{
	const struct agents *all = agent_need_all();
	const char *names[AGENTS_MAX + 1] = {NULL};

	for (size_t i = 0; i < all->n; i++)
		names[i] = all->v[i]->name;
	return opt_nearest(typed, names);
}

bool agent_need_unavailable(const char *name)
{
	const char *why = agents_unavailable(agent_need_all(), name);

	if (!why)
		return false;
	ui_error("the agent '%s' cannot be installed: %s", name, why);
	ui_hint("sbx run shell");
	return true;
}

/* Templates of images, Dockerfiles and saved sandboxes may have it. */
void agent_need_match(const struct agent *a, const char *template)
{
	AUTO_JSON json_t *m = template_manifest(template);
	const char *agent = api_str(m, "agent");
	bool is_base = strcmp(api_str(m, "kind"), "base") == 0;

	if (!agent_is_built(a) || !m || strcmp(agent, a->name) == 0 || (!agent[0] && !is_base))
		return;
	ui_warning("the template '%s' was built %s%s: it has no program '%s'", template,
		is_base ? "without an agent" : "for ", is_base ? "" : agent, a->command);
	ui_hint("sbx template build %s", a->name);
}

char *agent_need_names(void)
{
	const struct agents *all = agent_need_all();
	char *text = xstrdup("");

	for (size_t i = 0; i < all->n; i++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s%s", old, i ? ", " : "", all->v[i]->name);
	}
	return text;
}

int agent_need_template(const struct agent *a, const char *name, struct problem *p)
{
	if (!agent_is_built(a) || strcmp(name, a->name) != 0 || template_is_there(name))
		return template_require(name, p);
	(void)err_set(&p->err, -ENOENT, "template '%s' not found", name);
	(void)problem_hint(p, -ENOENT, "sbx template build %s", name);
	if (!ui_can_ask() ||
		!ui_confirm(
			"Template for %s not found. Build it now? This takes some minutes and installs %s %s.",
			a->title, a->package.n ? a->package.v[0].a : "node",
			a->package.n ? a->package.v[0].b : a->node))
		return -ENOENT;
	*p = (struct problem){0};
	return agent_build(a, p);
}

void agent_hosts_done(struct agent_hosts *h)
{
	free(h->granted);
	h->granted = NULL;
}

enum host_state { HOST_ALLOWED, HOST_CLOSED, HOST_DENIED };

static int ask_policy(
	const char *host, enum host_state *ret, char *rule, size_t size, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(host),
		       *path = xasprintf("/v1/policy/check?target=%s", quoted);
	AUTO_JSON json_t *answer = NULL;
	int r = api_call("GET", path, NULL, POLICY_TIMEOUT_MS, &answer, p);

	if (r < 0)
		return r;
	if (json_is_true(json_object_get(answer, "allowed")))
		*ret = HOST_ALLOWED;
	else
		*ret = strcmp(api_str(answer, "why"), "no-rule") == 0 ? HOST_CLOSED : HOST_DENIED;
	(void)snprintf(rule, size, "%.60s", api_str(json_object_get(answer, "rule"), "id"));
	return 0;
}

static void say_host(const struct agent_pair *host, enum host_state state, const char *rule)
{
	static const char *const words[] = {"allowed", "not allowed yet", "denied by your policy"};
	bool with = state == HOST_DENIED && rule[0];

	ui_note("  %-42s %-16s %s%s%s%s", host->a, words[state], host->b, with ? " (rule " : "",
		with ? rule : "", with ? ")" : "");
}

struct host_count {
	size_t allowed, denied;
	char *closed; /* comma-separated; NULL: none */
	char *first_rule;
};

static int look_at_hosts(const struct agent *a, struct host_count *n, struct problem *p)
{
	ui_note("%s needs these hosts:", a->title);
	for (size_t i = 0; i < a->host.n; i++) {
		char rule[64];
		enum host_state state;
		int r = ask_policy(a->host.v[i].a, &state, rule, sizeof(rule), p);

		if (r < 0)
			return r;
		say_host(&a->host.v[i], state, rule);
		n->allowed += state == HOST_ALLOWED;
		n->denied += state == HOST_DENIED;
		if (state == HOST_DENIED && !n->first_rule)
			n->first_rule = xstrdup(rule);
		if (state == HOST_CLOSED) {
			AUTO_FREE char *old = n->closed;

			n->closed = old ? xasprintf("%s,%s", old, a->host.v[i].a)
					: xstrdup(a->host.v[i].a);
		}
	}
	return 0;
}

/* Result of the option and the setting: 1 yes, 0 no, -1 prompt. */
static int standing_answer(bool allow)
{
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};
	const char *word;

	if (allow)
		return 1;
	if (settings_load(&s, &err) < 0)
		return 0;
	word = settings_get(&s, SETTINGS_AGENTS_ALLOW_HOSTS);
	if (strcmp(word, "ask") == 0)
		return -1;
	return strcmp(word, "always") == 0;
}

static bool may_allow(bool allow)
{
	int answer = standing_answer(allow);

	if (answer >= 0)
		return answer == 1;
	return ui_can_ask() &&
	       ui_confirm("Allow the hosts that are not allowed yet, for this sandbox only?");
}

static void say_denied(const struct host_count *n)
{
	ui_warning("%zu of these hosts %s denied by your policy: deny rules take precedence",
		n->denied, n->denied == 1 ? "is" : "are");
	ui_hint("sbx policy inspect %s", n->first_rule ? n->first_rule : "ID");
}

int agent_need_hosts(const struct agent *a, const char *sandbox, bool allow,
	struct agent_hosts *ret, struct problem *p)
{
	struct host_count n = {0};
	int r;

	if (a->host.n == 0)
		return 0;
	r = look_at_hosts(a, &n, p);
	if (r == 0 && n.denied)
		say_denied(&n);
	if (r == 0 && n.closed && may_allow(allow)) {
		ret->granted = TAKE(n.closed);
	} else if (r == 0 && n.closed) {
		ui_note("No hosts were allowed. To allow them:");
		ui_hint("sbx policy allow network %s --sandbox %s", n.closed, sandbox);
	}
	free(n.closed);
	free(n.first_rule);
	return r;
}

/* Whether the tokens of every login in the sandbox are stored on the host (`token` in its services'
 * files). */
static bool keeps_logins(const struct agent *a)
{
	AUTO_SETTINGS struct settings s = {0};
	AUTO_JSON json_t *answer = NULL;
	const json_t *service = NULL;
	struct problem p = {0};

	if (settings_load(&s, &p.err) < 0 || secret_services(&answer, &p) < 0 ||
		strcmp(settings_get(&s, SETTINGS_CREDENTIALS_OAUTH), "true") != 0)
		return false;
	for (size_t i = 0; i < a->service.n; i++)
		if (secret_find_service(answer, a->service.v[i].a, &service, &p) < 0 ||
			!json_is_true(json_object_get(service, "oauth")))
			return false;
	return true;
}

bool agent_need_services(const struct agent *a)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};

	if (a->service.n == 0)
		return false;
	if (secret_list(&answer, &p) < 0) {
		ui_warning("cannot list credentials: %s", p.err.text);
		return false;
	}
	for (size_t i = 0; i < a->service.n; i++)
		if (secret_find(answer, a->service.v[i].a, NULL))
			return true;
	ui_note("No credential is set for %s. %s", a->title,
		keeps_logins(a)
			? "Set it now or later, or log in inside the sandbox:"
			: "Set it on the host: the token of a login inside the sandbox can stay "
			  "there");
	ui_hint("sbx secret set %s", a->service.v[0].a);
	return false;
}
