/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe - the verbs of sbx-probe.
 *
 * How      A verb gets its arguments, prints one line and returns 0 (possible), 1 (refused), 2
 *          (usage).
 * Trust    Runs as root in the guest, and as the user on the host: it tries, it never decides.
 * Never    Leaves anything behind, waits without a bound.
 * See      data/probes/README
 */
#pragma once

#include <stdbool.h>

#include "lib/base/attr.h"

#define PROBE_POSSIBLE 0
#define PROBE_REFUSED 1
#define PROBE_USAGE 2

/* argc counts what follows the verb. */
int probe_change(int argc, char **argv);
int probe_keys(int argc, char **argv);
int probe_memory(int argc, char **argv);
int probe_create(int argc, char **argv);
int probe_fuse(int argc, char **argv);
int probe_handles(int argc, char **argv);
int probe_mmap(int argc, char **argv);
int probe_mount(int argc, char **argv);
int probe_mounts(int argc, char **argv);
int probe_drive(int argc, char **argv);
int probe_socket(int argc, char **argv);
int probe_sum(int argc, char **argv);
int probe_local(int argc, char **argv);
int probe_peer(int argc, char **argv);
int probe_pipe(int argc, char **argv);
int probe_plant(int argc, char **argv);
int probe_swap(int argc, char **argv);
int probe_vault(int argc, char **argv);
int probe_unix_connect(int argc, char **argv);
int probe_unix_listen(int argc, char **argv);
int probe_xattr_list(int argc, char **argv);
int probe_xattr_set(int argc, char **argv);
int probe_talk(int argc, char **argv);
int probe_dns(int argc, char **argv);
int probe_udp(int argc, char **argv);
int probe_raw(int argc, char **argv);
int probe_packet(int argc, char **argv);
int probe_xdp(int argc, char **argv);
int probe_vsock(int argc, char **argv);
int probe_listen(int argc, char **argv);

/* Prints `ENAME what` for errno; gives PROBE_REFUSED. */
int probe_refused(const char *what);
