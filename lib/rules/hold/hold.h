/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold - requests of one sandbox that wait for a person, and what the person answered.
 *
 * How      A request is known by its digest: SHA-256 of its effects. hold_ask opens a hold for a
 *          digest or finds the one that exists, so equal requests share a hold and its answer. A
 *          hold is open for HOLD_OPEN_MS after the last request for it. hold_answer takes the
 *          digest that the person saw. An approval is valid for HOLD_USE_MS and for one request
 *          (hold_use), or for all equal requests and a time that may have no end. A no is kept for
 *          HOLD_USE_MS, so that an equal request is refused without another prompt. A new policy
 *          ends approvals and every no.
 *          For a HOLD_LINK, a URL for the user's browser, no request waits. The caller keeps the
 *          others. For HOLD_WAIT one waits at most HOLD_INLINE_MS, and hold_again is called when
 *          the hold has changed: it never opens a hold, so a request that lost the approval to an
 *          equal one does not prompt again. When all that wait have left, an open hold is
 *          withdrawn, and kept for HOLD_USE_MS or until its place is needed: its id is explained.
 * Trust    Input: texts that the guest chose. They are copied, never parsed. An effect list that
 *          is too long to be shown is refused: a person must see everything that he approves.
 * Owns     A heap block per hold with its texts. All other calls use no heap.
 * Limits   HOLD_MAX holds; max_open of them wait for an answer, and max_hour are opened in an hour.
 *          HOLD_MAX_EFFECTS and the others.
 * Never    Does I/O or reads a clock. Approves a digest that was not displayed.
 * See      hold_test.c, hold_model_test.c
 */
#pragma once

#include "lib/base/hash/sha256.h"

#define HOLD_MAX 64
#define HOLD_MAX_LINKS 3 /* of the open holds */
#define HOLD_ID 5	 /* four characters of Crockford's base32, and a NUL */
#define HOLD_MAX_EFFECTS 4096
#define HOLD_MAX_PREVIEW 8192
#define HOLD_MAX_RULE 512
#define HOLD_MAX_REASON 200
#define HOLD_INLINE_MS 55000
#define HOLD_OPEN_MS (15 * 60 * 1000)
#define HOLD_USE_MS HOLD_OPEN_MS
#define HOLD_HOUR_MS (60 * 60 * 1000)
#define HOLD_NO_END UINT64_MAX /* instead of a time */
#define HOLD_MOST_OPEN 32      /* limits of max_open and max_hour */
#define HOLD_MOST_HOUR 240
#define HOLD_DEFAULT_OPEN 5
#define HOLD_DEFAULT_HOUR 20

enum hold_kind { HOLD_REQUEST, HOLD_LINK, HOLD_N_KINDS };
enum hold_state { HOLD_FREE, HOLD_OPEN, HOLD_APPROVED, HOLD_REFUSED, HOLD_WITHDRAWN };

/* A request. The texts are NUL-terminated. */
struct hold_text {
	enum hold_kind kind;
	uint8_t digest[SHA256_BYTES];
	const char *effects; /* canonical, one a line; of a link: the URL */
	const char *rule;    /* the rule that asks */
	const char *preview; /* more lines for a person: any bytes; "": none */
};

struct hold {
	enum hold_state state;
	bool many;	  /* approved for all equal requests until until_ms */
	char id[HOLD_ID]; /* unique among the holds of the sandbox */
	uint64_t since_ms;
	uint64_t until_ms; /* then it is removed; HOLD_NO_END */
	struct hold_text text;
	char *block; /* the texts */
	char reason[HOLD_MAX_REASON + 1];
};

struct holds {
	struct hold list[HOLD_MAX];
	uint32_t max_open, max_hour;
	uint64_t opened_ms[HOLD_MOST_HOUR]; /* a ring: when holds were opened */
	size_t n_opened;		    /* ever */
	uint64_t seed;
};

enum hold_result {
	HOLD_PASS,    /* it is approved: hold_use, then send it */
	HOLD_WAIT,    /* it is open */
	HOLD_PENDING, /* it is open, and the request has waited long enough */
	HOLD_NO,      /* a person refused it: see reason */
	HOLD_SPENT,   /* hold_again: the hold was closed, or an equal request used the approval */
	HOLD_CROWDED, /* max_open or HOLD_MAX_LINKS are open, or HOLD_MAX exist */
	HOLD_OFTEN,   /* max_hour were opened in the last hour */
	HOLD_LONG,    /* its texts are too long to be shown */
};

/* seed: any number; it makes the ids. */
void hold_init(struct holds *t, uint64_t seed);
void hold_done(struct holds *t);
void hold_limits(struct holds *t, uint32_t max_open, uint32_t max_hour); /* at most their limits */

/* A request arrives. *ret: its hold, for PASS, WAIT and NO; *ret_new: it was opened. */
enum hold_result hold_ask(struct holds *t, const struct hold_text *what, uint64_t now_ms,
	struct hold **ret, bool *ret_new);
/* A request that waited since since_ms, after any change. *ret also for PENDING. */
enum hold_result hold_again(struct holds *t, const uint8_t digest[SHA256_BYTES], uint64_t since_ms,
	uint64_t now_ms, struct hold **ret);
void hold_use(struct hold *h);	 /* a request passes: an approval for one is removed */
void hold_close(struct hold *h); /* removes it */
/* Of the open hold with this digest; NULL: there is none. */
struct hold *hold_withdraw(struct holds *t, const uint8_t digest[SHA256_BYTES], uint64_t now_ms);
/* The hold with this id that is open, was answered or withdrawn; NULL: none. */
struct hold *hold_find(struct holds *t, const char *id, uint64_t now_ms);
/* What a person answers. */
struct hold_decision {
	bool yes;
	uint64_t for_ms; /* of a yes: for all equal requests so long, or HOLD_NO_END; 0: for one */
	const char *reason; /* of a no; NULL: none */
};
/* -ENOENT: none. -ESTALE: another digest. -EALREADY: it was answered. -ECANCELED: withdrawn. */
int hold_answer(struct holds *t, const char *id, const uint8_t digest[SHA256_BYTES],
	const struct hold_decision *what, uint64_t now_ms) MUST_CHECK;
void hold_on_policy(struct holds *t); /* only open holds stay */
/* Removes what has expired; true if something was removed. */
bool hold_expire(struct holds *t, uint64_t now_ms);
/* When the next one expires; UINT64_MAX: none. */
uint64_t hold_next_ms(const struct holds *t);
/* An id as a person types it: any case, with O for 0 and I or L for 1. */
int hold_id_parse(const char *text, char ret[HOLD_ID]) MUST_CHECK;
