/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of sbxd. */
#include "notify.h"

#include <errno.h>

static struct note *find_note(struct notify *n, uint32_t number)
{
	for (size_t i = 0; i < NOTIFY_MAX; i++)
		if (n->notes[i].state != NOTE_FREE && !n->notes[i].closing &&
			n->notes[i].number == number)
			return &n->notes[i];
	return NULL;
}

/* Places of notes that are closed while their ids are awaited are in use. */
static struct note *free_note(struct notify *n)
{
	for (size_t i = 0; i < NOTIFY_MAX; i++)
		if (n->notes[i].state == NOTE_FREE)
			return &n->notes[i];
	return NULL;
}

static int on_show(struct notify *n, const struct ipc_msg *msg)
{
	struct note *note = free_note(n);
	struct notify_show show;
	int r = notify_get_show(msg, &show);

	if (r < 0 || find_note(n, msg->id))
		return -EBADMSG;
	if (!note) /* the service does not answer: not displayed, and its CLOSE is ignored */
		return 0;
	*note = (struct note){.state = NOTE_WAIT, .number = msg->id, .show = show};
	desktop_show(n, note);
	return 0;
}

static int on_close(struct notify *n, const struct ipc_msg *msg)
{
	struct note *note = find_note(n, msg->id);
	int r = notify_get_plain(msg, NOTIFY_CLOSE);

	if (r == 0 && note)
		desktop_close(n, note);
	return r;
}

static int on_message(void *ctx, struct ipc_msg *msg)
{
	switch (msg->type) {
	case NOTIFY_SHOW:
		return on_show(ctx, msg);
	case NOTIFY_CLOSE:
		return on_close(ctx, msg);
	default:
		return -EBADMSG;
	}
}

static void send_refuse(struct notify *n, struct note *note)
{
	note->refuse_due = !control_sent(
		&n->control, chan_send_plain(CONTROL_FD, NOTIFY_REFUSE, note->number, -1));
}

void control_refuse(struct notify *n, struct note *note)
{
	if (note->refused)
		return;
	note->refused = true;
	send_refuse(n, note);
}

static void send_due(void *ctx)
{
	struct notify *n = ctx;

	for (size_t i = 0; i < NOTIFY_MAX && !n->control.is_due; i++)
		if (n->notes[i].state != NOTE_FREE && n->notes[i].refuse_due)
			send_refuse(n, &n->notes[i]);
}

const struct control_ops notify_control = {.chan = &notify_chan,
	.ev = NOTIFY_EV_CONTROL,
	.burst = 8,
	.on_message = on_message,
	.on_room = send_due};
