/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean_internal - what the parts of clean.h share.
 *
 * How      clean_toml is the part for TOML, line by line; see clean_toml.c.
 * Trust    As clean.h.
 * See      clean.h
 */
#pragma once

#include "clean.h"

struct clean {
	const char *const *drop;
	size_t n_drop;
	clean_told_fn *told;
	void *arg;
};

/* Whether the agent's file drops a member of that name. */
bool clean_is_dropped(const struct clean *c, const char *key);
/* A copy on the heap without what must stay. */
int clean_toml(const struct clean *c, struct slice text, char **ret, struct err *err) MUST_CHECK;
