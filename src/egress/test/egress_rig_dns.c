/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS server of the test: one child, UDP and TCP on RIG_DNS, answers by the shared table. */
#include "egress_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "egress_rig_internal.h"
#include "lib/base/mem.h"

struct rig_dns *rig_dns;

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28 };

/* Big-endian, as in DNS. */
static void put16(struct wr *wr, unsigned v)
{
	wr_u8(wr, (uint8_t)(v >> 8));
	wr_u8(wr, (uint8_t)v);
}

static void put_name(struct wr *wr, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		wr_u8(wr, (uint8_t)n);
		wr_bytes(wr, slice_of(name, n));
		name += n + (name[n] == '.');
	}
	wr_u8(wr, 0);
}

/* Parses the question; returns the length of the query up to its end, 0 if invalid. */
static size_t read_question(const uint8_t *q, size_t n, char name[128], unsigned *ret_type)
{
	size_t at = 12, to = 0;

	while (at < n && q[at]) {
		size_t len = q[at];

		if (len > 63 || at + 1 + len >= n || to + len + 2 > 128)
			return 0;
		memcpy(name + to, q + at + 1, len);
		to += len;
		name[to++] = '.';
		at += 1 + len;
	}
	name[to ? to - 1 : 0] = '\0';
	if (at + 5 > n)
		return 0;
	*ret_type = (unsigned)q[at + 1] << 8 | q[at + 2];
	return at + 5;
}

static struct rig_name *find(const char *name)
{
	for (unsigned i = 0; i < rig_dns->n_names; i++) {
		if (strcasecmp(rig_dns->names[i].name, name) == 0)
			return &rig_dns->names[i];
	}
	return NULL;
}

static void put_record(struct wr *wr, const char *alias, unsigned type, const void *p, size_t n)
{
	if (alias[0])
		put_name(wr, alias);
	else
		put16(wr, 0xc00c); /* the question's name */
	put16(wr, type);
	put16(wr, 1);
	put16(wr, 0);
	put16(wr, 60);
	put16(wr, (unsigned)n);
	wr_bytes(wr, slice_of(p, n));
}

static void put_alias(struct wr *wr, const char *alias)
{
	uint8_t text[160];
	struct wr name = wr_init(text, sizeof(text));

	put_name(&name, alias);
	put_record(wr, "", TYPE_CNAME, text, name.n);
}

static unsigned put_answers(struct wr *wr, struct rig_name *e, unsigned type)
{
	unsigned n = e->cname[0] ? 1 : 0;

	if (e->cname[0])
		put_alias(wr, e->cname);
	if (type == TYPE_A && e->has_later && e->n_asked[0] > 1) {
		put_record(wr, e->cname, TYPE_A, e->later, 4);
		return n + 1;
	}
	for (unsigned i = 0; type == TYPE_A && i < e->n_a; i++, n++)
		put_record(wr, e->cname, TYPE_A, e->a[i], 4);
	for (unsigned i = 0; type == TYPE_AAAA && i < e->n_aaaa; i++, n++)
		put_record(wr, e->cname, TYPE_AAAA, e->aaaa[i], 16);
	return n;
}

/* Returns the length of the answer; 0: none. */
static size_t answer(const uint8_t *q, size_t n, bool by_tcp, uint8_t *buf, size_t size)
{
	char name[128] = "";
	unsigned type = 0, n_answers = 0;
	size_t n_question = read_question(q, n, name, &type);
	struct rig_name *e = find(name);
	struct wr wr = wr_init(buf, size);
	bool cut = e && e->truncated && !by_tcp;

	rig_dns->n_queries++;
	rig_dns->n_tcp += by_tcp;
	if (e)
		e->n_asked[type == TYPE_AAAA]++;
	if (n_question == 0 || (e && (type == TYPE_AAAA ? e->silent_aaaa : e->silent_a)))
		return 0;
	wr_bytes(&wr, slice_of(q, n_question));
	buf[2] = (uint8_t)(0x81 | (cut ? 2 : 0));
	buf[3] = (uint8_t)(0x80 | (e ? e->rcode : 3));
	memset(buf + 6, 0, 6);
	if (e && !cut && e->rcode == 0 && e->lie != RIG_LOOP)
		n_answers = put_answers(&wr, e, type);
	if (e && e->lie == RIG_LOOP) { /* a name that points to itself */
		put16(&wr, 0xc000 | (unsigned)wr.n);
		n_answers = 1;
	}
	buf[7] = (uint8_t)n_answers;
	if (e && e->lie == RIG_WRONG_ID)
		buf[0] ^= 0x55;
	if (e && e->lie == RIG_WRONG_NAME)
		buf[13] ^= 1;
	if (e && e->lie == RIG_EMPTY)
		return 0;
	return e && e->lie == RIG_SHORT ? 7 : wr.n;
}

static void serve_udp(int fd)
{
	uint8_t q[2048], buf[4096];
	struct sockaddr_storage from;
	socklen_t n_from = sizeof(from);
	ssize_t n = recvfrom(fd, q, sizeof(q), 0, (struct sockaddr *)&from, &n_from);
	size_t n_answer;

	if (n < 12)
		return;
	n_answer = answer(q, (size_t)n, false, buf, sizeof(buf));
	if (n_answer)
		(void)sendto(fd, buf, n_answer, 0, (struct sockaddr *)&from, n_from);
}

static void serve_tcp(int listener)
{
	const struct timeval second = {.tv_sec = 1};
	uint8_t q[2048], buf[4096 + 2];
	int fd = accept(listener, NULL, NULL);
	size_t n, n_answer;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	while (recv(fd, q, 2, MSG_WAITALL) == 2) {
		n = (size_t)q[0] << 8 | q[1];
		if (n < 12 || n > sizeof(q) || recv(fd, q, n, MSG_WAITALL) != (ssize_t)n)
			break;
		n_answer = answer(q, n, true, buf + 2, sizeof(buf) - 2);
		buf[0] = (uint8_t)(n_answer >> 8);
		buf[1] = (uint8_t)n_answer;
		if (n_answer)
			(void)send(fd, buf, n_answer + 2, MSG_NOSIGNAL);
	}
	(void)close(fd);
}

static int bind_to(int type)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = inet_addr(RIG_DNS)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	if (type == SOCK_STREAM && listen(fd, 64) < 0)
		return -1;
	return fd;
}

void rig_dns_start(void)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
	pid_t parent = getpid();

	rig_dns = mmap(
		NULL, sizeof(*rig_dns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p[0].fd = bind_to(SOCK_DGRAM);
	p[1].fd = bind_to(SOCK_STREAM);
	if (rig_dns == MAP_FAILED || p[0].fd < 0 || p[1].fd < 0) {
		perror("the DNS server of the test");
		exit(1);
	}
	if (fork() != 0) {
		(void)close(p[0].fd);
		(void)close(p[1].fd);
		return;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent && poll(p, 2, 1000) >= 0) {
		if (p[0].revents)
			serve_udp(p[0].fd);
		if (p[1].revents)
			serve_tcp(p[1].fd);
	}
	_exit(0);
}

void rig_dns_clear(void)
{
	memset(rig_dns, 0, sizeof(*rig_dns));
}

struct rig_name *rig_dns_add(const char *name, const char *addrs)
{
	struct rig_name *e = find(name);
	AUTO_FREE char *copy = xstrdup(addrs);
	char *rest = copy;

	if (!e) {
		assert_true(rig_dns->n_names < RIG_NAMES);
		e = &rig_dns->names[rig_dns->n_names];
		(void)snprintf(e->name, sizeof(e->name), "%s", name);
	}
	for (char *a = strtok_r(rest, " ", &rest); a; a = strtok_r(NULL, " ", &rest)) {
		if (strchr(a, ':'))
			assert_int_equal(inet_pton(AF_INET6, a, e->aaaa[e->n_aaaa++]), 1);
		else
			assert_int_equal(inet_pton(AF_INET, a, e->a[e->n_a++]), 1);
	}
	if (e == &rig_dns->names[rig_dns->n_names])
		rig_dns->n_names++;
	return e;
}
