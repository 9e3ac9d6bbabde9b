/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_internal - what the files of a session share.
 *
 * Trust    As session.h.
 */
#pragma once

#include "session.h"

enum session_ev { SESSION_EV_CONTROL, SESSION_EV_EDGE, SESSION_EV_LINE, SESSION_EV_AGAIN };

/* session.c */
/* The last message: the keeper ends this process. */
void session_end(struct session *s);
/* Sends WANT, or EFFECTS and JUDGED, as far as the keeper reads. */
void session_report(struct session *s);

/* session_edge.c */
int edge_open(struct session *s, int fd) MUST_CHECK;
void edge_on_event(struct session *s, uint32_t events);
/* Sends what is queued; the session ends when all of the answer was sent. */
void edge_flush(struct session *s);
/* The request is refused. */
void edge_refuse(struct session *s, const struct clerk_decided *why);
/* The text of an error instead of an answer. */
void edge_fail(struct session *s, const char *why);

/* session_line.c */
/* The headers of the want that rules name: CANON_NAMED_MAX bytes and a NUL. -EINVAL. */
int line_get_named(struct session *s, char *named) MUST_CHECK;
void line_on_given(struct session *s, int fd);
void line_not_given(struct session *s);
/* Sends the request of edge. */
void line_send(struct session *s, int fd);
void line_on_event(struct session *s, uint32_t events);
/* Edge has taken bytes: there may be room for more of the answer. */
void line_resume(struct session *s);
void line_close(struct session *s);
