/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - the templates that sandboxes start from: find, build and save them.
 *
 * How      The store is lib/vm/template. The base is built by the helper template-build, whose
 *          lines on fd 3 ("PP text") drive the bar, and published through a draft. A sandbox is
 *          saved by having sbxd make what its disks hold layers, which are linked into a draft on
 *          its template.
 * Trust    The user's own directories; the helper's lines are cleaned before they are shown.
 * Limits   TEMPLATE_MAX_LINE bytes per line; the helper has its own timeout. TEMPLATE_FREEZE_MS.
 * See      image/README, lib/vm/template/template.h, disk_save.c
 */
#pragma once

#include <jansson.h>
#include "lib/vm/template/template.h"
#include "lib/client/cli/ui.h"

#define TEMPLATE_MAX_LINE 512
#define TEMPLATE_FREEZE_MS 70000

bool template_is_there(const char *name);
/* Runs the helper and shows its progress. extra is NULL-terminated further arguments, or NULL. */
int template_build(const char *name, const char *const *extra, struct problem *p) MUST_CHECK;
/* If it is missing: prompts on a terminal and builds; without a terminal fails with the command. An
 * existing one is verified, with progress the first time. */
int template_require(const char *name, struct problem *p) MUST_CHECK;
/* Whether the base was built by the recipe of this version of sbx (image/README). A negative errno:
 * not known. */
int template_is_current(const char *name, struct err *err) MUST_CHECK;
/* Its entry of template_list, or NULL. */
json_t *template_manifest(const char *name);
/* A template_progress_fn for the bar. */
void template_show(void *arg, unsigned percent, const char *text);

/* template_draft_publish with a bar; sandboxes based on the old template of that name keep it. */
int template_publish(struct template_draft *draft, const char *name, const json_t *facts,
	struct template *ret, struct problem *p) MUST_CHECK;
/* Removes templates that no name and no sandbox uses. */
int template_collect_unused(struct problem *p) MUST_CHECK;

/* Creates a template from the current disks of the sandbox, running or not. facts (borrowed, or
 * NULL) override the facts of its template. flat: one file per disk. */
struct template_wish {
	const char *name;
	const json_t *facts;
	bool flat;
};
int template_save_as(const char *ref, const struct template_wish *wish, struct template *ret,
	struct problem *p) MUST_CHECK;
/* The same with layers, for callers that need only these. */
int template_save(
	const char *ref, const char *name, const json_t *facts, struct problem *p) MUST_CHECK;
