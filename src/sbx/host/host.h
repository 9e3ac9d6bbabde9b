/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - commands about the installation and the host.
 *
 * How      check.h has the checks of `sbx diagnose`; other parts use it to find programs.
 * Trust    The host as the user sees it.
 */
#pragma once

#include "check.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_daemon, verb_diagnose, verb_debug, verb_metrics, verb_prove,
	verb_settings, verb_version;
