/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "ssh.h"
#include "ssh_home.h"
#include "user_config.h"

static const struct opt_def ssh_opts[] = {
	{0, "undo", NULL, "remove the line from ~/.ssh/config"},
	{'y', "yes", NULL, "do not prompt"},
	{0},
};

static int show_config(const struct ssh_home *h, const struct user_config *c, struct problem *p)
{
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = file_load(h->config, SSH_MAX_FILE, &text, &n, &p->err);

	if (r < 0)
		return r;
	printf("%s:\n\n%s\nFirst line of %s:\n\n%s\n\n", h->config, text, c->path, c->line);
	(void)fflush(stdout);
	return 0;
}

/* -ECANCELED: the user does not want it. */
static int ask_setup(const struct opts *o, const struct user_config *c, struct problem *p)
{
	if (opts_has(o, "yes"))
		return 0;
	if (!ui_can_ask()) {
		(void)err_set(&p->err, -EPERM, "a change of %s requires --yes without a terminal",
			c->path);
		return problem_hint(p, -EPERM, "sbx setup ssh --yes");
	}
	return ui_confirm("Write this line to %s?", c->path) ? 0 : -ECANCELED;
}

static int set_up(const struct opts *o, struct ssh_home *h, struct problem *p)
{
	AUTO_USER_CONFIG struct user_config c = {.n = 0};
	int r = ssh_home_make(h, p);

	if (r == 0)
		r = user_config_load(h, &c, p);
	if (r < 0)
		return r;
	if (user_config_is_set(&c)) {
		printf("%s already has the line. Connect with: ssh NAME.sbx\n", c.path);
		user_config_check(h, &c);
		return 0;
	}
	r = show_config(h, &c, p);
	if (r == 0)
		r = ask_setup(o, &c, p);
	if (r == -ECANCELED) {
		printf("Nothing was changed.\n");
		return 0;
	}
	if (r == 0)
		r = user_config_save(&c, true, &p->err);
	if (r < 0)
		return r;
	printf("%s ssh, scp, sftp, rsync, git and editors can connect to NAME.sbx\n", ui_tick());
	(void)fflush(stdout);
	user_config_check(h, &c);
	return 0;
}

static int undo_setup(struct ssh_home *h, struct problem *p)
{
	AUTO_USER_CONFIG struct user_config c = {.n = 0};
	int r = ssh_home_make(h, p);

	if (r == 0)
		r = user_config_load(h, &c, p);
	if (r < 0)
		return r;
	if (!user_config_has(&c)) {
		printf("%s does not have the line: nothing to undo\n", c.path);
		return 0;
	}
	r = user_config_save(&c, false, &p->err);
	if (r == 0)
		printf("%s The line was removed from %s. sbx ssh still works\n", ui_tick(), c.path);
	return r;
}

static int run_setup_ssh(struct opts *o)
{
	AUTO_SSH_HOME struct ssh_home h = {0};
	struct problem p = {0};
	int r = opts_has(o, "undo") ? undo_setup(&h, &p) : set_up(o, &h, &p);

	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "ssh",
		.args = "",
		.summary = "let ssh and editors connect to NAME.sbx",
		.about =
			"Writes a configuration file of OpenSSH's client for the host names *.sbx, shows it, and\n"
			"after a prompt includes it in the first line of ~/.ssh/config. Then ssh, scp, sftp, rsync,\n"
			"git and the editors that use ssh can connect to NAME.sbx. No agent, display, variable or\n"
			"other key of the host reaches a sandbox. --undo removes the line.",
		.examples = "  sbx setup ssh\n  ssh demo.sbx\n  sbx setup ssh --undo\n",
		.opts = ssh_opts,
		.run = run_setup_ssh,
	},
	{0},
};

const struct verb verb_setup = {
	.name = "setup",
	.group = "management",
	.args = "COMMAND",
	.summary = "connect other programs of the host",
	.about = "Changes the configuration of other programs of the host, so that they can use\n"
		 "sandboxes. Each change is shown first.",
	.subs = subs,
};
