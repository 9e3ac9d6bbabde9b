/* SPDX-License-Identifier: Apache-2.0 */
#include "net_hold.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "net_main.h"
#include "net_path.h"
#include "nl.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"

#define TURN_PACKETS 64

static void begin_hold(struct nl *nl, uint16_t what, uint16_t flags)
{
	const struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NET_HOLD_QUEUE)};

	nl_begin(nl, (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | what), flags, &head, sizeof(head));
}

/* Packets that exceed the queue are accepted, not dropped. */
static int configure_hold(int fd, struct err *err)
{
	const struct nfqnl_msg_config_cmd bind = {.command = NFQNL_CFG_CMD_BIND};
	const struct nfqnl_msg_config_params params = {
		.copy_range = htonl(NET_HOLD_COPY), .copy_mode = NFQNL_COPY_PACKET};
	struct nl nl = {0};

	begin_hold(&nl, NFQNL_MSG_CONFIG, NLM_F_ACK);
	nl_put(&nl, NFQA_CFG_CMD, &bind, sizeof(bind));
	nl_end(&nl);
	begin_hold(&nl, NFQNL_MSG_CONFIG, NLM_F_ACK);
	nl_put(&nl, NFQA_CFG_PARAMS, &params, sizeof(params));
	nl_be32(&nl, NFQA_CFG_FLAGS, NFQA_CFG_F_FAIL_OPEN);
	nl_be32(&nl, NFQA_CFG_MASK, NFQA_CFG_F_FAIL_OPEN);
	nl_end(&nl);
	return nl_talk_on(fd, &nl, false, err);
}

int net_hold_start(struct net_hold *h, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	const int one = 1;
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a netlink socket");
	r = configure_hold(fd, err);
	if (r < 0)
		return r;
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof(one));
	r = fd_set_nonblock(fd, true);
	if (r == 0)
		r = loop_add(h->loop, fd, EPOLLIN, (struct loop_key){.kind = NET_EV_HOLD});
	if (r < 0)
		return err_errno(err, r, "waiting for the queue");
	h->fd = TAKE_FD(fd);
	return 0;
}

/* Releases the packet, marked or not. */
static void let_go(const struct net_hold *h, uint32_t packet, bool refused)
{
	const struct nfqnl_msg_verdict_hdr v = {.verdict = htonl(NF_ACCEPT), .id = htonl(packet)};
	struct nl nl = {0};

	begin_hold(&nl, NFQNL_MSG_VERDICT, 0);
	nl_put(&nl, NFQA_VERDICT_HDR, &v, sizeof(v));
	if (refused)
		nl_be32(&nl, NFQA_MARK, NET_HOLD_MARK);
	nl_end(&nl);
	/* A verdict that the kernel does not accept leaves the packet queued until the process
	 * exits; the program retransmits it. */
	(void)!send(h->fd, nl.buf, nl.n, MSG_DONTWAIT);
}

static void watch_clock(struct net_hold *h)
{
	if (!h->timer.pos && h->n > 0)
		loop_timer_set(h->loop, &h->timer, clock_mono_ms() + NET_HOLD_SWEEP_MS,
			(struct loop_key){.kind = NET_EV_HOLD_TIMER});
}

static void ask_hold(struct net_hold *h, uint32_t packet, struct slice bytes)
{
	char path[NET_PATH_MAX];
	struct net_held *p = h->held;

	while (p < h->held + NET_MAX_HELD && p->used)
		p++;
	if (!h->wire || p == h->held + NET_MAX_HELD || net_path_of_packet(bytes, path) < 0 ||
		wire_open(h->wire, path, NET_HOLD_SLOT | (uint32_t)(p - h->held), &p->id) < 0) {
		let_go(h, packet, false);
		return;
	}
	p->used = true;
	p->answered = false;
	p->packet = packet;
	p->at_ms = clock_mono_ms();
	h->n++;
	watch_clock(h);
}

/* Parses one message of the kernel: the number of a packet, and its first bytes. */
static void take_hold(struct net_hold *h, const struct nlmsghdr *m)
{
	const uint8_t *at = (const uint8_t *)NLMSG_DATA(m) + NLMSG_ALIGN(sizeof(struct nfgenmsg));
	const uint8_t *end = (const uint8_t *)m + m->nlmsg_len;
	struct nfqnl_msg_packet_hdr head;
	struct slice bytes = {0};
	bool has_head = false;

	while (at < end && (size_t)(end - at) >= sizeof(struct nlattr)) {
		const struct nlattr *a = (const struct nlattr *)at;
		size_t n = a->nla_len;

		if (n < sizeof(*a) || n > (size_t)(end - at))
			return;
		if ((a->nla_type & NLA_TYPE_MASK) == NFQA_PACKET_HDR &&
			n >= sizeof(*a) + sizeof(head)) {
			memcpy(&head, a + 1, sizeof(head));
			has_head = true;
		}
		if ((a->nla_type & NLA_TYPE_MASK) == NFQA_PAYLOAD)
			bytes = slice_of(at + sizeof(*a), n - sizeof(*a));
		at += MIN(NLA_ALIGN(n), (size_t)(end - at));
	}
	if (has_head)
		ask_hold(h, ntohl(head.packet_id), bytes);
}

void net_hold_on_event(struct net_hold *h)
{
	static uint8_t buf[8192] __attribute__((aligned(8)));

	for (int i = 0; i < TURN_PACKETS; i++) {
		ssize_t r = recv(h->fd, buf, sizeof(buf), MSG_DONTWAIT);
		size_t n = r > 0 ? (size_t)r : 0;

		if (r <= 0)
			return;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buf; NLMSG_OK(m, n);
			m = NLMSG_NEXT(m, n))
			if (m->nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
				take_hold(h, m);
	}
}

static void answer_hold(struct net_hold *h, struct net_held *p, bool refused)
{
	if (!p->used || p->answered)
		return;
	p->answered = true;
	let_go(h, p->packet, refused);
}

static void done_hold(struct net_hold *h, struct net_held *p)
{
	if (!p->used)
		return;
	answer_hold(h, p, false);
	p->used = false;
	h->n--;
}

/* Releases the packet immediately. Its slot stays in use until the stream has ended, so that
 * queries never use the streams of connections. */
void net_hold_on_reply(struct net_hold *h, uint32_t id, uint32_t idx, unsigned status)
{
	if (h->held[idx].id == id)
		answer_hold(h, &h->held[idx], status == 403);
}

void net_hold_on_close(struct net_hold *h, uint32_t id, uint32_t idx)
{
	if (h->held[idx].id == id)
		done_hold(h, &h->held[idx]);
}

void net_hold_on_timer(struct net_hold *h)
{
	uint64_t now = clock_mono_ms();

	for (struct net_held *p = h->held; p < h->held + NET_MAX_HELD; p++) {
		if (!p->used || now - p->at_ms < NET_HOLD_MS)
			continue;
		wire_reset(h->wire, p->id);
		done_hold(h, p);
	}
	watch_clock(h);
}

void net_hold_drop_all(struct net_hold *h)
{
	for (struct net_held *p = h->held; p < h->held + NET_MAX_HELD; p++)
		done_hold(h, p);
}
