/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_template - templates lose their names, and the disks of sandboxes become layers.
 *
 * How      The command line publishes a template; only the part that depends on all sandboxes is
 *          done here. The keeper freezes the disks of a running sandbox. Of a stopped one they are
 *          frozen under its lock, by a rename: the next start creates a new top.
 * Trust    As api.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api_internal.h"
#include "src/sbxd/disk/disk.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/template/layers.h"

#define FREEZE_MS 60000
#define SUSPENDED "the sandbox is suspended, and its programs need its disks"

void api_template_collect(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	templates_collect(d);
	conn_reply(d, c, 204, NULL);
}

void api_template_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct err err = {0};
	int r;

	templates_pin_all(d);
	r = template_untag(req->ref, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	templates_collect(d);
	conn_reply(d, c, 204, NULL);
}

static json_t *list_layers(const char *dir, enum template_disk disk, unsigned last)
{
	json_t *list = json_array();
	struct layers l;

	if (layers_find(dir, disk, &l) < 0)
		return list;
	for (size_t i = 0; i < l.n && l.number[i] <= last; i++) {
		AUTO_FREE char *path = layers_path(dir, disk, l.number[i]);

		json_array_append_new(list, api_text(path));
	}
	return list;
}

/* live: a running QEMU had some of them open for writing. */
static void reply_layers(
	struct sbxd *d, struct conn *c, const char *id, const uint16_t *last, bool live)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	json_t *o = json_object(), *lists = json_object();
	AUTO_ROW struct store_row row = {0};

	if (!api_find(d, c, id, &row)) {
		json_decref(o);
		json_decref(lists);
		return;
	}
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		json_object_set_new(lists, template_disk_name((enum template_disk)i),
			list_layers(dir, (enum template_disk)i, last[i]));
	}
	json_object_set_new(o, "template", json_string(row.spec.template));
	json_object_set_new(o, "template_id", json_string(row.spec.template_id));
	json_object_set_new(o, "agent", json_string(row.spec.agent));
	json_object_set_new(o, "layers", lists);
	json_object_set_new(o, "live", json_boolean(live));
	api_reply_json(d, c, 200, o);
}

static int freeze_disk(
	const char *dir, enum template_disk disk, uint16_t *ret_last, struct err *err)
{
	AUTO_FREE char *top = layers_path(dir, disk, 0), *layer = NULL;
	struct layers l;
	int r = layers_find(dir, disk, &l);

	if (r < 0)
		return err_errno(err, r, "cannot read the layers in %s", dir);
	*ret_last = (uint16_t)layers_last(&l);
	/* The top may not exist yet, or the last freeze may have renamed it. */
	if (access(top, F_OK) < 0)
		return 0;
	if (l.n + 1 >= LAYERS_MAX - TEMPLATE_MAX_LAYERS || *ret_last >= LAYERS_MAX_NUMBER)
		return err_set(err, -EBUSY,
			"the disks have too many layers to be saved again: use `sbx template save --flat` and create a new sandbox from that template");
	layer = layers_path(dir, disk, ++*ret_last);
	return rename(top, layer) < 0 ? err_errno(err, -errno, "cannot move %s", top) : 0;
}

/* A rewind that was interrupted is completed first: to a checkpoint with memory, it suspends the
 * sandbox. */
static int hold_disks(const char *id, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id),
		       *path = xasprintf("%s/lock", dir);
	AUTO_CLOSE int fd = -1;
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	fd = file_lock(path, 0, err);
	if (fd != -EBUSY && fd < 0)
		return fd;
	if (fd < 0)
		return err_set(err, -EBUSY,
			"the previous sbx-keeper of the sandbox is still running: try again later");
	r = rewind_settle(id, err);
	return r < 0 ? r : TAKE_FD(fd);
}

int api_settle_disks(const char *id, struct err *err)
{
	AUTO_FREE char *plan = paths_get(PATHS_STATE, "sandboxes/%s/rewind", id);
	AUTO_CLOSE int fd = -1;

	if (access(plan, F_OK) < 0 && errno == ENOENT)
		return 0;
	fd = hold_disks(id, err);
	return fd < 0 ? fd : 0;
}

int api_hold_stopped(const char *id, struct err *err)
{
	AUTO_FREE char *memory = paths_get(PATHS_STATE, "sandboxes/%s/suspend", id);
	AUTO_CLOSE int fd = hold_disks(id, err);

	if (fd < 0)
		return fd;
	if (access(memory, F_OK) == 0)
		return err_set(err, -EBUSY, SUSPENDED ": start it first");
	return TAKE_FD(fd);
}

bool api_is_suspended(struct sbxd *d, struct conn *c, const char *id, const char *hint)
{
	if (!kept_is_there(id))
		return false;
	api_fail(d, c, 409, "conflict", SUSPENDED, hint);
	return true;
}

static int freeze_stopped(const char *id, uint16_t layers[TEMPLATE_N_DISKS], struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	AUTO_CLOSE int fd = api_hold_stopped(id, err);
	int r = fd < 0 ? fd : 0;

	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = freeze_disk(dir, (enum template_disk)i, &layers[i], err);
	return r;
}

static void wait_freeze(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		api_fail(d, c, 503, "unresponsive", "timed out freezing the disks of the sandbox",
			"sbx stop SANDBOX");
}

void api_on_frozen(
	struct sbxd *d, const struct keeper *k, uint32_t ask, const struct keeper_frozen *frozen)
{
	struct conn *c = conns_find_asker(d, k->id, ask);

	if (frozen->label[0]) {
		api_checkpoint_frozen(d, k, c, frozen);
		return;
	}
	if (!c || c->wait != wait_freeze)
		return;
	if (frozen->code < 0)
		api_fail(d, c, frozen->code == -EMLINK || frozen->code == -EBUSY ? 409 : 503,
			"not-frozen", frozen->text[0] ? frozen->text : strerror(-frozen->code),
			NULL);
	else
		reply_layers(d, c, k->id, frozen->layers, true);
}

static void freeze_running(struct sbxd *d, struct conn *c, struct keeper *k)
{
	if (strcmp(keeper_status(k), "running") != 0 || k->sock < 0 || k->other_build) {
		api_fail(d, c, 409, "conflict",
			"the sandbox is starting, stopping or not responding", "sbx ls");
		return;
	}
	c->ask_id = keeper_next_ask(d);
	if (keeper_ask_freeze(k->sock, c->ask_id, "", false) < 0) {
		api_refuse(d, c, 503, "unresponsive", "sbx-keeper is not responding");
		return;
	}
	conn_wait(d, c, wait_freeze, k->id, FREEZE_MS);
}

void api_freeze(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	uint16_t layers[TEMPLATE_N_DISKS] = {0};
	struct err err = {0};
	struct keeper *k;
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	templates_pin_row(d, &row.spec);
	k = keeper_find(d, row.spec.id);
	if (k) {
		freeze_running(d, c, k);
		return;
	}
	if (api_is_suspended(d, c, row.spec.id, "sbx start SANDBOX"))
		return;
	merges_stop(d, row.spec.id);
	r = freeze_stopped(row.spec.id, layers, &err);
	if (api_succeeded(d, c, r, &err))
		reply_layers(d, c, row.spec.id, layers, false);
}
