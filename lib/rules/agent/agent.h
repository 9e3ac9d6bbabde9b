/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - the definition of an agent: its packages, start command, hosts and history.
 *
 * How      agent_parse reads a file of proto/PROTOCOL.agent. A file with `unavailable` has only the
 *          reason why the agent cannot be installed. Its sandboxes use the template with
 *          the agent's name if the agent installs something, else its base.
 * Trust    Files of the installation and of the same user, read as strictly as untrusted ones:
 *          their words become arguments of programs in a sandbox and names of files on the host.
 *          Handles no credentials.
 * Owns     All its pointers, freed by agent_done.
 * Limits   AGENT_MAX_BYTES a file, AGENT_MAX_LINE a line, AGENT_MAX_LIST lines of a kind.
 * Never    Accepts a host without a port or with a pattern, a version that is not exact, a path out
 *          of the home directory, or a file to be imported whose name is that of a credential.
 * See      agents.h for all of them, clean.h, proto/PROTOCOL.agent, agent_test.c, agent_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define AGENT_MAX_BYTES 65536
#define AGENT_MAX_LINE 4096
#define AGENT_MAX_NAME 32 /* so that NAME-DIRECTORY is a valid sandbox name */
#define AGENT_MAX_WORD 128
#define AGENT_MAX_TEXT 1024 /* a sentence, a value, a line of a seed */
#define AGENT_MAX_LIST 32   /* lines of one kind */

/* A pair of words: name and value of a variable, package and version, host and reason ... */
struct agent_pair {
	char *a, *b;
};

struct agent_list {
	struct agent_pair v[AGENT_MAX_LIST];
	size_t n;
};

struct agent {
	char *name, *title, *about;
	char *base;		   /* the template that its own is built on */
	char *node;		   /* the required version of Node.js; NULL: the base's */
	char *command;		   /* a program in the guest */
	struct agent_list flag;	   /* a: one argument each, so that it does not prompt */
	struct agent_list package; /* npm: name, exact version */
	struct agent_list pin;	   /* npm: name, digest of its file at that version */
	char *publisher;	   /* to whom the packages belong, and where that is stated */
	char *unavailable;     /* why it cannot be installed; then only the first three are set */
	struct agent_list env; /* name, value */
	struct agent_list
		service; /* a: in data/services; the first is the one that it cannot do without */
	struct agent_list host;	      /* HOST:PORT, why */
	struct agent_list setup_host; /* the same, while it is installed */
	struct agent_list history;    /* a: directory below the home, kept on the host */
	struct agent_list import;     /* a: file, or directory with '/' at its end, in the home */
	struct agent_list drop;	      /* file of import, key that is removed from its JSON */
	struct agent_list seed;	      /* file below the home, one line; %w is the workspace */
	struct agent_list key_seed;   /* the same, when one of its services has a credential */
};

/* *ret must be all zero, and is so after an error. `name` is the file's name for messages. */
int agent_parse(struct slice text, const char *name, struct agent *ret, struct err *err) MUST_CHECK;
void agent_done(struct agent *a);
#define AUTO_AGENT CLEANUP(agent_done)

/* Whether the agent has its own template. */
bool agent_is_built(const struct agent *a);
/* The template that its sandboxes start from: its own name, or its base. */
const char *agent_template(const struct agent *a);
/* Whether this is how an npm package, or an exact version of one, is written. */
bool agent_is_package(const char *s);
bool agent_is_version(const char *s);
/* Whether this is a digest of npm: sha512-BASE64. */
bool agent_is_digest(const char *s);
/* The text of a seed with the workspace in the place of %w, quoted as in JSON and TOML, and the
 * sandbox's id in that of %i; on the heap. */
char *agent_fill_seed(const char *text, const char *workspace, const char *id);
