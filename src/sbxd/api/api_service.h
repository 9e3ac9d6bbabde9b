/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_service - services in the replies of the API, and the policy for their hosts.
 *
 * How      Services are read again for each call: they are few, and a new file applies immediately.
 *          api_denied_hosts queries the policy as a keeper would, for hosts that are not patterns.
 * Trust    Files of the installation and of the user.
 * Owns     Nothing; the caller owns the JSON.
 * See      lib/secret/service/services.h, api_secret.c
 */
#pragma once

#include "lib/secret/service/services.h"

struct json_t;
struct sbxd;

/* Returns all of them; NULL if a directory cannot be read. */
struct services *api_load_services(struct err *err);
/* The hosts of the slots for these values (service_value, added up), each once:
 * "api.example.com:443". */
struct json_t *api_service_hosts(const struct service *s, unsigned values);
/* Returns the hosts that the policy denies; sandbox NULL: only rules for all sandboxes apply. */
struct json_t *api_denied_hosts(struct sbxd *d, const struct json_t *hosts, const char *sandbox);
