/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "ssh.h"
#include "ssh_config.h"
#include "ssh_exec.h"
#include "ssh_home.h"
#include "ssh_proxy.h"

static const struct opt_def opts[] = {
	{'L', "local-forward", "SPEC", "forward a port of the host to the sandbox, as ssh -L",
		.many = true},
	{'R', "remote-forward", "SPEC", "forward a port of the sandbox to the host, as ssh -R",
		.many = true},
	{'N', "no-command", NULL, "forward ports only"},
	{'t', "tty", NULL, "allocate a terminal for COMMAND"},
	{0, "proxy", "HOST", "be the ProxyCommand of ssh for NAME.sbx"},
	{0, "allow-remote", NULL, "with --proxy: accept ssh -R"},
	{0},
};

/* The command line of ssh. */
struct words {
	const char **v;
	size_t n;
};

static void add_word(struct words *w, const char *word)
{
	w->v[w->n++] = word;
}

static void add_all(struct words *w, const char *option, const struct opt_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		add_word(w, option);
		add_word(w, l->v[i]);
	}
}

static int say_no_ssh(struct problem *p, int r)
{
	return r == -ENOENT ? problem_hint(p, r, "sudo apt-get install openssh-client") : r;
}

static int run_client(
	const struct opts *o, const struct ssh_home *h, const char *name, struct problem *p)
{
	const struct opt_list *local = opts_list(o, "local-forward"),
			      *remote = opts_list(o, "remote-forward");
	AUTO_FREE char *host = xasprintf("%s" SSH_SUFFIX, name),
		       *proxy = ssh_config_proxy(h, remote->n ? " --allow-remote" : ""),
		       *option = xasprintf("ProxyCommand=%s", proxy);
	struct words w = {.v = xcalloc(o->args.n + 2 * (local->n + remote->n) + 16, sizeof(*w.v))};
	int r;

	add_word(&w, "ssh");
	add_word(&w, "-F");
	add_word(&w, h->config);
	add_word(&w, "-o");
	add_word(&w, option);
	if (local->n + remote->n)
		add_word(&w, "-oExitOnForwardFailure=yes");
	add_all(&w, "-L", local);
	add_all(&w, "-R", remote);
	if (opts_has(o, "no-command"))
		add_word(&w, "-N");
	if (opts_has(o, "tty"))
		add_word(&w, "-t");
	add_word(&w, "--");
	add_word(&w, host);
	for (size_t i = 1; i < o->args.n; i++)
		add_word(&w, o->args.v[i]);
	r = say_no_ssh(p, ssh_exec(w.v, p));
	free(w.v);
	return r;
}

static int usage_ssh(const char *text)
{
	ui_error("sbx ssh: %s", text);
	ui_hint("sbx help ssh");
	return EXIT_USAGE;
}

static int check_usage(const struct opts *o)
{
	if (opts_has(o, "proxy"))
		return o->args.n > 0 ? usage_ssh("--proxy cannot be combined with SANDBOX")
				     : EXIT_OK;
	if (opts_has(o, "allow-remote"))
		return usage_ssh("--allow-remote requires --proxy");
	if (o->args.n == 0)
		return usage_ssh("missing argument; usage: sbx ssh SANDBOX [COMMAND...]");
	if (opts_has(o, "no-command") && o->args.n > 1)
		return usage_ssh("-N cannot be combined with a command");
	return EXIT_OK;
}

static int run_ssh(struct opts *o)
{
	AUTO_SSH_HOME struct ssh_home h = {0};
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = check_usage(o);

	if (r != EXIT_OK)
		return r;
	if (opts_has(o, "proxy"))
		return ssh_proxy_run(opts_value(o, "proxy"), opts_has(o, "allow-remote"));
	r = sandbox_get(o->args.v[0], &s, &p);
	if (r == 0)
		r = ssh_home_make(&h, &p);
	if (r == 0)
		r = run_client(o, &h, api_str(s, "name"), &p);
	(void)ui_problem(&p, r);
	return EXIT_OURS;
}

const struct verb verb_ssh = {
	.name = "ssh",
	.group = "sandboxes",
	.args = "SANDBOX [COMMAND...]",
	.summary = "connect to a sandbox with SSH",
	.about =
		"Runs OpenSSH's client for a shell or a command in a sandbox. The sandbox is started first\n"
		"if it is stopped or suspended. No port is opened: the connection is an exec, and one sshd\n"
		"runs in the sandbox for it, as the user agent. The client forwards no agent, no display\n"
		"and no variable, and uses only keys that sbx has created.\n\n"
		"The exit status is that of the command, and 255 if the connection fails.",
	.examples = "  sbx ssh demo\n"
		    "  sbx ssh demo uname -a\n"
		    "  sbx ssh -N -L 8888:localhost:8888 demo\n",
	.opts = opts,
	.max = 16000,
	.stop_after = 1,
	.first = VERB_SANDBOX,
	.run = run_ssh,
};
