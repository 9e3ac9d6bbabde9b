/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static as edge is, sealed with edge's own list of system calls: any file that OpenSSL or libc
 * would look for kills it. Once sealed before the first use of OpenSSL, once after.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <openssl/x509.h>
#include "lib/os/jail/jail.h"
#include "lib/secret/mint/mint.h"

#define NOW 1800000000u

static void seal(void)
{
	struct err err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || jail_seal(JAIL_EDGE, &err) < 0)
		_exit(3);
}

static int use(bool early)
{
	struct mint *m, *next;
	struct host h;
	struct slice der;
	struct err err;
	uint8_t buf[MINT_MAX_SAVED];
	X509 *cert;
	size_t n;

	if (early)
		seal();
	if (mint_new("demo", NOW, &m, &err) < 0)
		return 4;
	if (!early)
		seal();
	for (unsigned i = 0; i < 2000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "h%u.example", i);
		if (host_from_wire(slice_from_str(name), &h, &err) < 0 ||
			mint_leaf(m, &h, NOW, &der, &err) < 0 || mint_x509(m, der, &cert) < 0)
			return 5;
		X509_free(cert);
	}
	if (mint_save(m, buf, &n) < 0 || mint_load(slice_of(buf, n), &next, &err) < 0 ||
		mint_leaf(next, &h, NOW, &der, &err) < 0)
		return 6;
	mint_free(next);
	mint_free(m);
	return 0;
}

/* What the seal is worth: libc's calendar wants the file of the time zone. */
static int ask_libc(bool early)
{
	time_t t = NOW;
	struct tm tm;

	seal();
	(void)unsetenv("TZ");
	return localtime_r(&t, &tm) ? 0 : 1;
}

static int in_child(int (*job)(bool), bool early)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(job(early));
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(void)
{
	int late = in_child(use, false), early = in_child(use, true);
	int probe = in_child(ask_libc, true);

	printf("sealed after the first use: %#x, before: %#x, a file: %#x\n", late, early, probe);
	return late == 0 && early == 0 && WIFSIGNALED(probe) && WTERMSIG(probe) == SIGSYS ? 0 : 1;
}
