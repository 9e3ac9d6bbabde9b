/* SPDX-License-Identifier: Apache-2.0 */
/* First byte: which kind; the rest: what a program wrote. The value is not longer than that. */
#include "lib/secret/secret/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	AUTO_SECRET struct secret s = {0};
	char user[VAULT_MAX_USER];

	if (n < 2 || n > VAULT_MAX_VALUE || secret_copy(&s, slice_of(p + 1, n - 1), NULL) < 0)
		return 0;
	if (extract_value(&s, (enum vault_ref_kind)(1 + p[0] % 3), user, NULL) == 0 &&
		(s.n == 0 || s.n > n - 1 || strnlen(user, sizeof(user)) == sizeof(user)))
		__builtin_trap();
	return 0;
}
