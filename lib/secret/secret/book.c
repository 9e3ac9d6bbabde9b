/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"

void book_entry_free(struct book_entry *e)
{
	if (!e)
		return;
	secret_done(&e->value);
	free(e);
}

static void free_entry_ptr(struct book_entry **e)
{
	book_entry_free(*e);
}

void book_done(struct book *b)
{
	for (size_t i = 0; i < b->n; i++)
		book_entry_free(b->list[i]);
	*b = (struct book){0};
}

struct book_entry *book_find(struct book *b, const char *name, const char *scope)
{
	for (size_t i = 0; i < b->n; i++) {
		if (strcmp(b->list[i]->meta.name, name) == 0 &&
			strcmp(b->list[i]->meta.scope, scope) == 0)
			return b->list[i];
	}
	return NULL;
}

struct book_entry *book_fit(struct book *b, const char *name, const char *sandbox)
{
	struct book_entry *own = sandbox[0] ? book_find(b, name, sandbox) : NULL;

	return own ? own : book_find(b, name, "");
}

struct book_entry *book_by_serial(struct book *b, uint64_t serial)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->list[i]->serial == serial)
			return b->list[i];
	}
	return NULL;
}

struct book_entry *book_next(struct book *b, uint64_t after, const char *sandbox)
{
	struct book_entry *next = NULL;

	for (size_t i = 0; i < b->n; i++) {
		struct book_entry *e = b->list[i];

		if (sandbox[0] && e->meta.scope[0] && strcmp(e->meta.scope, sandbox) != 0)
			continue;
		if (e->serial > after && (!next || e->serial < next->serial))
			next = e;
	}
	return next;
}

bool book_has_room(const struct book *b, size_t n)
{
	for (size_t i = 0; i < b->n; i++)
		n += b->list[i]->value.n;
	return n <= BOOK_MAX_TOTAL;
}

int book_put(struct book *b, struct book_entry *e, struct book_entry **ret_old, struct err *err)
{
	struct book_entry *old = book_find(b, e->meta.name, e->meta.scope);

	if (!book_has_room(b, e->value.n))
		return err_set(
			err, -ENOSPC, "the vault is full: %u bytes of values", BOOK_MAX_TOTAL);
	if (!old && b->n == BOOK_MAX)
		return err_set(err, -ENOSPC, "the vault is full: %d credentials", BOOK_MAX);
	e->serial = ++b->last_serial;
	if (old) {
		e->created_ms = old->created_ms;
		for (size_t i = 0; i < b->n; i++) {
			if (b->list[i] == old)
				b->list[i] = e;
		}
	} else {
		b->list[b->n++] = e;
	}
	*ret_old = old;
	return 0;
}

void book_undo(struct book *b, struct book_entry *e, struct book_entry *old)
{
	if (!old) {
		(void)book_remove(b, e);
		return;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (b->list[i] == e)
			b->list[i] = old;
	}
}

struct book_entry *book_remove(struct book *b, struct book_entry *e)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->list[i] != e)
			continue;
		b->list[i] = b->list[--b->n];
		return e;
	}
	return NULL;
}

/* ---- what may be shown ---- */

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Of a long value its last four characters, and up to four first ones if they end in a mark of its
 * type; of a short one nothing, since there is little to guess. */
static void mask_book(struct slice value, struct vault_item *ret)
{
	if (value.n < 20)
		return;
	for (size_t i = 0; i < 4; i++) {
		if (!is_plain(value.p[i]) || !is_plain(value.p[value.n - 4 + i]))
			return;
	}
	memcpy(ret->mask_tail, value.p + value.n - 4, 4);
	for (size_t n = 4; n >= 2; n--) {
		if (value.p[n - 1] == '-' || value.p[n - 1] == '_') {
			memcpy(ret->mask_head, value.p, n);
			return;
		}
	}
}

void book_item(const struct book_entry *e, struct vault_item *ret)
{
	*ret = (struct vault_item){.meta = e->meta,
		.ref = e->ref.kind,
		.refresh_s = e->ref.refresh_s,
		.serial = e->serial,
		.created_ms = e->created_ms,
		.changed_ms = e->changed_ms,
		.used_ms = e->used_ms};
	memcpy(ret->program, e->ref.program, sizeof(ret->program));
	mask_book(secret_slice(&e->value), ret);
}

/* ---- the bytes that are sealed ---- */

#define FIXED_PER_ENTRY 128 /* numbers and lengths of strings */

static size_t size_of(const struct book_entry *e)
{
	size_t n = FIXED_PER_ENTRY + sizeof(e->meta) + strlen(e->ref.program);

	for (size_t i = 0; i < e->ref.n_args; i++)
		n += 2 + strlen(e->ref.args[i]);
	return n + (e->ref.kind == VAULT_REF_NONE ? e->value.n : 0);
}

static void put_entry(struct wr *wr, const struct book_entry *e)
{
	/* a fetched value is not stored */
	struct slice value =
		e->ref.kind == VAULT_REF_NONE ? secret_slice(&e->value) : slice_of(NULL, 0);

	vault_put_meta(wr, &e->meta);
	vault_put_ref(wr, &e->ref);
	wr_u64(wr, e->serial);
	wr_u64(wr, e->created_ms);
	wr_u64(wr, e->changed_ms);
	wr_u32(wr, (uint32_t)value.n);
	wr_bytes(wr, value);
}

int book_encode(const struct book *b, struct secret *ret, struct err *err)
{
	AUTO_SECRET struct secret out = {0};
	size_t size = 16;
	struct wr wr;
	int r;

	for (size_t i = 0; i < b->n; i++)
		size += size_of(b->list[i]);
	r = secret_init(&out, size, err);
	if (r < 0)
		return r;
	wr = wr_init(out.p, size);
	wr_u64(&wr, b->last_serial);
	wr_u32(&wr, (uint32_t)b->n);
	for (size_t i = 0; i < b->n; i++)
		put_entry(&wr, b->list[i]);
	r = wr_finish(&wr);
	if (r < 0)
		return err_errno(err, r, "cannot encode the credentials");
	out.n = wr.n;
	*ret = secret_take(&out);
	return 0;
}

static int read_entry(struct book *b, struct rd *rd, struct err *err)
{
	CLEANUP(free_entry_ptr) struct book_entry *e = xcalloc(1, sizeof(*e));
	struct slice value;
	uint32_t n;
	int r;

	vault_read_meta(rd, &e->meta);
	vault_read_ref(rd, &e->ref);
	e->serial = rd_u64(rd);
	e->created_ms = rd_u64(rd);
	e->changed_ms = rd_u64(rd);
	n = rd_u32(rd);
	value = rd_bytes(rd, n);
	if (rd->bad || n > VAULT_MAX_VALUE || (n != 0) != (e->ref.kind == VAULT_REF_NONE) ||
		e->serial == 0 || e->serial > b->last_serial || book_by_serial(b, e->serial) ||
		book_find(b, e->meta.name, e->meta.scope) || !book_has_room(b, n))
		return err_set(err, -EBADMSG, "entry %zu is invalid", b->n + 1);
	r = n ? secret_copy(&e->value, value, err) : 0;
	if (r < 0)
		return r;
	b->list[b->n++] = TAKE(e);
	return 0;
}

int book_decode(struct book *b, struct slice bytes, struct err *err)
{
	struct rd rd = rd_init(bytes);
	uint32_t n;
	int r = 0;

	b->last_serial = rd_u64(&rd);
	n = rd_u32(&rd);
	if (rd.bad || n > BOOK_MAX)
		r = err_set(err, -EBADMSG, "invalid number of credentials %u", n);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = read_entry(b, &rd, err);
	if (r == 0 && rd_finish(&rd) < 0)
		r = err_set(err, -EBADMSG, "unexpected data after the last credential");
	if (r < 0)
		book_done(b);
	return r;
}
