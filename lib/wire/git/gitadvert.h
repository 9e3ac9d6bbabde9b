/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitadvert - rewrites the answer of a server to `info/refs?service=git-receive-pack`.
 *
 * How      gitadvert_read takes the answer in pieces of any size and writes the answer for the
 *          guest. Refs pass unchanged. Of the capabilities only those pass that a push can be read
 *          with, and `no-thin` is added: a client then sends a pack that is complete in itself. A
 *          repository with SHA-256 names is replaced by an error line with a sentence.
 * Trust    Parses untrusted input of a server. The rewriting is for cooperative clients: what a
 *          client sends in spite of it is refused by gitcommands and gitpack.
 * Owns     Nothing on the heap.
 * Limits   One line of pktline.h at a time.
 * See      git_lines_test.c, git_lines_fuzz.c, gitcommands.h
 */
#pragma once

#include "gitref.h"
#include "lib/base/err.h"
#include "pktline.h"

struct gitadvert {
	struct pktline_reader line;
	enum gitadvert_phase {
		GITADVERT_SERVICE, /* "# service=git-receive-pack" */
		GITADVERT_FLUSH,   /* the flush after it */
		GITADVERT_FIRST,   /* the line with the capabilities, maybe after "version 1" */
		GITADVERT_REFS,
		GITADVERT_DONE,
		GITADVERT_REFUSED, /* an error was written; what follows is ignored */
	} phase;
	bool has_version;
};

/* Whether a push with this capability can be read, so that the guest may be offered it. */
bool gitadvert_passes(struct slice capability);

void gitadvert_init(struct gitadvert *a);
/* -EBADMSG with a sentence if the answer is not an advertisement of receive-pack. */
int gitadvert_read(struct gitadvert *a, struct slice in, pktline_out *out, void *arg,
	struct err *err) MUST_CHECK;
/* After the last byte: -EBADMSG if the answer is incomplete. */
int gitadvert_end(const struct gitadvert *a) MUST_CHECK;
