/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci - every container of the guest's Docker, and every step of an image build, gets the sandbox's
 * CA and what stands for credentials.
 *
 * How      dockerd has OCI_BIN first in its PATH, where `runc` is sbx-guest itself (argv[0]). It
 *          edits config.json of a container that is made, or the process of a `docker exec`, and
 *          becomes the real runc with the same arguments. It adds variables that neither image nor
 *          user set, and a folder with the bundle, the CA and Java's store at OCI_PLACE: /dev is
 *          a tmpfs of each container, so no mount point stays behind in an image. The bundle is
 *          the container's own and our CA. Where a container has a bundle but nothing that could
 *          write it again, ours is bound over it too, read-only. Elsewhere it is not: rename(2)
 *          onto a mount fails, and with it update-ca-certificates and apk. Nor in a build.
 * Trust    No boundary: containers and their configs are the guest's own affair, and whoever calls
 *          the real runc has none of this. Files in a container are read below its root only.
 * Owns     OCI_DIR, a folder for each different bundle, named by its sum, until the guest ends.
 * Limits   OCI_MAX_FOLDERS; files of FILE_MAX_BYTES. When anything fails, the container
 *          starts as it was and Docker's log says why.
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
	const char *bundle;  /* the folder of config.json */
	const char *process; /* of OCI_EXEC: the file, or NULL */
};

/* What there is to add. */
struct oci_add {
	struct env env;
	const char *folder; /* appears at OCI_PLACE; NULL: nothing does */
	const char *bundle; /* this file appears at each of the binds */
	size_t n_binds;
	const char *binds[OCI_MAX_BINDS];
};

/* Where things are: tests have them elsewhere. */
struct oci_host {
	const char *ca, *variables, *bundle, *dir;
};

extern const struct oci_host oci_host;

void oci_parse(int argc, char **argv, struct oci_args *ret);
/* The config with the additions, on the heap. -EBADMSG when it is not one. */
int oci_edit(const char *config, const struct oci_add *add, char **ret) MUST_CHECK;
/* The same for the process of an exec: variables only. */
int oci_edit_process(const char *process, const struct env *env, char **ret) MUST_CHECK;
/* Has the container a /dev of its own, in which a mount leaves no trace? */
bool oci_has_dev(const char *config);
/* Edits the files that the arguments name. */
int oci_prepare(
	const struct oci_host *host, const struct oci_args *args, struct err *err) MUST_CHECK;
/* In PID 1: puts `runc` into OCI_BIN. */
int oci_install(struct err *err) MUST_CHECK;
/* The program. */
int oci_main(int argc, char **argv);
