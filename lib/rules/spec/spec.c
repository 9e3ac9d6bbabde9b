/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "spec_internal.h"

static const char *const accel_names[] = {
	[SPEC_ACCEL_AUTO] = "auto",
	[SPEC_ACCEL_KVM] = "kvm",
	[SPEC_ACCEL_TCG] = "tcg",
};
static_assert(ARRAY_LEN(accel_names) == SPEC_N_ACCELS, "a name for each");

const char *spec_accel_name(enum spec_accel accel)
{
	return accel_names[accel];
}

int spec_accel_parse(const char *s, enum spec_accel *ret)
{
	for (size_t i = 0; i < SPEC_N_ACCELS; i++) {
		if (strcmp(s, accel_names[i]) == 0) {
			*ret = (enum spec_accel)i;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *const guard_names[] = {
	[SPEC_GUARD_UNSET] = "report",
	[SPEC_GUARD_OFF] = "off",
	[SPEC_GUARD_REPORT] = "report",
	[SPEC_GUARD_DEFAULT] = "default",
	[SPEC_GUARD_STRICT] = "strict",
};
static_assert(ARRAY_LEN(guard_names) == SPEC_N_GUARDS, "a name for each");

const char *spec_guard_name(enum spec_guard guard)
{
	return guard_names[guard];
}

int spec_guard_parse(const char *s, enum spec_guard *ret)
{
	for (size_t i = SPEC_GUARD_OFF; i < SPEC_N_GUARDS; i++) {
		if (strcmp(s, guard_names[i]) == 0) {
			*ret = (enum spec_guard)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void free_workspaces(struct spec_workspace *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].host);
		free(list[i].guest);
		free(list[i].typed);
	}
	free(list);
}

void spec_done(struct spec *spec)
{
	free_workspaces(spec->workspaces, spec->n_workspaces);
	free_workspaces(spec->mounts, spec->n_mounts);
	mem_free_list(spec->only, spec->n_only);
	mem_free_list(spec->hide, spec->n_hide);
	mem_free_list(spec->guard_except, spec->n_guard_except);
	mem_free_list(spec->env, spec->n_env);
	mem_free_list(spec->labels, spec->n_labels);
	mem_free_list(spec->ssh.keys, spec->ssh.n_keys);
	mem_free_list(spec->ssh.env, spec->ssh.n_env);
	free(spec->ssh.socket);
	free(spec->ssh.askpass);
	free(spec->clone.host);
	free(spec->clone.guest);
	free(spec->clone.branch);
	free(spec->ports);
	*spec = (struct spec){0};
}

static char **copy_list(char *const *list, size_t n)
{
	char **copy = n ? xcalloc(n, sizeof(char *)) : NULL;

	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(list[i]);
	return copy;
}

static struct spec_workspace *copy_workspaces(const struct spec_workspace *list, size_t n)
{
	struct spec_workspace *copy = n ? xcalloc(n, sizeof(*copy)) : NULL;

	for (size_t i = 0; i < n; i++) {
		copy[i] = list[i];
		copy[i].host = xstrdup(list[i].host);
		copy[i].guest = xstrdup(list[i].guest);
		copy[i].typed = list[i].typed ? xstrdup(list[i].typed) : NULL;
	}
	return copy;
}

void spec_copy(const struct spec *spec, struct spec *ret)
{
	*ret = *spec;
	ret->workspaces = copy_workspaces(spec->workspaces, spec->n_workspaces);
	ret->mounts = copy_workspaces(spec->mounts, spec->n_mounts);
	ret->only = copy_list(spec->only, spec->n_only);
	ret->hide = copy_list(spec->hide, spec->n_hide);
	ret->guard_except = copy_list(spec->guard_except, spec->n_guard_except);
	ret->env = copy_list(spec->env, spec->n_env);
	ret->labels = copy_list(spec->labels, spec->n_labels);
	ret->ssh.keys = copy_list(spec->ssh.keys, spec->ssh.n_keys);
	ret->ssh.env = copy_list(spec->ssh.env, spec->ssh.n_env);
	ret->ssh.socket = spec->ssh.socket ? xstrdup(spec->ssh.socket) : NULL;
	ret->ssh.askpass = spec->ssh.askpass ? xstrdup(spec->ssh.askpass) : NULL;
	ret->clone.host = spec->clone.host ? xstrdup(spec->clone.host) : NULL;
	ret->clone.guest = spec->clone.guest ? xstrdup(spec->clone.guest) : NULL;
	ret->clone.branch = spec->clone.branch ? xstrdup(spec->clone.branch) : NULL;
	ret->ports = spec->n_ports ? xcalloc(spec->n_ports, sizeof(*ret->ports)) : NULL;
	for (size_t i = 0; i < spec->n_ports; i++)
		ret->ports[i] = spec->ports[i];
}

static uint32_t host_cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : MIN((uint32_t)n, (uint32_t)SPEC_MAX_CPUS);
}

static uint64_t host_memory(void)
{
	const uint64_t least = 512ull << 20, most = 4ull << 30;
	struct sysinfo si;
	uint64_t half;

	if (sysinfo(&si) < 0)
		return least;
	half = (uint64_t)si.totalram * si.mem_unit / 2;
	/* Whole MiB: the engine takes no less. */
	return MIN(MAX(half, least), most) & ~((1ull << 20) - 1);
}

void spec_set_defaults(struct spec *spec, uint32_t cpus, uint64_t memory)
{
	if (!spec->agent[0])
		(void)!str_copy(spec->agent, sizeof(spec->agent), "shell");
	if (!spec->template[0])
		(void)!str_copy(spec->template, sizeof(spec->template), "debian");
	if (!spec->cpus)
		spec->cpus = cpus ? cpus : host_cpus();
	if (!spec->memory)
		spec->memory = memory ? memory : host_memory();
}

static bool same_workspaces(
	const struct spec_workspace *a, size_t n_a, const struct spec_workspace *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++) {
		const struct spec_workspace *x = &a[i], *y = &b[i];

		if (strcmp(x->host, y->host) != 0 || strcmp(x->guest, y->guest) != 0 ||
			x->ro != y->ro || x->file != y->file)
			return false;
	}
	return true;
}

static bool same_list(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

static bool word_matches(const char *have, const char *wanted)
{
	return !wanted[0] || strcmp(have, wanted) == 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_ssh(const struct spec_ssh *a, const struct spec_ssh *b)
{
	return same_text(a->socket, b->socket) && same_text(a->askpass, b->askpass) &&
	       a->confirm == b->confirm && same_list(a->keys, a->n_keys, b->keys, b->n_keys) &&
	       same_list(a->env, a->n_env, b->env, b->n_env);
}

static bool same_clone(const struct spec_clone *a, const struct spec_clone *b)
{
	return same_text(a->host, b->host) && same_text(a->guest, b->guest) &&
	       same_text(a->branch, b->branch);
}

bool spec_matches(const struct spec *have, const struct spec *wanted)
{
	return word_matches(have->id, wanted->id) && word_matches(have->name, wanted->name) &&
	       word_matches(have->agent, wanted->agent) &&
	       word_matches(have->template, wanted->template) &&
	       word_matches(have->template_id, wanted->template_id) &&
	       (!wanted->cpus || have->cpus == wanted->cpus) &&
	       (!wanted->memory || have->memory == wanted->memory) &&
	       (!wanted->disk || have->disk == wanted->disk) && have->idle_s == wanted->idle_s &&
	       have->accel == wanted->accel && have->force == wanted->force &&
	       have->staged == wanted->staged && have->staged_since == wanted->staged_since &&
	       same_workspaces(have->workspaces, have->n_workspaces, wanted->workspaces,
		       wanted->n_workspaces) &&
	       same_workspaces(have->mounts, have->n_mounts, wanted->mounts, wanted->n_mounts) &&
	       same_list(have->only, have->n_only, wanted->only, wanted->n_only) &&
	       same_clone(&have->clone, &wanted->clone) && same_ssh(&have->ssh, &wanted->ssh) &&
	       spec_same_ports(have, wanted) &&
	       same_list(have->hide, have->n_hide, wanted->hide, wanted->n_hide) &&
	       (!wanted->guard || have->guard == wanted->guard) &&
	       same_list(have->guard_except, have->n_guard_except, wanted->guard_except,
		       wanted->n_guard_except) &&
	       same_list(have->labels, have->n_labels, wanted->labels, wanted->n_labels) &&
	       same_list(have->env, have->n_env, wanted->env, wanted->n_env);
}

int spec_save(const struct spec *spec, const char *path, struct err *err)
{
	AUTO_FREE char *text = spec_encode(spec);

	return file_save(path, slice_from_str(text), err);
}

int spec_load(const char *path, struct spec *ret, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n;
	int r;

	r = file_load(path, SPEC_MAX_JSON, &text, &n, err);
	if (r == -ENOENT)
		return err_set(err, r, "%s does not exist", path);
	if (r < 0)
		return r;
	r = spec_decode(slice_of(text, n), ret, err);
	if (r == 0)
		r = spec_check(ret, err);
	if (r < 0) {
		spec_done(ret);
		return err_wrap(err, r, "%s", path);
	}
	return 0;
}

char *spec_dir(const char *id)
{
	return paths_get(PATHS_STATE, "specs/%s", id);
}

char *spec_path(const char *id)
{
	return paths_get(PATHS_STATE, "specs/%s/spec.json", id);
}
