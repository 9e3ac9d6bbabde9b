/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - the verbs of sbx-probe about files, mounts and the share.
 *
 * How      One file per one or two verbs; verb.h defines the results of a verb.
 * Trust    Runs as root in the guest, and as the user on the host.
 */
#pragma once

int probe_change(int argc, char **argv);
int probe_create(int argc, char **argv);
int probe_fuse(int argc, char **argv);
int probe_handles(int argc, char **argv);
int probe_mmap(int argc, char **argv);
int probe_mount(int argc, char **argv);
int probe_mounts(int argc, char **argv);
int probe_sum(int argc, char **argv);
int probe_local(int argc, char **argv);
int probe_pipe(int argc, char **argv);
int probe_plant(int argc, char **argv);
int probe_swap(int argc, char **argv);
int probe_xattr_list(int argc, char **argv);
int probe_xattr_set(int argc, char **argv);
