/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest - checks with a short boot that KVM can run a VM on this host.
 *
 * How      selftest_run boots kernel and initrd in the same jail as a sandbox, without disks, with
 *          `sbx.selftest` on the command line; sbx-guest writes SELFTEST_WORD to sbx.ctl and powers
 *          off. The verdict is cached in the runtime directory under a key of host boot, qemu and
 *          kernel, so it runs once per boot. A caller with a loop calls vmm_accel_known first and
 *          runs the test in a child if the result is not known: selftest_begin, and selftest_end
 *          when its pidfd is readable.
 * Trust    Runs in keeper. The machine's answer is compared, never parsed.
 * Owns     The child dies with its parent, and the test machine with the child.
 * Limits   SELFTEST_KVM_MS; vmm_accel_decide, selftest_cached and selftest_run block for that long
 *          at most (VMM_TCG has SELFTEST_TCG_MS).
 * Never    Falls back to TCG: software emulation is not an isolation boundary and requires a
 *          request.
 * See      verdict.h, emulator.h, helper.h, selftest_test.c, vmm_boot_test.c,
 *          tests/api/test_selftest.py
 */
#pragma once

#include "vmm.h"
#include "lib/base/clock.h"

#define SELFTEST_KVM_MS clock_limit_ms(5000)
#define SELFTEST_TCG_MS clock_limit_ms(60000)
#define SELFTEST_WORD "SBX-SELFTEST-OK\n"

enum selftest_wish { SELFTEST_AUTO, SELFTEST_WANT_KVM, SELFTEST_WANT_TCG };

struct selftest_input {
	const char *kernel;
	const char *initrd;
	const char *cache_dir; /* exists; NULL: do not cache */
};

/* Chooses the accelerator. auto and kvm both need the self-test to pass, else -ENOTSUP and a
 * sentence with what was tried, why it failed and what to type. tcg is taken as it is. */
int vmm_accel_decide(enum selftest_wish wish, const struct selftest_input *in,
	enum vmm_accel *ret_accel, struct err *err) MUST_CHECK;
/* The same without a boot: 1 when only a self-test can tell. */
int vmm_accel_known(enum selftest_wish wish, const struct selftest_input *in,
	enum vmm_accel *ret_accel, struct err *err) MUST_CHECK;
/* The verdict about KVM from the cache, else of one boot that is then cached: 0, or an error. */
int selftest_cached(const struct selftest_input *in, struct err *err) MUST_CHECK;
/* One boot, not cached: 0, or an error with the reason. */
int selftest_run(const struct selftest_input *in, enum vmm_accel accel, struct err *err) MUST_CHECK;

/* A child that makes the self-test and caches the verdict. */
struct selftest_child {
	pid_t pid;
	int pidfd, result_fd;
};

#define SELFTEST_CHILD_EMPTY                 \
	{                                    \
		.pidfd = -1, .result_fd = -1 \
	}

int selftest_begin(
	const struct selftest_input *in, struct selftest_child *ret, struct err *err) MUST_CHECK;
/* When pidfd is readable: as vmm_accel_decide for KVM. */
int selftest_end(struct selftest_child *child, struct err *err) MUST_CHECK;
/* Kills it if it runs. */
void selftest_done(struct selftest_child *child);
