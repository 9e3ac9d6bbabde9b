/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_checkpoint - checkpoints of a sandbox's disks.
 *
 * How      POST has the keeper freeze the disks with a label, or also save the memory; FROZEN adds
 *          the checkpoint to the list, even if the client has left: its audit record is written by
 *          then. A rewind is done here, under the lock of a stopped sandbox.
 * Trust    As api.h. FROZEN comes from a keeper: its label is checked.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "api_internal.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/keepers/keepers.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CHECKPOINT_MS 60000
#define MEMORY_MS 300000 /* as for a suspend, and the wake */

static void wait_checkpoint(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		api_fail(d, c, 503, "unresponsive", "timed out freezing the disks of the sandbox",
			"sbx stop SANDBOX");
}

static uint64_t bytes_of(const char *id, const unsigned layer[TEMPLATE_N_DISKS])
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	uint64_t bytes = 0;

	for (enum template_disk i = 0; i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *path = layers_path(dir, i, layer[i]);
		struct stat st;

		if (layer[i] && lstat(path, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	return bytes;
}

static int add_checkpoint(const char *id, const struct keeper_frozen *f, bool is_auto,
	struct checkpoint *ret, struct err *err)
{
	struct checkpoints list;
	struct checkpoint c = {.time_ms = clock_wall_ms(),
		.seq = f->seq,
		.pause_ms = f->pause_ms,
		.is_auto = is_auto};
	int r = checkpoints_load(id, &list, err);

	if (r < 0)
		return r;
	if (!checkpoints_is_label(f->label) || checkpoints_find(&list, f->label) ||
		list.n == CHECKPOINTS_MAX)
		return err_set(err, -EINVAL, "sbx-keeper reported an unexpected checkpoint");
	memcpy(c.label, f->label, sizeof(c.label));
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		c.layer[i] = f->layers[i];
	c.has_memory = memories_has(id, c.seq);
	c.bytes = bytes_of(id, c.layer) + memories_bytes(id, c.seq);
	list.v[list.n++] = *ret = c;
	r = checkpoints_save(id, &list, err);
	if (r == 0)
		memories_sweep(id, &list);
	return r;
}

/* The chain is full: removing the oldest checkpoint makes room. */
static void fail_frozen(struct sbxd *d, struct conn *c, const struct keeper_frozen *f)
{
	bool is_state = f->code == -EMLINK || f->code == -EBUSY;
	static struct checkpoints list;
	AUTO_FREE char *hint = NULL;

	if (f->code == -EMLINK && checkpoints_load(c->wait_id, &list, NULL) == 0 && list.n)
		hint = xasprintf("sbx stop --cold SANDBOX && sbx checkpoint --rm %s SANDBOX",
			list.v[0].label);
	api_fail(d, c, is_state ? 409 : 503, "not-frozen",
		hint	     ? "the disks have the maximum number of layers"
		: f->text[0] ? f->text
			     : strerror(-f->code),
		hint);
}

void api_checkpoint_frozen(
	struct sbxd *d, const struct keeper *k, struct conn *c, const struct keeper_frozen *f)
{
	bool is_auto = strcmp(f->label, k->autosave.label) == 0;
	struct checkpoint new = {0};
	struct err err = {0};
	int r = f->code < 0 ? 0 : add_checkpoint(k->id, f, is_auto, &new, &err);

	if (r < 0)
		log_warn("cannot list checkpoint '%s': %s", f->label, err_text(&err, r));
	if (is_auto && f->code < 0)
		autosave_failed(d, k->id, f->text[0] ? f->text : strerror(-f->code));
	else if (is_auto)
		autosave_trim(d, k->id);
	if (!c || c->wait != wait_checkpoint)
		return;
	if (f->code < 0)
		fail_frozen(d, c, f);
	else if (api_succeeded(d, c, r, &err))
		api_reply_json(d, c, 201, checkpoints_to_json(&new));
}

static bool is_ready(struct sbxd *d, struct conn *c, struct keeper *k)
{
	if (!k) {
		api_fail(d, c, 409, "conflict", "the sandbox is not running", "sbx start SANDBOX");
		return false;
	}
	if (strcmp(keeper_status(k), "running") != 0 || k->sock < 0 || k->other_build) {
		api_fail(d, c, 409, "conflict",
			"the sandbox is starting, stopping or not responding", "sbx ls");
		return false;
	}
	return true;
}

/* As for a suspend. */
static bool may_save_memory(
	struct sbxd *d, struct conn *c, const struct spec *spec, const struct keeper *k)
{
	AUTO_FREE char *disks = xasprintf("sbx checkpoint %s", spec->name);

	if (spec->staged)
		api_fail(d, c, 409, "conflict",
			"the memory of a sandbox with --staged cannot be saved: its changes are on its disk",
			disks);
	else if (spec->accel != SPEC_ACCEL_AUTO &&
		 strcmp(spec_accel_name(spec->accel), k->state.accel) != 0)
		api_fail(d, c, 409, "conflict",
			"--accel was changed, and saved memory works only with the current accelerator",
			"sbx restart SANDBOX");
	else
		return true;
	return false;
}

/* A label of the client must be new; without one, the next number. */
static int choose_label(
	struct checkpoints *list, char label[CHECKPOINTS_MAX_LABEL + 1], struct err *err)
{
	if (!label[0])
		checkpoints_next_label(list, label);
	if (!checkpoints_is_label(label))
		return err_set(err, -EINVAL,
			"invalid label: use lower-case letters, digits, '.', '_' and '-', first a letter, at most %d characters",
			CHECKPOINTS_MAX_LABEL);
	if (checkpoints_find(list, label))
		return err_set(err, -EEXIST, "checkpoint '%s' already exists", label);
	return 0;
}

void api_checkpoint(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	char label[CHECKPOINTS_MAX_LABEL + 1] = "";
	AUTO_ROW struct store_row row = {0};
	struct checkpoints list;
	struct err err = {0};
	bool is_auto = false, memory = false;
	struct keeper *k;
	int r = api_decode_checkpoint(c->http.body, label, sizeof(label), &is_auto, &memory, &err);

	if (!api_succeeded(d, c, r, &err) || !api_find(d, c, req->ref, &row))
		return;
	k = keeper_find(d, row.spec.id);
	if (!is_ready(d, c, k))
		return;
	if (memory && !may_save_memory(d, c, &row.spec, k))
		return;
	if (is_auto)
		checkpoints_auto_label(clock_wall_ms(), label);
	r = checkpoints_load(row.spec.id, &list, &err);
	if (r == 0)
		r = choose_label(&list, label, &err);
	if (r == -EEXIST)
		api_fail(d, c, 409, "conflict", err.text, "sbx checkpoint --ls SANDBOX");
	if (r == -EEXIST || !api_succeeded(d, c, r, &err))
		return;
	if (is_auto)
		(void)snprintf(k->autosave.label, sizeof(k->autosave.label), "%s", label);
	templates_pin_row(d, &row.spec);
	c->ask_id = keeper_next_ask(d);
	if (keeper_ask_freeze(k->sock, c->ask_id, label, memory) < 0)
		api_refuse(d, c, 503, "unresponsive", "sbx-keeper is not responding");
	else
		conn_wait(d, c, wait_checkpoint, k->id, memory ? MEMORY_MS : CHECKPOINT_MS);
}

void api_checkpoints(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct checkpoints list;
	struct err err = {0};
	json_t *o;

	if (!api_find(d, c, req->ref, &row))
		return;
	if (!api_succeeded(d, c, checkpoints_load(row.spec.id, &list, &err), &err))
		return;
	o = checkpoints_encode(&list);
	json_object_set_new(o, "sandbox", json_string(row.spec.name));
	api_reply_json(d, c, 200, o);
}

/* The layers that may be merged with the next one. */
static json_t *mergeable_layers(const char *dir, const struct checkpoints *list)
{
	json_t *o = json_object();

	for (enum template_disk i = 0; i < TEMPLATE_N_DISKS; i++) {
		json_t *numbers = json_array();
		struct layers l;

		merges_find(dir, list, i, &l);
		for (size_t k = 0; k < l.n; k++)
			json_array_append_new(numbers, json_integer(l.number[k]));
		json_object_set_new(o, template_disk_name(i), numbers);
	}
	return o;
}

static int remove_checkpoint(struct sbxd *d, const struct spec *spec, const char *label,
	struct checkpoints *list, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("checkpoint %.40s", label);
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "checkpoint-rm",
		.sandbox = spec->name,
		.reason = reason};
	AUTO_CLOSE int fd = api_hold_stopped(spec->id, err);
	struct checkpoint *c;
	int r = fd < 0 ? fd : checkpoints_load(spec->id, list, err);

	if (r < 0)
		return r;
	c = checkpoints_find(list, label);
	if (!c)
		return err_set(err, -ENOENT, "no checkpoint '%.40s'", label);
	r = journal_append(d, &e, err);
	if (r < 0)
		return r;
	checkpoints_remove(list, c);
	r = checkpoints_save(spec->id, list, err);
	if (r == 0)
		memories_sweep(spec->id, list);
	return r;
}

/* sbx merges the layers: that takes longer than sbxd may wait. */
void api_checkpoint_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	static struct checkpoints list;
	AUTO_FREE char *dir = NULL, *hint = NULL;
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	hint = xasprintf("sbx checkpoint --ls %s", row.spec.name);
	if (keeper_find(d, row.spec.id)) {
		api_fail(
			d, c, 409, "conflict", "the sandbox is running", "sbx stop --cold SANDBOX");
		return;
	}
	if (api_is_suspended(d, c, row.spec.id, "sbx stop --cold SANDBOX"))
		return;
	merges_stop(d, row.spec.id);
	r = remove_checkpoint(d, &row.spec, req->label, &list, &err);
	if (r == -ENOENT) {
		api_fail(d, c, 404, "not-found", err.text, hint);
	} else if (api_succeeded(d, c, r, &err)) {
		dir = paths_get(PATHS_STATE, "sandboxes/%s", row.spec.id);
		api_reply_json(d, c, 200,
			json_pack("{s:s,s:s,s:o,s:o}", "template", row.spec.template, "template_id",
				row.spec.template_id, "dir", api_text(dir), "merge",
				mergeable_layers(dir, &list)));
	}
}

static int rewind_stopped(
	struct sbxd *d, const struct spec *spec, const char *label, struct err *err)
{
	AUTO_FREE char *reason = label ? xasprintf("to checkpoint %s", label) : xstrdup("undo");
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "rewind",
		.sandbox = spec->name,
		.reason = reason};
	AUTO_CLOSE int fd = api_hold_stopped(spec->id, err);
	int r = fd < 0 ? fd : rewind_check(spec->id, label, err);

	if (r == 0)
		r = journal_append(d, &e, err);
	return r < 0 ? r : rewind_begin(spec->id, label, err);
}

void api_rewind(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	char label[CHECKPOINTS_MAX_LABEL + 1] = "";
	AUTO_FREE char *hint = NULL;
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r = api_decode_rewind(c->http.body, label, sizeof(label), &err);

	if (!api_succeeded(d, c, r, &err) || !api_find(d, c, req->ref, &row))
		return;
	if (keeper_find(d, row.spec.id)) {
		api_fail(
			d, c, 409, "conflict", "the sandbox is running", "sbx stop --cold SANDBOX");
		return;
	}
	merges_stop(d, row.spec.id);
	r = rewind_stopped(d, &row.spec, label[0] ? label : NULL, &err);
	if (r == -ENOENT) {
		hint = xasprintf("sbx checkpoint --ls %s", row.spec.name);
		api_fail(d, c, 404, "not-found", err.text, hint);
	} else if (api_succeeded(d, c, r, &err)) {
		conn_reply(d, c, 204, NULL);
	}
}
