/*
 * selftest - does KVM really run a machine here? A short boot decides.
 *
 * How      selftest_run boots kernel and initrd in the same jail as a sandbox, without disks, with
 *          `sbx.selftest` on the command line; sbx-guest writes SELFTEST_WORD to sbx.ctl and
 *          powers off. The verdict is cached in the runtime folder under a key of host boot,
 *          qemu and kernel, so it is paid once a boot.
 * Trust    Runs in keeper and in sbxd for `sbx diagnose`. The machine's answer is compared, never
 *          parsed.
 * Limits   SELFTEST_KVM_MS; blocks for that long at most (VMM_TCG has SELFTEST_TCG_MS).
 * Never    Falls back to TCG: software emulation is no isolation boundary and must be asked for.
 * See      verdict.h, emulator.h, selftest_test.c, vmm_boot_test.c
 */
#pragma once

#include "vmm.h"

#define SELFTEST_KVM_MS 5000
#define SELFTEST_TCG_MS 60000
#define SELFTEST_WORD "SBX-SELFTEST-OK\n"

enum selftest_wish { SELFTEST_AUTO, SELFTEST_WANT_KVM, SELFTEST_WANT_TCG };

struct selftest_input {
	const char *kernel;
	const char *initrd;
	const char *cache_dir; /* exists; NULL: do not cache */
};

/* "auto", "kvm", "tcg"; -EINVAL otherwise. */
int selftest_parse_wish(const char *s, enum selftest_wish *ret) MUST_CHECK;

/* Chooses the accelerator. auto and kvm both need the self-test to pass, else -ENOTSUP and a
 * sentence with what was tried, why it failed and what to type. tcg is taken as it is. */
int vmm_accel_decide(enum selftest_wish wish, const struct selftest_input *in,
	enum vmm_accel *ret_accel, struct err *err) MUST_CHECK;
/* The verdict about KVM from the cache, else of one boot that is then cached: 0, or an error. */
int selftest_cached(const struct selftest_input *in, struct err *err) MUST_CHECK;
/* One boot, not cached: 0, or an error that says what happened. */
int selftest_run(const struct selftest_input *in, enum vmm_accel accel, struct err *err) MUST_CHECK;
