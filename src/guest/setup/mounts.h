/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts - mounts the workspaces: the one virtiofs share, and a bind mount of each part.
 *
 * How      The share is mounted once, below a directory that only root can enter, for the first
 *          workspace. An existing bind mount is not changed, so a repeated request is harmless.
 *          Parent directories that the guest does not have are bound from the share too: stubs that
 *          the host keeps read-only. A staged workspace is an overlay (stage.h).
 * Trust    The host's list. Read-only mounts here only help programs: the host enforces it.
 * Owns     The list of places that are bound.
 * Limits   MOUNTS_SHARE_MS for a share device that was plugged in a moment ago.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/wire/guestapi/guest_ctl.h"

#define MOUNTS_DIR "/run/sbx/workspaces" /* only root enters: the share shows all of them as root */
#define MOUNTS_SHARE MOUNTS_DIR "/share"
#define MOUNTS_SHARE_MS 10000
#define MOUNTS_MAX 256

struct mounts {
	char *id; /* of the sandbox, for staged workspaces */
	bool shared;
	size_t n;
	char *places[MOUNTS_MAX];
};

/* The share was unmounted everywhere; the list of mounts stays for their restoration. */
void mounts_gone(struct mounts *m);
/* Mounts the share alone, below MOUNTS_SHARE. */
int mounts_share_again(struct mounts *m, struct err *err) MUST_CHECK;
/* Copies the id. */
void mounts_set_id(struct mounts *m, const char *id);
int mounts_apply(struct mounts *m, const struct guest_mounts *want, struct err *err) MUST_CHECK;
