/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitobject - the content of git's commits, trees and tags.
 *
 * How      gitcommit_parse and gittag_parse read the head lines, gittree_next walks the entries of
 *          a tree. They accept what git writes and git fsck accepts: names in their order, each
 *          once, no "." and "..", no '/', known modes.
 * Trust    Parses untrusted input: a guest's objects. What git could read in another way is
 *          malformed. No I/O, no heap.
 * Owns     Nothing: slices point into the content.
 * See      gitpack_test.c, gitpack_fuzz.c
 */
#pragma once

#include "gitref.h"

#define GITCOMMIT_MAX_PARENTS 64

struct gitcommit {
	struct git_oid tree;
	unsigned n_parents;
	struct git_oid parent[GITCOMMIT_MAX_PARENTS];
	struct slice author;  /* name and address, without the time */
	struct slice subject; /* the first line of the message */
};

#define GITMODE_TREE 0040000
#define GITMODE_FILE 0100644
#define GITMODE_GROUP 0100664 /* of old versions of git */
#define GITMODE_PROGRAM 0100755
#define GITMODE_LINK 0120000
#define GITMODE_COMMIT 0160000

struct gittree {
	struct slice rest;
	/* the entry */
	uint32_t mode;
	struct slice name;
	struct git_oid oid;
};

int gitcommit_parse(struct slice content, struct gitcommit *ret) MUST_CHECK;
/* The object that a tag is for; it may be a tag too. */
int gittag_parse(struct slice content, struct git_oid *ret) MUST_CHECK;

void gittree_init(struct gittree *t, struct slice content);
/* 1 with an entry, 0 at the end, -EBADMSG. */
int gittree_next(struct gittree *t) MUST_CHECK;
/* The order of two entries in a tree: a directory has its name with a '/'. */
int gittree_compare(const struct gittree *a, const struct gittree *b);
