/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dockerfile - parses the FROM lines of a Dockerfile before a build.
 *
 * How      Only what is needed to find the base images: directives, ARG before the first FROM, FROM
 *          with its stage name; comments, continued lines and here-documents are skipped as in
 *          Docker. Docker parses everything else, inside the sandbox.
 * Trust    Part of a repository that may be untrusted. It decides which template is used and what
 *          is printed, never what a build may do.
 * Owns     struct dockerfile owns its text; dockerfile_done frees.
 * Limits   DOCKERFILE_MAX_*.
 * See      dockerfile_test.c, dockerfile_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/err.h"

#define DOCKERFILE_MAX_STAGES 64
#define DOCKERFILE_MAX_ARGS 64
#define DOCKERFILE_MAX_WORD 256

struct dockerfile_stage {
	char ref[DOCKERFILE_MAX_WORD], name[DOCKERFILE_MAX_WORD];
};

struct dockerfile {
	struct dockerfile_stage stages[DOCKERFILE_MAX_STAGES];
	size_t n;
	/* Text without a `# syntax=` line, which would fetch a builder from a registry. */
	char *text;
	bool had_syntax;
};

enum dockerfile_from {
	DOCKERFILE_OTHER,   /* an image of a registry, or scratch */
	DOCKERFILE_SANDBOX, /* docker/sandbox-templates:TAG */
	DOCKERFILE_TEMPLATE /* sbx/NAME */
};

/* args: NAME=VALUE of the user, NULL-terminated, or NULL. Returns -EINVAL if invalid. */
int dockerfile_parse(const char *text, const char *const *args, struct dockerfile *ret,
	struct err *err) MUST_CHECK;
void dockerfile_done(struct dockerfile *d);
/* The base of the last stage, through all stages. */
const char *dockerfile_base(const struct dockerfile *d);
/* Whether it is the name of an earlier stage. */
bool dockerfile_is_stage(const struct dockerfile *d, size_t stage);
/* Name gets the template of a reference: NAME, or the reference's TAG. */
enum dockerfile_from dockerfile_kind(const char *ref, char *name, size_t size);
