/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_rig_internal - what the files of the rig say to each other.
 */
#pragma once

/* Makes the table and forks the server. */
void rig_dns_start(void);
