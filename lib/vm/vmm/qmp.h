/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qmp - the client side of QEMU's monitor protocol: bytes in, items out; no I/O.
 *
 * How      qmp_feed reads bytes until one line gave an item (greeting done, a result, an event).
 *          qmp_send queues a command; one at a time is on the wire, the next one is sent after its
 *          answer. qmp_out gives the bytes (and perhaps the fd) to be written now.
 * Trust    Parses bytes of a qemu that may be compromised. Runs in keeper.
 * Owns     A line buffer and the queue. An item's `data` is the caller's: json_decref it.
 * Limits   QMP_MAX_LINE, QMP_MAX_DEPTH, QMP_MAX_QUEUE, QMP_MAX_COMMAND.
 * Never    Continues after an error: a line too long or too deep, invalid JSON, a wrong type, an
 *          unexpected answer. Unknown keys and events with unknown names are let through or
 *          ignored, since newer qemus have more of them.
 * See      qmp_test.c, qmp_fuzz.c
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define QMP_MAX_LINE (64 << 10) /* 8 KiB of console, at most 6 characters for a byte */
#define QMP_MAX_DEPTH 16
#define QMP_MAX_QUEUE 16
#define QMP_MAX_COMMAND 4096
#define QMP_MAX_NAME 64
#define QMP_MAX_TEXT 256

enum qmp_kind {
	QMP_GREETED, /* there is something to write now */
	QMP_READY,   /* capabilities agreed */
	QMP_RESULT,  /* id, tag; data is the `return` value */
	QMP_ERROR,   /* id, tag, name is the class, text the description */
	QMP_EVENT,   /* name; data is the `data` object or NULL */
};

struct qmp_item {
	enum qmp_kind kind;
	uint32_t id;
	int tag;
	char name[QMP_MAX_NAME];
	char text[QMP_MAX_TEXT]; /* control characters replaced */
	json_t *data;
};

struct qmp_command {
	uint32_t id;
	int tag;
	int fd; /* sent with the first byte; -1: none */
	char *text;
	size_t len;
};

struct qmp {
	enum { QMP_BORN, QMP_NEGOTIATING, QMP_RUNNING, QMP_DEAD } state;
	char *line;
	size_t n_line, room;
	struct qmp_command queue[QMP_MAX_QUEUE + 1]; /* the first is on the wire; one is ours */
	unsigned n_queue;
	size_t n_sent; /* bytes of the first one that were written */
	uint32_t next_id;
};

void qmp_init(struct qmp *q);
/* Closes the fds that still wait. */
void qmp_done(struct qmp *q);
/* Advances *in. 1: an item; 0: all read, no item yet; -EBADMSG: dead, err has the reason. */
int qmp_feed(
	struct qmp *q, struct slice *in, struct qmp_item *ret_item, struct err *err) MUST_CHECK;
void qmp_item_done(struct qmp_item *item);

/* Takes args (NULL: none) and fd (-1: none) in any case. tag comes back with the answer.
 * -ENOBUFS: queue full; -EMSGSIZE: longer than QMP_MAX_COMMAND; -EPIPE: dead. */
int qmp_send(struct qmp *q, int tag, const char *command, json_t *args, int fd) MUST_CHECK;
/* What to write now; empty when nothing. *ret_fd is sent with it by SCM_RIGHTS, -1: none. */
struct slice qmp_out(const struct qmp *q, int *ret_fd);
/* n bytes of it (and the fd, if n > 0) went out. */
void qmp_wrote(struct qmp *q, size_t n);
/* A command is on the wire and has no answer yet. */
bool qmp_is_waiting(const struct qmp *q);
