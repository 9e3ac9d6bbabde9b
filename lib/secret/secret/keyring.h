/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyring - the two messages between the vault and sbx-vault-keyring: one question, one answer.
 *
 * How      On the stream that is the keyring program's stdin and stdout: the vault writes one
 *          struct keyring_ask and shuts its side; the program writes one struct keyring_answer and
 *          ends. What is kept there is the key of the sealed file and its generation, never a
 *          credential.
 * Trust    The program runs a large library and D-Bus: its answer is bounded and checked.
 * Limits   KEYRING_MAX_VALUE bytes of a value, KEYRING_MAX bytes of a message.
 * See      keyring_test.c, proto/PROTOCOL.ipc
 */
#pragma once

#include "lib/base/slice.h"

#define KEYRING_MAX_NAME 64
#define KEYRING_MAX_VALUE 64
#define KEYRING_MAX_TEXT 256
#define KEYRING_MAX (KEYRING_MAX_VALUE + KEYRING_MAX_TEXT + 16)

enum keyring_op { KEYRING_GET = 1, KEYRING_PUT, KEYRING_N_OPS };

struct keyring_ask {
	enum keyring_op op;
	char name[KEYRING_MAX_NAME]; /* of the installation */
	struct slice value;	     /* PUT: 1 to KEYRING_MAX_VALUE bytes; GET: none */
};

enum keyring_status {
	KEYRING_OK,
	KEYRING_NOT_FOUND,
	KEYRING_LOCKED,
	KEYRING_NO_SERVICE, /* no service on the session bus, or no session bus */
	KEYRING_FAILED,
	KEYRING_N_STATUS,
};

struct keyring_answer {
	enum keyring_status status;
	char text[KEYRING_MAX_TEXT]; /* why not; printable ASCII */
	struct slice value;	     /* GET and OK only; points into the bytes that were read */
};

int keyring_put_ask(struct wr *wr, const struct keyring_ask *ask) MUST_CHECK;
int keyring_get_ask(struct slice bytes, struct keyring_ask *ret) MUST_CHECK;
int keyring_put_answer(struct wr *wr, const struct keyring_answer *answer) MUST_CHECK;
int keyring_get_answer(struct slice bytes, struct keyring_answer *ret) MUST_CHECK;
