/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitcommands - what the client of a push wants: refs with their old and new object.
 *
 * How      gitcommands_read takes the body of `POST .../git-receive-pack` in pieces of any size, up
 *          to the flush after the list; what it leaves in the input is the pack. A flush alone is
 *          git's probe, with which it finds out whether it must authenticate. gitreport_refuse
 *          writes git's own answer to a push that is refused, which `git push` prints.
 * Trust    Parses untrusted input: guest root writes it. What is not read completely is refused
 *          with a sentence: push certificates, push options, shallow repositories, SHA-256, any
 *          capability that was not offered.
 * Owns     The names, freed by gitcommands_done.
 * Limits   GITCOMMANDS_MAX commands, GITREF_MAX bytes a name.
 * See      git_lines_test.c, git_lines_fuzz.c, gitadvert.h
 */
#pragma once

#include "gitref.h"
#include "lib/base/err.h"
#include "pktline.h"

#define GITCOMMANDS_MAX 1000

struct gitcommand {
	struct git_oid old, new;
	char *name; /* of the ref, as gitref_is_valid has it */
};

enum gitcommands_state {
	GITCOMMANDS_MORE,
	GITCOMMANDS_PROBE, /* a flush alone */
	GITCOMMANDS_DONE,
};

struct gitcommands {
	struct pktline_reader line;
	unsigned n;
	bool done, has_report, has_band;
	struct gitcommand list[GITCOMMANDS_MAX];
};

void gitcommands_init(struct gitcommands *c);
void gitcommands_done(struct gitcommands *c);
/* Takes bytes from the front of *in. An enum gitcommands_state, or -EBADMSG or -ENOTSUP. */
int gitcommands_read(struct gitcommands *c, struct slice *in, struct err *err) MUST_CHECK;

static inline bool gitcommand_is_create(const struct gitcommand *c)
{
	return gitoid_is_zero(&c->old);
}

static inline bool gitcommand_is_delete(const struct gitcommand *c)
{
	return gitoid_is_zero(&c->new);
}

/*
 * Refuses all commands: a push cannot be split. `text` is for the person, in lines; why[i] is one
 * line for command i. -ENOTSUP if the client asked for no report: then only the HTTP status can
 * say it.
 */
int gitreport_refuse(const struct gitcommands *c, const char *text, const char *const *why,
	pktline_out *out, void *arg) MUST_CHECK;
