/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte is a mode. 0: the rest is a file of `save -o`. Else: the rest is a manifest up
 * to its first NUL and then pieces of the first file, which are packed and summed as they should
 * be, so that what lies behind the checksums is reached too. Nothing may be published either way
 * but a file that is right, and no draft may stay. */
#include <assert.h>
#include <dirent.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/template/template_internal.h"

static int agree(void *arg, const char *name, const char *id, struct err *err)
{
	assert(template_is_name(name));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/sbx-fuzz-template-XXXXXX";

static void clean(void)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	(void)!system(rm);
}

static void begin(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	if (!mkdtemp(dir) || setenv("XDG_DATA_HOME", dir, 1) < 0)
		abort();
	(void)atexit(clean);
}

/* What a careful liar would make of it. */
static void wrap(int fd, struct slice in)
{
	size_t n = in.n ? strnlen((const char *)in.p, in.n) : 0;
	struct slice rest = n < in.n ? slice_of(in.p + n + 1, in.n - n - 1) : slice_of(NULL, 0);
	size_t max = 64 + in.n + ZSTD_compressBound(rest.n), packed = 0;
	AUTO_FREE uint8_t *buf = xmalloc(max), *frame = xmalloc(ZSTD_compressBound(rest.n));
	struct wr wr = wr_init(buf, max);
	uint8_t sum[SHA256_DIGEST_LENGTH];

	wr_bytes(&wr, slice_of(TEMPLATE_MAGIC, TEMPLATE_MAGIC_LEN));
	wr_u32(&wr, (uint32_t)n);
	wr_bytes(&wr, slice_of(in.p, n));
	if (rest.n > 0) {
		packed = ZSTD_compress(frame, ZSTD_compressBound(rest.n), rest.p, rest.n, 1);
		wr_u32(&wr, (uint32_t)rest.n);
		wr_u32(&wr, (uint32_t)packed);
		wr_bytes(&wr, slice_of(frame, packed));
	}
	wr_u32(&wr, 0);
	assert(wr_finish(&wr) == 0);
	(void)SHA256(buf, wr.n, sum);
	assert(fd_write_all(fd, buf, wr.n) == 0 && fd_write_all(fd, sum, sizeof(sum)) == 0);
}

static size_t drafts(void)
{
	AUTO_FREE char *store = template_store(NULL);
	DIR *d = opendir(store);
	size_t n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += strncmp(e->d_name, ".new.", 5) == 0;
	if (d)
		(void)closedir(d);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct template_naming naming = {.may_take = agree};
	struct template t = {0};
	struct err err = {0};

	if (size == 0)
		return 0;
	begin();
	if (data[0] == 0)
		assert(fd_write_all(fd, data + 1, size - 1) == 0);
	else
		wrap(fd, slice_of(data + 1, size - 1));
	if (lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (template_import(fd, &naming, NULL, NULL, &t, &err) == 0) {
		assert(template_verify(t.id, NULL, NULL, &err) == 0);
		template_done(&t);
	} else {
		assert(err.text[0]);
	}
	assert(drafts() == 0);
	return 0;
}
