/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of origin_play.h, chosen by the fuzzer: several exchanges on lines of HTTP/2 and HTTP/1.1,
 * a server that resets, does not read, sends invalid heads, and repeats values. */
#include "origin_play.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct play_stats stats = {0};

	play_run(slice_of(p, n), &stats);
	play_forget();
	return 0;
}
