/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_internal - the parts of a view, for the commands of this directory.
 *
 * See      stage_view.h
 */
#pragma once

#include "apply.h"
#include "area.h"
#include "stage_view.h"

struct stage_parts {
	struct area area;
	struct bundle bundle;
	struct plan plan;
	void (*tell)(const char *path, const char *why);
};

/* An apply with the number of its directory; the caller frees dir and tag. */
struct apply view_make_apply(struct stage_parts *s, unsigned number);
void view_free_apply(struct apply *a);
