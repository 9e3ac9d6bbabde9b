/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_clone - the options --clone, --branch and --carry of create and run.
 *
 * How      With --clone, the first PATH becomes the field `clone` of the request instead of a
 *          workspace.
 * Trust    The user's arguments.
 * See      create.h, src/sbx/clone/clone.h
 */
#pragma once

#include "create.h"

/* Takes the first PATH if it is to be cloned. */
int create_clone_parse(const struct opts *o, struct creation *c, const char *const **paths,
	size_t *n, struct problem *p) MUST_CHECK;
/* The directory that the agent works in: the clone, else the first workspace, or NULL. */
const json_t *create_clone_place(const struct creation *c);
/* A path whose last part has the branch too: each branch has its own default name. */
char *create_clone_host(const char *host, const char *branch);
/* The line about the clone of a sandbox. */
void create_clone_print(const json_t *s);
