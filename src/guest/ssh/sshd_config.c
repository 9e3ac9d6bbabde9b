/* SPDX-License-Identifier: Apache-2.0 */
#include "sshd_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* `dir` is three times in it. */
static const char fixed[] = "HostKey %s/host_key\n"
			    "HostCertificate %s/host_key-cert.pub\n"
			    "AuthorizedKeysFile %s/user_key.pub\n"
			    "PidFile none\n"
			    "AuthenticationMethods publickey\n"
			    "PubkeyAuthentication yes\n"
			    "PasswordAuthentication no\n"
			    "KbdInteractiveAuthentication no\n"
			    "HostbasedAuthentication no\n"
			    "UsePAM no\n"
			    "PermitRootLogin no\n"
			    "StrictModes no\n"
			    "PermitUserEnvironment no\n"
			    "PermitUserRC no\n"
			    "X11Forwarding no\n"
			    "AllowAgentForwarding no\n"
			    "PermitTunnel no\n"
			    "GatewayPorts no\n"
			    "UseDNS no\n"
			    "PrintMotd no\n"
			    "PrintLastLog no\n"
			    "Banner none\n"
			    "Compression no\n"
			    "MaxSessions 128\n"
			    "LogLevel ERROR\n"
			    "Subsystem sftp internal-sftp\n";

/* sshd sets these itself. */
static bool is_of_sshd(const char *assignment)
{
	static const char *const names[] = {
		"HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL=", "TERM=", "SSH_"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_starts(assignment, names[i]))
			return true;
	return false;
}

static void put_word(FILE *f, const char *name, const char *assignment)
{
	(void)fprintf(f, " \"%s", name);
	for (const char *s = assignment; *s; s++) {
		if (*s == '"' || *s == '\\')
			(void)fputc('\\', f);
		(void)fputc(*s, f);
	}
	(void)fputc('"', f);
}

/* Only the first SetEnv counts, so all are in one line. */
static void put_env(FILE *f, char *const *env)
{
	(void)fputs("SetEnv", f);
	for (; env && *env; env++) {
		if (is_of_sshd(*env) || strpbrk(*env, "\n\r"))
			continue;
		put_word(f, "", *env);
		/* for /etc/profile.d/sbx.sh */
		if (str_starts(*env, "PATH="))
			put_word(f, "SBX_", *env);
	}
	(void)fputc('\n', f);
}

char *sshd_config_text(const struct sshd_want *w)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	(void)fprintf(f, fixed, w->dir, w->dir, w->dir);
	(void)fprintf(f, "AllowUsers %s\n", w->user);
	(void)fprintf(f, "AllowTcpForwarding %s\n", w->remote ? "yes" : "local");
	(void)fprintf(f, "AllowStreamLocalForwarding %s\n", w->remote ? "yes" : "local");
	put_env(f, w->env);
	if (fclose(f) != 0)
		abort();
	return text;
}
