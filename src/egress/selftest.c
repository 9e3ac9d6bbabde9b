/*
 * --jail-selftest: each probe is a child that seals itself exactly as in normal operation and then
 * tries one thing. The final filter kills on violation, so a probe that is not killed by SIGSYS
 * has found a hole. The last probe does what egress does all day and must live.
 */
#include "egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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
	return syscall(SYS_openat, AT_FDCWD, "/tmp/egress-was-here", O_WRONLY | O_CREAT, 0600);
}

static long try_unix_socket(int fd)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static long try_netlink(int fd)
{
	return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
}

static long try_packet(int fd)
{
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

static long try_raw(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

/* Ping needs no privilege on many hosts. */
static long try_icmp(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}

static long try_sctp(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP);
}

static long try_vsock(int fd)
{
	return syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
}

static long try_bind(int fd)
{
	const struct sockaddr_in at = {.sin_family = AF_INET};

	return syscall(SYS_bind, fd, &at, sizeof(at));
}

static long try_listen(int fd)
{
	return syscall(SYS_listen, fd, 1);
}

static long try_accept(int fd)
{
	return syscall(SYS_accept4, fd, NULL, NULL, 0);
}

static long try_option(int fd)
{
	const int mark = 1;

	return syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
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

/* The day's work: memory, sockets, a connection (to a closed port), bytes through a pipe. */
static long try_work(int fd)
{
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	char byte = 'x', *p = malloc(1 << 20);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int pipes[2], on = 1;

	if (!p || tcp < 0 || (udp < 0 && errno != EAFNOSUPPORT) || clock_mono_ms() == 0)
		return -1;
	memset(p, 1, 1 << 20);
	free(p);
	if (setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
		setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0)
		return -1;
	(void)connect(tcp, (const struct sockaddr *)&to, sizeof(to));
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || pipe2(pipes, O_NONBLOCK | O_CLOEXEC) < 0 ||
		write(pipes[1], &byte, 1) != 1)
		return -1;
	return splice(pipes[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK) == 1 ? 0 : -1;
}

static const struct probe {
	const char *name;
	long (*attempt)(int fd);
	bool must_live;
} probes[] = {
	{"open a file", try_open, false},
	{"open a folder", try_openat, false},
	{"create a file", try_creat, false},
	{"make a unix socket", try_unix_socket, false},
	{"make a netlink socket", try_netlink, false},
	{"make a packet socket", try_packet, false},
	{"make a raw socket", try_raw, false},
	{"make a ping socket", try_icmp, false},
	{"make a socket of another protocol", try_sctp, false},
	{"make a vsock socket", try_vsock, false},
	{"bind a socket", try_bind, false},
	{"listen", try_listen, false},
	{"accept", try_accept, false},
	{"set another option of a socket", try_option, false},
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
};

/* Never returns. Ends by SIGSYS when the attempt is a violation. */
static void probe_child(const struct probe *p)
{
	struct loop loop;
	struct err err;
	int fds[2];
	long r;

	if (loop_init(&loop) < 0 || syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
		jail_seal(JAIL_EGRESS, &err) < 0)
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
