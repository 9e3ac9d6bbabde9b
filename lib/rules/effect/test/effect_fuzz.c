/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an effect: one that is read is printed as it was. */
#include <assert.h>
#include "lib/rules/effect/effect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as an object, whatever they are: the text can be read, and is the same again. */
static void print_bytes(struct slice bytes)
{
	struct effect e = {.kind = EFFECT_API,
		.verb = slice_from_str("a.b"),
		.target = slice_from_str("s"),
		.object = bytes};
	char text[EFFECT_MAX_TEXT + 1];
	struct effect_copy copy;
	size_t n = effect_print(&e, text);
	int r = effect_parse(slice_of(text, n), &copy, NULL);

	assert(r == 0);
	assert(copy.effect.cut.n || slice_eq(copy.effect.object, bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct effect_copy copy;
	uint8_t sum[EFFECT_DIGEST];

	print_bytes(text);
	if (effect_parse(text, &copy, NULL) == 0)
		effect_digest(&copy.effect, 1, text, sum);
	return 0;
}
