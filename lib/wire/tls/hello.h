/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello - the ClientHello at the start of a TLS connection: bytes in, names and versions out.
 *
 * How      hello_feed reads the connection's first bytes in pieces of any size: records, the
 *          handshake message inside them however it is cut, its extensions. It keeps only what it
 *          reports, about a kilobyte; the caller keeps the bytes to pass them on. After HELLO_DONE
 *          the struct hello is complete; every other result is final too.
 * Trust    Parses untrusted input. Runs in edge. Holds no secret. What it reports is what the
 *          client claims: the name is raw (case, a dot at the end, NUL) and must be made canonical
 *          first.
 * Owns     Nothing on the heap.
 * Limits   HELLO_MAX_*. Above a limit: HELLO_BAD, and hello_why names it.
 * Never    Answers, decrypts, or accepts a second name or a duplicate extension.
 * ECH      An encrypted_client_hello of type outer hides the real name. Clients without a key send
 *          random bytes in its place (GREASE), which cannot be distinguished from it. So
 *          HELLO_ECH_OUTER means that the name is not proven, and a connection whose TLS is not
 *          intercepted must be denied (hello_hides_name). Our DNS returns no keys.
 * See      hello_test.c, hello_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define HELLO_MAX_BYTES 65536 /* of the connection, record heads included */
#define HELLO_MAX_RECORD 16384
#define HELLO_MAX_NAME 255
#define HELLO_MAX_ALPN 256
#define HELLO_MAX_VERSIONS 32
#define HELLO_MAX_EXTENSIONS 64

enum hello_state {
	HELLO_NEED_MORE,
	HELLO_DONE,
	HELLO_NOT_TLS, /* the first bytes are not a handshake record */
	HELLO_BAD,     /* TLS, but not a ClientHello that we accept */
};

enum hello_why {
	HELLO_E_NONE,
	HELLO_E_TOO_LONG,
	HELLO_E_RECORD,	   /* a record head is wrong, or another kind of record came in between */
	HELLO_E_MESSAGE,   /* another handshake message, or bytes behind this one in its record */
	HELLO_E_FIELD,	   /* a length inside does not fit */
	HELLO_E_DUPLICATE, /* the same extension twice, or too many of them */
	HELLO_E_NAME, /* server_name is not exactly one host name of 1 to HELLO_MAX_NAME bytes */
	HELLO_E_ALPN,
	HELLO_E_VERSIONS,
	HELLO_E_ECH, /* type inner, or empty: never seen on a wire */
	HELLO_E_PSK, /* pre_shared_key is not the last extension */
	HELLO_N_WHY,
};

enum hello_ech {
	HELLO_ECH_NONE,
	HELLO_ECH_OUTER, /* or GREASE, or one of the drafts before it */
};

struct hello {
	uint16_t legacy_version;
	uint16_t versions[HELLO_MAX_VERSIONS]; /* supported_versions, without GREASE values */
	uint8_t n_versions;
	bool has_name;
	uint8_t name[HELLO_MAX_NAME];
	uint8_t n_name;
	uint8_t alpn[HELLO_MAX_ALPN]; /* u8 length + bytes each */
	uint16_t n_alpn;
	enum hello_ech ech;
	bool early_data, psk;
	bool ticket; /* a session_ticket that is not empty: resumes an older session */
};

/* Where the reader stands; everything below `why` is its own. */
struct hello_reader {
	struct hello hello;
	enum hello_state state;
	enum hello_why why;
	uint32_t n_bytes;     /* of the connection */
	uint32_t record_left; /* of the record's payload */
	uint32_t left;	      /* of the handshake message */
	uint8_t step;	      /* enum step of hello.c: what the field is */
	uint8_t head[5];      /* of the record */
	uint8_t n_head;
	uint16_t n_got, want;	     /* bytes of the field being collected */
	uint32_t skip;		     /* bytes to pass over before the next field */
	uint16_t ext_type, ext_rest; /* the extension, and its bytes after the field */
	uint16_t n_seen;
	uint16_t seen[HELLO_MAX_EXTENSIONS];
	uint8_t field[512];
};

void hello_init(struct hello_reader *r);
/* Reads a piece and returns the state. Bytes after HELLO_DONE are not read. */
enum hello_state hello_feed(struct hello_reader *r, struct slice in);
/* For people: why it is HELLO_BAD. */
const char *hello_why_text(enum hello_why why);

static inline struct slice hello_name(const struct hello *h)
{
	return slice_of(h->name, h->n_name);
}

/* The name may differ from the real one. */
bool hello_hides_name(const struct hello *h);
