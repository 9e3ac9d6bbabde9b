/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request to GraphQL, to records as the keeper reads them. Every body has an effect,
 * and a known one is that of a row of the pack. */
#include <assert.h>
#include <string.h>
#include "lib/rules/clerk/clerk_call.h"
#include "src/clerk/api/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "api 1\nservice test\nabout a test\nhost api.test:443\nobject all all\n"
			   "object node node/{node}\ngraphql /graphql\n"
			   "op read all.query query * on all\n"
			   "op write thing.create mutation createThing on node "
			   "show node=arg:/input/id title=arg:/input/title say \"create {title}\"\n"
			   "op danger thing.delete mutation deleteThing on node show node=arg:/id\n"
			   "end\n";

static void match(
	const struct pack *p, struct slice body, const char *type, struct pack_effects *effects)
{
	struct http_header header = {slice_from_str("content-type"), slice_from_str(type)};
	const struct http_headers headers = {.list = &header, .n = 1, .max = 1};
	const struct pack_request req = {.method = slice_from_str("POST"),
		.path = slice_from_str("/graphql"),
		.headers = &headers,
		.body = body,
		.has_body = true};

	pack_match_all(p, &req, effects);
}

static void check_record(const struct pack *p, const struct pack_effect *e)
{
	uint8_t buf[CALLS_RECORD];
	struct slice rest = slice_of(buf, calls_record(e, buf));
	const struct pack_row *row;
	struct clerk_call call;

	assert(rest.n > 0 && clerk_next_call(&rest, &call) == 1 && rest.n == 0);
	assert(e->row || (call.type == CLERK_UNKNOWN && e->why));
	if (call.type == CLERK_UNKNOWN)
		return;
	row = pack_find_field(p, slice_from_str(clerk_call_name(call.type)), call.field);
	assert(row == e->row && slice_eq_str(call.object, e->object));
}

static void no_output(void *arg, struct slice bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		assert(bytes.p[i] == '\n' || (bytes.p[i] >= ' ' && bytes.p[i] <= '~'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pack_effects effects;
	AUTO_PACK struct pack p = {0};
	char preview[CLERK_MAX_PREVIEW + 1];
	struct err err = {0};

	if (pack_parse_calls(slice_from_str(text), "test", &p, &err) < 0)
		assert(!"the pack is valid");
	match(&p, slice_of(data, size), "application/json", &effects);
	assert(effects.n > 0 && effects.n <= PACK_MAX_EFFECTS);
	for (size_t i = 0; i < effects.n; i++)
		check_record(&p, &effects.v[i]);
	calls_preview(&effects, preview);
	assert(strlen(preview) <= CLERK_MAX_PREVIEW);
	calls_refusal(preview, effects.v[0].why ? effects.v[0].why : "", no_output, NULL);
	match(&p, slice_of(data, size), "text/plain", &effects);
	assert(effects.n == 1 && !effects.v[0].row);
	return 0;
}
