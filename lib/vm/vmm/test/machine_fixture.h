/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_fixture - a VM under test: its wire, its events and its end.
 *
 * How      Include it after cmocka. Each test program uses some of the functions.
 * Trust    Test programs only.
 */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/vm/vmm/vmm.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BOOT_MS 90000
#define STEP_MS 20000

/* A machine under test with its wire. */
struct machine {
	struct vmm *vmm;
	int listen_fd, conn, log_fd;
	struct sockaddr_un sa;
	char console[VMM_MAX_TAIL + 1];
};

static inline void print_log(struct machine *m)
{
	char buf[2000];
	ssize_t n = pread(m->log_fd, buf, sizeof(buf), 0);

	if (n > 0)
		print_message("qemu says: %.*s\n", (int)n, buf);
}

/* Waits for one event; others before it are passed over, a fatal one fails the test. */
static inline void expect_event(struct machine *m, enum vmm_event_kind kind, struct vmm_event *ev)
{
	uint64_t end = clock_mono_ms() + BOOT_MS;

	while (clock_mono_ms() < end) {
		struct pollfd p = {
			.fd = vmm_poll_fd(m->vmm), .events = (short)vmm_poll_events(m->vmm)};

		while (vmm_next(m->vmm, ev) > 0) {
			if (ev->kind == kind)
				return;
			if (ev->kind == VMM_EV_FATAL) {
				print_log(m);
				fail_msg("instead of %d: %s", kind, ev->text);
			}
		}
		(void)poll(&p, 1, 100);
	}
	print_log(m);
	fail_msg("event %d did not come", kind);
}

static inline void expect_exit(struct machine *m)
{
	struct pollfd p = {.fd = vmm_child(m->vmm)->pidfd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, STEP_MS), 1);
}

/* The guest powers off. */
static inline void expect_shutdown(struct machine *m)
{
	struct vmm_event ev;

	assert_int_equal(write(m->conn, "q", 1), 1);
	expect_event(m, VMM_EV_SHUTDOWN, &ev);
	expect_event(m, VMM_EV_ENDED, &ev);
	expect_exit(m);
	assert_int_equal(vmm_poll_events(m->vmm), 0);
}

/* Of qemu, without the guest's memory. */
static inline unsigned anonymous_mib(const struct machine *m)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/status", (int)vmm_child(m->vmm)->pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096] = "", *line;

	assert_true(fd_read_full(fd, text, sizeof(text) - 1) > 0);
	line = strstr(text, "RssAnon:");
	assert_non_null(line);
	return (unsigned)strtoul(line + strlen("RssAnon:"), NULL, 10) >> 10;
}

/* A restored machine that reboots ends: it has no kernel to boot. */
static inline void expect_reboot_to_end(struct machine *m)
{
	struct vmm_event ev;

	assert_int_equal(write(m->conn, "b", 1), 1);
	expect_event(m, VMM_EV_RESET, &ev);
}
