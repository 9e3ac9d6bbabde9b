/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust - the sandbox's CA in all the places where programs of the guest look, and what stands for
 * credentials where they look.
 *
 * How      The CA lies where update-ca-certificates would have put it: its own file among the local
 *          ones, a link under its hash, a block in the bundle, an entry in Debian's store for Java.
 *          So whoever runs that program later gets the same. A comment marks the block, and the CA
 *          of an earlier start is taken out by it. The user's own CAs (network.extra-ca) come
 *          behind it, in the same places and marked in the same way. TRUST_DIR has what is ours
 *          alone. Variables tell the programs that bring their own list.
 * Trust    Courtesy, as netconf.h: whoever is root in the guest may undo it and harms itself only.
 *          The CA and the variables are public: there is no secret in here.
 * Owns     Nothing.
 * Limits   FILE_MAX_BYTES a file; no program is run; asking twice writes nothing.
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
/* Puts everything in its place below root ("" in the guest). Goes on after a failure and tells
 * of the first. */
int trust_write(const char *root, const struct guest_trust *trust, struct err *err) MUST_CHECK;
/* The bundle without earlier CAs of ours and with these ("": none), on the heap. */
char *trust_bundle(const char *old, const char *ca_pem);
