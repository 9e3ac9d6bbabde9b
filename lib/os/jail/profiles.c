/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles.h"

#include <assert.h>
#include <linux/capability.h>

#define CAP(c) (UINT64_C(1) << (c))
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* ---- edge: ours, static, one thread, only passed sockets ---- */

/* clang-format off */
#define EDGE_LOOP \
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"}, \
	{"data on passed sockets", \
		"read write readv writev recvmsg sendmsg recvfrom sendto shutdown close " \
		"accept4 getsockopt"}, \
	{"no reset of a connection that the guest closed cleanly", "setsockopt/linger"}, \
	{"set non-blocking, close-on-exec", "fcntl"}, \
	{"memory, never executable", \
		"brk mmap/noexec munmap mremap madvise mprotect/noexec mlock munlock"}, \
	{"time and random numbers", \
		"clock_gettime gettimeofday getrandom nanosleep clock_nanosleep"}, \
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"}, \
	{"signals from signalfd, abort()", \
		"rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"}, \
	{"exit", "exit exit_group"}
/* clang-format on */

static const struct jail_group edge_seal[] = {EDGE_LOOP, {0}};

static const struct jail_group edge_start[] = {
	EDGE_LOOP,
	{"libc startup of a static program",
		"arch_prctl set_tid_address set_robust_list rseq readlink readlinkat "
		"prlimit64/ask fstat newfstatat sigaltstack getuid geteuid getgid getegid uname"},
	{"creation of the event loop",
		"epoll_create1 signalfd4 eventfd2 timerfd_create timerfd_settime dup "
		"socketpair/unix ioctl/tty-ask setsockopt lseek"},
	{"installation of the seccomp filter",
		"pipe2 seccomp prctl/nnp prctl/dumpable prctl/seccomp capget capset"},
	{0},
};

/* ---- egress: ours, static, one thread; the only one with a network ---- */

/* clang-format off */
#define EGRESS_LOOP \
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"}, \
	{"data on sockets", \
		"read write readv writev recvmsg sendmsg recvfrom sendto shutdown close"}, \
	{"tunnels", "splice pipe2"}, \
	{"connections to servers and resolvers; no bind, listen or accept", \
		"socket/tcp4 socket/tcp6 socket/udp4 socket/udp6 connect getpeername getsockname " \
		"getsockopt"}, \
	{"socket options", \
		"setsockopt/nodelay setsockopt/keepalive setsockopt/keepidle setsockopt/keepintvl " \
		"setsockopt/keepcnt"}, \
	{"set non-blocking, close-on-exec", "fcntl"}, \
	{"policy and resolver files, passed as descriptors", "pread64"}, \
	{"memory, never executable", \
		"brk mmap/noexec munmap mremap madvise mprotect/noexec"}, \
	{"time and random numbers", \
		"clock_gettime gettimeofday getrandom nanosleep clock_nanosleep"}, \
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"}, \
	{"signals, abort()", "rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"}, \
	{"exit", "exit exit_group"}
/* clang-format on */

static const struct jail_group egress_seal[] = {EGRESS_LOOP, {0}};

static const struct jail_group egress_start[] = {
	EGRESS_LOOP,
	{"libc startup of a static program",
		"arch_prctl set_tid_address set_robust_list rseq readlink readlinkat "
		"prlimit64/ask fstat newfstatat sigaltstack getuid geteuid getgid getegid uname"},
	{"c-ares searches for its files in an empty root", "open openat lseek"},
	{"creation of the event loop", "epoll_create1 ioctl/tty-ask"},
	{"installation of the seccomp filter",
		"seccomp prctl/nnp prctl/dumpable prctl/seccomp capget capset"},
	{0},
};

/* ---- ssh-agent: ours, static, one thread, only passed sockets ---- */

/* clang-format off */
#define SSH_AGENT_LOOP \
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl"}, \
	{"data on passed sockets; log lines", \
		"recvmsg sendmsg recvfrom sendto close write writev"}, \
	{"set non-blocking", "fcntl"}, \
	{"memory, never executable", "brk mmap/noexec munmap mremap madvise mprotect/noexec"}, \
	{"time and random numbers", "clock_gettime gettimeofday getrandom"}, \
	{"libc locks", "futex restart_syscall"}, \
	{"signals, abort()", "rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"}, \
	{"exit", "exit exit_group"}
/* clang-format on */

static const struct jail_group ssh_agent_seal[] = {SSH_AGENT_LOOP, {0}};

static const struct jail_group ssh_agent_start[] = {
	SSH_AGENT_LOOP,
	{"libc startup of a static program",
		"arch_prctl set_tid_address set_robust_list rseq readlink readlinkat "
		"prlimit64/ask fstat newfstatat sigaltstack getuid geteuid getgid getegid uname"},
	{"creation of the event loop", "epoll_create1 ioctl/tty-ask lseek"},
	{"installation of the seccomp filter",
		"pipe2 read seccomp prctl/nnp prctl/dumpable prctl/seccomp capget capset"},
	{0},
};

/* ---- vault: ours, static, one thread; all credentials, one directory ---- */

static const struct jail_group vault_seal[] = {
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"},
	{"peers, and pipes that carry values",
		"read write readv writev recvmsg sendmsg recvfrom sendto shutdown close "
		"accept4 getsockopt geteuid"},
	{"pipe to a program that sbx-vault-run executes", "pipe2 socketpair/unix"},
	{"set non-blocking, close-on-exec; check the type of received descriptors", "fcntl fstat"},
	{"the sealed file, in the only directory of the jail",
		"open openat pread64 newfstatat access faccessat faccessat2 getdents64 lseek fsync "
		"rename "
		"renameat unlink unlinkat flock"},
	{"memory, never executable; values in hidden or locked pages",
		"brk mmap/noexec munmap mremap madvise mprotect/noexec mlock munlock memfd_secret "
		"ftruncate"},
	{"time and random numbers",
		"clock_gettime gettimeofday getrandom nanosleep clock_nanosleep"},
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"},
	{"signals, abort()", "rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"},
	{"exit", "exit exit_group"},
	{0},
};

/* ---- origin: ours, static, one thread; one credential, only passed sockets ---- */

static const struct jail_group origin_seal[] = {
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"},
	{"data on passed sockets",
		"read write readv writev recvmsg sendmsg recvfrom sendto shutdown close"},
	{"set non-blocking, close-on-exec", "fcntl"},
	{"service and CA files, passed as descriptors", "pread64"},
	{"socket pair for tokens to the vault; the keeper gets the other end", "pipe2"},
	{"memory, never executable; values in hidden or locked pages",
		"brk mmap/noexec munmap mremap madvise mprotect/noexec mlock munlock memfd_secret "
		"ftruncate"},
	{"time and random numbers",
		"clock_gettime gettimeofday getrandom nanosleep clock_nanosleep"},
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"},
	{"signals, abort(); OpenSSL's random generator queries the process id",
		"rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"},
	{"exit", "exit exit_group"},
	{0},
};

/* ---- clerk-git, clerk: ours, static, one thread; read what a guest wrote, only passed sockets, no
 * secret ---- */

/* clang-format off */
#define CLERK_GIT_LOOP \
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl"}, \
	{"data on passed sockets; log lines", \
		"read pread64 write writev recvmsg sendmsg recvfrom sendto close"}, \
	{"set non-blocking", "fcntl"}, \
	{"memory, never executable", "brk mmap/noexec munmap mremap madvise mprotect/noexec"}, \
	{"time and random numbers", "clock_gettime gettimeofday getrandom"}, \
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"}, \
	{"signals, abort()", "rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"}, \
	{"exit", "exit exit_group"}
/* clang-format on */

static const struct jail_group clerk_git_seal[] = {CLERK_GIT_LOOP, {0}};

static const struct jail_group clerk_git_start[] = {
	CLERK_GIT_LOOP,
	{"libc startup of a static program",
		"arch_prctl set_tid_address set_robust_list rseq readlink readlinkat "
		"prlimit64/ask fstat newfstatat sigaltstack getuid geteuid getgid getegid uname"},
	{"creation of the event loop", "epoll_create1 ioctl/tty-ask lseek"},
	{"installation of the seccomp filter",
		"pipe2 seccomp prctl/nnp prctl/dumpable prctl/seccomp capget capset"},
	{0},
};

/* ---- notify: ours, one thread; two sockets: sbxd and the session bus ---- */

static const struct jail_group notify_seal[] = {
	{"data on both sockets; log lines",
		"read write readv writev recvmsg sendmsg recvfrom sendto close"},
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"},
	{"look for a tracer, once, in /proc/self/status that was opened before", "pread64"},
	{"set non-blocking", "fcntl"},
	{"memory, never executable", "brk mmap/noexec munmap mremap madvise mprotect/noexec"},
	{"time and random numbers", "clock_gettime gettimeofday getrandom"},
	{"libc locks; qsort queries the memory size", "futex restart_syscall sysinfo"},
	{"signals, abort()", "rt_sigreturn rt_sigprocmask rt_sigaction getpid gettid tgkill"},
	{"exit", "exit exit_group"},
	{0},
};

/* ---- what the two foreign programs have in common ---- */

/* clang-format off */
#define FOREIGN \
	{"libc startup, libraries from read-only bind mounts", \
		"arch_prctl set_tid_address set_robust_list rseq readlink readlinkat getcwd " \
		"prlimit64/ask uname sysinfo getuid getgid getegid getresuid getresgid " \
		"getppid getpgrp getgroups openat2 access faccessat faccessat2 " \
		"stat lstat fstat newfstatat statx statfs fstatfs getdents64 mprotect mmap"}, \
	{"memory", \
		"brk munmap mremap madvise msync mincore mlock munlock memfd_create membarrier"}, \
	{"threads", \
		"futex sched_yield sched_getaffinity sched_getparam sched_getscheduler " \
		"sigaltstack gettid getpid tgkill getcpu get_mempolicy prctl/name prctl/nnp-ask"}, \
	{"event loop", \
		"poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait " \
		"epoll_pwait2 eventfd2 pipe2 signalfd4 timerfd_create timerfd_settime " \
		"timerfd_gettime restart_syscall"}, \
	{"content of open files", \
		"read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek " \
		"fsync fdatasync sync_file_range fallocate ftruncate fadvise64 copy_file_range " \
		"flock fcntl dup dup2 dup3 close close_range umask"}, \
	{"passed sockets", \
		"recvmsg sendmsg recvfrom sendto sendmmsg recvmmsg shutdown getsockname " \
		"getpeername getsockopt setsockopt accept accept4 listen"}, \
	{"time and random numbers", \
		"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time getrandom"}, \
	{"signals", \
		"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait " \
		"rt_sigsuspend timer_create timer_settime timer_gettime timer_delete " \
		"timer_getoverrun"}, \
	{"a second, narrower seccomp filter of the program", \
		"seccomp prctl/nnp prctl/seccomp prctl/seccomp-ask prctl/dumpable"}, \
	{"exit", "exit exit_group"}

#define ABSENT_THREADS \
	{"seccomp cannot check the flags of clone3; libc falls back to clone", "clone3"}, \
	{"seccomp does not filter io_uring requests such as socket, connect and open", \
		"io_uring_setup io_uring_enter io_uring_register"}
/* clang-format on */

/* ---- qemu ---- */

static const struct jail_group qemu_start[] = {
	FOREIGN,
	{"files in the jail's root directory", "open openat"},
	{"user id", "geteuid"},
	{"threads, no processes", "clone/thread"},
	{"KVM and terminal queries; all other ioctls are denied",
		"ioctl/kvm ioctl/tty-ask ioctl/nonblock"},
	{"aio=native", "io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy"},
	{"back channel of vhost-user", "socketpair/unix"},
	{"NUMA policy of guest memory, own scheduling priority",
		"mbind set_mempolicy sched_get_priority_max sched_get_priority_min"},
	{"timers; early notification of memory errors", "prctl/timerslack prctl/mce"},
	{0},
};

static const struct jail_group qemu_absent[] = {ABSENT_THREADS, {0}};

/* ---- virtiofsd ---- */

static const struct jail_group virtiofsd_start[] = {
	FOREIGN,
	{"one fork into virtiofsd's own sandbox, then threads; no user namespaces",
		"clone/no-namespaces fork vfork unshare/no-user wait4 waitid pidfd_open"},
	{"virtiofsd's own sandbox: mounts in its mount namespace, which contains only the share",
		"mount umount2 pivot_root chroot chdir fchdir mkdir rmdir setsid prctl/pdeathsig "
		"mount_setattr open_tree move_mount fsopen fsconfig fsmount fspick"},
	{"dropping of capabilities",
		"capget capset prctl/capbset-read prctl/capbset-drop prctl/ambient "
		"prctl/securebits prctl/securebits-set prctl/keepcaps"},
	{"file operations on paths below the share",
		"mkdirat symlinkat linkat unlinkat renameat renameat2 fchown fchownat utimensat "
		"truncate syncfs name_to_handle_at open_by_handle_at"},
	/* A process of another user that ran such a file would run the guest's code as the user. A
	 * filter cannot see the mode of openat2, with which the Rust virtiofsd creates files. */
	{"file modes, without the set-user-id bit",
		"open/no-suid openat/no-suid fchmod/no-suid fchmodat/no-suid fchmodat2/no-suid"},
	{"regular files, without the set-user-id bit", "mknodat/regular mknodat/no-type"},
	{"extended attributes",
		"getxattr setxattr listxattr removexattr lgetxattr lsetxattr llistxattr "
		"lremovexattr fgetxattr fsetxattr flistxattr fremovexattr"},
	{"file flags", "ioctl/tty-ask ioctl/nonblock ioctl/fs-flags"},
	{"lowering of resource limits", "setrlimit prlimit64"},
	{"scheduling attributes of threads", "sched_setattr sched_getattr"},
	{"socket pair for threads", "socketpair/unix"},
	{"killing of the child process on stop", "kill"},
	{0},
};

static const struct jail_group virtiofsd_special[] = {
	{"FIFOs and sockets, if the setting share.special-files is true",
		"mknodat/fifo mknodat/socket"},
	{0},
};

/* Every request runs as the one user of the namespace: files belong to the host user, whichever
 * guest user writes them. virtiofsd believes that it has changed identity. */
static const struct jail_group virtiofsd_faked[] = {
	{"one user id for all requests", "setresuid setresgid setgroups setuid setgid setreuid "
					 "setregid setfsuid setfsgid"},
	{"with user id 0 the Rust virtiofsd does not run newuidmap", "geteuid"},
	{0},
};

static const struct jail_group virtiofsd_absent[] = {ABSENT_THREADS, {0}};

/* ---- template: umoci, debugfs, mke2fs, e2fsck, jq, tar and a shell, on files of strangers ---- */

static const struct jail_group template_start[] = {
	FOREIGN,
	{"build steps run programs of the read-only /usr; no namespaces",
		"execve clone/no-namespaces fork vfork wait4 waitid kill pipe getpgid setpgid "
		"geteuid getrusage times setitimer getitimer alarm pidfd_open pidfd_send_signal"},
	{"files of every type in the passed directories",
		"open openat creat mkdir mkdirat rmdir mknod mknodat link linkat symlink symlinkat "
		"unlink unlinkat rename renameat renameat2 chmod fchmod fchmodat fchmodat2 chown "
		"lchown fchown fchownat utime utimes utimensat futimesat truncate chdir fchdir "
		"syncfs sync"},
	{"chroot of sbx-graft", "chroot"},
	{"extended attributes",
		"getxattr setxattr listxattr removexattr lgetxattr lsetxattr llistxattr "
		"lremovexattr fgetxattr fsetxattr flistxattr fremovexattr"},
	{"terminal queries and file flags", "ioctl/tty-ask ioctl/fs-flags"},
	{"pipes between programs", "socketpair/unix"},
	{0},
};

static const struct jail_group template_absent[] = {ABSENT_THREADS, {0}};

/* ---- git: fetches from and pushes to the git of a guest; starts its own programs ---- */

static const struct jail_group git_start[] = {
	FOREIGN,
	{"git runs index-pack, pack-objects and its helper from the read-only /usr; no namespaces",
		"execve clone/no-namespaces fork vfork wait4 waitid kill pipe geteuid getrusage "
		"setitimer alarm"},
	{"files in its repository",
		"open openat creat mkdir mkdirat rmdir link linkat unlink unlinkat rename renameat "
		"renameat2 chmod fchmod fchmodat utime utimes utimensat truncate chdir fchdir"},
	{"terminal queries", "ioctl/tty-ask"},
	{0},
};

static const struct jail_group git_absent[] = {ABSENT_THREADS, {0}};

/* Calls that pass a name of the guest to the kernel: always with the fd of a directory, so calls
 * without one are not listed, and calls for an fd itself (AT_EMPTY_PATH) are allowed. */
const struct jail_group jail_path_calls[] = {
	{"open and query", "openat openat2 newfstatat/named statx/named faccessat faccessat2 "
			   "readlinkat name_to_handle_at"},
	{"changing", "mkdirat mknodat symlinkat linkat unlinkat renameat renameat2 fchmodat "
		     "fchmodat2 fchownat utimensat"},
	{0},
};

/* Calls that make, change or remove a name. Not mkdirat and rmdir: a directory alone is
 * harmless. */
const struct jail_group jail_change_calls[] = {
	{"open for writing",
		"openat/write openat/read-write openat/no-access openat/create openat/truncate"},
	{"names", "mknodat symlinkat linkat unlinkat/file renameat renameat2 fchmodat fchmodat2"},
	{0},
};

const struct jail_group jail_mode_calls[] = {
	{"mode of an open file", "fchmod"},
	{0},
};

const struct jail_group jail_change_absent[] = {
	{"seccomp cannot check the flags of openat2; virtiofsd falls back to openat", "openat2"},
	{0},
};

/* ---- a spawner, which starts programs and makes their namespaces: what neither needs ---- */

const struct jail_group jail_refused_calls[] = {
	{"access to other processes, except process_vm_readv for the supervisor of hidden names",
		"ptrace process_vm_writev pidfd_getfd"},
	{"namespaces of other processes", "setns"},
	{"kernel subsystems with a large attack surface",
		"bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register"},
	{"kernel keyrings", "keyctl add_key request_key"},
	{"administration of the host",
		"init_module finit_module delete_module kexec_load kexec_file_load reboot swapon "
		"swapoff acct quotactl syslog iopl ioperm settimeofday clock_settime clock_adjtime "
		"adjtimex"},
	{0},
};

/* ---- hide: the supervisor of those calls; a fork of keeper that only seals itself ---- */

static const struct jail_group hide_seal[] = {
	{"receive and answer seccomp notifications", "poll ppoll ioctl/notify"},
	{"read the file name", "process_vm_readv"},
	{"request disk space from the keeper", "read write"},
	{"exit", "exit_group rt_sigreturn restart_syscall"},
	{0},
};

/* ---- guard: the same for guarded names; files are the hand's, which has Landlock ---- */

static const struct jail_group guard_seal[] = {
	{"receive and answer seccomp notifications", "poll ppoll ioctl/notify"},
	{"read names and directories of virtiofsd",
		"process_vm_readv readlinkat newfstatat statfs openat/name-only close"},
	{"request disk space from the keeper", "read write"},
	{"requests to the hand, events to the keeper",
		"sendmsg/connected sendto/connected recvfrom"},
	{"exit", "exit_group rt_sigreturn restart_syscall"},
	{0},
};

static const struct jail_group hand_seal[] = {
	{"requests of the guard, events to the keeper",
		"recvmsg sendto/connected sendmsg/connected fcntl"},
	{"files of the workspaces and of the guard, restricted by Landlock",
		"openat openat2 close fstat newfstatat getdents64 readlinkat renameat renameat2 "
		"symlinkat unlinkat mkdirat fchmod read write pread64 lseek"},
	{"memory, never executable", "brk mmap/noexec munmap mremap madvise mprotect/noexec"},
	{"time and random numbers", "clock_gettime gettimeofday getrandom"},
	{"exit", "exit_group rt_sigreturn restart_syscall"},
	{0},
};

/* ---- keeper: ours, one thread; the broker of a sandbox, whose spawner does the rest ---- */

static const struct jail_group keeper_start[] = {
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"},
	{"messages to child processes over existing sockets; no connect by name",
		"read write readv writev recvmsg recvmmsg recvfrom shutdown close "
		"sendmsg/connected sendto/connected getsockopt getpeername getsockname"},
	{"sockets for child processes", "socketpair/stream socketpair/seqpacket pipe2"},
	{"published ports and connections from sbxd; no outgoing connections",
		"socket/tcp4 socket/tcp6 bind listen accept accept4 setsockopt"},
	{"addresses of the host", "socket/route"},
	{"files of the sandbox, restricted by Landlock",
		"open openat access faccessat faccessat2 stat lstat fstat newfstatat statx statfs "
		"fstatfs getdents64 readlink readlinkat mkdir mkdirat rmdir unlink unlinkat rename "
		"renameat renameat2 link linkat fchmod flock umask"},
	{"quotas of the user", "quotactl_fd/user quotactl_fd/group"},
	{"file content",
		"pread64 pwrite64 preadv pwritev lseek fsync fdatasync ftruncate fallocate "
		"fadvise64 copy_file_range sync_file_range sendfile memfd_create"},
	{"descriptors", "fcntl dup dup2 dup3 ioctl/tty-ask ioctl/nonblock close_range"},
	{"memory of a restored VM from a snapshot, without a copy of its blocks",
		"ioctl/clone-file"},
	{"pending lookups of virtiofsd", "ioctl/notify"},
	{"forks that hash and copy snapshots, with the same restrictions",
		"clone/no-namespaces set_robust_list rseq wait4 waitid pidfd_open "
		"pidfd_send_signal "
		"kill getppid prctl/pdeathsig-kill"},
	{"memory, never executable",
		"brk mmap/noexec munmap mremap madvise mprotect/noexec mlock munlock msync"},
	{"time and random numbers",
		"clock_gettime clock_getres gettimeofday time getrandom nanosleep clock_nanosleep"},
	{"libc: locks, user id, system information",
		"futex restart_syscall sysinfo uname sched_yield sched_getaffinity prlimit64/ask "
		"getpid gettid getuid geteuid getgid getegid"},
	{"signals, abort()",
		"rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack tgkill signalfd4"},
	{"further Landlock restrictions when a VM of the pool is claimed",
		"landlock_create_ruleset landlock_add_rule landlock_restrict_self"},
	{"exit", "exit exit_group"},
	{0},
};

/* ---- sbxd: ours, one thread; the broker of all sandboxes of a user, with a spawner ---- */

static const struct jail_group sbxd_start[] = {
	{"event loop", "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll"},
	{"messages to clients, keepers and the vault over existing sockets; no connect by name",
		"read write readv writev recvmsg recvfrom shutdown close sendmsg/connected "
		"sendto/connected getsockopt setsockopt getpeername getsockname"},
	{"channels for keepers and the vault", "socketpair/stream socketpair/seqpacket pipe2"},
	{"listening sockets of sbxd, of the vault and of suspended sandboxes; no outgoing "
	 "connections",
		"socket/unix-stream socket/unix-seqpacket socket/tcp4 socket/tcp6 bind listen "
		"accept accept4"},
	{"addresses of the host", "socket/route"},
	{"files of sbx, restricted by Landlock; resolution of workspace paths",
		"open openat openat2 access faccessat faccessat2 stat lstat fstat newfstatat statx "
		"statfs fstatfs getdents64 readlink readlinkat mkdir mkdirat rmdir unlink unlinkat "
		"rename renameat renameat2 link linkat fchmod flock umask"},
	{"file content; SQLite",
		"pread64 pwrite64 preadv pwritev lseek fsync fdatasync ftruncate fallocate "
		"fadvise64 copy_file_range sync_file_range sendfile memfd_create"},
	{"descriptors", "fcntl dup dup2 dup3 ioctl/tty-ask ioctl/nonblock close_range"},
	{"forks that remove files and verify audit logs, with the same restrictions",
		"clone/no-namespaces set_robust_list rseq wait4 waitid pidfd_open "
		"pidfd_send_signal kill getppid getpriority setpriority/own prctl/pdeathsig-kill"},
	{"memory, never executable",
		"brk mmap/noexec munmap mremap madvise mprotect/noexec mlock munlock msync"},
	{"time and random numbers",
		"clock_gettime clock_getres gettimeofday time getrandom nanosleep clock_nanosleep"},
	{"libc: locks, user id, system information",
		"futex restart_syscall sysinfo uname sched_yield sched_getaffinity prlimit64/ask "
		"getpid gettid getuid geteuid getgid getegid"},
	{"signals, abort()",
		"rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack tgkill signalfd4"},
	{"exit", "exit exit_group"},
	{0},
};

static const struct jail_group broker_absent[] = {
	{"seccomp cannot check the flags of clone3; libc falls back to clone", "clone3"},
	{0},
};

/*
 * core   0 would still feed a core_pattern that is a pipe; 1 is refused for files and for pipes.
 * nproc  counts tasks of this uid in the new user namespace, that is, threads of this program.
 * nofile edge: a socket for each stream of both ports. qemu: disks, chardevs, eventfds of queues.
 *        virtiofsd: one fd for each file that the guest remembers, so a guest can use up the
 *        limit; near it sbx makes the guest drop files (lib/vm/share/room.h), above it the guest
 *        gets EMFILE.
 *        The kernel also compares it with the descriptors that ALL processes of the user have sent
 *        and none has received. egress, origin and vault, which pass descriptors on, have more than
 *        edge, qemu and template: none of these can use up theirs. virtiofsd can.
 * as     our own programs: far above the sum of their own limits (edge: twice its budget,
 *        src/edge/budget.c), so that a compromised program cannot use up the host's memory. qemu
 *        and virtiofsd map the guest's memory and have none; a cgroup limits them where one is
 *        delegated.
 */
const struct jail_mount jail_dev_null = {"/dev/null", "/dev/null", JAIL_MOUNT_DEV};

/* clang-format off */
/* Of our own programs: they create no file and no process. */
#define OWN_LIMITS(nofile_, memlock_, as_) {.nofile = nofile_, .memlock = memlock_, .as = as_}
/* Of the programs of others. */
#define OTHER_LIMITS(nofile_, memlock_) \
	{.core = 1, .fsize = RLIM_INFINITY, .nproc = 512, .nofile = nofile_, .memlock = memlock_}
#define NO_LIMITS \
	{.core = 1, .fsize = RLIM_INFINITY, .nproc = RLIM_INFINITY, .nofile = RLIM_INFINITY, \
		.memlock = RLIM_INFINITY}
/* clang-format on */

static const struct jail_row rows[] = {
	[JAIL_EDGE] = {.name = "edge",
		.landlock = true,
		.limit = OWN_LIMITS(2048, 1024 * KIB, JAIL_EDGE_AS),
		.start = edge_start,
		.seal = edge_seal},
	[JAIL_QEMU] = {.name = "qemu",
		.dev_null = true,
		.landlock = true,
		.limit = OTHER_LIMITS(4096, RLIM_INFINITY),
		.start = qemu_start,
		.absent = qemu_absent},
	/* No Landlock: it forbids mounts, and virtiofsd mounts its own sandbox. */
	[JAIL_VIRTIOFSD] = {.name = "virtiofsd",
		.proc = true,
		.run_tmpfs = true,
		.dev_null = true,
		.caps = CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_CHROOT) | CAP(CAP_SETPCAP) |
			CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) |
			CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_SETFCAP) | CAP(CAP_MKNOD),
		.limit = OTHER_LIMITS(262144, 64 * KIB),
		.start = virtiofsd_start,
		.special = virtiofsd_special,
		.faked = virtiofsd_faked,
		.absent = virtiofsd_absent},
	/* nofile: see above; it opens two sockets for each of 1,280 exchanges, the
	 * tries of those that connect, pipes. */
	[JAIL_EGRESS] = {.name = "egress",
		.landlock = true,
		.host_net = true,
		.limit = OWN_LIMITS(8192, 64 * KIB, 768 * MIB),
		.start = egress_start,
		.seal = egress_seal},
	/* Enters the jail itself (jail_self), so there is nothing to start. memlock: 2 MiB of
	 * values, as much again while they are sealed, and what is being read. nofile: see above;
	 * it opens 4,160 channels, 64 pipes and files, 8 programs. */
	[JAIL_VAULT] = {.name = "vault",
		.landlock = true,
		.limit = {.core = 0,
			.fsize = 8192 * KIB,
			.nproc = 0,
			.nofile = 8192,
			.memlock = 16384 * KIB},
		.seal = vault_seal},
	[JAIL_SSH_AGENT] = {.name = "ssh-agent",
		.landlock = true,
		.limit = OWN_LIMITS(64, 64 * KIB, 128 * MIB),
		.start = ssh_agent_start,
		.seal = ssh_agent_seal},
	/* Enters the jail itself, too. nofile: see above; it has 257 exchanges, 32 connections, a
	 * stream of the vault. memlock: three values and the heads of 32 requests. fsize: of one of
	 * them, which is a file to ftruncate; there is no other. */
	[JAIL_ORIGIN] = {.name = "origin",
		.landlock = true,
		.limit = {.core = 0,
			.fsize = 512 * KIB,
			.nproc = 0,
			.nofile = 8192,
			.memlock = 8192 * KIB,
			.as = 768 * MIB},
		.seal = origin_seal},
	/* Its ids are those of the user namespace that template-oci makes. The size of a file is
	 * limited by template-oci (ulimit -f). */
	[JAIL_TEMPLATE] = {.name = "template",
		.dev_null = true,
		.caps = CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) |
			CAP(CAP_SETFCAP) | CAP(CAP_SYS_CHROOT) | CAP(CAP_MKNOD),
		.limit = OTHER_LIMITS(4096, 64 * KIB),
		.start = template_start,
		.absent = template_absent},
	/* as: an object that git unpacks in memory. fsize: the pack. Both are a guest's. */
	[JAIL_GIT] = {.name = "git",
		.dev_null = true,
		.landlock = true,
		.limit = {.core = 1,
			.fsize = JAIL_GIT_FSIZE,
			.nproc = 128,
			.nofile = 1024,
			.memlock = 64 * KIB,
			.as = 4096 * MIB},
		.start = git_start,
		.absent = git_absent},
	/* Enters the jail itself, too. outlives: when sbxd has exited, it closes its notifications.
	 * fsize: of its log, stderr. as: a message of the bus. cpu: a message takes
	 * microseconds. */
	[JAIL_NOTIFY] = {.name = "notify",
		.outlives = true,
		.landlock = true,
		.limit = {.core = 0,
			.fsize = 4 * MIB,
			.nproc = 0,
			.nofile = 64,
			.memlock = 64 * KIB,
			.as = 256 * MIB,
			.cpu = 60},
		.seal = notify_seal},
	/* as: a pack, an answer of the server, contents. cpu: a push takes seconds (GITPACK
	 * limits). */
	[JAIL_CLERK_GIT] = {.name = "clerk-git",
		.landlock = true,
		.limit = {.core = 0,
			.fsize = 0,
			.nproc = 0,
			.nofile = 512,
			.memlock = 64 * KIB,
			.as = 1024 * MIB,
			.cpu = 600},
		.start = clerk_git_start,
		.seal = clerk_git_seal},
	/* as: an API pack, a body, its document. cpu: a request takes milliseconds. */
	[JAIL_CLERK] = {.name = "clerk",
		.landlock = true,
		.limit = {.core = 0,
			.fsize = 0,
			.nproc = 0,
			.nofile = 64,
			.memlock = 64 * KIB,
			.as = 64 * MIB,
			.cpu = 20},
		.start = clerk_git_start,
		.seal = clerk_git_seal},
	[JAIL_HIDE] = {.name = "hide", .seal = hide_seal},
	[JAIL_GUARD] = {.name = "guard", .seal = guard_seal},
	[JAIL_HAND] = {.name = "hand", .seal = hand_seal},
	/* No namespaces and no limits: jail_broker. */
	[JAIL_KEEPER] = {.name = "keeper",
		.host_net = true,
		.landlock = true,
		.limit = NO_LIMITS,
		.start = keeper_start,
		.absent = broker_absent},
	[JAIL_SBXD] = {.name = "sbxd",
		.host_net = true,
		.landlock = true,
		.limit = NO_LIMITS,
		.start = sbxd_start,
		.absent = broker_absent},
};

static_assert(sizeof(rows) / sizeof(rows[0]) == JAIL_N_PROFILES, "one row per program");

const struct jail_row *jail_row(enum jail_profile profile)
{
	assert(profile < JAIL_N_PROFILES);
	return &rows[profile];
}
