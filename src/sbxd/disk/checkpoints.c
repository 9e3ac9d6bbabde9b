/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

static bool take_checkpoint(const json_t *o, struct checkpoint *ret)
{
	const char *label = json_string_value(json_object_get(o, "label"));
	const json_t *layers = json_object_get(o, "layers");
	bool ok = label && checkpoints_is_label(label) &&
		  str_copy(ret->label, sizeof(ret->label), label) == 0;

	ok = ok && take_number(o, "created_at", INT64_MAX, &ret->time_ms) &&
	     take_number(o, "seq", INT64_MAX, &ret->seq) &&
	     take_number(o, "bytes", INT64_MAX, &ret->bytes) &&
	     take_number(o, "pause_ms", INT64_MAX, &ret->pause_ms);
	for (size_t i = 0; ok && i < TEMPLATE_N_DISKS; i++) {
		uint64_t n;

		ok = take_number(
			layers, template_disk_name((enum template_disk)i), LAYERS_MAX_NUMBER, &n);
		ret->layer[i] = (unsigned)n;
	}
	return ok;
}

static bool take_list(const json_t *list, struct checkpoints *ret)
{
	const json_t *o;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > CHECKPOINTS_MAX)
		return false;
	json_array_foreach (list, i, o) {
		struct checkpoint c = {0};

		if (!take_checkpoint(o, &c) || checkpoints_find(ret, c.label))
			return false;
		ret->v[ret->n++] = c;
	}
	return true;
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
	if (!take_list(json_object_get(o, "checkpoints"), ret))
		return err_set(err, -EBADMSG, "invalid list of checkpoints: %s", path);
	return 0;
}

json_t *checkpoints_to_json(const struct checkpoint *c)
{
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:{s:i,s:i}}", "label", c->label, "created_at",
		(json_int_t)c->time_ms, "seq", (json_int_t)c->seq, "bytes", (json_int_t)c->bytes,
		"pause_ms", (json_int_t)c->pause_ms, "layers", template_disk_name(TEMPLATE_ROOT),
		(int)c->layer[TEMPLATE_ROOT], template_disk_name(TEMPLATE_DOCKER),
		(int)c->layer[TEMPLATE_DOCKER]);
}

int checkpoints_save(const char *id, const struct checkpoints *l, struct err *err)
{
	AUTO_FREE char *path = file_of(id), *text = NULL;
	json_auto_t *o = json_pack("{s:[]}", "checkpoints");

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(
			json_object_get(o, "checkpoints"), checkpoints_to_json(&l->v[i]));
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

void checkpoints_next_label(struct checkpoints *l, char ret[CHECKPOINTS_MAX_LABEL + 1])
{
	unsigned n = 0;

	do
		(void)snprintf(ret, CHECKPOINTS_MAX_LABEL + 1, "c%u", ++n);
	while (checkpoints_find(l, ret));
}
