/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_logs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/rules/audit/audit_list.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/client/api/api.h"

#define LOOK_MS 1000 /* between checks for changes without an event */
#define PEEK_MS 2000

struct entry {
	char id[AUDIT_MAX_WORD + 1];
	bool is_wanted, is_settled; /* settled: is_wanted is final */
	bool is_part;		    /* only records with the requested name */
	bool is_bad, is_dirty;	    /* dirty: there may be unread records */
	int watch;
	struct audit_reader *rd; /* only when it is followed */
};

struct audit_logs {
	char *dir, *ref;
	char asked[AUDIT_MAX_WORD + 1]; /* the id that sbxd returned for ref */
	unsigned flags;
	int watch, dir_watch;
	struct entry *v;
	size_t n;
	audit_record_fn *fn;
	int (*pass)(void *arg);
	void *arg;
	const struct entry *now; /* the log being read */
};

bool audit_logs_is_journal(const char *id)
{
	return strcmp(id, AUDIT_LOGS_SBXD) == 0;
}

static struct entry *find_logs(struct audit_logs *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].id, id) == 0)
			return &l->v[i];
	return NULL;
}

static void settle_logs(struct audit_logs *l, struct entry *e)
{
	char name[AUDIT_MAX_NAME + 1];
	int r;

	if (e->is_settled)
		return;
	if (l->ref && audit_logs_is_journal(e->id) && !audit_logs_is_journal(l->ref)) {
		e->is_settled = true;
		e->is_wanted = e->is_part = (l->flags & AUDIT_LOGS_JOURNAL) != 0;
		return;
	}
	e->is_wanted = !l->ref || strcmp(e->id, l->ref) == 0 || strcmp(e->id, l->asked) == 0;
	r = e->is_wanted ? 0 : audit_last_name(l->dir, e->id, name);
	if (!e->is_wanted)
		e->is_wanted = r == 0 && strcmp(name, l->ref) == 0;
	/* A log without a record is checked again. */
	e->is_settled = r != -ENOENT;
}

/* Adds logs that did not exist before. */
static int scan_logs(struct audit_logs *l, struct err *err)
{
	AUTO_AUDIT_LIST struct audit_list list = {0};
	size_t known = l->n;
	int r = audit_list(l->dir, &list, err);

	if (r < 0)
		return r;
	/* The first scan adds all; later ones compare, and there are few new ones. */
	l->v = xrealloc(l->v, (l->n + list.n + 1) * sizeof(*l->v));
	for (size_t i = 0; i < list.n; i++) {
		if (known && find_logs(l, list.id[i]))
			continue;
		l->v[l->n] = (struct entry){.watch = -1, .is_dirty = true};
		(void)snprintf(l->v[l->n].id, sizeof(l->v->id), "%s", list.id[i]);
		l->n++;
	}
	for (size_t i = 0; i < l->n; i++)
		settle_logs(l, &l->v[i]);
	return 0;
}

static void ask_sbxd(struct audit_logs *l)
{
	AUTO_FREE char *quoted = api_quote(l->ref);
	AUTO_FREE char *path = xasprintf("/v1/sandboxes/%s", quoted);
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};

	if (api_peek("GET", path, PEEK_MS, &answer, &p) == 0)
		(void)snprintf(l->asked, sizeof(l->asked), "%s", api_str(answer, "id"));
}

static int has_name(void *arg, const struct audit_record *rec, struct slice line)
{
	(void)line;
	return slice_eq_str(rec->name, arg) ? -ECANCELED : 0;
}

/* Whether one of its records has the requested name. */
static bool was_called(const struct audit_logs *l, const char *id)
{
	struct audit_expect expect = {.flags = AUDIT_CHAIN_PLAIN, .fn = has_name, .arg = l->ref};
	struct audit_reader *rd = NULL;
	int r = audit_reader_open(l->dir, id, &expect, &rd, NULL);

	if (r == 0)
		r = audit_reader_pump(rd, NULL);
	audit_reader_close(rd);
	return r == -ECANCELED;
}

static size_t count_wanted(const struct audit_logs *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->v[i].is_wanted && !l->v[i].is_part;
	return n;
}

static int look_up(struct audit_logs *l, struct problem *p)
{
	bool found = false;
	int r;

	if (l->ref)
		ask_sbxd(l);
	r = scan_logs(l, &p->err);
	if (r < 0 || !l->ref || l->asked[0] || count_wanted(l))
		return r;
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->v[i];

		if (audit_logs_is_journal(e->id) && !e->is_part)
			continue;
		if (!was_called(l, e->id))
			continue;
		e->is_wanted = found = true;
	}
	if (found || (l->flags & AUDIT_LOGS_FOLLOW))
		return 0;
	(void)err_set(&p->err, -ENOENT, "no audit log or sandbox named '%s'", l->ref);
	return problem_hint(p, -ENOENT, "sbx audit verify");
}

/* Drops unwanted logs, except while following: there they mean "seen". */
static void drop_unwanted(struct audit_logs *l)
{
	size_t n = 0;

	if (l->flags & AUDIT_LOGS_FOLLOW)
		return;
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].is_wanted)
			l->v[n++] = l->v[i];
	l->n = n;
}

int audit_logs_open(const char *ref, unsigned flags, struct audit_logs **ret, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = xcalloc(1, sizeof(*l));
	int r;

	l->dir = paths_get(PATHS_STATE, "audit");
	l->ref = ref ? xstrdup(ref) : NULL;
	l->flags = flags;
	l->watch = l->dir_watch = -1;
	r = look_up(l, p);
	if (r < 0)
		return r;
	drop_unwanted(l);
	if (flags & AUDIT_LOGS_FOLLOW) {
		fd_raise_limit(); /* one file is open for each log */
		l->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (l->watch < 0)
			return err_errno(&p->err, -errno, "cannot watch %s", l->dir);
	}
	*ret = TAKE(l);
	return 0;
}

void audit_logs_close(struct audit_logs **at)
{
	struct audit_logs *l = *at;

	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		audit_reader_close(l->v[i].rd);
	fd_close(&l->watch);
	free(l->v);
	free(l->dir);
	free(l->ref);
	free(l);
	*at = NULL;
}

size_t audit_logs_n(const struct audit_logs *l)
{
	return l->n;
}

const char *audit_logs_dir(const struct audit_logs *l)
{
	return l->dir;
}

const char *audit_logs_id(const struct audit_logs *l, size_t i)
{
	return l->v[i].id;
}

void audit_logs_name(const struct audit_logs *l, size_t i, char ret[AUDIT_MAX_NAME + 1])
{
	if (audit_logs_is_journal(l->v[i].id) || audit_last_name(l->dir, l->v[i].id, ret) < 0)
		ret[0] = '\0';
}

static int on_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct audit_logs *l = arg;

	if (l->now->is_part && !slice_eq_str(rec->name, l->ref))
		return 0;
	return l->fn(l->arg, rec, line);
}

static void warn_bad(struct entry *e, const struct audit_report *rep)
{
	e->is_bad = true;
	ui_warning(
		"cannot read the audit log of %s after record %llu: it %s; see 'sbx audit verify %s'",
		e->id, (unsigned long long)rep->seq, audit_bad_text(rep->bad), e->id);
}

/* Watched before it is read: a record written in between is reported. */
static void watch_entry(struct audit_logs *l, struct entry *e)
{
	AUTO_FREE char *dir = xasprintf("%s/%s", l->dir, e->id);

	if (l->watch >= 0 && e->watch < 0)
		e->watch = inotify_add_watch(
			l->watch, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

static int read_entry(struct audit_logs *l, struct entry *e, struct err *err)
{
	struct audit_expect expect = {.flags = AUDIT_CHAIN_PLAIN, .fn = on_record, .arg = l};
	int r = 0;

	e->is_dirty = false;
	l->now = e;
	watch_entry(l, e);
	if (!e->rd)
		r = audit_reader_open(l->dir, e->id, &expect, &e->rd, err);
	if (r == 0)
		r = audit_reader_pump(e->rd, err);
	if (r == -EBADMSG && !e->is_bad)
		warn_bad(e, audit_reader_report(e->rd));
	if (!(l->flags & AUDIT_LOGS_FOLLOW)) {
		audit_reader_close(e->rd);
		e->rd = NULL;
	}
	return r;
}

int audit_logs_read(struct audit_logs *l, audit_record_fn *fn, void *arg, struct problem *p)
{
	bool bad = false;

	l->fn = fn;
	l->arg = arg;
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->v[i];
		int r = e->is_wanted && e->is_dirty && !e->is_bad ? read_entry(l, e, &p->err) : 0;

		if (r < 0 && r != -EBADMSG)
			return r;
		bad |= r == -EBADMSG;
	}
	return bad ? err_set(&p->err, -EBADMSG, "not all audit logs could be read completely") : 0;
}

static void mark_logs(struct audit_logs *l, const struct inotify_event *ev)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].watch == ev->wd || (ev->mask & IN_Q_OVERFLOW))
			l->v[i].is_dirty = true;
}

static void take_events(struct audit_logs *l)
{
	_Alignas(struct inotify_event) char buf[8192];

	for (int i = 0; i < 64; i++) {
		ssize_t n = read(l->watch, buf, sizeof(buf));

		for (char *at = buf; n > 0 && at < buf + n;) {
			const struct inotify_event *ev = (const struct inotify_event *)at;

			mark_logs(l, ev);
			at += sizeof(*ev) + ev->len;
		}
		if (n <= 0)
			return;
	}
}

/* Waits for an event, at most LOOK_MS. False: stdout has no reader any more. */
static bool wait_for_more(struct audit_logs *l)
{
	struct pollfd fds[] = {{.fd = l->watch, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	if (l->flags & AUDIT_LOGS_SILENT)
		fds[1].fd = -1;
	(void)poll(fds, ARRAY_LEN(fds), LOOK_MS);
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		return false;
	take_events(l);
	/* A log that cannot be watched is polled. */
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].watch < 0)
			l->v[i].is_dirty = true;
	return true;
}

void audit_logs_on_pass(struct audit_logs *l, int (*pass)(void *arg))
{
	l->pass = pass;
}

int audit_logs_follow(struct audit_logs *l, audit_record_fn *fn, void *arg, struct problem *p)
{
	int r = 0;

	do {
		if (l->dir_watch < 0)
			l->dir_watch = inotify_add_watch(
				l->watch, l->dir, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
		r = scan_logs(l, &p->err);
		if (r == 0)
			r = audit_logs_read(l, fn, arg, p);
		if (r < 0 && r != -EBADMSG)
			return r;
		r = l->pass ? l->pass(l->arg) : 0;
		if (r < 0)
			return r;
		if (fflush(stdout) != 0)
			return 0;
	} while (wait_for_more(l));
	return 0;
}
