/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_internal - the parts of the guard. For guard*.c, hide.c, share.c and their tests only.
 *
 * How      guard_view.c turns a notification into a struct guard_call. guard_judge.c decides from
 *          names alone. guard_hand.c passes the call to the hand: guard_rename.c, guard_scan.c,
 *          guard_check.c, guard_dirty.c. In a test guard.hand is -1: all in one process.
 * Trust    Names and contents are the guest's.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>
#include "lib/os/jail/jail.h"
#include "scaffold.h"

#define GUARD_PATH_SIZE (PATH_MAX + NAME_MAX + 2)
#define GUARD_SEEN 8192 /* a power of two */
/* A verdict: the call continues as it is. */
#define GUARD_CONTINUE 1
/* A verdict: the hand made the file, and the call returns a descriptor of guard.sink_fd. */
#define GUARD_SINK 2

struct guard_mount {
	char *host, *guest;
	size_t n_guest;
	int fd; /* O_PATH; -1: a single file or a read-only mount, not guarded */
};

/* Hashes of paths. When it is half full, it forgets all of them. */
struct guard_seen {
	uint64_t slots[GUARD_SEEN];
	size_t n;
	uint8_t key[16];
};

struct guard {
	enum guard_level level;
	const struct autorun_list *list;
	struct guard_mount mounts[SCAFFOLD_MAX_PINS];
	size_t n_mounts;
	int dir_fd, event_fd, proc_fd;
	int sink_fd;   /* memory of one page, for what is written to a file with a fixed content */
	int hand;      /* a socket to the other process */
	uint32_t lost; /* events */
	struct guard_seen reported, told;
	struct autorun_memo memo; /* the supervisor's */
	uint32_t generation;	  /* of the list that `reported` is about */
	size_t n_rows, n_copied;
	uint32_t next_copy;
};

/* A name in the share. */
struct guard_path {
	char text[GUARD_PATH_SIZE];
	const char *rel; /* to the outermost workspace, by which it is judged; NULL: not guarded */
	const struct guard_mount *mount; /* the innermost one, with the path in it */
	const char *in_mount;
	size_t n_dir; /* bytes of text before the last component */
};

enum guard_type { GUARD_OPEN, GUARD_MODE, GUARD_REMOVE, GUARD_LINK, GUARD_SYMLINK, GUARD_RENAME };

struct guard_call {
	enum guard_type type;
	enum dirty_op op;
	unsigned flags;	 /* of renameat2 */
	mode_t mode;	 /* of chmod */
	bool a_is_link;	 /* a symbolic link */
	bool creates_fd; /* opens a name, and creates it */
	struct guard_path a, b;
	int fds[2];		/* the directories, for the hand */
	char content[PATH_MAX]; /* of a symbolic link */
};

/* ---- for share.c and hide.c ---- */

struct seccomp_notif;

int guard_new(const struct guard_config *cfg, const struct scaffold *scaffold, struct guard **ret,
	struct err *err) MUST_CHECK;
void guard_free(struct guard **g);
/* Forks the hand. From here on `g` is the supervisor's. */
int guard_start_hand(struct guard *g, struct jail_child *ret_child, struct err *err) MUST_CHECK;
/* Gives the process of the notification a descriptor of the sink. Returns its number. */
int guard_add_sink(const struct guard *g, int notify_fd, uint64_t id) MUST_CHECK;
/* The descriptors that the supervisor needs, at most GUARD_N_FDS. */
#define GUARD_N_FDS 5
size_t guard_fds(const struct guard *g, int *ret);
/* What is to be answered: GUARD_CONTINUE, GUARD_SINK; 0: the call was done; else a negative errno.
 * -EPIPE: the hand has ended. */
int guard_answer(struct guard *g, const struct seccomp_notif *req) MUST_CHECK;

/* ---- pure ---- */

/* Finds the workspace. -EACCES: the path is in none. `name` NULL: `dir` is the whole path. */
int guard_path_set(const struct guard *g, const char *dir, const char *name,
	struct guard_path *ret) MUST_CHECK;
/* Guarded or not. */
bool guard_is_in_mount(const struct guard *g, const char *path);
const char *guard_path_name(const struct guard_path *p);
/* The only content of a name with AUTORUN_FIXED; NULL: the name cannot be created. */
const char *guard_fixed_text(const struct guard_path *p);
/* GUARD_CONTINUE; GUARD_SINK: by the hand; -EACCES, -EPERM. *ret_ask: the hand is needed first. Not
 * for GUARD_RENAME. */
int guard_judge(struct guard *g, const struct guard_call *c, bool *ret_ask) MUST_CHECK;
/* What the list says about a path. *ret_tree as with autorun_find. */
void guard_find(struct guard *g, const char *rel, struct autorun_match *ret, size_t *ret_tree);
bool guard_is_refused(const struct autorun_match *m);
bool guard_is_reported(const struct autorun_match *m);
void guard_place_of(const struct guard *g, const struct guard_path *p, struct autorun_place *ret);

/* ---- the supervisor ---- */

/* guard_answer without a notification. */
int guard_decide(struct guard *g, struct guard_call *c) MUST_CHECK;
/* Forgets what was reported if `dirty` was removed. */
void guard_dirty_sync(struct guard *g);
/* The path under which a change is recorded: `p`, or the directory that stands for it. */
int guard_report_path(const struct guard *g, const struct guard_path *p, size_t tree,
	struct guard_path *ret) MUST_CHECK;
/* Sends an event if there is someone to read it. */
void guard_tell(struct guard *g, enum guard_what what, enum dirty_op op, unsigned kind,
	const struct guard_path *p, const char *reason);
/* Whether the path was not there before; adds it. */
bool guard_see(struct guard_seen *s, const char *path);
bool guard_knows(const struct guard_seen *s, const char *path);
void guard_forget(struct guard_seen *s);
int guard_ask_hand(struct guard *g, const struct guard_call *c) MUST_CHECK;

/* ---- the hand ---- */

void guard_hand_main(struct guard *g) __attribute__((noreturn));
/* 0: it was done; GUARD_SINK: the file was made; GUARD_CONTINUE: what had to be recorded was. */
int guard_hand_do(struct guard *g, const struct guard_call *c) MUST_CHECK;
/* Below the directory `name` of `dir`, which moves from `from` to `to`. -EACCES if an entry must
 * stay; else what is reported was recorded. */
int guard_scan(struct guard *g, int dir, const char *name, const struct guard_path *from,
	const struct guard_path *to) MUST_CHECK;
int guard_check_write(
	struct guard *g, const struct guard_call *c, const struct autorun_match *m) MUST_CHECK;
/* Records the path if its row says so, once, with a copy of what it is now. */
int guard_note(struct guard *g, const struct guard_path *p, enum dirty_op op) MUST_CHECK;
/* A directory moves: what is recorded below it is recorded there, too. A file that is still being
 * made there was not seen by the scan. */
int guard_note_moved(
	struct guard *g, const struct guard_path *from, const struct guard_path *to) MUST_CHECK;
/* The same as guard_note for any row, as the result of a check. */
int guard_note_checked(
	struct guard *g, const struct guard_path *p, const struct autorun_match *m) MUST_CHECK;
int guard_dirty_load(struct guard *g, struct err *err) MUST_CHECK;
