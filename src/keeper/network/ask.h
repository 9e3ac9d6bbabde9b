/*
 * ask - the keeper's own small questions to the guest, and which of them are under way.
 *
 * How      See ask.c.
 * Trust    Answers are the guest's: bounded by the buffer.
 * See      proto/PROTOCOL.guest
 */
#pragma once

#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"

/* A question to the guest: the body goes out on a socket pair that edge bridges to a stream. */
enum ask_kind {
	ASK_NONE,
	ASK_SETUP,
	ASK_STATS,
	ASK_POWER,
	ASK_TRUST,
	ASK_FREEZE,
	ASK_THAW,
	ASK_PARK_IMAGE,
	ASK_PARK,
	ASK_WAKE,
	ASK_IDLE,
	ASK_FORGET,
	ASK_DENIED,
};

struct ask {
	enum ask_kind kind;
	uint32_t gen;
	int fd;
	uint32_t stream;
	size_t n;
	uint8_t body[GUEST_MAX_TEXT + 64];
	int link; /* which connection of sbxd wants to know, -1: the keeper itself */
	uint32_t link_gen, link_msg;
	struct loop_timer timer;
};
