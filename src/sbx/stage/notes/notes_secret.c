/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of changes: credentials in the bundle. The vault searches. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "notes_internal.h"

#define SEARCH_MS 640000 /* other requests may be before it */

/* An installation without credentials has nothing to find, and its vault is not started. */
static bool has_credentials(void)
{
	AUTO_JSON json_t *status = NULL;
	struct problem p = {0};

	return api_call("GET", "/v1/secrets/status", NULL, API_TIMEOUT_MS, &status, &p) == 0 &&
	       strcmp(api_str(status, "state"), "empty") != 0;
}

/* Returns the number of credentials in a file, and their names. */
static int search_fd(int fd, char **ret_names, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const json_t *found;
	size_t i;
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0; /* the vault begins there */

	*ret_names = xstrdup("");
	if (r == 0)
		r = api_call_passing("POST", "/v1/secrets/scan", NULL, fd, SEARCH_MS, &answer, p);
	if (r < 0)
		return r;
	json_array_foreach (json_object_get(answer, "credentials"), i, found) {
		AUTO_FREE char *old = *ret_names;

		*ret_names = xasprintf("%s%s%s", old, i ? ", " : "", api_str(found, "name"));
	}
	return (int)api_int(answer, "found");
}

static int search_step(const struct bundle *b, struct plan_step *s, struct problem *p)
{
	AUTO_CLOSE int fd = memfd_create("sbx-review", MFD_CLOEXEC);
	AUTO_FREE char *names = NULL;
	int r = fd < 0 ? -errno : bundle_copy(b, s->entry, fd, &p->err);

	if (r == 0)
		r = search_fd(fd, &names, p);
	if (r <= 0)
		return r;
	notes_add(s, "secret", names);
	notes_refine(s, PLAN_SECRET);
	return 0;
}

static int search_steps(const struct bundle *b, struct plan *p, struct problem *problem)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++) {
		struct plan_step *s = &p->v[i];

		if (s->kind != PLAN_PUT || s->new.type != LOOK_FILE || s->new.size == 0)
			continue;
		if (n++ < NOTES_MAX_SEARCHED) {
			r = search_step(b, s, problem);
		} else {
			notes_add(s, "secret", "not searched");
			notes_refine(s, PLAN_SECRET);
		}
	}
	return r;
}

void notes_find_secrets(const struct bundle *b, struct plan *p)
{
	struct problem problem = {0};
	int n = 0, r = 0;

	if (p->n == 0 || !has_credentials())
		return;
	for (size_t i = 0; r >= 0 && i < b->n_ws; i++) {
		AUTO_FREE char *names = NULL;

		r = search_fd(b->fds[i], &names, &problem);
		n += r > 0;
	}
	if (r >= 0 && n > 0)
		r = search_steps(b, p, &problem);
	if (r < 0)
		ui_warning("the changes were not searched for credentials: %s",
			err_text(&problem.err, r));
}
