/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/program/run_places.h"

#define CREDS_PROGRAM "/usr/bin/systemd-creds"
#define MAX_ENV 32
#define LATE_STEP_MS 200

extern char **environ;

/* Variables that such programs need for their configuration and the session, and no others. */
static void pick_env(char *env[MAX_ENV + 1])
{
	static const char *const wanted[] = {"HOME=", "USER=", "LOGNAME=", "LANG=", "LC_ALL=",
		"XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=",
		"DBUS_SESSION_BUS_ADDRESS=", "DOCKER_CONFIG=", "GNUPGHOME=", "PASSWORD_STORE_DIR=",
		"AWS_PROFILE=", "AWS_REGION=", "AWS_CONFIG_FILE=", "OP_ACCOUNT=", "VAULT_ADDR=",
		"SSL_CERT_FILE=", "SSL_CERT_DIR="};
	size_t n = 0;

	env[n++] = (char *)"PATH=/usr/local/bin:/usr/bin:/bin";
	for (char **e = environ; *e && n < MAX_ENV; e++) {
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
			if (str_starts(*e, wanted[i]))
				env[n++] = *e;
		}
	}
	env[n] = NULL;
}

/* The program to execute: a built-in one, or one that the user registered. */
struct plan {
	struct run run;
	struct vault_ref ref; /* REF */
};

/* stdin of a docker-credential program: the server's URL, which is not secret. */
static int input_of(const struct plan *p)
{
	int fds[2];
	char line[VAULT_MAX_ARG + 2];
	int n;

	if (p->ref.kind != VAULT_REF_DOCKER)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	n = snprintf(line, sizeof(line), "%s\n", p->ref.args[0]);
	if (write(fds[1], line, (size_t)n) != n)
		fd_close(&fds[0]);
	(void)close(fds[1]);
	return fds[0];
}

static void build_argv(const struct plan *p, char *program, char *argv[VAULT_MAX_ARGS + 6])
{
	size_t n = 0;

	argv[n++] = program;
	if (p->run.kind == RUN_ENCRYPT || p->run.kind == RUN_DECRYPT) {
		/* without --user only root has a key to encrypt with */
		if (geteuid() != 0)
			argv[n++] = (char *)"--user";
		argv[n++] = (char *)"--name=sbx-vault";
		argv[n++] = (char *)(p->run.kind == RUN_ENCRYPT ? "encrypt" : "decrypt");
		argv[n++] = (char *)"-";
		argv[n++] = (char *)"-";
	} else if (p->ref.kind == VAULT_REF_DOCKER) {
		argv[n++] = (char *)"get";
	} else {
		for (size_t i = 0; i < p->ref.n_args; i++)
			argv[n++] = (char *)p->ref.args[i];
	}
	argv[n] = NULL;
}

static void run_child(const struct plan *p, const char *program, int in, int out)
	__attribute__((noreturn));
static void run_child(const struct plan *p, const char *program, int in, int out)
{
	const struct rlimit no_core = {0};
	char *env[MAX_ENV + 1], *argv[VAULT_MAX_ARGS + 6];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigset_t none;

	(void)setsid();
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* none of them is 0, 1 or 2: the runner uses these itself */
	if (chdir("/") < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
		close_range(3, ~0U, 0) < 0)
		_exit(127);
	pick_env(env);
	build_argv(p, (char *)program, argv);
	(void)execve(program, argv, env);
	_exit(errno == ENOENT ? 127 : 126);
}

static char *program_of(const struct plan *p)
{
	if (p->run.kind == RUN_KEYRING)
		return paths_get(PATHS_LIBEXEC, "sbx-vault-keyring");
	return xstrdup(p->run.kind == RUN_REF ? p->ref.program : CREDS_PROGRAM);
}

/* The vault names a serial; only the program that the user registered for it is run. */
static int make_plan(const struct run *run, struct plan *ret)
{
	struct err err = {0};
	int r;

	*ret = (struct plan){.run = *run};
	if (run->kind != RUN_REF)
		return 0;
	r = run_ref_load(run->serial, &ret->ref, &err) < 0 ? -EPERM
							   : run_places_permit(&ret->ref, &err);
	if (r < 0)
		log_warn("refusing to run the program for credential %llu: %s",
			(unsigned long long)run->serial, err_text(&err, r));
	return r < 0 && r != -ENOENT ? -EPERM : r;
}

int run_start(struct run_table *t, uint32_t id, const struct run *run, int fd)
{
	static struct plan plan; /* large */
	AUTO_FREE char *program = NULL;
	AUTO_CLOSE int in = -1;
	bool both = run->kind != RUN_REF;
	size_t i = 0;
	pid_t pid;
	int r = make_plan(run, &plan);

	if (r < 0)
		return r;
	program = program_of(&plan);
	in = both ? -1 : input_of(&plan);
	while (i < RUN_MAX_RUNS && t->list[i].pid)
		i++;
	if (i == RUN_MAX_RUNS)
		return -EBUSY;
	if (access(program, X_OK) < 0)
		return -errno;
	if (!both && in < 0)
		return -EMFILE;
	pid = fork();
	if (pid == 0)
		run_child(&plan, program, both ? fd : in, fd);
	if (pid < 0)
		return -errno;
	t->list[i].pid = pid;
	t->list[i].id = id;
	t->list[i].until_ms = clock_mono_ms() + run->timeout_ms;
	t->list[i].is_late = false;
	return 0;
}

bool run_next_ended(struct run_table *t, uint64_t now_ms, uint32_t *ret_id, int *ret_how)
{
	for (size_t i = 0; i < RUN_MAX_RUNS; i++) {
		int status;

		if (!t->list[i].pid)
			continue;
		if (now_ms >= t->list[i].until_ms) {
			t->list[i].is_late = true;
			(void)kill(-t->list[i].pid, SIGKILL);
			(void)kill(t->list[i].pid, SIGKILL);
		}
		if (waitpid(t->list[i].pid, &status, WNOHANG) != t->list[i].pid)
			continue;
		/* processes that it left behind must not keep the pipe */
		(void)kill(-t->list[i].pid, SIGKILL);
		*ret_id = t->list[i].id;
		*ret_how = t->list[i].is_late  ? -ETIMEDOUT
			   : WIFEXITED(status) ? WEXITSTATUS(status)
					       : -EINTR;
		t->list[i].pid = 0;
		return true;
	}
	return false;
}

int run_wait_ms(const struct run_table *t, uint64_t now_ms)
{
	uint64_t wait = UINT64_MAX;

	for (size_t i = 0; i < RUN_MAX_RUNS; i++) {
		if (!t->list[i].pid)
			continue;
		wait = MIN(wait,
			t->list[i].until_ms > now_ms ? t->list[i].until_ms - now_ms : LATE_STEP_MS);
	}
	return wait == UINT64_MAX ? -1 : (int)MIN(wait, RUN_MAX_MS);
}

void run_kill_all(struct run_table *t)
{
	for (size_t i = 0; i < RUN_MAX_RUNS; i++) {
		if (!t->list[i].pid)
			continue;
		(void)kill(-t->list[i].pid, SIGKILL);
		(void)kill(t->list[i].pid, SIGKILL);
		(void)waitpid(t->list[i].pid, NULL, 0);
		t->list[i].pid = 0;
	}
}
