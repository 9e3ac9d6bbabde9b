/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the keeper's worker processes, and the spawner that starts them.
 *
 * How      process.h has the common part of all workers; edge, egress and sbx-ssh-agent have one
 *          header each. hands.h requests operations of the spawner.
 * Trust    Workers may be compromised; the spawner treats the keeper as compromised.
 */
#pragma once

#include "src/keeper/link/link.h"
#include "ssh_agent_link.h"
#include "edge_link.h"
#include "egress_link.h"
#include "hands.h"
#include "process.h"
