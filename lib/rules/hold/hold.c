/* SPDX-License-Identifier: Apache-2.0 */
#include "hold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void hold_init(struct holds *t, uint64_t seed)
{
	*t = (struct holds){.seed = seed};
	hold_limits(t, HOLD_DEFAULT_OPEN, HOLD_DEFAULT_HOUR);
}

static void remove_hold(struct hold *h)
{
	free(h->block);
	*h = (struct hold){0};
}

void hold_done(struct holds *t)
{
	for (size_t i = 0; i < HOLD_MAX; i++)
		remove_hold(&t->list[i]);
}

void hold_limits(struct holds *t, uint32_t max_open, uint32_t max_hour)
{
	t->max_open = MIN(max_open, (uint32_t)HOLD_MOST_OPEN);
	t->max_hour = MIN(max_hour, (uint32_t)HOLD_MOST_HOUR);
}

/* ---- finding ---- */

static bool is_live(const struct hold *h, uint64_t now_ms)
{
	return h->state != HOLD_FREE && now_ms < h->until_ms;
}

static struct hold *find_digest(
	struct holds *t, const uint8_t digest[SHA256_BYTES], uint64_t now_ms)
{
	for (size_t i = 0; i < HOLD_MAX; i++) {
		struct hold *h = &t->list[i];

		if (is_live(h, now_ms) && h->state != HOLD_WITHDRAWN &&
			memcmp(h->text.digest, digest, SHA256_BYTES) == 0)
			return h;
	}
	return NULL;
}

struct hold *hold_find(struct holds *t, const char *id, uint64_t now_ms)
{
	for (size_t i = 0; i < HOLD_MAX; i++)
		if (is_live(&t->list[i], now_ms) && strcmp(t->list[i].id, id) == 0)
			return &t->list[i];
	return NULL;
}

static size_t count_open(const struct holds *t)
{
	size_t n = 0;

	for (size_t i = 0; i < HOLD_MAX; i++)
		n += t->list[i].state == HOLD_OPEN;
	return n;
}

static size_t count_links(const struct holds *t)
{
	size_t n = 0;

	for (size_t i = 0; i < HOLD_MAX; i++)
		n += t->list[i].state == HOLD_OPEN && t->list[i].text.kind == HOLD_LINK;
	return n;
}

/* Else the place of the one that was withdrawn first. */
static struct hold *find_free(struct holds *t)
{
	struct hold *old = NULL;

	for (size_t i = 0; i < HOLD_MAX; i++) {
		struct hold *h = &t->list[i];

		if (h->state == HOLD_FREE)
			return h;
		if (h->state == HOLD_WITHDRAWN && (!old || h->until_ms < old->until_ms))
			old = h;
	}
	return old;
}

/* ---- opening ---- */

/* The max_hour-th last one decides. */
static bool is_too_often(const struct holds *t, uint64_t now_ms)
{
	uint64_t at;

	if (t->n_opened < t->max_hour)
		return false;
	if (t->max_hour == 0)
		return true;
	at = t->opened_ms[(t->n_opened - t->max_hour) % HOLD_MOST_HOUR];
	return now_ms - at < HOLD_HOUR_MS;
}

/* Steele, Lea and Flood's SplitMix64: different ids in an order that no hold repeats soon. */
static uint64_t next_number(struct holds *t)
{
	uint64_t x = t->seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static bool has_id(const struct holds *t, const char *id)
{
	for (size_t i = 0; i < HOLD_MAX; i++)
		if (t->list[i].state != HOLD_FREE && strcmp(t->list[i].id, id) == 0)
			return true;
	return false;
}

static void make_id(struct holds *t, char ret[HOLD_ID])
{
	do {
		uint64_t x = next_number(t);

		for (size_t i = 0; i < HOLD_ID - 1; i++, x >>= 5)
			ret[i] = digits[x & 31];
		ret[HOLD_ID - 1] = '\0';
	} while (has_id(t, ret));
}

static const char *put_text(char **at, const char *text)
{
	char *p = *at;
	size_t n = strlen(text) + 1;

	memcpy(p, text, n);
	*at += n;
	return p;
}

static void copy_text(struct hold *h, const struct hold_text *what)
{
	char *at = h->block =
		xmalloc(strlen(what->effects) + strlen(what->rule) + strlen(what->preview) + 3);

	h->text.kind = what->kind;
	memcpy(h->text.digest, what->digest, sizeof(h->text.digest));
	h->text.effects = put_text(&at, what->effects);
	h->text.rule = put_text(&at, what->rule);
	h->text.preview = put_text(&at, what->preview);
}

static bool can_show(const struct hold_text *what)
{
	return what->effects[0] && strlen(what->effects) <= HOLD_MAX_EFFECTS &&
	       strlen(what->rule) <= HOLD_MAX_RULE && strlen(what->preview) <= HOLD_MAX_PREVIEW;
}

static enum hold_result open_hold(
	struct holds *t, const struct hold_text *what, uint64_t now_ms, struct hold **ret)
{
	struct hold *h;

	(void)hold_expire(t, now_ms);
	h = find_free(t);
	if (!can_show(what))
		return HOLD_LONG;
	if (!h || count_open(t) >= t->max_open ||
		(what->kind == HOLD_LINK && count_links(t) >= HOLD_MAX_LINKS))
		return HOLD_CROWDED;
	if (is_too_often(t, now_ms))
		return HOLD_OFTEN;
	remove_hold(h);
	copy_text(h, what);
	make_id(t, h->id);
	h->state = HOLD_OPEN;
	h->since_ms = now_ms;
	h->until_ms = now_ms + HOLD_OPEN_MS;
	t->opened_ms[t->n_opened++ % HOLD_MOST_HOUR] = now_ms;
	*ret = h;
	return HOLD_WAIT;
}

/* ---- requests ---- */

static enum hold_result result_of(const struct hold *h)
{
	return h->state == HOLD_APPROVED  ? HOLD_PASS
	       : h->state == HOLD_REFUSED ? HOLD_NO
					  : HOLD_WAIT;
}

enum hold_result hold_ask(struct holds *t, const struct hold_text *what, uint64_t now_ms,
	struct hold **ret, bool *ret_new)
{
	struct hold *h = find_digest(t, what->digest, now_ms);
	enum hold_result r;

	*ret = h;
	*ret_new = false;
	if (!h) {
		r = open_hold(t, what, now_ms, ret);
		*ret_new = r == HOLD_WAIT;
		return r;
	}
	if (h->state == HOLD_OPEN)
		h->until_ms = now_ms + HOLD_OPEN_MS;
	return result_of(h);
}

enum hold_result hold_again(struct holds *t, const uint8_t digest[SHA256_BYTES], uint64_t since_ms,
	uint64_t now_ms, struct hold **ret)
{
	struct hold *h = find_digest(t, digest, now_ms);

	*ret = h;
	if (!h)
		return HOLD_SPENT;
	if (h->state == HOLD_OPEN && now_ms - since_ms >= HOLD_INLINE_MS)
		return HOLD_PENDING;
	return result_of(h);
}

void hold_use(struct hold *h)
{
	if (!h->many)
		remove_hold(h);
}

void hold_close(struct hold *h)
{
	remove_hold(h);
}

struct hold *hold_withdraw(struct holds *t, const uint8_t digest[SHA256_BYTES], uint64_t now_ms)
{
	struct hold *h = find_digest(t, digest, now_ms);

	if (!h || h->state != HOLD_OPEN)
		return NULL;
	h->state = HOLD_WITHDRAWN;
	h->until_ms = now_ms + HOLD_USE_MS;
	return h;
}

/* ---- answers ---- */

int hold_answer(struct holds *t, const char *id, const uint8_t digest[SHA256_BYTES],
	const struct hold_decision *what, uint64_t now_ms)
{
	struct hold *h = hold_find(t, id, now_ms);

	if (!h)
		return -ENOENT;
	if (memcmp(h->text.digest, digest, SHA256_BYTES) != 0)
		return -ESTALE;
	if (h->state == HOLD_WITHDRAWN)
		return -ECANCELED;
	if (h->state != HOLD_OPEN)
		return -EALREADY;
	h->state = what->yes ? HOLD_APPROVED : HOLD_REFUSED;
	h->many = what->yes && what->for_ms;
	h->until_ms = now_ms + (h->many ? what->for_ms : HOLD_USE_MS);
	if (h->many && what->for_ms == HOLD_NO_END)
		h->until_ms = HOLD_NO_END;
	(void)snprintf(h->reason, sizeof(h->reason), "%s", what->reason ? what->reason : "");
	return 0;
}

void hold_on_policy(struct holds *t)
{
	for (size_t i = 0; i < HOLD_MAX; i++)
		if (t->list[i].state != HOLD_OPEN)
			remove_hold(&t->list[i]);
}

bool hold_expire(struct holds *t, uint64_t now_ms)
{
	bool removed = false;

	for (size_t i = 0; i < HOLD_MAX; i++) {
		if (t->list[i].state == HOLD_FREE || is_live(&t->list[i], now_ms))
			continue;
		remove_hold(&t->list[i]);
		removed = true;
	}
	return removed;
}

uint64_t hold_next_ms(const struct holds *t)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < HOLD_MAX; i++)
		if (t->list[i].state != HOLD_FREE)
			next = MIN(next, t->list[i].until_ms);
	return next;
}

/* ---- ids ---- */

static char digit_of(char c)
{
	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	if (c == 'O')
		return '0';
	if (c == 'I' || c == 'L')
		return '1';
	return c && strchr(digits, c) ? c : '\0';
}

int hold_id_parse(const char *text, char ret[HOLD_ID])
{
	size_t n = 0;

	for (; n < HOLD_ID - 1; n++) {
		ret[n] = digit_of(text[n]);
		if (!ret[n])
			return -EINVAL;
	}
	ret[n] = '\0';
	return text[n] ? -EINVAL : 0;
}
