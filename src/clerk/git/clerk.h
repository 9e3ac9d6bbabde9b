/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clerk - one push: bytes in, what it does out.
 *
 * How      clerk_body takes the body of a push; after clerk_end the push is judged. What is needed
 *          of the server is requested by the sink, one request at a time, and answered with
 *          clerk_answer and clerk_answer_end. In the end the sink gets the effects and the preview,
 *          or the sentence that makes the push unknown.
 * Trust    Parses untrusted input of the guest and of the server. Holds no secret.
 * Owns     Commands, packs, and the list of names that run on a host.
 * Limits   struct clerk_config; those of lib/wire/git.
 * See      README
 */
#pragma once

#include "lib/rules/airlock/autorun.h"
#include "lib/rules/clerk/clerk_chan.h"
#include "lib/wire/git/gitfetch.h"

struct clerk_config {
	bool paths;	    /* an effect for each changed file */
	bool files;	    /* changed files in the preview, if they can be known */
	uint32_t max_bytes; /* of a pack */
};

struct clerk;

/* Where the results go. The bytes are valid during the call. */
struct clerk_sink {
	void (*request)(void *arg, struct slice body); /* of POST .../git-upload-pack */
	void (*effect)(void *arg, const struct clerk_effect *effect);
	void (*preview)(void *arg, struct slice text);
	void (*unknown)(void *arg, const char *why);
	void (*judged)(void *arg); /* after effects and preview, or unknown */
	void *arg;
};

struct clerk *clerk_new(const struct clerk_config *config, const struct clerk_sink *sink);
void clerk_free(struct clerk **c);
/* Text of data/airlock/autorun.list, for the marks of a preview. */
int clerk_set_list(struct clerk *c, struct slice text, struct err *err) MUST_CHECK;

void clerk_body(struct clerk *c, struct slice bytes);
void clerk_end(struct clerk *c);
void clerk_answer(struct clerk *c, struct slice bytes);
/* Without `complete` the server gave no whole answer. */
void clerk_answer_end(struct clerk *c, bool complete);
/* After the end of the body. The body: its lines, and its pack. */
struct slice clerk_lines(const struct clerk *c);
struct slice clerk_pack(const struct clerk *c);
/* Of the refs with their old and new objects. */
void clerk_hash(const struct clerk *c, uint8_t ret[SHA256_BYTES]);
/* Git's own answer to a push that is refused. -ENOTSUP: the client asked for none. */
int clerk_refuse(const struct clerk *c, const char *text, const char *why, pktline_out *out,
	void *arg) MUST_CHECK;
