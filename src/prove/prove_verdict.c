/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "prove_clean.h"
#include "prove_lane.h"

#define MAX_WHY 600

const char *prove_word(enum prove_verdict v)
{
	static const char *const words[] = {"fail", "pass", "skip"};

	return words[v];
}

/* Of one part. */
static enum prove_verdict judge_part(const struct prove_seen *s, enum probe_part part)
{
	if (s->status == PROVE_STATUS_SKIP)
		return PROVE_SKIP;
	if (s->status != 0 || (part == PROBE_INSIDE && !s->text[0]))
		return PROVE_FAIL;
	return PROVE_PASS;
}

/* `hole` and `skip` print their reason last. */
static char *reason_verdict(const struct prove_item *it, enum probe_part part)
{
	const struct prove_seen *s = &it->seen[part];
	AUTO_FREE char *last = prove_last_line(s->text);
	const char *word = probe_part_words[part];

	if (s->status == PROVE_JOB_LATE)
		return xasprintf("part %s did not finish within %u seconds", word, it->seconds);
	if (s->status == 0)
		return xasprintf("part %s printed no result", word);
	if ((s->status == 1 || s->status == PROVE_STATUS_SKIP) && !last[0])
		return xasprintf("part %s gave no reason", word);
	if (s->status == 1 || s->status == PROVE_STATUS_SKIP)
		return xstrdup(last);
	return xasprintf(
		"part %s aborted with status %d%s%s", word, s->status, last[0] ? ": " : "", last);
}

static void set_verdict(char **field, char *value)
{
	free(*field);
	*field = value;
}

/* Fails if one part fails, else is skipped if one is; passes only if all parts exist and pass. */
static enum prove_verdict judge_parts(
	const struct prove_item *it, const char *missing, char **ret_why)
{
	enum prove_verdict v = PROVE_PASS;

	for (size_t i = 0; i < PROBE_N_PARTS; i++) {
		const struct prove_seen *s = &it->seen[i];
		enum prove_verdict one = s->ran ? judge_part(s, (enum probe_part)i) : PROVE_PASS;

		if (!it->p->part[i] || !s->ran || one == PROVE_PASS)
			continue;
		if (one == PROVE_FAIL || v == PROVE_PASS)
			set_verdict(ret_why, reason_verdict(it, (enum probe_part)i));
		v = one;
		if (v == PROVE_FAIL)
			return v;
	}
	if (missing) {
		set_verdict(ret_why, prove_clean(slice_from_str(missing), MAX_WHY));
		return PROVE_FAIL;
	}
	for (size_t i = 0; i < PROBE_N_PARTS && v == PROVE_PASS; i++)
		if (it->p->part[i] && !it->seen[i].ran) {
			set_verdict(ret_why, xasprintf("part %s did not run", probe_part_words[i]));
			return PROVE_FAIL;
		}
	return v;
}

/* A recovery probe fails if a probe that it repeats fails. */
static void judge_again(const struct prove_lane *l, struct prove_item *it)
{
	size_t own = (size_t)(it - l->items);

	for (size_t i = 0; i < l->n; i++) {
		const struct prove_item *other = &l->items[i];

		if (i == own || other->owner != own || other->res->verdict != PROVE_FAIL)
			continue;
		set_verdict(&it->res->why,
			xasprintf("%s fails after the event: %s", other->p->id, other->res->why));
		it->res->verdict = PROVE_FAIL;
		return;
	}
}

void prove_judge(const struct prove_lane *l, struct prove_item *it, const char *missing)
{
	struct prove_result *res = it->res;

	for (size_t i = 0; i < PROBE_N_PARTS; i++) {
		const struct prove_seen *s = &it->seen[i];
		char **field = i == PROBE_INSIDE ? &res->inside : &res->outside;

		res->ms += s->ms;
		if (s->ran && s->text[0])
			set_verdict(field, (*field)[0] ? xasprintf("%s\n%s", *field, s->text)
						       : xstrdup(s->text));
	}
	res->verdict = judge_parts(it, missing, &res->why);
	if (it->spared)
		res->verdict = PROVE_SKIP;
	if (res->verdict != PROVE_FAIL)
		judge_again(l, it);
	if (res->verdict == PROVE_FAIL)
		set_verdict(&res->next,
			xasprintf("sbx prove %s --probe %s -v", l->place.name, it->p->id));
	if (res->verdict == PROVE_PASS)
		set_verdict(&res->why, xstrdup(""));
}
