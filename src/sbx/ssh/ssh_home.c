/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_home.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/client/cli/follow.h"
#include "ssh_config.h"

#define LOCK_MS 60000
#define MAX_ARGS 16

void ssh_home_done(struct ssh_home *h)
{
	free(h->dir);
	free(h->ca);
	free(h->key);
	free(h->known_hosts);
	free(h->config);
	free(h->self);
}

static char *find_self(struct err *err)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0) {
		(void)err_errno(err, -errno, "cannot read /proc/self/exe");
		return NULL;
	}
	path[n] = '\0';
	/* It was upgraded a moment ago; the new one has the same path. */
	if ((size_t)n > strlen(gone) && strcmp(path + n - strlen(gone), gone) == 0)
		path[n - (ssize_t)strlen(gone)] = '\0';
	return xstrdup(path);
}

static int find_home(struct ssh_home *h, struct err *err)
{
	h->self = find_self(err);
	h->dir = paths_get(PATHS_STATE, "ssh");
	h->ca = xasprintf("%s/ca", h->dir);
	h->key = xasprintf("%s/key", h->dir);
	h->known_hosts = xasprintf("%s/known_hosts", h->dir);
	h->config = xasprintf("%s/config", h->dir);
	return h->self ? ssh_config_check(h, err) : -EIO;
}

static void keep_line(void *arg, char *line)
{
	(void)snprintf(arg, ERR_MAX_TEXT / 2, "%s", line);
}

int ssh_keygen(const char *const *args, struct problem *p)
{
	const char *argv[MAX_ARGS + 4] = {"/usr/bin/env", "ssh-keygen", "-q"};
	char last[ERR_MAX_TEXT / 2] = "";
	struct follow f = {.argv = argv,
		.lines = 1,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = SSH_KEYGEN_MS,
		.fn = keep_line,
		.arg = last};
	int status;

	for (size_t i = 0; i < MAX_ARGS && args[i]; i++)
		argv[3 + i] = args[i];
	status = follow_run(&f, &p->err);
	if (status <= 0)
		return status;
	if (status == 127) {
		(void)err_set(&p->err, -ENOENT, "program ssh-keygen not found");
		return problem_hint(p, -ENOENT, "sudo apt-get install openssh-client");
	}
	return err_set(&p->err, -EIO, "ssh-keygen failed: %s", last);
}

/* The private key gets its name last: if it exists, the other one does. */
static int make_key(const char *path, const char *comment, struct problem *p)
{
	AUTO_FREE char *temp = xasprintf("%s.new", path), *temp_pub = xasprintf("%s.pub", temp),
		       *pub = xasprintf("%s.pub", path);
	const char *args[] = {"-t", "ed25519", "-N", "", "-C", comment, "-f", temp, NULL};
	int r;

	if (access(path, F_OK) == 0 && access(pub, F_OK) == 0)
		return 0;
	(void)unlink(temp);
	(void)unlink(temp_pub);
	r = ssh_keygen(args, p);
	if (r == 0 && (rename(temp_pub, pub) < 0 || rename(temp, path) < 0))
		r = err_errno(&p->err, -errno, "cannot create %s", path);
	return r;
}

static int save_if_new(const char *path, const char *text, struct err *err)
{
	AUTO_FREE char *old = NULL;
	size_t n;

	if (file_load(path, SSH_MAX_FILE, &old, &n, &(struct err){0}) == 0 && !strcmp(old, text))
		return 0;
	return file_save(path, slice_from_str(text), err);
}

static int make_texts(const struct ssh_home *h, struct err *err)
{
	AUTO_FREE char *pub = xasprintf("%s.pub", h->ca), *ca = NULL, *hosts = NULL;
	AUTO_FREE char *config = ssh_config_text(h);
	size_t n;
	int r = file_load(pub, SSH_MAX_FILE, &ca, &n, err);

	if (r < 0)
		return err_wrap(err, r, "cannot read %s", pub);
	hosts = xasprintf("@cert-authority *" SSH_SUFFIX " %s", ca);
	r = save_if_new(h->known_hosts, hosts, err);
	return r < 0 ? r : save_if_new(h->config, config, err);
}

int ssh_home_make(struct ssh_home *h, struct problem *p)
{
	AUTO_FREE char *lock = NULL;
	AUTO_CLOSE int held = -1;
	int r = find_home(h, &p->err);

	if (r == 0)
		r = paths_make(h->dir, &p->err);
	if (r < 0)
		return r;
	lock = xasprintf("%s/lock", h->dir);
	held = file_lock(lock, LOCK_MS, &p->err);
	if (held == -EBUSY)
		return err_set(&p->err, -EBUSY, "another sbx has held %s for a minute", lock);
	if (held < 0)
		return held;
	r = make_key(h->ca, "sbx host keys", p);
	if (r == 0)
		r = make_key(h->key, "sbx", p);
	return r == 0 ? make_texts(h, &p->err) : r;
}
