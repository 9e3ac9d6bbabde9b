#include "lib/secret/scan.h"

#include <errno.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "vault.h"

#define IDLE_MS 20

static void again(struct vault *v, struct op *op, unsigned ms)
{
	loop_timer_set(&v->loop, &op->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = EV_SCAN, .gen = op->gen, .idx = (uint32_t)(op - v->ops)});
}

/* One window, then everybody else has his turn. */
void scan_step(struct vault *v, struct op *op)
{
	struct err err = {0};
	uint8_t *room;
	size_t size;
	ssize_t n;

	if (!op->scan) {
		op->scan = scan_new(&v->book, &err);
		if (!op->scan) {
			op_answer(v, op, -ENOMEM, 0, err.text);
			return;
		}
	}
	room = scan_room(op->scan, &size);
	n = read(op->fd, room, size);
	if (n > 0) {
		scan_feed(op->scan, (size_t)n);
		again(v, op, 0);
	} else if (n == 0) {
		op_answer(v, op, 0, op->scan->n_found, "");
	} else if ((errno == EAGAIN || errno == EINTR) && clock_mono_ms() < op->until_ms) {
		again(v, op, IDLE_MS);
	} else {
		op_answer(v, op, -EIO, 0, "it cannot be read");
	}
}
