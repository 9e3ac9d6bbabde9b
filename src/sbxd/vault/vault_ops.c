/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the vault: their clients, their records, and sbxd's own requests after the removal of
 * a sandbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "vault_internal.h"
#include "src/sbxd/http/http.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/program/run_ref.h"
#include "lib/vm/store/store.h"

struct vault_op *vault_link_ask(struct sbxd *d, enum vault_msg ask)
{
	struct vault_link *v = d->vault;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &v->op[i];

		if (op->state != VAULT_OP_FREE)
			continue;
		if (++v->last_id == 0)
			v->last_id = 1;
		*op = (struct vault_op){
			.state = VAULT_OP_QUEUED, .ask = ask, .id = v->last_id, .fd = -1};
		return op;
	}
	return NULL;
}

struct vault_op *vault_link_find(struct sbxd *d, uint32_t id)
{
	for (size_t i = 0; id && i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &d->vault->op[i];

		if (op->state != VAULT_OP_FREE && op->id == id)
			return op;
	}
	return NULL;
}

void vault_link_forget(struct sbxd *d, struct vault_op *op)
{
	fd_close(&op->fd);
	free(op->meta);
	free(op->ref);
	free(op->items);
	free(op->scanned);
	*op = (struct vault_op){.fd = -1};
}

int vault_op_register(struct sbxd *d, const struct vault_op *op, char text[VAULT_MAX_TEXT])
{
	struct err err = {0};
	int r = run_ref_save(op->done.number, op->ref, &err);

	d->vault->n_registered++;
	d->vault->sweep_due = true; /* programs that this credential replaced */
	if (r < 0)
		(void)snprintf(text, VAULT_MAX_TEXT, "%.*s", VAULT_MAX_TEXT - 1, err_text(&err, r));
	return r;
}

/* Programs of removed credentials are no longer executed. Skipped if one was registered after the
 * list was requested. */
static void forget_programs(struct sbxd *d, const struct vault_op *list)
{
	AUTO_FREE uint64_t *serials = xcalloc(list->n_items + 1, sizeof(*serials));
	size_t n = 0;

	if (list->n_registered != d->vault->n_registered)
		return;
	for (size_t i = 0; i < list->n_items; i++)
		if (list->items[i].ref != VAULT_REF_NONE)
			serials[n++] = list->items[i].serial;
	run_ref_keep(serials, n);
}

bool vault_op_is_change(const struct vault_op *op)
{
	return op->ask == VAULT_SET || op->ask == VAULT_SET_REF || op->ask == VAULT_REMOVE;
}

/* Records before the request is sent, and again if it failed. */
int vault_op_record(struct sbxd *d, const struct vault_op *op, const char *why, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s, %s%s%s%s", op->meta->name,
		!op->meta->scope[0] ? "all sandboxes"
		: op->sandbox[0]    ? "sandbox "
				    : "removed sandbox ",
		!op->meta->scope[0] ? ""
		: op->sandbox[0]    ? op->sandbox
				    : op->meta->scope,
		why ? ": not done: " : "", why ? why : "");
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
		.action = why			    ? "secret-failed"
			  : op->ask == VAULT_REMOVE ? "secret-rm"
						    : "secret-set",
		.sandbox = op->sandbox[0] ? op->sandbox : NULL,
		.reason = reason};

	return journal_append(d, &e, err);
}

void vault_op_finish(struct sbxd *d, struct vault_op *op, int code, const char *text)
{
	bool was_sent = op->state == VAULT_OP_SENT;
	struct err err = {0};

	op->state = VAULT_OP_FINISHED;
	op->done.code = code;
	(void)snprintf(op->done.text, sizeof(op->done.text), "%.*s", VAULT_MAX_TEXT - 1, text);
	fd_close(&op->fd);
	if (code < 0 && was_sent && vault_op_is_change(op) &&
		vault_op_record(d, op, op->done.text, &err) < 0)
		log_error("%s", err.text);
}

struct conn *vault_op_asker(struct sbxd *d, uint32_t id)
{
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		struct conn *c = d->conns->slot[i];

		if (c->state == CONN_WAITING && c->vault_op == id)
			return c;
	}
	return NULL;
}

/* ---- credentials of removed sandboxes ---- */

bool vault_ops_has_own(const struct vault_link *v)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state != VAULT_OP_FREE && v->op[i].is_own)
			return true;
	return false;
}

bool vault_link_is_sweeping(struct sbxd *d)
{
	const struct vault_link *v = d->vault;

	return clock_mono_ms() < v->sweep_until_ms && (v->sweep_due || vault_ops_has_own(v));
}

void vault_ops_sweep(struct sbxd *d)
{
	struct vault_op *op = vault_ops_has_own(d->vault) ? NULL : vault_link_ask(d, VAULT_LIST);

	if (!op)
		return;
	op->is_own = true;
	op->n_registered = d->vault->n_registered;
	d->vault->sweep_due = false;
}

/* Whether its sandbox no longer exists. Returns false if the registry cannot be read. */
static bool is_left_over(struct sbxd *d, const struct vault_item *item)
{
	AUTO_ROW struct store_row row = {0};

	return item->meta.scope[0] && store_get(d->store, item->meta.scope, &row, NULL) == -ENOENT;
}

static void go_on_sweeping(struct sbxd *d, const struct vault_op *list)
{
	if (list->done.code < 0) {
		d->vault->sweep_missed = true;
		return;
	}
	forget_programs(d, list);
	for (size_t i = 0; i < list->n_items; i++) {
		struct vault_op *op;

		if (!is_left_over(d, &list->items[i]))
			continue;
		op = vault_link_ask(d, VAULT_REMOVE);
		if (!op) {
			d->vault->sweep_due = true;
			return;
		}
		op->is_own = true;
		op->meta = xmalloc(sizeof(*op->meta));
		*op->meta = list->items[i].meta;
	}
}

/* ---- receivers of an answer ---- */

/* Returns true if one of sbxd's own was among them: more requests may follow. */
bool vault_ops_hand_out(struct sbxd *d)
{
	bool own = false;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &d->vault->op[i];
		struct conn *c;

		if (op->state != VAULT_OP_FINISHED)
			continue;
		if (op->is_own) {
			own = true;
			op->is_own = false;
			if (op->ask == VAULT_LIST)
				go_on_sweeping(d, op);
			vault_link_forget(d, op);
			continue;
		}
		c = vault_op_asker(d, op->id);
		if (c)
			c->wait(d, c, false);
		else
			vault_link_forget(d, op);
	}
	if (own && !vault_link_is_sweeping(d))
		conns_wake(d, NULL);
	return own;
}

/* The vault they were sent to has exited: read-only requests are sent again, once. */
void vault_ops_lost(struct sbxd *d, const char *why)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &d->vault->op[i];

		if (op->state != VAULT_OP_SENT)
			continue;
		if ((op->ask == VAULT_LIST || op->ask == VAULT_STATUS) && !op->was_lost) {
			op->state = VAULT_OP_QUEUED;
			op->was_lost = true;
			op->n_items = 0;
			continue;
		}
		vault_op_finish(d, op, -EIO, why);
	}
}

void vault_ops_fail_queued(struct sbxd *d, int code, const char *why)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (d->vault->op[i].state == VAULT_OP_QUEUED)
			vault_op_finish(d, &d->vault->op[i], code, why);
	d->vault->sweep_missed = d->vault->sweep_missed || d->vault->sweep_due;
	d->vault->sweep_due = false;
}

int vault_op_send(struct sbxd *d, struct vault_op *op)
{
	int sock = d->vault->sock;

	switch (op->ask) {
	case VAULT_SET:
		return vault_ask_set(sock, op->id, op->meta, op->fd);
	case VAULT_SET_REF:
		return vault_ask_set_ref(sock, op->id, op->meta, op->ref);
	case VAULT_REMOVE:
		return vault_ask_remove(sock, op->id, op->meta->name, op->meta->scope);
	case VAULT_SCAN:
		return vault_ask_scan(sock, op->id, op->control, op->fd);
	default:
		return chan_send_plain(sock, op->ask, op->id, op->fd);
	}
}

static bool is_pipe(const struct vault_op *op)
{
	return op->ask == VAULT_SET || op->ask == VAULT_UNLOCK;
}

bool vault_ops_sent(const struct vault_link *v)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state == VAULT_OP_SENT)
			return true;
	return false;
}

/* The oldest that may be sent now. */
struct vault_op *vault_ops_next(struct vault_link *v)
{
	struct vault_op *best = NULL;
	unsigned n_sent = 0, n_pipes = 0, n_scans = 0;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		n_sent += v->op[i].state == VAULT_OP_SENT;
		n_pipes += v->op[i].state == VAULT_OP_SENT && is_pipe(&v->op[i]);
		n_scans += v->op[i].state == VAULT_OP_SENT && v->op[i].ask == VAULT_SCAN;
	}
	if (n_sent >= VAULT_LINK_MAX_SENT)
		return NULL;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &v->op[i];

		if (op->state != VAULT_OP_QUEUED ||
			(is_pipe(op) && n_pipes >= VAULT_LINK_MAX_PIPES) ||
			(op->ask == VAULT_SCAN && n_scans)) /* the vault handles one at a time */
			continue;
		if (!best || op->id - best->id > UINT32_MAX / 2)
			best = op;
	}
	return best;
}
