/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-notify: shows on the desktop that requests wait for approval. sbxd starts it. It connects to
 * the session bus, enters the jail JAIL_NOTIFY itself, and reads the first byte after that. */
#include "notify.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/os/jail/jail.h"

static struct notify notify;

static void dispatch_notify(struct notify *n, const struct loop_event *ev)
{
	switch ((enum notify_ev)ev->key.kind) {
	case NOTIFY_EV_CONTROL:
		control_on_event(&n->control, ev->events);
		desktop_on_event(n); /* what sbxd's message caused */
		break;
	case NOTIFY_EV_BUS:
	case NOTIFY_EV_BUS_TIMER:
		desktop_on_event(n);
		break;
	case NOTIFY_EV_END:
		n->is_late = true;
		break;
	}
}

static void start_notify(struct notify *n)
{
	struct err err = {0};
	int r;

	control_open(&n->control, &notify_control, &n->loop, n);
	r = desktop_connect(n, &err);
	if (r == 0)
		r = jail_go_in(JAIL_NOTIFY, NULL, 0, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
	control_hello(&n->control);
	desktop_begin(n);
}

static void run_loop(struct notify *n)
{
	struct loop_event ev;

	loop_next(&n->loop, &ev);
	dispatch_notify(n, &ev);
}

/* sbxd has exited or needs no notifications any more. */
static void close_all(struct notify *n)
{
	loop_del(&n->loop, CONTROL_FD);
	for (size_t i = 0; i < NOTIFY_MAX; i++)
		if (n->notes[i].state != NOTE_FREE)
			desktop_close(n, &n->notes[i]);
	loop_timer_set(&n->loop, &n->end_timer, clock_mono_ms() + DESKTOP_END_MS,
		(struct loop_key){.kind = NOTIFY_EV_END});
	desktop_on_event(n);
	while (n->n_calls && !n->is_late && n->control.status != NOTIFY_EXIT_DESKTOP)
		run_loop(n);
}

int main(int argc, char **argv)
{
	log_init("sbx-notify");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return notify_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-notify " SBX_VERSION) < 0;
	if (argc != 1)
		die("usage: sbx-notify (started by sbxd)");
	start_notify(&notify);
	while (!notify.control.done)
		run_loop(&notify);
	if (notify.control.status != NOTIFY_EXIT_DESKTOP)
		close_all(&notify);
	return notify.control.status;
}
