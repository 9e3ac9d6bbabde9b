/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the first data of an open tunnel before any is forwarded: TLS must name the target, HTTP
 * is not permitted in a tunnel, and other data is not permitted on the web ports. */
#include "tunnel_internal.h"
#include "sniff.h"

#include <stdio.h>
#include "lib/base/mem.h"
#include "src/edge/tls/tls.h"

static bool is_web(const struct conn *c)
{
	return c->opened || c->target.port == 80 || c->target.port == 443;
}

bool check_holds(const struct conn *c)
{
	return c->state == CONN_CHECKING && is_web(c);
}

static void pass_check(struct edge *e, struct conn *c)
{
	AUTO_FREE struct hello_reader *hello = TAKE(c->hello);

	conn_set_timer(e, c, 0);
	if (c->opened) {
		open_begin(e, c, &hello->hello);
		return;
	}
	if (hello) {
		c->retry = xmalloc(sizeof(*c->retry));
		retry_init(c->retry);
		c->n_may = c->n_seen = hello->n_bytes;
	}
	tunnel_begin(e, c);
}

static void cut_check(struct edge *e, struct conn *c, const char *fault)
{
	conn_report_fault(e, c, EDGE_ASK_TUNNEL, fault);
	if (c->proto == EDGE_PROTO_TLS && !c->server_spoke)
		conn_alert(e, c, CONN_ALERT_NAME);
	else
		conn_reset(e, c);
}

/* Returns the reason why this hello must not be sent to the target; NULL if it may. */
static const char *find_fault(const struct conn *c, const struct hello *h, struct err *err)
{
	struct canon_names names = {.scheme = HTTP_SCHEME_HTTPS,
		.target = {true, host_slice(&c->target.host), c->target.port}};
	enum canon_verdict verdict;
	struct host sni;

	if (hello_hides_name(h))
		return "the TLS server name is hidden (Encrypted Client Hello)";
	if (h->has_name) {
		if (host_from_wire(hello_name(h), &sni, err) < 0)
			return "the TLS server name is not a host name";
		names.sni = (struct canon_name){.given = true, .host = host_slice(&sni)};
	}
	verdict = canon_agree(&names);
	return verdict == CANON_AGREE ? NULL : canon_verdict_text(verdict);
}

void check_on_server(struct edge *e, struct conn *c, struct slice bytes)
{
	if (!c->retry || c->retry->answer != RETRY_UNKNOWN)
		return;
	/* A server that has closed cannot send a HelloRetryRequest. */
	if (bytes.n == 0)
		c->retry->answer = RETRY_NONE;
	if (retry_feed_server(c->retry, bytes) != RETRY_UNKNOWN)
		conn_note_room(e, c);
}

/* Passes new data of c->in to the reader. */
static enum hello_state feed_second(struct conn *c)
{
	struct retry *r = c->retry;
	size_t passed = r->n_pass, skip = c->n_seen;
	struct slice runs[2];

	conn_runs(&c->in, runs);
	for (size_t i = 0; i < 2; i++) {
		size_t n = MIN(skip, runs[i].n);

		skip -= n;
		if (runs[i].n > n)
			(void)retry_feed_client(r, slice_of(runs[i].p + n, runs[i].n - n));
	}
	c->n_seen = bufq_len(&c->in);
	c->n_may += r->n_pass - passed;
	return r->second.state;
}

static void cut_second(struct edge *e, struct conn *c, const char *why)
{
	char fault[EDGE_MAX_TEXT];

	(void)snprintf(fault, sizeof(fault), "second TLS ClientHello rejected: %s", why);
	cut_check(e, c, fault);
}

static const char *find_second_fault(struct conn *c, enum hello_state state)
{
	struct err err = {0};

	switch (state) {
	case HELLO_NEED_MORE:
		return c->in_end && c->n_may < bufq_len(&c->in) ? "incomplete" : NULL;
	case HELLO_DONE:
		return find_fault(c, &c->retry->second.hello, &err);
	case HELLO_NOT_TLS:
	case HELLO_BAD:
		break;
	}
	return hello_why_text(c->retry->second.why);
}

bool check_second(struct edge *e, struct conn *c)
{
	enum hello_state state;
	const char *fault;

	if (!c->retry || c->retry->answer == RETRY_UNKNOWN)
		return true;
	if (c->retry->answer == RETRY_NONE) {
		free(TAKE(c->retry));
		return true;
	}
	state = feed_second(c);
	fault = find_second_fault(c, state);
	if (fault) {
		cut_second(e, c, fault);
		return false;
	}
	if (state == HELLO_DONE)
		free(TAKE(c->retry));
	return true;
}

static void cut_bad_hello(struct edge *e, struct conn *c)
{
	char fault[EDGE_MAX_TEXT];

	(void)snprintf(fault, sizeof(fault), "TLS ClientHello rejected: %s",
		c->hello->state == HELLO_BAD ? hello_why_text(c->hello->why) : "not a ClientHello");
	cut_check(e, c, fault);
}

static void look_at_hello(struct edge *e, struct conn *c)
{
	struct err err = {0};
	const char *fault;

	switch (c->hello->state) {
	case HELLO_NEED_MORE:
		if (c->in_end)
			cut_check(e, c, "the TLS ClientHello is not complete");
		return;
	case HELLO_DONE:
		fault = find_fault(c, &c->hello->hello, &err);
		if (fault)
			cut_check(e, c, fault);
		else
			pass_check(e, c);
		return;
	case HELLO_NOT_TLS:
	case HELLO_BAD:
		cut_bad_hello(e, c);
		return;
	}
}

static void begin_hello(struct edge *e, struct conn *c)
{
	struct slice runs[2];

	c->proto = EDGE_PROTO_TLS;
	c->hello = xmalloc(sizeof(*c->hello));
	hello_init(c->hello);
	conn_runs(&c->in, runs);
	for (size_t i = 0; i < 2; i++) {
		if (runs[i].n)
			(void)hello_feed(c->hello, runs[i]);
	}
	conn_set_timer(e, c, e->first_ms);
	look_at_hello(e, c);
}

static enum sniff sniff_queue(const struct conn *c)
{
	uint8_t buf[SNIFF_BYTES];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice runs[2];
	enum sniff is;

	conn_runs(&c->in, runs);
	for (size_t i = 0; i < 2; i++)
		wr_bytes(&wr, slice_of(runs[i].p, MIN(runs[i].n, wr.size - wr.n)));
	is = sniff_first(slice_of(buf, wr.n));
	/* No HTTP server speaks first. */
	if (c->server_spoke && wr.n && buf[0] != 0x16)
		return SNIFF_OTHER;
	return is == SNIFF_MORE && c->in_end && wr.n ? SNIFF_OTHER : is;
}

static void other_check(struct edge *e, struct conn *c)
{
	c->proto = EDGE_PROTO_TCP;
	if (is_web(c))
		cut_check(e, c, "the first bytes are neither TLS nor HTTP");
	else
		pass_check(e, c);
}

static void wait_for_more(struct edge *e, struct conn *c)
{
	/* An end without data: nothing would be forwarded, so there is no fault. */
	if (c->in_end && is_web(c))
		conn_end(e, c);
	else if (c->in_end)
		pass_check(e, c);
	/* Silence is not a fault either where the server may speak first; a partial message is. */
	else if (!c->timer.pos && (is_web(c) || bufq_len(&c->in)))
		conn_set_timer(e, c, e->first_ms);
}

static void look_check(struct edge *e, struct conn *c)
{
	switch (sniff_queue(c)) {
	case SNIFF_MORE:
		wait_for_more(e, c);
		return;
	case SNIFF_HTTP:
		http_begin(e, c);
		return;
	case SNIFF_TLS:
		begin_hello(e, c);
		return;
	case SNIFF_OTHER:
		other_check(e, c);
		return;
	}
}

void check_begin(struct edge *e, struct conn *c)
{
	c->state = CONN_CHECKING;
	c->proto = EDGE_PROTO_UNKNOWN;
	conn_set_timer(e, c, 0);
	look_check(e, c);
}

void check_on_bytes(struct edge *e, struct conn *c, struct slice bytes)
{
	/* The server closed without an answer, so there is nothing to retry. */
	if (c->fd_eof && !c->server_spoke) {
		conn_reset(e, c);
		return;
	}
	if (!c->hello) {
		look_check(e, c);
		return;
	}
	if (bytes.n)
		(void)hello_feed(c->hello, bytes);
	look_at_hello(e, c);
}

void check_on_timer(struct edge *e, struct conn *c)
{
	char fault[EDGE_MAX_TEXT];

	(void)snprintf(fault, sizeof(fault), "%s%u s",
		bufq_len(&c->in) ? "unknown protocol: too few bytes received within " : EDGE_SILENT,
		e->first_ms / 1000);
	cut_check(e, c, fault);
}
