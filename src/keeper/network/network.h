/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network - the outgoing network of the sandbox, and its published ports.
 *
 * How      net.c answers requests of edge, netpolicy.c reads the policy and sends it to egress,
 *          ports.c listens on the published ports, denied.c lists blocked connections for the
 *          guest, holds.c keeps requests that need a person's approval, clerks.c has pushes read.
 * Trust    edge and egress may be compromised.
 */
#pragma once

#include "src/keeper/credential/credential.h"
#include "clerks.h"
#include "denied.h"
#include "holds.h"
#include "net.h"
#include "netpolicy.h"
#include "ports.h"
