/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes inside a sealed file: what is decoded is within its bounds and encodes again. */
#include "lib/secret/secret/book.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct book book;
	AUTO_SECRET struct secret again = {0};

	if (book_decode(&book, slice_of(p, n), NULL) < 0) {
		check(book.n == 0);
		return 0;
	}
	check(book.n <= BOOK_MAX && book_has_room(&book, 0));
	check(book_encode(&book, &again, NULL) == 0);
	check(slice_eq(secret_slice(&again), slice_of(p, n)));
	book_done(&book);
	return 0;
}
