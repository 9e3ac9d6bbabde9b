/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon - one request or response in canonical form.
 *
 * How      http1_read gives a struct http_req as it was read. canon_make_req determines its host
 *          and port (target, authority, Host and SNI must match), checks the path and removes
 *          everything that concerned only the connection it came on. The policy sees the result,
 *          which goes to egress (canon_frame.h) and by canon_write_req to the upstream.
 * Trust    Parses untrusted fields. Runs in edge and again in egress, which trusts no field of
 *          edge: see canon_check_req. Handles no secrets.
 * Owns     Nothing: all text is in the arena of the request.
 * Limits   HTTP_MAX_*. A canonical head has at most HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS lines.
 * Never    Forwards a raw head, a framing header of the peer, or a name that was not canonical.
 * See      proto/PROTOCOL.canon, canon_test.c, canon_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "canon_text.h"
#include "lib/base/arena.h"

#define HTTP_MAX_HEAD 65536
#define HTTP_MAX_HEADERS 100
#define HTTP_SPARE_HEADERS 4 /* room for what canon_set_header adds */
#define HTTP_MAX_TRAILER_BYTES 8192
#define HTTP_MAX_TRAILERS 32
#define HTTP_MAX_METHOD 32
#define HTTP_MAX_TARGET 8191 /* path, `?` and query: the keeper decides on all of it */
#define HTTP_MAX_HOST 255    /* "[" IPv6 "]" included */
#define HTTP_ARENA_SIZE (3 * HTTP_MAX_HEAD)

struct http_header {
	struct slice name, value;
};

struct http_headers {
	struct http_header *list;
	size_t n, max;
};

enum http_form { HTTP_FORM_ORIGIN, HTTP_FORM_ABSOLUTE, HTTP_FORM_AUTHORITY, HTTP_FORM_ASTERISK };
enum http_scheme { HTTP_SCHEME_HTTP, HTTP_SCHEME_HTTPS };

enum http_body_kind {
	HTTP_BODY_NONE,	   /* no framing header, no body */
	HTTP_BODY_LENGTH,  /* exactly `length` bytes, possibly 0 */
	HTTP_BODY_CHUNKED, /* until the last chunk, with trailers */
	HTTP_BODY_CLOSE,   /* responses only: until the connection ends */
	HTTP_BODY_TUNNEL,  /* after CONNECT or 101: bytes both ways, no longer HTTP */
};

struct http_body {
	enum http_body_kind kind;
	uint64_t length;
	bool absent; /* declared, but absent: the response to HEAD, and 304 */
};

struct http_req {
	struct slice method;
	enum http_form form;
	enum http_scheme scheme;
	struct slice authority; /* as written in the target; empty in origin and asterisk form */
	struct slice host;	/* canonical after canon_make_req */
	uint16_t port;
	struct slice
		path; /* byte-exact, begins with "/"; "*" in asterisk form, empty for CONNECT */
	struct slice query;
	bool has_query; /* "/x?" has an empty one */
	struct http_body body;
	bool http10, keep_alive; /* of the connection it came on */
	bool expect_continue, te_trailers, websocket;
	struct http_headers headers; /* in order, names in lower case */
};

struct http_resp {
	uint16_t status;
	struct http_body body;
	bool http10, keep_alive;
	bool websocket; /* 101 */
	struct http_headers headers;
};

/* Why a message is refused: the status to answer with (502 when an origin is at fault). */
struct http_fault {
	uint16_t status;
	const char *why;
};

/* Writes the fault and gives -EBADMSG. */
int canon_refuse(struct http_fault *fault, uint16_t status, const char *why);

/* ---- names ---- */

struct canon_name {
	bool given;
	struct slice host; /* canonical */
	uint16_t port;	   /* 0: unknown */
};

/* The sources of a request's host. `target` is the CONNECT or transparent destination, or the
 * absolute target itself on a plain proxy connection. */
struct canon_names {
	struct canon_name target, authority, host, sni;
	enum http_scheme scheme;
	bool is_connect;
};

enum canon_verdict {
	CANON_AGREE,
	CANON_NO_TARGET,
	CANON_AUTHORITY_DIFFERS,
	CANON_HOST_DIFFERS,
	CANON_SNI_DIFFERS,
	CANON_SNI_MISSING,
	CANON_N_VERDICTS,
};

/* Pure. Missing ports are the scheme's; in CONNECT a Host without a port matches any. */
enum canon_verdict canon_agree(const struct canon_names *names);
const char *canon_verdict_text(enum canon_verdict v);
bool canon_host_is_address(struct slice canonical_host);
uint16_t canon_default_port(enum http_scheme scheme);
/* "host", "host:port", "[v6]" or "[v6]:port" in two; *ret_port is 0 if there is none. The host is
 * not checked beyond that. */
int canon_split_authority(struct slice text, struct slice *ret_host, uint16_t *ret_port) MUST_CHECK;

/* What is known about the connection that a request came on. */
struct canon_where {
	enum http_scheme scheme;
	struct canon_name target; /* given when transparent, or inside a CONNECT */
	struct canon_name sni;
	/* Writes the canonical form of a host (no brackets around IPv6) and gives its length, or
	 * -EINVAL. lib/rules/policy has the one that counts. */
	int (*canonical_host)(struct slice text, char *buf, size_t size);
};

/* ---- messages ---- */

int canon_make_req(struct http_req *req, const struct canon_where *where, struct arena *arena,
	struct http_fault *fault) MUST_CHECK;
/* Headers only: what concerned the connection goes. */
int canon_make_resp(struct http_resp *resp, struct http_fault *fault) MUST_CHECK;
/* Whether canon_make_req could have produced every field; the first check of egress. The host must
 * still be compared with its canonical form. */
int canon_check_req(const struct http_req *req) MUST_CHECK;
int canon_check_resp(const struct http_resp *resp) MUST_CHECK;
int canon_check_trailers(const struct http_headers *trailers) MUST_CHECK;
/* Names that a trailer must not have: framing, routing, credentials. */
bool canon_is_forbidden_trailer(struct slice lower_name);

/* Creates an empty list with room for max; the arena is marked as full if there is none. */
void canon_headers_init(struct http_headers *headers, struct arena *arena, size_t max);
/* The place of the only header with this name: -ENOENT when there is none, -ENOTUNIQ when there are
 * several. */
int canon_find_header(
	const struct http_headers *headers, const char *lower, size_t *ret_at) MUST_CHECK;
/* All headers with this name. */
void canon_remove_header(struct http_headers *headers, const char *lower);
/* Makes `name: value` the only header of that name: replaces the one, or adds it. -ENOTUNIQ when
 * there are several, -EINVAL for a name or value that must not be set, -ENOBUFS. Takes no copy. */
int canon_set_header(
	struct http_headers *headers, struct slice lower, struct slice value) MUST_CHECK;

/* ---- paths ---- */

enum canon_odd {
	CANON_ODD_DOTS = 1,	   /* a "." or ".." segment, in any spelling */
	CANON_ODD_SLASHES = 2,	   /* an empty segment: "//" */
	CANON_ODD_CODED_SLASH = 4, /* %2f or %5c */
	CANON_ODD_CODED_CTRL = 8,  /* %01 to %1f, %7f */
	CANON_ODD_SEMICOLON = 16, /* "/..;/": some servers cut parameters off before they resolve */
	CANON_ODD_CODED_ASCII = 32, /* an escape of a character that needs none: %61 for a */
};

/* Refuses what no path may have: bytes outside printable ASCII, a broken escape, %00, a backslash,
 * ".." above the root. */
int canon_check_path(struct slice path) MUST_CHECK;
int canon_check_query(struct slice query) MUST_CHECK;
/*
 * The copy that rules match on: escapes of unreserved characters decoded, others in upper case,
 * empty and dot segments resolved. ret_odd (enum canon_odd) is set if origins may read the path
 * differently: a rule that names a path must not allow such a request. The path must have been
 * checked.
 */
int canon_normal_path(struct slice path, struct arena *arena, struct slice *ret,
	unsigned int *ret_odd) MUST_CHECK;

/* ---- HTTP/1.1 out ---- */

enum canon_to { CANON_TO_ORIGIN, CANON_TO_PROXY };

/* The whole head. CANON_TO_PROXY writes an absolute target. -EMSGSIZE when it does not fit. */
int canon_write_req(struct wr *wr, const struct http_req *req, enum canon_to to) MUST_CHECK;
/* Host and port, as in the Host header and in :authority: a default port only if always_port. */
void canon_write_authority(struct wr *wr, const struct http_req *req, bool always_port);
/* The head of an answer to the guest; `close`: the connection ends after it. */
int canon_write_resp(struct wr *wr, const struct http_resp *resp, bool close) MUST_CHECK;
/* Makes the framing one that an HTTP/1.0 guest understands: no chunks. */
void canon_fit_http10(struct http_resp *resp);
/* Whether the connection to the origin must not be used again after this request: a body where the
 * method defines none is what servers disagree about. */
bool canon_must_close(const struct http_req *req);
/* "1a\r\n" before a chunk of n > 0 bytes; "\r\n" comes after it. */
void canon_write_chunk(struct wr *wr, size_t n);
/* The last chunk with its trailers (may be NULL). */
int canon_write_last_chunk(struct wr *wr, const struct http_headers *trailers) MUST_CHECK;
const char *canon_reason(uint16_t status);
