/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm_internal - what vmm.c (the process and its socket), vmm_event.c (what qemu's messages mean)
 * and vmm_flow.c (what takes several commands) share.
 */
#pragma once

#include "qmp.h"
#include "vmm.h"

/* What an answer belongs to; vmm_on_item has the next step. */
enum tag {
	TAG_PLAIN, /* pause, power-down: only a refusal is reported */
	TAG_CONT,  /* resume: the same, after more attempts */
	TAG_QUIT,
	TAG_CONSOLE,
	TAG_UNDO, /* its outcome changes nothing */
	/* The steps of vmm_flow.c, in their order. */
	TAG_SHARE_FD,
	TAG_SHARE_CHARDEV,
	TAG_SHARE_DEVICE,
	TAG_DETACH_DEVICE,
	TAG_DETACH_CHARDEV,
	TAG_SAVE_STOP,
	TAG_SAVE_CAPS,
	TAG_SAVE_LIMIT,
	TAG_SAVE_FD,
	TAG_SAVE_MIGRATE,
	TAG_RESTORE_CAPS,
	TAG_RESTORE_FD,
	TAG_RESTORE_MIGRATE,
	TAG_SNAP_FD,
	TAG_SNAP_FD_RO,
	TAG_SNAP_NODE,
	TAG_SNAP_DO,
	N_TAGS,
};

struct vmm {
	struct jail_child child;
	int fd;
	struct qmp qmp;
	uint8_t in[4096];
	struct slice rest;    /* of `in`, not fed yet */
	unsigned n_reads;     /* since vmm_next last gave 0 */
	uint64_t deadline_ms; /* of the command on the wire */
	uint32_t timed_id;    /* the command that deadline is for */
	bool ending;	      /* shut down, reset or quit was sent: the exit is expected */
	bool dead;	      /* VMM_EV_ENDED or VMM_EV_FATAL was given */
	bool incoming;
	bool stopped; /* the machine, by us or by an error of a disk */
	int memory_fd;
	int image_fd; /* between vmm_save or vmm_restore and its turn */
	enum { MIGRATE_NONE, MIGRATE_SAVE, MIGRATE_RESTORE } migrating;
	uint64_t migrate_ms; /* when that is overdue */
	bool detaching;	     /* vmm_detach_share waits for the device's end ... */
	uint64_t detach_ms;  /* ... until then */
	unsigned n_detach_tries;
	unsigned n_cont_tries;
	bool snapping;
	enum vmm_disk_id snap_disk;
	int snap_fd;			   /* our copy of the overlay's descriptor; see top_fd */
	int snap_fd_ro;			   /* the overlay for reading only, until its turn */
	int top_fd[VMM_N_DISKS];	   /* the same of the top; -1: the file of the start */
	unsigned n_snapshots[VMM_N_DISKS]; /* created ones */
	unsigned n_sets;		   /* of descriptors, ever */
	unsigned n_console_reads;
	char tail[VMM_MAX_TAIL];
	size_t n_tail;
};

/* Queues a command and sends what fits; takes args and fd. */
int vmm_command(struct vmm *v, enum tag tag, const char *name, json_t *args, int fd) MUST_CHECK;
int vmm_read_console(struct vmm *v) MUST_CHECK;
/* 1 and an event for the owner, or 0. */
int vmm_on_item(struct vmm *v, const struct qmp_item *it, struct vmm_event *ev) MUST_CHECK;
/* Fill an event and give 1; vmm_fail also ends the conversation. */
int vmm_tell(struct vmm_event *ev, enum vmm_event_kind kind, const char *text);
int vmm_fail(struct vmm *v, struct vmm_event *ev, const char *text);

/* vmm_flow.c: what follows from an answer to one of its steps. */
int vmm_flow_on_success(struct vmm *v, enum tag tag, struct vmm_event *ev) MUST_CHECK;
int vmm_flow_on_failure(
	struct vmm *v, enum tag tag, const char *text, struct vmm_event *ev) MUST_CHECK;
int vmm_flow_on_share_gone(struct vmm *v, struct vmm_event *ev) MUST_CHECK;
int vmm_flow_on_migration(struct vmm *v, const char *status, struct vmm_event *ev) MUST_CHECK;
/* UINT64_MAX when nothing is under way. */
uint64_t vmm_flow_deadline(const struct vmm *v);
int vmm_flow_on_overdue(struct vmm *v, struct vmm_event *ev) MUST_CHECK;
