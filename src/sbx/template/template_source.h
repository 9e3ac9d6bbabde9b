/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_source - templates from an OCI image or a Dockerfile.
 *
 * How      `sbx template build` uses this with --image or --file. The helper template-oci converts
 *          an image; the Docker of a scratch sandbox builds a Dockerfile. Both end as a template of
 *          the store.
 * Trust    Image, Dockerfile and context are untrusted: the first is only touched in the jail of
 *          the helper, the others only inside a sandbox. Only limited reports of those two are read
 *          here.
 * Limits   TEMPLATE_SOURCE_MAX_FILE bytes of a Dockerfile.
 * See      image/README, dockerfile.h, lib/vm/template/template.h
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"

#define TEMPLATE_SOURCE_MAX_FILE (1u << 20)
#define TEMPLATE_SOURCE_BASE "debian" /* provides kernel, modules and certificates */

#define TEMPLATE_SOURCE_OPTS                                                                       \
	{0, "image", "REF", "OCI image: docker://HOST/REPO:TAG, oci:DIR, docker-archive:FILE"},    \
		{0, "plain-http", NULL, "--image: a registry of this machine without TLS"},        \
		{0, "use-docker-login", NULL, "--image: use the passwords of docker login"},       \
		{'f', "file", "DOCKERFILE", "Dockerfile, built in a scratch sandbox"},             \
		{0, "context", "DIR",                                                              \
			"--file: build context (default: the Dockerfile's directory)"},            \
		{0, "build-arg", "NAME=VALUE", "--file: value of an ARG", .many = true},           \
	{                                                                                          \
		0, "allow-network", "LIST", "--file: hosts that the build may reach", .many = true \
	}

/* Whether one of them was requested. */
bool template_source_wanted(const struct opts *o);
/* The whole command; returns the exit status. */
int template_source_build(const struct opts *o);

/* The two kinds of build. `name` is checked already. `more`, if not NULL, is shown instead of the
 * image's name. */
int template_image_build(const char *name, const char *ref, bool plain, bool login,
	const json_t *more, struct problem *p) MUST_CHECK;
int template_file_build(const char *name, const struct opts *o, struct problem *p) MUST_CHECK;
