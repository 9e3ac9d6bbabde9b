/* SPDX-License-Identifier: Apache-2.0 */
#include "merges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "memories.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define EXIT_BUSY 75 /* of sbx-keeper --merge: the sandbox is in use */

void merges_init(struct merges *m)
{
	*m = (struct merges){.child.pidfd = -1};
}

static void set_timer(struct sbxd *d, uint64_t ms)
{
	loop_timer_set(&d->loop, &d->merges->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = SBXD_EV_MERGES_TIMER});
}

void merges_find(const char *dir, const struct checkpoints *list, enum template_disk disk,
	struct layers *ret)
{
	struct layers l;

	ret->n = 0;
	if (layers_find(dir, disk, &l) < 0)
		return;
	for (size_t i = 0; i + 1 < l.n; i++)
		if (checkpoints_may_merge(list, disk, l.number[i]))
			ret->number[ret->n++] = l.number[i];
}

/* Returns false if nothing can be merged now. A rewind that was interrupted is completed first: by
 * the next start. */
static bool find_all(const char *id, struct layers ret[TEMPLATE_N_DISKS])
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id),
		       *plan = xasprintf("%s/rewind", dir);
	static struct checkpoints list;
	bool found = false;

	if (access(plan, F_OK) == 0 || checkpoints_load(id, &list, NULL) < 0)
		return false;
	/* Of a keeper that was killed, or whose answer sbxd did not get. */
	memories_sweep(id, &list);
	for (enum template_disk i = 0; i < TEMPLATE_N_DISKS; i++) {
		merges_find(dir, &list, i, &ret[i]);
		found = found || ret[i].n;
	}
	return found;
}

static void drop_waiting(struct merges *m, size_t i)
{
	m->n--;
	memmove(m->ids[i], m->ids[i + 1], (m->n - i) * sizeof(m->ids[0]));
}

void merges_want(struct sbxd *d, const char *id)
{
	struct merges *m = d->merges;

	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->ids[i], id) == 0)
			return;
	if (m->n == MERGES_MAX)
		return; /* its next stop does it */
	(void)snprintf(m->ids[m->n++], sizeof(m->ids[0]), "%s", id);
	if (!m->child.pid)
		set_timer(d, MERGES_DELAY_MS);
}

/* ---- the process ---- */

static int start_merger(
	struct sbxd *d, const char *id, const struct layers layers[], struct err *err)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "merges.log");
	AUTO_CLOSE int log_fd = child_open_log(log, err);
	struct merges *m = d->merges;
	int r = log_fd < 0 ? log_fd : hands_merger(id, layers, log_fd, &m->child, err);

	if (r < 0)
		return r;
	(void)snprintf(m->id, sizeof(m->id), "%s", id);
	if (loop_add(&d->loop, m->child.pidfd, EPOLLIN, (struct loop_key){.kind = SBXD_EV_MERGES}) <
		0) {
		merges_done(d);
		return err_set(err, -EIO, "cannot watch the program that merges layers");
	}
	set_timer(d, MERGES_MS);
	return 0;
}

static void start_next(struct sbxd *d)
{
	struct merges *m = d->merges;

	while (m->n && !m->child.pid) {
		struct layers layers[TEMPLATE_N_DISKS];
		char id[SPEC_ID_LEN + 1];
		struct err err = {0};

		memcpy(id, m->ids[0], sizeof(id));
		drop_waiting(m, 0);
		if (find_all(id, layers) && start_merger(d, id, layers, &err) < 0)
			log_warn("cannot merge layers of %s: %s", id, err.text);
	}
}

void merges_on_timer(struct sbxd *d)
{
	if (!d->merges->child.pid) {
		start_next(d);
		return;
	}
	log_warn("merging layers of %s timed out: killed", d->merges->id);
	hands_signal(d->merges->child.pidfd, HANDS_KILL_GROUP); /* the exit follows */
}

static void forget_merger(struct sbxd *d)
{
	struct merges *m = d->merges;

	if (m->child.pidfd >= 0)
		loop_del(&d->loop, m->child.pidfd);
	fd_close(&m->child.pidfd);
	m->child.pid = 0;
	m->id[0] = '\0';
	loop_timer_clear(&d->loop, &m->timer);
}

void merges_on_exit(struct sbxd *d)
{
	struct merges *m = d->merges;
	struct hands_end end;

	if (hands_reap(m->child.pid, &end) < 0)
		return;
	if (end.was_killed || (end.status != 0 && end.status != EXIT_BUSY))
		log_warn("cannot merge layers of %s: see merges.log", m->id);
	else if (end.status == 0)
		log_info("merged layers of %s", m->id);
	forget_merger(d);
	if (m->n)
		set_timer(d, MERGES_DELAY_MS);
}

void merges_stop(struct sbxd *d, const char *id)
{
	struct merges *m = d->merges;

	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->ids[i], id) == 0) {
			drop_waiting(m, i);
			break;
		}
	if (strcmp(m->id, id) != 0 || !m->child.pid)
		return;
	merges_done(d);
	if (m->n)
		set_timer(d, MERGES_DELAY_MS);
}

void merges_done(struct sbxd *d)
{
	const struct hands_child *c = &d->merges->child;

	if (!c->pid)
		return;
	hands_signal(c->pidfd, HANDS_KILL_GROUP);
	hands_reap_killed(c);
	forget_merger(d);
}
