/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/guest/exec/child.h"
#include "src/guest/base/event.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define EV_TICK 200
#define TICK_MS 5
#define ACK_STEP 16384

struct rig rig;
static int a_wire;

/* ---- in the place of the wire and of child.c ---- */

int wire_reply(struct wire *w, uint32_t id, unsigned status)
{
	return status == 200 ? 0 : -1;
}

void wire_resume(struct wire *w, uint32_t id)
{
}

void wire_consumed(struct wire *w, uint32_t id, size_t n)
{
}

void wire_reset(struct wire *w, uint32_t id)
{
	for (size_t i = 0; i < EXEC_MAX_CONNS; i++)
		if (rig.peers[i] && rig.peers[i]->id == id) {
			rig.peers[i]->gone = rig.peers[i]->over = true;
			rig.peers[i]->id = 0;
			rig.peers[i] = NULL;
		}
}

void child_run(const struct child *c)
{
	signals_reset();
	(void)setsid();
	if (isatty(c->in))
		(void)ioctl(c->in, TIOCSCTTY, 0);
	if (dup2(c->in, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->err, 2) < 0)
		_exit(126);
	(void)execvp(c->spec->argv[0], c->spec->argv);
	(void)!write(c->status, "\x7fthere is no such program", 25);
	_exit(127);
}

/* ---- a client ---- */

static void grow(uint8_t **p, size_t *n, struct slice s)
{
	/* Room in powers of two: growing byte by byte would copy it a thousand times. */
	size_t room = 65536;

	while (room < *n + s.n + 1)
		room *= 2;
	if (!*p || (room > 65536 && *n + 1 <= room / 2))
		*p = xrealloc(*p, room);
	if (s.n)
		memcpy(*p + *n, s.p, s.n);
	*n += s.n;
	(*p)[*n] = '\0';
}

static void send_queue(struct peer *p, struct bufq *q)
{
	uint8_t buf[4096];
	size_t n;

	while (p->id && (n = bufq_take(q, buf, sizeof(buf))) > 0)
		exec_on_data(rig.x, p->idx, slice_of(buf, n));
	bufq_done(q);
}

void peer_frame(struct peer *p, enum exec_type type, struct slice payload)
{
	struct bufq q;

	bufq_init(&q, EXEC_MAX_PAYLOAD + EXEC_HEADER);
	assert_int_equal(exec_put_frame(&q, type, payload), 0);
	send_queue(p, &q);
}

static void ack(struct peer *p)
{
	struct bufq q;

	if (p->out_at - p->acked < ACK_STEP)
		return;
	p->acked = p->out_at;
	bufq_init(&q, 64);
	assert_int_equal(exec_put_offset(&q, EXEC_ACK, p->acked), 0);
	send_queue(p, &q);
}

static void on_attached(struct peer *p, struct slice payload)
{
	assert_int_equal(exec_get_attached(payload, &p->how), 0);
	p->attached = true;
	p->in_at = (size_t)(p->in_acked = p->how.in_taken);
	p->eof_said = p->how.flags & EXEC_AF_EOF;
	p->out_at = p->acked = p->how.out_at;
}

static void on_frame(struct peer *p, const struct exec_frame *f)
{
	struct slice text;

	switch (f->type) {
	case EXEC_STARTED:
		p->started = true;
		break;
	case EXEC_ATTACHED:
		on_attached(p, f->payload);
		break;
	case EXEC_TAKEN:
		assert_int_equal(exec_get_offset(f->payload, &p->in_acked), 0);
		break;
	case EXEC_REPLAY:
		grow((uint8_t **)&p->replay, &p->n_replay, f->payload);
		break;
	case EXEC_STDOUT:
	case EXEC_STDERR:
		grow(&p->out, &p->n_out, f->payload);
		p->out_at += EXEC_HEADER + f->payload.n;
		break;
	case EXEC_EXIT:
		assert_int_equal(exec_get_exit(f->payload, &p->signalled, &p->status), 0);
		p->exited = true;
		break;
	case EXEC_ERROR:
		assert_int_equal(exec_get_error(f->payload, &p->status, &text), 0);
		memcpy(p->error, text.p, MIN(text.n, sizeof(p->error) - 1));
		break;
	case EXEC_DETACHED:
		assert_int_equal(exec_get_detached(f->payload, &p->reason), 0);
		break;
	default:
		fail_msg("frame %d", (int)f->type);
	}
}

static void forget(struct peer *p)
{
	if (p->id)
		rig.peers[p->idx] = NULL;
	p->id = 0;
	exec_reader_done(&p->reader);
}

static void read_some(struct peer *p)
{
	uint8_t buf[10007];
	ssize_t n = 1;

	for (int i = 0; i < 8 && n > 0 && p->id; i++) {
		struct slice in;
		struct exec_frame f;
		int r = 0;

		n = exec_pull(rig.x, p->idx, buf, sizeof(buf));
		in = slice_of(buf, (size_t)MAX(n, 0));
		while (n > 0 && (r = exec_reader_feed(&p->reader, &in, &f)) == 1)
			on_frame(p, &f);
		assert_true(r >= 0);
		if (n > 0 && p->id)
			ack(p);
	}
	if (n == 0 && p->id) {
		uint32_t idx = p->idx;

		p->over = true;
		forget(p);
		exec_on_close(rig.x, idx);
	}
}

static void send_input(struct peer *p)
{
	size_t n = MIN(p->n_in - p->in_at, (size_t)9000);

	if (!p->started && !p->attached)
		return;
	if (p->in && n > 0 && p->in_at + n - p->in_acked <= RIG_WINDOW) {
		peer_frame(p, EXEC_STDIN, slice_of(p->in + p->in_at, n));
		p->in_at += n;
	} else if (p->in && p->in_at == p->n_in && !p->eof_said) {
		p->eof_said = true;
		peer_frame(p, EXEC_STDIN_EOF, slice_of(NULL, 0));
	}
}

static void open_peer(struct peer *p)
{
	p->id = ++rig.next_id;
	p->gone = p->over = p->started = p->attached = p->exited = false;
	p->reason = 0;
	exec_reader_init(&p->reader, EXEC_FROM_GUEST);
	assert_int_equal(exec_open(rig.x, p->id, &p->idx), 0);
	rig.peers[p->idx] = p;
}

void peer_start(struct peer *p, const char *name, bool tokenless, const char *script)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	struct exec_spec spec = {.flags = EXEC_F_STDIN, .rows = 24, .cols = 80, .argv = argv};
	struct bufq q;

	if (!tokenless) {
		spec.flags |= EXEC_F_RESUME;
		assert_int_equal(getrandom(p->token, EXEC_TOKEN, 0), EXEC_TOKEN);
		memcpy(spec.token, p->token, EXEC_TOKEN);
	}
	if (name) {
		spec.flags |= EXEC_F_KEEP | EXEC_F_TTY;
		(void)strncpy(spec.session, name, EXEC_MAX_SESSION);
	}
	open_peer(p);
	bufq_init(&q, EXEC_MAX_PAYLOAD);
	assert_int_equal(exec_put_spec(&q, &spec), 0);
	send_queue(p, &q);
}

void peer_attach(struct peer *p, const char *name, bool resume)
{
	struct exec_attach a = {.resume = resume, .rows = 24, .cols = 80, .out_at = p->out_at};
	struct bufq q;

	if (name) {
		assert_int_equal(getrandom(p->token, EXEC_TOKEN, 0), EXEC_TOKEN);
		(void)strncpy(a.session, name, EXEC_MAX_SESSION);
	}
	memcpy(a.token, p->token, EXEC_TOKEN);
	open_peer(p);
	bufq_init(&q, 256);
	assert_int_equal(exec_put_attach(&q, &a), 0);
	send_queue(p, &q);
}

void peer_look(struct peer *p, const char *name)
{
	struct exec_attach a = {.look = true, .out_at = p->out_at};
	struct bufq q;

	(void)strncpy(a.session, name, EXEC_MAX_SESSION);
	open_peer(p);
	bufq_init(&q, 256);
	assert_int_equal(exec_put_attach(&q, &a), 0);
	send_queue(p, &q);
}

void peer_type(struct peer *p, const char *text)
{
	peer_frame(p, EXEC_STDIN, slice_from_str(text));
}

void peer_close(struct peer *p)
{
	uint32_t idx = p->idx;

	if (!p->id)
		return;
	forget(p);
	exec_on_close(rig.x, idx);
}

void peer_done(struct peer *p)
{
	peer_close(p);
	exec_reader_done(&p->reader);
	free(p->out);
	free(p->replay);
	*p = (struct peer){0};
}

/* ---- the loop ---- */

void rig_cut(void)
{
	uint8_t lost[5000];

	for (size_t i = 0; i < EXEC_MAX_CONNS; i++) {
		struct peer *p = rig.peers[i];

		if (!p)
			continue;
		for (int k = rand() % 8; k > 0; k--)
			(void)exec_pull(rig.x, p->idx, lost, sizeof(lost));
		p->over = true;
		forget(p);
	}
	exec_drop_all(rig.x);
	rig.x->wire = (struct wire *)(void *)&a_wire;
}

static void reap(void)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	(void)!read(rig.signals, &si, sizeof(si));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		(void)exec_on_exit(rig.x, pid, status);
}

static void set_tick(void)
{
	loop_timer_set(&rig.loop, &rig.tick, clock_mono_ms() + TICK_MS,
		(struct loop_key){.kind = EV_TICK});
}

static void turn(void)
{
	struct loop_event ev;

	loop_next(&rig.loop, &ev);
	if (ev.key.kind == EV_TICK)
		set_tick();
	else if (ev.key.kind == GUEST_EV_SIGNAL)
		reap();
	else
		exec_on_event(rig.x, &ev);
	for (size_t i = 0; i < EXEC_MAX_CONNS; i++) {
		struct peer *p = rig.peers[i];

		if (p && !p->lazy)
			read_some(p);
		if (rig.peers[i] && rig.peers[i] == p)
			send_input(p);
	}
}

void rig_run(unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	while (clock_mono_ms() < end)
		turn();
}

void rig_wait(const bool *flag)
{
	uint64_t end = clock_mono_ms() + RIG_MS;

	while (!*flag && clock_mono_ms() < end)
		turn();
	assert_true(*flag);
}

void peer_wait_text(struct peer *p, const char *text)
{
	uint64_t end = clock_mono_ms() + RIG_MS;

	while (clock_mono_ms() < end) {
		if ((p->n_out && memmem(p->out, p->n_out, text, strlen(text))) ||
			(p->n_replay && memmem(p->replay, p->n_replay, text, strlen(text))))
			return;
		turn();
	}
	fail_msg("\"%s\" did not come; output \"%.*s\" error \"%s\"", text,
		(int)MIN(p->n_out, 500u), p->out ? (char *)p->out : "", p->error);
}

void rig_begin(void)
{
	static const int signals[] = {SIGCHLD};

	rig = (struct rig){.x = xcalloc(1, sizeof(*rig.x))};
	assert_int_equal(loop_init(&rig.loop), 0);
	rig.signals = loop_signalfd(signals, 1);
	assert_int_equal(loop_add(&rig.loop, rig.signals, EPOLLIN,
				 (struct loop_key){.kind = GUEST_EV_SIGNAL}),
		0);
	rig.x->loop = &rig.loop;
	rig.x->wire = (struct wire *)(void *)&a_wire;
	(void)signal(SIGPIPE, SIG_IGN);
	set_tick();
}

void rig_end(void)
{
	rig_cut();
	for (struct exec *e = rig.x->slots; e < rig.x->slots + EXEC_MAX; e++)
		if (e->pid > 0)
			(void)kill(-e->pid, SIGKILL);
	rig_run(50);
	for (struct exec *e = rig.x->slots; e < rig.x->slots + EXEC_MAX; e++) {
		struct loop_event ev = {.key = {.kind = GUEST_EV_EXEC_TIMER,
						.gen = e->gen,
						.idx = (uint32_t)(e - rig.x->slots)}};

		if (e->state == EXEC_ORPHAN)
			exec_on_event(rig.x, &ev);
		if (e->name[0])
			e->name[0] = '\0';
		exec_unpark(rig.x);
		ev.key.kind = GUEST_EV_EXEC_ASIDE;
		ev.key.gen = e->gen;
		if (e->state != EXEC_FREE)
			exec_on_event(rig.x, &ev);
	}
	rig_run(20);
	loop_timer_clear(&rig.loop, &rig.tick);
	fd_close(&rig.signals);
	loop_done(&rig.loop);
	free(rig.x);
}
