/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential - a value of the vault, and one request to a token endpoint.
 *
 * How      value.c gets and wipes values, token.c and token_answer.c handle tokens.
 * Trust    Internal. Values and tokens are in memory of lib/secret/secret/secret.h.
 */
#pragma once

#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/vault_frame.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/oauth/oauth.h"
#include "lib/secret/secret/secret.h"
#include "lib/secret/service/service.h"

enum value_state { VALUE_NONE, VALUE_ASKED, VALUE_READING, VALUE_HERE };

struct value {
	enum value_state state;
	uint32_t id, gen;
	int fd;
	uint64_t until_ms; /* UINT64_MAX: no expiry */
	struct origin_need need;
	bool need_due;			       /* the keeper did not read */
	bool is_stale;			       /* replaced since it was requested */
	struct secret bytes;		       /* a whole vault_frame */
	struct secret text[SERVICE_MAX_SLOTS]; /* as in a slot's header; built on first use */
	struct vault_frame frame;	       /* its value points into bytes */
	struct loop_timer timer;
};

/* A token being sent to the vault. */
struct token_store {
	uint32_t id; /* of TOKENS; 0: none */
	struct origin_tokens what;
	int fd;	     /* its frame, while the keeper does not read */
	bool is_due; /* TOKENS must still be sent */
};

/* One request to a token endpoint and its answer, each held until it is complete. */
struct token {
	struct oauth_request req; /* points into body */
	uint8_t *body;
	size_t n_body;
	struct secret filled; /* the body with the refresh token */
	size_t n_pushed;
	bool is_pushed;
	uint8_t *head; /* the answer's: payload of a frame */
	size_t n_head;
	struct secret answer;
	struct secret clean; /* the answer for edge */
	uint32_t expires_s;
	uint32_t n_removed;
	bool has_answer; /* for edge, and for exchanges that wait for this refresh */
	struct token_store store[2];
};

/* The answer to the last refresh; it contains no token. */
struct token_memory {
	uint8_t *head, *body;
	size_t n_head, n_body;
	uint64_t until_ms;
};
