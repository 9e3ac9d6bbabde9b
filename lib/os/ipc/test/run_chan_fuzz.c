/* SPDX-License-Identifier: Apache-2.0 */
/* One packet; the first byte says whether an fd came along. What is decoded has its bounds. */
#include "lib/os/ipc/run_chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	static struct run run;
	int32_t how;

	if (n < 1 || ipc_parse(slice_of(p + 1, n - 1), &msg) < 0)
		return 0;
	msg.fd = p[0] & 1 ? 1 << 20 : -1;
	if (run_get_run(&msg, &run) == 0) {
		check(run.kind < RUN_N_KINDS && msg.fd >= 0);
		check(run.timeout_ms && run.timeout_ms <= RUN_MAX_MS);
		check((run.kind == RUN_REF) == (run.serial != 0));
	}
	if (run_get_ended(&msg, &how) == 0)
		check(how >= -4095 && how <= 255);
	return 0;
}
