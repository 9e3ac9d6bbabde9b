/*
 * jail - starting a program with nothing but what its profile names, in four named stages.
 *
 * How      jail_spawn forks; the child goes through jail_start (fds, environment, rlimits),
 *          jail_enter (user, pid, mount, ipc, uts, empty net namespaces; a tmpfs root with only
 *          the plan's mounts, by pivot_root), jail_files (Landlock where the kernel has it),
 *          drops every capability the profile does not name, sets no_new_privs, installs the
 *          profile's seccomp list and executes the program. Our own programs call jail_seal
 *          in their main once they are set up, which narrows the list to what their loop needs.
 * Trust    Runs in keeper (spawn) and in the jailed program itself (seal). Sees no guest bytes.
 * Owns     The child dies with the process that started it (parent-death signal, set after the
 *          last change of credentials, then a check that the parent is still there).
 * Never    Starts the program with less than the profile says: any stage that fails is an error.
 * See      profiles.c (one row a program), proto/PROTOCOL.ipc (fixed fds), jail_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"

enum jail_profile {
	JAIL_EDGE, /* ours, static: empty root, no files, no sockets of its own, no exec */
	JAIL_QEMU, /* foreign: its libraries read-only, the sandbox's disks, perhaps /dev/kvm */
	JAIL_VIRTIOFSD, /* foreign: the share scaffold; file capabilities inside its user namespace
			 */
	JAIL_N_PROFILES,
};

enum jail_mount_flags {
	JAIL_MOUNT_RW = 1 << 0,	      /* default is read-only */
	JAIL_MOUNT_DEV = 1 << 1,      /* a device node: keep it usable */
	JAIL_MOUNT_OPTIONAL = 1 << 2, /* skip when the source is not there */
};

/* A host file or folder and the absolute place inside the new root where it is bound. */
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

struct jail_plan {
	enum jail_profile profile;
	const char *program; /* host path; opened before the root changes */
	char *const *argv;
	char *const *envp; /* NULL: empty environment */
	const struct jail_mount *mounts;
	size_t n_mounts;
	const struct jail_fd *fds;
	size_t n_fds;
	int log_fd;	     /* becomes stdout and stderr of the program; -1: nowhere */
	uint64_t memory_max; /* cgroup limit in bytes where one can be delegated; 0: none */
	const char *cgroup;  /* folder of a delegated cgroup to put it into, or NULL */
	/* Runs in the child with its own mount namespace, before the root changes: builds what the
	 * mount list cannot say below `new_root`. NULL when there is nothing. */
	int (*scaffold)(void *ctx, const char *new_root, struct err *err);
	void *scaffold_ctx;
};

struct jail_child {
	pid_t pid;
	int pidfd;
	int notify_fd; /* seccomp user notification of the program, -1 when the profile has none */
};

/* Starts the program. On return it has passed every stage and is executing, or there is an error
 * that names the stage. Waits at most JAIL_START_TIMEOUT_MS. */
#define JAIL_START_TIMEOUT_MS 5000
int jail_spawn(
	const struct jail_plan *plan, struct jail_child *ret_child, struct err *err) MUST_CHECK;

/* The last stage, called by one of our own programs: final seccomp list, kill on violation. */
int jail_seal(enum jail_profile profile, struct err *err) MUST_CHECK;
