/* SPDX-License-Identifier: Apache-2.0 */
#include "pull.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/session/session.h"

static int say_failed(int status, const char *text, struct problem *p)
{
	size_t n = strcspn(text, "\n");

	if (n > 0)
		return err_set(
			&p->err, -EIO, "in the sandbox: %.*s", (int)MIN(n, (size_t)400), text);
	return err_set(&p->err, -EIO, "in the sandbox: the program exited with status %d", status);
}

static void show_bytes(struct session *s)
{
	char text[64], size[32];

	str_from_size(s->n_out, size, sizeof(size));
	(void)snprintf(text, sizeof(text), "reading changes: %s", size);
	ui_busy(text);
}

struct limits {
	uint64_t ms, bytes;
	bool quiet; /* without progress */
};

/* Runs a builtin of sbx-guest as root with its output in a file. */
static int run_builtin(const struct area *a, const char *verb, const char *path,
	const struct limits *max, int out, struct problem *p)
{
	const char *argv[] = {verb, path, NULL};
	char text[1024] = "";
	struct session_link link = attach_link(a->name);
	struct session s = {.spec = {.flags = EXEC_F_BUILTIN,
				    .user = (char *)"root",
				    .cwd = (char *)"/",
				    .argv = (char **)argv},
		.link = &link,
		.in_fd = -1,
		.out_fd = out,
		.err_fd = STDERR_FILENO,
		.err_text = text,
		.err_size = sizeof(text),
		.max_out = max->bytes,
		.max_ms = max->ms,
		.tick = max->quiet ? NULL : show_bytes};
	int conn = api_stream(a->name, (unsigned)MIN(max->ms, (uint64_t)API_TIMEOUT_MS), p), status;
	sigset_t mask;

	if (conn < 0)
		return conn;
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	status = session_run(&s, conn, p);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	if (!max->quiet)
		ui_progress_end();
	return status > 0 ? say_failed(status, text, p) : status;
}

static int pull_one(
	const struct area *a, size_t i, const char *dir, struct bundle *b, struct problem *p)
{
	static const struct limits max = {PULL_MS, PULL_MAX_STREAM, false};
	AUTO_FREE char *path = xasprintf("%s/%zu.tar", dir, i);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? err_errno(&p->err, -errno, "cannot create %s", path)
		       : run_builtin(a, "stage", a->guest[i], &max, fd, p);

	if (r == 0 && fsync(fd) < 0)
		r = err_errno(&p->err, -errno, "cannot write %s", path);
	return r < 0 ? r : bundle_add(b, TAKE_FD(fd), &p->err);
}

/* The old bundle goes, the new one gets its name. */
static int replace_bundle(const struct area *a, const char *dir, struct err *err)
{
	AUTO_FREE char *path = area_path(a, "bundle");

	area_remove(path);
	return rename(dir, path) < 0 ? err_errno(err, -errno, "cannot rename %s", dir) : 0;
}

int pull_bundle(const struct area *a, struct bundle *ret, struct problem *p)
{
	AUTO_FREE char *dir = area_path(a, "bundle.new");
	int r = 0;

	area_remove(dir);
	if (mkdir(dir, 0700) < 0)
		return err_errno(&p->err, -errno, "cannot create %s", dir);
	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = pull_one(a, i, dir, ret, p);
	if (r == 0)
		r = bundle_seal(ret, &p->err);
	if (r == 0)
		r = bundle_save(ret, dir, &p->err);
	if (r == 0)
		r = area_record(a, "review", ret, ret->n, NULL, p);
	return r < 0 ? r : replace_bundle(a, dir, &p->err);
}

int pull_look(const struct area *a, struct bundle *ret, struct problem *p)
{
	const uint64_t until = clock_mono_ms() + PULL_LOOK_MS;
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++) {
		AUTO_CLOSE int fd = memfd_create("stage", MFD_CLOEXEC);
		uint64_t now = clock_mono_ms();
		struct limits max = {now < until ? until - now : 1, PULL_LOOK_BYTES, true};

		r = fd < 0 ? err_errno(&p->err, -errno, "cannot create a file in memory")
			   : run_builtin(a, "stage", a->guest[i], &max, fd, p);
		if (r == 0)
			r = bundle_add(ret, TAKE_FD(fd), &p->err);
	}
	return r == 0 ? bundle_seal(ret, &p->err) : r;
}

/* A builtin without output, for each workspace. */
static int run_quiet(const struct area *a, const char *verb, uint64_t max_ms, struct problem *p)
{
	struct limits max = {max_ms, PULL_MAX_STREAM, false};
	AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int r = null < 0 ? err_errno(&p->err, -errno, "cannot open /dev/null") : 0;

	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = run_builtin(a, verb, a->guest[i], &max, null, p);
	return r;
}

int pull_discard(const struct area *a, struct problem *p)
{
	return run_quiet(a, "stage-discard", PULL_MS, p);
}

void pull_refresh(const struct area *a)
{
	struct problem p = {0};

	if (sandbox_is(a->sandbox, "running"))
		(void)run_quiet(a, "stage-refresh", PULL_REFRESH_MS, &p);
}
