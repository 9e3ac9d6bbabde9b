/*
 * --jail-selftest: each probe is a child that seals itself exactly as in normal operation and then
 * tries one thing. The final filter kills on violation, so a probe that is not killed by SIGSYS
 * has found a hole. The last two do what edge does all day and must live.
 *
 * System calls are made by number: that way no reference to open, connect or fork exists in the
 * program, which tests/lint/links proves; `syscall` itself is refused there in every other object.
 */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/jail/jail.h"

#define SURVIVED 10
#define CANNOT_SEAL 11

static long try_open(int fd)
{
	return syscall(SYS_open, "/etc/passwd", O_RDONLY);
}

static long try_openat(int fd)
{
	return syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY);
}

static long try_creat(int fd)
{
	return syscall(SYS_openat, AT_FDCWD, "/tmp/edge-was-here", O_WRONLY | O_CREAT, 0600);
}

static long try_socket(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static long try_socketpair(int fd)
{
	int fds[2];

	return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds);
}

static long try_setsockopt(int fd)
{
	int on = 1;

	return syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static long try_memfd(int fd)
{
	return syscall(SYS_memfd_create, "edge", 0);
}

static long try_connect(int fd)
{
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/run/nobody"};

	return syscall(SYS_connect, fd, &to, sizeof(to));
}

static long try_bind(int fd)
{
	const struct sockaddr_un at = {.sun_family = AF_UNIX};

	return syscall(SYS_bind, fd, &at, sizeof(at));
}

static long try_exec(int fd)
{
	char *const argv[] = {(char *)"true", NULL}, *const envp[] = {NULL};

	return syscall(SYS_execve, "/bin/true", argv, envp);
}

static long try_execveat(int fd)
{
	char *const argv[] = {(char *)"true", NULL}, *const envp[] = {NULL};

	return syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}

static long try_fork(int fd)
{
	return syscall(SYS_fork);
}

static long try_clone(int fd)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_ptrace(int fd)
{
	return syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0);
}

static long try_read_memory(int fd)
{
	return syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
}

/* Signal 0 hurts nobody when the jail has a hole. */
static long try_kill(int fd)
{
	return syscall(SYS_kill, 1, 0);
}

static long try_mount(int fd)
{
	return syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL);
}

static long try_unshare(int fd)
{
	return syscall(SYS_unshare, 0);
}

static long try_bpf(int fd)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_io_uring(int fd)
{
	return syscall(SYS_io_uring_setup, 0, NULL);
}

static long try_exec_memory(int fd)
{
	return syscall(SYS_mmap, NULL, 4096, 7, 0x22, -1, 0);
}

static bool try_memory(void)
{
	char *p = malloc(1 << 20);
	bool ok = p != NULL;

	if (p)
		memset(p, 1, 1 << 20);
	free(p);
	(void)malloc_trim(0);
	return ok;
}

/* The day's work: memory, the loop, bytes both ways, the clock, a seed for the table of names. */
static long try_work(int fd)
{
	char byte = 'x';
	int nonblock = fcntl(fd, F_SETFL, O_NONBLOCK);
	struct iovec iov = {&byte, 1};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	uint8_t seed[16];

	if (!try_memory() || nonblock < 0 || write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != -1 ||
		errno != EAGAIN || clock_mono_ms() == 0)
		return -1;
	if (sendmsg(fd, &mh, MSG_NOSIGNAL) != 1 || shutdown(fd, SHUT_WR) < 0 ||
		getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return -1;
	return 0;
}

/* OpenSSL from its first call on: the CA, and what is needed to end TLS. src/edge/open_test.c does the
 * handshakes. */
static long try_tls(int fd)
{
	static const struct edge_config config = {.sandbox = "selftest"};
	struct opener *opener;
	struct err err;

	if (opener_new(&config, &opener, &err) < 0)
		return -1;
	opener_free(opener);
	return 0;
}

static const struct probe {
	const char *name;
	long (*attempt)(int fd);
	bool must_live;
} probes[] = {
	{"open a file", try_open, false},
	{"open a folder", try_openat, false},
	{"create a file", try_creat, false},
	{"make a socket", try_socket, false},
	{"make a pair of sockets", try_socketpair, false},
	{"set a socket's options", try_setsockopt, false},
	{"make a file in memory", try_memfd, false},
	{"connect a socket", try_connect, false},
	{"bind a socket", try_bind, false},
	{"execute a program", try_exec, false},
	{"execute an open file", try_execveat, false},
	{"fork", try_fork, false},
	{"clone", try_clone, false},
	{"ptrace another process", try_ptrace, false},
	{"read another process's memory", try_read_memory, false},
	{"signal another process", try_kill, false},
	{"mount", try_mount, false},
	{"make a namespace", try_unshare, false},
	{"load bpf", try_bpf, false},
	{"set up io_uring", try_io_uring, false},
	{"make memory executable", try_exec_memory, false},
	{"do its own work", try_work, true},
	{"make a CA and end TLS", try_tls, true},
};

/* Never returns. Ends by SIGSYS when the attempt is a violation. */
static void probe_child(const struct probe *p)
{
	struct loop loop;
	struct err err;
	int fds[2];
	long r;

	if (loop_init(&loop) < 0 || syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
		jail_seal(JAIL_EDGE, &err) < 0)
		_exit(CANNOT_SEAL);
	r = p->attempt(fds[0]);
	_exit(p->must_live && r == 0 ? 0 : SURVIVED);
}

static bool probe_run(const struct probe *p)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	bool good;
	int status;

	if (pid == 0)
		probe_child(p);
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) {
		(void)printf("%s: cannot probe: %s\n", p->name, strerror(errno));
		return false;
	}
	if (p->must_live)
		good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	else
		good = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	(void)printf("%s: %s\n", p->name,
		good && p->must_live					  ? "allowed"
		: good							  ? "refused"
		: WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_SEAL ? "NOT SEALED"
		: p->must_live						  ? "KILLED"
									  : "NOT REFUSED");
	return good;
}

int selftest_run(void)
{
	bool good = true;

	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		(void)fflush(stdout);
		good = probe_run(&probes[i]) && good;
	}
	(void)printf("jail self-test: %s\n", good ? "passed" : "failed");
	return good ? 0 : 1;
}
