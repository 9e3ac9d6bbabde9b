/* SPDX-License-Identifier: Apache-2.0 */
#include "notify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/sbxd/keepers/keepers.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"

void notify_init(struct notifier *n)
{
	*n = (struct notifier){.child.pidfd = -1, .sock = -1};
}

/* ---- the process ---- */

/* A repeated failure is logged once. */
static void start_later(struct notifier *n, const char *why)
{
	n->delay_ms = n->delay_ms ? MIN(2 * n->delay_ms, (uint64_t)NOTIFY_LAST_DELAY_MS)
				  : NOTIFY_FIRST_DELAY_MS;
	n->next_start_ms = clock_mono_ms() + n->delay_ms;
	if (strcmp(n->why, why) != 0)
		log_info("no desktop notifications: %s", why);
	(void)snprintf(n->why, sizeof(n->why), "%s", why);
}

static void close_channel(struct sbxd *d)
{
	struct notifier *n = d->notifier;

	if (n->sock < 0)
		return;
	loop_del(&d->loop, n->sock);
	fd_close(&n->sock);
	n->kill_at_ms = clock_mono_ms() + NOTIFY_EXIT_MS;
}

/* The exit event does the rest. */
static void kill_notifier(struct sbxd *d, const char *why)
{
	struct notifier *n = d->notifier;

	log_warn("killing sbx-notify: %s", why);
	close_channel(d);
	hands_signal(n->child.pidfd, HANDS_KILL);
}

static int watch_notifier(struct sbxd *d, int sock, struct err *err)
{
	struct notifier *n = d->notifier;
	int r = loop_add(
		&d->loop, n->child.pidfd, EPOLLIN, (struct loop_key){.kind = SBXD_EV_NOTIFY_EXIT});

	if (r == 0)
		r = loop_add(&d->loop, sock, EPOLLIN, (struct loop_key){.kind = SBXD_EV_NOTIFY});
	if (r < 0)
		return err_errno(err, r, "cannot watch sbx-notify");
	n->armed = EPOLLIN;
	ipc_trace(sock, &notify_chan, NOTIFY_FROM_SBXD, "");
	return 0;
}

static int start_process(struct sbxd *d, struct err *err)
{
	struct notifier *n = d->notifier;
	AUTO_FREE char *log = paths_get(PATHS_STATE, "notify.log");
	AUTO_CLOSE int log_fd = child_open_log(log, err);
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int pair[2], r = log_fd < 0 ? log_fd : ipc_pair(pair);

	if (r < 0)
		return err_errno(err, r, "cannot create a channel");
	ours = pair[0];
	theirs = pair[1];
	r = hands_notify(theirs, log_fd, &n->child, err);
	if (r < 0)
		return r;
	r = watch_notifier(d, ours, err);
	if (r == 0) {
		n->sock = TAKE_FD(ours);
		return 0;
	}
	hands_signal(n->child.pidfd, HANDS_KILL);
	hands_reap_killed(&n->child);
	fd_close(&n->child.pidfd);
	return r;
}

static void start_notifier(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	uint64_t now = clock_mono_ms();
	struct err err = {0};
	int r;

	if (n->child.pidfd >= 0 || now < n->next_start_ms)
		return;
	n->phase = NOTIFY_PHASE_START;
	n->is_asked = n->is_blocked = false;
	n->n_shown = n->n_answers = 0;
	r = start_process(d, &err);
	if (r < 0)
		start_later(n, err_text(&err, r));
	else
		n->kill_at_ms = now + NOTIFY_START_MS;
}

/* What the last sbx-notify displayed is gone with it. */
static void forget_shown(struct notifier *n)
{
	for (size_t i = 0; i < NOTIFY_MAX; i++) {
		struct notify_place *p = &n->place[i];

		if (p->state == NOTIFY_SHOWN)
			p->state = NOTIFY_DUE;
		else if (p->state == NOTIFY_ENDED)
			*p = (struct notify_place){0};
	}
}

/* ---- notifications ---- */

static bool is_shown_for(const struct notify_place *p, const struct keeper *k, const struct held *h)
{
	return (p->state == NOTIFY_DUE || p->state == NOTIFY_SHOWN) &&
	       strcmp(p->keeper, k->id) == 0 && strcmp(p->hold, h->msg.id) == 0 &&
	       memcmp(p->digest, h->msg.digest, SHA256_BYTES) == 0;
}

/* Texts of a keeper, for a person. */
static void describe_hold(
	struct sbxd *d, const struct keeper *k, const struct held *h, struct notify_show *ret)
{
	AUTO_ROW struct store_row row = {0};
	const char *name = store_get(d->store, k->id, &row, NULL) == 0 ? row.spec.name : k->id;
	const char *rest = h->msg.effects + strcspn(h->msg.effects, "\n");

	*ret = (struct notify_show){0};
	(void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", name);
	(void)snprintf(ret->hold, sizeof(ret->hold), "%s", h->msg.id);
	(void)snprintf(ret->effect, sizeof(ret->effect), "%.*s", (int)(rest - h->msg.effects),
		h->msg.effects);
	for (; *rest; rest++)
		ret->more += *rest == '\n' && rest[1];
	str_make_printable(ret->sandbox);
	str_make_printable(ret->hold);
	str_make_printable(ret->effect);
}

static void add_place(struct sbxd *d, const struct keeper *k, const struct held *h)
{
	struct notifier *n = d->notifier;
	struct notify_place *p = n->place;

	while (p < n->place + NOTIFY_MAX && p->state != NOTIFY_FREE)
		p++;
	if (p == n->place + NOTIFY_MAX)
		return;
	*p = (struct notify_place){
		.state = NOTIFY_DUE, .number = ++n->last_number, .is_open = true};
	memcpy(p->keeper, k->id, sizeof(p->keeper));
	memcpy(p->hold, h->msg.id, sizeof(p->hold));
	memcpy(p->digest, h->msg.digest, sizeof(p->digest));
	describe_hold(d, k, h, &p->show);
}

struct look {
	struct sbxd *d;
	bool is_read, is_wanted; /* the setting */
};

static bool is_wanted(struct look *l)
{
	AUTO_SETTINGS struct settings set = {0};

	if (!l->is_read)
		l->is_wanted = settings_load(&set, NULL) == 0 &&
			       strcmp(settings_get(&set, SETTINGS_ASK_NOTIFY), "true") == 0;
	l->is_read = true;
	return l->is_wanted;
}

static void look_at_hold(void *arg, const struct keeper *k, const struct held *h)
{
	struct look *l = arg;
	struct notifier *n = l->d->notifier;

	if (h->msg.state != HOLD_OPEN)
		return;
	for (size_t i = 0; i < NOTIFY_MAX; i++) {
		if (is_shown_for(&n->place[i], k, h)) {
			n->place[i].is_open = true;
			return;
		}
	}
	if (is_wanted(l))
		add_place(l->d, k, h);
}

static void compare_holds(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	struct look look = {.d = d};

	for (size_t i = 0; i < NOTIFY_MAX; i++)
		n->place[i].is_open = false;
	holds_each(d, look_at_hold, &look);
	for (size_t i = 0; i < NOTIFY_MAX; i++) {
		struct notify_place *p = &n->place[i];

		if (p->is_open)
			continue;
		if (p->state == NOTIFY_SHOWN)
			p->state = NOTIFY_ENDED;
		else if (p->state == NOTIFY_DUE)
			*p = (struct notify_place){0};
	}
}

static int send_place(struct notifier *n, struct notify_place *p)
{
	int r = 0;

	if (p->state == NOTIFY_DUE) {
		r = notify_send_show(n->sock, p->number, &p->show);
		if (r == 0) {
			p->state = NOTIFY_SHOWN;
			n->n_shown++;
		}
	} else if (p->state == NOTIFY_ENDED) {
		r = chan_send_plain(n->sock, NOTIFY_CLOSE, p->number, -1);
		if (r == 0)
			*p = (struct notify_place){0};
	}
	return r;
}

static void send_due(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	int r = 0;

	for (size_t i = 0; i < NOTIFY_MAX && r == 0; i++)
		r = send_place(n, &n->place[i]);
	n->is_blocked = r == -EAGAIN;
	if (r < 0 && r != -EAGAIN)
		close_channel(d);
}

/* ---- due work ---- */

static bool has_places(const struct notifier *n)
{
	for (size_t i = 0; i < NOTIFY_MAX; i++)
		if (n->place[i].state != NOTIFY_FREE)
			return true;
	return false;
}

static void watch_channel(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	uint32_t events = EPOLLIN | (n->is_blocked ? EPOLLOUT : 0);

	if (n->sock >= 0 && events != n->armed &&
		loop_mod(&d->loop, n->sock, events, (struct loop_key){.kind = SBXD_EV_NOTIFY}) == 0)
		n->armed = events;
}

static void set_timer(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	uint64_t at = UINT64_MAX;

	if (n->idle_at_ms)
		at = n->idle_at_ms;
	if (n->kill_at_ms)
		at = MIN(at, n->kill_at_ms);
	if (at == UINT64_MAX)
		loop_timer_clear(&d->loop, &n->timer);
	else
		loop_timer_set(
			&d->loop, &n->timer, at, (struct loop_key){.kind = SBXD_EV_NOTIFY_TIMER});
}

static void notify_step(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	bool busy = has_places(n);

	if (busy && n->child.pidfd < 0)
		start_notifier(d);
	if (n->sock >= 0 && n->phase == NOTIFY_PHASE_RUN)
		send_due(d);
	busy = has_places(n);
	if (busy || n->sock < 0)
		n->idle_at_ms = 0;
	else if (!n->idle_at_ms)
		n->idle_at_ms = clock_mono_ms() + NOTIFY_IDLE_MS;
	watch_channel(d);
	set_timer(d);
}

void notify_look(struct sbxd *d)
{
	if (d->notifier->is_done)
		return;
	compare_holds(d);
	notify_step(d);
}

/* ---- messages of sbx-notify ---- */

static int on_hello(struct notifier *n, const struct ipc_msg *msg)
{
	char build[CHAN_MAX_BUILD];
	int r = chan_get_hello(msg, build);

	if (r < 0 || strcmp(build, SBX_BUILD) != 0)
		return -EBADMSG;
	n->phase = NOTIFY_PHASE_RUN;
	n->kill_at_ms = 0;
	n->delay_ms = 0;
	n->why[0] = '\0';
	return 0;
}

static void refuse_hold(struct sbxd *d, const struct notify_place *p)
{
	struct hold_reply reply = {.choice = HOLD_CHOICE_NO, .uid = (uint32_t)getuid()};
	struct keeper *k = keeper_find(d, p->keeper);

	memcpy(reply.id, p->hold, sizeof(reply.id));
	memcpy(reply.digest, p->digest, sizeof(reply.digest));
	(void)!str_copy(reply.where, sizeof(reply.where), "desktop");
	if (!k || !holds_answer(d, k, &reply))
		log_warn("cannot refuse request %s: sbx-keeper does not read", p->hold);
}

/* A number whose notification has ended meanwhile is late, but each number has one answer. */
static int on_refuse(struct sbxd *d, const struct ipc_msg *msg)
{
	struct notifier *n = d->notifier;
	int r = notify_get_plain(msg, NOTIFY_REFUSE);

	if (r < 0 || msg->id > n->last_number || ++n->n_answers > n->n_shown)
		return -EBADMSG;
	for (size_t i = 0; i < NOTIFY_MAX; i++) {
		struct notify_place *p = &n->place[i];

		if (p->state == NOTIFY_FREE || p->number != msg->id)
			continue;
		if (p->state == NOTIFY_DUE || p->refused)
			return -EBADMSG;
		p->refused = true;
		if (p->state == NOTIFY_SHOWN)
			refuse_hold(d, p);
	}
	return 0;
}

static int take_message(struct sbxd *d, const struct ipc_msg *msg)
{
	struct notifier *n = d->notifier;

	if (!chan_allows(&notify_chan, n->phase, NOTIFY_FROM_NOTIFY, msg->type))
		return -EBADMSG;
	return msg->type == NOTIFY_HELLO ? on_hello(n, msg) : on_refuse(d, msg);
}

void notify_on_event(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	static struct ipc_msg msg;

	/* A late event: the channel was closed. */
	for (unsigned i = 0; i < NOTIFY_MAX && n->sock >= 0; i++) {
		int r;

		msg.fd = -1;
		r = ipc_recv(n->sock, &msg);
		if (r == -EAGAIN)
			break;
		if (r > 0)
			r = take_message(d, &msg) < 0 ? -EBADMSG : 1;
		ipc_msg_done(&msg);
		if (r < 0)
			kill_notifier(d, "protocol violation");
		else if (r == 0)
			close_channel(d);
	}
	notify_step(d);
}

void notify_on_exit(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	AUTO_FREE char *log = paths_get(PATHS_STATE, "notify.log");
	AUTO_FREE char *why = NULL;
	struct hands_end end;

	if (n->child.pidfd < 0 || hands_reap(n->child.pid, &end) < 0)
		return;
	close_channel(d);
	loop_del(&d->loop, n->child.pidfd);
	fd_close(&n->child.pidfd);
	n->kill_at_ms = 0;
	forget_shown(n);
	why = xasprintf("sbx-notify exited (%s %d): see %s", end.was_killed ? "signal" : "status",
		end.status, log);
	if (!n->is_asked)
		start_later(n, why);
	notify_step(d);
}

void notify_on_timer(struct sbxd *d)
{
	struct notifier *n = d->notifier;
	uint64_t now = clock_mono_ms();

	if (n->kill_at_ms && now >= n->kill_at_ms) {
		n->kill_at_ms = 0;
		if (n->child.pidfd >= 0)
			kill_notifier(d, "no response in time");
	}
	if (n->idle_at_ms && now >= n->idle_at_ms) {
		n->is_asked = true;
		close_channel(d);
	}
	notify_step(d);
}

void notify_done(struct sbxd *d)
{
	struct notifier *n = d->notifier;

	loop_timer_clear(&d->loop, &n->timer);
	fd_close(&n->sock);
	fd_close(&n->child.pidfd);
	for (size_t i = 0; i < NOTIFY_MAX; i++)
		n->place[i] = (struct notify_place){0};
	n->is_done = true; /* the holds of the keepers are dropped after this */
}
