/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create - creates a sandbox from arguments, for create and run.
 *
 * How      create_parse reads the options of CREATE_OPTS and the PATHs into a request body.
 *          create_make finds the template, shows the requirements of the agent, and creates and
 *          starts the sandbox with its rules in one call (sandbox_create). It removes the sandbox
 *          again if the agent's home cannot be filled.
 * Trust    The user's arguments.
 * Owns     struct creation owns its JSON; creation_done frees it.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "src/sbx/agent/agent.h"
#include "src/sbx/clone/clone.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/opt.h"
#include "lib/client/api/policy_api.h"

#define CREATE_OPTS                                                                            \
	{0, "name", "NAME", "name of the sandbox (default: AGENT-DIRECTORY)"},                 \
		{'t', "template", "NAME", "template to use (default: the agent's)"},           \
		{0, "label", "KEY=VALUE", "label for sbx ls --filter", .many = true},          \
		{0, "cpus", "N", "number of virtual CPUs (setting vm.cpus)",                   \
			.heading = "options of the machine"},                                  \
		{'m', "memory", "SIZE", "memory size, for example 2g (setting vm.memory)"},    \
		{0, "disk", "SIZE", "root disk size, for example 40g (setting vm.disk)"},      \
		{0, "idle-timeout", "DURATION",                                                \
			"suspend after DURATION without activity, such as 30m; 0 disables"},   \
		{0, "accel", "KIND", "auto, kvm or tcg; tcg is not an isolation boundary"},    \
		{0, "cold", NULL, "boot instead of restoring a snapshot"},                     \
		{0, "hide", "GLOB", "make matching files unreadable, for example '.env*'",     \
			.many = true, .heading = "options of files and environment"},          \
		{0, "guard", "LEVEL",                                                          \
			"deny files that run on the host: default, strict, report or off"},    \
		{0, "guard-except", "PATH", "file that --guard ignores, for example Makefile", \
			.many = true},                                                         \
		{0, "clone", NULL, "clone the git repository PATH instead of sharing it"},     \
		{0, "branch", "NAME", "with --clone: create and check out the branch NAME"},   \
		{0, "carry", "GLOB", "with --clone: copy matching ignored files too",          \
			.many = true},                                                         \
		{0, "project", NULL, "apply .sbx.conf of the first PATH without prompting"},   \
		{0, "no-project", NULL, "ignore .sbx.conf of the first PATH"},                 \
		{0, "staged", NULL, "keep changes in the sandbox until sbx apply"},            \
		{0, "force", NULL, "allow sharing directories that are otherwise refused"},    \
		{'e', "env", "NAME[=VALUE]", "set a variable for all commands", .many = true}, \
		{0, "env-file", "FILE", "read variables from FILE", .many = true},             \
		{0, "allow-network", "LIST", "hosts to allow, as in sbx policy allow",         \
			.many = true, .heading = "options of the network"},                    \
		{0, "deny-network", "LIST", "hosts to deny", .many = true},                    \
		{0, "allow-hosts", NULL, "allow the agent's hosts without prompting"},         \
		{'p', "publish", "SPEC", "publish a port, as in sbx ports", .many = true},     \
		{0, "import-config", "list",                                                   \
			"copy your agent configuration; with =list, only list them",           \
			.optional = true, .heading = "options of the agent and of your keys"}, \
		{0, "ssh-agent", "KEY,...",                                                    \
			"allow signing with keys of your SSH agent: fingerprints or comments", \
			.optional = true},                                                     \
	{                                                                                      \
		0, "ssh-agent-confirm", NULL, "confirm each signature with SSH_ASKPASS"        \
	}

struct creation {
	json_t *body;
	const char *name; /* inside body */
	bool force;
	const struct opt_list *allow, *deny; /* rules for this sandbox only */
	const struct agent *agent;
	char *project_hosts;	 /* of .sbx.conf, comma-separated; NULL: none */
	bool allow_hosts;	 /* hosts of the agent, without a prompt */
	bool import;		 /* the user's own settings of the agent */
	struct clone_want clone; /* its strings are in body; host NULL: none */
};

void creation_done(struct creation *c);
bool create_is_agent(const char *word);
/* --import-config=list: shows the files to copy. Returns true, with the exit status, if nothing
 * else must be done. */
bool create_only_lists(const struct opts *o, const char *agent, int *ret_status);
/* Adds PATH[:ro] or HOST:GUEST to a list of workspaces. */
int create_add_workspace(json_t *list, const char *arg, bool force, struct problem *p) MUST_CHECK;
/* paths may be empty: then cwd decides whether the current directory is shared. */
int create_parse(const struct opts *o, const char *agent, const char *const *paths, size_t n_paths,
	bool cwd, struct creation *ret, struct problem *p) MUST_CHECK;
/* quiet: no block of facts. *ret is the running sandbox. */
int create_make(const struct creation *c, bool quiet, json_t **ret, struct problem *p) MUST_CHECK;
/* The rules of --deny-network, --allow-network and of the agent's hosts, for this sandbox only. */
int create_add_rules(
	const struct creation *c, const struct agent_hosts *h, struct problem *p) MUST_CHECK;
/* Copies the user's settings of the agent into a running sandbox, over existing files. */
int create_import(const struct creation *c, const char *ref, struct problem *p) MUST_CHECK;
