/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - the definition of a service for credentials: hosts, slots, variables, placeholders.
 *
 * How      service_parse reads a file of proto/PROTOCOL.service. A slot is the one place of a
 *          request where the credential goes: a header with a format, the password of basic
 *          authentication, or a signature. service_match.h compares requests with a service.
 * Trust    Files of the installation and of the same user. Holds no credential, only placeholders.
 * Owns     All its pointers, freed by service_done.
 * Limits   Those of service_element.h.
 * Never    Accepts a host without a port, every host, or a network: credentials go to named hosts.
 * See      services.h for all of them, proto/PROTOCOL.service, service_test.c, service_fuzz.c
 */
#pragma once

#include "service_element.h"

struct service {
	char *name, *about;
	struct service_slot slot[SERVICE_MAX_SLOTS];
	size_t n_slots;
	struct service_env env[SERVICE_MAX_ENVS];
	size_t n_envs;
	struct service_known known[SERVICE_MAX_KNOWN];
	size_t n_known;
	struct service_known
		passed[SERVICE_MAX_PASSED]; /* not a credential, whatever it looks like */
	size_t n_passed;
	struct service_endpoint endpoint[SERVICE_MAX_ENDPOINTS];
	size_t n_endpoints;
	struct service_endpoint check; /* a GET that shows whether a value is accepted */
	struct service_field field[SERVICE_MAX_FIELDS];
	size_t n_fields;
	struct service_refusal refusal[SERVICE_MAX_REFUSALS];
	size_t n_refusals;
	struct service_capture capture[SERVICE_MAX_CAPTURES];
	size_t n_captures;
};

/* *ret must be all zero, and is so after an error. `name` is the file's name for messages. */
int service_parse(
	struct slice text, const char *name, struct service *ret, struct err *err) MUST_CHECK;
void service_done(struct service *s);
#define AUTO_SERVICE CLEANUP(service_done)

/* The variable's value in this sandbox: each `*` is a digit of the sandbox id, then zeros;
 * uppercase after an uppercase letter. */
void service_fill_sentinel(
	const struct service_env *env, const char *sandbox, char buf[SERVICE_MAX_TEXT + 1]);
/* Whether the text is the placeholder of this field; a `*` matches one or more letters and
 * digits. */
bool service_is_field_sentinel(const struct service_field *f, struct slice text);
/*
 * Whether a program can log in there: a token endpoint with a refresh token whose placeholder is
 * one for the whole sandbox. Separate placeholders mean that tokens are issued for a secret.
 */
bool service_has_login(const struct service *s);
/* Whether one of its slots has `intercept always`. */
bool service_has_always(const struct service *s);
/* Whether hosts and ports of both could be one request's; too often yes rather than too seldom. */
bool service_may_meet(const struct netrule *a, const struct netrule *b);
