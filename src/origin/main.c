/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-origin: adds the credential of one service to requests to one host. sbx-keeper starts it, and
 * it enters the jail JAIL_ORIGIN itself, so that no process of the user can trace it. */
#include "origin.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"

static const struct keeper_ops keeper_ops = {
	.want = control_want, .need = control_need, .tokens = control_tokens};
static struct origin origin = {
	.ops = &exchange_ops, .keeper = &keeper_ops, .inbox = POLICY_INBOX_EMPTY, .channel = -1};

static void on_exchange(struct origin *o, const struct loop_event *ev)
{
	struct exchange *x = exchange_find(o, ev->key);

	if (!x)
		return;
	if (ev->key.kind == ORIGIN_EV_CLERK)
		exchange_on_clerk(o, x, ev->events);
	else if (ev->key.kind != ORIGIN_EV_SCRUB)
		exchange_on_timer(o, x);
	else if (answer_on_idle(x))
		talk_pump(o, x); /* this flush may be the one that finds room */
}

static void dispatch_origin(struct origin *o, const struct loop_event *ev)
{
	switch ((enum origin_ev)ev->key.kind) {
	case ORIGIN_EV_CONTROL:
		control_on_event(&o->control, ev->events);
		break;
	case ORIGIN_EV_CHANNEL:
		channel_on_event(o, ev->events);
		break;
	case ORIGIN_EV_CHANNEL_TURN:
		break;
	case ORIGIN_EV_CLERK:
	case ORIGIN_EV_TIMER:
	case ORIGIN_EV_SCRUB:
		on_exchange(o, ev);
		break;
	case ORIGIN_EV_LINE:
		line_on_event(o, ev->key, ev->events);
		break;
	case ORIGIN_EV_LINE_TIMER:
		line_on_timer(o, ev->key);
		break;
	case ORIGIN_EV_VALUE:
		value_on_event(o, ev->key);
		break;
	case ORIGIN_EV_VALUE_TIMER:
		value_on_timer(o, ev->key);
		break;
	case ORIGIN_EV_AGAIN:
		control_flush(&o->control);
		break;
	}
	exchange_run_streams(o);
	/* Serving may find that a line was closed: then again, each time with one line less. */
	for (unsigned i = 0; i <= ORIGIN_MAX_CONNS && o->lines_due && !o->control.done; i++)
		line_serve(o);
	channel_turn(o);
}

static void start_origin(struct origin *o)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct err err = {0};

	/* Certificates have times, and libc reads a time zone file before the first use. */
	tzset();
	/* no configuration file, and everything that reads one is done before the seal */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		die("cannot initialize OpenSSL");
	/* Zero is a free slot, so unused slots cost no memory. */
	o->exchanges = xcalloc(ORIGIN_SLOTS, sizeof(*o->exchanges));
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++)
		o->value[i].fd = -1;
	arena_init(&o->arena, HTTP_ARENA_SIZE);
	control_open(&o->control, &origin_control, &o->loop, o);
	if (jail_go_in(JAIL_ORIGIN, NULL, 0, &err) < 0)
		die("%s", err.text);
	/* OpenSSL may write to closed sockets; entering the jail has reset all signals */
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		die("ignoring SIGPIPE");
	control_hello(&o->control);
}

int main(int argc, char **argv)
{
	log_init("sbx-origin");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return origin_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-origin " SBX_VERSION) < 0;
	/* for the test that reads its memory */
	if (argc == 2 && strcmp(argv[1], "--no-hidden-memory") == 0)
		secret_forbid_hidden();
	else if (argc != 1)
		die("usage: sbx-origin (started by sbx-keeper)");
	start_origin(&origin);
	while (!origin.control.done) {
		struct loop_event ev;

		loop_next(&origin.loop, &ev);
		dispatch_origin(&origin, &ev);
	}
	value_wipe_all(&origin);
	sweep_done(&origin);
	return origin.control.status;
}
