/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_element - what a service file is made of: slots, variables, fields, refusals.
 *
 * How      One struct for each kind of line. A struct service (service.h) has lists of them.
 * Trust    As service.h. Holds no credential, only placeholders.
 * Owns     All pointers belong to the struct service that has the element.
 * Limits   SERVICE_MAX_BYTES a file, SERVICE_MAX_LINE a line, and SERVICE_MAX_SLOTS,
 *          SERVICE_MAX_HOSTS, SERVICE_MAX_PATHS, SERVICE_MAX_ENVS, SERVICE_MAX_KNOWN,
 *          SERVICE_MAX_PASSED, SERVICE_MAX_FIELDS, SERVICE_MAX_REFUSALS and SERVICE_MAX_CAPTURES.
 * See      service.h, proto/PROTOCOL.service
 */
#pragma once

#include "lib/rules/policy/netrule.h"

#define SERVICE_MAX_BYTES 65536
#define SERVICE_MAX_LINE 4096
#define SERVICE_MAX_WORD 64
#define SERVICE_MAX_TEXT 256 /* a format, a placeholder, a path, a sentence */
#define SERVICE_MAX_SLOTS 8
#define SERVICE_MAX_HOSTS 64 /* of one slot */
#define SERVICE_MAX_PATHS 16 /* of one slot */
#define SERVICE_MAX_ENVS 8
#define SERVICE_MAX_KNOWN 128 /* those of data/services/auth-names included */
#define SERVICE_MAX_PASSED 16
#define SERVICE_MAX_FIELDS 8 /* of an OAuth answer */
#define SERVICE_MAX_ENDPOINTS 8
#define SERVICE_MAX_REFUSALS 64
#define SERVICE_MAX_CAPTURES 32 /* bits of a uint32_t */

enum service_how {
	SERVICE_HEADER, /* name: format */
	SERVICE_BASIC,	/* authorization: Basic, with a user of the service's */
	SERVICE_SIGV4,	/* AWS request signature */
};

/* What goes into a slot. */
enum service_value {
	SERVICE_SECRET = 1 << 0, /* what the user set */
	SERVICE_ACCESS = 1 << 1, /* what the token endpoint gave */
};

struct service_slot {
	char *name;
	enum service_how how;
	enum service_value value;
	char *header; /* lower case; NULL for a signature */
	char *format; /* SERVICE_HEADER: text with one %s */
	char *user;   /* SERVICE_BASIC; NULL: the value is USER:PASSWORD */
	struct netrule *host;
	size_t n_hosts;
	char **path; /* patterns; none: every path */
	size_t n_paths;
	bool always; /* intercept always */
	unsigned line;
};

/* Each `*` of the placeholder is replaced with a letter or digit that depends on the sandbox. */
struct service_env {
	char *name, *sentinel;
};

enum service_where { SERVICE_IN_HEADER, SERVICE_IN_QUERY, SERVICE_IN_COOKIE };

/* Where requests to this service may carry a credential, in addition to the slots. */
struct service_known {
	enum service_where where;
	char *name; /* a header's in lower case */
};

enum service_field_kind {
	SERVICE_FIELD_ACCESS,  /* becomes the placeholder, and the value of access slots */
	SERVICE_FIELD_REFRESH, /* becomes the placeholder */
	SERVICE_FIELD_EXPIRES, /* seconds that the access token has */
	SERVICE_FIELD_UNSIGN,  /* a JWT that keeps its claims and loses its signature */
	SERVICE_FIELD_KINDS,
};

/* A field of the token endpoint's answer. */
struct service_field {
	enum service_field_kind kind;
	char *name, *sentinel; /* NULL if none; a `*` at its end: letters of each token */
};

struct service_endpoint {
	struct netrule host;
	char *path; /* exactly this one; NULL: none */
};

/* A request that is never sent, because its response contains a new credential. Either a path, or a
 * header or query field with a value (SERVICE_IN_HEADER, SERVICE_IN_QUERY). */
struct service_refusal {
	char *rule;   /* the line, for messages */
	char *method; /* NULL: every one */
	char *path;   /* a pattern in lower case; NULL: a field */
	enum service_where where;
	char *name, *value; /* a `*` at the front or end of the value matches any text */
};

/* A field of the JSON that a request is answered with: its value is a credential that the guest
 * does not get. */
struct service_capture {
	char *method; /* NULL: every one */
	char *path;   /* a pattern in lower case */
	char *field;
};
