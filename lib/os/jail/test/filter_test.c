/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of profiles.c as the kernel gets them: a small interpreter of BPF returns what
 * happens to a system call with given arguments. Other layers (namespaces, capabilities) cannot
 * hide a missing condition here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "lib/os/jail/filter.h"
#include "lib/base/mem.h"

#define YES SECCOMP_RET_ALLOW
#define NO (SECCOMP_RET_ERRNO | EPERM)
#define EXEC_FD 3
#define MAX_STEPS BPF_MAXINSNS
#define MAX_NUMBER 500
#define FCHMODAT2 452

static uint32_t word_at(const struct seccomp_data *d, uint32_t at)
{
	uint32_t word;

	assert_true(at % 4 == 0 && at + 4 <= sizeof(*d));
	memcpy(&word, (const char *)d + at, sizeof(word));
	return word;
}

static bool jumps(const struct sock_filter *i, uint32_t a)
{
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == i->k;
	case BPF_JGT:
		return a > i->k;
	case BPF_JGE:
		return a >= i->k;
	case BPF_JSET:
		return a & i->k;
	}
	fail_msg("jump %04x", i->code);
	return false;
}

/* What the kernel does with the call. */
static uint32_t judge(const struct filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t at = 0, steps = 0; at < f->prog.len && steps < MAX_STEPS; at++, steps++) {
		const struct sock_filter *i = &f->prog.filter[at];

		if (i->code == (BPF_LD | BPF_W | BPF_ABS))
			a = word_at(d, i->k);
		else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= i->k;
		else if (i->code == (BPF_JMP | BPF_JA))
			at += i->k;
		else if (BPF_CLASS(i->code) == BPF_JMP)
			at += jumps(i, a) ? i->jt : i->jf;
		else if (i->code == (BPF_RET | BPF_K))
			return i->k;
		else
			fail_msg("instruction %04x", i->code);
	}
	fail_msg("the filter has no end");
	return 0;
}

/* `value` as argument number `n`; all others are 0. */
static uint32_t judge_call(const struct filter *f, int nr, unsigned n, uint64_t value)
{
	struct seccomp_data d = {.nr = nr, .arch = AUDIT_ARCH_X86_64};

	d.args[n] = value;
	return judge(f, &d);
}

static struct filter start_of(enum jail_profile profile)
{
	struct filter f = {0};

	assert_int_equal(filter_make_start(jail_row(profile), false, EXEC_FD, &f, NULL), 0);
	return f;
}

/* virtiofsd may make namespaces, but not a user namespace, whatever comes with it. */
static void virtiofsd_makes_no_user_namespace(void **state)
{
	struct filter f = start_of(JAIL_VIRTIOFSD);

	assert_int_equal(judge_call(&f, SYS_unshare, 0, CLONE_NEWNS), YES);
	assert_int_equal(judge_call(&f, SYS_unshare, 0, CLONE_FS), YES);
	assert_int_equal(judge_call(&f, SYS_unshare, 0, CLONE_NEWUSER), NO);
	assert_int_equal(judge_call(&f, SYS_unshare, 0, CLONE_NEWUSER | CLONE_NEWNS), NO);
	filter_done(&f);
}

static bool is_sent(const struct filter *f, int nr, unsigned n, uint64_t value)
{
	return judge_call(f, nr, n, value) == SECCOMP_RET_USER_NOTIF;
}

/* The guard sees each call that changes something; reading costs nothing. */
static void only_changes_are_sent_to_the_guard(void **state)
{
	static const int flags[] = {O_WRONLY, O_RDWR, O_ACCMODE, O_CREAT, O_TRUNC,
		O_WRONLY | O_CREAT | O_EXCL, O_RDWR | O_NOFOLLOW, O_RDONLY | O_TRUNC};
	static const int always[] = {SYS_mknodat, SYS_symlinkat, SYS_linkat, SYS_renameat,
		SYS_renameat2, SYS_fchmodat, FCHMODAT2, SYS_fchmod};
	struct filter f = {0};

	assert_int_equal(filter_make_notify(&(struct filter_notify){.changes = true}, &f, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		assert_true(is_sent(&f, SYS_openat, 2, (uint64_t)flags[i]));
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		assert_true(is_sent(&f, always[i], 0, 0));
	assert_true(is_sent(&f, SYS_unlinkat, 2, 0));
	assert_int_equal(judge_call(&f, SYS_openat, 2, O_RDONLY), YES);
	assert_int_equal(judge_call(&f, SYS_openat, 2, O_PATH | O_NOFOLLOW), YES);
	assert_int_equal(judge_call(&f, SYS_unlinkat, 2, AT_REMOVEDIR), YES);
	assert_int_equal(judge_call(&f, SYS_newfstatat, 0, 0), YES);
	assert_int_equal(judge_call(&f, SYS_openat2, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
	filter_done(&f);
	/* with hidden names all names are sent anyway */
	assert_int_equal(filter_make_notify(
				 &(struct filter_notify){.changes = true, .paths = true}, &f, NULL),
		0);
	assert_true(is_sent(&f, SYS_openat2, 0, 0));
	assert_true(is_sent(&f, SYS_openat, 2, O_RDONLY));
	assert_true(is_sent(&f, SYS_fchmod, 0, 0));
	filter_done(&f);
}

/* The guest makes files through virtiofsd: none of them with the set-user-id bit. */
static void virtiofsd_makes_no_set_user_id_file(void **state)
{
	static const struct {
		int nr;
		unsigned arg;
	} rows[] = {{SYS_open, 2}, {SYS_openat, 3}, {SYS_mknodat, 2}, {SYS_fchmod, 1},
		{SYS_fchmodat, 2}, {FCHMODAT2, 2}};
	struct filter f = start_of(JAIL_VIRTIOFSD);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(judge_call(&f, rows[i].nr, rows[i].arg, 0755), YES);
		assert_int_equal(judge_call(&f, rows[i].nr, rows[i].arg, S_ISGID | 0755), YES);
		assert_int_equal(judge_call(&f, rows[i].nr, rows[i].arg, S_ISUID), NO);
		assert_int_equal(judge_call(&f, rows[i].nr, rows[i].arg, S_ISUID | 0755), NO);
		/* that bit in another argument is an address or a number */
		for (unsigned other = 0; other < 6; other++)
			if (other != rows[i].arg)
				assert_int_equal(judge_call(&f, rows[i].nr, other, S_ISUID), YES);
	}
	filter_done(&f);
}

/* A FIFO blocks the host program that opens it, a socket leads it to another process: mknodat has
 * neither by default, and devices in no case. */
static void virtiofsd_makes_special_files_only_when_permitted(void **state)
{
	static const struct {
		uint64_t mode;
		uint32_t usual, permitted;
	} rows[] = {
		{S_IFREG | 0644, YES, YES},
		{0644, YES, YES},
		{S_IFREG | S_ISGID | 0755, YES, YES},
		{S_IFREG | S_ISUID | 0755, NO, NO},
		{S_IFIFO | 0644, NO, YES},
		{S_IFSOCK | 0755, NO, YES},
		{S_IFIFO | S_ISUID | 0644, NO, NO},
		{S_IFSOCK | S_ISUID | 0755, NO, NO},
		{S_IFCHR | 0600, NO, NO},
		{S_IFBLK | 0600, NO, NO},
		/* the kernel takes 16 bits of the mode */
		{1ull << 16 | S_IFIFO | 0644, NO, YES},
	};
	struct filter usual = start_of(JAIL_VIRTIOFSD), permitted = {0};

	assert_int_equal(
		filter_make_start(jail_row(JAIL_VIRTIOFSD), true, EXEC_FD, &permitted, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("mode %o\n", (unsigned)rows[i].mode);
		assert_int_equal(judge_call(&usual, SYS_mknodat, 2, rows[i].mode), rows[i].usual);
		assert_int_equal(
			judge_call(&permitted, SYS_mknodat, 2, rows[i].mode), rows[i].permitted);
	}
	filter_done(&usual);
	filter_done(&permitted);
}

static void other_architectures_are_killed(void **state)
{
	struct filter f = start_of(JAIL_EDGE);
	struct seccomp_data d = {.nr = SYS_read, .arch = AUDIT_ARCH_X86_64};

	assert_int_equal(judge(&f, &d), YES);
	d.arch = AUDIT_ARCH_I386;
	assert_int_equal(judge(&f, &d), SECCOMP_RET_KILL_PROCESS);
	d = (struct seccomp_data){.nr = 0x40000000 | SYS_read, .arch = AUDIT_ARCH_X86_64};
	assert_int_equal(judge(&f, &d), SECCOMP_RET_KILL_PROCESS);
	filter_done(&f);
}

/* The calls that a sealed program has with arguments of 0, by name. */
static void print_allowed(const struct filter *f, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (int nr = 0; nr < MAX_NUMBER; nr++) {
		char *name;

		if (judge_call(f, nr, 0, 0) != YES)
			continue;
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);
		n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "",
			nr == FCHMODAT2 ? "fchmodat2" : name);
		free(name);
		assert_true(n < size);
	}
}

/* A new call for a program that reads hostile bytes is a decision: it is made here too. */
static void sealed_programs_have_exactly_these_calls(void **state)
{
	static const struct {
		enum jail_profile profile;
		const char *calls;
	} rows[] = {
		{JAIL_EDGE, "read write close poll mmap mprotect munmap brk rt_sigaction "
			    "rt_sigprocmask rt_sigreturn readv writev mremap madvise "
			    "nanosleep getpid sendto recvfrom sendmsg recvmsg shutdown "
			    "getsockopt exit fcntl gettimeofday sysinfo mlock munlock gettid "
			    "futex restart_syscall clock_gettime clock_nanosleep exit_group "
			    "epoll_wait epoll_ctl tgkill ppoll epoll_pwait accept4 getrandom "
			    "epoll_pwait2"},
		{JAIL_EGRESS, "read write close poll mmap mprotect munmap brk rt_sigaction "
			      "rt_sigprocmask rt_sigreturn pread64 readv writev mremap madvise "
			      "nanosleep getpid connect sendto recvfrom sendmsg recvmsg "
			      "shutdown getsockname getpeername getsockopt exit fcntl "
			      "gettimeofday sysinfo gettid futex restart_syscall clock_gettime "
			      "clock_nanosleep exit_group epoll_wait epoll_ctl tgkill ppoll "
			      "splice epoll_pwait pipe2 getrandom epoll_pwait2"},
		{JAIL_VAULT, "read write open close fstat poll lseek mmap mprotect munmap brk "
			     "rt_sigaction rt_sigprocmask rt_sigreturn pread64 readv writev "
			     "access mremap madvise nanosleep getpid sendto recvfrom sendmsg "
			     "recvmsg shutdown getsockopt exit fcntl flock fsync ftruncate "
			     "rename unlink gettimeofday sysinfo geteuid mlock munlock gettid "
			     "futex getdents64 restart_syscall clock_gettime clock_nanosleep "
			     "exit_group epoll_wait epoll_ctl tgkill openat newfstatat "
			     "unlinkat renameat faccessat ppoll epoll_pwait accept4 pipe2 "
			     "getrandom faccessat2 epoll_pwait2 memfd_secret"},
		{JAIL_SSH_AGENT, "write close mmap mprotect munmap brk rt_sigaction rt_sigprocmask "
				 "rt_sigreturn writev mremap madvise getpid sendto recvfrom "
				 "sendmsg recvmsg exit fcntl gettimeofday gettid futex "
				 "restart_syscall clock_gettime exit_group epoll_wait epoll_ctl "
				 "tgkill epoll_pwait getrandom epoll_pwait2"},
		{JAIL_ORIGIN, "read write close poll mmap mprotect munmap brk rt_sigaction "
			      "rt_sigprocmask rt_sigreturn pread64 readv writev mremap madvise "
			      "nanosleep getpid sendto recvfrom sendmsg recvmsg shutdown exit "
			      "fcntl ftruncate gettimeofday sysinfo mlock munlock gettid futex "
			      "restart_syscall clock_gettime clock_nanosleep exit_group "
			      "epoll_wait epoll_ctl tgkill ppoll epoll_pwait pipe2 getrandom "
			      "epoll_pwait2 memfd_secret"},
		{JAIL_CLERK_GIT,
			"read write close mmap mprotect munmap brk rt_sigaction rt_sigprocmask "
			"rt_sigreturn pread64 writev mremap madvise getpid sendto recvfrom sendmsg "
			"recvmsg exit fcntl gettimeofday sysinfo gettid futex "
			"restart_syscall clock_gettime exit_group epoll_wait epoll_ctl "
			"tgkill epoll_pwait getrandom epoll_pwait2"},
		{JAIL_CLERK,
			"read write close mmap mprotect munmap brk rt_sigaction rt_sigprocmask "
			"rt_sigreturn pread64 writev mremap madvise getpid sendto recvfrom sendmsg "
			"recvmsg exit fcntl gettimeofday sysinfo gettid futex "
			"restart_syscall clock_gettime exit_group epoll_wait epoll_ctl "
			"tgkill epoll_pwait getrandom epoll_pwait2"},
		{JAIL_HIDE, "read write poll rt_sigreturn restart_syscall exit_group ppoll "
			    "process_vm_readv"},
		/* and openat of a directory by name only (openat/name-only) */
		{JAIL_GUARD, "read write close poll rt_sigreturn sendto recvfrom sendmsg statfs "
			     "restart_syscall exit_group newfstatat readlinkat ppoll "
			     "process_vm_readv"},
		{JAIL_HAND, "read write close fstat lseek mmap mprotect munmap brk rt_sigreturn "
			    "pread64 mremap madvise sendto sendmsg recvmsg fcntl fchmod "
			    "gettimeofday getdents64 restart_syscall clock_gettime exit_group "
			    "openat mkdirat newfstatat unlinkat renameat symlinkat readlinkat "
			    "renameat2 getrandom openat2"},
	};
	char seen[4096];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct filter f = {0};

		assert_int_equal(filter_make_seal(jail_row(rows[i].profile), &f, NULL), 0);
		print_allowed(&f, seen, sizeof(seen));
		print_message("%s: %s\n", jail_row(rows[i].profile)->name, seen);
		assert_string_equal(seen, rows[i].calls);
		filter_done(&f);
	}
}

/* Both brokers, beyond the calls with arguments of 0. */
static void no_broker_leaves_its_place(const struct filter *f)
{
	assert_int_equal(judge_call(f, SYS_execve, 0, 0), NO);
	assert_int_equal(judge_call(f, SYS_connect, 0, 0), NO);
	assert_int_equal(judge_call(f, SYS_clone, 0, CLONE_NEWUSER), NO);
	assert_int_equal(judge_call(f, SYS_clone, 0, CLONE_NEWNS), NO);
	assert_int_equal(judge_call(f, SYS_sendto, 4, 1), NO);
	assert_int_equal(judge_call(f, SYS_sendto, 3, MSG_FASTOPEN), NO);
	assert_int_equal(judge_call(f, SYS_sendmsg, 2, MSG_FASTOPEN), NO);
	assert_int_equal(judge_call(f, SYS_mmap, 2, PROT_EXEC), NO);
}

/* What a broker may do with arguments of 0; all else is EPERM, clone3 is ENOSYS. */
static uint32_t judge_quota(const struct filter *f, unsigned command, unsigned type)
{
	return judge_call(f, SYS_quotactl_fd, 1, command << SUBCMDSHIFT | type);
}

static void the_keeper_has_exactly_these_calls(void **state)
{
	const char *calls = "read write open close stat fstat lstat poll lseek mmap "
			    "mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn "
			    "pread64 pwrite64 readv writev access sched_yield mremap "
			    "msync madvise dup dup2 nanosleep getpid sendfile accept "
			    "sendto recvfrom sendmsg recvmsg shutdown bind listen "
			    "getsockname getpeername setsockopt getsockopt clone exit "
			    "wait4 kill uname fcntl flock fsync fdatasync ftruncate "
			    "rename mkdir rmdir link unlink readlink fchmod umask "
			    "gettimeofday sysinfo getuid getgid geteuid getegid getppid "
			    "sigaltstack statfs fstatfs mlock munlock gettid time futex "
			    "sched_getaffinity getdents64 restart_syscall fadvise64 "
			    "clock_gettime clock_getres clock_nanosleep exit_group "
			    "epoll_wait epoll_ctl tgkill waitid openat mkdirat newfstatat "
			    "unlinkat renameat linkat readlinkat faccessat ppoll "
			    "set_robust_list sync_file_range epoll_pwait fallocate "
			    "accept4 signalfd4 dup3 pipe2 preadv pwritev recvmmsg prlimit64 "
			    "renameat2 getrandom memfd_create copy_file_range statx rseq "
			    "pidfd_send_signal pidfd_open close_range faccessat2 "
			    "epoll_pwait2 landlock_create_ruleset landlock_add_rule "
			    "landlock_restrict_self";
	struct filter f = {0};
	char seen[4096];

	assert_int_equal(filter_make_start(jail_row(JAIL_KEEPER), false, -1, &f, NULL), 0);
	print_allowed(&f, seen, sizeof(seen));
	assert_string_equal(seen, calls);
	assert_int_equal(judge_call(&f, SYS_socket, 0, AF_UNIX), NO);
	assert_int_equal(judge_quota(&f, Q_GETQUOTA, USRQUOTA), YES);
	assert_int_equal(judge_quota(&f, Q_GETQUOTA, GRPQUOTA), YES);
	assert_int_equal(judge_quota(&f, Q_SETQUOTA, USRQUOTA), NO);
	assert_int_equal(judge_quota(&f, Q_SYNC, USRQUOTA), NO);
	no_broker_leaves_its_place(&f);
	filter_done(&f);
}

static uint32_t judge_socket(const struct filter *f, int family, int type, int protocol)
{
	struct seccomp_data d = {.nr = SYS_socket,
		.arch = AUDIT_ARCH_X86_64,
		.args = {(uint64_t)family, (uint64_t)type, (uint64_t)protocol}};

	return judge(f, &d);
}

static void sbxd_has_exactly_these_calls(void **state)
{
	const char *calls = "read write open close stat fstat lstat poll lseek mmap "
			    "mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn "
			    "pread64 pwrite64 readv writev access sched_yield mremap "
			    "msync madvise dup dup2 nanosleep getpid sendfile accept "
			    "sendto recvfrom sendmsg recvmsg shutdown bind listen "
			    "getsockname getpeername setsockopt getsockopt clone exit "
			    "wait4 kill uname fcntl flock fsync fdatasync ftruncate "
			    "rename mkdir rmdir link unlink readlink fchmod umask "
			    "gettimeofday sysinfo getuid getgid geteuid getegid getppid "
			    "sigaltstack statfs fstatfs getpriority setpriority mlock "
			    "munlock gettid time futex sched_getaffinity getdents64 "
			    "restart_syscall fadvise64 clock_gettime clock_getres "
			    "clock_nanosleep exit_group epoll_wait epoll_ctl tgkill waitid "
			    "openat mkdirat newfstatat unlinkat renameat linkat readlinkat "
			    "faccessat ppoll set_robust_list sync_file_range epoll_pwait "
			    "fallocate accept4 signalfd4 dup3 pipe2 preadv pwritev "
			    "prlimit64 renameat2 getrandom memfd_create copy_file_range "
			    "statx rseq pidfd_send_signal pidfd_open close_range openat2 "
			    "faccessat2 epoll_pwait2";
	struct filter f = {0};
	char seen[4096];

	assert_int_equal(filter_make_start(jail_row(JAIL_SBXD), false, -1, &f, NULL), 0);
	print_allowed(&f, seen, sizeof(seen));
	assert_string_equal(seen, calls);
	no_broker_leaves_its_place(&f);
	assert_int_equal(judge_socket(&f, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), YES);
	assert_int_equal(judge_socket(&f, AF_UNIX, SOCK_SEQPACKET, 0), YES);
	assert_int_equal(judge_socket(&f, AF_UNIX, SOCK_DGRAM, 0), NO);
	/* ports of suspended sandboxes; it has no connect */
	assert_int_equal(judge_socket(&f, AF_INET, SOCK_STREAM, 0), YES);
	assert_int_equal(judge_socket(&f, AF_INET6, SOCK_STREAM, 0), YES);
	assert_int_equal(judge_socket(&f, AF_INET, SOCK_DGRAM, 0), NO);
	/* its own priority only */
	assert_int_equal(judge_call(&f, SYS_setpriority, 1, 1), NO);
	filter_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtiofsd_makes_no_user_namespace),
		cmocka_unit_test(only_changes_are_sent_to_the_guard),
		cmocka_unit_test(virtiofsd_makes_no_set_user_id_file),
		cmocka_unit_test(virtiofsd_makes_special_files_only_when_permitted),
		cmocka_unit_test(other_architectures_are_killed),
		cmocka_unit_test(sealed_programs_have_exactly_these_calls),
		cmocka_unit_test(the_keeper_has_exactly_these_calls),
		cmocka_unit_test(sbxd_has_exactly_these_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
