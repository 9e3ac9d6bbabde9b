/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_file - the service file of a registry, in the user's directory `services`.
 *
 * How      `sbx secret set --registry` writes NAME.conf, `sbx secret rm` removes it with the last
 *          credential of that name. sbxd and keepers read it like each other service file.
 * Trust    The user's own files: a file that sbx did not write is neither replaced nor removed. No
 *          credential is in it.
 * See      lib/secret/service/registry.h, tests/cli/test_secret.py
 */
#pragma once

#include "lib/client/cli/ui.h"

/* Whether no other service is for the same hosts, and the name is free or a registry's. */
int registry_file_check(const char *name, const char *text, struct problem *p) MUST_CHECK;
int registry_file_save(const char *name, const char *text, struct problem *p) MUST_CHECK;
/* Does nothing if it does not exist or sbx did not write it. */
void registry_file_remove(const char *name);
