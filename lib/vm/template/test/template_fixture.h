/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_fixture - a store in a folder of its own, and small artificial templates in it.
 *
 * How      fixture_begin makes an installation below /tmp and points XDG_DATA_HOME there;
 *          fixture_end removes it. fixture_publish makes a template whose bytes follow from `seed`.
 * Trust    Tests only.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/template/template_internal.h"

static char fixture_dir[64];

static inline void fixture_at(const char *sub)
{
	AUTO_FREE char *data = xasprintf("%s/%s", fixture_dir, sub);

	assert_int_equal(setenv("XDG_DATA_HOME", data, 1), 0);
}

static inline int fixture_begin(void **state)
{
	(void)snprintf(fixture_dir, sizeof(fixture_dir), "/tmp/sbx-template-XXXXXX");
	if (!mkdtemp(fixture_dir))
		return -1;
	fixture_at("data");
	return 0;
}

static inline int fixture_end(void **state)
{
	AUTO_FREE char *rm = xasprintf("chmod -R u+w %s && rm -rf %s", fixture_dir, fixture_dir);

	return system(rm);
}

static inline void fixture_write(const char *path, uint64_t at, const void *p, size_t n)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, p, n, (off_t)at), n);
}

/* `size` bytes, of which a few are not zero. */
static inline void fixture_file(const char *path, uint64_t size, unsigned seed)
{
	uint8_t b[3000];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(rand_r(&seed) | 1);
	fixture_write(path, 0, b, MIN(sizeof(b), size));
	if (size > 4 * TEMPLATE_BLOCK)
		fixture_write(path, size - 2 * TEMPLATE_BLOCK - 7, b, sizeof(b));
	assert_int_equal(truncate(path, (off_t)size), 0);
}

static inline void fixture_put64(uint8_t *p, uint64_t v)
{
	for (size_t i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (56 - 8 * i));
}

/* A head as qemu-img makes it, and rubbish behind it. `backing` NULL: none. */
static inline void fixture_layer(const char *path, const char *backing, unsigned seed)
{
	uint8_t head[512] = {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3};

	if (backing) {
		fixture_put64(head + 8, 0x100);
		head[19] = (uint8_t)strlen(backing);
		memcpy(head + 0x100, backing, strlen(backing));
	}
	head[23] = 16;
	fixture_put64(head + 24, 1 << 20);
	head[103] = 104;
	fixture_file(path, 3 * TEMPLATE_BLOCK, seed);
	fixture_write(path, 0, head, sizeof(head));
}

static inline void fixture_fill(struct template_draft *d, unsigned seed)
{
	static const struct {
		const char *name;
		uint64_t size;
	} files[] = {{"root.img", 20 * TEMPLATE_BLOCK}, {"docker.img", 9 * TEMPLATE_BLOCK},
		{"vmlinuz", 5000}, {"modules.cpio", 70000}};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", d->dir, files[i].name);

		fixture_file(path, files[i].size, seed + (unsigned)i);
		if (template_draft_take(d, files[i].name, path, &err) < 0)
			fail_msg("%s", err.text);
	}
}

static inline void fixture_publish(const char *name, unsigned seed, struct template *ret)
{
	AUTO_DRAFT struct template_draft d = {0};
	struct err err = {0};
	json_t *facts = json_pack("{s:s}", "kind", "base");

	if (template_draft_begin(&d, &err) < 0)
		fail_msg("%s", err.text);
	fixture_fill(&d, seed);
	if (template_draft_publish(&d, name, facts, NULL, NULL, ret, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(facts);
}

/* A child of `from` with one layer on its root. */
static inline void fixture_child(
	const char *name, const struct template *from, unsigned seed, struct template *ret)
{
	AUTO_DRAFT struct template_draft d = {0};
	AUTO_FREE char *layer = xasprintf("%s/layer-%u", fixture_dir, seed);
	struct err err = {0};
	int r;

	fixture_layer(layer, "/nowhere/of/somebody/root.img", seed);
	r = template_draft_begin(&d, &err);
	if (r == 0)
		r = template_draft_add_template(&d, from, &err);
	if (r == 0)
		r = template_draft_add_layer(&d, TEMPLATE_ROOT, layer, false, &err);
	if (r == 0)
		r = template_draft_publish(&d, name, NULL, NULL, NULL, ret, &err);
	if (r < 0)
		fail_msg("%s", err.text);
}
