/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_internal - what open.c (one connection), open_ca.c (CA, TLS settings) and open_bio.c share.
 *
 * See      tls.h
 */
#pragma once

#include <openssl/ssl.h>
#include "lib/secret/mint/mint.h"
#include "tls.h"

/* Shared by all intercepted connections of this edge. */
struct opener {
	struct mint *mint;
	SSL_CTX *ctx;
	BIO_METHOD *method;
};

/* The TLS of one connection. */
struct open {
	SSL *ssl;
	struct bufq in;	   /* records of the guest that TLS has not consumed; a window's size */
	struct bufq out;   /* records for the guest */
	size_t n_taken;	   /* bytes of in that TLS consumed and that are not returned yet */
	struct host sni;   /* when the conn's sni points here */
	bool in_end;	   /* no data follows `in` */
	bool said_goodbye; /* close_notify is or was in out */
	bool broken;	   /* by an error: only the rest of out is sent */
};

/* A BIO that reads from o->in and writes to o->out; NULL without memory. */
BIO *open_bio_new(const struct opener *opener, struct open *o);
BIO_METHOD *open_bio_method(void);
