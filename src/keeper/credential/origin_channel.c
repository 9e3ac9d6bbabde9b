/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_channel - the channel between edge and an origin, for all requests to its host.
 *
 * How      Made with the first request, and again when edge was restarted. The keeper passes on
 *          both ends and keeps none. Clerks get a socket of their own for each request.
 * Trust    Edge and origin may be compromised: what they say to each other is judged by origin.
 * See      lib/wire/mux/mux.h, proto/PROTOCOL.canon, cred_bare_test.c
 */
#include "credential.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/fs/fd.h"

int origin_make_pair(int fds[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return err_set(err, -EMFILE, "no file descriptors available on the host");
	return 0;
}

int origin_make_channel(struct keeper *k, struct origin *o, struct err *err)
{
	int fds[2], r;

	if (o->channel)
		return 0;
	r = origin_make_pair(fds, err);
	if (r < 0)
		return r;
	o->channel = ++k->origins->n_channels;
	o->edge_end = fds[0];
	o->own_end = fds[1];
	return 0;
}

void origin_drop_channel(struct origin *o)
{
	fd_close(&o->edge_end);
	fd_close(&o->own_end);
	o->channel = 0;
}

int origin_push_channel(struct origin *o)
{
	int r = 0;

	if (o->own_end >= 0)
		r = chan_send_plain(o->worker.sock, ORIGIN_CHANNEL, 0, o->own_end);
	if (r == 0 && o->own_end >= 0)
		o->had_channel = true;
	if (r == 0)
		fd_close(&o->own_end);
	return r;
}

/* The requests of an origin that has had no channel yet would be those of the next one. */
static void void_channel(struct keeper *k, struct origin *o, const char *why)
{
	if (o->had_channel)
		origin_drop_channel(o);
	else
		worker_stop(k, &o->worker, why);
}

void origins_forget_channel(struct keeper *k, uint32_t channel)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		if (o->worker.alive && o->channel == channel)
			void_channel(k, o, "sbx-edge cannot get the channel");
	}
}

void origins_on_edge_end(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		if (o->worker.alive && o->channel)
			void_channel(k, o, "sbx-edge has exited");
	}
}
