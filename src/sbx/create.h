/*
 * create - making a sandbox from arguments: what create and run share.
 *
 * How      create_parse reads the options of CREATE_OPTS and the PATHs into a request body;
 *          create_make looks for the template, registers and starts the sandbox, and removes it
 *          again when it does not start.
 * Trust    The user's arguments.
 * Owns     struct creation owns its JSON; creation_done frees it.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "api.h"
#include "opt.h"

#define CREATE_OPTS                                                                               \
	{0, "name", "NAME", "name of the sandbox (AGENT-FOLDER when not said)"},                  \
		{0, "cpus", "N", "virtual CPUs (setting vm.cpus)"},                               \
		{'m', "memory", "SIZE", "memory, such as 2g (setting vm.memory)"},                \
		{0, "hide", "GLOB", "make matching files unreadable inside, such as '.env*'",     \
			.many = true},                                                            \
		{'e', "env", "NAME[=VALUE]", "environment of every command in it", .many = true}, \
		{0, "env-file", "FILE", "the same from a file", .many = true},                    \
		{0, "accel", "KIND", "auto, kvm or tcg; tcg is no isolation boundary"},           \
		{'t', "template", "NAME", "what it starts from (debian)"},                        \
		{0, "allow-network", "LIST", "hosts that it may reach, as in sbx policy allow",   \
			.many = true},                                                            \
		{0, "deny-network", "LIST", "hosts that it may not reach", .many = true},         \
		{0, "ssh-agent", "KEY,...",                                                       \
			"let it sign with keys of your SSH agent: fingerprints or comments",      \
			.optional = true},                                                        \
		{0, "ssh-agent-confirm", NULL, "ask by SSH_ASKPASS before each signature"},       \
	{                                                                                         \
		0, "force", NULL, "share / or the home folder all the same"                       \
	}

struct creation {
	json_t *body;
	const char *name; /* inside body */
	bool force;
	const struct opt_list *allow, *deny; /* rules of its own */
};

void creation_done(struct creation *c);
bool create_is_agent(const char *word);
/* paths may be empty: then cwd decides whether the current folder is shared or nothing. */
int create_parse(const struct opts *o, const char *agent, const char *const *paths, size_t n_paths,
	bool cwd, struct creation *ret, struct problem *p) MUST_CHECK;
/* quiet: no block of facts. The running sandbox in *ret. */
int create_make(const struct creation *c, bool quiet, json_t **ret, struct problem *p) MUST_CHECK;
