/* SPDX-License-Identifier: Apache-2.0 */
/* The allow list: keys that a guest may add, change and remove, and which values are harmless.
 *
 * A key is here when git itself writes it for an everyday command (init, clone, remote, branch,
 * submodule, push -u) or when people set it in a repository, and no permitted value makes a program
 * on the host run, read a file outside of the repository, or push something else than what the
 * user sees. Not here, with a reason that is not obvious:
 *
 *   core.worktree        except for a submodule: git would write files into any directory.
 *   core.sharedRepository  changes the permissions of files that git creates.
 *   extensions.worktreeConfig  enables a second configuration file.
 *   extensions.partialClone, remote.*.promisor  every command that misses an object then connects
 *                        to the remote, `git status` in a shell prompt too.
 *   remote.*.push, remote.*.mirror, push.default matching and upstream, push.followTags  a plain
 *                        `git push` of the user would push, or delete, other branches of the
 *                        server.
 *   pull.twohead, pull.octopus  git runs git-merge-VALUE.
 *   submodule.recurse    git runs in submodules that the user did not ask for.
 *   commit.gpgSign       commits of the user would no longer be signed.
 *   http.*               certificates, proxies, cookies and headers of the user's connections.
 *
 * Here although they have an effect:
 *
 *   core.bare            true makes commands that need files fail. The guest can do that with
 *                        .git/HEAD too.
 *   core.symlinks        whether checked-out links are links. The guest can create links itself.
 *   core.filemode, core.ignorecase, core.autocrlf, core.eol  the comparison of files with the
 *                        index, and line ends of checked-out files: the guest can write both.
 */
#include <strings.h>
#include "gitconfig_internal.h"
#include "lib/base/text/text.h"

#define MAX_TEXT 1024

/* Lines of a text, without control characters. */
static bool is_plain_text(struct slice s, bool lines)
{
	struct slice rest = s;

	if (!lines)
		return s.n <= MAX_TEXT && text_is_all_plain(s);
	while (rest.n)
		if (!text_is_all_plain(slice_next_line(&rest)))
			return false;
	return s.n <= MAX_TEXT;
}

/* Whether `words`, "|a|b|", has the value. */
static bool is_word(const char *words, struct slice value)
{
	for (const char *p = words; p && *p == '|' && p[1]; p += strcspn(p + 1, "|") + 1)
		if (slice_eq(value, slice_of(p + 1, strcspn(p + 1, "|"))))
			return true;
	return false;
}

static bool accept_bool(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	return !e->has_value || is_word("|true|false|yes|no|on|off|1|0|", e->value) ||
	       is_word(scene->rule->words, e->value);
}

static bool accept_word(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	return e->has_value && is_word(scene->rule->words, e->value);
}

static bool accept_number(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	for (size_t i = 0; i < e->value.n; i++)
		if (e->value.p[i] < '0' || e->value.p[i] > '9')
			return false;
	return e->value.n > 0 && e->value.n <= 9;
}

static bool accept_line(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	return e->has_value && is_plain_text(e->value, false);
}

static bool accept_lines(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	return e->has_value && is_plain_text(e->value, true);
}

/* ---- addresses and refs ---- */

static bool accept_url(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	return gitconfig_url_is_harmless(e->value);
}

bool gitconfig_is_bound(const struct gitconfig *c, struct slice remote)
{
	if (!remote.n)
		return false;
	if (slice_eq_str(remote, ".") || gitconfig_url_is_harmless(remote))
		return true;
	for (size_t i = 0; i < c->n; i++) {
		const struct gitconfig_entry *e = &c->entry[i];

		if (e->has_sub && e->value.n && slice_eq_str(e->section, "remote") &&
			slice_eq_str(e->key, "url") && slice_eq(e->sub, remote))
			return true;
	}
	return false;
}

static bool accept_remote(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	return gitconfig_is_bound(scene->config, e->value);
}

static bool accept_ref(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	return gitconfig_ref_is_sane(e->value, false);
}

static bool accept_name(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	(void)scene;
	return gitconfig_name_is_sane(e->value);
}

static bool contains_star(struct slice s)
{
	return s.n && memchr(s.p, '*', s.n);
}

/* [+]refs/A:refs/B, [+]refs/A or ^refs/A, with a star on both sides or on none. */
static bool accept_fetch(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	struct slice to = e->value, from;
	char mark = to.n ? (char)to.p[0] : '\0';
	const uint8_t *colon;

	(void)scene;
	if (mark == '+' || mark == '^')
		(void)slice_take(&to, 1);
	colon = to.n ? memchr(to.p, ':', to.n) : NULL;
	if (!colon)
		return gitconfig_ref_is_sane(to, mark == '^');
	from = slice_take(&to, (size_t)(colon - to.p));
	(void)slice_take(&to, 1);
	return mark != '^' && contains_star(from) == contains_star(to) &&
	       (slice_eq_str(from, "HEAD") || gitconfig_ref_is_sane(from, true)) &&
	       gitconfig_ref_is_sane(to, true);
}

/* ---- paths ---- */

/* Any spelling of .git that a file system could take for it. */
static bool is_like_git(struct slice part)
{
	char name[8];

	if (part.n >= sizeof(name) || slice_to_cstr(part, name, sizeof(name)) < 0)
		return false;
	return !strcasecmp(name, ".git") || !strncasecmp(name, "git~", 4);
}

/* Components without "", ".", "..", .git. */
static bool is_inner_path(struct slice path)
{
	bool more = path.n > 0;

	if (!more || path.p[0] == '-' || memchr(path.p, '\\', path.n) ||
		!is_plain_text(path, false))
		return false;
	while (more) {
		const uint8_t *slash = path.n ? memchr(path.p, '/', path.n) : NULL;
		struct slice part = slice_take(&path, slash ? (size_t)(slash - path.p) : path.n);

		more = slash != NULL;
		if (more)
			path = slice_of(path.p + 1, path.n - 1);
		if (!part.n || slice_eq_str(part, ".") || slice_eq_str(part, "..") ||
			is_like_git(part))
			return false;
	}
	return true;
}

/* Returns the number of directories from .git to the file in "A/.git/modules/B/config", or 0 for
 * another path. */
static size_t module_depth(const char *path)
{
	static const char head[] = ".git/modules/", tail[] = "/config";
	size_t n = strlen(path), depth = 0;
	const char *at = NULL;

	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (!strncmp(p, head, sizeof(head) - 1))
			at = p;
	if (!at || n < sizeof(tail) || strcmp(path + n - (sizeof(tail) - 1), tail) != 0)
		return 0;
	for (const char *p = at; *p; p++)
		depth += *p == '/';
	return depth >= 3 ? depth : 0;
}

/* core.worktree of a submodule: as many ".." as lead from its directory out of .git, then a path
 * that stays in the work tree of the repository. */
static bool accept_worktree(const struct gitconfig_entry *e, const struct gitconfig_scene *scene)
{
	size_t depth = module_depth(scene->path);
	struct slice rest = e->value;

	for (size_t i = 0; i < depth; i++)
		if (!slice_eq_str(slice_take(&rest, 3), "../"))
			return false;
	return depth > 0 && is_inner_path(rest);
}

/* ---- the list ---- */

static const struct gitconfig_rule rules[] = {
	{"advice", false, NULL, accept_bool, NULL},
	{"branch", true, "description", accept_lines, NULL},
	{"branch", true, "gh-merge-base", accept_name, NULL},
	{"branch", true, "merge", accept_ref, NULL},
	{"branch", true, "pushremote", accept_remote, NULL},
	{"branch", true, "rebase", accept_bool, "|merges|"},
	{"branch", true, "remote", accept_remote, NULL},
	{"branch", true, "vscode-merge-base", accept_name, NULL},
	{"core", false, "autocrlf", accept_bool, "|input|"},
	{"core", false, "bare", accept_bool, NULL},
	{"core", false, "eol", accept_word, "|lf|crlf|native|"},
	{"core", false, "filemode", accept_bool, NULL},
	{"core", false, "ignorecase", accept_bool, NULL},
	{"core", false, "logallrefupdates", accept_bool, "|always|"},
	{"core", false, "precomposeunicode", accept_bool, NULL},
	{"core", false, "quotepath", accept_bool, NULL},
	{"core", false, "repositoryformatversion", accept_word, "|0|1|"},
	{"core", false, "symlinks", accept_bool, NULL},
	{"core", false, "worktree", accept_worktree, NULL},
	{"extensions", false, "objectformat", accept_word, "|sha1|sha256|"},
	{"extensions", false, "refstorage", accept_word, "|files|reftable|"},
	{"fetch", false, "prune", accept_bool, NULL},
	{"gc", false, "auto", accept_number, NULL},
	{"init", false, "defaultbranch", accept_name, NULL},
	{"lfs", false, "repositoryformatversion", accept_word, "|0|"},
	{"lfs", true, "locksverify", accept_bool, NULL},
	{"maintenance", false, "auto", accept_bool, NULL},
	{"merge", false, "conflictstyle", accept_word, "|merge|diff3|zdiff3|"},
	{"pull", false, "ff", accept_bool, "|only|"},
	{"pull", false, "rebase", accept_bool, "|merges|"},
	{"push", false, "autosetupremote", accept_bool, NULL},
	{"push", false, "default", accept_word, "|nothing|current|simple|"},
	{"rebase", false, "autostash", accept_bool, NULL},
	{"remote", true, "fetch", accept_fetch, NULL},
	{"remote", true, "gh-resolved", accept_word, "|base|"},
	{"remote", true, "prune", accept_bool, NULL},
	{"remote", true, "pushurl", accept_url, NULL},
	{"remote", true, "tagopt", accept_word, "|--tags|--no-tags|"},
	{"remote", true, "url", accept_url, NULL},
	{"rerere", false, "enabled", accept_bool, NULL},
	{"submodule", false, "active", accept_line, NULL},
	{"submodule", true, "active", accept_bool, NULL},
	{"submodule", true, "update", accept_word, "|checkout|rebase|merge|none|"},
	{"submodule", true, "url", accept_url, NULL},
	{"user", false, "email", accept_line, NULL},
	{"user", false, "name", accept_line, NULL},
};

/* A key whose subsection is not a usual name is not on the list. */
static bool is_usual_sub(const struct gitconfig_entry *e)
{
	if (slice_eq_str(e->section, "submodule"))
		return is_inner_path(e->sub);
	if (slice_eq_str(e->section, "lfs"))
		return gitconfig_url_is_harmless(e->sub);
	return gitconfig_name_is_sane(e->sub);
}

const struct gitconfig_rule *gitconfig_find_rule(const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct gitconfig_rule *r = &rules[i];

		if (r->has_sub == e->has_sub && slice_eq_str(e->section, r->section) &&
			(!r->key || slice_eq_str(e->key, r->key)))
			return e->has_sub && !is_usual_sub(e) ? NULL : r;
	}
	return NULL;
}

bool gitconfig_is_remote_name(const struct gitconfig_entry *e)
{
	return e->has_sub && slice_eq_str(e->section, "branch") &&
	       (slice_eq_str(e->key, "remote") || slice_eq_str(e->key, "pushremote"));
}
