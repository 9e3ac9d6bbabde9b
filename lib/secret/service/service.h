/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - the definition of a service for credentials: hosts, slots, variables, placeholders.
 *
 * How      service_parse reads a file of proto/PROTOCOL.service. A slot is the one place of a
 *          request where the credential goes: a header with a format, the password of basic
 *          authentication, or a signature. service_pick_slot finds it for a request, and
 *          service_judge reports whether a header or a query field carries a credential, and
 *          whether that is our placeholder or a credential of the guest.
 * Trust    Files of the installation and of the same user. Hosts, paths and headers that are looked
 *          up are a guest's, hosts canonical (host.h). Holds no credential, only placeholders.
 * Owns     All its pointers, freed by service_done.
 * Limits   SERVICE_MAX_BYTES a file, SERVICE_MAX_LINE a line, and SERVICE_MAX_SLOTS,
 *          SERVICE_MAX_HOSTS, SERVICE_MAX_PATHS, SERVICE_MAX_ENVS, SERVICE_MAX_KNOWN,
 *          SERVICE_MAX_PASSED, SERVICE_MAX_FIELDS, SERVICE_MAX_REFUSALS and SERVICE_MAX_CAPTURES.
 * Never    Accepts a host without a port, every host, or a network: credentials go to named hosts.
 * See      services.h for all of them, proto/PROTOCOL.service, service_test.c, service_fuzz.c
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
	char *path; /* exactly this one */
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

struct service {
	char *name, *about;
	struct service_slot slot[SERVICE_MAX_SLOTS];
	size_t n_slots;
	struct service_env env[SERVICE_MAX_ENVS];
	size_t n_envs;
	struct service_known known[SERVICE_MAX_KNOWN];
	size_t n_known;
	struct service_known
		passed[SERVICE_MAX_PASSED]; /* not a credential, whatever it looks like */
	size_t n_passed;
	struct service_endpoint endpoint[SERVICE_MAX_ENDPOINTS];
	size_t n_endpoints;
	struct service_field field[SERVICE_MAX_FIELDS];
	size_t n_fields;
	struct service_refusal refusal[SERVICE_MAX_REFUSALS];
	size_t n_refusals;
	struct service_capture capture[SERVICE_MAX_CAPTURES];
	size_t n_captures;
};

/* *ret must be all zero, and is so after an error. `name` is the file's name for messages. */
int service_parse(
	struct slice text, const char *name, struct service *ret, struct err *err) MUST_CHECK;
void service_done(struct service *s);
#define AUTO_SERVICE CLEANUP(service_done)

struct service_request {
	const struct host *host;
	uint16_t port;
	struct slice path; /* canonical; ignored from a '?' on */
};

/*
 * The first slot, in the order of the file, for this host, port and path whose value is one of
 * `values` (service_value, added up: those that the sandbox has); NULL when there is none.
 */
const struct service_slot *service_pick_slot(
	const struct service *s, const struct service_request *req, unsigned values);
/* Whether it is the token endpoint, byte for byte. */
bool service_is_endpoint(const struct service *s, const struct service_request *req);

enum service_verdict {
	SERVICE_PLAIN,	  /* no credential */
	SERVICE_SENTINEL, /* ours */
	SERVICE_FOREIGN,  /* of the guest: the request must not pass */
};

/*
 * A header (its name in any case), a query field (as in the request), or one cookie. It is a
 * credential when its name is known, or when its value looks like one (shape.h).
 */
enum service_verdict service_judge(
	const struct service *s, enum service_where where, struct slice name, struct slice value);

/* The variable's value in this sandbox: each `*` is a digit of the sandbox id, then zeros;
 * uppercase after an uppercase letter. */
void service_fill_sentinel(
	const struct service_env *env, const char *sandbox, char buf[SERVICE_MAX_TEXT + 1]);
/* Whether the text is the placeholder of this field; a `*` matches one or more letters and
 * digits. */
bool service_is_field_sentinel(const struct service_field *f, struct slice text);
/*
 * Whether a program can log in there: a token endpoint with a refresh token whose placeholder is
 * one for the whole sandbox. Separate placeholders mean that tokens are issued for a secret.
 */
bool service_has_login(const struct service *s);
/* Whether a slot is at this host and port, whatever the path. only_always: one with
 * `intercept always`. */
bool service_is_slot_host(
	const struct service *s, const struct service_request *req, bool only_always);
/* Whether requests to this name must be intercepted on every port: a slot has `intercept always`,
 * or with `logins` a token endpoint where programs log in. Many servers answer on more ports than
 * the one that the file names. Not for addresses and names of this host. */
bool service_guards_host(const struct service *s, const struct host *host, bool logins);
/* Whether one of its slots has `intercept always`. */
bool service_has_always(const struct service *s);
/* Whether one of its token endpoints is at this host and port, whatever the path. */
bool service_is_endpoint_host(const struct service *s, const struct service_request *req);
/* Whether some server at this host and port may take the path, as it is in the request, for one
 * of the service's token endpoints. Paths are compared as in service_refuses_path; a path that
 * service_odd_path refuses may be one. */
bool service_may_be_endpoint(const struct service *s, const struct service_request *req);

/*
 * The rule that refuses this method and path, or NULL. Servers disagree about the spelling of
 * paths: upper and lower case, escapes, empty and "." segments, `;` parameters, a host after "//"
 * at the front, a slash or an extension at the end are all treated as the same path.
 * service_odd_path refuses a path with a ".." segment in any spelling, a control character or more
 * than four nested escapes, when there is a rule for any path: servers disagree about what it is.
 * An empty method is one that is not known.
 */
extern const struct service_refusal service_odd_path;
const struct service_refusal *service_refuses_path(
	const struct service *s, struct slice method, struct slice path);
/* The same for a header (its name in any case), and for a whole query with its pairs. */
const struct service_refusal *service_refuses_header(
	const struct service *s, struct slice name, struct slice value);
const struct service_refusal *service_refuses_query(const struct service *s, struct slice query);
/* Whether a rule or a token endpoint of it is for some path. */
bool service_names_paths(const struct service *s);
/* The captures for this method and path, a bit each; paths are compared as in service_refuses_path,
 * and one that service_odd_path refuses has all of them. */
uint32_t service_captures(const struct service *s, struct slice method, struct slice path);
/* Whether a query has a field of this name, in any case and spelling. */
bool service_has_query(struct slice query, const char *name);

/* Whether a path fits a pattern: segments, `*` for one of them, one `**` for one or more. */
bool service_path_match(const char *pattern, struct slice path);
/* Whether hosts and ports of both could be one request's; too often yes rather than too seldom. */
bool service_may_meet(const struct netrule *a, const struct netrule *b);
