/* SPDX-License-Identifier: Apache-2.0 */
/* A packet through the decoders of hold_msg. What decodes is within its bounds. */
#include <assert.h>
#include <string.h>
#include "lib/rules/hold/hold_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_msg msg;
	static struct hold_msg held;
	struct hold_reply reply;
	char id[HOLD_ID];

	if (ipc_parse(slice_of(data, size), &msg) < 0)
		return 0;
	if (hold_get_held(&msg, &held) == 0)
		assert(msg.id < HOLD_MAX && hold_id_parse(held.id, id) == 0 &&
			memchr(held.preview, 0, sizeof(held.preview)));
	if (hold_get_unheld(&msg) == 0)
		assert(msg.id < HOLD_MAX);
	if (hold_get_reply(&msg, &reply) == 0)
		assert(reply.choice < HOLD_N_CHOICES &&
			memchr(reply.reason, 0, sizeof(reply.reason)));
	return 0;
}
