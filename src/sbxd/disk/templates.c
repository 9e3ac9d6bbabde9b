/* SPDX-License-Identifier: Apache-2.0 */
#include "templates.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/vm/store/store.h"
#include "lib/vm/template/template.h"
#include "images.h"

static_assert(SPEC_TEMPLATE_ID_LEN == TEMPLATE_ID_LEN, "one id");

void templates_pin(struct spec *spec)
{
	char id[TEMPLATE_ID_LEN + 1];

	if (!spec->template_id[0] && template_resolve(spec->template, id, NULL) == 0)
		memcpy(spec->template_id, id, sizeof(id));
}

void templates_pin_row(struct sbxd *d, struct spec *spec)
{
	struct err err = {0};

	if (spec->template_id[0])
		return;
	templates_pin(spec);
	/* No new generation: the spec did not change, only the id was determined. */
	if (spec->template_id[0] && store_update(d->store, spec, spec->generation, &err) < 0) {
		log_warn("cannot pin %s to its template: %s", spec->name, err.text);
		spec->template_id[0] = '\0';
	}
}

/* Of all rows: used ids, and rows without an id. */
struct used {
	char **ids, **open;
	size_t n_ids, n_open;
};

static void add_text(char ***list, size_t *n, const char *s)
{
	*list = xrealloc(*list, (*n + 1) * sizeof(char *));
	(*list)[(*n)++] = xstrdup(s);
}

static void used_done(struct used *u)
{
	for (size_t i = 0; i < u->n_ids; i++)
		free(u->ids[i]);
	for (size_t i = 0; i < u->n_open; i++)
		free(u->open[i]);
	free(u->ids);
	free(u->open);
}

static int note_row(void *arg, const struct store_row *row)
{
	struct used *u = arg;

	if (row->spec.template_id[0])
		add_text(&u->ids, &u->n_ids, row->spec.template_id);
	else
		add_text(&u->open, &u->n_open, row->spec.id);
	return 0;
}

/* Rows are changed after the walk. */
void templates_pin_all(struct sbxd *d)
{
	CLEANUP(used_done) struct used u = {0};
	struct err err = {0};

	if (store_list(d->store, NULL, 0, note_row, &u, &err) < 0) {
		log_warn("%s", err.text);
		return;
	}
	for (size_t i = 0; i < u.n_open; i++) {
		AUTO_ROW struct store_row row = {0};

		if (store_get(d->store, u.open[i], &row, NULL) == 0)
			templates_pin_row(d, &row.spec);
	}
}

void templates_collect(struct sbxd *d)
{
	CLEANUP(used_done) struct used u = {0};
	struct err err = {0};
	int r;

	templates_pin_all(d);
	r = store_list(d->store, NULL, 0, note_row, &u, &err);
	if (r == 0)
		r = template_collect((const char *const *)u.ids, u.n_ids, &err);
	images_collect();
	if (r < 0)
		log_warn("cannot remove unused templates: %s", err_text(&err, r));
}
