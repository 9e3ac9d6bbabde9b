/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_place.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "prove_job.h"
#include "lib/client/api/sandbox.h"

#define SECONDS 20

void prove_place_done(struct prove_place *pl)
{
	free(pl->name);
	free(pl->id);
	free(pl->accel);
	free(pl->template);
	free(pl->template_id);
	free(pl->host_dir);
	free(pl->guest_dir);
	free(pl->ro);
	free(pl->hidden);
	free(pl->facts);
	*pl = (struct prove_place){0};
}

static int save_json(const char *facts, const char *name, const json_t *j, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", facts, name);
	AUTO_FREE char *text = json_dumps(j, JSON_INDENT(2));
	int r = text ? file_save(path, slice_from_str(text), err) : -EINVAL;

	return r;
}

/* As the user sees it, including credentials. */
static int save_inspect(const char *sbx, const char *facts, const char *ref, struct err *err)
{
	const char *const argv[] = {"/bin/sh", "-c",
		"exec \"$1\" inspect --json \"$2\" >\"$3/inspect.json\"", "sh", sbx, ref, facts,
		NULL};
	const struct prove_job_spec spec = {.argv = argv, .seconds = SECONDS};
	AUTO_FREE struct prove_job *job = xcalloc(1, sizeof(*job));
	int r = prove_job_run(job, &spec, err);

	return r <= 0 ? r
		      : err_set(err, -EIO, "sbx inspect %s: %.*s", ref,
				(int)MIN(job->n, (size_t)300), job->text);
}

static const char *mode_of(const json_t *w)
{
	return json_is_true(json_object_get(w, "ro")) ? "ro" : "rw";
}

static void put_share(FILE *f, const json_t *w)
{
	(void)fprintf(f, "%s\t%s\t%s\n", mode_of(w), api_str(w, "host"), api_str(w, "guest"));
}

/* Closes the stream and writes its text. Facts of a restarted sandbox replace the old ones. */
static int save_text(FILE *f, char **text, const char *facts, const char *name, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", facts, name);

	if (fclose(f) != 0)
		return err_errno(err, -errno, "cannot write %s", path);
	return file_save(path, slice_from_str(*text), err);
}

/* Shares are the workspaces and the agent's history (its mounts). */
static int save_workspaces(const struct prove_place *pl, const json_t *s, struct err *err)
{
	AUTO_FREE char *places = NULL, *shares = NULL;
	size_t n_places, n_shares, i;
	FILE *f = open_memstream(&places, &n_places), *g = open_memstream(&shares, &n_shares);
	const json_t *w;
	int a, b;

	if (!f || !g)
		abort(); /* out of memory, as xmalloc */
	json_array_foreach (json_object_get(s, "workspaces"), i, w) {
		(void)fprintf(f, "%s %s\n", mode_of(w), api_str(w, "host"));
		put_share(g, w);
	}
	json_array_foreach (json_object_get(s, "mounts"), i, w)
		put_share(g, w);
	a = save_text(f, &places, pl->facts, "workspaces", err);
	b = save_text(g, &shares, pl->facts, "shares", err);
	return a < 0 ? a : b;
}

static void set_place(char **field, char *value)
{
	free(*field);
	*field = value;
}

/* The first file at the top of a directory that a --hide pattern matches. */
static char *find_hidden(const char *dir, const json_t *globs)
{
	AUTO_DIR DIR *d = opendir(dir);
	const struct dirent *e;
	char *found = NULL;
	const json_t *glob;
	size_t i;

	while (!found && (e = dir_next(d)))
		json_array_foreach (globs, i, glob)
			if (!found && json_is_string(glob) &&
				fnmatch(json_string_value(glob), e->d_name, 0) == 0)
				found = xasprintf("%s/%s", dir, e->d_name);
	return found ? found : xstrdup("");
}

static void take_workspaces(struct prove_place *pl, const json_t *s)
{
	const json_t *list = json_object_get(s, "workspaces"), *w;
	bool first = true;
	size_t i;

	set_place(&pl->host_dir, xstrdup(""));
	set_place(&pl->guest_dir, xstrdup(""));
	set_place(&pl->ro, xstrdup(""));
	json_array_foreach (list, i, w) {
		bool ro = json_is_true(json_object_get(w, "ro"));

		/* Probes name it on both sides, and write to it on the host. */
		if (ro && !pl->ro[0] && strcmp(api_str(w, "host"), api_str(w, "guest")) == 0)
			set_place(&pl->ro, xstrdup(api_str(w, "guest")));
		if (json_is_true(json_object_get(w, "file")) || !first)
			continue;
		first = false;
		set_place(&pl->host_dir, xstrdup(api_str(w, "host")));
		set_place(&pl->guest_dir, xstrdup(api_str(w, "guest")));
	}
	set_place(&pl->hidden, find_hidden(pl->host_dir, json_object_get(s, "hide")));
}

int prove_place_fill(struct prove_place *pl, const char *sbx, const char *ref, const char *facts,
	struct problem *p)
{
	AUTO_JSON json_t *s = NULL, *server = NULL, *version = NULL;
	int r = sandbox_get(ref, &s, p);

	if (r == 0)
		r = api_call("GET", "/v1/version", NULL, API_TIMEOUT_MS, &server, p);
	if (r < 0)
		return r;
	set_place(&pl->name, xstrdup(api_str(s, "name")));
	set_place(&pl->id, xstrdup(api_str(s, "id")));
	set_place(&pl->accel, xstrdup(api_str(s, "accel")));
	set_place(&pl->template, xstrdup(api_str(s, "template")));
	set_place(&pl->template_id, xstrdup(api_str(s, "template_id")));
	set_place(&pl->facts, xstrdup(facts));
	pl->cpus = api_int(s, "cpus");
	pl->memory = api_int(s, "memory");
	pl->disk = api_int(s, "disk");
	pl->running = sandbox_is(s, "running");
	take_workspaces(pl, s);
	version = json_pack("{s:s, s:O}", "version", SBX_VERSION, "daemon", server);
	r = save_json(facts, "version.json", version, &p->err);
	if (r == 0)
		r = save_inspect(sbx, facts, pl->name, &p->err);
	if (r == 0)
		r = save_workspaces(pl, s, &p->err);
	return r;
}
