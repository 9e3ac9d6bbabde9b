/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "lib/os/ipc/keeper_chan.h"

struct start_choice plan_select(const struct start_facts *f)
{
	const char *why = f->image_why;

	if (f->wanted == START_MAKE)
		return (struct start_choice){START_MAKE, NULL};
	if (f->wanted == START_WARM && f->is_suspended)
		return (struct start_choice){START_RESUME, NULL};
	if (f->wanted == START_COLD)
		why = KEEPER_COLD_ASKED;
	else if (f->is_suspended || f->has_own_disks)
		why = KEEPER_COLD_OWN;
	return (struct start_choice){why && f->wanted == START_WARM ? START_COLD : f->wanted, why};
}

bool plan_needs_image(struct start_facts f)
{
	f.image_why = "";
	return plan_select(&f).why == f.image_why;
}
