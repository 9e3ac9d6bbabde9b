/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules - loads modules of the kernel, with what they need.
 *
 * How      Without modprobe, and without their signatures: checking one takes 20 ms under
 *          emulation, and root in the guest may load what it likes anyway. The kernel notes once
 *          that it is tainted. A kernel that insists gets the file as it is.
 * Trust    The initramfs and the guest's own disk.
 * Limits   MODULES_MAX modules a call.
 * See      modules_test.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

#define MODULES_MAX 48

/* One file, .ko or compressed. Loaded already is fine. */
int modules_load_file(const char *path, const char *params, struct err *err) MUST_CHECK;
/* Modules by name, perhaps with parameters ("dummy numdummies=0"), after those that modules.dep
 * says they need; a name that does not exist is taken to be built in. `names` ends with NULL. */
int modules_load(const char *const *names, struct err *err) MUST_CHECK;
/* The module without the signature at its end, if it has one. */
struct slice modules_unsigned(struct slice file);
/* The line of modules.dep for a name: "a/name.ko: b/needs.ko ..."; NULL when there is none. The
 * caller frees it. */
char *modules_find_dep(const char *dep, const char *name);
