/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject_arch - the registers of a system call, for inject.c: the architecture-specific part.
 *
 * How      struct inject_regs is the format of PTRACE_GETREGSET. INJECT_INSN are the bytes of the
 *          instruction that enters the kernel.
 * Trust    Input: registers of the guest's programs, untrusted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#if defined(__x86_64__)

#define INJECT_INSN "\x0f\x05"
#define INJECT_INSN_BYTES 2

struct inject_regs {
	struct user_regs_struct r;
};

static inline bool inject_is_native(const struct inject_regs *regs, size_t n)
{
	return n == sizeof(regs->r) && regs->r.cs == 0x33; /* 0x23: 32-bit */
}

/* orig_rax -1: the kernel must not treat the registers as an interrupted system call. */
static inline void inject_set_call(
	struct inject_regs *regs, uint64_t insn, long nr, const uint64_t args[6])
{
	regs->r.rip = insn;
	regs->r.rax = (uint64_t)nr;
	regs->r.orig_rax = UINT64_MAX;
	regs->r.rdi = args[0];
	regs->r.rsi = args[1];
	regs->r.rdx = args[2];
	regs->r.r10 = args[3];
	regs->r.r8 = args[4];
	regs->r.r9 = args[5];
}

static inline int64_t inject_result(const struct inject_regs *regs)
{
	return (int64_t)regs->r.rax;
}

#else
#error "inject: the registers of this machine are not described yet"
#endif
