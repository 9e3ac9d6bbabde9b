/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-ssh-agent: filters a sandbox's requests to the host's SSH agent. The keeper starts it in the
 * jail JAIL_SSH_AGENT. */
#include "ssh_agent.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/os/jail/jail.h"

static struct ssh_agent ssh_agent = {.host_fd = -1};

static void dispatch_ssh_agent(struct ssh_agent *a, const struct loop_event *ev)
{
	switch ((enum ssh_agent_ev)ev->key.kind) {
	case SSH_AGENT_EV_CONTROL:
		control_on_event(&a->control, ev->events);
		break;
	case SSH_AGENT_EV_HOST:
		host_on_event(a, ev->events);
		break;
	case SSH_AGENT_EV_HOST_TIMER:
		log_error("SSH agent of the host: timed out");
		control_quit(&a->control, SSH_AGENT_EXIT_HOST);
		break;
	case SSH_AGENT_EV_STREAM:
		stream_on_event(a, ev->key, ev->events);
		break;
	case SSH_AGENT_EV_TIMER:
		stream_on_timer(a, ev->key);
		break;
	}
}

static void start_ssh_agent(struct ssh_agent *a)
{
	struct err err = {0};
	int r;

	control_open(&a->control, &ssh_agent_control, &a->loop, a);
	r = jail_seal(JAIL_SSH_AGENT, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
	control_hello(&a->control);
}

int main(int argc, char **argv)
{
	log_init("sbx-ssh-agent");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return ssh_agent_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-ssh-agent " SBX_VERSION) < 0;
	if (argc != 1)
		die("usage: sbx-ssh-agent (started by sbx-keeper)");
	start_ssh_agent(&ssh_agent);
	while (!ssh_agent.control.done) {
		struct loop_event ev;

		loop_next(&ssh_agent.loop, &ev);
		dispatch_ssh_agent(&ssh_agent, &ev);
	}
	return ssh_agent.control.status;
}
