/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes - what a reviewer should know about the steps of a plan, and the classes that follow.
 *
 * How      New dependencies, scripts and deceptive characters come from the contents
 *          (lib/rules/airlock/change.h), CI and container files from the kinds of autorun.list.
 *          Names that differ in case only clash with each other or with a name of the host. The
 *          vault searches the streams for its credentials, and then each file if it found one.
 * Trust    Contents and names are a guest's; notes are cleaned for a terminal. The vault returns
 *          names of credentials, never a value.
 * Owns     Nothing: a note belongs to its step.
 * Limits   NOTES_MAX_SEARCHED files are searched one by one, NOTES_MAX_CLASHES names compared with
 *          the deletions of the plan.
 * See      plan.h, tests/cli/test_staged.py
 */
#pragma once

#include "src/sbx/stage/area.h"
#include "lib/rules/airlock/autorun.h"

#define NOTES_MAX_SEARCHED 4096
#define NOTES_MAX_CLASHES 64

/* "KIND: TEXT", after the notes that the step has. */
void notes_add(struct plan_step *s, const char *kind, const char *text);
/* Fills plan_step.notes and refines plan_step.class. A search of the vault that fails is a
 * warning. */
void notes_find(const struct area *a, const struct bundle *b, const struct autorun_list *list,
	struct plan *p);
