/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_scanned - SCAN and SCANNED of vault_chan.h: a file to search, and the credentials found in
 * it.
 *
 * How      SCAN has the file and, optionally, a control: a text of the client that is searched for
 *          too, so that the client can check the search. SCANNED is the answer on success, DONE on
 *          failure. SCANNED names the credentials that were found, never a value or its position.
 * Trust    As vault_chan.h.
 * Limits   VAULT_MAX_FOUND names, VAULT_MIN_CONTROL to VAULT_MAX_CONTROL bytes of a control.
 * See      proto/PROTOCOL.ipc, vault_scanned_test.c, vault_chan_fuzz.c
 */
#pragma once

#include "vault_chan.h"

#define VAULT_MIN_CONTROL 8
#define VAULT_MAX_CONTROL 48
#define VAULT_MAX_FOUND 64

struct vault_found {
	char name[VAULT_MAX_NAME];
	char scope[VAULT_MAX_SCOPE];
	uint64_t times;
};

struct vault_scanned {
	uint64_t bytes;	   /* that were read: holes of a file are none */
	uint16_t n_looked; /* values that were looked for */
	uint16_t n_left;   /* that were not: shorter than any search is worth, or not fetched */
	uint64_t control;  /* how often the control was there */
	uint16_t n_found;  /* credentials that were found; the first of them are named */
	size_t n;
	struct vault_found v[VAULT_MAX_FOUND];
};

/* Empty, or a text that may be a control: printable, of a good length. */
bool vault_control_is_good(const char *control);
/* The fd stays the caller's. */
int vault_ask_scan(int sock, uint32_t id, const char *control, int fd) MUST_CHECK;
int vault_send_scanned(int sock, uint32_t id, const struct vault_scanned *scanned) MUST_CHECK;
/* 0 or -EBADMSG. */
int vault_get_scan(const struct ipc_msg *msg, char control[VAULT_MAX_CONTROL + 1]) MUST_CHECK;
int vault_get_scanned(const struct ipc_msg *msg, struct vault_scanned *ret) MUST_CHECK;
