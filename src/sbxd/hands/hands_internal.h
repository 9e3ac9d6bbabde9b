/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hands_internal - the requests of hands.c, for the spawner's side in hands_serve.c.
 */
#pragma once

#include "hands.h"
#include "lib/os/worker/spawner.h"

#define HANDS_MAX_SIGNALLED 2

enum hands_kind {
	HANDS_KEEPER = WORKER_OWN, /* id, u8 way; channel, log */
	HANDS_MAKER,		   /* template, u32, u64, u64, accel; log */
	HANDS_VAULT,		   /* nothing; listener, channel, log */
	HANDS_SIGNAL,		   /* u8 signal; pidfds */
	HANDS_SWEEP,		   /* nothing */
	HANDS_TO_KEEPER,	   /* id */
	HANDS_TO_VAULT,		   /* nothing */
	HANDS_KILL_REST,	   /* id */
	HANDS_MERGER,		   /* id, and for each disk u8 n and n times u16; log */
	HANDS_NOTIFY,		   /* nothing; channel, log */
};

/* spawner_rules.own of sbxd's spawner. */
int hands_serve(void *ctx, struct worker_msg *q, struct worker_msg *a, struct err *err) MUST_CHECK;
