/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login - the login at the upstream proxy: from egress to the vault and back.
 *
 * How      LOGIN of egress has a connection to the proxy. It is passed to the vault, which writes
 *          the login to it; LOGGED reports that it was written, or why not.
 * Trust    egress may be compromised: the connection must lead to the port of the proxy, and to its
 *          address if network.proxy has one. A name is resolved by egress only, so a compromised
 *          egress can get the login; see THREAT_MODEL.
 * Never    Reads or writes the connection.
 */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/rules/policy/host.h"

/* Whether the peer of the connection can be the proxy. */
static bool leads_to_proxy(const struct egress_config *config, int fd)
{
	struct sockaddr_storage peer = {0};
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer;
	socklen_t n = sizeof(peer);
	struct host proxy;
	struct addr addr;

	if (!fd_is_tcp(fd) || getpeername(fd, (struct sockaddr *)&peer, &n) < 0 ||
		host_from_wire(slice_from_str(config->proxy_host), &proxy, NULL) < 0)
		return false;
	addr = peer.ss_family == AF_INET ? addr_from_v4((const uint8_t *)&v4->sin_addr)
					 : addr_from_v6(v6->sin6_addr.s6_addr);
	return ntohs(peer.ss_family == AF_INET ? v4->sin_port : v6->sin6_port) ==
		       config->proxy_port &&
	       (!proxy.is_addr || addr_eq(&addr, &proxy.addr));
}

void net_on_logged(struct keeper *k, uint32_t exchange, const char *text)
{
	char printable[EGRESS_MAX_TEXT];

	if (!egress_is_up(k) || !exchanges_find(k->net, exchange))
		return;
	(void)snprintf(printable, sizeof(printable), "%s", text);
	str_make_printable(printable);
	if (egress_ask_logged(k->egress->worker.sock, exchange, printable) < 0)
		egress_restart(k, "did not read the result of a login");
}

int net_on_login(struct keeper *k, struct ipc_msg *msg)
{
	struct exchange *ex = exchanges_find(k->net, msg->id);
	struct err err = {0};
	int r = chan_get_plain(&egress_chan, msg, EGRESS_LOGIN);

	if (r < 0 || !ex || ex->has_result || ex->has_login || !k->egress->config.proxy_user[0])
		return -EBADMSG;
	ex->has_login = true;
	if (!leads_to_proxy(&k->egress->config, msg->fd))
		r = err_set(&err, -ENOTCONN, "the connection to the proxy was closed");
	else
		r = vault_login(k, msg->id, msg->fd, &err);
	if (r < 0)
		net_on_logged(k, msg->id, err_text(&err, r));
	return 0;
}
