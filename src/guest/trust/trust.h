/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust - installs the sandbox CA and placeholder credentials for programs of the guest.
 *
 * How      The CA is stored where update-ca-certificates puts it: its own file among the local
 *          ones, a link under its hash, a block in the bundle, an entry in Debian's store for Java.
 *          So running that program later gives the same result. A comment marks the block, and the
 *          CA of an earlier start is removed by it. The user's own CAs (network.extra-ca) follow
 *          it, in the same places and marked in the same way. TRUST_DIR has our own files.
 *          Variables configure programs that have their own list.
 * Trust    Not enforcement, as netconf.h: guest root can undo it and harms only itself. The CA and
 *          the variables are public. Handles no secrets.
 * Owns     Nothing.
 * Limits   FILE_MAX_BYTES per file; no program is run; a repeated request writes nothing.
 * See      trust_test.c, oci.h for containers, proto/PROTOCOL.guest
 */
#pragma once

#include "jks.h"
#include "lib/base/err.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "src/guest/base/base.h"

#define TRUST_DIR "/run/sbx"
#define TRUST_CA TRUST_DIR "/ca.pem"
#define TRUST_JKS TRUST_DIR "/cacerts"
#define TRUST_VARIABLES TRUST_DIR "/variables" /* NAME=value, a line each */
#define TRUST_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

struct trust_paths {
	const char *ca, *bundle, *jks;
};

extern const struct trust_paths trust_of_guest;

/* Sets the variables; JAVA_TOOL_OPTIONS is added to. */
void trust_env(struct env *e, const struct trust_paths *paths);
/* Writes everything below root ("" in the guest). Continues after a failure and returns the
 * first. */
int trust_write(const char *root, const struct guest_trust *trust, struct err *err) MUST_CHECK;
/* Returns the bundle without our earlier CAs and with these ("": none), on the heap. */
char *trust_bundle(const char *old, const char *ca_pem);
