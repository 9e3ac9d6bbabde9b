/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - merges layers of a stopped sandbox's disks after a checkpoint was removed.
 *
 * How      For each number that sbxd reports, lib/vm/template/layers_merge.h merges the layer and
 *          the next one.
 * Trust    The reply of sbxd. qemu-img runs in a jail.
 * Limits   Holds the lock of the sandbox: it cannot start meanwhile. LAYERS_MAX layers.
 * See      proto/PROTOCOL.api, tests/cli/test_template.py
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"

/* The reply of DELETE /v1/sandboxes/REF/checkpoints. */
int merge_layers(const json_t *answer, struct problem *p) MUST_CHECK;
