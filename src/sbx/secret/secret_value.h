/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret_value - the bytes of a credential between the user and the pipe to the vault.
 *
 * How      Typed at the terminal without echo, read from stdin, or copied from a variable, into a
 *          separate mapping: locked if the limit allows it, not in core files, not in children,
 *          wiped at the end. The complete value is in a socket before the other end is sent: a
 *          process that is killed in between has passed on nothing.
 * Trust    The user's own value. Only its length or its mask is printed.
 * Owns     Its mapping, until secret_value_done.
 * Limits   SECRET_MAX bytes.
 * Never    In an argument, a variable of sbx, a log, a message of the API, or a stdio buffer.
 * See      secret_value_test.c, tests/cli/test_secret.py
 */
#pragma once

#include "lib/client/cli/ui.h"

#define SECRET_MAX 65536
#define SECRET_MASK 16

struct secret_value {
	char *p; /* NUL-terminated */
	size_t n;
};

int secret_value_init(struct secret_value *v, struct problem *p) MUST_CHECK;
void secret_value_done(struct secret_value *v);
#define AUTO_SECRET_VALUE CLEANUP(secret_value_done)

/* Only if ui_can_ask(). -ECANCELED if input ended without a line. */
int secret_value_ask(struct secret_value *v, const char *prompt, struct problem *p) MUST_CHECK;
/* Reads to end-of-file. */
int secret_value_read(struct secret_value *v, int fd, struct problem *p) MUST_CHECK;
int secret_value_append(struct secret_value *v, const char *text, struct problem *p) MUST_CHECK;
/* Removes one newline from its end, LF or CR LF; returns true if there was one. */
bool secret_value_chomp(struct secret_value *v);
/* Whether it can be a credential: not empty, no control characters, not a placeholder. */
int secret_value_check(const struct secret_value *v, struct problem *p) MUST_CHECK;
/* Whether a text is a placeholder credential. */
bool secret_value_is_placeholder(const char *text);
/* As the vault shows it: "sk-****abcd", "****" for a short one. */
void secret_value_mask(const char *text, char ret[SECRET_MASK]);
/* Returns an fd from which exactly this value can be read. */
int secret_value_pass(const struct secret_value *v, struct problem *p) MUST_CHECK;
