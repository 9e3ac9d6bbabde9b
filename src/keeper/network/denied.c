/* SPDX-License-Identifier: Apache-2.0 */
#include "denied.h"

#include <string.h>
#include "network.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/wire/http/deny.h"

static void wake_later(struct keeper *k, uint64_t ms)
{
	if (!k->denied->timer.pos)
		loop_timer_set(&k->loop, &k->denied->timer, clock_mono_ms() + ms,
			(struct loop_key){.kind = EV_TIMER_DENIED});
}

/* The first line names the target. The list keeps only the newest text of each target. */
static void remove_same(struct denied *d, const char *text)
{
	size_t line = strcspn(text, "\n") + 1;

	for (size_t i = 0; i < d->n; i++) {
		if (strncmp(d->texts[i], text, line) != 0)
			continue;
		free(d->texts[i]);
		memmove(&d->texts[i], &d->texts[i + 1], (d->n - i - 1) * sizeof(d->texts[0]));
		d->n--;
		return;
	}
}

static void keep_reason(struct denied *d, const char *text)
{
	remove_same(d, text);
	if (d->n == DENIED_MAX) {
		free(d->texts[0]);
		memmove(&d->texts[0], &d->texts[1], (DENIED_MAX - 1) * sizeof(d->texts[0]));
		d->n--;
	}
	d->texts[d->n++] = xstrdup(text);
	d->is_new = true;
}

void denied_add(struct keeper *k, const char *text)
{
	uint64_t since = clock_mono_ms() - k->denied->sent_ms;

	keep_reason(k->denied, text);
	wake_later(k, since < DENIED_PAUSE_MS ? DENIED_PAUSE_MS - since : DENIED_WAIT_MS);
}

bool denied_print(
	const struct edge_ask *ask, const struct edge_verdict *verdict, char *buf, size_t size)
{
	struct wr wr = wr_init((uint8_t *)buf, size - 1);
	const struct deny d = {.host = slice_from_str(ask->host),
		.port = ask->port,
		.rule = slice_from_str(verdict->rule),
		.reason = slice_from_str(verdict->reason),
		.sandbox = slice_from_str(verdict->sandbox),
		.effect = slice_from_str(verdict->effect),
		.instead = slice_from_str(verdict->instead),
		.command = slice_from_str(verdict->command),
		.approval = slice_from_str(verdict->approval),
		.count = verdict->count,
		.no_rule_helps = verdict->no_rule_helps};

	if (!ask->host[0] || deny_write_text(&wr, &d) < 0)
		return false;
	buf[wr.n] = '\0';
	return true;
}

void denied_note(struct keeper *k, const struct edge_ask *ask, const struct edge_verdict *verdict)
{
	char text[DENIED_TEXT];

	if (denied_print(ask, verdict, text, sizeof(text)))
		denied_add(k, text);
}

static void on_answer(struct keeper *k)
{
	k->denied->is_asking = false;
}

static const struct ask_kind denied_ask = {GUEST_PATH_DENIED, .on_over = on_answer};

static int send_all(struct keeper *k)
{
	static uint8_t body[DENIED_MAX * DENIED_TEXT];
	struct wr wr = wr_init(body, sizeof(body));

	for (size_t i = 0; i < k->denied->n; i++)
		wr_bytes(&wr, slice_from_str(k->denied->texts[i]));
	return ask_guest(k, &denied_ask, slice_of(body, wr.n), KEEPER_ASK_MS, -1, 0);
}

void denied_on_timer(struct keeper *k)
{
	struct denied *d = k->denied;

	if (!d->is_new)
		return;
	if (d->is_asking || k->state.phase != KEEPER_RUNNING || send_all(k) < 0) {
		wake_later(k, DENIED_PAUSE_MS);
		return;
	}
	d->is_new = false;
	d->is_asking = true;
	d->sent_ms = clock_mono_ms();
}
