/* SPDX-License-Identifier: Apache-2.0 */
/* Keyboard input: kept until the guest has it, searched for detach keys. */
#include "session_live.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static_assert((SESSION_QUEUE & (SESSION_QUEUE - 1)) == 0, "offsets may wrap around");

static size_t room_in(const struct live *l)
{
	return SESSION_QUEUE - (size_t)(l->in_read - l->in_taken);
}

bool live_wants_input(const struct live *l)
{
	/* Earlier input is not read: its offset is not known yet. */
	return l->in_open && l->started && !l->ended && !l->detaching && room_in(l) >= PIECE / 2;
}

static void keep_in(struct live *l, struct slice s)
{
	assert(s.n <= room_in(l));
	for (size_t i = 0; i < s.n; i++)
		l->in[(l->in_read + i) % SESSION_QUEUE] = s.p[i];
	l->in_read += s.n;
	l->s->n_in += s.n;
}

/* A part of the keys and then another key: they were meant for the program. */
static void keep_matched(struct live *l)
{
	keep_in(l, slice_of(l->s->keys.key, l->n_matched));
	l->n_matched = 0;
}

void live_type(struct live *l, struct slice typed)
{
	const struct detach_keys *keys = &l->s->keys;

	while (typed.n > 0 && !l->detaching) {
		size_t n = keys->n ? detach_keys_match(keys->key[l->n_matched], typed) : 0;

		if (n > 0) {
			l->detaching = ++l->n_matched == keys->n;
			typed = slice_of(typed.p + n, typed.n - n);
			continue;
		}
		if (l->n_matched) {
			keep_matched(l);
			continue;
		}
		if (!keys->n) {
			keep_in(l, typed);
			return;
		}
		keep_in(l, slice_of(typed.p, 1));
		typed = slice_of(typed.p + 1, typed.n - 1);
	}
}

int live_read_input(struct live *l)
{
	size_t n = MIN(room_in(l) - DETACH_MAX_KEYS, (size_t)PIECE);
	ssize_t k = read(l->s->in_fd, l->buf, n);

	if (k < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (k > 0) {
		live_type(l, slice_of(l->buf, (size_t)k));
		return 0;
	}
	l->in_open = false; /* a read error ends the input too */
	/* The terminal was closed; that is not a ^D for a program that keeps running. */
	if (live_is_kept(l)) {
		l->drop = true;
		l->s->left = SESSION_DETACHED;
		return live_end(l, 128 + SIGHUP);
	}
	l->eof_read = true;
	return 0;
}

void live_send_input(struct live *l)
{
	size_t at, n = 1;

	while (l->in_sent < l->in_read && n > 0) {
		at = (size_t)(l->in_sent % SESSION_QUEUE);
		n = MIN((size_t)(l->in_read - l->in_sent), SESSION_QUEUE - at);
		n = exec_put_data(
			&l->to_guest, EXEC_STDIN, slice_of(l->in + at, MIN(n, (size_t)PIECE)));
		l->in_sent += n;
	}
	/* Without a link nothing has to be kept. */
	if (!l->s->link)
		l->in_taken = l->in_sent;
	if (l->eof_read && !l->eof_sent && l->in_sent == l->in_read)
		l->eof_sent = exec_put_frame(&l->to_guest, EXEC_STDIN_EOF, slice_of("", 0)) == 0;
}

int live_on_taken(struct live *l, uint64_t at)
{
	if (at < l->in_taken || at > l->in_sent)
		return -EBADMSG;
	l->in_taken = at;
	return 0;
}

int live_rewind(struct live *l, uint64_t at, bool eof_taken)
{
	/* Other clients typed into the program before: offsets count from its current position. */
	if (!l->started)
		l->in_taken = l->in_sent = l->in_read = at;
	if (at < l->in_taken || at > l->in_read)
		return -EBADMSG;
	l->in_taken = l->in_sent = at;
	l->eof_sent = eof_taken;
	return 0;
}
