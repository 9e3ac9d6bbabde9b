/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes_internal - the parts of notes.c.
 */
#pragma once

#include "notes.h"

void notes_refine(struct plan_step *s, enum plan_class class);

void notes_find_clashes(const struct area *a, struct plan *p);
void notes_find_secrets(const struct bundle *b, struct plan *p);
