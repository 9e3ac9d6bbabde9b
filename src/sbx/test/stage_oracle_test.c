/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_oracle_test - after an apply the workspace equals what the guest sees; after an undo it is
 * what it was. The guest is a real overlay, SBX_STAGE_SEQUENCES random sequences long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "stage_rig.h"

/* The order of writes on a disk is not the subject here. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	return 0;
}

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
	return 0;
}

static int differ(const char *what, uint64_t seed, const char *want, const char *have)
{
	printf("sequence %llu: %s\n---- expected\n%s---- found\n%s", (unsigned long long)seed, what,
		want, have);
	return 1;
}

static int run_sequence(uint64_t seed)
{
	AUTO_FREE char *during = NULL, *after = NULL, *undone = NULL;
	struct rig r;
	int bad = 0;

	rig_open(&r, seed);
	rig_guest(&r, 1 + (unsigned)rig_random(&r, 40));
	during = rig_host_snapshot(&r, true);
	if (strcmp(during, r.before) != 0)
		bad = differ("the guest changed the workspace", seed, r.before, during);
	rig_plan(&r);
	if (!bad && rig_apply(&r) != 0)
		bad = differ("a step was skipped", seed, "", "");
	after = rig_host_snapshot(&r, true);
	if (!bad && strcmp(after, r.view) != 0)
		bad = differ("apply", seed, r.view, after);
	rig_plan(&r);
	if (!bad && r.plan.n != 0)
		bad = differ("a second plan is not empty", seed, "", r.plan.v[0].path);
	if (!bad && rig_undo(&r) != 0)
		bad = differ("a step was not undone", seed, "", "");
	undone = rig_host_snapshot(&r, true);
	if (!bad && strcmp(undone, r.before) != 0)
		bad = differ("undo", seed, r.before, undone);
	rig_close(&r);
	return bad;
}

int main(void)
{
	const char *text = getenv("SBX_STAGE_SEQUENCES"), *from = getenv("SBX_STAGE_SEED");
	uint64_t n = text ? strtoull(text, NULL, 10) : 200;
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;

	for (uint64_t i = first; i < first + n; i++)
		if (run_sequence(i))
			return 1;
	printf("%llu sequences\n", (unsigned long long)n);
	return 0;
}
