#include "stream.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "lib/base/mem.h"

/* Of QEMU's migration stream; numbers in it are big-endian. */
#define MAGIC "QEVM"
#define HEADER 8 /* magic, version */
#define SECTION_START 0x01
#define SECTION_PART 0x02
#define SECTION_END 0x03
#define CONFIGURATION 0x07
#define FOOTER 0x7e
#define MAX_NAME 256
#define MAX_CONFIGURATION 4096
/* Of a record of memory: an offset in a block, with these in its low bits. */
#define PAGE_SIZE 4096
#define FLAG_ZERO 0x02
#define FLAG_MEM_SIZE 0x04
#define FLAG_PAGE 0x08
#define FLAG_EOS 0x10
#define FLAG_CONTINUE 0x20 /* of the same block as the record before */
#define FLAGS (PAGE_SIZE - 1)

#define MAIN_BLOCK "ram" /* the id of the memory backend (args.c) */
#define FIRST_PAGE ((1 << 20) / PAGE_SIZE)
#define BUF (1 << 20)

struct packer {
	const struct stream_io *io;
	uint8_t *in, *out;
	size_t at, n_in, n_out;
	bool ended;
	uint8_t *seen; /* a bit for each page of MAIN_BLOCK that went out */
	uint64_t n_pages;
	char block[MAX_NAME], out_block[MAX_NAME]; /* of the last record in and out */
	struct stream_stats stats;
};

/* ---- bytes ---- */

/* Has n bytes at p->in + p->at; n is at most BUF. -ENODATA: the input ends before. */
static int need(struct packer *p, size_t n)
{
	if (p->n_in - p->at >= n)
		return 0;
	memmove(p->in, p->in + p->at, p->n_in - p->at);
	p->n_in -= p->at;
	p->at = 0;
	while (p->n_in < n && !p->ended) {
		ssize_t k = p->io->read(p->io->arg, p->in + p->n_in, BUF - p->n_in);

		if (k < 0)
			return (int)k;
		p->ended = k == 0;
		p->n_in += (size_t)k;
	}
	return p->n_in >= n ? 0 : -ENODATA;
}

static int flush(struct packer *p)
{
	int r = p->n_out ? p->io->write(p->io->arg, p->out, p->n_out) : 0;

	p->n_out = 0;
	return r;
}

static int emit(struct packer *p, const void *bytes, size_t n)
{
	int r = n > BUF - p->n_out ? flush(p) : 0;

	if (r < 0)
		return r;
	memcpy(p->out + p->n_out, bytes, n);
	p->n_out += n;
	return 0;
}

/* Passes n bytes on. */
static int pass(struct packer *p, size_t n)
{
	int r = need(p, n);

	if (r == 0)
		r = emit(p, p->in + p->at, n);
	if (r == 0)
		p->at += n;
	return r;
}

static int pass_rest(struct packer *p)
{
	int r = 0;

	while (r == 0) {
		if (p->at == p->n_in && (r = need(p, 1)) < 0)
			break;
		r = pass(p, p->n_in - p->at);
	}
	return r == -ENODATA ? 0 : r;
}

static uint32_t be32(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static uint64_t be64(const uint8_t *b)
{
	return (uint64_t)be32(b) << 32 | be32(b + 4);
}

static int emit_be64(struct packer *p, uint64_t v)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> (56 - 8 * i));
	return emit(p, b, sizeof(b));
}

/* ---- memory ---- */

/* The list of blocks with their sizes, which add up to total. */
static int pass_blocks(struct packer *p, uint64_t total)
{
	int r = pass(p, 8);

	while (r == 0 && total > 0) {
		uint64_t size;
		size_t n;

		r = need(p, 1);
		n = r == 0 ? p->in[p->at] : 0;
		if (r == 0)
			r = need(p, 1 + n + 8);
		if (r < 0)
			return r;
		size = be64(p->in + p->at + 1 + n);
		if (size == 0 || size > total)
			return -EBADMSG;
		if (n == strlen(MAIN_BLOCK) && memcmp(p->in + p->at + 1, MAIN_BLOCK, n) == 0) {
			if (p->seen || size > STREAM_MAX_MEMORY)
				return -EBADMSG;
			p->n_pages = size / PAGE_SIZE;
			p->seen = xcalloc(1, (size_t)(p->n_pages / 8 + 1));
		}
		total -= size;
		r = pass(p, 1 + n + 8);
	}
	return r;
}

/* Takes the block's name when the record has one. */
static int take_block(struct packer *p, uint64_t flags)
{
	size_t n;
	int r;

	if (flags & FLAG_CONTINUE)
		return 0;
	r = need(p, 1);
	if (r < 0)
		return r;
	n = p->in[p->at];
	r = need(p, 1 + n);
	if (r < 0)
		return r;
	if (n == 0 || memchr(p->in + p->at + 1, 0, n))
		return -EBADMSG;
	memcpy(p->block, p->in + p->at + 1, n);
	p->block[n] = 0;
	p->at += 1 + n;
	return 0;
}

static bool may_leave_out(const struct packer *p, uint64_t page)
{
	return strcmp(p->block, MAIN_BLOCK) == 0 && page >= FIRST_PAGE && page < p->n_pages &&
	       !(p->seen[page / 8] & 1 << page % 8);
}

static int emit_head(struct packer *p, uint64_t addr, uint64_t kind)
{
	bool same = strcmp(p->block, p->out_block) == 0;
	uint8_t n = (uint8_t)strlen(p->block);
	int r = emit_be64(p, addr | kind | (same ? FLAG_CONTINUE : 0));

	if (r < 0 || same)
		return r;
	r = emit(p, &n, 1);
	memcpy(p->out_block, p->block, n + 1u);
	return r < 0 ? r : emit(p, p->block, n);
}

static int take_page(struct packer *p, uint64_t v)
{
	uint64_t addr = v & ~(uint64_t)FLAGS, kind = v & (FLAG_ZERO | FLAG_PAGE);
	uint64_t page = addr / PAGE_SIZE;
	size_t n = kind == FLAG_PAGE ? PAGE_SIZE : 1;
	int r = take_block(p, v);

	if (r == 0)
		r = need(p, n);
	if (r < 0)
		return r;
	if (kind == FLAG_ZERO && p->in[p->at] == 0 && may_leave_out(p, page)) {
		p->at += n;
		p->stats.n_left_out++;
		return 0;
	}
	if (strcmp(p->block, MAIN_BLOCK) == 0 && page < p->n_pages)
		p->seen[page / 8] |= (uint8_t)(1 << page % 8);
	p->stats.n_kept++;
	r = emit_head(p, addr, kind);
	return r < 0 ? r : pass(p, n);
}

/* The records of one section up to its end. */
static int pass_memory(struct packer *p)
{
	for (;;) {
		int r = need(p, 8);
		uint64_t v = r == 0 ? be64(p->in + p->at) : 0;
		uint64_t kind = v & FLAGS & ~(uint64_t)FLAG_CONTINUE;

		if (r < 0)
			return r;
		if (kind == FLAG_EOS)
			return pass(p, 8);
		if (kind == FLAG_MEM_SIZE) {
			r = pass_blocks(p, v & ~(uint64_t)FLAGS);
		} else if (kind == FLAG_PAGE || kind == FLAG_ZERO) {
			p->at += 8;
			r = take_page(p, v);
		} else {
			r = -EBADMSG; /* a kind of record that we never ask for */
		}
		if (r < 0)
			return r;
	}
}

/* ---- sections ---- */

/* 1: a section of memory, whose head was passed on. 0: something else, or nothing. */
static int enter_section(struct packer *p, uint32_t *ram)
{
	static const size_t head = 5; /* type, id */
	size_t n;
	uint8_t type;
	int r = need(p, head + 1);

	if (r == -ENODATA && (p->at == p->n_in || p->in[p->at] > SECTION_END))
		return 0;
	if (r < 0)
		return r;
	type = p->in[p->at];
	if (type == SECTION_START && *ram == UINT32_MAX) {
		n = p->in[p->at + head];
		r = need(p, head + 1 + n + 8);
		if (r < 0 || n != strlen("ram") || memcmp(p->in + p->at + head + 1, "ram", n) != 0)
			return r;
		*ram = be32(p->in + p->at + 1);
		r = pass(p, head + 1 + n + 8);
		return r < 0 ? r : 1;
	}
	if ((type != SECTION_PART && type != SECTION_END) || be32(p->in + p->at + 1) != *ram)
		return 0;
	r = pass(p, head);
	return r < 0 ? r : 1;
}

static int pass_footer(struct packer *p, uint32_t ram)
{
	int r = need(p, 5);

	if (r < 0)
		return r;
	if (p->in[p->at] != FOOTER || be32(p->in + p->at + 1) != ram)
		return -EBADMSG;
	return pass(p, 5);
}

static int pass_header(struct packer *p)
{
	uint32_t n;
	int r = need(p, HEADER + 5);

	if (r < 0)
		return r;
	if (memcmp(p->in + p->at, MAGIC, 4) != 0)
		return -EBADMSG;
	if (p->in[p->at + HEADER] != CONFIGURATION)
		return pass(p, HEADER);
	n = be32(p->in + p->at + HEADER + 1);
	return n > MAX_CONFIGURATION ? -EBADMSG : pass(p, HEADER + 5 + n);
}

static int pack(struct packer *p)
{
	uint32_t ram = UINT32_MAX;
	int r = pass_header(p);

	while (r == 0 && (r = enter_section(p, &ram)) > 0) {
		r = pass_memory(p);
		if (r == 0)
			r = pass_footer(p, ram);
	}
	/* What follows are devices. */
	if (r == 0)
		r = pass_rest(p);
	if (r == 0)
		r = flush(p);
	return r == -ENODATA ? -EBADMSG : r;
}

int stream_pack(const struct stream_io *io, struct stream_stats *ret)
{
	struct packer p = {.io = io, .in = xmalloc(BUF), .out = xmalloc(BUF)};
	int r = pack(&p);

	free(p.in);
	free(p.out);
	free(p.seen);
	*ret = p.stats;
	return r;
}
