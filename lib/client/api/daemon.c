/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/process/keepenv.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/base/fs/paths.h"
#include "api.h"
#include "lib/client/cli/quote.h"

#define POLL_US 10000

char *daemon_socket_path(void)
{
	return paths_get(PATHS_RUNTIME, "sbxd.sock");
}

char *daemon_log_path(void)
{
	return paths_get(PATHS_STATE, "sbxd.log");
}

char *daemon_own_path(void)
{
	char own[PATHS_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own));

	return n > 0 ? xstrndup(own, (size_t)n) : NULL;
}

char *daemon_helper_path(const char *name)
{
	AUTO_FREE char *installed = paths_get(PATHS_LIBEXEC, "%s", name), *beside = NULL;
	AUTO_FREE char *self = daemon_own_path();

	if (!self || getenv("SBX_LIBEXEC"))
		return TAKE(installed);
	*strrchr(self, '/') = '\0';
	beside = xasprintf("%s/%s", self, name);
	return access(beside, X_OK) == 0 ? TAKE(beside) : TAKE(installed);
}

/* Another user's process may listen where other users can write. It gets no request. */
static int try_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = -1;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return fd_is_same_user(fd) ? TAKE_FD(fd) : -EPERM;
}

static int say_no_connection(int r, const char *path, struct problem *p)
{
	AUTO_FREE char *quoted = quote_sh(path);

	if (r != -EPERM)
		return err_errno(&p->err, r, "cannot connect to %s", path);
	(void)err_set(&p->err, r, "the process that listens at %s is owned by another user", path);
	return problem_hint(p, r, "ls -l %s", quoted);
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

int daemon_try(struct problem *p)
{
	AUTO_FREE char *path = daemon_socket_path();
	int fd = try_connect(path);

	if (is_absent(fd)) {
		(void)err_set(&p->err, -ECONNREFUSED, "sbxd is not running");
		return problem_hint(p, -ECONNREFUSED, "sbx daemon start");
	}
	return fd < 0 ? say_no_connection(fd, path, p) : fd;
}

/* In the child: a new session, no inherited descriptors, messages in the log file. */
static void become_sbxd(const char *program, const char *log)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL), *state = xasprintf("--state=%s", dir);
	const char *const argv[] = {"sbxd", state, NULL};
	char *env[KEEPENV_MAX + 1];
	int null = open("/dev/null", O_RDWR);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	(void)setsid();
	(void)signal(SIGPIPE, SIG_DFL);
	if (dup2(null, 0) < 0 || dup2(out >= 0 ? out : null, 1) < 0 || dup2(1, 2) < 0)
		_exit(127);
	if (close_range(3, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(127);
	/* a long-running process must not get keys and tokens of this shell */
	(void)keepenv_pick(env);
	(void)execve(program, (char *const *)argv, env);
	_exit(127);
}

static int say_no_start(const char *program, const char *log, int status, struct problem *p)
{
	if (access(program, X_OK) < 0)
		(void)err_errno(&p->err, -ENOENT, "cannot start %s", program);
	else if (status >= 0)
		(void)err_set(&p->err, -EIO, "sbxd exited immediately (status %d)",
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	else
		(void)err_set(&p->err, -ETIMEDOUT,
			"sbxd did not accept connections within %d seconds",
			DAEMON_START_MS / 1000);
	return problem_hint(p, -EIO, "cat %s", log);
}

static int start_and_connect(const char *socket_path, struct problem *p)
{
	AUTO_FREE char *program = daemon_helper_path("sbxd"), *log = daemon_log_path();
	uint64_t began = clock_mono_ms(), until = began + DAEMON_START_MS;
	int status = -1;
	bool said = false;
	pid_t pid = fork();

	ui_debug("starting %s", program);
	if (pid == 0)
		become_sbxd(program, log);
	if (pid < 0)
		return err_errno(&p->err, -errno, "cannot start sbxd");
	while (clock_mono_ms() < until) {
		int fd = try_connect(socket_path);

		if (fd >= 0)
			return fd;
		if (waitpid(pid, &status, WNOHANG) == pid)
			break; /* another sbxd may have the socket: try once more */
		if (!said && clock_mono_ms() >= began + DAEMON_SLOW_MS) {
			ui_note("waiting for sbxd to start");
			said = true;
		}
		(void)usleep(POLL_US);
	}
	if (status >= 0) {
		int fd = try_connect(socket_path);

		if (fd >= 0)
			return fd;
	}
	return say_no_start(program, log, status, p);
}

/* Limited: the holder of the lock is itself limited by DAEMON_START_MS. */
static int take_lock(struct problem *p)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "sbxd.start.lock");
	int fd = file_lock(path, 2 * DAEMON_START_MS, &p->err);

	if (fd == -EBUSY)
		return err_set(&p->err, -ETIMEDOUT,
			"timed out waiting for another process that is starting sbxd");
	return fd;
}

static int connect_or_start(struct problem *p)
{
	AUTO_FREE char *path = daemon_socket_path();
	AUTO_FREE char *runtime = paths_get(PATHS_RUNTIME, NULL),
		       *state = paths_get(PATHS_STATE, NULL);
	AUTO_CLOSE int lock = -1;
	int fd = try_connect(path);

	if (fd >= 0)
		return fd;
	if (!is_absent(fd))
		return say_no_connection(fd, path, p);
	if (paths_make(runtime, &p->err) < 0 || paths_make(state, &p->err) < 0)
		return -EIO;
	lock = take_lock(p);
	if (lock < 0)
		return lock;
	fd = try_connect(path);
	return fd >= 0 ? fd : start_and_connect(path, p);
}

/* A handle of the sbxd that runs, or -1. */
static int open_sbxd(void)
{
	AUTO_JSON json_t *v = NULL;
	struct problem ignored = {0};

	if (api_peek("GET", "/v1/version", DAEMON_STOP_MS, &v, &ignored) < 0 ||
		api_int(v, "pid") <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, (pid_t)api_int(v, "pid"), 0);
}

/* The socket is removed before the process exits, and the next sbxd needs its lock. */
int daemon_stop(struct problem *p)
{
	AUTO_CLOSE int pidfd = open_sbxd();
	struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
	int r = api_peek("POST", "/v1/shutdown", DAEMON_STOP_MS, NULL, p);

	if (r == -ECONNREFUSED)
		return 0;
	if (r < 0)
		return r;
	if (pidfd >= 0 && poll(&pfd, 1, DAEMON_STOP_MS) == 0)
		return err_set(&p->err, -ETIMEDOUT, "sbxd did not stop within %d seconds",
			DAEMON_STOP_MS / 1000);
	return 0;
}

/* Without the variable sbxd keeps its own. */
static bool has_same_trace(const json_t *version)
{
	return !getenv("SBX_TRACE") || strcmp(api_str(version, "trace"), trace_words()) == 0;
}

/* Restarting sbxd is safe at any time: keepers keep running and are adopted. 1 if it was
 * stopped. */
static int replace_other_build(struct problem *p)
{
	AUTO_JSON json_t *v = NULL;
	int r = api_peek("GET", "/v1/version", API_TIMEOUT_MS, &v, p);

	if (r < 0 || (strcmp(api_str(v, "version"), SBX_VERSION) == 0 && has_same_trace(v)))
		return r;
	ui_debug(
		"sbxd is version %s with SBX_TRACE '%s', sbx is version %s with '%s': restarting sbxd",
		api_str(v, "version"), api_str(v, "trace"), SBX_VERSION, trace_words());
	r = daemon_stop(p);
	return r < 0 ? r : 1;
}

/* systemd starts sbxd with its own environment. */
static void warn_untraced(void)
{
	AUTO_JSON json_t *v = NULL;
	struct problem ignored = {0};

	if (api_peek("GET", "/v1/version", API_TIMEOUT_MS, &v, &ignored) < 0 || has_same_trace(v))
		return;
	ui_warning("sbxd was started without SBX_TRACE=%s: it does not trace", trace_words());
	ui_hint("systemctl --user set-environment SBX_TRACE=%s", trace_words());
}

int daemon_connect(struct problem *p)
{
	static bool checked;
	int fd, r;

	/* TAB must neither start a process nor wait for one. */
	if (getenv(DAEMON_COMPLETE))
		return daemon_try(p);
	fd = connect_or_start(p);
	if (fd < 0 || checked)
		return fd;
	checked = true; /* once: a helper directory that holds another build must not make a loop */
	r = replace_other_build(p);
	fd_close(&fd);
	/* The first connection was to one that died before the second. */
	if (r == -ECONNREFUSED) {
		*p = (struct problem){0};
		r = 0;
	}
	if (r < 0)
		return r;
	fd = connect_or_start(p);
	if (r > 0 && fd >= 0)
		warn_untraced();
	return fd;
}
