/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_fuzz - any bytes as an archive, in two halves: every entry that comes out can be written
 * again and then reads back the same.
 */
#include <assert.h>
#include "lib/wire/tar/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(const struct tar_entry *e)
{
	static struct tar_reader back;
	static uint8_t buf[TAR_MAX_HEAD];
	struct slice in = {.p = buf};

	assert(tar_write_entry(e, buf, sizeof(buf), &in.n) == 0);
	tar_reader_init(&back);
	assert(tar_read(&back, &in, NULL) == TAR_EV_ENTRY);
	assert(back.entry.type == e->type && back.entry.size == e->size);
	assert(strcmp(back.entry.name, e->name) == 0 && strcmp(back.entry.link, e->link) == 0);
	assert(back.entry.mtime_s == e->mtime_s && back.entry.mtime_ns == e->mtime_ns);
	assert(back.entry.uid == e->uid && back.entry.gid == e->gid && back.entry.mode == e->mode);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tar_reader r;
	struct slice halves[2] = {{data, size / 2}, {data + size / 2, size - size / 2}};

	tar_reader_init(&r);
	for (size_t i = 0; i < 2; i++) {
		int k;

		while ((k = tar_read(&r, &halves[i], NULL)) == TAR_EV_ENTRY || k == TAR_EV_DATA)
			if (k == TAR_EV_ENTRY)
				write_and_read(&r.entry);
		if (k != TAR_EV_MORE)
			return 0;
	}
	return 0;
}
