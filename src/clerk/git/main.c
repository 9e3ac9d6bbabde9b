/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-clerk-git: says what a push does, from its bytes. The keeper starts one in the jail
 * JAIL_CLERK_GIT for each push. */
#include <stdio.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/os/jail/jail.h"
#include "selftest.h"
#include "session.h"

static void dispatch_event(struct session *s, const struct loop_event *ev)
{
	switch ((enum session_ev)ev->key.kind) {
	case SESSION_EV_CONTROL:
		control_on_event(&s->control, ev->events);
		break;
	case SESSION_EV_EDGE:
		edge_on_event(s, ev->events);
		break;
	case SESSION_EV_LINE:
		line_on_event(s, ev->events);
		break;
	case SESSION_EV_AGAIN:
		control_flush(&s->control);
		break;
	}
}

int main(int argc, char **argv)
{
	static struct session session;
	struct err err = {0};

	log_init("sbx-clerk-git");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return clerk_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-clerk-git " SBX_VERSION) < 0;
	if (argc != 1)
		die("usage: sbx-clerk-git (started by sbx-keeper)");
	session_init(&session);
	control_open(&session.control, &session_control, &session.loop, &session);
	if (jail_seal(JAIL_CLERK_GIT, &err) < 0)
		die("%s", err.text);
	control_hello(&session.control);
	while (!session.control.done) {
		struct loop_event ev;

		loop_next(&session.loop, &ev);
		dispatch_event(&session, &ev);
	}
	session_done(&session);
	return session.control.status;
}
