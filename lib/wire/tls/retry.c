/* SPDX-License-Identifier: Apache-2.0 */
#include "retry.h"

#define MESSAGE_SERVER_HELLO 2
#define RANDOM_AT 6
#define RANDOM_BYTES 32
#define MAX_ENCRYPTED (HELLO_MAX_RECORD + 256)

enum record_type {
	RECORD_CHANGE_CIPHER_SPEC = 20,
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_DATA = 23,
};

/* SHA-256 of "HelloRetryRequest": RFC 8446, 4.1.3. */
static const uint8_t retry_random[RANDOM_BYTES] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, /* */
	0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, /* */
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, /* */
	0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c, /* */
};

void retry_init(struct retry *r)
{
	memset(r, 0, sizeof(*r));
	hello_init(&r->second);
}

/* One byte of a record's head. False when this is not a TLS record. */
static bool eat_head(struct retry_record *rec, uint8_t byte)
{
	rec->head[rec->n_head++] = byte;
	if (rec->n_head == 1)
		return byte >= RECORD_CHANGE_CIPHER_SPEC && byte <= RECORD_DATA;
	if (rec->n_head == 2)
		return byte == 3;
	if (rec->n_head == sizeof(rec->head)) {
		rec->n_head = 0;
		rec->left = (uint32_t)rec->head[3] << 8 | rec->head[4];
	}
	return true;
}

/* ---- the server ---- */

static void eat_message(struct retry *r, struct slice bytes)
{
	size_t n = MIN(bytes.n, sizeof(r->message) - r->n_message);

	if (n > 0)
		memcpy(r->message + r->n_message, bytes.p, n);
	r->n_message += (uint8_t)n;
	if (r->n_message > 0 && r->message[0] != MESSAGE_SERVER_HELLO)
		r->answer = RETRY_NONE;
	else if (r->n_message == sizeof(r->message))
		r->answer = memcmp(r->message + RANDOM_AT, retry_random, RANDOM_BYTES) == 0
				    ? RETRY_ASKED
				    : RETRY_NONE;
}

enum retry_answer retry_feed_server(struct retry *r, struct slice in)
{
	struct retry_record *rec = &r->server;
	struct rd rd = rd_init(in);

	while (r->answer == RETRY_UNKNOWN && rd.n > 0) {
		struct slice s = rd_bytes(&rd, rec->left ? MIN(rec->left, rd.n) : 1);

		if (rec->left == 0) {
			/* Encrypted data before a ServerHello is not TLS either. */
			if (!eat_head(rec, s.p[0]) || rec->head[0] == RECORD_DATA)
				r->answer = RETRY_NONE;
			continue;
		}
		rec->left -= (uint32_t)s.n;
		if (rec->head[0] == RECORD_HANDSHAKE)
			eat_message(r, s);
	}
	return r->answer;
}

/* ---- the client ---- */

static bool is_length_right(const struct retry_record *rec)
{
	switch (rec->head[0]) {
	case RECORD_CHANGE_CIPHER_SPEC:
		return rec->left == 1;
	case RECORD_ALERT:
		return rec->left == 2;
	default:
		return rec->left <= MAX_ENCRYPTED;
	}
}

static void refuse_retry(struct retry *r)
{
	r->second.state = HELLO_BAD;
	r->second.why = HELLO_E_RECORD;
}

static void eat_other_head(struct retry *r, uint8_t byte)
{
	struct retry_record *rec = &r->client;

	if (!eat_head(rec, byte)) {
		refuse_retry(r);
		return;
	}
	if (rec->n_head > 0)
		return;
	if (is_length_right(rec))
		r->n_pass += sizeof(rec->head);
	else
		refuse_retry(r);
}

enum hello_state retry_feed_client(struct retry *r, struct slice in)
{
	struct retry_record *rec = &r->client;
	struct rd rd = rd_init(in);

	while (r->second.state == HELLO_NEED_MORE && rd.n > 0) {
		bool begins = rec->n_head == 0 && rec->left == 0 && rd.p[0] == RECORD_HANDSHAKE;
		struct slice s;

		if (begins || r->second.n_bytes > 0)
			return hello_feed(&r->second, slice_of(rd.p, rd.n));
		s = rd_bytes(&rd, rec->left ? MIN(rec->left, rd.n) : 1);
		if (rec->left > 0) {
			rec->left -= (uint32_t)s.n;
			r->n_pass += s.n;
		} else {
			eat_other_head(r, s.p[0]);
		}
	}
	return r->second.state;
}
