/* SPDX-License-Identifier: Apache-2.0 */
#include "inject.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Not in every libc's headers. */
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif
#define SUSPEND_SECCOMP (1u << 21)
#define RSEQ_CS_AT 8 /* of rseq_cs in struct rseq */
#define MAX_VDSO 65536
#define MAX_OTHER_STOPS 64 /* that are passed while one is awaited */
#define SYSCALL_STOP (SIGTRAP | 0x80)

struct rseq_config {
	uint64_t at;
	uint32_t size, signature, flags, pad;
};

/* Waits for any stop of one thread; returns 0 and its status. */
static int wait_any(pid_t tid, int *ret_status)
{
	const struct timespec pause = {.tv_nsec = 200000};
	uint64_t end = clock_mono_ms() + INJECT_MS;
	pid_t r;

	while ((r = waitpid(tid, ret_status, __WALL | WNOHANG)) == 0) {
		if (clock_mono_ms() >= end)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
	if (r < 0)
		return -errno;
	return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

static bool is_event(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

static bool is_syscall(int status)
{
	return WSTOPSIG(status) == SYSCALL_STOP;
}

/* Other stops are passed: a pending signal is delivered as without us. */
static int wait_for(pid_t tid, int how, bool (*is_it)(int status))
{
	int status, r;

	for (int i = 0; i < MAX_OTHER_STOPS; i++) {
		long sig;

		r = wait_any(tid, &status);
		if (r < 0 || is_it(status))
			return r;
		sig = is_event(status) || is_syscall(status) ? 0 : WSTOPSIG(status);
		if (ptrace(how, tid, NULL, sig) < 0)
			return -errno;
	}
	return -ELOOP;
}

static int stop_thread(pid_t tid)
{
	long options = PTRACE_O_TRACESYSGOOD;

	/* The program's own seccomp filter must not kill it for the injected calls. */
	if (ptrace(PTRACE_SEIZE, tid, NULL, options | SUSPEND_SECCOMP) < 0 &&
		(errno == ESRCH || ptrace(PTRACE_SEIZE, tid, NULL, options) < 0))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	return wait_for(tid, PTRACE_CONT, is_event);
}

static bool has_tid(const struct inject *in, pid_t tid)
{
	for (size_t i = 0; i < in->n_tids; i++)
		if (in->tids[i] == tid)
			return true;
	return false;
}

/* Counts new threads; a thread that exits meanwhile is not counted. */
static int stop_new(struct inject *in, DIR *d)
{
	struct dirent *e;
	uint64_t tid;
	int n = 0, r;

	while ((e = dir_next(d))) {
		if (str_to_u64(e->d_name, 1, INT32_MAX, &tid) < 0 || has_tid(in, (pid_t)tid))
			continue;
		if (in->n_tids == INJECT_MAX_THREADS)
			return -E2BIG;
		r = stop_thread((pid_t)tid);
		if (r == -ESRCH && (pid_t)tid != in->pid)
			continue;
		if (r < 0)
			return r;
		in->tids = xrealloc(in->tids, (in->n_tids + 1) * sizeof(*in->tids));
		in->tids[in->n_tids++] = (pid_t)tid;
		n++;
	}
	return n;
}

int inject_hold(struct inject *in, pid_t pid, struct err *err)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/task", pid);
	AUTO_FREE char *mem = xasprintf("/proc/%d/mem", pid);
	AUTO_DIR DIR *d = opendir(path);
	int r;

	*in = (struct inject){.pid = pid, .mem = -1};
	if (!d)
		return err_errno(err, -ESRCH, "cannot stop a program");
	while ((r = stop_new(in, d)) > 0)
		rewinddir(d);
	if (r == 0) {
		in->mem = open(mem, O_RDWR | O_CLOEXEC);
		r = in->mem < 0 ? -errno : 0;
	}
	return r < 0 ? err_errno(err, r, "cannot stop a program") : 0;
}

int inject_put(const struct inject *in, uint64_t at, const void *p, size_t n)
{
	ssize_t k = pwrite(in->mem, p, n, (off_t)at);

	return k == (ssize_t)n ? 0 : k < 0 ? -errno : -EFAULT;
}

int inject_get(const struct inject *in, uint64_t at, void *p, size_t n)
{
	ssize_t k = pread(in->mem, p, n, (off_t)at);

	return k == (ssize_t)n ? 0 : k < 0 ? -errno : -EFAULT;
}

static int get_regs(pid_t tid, struct inject_regs *regs)
{
	struct iovec iov = {regs, sizeof(*regs)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	return inject_is_native(regs, iov.iov_len) ? 0 : -ENOEXEC;
}

static int set_regs(pid_t tid, const struct inject_regs *regs)
{
	struct iovec iov = {(void *)regs, sizeof(*regs)};

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

static int find_vdso(pid_t pid, uint64_t *ret_at, size_t *ret_n)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	unsigned long from, to;
	char line[512];
	int r = -ENOENT;

	while (f && r < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &from, &to) == 2 &&
			to - from <= MAX_VDSO) {
			*ret_at = from;
			*ret_n = to - from;
			r = 0;
		}
	if (f)
		(void)fclose(f);
	return r;
}

static int find_insn(struct inject *in)
{
	AUTO_FREE char *bytes = NULL;
	const char *p;
	uint64_t at;
	size_t n;
	int r = find_vdso(in->pid, &at, &n);

	if (r < 0)
		return r;
	bytes = xmalloc(n);
	r = inject_get(in, at, bytes, n);
	p = r < 0 ? NULL : memmem(bytes, n, INJECT_INSN, INJECT_INSN_BYTES);
	if (!p)
		return -ENOENT;
	in->insn = at + (uint64_t)(p - bytes);
	return 0;
}

/* An interrupted sequence must be restarted: the kernel detects that when the thread continues,
 * unless it has done so before. */
static void note_rseq(struct inject *in)
{
	struct rseq_config c = {0};

	if (ptrace((enum __ptrace_request)PTRACE_GET_RSEQ_CONFIGURATION, in->pid, sizeof(c), &c) >
			0 &&
		c.at && inject_get(in, c.at + RSEQ_CS_AT, &in->rseq_cs, sizeof(in->rseq_cs)) == 0 &&
		in->rseq_cs)
		in->rseq = c.at;
}

static int get_page(struct inject *in)
{
	const uint64_t args[6] = {
		0, INJECT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	int64_t at = inject_call(in, SYS_mmap, args);

	if (at < 0 && at > -4096)
		return (int)at;
	in->page = (uint64_t)at;
	return 0;
}

int inject_begin(struct inject *in, struct err *err)
{
	uint64_t all = UINT64_MAX;
	int r = get_regs(in->pid, &in->saved);

	if (r == -ENOEXEC)
		return err_set(err, r, "not a 64-bit program");
	if (r == 0)
		r = find_insn(in);
	if (r == 0 && (ptrace(PTRACE_GETSIGMASK, in->pid, sizeof(in->mask), &in->mask) < 0 ||
			      ptrace(PTRACE_SETSIGMASK, in->pid, sizeof(all), &all) < 0))
		r = -errno;
	if (r < 0)
		return err_errno(err, r, "cannot read the registers of a program");
	note_rseq(in);
	in->begun = true;
	r = get_page(in);
	return r < 0 ? err_errno(err, r, "allocating memory in a program") : 0;
}

static int run_to_syscall(pid_t tid)
{
	if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) < 0)
		return -errno;
	return wait_for(tid, PTRACE_SYSCALL, is_syscall);
}

int64_t inject_call(struct inject *in, long nr, const uint64_t args[6])
{
	struct inject_regs regs = in->saved;

	inject_set_call(&regs, in->insn, nr, args);
	/* Into the kernel, and out of it. */
	if (set_regs(in->pid, &regs) < 0 || run_to_syscall(in->pid) < 0 ||
		run_to_syscall(in->pid) < 0 || get_regs(in->pid, &regs) < 0)
		return -EIO;
	return inject_result(&regs);
}

int inject_end(struct inject *in)
{
	int64_t r = 0;

	if (!in->begun)
		return 0;
	in->begun = false;
	if (in->page)
		r = inject_call(in, SYS_munmap, (const uint64_t[6]){in->page, INJECT_PAGE});
	if (in->rseq &&
		inject_put(in, in->rseq + RSEQ_CS_AT, &in->rseq_cs, sizeof(in->rseq_cs)) < 0)
		r = -EFAULT;
	if (set_regs(in->pid, &in->saved) < 0 ||
		ptrace(PTRACE_SETSIGMASK, in->pid, sizeof(in->mask), &in->mask) < 0 ||
		ptrace(PTRACE_INTERRUPT, in->pid, NULL, NULL) < 0 ||
		ptrace(PTRACE_CONT, in->pid, NULL, NULL) < 0)
		return -errno;
	/* When it leaves the following stop, the kernel continues an interrupted call. */
	if (wait_for(in->pid, PTRACE_CONT, is_event) < 0)
		return -EIO;
	return (int)r;
}

void inject_release(struct inject *in)
{
	for (size_t i = 0; i < in->n_tids; i++)
		(void)ptrace(PTRACE_DETACH, in->tids[i], NULL, NULL);
	free(TAKE(in->tids));
	in->n_tids = 0;
	fd_close(&in->mem);
}
