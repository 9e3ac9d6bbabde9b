/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network - what may leave the sandbox, and the published ports.
 *
 * How      net.c answers what edge asks, netpolicy.c reads the policy and sends it to egress,
 *          ports.c listens for the user's published ports, denied.c tells the guest why a
 *          connection was refused.
 * Trust    edge and egress may be compromised.
 */
#pragma once

#include "src/keeper/credential/credential.h"
#include "denied.h"
#include "net.h"
#include "netpolicy.h"
#include "ports.h"
