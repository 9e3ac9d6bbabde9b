/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints - the list of a sandbox's checkpoints: sandboxes/ID/checkpoints, one JSON object.
 *
 * How      A checkpoint is the numbers of the highest layers of both disks at its time
 *          (lib/vm/template/layers.h). The keeper makes the layers; sbxd alone writes the list, and
 *          replaces it in one step. The oldest checkpoint is first. `aside` describes the last
 *          rewind, for its undo (rewind.h).
 * Trust    A compromised keeper can write the file: every field is checked, and a symbolic link is
 *          not followed.
 * Limits   CHECKPOINTS_MAX entries, CHECKPOINTS_MAX_BYTES.
 * See      proto/PROTOCOL.api, tests/api/test_checkpoint.py
 */
#pragma once

#include <jansson.h>
#include "lib/base/err.h"
#include "lib/vm/template/layers.h"

#define CHECKPOINTS_MAX LAYERS_MAX
#define CHECKPOINTS_MAX_LABEL 32
#define CHECKPOINTS_MAX_BYTES (64u << 10)

struct checkpoint {
	char label[CHECKPOINTS_MAX_LABEL + 1];
	uint64_t time_ms;
	uint64_t seq;	   /* of its record in the audit log of the sandbox */
	uint64_t bytes;	   /* of the layers that it made */
	uint64_t pause_ms; /* of the guest */
	unsigned layer[TEMPLATE_N_DISKS];
	bool is_auto;	 /* created by a setting, and removed by checkpoint.keep */
	bool has_memory; /* memories.h */
};

struct checkpoints {
	struct checkpoint v[CHECKPOINTS_MAX];
	size_t n;
	/* The last rewind: its time, its highest kept layers, and the checkpoints set aside. */
	bool has_aside;
	uint64_t aside_ms;
	unsigned keep[TEMPLATE_N_DISKS];
	struct checkpoint aside[CHECKPOINTS_MAX];
	size_t n_aside;
};

/* 1 to CHECKPOINTS_MAX_LABEL of a-z 0-9 . _ -, and the first is a letter. */
bool checkpoints_is_label(const char *s);
/* No file: an empty list. -EBADMSG if the file is not a list. */
int checkpoints_load(const char *id, struct checkpoints *ret, struct err *err) MUST_CHECK;
int checkpoints_save(const char *id, const struct checkpoints *l, struct err *err) MUST_CHECK;
/* The same as JSON; false if it is not a list. *ret must be all zero. */
json_t *checkpoints_encode(const struct checkpoints *l);
bool checkpoints_decode(const json_t *o, struct checkpoints *ret);
/* NULL if there is none. */
struct checkpoint *checkpoints_find(struct checkpoints *l, const char *label);
void checkpoints_remove(struct checkpoints *l, struct checkpoint *c);
/* The first unused of c1, c2 ... */
void checkpoints_next_label(struct checkpoints *l, char ret[CHECKPOINTS_MAX_LABEL + 1]);
/* auto-YYYYMMDD-HHMMSS, in UTC. */
void checkpoints_auto_label(uint64_t time_ms, char ret[CHECKPOINTS_MAX_LABEL + 1]);
/* The oldest automatic checkpoint, if there are more than `keep` (0: no limit); else NULL. */
struct checkpoint *checkpoints_over(struct checkpoints *l, uint64_t keep);
/* Whether a layer and the next one may become one file: no checkpoint and no undo needs the state
 * between them. */
bool checkpoints_may_merge(const struct checkpoints *l, enum template_disk disk, unsigned number);
json_t *checkpoints_to_json(const struct checkpoint *c);
