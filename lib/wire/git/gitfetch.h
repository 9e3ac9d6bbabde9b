/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitfetch - what a judged push needs of the server's repository, by protocol version 2.
 *
 * How      gitfetch_request writes the body of `POST .../git-upload-pack` for a need of gitpush.h;
 *          the request has the header `git-protocol: version=2`. gitfetch_read takes the answer in
 *          pieces of any size: a pack, or the object of HEAD.
 * Trust    Parses untrusted input of a server. What the server writes for people is not shown.
 * Owns     Nothing on the heap; the pack is the caller's.
 * Limits   Those of the pack.
 * See      gitpush_test.c, git_lines_fuzz.c, gitprotocol-v2(5)
 */
#pragma once

#include "gitpush.h"

struct gitfetch {
	struct pktline_reader line;
	enum gitfetch_phase {
		GITFETCH_HEAD,	   /* lines of refs */
		GITFETCH_SECTIONS, /* shallow-info and others, up to packfile */
		GITFETCH_PACK,
		GITFETCH_DONE,
	} phase;
	bool has_head;
	struct git_oid head;
	struct gitpack *pack;
};

void gitfetch_request(const struct gitpush_need *need, pktline_out *out, void *arg);
/* `pack` is NULL for GITPUSH_HEAD. */
void gitfetch_init(struct gitfetch *f, enum gitpush_need_kind kind, struct gitpack *pack);
int gitfetch_read(struct gitfetch *f, struct slice in, struct err *err) MUST_CHECK;
/* After the last byte: -EBADMSG if the answer is incomplete. Does not index the pack. */
int gitfetch_end(const struct gitfetch *f) MUST_CHECK;
