/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci - adds the sandbox CA and placeholder credentials to every container and build step of
 *        Docker.
 *
 * How      dockerd has OCI_BIN first in its PATH, where `runc` is sbx-guest itself (argv[0]). It
 *          edits config.json of a new container, or the process of a `docker exec`, and executes
 *          the real runc with the same arguments. It adds variables that neither image nor user
 *          set, and a directory with the bundle, the CA and Java's store at OCI_PLACE: /dev is a
 *          tmpfs of each container, so no mount point remains in an image. The bundle is that of
 *          the container plus our CA. If a container has a bundle but no program that rewrites it,
 *          ours is bind-mounted over it, read-only. Otherwise it is not: rename(2) onto a mount
 *          fails, and with it update-ca-certificates and apk. Nor in a build.
 * Trust    Not a boundary: containers and their configs belong to the guest, and a caller of the
 *          real runc bypasses this. Files in a container are read below its root only.
 * Owns     OCI_DIR, with a directory for each different bundle, named by its checksum, until the
 *          guest stops.
 * Limits   OCI_MAX_FOLDERS; files of FILE_MAX_BYTES. After a failure the container starts unchanged
 *          and Docker's log has the reason.
 * See      oci_test.c, trust.h, jedit.h
 */
#pragma once

#include "src/guest/base/base.h"
#include "src/guest/trust/trust.h"

#define OCI_BIN TRUST_DIR "/bin"
#define OCI_DIR TRUST_DIR "/oci"
#define OCI_RUNC "runc"
#define OCI_PLACE "/dev/sbx"
#define OCI_MAX_FOLDERS 64
#define OCI_MAX_BINDS 4

enum oci_kind { OCI_OTHER, OCI_CREATE, OCI_RUN, OCI_EXEC };

struct oci_args {
	enum oci_kind kind;
	const char *bundle;  /* the directory of config.json */
	const char *process; /* of OCI_EXEC: the file, or NULL */
};

/* Additions to a container. */
struct oci_add {
	struct env env;
	const char *folder; /* mounted at OCI_PLACE; NULL: none */
	const char *bundle; /* this file is mounted at each of the binds */
	size_t n_binds;
	const char *binds[OCI_MAX_BINDS];
};

/* Paths, which tests replace. */
struct oci_host {
	const char *ca, *variables, *bundle, *dir;
};

extern const struct oci_host oci_host;

void oci_parse(int argc, char **argv, struct oci_args *ret);
/* Returns the config with the additions, on the heap. -EBADMSG if it is invalid. */
int oci_edit(const char *config, const struct oci_add *add, char **ret) MUST_CHECK;
/* The same for the process of an exec: variables only. */
int oci_edit_process(const char *process, const struct env *env, char **ret) MUST_CHECK;
/* Whether the container has its own /dev, in which a mount point leaves no trace. */
bool oci_has_dev(const char *config);
/* Edits the files that the arguments name. */
int oci_prepare(
	const struct oci_host *host, const struct oci_args *args, struct err *err) MUST_CHECK;
/* In PID 1: puts `runc` into OCI_BIN. */
int oci_install(struct err *err) MUST_CHECK;
/* The program. */
int oci_main(int argc, char **argv);
