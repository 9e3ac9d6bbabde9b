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

/* In any case of letters: methods have case, but no server has to know. */
static bool may_carry(const char *method)
{
	return method && method[0] && strcasecmp(method, "TRACE") != 0 &&
	       strcasecmp(method, "CONNECT") != 0;
}

enum release_gate release_check(const struct release_facts *f)
{
	const bool holds[] = {
		[RELEASE_BINDING] = f->is_bound && f->bound_serial == f->decided_serial,
		[RELEASE_HOST] = f->host_allowed,
		[RELEASE_PORT] = f->port_allowed,
		[RELEASE_NAMES] = f->names_agree && f->asked.host && f->asked.host[0],
		[RELEASE_TLS] = f->is_tls,
		[RELEASE_CERT] = f->is_verified,
		[RELEASE_ADDRESS] = f->address_passed,
		[RELEASE_METHOD] = may_carry(f->method),
		[RELEASE_FOREIGN] = f->has_service,
		[RELEASE_REDIRECT] = is_same(&f->connected, &f->asked),
		[RELEASE_SINGLE] = is_same(&f->serves, &f->asked),
		[RELEASE_RECORD] = f->is_recorded,
	};
	unsigned i = 0;

	static_assert(ARRAY_LEN(holds) == RELEASE_N_GATES, "one row a gate");
	while (i < RELEASE_N_GATES && holds[i])
		i++;
	return (enum release_gate)i;
}

const char *release_text(enum release_gate gate)
{
	static const char *const texts[] = {
		[RELEASE_BINDING] = "the credential was removed or replaced",
		[RELEASE_HOST] = "no rule allows this host",
		[RELEASE_PORT] = "no rule allows this port of the host",
		[RELEASE_NAMES] =
			"the request target, Host header and TLS server name do not match",
		[RELEASE_TLS] = "the request was not received over intercepted TLS",
		[RELEASE_CERT] = "the certificate of the server was not verified",
		[RELEASE_ADDRESS] = "the address of the server is not allowed",
		[RELEASE_METHOD] = "no credential is sent with this method",
		[RELEASE_FOREIGN] = "the request cannot be searched for other credentials",
		[RELEASE_REDIRECT] = "the connection target does not match the request",
		[RELEASE_SINGLE] = "the process serves another host or port",
		[RELEASE_RECORD] = "cannot write the audit log",
	};

	static_assert(ARRAY_LEN(texts) == RELEASE_N_GATES, "one text a gate");
	return gate < RELEASE_N_GATES ? texts[gate] : "released";
}
