/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_host_key - the host key of one connection, with a certificate of the installation's CA.
 *
 * How      ssh-keygen creates both in a directory of mode 0700 below the runtime directory, which
 *          is removed before the function returns. The certificate is valid for one host name and
 *          SSH_CERT_MINUTES. The next connection removes the directory of a killed process.
 * Trust    The key is passed to the guest: it can be that host, and no other, until the certificate
 *          expires.
 * Owns     Strings of struct ssh_host_key; ssh_host_key_done wipes and frees them.
 */
#pragma once

#include <stddef.h>
#include "ssh_home.h"

#define SSH_CERT_MINUTES 10

struct ssh_host_key {
	char *key, *cert;
	size_t n_key, n_cert;
};

int ssh_host_key_make(const struct ssh_home *h, const char *host, struct ssh_host_key *ret,
	struct problem *p) MUST_CHECK;
void ssh_host_key_done(struct ssh_host_key *k);
#define AUTO_SSH_HOST_KEY CLEANUP(ssh_host_key_done)
