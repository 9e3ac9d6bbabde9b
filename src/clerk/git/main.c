/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-clerk-git: says what a push does, from its bytes. It enters the jail JAIL_CLERK_GIT itself.
 * A peer writes frames to fd 3 and reads frames from it: see README. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "clerk.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"
#include "lib/wire/git/gitadvert.h"
#include "selftest.h"

#define PEER_FD 3
#define MAX_LIST (256u << 10)

struct session {
	struct clerk *clerk;
	struct gitadvert advert;
	uint8_t *list;
	size_t n_list;
	bool broken; /* the peer */
};

static void write_all(const void *p, size_t n)
{
	struct slice rest = slice_of(p, n);

	while (rest.n > 0) {
		ssize_t done = write(PEER_FD, rest.p, rest.n);

		if (done <= 0)
			_exit(1);
		(void)slice_take(&rest, (size_t)done);
	}
}

static void put_frame(char type, struct slice payload)
{
	uint8_t head[4];
	struct wr wr = wr_init(head, sizeof(head));

	wr_u8(&wr, (uint8_t)type);
	wr_u24(&wr, (uint32_t)payload.n);
	write_all(head, sizeof(head));
	write_all(payload.p, payload.n);
}

/* ---- results ---- */

static void on_request(void *arg, struct slice body)
{
	put_frame('Q', body);
}

static void on_effect(void *arg, struct slice text)
{
	put_frame('E', text);
}

static void on_preview(void *arg, struct slice text)
{
	put_frame('P', text);
}

static void on_unknown(void *arg, const char *why)
{
	put_frame('U', slice_from_str(why));
}

static void on_judged(void *arg)
{
	put_frame('J', (struct slice){0});
}

static void put_bytes(void *arg, struct slice bytes)
{
	if (bytes.n > 0)
		put_frame('O', bytes);
}

static const struct clerk_sink sink = {.request = on_request,
	.effect = on_effect,
	.preview = on_preview,
	.unknown = on_unknown,
	.judged = on_judged};

/* ---- frames of the peer ---- */

/* u8 paths, u32 bytes, the target. */
static void configure_clerk(struct session *s, struct slice payload)
{
	struct rd rd = rd_init(payload);
	struct clerk_config config = {.paths = rd_u8(&rd) != 0, .max_bytes = rd_u32(&rd)};
	struct err err = {0};

	if (rd.bad ||
		slice_to_cstr(slice_of(rd.p, rd.n), config.target, sizeof(config.target)) < 0) {
		s->broken = true;
		return;
	}
	clerk_free(&s->clerk);
	s->clerk = clerk_new(&config, &sink);
	if (s->n_list > 0 && clerk_set_list(s->clerk, slice_of(s->list, s->n_list), &err) < 0)
		s->broken = true;
}

static void add_list(struct session *s, struct slice payload)
{
	if (payload.n > MAX_LIST - s->n_list) {
		s->broken = true;
		return;
	}
	s->list = xrealloc(s->list, s->n_list + payload.n + 1);
	memcpy(s->list + s->n_list, payload.p, payload.n);
	s->n_list += payload.n;
}

static void read_advert(struct session *s, struct slice payload)
{
	struct err err = {0};

	if (gitadvert_read(&s->advert, payload, put_bytes, NULL, &err) < 0)
		put_frame('U', slice_from_str(err.text));
}

static void end_advert(struct session *s)
{
	if (gitadvert_end(&s->advert) < 0)
		put_frame('U', slice_from_str("the server's answer was cut off"));
	put_frame('J', (struct slice){0});
	gitadvert_init(&s->advert);
}

/* The reason, a newline, the text. */
static void write_refusal(struct session *s, struct slice payload)
{
	AUTO_FREE char *both = xstrndup((const char *)payload.p, payload.n);
	char *text = strchr(both, '\n');

	if (!text) {
		s->broken = true;
		return;
	}
	*text++ = 0;
	if (clerk_refuse(s->clerk, text, both, put_bytes, NULL) < 0)
		put_frame('U', slice_from_str("the client requested no report"));
	put_frame('J', (struct slice){0});
}

static void on_clerk_frame(struct session *s, char type, struct slice payload)
{
	if (s->clerk && type == 'B')
		clerk_body(s->clerk, payload);
	else if (s->clerk && type == 'b')
		clerk_end(s->clerk);
	else if (s->clerk && type == 'S')
		clerk_answer(s->clerk, payload);
	else if (s->clerk && type == 's')
		clerk_answer_end(s->clerk, payload.n == 0);
	else if (s->clerk && type == 'R')
		write_refusal(s, payload);
	else
		s->broken = true;
}

static void on_frame(struct session *s, char type, struct slice payload)
{
	if (type == 'C')
		configure_clerk(s, payload);
	else if (type == 'L')
		add_list(s, payload);
	else if (type == 'A')
		read_advert(s, payload);
	else if (type == 'a')
		end_advert(s);
	else
		on_clerk_frame(s, type, payload);
}

static bool read_all(uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = read(PEER_FD, p, n);

		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static bool serve_frame(struct session *s)
{
	static uint8_t payload[65536];
	uint8_t head[4];
	struct rd rd = rd_init(slice_of(head, sizeof(head)));
	char type;
	uint32_t n;

	if (!read_all(head, sizeof(head)))
		return false;
	type = (char)rd_u8(&rd);
	n = rd_u24(&rd);
	if (n > sizeof(payload) || !read_all(payload, n))
		return false;
	on_frame(s, type, slice_of(payload, n));
	return !s->broken;
}

int main(int argc, char **argv)
{
	static struct session session;
	struct err err = {0};

	log_init("sbx-clerk-git");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return clerk_selftest();
	if (argc != 1)
		die("usage: sbx-clerk-git [--jail-selftest]");
	if (jail_go_in(JAIL_CLERK_GIT, NULL, 0, &err) < 0)
		die("%s", err.text);
	gitadvert_init(&session.advert);
	while (serve_frame(&session))
		;
	clerk_free(&session.clerk);
	free(session.list);
	return session.broken ? 4 : 0;
}
