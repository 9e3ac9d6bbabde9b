/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec - the definition of a sandbox, in memory, as JSON and as the file spec.json.
 *
 * How      sbxd decodes a request with spec_decode, fills missing fields with spec_set_defaults,
 *          checks with spec_check, and writes spec.json with spec_save before each start; the
 *          keeper reads it with spec_load. Both sides check everything.
 * Trust    JSON of the same user. Unknown fields, wrong types and anything over a limit are
 *          refused with a sentence that names the field.
 * Owns     A struct spec owns its strings and lists; spec_done frees them. AUTO_SPEC does it at
 *          the end of the scope. All zero is a valid empty one.
 * Limits   SPEC_MAX_*.
 * See      proto/PROTOCOL.api, spec_test.c, spec_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define SPEC_ID_LEN 12
#define SPEC_MIN_NAME 2
#define SPEC_MAX_NAME 63
#define SPEC_MAX_WORD 63 /* agent, template */
#define SPEC_MAX_WORKSPACES 64
#define SPEC_MAX_HIDE 64
#define SPEC_MAX_EXCEPT 64
#define SPEC_MAX_LABELS 32
#define SPEC_MAX_LABEL_KEY 63
#define SPEC_MAX_LABEL 127 /* a value */
#define SPEC_MAX_ENV 256
#define SPEC_MAX_PATH 4095
#define SPEC_MAX_GLOB 255
#define SPEC_MAX_BRANCH 200
#define SPEC_MAX_ENV_BYTES 32768 /* of all NAME=value together, so that an exec still fits */
#define SPEC_MAX_JSON (1 << 20)
#define SPEC_MAX_SSH_KEYS 32
#define SPEC_MAX_SSH_KEY 127
#define SPEC_MAX_SSH_ENV 8
#define SPEC_MAX_PORTS 64
#define SPEC_MAX_MOUNTS 32	/* with the workspaces at most SPEC_MAX_WORKSPACES */
#define SPEC_HOME "/home/agent" /* in the guest */
#define SPEC_MAX_ONLY 32
#define SPEC_MAX_RESOURCE 300
#define SPEC_MAX_IP 45
#define SPEC_TEMPLATE_ID_LEN 16
#define SPEC_MAX_IDLE (365u * 24 * 3600)
#define SPEC_MAX_SINCE (INT64_MAX / 1000000) /* ms that fit into ns */
#define SPEC_MAX_CPUS 256
#define SPEC_MIN_MEMORY (256ull << 20)
#define SPEC_MAX_MEMORY (4ull << 40)
#define SPEC_MIN_DISK (1ull << 30)
#define SPEC_MAX_DISK (1ull << 40)

enum spec_accel { SPEC_ACCEL_AUTO, SPEC_ACCEL_KVM, SPEC_ACCEL_TCG, SPEC_N_ACCELS };

/* What the guest may write into workspaces of what runs on the host (lib/rules/airlock). */
enum spec_guard {
	SPEC_GUARD_UNSET, /* in a request: the setting; in a stored spec (old version): report */
	SPEC_GUARD_OFF,
	SPEC_GUARD_REPORT,
	SPEC_GUARD_DEFAULT,
	SPEC_GUARD_STRICT,
	SPEC_N_GUARDS,
};

struct spec_workspace {
	char *host;  /* absolute, no "." or ".." or empty part */
	char *guest; /* the same rules; equal to host when the request left it out */
	bool ro;
	bool file; /* a single file, not a directory */
	/* In a request: the host path as the user typed it, absolute. NULL in what is stored. */
	char *typed;
};

/* The host's SSH agent, for a sandbox that may use it. */
struct spec_ssh {
	char *socket; /* absolute path; NULL: not permitted */
	char **keys;  /* fingerprints "SHA256:..." or comments; none: every key */
	size_t n_keys;
	bool confirm;  /* prompts the user for each signature ... */
	char *askpass; /* ... by this program, */
	char **env;    /* with this environment: where the display is */
	size_t n_env;
};

/* A git repository of the host, of which the sandbox has a clone on its disk. Not shared. */
struct spec_clone {
	char *host;   /* the top of the work tree; NULL: none */
	char *guest;  /* the clone */
	char *branch; /* that was created in it; NULL: the host's current one */
};

/* A published port of the guest. TCP only. */
struct spec_port {
	char host_ip[SPEC_MAX_IP + 1]; /* an address in its canonical form; default: 127.0.0.1 */
	uint16_t host_port;	       /* 0: any that is free, another one at each start */
	uint16_t port;		       /* in the guest */
};

struct spec {
	char id[SPEC_ID_LEN + 1]; /* empty in a request that leaves it to sbxd */
	char name[SPEC_MAX_NAME + 1];
	char agent[SPEC_MAX_WORD + 1];
	char template[SPEC_MAX_WORD + 1]; /* the requested name */
	char template_id[SPEC_TEMPLATE_ID_LEN +
			 1]; /* its template's id (lib/vm/template); "": not set */
	uint32_t cpus;	     /* 0: not set */
	uint64_t memory;     /* bytes; 0: not set */
	uint64_t disk;	     /* bytes of its root disk; 0: as the template's */
	enum spec_accel accel;
	struct spec_workspace *workspaces;
	size_t n_workspaces;
	/* Directories of sbx that are mounted below the agent's home: its history. They are not
	 * workspaces and not listed as such. */
	struct spec_workspace *mounts;
	size_t n_mounts;
	/* When there are any: the network is these resources only, as far as no rule denies them,
	 * and the sandbox has no credential. For sandboxes that only install something. */
	char **only;
	size_t n_only;
	bool force; /* share / or the home itself anyway */
	/* Writable workspaces are exported read-only; the sandbox changes an overlay. */
	bool staged;
	/* Of a fork: it keeps the staged changes of its template's disks. ms since 1970: a host
	 * file that is newer was changed by the host. 0: the sandbox begins without changes. */
	uint64_t staged_since;
	char **hide;
	size_t n_hide;
	enum spec_guard guard;
	char **guard_except; /* globs of paths relative to a workspace */
	size_t n_guard_except;
	char **env; /* "NAME=value", sorted */
	size_t n_env;
	char **labels; /* "KEY=value", sorted; for the user's own use */
	size_t n_labels;
	struct spec_ssh ssh;
	struct spec_clone clone;
	struct spec_port *ports;
	size_t n_ports;
	uint32_t idle_s;     /* suspended after so long without a session; 0: never */
	uint64_t generation; /* 0: not set */
};

void spec_done(struct spec *spec);
#define AUTO_SPEC CLEANUP(spec_done)

/* "auto", "kvm", "tcg". */
const char *spec_accel_name(enum spec_accel accel);
int spec_accel_parse(const char *s, enum spec_accel *ret) MUST_CHECK;

/* "off", "report", "default", "strict". An unset level has the name of its effect, "report". */
const char *spec_guard_name(enum spec_guard guard);
int spec_guard_parse(const char *s, enum spec_guard *ret) MUST_CHECK;

/* 12 lower-case hex digits. */
bool spec_is_id(const char *s);
/* The rule of PROTOCOL.api; err names the violated part. */
int spec_check_name(const char *name, struct err *err) MUST_CHECK;
/* KEY=VALUE: KEY begins with a letter or digit and consists of these and ._-/; VALUE is printable
 * ASCII and may be empty. */
int spec_check_label(const char *label, struct err *err) MUST_CHECK;

/* JSON text into *ret, which must be all zero; on error it is empty again. Checks types, limits and
 * each single field; name is required. -EINVAL or -E2BIG with a sentence for the user. */
int spec_decode(struct slice json, struct spec *ret, struct err *err) MUST_CHECK;
/* Compact JSON with every field, on the heap. */
char *spec_encode(const struct spec *spec);
/* The same as a jansson object; the caller adds to it and owns it. */
struct json_t *spec_to_json(const struct spec *spec);
/* A deep copy into *ret, which must be all zero. */
void spec_copy(const struct spec *spec, struct spec *ret);

/* cpus and memory for a sandbox that did not say: 0 means the host decides (all its CPUs; half its
 * memory, at least 512 MiB and at most 4 GiB). Fills agent (shell) and template (debian) too. */
void spec_set_defaults(struct spec *spec, uint32_t cpus, uint64_t memory);
/* Whole and consistent, ready to be stored or started: id and all else there, no guest path twice.
 */
int spec_check(const struct spec *spec, struct err *err) MUST_CHECK;
/* Same in everything but the generation. Fields that `wanted` leaves open (empty, 0) match
 * anything, so that a repeated request matches the created sandbox. */
bool spec_matches(const struct spec *have, const struct spec *wanted);

/* "tcp4" or "tcp6", by its address. */
const char *spec_port_protocol(const struct spec_port *port);
/* Whether a socket for one would keep the other from being opened: the same port of the host, and
 * the same address or every one of its family. Never of ports that any free one will do for. */
bool spec_port_meets(const struct spec_port *a, const struct spec_port *b);
bool spec_port_eq(const struct spec_port *a, const struct spec_port *b);
/* A listening, non-blocking socket for it; a negative errno. */
int spec_port_listen(const struct spec_port *p, int backlog) MUST_CHECK;
/* Whether fd is a listening TCP socket at its address, and at its host port unless that is 0. */
bool spec_port_is_at(const struct spec_port *p, int fd);
/* The sentence, with `what` in front, about one that is in the list already; gives r. */
int spec_port_refuse(const struct spec_port *p, const char *what, int r, struct err *err);
/* A JSON list as in `ports` of PROTOCOL.api; on the heap, NULL when it is empty. */
int spec_ports_decode(const struct json_t *list, struct spec_port **ret, size_t *ret_n,
	struct err *err) MUST_CHECK;
struct json_t *spec_port_to_json(const struct spec_port *port);

/* Atomic: temporary file, fsync, rename, fsync of the directory. Mode 0600. */
int spec_save(const struct spec *spec, const char *path, struct err *err) MUST_CHECK;
/* Where sbxd writes it: a directory that the sandbox's own keeper can only read. */
char *spec_dir(const char *id);
char *spec_path(const char *id);
/* Decodes and spec_check()s. -ENOENT when there is none. */
int spec_load(const char *path, struct spec *ret, struct err *err) MUST_CHECK;
