/* SPDX-License-Identifier: Apache-2.0 */
/* The vault sends the value on a separate stream, into memory that is locked and not in core files.
 * It stays there while this process may use it: the keeper stops the process after a change or
 * removal. */
#include "value.h"

#include <errno.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "src/origin/answer/answer.h"

static struct loop_key value_key(const struct origin *o, const struct value *v, enum origin_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = v->gen, .idx = (uint32_t)(v - o->value)};
}

static struct value *value_find(struct origin *o, struct loop_key key)
{
	struct value *v = &o->value[key.idx];

	return v->state == VALUE_READING && v->gen == key.gen ? v : NULL;
}

static void close_stream(struct origin *o, struct value *v)
{
	if (v->fd >= 0)
		loop_del(&o->loop, v->fd);
	fd_close(&v->fd);
	loop_timer_clear(&o->loop, &v->timer);
	v->gen++;
}

static void wipe_value(struct origin *o, struct value *v)
{
	close_stream(o, v);
	for (size_t i = 0; i < SERVICE_MAX_SLOTS; i++)
		secret_done(&v->text[i]);
	secret_done(&v->bytes);
	v->frame = (struct vault_frame){0};
	v->state = VALUE_NONE;
}

void value_wipe_all(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++)
		wipe_value(o, &o->value[i]);
}

/* Every waiting exchange continues, or fails with the reason. */
static void tell_all(struct origin *o, const struct value *v, const char *why_not)
{
	enum origin_which which = (enum origin_which)(v - o->value);

	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		struct exchange *x = &o->exchanges[i];

		if (x->state == EXCHANGE_VALUE && x->which == which)
			o->ops->on_value(o, x, why_not);
	}
}

static void say_need(struct origin *o, struct value *v)
{
	v->need_due = !o->keeper->need(o, v->id, &v->need);
}

void value_flush_due(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_N_WHICH && !o->control.is_due; i++) {
		if (o->value[i].need_due)
			say_need(o, &o->value[i]);
	}
}

struct value *value_ask(struct origin *o, enum origin_which which, const struct line *l)
{
	struct value *v = &o->value[which];

	if (v->state == VALUE_HERE && clock_mono_ms() < v->until_ms)
		return v;
	if (v->state == VALUE_HERE) {
		sweep_retire(o, v);
		wipe_value(o, v);
	}
	if (v->state != VALUE_NONE)
		return NULL;
	v->state = VALUE_ASKED;
	v->id = ++o->n_needs;
	v->need = (struct origin_need){.which = which, .conn = l->id};
	memcpy(v->need.cert, l->cert, sizeof(v->need.cert));
	say_need(o, v);
	return NULL;
}

static struct value *find_asked(struct origin *o, uint32_t id)
{
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++) {
		struct value *v = &o->value[i];

		if (v->state == VALUE_ASKED && !v->need_due && v->id == id)
			return v;
	}
	return NULL;
}

static void refuse_value(struct origin *o, struct value *v, const char *why)
{
	bool is_stale = v->is_stale;

	wipe_value(o, v);
	v->is_stale = false;
	if (is_stale && o->config.has & 1u << v->need.which) {
		/* replaced while it was being sent: once more */
		v->state = VALUE_ASKED;
		v->id = ++o->n_needs;
		say_need(o, v);
		return;
	}
	tell_all(o, v, why);
}

int value_on_message(struct origin *o, struct ipc_msg *msg)
{
	struct origin_value answer;
	struct value *v;
	int r = origin_get_value(msg, &answer);

	if (r < 0)
		return r;
	v = find_asked(o, msg->id);
	if (!v)
		return -EBADMSG;
	if (!answer.given) {
		refuse_value(
			o, v, answer.text[0] ? answer.text : origin_outcome_text(ORIGIN_NO_VALUE));
		return 0;
	}
	v->state = VALUE_READING;
	v->until_ms = answer.use_s ? clock_mono_ms() + answer.use_s * UINT64_C(1000) : UINT64_MAX;
	r = secret_init(&v->bytes, VAULT_FRAME_MAX, NULL);
	if (r == 0)
		r = fd_set_nonblock(msg->fd, true);
	if (r == 0)
		r = loop_add(&o->loop, msg->fd, EPOLLIN, value_key(o, v, ORIGIN_EV_VALUE));
	if (r < 0) {
		refuse_value(o, v, "cannot use the stream from the vault");
		return 0;
	}
	v->fd = TAKE_FD(msg->fd);
	loop_timer_set(&o->loop, &v->timer, clock_mono_ms() + ORIGIN_READ_VALUE_MS,
		value_key(o, v, ORIGIN_EV_VALUE_TIMER));
	return 0;
}

static void take_value(struct origin *o, struct value *v)
{
	close_stream(o, v);
	if (vault_frame_split(secret_slice(&v->bytes), &v->frame) < 0) {
		refuse_value(o, v, "the vault sent an incomplete credential");
		return;
	}
	v->state = VALUE_HERE;
	if (v->is_stale) /* valid for waiting exchanges only */
		v->until_ms = 0;
	v->is_stale = false;
	sweep_change(o);
	tell_all(o, v, NULL);
}

void value_on_event(struct origin *o, struct loop_key key)
{
	struct value *v = value_find(o, key);

	while (v && v->state == VALUE_READING) {
		size_t room = v->bytes.size - v->bytes.n;
		uint8_t one;
		/* without room only end-of-file is valid */
		ssize_t n = read(v->fd, room ? v->bytes.p + v->bytes.n : &one, room ? room : 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n == 0) {
			take_value(o, v);
			return;
		}
		if (n < 0 || room == 0) {
			refuse_value(o, v, "the vault sent an incomplete credential");
			return;
		}
		v->bytes.n += (size_t)n;
	}
}

/* A requested or partial value may be the old one: it is requested again after its use. */
int value_on_renew(struct origin *o, struct ipc_msg *msg)
{
	uint8_t has;
	int r = origin_get_renew(msg, &has);

	if (r < 0)
		return r;
	/* a removal stops the process instead */
	if ((o->config.has & has) != o->config.has)
		return -EBADMSG;
	o->config.has = has;
	for (unsigned i = ORIGIN_ACCESS; i < ORIGIN_N_WHICH; i++) {
		struct value *v = &o->value[i];

		if (v->state != VALUE_HERE) {
			v->is_stale = v->state != VALUE_NONE;
			continue;
		}
		sweep_retire(o, v);
		wipe_value(o, v);
	}
	return 0;
}

void value_on_timer(struct origin *o, struct loop_key key)
{
	struct value *v = value_find(o, key);

	if (v)
		refuse_value(o, v, "timed out waiting for the vault");
}
