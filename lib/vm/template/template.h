/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template - the store of templates: names, their directories, and checks that they are complete.
 *
 * How      DATA/templates/.store/ID is one template: a directory of files that never change: base
 *          and layers of each disk, kernel, modules, manifest.json. ID is the hash of names and
 *          contents. A file that two templates share has two names (a hard link), so a template
 *          does not depend on its parent, which can be removed. DATA/templates/NAME is a symbolic
 *          link to such a directory, here or elsewhere. A sandbox records the ID that it was
 *          created from, not the name: a name can change its target.
 *
 *          A new one is a draft, .store/.new.PID.N, filled by template_draft_*; publishing hashes
 *          it, writes the manifest, syncs and renames. The next draft removes the stale files of a
 *          crash. The hash of a file skips blocks of zeros: holes cost nothing.
 * Trust    The user's own files, and files of others by template_import: every length, name, number
 *          and hash in them is checked, nothing is published before all of it was checked.
 * Owns     struct template owns its strings; template_done frees. A draft owns its directory.
 * Limits   TEMPLATE_MAX_*.
 * See      proto/PROTOCOL.template (the manifest, the file of `save -o`), template_test.c
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

#define TEMPLATE_ID_LEN 16
#define TEMPLATE_MAX_NAME 63
#define TEMPLATE_MAX_LAYERS 32 /* of one disk, its base included */

enum template_disk { TEMPLATE_ROOT, TEMPLATE_DOCKER, TEMPLATE_N_DISKS };

/* Absolute paths: the raw base, then layers upwards. */
struct template_chain {
	char *files[TEMPLATE_MAX_LAYERS];
	size_t n;
};

struct template
{
	char id[TEMPLATE_ID_LEN + 1];
	char *dir; /* the directory itself, no link */
	char *kernel, *modules;
	struct template_chain disks[TEMPLATE_N_DISKS];
	json_t *manifest;
};

typedef void template_progress_fn(void *arg, unsigned percent, const char *text);

void template_done(struct template *t);
#define AUTO_TEMPLATE CLEANUP(template_done)
/* Removes a directory of plain files, or a link to one. 0 if it does not exist. */
int template_remove(const char *dir, struct err *err) MUST_CHECK;

/* By name or id. -ENOENT when there is none. Every file exists, with the right size and type; a
 * file that changed since it was last hashed (inode, size, times) is hashed again. -EUCLEAN if it
 * does not match the manifest: err names the file and a command to run. */
int template_open(const char *ref, struct template *ret, struct err *err) MUST_CHECK;
/* The same, and reports progress when there is something to hash. */
int template_open_shown(const char *ref, template_progress_fn *progress, void *arg,
	struct template *ret, struct err *err) MUST_CHECK;
/* The id of a name or id from the manifest alone, for callers that must not wait. -ENOENT; -ENODATA
 * when it has no hashes yet (template_open makes them). */
int template_resolve(const char *ref, char ret_id[TEMPLATE_ID_LEN + 1], struct err *err) MUST_CHECK;
/* Whether the template of an id exists, by the manifest alone: no file of it is read. */
bool template_exists(const char *id);
/* As template_open, by hashing everything. */
int template_verify(
	const char *ref, template_progress_fn *progress, void *arg, struct err *err) MUST_CHECK;
bool template_is_name(const char *s);

/* "root" or "docker". */
const char *template_disk_name(enum template_disk disk);

struct template_draft {
	char *dir;
	struct template_chain disks[TEMPLATE_N_DISKS]; /* as far as they are in it */
	json_t *known; /* files whose hash is known from the template they are of */
};

int template_draft_begin(struct template_draft *ret, struct err *err) MUST_CHECK;
/* Everything of `from`, by links. */
int template_draft_add_template(
	struct template_draft *d, const struct template *from, struct err *err) MUST_CHECK;
/* The next layer of a disk, by a link: the file must never be written again. `live`: the qemu of
 * a running sandbox may still hold it writable, so the layer is a copy, which no qemu has open;
 * a file that is one of a template's already is linked. */
int template_draft_add_layer(struct template_draft *d, enum template_disk disk, const char *path,
	bool live, struct err *err) MUST_CHECK;
/* Lets a sandbox's file of the same content be the template's: its blocks are stored once as
 * soon as qemu closes the old one. Where links are not possible, both stay. */
void template_share_layer(
	const struct template *t, enum template_disk disk, size_t layer, const char *path);
/* A base ("root.img", "docker.img"), "vmlinuz" or "modules.cpio", moved here from `path` (on the
 * same file system; or it is in the draft's directory already). A base takes the place of the whole
 * chain. */
int template_draft_take(
	struct template_draft *d, const char *name, const char *path, struct err *err) MUST_CHECK;
/* Hashes, writes the manifest with `facts` in it (borrowed: kind, agent, parent, packages ...),
 * makes the id, renames, and lets `name` point there (NULL: no name). Equal content that is in
 * the store already is taken instead of the draft. */
int template_draft_publish(struct template_draft *d, const char *name, const json_t *facts,
	template_progress_fn *progress, void *arg, struct template *ret,
	struct err *err) MUST_CHECK;
/* Removes what was not published. All zero is fine. */
void template_draft_done(struct template_draft *d);
#define AUTO_DRAFT CLEANUP(template_draft_done)

/* The names, sorted; each object has "name" and all of the manifest. The caller's. */
json_t *template_list(void);
/* Removes the name. template_collect removes its target. */
int template_untag(const char *name, struct err *err) MUST_CHECK;
/* Removes what no name and none of `keep` (n ids that sandboxes are based on) refers to. */
int template_collect(const char *const *keep, size_t n, struct err *err) MUST_CHECK;

/* One file with everything, compressed, checksums inside (PROTOCOL.template). fds stay the
 * caller's. */
int template_export(const struct template *t, int fd, template_progress_fn *progress, void *arg,
	struct err *err) MUST_CHECK;
/* Which name the template of a file gets. */
struct template_naming {
	const char *name; /* the user's word; NULL: the one in the file, if may_take agrees */
	/* Is called with the name in the file and the template's id before anything is taken. A
	 * negative errno refuses. The name is a stranger's, well formed. */
	int (*may_take)(void *arg, const char *name, const char *id, struct err *err);
	void *arg;
	char given[TEMPLATE_MAX_NAME + 1]; /* the result */
};

/* Nothing is published unless all of it is right. The manifest gets "loaded": true. */
int template_import(int fd, struct template_naming *naming, template_progress_fn *progress,
	void *arg, struct template *ret, struct err *err) MUST_CHECK;
