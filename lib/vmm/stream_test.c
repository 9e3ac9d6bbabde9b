#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "stream.h"
#include "lib/base/mem.h"

#define PAGE 4096
#define N_PAGES 300 /* of the block ram: some below and some above 1 MiB */
#define N_BIOS 4
#define ROOM (4 << 20)

/* A stream that is being made or was packed. */
struct bytes {
	uint8_t *p;
	size_t n, at;
	size_t piece; /* read at most this much at once */
};

static struct bytes in, out;

static int reset(void **state)
{
	free(in.p);
	free(out.p);
	in = (struct bytes){.p = xmalloc(ROOM), .piece = ROOM};
	out = (struct bytes){.p = xmalloc(ROOM)};
	return 0;
}

static int clear(void **state)
{
	free(TAKE(in.p));
	free(TAKE(out.p));
	return 0;
}

static void put(const void *p, size_t n)
{
	assert_true(n <= ROOM - in.n);
	memcpy(in.p + in.n, p, n);
	in.n += n;
}

static void put_be(uint64_t v, int n)
{
	for (int i = n - 1; i >= 0; i--) {
		uint8_t b = (uint8_t)(v >> 8 * i);

		put(&b, 1);
	}
}

static void put_name(const char *s)
{
	put_be(strlen(s), 1);
	put(s, strlen(s));
}

static void put_start(void)
{
	put("QEVM", 4);
	put_be(3, 4);
	put_be(7, 1);
	put_be(2, 4);
	put("pc", 2);
	put_be(1, 1);
	put_be(9, 4);
	put_name("ram");
	put_be(0, 4);
	put_be(4, 4);
	put_be((N_PAGES + N_BIOS) * PAGE | 0x04, 8);
	put_name("ram");
	put_be(N_PAGES * PAGE, 8);
	put_name("pc.bios");
	put_be(N_BIOS * PAGE, 8);
	put_be(0x10, 8);
	put_be(0x7e, 1);
	put_be(9, 4);
}

static void put_section(int type)
{
	put_be((uint64_t)type, 1);
	put_be(9, 4);
}

static void put_section_end(void)
{
	put_be(0x10, 8);
	put_be(0x7e, 1);
	put_be(9, 4);
}

/* block NULL: as before. fill 0 is a record of a page of zeros. */
static void put_page(const char *block, uint64_t page, uint8_t fill)
{
	uint8_t bytes[PAGE];

	put_be(page * PAGE | (fill ? 0x08 : 0x02) | (block ? 0 : 0x20), 8);
	if (block)
		put_name(block);
	memset(bytes, fill, sizeof(bytes));
	put(bytes, fill ? PAGE : 1);
}

static ssize_t get(void *arg, void *buf, size_t n)
{
	size_t k = MIN(MIN(n, in.piece), in.n - in.at);

	memcpy(buf, in.p + in.at, k);
	in.at += k;
	return (ssize_t)k;
}

static int take(void *arg, const void *p, size_t n)
{
	assert_true(n <= ROOM - out.n);
	memcpy(out.p + out.n, p, n);
	out.n += n;
	return 0;
}

static int pack(struct stream_stats *stats)
{
	struct stream_io io = {get, take, NULL};

	in.at = out.n = 0;
	return stream_pack(&io, stats);
}

/* What memory a qemu would have after reading it, and what follows the memory. */
struct memory {
	uint8_t ram[N_PAGES], bios[N_BIOS]; /* the fill of each page */
	bool touched[N_PAGES];
	const uint8_t *rest;
	size_t n_rest;
};

static uint64_t eat_be(struct bytes *b, int n)
{
	uint64_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | b->p[b->at++];
	return v;
}

static void eat_page(struct bytes *b, struct memory *m, uint64_t v, bool *in_ram)
{
	uint64_t page = v / PAGE;
	uint8_t fill;

	if (!(v & 0x20)) {
		size_t n = (size_t)eat_be(b, 1);

		*in_ram = n == 3;
		b->at += n;
	}
	fill = b->p[b->at];
	b->at += v & 0x08 ? PAGE : 1;
	if (*in_ram) {
		m->ram[page] = fill;
		m->touched[page] = true;
	} else {
		m->bios[page] = fill;
	}
}

static void load(struct bytes *b, struct memory *m)
{
	bool in_ram = false;

	*m = (struct memory){};
	memset(m->bios, 0xee, sizeof(m->bios)); /* firmware is there before the image is read */
	b->at = 15 + 1 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8 + 5;
	while (b->p[b->at] == 2 || b->p[b->at] == 3) {
		uint64_t v;

		b->at += 5;
		while (((v = eat_be(b, 8)) & 0xfff) != 0x10)
			eat_page(b, m, v, &in_ram);
		b->at += 5;
	}
	m->rest = b->p + b->at;
	m->n_rest = b->n - b->at;
}

static void put_example(void)
{
	put_start();
	put_section(2);
	put_page("ram", 0, 0);
	put_page(NULL, 1, 0xaa);
	put_page(NULL, 255, 0); /* the last below 1 MiB */
	put_page(NULL, 256, 0);
	put_page(NULL, 257, 0xbb);
	put_page(NULL, 258, 0);
	put_section_end();
	put_section(2);
	put_page(NULL, 259, 0); /* the block goes on over sections */
	put_page("pc.bios", 0, 0);
	put_page(NULL, 1, 0xcc);
	put_section_end();
	put_section(3);
	put_page("ram", 257, 0); /* written before: must become zero again */
	put_page(NULL, 260, 0);
	put_page(NULL, 299, 0xdd);
	put_section_end();
	put_be(4, 1);
	put("devices, whatever they say \x02\x00\x00\x00\x09", 32);
}

static void same_memory_with_fewer_pages(void **state)
{
	static const uint64_t left_out[] = {256, 258, 259, 260};
	struct stream_stats stats;
	struct memory before, after;

	put_example();
	assert_int_equal(pack(&stats), 0);
	assert_int_equal(stats.n_left_out, 4);
	assert_int_equal(stats.n_kept, 8);
	load(&in, &before);
	load(&out, &after);
	assert_memory_equal(before.ram, after.ram, sizeof(after.ram));
	assert_memory_equal(before.bios, after.bios, sizeof(after.bios));
	assert_int_equal(before.n_rest, after.n_rest);
	assert_memory_equal(before.rest, after.rest, after.n_rest);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		assert_false(after.touched[left_out[i]]);
	assert_true(after.touched[0] && after.touched[255] && after.touched[257]);
}

static void pieces_do_not_matter(void **state)
{
	static const size_t pieces[] = {1, 7, 4096, 5000};
	AUTO_FREE uint8_t *whole = NULL;
	struct stream_stats stats;
	size_t n;

	put_example();
	assert_int_equal(pack(&stats), 0);
	n = out.n;
	whole = xmalloc(n);
	memcpy(whole, out.p, n);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		in.piece = pieces[i];
		assert_int_equal(pack(&stats), 0);
		assert_int_equal(out.n, n);
		assert_memory_equal(out.p, whole, n);
	}
}

static void cut_off_is_refused(void **state)
{
	struct stream_stats stats;
	size_t end;

	put_example();
	end = in.n - 33;
	for (size_t n = 0; n < end; n += n < 300 ? 1 : 97) {
		in.n = n;
		/* Between two sections nothing is missing that we could know of. */
		if (pack(&stats) == 0 && n != 15)
			assert_memory_equal(in.p + n - 5, "\x7e\0\0\0\x09", 5);
	}
}

static void refuse(size_t at, uint8_t value)
{
	struct stream_stats stats;
	uint8_t was = in.p[at];

	in.p[at] = value;
	assert_int_equal(pack(&stats), -EBADMSG);
	in.p[at] = was;
}

static void nonsense_is_refused(void **state)
{
	size_t sizes, records;

	put_start();
	sizes = 15 + 1 + 4 + 4 + 8;
	records = in.n + 5;
	put_section(2);
	put_page("ram", 1, 0xaa);
	put_section_end();
	refuse(0, 'X');
	refuse(9, 0xff);	     /* a configuration without an end */
	refuse(sizes + 8 + 4, 0xff); /* a block larger than all memory */
	refuse(records + 7, 0x40);   /* a kind of record that nobody asked for */
	refuse(records + 8, 0);	     /* a block without a name */
	refuse(records + 8 + 2, 0);  /* a NUL in its name */
	refuse(in.n - 5, 0x7f);	     /* no footer */
	refuse(in.n - 1, 0x0a);	     /* one of another section */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(same_memory_with_fewer_pages, reset),
		cmocka_unit_test_setup(pieces_do_not_matter, reset),
		cmocka_unit_test_setup(cut_off_is_refused, reset),
		cmocka_unit_test_setup(nonsense_is_refused, reset),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
