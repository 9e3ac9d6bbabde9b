/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - what the processes and disks of a sandbox use, as the host measures it.
 *
 * How      usage_scan reads the table of processes once. usage_of then adds up the keeper of a
 *          sandbox and all processes below it: qemu, virtiofsd and the workers. The time of a
 *          process that has exited counts for its parent. The memory of the VM is that of qemu;
 *          virtiofsd maps the same pages, so shared pages of the other processes do not count.
 *          usage_disk adds up the blocks of the files of a sandbox.
 * Trust    /proc and the user's own directories. Nothing is reported by a guest.
 * Owns     A scan owns its table; usage_done frees it.
 * Limits   USAGE_MAX_PROCESSES, USAGE_MAX_DEPTH directories below that of a sandbox.
 * See      usage_test.c, proc(5)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/attr.h"

#define USAGE_MAX_PROCESSES 65536
#define USAGE_MAX_DEPTH 3

struct usage_process {
	pid_t pid, parent;
	uint64_t ticks, pages;
	size_t child, sibling; /* places in the table; SIZE_MAX: none */
};

struct usage_scan {
	struct usage_process *v; /* sorted by pid */
	size_t n, room;
	uint64_t at_us;
};

struct usage {
	uint64_t cpu_us, memory;
	size_t n_processes; /* 0: the keeper does not exist */
};

/* Replaces the table; all zero is an empty one. */
void usage_scan(struct usage_scan *s);
void usage_done(struct usage_scan *s);
#define AUTO_USAGE CLEANUP(usage_done)
void usage_of(const struct usage_scan *s, pid_t keeper, pid_t qemu, struct usage *ret);
/* Bytes; `id` is that of a sandbox. */
uint64_t usage_disk(const char *id);
