/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_scratch - a scratch sandbox for one build, always removed at the end.
 *
 * How      The sandbox is created with `only`: it has no credential and reaches only the named
 *          hosts. This program then runs itself with exec, template save and rm. Output is one line
 *          of progress on a terminal, and plain lines otherwise; after a failure the last lines are
 *          shown.
 * Trust    Output of the sandbox comes from the guest: cleaned, limited, never acted on.
 * Owns     The sandbox, until scratch_done; after Ctrl-C too.
 * Limits   SCRATCH_TAIL lines are kept for a failure; SCRATCH_MAX_IMAGE bytes of an image.
 * See      template_file.c, follow.h
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/follow.h"
#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"

#define SCRATCH_TAIL 15
#define SCRATCH_MAX_IMAGE (12ull << 30)

struct scratch {
	char name[32]; /* empty: none */
	char tail[SCRATCH_TAIL][FOLLOW_MAX_LINE];
	size_t n_lines;
};

/* share: as a PATH of `sbx create`. The sandbox reaches the hosts of `allow` and the package mirror
 * of this host, both of which are shown; it has no credential. */
int scratch_start(struct scratch *s, const char *template, const char *share,
	const struct opt_list *allow, struct problem *p) MUST_CHECK;
int scratch_put(
	struct scratch *s, const char *path, const char *text, struct problem *p) MUST_CHECK;
/* At most max bytes of a file in it; owned by the caller. */
int scratch_get(
	struct scratch *s, const char *path, size_t max, char **ret, struct problem *p) MUST_CHECK;
/* As root, with its output shown. */
int scratch_run(struct scratch *s, const char *const *argv, struct problem *p) MUST_CHECK;
/* `docker save` of an image in it. */
int scratch_save_image(
	struct scratch *s, const char *image, int out_fd, struct problem *p) MUST_CHECK;
int scratch_save(
	struct scratch *s, const char *name, const json_t *facts, struct problem *p) MUST_CHECK;
void scratch_done(struct scratch *s);
