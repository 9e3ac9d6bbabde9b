/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

bool checkpoints_is_label(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-");

	return n > 0 && n <= CHECKPOINTS_MAX_LABEL && !s[n] && s[0] >= 'a' && s[0] <= 'z';
}

static char *file_of(const char *id)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/checkpoints", id);
}

static bool take_number(const json_t *o, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	*ret = (uint64_t)n;
	return json_is_integer(v) && n >= 0 && (uint64_t)n <= max;
}

static bool take_layers(const json_t *o, unsigned ret[TEMPLATE_N_DISKS])
{
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		uint64_t n;

		if (!take_number(
			    o, template_disk_name((enum template_disk)i), LAYERS_MAX_NUMBER, &n))
			return false;
		ret[i] = (unsigned)n;
	}
	return true;
}

static bool take_checkpoint(const json_t *o, struct checkpoint *ret)
{
	const char *label = json_string_value(json_object_get(o, "label"));
	/* absent: written by an older sbxd */
	const json_t *is_auto = json_object_get(o, "auto"),
		     *memory = json_object_get(o, "with_memory");
	bool ok = (!is_auto || json_is_boolean(is_auto)) && (!memory || json_is_boolean(memory)) &&
		  label && checkpoints_is_label(label) &&
		  str_copy(ret->label, sizeof(ret->label), label) == 0;

	ret->is_auto = json_is_true(is_auto);
	ret->has_memory = json_is_true(memory);
	ok = ok && take_number(o, "created_at", INT64_MAX, &ret->time_ms) &&
	     take_number(o, "seq", INT64_MAX, &ret->seq) &&
	     take_number(o, "bytes", INT64_MAX, &ret->bytes) &&
	     take_number(o, "pause_ms", INT64_MAX, &ret->pause_ms);
	return ok && take_layers(json_object_get(o, "layers"), ret->layer);
}

static bool is_listed(const struct checkpoint *v, size_t n, const char *label)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].label, label) == 0)
			return true;
	return false;
}

static bool take_list(const json_t *list, struct checkpoint v[CHECKPOINTS_MAX], size_t *ret_n)
{
	const json_t *o;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > CHECKPOINTS_MAX)
		return false;
	json_array_foreach (list, i, o) {
		struct checkpoint c = {0};

		if (!take_checkpoint(o, &c) || is_listed(v, *ret_n, c.label))
			return false;
		v[(*ret_n)++] = c;
	}
	return true;
}

bool checkpoints_decode(const json_t *o, struct checkpoints *ret)
{
	const json_t *aside = json_object_get(o, "aside");

	if (!take_list(json_object_get(o, "checkpoints"), ret->v, &ret->n))
		return false;
	ret->has_aside = aside;
	return !aside ||
	       (take_number(aside, "set_aside_at", INT64_MAX, &ret->aside_ms) &&
		       take_layers(json_object_get(aside, "layers"), ret->keep) &&
		       take_list(json_object_get(aside, "checkpoints"), ret->aside, &ret->n_aside));
}

int checkpoints_load(const char *id, struct checkpoints *ret, struct err *err)
{
	AUTO_FREE char *path = file_of(id), *text = NULL;
	json_auto_t *o = NULL;
	size_t n = 0;
	int r = file_load_no_link(path, CHECKPOINTS_MAX_BYTES, &text, &n, err);

	*ret = (struct checkpoints){0};
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	o = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (!checkpoints_decode(o, ret))
		return err_set(err, -EBADMSG, "invalid list of checkpoints: %s", path);
	return 0;
}

static json_t *layers_json(const unsigned layer[TEMPLATE_N_DISKS])
{
	return json_pack("{s:i,s:i}", template_disk_name(TEMPLATE_ROOT), (int)layer[TEMPLATE_ROOT],
		template_disk_name(TEMPLATE_DOCKER), (int)layer[TEMPLATE_DOCKER]);
}

json_t *checkpoints_to_json(const struct checkpoint *c)
{
	return json_pack("{s:s,s:b,s:b,s:I,s:I,s:I,s:I,s:o}", "label", c->label, "auto", c->is_auto,
		"with_memory", c->has_memory, "created_at", (json_int_t)c->time_ms, "seq",
		(json_int_t)c->seq, "bytes", (json_int_t)c->bytes, "pause_ms",
		(json_int_t)c->pause_ms, "layers", layers_json(c->layer));
}

static json_t *list_json(const struct checkpoint *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, checkpoints_to_json(&v[i]));
	return list;
}

json_t *checkpoints_encode(const struct checkpoints *l)
{
	json_t *o = json_pack("{s:o}", "checkpoints", list_json(l->v, l->n));

	if (l->has_aside)
		json_object_set_new(o, "aside",
			json_pack("{s:I,s:o,s:o}", "set_aside_at", (json_int_t)l->aside_ms,
				"layers", layers_json(l->keep), "checkpoints",
				list_json(l->aside, l->n_aside)));
	return o;
}

int checkpoints_save(const char *id, const struct checkpoints *l, struct err *err)
{
	AUTO_FREE char *path = file_of(id), *text = NULL;
	json_auto_t *o = checkpoints_encode(l);

	text = json_dumps(o, JSON_COMPACT);
	return text ? file_save(path, slice_from_str(text), err) : -ENOMEM;
}

struct checkpoint *checkpoints_find(struct checkpoints *l, const char *label)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].label, label) == 0)
			return &l->v[i];
	return NULL;
}

void checkpoints_remove(struct checkpoints *l, struct checkpoint *c)
{
	memmove(c, c + 1, (size_t)(l->v + l->n - (c + 1)) * sizeof(*c));
	l->n--;
}

void checkpoints_auto_label(uint64_t time_ms, char ret[CHECKPOINTS_MAX_LABEL + 1])
{
	time_t t = (time_t)(time_ms / 1000);
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
		!strftime(ret, CHECKPOINTS_MAX_LABEL + 1, "auto-%Y%m%d-%H%M%S", &tm))
		ret[0] = '\0';
}

struct checkpoint *checkpoints_over(struct checkpoints *l, uint64_t keep)
{
	struct checkpoint *oldest = NULL;
	uint64_t n = 0;

	for (size_t i = l->n; i-- > 0;)
		if (l->v[i].is_auto) {
			oldest = &l->v[i];
			n++;
		}
	return keep && n > keep ? oldest : NULL;
}

void checkpoints_next_label(struct checkpoints *l, char ret[CHECKPOINTS_MAX_LABEL + 1])
{
	unsigned n = 0;

	do
		(void)snprintf(ret, CHECKPOINTS_MAX_LABEL + 1, "c%u", ++n);
	while (checkpoints_find(l, ret));
}

bool checkpoints_may_merge(const struct checkpoints *l, enum template_disk disk, unsigned number)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].layer[disk] == number)
			return false;
	return !l->has_aside || l->keep[disk] != number;
}
