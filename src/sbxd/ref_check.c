/*
 * ref_check - whether a program may be registered as the source of a credential.
 *
 * How      The program is found as the kernel would find it, links followed. It is refused when another
 *          user can change or replace it (lib/ipc/run_ref.h), and when it is in a workspace of any
 *          sandbox: the guest could change it there, and it is executed on the host.
 * Trust    Runs in sbxd. The path is the user's; the registry has the workspaces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/ipc/run_ref.h"
#include "sbxd.h"
#include "vault_link.h"

#define BATCH 64

struct search {
	const char *program;
	struct err *err;
	char last[SPEC_MAX_NAME + 1];
	unsigned n;
};

static bool lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0' || n == 1);
}

static int look(void *arg, const struct store_row *row)
{
	struct search *s = arg;

	(void)snprintf(s->last, sizeof(s->last), "%s", row->spec.name);
	s->n++;
	for (size_t i = 0; i < row->spec.n_workspaces; i++) {
		const struct spec_workspace *w = &row->spec.workspaces[i];

		if (!w->ro && lies_in(s->program, w->host))
			return err_set(s->err, -EPERM,
				"%s is in a workspace of the sandbox '%s', which could change it",
				s->program, row->spec.name);
	}
	return 0;
}

int ref_check(struct sbxd *d, const struct vault_ref *ref, struct err *err)
{
	AUTO_FREE char *real = realpath(ref->program, NULL);
	struct search s = {.program = real, .err = err};
	int r = run_ref_check(ref, err);

	do {
		char after[SPEC_MAX_NAME + 1];

		memcpy(after, s.last, sizeof(after));
		s.n = 0;
		if (r == 0)
			r = store_list(d->store, after, BATCH, look, &s, err);
	} while (r >= 0 && s.n == BATCH);
	return r < 0 ? r : 0;
}
