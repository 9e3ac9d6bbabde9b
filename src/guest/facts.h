/*
 * facts - what /setup told, as far as later execs need it.
 *
 * How      service.c fills it from /setup; spawn.c reads it for every exec.
 * Trust    The host's words, checked by guest_ctl.h.
 * Owns     Its strings; facts_done frees them.
 */
#pragma once

#include "env.h"
#include "lib/guestapi/guest_ctl.h"

struct facts {
	char *id, *name;
	char *workdir; /* "" or NULL: the user's home */
	struct env env;
};

void facts_take(struct facts *f, const struct guest_setup *setup);
void facts_done(struct facts *f);
