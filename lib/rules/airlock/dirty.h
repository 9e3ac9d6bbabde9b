/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirty - the list of guarded files that a guest changed or was denied, one line of text per file.
 *
 * How      A line is `TIME KIND OP STATE COPY MOUNT PATH DETAIL`, separated by single spaces.
 *          MOUNT, PATH and DETAIL have percent escapes for every byte that is not printable ASCII,
 *          for '%' and for the space; an empty DETAIL is '-'. dirty_encode writes one line,
 *          dirty_next reads the next valid one and skips others: a line can be cut off by a crash.
 * Trust    The bytes of PATH are the guest's. The files are written by the supervisor of the share
 *          and by the keeper, which may be compromised. PATH is relative, without "." and "..", and
 *          the reader compares MOUNT with the workspaces. Does no I/O.
 * Owns     Nothing on the heap.
 * Limits   DIRTY_MAX_ROWS rows and DIRTY_MAX_BYTES bytes of a file; longer paths are not recorded.
 * See      dirty_test.c, dirty_fuzz.c
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include "lib/base/slice.h"

#define DIRTY_MAX_ROWS 4096
#define DIRTY_MAX_BYTES (4u << 20)
#define DIRTY_MAX_KIND 999
#define DIRTY_MAX_DETAIL 159
#define DIRTY_MAX_LINE (6 * PATH_MAX + 3 * DIRTY_MAX_DETAIL + 128)

enum dirty_op {
	DIRTY_CREATE,
	DIRTY_WRITE,
	DIRTY_REMOVE,
	DIRTY_RENAME,
	DIRTY_LINK,
	DIRTY_SYMLINK,
	DIRTY_MODE,
	DIRTY_N_OPS,
};

/* What the path was before the first change; DENIED: the change did not happen. */
enum dirty_state {
	DIRTY_NEW,	 /* it did not exist */
	DIRTY_CHANGED,	 /* a file; its content is in the copy, unless there was no room */
	DIRTY_WAS_LINK,	 /* a symbolic link */
	DIRTY_WAS_OTHER, /* a directory, a device */
	DIRTY_TREE,	 /* a directory that is recorded as a whole, such as node_modules */
	DIRTY_DENIED,
	DIRTY_N_STATES,
};

struct dirty_row {
	uint64_t time_ms;
	unsigned kind; /* of data/airlock/autorun.list */
	enum dirty_op op;
	enum dirty_state state;
	uint32_t copy;			   /* the file copy/N next to the list; 0: none */
	char mount[PATH_MAX];		   /* the host path of the workspace */
	char path[PATH_MAX];		   /* in it */
	char detail[DIRTY_MAX_DETAIL + 1]; /* the denied key of a checked file; else empty */
};

/* "write", "remove" ... and "new", "changed" ... */
const char *dirty_op_name(enum dirty_op op);
const char *dirty_state_name(enum dirty_state state);

/* One line with its newline. -EINVAL: the row is not valid; -EMSGSIZE. */
int dirty_encode(struct wr *wr, const struct dirty_row *row) MUST_CHECK;
/* Returns 1 and the next valid row of *rest, or 0 at the end. */
int dirty_next(struct slice *rest, struct dirty_row *ret) MUST_CHECK;
