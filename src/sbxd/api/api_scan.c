/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a file, a stream or the memory of a VM from the request to the vault, which searches it
 * for credential values. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include "api_internal.h"
#include "api_vault.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

static json_t *found_to_json(struct sbxd *d, const struct vault_found *f)
{
	AUTO_ROW struct store_row row = {0};
	bool known = f->scope[0] && store_get(d->store, f->scope, &row, NULL) == 0;

	return json_pack("{s:o,s:s,s:o,s:I}", "name", api_text(f->name), "scope",
		f->scope[0] ? "sandbox" : "global", "sandbox",
		known ? api_text(row.spec.name) : json_null(), "times", (json_int_t)f->times);
}

static void reply_scanned(struct sbxd *d, struct conn *c, struct vault_op *op)
{
	const struct vault_scanned *s = op->scanned;
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, found_to_json(d, &s->v[i]));
	api_reply_json(d, c, 200,
		json_pack("{s:I,s:i,s:i,s:i,s:I,s:o}", "bytes", (json_int_t)s->bytes, "values",
			(int)s->n_looked, "left_out", (int)s->n_left, "found", (int)s->n_found,
			"control", (json_int_t)s->control, "credentials", list));
}

void api_secret_scan(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_CLOSE int fd = api_take_passed(d, c, "expected one descriptor with the data to scan");
	struct vault_op *op;

	if (fd < 0)
		return;
	/* do not create a vault only to search for nothing */
	if (!vault_link_has_vault(d)) {
		api_reply_json(d, c, 200,
			json_pack("{s:i,s:i,s:i,s:i,s:i,s:[]}", "bytes", 0, "values", 0, "left_out",
				0, "found", 0, "control", 0, "credentials"));
		return;
	}
	op = api_vault_op(d, c, VAULT_SCAN);
	if (!op)
		return;
	op->fd = TAKE_FD(fd);
	op->scanned = xcalloc(1, sizeof(*op->scanned));
	(void)snprintf(op->control, sizeof(op->control), "%s", req->control ? req->control : "");
	api_vault_ask(d, c, op, reply_scanned, VAULT_HELLO_MS + 2 * VAULT_SCAN_MS);
}
