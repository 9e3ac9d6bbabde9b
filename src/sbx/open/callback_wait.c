/* SPDX-License-Identifier: Apache-2.0 */
/* The port on 127.0.0.1, its clients, and the connection to the guest. */
#include "callback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"

#define SAFE                                                                     \
	"Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n" \
	"Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: "       \
	"no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"

struct client {
	int fd; /* -1: free */
	uint64_t until_ms;
	size_t n;
	uint8_t head[CALLBACK_HEAD];
};

struct waiting {
	const struct callback *cb;
	int listener;
	unsigned n_bad;
	struct client clients[CALLBACK_CLIENTS];
	char target[CALLBACK_HEAD];
};

int callback_listen(const struct callback *cb, struct err *err)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(cb->at.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int one = 1;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(fd, CALLBACK_CLIENTS) < 0)
		return err_errno(err, -errno,
			"cannot receive the browser at 127.0.0.1:%u, the port of the callback",
			cb->at.port);
	return TAKE_FD(fd);
}

/* ---- clients ---- */

static void send_page(int fd, int status, const char *text)
{
	char page[1024];
	int n = snprintf(page, sizeof(page),
		"HTTP/1.1 %d %s\r\n" SAFE "Content-Length: %zu\r\n\r\n%s", status,
		status == 200 ? "OK" : "Refused", strlen(text), text);

	(void)!send(fd, page, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void drop_client(struct client *c)
{
	fd_close(&c->fd);
	c->n = 0;
}

static void drop_clients(struct waiting *w)
{
	for (size_t i = 0; i < CALLBACK_CLIENTS; i++)
		drop_client(&w->clients[i]);
}

static void accept_client(struct waiting *w)
{
	int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; i < CALLBACK_CLIENTS && fd >= 0; i++)
		if (w->clients[i].fd < 0) {
			w->clients[i].until_ms = clock_mono_ms() + CALLBACK_HEAD_MS;
			w->clients[i].fd = TAKE_FD(fd);
			return;
		}
	fd_close(&fd);
}

/* True: it has sent the callback. */
static bool read_client(struct waiting *w, struct client *c)
{
	ssize_t n = read(c->fd, c->head + c->n, sizeof(c->head) - c->n);
	const char *why;
	int status;

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			drop_client(c);
		return false;
	}
	c->n += (size_t)n;
	status = callback_read(w->cb, slice_of(c->head, c->n), w->target, &why);
	if (status == 200)
		return true;
	if (status == 0)
		return false;
	w->n_bad++;
	ui_debug("callback refused: %s", why);
	send_page(c->fd, status, "Not the callback of the login.\n");
	drop_client(c);
	return false;
}

/* The client that has sent the callback, or NULL. */
static struct client *poll_clients(struct waiting *w, int timeout_ms)
{
	struct pollfd p[CALLBACK_CLIENTS + 1];
	uint64_t now;
	bool has_room = false;

	for (size_t i = 0; i < CALLBACK_CLIENTS; i++) {
		p[i] = (struct pollfd){.fd = w->clients[i].fd, .events = POLLIN};
		has_room = has_room || w->clients[i].fd < 0;
	}
	p[CALLBACK_CLIENTS] = (struct pollfd){.fd = has_room ? w->listener : -1, .events = POLLIN};
	if (poll(p, ARRAY_LEN(p), timeout_ms) < 0)
		return NULL;
	now = clock_mono_ms();
	for (size_t i = 0; i < CALLBACK_CLIENTS; i++) {
		struct client *c = &w->clients[i];

		if (p[i].revents && read_client(w, c))
			return c;
		if (c->fd >= 0 && now >= c->until_ms)
			drop_client(c);
	}
	if (p[CALLBACK_CLIENTS].revents)
		accept_client(w);
	return NULL;
}

static struct client *wait_client(struct waiting *w)
{
	uint64_t until = clock_mono_ms() + CALLBACK_MS;
	struct client *c = NULL;

	while (!c && clock_mono_ms() < until && w->n_bad < CALLBACK_BAD)
		c = poll_clients(w, 500);
	return c;
}

/* ---- the guest ---- */

/* Sends the request and reads the head of the response. */
static int ask_port(const struct callback *cb, int fd, const char *target, char next[URL_MAX + 1])
{
	AUTO_FREE char *request = xasprintf("GET %s HTTP/1.1\r\nHost: localhost:%u\r\nAccept: "
					    "*/*\r\nConnection: close\r\n\r\n",
		target, cb->at.port);
	uint64_t until = clock_mono_ms() + CALLBACK_GUEST_MS;
	uint8_t head[CALLBACK_HEAD];
	size_t n = 0;
	int status = 0;

	if (fd_write_all(fd, request, strlen(request)) < 0)
		return -EIO;
	while (status == 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_mono_ms();
		ssize_t r = now < until && poll(&p, 1, (int)(until - now)) == 1
				    ? read(fd, head + n, sizeof(head) - n)
				    : -1;

		if (r <= 0)
			return -EIO;
		n += (size_t)r;
		status = callback_response(cb, slice_of(head, n), next);
	}
	return status;
}

/* Follows redirections of the guest to itself. Returns the last status. */
static int pass_callback(const struct waiting *w, const char *sandbox, struct problem *p)
{
	char target[CALLBACK_HEAD], next[URL_MAX + 1];
	int status = 0;

	(void)snprintf(target, sizeof(target), "%s", w->target);
	for (int i = 0; i < CALLBACK_HOPS && target[0]; i++) {
		AUTO_CLOSE int fd = api_callback(sandbox, w->cb->at.port, CALLBACK_GUEST_MS, p);

		if (fd < 0)
			return fd;
		status = ask_port(w->cb, fd, target, next);
		if (status < 0)
			return err_errno(&p->err, status,
				"no program in the sandbox has accepted the callback");
		(void)snprintf(target, sizeof(target), "%s", next);
	}
	return status < 400 ? 0
			    : err_set(&p->err, -EPROTO,
				      "the program in the sandbox has refused the callback: status "
				      "%d",
				      status);
}

int callback_wait(const struct callback *cb, int listener, const char *sandbox, struct problem *p)
{
	static struct waiting w;
	struct client *c;
	int r;

	w.cb = cb;
	w.listener = listener;
	for (size_t i = 0; i < CALLBACK_CLIENTS; i++)
		w.clients[i].fd = -1;
	c = wait_client(&w);
	fd_close(&w.listener); /* no second one */
	if (!c) {
		drop_clients(&w);
		return err_set(&p->err, -ETIMEDOUT, "the browser has not sent the callback");
	}
	r = pass_callback(&w, sandbox, p);
	send_page(c->fd, r < 0 ? 502 : 200,
		r < 0 ? "The sandbox has not accepted the login. Start the login again.\n"
		      : "The sandbox has received the login. You can close this page.\n");
	drop_clients(&w);
	return r;
}
