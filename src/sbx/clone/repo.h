/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repo - the host repository: its directories and its object format.
 *
 * How      repo_open asks git (rev-parse, count-objects) once; the answers are absolute paths.
 *          Linked work trees have a git directory of their own and the objects of the first one.
 * Trust    The user's repository.
 * Owns     struct repo owns its strings; repo_done frees them.
 * Limits   REPO_MAX_OBJECTS object directories.
 * See      git.h
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "lib/client/cli/ui.h"

#define REPO_MAX_OBJECTS 16

struct repo {
	char *top;     /* of the work tree; NULL: none */
	char *git_dir; /* of this work tree */
	char *index, *shallow;
	char *format;			 /* sha1, sha256 */
	char *objects[REPO_MAX_OBJECTS]; /* the first is its own, then alternates */
	size_t n_objects;
};

void repo_done(struct repo *r);
#define AUTO_REPO CLEANUP(repo_done)

/* `dir`: any directory of the work tree; NULL: git_dir is given. */
int repo_open(const char *dir, const char *git_dir, struct repo *ret, struct problem *p) MUST_CHECK;
/* The length of an object name in hex. */
size_t repo_hex(const struct repo *r);
