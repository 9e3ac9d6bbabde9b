/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - limits and timeouts that more than one part uses.
 *
 * How      The limits of one part are in its own headers.
 * Trust    Internal.
 */
#pragma once

#include "lib/base/clock.h"

/* Of a sandbox's cgroup: bytes for all programs in addition to the VM's memory; threads. */
#define KEEPER_CGROUP_MORE (2ull << 30)
#define KEEPER_CGROUP_PIDS 4096

#define KEEPER_BOOT_MS_KVM clock_limit_ms(20000)
#define KEEPER_BOOT_MS_TCG clock_limit_ms(90000)
#define KEEPER_SETUP_MS clock_limit_ms(30000)
#define KEEPER_STOP_MS 10000
