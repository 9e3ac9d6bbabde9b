/* SPDX-License-Identifier: Apache-2.0 */
/*
 * managed - the managed policy: a file of root that limits the policy of every user of the host.
 *
 * How      A managed policy is a ceiling: a request is permitted if both policies permit it. So the
 *          rules of a user cannot loosen it, and those of the file grant nothing by themselves.
 *          managed_refresh reads the file if it or its directory has changed since the last call.
 *          The file must be a regular file of root in a directory of root, and nobody else may
 *          write to either. A file that exists and cannot be used is a fault, and then everything
 *          is denied.
 * Trust    The file is root's. sbxd and sbx read it as an ordinary user who may try to replace it,
 *          for example by a symbolic link. A user who runs other programs than those of the
 *          package is not bound by it.
 * Owns     The rules, until managed_done.
 * Limits   MANAGED_MAX_BYTES.
 * Never    Treats a file that it cannot read as one that does not exist.
 * See      proto/PROTOCOL.policy, managed_test.c, policy_limit in lib/rules/policy/table.h
 */
#pragma once

#include <sys/stat.h>
#include "lib/rules/policy/policy.h"

#define MANAGED_DIR "/etc/sbx"
#define MANAGED_FILE POLICY_MANAGED_FILE /* the file `policy` in it */
#define MANAGED_MAX_BYTES (8u << 20)
#define MANAGED_ID "managed:" /* and the line: how commands name a rule of the file */

struct managed {
	const char *dir; /* NULL: MANAGED_DIR; another one in tests */
	uid_t owner;	 /* 0; another one in tests */
	bool exists;	 /* also if it is faulty */
	struct rules rules;
	struct err fault; /* empty: none */
	bool fresh;	  /* the rest is of the files in `seen` */
	struct stat seen[2];
};

/* True if it is another policy than at the last call, or the first call. */
bool managed_refresh(struct managed *m);
void managed_done(struct managed *m);
#define AUTO_MANAGED CLEANUP(managed_done)
