/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creds - which credential goes to which host and port of this sandbox: the vault's items joined
 *         with the services.
 *
 * How      creds_new takes what LIST said. An item NAME of a service is what the user set,
 *          NAME.access and NAME.refresh are its tokens; a custom item becomes the text of a service
 *          of its own. A sandbox's own item stands in front of the global one of that name. The
 *          texts are read by lib/secret/service; one that cannot be read, or that meets the host of
 *          another, is left out and said in creds_fault. A binding without any item (has is 0) is
 *          for token endpoints where programs can log in, and for hosts that are intercepted
 *          without a credential: those of slots with `intercept always`, or of all slots
 *          (credentials.intercept). sbx-origin refuses foreign credentials there and adds none. The
 *          text is kept: sbx-origin judges by just that one.
 * Trust    The vault's metadata and files of the installation. No value is here.
 * Owns     A struct creds owns its bindings; what is found lives as long as it does.
 * Limits   CREDS_MAX_ITEMS, CREDS_MAX_FAULTS; the limits of lib/secret/service.
 * Never    Opens a host because of an item that is not this sandbox's, nor one of a service whose
 *          own credentials this sandbox may use (lib/secret/service/own.h).
 * See      creds_test.c, vault_link.c, proto/PROTOCOL.service
 */
#pragma once

#include "lib/os/ipc/origin_chan.h"
#include "lib/secret/service/services.h"

#define CREDS_MAX_ITEMS 512
#define CREDS_MAX_FAULTS 16
#define CREDS_MAX_FIELD (VAULT_MAX_ENV + VAULT_MAX_SENTINEL + SERVICE_MAX_TEXT)

/* What RELEASE names. */
struct creds_value {
	char name[VAULT_MAX_NAME]; /* "": the sandbox has none */
	uint64_t serial;
	uint32_t use_s; /* of struct origin_value */
};

struct binding {
	char name[VAULT_MAX_NAME]; /* for people and records */
	uint8_t has;		   /* ORIGIN_HAS_* */
	struct creds_value value[ORIGIN_N_WHICH];
	char *text; /* of the service */
	const struct service *service;
};

struct creds;

struct creds_input {
	const struct vault_item *items;
	size_t n;
	const char *shipped,
		*own;	     /* directories of services: the installation's, then the user's */
	const char *sandbox; /* its id */
	const struct services *services; /* all; NULL: items alone count */
	bool logins;			 /* token endpoints where programs log in are opened */
	bool all;			 /* credentials.intercept */
	const char *own_services;	 /* a list of lib/secret/service/own.h; NULL: none */
};

/* Borrows the input only for the call. Never NULL. */
struct creds *creds_new(const struct creds_input *in);
void creds_free(struct creds *c);

/* NULL when the host is not intercepted; c may be NULL. */
const struct binding *creds_find(const struct creds *c, const char *host, uint16_t port);
/* Whether any port of this host is intercepted; yes too often rather than too seldom. */
bool creds_has_host(const struct creds *c, const char *host);
/* Whether no port of this host is passed unseen: service_guards_host. */
bool creds_guards_host(const struct creds *c, const char *host);
/* "NAME=SENTINEL", as it is in this sandbox, of the i-th variable of all services with a secret;
 * false behind the last. */
bool creds_env(const struct creds *c, size_t i, char buf[CREDS_MAX_FIELD]);
size_t creds_count_faults(const struct creds *c);
const char *creds_fault(const struct creds *c, size_t i);
/* The same values in the same places: a process that has the one may go on with the other. */
bool creds_is_same(const struct binding *a, const struct binding *b);
/* Only tokens are others or more: a process that has the one is told, and goes on. */
bool creds_is_renewal(const struct binding *was, const struct binding *now);
/* A copy that needs no struct creds; freed with creds_drop. service is NULL in it. */
void creds_copy(const struct binding *b, struct binding *ret);
void creds_drop(struct binding *b);
