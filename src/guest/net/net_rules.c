/* SPDX-License-Identifier: Apache-2.0 */
#include "net_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <string.h>
#include "net_hold.h"
#include "net_link.h"
#include "nl.h"

#define TABLE "sbx"
/* Docker's NAT is at -100, its filter at 0. */
#define BEFORE_NAT (-110)
#define BEFORE_CATCH (-160)
#define BEFORE_FILTER (-10)
#define OFFSET_DPORT 2
#define OFFSET_FLAGS 13
#define FLAG_SYN 0x02
#define FLAGS_OF_STATE 0x17 /* FIN, SYN, RST, ACK */
#define OFFSET_DADDR 16
#define OFFSET_DADDR6 24

static void begin_rules(struct nl *nl, uint16_t what, uint16_t flags)
{
	const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

	nl_begin(nl, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | what), flags | NLM_F_ACK, &head,
		sizeof(head));
}

static void batch_rules(struct nl *nl, uint16_t type)
{
	const struct nfgenmsg head = {
		.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

	nl_begin(nl, type, 0, &head, sizeof(head));
	nl_end(nl);
}

static void table_rules(struct nl *nl, uint16_t what, uint16_t flags)
{
	begin_rules(nl, what, flags);
	nl_str(nl, NFTA_TABLE_NAME, TABLE);
	nl_end(nl);
}

static void chain_rules(struct nl *nl, const char *name)
{
	begin_rules(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	nl_str(nl, NFTA_CHAIN_TABLE, TABLE);
	nl_str(nl, NFTA_CHAIN_NAME, name);
	nl_end(nl);
}

static void base_chain(
	struct nl *nl, const char *name, const char *type, uint32_t hook, int priority)
{
	begin_rules(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	nl_str(nl, NFTA_CHAIN_TABLE, TABLE);
	nl_str(nl, NFTA_CHAIN_NAME, name);
	nl_nest(nl, NFTA_CHAIN_HOOK);
	nl_be32(nl, NFTA_HOOK_HOOKNUM, hook);
	nl_be32(nl, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	nl_unnest(nl);
	nl_str(nl, NFTA_CHAIN_TYPE, type);
	nl_be32(nl, NFTA_CHAIN_POLICY, NF_ACCEPT);
	nl_end(nl);
}

/* ---- a rule is a list of expressions; each reads or sets register 1 ---- */

static void rule_rules(struct nl *nl, const char *in_chain)
{
	begin_rules(nl, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	nl_str(nl, NFTA_RULE_TABLE, TABLE);
	nl_str(nl, NFTA_RULE_CHAIN, in_chain);
	nl_nest(nl, NFTA_RULE_EXPRESSIONS);
}

static void rule_end(struct nl *nl)
{
	nl_unnest(nl);
	nl_end(nl);
}

static void expr_rules(struct nl *nl, const char *name)
{
	nl_nest(nl, NFTA_LIST_ELEM);
	nl_str(nl, NFTA_EXPR_NAME, name);
	nl_nest(nl, NFTA_EXPR_DATA);
}

static void expr_end(struct nl *nl)
{
	nl_unnest(nl);
	nl_unnest(nl);
}

static void value_rules(struct nl *nl, uint16_t attr, const void *p, size_t n)
{
	nl_nest(nl, attr);
	nl_put(nl, NFTA_DATA_VALUE, p, n);
	nl_unnest(nl);
}

static void must_be(struct nl *nl, const void *p, size_t n)
{
	expr_rules(nl, "cmp");
	nl_be32(nl, NFTA_CMP_SREG, NFT_REG_1);
	nl_be32(nl, NFTA_CMP_OP, NFT_CMP_EQ);
	value_rules(nl, NFTA_CMP_DATA, p, n);
	expr_end(nl);
}

static void match_meta(struct nl *nl, uint32_t key, const void *p, size_t n)
{
	expr_rules(nl, "meta");
	nl_be32(nl, NFTA_META_KEY, key);
	nl_be32(nl, NFTA_META_DREG, NFT_REG_1);
	expr_end(nl);
	must_be(nl, p, n);
}

static void match_proto(struct nl *nl, uint32_t key, uint8_t proto)
{
	match_meta(nl, key, &proto, sizeof(proto));
}

static void match_payload(struct nl *nl, uint32_t base, uint32_t offset, const void *p, uint32_t n)
{
	expr_rules(nl, "payload");
	nl_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
	nl_be32(nl, NFTA_PAYLOAD_BASE, base);
	nl_be32(nl, NFTA_PAYLOAD_OFFSET, offset);
	nl_be32(nl, NFTA_PAYLOAD_LEN, n);
	expr_end(nl);
	must_be(nl, p, n);
}

/* The first packet of a connection, and no other. */
static void match_syn(struct nl *nl)
{
	const uint8_t mask = FLAGS_OF_STATE, none = 0, syn = FLAG_SYN;

	expr_rules(nl, "payload");
	nl_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
	nl_be32(nl, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
	nl_be32(nl, NFTA_PAYLOAD_OFFSET, OFFSET_FLAGS);
	nl_be32(nl, NFTA_PAYLOAD_LEN, sizeof(mask));
	expr_end(nl);
	expr_rules(nl, "bitwise");
	nl_be32(nl, NFTA_BITWISE_SREG, NFT_REG_1);
	nl_be32(nl, NFTA_BITWISE_DREG, NFT_REG_1);
	nl_be32(nl, NFTA_BITWISE_LEN, sizeof(mask));
	value_rules(nl, NFTA_BITWISE_MASK, &mask, sizeof(mask));
	value_rules(nl, NFTA_BITWISE_XOR, &none, sizeof(none));
	expr_end(nl);
	must_be(nl, &syn, sizeof(syn));
}

static void match_leaves(struct nl *nl)
{
	char name[IFNAMSIZ] = NET_LINK;

	match_meta(nl, NFT_META_OIFNAME, name, sizeof(name));
}

/* Before routing: matches packets that would leave by eth0. */
static void match_would_leave(struct nl *nl)
{
	char name[IFNAMSIZ] = NET_LINK;

	expr_rules(nl, "fib");
	nl_be32(nl, NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
	nl_be32(nl, NFTA_FIB_RESULT, NFT_FIB_RESULT_OIFNAME);
	nl_be32(nl, NFTA_FIB_DREG, NFT_REG_1);
	expr_end(nl);
	must_be(nl, name, sizeof(name));
}

static void load_rules(struct nl *nl, uint32_t reg, const void *p, size_t n)
{
	expr_rules(nl, "immediate");
	nl_be32(nl, NFTA_IMMEDIATE_DREG, reg);
	value_rules(nl, NFTA_IMMEDIATE_DATA, p, n);
	expr_end(nl);
}

/* to: the chain of a goto, NULL for a plain verdict. */
static void verdict_rules(struct nl *nl, int code, const char *to)
{
	expr_rules(nl, "immediate");
	nl_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	nl_nest(nl, NFTA_IMMEDIATE_DATA);
	nl_nest(nl, NFTA_DATA_VERDICT);
	nl_be32(nl, NFTA_VERDICT_CODE, (uint32_t)code);
	if (to)
		nl_str(nl, NFTA_VERDICT_CHAIN, to);
	nl_unnest(nl);
	nl_unnest(nl);
	expr_end(nl);
}

static void refuse_rules(struct nl *nl, uint32_t type, uint8_t code)
{
	expr_rules(nl, "reject");
	nl_be32(nl, NFTA_REJECT_TYPE, type);
	if (type != NFT_REJECT_TCP_RST)
		nl_put(nl, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	expr_end(nl);
}

/* To net_hold.c. Without it the packet is accepted. */
static void queue_rules(struct nl *nl)
{
	const uint16_t num = htons(NET_HOLD_QUEUE), total = htons(1);
	const uint16_t flags = htons(NFT_QUEUE_FLAG_BYPASS);

	expr_rules(nl, "queue");
	nl_put(nl, NFTA_QUEUE_NUM, &num, sizeof(num));
	nl_put(nl, NFTA_QUEUE_TOTAL, &total, sizeof(total));
	nl_put(nl, NFTA_QUEUE_FLAGS, &flags, sizeof(flags));
	expr_end(nl);
}

/* To the gateway instead, at that port. Not `redirect`: that drops packets on a bridge without an
 * address. */
static void turn_rules(struct nl *nl, uint8_t family, uint16_t port)
{
	const struct in_addr gateway = net_link_gateway();
	const struct in6_addr gateway6 = net_link_gateway6();
	uint16_t be_port = htons(port);

	if (family == NFPROTO_IPV4)
		load_rules(nl, NFT_REG_1, &gateway, sizeof(gateway));
	else
		load_rules(nl, NFT_REG_1, &gateway6, sizeof(gateway6));
	load_rules(nl, NFT_REG_2, &be_port, sizeof(be_port));
	expr_rules(nl, "nat");
	nl_be32(nl, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nl_be32(nl, NFTA_NAT_FAMILY, family);
	nl_be32(nl, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	nl_be32(nl, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	nl_be32(nl, NFTA_NAT_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
	expr_end(nl);
}

/* ---- the rules ---- */

/* Continues in the other chain if `match` matches. */
static void goto_chain(
	struct nl *nl, const char *chain, void (*match)(struct nl *nl), const char *other)
{
	rule_rules(nl, chain);
	match(nl);
	verdict_rules(nl, NFT_GOTO, other);
	rule_end(nl);
}

static void turn_dns(struct nl *nl, uint8_t family, uint8_t proto)
{
	const uint16_t dns = htons(NET_PORT_DNS);

	rule_rules(nl, "caught");
	match_proto(nl, NFT_META_NFPROTO, family);
	match_proto(nl, NFT_META_L4PROTO, proto);
	match_payload(nl, NFT_PAYLOAD_TRANSPORT_HEADER, OFFSET_DPORT, &dns, sizeof(dns));
	turn_rules(nl, family, NET_PORT_DNS);
	rule_end(nl);
}

static void turn_tcp(struct nl *nl, uint8_t family)
{
	rule_rules(nl, "caught");
	match_proto(nl, NFT_META_NFPROTO, family);
	match_proto(nl, NFT_META_L4PROTO, IPPROTO_TCP);
	turn_rules(nl, family, NET_PORT_CAUGHT);
	rule_end(nl);
}

static void hold_containers_and_own(struct nl *nl)
{
	const uint32_t pass = NET_HOLD_PASS;
	const uint16_t dns = htons(NET_PORT_DNS);

	chain_rules(nl, "held");
	rule_rules(nl, "held");
	match_meta(nl, NFT_META_MARK, &pass, sizeof(pass));
	verdict_rules(nl, NF_ACCEPT, NULL);
	rule_end(nl);
	rule_rules(nl, "held");
	match_proto(nl, NFT_META_L4PROTO, IPPROTO_TCP);
	match_payload(nl, NFT_PAYLOAD_TRANSPORT_HEADER, OFFSET_DPORT, &dns, sizeof(dns));
	verdict_rules(nl, NF_ACCEPT, NULL);
	rule_end(nl);
	rule_rules(nl, "held");
	match_proto(nl, NFT_META_L4PROTO, IPPROTO_TCP);
	match_syn(nl);
	queue_rules(nl);
	rule_end(nl);

	base_chain(nl, "hold_own", "filter", NF_INET_LOCAL_OUT, BEFORE_CATCH);
	goto_chain(nl, "hold_own", match_leaves, "held");

	base_chain(nl, "hold_containers", "filter", NF_INET_PRE_ROUTING, BEFORE_CATCH);
	goto_chain(nl, "hold_containers", match_would_leave, "held");
}

/* Packets marked by net_hold.c are not redirected, so that refuse_rest gets them. */
static void pass_marked(struct nl *nl)
{
	const uint32_t mark = NET_HOLD_MARK;

	rule_rules(nl, "caught");
	match_meta(nl, NFT_META_MARK, &mark, sizeof(mark));
	verdict_rules(nl, NF_ACCEPT, NULL);
	rule_end(nl);
}

static void catch_all(struct nl *nl)
{
	chain_rules(nl, "caught");
	pass_marked(nl);
	turn_dns(nl, NFPROTO_IPV4, IPPROTO_UDP);
	turn_dns(nl, NFPROTO_IPV4, IPPROTO_TCP);
	turn_dns(nl, NFPROTO_IPV6, IPPROTO_UDP);
	turn_dns(nl, NFPROTO_IPV6, IPPROTO_TCP);
	turn_tcp(nl, NFPROTO_IPV4);
	turn_tcp(nl, NFPROTO_IPV6);

	base_chain(nl, "catch_own", "nat", NF_INET_LOCAL_OUT, BEFORE_NAT);
	goto_chain(nl, "catch_own", match_leaves, "caught");

	base_chain(nl, "catch_containers", "nat", NF_INET_PRE_ROUTING, BEFORE_NAT);
	goto_chain(nl, "catch_containers", match_would_leave, "caught");
}

/* Redirected packets, routed before, still have eth0 here; their address identifies them. */
static void let_turned_pass(struct nl *nl)
{
	const struct in_addr gateway = net_link_gateway();
	const struct in6_addr gateway6 = net_link_gateway6();

	rule_rules(nl, "refuse_own");
	match_proto(nl, NFT_META_NFPROTO, NFPROTO_IPV4);
	match_payload(nl, NFT_PAYLOAD_NETWORK_HEADER, OFFSET_DADDR, &gateway, sizeof(gateway));
	verdict_rules(nl, NF_ACCEPT, NULL);
	rule_end(nl);

	rule_rules(nl, "refuse_own");
	match_proto(nl, NFT_META_NFPROTO, NFPROTO_IPV6);
	match_payload(nl, NFT_PAYLOAD_NETWORK_HEADER, OFFSET_DADDR6, &gateway6, sizeof(gateway6));
	verdict_rules(nl, NF_ACCEPT, NULL);
	rule_end(nl);
}

static void refuse_rest(struct nl *nl)
{
	chain_rules(nl, "refused");
	rule_rules(nl, "refused");
	match_proto(nl, NFT_META_L4PROTO, IPPROTO_TCP);
	refuse_rules(nl, NFT_REJECT_TCP_RST, 0);
	rule_end(nl);
	rule_rules(nl, "refused");
	refuse_rules(nl, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
	rule_end(nl);

	base_chain(nl, "refuse_own", "filter", NF_INET_LOCAL_OUT, BEFORE_FILTER);
	let_turned_pass(nl);
	goto_chain(nl, "refuse_own", match_leaves, "refused");

	base_chain(nl, "refuse_containers", "filter", NF_INET_FORWARD, BEFORE_FILTER);
	goto_chain(nl, "refuse_containers", match_leaves, "refused");
}

int net_rules_apply(bool hold, struct err *err)
{
	struct nl nl = {0};
	int r;

	batch_rules(&nl, NFNL_MSG_BATCH_BEGIN);
	/* Creating it first allows deleting an old one whether it exists or not. */
	table_rules(&nl, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	table_rules(&nl, NFT_MSG_DELTABLE, 0);
	table_rules(&nl, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	if (hold)
		hold_containers_and_own(&nl);
	catch_all(&nl);
	refuse_rest(&nl);
	batch_rules(&nl, NFNL_MSG_BATCH_END);
	r = nl_talk(&nl, NETLINK_NETFILTER, false, err);
	return r < 0 ? err_wrap(err, r, "cannot set the rules of the network") : 0;
}
