/* SPDX-License-Identifier: Apache-2.0 */
#include "template_source.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/base/fs/walk.h"
#include "lib/vm/template/template.h"
#include "lib/client/api/api.h"
#include "dockerfile.h"
#include "lib/client/cli/follow.h"
#include "lib/client/api/out_place.h"
#include "lib/client/api/policy_api.h"
#include "src/sbx/disk/disk.h"
#include "template_scratch.h"

#define GUEST_DIR "/run/sbx-build"	 /* memory: not in the template */
#define GUEST_CONTEXT "/mnt/sbx-context" /* removed at the end of the build */
#define MAX_RESULT (256u << 10)
#define MAX_ALIASES 4096

struct build {
	const struct opts *o;
	struct dockerfile file;
	char *context;
	char base[TEMPLATE_MAX_NAME + 1]; /* base template of the scratch sandbox */
	char aliases[MAX_ALIASES];	  /* its names in the Dockerfile */
	struct scratch box;
	json_t *result;
};

static void build_done(struct build *b)
{
	scratch_done(&b->box);
	dockerfile_done(&b->file);
	free(b->context);
	json_decref(b->result);
}

/* ---- before the build ---- */

static int read_file(struct build *b, struct problem *p)
{
	const char *path = opts_value(b->o, "file");
	const struct opt_list *args = opts_list(b->o, "build-arg");
	AUTO_CLOSE int fd = out_place_open_source(path, p);
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = fd;

	if (r >= 0)
		r = file_read(fd, path, TEMPLATE_SOURCE_MAX_FILE, &text, &n, &p->err);
	if (r < 0)
		return err_wrap(&p->err, r, "cannot read the Dockerfile");
	r = dockerfile_parse(text, args->n ? args->v : NULL, &b->file, &p->err);
	if (r == 0 && b->file.had_syntax)
		ui_note("Ignored the line '# syntax=', which would download another builder.");
	return r;
}

static int find_context(struct build *b, struct problem *p)
{
	const char *given = opts_value(b->o, "context");
	AUTO_FREE char *copy = xstrdup(opts_value(b->o, "file"));
	/* Not resolved: sbxd checks the symlinks in the path. */
	int r = walk_absolute(given ? given : dirname(copy), &b->context, &p->err);

	if (r == 0 && access(b->context, F_OK) < 0)
		return err_errno(&p->err, -errno, "cannot find the context %s",
			given ? given : "of the Dockerfile");
	return r;
}

/* claude-code-docker is the agent claude, with Docker as in all of our templates. */
static void template_of_tag(const char *tag, char *name, size_t size)
{
	static const char *const ends[] = {"-docker", "-minimal"};
	AUTO_FREE char *stem = xstrdup(tag);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (str_ends(stem, ends[i]))
			stem[strlen(stem) - strlen(ends[i])] = '\0';
	if (!stem[0] || !strcmp(stem, "shell") || !strcmp(stem, "latest"))
		(void)snprintf(name, size, "%s", TEMPLATE_SOURCE_BASE);
	else
		(void)snprintf(name, size, "%s", strcmp(stem, "claude-code") ? stem : "claude");
}

/* The template of a FROM; false if it is an image of a registry. */
static bool resolve_file(const char *ref, char *name, size_t size)
{
	char tag[DOCKERFILE_MAX_WORD];
	AUTO_TEMPLATE struct template t = {0};

	switch (dockerfile_kind(ref, tag, sizeof(tag))) {
	case DOCKERFILE_TEMPLATE:
		(void)snprintf(name, size, "%.*s", (int)size - 1, tag);
		return true;
	case DOCKERFILE_SANDBOX:
		template_of_tag(tag, name, size);
		if (template_open(name, &t, &(struct err){0}) < 0 &&
			strcmp(name, TEMPLATE_SOURCE_BASE) != 0) {
			ui_note("Template '%s' not found: '%s' is based on '%s'.", name, ref,
				TEMPLATE_SOURCE_BASE);
			(void)snprintf(name, size, "%s", TEMPLATE_SOURCE_BASE);
		}
		return true;
	case DOCKERFILE_OTHER:
		break;
	}
	return false;
}

static int add_alias(struct build *b, const char *ref, struct problem *p)
{
	size_t n = strlen(b->aliases);

	if (n + strlen(ref) + 2 > sizeof(b->aliases) || ref[strcspn(ref, ", \t'\"\\")])
		return err_set(&p->err, -EINVAL, "'FROM %.80s': invalid template name", ref);
	(void)snprintf(b->aliases + n, sizeof(b->aliases) - n, "%s%s", n ? "," : "", ref);
	return 0;
}

/* One sandbox has one root: all stages based on our templates share it. */
static int choose_base(struct build *b, struct problem *p)
{
	char name[TEMPLATE_MAX_NAME + 1];
	int r = 0;

	for (size_t i = 0; i < b->file.n && r == 0; i++) {
		const char *ref = b->file.stages[i].ref;

		if (dockerfile_is_stage(&b->file, i) || !resolve_file(ref, name, sizeof(name)))
			continue;
		if (b->base[0] && strcmp(b->base, name) != 0)
			return err_set(&p->err, -EINVAL,
				"the Dockerfile is based on two templates, '%s' and '%s': only one is supported",
				b->base, name);
		(void)snprintf(b->base, sizeof(b->base), "%s", name);
		r = add_alias(b, ref, p);
	}
	if (r == 0 && !b->base[0])
		(void)snprintf(b->base, sizeof(b->base), "%s", TEMPLATE_SOURCE_BASE);
	return r < 0 ? r : template_require(b->base, p);
}

/* ---- the scratch sandbox ---- */

static int start_file(struct build *b, struct problem *p)
{
	AUTO_FREE char *share = xasprintf("%s:" GUEST_CONTEXT ":ro", b->context);
	AUTO_FREE char *word = policy_shell_word(b->context);
	int r;

	ui_busy("starting a scratch sandbox");
	r = scratch_start(&b->box, b->base, share, opts_list(b->o, "allow-network"), p);
	if (r < 0 && strcmp(p->code, "planted-link") == 0)
		return problem_hint(p, r, "realpath %s", word);
	return r;
}

static int send_files(struct build *b, struct problem *p)
{
	static const char *const names[] = {"dockerfile-build", "apply-layers"};
	size_t n;
	int r = scratch_put(&b->box, GUEST_DIR "/Dockerfile", b->file.text, p);

	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
		AUTO_FREE char *path = paths_get(PATHS_LIBEXEC, "image/guest/%s", names[i]);
		AUTO_FREE char *text = NULL, *to = xasprintf(GUEST_DIR "/%s", names[i]);

		r = file_load(path, TEMPLATE_SOURCE_MAX_FILE, &text, &n, &p->err);
		if (r < 0)
			return err_errno(&p->err, r, "cannot read %s", path);
		r = scratch_put(&b->box, to, text, p);
	}
	return r;
}

static int build_inside(struct build *b, struct problem *p)
{
	const struct opt_list *args = opts_list(b->o, "build-arg");
	AUTO_FREE const char **argv = xcalloc(5 + 2 * args->n + 1, sizeof(*argv));
	size_t n = 0;

	argv[n++] = "sh";
	argv[n++] = GUEST_DIR "/dockerfile-build";
	argv[n++] = GUEST_CONTEXT;
	argv[n++] = b->aliases[0] ? b->aliases : "sbx-build/nothing";
	for (size_t i = 0; i < args->n; i++) {
		argv[n++] = "--build-arg";
		argv[n++] = args->v[i];
	}
	return scratch_run(&b->box, argv, p);
}

static int read_result(struct build *b, struct problem *p)
{
	AUTO_FREE char *text = NULL;
	int r = scratch_get(&b->box, GUEST_DIR "/result.json", MAX_RESULT, &text, p);

	if (r < 0)
		return r;
	b->result = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	return json_is_object(b->result)
		       ? 0
		       : err_set(&p->err, -EBADMSG,
				 "invalid response from the scratch sandbox: no image");
}

/* ---- the end ---- */

/* The manifest: ENV is used; other instructions have no meaning for a sandbox and are reported. */
static json_t *make_facts(const struct build *b)
{
	const json_t *c = json_object_get(b->result, "config");
	json_t *env = json_object_get(c, "Env");
	json_t *facts = json_pack("{s:s, s:s, s:s}", "kind", "dockerfile", "parent", b->base,
		"from", dockerfile_base(&b->file));
	json_t *config = json_pack("{s:O?, s:O?, s:O?, s:O?}", "user", json_object_get(c, "User"),
		"workdir", json_object_get(c, "WorkingDir"), "entrypoint",
		json_object_get(c, "Entrypoint"), "cmd", json_object_get(c, "Cmd"));

	(void)json_object_set(facts, "env", env ? env : json_null());
	(void)json_object_set_new(facts, "config", config ? config : json_null());
	return facts;
}

static void say_ignored(const json_t *facts)
{
	static const char *const keys[] = {"entrypoint", "cmd"};
	const json_t *config = json_object_get(facts, "config");

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (json_array_size(json_object_get(config, keys[i])) > 0)
			ui_note("The Dockerfile's %s is recorded in the template and not run: a "
				"sandbox runs its agent.",
				i == 0 ? "ENTRYPOINT" : "CMD");
}

/* From an image of a registry: exported from the sandbox as a file, then as any image. */
static int take_image(struct build *b, const char *name, const json_t *facts, struct problem *p)
{
	AUTO_FREE char *path = paths_get(PATHS_DATA, "templates/.save.%d", (int)getpid());
	AUTO_FREE char *ref = xasprintf("docker-archive:%s", path);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_errno(&p->err, -errno, "cannot create %s", path);
	ui_busy("copying the image out of the sandbox");
	r = scratch_save_image(&b->box, "sbx-build/result", fd, p);
	scratch_done(&b->box);
	if (r == 0)
		r = template_image_build(name, ref, false, false, facts, p);
	(void)unlink(path);
	return r;
}

static int finish_file(struct build *b, const char *name, struct problem *p)
{
	AUTO_JSON json_t *facts = make_facts(b);

	say_ignored(facts);
	if (!json_is_true(json_object_get(b->result, "own")))
		return take_image(b, name, facts, p);
	ui_busy("saving the template");
	return scratch_save(&b->box, name, facts, p);
}

int template_file_build(const char *name, const struct opts *o, struct problem *p)
{
	CLEANUP(build_done) struct build b = {.o = o};
	int r = read_file(&b, p);

	if (r == 0)
		r = find_context(&b, p);
	if (r == 0)
		r = choose_base(&b, p);
	if (r < 0)
		return r;
	follow_catch();
	r = start_file(&b, p);
	if (r == 0)
		r = send_files(&b, p);
	if (r == 0)
		r = build_inside(&b, p);
	if (r == 0)
		r = read_result(&b, p);
	if (r == 0)
		r = finish_file(&b, name, p);
	ui_progress_end();
	return r;
}
