/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/client/api/api.h"
#include "lib/client/cli/when.h"
#include "prove.h"

static json_t *result_to_json(const struct prove_result *r)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:i}", "id",
		r->id, "group", r->group, "title", r->title, "tried", r->tried, "inside", r->inside,
		"outside", r->outside, "verdict", prove_word(r->verdict), "why", r->why, "means",
		r->means, "on", r->twin ? "twin" : "sandbox", "own", r->own, "next", r->next, "ms",
		(int)r->ms);
}

void prove_json(const struct prove_run *run)
{
	AUTO_JSON json_t *whole = NULL;
	json_t *list = json_array();
	char when[WHEN_TEXT];

	when_print(run->begun_ms, false, when);
	for (size_t i = 0; i < run->n; i++)
		(void)json_array_append_new(list, result_to_json(&run->results[i]));
	whole = json_pack(
		"{s:s, s:s, s:s, s:s, s:s?, s:b, s:s?, s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:{s:i, "
		"s:i, s:i}, s:o}",
		"sandbox", run->sandbox, "id", run->id, "accel", run->accel, "template",
		run->template, "kernel", run->kernel, "boundary", strcmp(run->accel, "tcg") != 0,
		"twin", run->twin, "host", run->host, "version", run->version, "began", when,
		"seconds", (json_int_t)((run->took_ms + 999) / 1000), "ms",
		(json_int_t)run->took_ms, "quick", run->quick, "interrupted", run->cut, "counts",
		"pass", (int)run->count[PROVE_PASS], "fail", (int)run->count[PROVE_FAIL], "skip",
		(int)run->count[PROVE_SKIP], "probes", list);
	api_print(whole);
}
