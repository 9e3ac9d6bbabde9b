/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitconfig_internal - the entries of a git configuration, and the rules for single values.
 *
 * How      gitconfig_parse makes a list of entries and whole-line comments. gitconfig_find_rule
 *          finds the rule of a key; a rule without a row is not permitted.
 * Trust    Slices point into gitconfig.bytes: decoded, hostile.
 * Owns     A struct gitconfig owns its bytes and entries; gitconfig_done frees them.
 */
#pragma once

#include "gitconfig.h"
#include "lib/base/slice.h"

struct gitconfig_entry {
	struct slice section; /* lower case */
	struct slice sub;     /* case is significant */
	struct slice key;     /* lower case; empty: a comment, whose text is `value` */
	struct slice value;
	bool has_sub, has_value; /* `key` without '=' is not `key =` */
	bool is_dropped;	 /* gitconfig_check leaves it out */
};

struct gitconfig {
	uint8_t *bytes;
	size_t n_bytes;
	struct gitconfig_entry *entry;
	size_t n;
};

/* *ret must be all zero; free it also after a failure. -EBADMSG with the line, -E2BIG. */
int gitconfig_parse(struct slice text, struct gitconfig *ret, struct err *err) MUST_CHECK;
void gitconfig_done(struct gitconfig *c);
#define AUTO_GITCONFIG CLEANUP(gitconfig_done)

static inline bool gitconfig_is_comment(const struct gitconfig_entry *e)
{
	return e->key.n == 0;
}

struct gitconfig_scene;

/* One row of the allow list. */
struct gitconfig_rule {
	const char *section;
	bool has_sub;
	const char *key; /* NULL: any */
	/* Whether the value of an entry is harmless. */
	bool (*accept)(const struct gitconfig_entry *e, const struct gitconfig_scene *scene);
	const char *words; /* for `accept`: "|a|b|" */
};

/* What a rule looks at besides the value. */
struct gitconfig_scene {
	const struct gitconfig *config; /* the new one */
	const char *path;		/* of the file */
	const struct gitconfig_rule *rule;
};

/* NULL: the key is not on the allow list. */
const struct gitconfig_rule *gitconfig_find_rule(const struct gitconfig_entry *e);
/* branch.*.remote and branch.*.pushremote: git uses a value that is not a configured remote as an
 * address or a path. */
bool gitconfig_is_remote_name(const struct gitconfig_entry *e);
/* "." or an address that is permitted, or a remote with an URL in `c`. */
bool gitconfig_is_bound(const struct gitconfig *c, struct slice remote);

/* An address of a repository on another machine; never a path of the host, a transport helper or
 * text that ssh could read as an option. */
bool gitconfig_url_is_harmless(struct slice url);
/* refs/..., by the rules of git check-ref-format; `stars`: at most one '*'. */
bool gitconfig_ref_is_sane(struct slice ref, bool stars);
/* The same for a name of a branch or remote, which has no refs/ in front. */
bool gitconfig_name_is_sane(struct slice name);
