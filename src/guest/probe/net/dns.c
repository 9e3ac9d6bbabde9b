/* SPDX-License-Identifier: Apache-2.0 */
/* dns: one query of any type to any address, and the answer in one line. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "net.h"
#include "src/guest/probe/verb/verb.h"

static const struct {
	const char *name;
	uint16_t type;
} types[] = {{"A", 1}, {"NS", 2}, {"CNAME", 5}, {"NULL", 10}, {"PTR", 12}, {"MX", 15}, {"TXT", 16},
	{"AAAA", 28}, {"SRV", 33}, {"NAPTR", 35}, {"SVCB", 64}, {"HTTPS", 65}, {"ANY", 255}};

static uint16_t type_of(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].name, text) == 0)
			return types[i].type;
	return (uint16_t)atoi(text);
}

/* Labels of any bytes: split at dots, then escapes are decoded. */
static size_t put_name(uint8_t *p, const char *name)
{
	size_t n = 0;

	while (*name && n < 250) {
		char label[512];
		uint8_t bytes[63];
		size_t len = strcspn(name, ".");

		(void)snprintf(label, sizeof(label), "%.*s", (int)len, name);
		p[n] = (uint8_t)net_bytes(label, bytes, sizeof(bytes));
		memcpy(p + n + 1, bytes, p[n]);
		n += 1U + p[n];
		name += len + (name[len] == '.');
	}
	p[n++] = 0;
	return n;
}

/* With EDNS, so that the answer can contain the reason. */
static size_t make_query(uint8_t *p, uint16_t type, const char *name)
{
	static const uint8_t head[] = {0x5b, 0x78, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1};
	static const uint8_t edns[] = {0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0};
	size_t n = sizeof(head);

	memcpy(p, head, n);
	n += put_name(p + n, name);
	p[n++] = (uint8_t)(type >> 8);
	p[n++] = (uint8_t)type;
	p[n++] = 0;
	p[n++] = 1;
	memcpy(p + n, edns, sizeof(edns));
	return n + sizeof(edns);
}

static ssize_t ask_udp(const struct net_addr *to, const uint8_t *q, size_t n, uint8_t *buf)
{
	int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &to->sa, to->n) < 0 || send(fd, q, n, 0) < 0)
		return -1;
	if (!net_wait(fd, POLLIN, NET_WAIT_MS)) {
		errno = ETIMEDOUT;
		return -1;
	}
	return recv(fd, buf, NET_MAX_BYTES, 0);
}

static ssize_t ask_tcp(const struct net_addr *to, uint8_t *q, size_t n, uint8_t *buf)
{
	int start = net_now(), fd = net_connect(to, start);
	uint8_t framed[512] = {(uint8_t)(n >> 8), (uint8_t)n};
	size_t got = 0;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	memcpy(framed + 2, q, n);
	if (send(fd, framed, n + 2, MSG_NOSIGNAL) < 0)
		return -1;
	while (got < 2 || got < 2U + (size_t)(buf[0] << 8 | buf[1])) {
		ssize_t r;

		errno = ETIMEDOUT;
		if (!net_wait(fd, POLLIN, net_left(start)))
			return -1;
		r = recv(fd, buf + got, NET_MAX_BYTES - got, 0);
		errno = r == 0 ? ECONNRESET : errno;
		if (r <= 0)
			return -1;
		got += (size_t)r;
	}
	memmove(buf, buf + 2, got - 2);
	return (ssize_t)got - 2;
}

int probe_dns(int argc, char **argv)
{
	bool tcp = argc == 5 && strcmp(argv[4], "tcp") == 0;
	uint8_t query[512], buf[NET_MAX_BYTES];
	struct net_addr to;
	ssize_t n;

	if (argc < 4 || argc > 5 || net_parse(argv[0], argv[1], &to) < 0)
		return PROBE_USAGE;
	n = (ssize_t)make_query(query, type_of(argv[2]), argv[3]);
	n = tcp ? ask_tcp(&to, query, (size_t)n, buf) : ask_udp(&to, query, (size_t)n, buf);
	return n < 0 ? probe_refused("asking") : answer_dns(stdout, slice_of(buf, (size_t)n));
}
