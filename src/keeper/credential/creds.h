/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creds - credentials by host and port for this sandbox: items of the vault joined with services.
 *
 * How      creds_new gets the items of a LIST. Item NAME of a service is the value that the user
 *          set; NAME.access and NAME.refresh are its tokens. A custom item becomes the text of its
 *          own service. An item of the sandbox overrides the global item of the same name.
 *          lib/secret/service parses the texts; a text that is invalid or claims a host of another
 *          service is skipped and listed by creds_fault. A binding without an item (has is 0) is
 *          for token endpoints where programs log in, and for hosts that are intercepted without a
 *          credential: hosts of slots with `intercept always`, or of all slots
 *          (credentials.intercept). sbx-origin denies foreign credentials there and adds none. The
 *          text is kept, because sbx-origin gets exactly this text.
 * Trust    The vault's metadata and files of the installation. No value is here.
 * Owns     A struct creds owns its bindings; pointers into it are valid until it is freed.
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

/* The value that RELEASE names. */
struct creds_value {
	char name[VAULT_MAX_NAME]; /* "": the sandbox has none */
	uint64_t serial;
	uint32_t use_s; /* of struct origin_value */
};

struct binding {
	char name[VAULT_MAX_NAME]; /* for users and records */
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
	const struct services *services; /* all; NULL: only items */
	bool logins;			 /* intercept token endpoints where programs log in */
	bool all;			 /* credentials.intercept */
	const char *own_services;	 /* a list of lib/secret/service/own.h; NULL: none */
};

/* Borrows the input only for the call. Never NULL. */
/* The credential of kind proxy for this proxy and user; NULL: none. */
const struct vault_item *creds_find_login(
	const struct vault_item *items, size_t n, const struct egress_config *config);
struct creds *creds_new(const struct creds_input *in);
void creds_free(struct creds *c);

/* Returns NULL if the host is not intercepted; c may be NULL. */
const struct binding *creds_find(const struct creds *c, const char *host, uint16_t port);
/* Whether any port of this host is intercepted; may return true too often, never too seldom. */
bool creds_has_host(const struct creds *c, const char *host);
/* Whether all ports of this host are intercepted or denied: service_guards_host. */
bool creds_guards_host(const struct creds *c, const char *host);
/* Formats "NAME=PLACEHOLDER" of this sandbox for the i-th variable of all services with a secret.
 * Returns false after the last. */
bool creds_env(const struct creds *c, size_t i, char buf[CREDS_MAX_FIELD]);
size_t creds_count_faults(const struct creds *c);
const char *creds_fault(const struct creds *c, size_t i);
/* Same values for the same hosts: a process that has one can keep running with the other. */
bool creds_is_same(const struct binding *a, const struct binding *b);
/* Only tokens changed or were added: the process is informed and keeps running. */
bool creds_is_renewal(const struct binding *was, const struct binding *now);
/* A copy that needs no struct creds; freed with creds_drop. service is NULL in it. */
void creds_copy(const struct binding *b, struct binding *ret);
void creds_drop(struct binding *b);
