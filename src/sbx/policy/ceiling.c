/* SPDX-License-Identifier: Apache-2.0 */
#include "ceiling.h"

#include "lib/client/api/policy_file.h"

const struct contain_limit *ceiling_load(struct ceiling *c)
{
	struct managed *m = &c->managed;

	policy_file_managed(m);
	if (!m->exists)
		return NULL;
	c->limit = (struct contain_limit){.rules = &m->rules};
	if (m->fault.text[0]) {
		c->limit.fault = m->fault.text;
		ui_warning("the managed policy cannot be used, so everything is denied: %s",
			m->fault.text);
	} else {
		ui_note("with the managed policy " MANAGED_FILE ": a request needs both policies");
	}
	return &c->limit;
}

void ceiling_done(struct ceiling *c)
{
	managed_done(&c->managed);
}
