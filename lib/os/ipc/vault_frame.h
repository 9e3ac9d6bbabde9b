/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_frame - the one value that the vault writes to a stream: what RELEASE sends to egress.
 *
 * How      One frame and then the end of the stream: u32 VAULT_FRAME_MAGIC, u64 serial, name,
 *          header, format, user (strings of u16 length), u32 n, n bytes of the value. The writer
 *          creates the head and sends the value after it from its own memory. The reader reads to
 *          the end and splits the frame in place.
 * Trust    egress trusts the vault, and checks the frame anyway. Its reader handles a secret.
 * Owns     Nothing; the value of a split frame points into the caller's bytes.
 * Limits   VAULT_FRAME_MAX bytes. A truncated frame, or one with bytes after its end, is rejected.
 * See      vault_chan.h, vault_frame_test.c
 */
#pragma once

#include "vault_chan.h"

#define VAULT_FRAME_MAGIC 0x58425356u /* "VSBX" */
#define VAULT_FRAME_MAX_HEAD 1024
#define VAULT_FRAME_MAX (VAULT_FRAME_MAX_HEAD + VAULT_MAX_VALUE)
#define VAULT_MAX_USER 256

struct vault_frame {
	uint64_t serial;
	char name[VAULT_MAX_NAME];
	char header[VAULT_MAX_HEADER];
	char format[VAULT_MAX_FORMAT];
	char user[VAULT_MAX_USER]; /* of a docker-credential program; "": none */
	struct slice value;
};

/* Everything but the bytes of the value; its length is in it. */
int vault_frame_head(const struct vault_frame *frame, struct wr *wr) MUST_CHECK;
/* 0 or -EBADMSG. */
int vault_frame_split(struct slice bytes, struct vault_frame *ret) MUST_CHECK;
