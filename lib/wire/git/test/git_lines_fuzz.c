/* SPDX-License-Identifier: Apache-2.0 */
/* A byte that chooses the reader, a byte for the size of pieces, then the input. Whole and in
 * pieces, each reader must give the same result. A list of commands is read a second time by a
 * simple reader of whole lines, and both must agree. */
#include <stdlib.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/wire/git/gitadvert.h"
#include "lib/wire/git/gitcommands.h"
#include "lib/wire/git/gitfetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
	uint8_t *p;
	size_t n;
};

static void append(void *arg, struct slice bytes)
{
	struct text *t = arg;

	t->p = xrealloc(t->p, t->n + bytes.n + 1);
	if (bytes.n > 0)
		memcpy(t->p + t->n, bytes.p, bytes.n);
	t->n += bytes.n;
}

static int run_advert(struct slice in, size_t step, struct text *out)
{
	static struct gitadvert a;
	struct rd rd = rd_init(in);
	int r = 0;

	gitadvert_init(&a);
	while (r == 0 && rd.n > 0)
		r = gitadvert_read(&a, rd_bytes(&rd, MIN(step, rd.n)), append, out, NULL);
	return r < 0 ? r : gitadvert_end(&a);
}

static void check_advert(struct slice in, size_t step)
{
	struct text whole = {0}, pieces = {0}, again = {0};
	int r = run_advert(in, SIZE_MAX, &whole);

	if (run_advert(in, step, &pieces) != r)
		abort();
	if (r == 0 && (whole.n != pieces.n || memcmp(whole.p, pieces.p, whole.n) != 0))
		abort();
	/* what was rewritten is an advertisement that is not changed any more */
	if (r == 0 && !memmem(whole.p, whole.n, "ERR ", 4)) {
		if (run_advert(slice_of(whole.p, whole.n), SIZE_MAX, &again) != 0 ||
			again.n != whole.n || memcmp(again.p, whole.p, again.n) != 0)
			abort();
	}
	free(whole.p);
	free(pieces.p);
	free(again.p);
}

static int run_commands(struct gitcommands *c, struct slice in, size_t step, size_t *ret_left)
{
	struct rd rd = rd_init(in);
	int r = GITCOMMANDS_MORE;

	gitcommands_init(c);
	*ret_left = 0;
	while (r == GITCOMMANDS_MORE && rd.n > 0) {
		struct slice piece = rd_bytes(&rd, MIN(step, rd.n));

		r = gitcommands_read(c, &piece, NULL);
		*ret_left = piece.n + rd.n;
	}
	return r;
}

/* The naive reader: the names of refs, in their order, joined by newlines. It knows nothing of
 * capabilities, so it only says what the commands are if there are any. */
static void read_naively(struct slice in, struct text *names)
{
	while (in.n >= 4) {
		char digits[5] = {0};
		size_t n;

		memcpy(digits, in.p, 4);
		n = strtoul(digits, NULL, 16);
		if (n < 4 || n > in.n)
			return;
		if (n > 86) {
			const uint8_t *name = in.p + 4 + 82;
			size_t n_name = strnlen((const char *)name, n - 86);

			if (n_name > 0 && name[n_name - 1] == '\n')
				n_name--;
			append(names, slice_of(name, n_name));
			append(names, slice_of("\n", 1));
		}
		(void)slice_take(&in, n);
	}
}

static void check_commands(struct slice in, size_t step)
{
	static struct gitcommands whole, pieces;
	struct text naive = {0}, ours = {0}, report = {0};
	size_t left[2];
	int r = run_commands(&whole, in, SIZE_MAX, &left[0]);

	if (run_commands(&pieces, in, step, &left[1]) != r || pieces.n != whole.n)
		abort();
	if (r == GITCOMMANDS_DONE) {
		const char *why[GITCOMMANDS_MAX];

		if (left[0] != left[1])
			abort();
		read_naively(in, &naive);
		for (unsigned i = 0; i < whole.n; i++) {
			why[i] = "no";
			append(&ours, slice_from_str(whole.list[i].name));
			append(&ours, slice_of("\n", 1));
			if (!gitref_is_valid(slice_from_str(whole.list[i].name)))
				abort();
		}
		if (ours.n > naive.n || memcmp(ours.p, naive.p, ours.n) != 0)
			abort();
		(void)!gitreport_refuse(&whole, "text", why, append, &report);
	}
	gitcommands_done(&whole);
	gitcommands_done(&pieces);
	free(naive.p);
	free(ours.p);
	free(report.p);
}

static int run_fetch(struct slice in, size_t step, enum gitpush_need_kind kind, bool *ret_head)
{
	static const struct gitpack_limits limits = {
		.bytes = 1u << 20, .objects = 1000, .work = 1u << 24};
	AUTO_GITPACK struct gitpack *pack = gitpack_new(&limits);
	static struct gitfetch f;
	struct rd rd = rd_init(in);
	int r = 0;

	gitfetch_init(&f, kind, pack);
	while (r == 0 && rd.n > 0)
		r = gitfetch_read(&f, rd_bytes(&rd, MIN(step, rd.n)), NULL);
	*ret_head = f.has_head;
	if (r == 0)
		r = gitfetch_end(&f);
	if (r == 0 && kind == GITPUSH_TREES)
		r = gitpack_index(pack, NULL);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t which = rd_u8(&rd);
	size_t step = (size_t)rd_u8(&rd) + 1;
	struct slice in = slice_of(rd.p, rd.n);
	enum gitpush_need_kind kind = which & 4 ? GITPUSH_HEAD : GITPUSH_TREES;
	bool head[2];

	if (rd.bad)
		return 0;
	if (which % 4 == 0)
		check_advert(in, step);
	else if (which % 4 == 1)
		check_commands(in, step);
	else if (run_fetch(in, SIZE_MAX, kind, &head[0]) != run_fetch(in, step, kind, &head[1]) ||
		 head[0] != head[1])
		abort();
	return 0;
}
