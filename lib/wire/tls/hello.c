/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include "hello_internal.h"

#define RECORD_HANDSHAKE 22
#define MESSAGE_CLIENT_HELLO 1
#define MAX_SESSION_ID 32

enum step {
	STEP_MESSAGE,
	STEP_VERSION,
	STEP_SESSION,
	STEP_CIPHERS,
	STEP_COMPRESSION,
	STEP_EXTENSIONS,
	STEP_EXT_HEAD,
	STEP_EXT_DATA,
	STEP_END,
	N_STEPS,
};

void hello_init(struct hello_reader *r)
{
	memset(r, 0, sizeof(*r));
	r->step = STEP_MESSAGE;
	r->want = 4;
}

static void fail_hello(struct hello_reader *r, enum hello_why why)
{
	r->state = HELLO_BAD;
	r->why = why;
}

/* Takes n bytes off what is left of the message. */
static bool reserve_hello(struct hello_reader *r, size_t n)
{
	if (n > r->left) {
		fail_hello(r, HELLO_E_FIELD);
		return false;
	}
	r->left -= (uint32_t)n;
	return true;
}

/* Passes over n bytes, then collects a field of `want` bytes for the step. */
static void go_on(struct hello_reader *r, size_t n, enum step step, size_t want)
{
	if (!reserve_hello(r, n) || !reserve_hello(r, want))
		return;
	r->skip = (uint32_t)n;
	r->step = step;
	r->want = (uint16_t)want;
}

static void on_message(struct hello_reader *r, struct rd field)
{
	uint8_t type = rd_u8(&field);
	uint32_t n = (uint32_t)rd_u8(&field) << 16;

	n |= rd_be16(&field);
	if (type != MESSAGE_CLIENT_HELLO) {
		fail_hello(r, HELLO_E_MESSAGE);
		return;
	}
	if (n > HELLO_MAX_BYTES) {
		fail_hello(r, HELLO_E_TOO_LONG);
		return;
	}
	r->left = n;
	go_on(r, 0, STEP_VERSION, 2);
}

static void on_version(struct hello_reader *r, struct rd field)
{
	r->hello.legacy_version = rd_be16(&field);
	go_on(r, 32, STEP_SESSION, 1);
}

static void on_session(struct hello_reader *r, struct rd field)
{
	uint8_t n = rd_u8(&field);

	if (n > MAX_SESSION_ID)
		fail_hello(r, HELLO_E_FIELD);
	else
		go_on(r, n, STEP_CIPHERS, 2);
}

static void on_ciphers(struct hello_reader *r, struct rd field)
{
	uint16_t n = rd_be16(&field);

	if (n == 0 || n % 2 != 0)
		fail_hello(r, HELLO_E_FIELD);
	else
		go_on(r, n, STEP_COMPRESSION, 1);
}

/* Before TLS 1.3 a message may end here, without extensions. */
static void on_compression(struct hello_reader *r, struct rd field)
{
	uint8_t n = rd_u8(&field);

	if (n == 0)
		fail_hello(r, HELLO_E_FIELD);
	else if (n == r->left)
		go_on(r, n, STEP_END, 0);
	else
		go_on(r, n, STEP_EXTENSIONS, 2);
}

static void go_to_extension(struct hello_reader *r, size_t n)
{
	if (n == r->left)
		go_on(r, n, STEP_END, 0);
	else
		go_on(r, n, STEP_EXT_HEAD, 4);
}

static void on_extensions(struct hello_reader *r, struct rd field)
{
	if (rd_be16(&field) != r->left)
		fail_hello(r, HELLO_E_FIELD);
	else
		go_to_extension(r, 0);
}

static bool is_new(struct hello_reader *r, uint16_t type)
{
	for (size_t i = 0; i < r->n_seen; i++)
		if (r->seen[i] == type)
			return false;
	if (r->n_seen == HELLO_MAX_EXTENSIONS)
		return false;
	r->seen[r->n_seen++] = type;
	return true;
}

static void on_ext_head(struct hello_reader *r, struct rd field)
{
	uint16_t type = rd_be16(&field), n = rd_be16(&field);
	size_t wanted = MIN(hello_ext_wanted(type, n), sizeof(r->field));

	if (r->hello.psk) {
		fail_hello(r, HELLO_E_PSK);
		return;
	}
	if (!is_new(r, type)) {
		fail_hello(r, HELLO_E_DUPLICATE);
		return;
	}
	r->ext_type = type;
	r->ext_rest = (uint16_t)(n - wanted);
	go_on(r, 0, STEP_EXT_DATA, wanted);
}

static void on_ext_data(struct hello_reader *r, struct rd field)
{
	size_t n = field.n + r->ext_rest;
	enum hello_why why = hello_ext_parse(&r->hello, r->ext_type, n, slice_of(field.p, field.n));

	if (why != HELLO_E_NONE)
		fail_hello(r, why);
	else
		go_to_extension(r, r->ext_rest);
}

static void on_end(struct hello_reader *r, struct rd field)
{
	(void)field;
	r->state = HELLO_DONE;
}

static void (*const steps[N_STEPS])(struct hello_reader *r, struct rd field) = {
	[STEP_MESSAGE] = on_message,
	[STEP_VERSION] = on_version,
	[STEP_SESSION] = on_session,
	[STEP_CIPHERS] = on_ciphers,
	[STEP_COMPRESSION] = on_compression,
	[STEP_EXTENSIONS] = on_extensions,
	[STEP_EXT_HEAD] = on_ext_head,
	[STEP_EXT_DATA] = on_ext_data,
	[STEP_END] = on_end,
};

/* Each turn needs bytes of the piece, but for empty extensions, which came after four of them. */
static void eat_message(struct hello_reader *r, struct rd *piece)
{
	while (r->state == HELLO_NEED_MORE) {
		size_t n = MIN(r->skip, piece->n);
		struct slice s;

		(void)rd_bytes(piece, n);
		r->skip -= (uint32_t)n;
		if (r->skip > 0)
			return;
		s = rd_bytes(piece, MIN((size_t)(r->want - r->n_got), piece->n));
		if (s.n > 0)
			memcpy(&r->field[r->n_got], s.p, s.n);
		r->n_got += (uint16_t)s.n;
		if (r->n_got < r->want)
			return;
		r->n_got = 0;
		steps[r->step](r, rd_init(slice_of(r->field, r->want)));
	}
}

/* Bytes of a record's head are checked as they come: the first two show whether this is TLS. */
static void eat_record_head(struct hello_reader *r, uint8_t byte)
{
	static const uint8_t expected[] = {RECORD_HANDSHAKE, 3};
	bool first = r->n_bytes <= sizeof(r->head);

	r->head[r->n_head++] = byte;
	if (r->n_head <= sizeof(expected) && byte != expected[r->n_head - 1]) {
		fail_hello(r, HELLO_E_RECORD);
		if (first)
			r->state = HELLO_NOT_TLS;
		return;
	}
	if (r->n_head < sizeof(r->head))
		return;
	r->n_head = 0;
	r->record_left = (uint32_t)r->head[3] << 8 | r->head[4];
	if (r->record_left == 0 || r->record_left > HELLO_MAX_RECORD)
		fail_hello(r, HELLO_E_RECORD);
}

static void eat_record(struct hello_reader *r, struct slice bytes)
{
	struct rd piece = rd_init(bytes);

	r->record_left -= (uint32_t)bytes.n;
	eat_message(r, &piece);
	/* Nothing may follow in the record: keys change with the next message (RFC 8446, 5.1). */
	if (r->state == HELLO_DONE && r->record_left + piece.n > 0)
		fail_hello(r, HELLO_E_MESSAGE);
}

enum hello_state hello_feed(struct hello_reader *r, struct slice in)
{
	struct rd rd = rd_init(in);

	while (r->state == HELLO_NEED_MORE && rd.n > 0) {
		size_t n = r->record_left > 0 ? MIN(r->record_left, rd.n) : 1;
		struct slice bytes;

		n = MIN(n, HELLO_MAX_BYTES - r->n_bytes);
		if (n == 0) {
			fail_hello(r, HELLO_E_TOO_LONG);
			break;
		}
		r->n_bytes += (uint32_t)n;
		bytes = rd_bytes(&rd, n);
		if (r->record_left > 0)
			eat_record(r, bytes);
		else
			eat_record_head(r, bytes.p[0]);
	}
	return r->state;
}

const char *hello_why_text(enum hello_why why)
{
	static const char *const texts[HELLO_N_WHY] = {
		[HELLO_E_NONE] = "nothing is wrong",
		[HELLO_E_TOO_LONG] = "the ClientHello is too long",
		[HELLO_E_RECORD] = "a TLS record is invalid or of another type",
		[HELLO_E_MESSAGE] = "the first message is not a ClientHello alone",
		[HELLO_E_FIELD] = "a length in the ClientHello does not fit",
		[HELLO_E_DUPLICATE] = "an extension is duplicate, or there are too many",
		[HELLO_E_NAME] = "server_name is not exactly one host name",
		[HELLO_E_ALPN] = "the list of protocols (ALPN) is invalid or too long",
		[HELLO_E_VERSIONS] = "the list of supported versions is invalid or too long",
		[HELLO_E_ECH] = "encrypted_client_hello is not of type outer",
		[HELLO_E_PSK] = "pre_shared_key is not the last extension",
	};

	return why < HELLO_N_WHY ? texts[why] : "unknown";
}
