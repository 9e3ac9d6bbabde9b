/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/session/session.h"
#include "git.h"
#include "quarantine.h"

#define MAX_SAID 4096
#define MAX_REPORT (1u << 20)
#define MAX_SPECS 600
#define RUN_MS (5u * 60 * 1000)

/* A jailed git and its two ends here. The session is the first member: its tick gets only that. */
struct talk {
	struct session s;
	struct jail_child git;
	int out, err; /* what it writes, not blocking */
	char said[MAX_SAID];
	size_t n_said;
	char *report;
	size_t n_report;
};

void transfer_done(struct transfer *pl)
{
	free(pl->ref);
	free(pl->id);
	free(pl->guest);
	repo_done(&pl->repo);
	*pl = (struct transfer){0};
}

int transfer_of(const json_t *sandbox, struct transfer *pl, struct problem *p)
{
	const json_t *clone = json_object_get(sandbox, "clone");

	if (!clone)
		return err_set(&p->err, -ENOENT, "sandbox '%s' was not created with --clone",
			api_str(sandbox, "name"));
	pl->ref = xstrdup(api_str(sandbox, "name"));
	pl->id = xstrdup(api_str(sandbox, "id"));
	pl->guest = xstrdup(api_str(clone, "guest"));
	return 0;
}

/* ---- a program in the sandbox ---- */

static int say_guest(int status, const char *program, char *text, struct problem *p)
{
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	ui_clean(text);
	if (n > 0)
		return err_set(
			&p->err, -EIO, "in the sandbox: %s", n > 300 ? text + n - 300 : text);
	return err_set(&p->err, -EIO, "in the sandbox: %s exited with status %d", program, status);
}

static int run_session(const struct transfer *pl, struct session *s, struct problem *p)
{
	sigset_t mask;
	int conn = api_stream(pl->ref, API_TIMEOUT_MS, p), r;

	if (conn < 0)
		return conn;
	/* A session takes over the signals of the program and keeps them: more sessions follow. */
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	r = session_run(s, conn, p);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	return r;
}

int transfer_run(const struct transfer *pl, const char *user, const char *const *argv,
	char **ret_out, size_t *ret_n, struct problem *p)
{
	AUTO_CLOSE int out = memfd_create("out", MFD_CLOEXEC);
	char text[2048] = "";
	struct session s = {.spec = {.user = (char *)(user ? user : ""),
				    .cwd = (char *)"/",
				    .argv = (char **)argv},
		.in_fd = -1,
		.out_fd = out,
		.err_fd = STDERR_FILENO,
		.err_text = text,
		.err_size = sizeof(text),
		.max_out = REFS_MAX_TEXT,
		.max_ms = RUN_MS};
	int r = out < 0 ? err_errno(&p->err, -errno, "cannot create a file in memory")
			: run_session(pl, &s, p);

	if (r > 0)
		return say_guest(r, argv[0], text, p);
	if (r < 0 || !ret_out)
		return r;
	r = fd_load(out, REFS_MAX_TEXT, ret_out, ret_n);
	return r < 0 ? err_errno(&p->err, r, "cannot read the output of %s", argv[0]) : 0;
}

int transfer_list(const struct transfer *pl, struct refs *ret, struct problem *p)
{
	const char *argv[] = {"git", "-C", pl->guest, "ls-remote", "--symref", ".", "HEAD",
		"refs/heads/*", "refs/tags/*", NULL};
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = transfer_run(pl, NULL, argv, &text, &n, p);

	return r < 0 ? r : refs_parse(slice_of(text, n), repo_hex(&pl->repo), ret, &p->err);
}

/* ---- a jailed git, connected to one in the sandbox ---- */

/* Bounded: the rest is read and dropped, so that git does not block. */
static void drain_git(struct talk *t)
{
	char buf[8192];
	ssize_t n;

	while ((n = read(t->err, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n && t->n_said + 1 < MAX_SAID; i++)
			t->said[t->n_said++] = buf[i];
	while ((n = read(t->out, buf, sizeof(buf))) > 0) {
		size_t k = MIN((size_t)n, MAX_REPORT - t->n_report);

		memcpy(t->report + t->n_report, buf, k);
		t->n_report += k;
	}
}

static void on_tick(struct session *s)
{
	drain_git((struct talk *)s); /* its first member */
}

/* The exit status of the jailed git, or an error. */
static int wait_jailed(struct talk *t)
{
	uint64_t until = clock_mono_ms() + TRANSFER_MS;
	struct pollfd pfd = {.fd = t->git.pidfd, .events = POLLIN};
	siginfo_t si = {0};

	while (poll(&pfd, 1, 100) <= 0) {
		drain_git(t);
		if (clock_mono_ms() > until)
			return -ETIMEDOUT;
	}
	drain_git(t);
	if (waitid(P_PIDFD, (id_t)t->git.pidfd, &si, WEXITED) < 0)
		return -errno;
	fd_close(&t->git.pidfd);
	return si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
}

static int make_pipe(int p[2])
{
	return pipe2(p, O_CLOEXEC) < 0 ? -errno : 0;
}

/* Four pipes: two for the connection, two for what git writes. */
struct pipes {
	int to[2], from[2], out[2], err[2];
};

static void pipes_done(struct pipes *p)
{
	int *all[] = {p->to, p->from, p->out, p->err};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		fd_close(&all[i][0]);
		fd_close(&all[i][1]);
	}
}

static int start_git(struct talk *t, struct quarantine *q, const char *const *argv, int in_fd,
	struct pipes *pi, struct err *err)
{
	struct quarantine_fds fds = {.in = in_fd};
	int r = make_pipe(pi->to);

	if (r == 0)
		r = make_pipe(pi->from);
	if (r == 0)
		r = make_pipe(pi->out);
	if (r == 0)
		r = make_pipe(pi->err);
	if (r < 0)
		return err_errno(err, r, "cannot create a pipe");
	fds.to_guest = pi->to[1];
	fds.from_guest = pi->from[0];
	fds.out = pi->out[1];
	fds.err = pi->err[1];
	r = quarantine_spawn(q, argv, &fds, &t->git, err);
	fd_close(&pi->to[1]);
	fd_close(&pi->from[0]);
	fd_close(&pi->out[1]);
	fd_close(&pi->err[1]);
	t->out = pi->out[0];
	t->err = pi->err[0];
	if (r == 0 && (fd_set_nonblock(t->out, true) < 0 || fd_set_nonblock(t->err, true) < 0))
		r = err_errno(err, -EIO, "cannot read from git");
	return r;
}

/* The first error that git reports, else the last line; cleaned. */
static const char *find_said(struct talk *t)
{
	char *line, *error, *fatal;

	while (t->n_said > 0 && strchr("\n\r", t->said[t->n_said - 1]))
		t->n_said--;
	t->said[t->n_said] = '\0';
	error = strstr(t->said, "error: ");
	fatal = strstr(t->said, "fatal: ");
	line = error && (!fatal || error < fatal) ? error : fatal;
	if (!line)
		line = strrchr(t->said, '\n') ? strrchr(t->said, '\n') + 1 : t->said;
	line[strcspn(line, "\n")] = '\0';
	ui_clean(line);
	return line;
}

/* The first failure counts: a side that stops breaks the pipe of the other. */
static int judge_talk(struct talk *t, int guest, int git, char *guest_said, struct problem *p)
{
	const char *said = find_said(t);

	if (git == 0)
		return 0;
	if (git < 0)
		return err_errno(&p->err, git, "the transfer did not end");
	if (guest == -EFBIG || guest == -ETIMEDOUT || git == 128 + SIGXFSZ)
		return err_set(&p->err, -EFBIG,
			"the transfer from the sandbox is larger than %llu GiB, or takes too long",
			(unsigned long long)(JAIL_GIT_FSIZE >> 30));
	if (guest < 0)
		return guest;
	if (guest > 0 && guest != 128 + SIGPIPE && !said[0])
		return say_guest(guest, "git", guest_said, p);
	return err_set(&p->err, -EIO, "git refused the transfer: %s",
		said[0] ? said : "no reason was given");
}

/* argv of the jailed git; service of the one in the guest. */
static int talk_run(const struct transfer *pl, struct quarantine *q, const char *const *argv,
	int in_fd, const char *const *service, struct talk *t, struct problem *p)
{
	CLEANUP(pipes_done)
	struct pipes pi = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	char text[2048] = "";
	int r, guest, git;

	t->git = (struct jail_child){.pidfd = -1, .notify_fd = -1};
	t->report = xcalloc(1, MAX_REPORT + 1);
	r = start_git(t, q, argv, in_fd, &pi, &p->err);
	if (r < 0)
		return r;
	t->s = (struct session){.spec = {.flags = EXEC_F_STDIN,
					.user = (char *)"",
					.cwd = (char *)"/",
					.argv = (char **)service},
		.in_fd = pi.to[0],
		.out_fd = pi.from[1],
		.err_fd = STDERR_FILENO,
		.err_text = text,
		.err_size = sizeof(text),
		.max_out = JAIL_GIT_FSIZE,
		.max_ms = TRANSFER_MS,
		.tick = on_tick};
	guest = run_session(pl, &t->s, p);
	fd_close(&pi.to[0]);
	fd_close(&pi.from[1]);
	git = wait_jailed(t);
	jail_child_kill(&t->git);
	return judge_talk(t, guest, git, text, p);
}

static void talk_done(struct talk *t)
{
	free(t->report);
}

/* ---- fetch ---- */

/* What the host has, for the negotiation. */
static int set_haves(struct quarantine *q, struct err *err)
{
	static const char *const args[] = {"for-each-ref", "--format=%(objectname)", NULL};
	static const char *const head[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};
	AUTO_FREE char *list = git_line(NULL, q->repo->git_dir, args);
	AUTO_FREE char *at = git_line(NULL, q->repo->git_dir, head);
	char *text = NULL;
	size_t n = 0, i = 0;
	FILE *f = open_memstream(&text, &n);
	int r;

	if (!f)
		return err_errno(err, -ENOMEM, "cannot list the refs");
	if (at && at[0])
		fprintf(f, "%s refs/h/head\n", at);
	for (char *s = list ? strtok(list, "\n") : NULL; s; s = strtok(NULL, "\n"))
		fprintf(f, "%s refs/h/%zu\n", s, i++);
	r = fclose(f) == 0 ? quarantine_set_refs(q, text, err) : err_errno(err, -ENOMEM, "refs");
	free(text);
	return r;
}

static int list_wants(char *const *oids, size_t n, struct err *err)
{
	AUTO_CLOSE int fd = memfd_create("wants", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		AUTO_FREE char *line = xasprintf("%s\n", oids[i]);

		r = fd_write_all(fd, line, strlen(line));
	}
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, r, "cannot create a file in memory") : TAKE_FD(fd);
}

/* The user's git reads the checked pack and makes its own index. */
static int take_pack(const struct transfer *pl, int fd, char **ret_keep, struct problem *p)
{
	static const char *const args[] = {
		"index-pack", "--stdin", "--strict", "--keep=sbx is fetching", NULL};
	struct git_run g = {.git_dir = pl->repo.git_dir, .args = args, .in_fd = fd};
	AUTO_FREE char *out = NULL;
	int r = git_must(&g, "git refused the pack", &p->err);

	out = g.out;
	if (r == 0 && g.n_out > 0)
		out[g.n_out - 1] = '\0';
	if (r == 0 && str_starts(out, "keep\t") && !*ret_keep)
		*ret_keep = xasprintf("%s/pack/pack-%s.keep", pl->repo.objects[0], out + 5);
	return r;
}

static int take_packs(
	const struct transfer *pl, struct quarantine *q, char **ret_keep, struct problem *p)
{
	int fds[TRANSFER_MAX_PACKS], n = quarantine_packs(q, fds, ARRAY_LEN(fds), &p->err);
	int r = n < 0 ? n : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = take_pack(pl, fds[i], ret_keep, p);
		fd_close(&fds[i]);
	}
	return r;
}

int transfer_quarantine(const struct transfer *pl, char *const *oids, size_t n,
	struct quarantine *q, struct problem *p)
{
	static const char *const argv[] = {"git", "fetch", "-q", "--stdin", "--no-tags",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"fd::3,4", NULL};
	const char *service[] = {
		"git", "-c", "uploadpack.allowAnySHA1InWant=true", "upload-pack", pl->guest, NULL};
	CLEANUP(talk_done) struct talk t = {.report = NULL};
	AUTO_CLOSE int wants = list_wants(oids, n, &p->err);
	int r = wants < 0 ? wants : quarantine_make(q, &pl->repo, pl->id, NULL, &p->err);

	if (r == 0)
		r = set_haves(q, &p->err);
	return r == 0 ? talk_run(pl, q, argv, wants, service, &t, p) : r;
}

int transfer_fetch(
	const struct transfer *pl, char *const *oids, size_t n, char **ret_keep, struct problem *p)
{
	AUTO_QUARANTINE struct quarantine q = {0};
	int r = transfer_quarantine(pl, oids, n, &q, p);

	return r == 0 ? take_packs(pl, &q, ret_keep, p) : r;
}

/* ---- push ---- */

int transfer_push(const struct transfer *pl, struct transfer_push *tp, struct problem *p)
{
	const char *argv[MAX_SPECS + 8] = {"git", "push", "--porcelain", "--no-verify",
		"--no-progress", "--no-recurse-submodules", "fd::3,4"};
	const char *service[] = {"git", "-c", "receive.shallowUpdate=true", "-c",
		tp->seed ? "receive.denyCurrentBranch=ignore"
			 : "receive.denyCurrentBranch=updateInstead",
		"receive-pack", pl->guest, NULL};
	AUTO_QUARANTINE struct quarantine q = {0};
	CLEANUP(talk_done) struct talk t = {.report = NULL};
	size_t n = 7;
	int r = quarantine_make(&q, &pl->repo, pl->id, tp->objects, &p->err);

	for (size_t i = 0; tp->specs[i]; i++) {
		if (n == MAX_SPECS + 7)
			return err_set(&p->err, -E2BIG, "cannot push more than %d refs", MAX_SPECS);
		argv[n++] = tp->specs[i];
	}
	if (r == 0)
		r = quarantine_set_refs(&q, tp->refs ? tp->refs : "", &p->err);
	if (r == 0)
		r = talk_run(pl, &q, argv, -1, service, &t, p);
	if (t.report && t.n_report > 0) {
		tp->report = xstrndup(t.report, t.n_report);
		return r == -EIO && strstr(tp->report, "!\t") ? -EREMOTEIO : r;
	}
	return r;
}
