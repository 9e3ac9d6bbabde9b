/* SPDX-License-Identifier: Apache-2.0 */
#include "release.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include "lib/base/attr.h"
#include "lib/base/slice.h"

static bool is_same(const struct release_target *a, const struct release_target *b)
{
	return a->host && b->host && a->host[0] && a->port && a->port == b->port &&
	       strcmp(a->host, b->host) == 0;
}

static bool binding_holds(const struct release_facts *f)
{
	return f->is_bound && f->bound_serial == f->decided_serial;
}

static bool host_holds(const struct release_facts *f)
{
	return f->host_allowed;
}

static bool port_holds(const struct release_facts *f)
{
	return f->port_allowed;
}

static bool names_hold(const struct release_facts *f)
{
	return f->names_agree && f->asked.host && f->asked.host[0];
}

static bool tls_holds(const struct release_facts *f)
{
	return f->is_tls;
}

static bool cert_holds(const struct release_facts *f)
{
	return f->is_verified;
}

static bool address_holds(const struct release_facts *f)
{
	return f->address_passed;
}

/* In any case of letters: methods have case, but no server has to know. */
static bool method_holds(const struct release_facts *f)
{
	return f->method && f->method[0] && strcasecmp(f->method, "TRACE") != 0 &&
	       strcasecmp(f->method, "CONNECT") != 0;
}

static bool foreign_holds(const struct release_facts *f)
{
	return f->has_service;
}

static bool redirect_holds(const struct release_facts *f)
{
	return is_same(&f->connected, &f->asked);
}

static bool single_holds(const struct release_facts *f)
{
	return is_same(&f->serves, &f->asked);
}

static bool record_holds(const struct release_facts *f)
{
	return f->is_recorded;
}

static const struct {
	bool (*holds)(const struct release_facts *f);
	const char *text;
} gates[] = {
	[RELEASE_BINDING] = {binding_holds, "the credential was removed or replaced"},
	[RELEASE_HOST] = {host_holds, "no rule allows this host"},
	[RELEASE_PORT] = {port_holds, "no rule allows this port of the host"},
	[RELEASE_NAMES] = {names_hold,
		"the request target, Host header and TLS server name do not match"},
	[RELEASE_TLS] = {tls_holds, "the request was not received over intercepted TLS"},
	[RELEASE_CERT] = {cert_holds, "the certificate of the server was not verified"},
	[RELEASE_ADDRESS] = {address_holds, "the address of the server is not allowed"},
	[RELEASE_METHOD] = {method_holds, "no credential is sent with this method"},
	[RELEASE_FOREIGN] = {foreign_holds, "the request cannot be searched for other credentials"},
	[RELEASE_REDIRECT] = {redirect_holds, "the connection target does not match the request"},
	[RELEASE_SINGLE] = {single_holds, "the process serves another host or port"},
	[RELEASE_RECORD] = {record_holds, "cannot write the audit log"},
};
static_assert(ARRAY_LEN(gates) == RELEASE_N_GATES, "one row a gate");

enum release_gate release_check(const struct release_facts *f)
{
	for (unsigned i = 0; i < RELEASE_N_GATES; i++) {
		if (!gates[i].holds(f))
			return (enum release_gate)i;
	}
	return RELEASE_N_GATES;
}

const char *release_text(enum release_gate gate)
{
	return gate < RELEASE_N_GATES ? gates[gate].text : "released";
}
