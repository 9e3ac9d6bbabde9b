/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "api_internal.h"
#include "src/sbxd/disk/disk.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"

#define STOP_SLACK_MS 15000
#define SUSPEND_MS 300000 /* the keeper has a timeout for each step */
#define SETTLE_MS 30000
#define USED_STAMP_MS 60000
#define EXEC_ERROR_FRAME 20 /* PROTOCOL.exec */
#define EXEC_ERROR_STATUS 126

/* The call's value, else the sandbox's, else the setting. */
static int choose_accel(enum spec_accel wish, struct spec *spec, struct err *err)
{
	AUTO_SETTINGS struct settings set = {0};
	int r;

	if (wish != SPEC_ACCEL_AUTO)
		spec->accel = wish;
	if (spec->accel != SPEC_ACCEL_AUTO)
		return 0;
	r = settings_load(&set, err);
	if (r < 0)
		return -EINVAL;
	return spec_accel_parse(settings_get(&set, SETTINGS_VM_ACCEL), &spec->accel);
}

int api_launch_now(
	struct sbxd *d, struct spec *spec, enum spec_accel wish, bool cold, struct err *err)
{
	int r;

	merges_stop(d, spec->id);
	templates_pin_row(d, spec);
	r = choose_accel(wish, spec, err);
	if (r == 0)
		r = api_settle_disks(spec->id, err);
	if (!cold)
		kept_fit(spec, wish == SPEC_ACCEL_AUTO);
	if (r == 0 && !pool_claim(d, spec, cold))
		r = keeper_spawn(d, spec, cold, err);
	if (r < 0)
		return err_wrap(
			err, r == -EINVAL || r == -EBUSY ? r : -EIO, "cannot start %s", spec->name);
	wakes_pass(d, spec->id);
	api_watch_changed(d, spec->id);
	return 0;
}

int api_begin(struct sbxd *d, const char *id, enum spec_accel wish, bool cold, struct err *err)
{
	AUTO_ROW struct store_row row = {0};
	int r = store_get(d->store, id, &row, err);

	return r < 0 ? r : api_launch_now(d, &row.spec, wish, cold, err);
}

/* A VM of the pool is ready: its sandbox does not wait. */
int api_launch(struct sbxd *d, struct spec *spec, enum spec_accel wish, bool cold, struct err *err)
{
	int r;

	if ((!cold && pool_has(d, spec->id)) || !starts_must_wait(d))
		return api_launch_now(d, spec, wish, cold, err);
	r = starts_add(d, spec->id, wish, cold, err);
	if (r < 0)
		return err_wrap(err, r == -EBUSY ? r : -EIO, "cannot start %s", spec->name);
	api_watch_changed(d, spec->id);
	return 0;
}

void api_start(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	enum spec_accel wish = SPEC_ACCEL_AUTO;
	struct err err = {0};
	const char *status;
	bool cold = false;
	int r = api_decode_start(c->http.body, &wish, &cold, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	if (!api_find(d, c, req->ref, &row))
		return;
	if (starts_place(d->starts, row.spec.id)) {
		api_reply_row(d, c, 202, &row);
		return;
	}
	status = keeper_status(keeper_find(d, row.spec.id));
	if (strcmp(status, "stopped") != 0) {
		if (strcmp(status, "stopping") == 0)
			api_refuse(
				d, c, 409, "conflict", "the sandbox is stopping: try again later");
		else if (strcmp(status, "unresponsive") == 0)
			api_fail(d, c, 503, "unresponsive",
				"the sandbox is running but not responding", "sbx stop SANDBOX");
		else
			api_reply_row(d, c, strcmp(status, "running") == 0 ? 200 : 202, &row);
		return;
	}
	r = api_launch(d, &row.spec, wish, cold, &err);
	if (api_succeeded(d, c, r, &err))
		api_reply_ref(d, c, 202, row.spec.id);
}

static void wait_stop(struct sbxd *d, struct conn *c, bool late)
{
	if (!keeper_find(d, c->wait_id))
		api_reply_ref(d, c, 200, c->wait_id);
	else if (late)
		api_refuse(d, c, 504, "timeout",
			"the sandbox did not stop within the timeout: killing it");
}

enum stop_kind { STOP_SHUT_DOWN, STOP_SUSPEND, STOP_SUSPEND_IDLE };

static int choose_stop(
	struct slice body, uint64_t *ret_ms, enum stop_kind *ret_kind, struct err *err)
{
	AUTO_SETTINGS struct settings set = {0};
	bool suspend = false, idle = false;
	uint64_t ms = UINT64_MAX;
	int r = api_decode_stop(body, &ms, &suspend, &idle, err);

	if (r < 0)
		return r;
	if (ms == UINT64_MAX) {
		r = settings_load(&set, err);
		if (r < 0)
			return -EINVAL;
		ms = 1000 * settings_get_u64(&set, SETTINGS_STOP_TIMEOUT);
		idle = idle && strcmp(settings_get(&set, SETTINGS_STOP_SUSPEND), "true") == 0;
	}
	*ret_ms = ms;
	*ret_kind = suspend ? STOP_SUSPEND : idle ? STOP_SUSPEND_IDLE : STOP_SHUT_DOWN;
	return 0;
}

static void shut_down(struct sbxd *d, struct conn *c, struct keeper *k, uint64_t ms)
{
	kept_remove_bad(k->id);
	conn_wait(d, c, wait_stop, k->id, ms + STOP_SLACK_MS);
	keeper_stop(d, k, ms);
}

/* The keeper exits after saving. If it cannot save, DONE has the reason and it keeps running. */
static void wait_suspend(struct sbxd *d, struct conn *c, bool late)
{
	bool has_ended = !keeper_find(d, c->wait_id);

	if (has_ended && kept_is_there(c->wait_id))
		api_reply_ref(d, c, 200, c->wait_id);
	else if (has_ended)
		api_refuse(d, c, 500, "internal", "the sandbox exited without a snapshot");
	else if (late)
		api_refuse(
			d, c, 504, "timeout", "the sandbox was not suspended within the timeout");
}

static void suspend_sandbox(struct sbxd *d, struct conn *c, const struct store_row *row)
{
	struct keeper *k = keeper_find(d, row->spec.id);
	AUTO_FREE char *stop = xasprintf("sbx stop %s", row->spec.name);

	if (!k && kept_is_there(row->spec.id)) {
		api_reply_row(d, c, 200, row);
	} else if (!k) {
		api_fail(d, c, 409, "conflict", "the sandbox is not running: nothing to suspend",
			"sbx start SANDBOX");
	} else if (row->spec.staged) {
		api_fail(d, c, 409, "conflict",
			"a sandbox with --staged cannot be suspended: its changes are on its disk and survive a stop",
			stop);
	} else if (k->other_build) {
		api_fail(d, c, 409, "conflict", "the sandbox was started by another version of sbx",
			"sbx restart SANDBOX");
	} else if (strcmp(keeper_status(k), "running") != 0 || k->sock < 0) {
		api_refuse(d, c, 409, "conflict",
			"the sandbox is not running: only running sandboxes can be suspended");
	} else if (row->spec.accel != SPEC_ACCEL_AUTO &&
		   strcmp(spec_accel_name(row->spec.accel), k->state.accel) != 0) {
		api_fail(d, c, 409, "conflict",
			"the sandbox was not suspended and keeps running: --accel was changed, and a snapshot works only with the current accelerator. Stop it to apply the change",
			stop);
	} else {
		c->ask_id = keeper_next_ask(d);
		if (chan_send_plain(k->sock, KEEPER_SUSPEND, c->ask_id, -1) < 0)
			api_refuse(d, c, 503, "unresponsive", "sbx-keeper is not responding");
		else
			conn_wait(d, c, wait_suspend, row->spec.id, SUSPEND_MS);
	}
}

/* It was not suspended: it is in use, cannot be suspended, or did not respond. */
static void stop_instead(struct sbxd *d, struct conn *c, struct keeper *k)
{
	AUTO_SETTINGS struct settings set = {0};
	struct err err = {0};

	if (settings_load(&set, &err) < 0)
		log_warn("%s: using the default of stop.timeout", err.text);
	shut_down(d, c, k, 1000 * settings_get_u64(&set, SETTINGS_STOP_TIMEOUT));
}

/* A suspend that failed is undone first: the guest can then shut down in order. */
static void wait_settled(struct sbxd *d, struct conn *c, bool late)
{
	struct keeper *k = keeper_find(d, c->wait_id);
	const char *status = keeper_status(k);

	if (!k)
		api_reply_ref(d, c, 200, c->wait_id);
	else if (late || (strcmp(status, "starting") != 0 && strcmp(status, "stopping") != 0))
		stop_instead(d, c, k);
}

static void wait_saved(struct sbxd *d, struct conn *c, bool late)
{
	struct keeper *k = keeper_find(d, c->wait_id);

	if (!k)
		api_reply_ref(d, c, 200, c->wait_id);
	else if (late)
		stop_instead(d, c, k);
}

/* The keeper begins, or sends DONE with the reason why not. */
static void wait_begun(struct sbxd *d, struct conn *c, bool late)
{
	const struct keeper *k = keeper_find(d, c->wait_id);

	if (k && strcmp(keeper_status(k), "stopping") == 0)
		conn_wait(d, c, wait_saved, k->id, SUSPEND_MS);
	else
		wait_saved(d, c, late);
}

/* After `sbx update`, the next start has to be a boot. Staged changes are on the disk. */
static bool may_suspend(const struct spec *spec, const struct keeper *k)
{
	return strcmp(keeper_status(k), "running") == 0 && k->sock >= 0 && !k->other_build &&
	       !spec->staged && kept_is_current(spec, k->state.accel);
}

static void suspend_idle(
	struct sbxd *d, struct conn *c, const struct spec *spec, struct keeper *k, uint64_t ms)
{
	c->ask_id = keeper_next_ask(d);
	if (may_suspend(spec, k) &&
		chan_send_plain(k->sock, KEEPER_SUSPEND_IDLE, c->ask_id, -1) == 0)
		conn_wait(d, c, wait_begun, k->id, KEEPER_ANSWER_MS);
	else
		shut_down(d, c, k, ms);
}

/* Its start waited and was removed: except after a plain stop it is as it was before the start. */
static void stop_waiting(struct sbxd *d, struct conn *c, const char *id, enum stop_kind kind)
{
	if (kind == STOP_SHUT_DOWN)
		kept_remove(id);
	wakes_look(d, id);
	api_reply_ref(d, c, 200, id);
	api_watch_changed(d, id);
	conns_wake(d, id);
}

void api_stop(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	enum stop_kind kind = STOP_SHUT_DOWN;
	struct err err = {0};
	uint64_t ms = 0;
	struct keeper *k;
	int r = choose_stop(c->http.body, &ms, &kind, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	if (!api_find(d, c, req->ref, &row))
		return;
	if (starts_drop(d, row.spec.id)) {
		stop_waiting(d, c, row.spec.id, kind);
		return;
	}
	k = keeper_find(d, row.spec.id);
	if (kind == STOP_SUSPEND) {
		suspend_sandbox(d, c, &row);
	} else if (k && kind == STOP_SUSPEND_IDLE) {
		suspend_idle(d, c, &row.spec, k, ms);
	} else if (k) {
		shut_down(d, c, k, ms);
	} else {
		if (kind == STOP_SHUT_DOWN)
			kept_remove(row.spec.id); /* its programs are lost */
		wakes_look(d, row.spec.id);
		api_reply_row(d, c, 200, &row);
	}
}

/* Replies and returns NULL unless the sandbox runs and its keeper is connected. */
static struct keeper *need_running(struct sbxd *d, struct conn *c, const char *id)
{
	struct keeper *k = keeper_find(d, id);
	const char *status = keeper_status(k);
	char detail[KEEPER_MAX_TEXT + 64] = "";

	if (strcmp(status, "running") == 0 && k->sock >= 0)
		return k;
	if (k)
		keeper_detail(k, detail, sizeof(detail));
	if (strcmp(status, "unresponsive") == 0)
		api_fail(d, c, 503, "unresponsive",
			detail[0] ? detail : "the sandbox is not responding", "sbx stop SANDBOX");
	else
		api_fail(d, c, 409, "conflict",
			k ? "the sandbox is starting or stopping" : "the sandbox is not running",
			"sbx start SANDBOX");
	return NULL;
}

/* Guest data does not use this path, so this frame is the only data on fd. */
static void send_exec_error(int fd, const char *text)
{
	uint8_t frame[8 + KEEPER_MAX_TEXT];
	struct wr wr = wr_init(frame, sizeof(frame));
	size_t n = strnlen(text, KEEPER_MAX_TEXT);

	wr_u8(&wr, EXEC_ERROR_FRAME);
	wr_u24(&wr, (uint32_t)n + 1);
	wr_u8(&wr, EXEC_ERROR_STATUS);
	wr_bytes(&wr, slice_of(text, n));
	(void)!send(fd, frame, wr.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The fd is passed on; DONE reports that the keeper has it. */
static void wait_handed(struct sbxd *d, struct conn *c, bool late)
{
	const struct keeper *k = keeper_find(d, c->wait_id);

	if (k && !late)
		return;
	/* Its progress is unknown: closes it for both sides. */
	(void)shutdown(c->fd, SHUT_RDWR);
	conn_close(d, c);
}

static bool has_early_bytes(const struct conn *c)
{
	char b;

	return bufq_len(&c->in) || recv(c->fd, &b, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The 101 is written first: once the socket is passed on, guest data may follow on it. Later
 * failures are reported as a frame of PROTOCOL.exec. */
static void hand_over(struct sbxd *d, struct conn *c, struct keeper *k)
{
	char head[API_HTTP_HEAD_ROOM];
	size_t n = api_http_put_upgrade(head);
	char path[KEEPER_MAX_PATH] = "/exec";
	int r;

	if (c->later.number)
		(void)snprintf(path, sizeof(path), "/tcp/%u", (unsigned)c->later.number);
	if (has_early_bytes(c)) {
		c->http.keep = false;
		api_refuse(d, c, 400, "bad-request", "data received before the 101 response");
		return;
	}
	conn_hand_over(d, c);
	if (send(c->fd, head, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
		conn_close(d, c);
		return;
	}
	c->ask_id = keeper_next_ask(d);
	r = keeper_ask_stream(k->sock, c->ask_id, path, c->fd);
	if (r < 0) {
		send_exec_error(c->fd, "sbx-keeper is not responding");
		conn_close(d, c);
		return;
	}
	/* conn_wait would add it to the loop again. */
	c->wait = wait_handed;
	c->deadline_ms = clock_mono_ms() + KEEPER_ANSWER_MS;
	loop_timer_set(&d->loop, &c->timer, c->deadline_ms, c->timer.key);
}

static void note_used(struct sbxd *d, struct keeper *k)
{
	uint64_t now = clock_wall_ms();
	struct err err = {0};

	if (now - k->used_stamp_ms < USED_STAMP_MS)
		return;
	k->used_stamp_ms = now;
	if (store_stamp(d->store, k->id, STORE_USED, now, NULL, &err) < 0)
		log_warn("%s", err.text);
}

static void wait_exec(struct sbxd *d, struct conn *c, bool late)
{
	struct keeper *k = keeper_find(d, c->wait_id);

	if (!late && k && keeper_is_pending(k))
		return;
	k = need_running(d, c, c->wait_id);
	if (!k)
		return;
	note_used(d, k);
	hand_over(d, c, k);
}

/* Pings a keeper that was silent lately, then continues in `fn`. */
static void with_running(struct sbxd *d, struct conn *c, const char *ref, conn_wait_fn *fn)
{
	AUTO_ROW struct store_row row = {0};
	struct keeper *k;

	if (!api_find(d, c, ref, &row))
		return;
	k = keeper_find(d, row.spec.id);
	if (k)
		keeper_freshen(k);
	conn_wait(d, c, fn, row.spec.id, KEEPER_PATIENCE_MS);
	fn(d, c, false);
}

void api_exec(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	c->later.number = req->callback;
	with_running(d, c, req->ref, wait_exec);
}

static void wait_stats(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		api_fail(d, c, 503, "unresponsive", "the sandbox did not respond within 5 s",
			"sbx stop SANDBOX");
}

static void wait_ask_stats(struct sbxd *d, struct conn *c, bool late)
{
	struct keeper *k = keeper_find(d, c->wait_id);
	char id[SPEC_ID_LEN + 1];

	if (!late && k && keeper_is_pending(k))
		return;
	memcpy(id, c->wait_id, sizeof(id));
	k = need_running(d, c, id);
	if (!k)
		return;
	c->ask_id = keeper_next_ask(d);
	if (chan_send_plain(k->sock, KEEPER_STATS, c->ask_id, -1) < 0) {
		api_refuse(d, c, 503, "unresponsive", "sbx-keeper is not responding");
		return;
	}
	conn_wait(d, c, wait_stats, id, KEEPER_ANSWER_MS);
}

void api_stats(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	with_running(d, c, req->ref, wait_ask_stats);
}

static json_t *sessions_json(const struct keeper_stats *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->n_sessions; i++) {
		const struct keeper_session *one = &s->sessions[i];
		bool ended = one->flags & KEEPER_SESSION_ENDED;
		json_t *o = json_pack("{s:s,s:s,s:b}", "name", one->name, "state",
			ended ? "ended" : "running", "attached",
			one->flags & KEEPER_SESSION_ATTACHED ? 1 : 0);

		if (ended)
			json_object_set_new(o, "status",
				json_integer(one->flags & KEEPER_SESSION_SIGNALLED
						     ? 128 + one->value
						     : one->value));
		json_array_append_new(list, o);
	}
	return list;
}

int api_on_stats(struct sbxd *d, const struct keeper *k, uint32_t ask, const struct keeper_stats *s)
{
	struct conn *c = conns_find_asker(d, k->id, ask);
	json_t *o;

	if (!c)
		return 0;
	/* Stats in reply to another request: a protocol violation. */
	if (c->wait != wait_stats)
		return -EBADMSG;
	o = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "uptime_ms",
		(json_int_t)s->uptime_ms, "cpu_ms", (json_int_t)s->cpu_ms, "mem_total",
		(json_int_t)s->mem_total, "mem_available", (json_int_t)s->mem_available,
		"disk_total", (json_int_t)s->disk_total, "disk_free", (json_int_t)s->disk_free,
		"docker_total", (json_int_t)s->docker_total, "docker_free",
		(json_int_t)s->docker_free, "processes", (json_int_t)s->processes, "kept_sessions",
		sessions_json(s));
	api_reply_json(d, c, 200, o);
	return 0;
}

void api_on_done(
	struct sbxd *d, const struct keeper *k, uint32_t ask, const struct keeper_done *done)
{
	struct conn *c = conns_find_asker(d, k->id, ask);
	const char *text = done->text[0] ? done->text : strerror(-done->code);

	if (!c)
		return;
	if (c->state == CONN_HANDED) {
		if (done->code < 0)
			send_exec_error(c->fd, text);
		conn_close(d, c);
	} else if (api_hold_done(d, c, done)) {
		return;
	} else if (c->wait == wait_suspend && done->code < 0) {
		/* a later attempt may succeed */
		bool is_now = done->code == -EAGAIN || done->code == -ENOSPC;

		api_fail(d, c, is_now ? 409 : 500, is_now ? "conflict" : "internal", text,
			done->code == -ENOSPC ? "df -h" : "sbx inspect SANDBOX");
	} else if ((c->wait == wait_begun || c->wait == wait_saved) && done->code < 0) {
		log_info("%s is shut down: %s", k->id, text);
		conn_wait(d, c, wait_settled, k->id, SETTLE_MS);
		wait_settled(d, c, false);
	} else if (c->wait == wait_stats) {
		api_fail(d, c, 503, "unresponsive", text, "sbx stop SANDBOX");
	}
}
