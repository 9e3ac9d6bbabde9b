/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "tool.h"
#include "verdict.h"

#define CACHE_NAME "emulation-threads"
#define PARALLEL "parallel"
#define MAX_SAID 256

/* Of the first line of `qemu --version`. */
static bool is_parallel(const char *said)
{
	unsigned major, minor;

	if (sscanf(said, "QEMU emulator version %3u.%3u", &major, &minor) != 2)
		return false;
	return major > 8 || (major == 8 && minor >= 1);
}

/* False when it did not answer. */
static bool ask_emulator(const char *qemu, bool *ret_parallel)
{
	char said[MAX_SAID];
	int r = tool_run(
		(const char *[]){qemu, "--version", NULL}, said, sizeof(said), EMULATOR_MS);

	*ret_parallel = r == 0 && is_parallel(said);
	return r == 0;
}

static bool make_key(const char *qemu, char *buf, size_t size)
{
	struct wr w = wr_init(buf, size - 1);

	if (verdict_add_file(&w, qemu) < 0 || wr_finish(&w) < 0)
		return false;
	buf[w.n] = 0;
	return true;
}

enum vmm_accel emulator_accel(const char *qemu, const char *cache_dir)
{
	AUTO_FREE char *path = xasprintf("%s/" CACHE_NAME, cache_dir ? cache_dir : "");
	char key[VERDICT_MAX / 2], known[VERDICT_MAX];
	bool keep = cache_dir && make_key(qemu, key, sizeof(key));
	uint64_t age_s;
	bool parallel;

	if (keep && verdict_load(path, key, known, sizeof(known), &age_s))
		return strcmp(known, PARALLEL) == 0 ? VMM_TCG_PARALLEL : VMM_TCG;
	/* No answer may have been a busy moment: it is not kept. */
	if (ask_emulator(qemu, &parallel) && keep)
		verdict_store(path, key, parallel ? PARALLEL : "single");
	return parallel ? VMM_TCG_PARALLEL : VMM_TCG;
}
