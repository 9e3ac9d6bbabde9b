/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/sbx/clone/refs.h"

/* What is accepted can be written into a line for git. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AUTO_REFS struct refs r = {0};
	struct err err = {0};

	if (refs_parse(slice_of(data, n), 40, &r, &err) < 0) {
		assert(r.n == 0 && !r.v && !r.head);
		return 0;
	}
	assert(r.n <= REFS_MAX);
	for (size_t i = 0; i < r.n; i++) {
		assert(strlen(r.v[i].oid) == 40);
		assert(!strpbrk(r.v[i].name, " \n\t\r\033"));
		assert(strcmp(r.v[i].name, "HEAD") == 0 || refs_is_name(r.v[i].name));
	}
	assert(!r.head || refs_is_name(r.head));
	return 0;
}
