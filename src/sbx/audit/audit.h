/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - `sbx audit`, and records for other commands.
 *
 * How      audit_logs.h finds and reads logs, audit_text.h prints records, audit_cmd.h parses
 *          --limit. home_record.h records startup and key files when a sandbox is created.
 * Trust    Records contain names and texts of guests.
 */
#pragma once

#include "audit_cmd.h"
#include "audit_logs.h"
#include "audit_text.h"
#include "home_record.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_audit;
