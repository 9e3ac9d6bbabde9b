/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates - the template of each sandbox, and unused templates.
 *
 * How      A sandbox is pinned to the id of its template's name at creation; an older one without
 *          an id, when sbxd starts, the sandbox starts or the name is removed. Ids of sandboxes and
 *          of names are kept, everything else in the store is removed (template_collect).
 * Trust    The user's own store. Nothing is hashed here: that would block all clients.
 * See      lib/vm/template/template.h
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/rules/spec/spec.h"

/* Sets template_id if a template of that name exists; a missing one is reported at the start. */
void templates_pin(struct spec *spec);
/* The same for a sandbox in the registry, which is updated too. */
void templates_pin_row(struct sbxd *d, struct spec *spec);
void templates_pin_all(struct sbxd *d);
void templates_collect(struct sbxd *d);
