/* SPDX-License-Identifier: Apache-2.0 */
/* The notification service of the desktop, over sd-bus. Every call is asynchronous. */
#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define SERVICE "org.freedesktop.Notifications"
#define PLACE "/org/freedesktop/Notifications"
#define REFUSE "refuse" /* the key of the action */
#define MAX_WORDS 64	/* capabilities that are looked at */

static void fail_desktop(struct notify *n, const char *what, const char *why)
{
	if (!n->control.done)
		log_error("%s: %s", what, why);
	control_quit(&n->control, NOTIFY_EXIT_DESKTOP);
}

/* Other kinds of address execute a program or use the network. The text is the user's own. */
static int check_address(struct err *err)
{
	const char *p = getenv("DBUS_SESSION_BUS_ADDRESS");

	for (; p && *p; p += strcspn(p, ";"), p += *p == ';')
		if (!str_starts(p, "unix:"))
			return err_set(err, -EINVAL, "the session bus is not a Unix socket");
	return 0;
}

int desktop_connect(struct notify *n, struct err *err)
{
	int r = check_address(err);

	if (r < 0)
		return r;
	n->bucket = bucket_init(DESKTOP_BURST, DESKTOP_PER_S);
	r = sd_bus_open_user(&n->bus);
	if (r < 0)
		return err_errno(err, r, "cannot connect to the session bus");
	n->armed = EPOLLIN;
	return loop_add(
		&n->loop, sd_bus_get_fd(n->bus), EPOLLIN, (struct loop_key){.kind = NOTIFY_EV_BUS});
}

/* ---- notes ---- */

static struct note *note_of(struct notify *n, const char *owner, uint32_t id)
{
	for (size_t i = 0; i < NOTIFY_MAX; i++) {
		struct note *note = &n->notes[i];

		if (note->state == NOTE_SHOWN && note->id == id && strcmp(note->owner, owner) == 0)
			return note;
	}
	return NULL;
}

static int on_closed(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	((struct notify *)ctx)->n_calls--;
	return 0;
}

/* To the process that displayed it: the ids of another one are of other programs' notifications. */
static void take_down(struct notify *n, struct note *note)
{
	int r = sd_bus_call_method_async(n->bus, NULL, note->owner, PLACE, SERVICE,
		"CloseNotification", on_closed, n, "u", note->id);

	*note = (struct note){0};
	if (r < 0)
		fail_desktop(n, "cannot close a notification", strerror(-r));
	else
		n->n_calls++;
}

void desktop_close(struct notify *n, struct note *note)
{
	if (note->state == NOTE_CALLED)
		note->closing = true;
	else if (note->state == NOTE_SHOWN)
		take_down(n, note);
	else
		*note = (struct note){0};
}

static void keep_reply(struct note *note, sd_bus_message *m)
{
	const char *sender = sd_bus_message_get_sender(m);
	int r = sd_bus_message_read(m, "u", &note->id);

	if (r < 0 || !sender || str_copy(note->owner, sizeof(note->owner), sender) < 0) {
		*note = (struct note){0};
		return;
	}
	note->state = NOTE_SHOWN;
}

static int on_notified(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	struct note *note = ctx;
	struct notify *n = note->of;
	const sd_bus_error *error = sd_bus_message_get_error(m);

	n->n_calls--;
	if (error) {
		fail_desktop(n, "cannot display a notification", error->message);
		return 0;
	}
	keep_reply(note, m);
	if (note->state != NOTE_SHOWN)
		fail_desktop(n, "cannot display a notification", "invalid response");
	else if (note->closing)
		take_down(n, note);
	return 0;
}

/* Until it is closed, of ordinary urgency: a guest causes it. */
static int append_hints(sd_bus_message *m, bool has_actions)
{
	int r = has_actions ? sd_bus_message_append(m, "as", 2, REFUSE, "Refuse")
			    : sd_bus_message_append(m, "as", 0);

	return r < 0 ? r
		     : sd_bus_message_append(m, "a{sv}i", 2, "urgency", "y", 1, "category", "s",
			       "im.received", 0);
}

static int append_call(struct notify *n, const struct note *note, sd_bus_message *m)
{
	char title[TEXT_MAX], body[TEXT_MAX];
	int r;

	text_title(&note->show, title);
	text_body(&note->show, body);
	r = sd_bus_message_append(m, "susss", "sbx", 0, "", title, body);
	return r < 0 ? r : append_hints(m, n->has_actions);
}

void desktop_show(struct notify *n, struct note *note)
{
	sd_bus_message *m = NULL;
	int r;

	if (!n->is_ready)
		return;
	note->of = n;
	r = sd_bus_message_new_method_call(n->bus, &m, SERVICE, PLACE, SERVICE, "Notify");
	if (r >= 0)
		r = append_call(n, note, m);
	if (r >= 0)
		r = sd_bus_call_async(n->bus, NULL, m, on_notified, note, 0);
	(void)sd_bus_message_unref(m);
	if (r < 0) {
		fail_desktop(n, "cannot display a notification", strerror(-r));
		return;
	}
	n->n_calls++;
	note->state = NOTE_CALLED;
}

/* ---- the service ---- */

static void read_capabilities(struct notify *n, sd_bus_message *m)
{
	const char *word;

	if (sd_bus_message_enter_container(m, 'a', "s") < 0)
		return;
	for (unsigned i = 0; i < MAX_WORDS && sd_bus_message_read(m, "s", &word) > 0; i++)
		n->has_actions = n->has_actions || strcmp(word, "actions") == 0;
}

static int on_capabilities(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	struct notify *n = ctx;
	const sd_bus_error *error = sd_bus_message_get_error(m);

	n->n_calls--;
	if (error) {
		fail_desktop(n, "no notification service", error->message);
		return 0;
	}
	read_capabilities(n, m);
	n->is_ready = true;
	for (size_t i = 0; i < NOTIFY_MAX && !n->control.done; i++)
		if (n->notes[i].state == NOTE_WAIT)
			desktop_show(n, &n->notes[i]);
	return 0;
}

/* The bus passes on signals that a program sends to this process only, whoever sends them. */
static int on_action(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	struct notify *n = ctx;
	const char *sender = sd_bus_message_get_sender(m), *key;
	struct note *note;
	uint32_t id;

	if (!sender || sd_bus_message_read(m, "us", &id, &key) < 0)
		return 0;
	note = note_of(n, sender, id);
	if (note && strcmp(key, REFUSE) == 0)
		control_refuse(n, note);
	return 0;
}

void desktop_begin(struct notify *n)
{
	int r = sd_bus_match_signal_async(
		n->bus, NULL, SERVICE, PLACE, SERVICE, "ActionInvoked", on_action, NULL, n);

	if (r >= 0)
		r = sd_bus_call_method_async(n->bus, NULL, SERVICE, PLACE, SERVICE,
			"GetCapabilities", on_capabilities, n, "");
	if (r < 0)
		fail_desktop(n, "session bus", strerror(-r));
	else
		n->n_calls++;
	desktop_on_event(n);
}

/* ---- the connection ---- */

static void watch_bus(struct notify *n)
{
	int events = sd_bus_get_events(n->bus);
	uint64_t us = UINT64_MAX;
	uint32_t want = (events & EPOLLIN ? (uint32_t)EPOLLIN : 0) |
			(events & EPOLLOUT ? (uint32_t)EPOLLOUT : 0);

	if (events < 0 || sd_bus_get_timeout(n->bus, &us) < 0) {
		fail_desktop(n, "session bus", "connection closed");
		return;
	}
	if (want != n->armed && loop_mod(&n->loop, sd_bus_get_fd(n->bus), want,
					(struct loop_key){.kind = NOTIFY_EV_BUS}) < 0)
		fail_desktop(n, "session bus", "cannot watch it");
	n->armed = want;
	if (us == UINT64_MAX)
		loop_timer_clear(&n->loop, &n->bus_timer);
	else
		loop_timer_set(&n->loop, &n->bus_timer, us / 1000 + 1,
			(struct loop_key){.kind = NOTIFY_EV_BUS_TIMER});
}

void desktop_on_event(struct notify *n)
{
	int r = 1;

	while (r > 0 && n->control.status != NOTIFY_EXIT_DESKTOP) {
		r = sd_bus_process(n->bus, NULL);
		if (r < 0)
			fail_desktop(n, "session bus", strerror(-r));
		else if (r > 0 && !bucket_take(&n->bucket, clock_mono_ms()))
			fail_desktop(n, "session bus", "too many messages");
	}
	if (n->control.status != NOTIFY_EXIT_DESKTOP)
		watch_bus(n);
}
