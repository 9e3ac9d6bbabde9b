/* SPDX-License-Identifier: Apache-2.0 */
#include "services.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/policy/policy.h"

struct services {
	struct service *service[SERVICES_MAX];
	size_t n;
	char *fault[SERVICES_MAX_FAULTS];
	size_t n_faults;
	struct policy *index; /* each service is a group; NULL: none yet */
};

struct services *services_new(void)
{
	return xcalloc(1, sizeof(struct services));
}

static void free_service(struct service *s)
{
	service_done(s);
	free(s);
}

void services_free(struct services *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++)
		free_service(set->service[i]);
	for (size_t i = 0; i < set->n_faults; i++)
		free(set->fault[i]);
	policy_free(set->index);
	free(set);
}

/* ---- what two services must not share ---- */

/* The i-th place of a service, its slots' hosts and then its endpoints; NULL after the last. */
static const struct netrule *place_of(const struct service *s, size_t i)
{
	for (size_t k = 0; k < s->n_slots; k++) {
		if (i < s->slot[k].n_hosts)
			return &s->slot[k].host[i];
		i -= s->slot[k].n_hosts;
	}
	return i < s->n_endpoints ? &s->endpoint[i].host : NULL;
}

static int check_places(const struct service *a, const struct service *b, struct err *err)
{
	const struct netrule *x, *y;

	for (size_t i = 0; (x = place_of(a, i)); i++)
		for (size_t k = 0; (y = place_of(b, k)); k++)
			if (service_may_meet(x, y)) {
				AUTO_FREE char *p = xmalloc(NETRULE_MAX_TEXT);
				AUTO_FREE char *q = xmalloc(NETRULE_MAX_TEXT);

				netrule_print(x, p);
				netrule_print(y, q);
				return err_set(err, -EEXIST,
					"%.120s may be the same host as %.120s of service '%s'", p,
					q, b->name);
			}
	return 0;
}

static int check_envs(const struct service *a, const struct service *b, struct err *err)
{
	for (size_t i = 0; i < a->n_envs; i++)
		for (size_t k = 0; k < b->n_envs; k++)
			if (strcmp(a->env[i].name, b->env[k].name) == 0)
				return err_set(err, -EEXIST, "service '%s' also sets variable %s",
					b->name, b->env[k].name);
	return 0;
}

static int check_conflicts(const struct services *set, const struct service *s, struct err *err)
{
	int r = 0;

	if (set->n == SERVICES_MAX)
		return err_set(err, -E2BIG, "more than %d services", SERVICES_MAX);
	if (services_by_name(set, s->name))
		return err_set(err, -EEXIST, "service '%s' already exists", s->name);
	for (size_t i = 0; i < set->n && r == 0; i++) {
		r = check_places(s, set->service[i], err);
		if (r == 0)
			r = check_envs(s, set->service[i], err);
	}
	return r;
}

/* ---- the index ---- */

static int add_place(
	const struct netrule *place, size_t group, struct rules *rules, struct err *err)
{
	AUTO_FREE char *text = xmalloc(NETRULE_MAX_TEXT);
	AUTO_RULE struct rule rule = {0};
	int r;

	netrule_print(place, text);
	r = rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(text), &rule, err);
	if (r < 0)
		return r;
	rule.group = group;
	return rules_add(rules, &rule, err);
}

static int build_index(struct services *set, struct policy **ret, struct err *err)
{
	AUTO_RULES struct rules rules = {0};
	struct policy *index;
	int r = 0;

	rules.group = xcalloc(set->n + 1, sizeof(rules.group[0]));
	for (; rules.n_groups < set->n && r == 0; rules.n_groups++) {
		const struct service *s = set->service[rules.n_groups];
		const struct netrule *place;

		rules.group[rules.n_groups].name = xstrdup(s->name);
		for (size_t i = 0; r == 0 && (place = place_of(s, i)); i++)
			r = add_place(place, rules.n_groups + 1, &rules, err);
	}
	if (r < 0)
		return r;
	index = policy_new(&rules, "");
	if (policy_fault(index)) {
		r = err_set(err, -EINVAL, "%.400s", policy_fault(index));
		policy_free(index);
		return r;
	}
	*ret = index;
	return 0;
}

/* A file is named like its service, so that a person finds it. */
static int check_file_name(const struct service *s, const char *file, struct err *err)
{
	size_t n = strlen(s->name);

	if (!file || (strncmp(file, s->name, n) == 0 && strcmp(file + n, ".conf") == 0))
		return 0;
	return err_set(err, -EINVAL, "the file defines service '%s': rename it to %s.conf", s->name,
		s->name);
}

/* `file`: what the file is called; NULL: anything. */
static int add_text(struct services *set, struct slice text, const char *name, const char *file,
	struct err *err)
{
	struct service *s = xcalloc(1, sizeof(*s));
	struct policy *index = NULL;
	int r = service_parse(text, name, s, err);

	if (r < 0) {
		free(s);
		return r;
	}
	r = check_file_name(s, file, err);
	if (r == 0)
		r = check_conflicts(set, s, err);
	if (r == 0) {
		set->service[set->n++] = s;
		r = build_index(set, &index, err);
		set->n -= r < 0;
	}
	if (r < 0) {
		free_service(s);
		return err_wrap(err, r, "%s", name);
	}
	policy_free(set->index);
	set->index = index;
	return 0;
}

int services_add(struct services *set, struct slice text, const char *name, struct err *err)
{
	return add_text(set, text, name, NULL, err);
}

/* ---- a directory of files ---- */

static void keep_fault(struct services *set, const struct err *err, int r)
{
	if (set->n_faults < SERVICES_MAX_FAULTS)
		set->fault[set->n_faults++] = xstrdup(err_text(err, r));
}

static void load_file(struct services *set, const char *folder, const char *file)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, file);
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n;
	int r = file_load(path, SERVICE_MAX_BYTES, &text, &n, &err);

	if (r == 0)
		r = add_text(set, slice_of(text, n), path, file, &err);
	if (r < 0)
		keep_fault(set, &err, r);
}

static int is_conf(const struct dirent *d)
{
	return d->d_name[0] != '.' && str_ends(d->d_name, ".conf");
}

int services_load(struct services *set, const char *folder, struct err *err)
{
	struct dirent **list = NULL;
	int n = scandir(folder, &list, is_conf, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot read %s", folder);
	for (int i = 0; i < n; i++) {
		load_file(set, folder, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return 0;
}

int services_load_installed(struct services *set, struct err *err)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "services");
	AUTO_FREE char *own = paths_get(PATHS_CONFIG, "services");
	int r = services_load(set, shipped, err);

	return r < 0 ? r : services_load(set, own, err);
}

/* ---- lookup ---- */

size_t services_count(const struct services *set)
{
	return set->n;
}

const struct service *services_get(const struct services *set, size_t i)
{
	return i < set->n ? set->service[i] : NULL;
}

size_t services_count_faults(const struct services *set)
{
	return set->n_faults;
}

const char *services_fault(const struct services *set, size_t i)
{
	return i < set->n_faults ? set->fault[i] : NULL;
}

const struct service *services_by_name(const struct services *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->service[i]->name, name) == 0)
			return set->service[i];
	return NULL;
}

const struct service *services_find(
	const struct services *set, const struct host *host, uint16_t port)
{
	const struct policy_op op = {.kind = RULE_NETWORK, .host = host, .port = port};
	struct policy_decision d;

	policy_decide(set->index, &op, &d);
	return d.allowed ? set->service[d.rule.group - 1] : NULL;
}
