/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <errno.h>
#include <string.h>

#include "lib/client/api/api.h"
#include "lib/base/mem.h"
#include "lib/vm/vmm/disk.h"
#include "lib/client/api/sandbox.h"

/* Facts of a template that do not apply to one created from it. */
static const char *const own_facts[] = {"format", "id", "created", "files", "name", "kind",
	"parent", "parent_id", "content", "packages"};

static json_t *make_facts(const struct template *parent, const json_t *frozen, const json_t *more)
{
	json_t *facts = json_deep_copy(parent->manifest);

	for (size_t i = 0; i < ARRAY_LEN(own_facts); i++)
		(void)json_object_del(facts, own_facts[i]);
	(void)json_object_set_new(facts, "kind", json_string("saved"));
	(void)json_object_set_new(facts, "parent", json_string(api_str(frozen, "template")));
	(void)json_object_set_new(facts, "parent_id", json_string(parent->id));
	if (more)
		(void)json_object_update(facts, (json_t *)more);
	return facts;
}

/* Calls fn with each layer of the sandbox's disks, the lowest of a disk first. */
static int each_layer(const json_t *frozen, void *arg,
	int (*fn)(
		void *arg, enum template_disk disk, size_t n, const char *path, struct problem *p),
	struct problem *p)
{
	const json_t *layers = json_object_get(frozen, "layers"), *path;
	int r = 0;

	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		const json_t *list =
			json_object_get(layers, template_disk_name((enum template_disk)i));
		size_t k;

		json_array_foreach (list, k, path) {
			if (!json_is_string(path))
				return err_set(&p->err, -EPROTO,
					"invalid response from sbxd: no list of layers");
			r = fn(arg, (enum template_disk)i, k, json_string_value(path), p);
			if (r < 0)
				return r;
		}
	}
	return r;
}

struct adding {
	struct template_draft *draft;
	bool live;
};

static int add_layer(
	void *arg, enum template_disk disk, size_t n, const char *path, struct problem *p)
{
	struct adding *a = arg;

	if (a->live)
		ui_busy("copying the disks");
	return template_draft_add_layer(a->draft, disk, path, a->live, &p->err);
}

struct sharing {
	const struct template *parent, *made;
};

static int share_layer(
	void *arg, enum template_disk disk, size_t n, const char *path, struct problem *p)
{
	struct sharing *s = arg;

	template_share_layer(s->made, disk, s->parent->disks[disk].n + n, path);
	return 0;
}

static int open_parent(const json_t *frozen, struct template *ret, struct problem *p)
{
	const char *id = api_str(frozen, "template_id"), *name = api_str(frozen, "template");
	int r = template_open_shown(id[0] ? id : name, template_show, NULL, ret, &p->err);

	return r < 0 ? err_wrap(&p->err, r, "template '%s' of the sandbox", name) : 0;
}

/* Replaces each chain by one raw file. */
static int flatten_save(struct template_draft *d, struct problem *p)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++) {
		const struct template_chain *c = &d->disks[i];
		const char *stem = template_disk_name((enum template_disk)i);
		AUTO_FREE char *out = xasprintf("%s/%s.flat", d->dir, stem),
			       *name = xasprintf("%s.img", stem),
			       *text = xasprintf("merging the layers of disk %s", stem);

		if (c->n < 2)
			continue;
		ui_busy(text);
		r = disk_flatten((const char *const *)c->files, c->n, out, &p->err);
		if (r == 0)
			r = template_draft_take(d, name, out, &p->err);
	}
	return r;
}

int template_save_as(
	const char *ref, const struct template_wish *wish, struct template *ret, struct problem *p)
{
	AUTO_DRAFT struct template_draft draft = {0};
	AUTO_TEMPLATE struct template parent = {0};
	AUTO_JSON json_t *frozen = NULL, *facts = NULL;
	struct adding adding = {.draft = &draft};
	int r;

	if (!template_is_name(wish->name))
		return err_set(&p->err, -EINVAL,
			"invalid template name '%.80s': use letters, digits, '.' and '-', at most %d characters, and not 16 hex digits",
			wish->name, TEMPLATE_MAX_NAME);
	ui_busy("freezing the disks");
	r = sandbox_call("POST", ref, "/freeze", NULL, TEMPLATE_FREEZE_MS, &frozen, p);
	if (r == 0)
		r = open_parent(frozen, &parent, p);
	if (r == 0)
		r = template_draft_begin(&draft, &p->err);
	if (r == 0)
		r = template_draft_add_template(&draft, &parent, &p->err);
	/* A flat template has one new file instead of the layers. */
	adding.live = !wish->flat && json_is_true(json_object_get(frozen, "live"));
	if (r == 0)
		r = each_layer(frozen, &adding, add_layer, p);
	if (r == 0 && wish->flat)
		r = flatten_save(&draft, p);
	ui_progress_end();
	if (r < 0)
		return r;
	facts = make_facts(&parent, frozen, wish->facts);
	r = template_publish(&draft, wish->name, facts, ret, p);
	if (r < 0 || !adding.live)
		return r;
	return each_layer(
		frozen, &(struct sharing){.parent = &parent, .made = ret}, share_layer, p);
}

int template_save(const char *ref, const char *name, const json_t *facts, struct problem *p)
{
	AUTO_TEMPLATE struct template t = {0};

	return template_save_as(ref, &(struct template_wish){.name = name, .facts = facts}, &t, p);
}
