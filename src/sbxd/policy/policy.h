/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - the policy of the installation, and changes of its rules.
 *
 * How      rulebook.h has the file and the rules in memory, rulebook_edit.h the changes, scope.h
 *          the rules of one sandbox that is created, renamed or removed, tables.h the compiled
 *          policy for keepers, limit.h the check of new rules against the managed policy.
 * Trust    The user's own directory.
 */
#pragma once

#include "limit.h"
#include "rulebook.h"
#include "scope.h"
#include "tables.h"
