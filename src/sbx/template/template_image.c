/* SPDX-License-Identifier: Apache-2.0 */
#include "template_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/template/template.h"
#include "lib/client/api/api.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/follow.h"
#include "src/sbx/disk/disk.h"

#define IMAGE_MS (3 * 3600 * 1000ull) /* the helper has its own limits for each step */

static const char *const parts[] = {"root.img", "docker.img", "vmlinuz", "modules.cpio"};

static void show_image(void *arg, char *line)
{
	int percent, at;

	if (sscanf(line, "%d%n", &percent, &at) == 1 && percent >= 0 && percent <= 100)
		ui_progress((unsigned)percent, line + at + strspn(line + at, " "));
}

/* The helper leaves a complete directory `out`, or none. */
static int run_helper(const char *base, const char *ref, bool plain, bool login, const char *out,
	struct problem *p)
{
	AUTO_FREE char *program = daemon_helper_path("template-oci"),
		       *graft = daemon_helper_path("sbx-graft"),
		       *sudo = daemon_helper_path("sbx-sudo");
	const char *argv[] = {program, "--image", ref, "--base", base, "--out", out, "--graft",
		graft, "--sudo", sudo, plain ? "--plain-http" : NULL, NULL, NULL};
	struct follow f = {.argv = argv,
		.lines = 3,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = IMAGE_MS,
		.fn = show_image};
	int status;

	if (login)
		argv[plain ? 12 : 11] = "--use-docker-login";
	follow_catch();
	status = follow_run(&f, &p->err);
	ui_progress_end();
	if (status < 0)
		return status;
	if (status > 0)
		return err_set(&p->err, follow_caught() ? -EINTR : -EIO,
			"cannot build a template from %s (status %d)", ref, status);
	return 0;
}

/* Kernel, modules and Docker's disk come from the base: its author is an author of this one too. */
static int publish_image(const char *name, const char *out, const struct template *base,
	const json_t *more, struct problem *p)
{
	AUTO_FREE char *facts_path = xasprintf("%s/facts.json", out);
	AUTO_JSON json_t *facts = json_load_file(facts_path, JSON_REJECT_DUPLICATES, NULL);
	AUTO_DRAFT struct template_draft draft = {0};
	AUTO_TEMPLATE struct template made = {0};
	int r;

	if (!facts)
		return err_set(&p->err, -EIO, "invalid response from the helper: no template");
	if (more) {
		(void)json_object_del(facts, "image");
		(void)json_object_update(facts, (json_t *)more);
	}
	if (json_is_true(json_object_get(base->manifest, "loaded")))
		(void)json_object_set_new(facts, "loaded", json_true());
	r = template_draft_begin(&draft, &p->err);
	for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", out, parts[i]);

		r = template_draft_take(&draft, parts[i], path, &p->err);
	}
	if (r == 0)
		r = template_publish(&draft, name, facts, &made, p);
	return r;
}

static void say_facts(const char *out)
{
	AUTO_FREE char *path = xasprintf("%s/facts.json", out);
	AUTO_JSON json_t *facts = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);

	if (!facts)
		return;
	ui_note("image        %s", api_str(facts, "digest"));
	if (!json_is_true(json_object_get(facts, "docker")))
		ui_note("docker       not in the image: sandboxes of this template have no Docker");
	if (strcmp(api_str(facts, "sudo"), "ours") == 0)
		ui_note("sudo         not in the image: a small sudo was added");
}

int template_image_build(const char *name, const char *ref, bool plain, bool login,
	const json_t *more, struct problem *p)
{
	AUTO_FREE char *out = paths_get(PATHS_DATA, "templates/.oci.%d", (int)getpid());
	AUTO_TEMPLATE struct template base = {0};
	int r = template_require(TEMPLATE_SOURCE_BASE, p);

	if (r == 0)
		r = template_open(TEMPLATE_SOURCE_BASE, &base, &p->err);
	if (r == 0)
		r = run_helper(base.dir, ref, plain, login, out, p);
	if (r < 0)
		return r;
	say_facts(out);
	r = publish_image(name, out, &base, more, p);
	(void)!template_remove(out, NULL);
	return r;
}
