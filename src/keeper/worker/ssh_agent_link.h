/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_agent_link - the process that filters the host's SSH agent.
 *
 * How      ssh_agent_open starts sbx-ssh-agent for the first client in the guest and returns the
 *          socket for edge. Each signature is recorded, and confirmed by a person if the spec has
 *          ssh.confirm.
 * Trust    sbx-ssh-agent parses data of the guest and may be compromised.
 * Owns     The process, its streams and the programs that prompt.
 * Limits   SSH_AGENT_MAX_OPEN streams, KEEPER_CONFIRMS prompts, KEEPER_CONFIRM_MS each.
 * See      lib/os/ipc/ssh_agent_chan.h
 */
#pragma once

#include "process.h"
#include "lib/os/ipc/ssh_agent_chan.h"
#include "lib/os/ipc/edge_chan.h"

#define KEEPER_CONFIRMS 4	/* prompts at the same time */
#define KEEPER_CONFIRM_MS 30000 /* a timeout is a denial */

/* A client of the guest at sbx-ssh-agent. */
struct ssh_agent_stream {
	bool used;
	int fd; /* until OPEN was sent */
};

/* A signature that waits for the user's confirmation. */
struct ssh_agent_confirm {
	struct jail_child child; /* the program that prompts; pidfd -1: free */
	uint32_t gen, id;
	struct ssh_agent_ask ask;
	struct loop_timer timer;
};

struct ssh_agent_link {
	struct worker worker;
	struct ssh_agent_stream streams[SSH_AGENT_MAX_OPEN];
	struct ssh_agent_confirm confirms[KEEPER_CONFIRMS];
};

void ssh_agent_init(struct keeper *k);
bool ssh_agent_is_live(const struct keeper *k, struct loop_key key);
/* A guest client: returns the socket for edge and an allowed verdict, or -1 and the reason. */
int ssh_agent_open(struct keeper *k, struct edge_verdict *ret) MUST_CHECK;
void ssh_agent_on_event(struct keeper *k, const struct loop_event *ev);
void ssh_agent_on_exit(struct keeper *k);
void ssh_agent_on_confirm(struct keeper *k, const struct loop_event *ev);
void ssh_agent_on_confirm_timeout(struct keeper *k, const struct loop_event *ev);
void ssh_agent_kill(struct keeper *k);
