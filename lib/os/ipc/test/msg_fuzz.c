/* SPDX-License-Identifier: Apache-2.0 */
/* A packet that parses says about itself exactly what was there. */
#include <assert.h>
#include "lib/os/ipc/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_msg msg;

	if (ipc_parse(slice_of(data, size), &msg) < 0)
		return 0;
	assert(msg.n + IPC_HEADER == size && msg.n <= IPC_MAX_BODY && msg.fd == -1);
	assert(slice_eq(ipc_body(&msg), slice_of(data + IPC_HEADER, msg.n)));
	return 0;
}
