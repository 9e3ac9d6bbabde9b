/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the keeper's worker processes, and the spawner that starts them.
 *
 * How      process.h has what all workers share; edge, egress and sbx-ssh-agent are one header
 *          each. hands.h asks the spawner for what a sealed keeper cannot do itself.
 * Trust    Workers may be compromised; the spawner treats the keeper as compromised.
 */
#pragma once

#include "src/keeper/link/link.h"
#include "ssh_agent_link.h"
#include "asked.h"
#include "edge_link.h"
#include "egress_link.h"
#include "hands.h"
#include "process.h"
