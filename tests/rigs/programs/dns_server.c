/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS server on loopback, UDP and TCP, made of lib/wire/dns and a toy policy, so that real
 * clients can be asked what they think of the answers. Prints its port; ends when stdin does, and
 * after a minute in any case.
 *
 * allowed.test and what is below it is allowed, later.test cannot be decided, all else is denied.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/wire/dns/test/dns_frame.h"
#include "lib/wire/dns/dns_reply.h"
#include "lib/wire/dns/synth.h"

#define MAX_TRIES 50

static struct synth *synth;

static void lower_host(const struct dns_query *q, char buf[DNS_MAX_HOST + 1])
{
	struct slice host = dns_query_host(q);

	for (size_t i = 0; i < host.n; i++)
		buf[i] = (char)tolower(host.p[i]);
	buf[host.n] = '\0';
}

static void decide(const char *host, struct dns_facts *f, struct synth_addr *addr)
{
	static char why[2 * DNS_MAX_HOST + 64];

	snprintf(why, sizeof(why),
		"no rule allows %s \xe2\x80\x93 try: sbx policy allow network %s", host, host);
	f->why = slice_from_str(why);
	if (strcmp(host, "later.test") == 0)
		f->verdict = DNS_UNDECIDED;
	if (strcmp(host, "allowed.test") != 0 && !str_ends(host, ".allowed.test"))
		return;
	f->verdict = DNS_UNDECIDED;
	if (synth_assign(synth, slice_from_str(host), 0, addr) < 0)
		return;
	f->verdict = DNS_ALLOWED;
	f->v4 = addr->v4;
	f->v6 = addr->v6;
}

/* The answer's length, 0 when there is none. */
static size_t answer(struct slice msg, enum dns_via via, uint8_t buf[DNS_MAX_REPLY])
{
	struct dns_query q;
	int status = dns_query_parse(msg, via, &q);
	struct dns_facts facts = {.verdict = DNS_DENIED};
	char host[DNS_MAX_HOST + 1];
	struct synth_addr addr;
	struct dns_addr wanted;
	uint32_t id;
	size_t n;

	if (status < 0)
		return 0;
	lower_host(&q, host);
	if (status == 0 && dns_query_want(&q) == DNS_WANT_POLICY)
		decide(host, &facts, &addr);
	if (status == 0 && dns_query_want(&q) == DNS_WANT_REVERSE && dns_query_reverse(&q, &wanted))
		(void)!synth_find_addr(synth, slice_of(wanted.b, wanted.n), &id, &facts.ptr);
	return dns_reply_build(&q, status, &facts, buf, DNS_MAX_REPLY, &n) == 0 ? n : 0;
}

static void serve_udp(int fd)
{
	uint8_t in[4096], out[DNS_MAX_REPLY];
	struct sockaddr_in from;
	socklen_t n_from = sizeof(from);
	ssize_t n = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &n_from);
	size_t n_out = n >= 0 ? answer(slice_of(in, (size_t)n), DNS_OVER_UDP, out) : 0;

	if (n_out > 0)
		(void)!sendto(fd, out, n_out, 0, (struct sockaddr *)&from, n_from);
}

static void send_framed(int fd, struct slice msg)
{
	uint8_t out[2 + DNS_MAX_REPLY];
	size_t n = answer(msg, DNS_OVER_STREAM, out + 2);

	dns_frame_head(out, (uint16_t)n);
	if (n > 0)
		(void)!write(fd, out, n + 2);
}

/* One client at a time; the minute bounds a silent one too. */
static void serve_tcp(int listener)
{
	int fd = accept(listener, NULL, NULL), r = 0;
	struct dns_frame frame;
	uint8_t in[100];
	ssize_t n;

	dns_frame_init(&frame);
	while (r >= 0 && (n = read(fd, in, sizeof(in))) > 0) {
		struct slice piece = slice_of(in, (size_t)n), msg;

		while ((r = dns_frame_feed(&frame, &piece, &msg)) == 1)
			send_framed(fd, msg);
	}
	close(fd);
}

static int open_at(int type, struct sockaddr_in *at)
{
	socklen_t n = sizeof(*at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)at, n) == 0 &&
		getsockname(fd, (struct sockaddr *)at, &n) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* The same port twice. One that is free for UDP may be taken for TCP: then another one. */
static int open_both(struct pollfd p[2], struct sockaddr_in *at)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		at->sin_port = 0;
		p[0].fd = open_at(SOCK_DGRAM, at);
		p[1].fd = p[0].fd < 0 ? -1 : open_at(SOCK_STREAM, at);
		if (p[1].fd >= 0)
			return 0;
		if (p[0].fd >= 0)
			(void)close(p[0].fd);
	}
	perror("dns_server");
	return -1;
}

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t seed[SYNTH_SEED];
	struct pollfd p[3] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};

	alarm(60);
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return 1;
	synth = synth_new(seed);
	if (open_both(&p[1], &at) < 0)
		return 1;
	if (listen(p[2].fd, 8) < 0)
		return 1;
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	while (poll(p, 3, -1) >= 0 && p[0].revents == 0) {
		if (p[1].revents)
			serve_udp(p[1].fd);
		if (p[2].revents)
			serve_tcp(p[2].fd);
	}
	return 0;
}
