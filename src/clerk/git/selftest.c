/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>
#include "clerk.h"
#include "lib/base/hash/sha1.h"
#include "lib/os/jail/selftest.h"

#define COMMIT                                            \
	"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" \
	"author A <a@test> 1 +0000\ncommitter A <a@test> 1 +0000\n\nsubject\n"

struct outcome {
	bool effect, preview, judged;
};

static void ignore_request(void *arg, struct slice body)
{
}

static void note_effect(void *arg, const struct clerk_effect *effect)
{
	((struct outcome *)arg)->effect = true;
}

static void note_preview(void *arg, struct slice text)
{
	((struct outcome *)arg)->preview = true;
}

static void ignore_unknown(void *arg, const char *why)
{
}

static void note_judged(void *arg)
{
	((struct outcome *)arg)->judged = true;
}

static void append_text(void *arg, struct slice bytes)
{
	wr_bytes(arg, bytes);
}

/* A pack with one commit. The length of COMMIT takes two bytes of a head. */
static void put_pack(struct wr *wr)
{
	size_t from = wr->n;
	uLongf n = 1000;
	uint8_t packed[1000];
	struct sha1 hash;

	wr_bytes(wr, slice_of("PACK\0\0\0\2\0\0\0\1", 12));
	wr_u8(wr, (uint8_t)(0x90 | (strlen(COMMIT) & 15)));
	wr_u8(wr, (uint8_t)(strlen(COMMIT) >> 4));
	if (compress(packed, &n, (const uint8_t *)COMMIT, strlen(COMMIT)) != Z_OK)
		return;
	wr_bytes(wr, slice_of(packed, n));
	sha1_init(&hash);
	sha1_add(&hash, slice_of(wr->p + from, wr->n - from));
	sha1_end(&hash, packed);
	wr_bytes(wr, slice_of(packed, SHA1_BYTES));
}

/* A push that deletes a branch, with a pack. */
static long try_work(int fd)
{
	struct outcome out = {0};
	const struct clerk_sink sink = {.request = ignore_request,
		.effect = note_effect,
		.preview = note_preview,
		.unknown = ignore_unknown,
		.judged = note_judged,
		.arg = &out};
	const struct clerk_config config = {.max_bytes = 1u << 20};
	struct clerk *c = clerk_new(&config, &sink);
	uint8_t body[4000];
	struct wr wr = wr_init(body, sizeof(body));

	pktline_put(append_text, &wr,
		slice_from_str("4b825dc642cb6eb9a060e54bf8d69288fbee4904 "
			       "0000000000000000000000000000000000000000 refs/heads/a"));
	pktline_mark(append_text, &wr, PKTLINE_FLUSH);
	put_pack(&wr);
	clerk_body(c, slice_of(body, wr.n));
	clerk_end(c);
	clerk_free(&c);
	return out.effect && out.preview && out.judged && write(fd, "x", 1) == 1 ? 0 : -1;
}

int clerk_selftest(void)
{
	static const struct jail_selftest_probe own[] = {
		{"create a socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}},
		{"set socket options", SYS_setsockopt,
			{JAIL_SELFTEST_FD, SOL_SOCKET, SO_KEEPALIVE}},
		{"accept", SYS_accept4, {JAIL_SELFTEST_FD}},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_CLERK_GIT,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.work = try_work};

	return jail_selftest_run(&t);
}
