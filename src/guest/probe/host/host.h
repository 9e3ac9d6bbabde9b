/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the verbs of sbx-probe about keys, memory and the vault, and the driver of parts.
 *
 * How      One file per verb; verb.h defines the results of a verb.
 * Trust    Runs as root in the guest, and as the user on the host.
 */
#pragma once

int probe_keys(int argc, char **argv);
int probe_memory(int argc, char **argv);
int probe_drive(int argc, char **argv);
int probe_vault(int argc, char **argv);
