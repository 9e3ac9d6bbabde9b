/* SPDX-License-Identifier: Apache-2.0 */
/* raw, packet, xdp: packets not made by a protocol of the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

#define LISTEN_MS 300
#define MAX_INTERFACE 64
#define ARP_BYTES 42

/* An echo request with its checksum, which a host would answer. */
static void make_echo(uint8_t p[16], bool v6)
{
	unsigned sum = 0;

	memset(p, 0, 16);
	p[0] = v6 ? 128 : ICMP_ECHO;
	p[4] = 0x5b;
	for (int i = 0; i < 16; i += 2)
		sum += (unsigned)(p[i] << 8 | p[i + 1]);
	sum = ~((sum >> 16) + (sum & 0xffff));
	p[2] = (uint8_t)(sum >> 8);
	p[3] = (uint8_t)sum;
}

int probe_raw(int argc, char **argv)
{
	struct net_addr to;
	uint8_t buf[256];
	int fd;

	if (argc != 2 || net_parse(argv[0], "0", &to) < 0)
		return PROBE_USAGE;
	fd = socket(to.sa.sa_family, SOCK_RAW | SOCK_CLOEXEC, atoi(argv[1]));
	if (fd < 0)
		return probe_refused("socket");
	make_echo(buf, to.sa.sa_family == AF_INET6);
	if (connect(fd, &to.sa, to.n) < 0 || send(fd, buf, 16, 0) < 0)
		return probe_refused("sending");
	if (!net_wait(fd, POLLIN, LISTEN_MS)) {
		printf("sent, and no answer\n");
		return PROBE_POSSIBLE;
	}
	if (recv(fd, buf, sizeof(buf), 0) < 0)
		return probe_refused("sending");
	printf("answered\n");
	return PROBE_POSSIBLE;
}

/* An ARP request for a neighbour, which any machine on a network would answer. */
static void make_arp(uint8_t p[ARP_BYTES], const uint8_t target[4])
{
	static const uint8_t head[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0x5b, 0x78, 0, 0, 1,
		8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0x5b, 0x78, 0, 0, 1};

	memset(p, 0, ARP_BYTES);
	memcpy(p, head, sizeof(head));
	memcpy(p + 38, target, 4);
}

/* An answer is sent to the interface's own address. */
static void put_sender(int fd, const char *name, uint8_t *frame)
{
	struct ifreq req = {0};

	(void)snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFHWADDR, &req) < 0)
		return;
	memcpy(frame + 6, req.ifr_hwaddr.sa_data, 6);
	memcpy(frame + 22, req.ifr_hwaddr.sa_data, 6);
}

static int send_packet(int fd, unsigned index, const uint8_t *frame)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_ifindex = (int)index,
		.sll_halen = 6,
		.sll_protocol = htons(ETH_P_ARP)};

	memset(to.sll_addr, 0xff, 6);
	return sendto(fd, frame, ARP_BYTES, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* Returns 1 if sent, else 0; answered counts frames from other hosts. */
static int send_on(int fd, unsigned index, const uint8_t *frame, bool with_xdp, unsigned *answered)
{
	struct sockaddr_ll from;
	socklen_t n;
	uint8_t buf[64];

	if ((with_xdp ? xdp_send(index, frame, ARP_BYTES) : send_packet(fd, index, frame)) < 0)
		return 0;
	while (net_wait(fd, POLLIN, LISTEN_MS / 3)) {
		n = sizeof(from);
		if (recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &n) < 0)
			break;
		*answered += from.sll_pkttype == PACKET_HOST;
	}
	return 1;
}

/* On each interface; a packet socket counts the answers. */
static int ask_neighbours(int argc, char **argv, bool with_xdp)
{
	unsigned sent = 0, answered = 0;
	uint8_t frame[ARP_BYTES], target[4];
	int fd;

	if (argc != 1 || inet_pton(AF_INET, argv[0], target) != 1)
		return PROBE_USAGE;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ARP));
	if (fd < 0)
		return probe_refused("socket");
	make_arp(frame, target);
	for (unsigned i = 1; i < MAX_INTERFACE; i++) {
		char name[IF_NAMESIZE];

		if (!if_indextoname(i, name) || strcmp(name, "lo") == 0)
			continue;
		put_sender(fd, name, frame);
		sent += (unsigned)send_on(fd, i, frame, with_xdp, &answered);
	}
	printf("a frame on %u interfaces, %u answers\n", sent, answered);
	return answered ? PROBE_POSSIBLE : PROBE_REFUSED;
}

int probe_packet(int argc, char **argv)
{
	return ask_neighbours(argc, argv, false);
}

int probe_xdp(int argc, char **argv)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return probe_refused("socket");
	(void)close(fd);
	return ask_neighbours(argc, argv, true);
}
