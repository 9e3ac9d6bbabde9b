/* A packet through every decoder of the channel. What decodes is within its bounds. */
#include <assert.h>
#include "keeper_chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_msg msg;
	struct keeper_hello hello;
	struct keeper_state state;
	struct keeper_done done;
	struct keeper_stats stats;
	char path[KEEPER_MAX_PATH], name[KEEPER_MAX_NAME];
	uint32_t ms;

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
	(void)!keeper_get_stop(&msg, &ms);
	/* No fd comes with bytes in memory, so a stream never decodes. */
	assert(keeper_get_stream(&msg, path) < 0);
	if (keeper_get_reload(&msg, name) == 0)
		assert(memchr(name, 0, sizeof(name)));
	(void)!keeper_get_nothing(&msg);
	return 0;
}
