/* SPDX-License-Identifier: Apache-2.0 */
#include "qmp.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"

/* The tag of the qmp_capabilities that sbx sends; callers use tags from 0. */
#define TAG_CAPABILITIES -1

static void command_done(struct qmp_command *c)
{
	fd_close(&c->fd);
	free(TAKE(c->text));
}

void qmp_init(struct qmp *q)
{
	*q = (struct qmp){.state = QMP_BORN, .next_id = 1};
}

void qmp_done(struct qmp *q)
{
	for (unsigned i = 0; i < q->n_queue; i++)
		command_done(&q->queue[i]);
	q->n_queue = 0;
	free(TAKE(q->line));
	q->n_line = q->room = 0;
	q->state = QMP_DEAD;
}

void qmp_item_done(struct qmp_item *item)
{
	json_decref(TAKE(item->data));
}

static int give_up(struct qmp *q, struct err *err, const char *why)
{
	q->state = QMP_DEAD;
	return err_set(err, -EBADMSG, "protocol error: the QEMU monitor sent %s", why);
}

/* Copies at most size - 1 bytes; what could move a cursor or end a line becomes '?'. */
static void copy_clean(char *buf, size_t size, const json_t *s)
{
	const char *p = json_string_value(s);
	size_t n = MIN(json_string_length(s), size - 1);

	for (size_t i = 0; i < n; i++)
		buf[i] = p[i] >= 0x20 && p[i] < 0x7f ? p[i] : '?';
	buf[n] = 0;
}

/* jansson recurses as deep as the text nests; count before it does. */
static bool is_too_deep(struct slice line)
{
	bool in_string = false;
	int depth = 0;

	for (size_t i = 0; i < line.n; i++) {
		uint8_t c = line.p[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '{' || c == '['))
			depth++;
		else if (!in_string && (c == '}' || c == ']'))
			depth--;
		if (depth > QMP_MAX_DEPTH)
			return true;
	}
	return false;
}

static struct qmp_command make_command(
	struct qmp *q, int tag, const char *command, json_t *args, int fd)
{
	json_t *o = json_pack("{s:s, s:i}", "execute", command, "id", (int)q->next_id);
	struct qmp_command c = {.id = q->next_id, .tag = tag, .fd = fd};
	AUTO_FREE char *text = NULL;

	assert(o);
	if (args)
		assert(json_object_set(o, "arguments", args) == 0);
	text = json_dumps(o, JSON_COMPACT);
	assert(text);
	json_decref(o);
	c.text = xasprintf("%s\n", text);
	c.len = strlen(c.text);
	trace_line(TRACE_VM, "qmp command %s id=%u", command, (unsigned)c.id);
	q->next_id = q->next_id == INT32_MAX ? 1 : q->next_id + 1;
	return c;
}

static int on_greeting(struct qmp *q, const json_t *msg, struct qmp_item *it, struct err *err)
{
	if (!json_is_object(json_object_get(msg, "QMP")))
		return give_up(q, err, "no greeting");
	memmove(&q->queue[1], &q->queue[0], q->n_queue * sizeof(q->queue[0]));
	q->queue[0] = make_command(q, TAG_CAPABILITIES, "qmp_capabilities", NULL, -1);
	q->n_queue++;
	q->state = QMP_NEGOTIATING;
	it->kind = QMP_GREETED;
	return 1;
}

static int on_event(struct qmp *q, const json_t *msg, struct qmp_item *it, struct err *err)
{
	const json_t *name = json_object_get(msg, "event");
	json_t *data = json_object_get(msg, "data");

	if (!json_is_string(name) || json_string_length(name) >= QMP_MAX_NAME)
		return give_up(q, err, "an event without a valid name");
	if (data && !json_is_object(data))
		return give_up(q, err, "an event whose data is not an object");
	it->kind = QMP_EVENT;
	copy_clean(it->name, sizeof(it->name), name);
	it->data = json_incref(data);
	trace_line(TRACE_VM, "qmp event %s", it->name);
	return 1;
}

static int fill_error(struct qmp *q, const json_t *e, struct qmp_item *it, struct err *err)
{
	const json_t *class = json_object_get(e, "class");
	const json_t *desc = json_object_get(e, "desc");

	if (!json_is_string(class) || !json_is_string(desc))
		return give_up(q, err, "an error without class or text");
	it->kind = QMP_ERROR;
	copy_clean(it->name, sizeof(it->name), class);
	copy_clean(it->text, sizeof(it->text), desc);
	return 1;
}

static int on_answer(struct qmp *q, const json_t *msg, struct qmp_item *it, struct err *err)
{
	const json_t *id = json_object_get(msg, "id");
	const json_t *error = json_object_get(msg, "error");
	json_t *value = json_object_get(msg, "return");
	int r = 1;

	if (!q->n_queue || q->n_sent < q->queue[0].len)
		return give_up(q, err, "an unexpected response");
	if (!json_is_integer(id) || json_integer_value(id) != (json_int_t)q->queue[0].id)
		return give_up(q, err, "a response with a wrong id");
	it->id = q->queue[0].id;
	it->tag = q->queue[0].tag;
	it->kind = QMP_RESULT;
	if (error)
		r = fill_error(q, error, it, err);
	if (r < 0)
		return r;
	trace_line(TRACE_VM, "qmp %s id=%u", it->kind == QMP_ERROR ? it->name : "return",
		(unsigned)it->id);
	if (it->kind == QMP_RESULT)
		it->data = json_incref(value);

	command_done(&q->queue[0]);
	q->n_queue--;
	memmove(&q->queue[0], &q->queue[1], q->n_queue * sizeof(q->queue[0]));
	q->n_sent = 0;
	return 1;
}

static int on_capabilities(struct qmp *q, struct qmp_item *it, struct err *err)
{
	if (it->tag != TAG_CAPABILITIES)
		return 1;
	qmp_item_done(it);
	if (it->kind == QMP_ERROR)
		return give_up(q, err, "an error for qmp_capabilities");
	q->state = QMP_RUNNING;
	it->kind = QMP_READY;
	return 1;
}

static int on_message(struct qmp *q, const json_t *msg, struct qmp_item *it, struct err *err)
{
	int r;

	if (!json_is_object(msg))
		return give_up(q, err, "a line that is not an object");
	if (q->state == QMP_BORN)
		return on_greeting(q, msg, it, err);
	if (json_object_get(msg, "event"))
		return on_event(q, msg, it, err);
	if (!json_object_get(msg, "return") && !json_object_get(msg, "error"))
		return 0; /* a kind of message that we do not know */
	r = on_answer(q, msg, it, err);
	return r < 0 ? r : on_capabilities(q, it, err);
}

static int on_line(struct qmp *q, struct slice line, struct qmp_item *it, struct err *err)
{
	json_t *msg;
	int r;

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n)
		return 0;
	if (is_too_deep(line))
		return give_up(q, err, "a line that is nested too deeply");
	msg = json_loadb(
		(const char *)line.p, line.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	if (!msg)
		return give_up(q, err, "a line that is not JSON");
	r = on_message(q, msg, it, err);
	json_decref(msg);
	return r;
}

/* Most lines are short and arrive complete; the buffer grows for those that do not. */
static int keep_qmp(struct qmp *q, struct slice s, struct err *err)
{
	if (s.n > QMP_MAX_LINE - q->n_line)
		return give_up(q, err, "a line longer than 64 KiB");
	if (q->n_line + s.n > q->room) {
		q->room = MIN((q->n_line + s.n) * 2, (size_t)QMP_MAX_LINE);
		q->line = xrealloc(q->line, q->room);
	}
	if (s.n)
		memcpy(q->line + q->n_line, s.p, s.n);
	q->n_line += s.n;
	return 0;
}

static void forget_line(struct qmp *q)
{
	q->n_line = 0;
	if (q->room <= 4096)
		return;
	free(TAKE(q->line));
	q->room = 0;
}

int qmp_feed(struct qmp *q, struct slice *in, struct qmp_item *ret_item, struct err *err)
{
	struct qmp_item it = {};
	int r = 0;

	if (q->state == QMP_DEAD)
		return err_set(err, -EBADMSG, "the QEMU monitor is closed");
	while (in->n && r == 0) {
		const uint8_t *nl = memchr(in->p, '\n', in->n);
		size_t n = nl ? (size_t)(nl - in->p) : in->n;

		r = keep_qmp(q, slice_of(in->p, n), err);
		if (r < 0)
			return r;
		n += nl ? 1 : 0;
		*in = slice_of(in->p + n, in->n - n);
		if (!nl)
			return 0;
		r = on_line(q, slice_of(q->line, q->n_line), &it, err);
		forget_line(q);
	}
	if (r < 0)
		qmp_item_done(&it);
	else if (r > 0)
		*ret_item = it;
	return r;
}

int qmp_send(struct qmp *q, int tag, const char *command, json_t *args, int fd)
{
	struct qmp_command c = {.fd = fd};
	int r = 0;

	assert(tag >= 0);
	if (q->state == QMP_DEAD)
		r = -EPIPE;
	else if (q->n_queue >= QMP_MAX_QUEUE)
		r = -ENOBUFS;
	else
		c = make_command(q, tag, command, args, fd);
	json_decref(args);
	if (r == 0 && c.len > QMP_MAX_COMMAND)
		r = -EMSGSIZE;
	if (r < 0)
		command_done(&c);
	else
		q->queue[q->n_queue++] = c;
	return r;
}

struct slice qmp_out(const struct qmp *q, int *ret_fd)
{
	const struct qmp_command *c = &q->queue[0];

	*ret_fd = -1;
	if (q->state == QMP_BORN || q->state == QMP_DEAD || !q->n_queue)
		return slice_of("", 0);
	*ret_fd = c->fd;
	return slice_of(c->text + q->n_sent, c->len - q->n_sent);
}

void qmp_wrote(struct qmp *q, size_t n)
{
	assert(q->n_queue && n <= q->queue[0].len - q->n_sent);
	q->n_sent += n;
	if (n)
		fd_close(&q->queue[0].fd);
}

bool qmp_is_waiting(const struct qmp *q)
{
	return q->state == QMP_BORN || (q->state != QMP_DEAD && q->n_queue > 0);
}
