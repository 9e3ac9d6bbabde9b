/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend - suspend, resume and the idle timeout.
 *
 * How      suspend.c saves the VM to the sandbox's directory, resume.c restores it, idle.c suspends
 *          an idle sandbox, point.c keeps what is saved as a checkpoint. Their own comments
 *          describe the steps.
 * Trust    The guest replies yes or no with a text for users. The files are the user's own, and
 *          checked.
 * Owns     The children that write and check the snapshot.
 * Limits   The timeouts below; those of lib/vm/vmm/vmm.h and lib/vm/vmm/image/image.h.
 * See      suspend_file.h, docs/suspend.md
 */
#pragma once

#include "suspend_file.h"
#include "lib/base/clock.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"

#define KEEPER_PARK_MS clock_limit_ms(30000) /* to freeze the programs and write the files */
#define KEEPER_WAKE_MS clock_limit_ms(90000)
#define KEEPER_PARK_LINGER_MS 300 /* for the last bytes of the guest to reach clients */
#define KEEPER_WAKE_AGAIN_MS 1000 /* between two /wake to a guest that is still parking */
/* Disk space besides the memory: mostly data that the guest has not written to its disks yet. */
#define SUSPEND_MORE (64ull << 20)
#define KEEPER_IDLE_LOOK_MS 60000     /* longest time between two checks for idleness */
#define KEEPER_IDLE_TRAFFIC_MS 600000 /* without network traffic, before the idle timeout */
#define KEEPER_IDLE_PERCENT 2	      /* of one CPU: a sandbox below it is idle */

struct keeper;

enum suspend_step {
	SUSPEND_NONE,
	SUSPEND_PARKING,
	SUSPEND_DETACHING,
	SUSPEND_LINGERING,
	SUSPEND_SAVING,
	SUSPEND_QUITTING,
};

struct suspend {
	enum suspend_step step;
	struct image_save save;
	struct image_check check;
	struct suspend_file file;
	uint64_t parked_ms; /* monotonic: when the guest was parked */
	unsigned n_saved;   /* how many of qemu and the child have reported success */
	bool is_paused;	    /* the VM, while it is saved */
	bool is_cancelled;  /* the disk is full: the guest is woken when it has parked */
	bool is_undone;	    /* the sandbox was not suspended, and is being woken */
	bool is_share_lost; /* virtiofsd exited meanwhile */
	bool is_used; /* the snapshot is renamed, and deleted when qemu reports a running VM */
	bool is_checked, is_ready;
	bool is_waking;	    /* /wake is due before /setup ... */
	bool is_share_due;  /* ... once qemu has attached the share */
	bool is_checkpoint; /* the VM continues when it is saved */
	const char *by;	    /* SUSPEND_BY_* */
	int link;	    /* of the request, -1: none */
	uint32_t link_gen, msg;
	char lost[GUEST_MAX_TEXT]; /* the guest's text about what was not restored */
	struct loop_timer timer;
};

struct idle {
	bool has_look;
	uint64_t since_ms; /* monotonic: idle since then */
	uint64_t cpu_ms, uptime_ms;
	struct loop_timer timer;
};

/* suspend.c */
void suspend_init(struct keeper *k);
/* by: SUSPEND_BY_*. DONE is sent to the link when it is finished (-1: to none). */
int suspend_begin(
	struct keeper *k, const char *by, int link, uint32_t msg, struct err *err) MUST_CHECK;
/* The same for a checkpoint with memory of freeze.h, which is told the result. */
int suspend_begin_checkpoint(struct keeper *k, struct err *err) MUST_CHECK;
/* The paused VM writes to new disk files, or code has the failure. */
void suspend_on_layers(struct keeper *k, int code, const char *text);
void suspend_on_saved(struct keeper *k);
void suspend_on_timer(struct keeper *k);
/* qemu has paused the VM: the host's disk is full. */
void suspend_on_full(struct keeper *k);
void suspend_on_share_end(struct keeper *k);
/* The VM that was being woken no longer exists: the sandbox boots instead. */
void suspend_forget_wake(struct keeper *k);
/* Return true if the event is handled. */
bool suspend_on_vmm(struct keeper *k, const struct vmm_event *ev);
bool suspend_on_qemu_end(struct keeper *k);
/* The sandbox is being stopped. */
void suspend_drop(struct keeper *k);
/* Starts virtiofsd and attaches the share, if the VM has none. */
int suspend_give_share(struct keeper *k, struct err *err) MUST_CHECK;
int suspend_send_wake(struct keeper *k, struct err *err) MUST_CHECK;

/* point.c */
/* The VM is saved and paused: the snapshot becomes the memory of a checkpoint. */
int point_keep(struct keeper *k, struct err *err) MUST_CHECK;

/* resume.c */
/* Returns 1 if the VM is being restored, 0 if the snapshot can never be used and the plan is now
 * START_COLD, negative if the snapshot cannot be used now and is kept. */
int resume_begin(struct keeper *k, struct err *err) MUST_CHECK;
void resume_on_checked(struct keeper *k);
bool resume_on_vmm(struct keeper *k, const struct vmm_event *ev);
/* qemu exited or the timeout expired. Returns true if that ends a resume: the start fails and the
 * snapshot is kept. */
bool resume_on_failure(struct keeper *k, const char *why);
void resume_drop(struct keeper *k);

/* idle.c */
void idle_start(struct keeper *k);
void idle_on_timer(struct keeper *k);
/* SUSPEND_IDLE: suspends the sandbox if it is idle. DONE is sent to the link. */
void idle_begin_stop(struct keeper *k, int link, uint32_t msg);
