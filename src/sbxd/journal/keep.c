/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "src/sbxd/hands/hands.h"
#include "lib/base/hex.h"
#include "lib/rules/audit/audit_known.h"
#include "lib/rules/audit/audit_list.h"
#include "lib/rules/audit/audit_read.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/rules/settings/settings.h"

/* ---- one log ---- */

struct job {
	struct sbxd *d;
	const char *id, *by;
	char name[AUDIT_MAX_NAME + 1];
};

static int record_pruning(struct job *job, const char *action, uint64_t seq,
	const uint8_t log[AUDIT_LOG_LEN], struct err *err)
{
	char reason[96], rule[AUDIT_MAX_RULE + 1], hex[2 * AUDIT_LOG_LEN + 1] = "";
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = action,
		.sandbox = job->name,
		.rule = rule,
		.reason = reason,
		.count = seq};
	int r;

	hex_encode(log, AUDIT_LOG_LEN, hex);
	(void)snprintf(rule, sizeof(rule), "%s:%s", job->id, hex);
	(void)snprintf(reason, sizeof(reason), "records 1 to %llu of the audit log%s%s",
		(unsigned long long)seq, job->by ? ", by the setting " : "",
		job->by ? job->by : "");
	r = journal_append(job->d, &e, err);
	return r < 0 ? r : journal_sync(job->d, err);
}

static int on_prune(void *arg, const struct audit_cut *cut, struct err *err)
{
	return record_pruning(arg, "audit-prune", cut->seq, cut->log, err);
}

int keep_prune(struct sbxd *d, const char *id, const struct keep_rule *rule,
	struct audit_pruned *ret, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct job job = {.d = d, .id = id, .by = rule->by};
	struct audit_prune_options o = {.dir = dir,
		.sandbox = id,
		.before_ms = rule->before_ms,
		.keep_bytes = rule->keep_bytes,
		.is_dry = rule->is_dry,
		.record = on_prune,
		.arg = &job};
	int r = journal_open(d, err);

	if (r < 0)
		return r;
	o.key = d->journal->key;
	/* The records of sbxd's own log name other sandboxes. */
	if (strcmp(id, JOURNAL_ID) == 0 || audit_last_name(dir, id, job.name) < 0)
		job.name[0] = '\0';
	r = audit_prune(&o, ret, err);
	if (r == 0 && ret->segments && !rule->is_dry)
		r = record_pruning(&job, "audit-pruned", ret->seq, ret->log, err);
	return r;
}

/* ---- by the settings ---- */

/* At most two, each by one setting; returns their number. */
static size_t load_rules(struct keep_rule ret[2])
{
	AUTO_SETTINGS struct settings set = {0};
	uint64_t now = clock_wall_ms(), ms, bytes;
	size_t n = 0;

	if (settings_load(&set, NULL) < 0)
		return 0;
	ms = settings_get_u64(&set, SETTINGS_AUDIT_KEEP) * 1000;
	bytes = settings_get_u64(&set, SETTINGS_AUDIT_KEEP_SIZE);
	if (ms && ms < now)
		ret[n++] = (struct keep_rule){.before_ms = now - ms, .by = "audit.keep"};
	if (bytes)
		ret[n++] = (struct keep_rule){.keep_bytes = bytes, .by = "audit.keep-size"};
	return n;
}

static void set_timer(struct sbxd *d, uint64_t ms)
{
	loop_timer_set(&d->loop, &d->keep->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = SBXD_EV_KEEP_TIMER});
}

void keep_init(struct keep *k)
{
	*k = (struct keep){.pidfd = -1, .out = -1};
}

void keep_look(struct sbxd *d)
{
	if (!d->keep->pid && !d->keep->list)
		set_timer(d, KEEP_DELAY_MS);
}

/* ---- the child ---- */

static int check_all(const char *dir, struct err *err)
{
	AUTO_AUDIT_LIST struct audit_list list = {0};
	AUTO_KNOWN struct audit_known known = {0};
	struct audit_pub pub;
	int r = audit_list(dir, &list, err);

	if (r < 0 || list.n == 0)
		return r;
	r = audit_pub_load(dir, &pub, err);
	if (r < 0)
		return r;
	audit_known_load(dir, &known);
	for (size_t i = 0; i < list.n; i++) {
		const char *id = list.id[i];
		struct audit_report rep;
		struct err why = {0};

		r = audit_verify(dir, id, &pub, audit_known_of(&known, id), &rep, &why);
		if (r == 0)
			printf("%s\n", id);
		else
			log_warn("audit.keep: the audit log of %s was not pruned: %s", id,
				err_text(&why, r));
	}
	return 0;
}

static int check_logs(void)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct err err = {0};
	int r = check_all(dir, &err);

	if (r < 0)
		log_warn("audit.keep: %s", err_text(&err, r));
	return r < 0 || fflush(stdout) != 0;
}

/* In the child, a fork that is as sealed as sbxd. */
static void become_checker(int out)
{
	int null = open("/dev/null", O_RDONLY);

	child_reset_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!nice(10);
	if (null < 0 || dup2(out, 1) < 0 || dup2(null, 0) < 0)
		_exit(126);
	(void)close_range(3, ~0u, 0);
	_exit(check_logs());
}

static int start_checker(struct sbxd *d)
{
	struct keep *k = d->keep;
	pid_t pid;

	k->out = memfd_create("audit", MFD_CLOEXEC);
	pid = k->out < 0 ? -1 : fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_checker(k->out);
	k->pid = pid;
	k->pidfd = pidfd_open(pid, 0);
	if (k->pidfd < 0 ||
		loop_add(&d->loop, k->pidfd, EPOLLIN, (struct loop_key){.kind = SBXD_EV_KEEP}) < 0)
		return -EIO;
	set_timer(d, KEEP_MS);
	return 0;
}

static void end_list(struct sbxd *d)
{
	free(TAKE(d->keep->list));
	d->keep->n = d->keep->at = 0;
	set_timer(d, KEEP_DAY_MS);
}

static void prune_by_settings(struct sbxd *d, const char *id)
{
	struct keep_rule rules[2];
	size_t n = load_rules(rules);

	for (size_t i = 0; i < n; i++) {
		struct audit_pruned got;
		struct err err = {0};
		int r = keep_prune(d, id, &rules[i], &got, &err);

		if (r < 0)
			log_warn("%s: %s", rules[i].by, err_text(&err, r));
		else if (got.records)
			log_info("%s: removed %llu records of the audit log of %s", rules[i].by,
				(unsigned long long)got.records, id);
	}
}

/* One log at a time, so that clients need not wait for all. */
static void prune_next(struct sbxd *d)
{
	struct keep *k = d->keep;
	char *id = k->list + k->at, *end = memchr(id, '\n', k->n - k->at);

	if (!end) {
		end_list(d);
		return;
	}
	*end = '\0';
	k->at += (size_t)(end - id) + 1;
	prune_by_settings(d, id);
	set_timer(d, 1);
}

void keep_on_timer(struct sbxd *d)
{
	struct keep *k = d->keep;
	struct keep_rule rules[2];

	if (k->pid) {
		log_warn("audit.keep: verification of the audit logs timed out: killed");
		(void)kill(k->pid, SIGKILL); /* the exit follows */
	} else if (k->list) {
		prune_next(d);
	} else if (load_rules(rules) == 0) {
		set_timer(d, KEEP_DAY_MS);
	} else if (start_checker(d) < 0) {
		log_warn("audit.keep: cannot start the program that verifies the audit logs");
		keep_done(d);
		set_timer(d, KEEP_DAY_MS);
	}
}

static void forget_child(struct sbxd *d)
{
	struct keep *k = d->keep;

	if (k->pidfd >= 0)
		loop_del(&d->loop, k->pidfd);
	fd_close(&k->pidfd);
	fd_close(&k->out);
	k->pid = 0;
	loop_timer_clear(&d->loop, &k->timer);
}

static void take_list(struct keep *k)
{
	off_t n = lseek(k->out, 0, SEEK_END);

	if (n < 0 || n > KEEP_MAX_LIST)
		return;
	k->list = xmalloc((size_t)n + 1);
	if (pread(k->out, k->list, (size_t)n, 0) == n)
		k->n = (size_t)n;
}

void keep_on_exit(struct sbxd *d)
{
	int status = 0;

	if (waitpid(d->keep->pid, &status, WNOHANG) <= 0)
		return;
	if (status == 0)
		take_list(d->keep);
	forget_child(d);
	if (d->keep->list) {
		set_timer(d, 1);
		return;
	}
	log_warn("audit.keep: cannot verify the audit logs: nothing was removed");
	set_timer(d, KEEP_DAY_MS);
}

void keep_done(struct sbxd *d)
{
	if (d->keep->pid) {
		(void)kill(d->keep->pid, SIGKILL);
		(void)waitpid(d->keep->pid, NULL, 0);
	}
	forget_child(d);
	free(TAKE(d->keep->list));
}
