/*
 * template - the disk that sandboxes start from: is it there, and how it is made.
 *
 * How      A template is the folder templates/NAME of the data folder, with a manifest.json that is
 *          written last. It is built by the helper template-build, whose lines on fd 3 ("PP text")
 *          drive the bar.
 * Trust    The user's own folders; the helper's lines are cleaned before they are shown.
 * Limits   TEMPLATE_MAX_LINE bytes a line; the helper has its own time limit.
 * See      image/README
 */
#pragma once

#include <jansson.h>
#include "ui.h"

#define TEMPLATE_MAX_LINE 512

bool template_is_there(const char *name);
/* Runs the helper and shows its progress. extra is NULL-terminated further arguments, or NULL. */
int template_build(const char *name, const char *const *extra, struct problem *p) MUST_CHECK;
/* When it is missing: asks on a terminal and builds; without a terminal fails with the command. */
int template_require(const char *name, struct problem *p) MUST_CHECK;
/* Removes a template's folder with the files in it. */
int template_remove_dir(const char *dir) MUST_CHECK;
/* The manifest, or NULL. */
json_t *template_manifest(const char *name);
/* The names there are, sorted, as a JSON array; the caller's. */
json_t *template_names(void);
