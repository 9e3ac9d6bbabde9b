/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback - the redirection of a browser to 127.0.0.1 after a login, passed into the sandbox once.
 *
 * How      callback_listen opens the port of the link's redirect_uri on 127.0.0.1 before the link
 *          is opened; a port in use is an error. callback_wait answers requests until one is the
 *          callback: a GET of exactly the path, for the right Host, with the `state` of the link,
 *          and no request that a page made by itself (Sec-Fetch-*, Origin). Then the port is
 *          closed, and a new GET with the target and constant headers is sent to the same port of
 *          the guest. Cookies, authorization and all other headers stay here.
 *
 *          The browser gets a fixed page. Nothing of the guest's response reaches it, since the
 *          guest would otherwise have a page with scripts and cookies of `localhost` in the user's
 *          browser. Redirections of the guest to itself are followed by sbx.
 * Trust    The requests are from any program and any web page of this host, the response is from
 *          the guest: callback_read and callback_response take both, without I/O.
 * Owns     The clients. callback_wait takes the listener.
 * Limits   CALLBACK_*.
 * Never    Listens on another address, or after the callback.
 * See      callback_test.c, callback_fuzz.c
 */
#pragma once

#include "lib/client/cli/ui.h"
#include "lib/rules/url/url.h"

#define CALLBACK_MS (10 * 60 * 1000)
#define CALLBACK_HEAD 16384 /* of a request, and of a response */
#define CALLBACK_HEAD_MS 30000
#define CALLBACK_CLIENTS 8
#define CALLBACK_BAD 200 /* requests that are refused */
#define CALLBACK_HOPS 4	 /* requests to the guest */
#define CALLBACK_GUEST_MS 60000

struct callback {
	struct url_callback at;
	bool has_state;
	char state[URL_MAX + 1]; /* of the link */
};

/* 1: the link has a callback. As url_callback. */
int callback_of(const struct url *u, struct callback *ret, struct err *err) MUST_CHECK;

/* What to do with the bytes of a request so far: 0 wait for more, 200 it is the callback, or the
 * status to refuse it with and *why. target: CALLBACK_HEAD bytes. */
int callback_read(const struct callback *cb, struct slice bytes, char *target, const char **why);
/* The status of a response, 0 if its head is not complete, -EBADMSG. `next` is the target that a
 * redirection to the same port has, else "". */
int callback_response(const struct callback *cb, struct slice bytes, char next[URL_MAX + 1]);

int callback_listen(const struct callback *cb, struct err *err) MUST_CHECK;
/* Until the sandbox has the callback. */
int callback_wait(
	const struct callback *cb, int listener, const char *sandbox, struct problem *p) MUST_CHECK;
