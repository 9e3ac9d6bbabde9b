/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - the steps that turn the workspaces of now into what the sandbox shows.
 *
 * How      Each entry of a bundle is compared with the host. What is equal is dropped. Directories
 *          that replace others, deleted directories and changes of type become explicit steps, one
 *          per path, in the order in which they can be done: deletions from below, new directories,
 *          files and links, modes of directories. A step has the state of the host that it
 *          requires (`old`) and the state that it leaves (`new`). A class says what a person should
 *          look at. A path that the host has changed since the sandbox was created is a conflict.
 * Trust    The bundle is checked (bundle.h), its contents are a guest's.
 * Owns     Its steps, until plan_done. Entries of the bundle are borrowed.
 * Limits   STAGE_MAX_ENTRIES steps.
 * Not      Conflicts are merged, and files that the host has deleted are found, by
 *          src/sbx/stage/merge/merge.h.
 * See      bundle.h, look.h, apply.h, stage_oracle_test.c
 */
#pragma once

#include "bundle.h"
#include "known.h"
#include "look.h"

#define PLAN_HUGE (4ull << 20)

enum plan_kind { PLAN_DELETE, PLAN_RMDIR, PLAN_MKDIR, PLAN_PUT, PLAN_CHMOD, PLAN_N_KINDS };

enum plan_class {
	PLAN_PLAIN,
	PLAN_MERGED,	  /* text with the changes of the host and of the sandbox */
	PLAN_LOCKFILE,	  /* exact versions of dependencies */
	PLAN_EXEC,	  /* a file that becomes executable */
	PLAN_AUTORUN,	  /* a program of the host runs or believes it */
	PLAN_CI,	  /* autorun: a CI service runs it */
	PLAN_CONTAINER,	  /* autorun: builds or configures a container */
	PLAN_DEPENDENCY,  /* names a dependency or source that it did not name before */
	PLAN_SCRIPT,	  /* another script of package.json */
	PLAN_UNICODE,	  /* text that is not what it looks like */
	PLAN_SYMLINK,	  /* a link inside the workspace */
	PLAN_BINARY,	  /* not text */
	PLAN_LARGE,	  /* above PLAN_HUGE */
	PLAN_GIT,	  /* below .git: only by its path */
	PLAN_CASE,	  /* a name that differs from another one in case only: only by its path */
	PLAN_SECRET,	  /* has a credential of the vault: only by its path */
	PLAN_CONFLICT,	  /* the host has changed it, too: only by its path */
	PLAN_SYMLINK_OUT, /* a link out of the workspace: never applied, as all below */
	PLAN_HIDDEN,	  /* a name of --hide */
	PLAN_MOVING,	  /* it changed while it was read */
	PLAN_SPECIAL,	  /* a FIFO, socket or device, here or there */
	PLAN_N_CLASSES,
};

struct plan_step {
	enum plan_kind kind;
	enum plan_class class;
	size_t ws;
	char *path;
	struct look old, new; /* of new: type, mode, size, hash */
	const struct bundle_entry *entry;
	bool wanted;
	bool host_changed; /* old is a change of the host */
	char *merged;	   /* file with the content of new (saved.h); NULL: the entry has it */
	char *notes;	   /* for people: "dependency: a, b"; NULL: none (notes.h) */
};

struct plan_input {
	const struct bundle *bundle;
	const int *roots; /* of the workspaces */
	int64_t base_ns;  /* when the sandbox was created */
	const struct known *known;
	char *const *hide;
	size_t n_hide;
	/* Whether a program of the host runs or believes a file at this path; NULL: none. */
	bool (*runs)(void *arg, const char *path);
	void *arg;
	uint64_t until_ms; /* clock_mono_ms; later: -ETIMEDOUT; 0: no limit */
};

struct plan {
	struct plan_step *v;
	size_t n;
};

const char *plan_class_name(enum plan_class class);
int plan_make(const struct plan_input *in, struct plan *ret, struct err *err) MUST_CHECK;
void plan_done(struct plan *p);
/* The class of a step for a file without regard to changes of the host. */
enum plan_class plan_class_alone(const struct plan_input *in, const struct plan_step *s);
#define AUTO_PLAN CLEANUP(plan_done)

/* Selects the steps of a class. */
void plan_want_class(struct plan *p, enum plan_class class);
/* Selects a path and everything below it. Classes that need their path only with the path itself.
 * Returns the number of steps. */
size_t plan_want_path(struct plan *p, size_t ws, const char *path);
/* Directories, and deletions in the way, that selected steps require. */
void plan_want_parents(struct plan *p);
