/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail - starts a program with only the resources of its profile, in four stages.
 *
 * How      jail_spawn forks into new user, pid, mount, ipc, uts, cgroup and empty net namespaces
 *          (the host's network for the egress profile). The child is pid 1 there and goes through
 *          jail_start (session, signals, rlimits), jail_enter (uid map, a read-only tmpfs root with
 *          only the plan's mounts, pivot_root), jail_files (Landlock where the kernel has it) and
 *          jail_lock (capabilities, seccomp), then executes the program. Our own programs call
 *          jail_seal in their main once they are set up, which narrows the list to what their loop
 *          needs and kills on violation.
 * Trust    Runs in keeper (spawn) and in the jailed program itself (seal). Sees no guest bytes.
 * Owns     The child dies with the process that started it (not JAIL_NOTIFY): the parent-death
 *          signal is set after the last change of credentials, then the parent proves that it still
 *          runs. The caller reaps the child through its pidfd.
 * Limits   JAIL_START_TIMEOUT_MS; JAIL_MAX_FDS; the rlimits of the profile.
 * Never    Starts the program with less than its profile: a stage that fails is an error. A second
 *          exec is impossible: seccomp allows execveat of one fd number only, which is above
 *          RLIMIT_NOFILE and is closed by the first exec. Supplementary groups stay (an
 *          unprivileged user namespace cannot drop them): bind nothing that only a group protects.
 * See      profiles.c (one row a program), cgroup.h, tree.h, jail_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"

enum jail_profile {
	JAIL_EDGE, /* ours, static: empty root, no files, creates no sockets, no exec */
	JAIL_QEMU, /* foreign: its libraries read-only, the sandbox's disks, perhaps /dev/kvm */
	JAIL_VIRTIOFSD, /* foreign: the share; file capabilities inside its user namespace */
	JAIL_EGRESS,	/* ours, static: empty root, no files, no exec; the host's network */
	JAIL_VAULT,	/* ours, static: the vault's directory, creates no sockets, no exec */
	JAIL_SSH_AGENT, /* ours, static: empty root, no files, creates no sockets, no exec */
	JAIL_ORIGIN,	/* ours, static: empty root, no files, only passed sockets; a credential */
	JAIL_TEMPLATE,	/* foreign: the tools that read images and disks of strangers; no network */
	JAIL_GIT,	/* foreign: git that reads what a guest's git sends; no network */
	JAIL_NOTIFY,	/* ours: empty root, no files, only the sockets that it has; no secret */
	JAIL_CLERK_GIT, /* ours, static: empty root, no files, only passed sockets; no secret */
	JAIL_CLERK,	/* the same */
	JAIL_HIDE,	/* ours, a fork of keeper that seals itself: answers for hidden names */
	JAIL_GUARD,	/* the same, which answers for guarded names, too */
	JAIL_HAND,	/* ours, a fork that seals itself: renames and copies for JAIL_GUARD */
	JAIL_KEEPER, /* ours, seals itself: files of its sandbox, no exec, no connect (broker.h) */
	JAIL_SBXD,   /* the same for sbxd: sbx's own directories, listening sockets only */
	JAIL_N_PROFILES,
};

enum jail_mount_flags {
	JAIL_MOUNT_RW = 1 << 0,	      /* default is read-only */
	JAIL_MOUNT_DEV = 1 << 1,      /* a device node: keep it usable */
	JAIL_MOUNT_OPTIONAL = 1 << 2, /* skip if the source does not exist */
};

/* A host file or directory and the absolute place inside the new root where it is bound. */
struct jail_mount {
	const char *from;
	const char *to;
	unsigned flags;
};

/* fd `from` of the caller becomes fd `to` of the program; everything not listed is closed. */
struct jail_fd {
	int from;
	int to;
};

/* A directory (or file) that mounts may come from, without symbolic links in its path. */
struct jail_root {
	const char *path;
	bool rw;
};

struct jail_plan {
	enum jail_profile profile;
	const char *program; /* host path; opened before the root changes */
	char *const *argv;
	char *const *envp; /* NULL: empty environment */
	const struct jail_mount *mounts;
	size_t n_mounts;
	/* If set, each resolved mount must be below one of them, a writable one below a writable
	 * one. */
	const struct jail_root *roots;
	size_t n_roots;
	const struct jail_fd *fds;
	size_t n_fds;
	/* Becomes stdout and stderr of the program; -1: /dev/null. Edge cannot write to regular
	 * files (fsize 0): pass a pipe, a line to a file is lost. */
	int log_fd;
	/* Runs in the child with its own mount namespace and all capabilities in it, before the
	 * root changes: builds what the mount list cannot say below the fd `new_root`, with tree.h.
	 * All fds of the caller are still open. NULL when there is nothing. */
	int (*scaffold)(void *ctx, int new_root, struct err *err);
	void *scaffold_ctx;
	bool special_files; /* virtiofsd: it may create FIFOs and sockets */
	/* System calls that take a path are answered by the holder of jail_child.notify_fd. */
	bool notify_paths;
	/* So are those that make, change or remove a name, or open a file for writing. openat2 is
	 * absent: a filter cannot see its flags. */
	bool notify_changes;
	/* So is a question (statx) about a descriptor in the last quarter of its limit. */
	bool notify_full;
};

struct jail_child {
	pid_t pid;
	int pidfd;
	int notify_fd;	 /* seccomp user notification, -1 without jail_plan.notify_* */
	unsigned nofile; /* how many descriptors it may have */
};

/* The first descriptor of which jail_plan.notify_full speaks. */
static inline unsigned jail_full_at(unsigned nofile)
{
	return nofile - nofile / 4;
}

/* Starts the program. On return it has passed every stage and is executing, or there is an error
 * that names the stage. Waits at most JAIL_START_TIMEOUT_MS. */
#define JAIL_START_TIMEOUT_MS 5000
#define JAIL_MAX_FDS 32
/* Address space of sbx-edge, for src/edge/budget.c. */
#define JAIL_EDGE_AS (768 * 1024 * 1024)
/* The largest file that a jailed git writes. */
#define JAIL_GIT_FSIZE (UINT64_C(2) << 30)
int jail_spawn(
	const struct jail_plan *plan, struct jail_child *ret_child, struct err *err) MUST_CHECK;

/* Whether the kernel has seccomp notification, which jail_plan.notify_* needs. */
bool jail_can_notify(void);

/* Kills the child, waits for its end (at most JAIL_START_TIMEOUT_MS), closes its fds. */
void jail_child_kill(struct jail_child *child);

/* For a process in new namespaces whose ids newuidmap has mapped (unshare --map-auto): all stages
 * but those two, then `argv`, which may execute further programs of the new root. stdin, stdout and
 * stderr stay. Returns only with an error. */
int jail_exec(enum jail_profile profile, const struct jail_mount *mounts, size_t n_mounts,
	char *const *argv, char *const *envp, struct err *err) MUST_CHECK;

/* The last stage, called by one of our own programs: final seccomp list, kill on violation. */
int jail_seal(enum jail_profile profile, struct err *err) MUST_CHECK;
/* Both, and the check that no process traced this one before it was sealed. */
int jail_go_in(enum jail_profile profile, const struct jail_mount *mounts, size_t n_mounts,
	struct err *err) MUST_CHECK;
/* The path of the program's mounts after it entered the jail. */
const char *jail_place(const struct jail_mount *mount);
