/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape - whether a text contains something that is shaped like a credential.
 *
 * How      One list of prefixes that vendors use for their keys, and three forms: a PEM block,
 *          `Bearer` with a token, a URL with a password. lib/rules/agent/clean.h uses it for files
 *          of the user, service_judge for requests of a guest.
 * Trust    The text is a user's file or a guest's request. A guess in both directions.
 * Owns     Nothing.
 * Limits   Words under SHAPE_MIN bytes are not credentials.
 * See      shape_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define SHAPE_MIN 20

/* For files: also base64 of a JSON object that is not signed. */
bool shape_has_secret(struct slice text);
/* For requests, where such base64 is how APIs write cursors. The first secret from *text on, in
 * *ret; *text then is what follows it. */
bool shape_next_secret(struct slice *text, struct slice *ret);
