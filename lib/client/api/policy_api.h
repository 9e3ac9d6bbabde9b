/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_api - changes the policy through sbxd, and prints the result.
 *
 * How      One call each; notes about other rules, and about sandboxes that have not applied the
 *          change, go to stderr. create and run use the same calls for their own rules, and
 *          policy_require before they create a sandbox.
 * Trust    The user's arguments; texts in answers are printed through ui.h.
 * Owns     JSON answers belong to the caller.
 * Limits   POLICY_TIMEOUT_MS for a change.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include "api.h"

#define POLICY_TIMEOUT_MS 60000

extern const char *const policy_preset_names[]; /* NULL at the end */

struct policy_wish {
	const char *effect, *resources;
	const char *kind;    /* NULL: network */
	const char *options; /* of a rule about requests, as in the file; NULL: none */
	const char *sandbox; /* NULL: every one */
	const char *comment; /* NULL: none */
	const char *origin;  /* NULL: the user's own */
	uint64_t for_ms;     /* 0: for ever */
};

/* Whether these are resources of a network rule. */
int policy_check_resources(const char *list, struct problem *p) MUST_CHECK;
/* The policy that a rule belongs to: its preset, or what it came from. Both may be NULL. */
void policy_name(const char *group, const char *origin, char *buf, size_t size);
/* Converts each rule of an answer of sbxd, in place, to the form of `sbx policy ls --json`. */
void policy_answer_form(json_t *answer);
int policy_add(const struct policy_wish *w, json_t **ret, struct problem *p) MUST_CHECK;
/* What a new rule overrides, or what keeps it from having an effect. */
void policy_say_conflicts(const json_t *answer);
/* The hosts that are governed, or no longer, since the change. */
void policy_say_governed(const json_t *answer);
void policy_say_not_taken(const json_t *answer);
/* Sets the preset and prints it to `out`. lock: with deny-all only. */
int policy_set_preset(const char *preset, bool lock, FILE *out, struct problem *p) MUST_CHECK;
/* Prompts for a preset; NULL if none was chosen. Only when ui_can_ask(). */
const char *policy_ask_preset(void);

bool policy_is_there(void);
/* When there is no policy: prompts once on a terminal, else fails with the command to run. */
int policy_require(struct problem *p) MUST_CHECK;
/* A word for a shell, in quotes when it needs them; on the heap. */
char *policy_shell_word(const char *s);
