/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release - the twelve gates between a request and a credential, as one pure function.
 *
 * How      The keeper fills struct release_facts from its own state, from the request of edge and
 *          from sbx-origin; release_check checks the gates in order and returns the first that is
 *          closed. Facts that are not set are false: an empty struct releases nothing. The keeper
 *          calls it twice: first without a record, when only that gate may be closed, and again
 *          when the record is written.
 * Trust    Each fact names its source. Where edge or origin could lie, the keeper has its own fact
 *          in addition (binding, rules, address, target).
 * Owns     Nothing.
 * Never    Sees a value.
 * See      release_test.c, src/keeper/credential/origin_need.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* In the order in which they are checked. */
enum release_gate {
	RELEASE_BINDING,  /* the sandbox has the credential that was decided about */
	RELEASE_HOST,	  /* a rule allows the host */
	RELEASE_PORT,	  /* and this port of it */
	RELEASE_NAMES,	  /* name, SNI and authority agree */
	RELEASE_TLS,	  /* sbx terminated the guest's TLS */
	RELEASE_CERT,	  /* the server's certificate was verified before */
	RELEASE_ADDRESS,  /* the connected address passed its check */
	RELEASE_METHOD,	  /* not TRACE, not CONNECT */
	RELEASE_FOREIGN,  /* all slots of the service are searched for other credentials */
	RELEASE_REDIRECT, /* the connection goes where the request goes */
	RELEASE_SINGLE,	  /* the process serves this host and port and no other */
	RELEASE_RECORD,	  /* the audit log has it */
	RELEASE_N_GATES,  /* all are open */
};

struct release_target {
	const char *host; /* canonical; NULL: none */
	uint16_t port;
};

struct release_facts {
	/* The keeper's own: the vault's list of now, and what the process was started with. */
	bool is_bound;
	uint64_t bound_serial, decided_serial;
	/* The keeper's own: the policy of now. */
	bool host_allowed, port_allowed;
	/* Edge: a request that waits. It has no fault only if SNI, authority and the tunnel's
	 * target are equal, and `asked` is that. */
	bool names_agree;
	struct release_target asked;
	bool is_tls;	    /* edge: it came inside TLS that edge has ended */
	const char *method; /* edge */
	/* Origin: NEED names a connection and the certificate that it found to be the host's. */
	bool is_verified;
	/* The keeper's own, of just that connection: getpeername, the policy's address classes. */
	bool address_passed;
	struct release_target connected; /* the keeper's own: the target sent to egress */
	bool has_service;		 /* the keeper's own: it judges by the service of now */
	struct release_target serves;	 /* the keeper's own: from CONFIG */
	bool is_recorded;		 /* the keeper's own: from audit_append */
};

/* The first gate that is shut, or RELEASE_N_GATES. */
enum release_gate release_check(const struct release_facts *f);
/* "the certificate of the server was not verified" ... */
const char *release_text(enum release_gate gate);
