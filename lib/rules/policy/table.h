/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - the compiled form of rules: one block of bytes that processes share.
 *
 * How      sbxd compiles the rules for all sandboxes into one table, those of the managed policy
 *          into a second one, and the rules of each sandbox into another one. A table is a sealed
 *          memory file without pointers: a head with format, build and size, then sections at
 *          offsets. policy_open maps all parts read-only. It checks seals, size, head and sections
 *          at once, and a decision checks each reference that it follows, so opening costs the same
 *          for every number of rules. A reference that leads out of the table denies the operation.
 * Trust    A keeper takes tables from sbxd, sbx-egress from a keeper that may be compromised: no
 *          content of a table leads a reader out of it. Rules of other sandboxes are in neither
 *          part.
 * Owns     The file is the caller's; a struct policy maps it and does not need it afterwards.
 * Limits   TABLE_MAX_BYTES, TABLE_MAX_FAULT.
 * Never    Allows anything if a part is missing, empty, truncated, not sealed or of another format
 *          or build.
 * See      proto/PROTOCOL.policy, policy_test.c, table_test.c, table_fuzz.c
 */
#pragma once

#include "policy.h"

#define TABLE_MAX_BYTES (1u << 30)
#define TABLE_MAX_FAULT 400

enum table_state {
	TABLE_HAS_RULES,
	TABLE_IS_UNSET /* no policy, or no managed one */,
	TABLE_IS_FAULTY,
	TABLE_N_STATES
};

/* What a table is to be made of. */
struct table_wish {
	enum policy_part part;
	const struct rules *rules;
	const uint32_t *pick; /* the rules' indexes */
	size_t n;
	bool only;	   /* POLICY_OWN: allow rules of POLICY_ALL do not count */
	bool unset;	   /* POLICY_ALL, POLICY_MANAGED: there is no such policy */
	const char *fault; /* why there are no rules; NULL: there are */
};

/* A sealed file, opened for reading only, or -errno. Rules that cannot be compiled become a table
 * with a fault, which denies everything. */
int table_make(const struct table_wish *wish) MUST_CHECK;
/* The same on the heap; for tests and for a process that keeps its table. */
void *table_build(const struct table_wish *wish, size_t *ret_n);
/* Picks the rules of a part: those for all sandboxes, or the ones for this sandbox. On the heap. */
uint32_t *table_pick(const struct rules *rules, const char *sandbox, size_t *ret_n);

/* The policy of all files; -1 is a missing one. Never NULL; see policy_fault. */
struct policy *policy_open(const int files[POLICY_N_PARTS]);
/* Whether only allow rules of this sandbox count: see table_wish.only. */
bool policy_is_closed(const struct policy *policy);
/* As policy_open, from memory that was made by table_build; takes it over. NULL: no such part,
 * which is a fault only for POLICY_ALL. */
struct policy *policy_from(void *const bytes[POLICY_N_PARTS], const size_t n[POLICY_N_PARTS]);
/* For tests and commands: the rules become the managed policy of `p`. fault: why there are none. */
void policy_limit(struct policy *p, const struct rules *rules, const char *fault);

/* The tables as a worker receives them: all parts in their order with the same id; the last one
 * replaces the policy. Until then the previous one applies, at first none, which denies
 * everything. */
struct policy_inbox {
	int file[POLICY_OWN]; /* until the last part arrives; the first -1 is the next one */
	uint32_t id;
};

#define POLICY_INBOX_EMPTY ((struct policy_inbox){.file = {-1, -1}})

/* Takes fd. 1: *policy was replaced. 0: more parts are to come. -EBADMSG: not the next part. */
int policy_inbox_take(struct policy_inbox *in, uint8_t part, uint32_t id, int fd,
	struct policy **policy) MUST_CHECK;
