/* SPDX-License-Identifier: Apache-2.0 */
#include "net_link.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include "nl.h"

#define MAKE (NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK)

struct in_addr net_link_gateway(void)
{
	struct in_addr a = {0};
	int r = inet_pton(AF_INET, NET_GATEWAY, &a);

	assert(r == 1);
	return a;
}

struct in6_addr net_link_gateway6(void)
{
	struct in6_addr a = {0};
	int r = inet_pton(AF_INET6, NET_GATEWAY6, &a);

	assert(r == 1);
	return a;
}

static int make_link(struct err *err)
{
	struct nl nl = {0};
	const struct ifinfomsg head = {.ifi_flags = IFF_UP, .ifi_change = IFF_UP};

	nl_begin(&nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof(head));
	nl_str(&nl, IFLA_IFNAME, NET_LINK);
	nl_nest(&nl, IFLA_LINKINFO);
	nl_str(&nl, IFLA_INFO_KIND, "dummy");
	nl_unnest(&nl);
	nl_end(&nl);
	return nl_talk(&nl, NETLINK_ROUTE, true, err);
}

static void put_address(
	struct nl *nl, uint32_t index, uint8_t family, uint8_t bits, const void *addr, size_t n)
{
	const struct ifaddrmsg head = {
		.ifa_family = family, .ifa_prefixlen = bits, .ifa_index = index};

	nl_begin(nl, RTM_NEWADDR, MAKE, &head, sizeof(head));
	nl_put(nl, IFA_LOCAL, addr, n);
	nl_put(nl, IFA_ADDRESS, addr, n);
	/* The address cannot be a duplicate: usable immediately. */
	nl_u32(nl, IFA_FLAGS, IFA_F_PERMANENT | (family == AF_INET6 ? IFA_F_NODAD : 0));
	nl_end(nl);
}

static void put_route(struct nl *nl, uint32_t index, uint8_t family)
{
	const struct rtmsg head = {.rtm_family = family,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_UNICAST};

	nl_begin(nl, RTM_NEWROUTE, MAKE, &head, sizeof(head));
	nl_u32(nl, RTA_OIF, index);
	nl_end(nl);
}

int net_link_up(struct err *err)
{
	const struct in_addr gateway = net_link_gateway();
	const struct in6_addr gateway6 = net_link_gateway6();
	struct nl nl = {0};
	uint32_t index;
	int r = make_link(err);

	if (r < 0)
		return err_wrap(err, r, "cannot create the interface " NET_LINK);
	index = if_nametoindex(NET_LINK);
	put_address(&nl, index, AF_INET, 15, &gateway, sizeof(gateway));
	put_address(&nl, index, AF_INET6, 64, &gateway6, sizeof(gateway6));
	put_route(&nl, index, AF_INET);
	put_route(&nl, index, AF_INET6);
	r = nl_talk(&nl, NETLINK_ROUTE, true, err);
	return r < 0 ? err_wrap(err, r, "cannot configure the addresses and routes of " NET_LINK)
		     : 0;
}
