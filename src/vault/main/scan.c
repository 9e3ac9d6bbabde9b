/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches a file, a pipe or the memory of a VM for every value. One window per turn. Holes of a
 * file are not read: of a VM's memory only the pages it has touched.
 */
#include "lib/secret/secret/scan.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "vault.h"

#define IDLE_MS 20

static void schedule_step(struct vault *v, struct op *op, unsigned ms)
{
	loop_timer_set(&v->loop, &op->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = EV_SCAN, .gen = op->gen, .idx = (uint32_t)(op - v->ops)});
}

static int begin_scan(struct vault *v, struct op *op, struct err *err)
{
	struct stat st;
	off_t at;

	op->scan = scan_new(&v->book, op->control, err);
	if (!op->scan)
		return -ENOMEM;
	if (fstat(op->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	at = lseek(op->fd, 0, SEEK_CUR);
	op->is_file = at >= 0;
	op->at = at;
	/* a growing file is read up to its current size */
	op->end = st.st_size;
	return 0;
}

/* Of a file: the next data that is not a hole. */
static ssize_t read_file(struct op *op, uint8_t *room, size_t size)
{
	off_t data = lseek(op->fd, op->at, SEEK_DATA);
	ssize_t n;

	if (data < 0 && errno == ENXIO)
		return 0;
	/* a file system without holes returns -EINVAL */
	if (data > op->at) {
		scan_skip(op->scan);
		room = scan_room(op->scan, &size);
		op->at = data;
	}
	if (op->at >= op->end)
		return 0;
	n = pread(op->fd, room, MIN(size, (size_t)(op->end - op->at)), op->at);
	if (n > 0)
		op->at += n;
	return n;
}

static void finish_scan(struct vault *v, struct op *op)
{
	struct vault_scanned *ret = xcalloc(1, sizeof(*ret));
	const struct scan *s = op->scan;

	ret->bytes = s->n_bytes;
	ret->control = s->owners[SCAN_CONTROL].times;
	for (size_t i = 0; i < s->n_owners; i++) {
		const struct scan_owner *o = &s->owners[i];

		ret->n_looked += o->is_looked;
		ret->n_left += !o->is_looked;
		ret->n_found += o->times > 0;
		if (!o->times || ret->n == VAULT_MAX_FOUND)
			continue;
		memcpy(ret->v[ret->n].name, o->name, sizeof(o->name));
		memcpy(ret->v[ret->n].scope, o->scope, sizeof(o->scope));
		ret->v[ret->n++].times = o->times;
	}
	op_answer_scanned(v, op, ret);
}

void scan_step(struct vault *v, struct op *op)
{
	struct err err = {0};
	uint8_t *room;
	size_t size;
	ssize_t n;

	if (!op->scan && begin_scan(v, op, &err) < 0) {
		op_answer(v, op, -ENOMEM, 0, err.text);
		return;
	}
	room = scan_room(op->scan, &size);
	n = op->is_file ? read_file(op, room, size) : read(op->fd, room, size);
	if (n == 0) {
		finish_scan(v, op);
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		op_answer(v, op, -EIO, 0, "cannot read the input");
	} else if (clock_mono_ms() >= op->until_ms) {
		op_answer(v, op, -ETIMEDOUT, 0, "timed out: the input is too long or has no end");
	} else if (n < 0) {
		schedule_step(v, op, IDLE_MS);
	} else {
		scan_feed(op->scan, (size_t)n);
		schedule_step(v, op, 0);
	}
}
