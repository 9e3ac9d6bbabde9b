/*
 * vmm_internal - what vmm.c (the process and its socket) and vmm_event.c (what qemu's messages
 * mean) share.
 */
#pragma once

#include "qmp.h"
#include "vmm.h"

/* What an answer belongs to; vmm_on_item says what follows. */
enum tag {
	TAG_PLAIN, /* pause, resume, power-down: only a refusal is told */
	TAG_QUIT,
	TAG_CONSOLE,
	TAG_CTL_DEL,
	TAG_CTL_ADD,
	TAG_SHARE_FD,
	TAG_SHARE_CHARDEV,
	TAG_SHARE_DEVICE,
	TAG_SHARE_UNDO, /* its outcome changes nothing */
	TAG_SAVE_STOP,
	TAG_SAVE_CAPS,
	TAG_SAVE_FD,
	TAG_SAVE_MIGRATE,
	TAG_RESTORE_CAPS,
	TAG_RESTORE_MIGRATE,
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
	bool ending;	      /* shut down, reset or told to quit: what follows is no surprise */
	bool dead;	      /* VMM_EV_ENDED or VMM_EV_FATAL was given */
	bool restoring;
	int save_fd; /* between vmm_save and its turn */
	enum { MIGRATE_NONE, MIGRATE_SAVE, MIGRATE_RESTORE } migrating;
	unsigned n_console_reads;
	bool renewing; /* vmm_renew_ctl waits for the old port's end */
	unsigned n_ctl_tries;
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
