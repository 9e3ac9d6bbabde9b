/* SPDX-License-Identifier: Apache-2.0 */
/*
 * issue - the report of `sbx diagnose --issue`, without names of this machine and its user.
 *
 * How      issue_begin prints versions and the head of a table in Markdown, issue_row one check.
 *          Details and commands of a check are left out: they have paths and names of sandboxes.
 *          In messages, issue_clean replaces the home directory, the user and the host.
 * Trust    Texts of the host, printed through ui.h.
 * Never    Sends anything.
 * See      cmd_diagnose.c, issue_test.c
 */
#pragma once

struct issue_names {
	const char *home, *user, *host;
};

/* The text with ~, USER and HOST, on the heap. A name is replaced only as a whole word. */
char *issue_clean(const char *text, const struct issue_names *names);

/* *ret has the names of this machine, for issue_clean. */
void issue_begin(struct issue_names *ret);
/* message: cleaned, or "". */
void issue_row(const char *name, const char *status, char *message);
