/* Any bytes as an image. What was accepted is packed again: nothing more may be left out, and the bytes
 * stay as they are. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "stream.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"

#define MAX_OUT (4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct mem {
	struct slice in;
	uint8_t *out;
	size_t n_out;
};

static ssize_t get(void *arg, void *buf, size_t n)
{
	struct mem *m = arg;
	size_t k = MIN(n, m->in.n);

	if (k)
		memcpy(buf, m->in.p, k);
	m->in = slice_of(m->in.p + k, m->in.n - k);
	return (ssize_t)k;
}

static int put(void *arg, const void *p, size_t n)
{
	struct mem *m = arg;

	if (n > MAX_OUT - m->n_out)
		return -EFBIG;
	memcpy(m->out + m->n_out, p, n);
	m->n_out += n;
	return 0;
}

static int pack(struct slice in, uint8_t *out, size_t *ret_n, struct stream_stats *stats)
{
	struct mem m = {.in = in, .out = out};
	struct stream_io io = {get, put, &m};
	int r = stream_pack(&io, stats);

	*ret_n = m.n_out;
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t once[MAX_OUT], twice[MAX_OUT];
	struct stream_stats first, second;
	size_t n, m;
	int r;

	if (pack(slice_of(data, size), once, &n, &first) < 0)
		return 0;
	r = pack(slice_of(once, n), twice, &m, &second);
	assert(r == 0);
	assert(m == n && memcmp(once, twice, n) == 0);
	assert(second.n_left_out == 0 && second.n_kept == first.n_kept);
	return 0;
}
