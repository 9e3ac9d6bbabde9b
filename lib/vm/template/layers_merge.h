/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers_merge - merges a layer of a stopped sandbox's disk with the next one.
 *
 * How      A copy of the layer gets the data of the next one, and replaces the next one; then the
 *          layer is removed. Each state in between has the same content, so a kill leaves complete
 *          disks. The old files are only read: a template may have them too.
 * Trust    The layers are a guest's: qemu-img reads them in a jail.
 * Limits   LAYERS_MAX layers. The caller holds the lock of the sandbox: it cannot start meanwhile.
 * Never    Touches the top: a suspended sandbox has its size and time.
 * See      layers.h, layers_merge_test.c, tests/cli/test_template.py
 */
#pragma once

#include "layers.h"

/* A number that does not exist, or is the highest, is skipped. */
int layers_merge(const struct template *t, const char *dir, enum template_disk disk,
	unsigned number, struct err *err) MUST_CHECK;
