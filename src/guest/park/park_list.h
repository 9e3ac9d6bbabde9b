/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_list - the guest's uses of the share: namespaces, mounts, open files, directories.
 *
 * How      park_list_read fills it while all programs are frozen. A mount is stored as its path in
 *          the share (the share is one file system per workspace, identified by its mount below
 *          MOUNTS_SHARE). A file is stored as its path in the namespace of its mount. Descriptors
 *          that share one description (for example after a fork) are found by kcmp(2) and stay
 *          shared.
 * Trust    Names come from the guest: limited, used as paths in the guest only.
 * Owns     Its strings and the fds of namespaces, until the child of park.h exits.
 * Limits   PARK_MAX_ITEMS, PARK_MAX_MOUNTS, PARK_MAX_NS; items beyond are reported as lost.
 * See      park_list_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define PARK_MAX_ITEMS 16384
#define PARK_MAX_MOUNTS 4096
#define PARK_MAX_NS 512
#define PARK_MAX_LOCKS 4
#define PARK_MAX_LINE 8192 /* of mountinfo */

struct park_mount {
	size_t ns;
	uint64_t id;
	dev_t dev;
	char *root;	/* in its file system; after park_list_read, in the share */
	char *place;	/* its path in its namespace */
	uint64_t attrs; /* MOUNT_ATTR_RDONLY ... */
	bool is_base;	/* the share itself below MOUNTS_SHARE, and automatic submounts */
};

enum park_kind { PARK_CWD, PARK_FD };

/* As fcntl and flock expect it. */
struct park_lock {
	enum { PARK_LOCK_FLOCK, PARK_LOCK_POSIX, PARK_LOCK_OFD } kind;
	bool is_write;
	int64_t start, len; /* len 0: to end-of-file */
};

struct park_item {
	enum park_kind kind;
	pid_t pid;
	int fd;
	unsigned flags;
	int64_t pos;
	dev_t dev;
	uint64_t ino;
	bool is_dir;
	size_t ns;
	char *path;
	size_t same; /* the first item of this description, or itself */
	size_t n_locks;
	struct park_lock locks[PARK_MAX_LOCKS];
	int opened; /* by park_reseat.h; -1: not */
};

struct park_ns {
	uint64_t ino;
	int fd;
};

/* What could not be restored, for the user. */
struct park_report {
	unsigned n;
	char text[400];
};

struct park_list {
	int proc, root, own_ns;		/* of PID 1's namespace */
	struct park_ns ns[PARK_MAX_NS]; /* [0] is PID 1's */
	size_t n_ns;
	struct park_mount *mounts;
	size_t n_mounts;
	struct park_item *items;
	size_t n_items;
	struct park_report lost;
};

/* skip: pids to ignore, ends with 0. */
int park_list_read(struct park_list *l, const pid_t *skip, struct err *err) MUST_CHECK;
/* Enters a namespace of the list; 0 is PID 1's. */
int park_list_enter(const struct park_list *l, size_t ns) MUST_CHECK;
void park_list_lose(struct park_list *l, pid_t pid, const char *what, const char *why);

/* Parses a line of mountinfo; false if it is not a virtiofs. */
bool park_list_mount(char *line, struct park_mount *ret);
/* The text of fdinfo. */
int park_list_fdinfo(const char *text, struct park_item *ret) MUST_CHECK;
