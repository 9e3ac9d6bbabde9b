/* SPDX-License-Identifier: Apache-2.0 */
/* talk: data to a TCP address, and the answer, in one line. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "net.h"
#include "src/guest/probe/verb/verb.h"

struct talk {
	int fd, start;
	uint8_t in[NET_MAX_BYTES + 1]; /* always NUL-terminated */
	size_t n;
	int end; /* 0 open, 1 closed, -errno */
};

/* Reads until `enough` bytes, the head of an HTTP answer, end-of-file or the timeout. */
static void receive_talk(struct talk *t, size_t enough)
{
	while (t->end == 0 && t->n < NET_MAX_BYTES && net_left(t->start) > 0) {
		ssize_t r;

		if (t->n >= enough && (strncmp((char *)t->in, "HTTP/", 5) != 0 ||
					      strstr((char *)t->in, "\r\n\r\n")))
			return;
		if (!net_wait(t->fd, POLLIN, net_left(t->start)))
			return;
		r = read(t->fd, t->in + t->n, NET_MAX_BYTES - t->n);
		if (r > 0)
			t->n += (size_t)r;
		else if (r == 0)
			t->end = 1;
		else if (errno != EAGAIN && errno != EINTR)
			t->end = -errno;
		t->in[t->n] = '\0';
	}
}

static void send_all(struct talk *t, const uint8_t *p, size_t n)
{
	while (n > 0 && t->end == 0 && net_left(t->start) > 0) {
		ssize_t r = send(t->fd, p, n, MSG_NOSIGNAL);

		if (r < 0 && errno == EAGAIN)
			(void)net_wait(t->fd, POLLOUT, net_left(t->start));
		else if (r < 0)
			return; /* reading returns the reason */
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		}
	}
}

static void send_hello(struct talk *t, const char *kind, const char *name)
{
	uint8_t sni[512], buf[2048];
	size_t n = net_bytes(name, sni, sizeof(sni));

	send_all(t, buf, hello_make(sni, n, kind[1] == 'e', kind[1] == '2', buf, sizeof(buf)));
}

static int print_answer(const struct talk *t)
{
	if (t->n == 0 && t->end < 0) {
		errno = -t->end;
		return probe_refused("reading");
	}
	if (t->n == 0) {
		printf("%s\n", t->end ? "closed without data" : "no answer in time");
		return PROBE_REFUSED;
	}
	return answer_talk(stdout, slice_of(t->in, t->n));
}

/* Returns false if later steps make no sense. */
static bool do_step(struct talk *t, const char *how, const char *what)
{
	uint8_t buf[4096];

	if (strcmp(how, "-s") == 0) {
		send_all(t, buf, net_bytes(what, buf, sizeof(buf)));
	} else if (strcmp(how, "-c") == 0) { /* CONNECT, which must succeed */
		int n = snprintf((char *)buf, sizeof(buf),
			"CONNECT %.500s HTTP/1.1\r\nHost: %.500s\r\n\r\n", what, what);

		send_all(t, buf, (size_t)n);
		receive_talk(t, 12);
		if (strncmp((char *)t->in, "HTTP/1.1 200", 12) != 0)
			return false;
		t->n = 0;
	} else if (strcmp(how, "-r") == 0) { /* an answer of at least this many bytes, not shown */
		size_t enough = (size_t)atoi(what);

		receive_talk(t, enough);
		if (t->n < enough)
			return false;
		t->n = 0;
	} else {
		send_hello(t, how, what);
	}
	return true;
}

int probe_talk(int argc, char **argv)
{
	struct talk t = {.start = net_now()};
	struct net_addr to;

	if (argc < 2 || argc % 2 || net_parse(argv[0], argv[1], &to) < 0)
		return PROBE_USAGE;
	t.fd = net_connect(&to, t.start);
	if (t.fd < 0) {
		errno = -t.fd;
		return probe_refused("connecting");
	}
	for (int i = 2; i + 1 < argc; i += 2)
		if (argv[i][0] != '-' || !strchr("scrte2", argv[i][1]))
			return PROBE_USAGE;
		else if (!do_step(&t, argv[i], argv[i + 1]))
			return print_answer(&t);
	receive_talk(&t, 7);
	(void)close(t.fd);
	return print_answer(&t);
}
