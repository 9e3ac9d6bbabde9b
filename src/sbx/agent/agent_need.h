/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_need - requirements of an agent: a known name, a template, hosts, credentials.
 *
 * How      agent_need_find searches the agents of the installation (lib/rules/agent). The other
 *          functions print what is missing with the command that helps. Hosts become rules for this
 *          sandbox only (origin agent:NAME) after the user confirms, or with --allow-hosts or the
 *          setting agents.allow-hosts. A host that a deny rule names is not offered, because an
 *          allow rule would not open it.
 * Trust    Files of the installation and of the same user; sbxd's answers.
 * Owns     struct agent_hosts owns its list.
 * See      lib/rules/agent/agents.h, create.c
 */
#pragma once

#include "lib/rules/agent/agents.h"
#include "lib/client/api/api.h"

/* All agents, read once; the first call prints errors. Never NULL. */
const struct agents *agent_need_all(void);
/* Returns NULL if the agent is unknown. */
const struct agent *agent_need_find(const char *name);
/* The agent whose name is nearest to the typed one, or NULL. */
const char *agent_need_nearest(const char *typed);
/* Prints why an agent cannot be installed; false: it can, or nothing is known of it. */
bool agent_need_unavailable(const char *name);
/* Warns if the template of a new sandbox has another agent or none. */
void agent_need_match(const struct agent *a, const char *template);
/* "claude, codex, shell", on the heap. */
char *agent_need_names(void);

/* Offers to build a missing template if there is a terminal; else fails with the command. */
int agent_need_template(const struct agent *a, const char *name, struct problem *p) MUST_CHECK;

struct agent_hosts {
	char *granted; /* comma-separated resources for the sandbox's rules; NULL: none */
};

void agent_hosts_done(struct agent_hosts *h);

/* Shows the hosts, each with the current policy, and determines whether the others may be
 * allowed. */
int agent_need_hosts(const struct agent *a, const char *sandbox, bool allow,
	struct agent_hosts *ret, struct problem *p) MUST_CHECK;
/* Whether one of its credentials is set, for all sandboxes; otherwise prints how to set it. */
bool agent_need_services(const struct agent *a);
