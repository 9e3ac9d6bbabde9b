/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/settings/settings.h"

#define CHECKPOINT_MS 70000

static bool is_wanted(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) == 0 &&
	       strcmp(settings_get(&set, SETTINGS_CHECKPOINT_APPLY), "true") == 0;
}

void past_checkpoint(const char *ref)
{
	AUTO_JSON json_t *sandbox = NULL, *body = NULL, *answer = NULL;
	struct problem p = {0};
	int r;

	if (!is_wanted())
		return;
	r = sandbox_get(ref, &sandbox, &p);
	if (r == 0 && !sandbox_is(sandbox, "running"))
		return;
	body = json_pack("{s:b}", "auto", 1);
	ui_busy("freezing the disks");
	if (r == 0)
		r = sandbox_call("POST", ref, "/checkpoints", body, CHECKPOINT_MS, &answer, &p);
	ui_progress_end();
	if (r < 0)
		ui_warning("no checkpoint before the apply: %s", err_text(&p.err, r));
	else
		ui_note("Checkpoint '%s' created", api_str(answer, "label"));
}
