/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - a struct jail_plan as the body of a packet.
 *
 * How      Strings with their NUL, so that the decoder can point into the packet. The descriptors
 *          of the plan are those of the packet, in order; the log comes first.
 */
#include <errno.h>
#include <string.h>
#include "worker_internal.h"

enum plan_flags {
	PLAN_HAS_LOG = 1 << 0,
	PLAN_HAS_ENV = 1 << 1,
	PLAN_SPECIAL_FILES = 1 << 2,
	PLAN_NOTIFY_PATHS = 1 << 3,
	PLAN_NOTIFY_FULL = 1 << 4,
	PLAN_ALL = (1 << 5) - 1,
};

static void put_string(struct wr *w, const char *s)
{
	wr_str(w, slice_of(s, strlen(s) + 1));
}

static void put_list(struct wr *w, char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	w->bad = w->bad || n > PLAN_MAX_ARGS;
	wr_u16(w, (uint16_t)n);
	for (size_t i = 0; i < n && !w->bad; i++)
		put_string(w, list[i]);
}

static unsigned flags_of(const struct jail_plan *p)
{
	return (p->log_fd >= 0 ? PLAN_HAS_LOG : 0u) | (p->envp ? PLAN_HAS_ENV : 0u) |
	       (p->special_files ? PLAN_SPECIAL_FILES : 0u) |
	       (p->notify_paths ? PLAN_NOTIFY_PATHS : 0u) |
	       (p->notify_full ? PLAN_NOTIFY_FULL : 0u);
}

static void put_fds(struct wr *w, const struct jail_plan *p, struct worker_msg *msg)
{
	msg->n_fds = 0;
	if (p->log_fd >= 0)
		msg->fds[msg->n_fds++] = p->log_fd;
	wr_u16(w, (uint16_t)p->n_fds);
	for (size_t i = 0; i < p->n_fds; i++) {
		msg->fds[msg->n_fds++] = p->fds[i].from;
		wr_u16(w, (uint16_t)p->fds[i].to);
	}
}

int plan_put(const struct jail_plan *p, struct worker_msg *msg, struct err *err)
{
	struct wr w = wr_init(msg->body, sizeof(msg->body));

	if (p->scaffold || p->n_mounts > PLAN_MAX_MOUNTS || p->n_fds > JAIL_MAX_FDS)
		return err_set(err, -EINVAL, "cannot pass this jail plan to the spawner");
	msg->kind = WORKER_SPAWN;
	msg->code = 0;
	wr_u8(&w, (uint8_t)p->profile);
	wr_u8(&w, (uint8_t)flags_of(p));
	put_string(&w, p->program);
	put_list(&w, p->argv);
	if (p->envp)
		put_list(&w, p->envp);
	wr_u16(&w, (uint16_t)p->n_mounts);
	for (size_t i = 0; i < p->n_mounts; i++) {
		put_string(&w, p->mounts[i].from);
		put_string(&w, p->mounts[i].to);
		wr_u8(&w, (uint8_t)p->mounts[i].flags);
	}
	put_fds(&w, p, msg);
	msg->n = w.n;
	return wr_finish(&w) < 0
		       ? err_set(err, -EMSGSIZE, "the jail plan of %s is too long", p->program)
		       : 0;
}

/* ---- */

static char *get_string(struct rd *rd)
{
	static char empty[1];
	struct slice s = rd_str(rd);

	if (rd->bad || s.n == 0 || memchr(s.p, 0, s.n) != s.p + s.n - 1) {
		rd->bad = true;
		return empty;
	}
	return (char *)(uintptr_t)s.p;
}

static void get_list(struct rd *rd, char *list[PLAN_MAX_ARGS + 1])
{
	size_t n = rd_u16(rd);

	rd->bad = rd->bad || n > PLAN_MAX_ARGS;
	for (size_t i = 0; i < n && !rd->bad; i++)
		list[i] = get_string(rd);
	list[rd->bad ? 0 : n] = NULL;
}

static void get_mounts(struct rd *rd, struct plan_box *box)
{
	size_t n = rd_u16(rd);

	rd->bad = rd->bad || n > PLAN_MAX_MOUNTS;
	for (size_t i = 0; i < n && !rd->bad; i++) {
		box->mounts[i].from = get_string(rd);
		box->mounts[i].to = get_string(rd);
		box->mounts[i].flags = rd_u8(rd);
		rd->bad = rd->bad || box->mounts[i].from[0] != '/' || box->mounts[i].to[0] != '/' ||
			  (box->mounts[i].flags & ~(unsigned)(JAIL_MOUNT_RW | JAIL_MOUNT_DEV |
							      JAIL_MOUNT_OPTIONAL));
	}
	box->plan.mounts = box->mounts;
	box->plan.n_mounts = rd->bad ? 0 : n;
}

static void get_fds(struct rd *rd, struct plan_box *box, const struct worker_msg *msg, bool has_log)
{
	size_t n = rd_u16(rd), first = has_log ? 1 : 0;

	rd->bad = rd->bad || n > JAIL_MAX_FDS || msg->n_fds != n + first;
	for (size_t i = 0; i < n && !rd->bad; i++)
		box->fds[i] = (struct jail_fd){msg->fds[first + i], rd_u16(rd)};
	box->plan.log_fd = has_log && !rd->bad ? msg->fds[0] : -1;
	box->plan.fds = box->fds;
	box->plan.n_fds = rd->bad ? 0 : n;
}

int plan_get(struct worker_msg *msg, struct plan_box *box)
{
	struct rd rd = rd_init(slice_of(msg->body, msg->n));
	struct jail_plan *p = &box->plan;
	unsigned profile = rd_u8(&rd), flags = rd_u8(&rd);

	*p = (struct jail_plan){.log_fd = -1};
	rd.bad = rd.bad || profile >= JAIL_N_PROFILES || (flags & ~(unsigned)PLAN_ALL);
	p->profile = rd.bad ? JAIL_EDGE : (enum jail_profile)profile;
	p->program = get_string(&rd);
	get_list(&rd, box->argv);
	p->argv = box->argv;
	if (flags & PLAN_HAS_ENV) {
		get_list(&rd, box->envp);
		p->envp = box->envp;
	}
	p->special_files = flags & PLAN_SPECIAL_FILES;
	p->notify_paths = flags & PLAN_NOTIFY_PATHS;
	p->notify_full = flags & PLAN_NOTIFY_FULL;
	get_mounts(&rd, box);
	get_fds(&rd, box, msg, flags & PLAN_HAS_LOG);
	return rd_finish(&rd);
}
