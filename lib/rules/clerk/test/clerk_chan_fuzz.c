/* SPDX-License-Identifier: Apache-2.0 */
/* A packet through the decoders of clerk_chan. What decodes is within its bounds. */
#include <assert.h>
#include <string.h>
#include "lib/rules/clerk/clerk_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(const struct ipc_msg *msg)
{
	struct clerk_effect e;
	struct slice records;
	size_t n, found = 0;

	if (clerk_get_effects(msg, &records, &n) < 0)
		return;
	while (clerk_next_effect(&records, &e) == 1) {
		assert(e.verb < CLERK_N_VERBS && e.ref.n > 0 && e.ref.n <= CLERK_MAX_REF);
		assert(e.path.n <= CLERK_MAX_PATH);
		found++;
	}
	assert(found == n && records.n == 0);
}

static void read_calls(const struct ipc_msg *msg)
{
	struct clerk_call call;
	struct slice records;
	size_t n, found = 0;

	if (clerk_get_calls(msg, &records, &n) < 0)
		return;
	while (clerk_next_call(&records, &call) == 1) {
		assert(call.type <= CLERK_UNKNOWN && clerk_call_name(call.type));
		assert(call.field.n <= CLERK_MAX_FIELD && call.object.n <= CLERK_MAX_OBJECT);
		assert((call.type == CLERK_UNKNOWN) == (call.field.n == 0));
		found++;
	}
	assert(found == n && records.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_msg msg;
	static struct clerk_judged judged;
	struct clerk_open open;
	struct clerk_line line;
	struct clerk_decided decided;
	char named[EDGE_MAX_NAMED];

	if (ipc_parse(slice_of(data, size), &msg) < 0)
		return 0;
	read_records(&msg);
	read_calls(&msg);
	if (clerk_get_judged(&msg, &judged) == 0)
		assert(memchr(judged.preview, 0, sizeof(judged.preview)) &&
			(!judged.is_unknown || judged.text[0]));
	if (clerk_get_open(&msg, &open) == 0)
		assert(memchr(open.wants, 0, sizeof(open.wants)));
	if (clerk_get_line(&msg, &line) == 0)
		assert(!line.given);
	if (clerk_get_decided(&msg, &decided) == 0)
		assert(!decided.allowed);
	if (clerk_get_want(&msg, named) == 0)
		assert(memchr(named, 0, sizeof(named)));
	return 0;
}
