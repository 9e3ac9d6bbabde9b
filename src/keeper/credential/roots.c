/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roots - CA certificates for the verification of upstream servers with a credential.
 *
 * How      Reads the system's bundle and the copy of network.extra-ca at the start and on RELOAD
 *          into one sealed memfd that every origin gets. If the text changed, the origins are
 *          stopped, because they verified with the old one. If it cannot be read, requests that
 *          need an origin are denied. The guest also gets the user's own certificates (trust.h).
 * Trust    Files of the host and of the same user; only origins and the guest parse certificates.
 * Limits   ROOTS_MAX_BYTES each.
 */
#include "credential.h"
#include "trust.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings_net.h"

#define SYSTEM_ROOTS "/etc/ssl/certs/ca-certificates.crt"
#define ROOTS_MAX_BYTES (4u << 20)

static bool is_same_text(int fd, const char *text, size_t n)
{
	struct stat st;
	bool is_same = false;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_size != n || n == 0)
		return false;
	p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED) {
		is_same = memcmp(p, text, n) == 0;
		(void)munmap(p, n);
	}
	return is_same;
}

static int load_roots(struct keeper *k, const char *extra, char **ret, struct err *err)
{
	AUTO_FREE char *system = NULL;
	AUTO_FREE char *own = NULL;
	size_t n;
	int r = file_load(SYSTEM_ROOTS, ROOTS_MAX_BYTES, &system, &n, err);

	if (r == -ENOENT)
		return err_set(err, r, "file not found: " SYSTEM_ROOTS);
	if (r == 0 && extra[0])
		r = settings_net_load_ca(extra, &own, &n, err);
	if (r < 0)
		return r;
	*ret = xasprintf("%s\n%s", system, own ? own : "");
	trust_set_extra(k, own ? own : "");
	return 0;
}

void roots_read(struct keeper *k, const char *extra)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	int r = load_roots(k, extra, &text, &err);

	if (r == 0 && is_same_text(k->origins->roots, text, strlen(text)))
		return;
	/* Origins that verified with the old certificates must not continue. */
	origins_kill_all(k, "the CA certificates of the host have changed");
	fd_close(&k->origins->roots);
	if (r == 0)
		r = k->origins->roots = sealed_file_make("roots", slice_from_str(text));
	if (r < 0) {
		k->origins->roots = -1;
		log_error("cannot verify servers: %s", err_text(&err, r));
	}
}
