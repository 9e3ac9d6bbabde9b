/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

int loop_init(struct loop *l)
{
	*l = (struct loop){.epfd = epoll_create1(EPOLL_CLOEXEC)};
	return l->epfd < 0 ? -errno : 0;
}

void loop_done(struct loop *l)
{
	if (l->epfd >= 0)
		(void)close(l->epfd);
	free(l->heap);
	*l = (struct loop){.epfd = -1};
}

static uint64_t pack_key(struct loop_key key)
{
	assert(key.idx <= LOOP_MAX_IDX);
	return (uint64_t)key.kind << 56 | (uint64_t)key.idx << 32 | key.gen;
}

static struct loop_key unpack_key(uint64_t v)
{
	return (struct loop_key){
		.kind = (uint8_t)(v >> 56), .gen = (uint32_t)v, .idx = (v >> 32) & LOOP_MAX_IDX};
}

static int control_loop(struct loop *l, int op, int fd, uint32_t events, struct loop_key key)
{
	struct epoll_event ev = {.events = events, .data.u64 = pack_key(key)};

	return epoll_ctl(l->epfd, op, fd, &ev) < 0 ? -errno : 0;
}

int loop_add(struct loop *l, int fd, uint32_t events, struct loop_key key)
{
	return control_loop(l, EPOLL_CTL_ADD, fd, events, key);
}

int loop_mod(struct loop *l, int fd, uint32_t events, struct loop_key key)
{
	return control_loop(l, EPOLL_CTL_MOD, fd, events, key);
}

void loop_del(struct loop *l, int fd)
{
	(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, fd, NULL);
}

static void place_loop(struct loop *l, uint32_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->pos = i + 1;
}

static void sift_up(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	while (i > 0 && l->heap[(i - 1) / 2]->at_ms > t->at_ms) {
		place_loop(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place_loop(l, i, t);
}

static void sift_down(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= l->n_timers)
			break;
		if (c + 1 < l->n_timers && l->heap[c + 1]->at_ms < l->heap[c]->at_ms)
			c++;
		if (l->heap[c]->at_ms >= t->at_ms)
			break;
		place_loop(l, i, l->heap[c]);
		i = c;
	}
	place_loop(l, i, t);
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
	uint32_t i = t->pos - 1;
	struct loop_timer *last;

	if (t->pos == 0)
		return;
	t->pos = 0;
	last = l->heap[--l->n_timers];
	if (last == t)
		return;
	place_loop(l, i, last);
	sift_down(l, i);
	sift_up(l, last->pos - 1);
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at_ms, struct loop_key key)
{
	loop_timer_clear(l, t);
	assert(l->n_timers < LOOP_MAX_TIMERS);
	if (l->n_timers == l->room) {
		l->room = l->room ? 2 * l->room : 16;
		l->heap = xrealloc(l->heap, l->room * sizeof(struct loop_timer *));
	}
	t->at_ms = at_ms;
	t->key = key;
	place_loop(l, l->n_timers++, t);
	sift_up(l, t->pos - 1);
}

/* Milliseconds for epoll_wait: -1 without a timer, 0 when one is due. */
static int wait_ms(const struct loop *l)
{
	uint64_t now, at;

	if (l->n_timers == 0)
		return -1;
	now = clock_mono_ms();
	at = l->heap[0]->at_ms;
	return at <= now ? 0 : (int)MIN(at - now, 3600000u);
}

static bool pop_due_timer(struct loop *l, struct loop_event *ret_ev)
{
	struct loop_timer *t;

	if (l->n_timers == 0 || l->heap[0]->at_ms > clock_mono_ms())
		return false;
	t = l->heap[0];
	loop_timer_clear(l, t);
	*ret_ev = (struct loop_event){.key = t->key};
	return true;
}

static void refill_loop(struct loop *l)
{
	l->next = 0;
	l->n_batch = epoll_wait(l->epfd, l->batch, LOOP_BATCH, wait_ms(l));
	if (l->n_batch < 0) {
		assert(errno == EINTR);
		l->n_batch = 0;
	}
}

/* A batch of fds, then one due timer, then a batch again: neither can starve the other. */
void loop_next(struct loop *l, struct loop_event *ret_ev)
{
	for (;;) {
		if (l->next < l->n_batch) {
			struct epoll_event *e = &l->batch[l->next++];

			*ret_ev = (struct loop_event){
				.key = unpack_key(e->data.u64), .events = e->events};
			l->timers_first = true;
			return;
		}
		if (l->timers_first && pop_due_timer(l, ret_ev)) {
			l->timers_first = false;
			return;
		}
		refill_loop(l);
		l->timers_first = l->n_batch == 0;
	}
}

int loop_signalfd(const int *signals, size_t n)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}
