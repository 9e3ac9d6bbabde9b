/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release - the twelve gates between a request and a credential, as one pure function.
 *
 * How      The keeper fills struct release_facts from what it knows by itself, from the request
 *          that edge asked for and from what sbx-origin says; release_check goes through the gates
 *          in their order and gives the first that is shut. Facts that were not filled in are no:
 *          an empty struct releases nothing. The keeper asks twice: first without a record, when
 *          just that gate may be shut, and again when the record is written.
 * Trust    Each fact says whose word it is. Where edge or origin could lie there is a fact of the
 *          keeper's own beside theirs (binding, rules, address, target).
 * Owns     Nothing.
 * Never    Sees a value.
 * See      release_test.c, src/keeper/credential/origin_need.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* In the order in which they are looked at. */
enum release_gate {
	RELEASE_BINDING,  /* the sandbox has the credential that was decided about */
	RELEASE_HOST,	  /* a rule allows the host */
	RELEASE_PORT,	  /* and this port of it */
	RELEASE_NAMES,	  /* name, SNI and authority agree */
	RELEASE_TLS,	  /* the guest's TLS was ended by us */
	RELEASE_CERT,	  /* the server's certificate was verified before */
	RELEASE_ADDRESS,  /* the connected address passed its check */
	RELEASE_METHOD,	  /* not TRACE, not CONNECT */
	RELEASE_FOREIGN,  /* every slot of the service is looked at for somebody else's */
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
	/* Edge: a request that waits. It is asked without a fault only when SNI, authority and the
	 * tunnel's target are one, and `asked` is that. */
	bool names_agree;
	struct release_target asked;
	bool is_tls;	    /* edge: it came inside TLS that edge has ended */
	const char *method; /* edge */
	/* Origin: NEED names a connection and the certificate that it found to be the host's. */
	bool is_verified;
	/* The keeper's own, of just that connection: getpeername, the policy's address classes. */
	bool address_passed;
	struct release_target connected; /* the keeper's own: what egress was told to reach */
	bool has_service;		 /* the keeper's own: it judges by the service of now */
	struct release_target serves;	 /* the keeper's own: what CONFIG said */
	bool is_recorded;		 /* the keeper's own: audit_append said so */
};

/* The first gate that is shut, or RELEASE_N_GATES. */
enum release_gate release_check(const struct release_facts *f);
/* "the certificate of the server was not verified" ... */
const char *release_text(enum release_gate gate);
