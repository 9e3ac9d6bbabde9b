/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "prove_lane.h"
#include "lib/client/cli/quote.h"

#define MAX_ENV 4096
#define MAX_GIVEN 16384

struct env {
	char **v;
	size_t n;
};

static bool is_named(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static void put_script(struct env *e, const char *name, const char *value)
{
	for (size_t i = 0; i < e->n; i++)
		if (is_named(e->v[i], name)) {
			free(e->v[i]);
			e->v[i] = xasprintf("%s=%s", name, value);
			return;
		}
	if (e->n + 1 < MAX_ENV)
		e->v[e->n++] = xasprintf("%s=%s", name, value);
}

static void put_path(
	struct env *e, const char *name, enum paths_root root, const char *below, const char *id)
{
	AUTO_FREE char *path = below ? paths_get(root, "%s/%s", below, id) : paths_get(root, NULL);

	put_script(e, name, path);
}

char **prove_env_make(const struct prove_lane *l, const struct prove_item *it)
{
	struct env e = {.v = xcalloc(MAX_ENV, sizeof(char *))};
	const struct prove_common *c = l->common;
	const struct prove_place *pl = &l->place;
	AUTO_FREE char *patience = xasprintf("%u", it->seconds);

	for (char **v = environ; *v && e.n + 64 < MAX_ENV; v++)
		e.v[e.n++] = xstrdup(*v);
	put_script(&e, "LC_ALL", "C");
	put_script(&e, "PROBE", it->p->id);
	put_script(&e, "TAG", it->tag);
	put_script(&e, "TOOL", c->tool);
	put_script(&e, "PATIENCE", patience);
	put_script(&e, "DIR", it->dir);
	put_script(&e, "WORKSPACE", pl->host_dir);
	put_script(&e, "ACCEL", pl->accel);
	put_script(&e, "RO", pl->ro);
	put_script(&e, "HIDDEN", pl->hidden);
	put_script(&e, "SBX", c->sbx);
	put_script(&e, "SANDBOX", pl->name);
	put_script(&e, "SANDBOX_ID", pl->id);
	put_script(&e, "FACTS", pl->facts);
	put_script(&e, "ECHO_URL", c->echo_url);
	put_path(&e, "STATE", PATHS_STATE, NULL, NULL);
	put_path(&e, "RUNTIME", PATHS_RUNTIME, NULL, NULL);
	put_path(&e, "CONFIG", PATHS_CONFIG, NULL, NULL);
	put_path(&e, "DATA", PATHS_DATA, NULL, NULL);
	put_path(&e, "STATE_SANDBOX", PATHS_STATE, "sandboxes", pl->id);
	put_path(&e, "RUN_SANDBOX", PATHS_RUNTIME, "s", pl->id);
	return e.v;
}

void prove_env_free(char **env)
{
	for (char **v = env; v && *v; v++)
		free(*v);
	free(env);
}

/* Output of `before`, in lines for sh. */
static char *read_given(const struct prove_item *it)
{
	AUTO_FREE char *path = it->dir ? xasprintf("%s/given", it->dir) : NULL;
	char *text = NULL;
	size_t n;

	if (!path || file_load(path, MAX_GIVEN, &text, &n, &(struct err){0}) < 0)
		return xstrdup("");
	return text;
}

static char *inside_script(const struct prove_lane *l, const struct prove_item *it)
{
	AUTO_FREE char *dir = quote_sh(l->place.guest_dir), *ro = quote_sh(l->place.ro);
	AUTO_FREE char *hidden = quote_sh(l->place.hidden), *given = read_given(it);

	return xasprintf("export LC_ALL=C PROBE=%s TAG=%s PATIENCE=%u ACCEL=%s WORKSPACE=%s RO=%s "
			 "HIDDEN=%s\n%s%s%s",
		it->p->id, it->tag, it->seconds, l->place.accel, dir, ro, hidden, given,
		l->common->prelude_inside, it->p->part[PROBE_INSIDE]);
}

const char *prove_shell(void)
{
	return access("/bin/dash", X_OK) == 0 ? "/bin/dash" : "/bin/sh";
}

char *prove_script_make(
	const struct prove_lane *l, const struct prove_item *it, enum probe_part part)
{
	if (part == PROBE_INSIDE)
		return inside_script(l, it);
	return xasprintf("%s%s%s", l->common->prelude_outside,
		l->common->prelude_group[it->p->group], it->p->part[part]);
}
