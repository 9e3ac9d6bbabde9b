/* SPDX-License-Identifier: Apache-2.0 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/kvm.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "jail.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define NAMESPACE_FLAGS                                                                            \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
		CLONE_NEWCGROUP)
#define MAX_CALL_NAME 48
/* Protocol 0 is TCP or UDP; another number would be another protocol. */
#define SOCKET_OF(family, type)                                                        \
	{                                                                              \
		SCMP_A0(SCMP_CMP_EQ, family), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff, type), \
			SCMP_A2(SCMP_CMP_EQ, 0)                                        \
	}
#define OPTION_OF(level, option)                                          \
	{                                                                 \
		SCMP_A1(SCMP_CMP_EQ, level), SCMP_A2(SCMP_CMP_EQ, option) \
	}

/* QCMD, whose shift is of a signed number */
#define QUOTA_OF(type) ((uint32_t)Q_GETQUOTA << SUBCMDSHIFT | (type))

/* Calls that are allowed only with certain arguments: one row, one allowed form. */
static const struct cond {
	const char *call; /* as written in profiles.c */
	struct scmp_arg_cmp cmp[3];
	unsigned n_cmp;
} conds[] = {
	{"mmap/noexec", {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}, 1},
	{"mprotect/noexec", {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}, 1},
	{"clone/thread", {SCMP_A0(SCMP_CMP_MASKED_EQ, THREAD_FLAGS, THREAD_FLAGS)}, 1},
	{"clone/no-namespaces", {SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0)}, 1},
	{"unshare/no-user", {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, 0)}, 1},
	{"socketpair/unix", {SCMP_A0(SCMP_CMP_EQ, AF_UNIX)}, 1},
	/* Not SOCK_DGRAM, which can send to any name. */
	{"socketpair/stream", SOCKET_OF(AF_UNIX, SOCK_STREAM), 3},
	{"socketpair/seqpacket", SOCKET_OF(AF_UNIX, SOCK_SEQPACKET), 3},
	/* Not SOCK_DGRAM either. Without connect, the socket reaches no process. */
	{"socket/unix-stream", SOCKET_OF(AF_UNIX, SOCK_STREAM), 3},
	{"socket/unix-seqpacket", SOCKET_OF(AF_UNIX, SOCK_SEQPACKET), 3},
	{"socket/route", {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE)},
		2},
	/* To the peer that the socket has; MSG_FASTOPEN would make a connection. */
	{"sendto/connected",
		{SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0), SCMP_A4(SCMP_CMP_EQ, 0)}, 2},
	{"sendmsg/connected", {SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0)}, 1},
	{"prctl/pdeathsig-kill",
		{SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG), SCMP_A1(SCMP_CMP_EQ, SIGKILL)}, 2},
	{"socket/tcp4", SOCKET_OF(AF_INET, SOCK_STREAM), 3},
	{"socket/tcp6", SOCKET_OF(AF_INET6, SOCK_STREAM), 3},
	{"socket/udp4", SOCKET_OF(AF_INET, SOCK_DGRAM), 3},
	{"socket/udp6", SOCKET_OF(AF_INET6, SOCK_DGRAM), 3},
	{"setsockopt/nodelay", OPTION_OF(IPPROTO_TCP, TCP_NODELAY), 2},
	{"setsockopt/linger", OPTION_OF(SOL_SOCKET, SO_LINGER), 2},
	{"setsockopt/keepalive", OPTION_OF(SOL_SOCKET, SO_KEEPALIVE), 2},
	{"setsockopt/keepidle", OPTION_OF(IPPROTO_TCP, TCP_KEEPIDLE), 2},
	{"setsockopt/keepintvl", OPTION_OF(IPPROTO_TCP, TCP_KEEPINTVL), 2},
	{"setsockopt/keepcnt", OPTION_OF(IPPROTO_TCP, TCP_KEEPCNT), 2},
	{"ioctl/kvm", {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00, KVMIO << 8)}, 1},
	{"ioctl/tty-ask", {SCMP_A1(SCMP_CMP_EQ, TCGETS)}, 1},
	{"ioctl/nonblock", {SCMP_A1(SCMP_CMP_EQ, FIONBIO)}, 1},
	{"ioctl/clone-file", {SCMP_A1(SCMP_CMP_EQ, FICLONE)}, 1},
	{"ioctl/fs-flags", {SCMP_A1(SCMP_CMP_EQ, 0x80086601 /* FS_IOC_GETFLAGS */)}, 1},
	{"prctl/name", {SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)}, 1},
	{"prctl/dumpable", {SCMP_A0(SCMP_CMP_EQ, PR_SET_DUMPABLE), SCMP_A1(SCMP_CMP_EQ, 0)}, 2},
	{"prctl/nnp", {SCMP_A0(SCMP_CMP_EQ, PR_SET_NO_NEW_PRIVS)}, 1},
	{"prctl/nnp-ask", {SCMP_A0(SCMP_CMP_EQ, PR_GET_NO_NEW_PRIVS)}, 1},
	{"prctl/mce", {SCMP_A0(SCMP_CMP_EQ, PR_MCE_KILL)}, 1},
	{"prctl/seccomp", {SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)}, 1},
	{"prctl/capbset-read", {SCMP_A0(SCMP_CMP_EQ, PR_CAPBSET_READ)}, 1},
	{"prctl/capbset-drop", {SCMP_A0(SCMP_CMP_EQ, PR_CAPBSET_DROP)}, 1},
	{"prctl/ambient", {SCMP_A0(SCMP_CMP_EQ, PR_CAP_AMBIENT)}, 1},
	{"prctl/securebits", {SCMP_A0(SCMP_CMP_EQ, PR_GET_SECUREBITS)}, 1},
	{"prctl/securebits-set", {SCMP_A0(SCMP_CMP_EQ, PR_SET_SECUREBITS)}, 1},
	{"prctl/keepcaps", {SCMP_A0(SCMP_CMP_EQ, PR_SET_KEEPCAPS)}, 1},
	{"prctl/seccomp-ask", {SCMP_A0(SCMP_CMP_EQ, PR_GET_SECCOMP)}, 1},
	{"prctl/timerslack", {SCMP_A0(SCMP_CMP_EQ, PR_SET_TIMERSLACK)}, 1},
	/* Ours is SIGKILL on pid 1; virtiofsd sets SIGTERM in the child it forks. Never 0. */
	{"prctl/pdeathsig", {SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG), SCMP_A1(SCMP_CMP_EQ, SIGTERM)},
		2},
	{"openat/write", {SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_WRONLY)}, 1},
	{"openat/read-write", {SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDWR)}, 1},
	{"openat/no-access", {SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_ACCMODE)}, 1},
	{"openat/create", {SCMP_A2(SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT)}, 1},
	{"openat/truncate", {SCMP_A2(SCMP_CMP_MASKED_EQ, O_TRUNC, O_TRUNC)}, 1},
	{"openat/name-only", {SCMP_A2(SCMP_CMP_EQ, O_PATH | O_DIRECTORY | O_CLOEXEC)}, 1},
	{"unlinkat/file", {SCMP_A2(SCMP_CMP_MASKED_EQ, AT_REMOVEDIR, 0)}, 1},
	{"open/no-suid", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_ISUID, 0)}, 1},
	{"openat/no-suid", {SCMP_A3(SCMP_CMP_MASKED_EQ, S_ISUID, 0)}, 1},
	{"mknodat/regular", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT | S_ISUID, S_IFREG)}, 1},
	{"mknodat/no-type", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT | S_ISUID, 0)}, 1}, /* regular */
	{"mknodat/fifo", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT | S_ISUID, S_IFIFO)}, 1},
	{"mknodat/socket", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT | S_ISUID, S_IFSOCK)}, 1},
	{"fchmod/no-suid", {SCMP_A1(SCMP_CMP_MASKED_EQ, S_ISUID, 0)}, 1},
	{"fchmodat/no-suid", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_ISUID, 0)}, 1},
	{"fchmodat2/no-suid", {SCMP_A2(SCMP_CMP_MASKED_EQ, S_ISUID, 0)}, 1},
	{"newfstatat/named", {SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0)}, 1},
	{"statx/named", {SCMP_A2(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0)}, 1},
	{"ioctl/notify", {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00, SECCOMP_IOC_MAGIC << 8)}, 1},
	{"setpriority/own", {SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1(SCMP_CMP_EQ, 0)}, 2},
	{"quotactl_fd/user", {SCMP_A1(SCMP_CMP_EQ, QUOTA_OF(USRQUOTA))}, 1},
	{"quotactl_fd/group", {SCMP_A1(SCMP_CMP_EQ, QUOTA_OF(GRPQUOTA))}, 1},
	{"prlimit64/ask", {SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)}, 2},
};

static int number_of(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR && strcmp(name, "fchmodat2") == 0)
		nr = 452; /* younger than the oldest libseccomp we build with */
	return nr;
}

static int add_cond(scmp_filter_ctx ctx, uint32_t action, const char *name, struct err *err)
{
	char call[MAX_CALL_NAME];
	size_t n = strcspn(name, "/");
	int nr, r;

	memcpy(call, name, n);
	call[n] = '\0';
	nr = number_of(call);
	for (size_t i = 0; i < ARRAY_LEN(conds); i++) {
		if (strcmp(conds[i].call, name) != 0)
			continue;
		r = seccomp_rule_add_array(ctx, action, nr, conds[i].n_cmp, conds[i].cmp);
		return r < 0 ? err_errno(err, r, "seccomp: cannot add the rule for %s", name) : 0;
	}
	return err_set(err, -EINVAL, "seccomp: unknown condition %s", name);
}

static int add_call(scmp_filter_ctx ctx, uint32_t action, const char *name, struct err *err)
{
	int nr, r;

	if (strchr(name, '/'))
		return add_cond(ctx, action, name, err);
	nr = number_of(name);
	if (nr == __NR_SCMP_ERROR)
		return err_set(err, -EINVAL, "seccomp: unknown system call %s", name);
	if (nr < 0) /* not on this architecture */
		return 0;
	r = seccomp_rule_add(ctx, action, nr, 0);
	return r < 0 ? err_errno(err, r, "seccomp: cannot add the rule for %s", name) : 0;
}

static int add_groups(
	scmp_filter_ctx ctx, uint32_t action, const struct jail_group *g, struct err *err)
{
	char name[MAX_CALL_NAME];
	int r;

	for (; g && g->why; g++) {
		for (const char *p = g->calls; *p; p += strspn(p, " ")) {
			size_t n = strcspn(p, " ");

			if (n >= sizeof(name))
				return err_set(err, -EINVAL, "seccomp: name too long in %s", p);
			memcpy(name, p, n);
			name[n] = '\0';
			p += n;
			r = add_call(ctx, action, name, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* The BPF bytes leave libseccomp through an fd. A pipe holds 64 KiB and the kernel takes at most
 * BPF_MAXINSNS instructions, half of that; a file would run into RLIMIT_FSIZE in edge. */
static int export_bpf(scmp_filter_ctx ctx, struct filter *ret_filter, struct err *err)
{
	const size_t max = BPF_MAXINSNS * sizeof(struct sock_filter);
	AUTO_FREE void *bytes = xmalloc(max);
	AUTO_CLOSE int rd = -1;
	AUTO_CLOSE int wr = -1;
	int pipes[2], r;
	ssize_t size;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "seccomp: cannot create a pipe");
	rd = pipes[0];
	wr = pipes[1];
	r = seccomp_export_bpf(ctx, wr);
	if (r < 0)
		return err_errno(err, r, "seccomp: cannot write the filter");
	fd_close(&wr);
	size = fd_read_full(rd, bytes, max);
	if (size <= 0)
		return err_errno(
			err, size < 0 ? (int)size : -EIO, "seccomp: cannot read the filter");
	ret_filter->prog.len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	ret_filter->prog.filter = TAKE(bytes);
	return 0;
}

static void release_ctx(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int new_ctx(uint32_t otherwise, scmp_filter_ctx *ret_ctx, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);

	if (!ctx)
		return err_errno(err, -ENOMEM, "seccomp: cannot create a filter");
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	*ret_ctx = ctx;
	return 0;
}

int filter_make_start(const struct jail_row *row, bool special_files, int exec_fd,
	struct filter *ret_filter, struct err *err)
{
	CLEANUP(release_ctx) scmp_filter_ctx ctx = NULL;
	struct scmp_arg_cmp exec[] = {
		SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)exec_fd), SCMP_A4(SCMP_CMP_EQ, AT_EMPTY_PATH)};
	int r = new_ctx(SCMP_ACT_ERRNO(EPERM), &ctx, err);

	if (r < 0)
		return r;
	r = add_groups(ctx, SCMP_ACT_ALLOW, row->start, err);
	if (r == 0 && special_files)
		r = add_groups(ctx, SCMP_ACT_ALLOW, row->special, err);
	if (r == 0)
		r = add_groups(ctx, SCMP_ACT_ERRNO(0), row->faked, err);
	if (r == 0)
		r = add_groups(ctx, SCMP_ACT_ERRNO(ENOSYS), row->absent, err);
	if (r < 0)
		return r;
	r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(execveat), 2, exec);
	if (r < 0)
		return err_errno(err, r, "seccomp: cannot add the rule for execveat");
	return export_bpf(ctx, ret_filter, err);
}

/* With both, all calls with a name are sent already. */
static int add_changes(scmp_filter_ctx ctx, const struct filter_notify *what, struct err *err)
{
	int r;

	if (what->paths)
		return add_groups(ctx, SCMP_ACT_NOTIFY, jail_mode_calls, err);
	r = add_groups(ctx, SCMP_ACT_NOTIFY, jail_mode_calls, err);
	if (r == 0)
		r = add_groups(ctx, SCMP_ACT_NOTIFY, jail_change_calls, err);
	return r < 0 ? r : add_groups(ctx, SCMP_ACT_ERRNO(ENOSYS), jail_change_absent, err);
}

int filter_make_notify(const struct filter_notify *what, struct filter *ret_filter, struct err *err)
{
	CLEANUP(release_ctx) scmp_filter_ctx ctx = NULL;
	struct scmp_arg_cmp full[] = {SCMP_A0(SCMP_CMP_GE, what->full_at),
		SCMP_A2(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH)};
	int r = new_ctx(SCMP_ACT_ALLOW, &ctx, err);

	if (r == 0 && what->paths)
		r = add_groups(ctx, SCMP_ACT_NOTIFY, jail_path_calls, err);
	if (r == 0 && what->changes)
		r = add_changes(ctx, what, err);
	if (r == 0 && what->full_at) {
		r = seccomp_rule_add_array(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(statx), 2, full);
		if (r < 0)
			r = err_errno(err, r, "seccomp: cannot add the rule for statx");
	}
	return r < 0 ? r : export_bpf(ctx, ret_filter, err);
}

int filter_make_refusal(struct filter *ret_filter, struct err *err)
{
	CLEANUP(release_ctx) scmp_filter_ctx ctx = NULL;
	int r = new_ctx(SCMP_ACT_ALLOW, &ctx, err);

	if (r == 0)
		r = add_groups(ctx, SCMP_ACT_ERRNO(EPERM), jail_refused_calls, err);
	return r < 0 ? r : export_bpf(ctx, ret_filter, err);
}

int filter_make_seal(const struct jail_row *row, struct filter *ret_filter, struct err *err)
{
	CLEANUP(release_ctx) scmp_filter_ctx ctx = NULL;
	int r = new_ctx(SCMP_ACT_KILL_PROCESS, &ctx, err);

	if (r == 0)
		r = add_groups(ctx, SCMP_ACT_ALLOW, row->seal, err);
	return r < 0 ? r : export_bpf(ctx, ret_filter, err);
}

int filter_install(const struct filter *f, bool listen)
{
	unsigned flags = listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &f->prog);

	return r < 0 ? -errno : (int)r;
}

bool jail_can_notify(void)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

void filter_done(struct filter *f)
{
	free(f->prog.filter);
	f->prog.filter = NULL;
}
