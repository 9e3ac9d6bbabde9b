/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_ctl - the requests of the keeper to the guest, each a body with one answer body.
 *
 * How      POST on sbx.ctl with the request as the body, answered by status 200 and the answer as
 *          the body. Fixed fields (lib/base/slice.h), no negotiation: both ends are one build.
 *
 *          path     request               answer
 *          /setup   struct guest_setup    struct guest_reply
 *          /mount   struct guest_mounts   struct guest_reply
 *          /trust   struct guest_trust    struct guest_reply
 *          /stats   empty                 struct keeper_stats
 *          /power   kind                  struct guest_reply, then the guest stops
 *          /park    struct guest_parking  struct guest_reply: the machine may be saved now
 *          /wake    struct guest_wake     struct guest_reply: after a restore
 *          /forget  empty                 struct guest_reply: files that nothing uses are let go
 *          /denied  text                  struct guest_reply: why connections were refused
 * Trust    Answers come from the guest and are untrusted: limited, strictly decoded, no decision
 *          depends on them. Requests are the host's; the guest checks them anyway.
 * Owns     Decoded setups, mounts and trusts own their strings; the _done functions free them.
 * Limits   GUEST_MAX_BODY bytes a body, GUEST_MAX_MOUNTS, GUEST_MAX_ENV, GUEST_MAX_TEXT,
 *          GUEST_MAX_CA, GUEST_MAX_EXTRA_CA.
 * See      proto/PROTOCOL.guest, guest_ctl_test.c, guest_ctl_fuzz.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/os/ipc/keeper_chan.h"

#define GUEST_SSH_AGENT "/run/ssh-agent.sock" /* where its programs find the host's SSH agent */
#define GUEST_MAX_BODY 65536
#define GUEST_MAX_MOUNTS 64
#define GUEST_MAX_ENV 256
#define GUEST_MAX_TEXT 512
#define GUEST_MAX_NAME 256
#define GUEST_MAX_PATH 4096
#define GUEST_ENTROPY 32
#define GUEST_MAX_CA 16384
#define GUEST_MAX_EXTRA_CA 32768 /* of all certificates together */

#define GUEST_PORT "sbx.ctl"
#define GUEST_SHARE_TAG "sbx"
#define GUEST_SELFTEST "SBX-SELFTEST-OK\n"

#define GUEST_PATH_EXEC "/exec"
#define GUEST_PATH_SETUP "/setup"
#define GUEST_PATH_TRUST "/trust"
#define GUEST_PATH_STATS "/stats"
#define GUEST_PATH_POWER "/power"
#define GUEST_PATH_TCP "/tcp/" /* and a port: no question, bytes both ways (src/guest/net/tcp.h) */
#define GUEST_PATH_PARK "/park"
#define GUEST_PATH_WAKE "/wake"
#define GUEST_PATH_FORGET "/forget"
#define GUEST_PATH_DENIED "/denied"

enum guest_mount_flag {
	GUEST_MOUNT_RO = 1,
	GUEST_MOUNT_FILE = 2,	/* a single file, not a directory */
	GUEST_MOUNT_HOME = 4,	/* directories above it that are missing are the agent's */
	GUEST_MOUNT_STAGED = 8, /* an overlay keeps changes in the guest */
	GUEST_MOUNT_KEPT = 16,	/* of a fork: with the changes of its source; only with STAGED */
	GUEST_MOUNT_ALL = 31,
};

/* Both paths are absolute and plain: no empty, "." or ".." parts, no final slash, not "/". */
struct guest_mount {
	uint8_t flags; /* enum guest_mount_flag */
	char *share;   /* the place in the share, seen from its root */
	char *path;    /* where it appears in the guest */
};

struct guest_mounts {
	size_t n;
	struct guest_mount *v;
};

struct guest_setup {
	char *id, *name, *hostname;
	uint64_t wall_ms;
	uint32_t uid, gid; /* the agent's become these: the host user's; never 0 */
	uint8_t entropy[GUEST_ENTROPY];
	char *machine_id; /* 32 hex digits */
	char *workdir;	  /* "" is the agent's home */
	struct guest_mounts mounts;
	size_t n_env;
	char **env; /* "NAME=value" for every exec */
};

/* The CA that the guest is to trust from now on, instead of the one before, and the variables with
 * placeholder credentials. */
struct guest_trust {
	char *ca_pem;	 /* one certificate as PEM; "": none, the previous one is removed */
	char *extra_pem; /* CAs of network.extra-ca, concatenated; NULL or "": none */
	size_t n_env;
	char **env; /* "NAME=value" for every later exec; all of an earlier trust's are dropped */
};

struct guest_reply {
	bool ok;
	char text[GUEST_MAX_TEXT]; /* why not */
};

/* What the guest gets ready for. */
enum guest_park {
	GUEST_PARK_IMAGE = 1, /* for a snapshot: no identity yet, disks synced, caches dropped */
	GUEST_PARK_SUSPEND,   /* programs are frozen, the share is let go of */
	GUEST_PARK_FREEZE,    /* file systems are whole on the disk and stay so until /wake */
	GUEST_PARK_N,
};

struct guest_parking {
	enum guest_park kind;
	uint32_t uid, gid; /* with IMAGE only: of the host's user, whose sandboxes all will be */
};

/* Informs a restored guest of what has changed since it was saved. */
struct guest_wake {
	uint64_t wall_ms;
	uint8_t entropy[GUEST_ENTROPY];
	struct guest_mounts mounts; /* of the current share; none after FREEZE */
};

enum guest_power { GUEST_POWER_OFF = 1, GUEST_POWER_N };

/* Encoders give -EMSGSIZE when it does not fit the buffer (give it GUEST_MAX_BODY) and -EINVAL when
 * the other side would refuse it. The strings stay the caller's. */
int guest_put_setup(struct wr *wr, const struct guest_setup *setup) MUST_CHECK;
int guest_put_trust(struct wr *wr, const struct guest_trust *trust) MUST_CHECK;
int guest_put_power(struct wr *wr, enum guest_power kind) MUST_CHECK;
int guest_put_park(struct wr *wr, const struct guest_parking *parking) MUST_CHECK;
int guest_put_wake(struct wr *wr, const struct guest_wake *wake) MUST_CHECK;
int guest_put_reply(struct wr *wr, bool ok, const char *text) MUST_CHECK;
int guest_put_stats(struct wr *wr, const struct keeper_stats *stats) MUST_CHECK;

/* Decoders: 0, or -EBADMSG when a field is missing, too long, out of range, or bytes are left over;
 * *ret then holds nothing to free. */
int guest_get_setup(struct slice body, struct guest_setup *ret) MUST_CHECK;
int guest_get_trust(struct slice body, struct guest_trust *ret) MUST_CHECK;
int guest_get_power(struct slice body, enum guest_power *ret_kind) MUST_CHECK;
int guest_get_park(struct slice body, struct guest_parking *ret) MUST_CHECK;
int guest_get_wake(struct slice body, struct guest_wake *ret) MUST_CHECK;
/* What is not printable ASCII in the text is replaced by '?'. */
int guest_get_reply(struct slice body, struct guest_reply *ret) MUST_CHECK;
int guest_get_stats(struct slice body, struct keeper_stats *ret) MUST_CHECK;

void guest_setup_done(struct guest_setup *setup);
void guest_mounts_done(struct guest_mounts *mounts);
void guest_trust_done(struct guest_trust *trust);
void guest_wake_done(struct guest_wake *wake);
