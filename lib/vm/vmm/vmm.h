/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm - one virtual machine: start, watch, pause, save, restore, attach a share, snapshot a disk,
 * stop.
 *
 * How      struct vmm hides the engine; vmm.c and vmm_event.c are the QEMU one. vmm_start
 *          spawns qemu in its jail with QMP on an inherited socket. The owner watches vmm_poll_fd
 *          for vmm_poll_events and the child's pidfd for the end; vmm_next gives one event at a
 *          time. Only vmm_start (within jail_spawn's bound) and vmm_done (which kills first) wait.
 * Trust    Runs in keeper. qemu is untrusted: its text is limited and cleaned, unexpected messages
 *          are ignored or fatal. It can lie only about the VM.
 * Owns     The child and the QMP socket. Never the fds in struct vmm_config, which the caller may
 *          close after vmm_start.
 * Limits   VMM_MAX_CPUS, VMM_MAX_LAYERS, VMM_MAX_SNAPSHOTS, VMM_MAX_TEXT, VMM_MAX_CMDLINE; a
 *          command is overdue after VMM_COMMAND_MS, a saved or restored image after VMM_SAVE_MS,
 *          then vmm_next gives VMM_EV_FATAL.
 * Never    Starts TCG unless the config requests it (see selftest.h for the choice).
 * See      args.h (the command line), qmp.h, disk.h, initrd.h, vmm_boot_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/os/jail/jail.h"

#define VMM_MAX_CPUS 64
#define VMM_MIN_MEMORY (96ULL << 20)
#define VMM_MAX_TEXT 512
#define VMM_MAX_CMDLINE 1024	     /* bytes of cmdline_extra */
#define VMM_CONSOLE_BYTES (64 << 10) /* what the ring of the guest's console keeps */
#define VMM_MAX_TAIL (8 << 10)	     /* what vmm_console_tail gives at most */
#define VMM_COMMAND_MS clock_limit_ms(15000)
#define VMM_SAVE_MS clock_limit_ms(120000)
#define VMM_DETACH_MS clock_limit_ms(10000) /* of a machine that runs, to let go of the share */
#define VMM_MAX_LAYERS 48		    /* files of one disk, base and top included */
#define VMM_MAX_SNAPSHOTS 32		    /* of one disk in one run */

/* Emulation has one thread for all processors, or one for each where qemu can do that:
 * emulator.h. */
enum vmm_accel { VMM_KVM, VMM_TCG, VMM_TCG_PARALLEL };

/* files[0] is a raw image, the others are qcow2 overlays upwards; only the last is written. What
 * the overlays say about their backing is ignored. n is 0 for no disk, else 2 or more. */
struct vmm_disk {
	const char *files[VMM_MAX_LAYERS];
	size_t n;
};

enum vmm_disk_id { VMM_ROOT, VMM_DOCKER, VMM_N_DISKS };

struct vmm_config {
	const char *kernel;
	const char *initrd;
	struct vmm_disk disks[VMM_N_DISKS]; /* /dev/vda and /dev/vdb */
	unsigned cpus;
	uint64_t memory;	/* bytes */
	int memory_fd;		/* from vmm_memory_new, of that size; -1: vmm_start makes it ... */
	const char *memory_dir; /* ... in this directory; NULL: as a memfd */
	enum vmm_accel accel;
	int ctl_listen_fd;	   /* listening unix stream socket of the port sbx.ctl */
	int net_listen_fd;	   /* the same for the port sbx.net; -1: none */
	int share_fd;		   /* connected vhost-user socket for the tag `sbx`; -1: none */
	int log_fd;		   /* qemu's stdout and stderr; -1: nowhere */
	const char *cmdline_extra; /* appended to the kernel command line; NULL: nothing */
	bool incoming;		   /* does not boot: waits for vmm_restore. Needs share_fd -1 */
	const char *stub; /* for qemu if incoming, in the place of the kernel (stub.h); or NULL */
};

enum vmm_event_kind {
	VMM_EV_READY,	 /* QMP is up; the machine runs (or waits to be restored) */
	VMM_EV_CTL_OPEN, /* the guest opened sbx.ctl */
	VMM_EV_CTL_CLOSED,
	VMM_EV_SHUTDOWN, /* the guest powered off; qemu gets quit, its pidfd follows */
	VMM_EV_RESET,	 /* the guest panicked or rebooted, or qemu was killed (text): the machine
			  * is stopped, the console can be read, then vmm_quit or vmm_kill */
	VMM_EV_PAUSED,
	VMM_EV_RESUMED,
	VMM_EV_DISK_FULL, /* the host has no space: the machine is paused; vmm_resume tries again */
	VMM_EV_DISK_ERROR, /* a disk error, reported to the guest */
	VMM_EV_SHARE_ATTACHED,
	VMM_EV_SHARE_FAILED, /* text */
	VMM_EV_SHARE_DETACHED,
	VMM_EV_SHARE_DETACH_FAILED, /* text; the share is attached, or may be removed later */
	VMM_EV_SNAPSHOT,	    /* the disk is written to its new overlay from now on */
	VMM_EV_SNAPSHOT_FAILED,	    /* text; it is written where it was */
	VMM_EV_SAVED,
	VMM_EV_SAVE_FAILED, /* text */
	VMM_EV_RESTORED,    /* paused at the saved instant; vmm_resume continues */
	VMM_EV_RESTORE_FAILED,
	VMM_EV_CONSOLE, /* console/console_len: the answer to vmm_console_tail */
	VMM_EV_REFUSED, /* qemu refused a pause, resume or power-down: text */
	VMM_EV_ENDED,	/* QMP closed after a shutdown or quit; take vmm_poll_fd out of the loop */
	VMM_EV_FATAL,	/* qemu broke the protocol, is overdue or fell: as above, then vmm_kill */
	VMM_N_EVENTS,
};

/* `text` has no control characters. `console` points into the vmm and is good until the next
 * call: printable bytes, newlines and tabs only. */
struct vmm_event {
	enum vmm_event_kind kind;
	char text[VMM_MAX_TEXT];
	const char *console;
	size_t console_len;
};

struct vmm;

/* The guest's memory, all zeros. Without a directory: a memfd whose size cannot change. With one: a
 * sparse file without a name there, which image_save_begin may give one. Its pages can leave the
 * host's memory; a page that finds no space on the disk kills the processes that touch it. */
int vmm_memory_new(uint64_t bytes, const char *dir, struct err *err) MUST_CHECK;
/* Whether a file for it is possible in this directory: not if it can wait for a server or has no
 * space that the free space does not show (a quota), since that kills the processes. */
int vmm_memory_check(const char *dir, struct err *err) MUST_CHECK;
/* The same of a machine; it stays the machine's. */
int vmm_memory_fd(const struct vmm *vmm);

/* Spawns qemu. On success the VM boots; VMM_EV_READY follows within about a second. */
int vmm_start(const struct vmm_config *config, struct vmm **ret_vmm, struct err *err) MUST_CHECK;
/* Kills qemu if it still runs, reaps it, frees. NULL is fine. */
void vmm_done(struct vmm *vmm);

int vmm_poll_fd(const struct vmm *vmm);
/* EPOLLIN, with EPOLLOUT while a command waits for room. Ask again after every call. */
uint32_t vmm_poll_events(const struct vmm *vmm);
const struct jail_child *vmm_child(const struct vmm *vmm);
/* Monotonic ms at which the command under way is overdue; UINT64_MAX when none is. Set a timer
 * and call vmm_next when it fires. */
uint64_t vmm_deadline(const struct vmm *vmm);
/* Does the I/O that is possible now: 1 and an event, 0 when there is none. Call until 0; at most
 * VMM_MAX_READS reads are done before it gives 0, so a flood cannot hold the loop. */
#define VMM_MAX_READS 8
int vmm_next(struct vmm *vmm, struct vmm_event *ret_ev) MUST_CHECK;

/* Each queues one command; -ENOBUFS when too many wait, -EPIPE after VMM_EV_FATAL, -EBUSY while the
 * same is under way. */
int vmm_pause(struct vmm *vmm) MUST_CHECK;
int vmm_resume(struct vmm *vmm) MUST_CHECK;
int vmm_quit(struct vmm *vmm) MUST_CHECK; /* flushes the disks and ends qemu */
/* Hot-plugs the virtiofs device of tag `sbx`. Takes fd, a connected vhost-user socket. */
int vmm_attach_share(struct vmm *vmm, int fd) MUST_CHECK;
/* Takes it away again: VMM_EV_SHARE_DETACHED when the guest has let go of it, which is bounded by
 * VMM_DETACH_MS. The guest unmounts first. Another one may be attached afterwards. */
int vmm_detach_share(struct vmm *vmm) MUST_CHECK;
/* Pauses and writes the devices to fd (taken), a file or a pipe; the memory is in vmm_memory_fd and
 * is not touched. VMM_EV_SAVED: all of it is written, the disks are flushed and released; then
 * vmm_quit, or vmm_resume to continue. A machine with a share cannot be saved. */
int vmm_save(struct vmm *vmm, int fd) MUST_CHECK;
/* Reads what vmm_save wrote from fd (taken). Only with config.incoming, once, and when memory_fd
 * has the memory of that instant: devices read it. */
int vmm_restore(struct vmm *vmm, int fd) MUST_CHECK;
/* From now on a disk is written to another file: what its top file holds stays as it is, below. fd
 * (taken) is a new qcow2 image of the same size, opened for reading and writing: its backing name
 * is ignored. One at a time. */
int vmm_snapshot_disk(struct vmm *vmm, enum vmm_disk_id disk, int fd) MUST_CHECK;
/* Requests the newest bytes of the console; they come as VMM_EV_CONSOLE. */
int vmm_console_tail(struct vmm *vmm) MUST_CHECK;
/* SIGKILL; the pidfd reports the exit. */
void vmm_kill(struct vmm *vmm);
