/* SPDX-License-Identifier: Apache-2.0 */
/* A push: two commands whose objects are chosen by the first byte among those of the pack, then the
 * entries of the pack. Head and checksum are put around them, so that they are right. Whatever the
 * pack is, judging ends, and within its limits. A second byte chooses what the server gives. */
#include <stdlib.h>
#include "lib/base/hash/sha1.h"
#include "lib/base/mem.h"
#include "lib/wire/git/gitpack_internal.h"
#include "lib/wire/git/gitpush.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gitpack_limits limits = {.bytes = 1u << 20, .objects = 1000, .work = 1u << 24};

static struct gitpack *make_pack(struct slice entries, uint8_t n)
{
	AUTO_GITPACK struct gitpack *pack = gitpack_new(&limits);
	const uint8_t head[] = {'P', 'A', 'C', 'K', 0, 0, 0, 2, 0, 0, 0, n};
	uint8_t name[SHA1_BYTES];
	struct sha1 hash;

	sha1_init(&hash);
	sha1_add(&hash, slice_of(head, sizeof(head)));
	sha1_add(&hash, entries);
	sha1_end(&hash, name);
	if (gitpack_put(pack, slice_of(head, sizeof(head)), NULL) < 0 ||
		gitpack_put(pack, entries, NULL) < 0 ||
		gitpack_put(pack, slice_of(name, sizeof(name)), NULL) < 0 ||
		gitpack_index(pack, NULL) < 0)
		return NULL;
	return TAKE(pack);
}

/* Every object has the name of its content. */
static void check_names(struct gitpack *pack)
{
	for (uint32_t i = 0; i < gitpack_count(pack); i++) {
		AUTO_FREE uint8_t *content = NULL;
		int r = gitpack_load(pack, i, &content, NULL);

		if (gitpack_find(pack, &pack->entry[i].oid) != i)
			abort();
		if (r == 0 && gitpack_type(pack, i) == GITOBJECT_NONE)
			abort();
	}
}

static void judge(struct gitcommands *c, struct gitpack *pack, struct slice entries, uint8_t gives)
{
	AUTO_GITPUSH struct gitpush *p = gitpush_new(c, pack, true);
	struct gitpush_need need;
	unsigned n = 0;

	while (gitpush_judge(p, &need, NULL) == GITPUSH_NEED) {
		if (++n > 3 * GITPUSH_MAX_SUPPLIES)
			abort();
		if (need.kind == GITPUSH_HEAD)
			gitpush_set_head(p, gives & 1 ? &c->list[0].new : NULL);
		else
			gitpush_supply(p, gives & 2 ? make_pack(entries, gives >> 4) : NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gitcommands c;
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t n = rd_u8(&rd), which = rd_u8(&rd), gives = rd_u8(&rd);
	struct slice entries = slice_of(rd.p, rd.n);
	struct gitpack *pack;

	if (rd.bad)
		return 0;
	pack = make_pack(entries, n);
	if (!pack)
		return 0;
	check_names(pack);
	gitcommands_init(&c);
	c.n = 2;
	c.list[0] = (struct gitcommand){.name = xstrdup("refs/heads/a")};
	c.list[1] = (struct gitcommand){.name = xstrdup("refs/tags/b")};
	if (n > 0) {
		c.list[0].new = pack->entry[which % n].oid;
		c.list[1].new = pack->entry[(which >> 4) % n].oid;
		if (which & 1)
			c.list[0].old = pack->entry[(which >> 2) % n].oid;
	}
	judge(&c, pack, entries, gives);
	gitcommands_done(&c);
	return 0;
}
