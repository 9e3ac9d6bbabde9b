/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-egress: connects to the network for one sandbox. The keeper starts it in the jail
 * JAIL_EGRESS. */
#include "egress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"

static struct egress egress = {
	.ops = &exchange_ops, .inbox = POLICY_INBOX_EMPTY, .idle_pipe = {-1, -1}};

static void on_exchange(struct egress *e, const struct loop_event *ev)
{
	struct exchange *x = exchange_find(e, ev->key);

	if (!x)
		return;
	switch ((enum egress_ev)ev->key.kind) {
	case EGRESS_EV_EDGE:
		exchange_on_edge(e, x, ev->events);
		break;
	case EGRESS_EV_UPSTREAM:
		exchange_on_upstream(e, x, ev->events);
		break;
	default:
		exchange_on_timer(e, x);
		break;
	}
}

static void dispatch_egress(struct egress *e, const struct loop_event *ev)
{
	switch ((enum egress_ev)ev->key.kind) {
	case EGRESS_EV_CONTROL:
		control_on_event(&e->control, ev->events);
		break;
	case EGRESS_EV_EDGE:
	case EGRESS_EV_UPSTREAM:
	case EGRESS_EV_TIMER:
		on_exchange(e, ev);
		break;
	case EGRESS_EV_DIAL:
		dial_on_event(e, *ev);
		break;
	case EGRESS_EV_RESOLVER:
		resolve_on_event(e, ev);
		break;
	case EGRESS_EV_RESOLVER_TIMER:
		resolve_on_timer(e);
		break;
	case EGRESS_EV_RECHECK:
		control_recheck(e);
		break;
	case EGRESS_EV_AGAIN:
		control_again(e);
		break;
	}
}

static void start_egress(struct egress *e)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct err err = {0};
	int r;

	/* splice to a closed socket would raise SIGPIPE, and has no flag against it */
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		die("ignoring SIGPIPE");
	/* Rules have times, and libc reads a time zone file before the first use. */
	tzset();
	/* Zero is a free slot, so unused slots cost no memory. */
	e->exchanges = xcalloc(EGRESS_SLOTS, sizeof(*e->exchanges));
	arena_init(&e->arena, HTTP_ARENA_SIZE);
	control_open(&e->control, &egress_control, &e->loop, e);
	r = resolve_init(e, &err);
	if (r == 0)
		r = jail_seal(JAIL_EGRESS, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
	control_hello(&e->control);
}

int main(int argc, char **argv)
{
	log_init("sbx-egress");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return egress_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-egress " SBX_VERSION) < 0;
	if (argc != 1)
		die("usage: sbx-egress (started by sbx-keeper)");
	start_egress(&egress);
	while (!egress.control.done) {
		struct loop_event ev;

		loop_next(&egress.loop, &ev);
		dispatch_egress(&egress, &ev);
	}
	return egress.control.status;
}
