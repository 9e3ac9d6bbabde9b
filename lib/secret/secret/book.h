/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book - the credentials themselves: metadata on the heap, each value in separate memory.
 *
 * How      A list of entries, each known by name and scope. A sandbox sees its own entries and the
 *          global ones; its own come first. book_encode makes the bytes that are sealed, in a
 *          struct secret. A serial is never reused: a decision about one never applies to another.
 * Trust    The vault only. What it decodes was authenticated, and is checked anyway.
 * Owns     Its entries and their values.
 * Limits   BOOK_MAX entries, BOOK_MAX_TOTAL bytes of values.
 * See      book_test.c, book_fuzz.c
 */
#pragma once

#include "lib/os/ipc/vault_frame.h"
#include "secret.h"

#define BOOK_MAX 256
#define BOOK_MAX_TOTAL (2U << 20)

struct book_entry {
	struct vault_meta meta;
	struct vault_ref ref;
	uint64_t serial;
	uint64_t created_ms, changed_ms; /* since 1970 */
	uint64_t used_ms;		 /* not kept over a restart */
	struct secret value;		 /* of a reference: what was fetched last */
	/* of a reference */
	uint64_t fetched_ms; /* monotonic; 0: nothing yet */
	char user[VAULT_MAX_USER];
};

struct book {
	struct book_entry *list[BOOK_MAX];
	size_t n;
	uint64_t last_serial;
};

void book_done(struct book *b);
void book_entry_free(struct book_entry *e);

struct book_entry *book_find(struct book *b, const char *name, const char *scope);
/* The one that a sandbox would use: its own before the global one. */
struct book_entry *book_fit(struct book *b, const char *name, const char *sandbox);
struct book_entry *book_by_serial(struct book *b, uint64_t serial);
/* The entry with the next higher serial that `sandbox` ("": global) can see, or NULL. */
struct book_entry *book_next(struct book *b, uint64_t after, const char *sandbox);
/* Takes the entry, gives it a serial, and hands out the one it replaced, or NULL. -ENOSPC: full,
 * the entry stays the caller's. */
int book_put(struct book *b, struct book_entry *e, struct book_entry **ret_old,
	struct err *err) MUST_CHECK;
/* Undoes book_put: e is the caller's again, old is back. */
void book_undo(struct book *b, struct book_entry *e, struct book_entry *old);
/* Out of the list and the caller's, or NULL. */
struct book_entry *book_remove(struct book *b, struct book_entry *e);
/* Whether n more bytes of values fit. */
bool book_has_room(const struct book *b, size_t n);

void book_item(const struct book_entry *e, struct vault_item *ret);

int book_encode(const struct book *b, struct secret *ret, struct err *err) MUST_CHECK;
/* Into an empty book; -EBADMSG leaves it empty. */
int book_decode(struct book *b, struct slice bytes, struct err *err) MUST_CHECK;
