/* SPDX-License-Identifier: Apache-2.0 */
/* /link: the guest sends a URL and ends its direction. The answer is '+' or '-', and a line for the
 * guest's user. */
#include "tunnel_internal.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/str.h"
#include "lib/rules/url/url.h"

static void answer_link(struct edge *e, struct conn *c, bool ok, const char *text)
{
	char line[EDGE_MAX_REASON + 8];
	int n = snprintf(line, sizeof(line), "%c%s\n", ok ? '+' : '-', text);

	conn_say(e, c, slice_of(line, (size_t)n));
	conn_end(e, c);
}

void link_on_end(struct edge *e, struct conn *c)
{
	/* Nothing was consumed, so the queue is contiguous. */
	struct slice text = bufq_peek(&c->in);
	struct edge_ask ask = {.kind = EDGE_ASK_LINK, .via = EDGE_VIA_FORWARD};
	struct err err = {0};
	struct url url;

	if (url_parse(text, &url, &err) < 0) {
		answer_link(e, c, false, err.text);
		return;
	}
	(void)!str_copy(ask.host, sizeof(ask.host), url.host.name);
	(void)!str_copy(ask.target, sizeof(ask.target), url.text);
	ask.port = url.port;
	c->state = CONN_ASKED;
	conn_set_timer(e, c, 0);
	conn_ask(e, c, &ask);
}

void link_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict)
{
	answer_link(e, c, verdict->allowed, verdict->reason);
}
