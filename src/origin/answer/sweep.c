/* SPDX-License-Identifier: Apache-2.0 */
/* The values that responses are searched for. Runs in sbx-origin; holds credentials, and sees no
 * data of a peer. A response is searched for the values sent with its request (sweep_pin), for
 * every current value, and for the last earlier ones: a renewed token is often still valid, and a
 * server may show other requests. So a response is searched after a renewal or a repeated request
 * of the value too. A request whose value cannot be searched for is not sent. */
#include "sweep.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"

#define PARTS 5 /* of one value */
#define MAX_NOW (PARTS * (ORIGIN_N_WHICH + ORIGIN_MAX_RETIRED) + ORIGIN_MAX_CAPTURED)
static_assert(MAX_NOW <= SCRUB_MAX_VALUES, "all values that are here fit into one set");

struct sweep {
	struct scrub_set *set;
	unsigned n_refs;
};

struct values {
	struct slice list[2 * MAX_NOW];
	size_t n;
};

const struct scrub_set *sweep_set(const struct sweep *w)
{
	return w->set;
}

void sweep_put(struct sweep *w)
{
	if (!w || --w->n_refs > 0)
		return;
	scrub_set_free(w->set);
	free(w);
}

static struct sweep *share_sweep(struct sweep *w)
{
	w->n_refs++;
	return w;
}

static struct sweep *make_sweep(const struct values *v, const struct sweep *like)
{
	struct scrub_set *set = NULL;
	struct sweep *w;

	if (v->n <= SCRUB_MAX_VALUES)
		set = scrub_set_new_like(v->list, v->n, like ? like->set : NULL, NULL);
	if (!set)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	*w = (struct sweep){.set = set, .n_refs = 1};
	return w;
}

static bool has_sweep(const struct slice *list, size_t n, struct slice value)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(list[i], value))
			return true;
	return false;
}

/* Short values are not searched for. */
static void add_sweep(struct values *v, struct slice value, size_t max)
{
	if (v->n < max && value.n >= SCRUB_MIN && !has_sweep(v->list, v->n, value))
		v->list[v->n++] = value;
}

/* The value, the part after its first ':' (a password may contain more), and the part after each
 * ':' or line end: the password of a user, the key of an id. */
static void add_parts(struct values *v, struct slice value)
{
	const uint8_t *colon = value.n ? memchr(value.p, ':', value.n) : NULL;
	size_t max = v->n + PARTS;

	add_sweep(v, value, max);
	if (colon) {
		struct slice rest = slice_of(colon + 1, value.n - (size_t)(colon + 1 - value.p));

		if (scrub_is_searched(rest))
			add_sweep(v, rest, max);
	}
	for (size_t i = 0; i < value.n; i++) {
		size_t end = i + 1;

		if (value.p[i] != ':' && value.p[i] != '\n')
			continue;
		while (end < value.n && value.p[end] != ':' && value.p[end] != '\n')
			end++;
		struct slice part = slice_of(value.p + i + 1, end - i - 1);

		if (scrub_is_searched(part))
			add_sweep(v, part, max);
	}
}

/* Whether it is for exactly these values: building one takes milliseconds, and the value is often
 * the same. */
static bool is_for(const struct sweep *w, const struct values *v)
{
	struct slice list[SCRUB_MAX_VALUES];
	size_t n = scrub_set_values(w->set, list);

	for (size_t i = 0; i < n; i++)
		if (!has_sweep(v->list, v->n, list[i]))
			return false;
	return n == v->n;
}

/* Current and earlier values. NULL: they cannot be searched for. */
static struct sweep *current_sweep(struct origin *o)
{
	struct values v = {0};

	if (o->sweep && !o->is_sweep_old)
		return o->sweep;
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++)
		if (o->value[i].state == VALUE_HERE)
			add_parts(&v, o->value[i].frame.value);
	for (size_t i = 0; i < ORIGIN_MAX_RETIRED; i++)
		if (o->retired[i].n)
			add_parts(&v, secret_slice(&o->retired[i]));
	for (size_t i = 0; i < ORIGIN_MAX_CAPTURED; i++)
		add_sweep(&v, secret_slice(&o->captured[i]), ARRAY_LEN(v.list));
	o->is_sweep_old = false;
	if (o->sweep && is_for(o->sweep, &v))
		return o->sweep;
	struct sweep *old = TAKE(o->sweep);

	o->sweep = make_sweep(&v, old);
	sweep_put(old);
	return o->sweep;
}

static void add_set(struct values *v, const struct sweep *w)
{
	struct slice list[SCRUB_MAX_VALUES];
	size_t n = scrub_set_values(w->set, list);

	for (size_t i = 0; i < n; i++)
		add_sweep(v, list[i], ARRAY_LEN(v->list));
}

/* Both together, as a reference of the caller; usually the second one includes the first. */
static struct sweep *join_sweep(struct sweep *a, struct sweep *b)
{
	struct values v = {0};
	size_t n;

	add_set(&v, b);
	n = v.n;
	add_set(&v, a);
	return v.n == n ? share_sweep(b) : make_sweep(&v, b);
}

int sweep_pin(struct origin *o, struct exchange *x, const struct value *v)
{
	struct sweep *now = current_sweep(o), *both = NULL;
	struct slice list[SCRUB_MAX_VALUES];

	if (!now)
		return -EBADMSG;
	if (scrub_is_searched(v->frame.value) &&
		!has_sweep(list, scrub_set_values(now->set, list), v->frame.value))
		return -EBADMSG;
	both = x->pinned ? join_sweep(x->pinned, now) : share_sweep(now);
	if (!both)
		return -EBADMSG;
	sweep_unpin(x);
	x->pinned = both;
	return 0;
}

void sweep_unpin(struct exchange *x)
{
	sweep_put(TAKE(x->pinned));
}

struct sweep *sweep_get(struct origin *o, const struct exchange *x)
{
	struct sweep *now = current_sweep(o);

	if (!now || (x->result.used && !x->pinned))
		return NULL;
	return x->pinned ? join_sweep(x->pinned, now) : share_sweep(now);
}

struct sweep *sweep_join(struct origin *o, struct sweep *w)
{
	struct sweep *now = current_sweep(o);

	return now ? join_sweep(w, now) : NULL;
}

void sweep_change(struct origin *o)
{
	o->n_changes++;
	o->is_sweep_old = true;
}

void sweep_retire(struct origin *o, const struct value *v)
{
	struct secret *oldest = &o->retired[o->n_retired % ORIGIN_MAX_RETIRED];
	struct secret copy = {0};

	sweep_change(o);
	for (size_t i = 0; i < ORIGIN_MAX_RETIRED; i++)
		if (slice_eq(secret_slice(&o->retired[i]), v->frame.value))
			return;
	/* without memory, current requests still have it */
	if (secret_copy(&copy, v->frame.value, NULL) < 0)
		return;
	secret_done(oldest);
	*oldest = copy;
	o->n_retired++;
}

/* Responses that have begun are not searched for it, except the one that contained it: the guest
 * can trigger this at will, and must not fill their sets. */
void sweep_capture(struct origin *o, struct slice value)
{
	struct secret *oldest = &o->captured[o->n_captures % ORIGIN_MAX_CAPTURED];
	struct secret copy = {0};

	if (!scrub_is_searched(value))
		return;
	for (size_t i = 0; i < ORIGIN_MAX_CAPTURED; i++)
		if (slice_eq(secret_slice(&o->captured[i]), value))
			return;
	if (secret_copy(&copy, value, NULL) < 0)
		return;
	secret_done(oldest);
	*oldest = copy;
	o->n_captures++;
	o->is_sweep_old = true;
}

void sweep_done(struct origin *o)
{
	sweep_put(TAKE(o->sweep));
	for (size_t i = 0; i < ORIGIN_MAX_RETIRED; i++)
		secret_done(&o->retired[i]);
	for (size_t i = 0; i < ORIGIN_MAX_CAPTURED; i++)
		secret_done(&o->captured[i]);
}
