/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "spec_internal.h"

bool spec_is_id(const char *s)
{
	return hex_is(s, SPEC_ID_LEN);
}

static bool is_alnum(char c)
{
	return isalnum((unsigned char)c) && (unsigned char)c < 0x80;
}

/* What a name and a word have in common; NULL when it is well made. */
static const char *name_fault(const char *s, size_t min, size_t max)
{
	size_t n = strlen(s);

	if (n < min || n > max)
		return n < min ? "is too short" : "is too long";
	if (!is_alnum(s[0]))
		return "must begin with a letter (a-z, A-Z) or a digit";
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(s[i]) && s[i] != '.' && s[i] != '-')
			return "can contain only letters, digits, '.' and '-'";
	if (s[n - 1] == '-' || s[n - 1] == '.')
		return "must not end in '-' or '.'";
	return NULL;
}

int spec_check_name(const char *name, struct err *err)
{
	const char *fault = name_fault(name, SPEC_MIN_NAME, SPEC_MAX_NAME);

	if (fault)
		return err_set(
			err, -EINVAL, "the name '%.80s' %s (2 to 63 characters)", name, fault);
	if (strcmp(name, "default") == 0)
		return err_set(err, -EINVAL, "the name 'default' is reserved");
	if (spec_is_id(name))
		return err_set(err, -EINVAL,
			"the name '%s' has the form of an id (12 hex digits): use another name",
			name);
	return 0;
}

static int check_word(const char *field, const char *word, struct err *err)
{
	const char *fault = name_fault(word, 1, SPEC_MAX_WORD);

	return fault ? err_set(err, -EINVAL, "%s '%.80s' %s", field, word, fault) : 0;
}

/* What JSON could not carry would be lost in silence on the way to the keeper. */
static bool is_utf8(const char *s)
{
	json_t *j = json_string(s);

	json_decref(j);
	return j != NULL;
}

static bool is_plain_text(const char *s)
{
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return is_utf8(s);
}

static int check_path(const char *field, const char *path, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, -EINVAL, "%s '%.200s' is not an absolute path", field, path);
	if (strlen(path) > SPEC_MAX_PATH)
		return err_set(err, -E2BIG, "%s is longer than %d bytes", field, SPEC_MAX_PATH);
	if (!is_plain_text(path))
		return err_set(err, -EINVAL, "%s holds a control character or is not UTF-8", field);
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t n = strcspn(++p, "/");

		if ((n == 0 && path[1]) || (n == 1 && p[0] == '.') ||
			(n == 2 && p[0] == '.' && p[1] == '.'))
			return err_set(err, -EINVAL,
				"%s '%.200s' has an empty part, '.' or '..' in it", field, path);
	}
	return 0;
}

/* The guest cannot live without its own ones. */
static bool is_reserved_guest(const char *path)
{
	static const char *const reserved[] = {"/proc", "/sys", "/dev", "/run", "/var/run"};

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		size_t n = strlen(reserved[i]);

		if (str_starts(path, reserved[i]) && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return strcmp(path, "/") == 0;
}

static int check_workspace(const struct spec_workspace *w, struct err *err)
{
	int r = check_path("workspace host path", w->host, err);

	if (r == 0)
		r = check_path("workspace guest path", w->guest, err);
	if (r == 0 && is_reserved_guest(w->guest))
		return err_set(
			err, -EINVAL, "a workspace cannot be at '%.200s' in the guest", w->guest);
	return r;
}

static int check_hide(const char *glob, struct err *err)
{
	if (!glob[0] || strlen(glob) > SPEC_MAX_GLOB || !is_plain_text(glob))
		return err_set(err, -EINVAL,
			"hide '%.200s' is empty, too long or holds a control character", glob);
	return 0;
}

/* Relative to a workspace: a leading '/' or a '..' would never match. */
static int check_except(const char *glob, struct err *err)
{
	if (!glob[0] || strlen(glob) > SPEC_MAX_GLOB || !is_plain_text(glob))
		return err_set(err, -EINVAL,
			"guard_except '%.200s' is empty, too long or holds a control character",
			glob);
	for (const char *p = glob;; p += strcspn(p, "/") + 1) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return err_set(err, -EINVAL,
				"guard_except '%.200s' is not a path relative to a workspace",
				glob);
		if (!p[n])
			return 0;
	}
}

int spec_check_label(const char *label, struct err *err)
{
	size_t n = strcspn(label, "=");
	const char *value = label + n + (label[n] == '=');

	if (!label[n])
		return err_set(err, -EINVAL, "invalid label '%.80s': expected KEY=VALUE", label);
	if (n == 0 || n > SPEC_MAX_LABEL_KEY || !is_alnum(label[0]) ||
		strspn(label,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") != n)
		return err_set(err, -EINVAL,
			"invalid key of the label '%.80s': expected at most %d letters, digits and ._-/, first a letter or digit",
			label, SPEC_MAX_LABEL_KEY);
	if (strlen(value) > SPEC_MAX_LABEL || !str_is_printable(value))
		return err_set(err, -EINVAL,
			"invalid value of the label '%.*s': expected printable ASCII of at most %d characters",
			(int)n, label, SPEC_MAX_LABEL);
	return 0;
}

static bool is_env_name(const char *s, size_t n)
{
	if (n == 0 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(s[i]) && s[i] != '_')
			return false;
	return true;
}

static int check_env(const struct spec *spec, struct err *err)
{
	size_t total = 0;

	for (size_t i = 0; i < spec->n_env; i++) {
		const char *e = spec->env[i];

		if (!strchr(e, '=') || !is_env_name(e, strcspn(e, "=")) || !is_utf8(e))
			return err_set(
				err, -EINVAL, "env '%.80s' has no proper name or is not UTF-8", e);
		total += strlen(e) + 1;
	}
	if (total > SPEC_MAX_ENV_BYTES)
		return err_set(err, -E2BIG, "env is larger than %d bytes", SPEC_MAX_ENV_BYTES);
	return 0;
}

static int check_numbers(const struct spec *spec, struct err *err)
{
	if (spec->cpus > SPEC_MAX_CPUS)
		return err_set(err, -EINVAL, "cpus must be 1 to %d", SPEC_MAX_CPUS);
	if (spec->memory && (spec->memory < SPEC_MIN_MEMORY || spec->memory > SPEC_MAX_MEMORY))
		return err_set(err, -EINVAL, "memory must be 256 MiB to 4 TiB");
	if (spec->disk && (spec->disk < SPEC_MIN_DISK || spec->disk > SPEC_MAX_DISK))
		return err_set(err, -EINVAL, "disk must be 1 GiB to 1 TiB");
	return 0;
}

static int check_words(const struct spec *spec, struct err *err)
{
	int r = 0;

	if (spec->id[0] && !spec_is_id(spec->id))
		return err_set(err, -EINVAL, "an id is 12 lower-case hex digits");
	if (spec->template_id[0] && !hex_is(spec->template_id, SPEC_TEMPLATE_ID_LEN))
		return err_set(err, -EINVAL, "template_id is 16 lower-case hex digits");
	if (spec->agent[0])
		r = check_word("agent", spec->agent, err);
	if (r == 0 && spec->template[0])
		r = check_word("template", spec->template, err);
	return r == 0 ? spec_check_name(spec->name, err) : r;
}

static int check_ssh(const struct spec_ssh *ssh, struct err *err)
{
	int r = ssh->socket ? check_path("the socket of the SSH agent", ssh->socket, err) : 0;

	if (r == 0 && ssh->askpass)
		r = check_path("askpass", ssh->askpass, err);
	if (r == 0 && ssh->confirm && !ssh->askpass)
		return err_set(err, -EINVAL, "confirm of ssh_agent requires askpass");
	for (size_t i = 0; r == 0 && i < ssh->n_keys; i++)
		if (!ssh->keys[i][0] || strlen(ssh->keys[i]) > SPEC_MAX_SSH_KEY ||
			!is_plain_text(ssh->keys[i]))
			return err_set(err, -EINVAL,
				"invalid SSH key '%.80s': expected a fingerprint or comment",
				ssh->keys[i]);
	for (size_t i = 0; r == 0 && i < ssh->n_env; i++)
		if (!is_env_name(ssh->env[i], strcspn(ssh->env[i], "=")) ||
			!strchr(ssh->env[i], '=') || strlen(ssh->env[i]) > SPEC_MAX_PATH)
			return err_set(err, -EINVAL, "env of ssh_agent has no proper name");
	return r;
}

/* Only below the agent's home, where it covers no files of the user. */
static int check_mounts(const struct spec *spec, struct err *err)
{
	int r = 0;

	if (spec->n_mounts + spec->n_workspaces > SPEC_MAX_WORKSPACES)
		return err_set(
			err, -E2BIG, "more than %d workspaces and mounts", SPEC_MAX_WORKSPACES);
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++) {
		const struct spec_workspace *w = &spec->mounts[i];

		r = check_workspace(w, err);
		if (r == 0 && (!str_starts(w->guest, SPEC_HOME "/") || w->file))
			return err_set(
				err, -EINVAL, "a mount must be a directory below " SPEC_HOME);
	}
	return r;
}

static int check_clone(const struct spec *spec, struct err *err)
{
	const struct spec_clone *c = &spec->clone;
	int r = c->host ? check_path("clone host path", c->host, err) : 0;

	if (r == 0 && c->host)
		r = check_path("clone guest path", c->guest, err);
	if (r == 0 && c->host && is_reserved_guest(c->guest))
		return err_set(
			err, -EINVAL, "a clone cannot be at '%.200s' in the guest", c->guest);
	if (r == 0 && c->branch &&
		(!c->branch[0] || strlen(c->branch) > SPEC_MAX_BRANCH || !is_plain_text(c->branch)))
		return err_set(err, -EINVAL, "invalid branch of clone");
	for (size_t i = 0; r == 0 && c->host && i < spec->n_workspaces; i++)
		if (strcmp(spec->workspaces[i].guest, c->guest) == 0)
			return err_set(
				err, -EINVAL, "'%.200s' is both a clone and a workspace", c->guest);
	return r;
}

static int check_only(const struct spec *spec, struct err *err)
{
	for (size_t i = 0; i < spec->n_only; i++) {
		const char *s = spec->only[i];

		if (!s[0] || strlen(s) > SPEC_MAX_RESOURCE || strpbrk(s, " ,#") ||
			!is_plain_text(s))
			return err_set(err, -EINVAL, "invalid resource '%.80s' in only", s);
	}
	return 0;
}

static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* An overlay does not show other file systems in the directory below it. */
static int check_staged(const struct spec *spec, struct err *err)
{
	size_t n = 0;

	if (!spec->staged)
		return spec->staged_since ? err_set(err, -EINVAL, "staged_since requires staged")
					  : 0;
	if (spec->idle_s)
		return err_set(err, -EINVAL,
			"staged and idle_timeout are mutually exclusive: a staged sandbox cannot be suspended");
	if (spec->clone.host)
		return err_set(err, -EINVAL,
			"staged and clone are mutually exclusive: a clone keeps changes in the sandbox too");
	for (size_t i = 0; i < spec->n_workspaces; i++) {
		n += !spec->workspaces[i].ro;
		for (size_t k = 0; k < spec->n_workspaces; k++)
			if (!spec->workspaces[k].ro &&
				is_inside(spec->workspaces[i].guest, spec->workspaces[k].guest))
				return err_set(err, -EINVAL,
					"'%.200s' is inside the staged workspace '%.200s': share one of them only",
					spec->workspaces[i].guest, spec->workspaces[k].guest);
	}
	return n ? 0 : err_set(err, -EINVAL, "staged requires a writable workspace");
}

int spec_check_given(const struct spec *spec, struct err *err)
{
	int r = check_words(spec, err);

	if (r == 0)
		r = check_numbers(spec, err);
	for (size_t i = 0; r == 0 && i < spec->n_workspaces; i++)
		r = check_workspace(&spec->workspaces[i], err);
	for (size_t i = 0; r == 0 && i < spec->n_hide; i++)
		r = check_hide(spec->hide[i], err);
	for (size_t i = 0; r == 0 && i < spec->n_guard_except; i++)
		r = check_except(spec->guard_except[i], err);
	for (size_t i = 0; r == 0 && i < spec->n_labels; i++)
		r = spec_check_label(spec->labels[i], err);
	if (r == 0)
		r = check_mounts(spec, err);
	if (r == 0)
		r = check_only(spec, err);
	if (r == 0)
		r = check_ssh(&spec->ssh, err);
	if (r == 0)
		r = check_clone(spec, err);
	if (r == 0)
		r = spec_check_ports(spec, err);
	if (r == 0)
		r = check_staged(spec, err);
	return r == 0 ? check_env(spec, err) : r;
}

int spec_check(const struct spec *spec, struct err *err)
{
	int r = spec_check_given(spec, err);

	if (r < 0)
		return r;
	if (!spec->id[0] || !spec->agent[0] || !spec->template[0] || !spec->cpus || !spec->memory)
		return err_set(err, -EINVAL, "missing id, agent, template, cpus or memory");
	for (size_t i = 0; i < spec->n_workspaces; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(spec->workspaces[i].guest, spec->workspaces[k].guest) == 0)
				return err_set(err, -EINVAL, "duplicate guest path '%.200s'",
					spec->workspaces[i].guest);
	return 0;
}
