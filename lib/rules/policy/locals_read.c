/* SPDX-License-Identifier: Apache-2.0 */
#include "locals_read.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define PACKET_BYTES 32768

static bool get_addr(const struct rtattr *rta, int family, struct addr *ret)
{
	size_t n = family == AF_INET ? 4 : 16;

	if ((family != AF_INET && family != AF_INET6) || RTA_PAYLOAD(rta) < n)
		return false;
	*ret = n == 4 ? addr_from_v4(RTA_DATA(rta)) : addr_from_v6(RTA_DATA(rta));
	return ret->n == n;
}

/* Of a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL is ours then. */
static void take_address(struct addr_locals *l, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *ifa = NLMSG_DATA(h);
	const struct rtattr *rta = IFA_RTA(ifa);
	int left = (int)IFA_PAYLOAD(h);
	struct addr own = {0};
	struct addr_net net;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*ifa)))
		return;
	for (; RTA_OK(rta, left); rta = RTA_NEXT(rta, left)) {
		if (rta->rta_type == IFA_LOCAL || (rta->rta_type == IFA_ADDRESS && !own.n))
			(void)get_addr(rta, ifa->ifa_family, &own);
	}
	if (!own.n)
		return;
	net = addr_net_of(&own, (uint8_t)(own.n * 8));
	(void)addr_locals_add(l, &net, true);
}

/* Packets for the addresses of a local route arrive at this host, also when no interface has
 * them. */
static bool is_wanted(const struct rtmsg *rtm)
{
	uint8_t least = rtm->rtm_family == AF_INET ? LOCALS_MIN_V4 : LOCALS_MIN_V6;

	return (rtm->rtm_type == RTN_UNICAST || rtm->rtm_type == RTN_LOCAL) &&
	       rtm->rtm_dst_len >= least;
}

static void take_route(struct addr_locals *l, const struct nlmsghdr *h)
{
	const struct rtmsg *rtm = NLMSG_DATA(h);
	const struct rtattr *rta = RTM_RTA(rtm);
	int left = (int)RTM_PAYLOAD(h);
	struct addr to = {0};
	struct addr_net net;
	bool is_own;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*rtm)) || !is_wanted(rtm))
		return;
	is_own = rtm->rtm_type == RTN_LOCAL;
	for (; RTA_OK(rta, left); rta = RTA_NEXT(rta, left)) {
		switch (rta->rta_type) {
		case RTA_DST:
			(void)get_addr(rta, rtm->rtm_family, &to);
			break;
		case RTA_GATEWAY:
		case RTA_VIA:
		case RTA_MULTIPATH:
		case RTA_NH_ID:
			return;
		default:
			break;
		}
	}
	if (!to.n || rtm->rtm_dst_len > to.n * 8 ||
		(!is_own && addr_classify(&to, NULL) != ADDR_PUBLIC))
		return;
	net = addr_net_of(&to, rtm->rtm_dst_len);
	(void)addr_locals_add(l, &net, is_own);
}

int locals_parse(struct addr_locals *l, const void *packet, size_t n)
{
	const struct nlmsghdr *h = packet;

	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		if (h->nlmsg_type == RTM_NEWADDR)
			take_address(l, h);
		else if (h->nlmsg_type == RTM_NEWROUTE)
			take_route(l, h);
	}
	return 0;
}

static int receive_read(int fd, struct addr_locals *l)
{
	AUTO_FREE uint8_t *buf = xmalloc(PACKET_BYTES);
	size_t total = 0;
	int r = 0;

	while (r == 0 && total < LOCALS_MAX_BYTES) {
		ssize_t n = recv(fd, buf, PACKET_BYTES, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		total += (size_t)n;
		r = locals_parse(l, buf, (size_t)n);
	}
	return r < 0 ? r : 0;
}

/* A separate socket for each: closing it drops the rest of a dump that is too long. */
static int dump_read(struct addr_locals *l, uint16_t type, uint8_t table)
{
	AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval wait = {.tv_sec = LOCALS_WAIT_MS / 1000};
	struct {
		struct nlmsghdr h;
		struct rtmsg rtm;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = type,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.rtm = {.rtm_table = table}};
	int on = 1;

	if (fd < 0)
		return -errno;
	/* The kernel then leaves out other tables; an older one sends all of them. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0)
		return -errno;
	if (type == RTM_GETADDR)
		ask.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg));
	if (send(fd, &ask, ask.h.nlmsg_len, 0) < 0)
		return -errno;
	return receive_read(fd, l);
}

int locals_read(struct addr_locals *ret)
{
	AUTO_FREE struct addr_locals *l = xcalloc(1, sizeof(*l));
	int r = dump_read(l, RTM_GETADDR, 0);

	if (r == 0)
		r = dump_read(l, RTM_GETROUTE, RT_TABLE_LOCAL);
	if (r == 0)
		r = dump_read(l, RTM_GETROUTE, RT_TABLE_MAIN);
	if (r == 0)
		*ret = *l;
	return r;
}
