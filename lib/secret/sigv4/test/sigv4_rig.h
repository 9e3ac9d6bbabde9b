/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4_rig - tests only: a request out of lines of text, signed again.
 *
 * How      Lines "word rest": now, cred, sentinel, method, host, port, path, query, header NAME
 *          VALUE, length, chunked, body HEX. sigv4_rig_run does what origin does with it.
 * Trust    Test programs and the fuzz target.
 * Owns     Its arena and buffers, until sigv4_rig_done.
 * Limits   SIGV4_RIG_BODY.
 */
#pragma once

#include "lib/secret/sigv4/sigv4_chunks.h"

#define SIGV4_RIG_BODY (1U << 18)

struct sigv4_rig {
	struct arena arena;
	struct http_req req;
	struct sigv4_check check;
	struct slice cred;
	uint8_t *body; /* as the guest sent it */
	size_t n_body;
	uint8_t *sent; /* as it goes out */
	size_t n_sent;
	size_t step; /* bytes given at once to sigv4_chunks; 0: all */
	struct sigv4 s;
};

void sigv4_rig_init(struct sigv4_rig *rig);
void sigv4_rig_done(struct sigv4_rig *rig);
/* False for a line that is none. The line must live as long as the rig. */
bool sigv4_rig_line(struct sigv4_rig *rig, struct slice line);
/* Reads and signs; the sentence is in *err. -EINVAL: the request is not canonical, or the value
 * no key. */
int sigv4_rig_run(struct sigv4_rig *rig, struct err *err) MUST_CHECK;
