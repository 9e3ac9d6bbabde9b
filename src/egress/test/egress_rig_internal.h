/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_rig_internal - functions that the files of the rig share.
 */
#pragma once

/* Creates the table and forks the server. */
void rig_dns_start(void);
