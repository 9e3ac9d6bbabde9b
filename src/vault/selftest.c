/*
 * --jail-selftest: each probe is a child that seals itself exactly as in normal operation and then
 * tries one thing. The final filter kills on violation, so a probe that is not killed by SIGSYS
 * has found a hole. The last probe does what the vault does all day and must live.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/jail/jail.h"
#include "vault.h"

#define SURVIVED 10
#define CANNOT_SEAL 11

static long try_unix_socket(void)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static long try_tcp_socket(void)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static long try_connect(void)
{
	return syscall(SYS_connect, 3, NULL, 0);
}

static long try_exec(void)
{
	char *const argv[] = {(char *)"true", NULL}, *const envp[] = {NULL};

	return syscall(SYS_execve, "/bin/true", argv, envp);
}

static long try_fork(void)
{
	return syscall(SYS_fork);
}

static long try_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0);
}

static long try_read_memory(void)
{
	return syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
}

/* Signal 0 hurts nobody when the jail has a hole. */
static long try_kill(void)
{
	return syscall(SYS_kill, 1, 0);
}

static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL);
}

static long try_dumpable(void)
{
	return syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0);
}

static long try_io_uring(void)
{
	return syscall(SYS_io_uring_setup, 0, NULL);
}

static long try_memfd(void)
{
	return syscall(SYS_memfd_create, "x", 0);
}

static long try_exec_memory(void)
{
	return syscall(SYS_mmap, NULL, 4096, 7, 0x22, -1, 0);
}

/* The day's work: a value in its own memory, a cipher, a pipe. */
static long try_work(void)
{
	static const struct seal_head head = {.source = VAULT_KEY_FILE, .generation = 1};
	AUTO_SECRET struct secret key = {0};
	AUTO_SECRET struct secret plain = {0};
	uint8_t *file = NULL;
	size_t n = 0;
	int pipes[2];

	if (secret_init(&key, SEAL_KEY, NULL) < 0 || seal_random(key.p, SEAL_KEY) < 0)
		return -1;
	key.n = SEAL_KEY;
	if (seal_write(&key, &head, slice_of("x", 1), &file, &n, NULL) < 0 ||
		seal_open(&key, slice_of(file, n), &plain, NULL) < 0 || plain.n != 1)
		return -1;
	free(file);
	return pipe2(pipes, O_CLOEXEC) == 0 && write(pipes[1], "x", 1) == 1 && clock_mono_ms() ? 0
											       : -1;
}

static const struct probe {
	const char *name;
	long (*attempt)(void);
	bool must_live;
} probes[] = {
	{"make a unix socket", try_unix_socket, false},
	{"make a TCP socket", try_tcp_socket, false},
	{"connect", try_connect, false},
	{"execute a program", try_exec, false},
	{"fork", try_fork, false},
	{"clone", try_clone, false},
	{"ptrace another process", try_ptrace, false},
	{"read another process's memory", try_read_memory, false},
	{"signal another process", try_kill, false},
	{"mount", try_mount, false},
	{"become dumpable", try_dumpable, false},
	{"set up io_uring", try_io_uring, false},
	{"make a memory file", try_memfd, false},
	{"make memory executable", try_exec_memory, false},
	{"do its own work", try_work, true},
};

/* Never returns. Ends by SIGSYS when the attempt is a violation. */
static void probe_child(const struct probe *p)
{
	struct err err;
	long r;

	if (jail_seal(JAIL_VAULT, &err) < 0)
		_exit(CANNOT_SEAL);
	r = p->attempt();
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
