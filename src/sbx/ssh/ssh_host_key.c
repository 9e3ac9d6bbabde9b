/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_host_key.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define DIR_PREFIX "ssh-key."

static const char *const names[] = {"key", "key.pub", "key-cert.pub"};

void ssh_host_key_done(struct ssh_host_key *k)
{
	if (k->key)
		explicit_bzero(k->key, k->n_key);
	free(k->key);
	free(k->cert);
}

static void remove_keys(const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, names[i]);

		(void)unlink(path);
	}
	(void)rmdir(dir);
}

/* Directories of killed processes. */
static void remove_stale_keys(const char *run)
{
	AUTO_DIR DIR *d = opendir(run);
	struct dirent *e;
	uint64_t pid;

	while ((e = dir_next(d))) {
		AUTO_FREE char *dir = xasprintf("%s/%s", run, e->d_name);

		if (str_starts(e->d_name, DIR_PREFIX) &&
			str_to_u64(e->d_name + strlen(DIR_PREFIX), 1, INT32_MAX, &pid) == 0 &&
			kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			remove_keys(dir);
	}
}

static int sign_key(const struct ssh_home *h, const char *dir, const char *host, struct problem *p)
{
	AUTO_FREE char *pub = xasprintf("%s/key.pub", dir), *lower = xstrdup(host), *both = NULL,
		       *until = xasprintf("-1m:+%dm", SSH_CERT_MINUTES);
	const char *args[] = {"-s", h->ca, "-h", "-I", host, "-n", NULL, "-V", until, pub, NULL};

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	/* ssh compares the name in lower case */
	args[6] = both = xasprintf("%s,%s", host, lower);
	return ssh_keygen(args, p);
}

static int load_keys(const char *dir, struct ssh_host_key *ret, struct err *err)
{
	AUTO_FREE char *key = xasprintf("%s/key", dir), *cert = xasprintf("%s/key-cert.pub", dir);
	int r = file_load(key, SSH_MAX_FILE / 2, &ret->key, &ret->n_key, err);

	if (r == 0)
		r = file_load(cert, SSH_MAX_FILE / 2, &ret->cert, &ret->n_cert, err);
	return r == -ENOENT ? err_set(err, -EIO, "ssh-keygen created no key in %s", dir) : r;
}

int ssh_host_key_make(
	const struct ssh_home *h, const char *host, struct ssh_host_key *ret, struct problem *p)
{
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, NULL),
		       *dir = xasprintf("%s/" DIR_PREFIX "%d", run, (int)getpid()),
		       *path = xasprintf("%s/key", dir);
	const char *args[] = {"-t", "ed25519", "-N", "", "-C", host, "-f", path, NULL};
	int r = paths_make(run, &p->err);

	if (r < 0)
		return r;
	remove_stale_keys(run);
	remove_keys(dir);
	if (mkdir(dir, 0700) < 0)
		return err_errno(&p->err, -errno, "cannot create %s", dir);
	r = ssh_keygen(args, p);
	if (r == 0)
		r = sign_key(h, dir, host, p);
	if (r == 0)
		r = load_keys(dir, ret, &p->err);
	remove_keys(dir);
	return r;
}
