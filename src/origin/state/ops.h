/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops - callbacks of the parts: to exchange.c and talk.c, and to the keeper.
 *
 * How      main.c sets both tables. A part that must stop calls fail or finish and does not use the
 *          exchange afterwards.
 * Trust    Internal.
 */
#pragma once

#include "lib/os/ipc/origin_chan.h"
#include "lib/wire/http/http1.h"

struct exchange;
struct line;
struct origin;

/* exchange.c and talk.c. */
struct exchange_ops {
	/* Sends edge an error if it has no answer yet, and the outcome to the keeper. */
	void (*fail)(struct origin *o, struct exchange *x, enum origin_outcome outcome,
		const char *fmt, ...) PRINTF_LIKE(4, 5);
	/* Closes everything now. */
	void (*finish)(struct origin *o, struct exchange *x);
	/* Sends the rest of to_edge. False: the exchange has ended. */
	bool (*flush)(struct origin *o, struct exchange *x);
	/* Reports DONE. */
	void (*tell_done)(struct origin *o, struct exchange *x);
	/* A line exists and is verified: the value is next, or the request is sent. */
	void (*take_line)(struct origin *o, struct exchange *x, struct line *l);
	/* The value is available (why_not is NULL), or the reason why not. */
	void (*on_value)(struct origin *o, struct exchange *x, const char *why_not);
	/* The answer, from its line. False: the exchange has left this line. After the events of
	 * one read the line calls flush. */
	bool (*on_head)(struct origin *o, struct exchange *x, struct http_resp *resp);
	bool (*on_data)(struct origin *o, struct exchange *x, struct slice data);
	bool (*on_end)(struct origin *o, struct exchange *x, struct http_headers *trailers);
	/* untouched: the server has certainly not begun to process the request, and the line had
	 * served others before. The exchange has left the line on return. */
	void (*on_fail)(struct origin *o, struct exchange *x, enum origin_outcome outcome,
		bool untouched, const char *why);
	/* As on_fail, but the server certainly has not begun, and no content was consumed: it is
	 * sent once more, on any suitable line. */
	void (*on_refused)(struct origin *o, struct exchange *x, const char *why);
	/* Its line was closed before anything was sent on it. */
	void (*on_lost)(struct origin *o, struct exchange *x);
	/* room() has grown. From on_event only, where no data is partly read. */
	void (*on_room)(struct origin *o, struct exchange *x);
};

/* control.c. False: the keeper does not read. line_serve, value_flush_due and token_flush_due
 * are called later. */
struct keeper_ops {
	bool (*want)(struct origin *o, uint32_t id);
	bool (*need)(struct origin *o, uint32_t id, const struct origin_need *need);
	bool (*tokens)(struct origin *o, uint32_t id, const struct origin_tokens *tokens, int fd);
};
