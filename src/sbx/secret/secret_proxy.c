/* SPDX-License-Identifier: Apache-2.0 */
/* The password of network.proxy: the setting has the user, the vault has the password. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_item.h"
#include "lib/rules/settings/settings_net.h"
#include "secret_api.h"
#include "src/sbx/verb/verb.h"

int secret_make_proxy(const char *sandbox, const char **ret_name, json_t **ret, struct problem *p)
{
	static struct egress_config c;
	AUTO_SETTINGS struct settings s = {0};
	AUTO_FREE char *where = NULL;
	int r = settings_load(&s, &p->err);

	if (r == 0)
		r = settings_net_config(&s, &c, &p->err);
	if (r < 0)
		return r;
	if (sandbox) {
		(void)err_set(&p->err, -EINVAL,
			"--proxy and --sandbox are mutually exclusive: "
			"the password is for all sandboxes");
		return problem_usage(p, -EINVAL, "secret set");
	}
	if (!c.proxy_user[0]) {
		(void)snprintf(p->hint, sizeof(p->hint),
			"sbx settings set network.proxy http://USER@HOST:PORT");
		return err_set(&p->err, -EINVAL, "network.proxy has no user");
	}
	where = xasprintf("%s:%u", c.proxy_host, c.proxy_port);
	*ret_name = VAULT_PROXY_NAME;
	*ret = json_pack("{s:s, s:[s], s:s, s:s}", "kind", "proxy", "hosts", where, "header",
		c.proxy == EGRESS_PROXY_SOCKS ? "socks5" : "http", "format", c.proxy_user);
	return *ret ? 0 : err_set(&p->err, -EINVAL, "network.proxy is not UTF-8");
}
