/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/spec/spec.h"
#include "ssh.h"
#include "ssh_exec.h"
#include "ssh_home.h"
#include "user_config.h"

/* The first workspace, else the home directory. */
static const char *path_of(const struct opts *o, const json_t *sandbox)
{
	const json_t *spec = json_object_get(sandbox, "spec");
	const json_t *list = json_object_get(spec ? spec : sandbox, "workspaces");
	const char *guest = api_str(json_array_get(list, 0), "guest");

	if (o->args.n > 1)
		return o->args.v[1];
	return guest[0] ? guest : SPEC_HOME;
}

/* VS Code runs ssh with the configuration of the user. */
static int check_setup(struct problem *p)
{
	AUTO_SSH_HOME struct ssh_home h = {0};
	AUTO_USER_CONFIG struct user_config c = {.n = 0};
	int r = ssh_home_make(&h, p);

	if (r == 0)
		r = user_config_load(&h, &c, p);
	if (r < 0 || user_config_has(&c))
		return r;
	(void)err_set(&p->err, -ENOENT, "ssh is not set up for sandboxes");
	return problem_hint(p, -ENOENT, "sbx setup ssh");
}

static int exec_code(const char *name, const char *path, struct problem *p)
{
	AUTO_FREE char *remote = xasprintf("ssh-remote+%s" SSH_SUFFIX, name);
	const char *argv[] = {"code", "--remote", remote, path, NULL};

	return ssh_exec(argv, p);
}

/* Before the sandbox starts. */
static int check_code(const char *name, struct problem *p)
{
	if (ssh_exec_has("code"))
		return 0;
	(void)err_set(&p->err, -ENOENT,
		"program code not found: install Visual Studio Code and its extension Remote - SSH, or open the host %s" SSH_SUFFIX
		" in another editor that uses ssh",
		name);
	return problem_hint(p, -ENOENT, "sbx ssh %s", name);
}

static int run_code(struct opts *o)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = sandbox_get(o->args.v[0], &s, &p);

	if (r == 0)
		r = check_setup(&p);
	if (r == 0)
		r = check_code(api_str(s, "name"), &p);
	if (r == 0)
		r = sandbox_start(o->args.v[0], NULL, NULL, &p);
	if (r == 0)
		r = exec_code(api_str(s, "name"), path_of(o, s), &p);
	return ui_problem(&p, r);
}

const struct verb verb_code = {
	.name = "code",
	.group = "sandboxes",
	.args = "SANDBOX [PATH]",
	.summary = "open Visual Studio Code in a sandbox",
	.about =
		"Starts the sandbox if it is stopped or suspended, and opens Visual Studio Code with a\n"
		"directory of the sandbox, by default the first workspace. sbx setup ssh must have been\n"
		"run once. The extension Remote - SSH connects with ssh; its server runs in the sandbox.",
	.examples = "  sbx code demo\n  sbx code demo /home/agent\n",
	.min = 1,
	.max = 2,
	.first = VERB_SANDBOX,
	.run = run_code,
};
