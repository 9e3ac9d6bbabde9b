/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail - runs one tool of a template's build in the jail of lib/os/jail (profile JAIL_TEMPLATE).
 *
 * How      template-oci starts the installed sbx-graft in new namespaces with the user's
 *          subordinate ids. The new root has the host's /usr read-only, /dev/null and the paths of
 *          the arguments; capabilities and system calls are those of the profile.
 * Trust    The arguments are template-oci's. The program that is started reads a stranger's files.
 * Limits   GRAFT_MAX_MOUNTS; the limits of the profile.
 * See      image/template-oci, lib/os/jail/profiles.c, tests/e2e/test_template_sources.py
 */
#pragma once

#define GRAFT_MAX_MOUNTS 16

/* argv: [--ro FROM:TO] [--rw FROM:TO] ... -- PROGRAM [ARGUMENT]...; PROGRAM is a path inside. */
void graft_jail(char **argv) __attribute__((noreturn));
