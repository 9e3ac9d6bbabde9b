/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_element - the lines of an API pack: hosts, objects, rows, cases.
 *
 * How      Structures only. Their texts are slices of the text of the pack.
 * Trust    As pack.h.
 * Owns     Nothing but the segments of a path, freed by pack_path_done.
 * See      pack.h, proto/PROTOCOL.api-pack
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define PACK_MAX_BYTES (1u << 20)
#define PACK_MAX_LINE 1024
#define PACK_MAX_NAME 32
#define PACK_MAX_WORD 64 /* a verb, a name, a method */
#define PACK_MAX_HOSTS 16
#define PACK_MAX_OBJECTS 128
#define PACK_MAX_ROWS 4096
#define PACK_MAX_FIELDS 1024 /* rows of GraphQL */
#define PACK_MAX_CASES 8192
#define PACK_MAX_SEGS 24 /* of a row */
#define PACK_MAX_PATH 64 /* segments of a request that are compared */
#define PACK_MAX_SHOWS 8
#define PACK_MAX_WHENS 4

enum pack_risk {
	PACK_READ,
	PACK_WRITE,
	PACK_DANGER,	 /* destroys, or cannot be undone */
	PACK_MONEY,	 /* costs money */
	PACK_CREDENTIAL, /* the response has a secret, or the request adds one */
	PACK_SEND,	 /* reaches people outside */
	PACK_ADMIN,	 /* changes who may do what */
	PACK_N_RISKS,
};

enum pack_seg_kind {
	PACK_LITERAL,
	PACK_NUMBER, /* {name#}: decimal digits */
	PACK_AT,     /* @{name}: begins with an at sign */
	PACK_ONE,    /* {name} */
	PACK_CODED,  /* {name/}: one segment, in which an escaped slash is part of the value */
	PACK_MANY,   /* {name**}, or ** at the end: one or more segments */
};

struct pack_seg {
	enum pack_seg_kind kind;
	struct slice text; /* of a literal, else the name; a rest has none */
};

struct pack_path {
	struct pack_seg *seg;
	size_t n;
	size_t many; /* index of the PACK_MANY; n if there is none */
};

/* Where a fact of a request is. */
enum pack_source {
	PACK_FROM_PATH,
	PACK_FROM_QUERY,
	PACK_FROM_HEADER,
	PACK_FROM_JSON,
	PACK_FROM_ARG
};

struct pack_show {
	struct slice name;
	enum pack_source source;
	struct slice at; /* a name, or a JSON pointer */
};

struct pack_when {
	enum pack_source source;
	struct slice at, glob; /* in a glob, `*` is any text */
};

struct pack_object {
	struct slice name, text; /* repo/{owner}/{repo} */
	bool is_folded;		 /* upper and lower case are the same: shown in lower case */
};

struct pack_row {
	enum pack_risk risk;
	struct slice verb, method;
	struct pack_path path;
	struct slice field; /* of GraphQL, `*` for any; the method is then query or mutation */
	size_t object;	    /* index */
	struct pack_show show[PACK_MAX_SHOWS];
	size_t n_shows;
	struct slice say;
	struct pack_when when[PACK_MAX_WHENS];
	size_t n_whens;
	unsigned line;
};

/* A request and its effect. */
struct pack_case {
	struct slice method, target, header, value, body, effect;
	bool has_body;
	unsigned line;
};

/* With `*.` in front: one label more. */
struct pack_host {
	struct slice name;
	uint16_t port;
};
