/* SPDX-License-Identifier: Apache-2.0 */
/* A packet through every decoder of the channel. What decodes is within its bounds. */
#include <assert.h>
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/keeper_ports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_msg msg;
	static struct keeper_ports ports;
	struct keeper_hello hello;
	struct keeper_state state;
	struct keeper_done done;
	struct keeper_stats stats;
	struct keeper_frozen frozen;
	char path[KEEPER_MAX_PATH], name[KEEPER_MAX_NAME];
	uint32_t ms;
	uint8_t part;

	if (ipc_parse(slice_of(data, size), &msg) < 0)
		return 0;
	if (keeper_get_hello(&msg, &hello) == 0)
		assert(memchr(hello.id, 0, sizeof(hello.id)));
	if (keeper_get_state(&msg, &state) == 0)
		assert(state.phase < KEEPER_N_PHASES && state.progress <= 100 &&
			memchr(state.text, 0, sizeof(state.text)));
	if (keeper_get_done(&msg, &done) == 0)
		assert(done.code <= 0);
	(void)!keeper_get_stats(&msg, &stats);
	if (keeper_get_frozen(&msg, &frozen) == 0)
		assert(frozen.code <= 0 && frozen.layers[1] <= KEEPER_MAX_LAYER);
	(void)!keeper_get_stop(&msg, &ms);
	/* No fd comes with bytes in memory, so a stream never decodes. */
	assert(keeper_get_stream(&msg, path) < 0);
	assert(chan_get_plain(&keeper_chan, &msg, KEEPER_VAULT) < 0);
	assert(keeper_get_policy(&msg, &part) < 0);
	if (keeper_get_reload(&msg, name) == 0)
		assert(memchr(name, 0, sizeof(name)));
	(void)!keeper_get_nothing(&msg);
	if (keeper_get_ports(&msg, &ports) == 0)
		assert(ports.n <= KEEPER_MAX_PORTS);
	if (keeper_get_ports_are(&msg, &ports) == 0)
		for (size_t i = 0; i < ports.n; i++)
			assert(ports.v[i].code <= 0 && memchr(ports.v[i].ip, 0, KEEPER_MAX_IP));
	return 0;
}
