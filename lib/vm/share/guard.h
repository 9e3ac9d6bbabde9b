/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard - names that the guest cannot plant in a workspace, decided at each call of virtiofsd.
 *
 * How      virtiofsd's filter sends the calls that make, replace, remove or open a name for writing
 *          to the supervisor (hide.h), which decides by the list of lib/rules/airlock/autorun.h.
 *          What needs files is done by a second process, the hand: renames, symbolic links, checked
 *          writes, files with a fixed content, copies. Landlock limits it to the workspaces and the
 *          guard's directory; the supervisor cannot have Landlock, because it reads virtiofsd's
 *          memory. It passes directories as descriptors and opens no file itself.
 * Rule     No operation of the guest makes, replaces, changes or removes an entry whose name is
 *          refused in its place. None moves a directory to where other names are refused, nor one
 *          with such an entry below it. None makes, moves or removes a symbolic link whose name
 *          leads to such a name. The hand makes renames and symbolic links, one at a time, so what
 *          it looked at is what it moves. So the place of a directory never changes, and a call
 *          that is still under way in it was judged right.
 * Files    In the guard's directory: `dirty`, a list of changed files (lib/rules/airlock/dirty.h),
 *          and `copy/N`, the content of a file before its first change. To reset the list, remove
 *          `dirty`, then the files of `copy`. A running guard detects that `dirty` was removed.
 * Trust    Names and contents are the guest's.
 * Owns     Two processes that die with the share. Every call fails when one of them has ended.
 * Limits   GUARD_MAX_COPIES bytes, DIRTY_MAX_ROWS rows; GUARD_MAX_SCAN entries and GUARD_MAX_DEPTH
 *          levels below a directory that is renamed. In a directory that the user cannot write, the
 *          guest's root cannot rename.
 * Not      Against a virtiofsd that was compromised. The target of a symbolic link, or the other
 *          hard link, that the host made for a guarded name is not guarded.
 * See      guard_internal.h, share.h, guard_test.c, guard_model_test.c
 */
#pragma once

#include <stdint.h>
#include "lib/rules/airlock/autorun.h"
#include "lib/rules/airlock/dirty.h"

#define GUARD_MAX_COPIES (16u << 20)
#define GUARD_MAX_SCAN 500000
#define GUARD_MAX_DEPTH 200
#define GUARD_MAX_PATH 1024
#define GUARD_MAX_REASON 160

enum guard_what {
	GUARD_DENIED,	/* the call failed */
	GUARD_REPORTED, /* the first change of a file, which is now in `dirty` */
	GUARD_CHECKED,	/* a new content of a checked file was accepted */
	GUARD_N_WHATS,
};

/* One packet of guard_config.event_fd. */
struct guard_event {
	uint32_t what, op, kind; /* op: enum dirty_op */
	uint32_t lost; /* events dropped since the last one, because the socket was full */
	char path[GUARD_MAX_PATH];     /* of the host; cut at the front */
	char reason[GUARD_MAX_REASON]; /* why a check failed: the key; else empty */
};

struct guard_config {
	enum guard_level level;		 /* GUARD_OFF: all others are unused */
	const struct autorun_list *list; /* with the user's exceptions */
	int dir_fd;			 /* of the list and the copies; the caller's */
	int event_fd; /* the end of a SOCK_SEQPACKET pair; -1: none; the caller's */
};
