/* SPDX-License-Identifier: Apache-2.0 */
#include "nl.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "lib/base/fs/fd.h"

#define ALIGN(n) NLMSG_ALIGN(n)

static void *room_nl(struct nl *nl, size_t n)
{
	void *p = nl->buf + nl->n;

	if (nl->overflow || ALIGN(n) > sizeof(nl->buf) - nl->n) {
		nl->overflow = true;
		return NULL;
	}
	memset(p, 0, ALIGN(n));
	nl->n += ALIGN(n);
	return p;
}

void nl_begin(struct nl *nl, uint16_t type, uint16_t flags, const void *head, size_t n)
{
	struct nlmsghdr *h;
	void *p;

	nl->msg = nl->n;
	h = room_nl(nl, sizeof(*h));
	p = room_nl(nl, n);
	if (!h || !p)
		return;
	*h = (struct nlmsghdr){.nlmsg_type = type,
		.nlmsg_flags = (uint16_t)(flags | NLM_F_REQUEST),
		.nlmsg_seq = ++nl->seq};
	memcpy(p, head, n);
	if (flags & NLM_F_ACK)
		nl->n_answers++;
}

void nl_end(struct nl *nl)
{
	uint32_t n = (uint32_t)(nl->n - nl->msg);

	assert(nl->depth == 0);
	if (!nl->overflow)
		memcpy(nl->buf + nl->msg, &n, sizeof(n)); /* nlmsg_len */
}

void nl_put(struct nl *nl, uint16_t attr, const void *p, size_t n)
{
	struct nlattr *a = room_nl(nl, sizeof(*a) + n);

	if (!a)
		return;
	*a = (struct nlattr){.nla_type = attr, .nla_len = (uint16_t)(sizeof(*a) + n)};
	if (n)
		memcpy(a + 1, p, n);
}

void nl_str(struct nl *nl, uint16_t attr, const char *s)
{
	nl_put(nl, attr, s, strlen(s) + 1);
}

void nl_u32(struct nl *nl, uint16_t attr, uint32_t v)
{
	nl_put(nl, attr, &v, sizeof(v));
}

void nl_be32(struct nl *nl, uint16_t attr, uint32_t v)
{
	nl_u32(nl, attr, htonl(v));
}

void nl_nest(struct nl *nl, uint16_t attr)
{
	assert(nl->depth < NL_MAX_DEPTH);
	nl->nest[nl->depth++] = nl->n;
	nl_put(nl, attr | NLA_F_NESTED, NULL, 0);
}

void nl_unnest(struct nl *nl)
{
	size_t at = nl->nest[--nl->depth];
	uint16_t n = (uint16_t)(nl->n - at);

	if (!nl->overflow)
		memcpy(nl->buf + at, &n, sizeof(n)); /* nla_len */
}

/* Counts the answers in one datagram; returns a negative errno on an error. */
static int read_answers(
	const struct nl *nl, uint8_t *buf, size_t n, bool exists_ok, unsigned *count)
{
	for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		const struct nlmsgerr *e = NLMSG_DATA(h);

		if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ||
			h->nlmsg_seq > nl->seq)
			continue;
		if (e->error < 0 && !(exists_ok && e->error == -EEXIST))
			return e->error;
		(*count)++;
	}
	return 0;
}

static int exchange_nl(int fd, const struct nl *nl, bool exists_ok)
{
	static uint8_t buf[16384] __attribute__((aligned(8)));
	unsigned count = 0;
	int r = 0;

	if (send(fd, nl->buf, nl->n, 0) < 0)
		return -errno;
	while (r == 0 && count < nl->n_answers) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		r = read_answers(nl, buf, (size_t)n, exists_ok, &count);
	}
	return r;
}

int nl_talk(struct nl *nl, int protocol, bool exists_ok, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a netlink socket");
	return nl_talk_on(fd, nl, exists_ok, err);
}

int nl_talk_on(int fd, struct nl *nl, bool exists_ok, struct err *err)
{
	struct timeval bound = {.tv_sec = NL_ANSWER_MS / 1000};
	int r;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) < 0)
		return err_errno(err, -errno, "cannot create a netlink socket");
	r = nl->overflow ? -EMSGSIZE : exchange_nl(fd, nl, exists_ok);
	return r < 0 ? err_errno(err, r, "cannot query the kernel over netlink") : 0;
}
