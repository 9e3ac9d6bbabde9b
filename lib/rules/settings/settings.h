/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - the user's settings.conf: lines `key = value`, `#` comments, one table of keys.
 *
 * How      settings_load reads and checks the whole file; settings_get gives a value or its
 *          default. settings_change rewrites one line under a lock and keeps all others as they
 *          are. SBX_ACCEL in the environment wins over vm.accel (settings_accel).
 * Trust    The user's own file; read by sbx, sbxd and keeper. An invalid line, an unknown key, a
 *          bad value or a duplicate key is an error that names the line.
 * Owns     A struct settings owns its values; settings_done frees them.
 * Limits   SETTINGS_MAX_BYTES a file, SETTINGS_MAX_LINE a line; SETTINGS_LOCK_MS for a change.
 * See      settings_net.h for network.*, settings_test.c, settings_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define SETTINGS_MAX_BYTES 65536
#define SETTINGS_LOCK_MS 10000 /* while another process changes the file */
#define SETTINGS_MAX_LINE 8448 /* 8 KiB of a list, and its key */

enum settings_id {
	SETTINGS_VM_ACCEL,		/* auto, kvm, tcg */
	SETTINGS_VM_CPUS,		/* 0: the host's */
	SETTINGS_VM_IDLE_TIMEOUT,	/* seconds; 0: never */
	SETTINGS_VM_MEMORY,		/* 0: half the host's, 512 MiB to 4 GiB */
	SETTINGS_VM_MEMORY_BACKING,	/* file, memfd */
	SETTINGS_VM_DISK,		/* 0: as the template's */
	SETTINGS_DISK_RESERVE,		/* bytes; 0: none */
	SETTINGS_STOP_TIMEOUT,		/* seconds from the request to the kill */
	SETTINGS_STOP_SUSPEND,		/* true, false: sbx stop suspends an idle sandbox */
	SETTINGS_SHARE_SPECIAL_FILES,	/* true, false */
	SETTINGS_SHARE_GUARD,		/* default, strict, report, off */
	SETTINGS_STAGE_KEEP,		/* applies that can be undone; 0: all */
	SETTINGS_CHECKPOINT_EVERY,	/* seconds; 0: never */
	SETTINGS_CHECKPOINT_KEEP,	/* automatic checkpoints of a sandbox; 0: all */
	SETTINGS_CHECKPOINT_APPLY,	/* true, false: one before sbx apply */
	SETTINGS_NETWORK_CONNECT_TO,	/* HOST:PORT=ADDR:PORT,... */
	SETTINGS_NETWORK_EXTRA_CA,	/* a file of certificates */
	SETTINGS_NETWORK_PROXY,		/* http://HOST:PORT, socks5://HOST:PORT */
	SETTINGS_NETWORK_NO_PROXY,	/* HOST,.HOST,NETWORK,... */
	SETTINGS_AUDIT_MAX_SIZE,	/* of one sandbox's audit log; 0: no bound */
	SETTINGS_AUDIT_KEEP,		/* seconds; 0: for ever */
	SETTINGS_AUDIT_KEEP_SIZE,	/* bytes of one log; 0: all */
	SETTINGS_CREDENTIALS_OAUTH,	/* true, false */
	SETTINGS_CREDENTIALS_INTERCEPT, /* true, false: all services, also without a credential */
	SETTINGS_VAULT_KEY,		/* where the key of a new vault goes */
	SETTINGS_AGENTS_ALLOW_HOSTS,	/* ask, always, never */
	SETTINGS_ASK_MAX_OPEN,		/* requests of a sandbox that wait for approval */
	SETTINGS_ASK_MAX_HOUR,		/* and that begin to wait, in an hour */
	SETTINGS_ASK_BELL,		/* true, false: a terminal announces them */
	SETTINGS_ASK_NOTIFY,		/* true, false: so do desktop notifications */
	SETTINGS_GIT_IDENTITY,		/* ask, yes, no */
	SETTINGS_DETACH_KEYS,		/* that leave a session; empty: none */
	SETTINGS_WARM_IMAGES,		/* true, false: create snapshots automatically */
	SETTINGS_DAEMON_SANDBOXES,	/* running VMs; 0: the most there can be */
	SETTINGS_DAEMON_STARTS,		/* at the same time; 0: two for each CPU */
	SETTINGS_DAEMON_CONNECTIONS,	/* clients of the API; 0: the most there can be */
	SETTINGS_POOL_SIZE,		/* machines that wait, restored */
	SETTINGS_POOL_TEMPLATE,		/* of what; empty: the default */
	SETTINGS_N,
};

enum settings_type {
	SETTINGS_CHOICE,
	SETTINGS_NUMBER,
	SETTINGS_SIZE,
	SETTINGS_SECONDS,
	SETTINGS_TEXT
};

struct settings_key {
	const char *name; /* "vm.accel" */
	enum settings_type type;
	const char *standard; /* the default, as text */
	const char *choices;  /* "auto|kvm|tcg" for SETTINGS_CHOICE */
	uint64_t min, max; /* of the number, the bytes or the seconds; 0 is always allowed when min
			      is 0 */
	int (*check)(const char *value, struct err *err); /* SETTINGS_TEXT */
	const char *help;
};

struct settings {
	char *value[SETTINGS_N]; /* NULL: not set */
};

/* SETTINGS_N rows, by enum settings_id. */
extern const struct settings_key settings_keys[SETTINGS_N];

/* -ENOENT with a sentence that lists the keys there are. */
int settings_find(const char *name, enum settings_id *ret_id, struct err *err) MUST_CHECK;
int settings_check_value(enum settings_id id, const char *value, struct err *err) MUST_CHECK;

/* *ret must be all zero. `name` is the file's name for messages. */
int settings_parse(
	struct slice text, const char *name, struct settings *ret, struct err *err) MUST_CHECK;
/* The file of this installation; if it does not exist, all values are defaults. */
int settings_load(struct settings *ret, struct err *err) MUST_CHECK;
void settings_done(struct settings *s);
#define AUTO_SETTINGS CLEANUP(settings_done)

/* The value as text, or the default. */
const char *settings_get(const struct settings *s, enum settings_id id);
bool settings_is_set(const struct settings *s, enum settings_id id);
/* The value of a NUMBER, SIZE (bytes) or SECONDS key. */
uint64_t settings_get_u64(const struct settings *s, enum settings_id id);
/* SBX_ACCEL when it is set, else vm.accel. -EINVAL if SBX_ACCEL is not one of the choices. */
int settings_accel(const struct settings *s, const char **ret, struct err *err) MUST_CHECK;

/* Sets (or with value NULL unsets) one key in the file. A broken file is not touched. */
int settings_change(enum settings_id id, const char *value, struct err *err) MUST_CHECK;
/* The same with the open file that a value names (network.extra-ca): the path is not opened
 * again. */
int settings_change_with(
	enum settings_id id, const char *value, int fd, struct err *err) MUST_CHECK;
