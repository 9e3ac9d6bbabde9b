/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/spec/spec.h"
#include "src/sbx/session/session.h"
#include "ssh_host_key.h"

#define NO_SERVER 3    /* SSH_NO_SERVER of src/guest/ssh/ssh.h */
#define NO_BUILTIN 127 /* sbx-guest is older than this program */

/* The keys that sshd gets before the client's bytes. */
struct parts {
	struct ssh_host_key host;
	char *user; /* public */
	size_t n_user;
	char n[3][24]; /* lengths, as words */
	char *all;
	size_t n_all;
};

static void parts_done(struct parts *a)
{
	if (a->all)
		explicit_bzero(a->all, a->n_all);
	free(a->all);
	free(a->user);
	ssh_host_key_done(&a->host);
}

static char *name_of(const char *host, struct err *err)
{
	size_t n = strlen(host), suffix = strlen(SSH_SUFFIX);
	char *name;

	if (n <= suffix || strcasecmp(host + n - suffix, SSH_SUFFIX) != 0) {
		(void)err_set(err, -EINVAL, "invalid host '%.80s': expected NAME" SSH_SUFFIX, host);
		return NULL;
	}
	name = xstrndup(host, n - suffix);
	if (spec_check_name(name, err) == 0)
		return name;
	free(name);
	return NULL;
}

static int make_parts(
	const struct ssh_home *h, const char *host, struct parts *ret, struct problem *p)
{
	AUTO_FREE char *pub = xasprintf("%s.pub", h->key);
	int r = ssh_host_key_make(h, host, &ret->host, p);

	if (r == 0)
		r = file_load(pub, SSH_MAX_FILE / 2, &ret->user, &ret->n_user, &p->err);
	if (r < 0)
		return r;
	ret->n_all = ret->host.n_key + ret->host.n_cert + ret->n_user;
	ret->all = xmalloc(ret->n_all);
	memcpy(ret->all, ret->host.key, ret->host.n_key);
	memcpy(ret->all + ret->host.n_key, ret->host.cert, ret->host.n_cert);
	memcpy(ret->all + ret->host.n_key + ret->host.n_cert, ret->user, ret->n_user);
	(void)snprintf(ret->n[0], sizeof(ret->n[0]), "%zu", ret->host.n_key);
	(void)snprintf(ret->n[1], sizeof(ret->n[1]), "%zu", ret->host.n_cert);
	(void)snprintf(ret->n[2], sizeof(ret->n[2]), "%zu", ret->n_user);
	return 0;
}

static int say_no_server(const char *name, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	struct problem ignored = {0};
	int r = sandbox_get(name, &s, &ignored);

	(void)err_set(&p->err, -ENOENT,
		"sandbox '%s' has no SSH server: its template '%s' was built without one. Update the template and create a new sandbox",
		name, r == 0 ? api_str(s, "template") : "");
	return problem_hint(p, -ENOENT, "sbx template update");
}

static int say_failed(const char *name, int status, char *text, struct problem *p)
{
	if (status == NO_SERVER)
		return say_no_server(name, p);
	if (status == NO_BUILTIN) {
		(void)err_set(&p->err, -EPROTO,
			"sandbox '%s' was started by an older version of sbx", name);
		return problem_hint(p, -EPROTO, "sbx restart %s", name);
	}
	text[strcspn(text, "\n")] = '\0';
	ui_clean(text);
	return err_set(&p->err, -EIO, "the SSH server in the sandbox ended: %s",
		text[0] ? text : "no reason given");
}

static int connect_client(const char *name, const struct parts *a, bool remote, struct problem *p)
{
	const char *argv[] = {"ssh", a->n[0], a->n[1], a->n[2], remote ? "remote" : NULL, NULL};
	struct session_link link = attach_link(name);
	char text[1024] = "";
	struct session s = {.spec = {.flags = EXEC_F_BUILTIN | EXEC_F_STDIN,
				    .user = (char *)"root",
				    .cwd = (char *)"/",
				    .argv = (char **)argv},
		.link = &link,
		.first = slice_of(a->all, a->n_all),
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
		.err_fd = STDERR_FILENO,
		.err_text = text,
		.err_size = sizeof(text)};
	int conn = api_stream(name, API_TIMEOUT_MS, p);
	int status = conn < 0 ? conn : session_run(&s, conn, p);

	/* After the first byte the client explains what happens. */
	return status > 0 && s.n_out == 0 ? say_failed(name, status, text, p) : status;
}

int ssh_proxy_run(const char *host, bool remote)
{
	AUTO_SSH_HOME struct ssh_home h = {0};
	CLEANUP(parts_done) struct parts parts = {.n_all = 0};
	struct problem p = {0};
	AUTO_FREE char *name = name_of(host, &p.err);
	int r = name ? sandbox_start(name, NULL, NULL, &p) : -EINVAL;

	if (r == 0)
		r = ssh_home_make(&h, &p);
	if (r == 0)
		r = make_parts(&h, host, &parts, &p);
	if (r == 0)
		r = connect_client(name, &parts, remote, &p);
	if (r >= 0)
		return EXIT_OK;
	(void)ui_problem(&p, r);
	return EXIT_OURS;
}
