/* SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/attr.h"
#include "lib/wire/tar/tree.h"
#include "src/guest/ssh/ssh.h"
#include "src/guest/stage/stage.h"
#include "child.h"

static int finish_builtin(int r, const struct err *err)
{
	if (r < 0)
		(void)dprintf(2, "%s\n", err_text(err, r));
	return r < 0 ? 1 : 0;
}

/* pack [-L] PATH */
static int run_pack(char **argv, const struct child *c)
{
	unsigned flags = 0;
	struct tree_count n;
	struct err err;

	if (argv[1] && !strcmp(argv[1], "-L")) {
		flags |= TREE_FOLLOW;
		argv++;
	}
	if (!argv[1] || argv[2])
		return 2;
	return finish_builtin(tree_pack_path(argv[1], flags, 1, &n, &err), &err);
}

/* unpack PATH [NAME] */
static int run_unpack(char **argv, const struct child *c)
{
	struct tree_count n;
	struct err err;

	if (!argv[1] || (argv[2] && argv[3]))
		return 2;
	return finish_builtin(tree_unpack_path(0, argv[1], argv[2], TREE_OWNERS, &n, &err), &err);
}

/* stage PATH */
static int run_stage(char **argv, const struct child *c)
{
	struct err err;

	return argv[1] && !argv[2] ? finish_builtin(stage_send(argv[1], 1, &err), &err) : 2;
}

/* stage-refresh PATH */
static int run_refresh(char **argv, const struct child *c)
{
	struct err err;

	return argv[1] && !argv[2] ? finish_builtin(stage_refresh(argv[1], &err), &err) : 2;
}

/* stage-discard PATH */
static int run_discard(char **argv, const struct child *c)
{
	struct err err;

	return argv[1] && !argv[2] ? finish_builtin(stage_discard(argv[1], &err), &err) : 2;
}

/* ssh HOST-KEY CERTIFICATE USER-KEY [remote] */
static int run_ssh(char **argv, const struct child *c)
{
	struct guest_user user;
	struct env env = {0};
	struct err err;

	if (users_lookup(USERS_AGENT, &user, &err) < 0)
		return finish_builtin(-ENOENT, &err);
	child_env(&env, c, &user);
	return ssh_serve(argv, &user, &env);
}

static const struct {
	const char *name;
	builtin_fn *fn;
} builtins[] = {
	{"pack", run_pack},
	{"unpack", run_unpack},
	{"stage", run_stage},
	{"stage-refresh", run_refresh},
	{"stage-discard", run_discard},
	{"ssh", run_ssh},
};

builtin_fn *builtin_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (!strcmp(builtins[i].name, name))
			return builtins[i].fn;
	return NULL;
}
