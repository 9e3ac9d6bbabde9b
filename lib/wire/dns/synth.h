/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth - the synthetic addresses of names in one sandbox, both ways.
 *
 * How      synth_assign gives a name its address, the same one while the name is in the table:
 *          number i is 198.18.0.0 + i (the benchmarking network, which is unused) and
 *          SYNTH_V6_PREFIX::i. One slot per number: unused, live (in a hash chain and the list of
 *          recent use) or resting (in the list of rest). When the table is full the least recently
 *          used name is removed, but never one that synth_hold marked; its address rests for
 *          SYNTH_REST_MS before another name gets it, longer than any client may cache our answer.
 *          Everything is O(1).
 * Trust    The guest chooses names and their order: the hash is keyed with the caller's random
 *          seed, which also chooses the first number, so that a new table does not repeat the old
 *          one.
 * Owns     The table, until the process exits; names are copied. Memory comes as it is used, at
 *          most SYNTH_MAX_BYTES of names and 32 bytes for each address ever used.
 * Limits   SYNTH_MAX_NAMES, SYNTH_MAX_BYTES, SYNTH_MAX_NAME. Above them: the oldest is removed, or
 *          -EBUSY.
 * Never    Parses a name: the caller makes it canonical first.
 * See      synth_test.c, dns_reply.h
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define SYNTH_MAX_NAME 253
#define SYNTH_MAX_NAMES 65536
#define SYNTH_MAX_BYTES (4 * 1024 * 1024)
#define SYNTH_REST_MS 120000
#define SYNTH_SEED 16
/* 198.18.0.0/24 and the last address stay out: they are the guest's own interface and gateway, and
 * the broadcast address. */
#define SYNTH_FIRST 256
#define SYNTH_N_ADDRS (131072 - 1 - SYNTH_FIRST)
/* A unique local prefix; the last eight bytes of an address are its number. */
#define SYNTH_V6_PREFIX                                        \
	{                                                      \
		0xfd, 0x5b, 0x78, 0x62, 0x19, 0xd3, 0x00, 0x01 \
	}

struct synth;

struct synth_addr {
	uint32_t id; /* for synth_hold; means the same name as long as that lives */
	uint8_t v4[4];
	uint8_t v6[16];
};

struct synth *synth_new(const uint8_t seed[SYNTH_SEED]);

/*
 * The address of a name, old or new. now_ms is any clock that does not go back. -EINVAL for an
 * empty or over-long name; -EBUSY when every name is held or no address has rested long enough.
 */
int synth_assign(
	struct synth *s, struct slice name, uint64_t now_ms, struct synth_addr *ret) MUST_CHECK;
/*
 * The name of an address of 4 or 16 bytes, recorded as a use; -ENOENT if there is none. The name is
 * valid until the next synth_assign, or as long as it is held.
 */
int synth_find_addr(
	struct synth *s, struct slice addr, uint32_t *ret_id, struct slice *ret_name) MUST_CHECK;
/* Marks a name as in use, once for each connection: it is not evicted. -ENOENT for a dead id. */
int synth_hold(struct synth *s, uint32_t id) MUST_CHECK;
void synth_release(struct synth *s, uint32_t id);
