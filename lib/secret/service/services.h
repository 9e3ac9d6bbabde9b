/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services - all services of an installation, found by host or by name.
 *
 * How      services_add parses one file and adds it, unless another service has the same host,
 *          variable or name; services_load does so for a directory, in the order of the names, and
 *          keeps a message for each rejected file. services_find searches a compiled policy
 *          (policy.h) in which each service is a group: its cost does not grow with the number of
 *          services.
 * Trust    As service.h. services_load reads files of one directory; nothing else does I/O.
 * Owns     A struct services owns its services; what is found lives as long as it does.
 * Limits   SERVICES_MAX, SERVICES_MAX_FAULTS.
 * Never    Drops all files because of a bad one, or has two services for the same request: the
 *          first one stays.
 * See      proto/PROTOCOL.service, services_test.c, data/services
 */
#pragma once

#include "service.h"

#define SERVICES_MAX 256
#define SERVICES_MAX_FAULTS 32

struct services;

struct services *services_new(void);
void services_free(struct services *set);

/* `name` is the file's name for messages. -EEXIST: it meets another service. */
int services_add(
	struct services *set, struct slice text, const char *name, struct err *err) MUST_CHECK;
/*
 * Every NAME.conf of a directory; none if it does not exist. Only a directory that cannot be read
 * is an error: services_fault has the faults of files.
 */
int services_load(struct services *set, const char *folder, struct err *err) MUST_CHECK;
/* Those of this installation: its own files, then the user's in the directory `services` next to
 * settings.conf. */
int services_load_installed(struct services *set, struct err *err) MUST_CHECK;

size_t services_count(const struct services *set);
const struct service *services_get(const struct services *set, size_t i);
size_t services_count_faults(const struct services *set);
/* "FILE: line N: what is wrong" */
const char *services_fault(const struct services *set, size_t i);

const struct service *services_by_name(const struct services *set, const char *name);
/* The service whose slots or token endpoint are at this host and port; NULL when there is none. */
const struct service *services_find(
	const struct services *set, const struct host *host, uint16_t port);
