/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules - loads kernel modules with their dependencies.
 *
 * How      Without modprobe, and without the modules' signatures: checking one takes 20 ms under
 *          emulation, and guest root may load any module anyway. The kernel logs once that it is
 *          tainted. A kernel that requires signatures gets the unmodified file.
 * Trust    The initramfs and the guest's own disk.
 * Limits   MODULES_MAX modules a call.
 * See      modules_test.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

#define MODULES_MAX 48

/* One file, .ko or compressed. Not an error if loaded already. */
int modules_load_file(const char *path, const char *params, struct err *err) MUST_CHECK;
/* Loads modules by name, optionally with parameters ("dummy numdummies=0"), after their
 * dependencies. A name without a file is assumed to be built in. `names` ends with NULL. */
int modules_load(const char *const *names, struct err *err) MUST_CHECK;
/* The module without a signature at its end. */
struct slice modules_unsigned(struct slice file);
/* Returns the line of modules.dep for a name: "a/name.ko: b/needs.ko ..."; NULL if there is none.
 * The caller frees it. */
char *modules_find_dep(const char *dep, const char *name);
