/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - the files of sandboxes and their removal.
 *
 * How      wipe.h removes the directory of a sandbox, kept.h handles the memory of suspended
 *          sandboxes, templates.h pins and collects templates, images.h creates snapshots in the
 *          background, ballast.h reserves disk space, guarded.h reads what the guard recorded,
 *          checkpoints.h lists the checkpoints of a sandbox, memories.h has their memory, rewind.h
 *          returns to one, merges.h merges their layers.
 * Trust    The user's own directories. Symbolic links are not followed.
 */
#pragma once

#include "ballast.h"
#include "checkpoints.h"
#include "guarded.h"
#include "images.h"
#include "kept.h"
#include "memories.h"
#include "merges.h"
#include "rewind.h"
#include "templates.h"
#include "wipe.h"
