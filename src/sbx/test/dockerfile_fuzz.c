/* SPDX-License-Identifier: Apache-2.0 */
/* For any Dockerfile: its base is one of its FROM lines, and its text keeps its size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "src/sbx/template/dockerfile.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const args[] = {"A=x", "B=$A", NULL};
	CLEANUP(dockerfile_done) struct dockerfile d = {0};
	AUTO_FREE char *text = xstrndup((const char *)data, size);
	char name[64];
	struct err err;

	if (dockerfile_parse(text, args, &d, &err) < 0)
		return 0;
	if (d.n == 0 || d.n > DOCKERFILE_MAX_STAGES || strlen(d.text) != strlen(text) ||
		!dockerfile_base(&d)[0])
		abort();
	for (size_t i = 0; i < d.n; i++) {
		(void)dockerfile_is_stage(&d, i);
		(void)dockerfile_kind(d.stages[i].ref, name, sizeof(name));
	}
	return 0;
}
