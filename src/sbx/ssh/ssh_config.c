/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "ssh_home.h"

static int check_path(const char *path, struct err *err)
{
	if (!strpbrk(path, "\"'\\\n\r$"))
		return 0;
	return err_set(err, -EINVAL,
		"the path '%.200s' has a character that ssh configurations cannot contain", path);
}

int ssh_config_check(const struct ssh_home *h, struct err *err)
{
	int r = check_path(h->dir, err);

	return r < 0 ? r : check_path(h->self, err);
}

/* ssh replaces % and the next character. */
static char *escape_percent(const char *path)
{
	char *out = xmalloc(2 * strlen(path) + 1), *to = out;

	for (; *path; path++) {
		*to++ = *path;
		if (*path == '%')
			*to++ = '%';
	}
	*to = '\0';
	return out;
}

char *ssh_config_proxy(const struct ssh_home *h, const char *options)
{
	AUTO_FREE char *self = escape_percent(h->self);

	return xasprintf("'%s' ssh%s --proxy '%%n'", self, options);
}

/* Agent, display, keys and variables of the user stay on the host, and nothing of the guest is
 * stored or executed. */
static const char fixed[] = "    ForwardAgent no\n"
			    "    ForwardX11 no\n"
			    "    ForwardX11Trusted no\n"
			    "    IdentitiesOnly yes\n"
			    "    IdentityAgent none\n"
			    "    AddKeysToAgent no\n"
			    "    PreferredAuthentications publickey\n"
			    "    PasswordAuthentication no\n"
			    "    KbdInteractiveAuthentication no\n"
			    "    HostbasedAuthentication no\n"
			    "    GSSAPIAuthentication no\n"
			    "    SendEnv -*\n"
			    "    PermitLocalCommand no\n"
			    "    LocalCommand none\n"
			    "    KnownHostsCommand none\n"
			    "    StrictHostKeyChecking yes\n"
			    "    HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com\n"
			    "    GlobalKnownHostsFile /dev/null\n"
			    "    UpdateHostKeys no\n"
			    "    CheckHostIP no\n"
			    "    VerifyHostKeyDNS no\n"
			    "    CanonicalizeHostname no\n"
			    "    ControlMaster no\n"
			    "    ControlPath none\n"
			    "    Tunnel no\n"
			    "    GatewayPorts no\n"
			    "    Compression no\n";

char *ssh_config_text(const struct ssh_home *h)
{
	AUTO_FREE char *proxy = ssh_config_proxy(h, ""), *key = escape_percent(h->key),
		       *hosts = escape_percent(h->known_hosts);

	return xasprintf("# Written by sbx. Your own settings belong in ~/.ssh/config.\n"
			 "Host *" SSH_SUFFIX " \"!*'*\"\n"
			 "    ProxyCommand %s\n"
			 "    User agent\n"
			 "    IdentityFile \"%s\"\n"
			 "    UserKnownHostsFile \"%s\"\n"
			 "%s",
		proxy, key, hosts, fixed);
}
