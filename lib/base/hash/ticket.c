/* SPDX-License-Identifier: Apache-2.0 */
#include "ticket.h"

static void add_number(struct sha256 *s, uint32_t v)
{
	const uint8_t b[4] = {
		(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

	sha256_add(s, slice_of(b, sizeof(b)));
}

static void add_text(struct sha256 *s, struct slice text)
{
	add_number(s, (uint32_t)text.n);
	sha256_add(s, text);
}

void ticket_make(const struct ticket_request *req, struct ticket *ret)
{
	struct sha256 s;

	sha256_begin(&s);
	add_number(&s, TICKET_VERSION);
	add_number(&s, req->tls);
	add_text(&s, req->method);
	add_text(&s, req->host);
	add_number(&s, req->port);
	add_text(&s, req->path);
	add_number(&s, req->has_query);
	add_text(&s, req->has_query ? req->query : slice_of(NULL, 0));
	add_text(&s, req->named);
	ret->is_judged = false;
	ret->version = TICKET_VERSION;
	sha256_end(&s, ret->digest);
}

bool ticket_is_for(const struct ticket *ticket, const struct ticket_request *req)
{
	struct ticket own;

	ticket_make(req, &own);
	return ticket->version == own.version &&
	       memcmp(ticket->digest, own.digest, sizeof(own.digest)) == 0;
}
