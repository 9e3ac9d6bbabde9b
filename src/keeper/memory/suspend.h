/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend - what the keeper has of a memory that goes to the sandbox's folder and comes back.
 *
 * How      suspend.c is the way down, resume.c the way up, idle.c the clock that starts it. Each
 *          handles the events of the loop that are named for it; their own comments say how.
 * Trust    The guest says yes or no and a text for people; the files are the user's, and checked.
 * Owns     The children that pack and check.
 * Limits   The times below; those of lib/vm/vmm/vmm.h and lib/vm/vmm/image/image.h.
 * See      suspend_file.h, docs/suspend.md
 */
#pragma once

#include "suspend_file.h"
#include "lib/base/clock.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"

#define KEEPER_PARK_MS  \
	clock_limit_ms( \
		30000) /* for the guest's programs to stand still and its files to be written */
#define KEEPER_WAKE_MS clock_limit_ms(90000)
#define KEEPER_PARK_LINGER_MS 300 /* what the guest said last is on its way to clients */
#define KEEPER_WAKE_AGAIN_MS 1000 /* between two questions to a guest that is parking still */
/* What is written besides the memory: what the guest has not written to its disks yet, mostly. */
#define SUSPEND_MORE (64ull << 20)
#define KEEPER_IDLE_LOOK_MS 60000 /* between two looks at an idle sandbox, at most */
#define KEEPER_IDLE_PERCENT 2	  /* of one CPU: who does less does nothing */

struct keeper;

/* How far the sandbox's memory is on its way to its folder. */
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
	unsigned n_saved;   /* of qemu and the child, who has said that it is whole */
	bool is_paused;	    /* the machine, for the saving */
	bool is_cancelled;  /* the disk is full: when the guest has parked, it is woken */
	bool is_undone;	    /* it was not suspended, and is being woken */
	bool is_share_lost; /* virtiofsd ended meanwhile */
	bool is_used; /* the snapshot is renamed, and deleted when qemu reports a running VM */
	bool is_checked, is_ready;
	bool is_waking;	   /* the guest is to be sent /wake before /setup ... */
	bool is_share_due; /* ... once qemu has plugged the share in */
	bool is_idle;	   /* nobody asked for it but the idle time-out */
	int link;	   /* who asked, -1: nobody */
	uint32_t link_gen, msg;
	char lost
		/* what is not as before, in the guest's words; shown while it runs */
		[GUEST_MAX_TEXT];
	struct loop_timer timer;
};

/* What was seen of a sandbox that nobody uses. */
struct idle {
	bool has_look;
	uint64_t since_ms; /* monotonic: nobody used it from then on */
	uint64_t cpu_ms, uptime_ms;
	struct loop_timer timer;
};

/* suspend.c: the memory goes to the sandbox's folder. */
void suspend_init(struct keeper *k);
/* DONE follows for who asked (link -1: nobody). */
int suspend_begin(struct keeper *k, int link, uint32_t msg, struct err *err) MUST_CHECK;
void suspend_on_saved(struct keeper *k);
void suspend_on_timer(struct keeper *k);
/* qemu has paused the machine, since the host's disk is full. */
void suspend_on_full(struct keeper *k);
void suspend_on_share_end(struct keeper *k);
/* The machine that was to be woken is gone, and the sandbox boots instead. */
void suspend_forget_wake(struct keeper *k);
/* True when it was about this. */
bool suspend_on_vmm(struct keeper *k, const struct vmm_event *ev);
bool suspend_on_qemu_end(struct keeper *k);
/* It is being stopped for good. */
void suspend_drop(struct keeper *k);
/* Starts virtiofsd and plugs the share in, when there is none. */
int suspend_give_share(struct keeper *k, struct err *err) MUST_CHECK;
int suspend_send_wake(struct keeper *k, struct err *err) MUST_CHECK;

/* resume.c: and comes back from there. */
/* Returns 1 if the VM is being restored, 0 if the snapshot can never be used and the plan is now
 * START_COLD, negative if the snapshot cannot be used now and is kept. */
int resume_begin(struct keeper *k, struct err *err) MUST_CHECK;
void resume_on_checked(struct keeper *k);
bool resume_on_vmm(struct keeper *k, const struct vmm_event *ev);
/* qemu ended or time is up. True: the start ends, and the memory is kept. */
bool resume_on_failure(struct keeper *k, const char *why);
void resume_drop(struct keeper *k);

/* idle.c: a sandbox that nobody uses is suspended. */
void idle_start(struct keeper *k);
void idle_on_timer(struct keeper *k);
