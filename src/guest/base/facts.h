/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts - data of /setup and /trust that later execs need.
 *
 * How      service.c fills it from /setup and /trust; spawn.c reads it for every exec.
 * Trust    Data of the host, checked by guest_ctl.h.
 * Owns     Its strings, for the lifetime of the process.
 */
#pragma once

#include <stdbool.h>
#include "env.h"

struct facts {
	char *id, *name;
	char *workdir; /* "" or NULL: the user's home */
	struct env env;
	bool has_ca;	  /* the sandbox has a CA (trust.h) */
	struct env trust; /* placeholder credentials */
};
