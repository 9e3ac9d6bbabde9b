/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_read_fuzz - any bytes as a stream of changes: no entry that comes out has a path that leads
 * out of a workspace, or bits that it must not have.
 */
#include <assert.h>
#include "lib/wire/stage/stage_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_item(const struct stage_item *i)
{
	assert(i->op < STAGE_N_OPS && i->mode <= 0777 && i->path[0] && i->path[0] != '/');
	assert(i->op == STAGE_FILE || i->size == 0);
	for (const char *p = i->path; *p;) {
		size_t n = strcspn(p, "/");

		assert(n > 0 && n <= 255 && !(n == 2 && p[0] == '.' && p[1] == '.'));
		assert(p[n] != '/' || p[n + 1]);
		p += n + (p[n] == '/');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stage_reader r;
	struct slice halves[2] = {{data, size / 2}, {data + size / 2, size - size / 2}};

	stage_reader_init(&r);
	for (size_t i = 0; i < 2; i++) {
		int k;

		while ((k = stage_read(&r, &halves[i], NULL)) == TAR_EV_ENTRY || k == TAR_EV_DATA)
			if (k == TAR_EV_ENTRY)
				check_item(&r.item);
		if (k != TAR_EV_MORE)
			return 0;
	}
	return 0;
}
