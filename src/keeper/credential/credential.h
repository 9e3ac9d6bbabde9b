/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential - which host gets which credential, and the sbx-origin processes that add it.
 *
 * How      vault_link.c lists the credentials, creds.c binds them to hosts, origin_*.c run one
 *          sbx-origin for each host, trust.c and roots.c handle certificates.
 * Trust    The vault is trusted about names; origins and their servers are not.
 * Never    Holds a credential's value.
 */
#pragma once

#include "src/keeper/guest/guest.h"
#include "creds.h"
#include "origins.h"
#include "trust.h"
#include "vault_link.h"
