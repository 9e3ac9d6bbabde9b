/* SPDX-License-Identifier: Apache-2.0 */
/* A file that anybody may have written: it is refused, or opens to as many bytes as it says. */
#include "lib/secret/secret/seal.h"

#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t zeros[SEAL_KEY];
	AUTO_SECRET struct secret key = {0}, plain = {0};
	struct seal_head head;
	uint64_t generation;

	check(secret_copy(&key, slice_of(zeros, sizeof(zeros)), NULL) == 0);
	if (seal_read_head(slice_of(p, n), &head, NULL) == 0) {
		check(head.n + SEAL_HEAD + SEAL_TAG == n && head.source < VAULT_N_KEYS);
		check(seal_anchor_read(&key, &head, slice_of(p, MIN(n, SEAL_ANCHOR)), &generation) <
			0);
		if (seal_open(&key, slice_of(p, n), &plain, NULL) == 0)
			check(plain.n == head.n);
	}
	return 0;
}
