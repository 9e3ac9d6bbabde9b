/* SPDX-License-Identifier: Apache-2.0 */
/* What decodes must encode to something that decodes to the same. */
#include <assert.h>
#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_SPEC struct spec a = {0}, b = {0};
	AUTO_FREE char *text = NULL;
	struct err err;
	int r;

	if (spec_decode(slice_of(data, size), &a, &err) < 0)
		return 0;
	spec_set_defaults(&a, 1, 1ull << 30);
	text = spec_encode(&a);
	r = spec_decode(slice_from_str(text), &b, &err);
	assert(r == 0 && spec_matches(&a, &b) && spec_matches(&b, &a));
	(void)!spec_check(&a, &err);
	return 0;
}
