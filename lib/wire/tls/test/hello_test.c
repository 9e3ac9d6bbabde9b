/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/wire/tls/test/hello_walk.h"
#include "lib/base/mem.h"

static const char *samples;

/* ---- what a reader says, as text ---- */

static void put(struct wr *wr, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(struct wr *wr, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wr_bytes(wr, slice_from_str(text));
}

static void put_name(struct wr *wr, const struct hello *h)
{
	put(wr, " name=%s", h->has_name ? "" : "-");
	for (size_t i = 0; i < h->n_name; i++)
		put(wr, h->name[i] > ' ' && h->name[i] < 127 ? "%c" : "\\%03u", h->name[i]);
}

static void put_lists(struct wr *wr, const struct hello *h)
{
	size_t at = 0;
	struct slice s;

	put(wr, " alpn=%s", h->n_alpn ? "" : "-");
	for (const char *comma = ""; alpn_next(h, &at, &s); comma = ",")
		put(wr, "%s%.*s", comma, (int)s.n, (const char *)s.p);
	put(wr, " versions=%s", h->n_versions ? "" : "-");
	for (size_t i = 0; i < h->n_versions; i++)
		put(wr, "%s%04x", i ? "," : "", h->versions[i]);
}

/* The highest version that the client offers, 0x0304 for TLS 1.3. */
static uint16_t max_version(const struct hello *h)
{
	uint16_t max = 0;

	if (h->n_versions == 0)
		return h->legacy_version;
	for (size_t i = 0; i < h->n_versions; i++)
		if (h->versions[i] <= 0x0304 && h->versions[i] > max)
			max = h->versions[i];
	return max;
}

static void describe(const struct hello_reader *r, char *buf, size_t size)
{
	static const char *const states[] = {"more", "done", "not-tls", "bad"};
	const struct hello *h = &r->hello;
	struct wr wr = wr_init(buf, size - 1);

	put(&wr, "%s", states[r->state]);
	if (r->state == HELLO_BAD)
		put(&wr, " %d", (int)r->why);
	if (r->state == HELLO_DONE) {
		put(&wr, " %04x", h->legacy_version);
		put_name(&wr, h);
		put_lists(&wr, h);
		put(&wr, " max=%04x%s%s%s%s", max_version(h), h->early_data ? " early" : "",
			h->psk ? " psk" : "", h->ticket ? " ticket" : "",
			hello_hides_name(h) ? " ech" : "");
	}
	assert_false(wr.bad);
	buf[wr.n] = '\0';
}

/* ---- the same bytes whole, byte by byte, and split at every offset ---- */

static void feed(struct hello_reader *r, const uint8_t *p, size_t n)
{
	/* A heap copy of the exact size, so that the address sanitizer sees one byte too far. */
	uint8_t *copy = xmalloc(n ? n : 1);

	memcpy(copy, p, n);
	(void)hello_feed(r, slice_of(copy, n));
	free(copy);
}

/* Feeds [0, a), then [a, n) in steps. */
static void play(const char *name, struct slice in, size_t a, size_t step, const char *want)
{
	struct hello_reader r;
	char got[4096];

	hello_init(&r);
	feed(&r, in.p, a);
	for (size_t i = a; i < in.n; i += step)
		feed(&r, in.p + i, MIN(step, in.n - i));
	describe(&r, got, sizeof(got));
	if (strcmp(got, want) != 0)
		fail_msg("%s (split %zu, step %zu):\n%s\ninstead of\n%s", name, a, step, got, want);
}

static void play_all(const char *name, struct slice in, const char *want)
{
	play(name, in, in.n, 1, want);
	play(name, in, 0, 1, want);
	for (size_t a = 0; a < in.n; a++)
		play(name, in, a, in.n, want);
}

/* The payload of the first record in records of k bytes, and what followed it. */
static size_t cut_records(struct slice in, size_t k, uint8_t *out)
{
	size_t n_payload = (size_t)in.p[3] << 8 | in.p[4], n = 0;

	for (size_t i = 0; i < n_payload; i += k) {
		size_t part = MIN(k, n_payload - i);

		memcpy(out + n, (uint8_t[]){22, 3, 1, (uint8_t)(part >> 8), (uint8_t)part}, 5);
		memcpy(out + n + 5, in.p + 5 + i, part);
		n += 5 + part;
	}
	memcpy(out + n, in.p + 5 + n_payload, in.n - 5 - n_payload);
	return n + in.n - 5 - n_payload;
}

static void play_cut(const char *name, struct slice in, const char *want)
{
	uint8_t *buf = xmalloc(in.n * 6);

	for (size_t k = 1; k < in.n; k++) {
		size_t n = cut_records(in, k, buf);

		play(name, slice_of(buf, n), n, 1, want);
		play(name, slice_of(buf, n), 0, 1, want);
	}
	free(buf);
}

/* ---- hellos of real clients ---- */

static size_t read_sample(const char *name, uint8_t *bytes, size_t size, char *want, size_t n_want)
{
	char path[512], line[512];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", samples, name);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '=')
			snprintf(want, n_want, "%s", line + 2);
		for (char *p = line; line[0] != '#' && line[0] != '=' && *p; p += 2) {
			assert_true(n < size);
			bytes[n++] = (uint8_t)strtoul((char[]){p[0], p[1], 0}, NULL, 16);
		}
	}
	fclose(f);
	return n;
}

static void test_real_clients(void **state)
{
	DIR *d = opendir(samples);
	struct dirent *e;
	uint8_t bytes[4096];
	char want[512];
	int count = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		struct slice in;

		if (e->d_name[0] == '.')
			continue;
		in = slice_of(
			bytes, read_sample(e->d_name, bytes, sizeof(bytes), want, sizeof(want)));
		play_all(e->d_name, in, want);
		play_cut(e->d_name, in, want);
		count++;
	}
	closedir(d);
	assert_true(count >= 8);
}

/* ---- hellos made here ---- */

/* Version, random, session id, one cipher, null compression. */
#define START  \
	"\3\3" \
	"0123456789abcdef0123456789abcdef\0\0\2\x13\1\1\0"
#define SNI(len, list, name_len, name) "\0\0\0" len "\0" list "\0\0" name_len name
#define SNI_A SNI("\6", "\4", "\1", "a")
#define V13 "\0\x2b\0\3\2\3\4"

struct row {
	const char *name;
	const char *ext;
	size_t n;
	const char *want;
};

#define ROW(name, ext, want)                     \
	{                                        \
		name, ext, sizeof(ext) - 1, want \
	}
#define DONE_A "done 0303 name=a alpn=- versions=- max=0303"

static const struct row rows[] = {
	ROW("no extension", "", "done 0303 name=- alpn=- versions=- max=0303"),
	ROW("name", SNI_A, DONE_A),
	ROW("raw name", SNI("\x0c", "\x0a", "\7", "A\0.\xff b."),
		"done 0303 name=A\\000.\\255\\032b. alpn=- versions=- max=0303"),
	ROW("two names", "\0\0\0\x0a\0\x08\0\0\1a\0\0\1b", "bad 6"),
	ROW("name of another type", "\0\0\0\6\0\4\1\0\1a", "bad 6"),
	ROW("empty name", "\0\0\0\5\0\3\0\0\0", "bad 6"),
	ROW("empty list", "\0\0\0\2\0\0", "bad 6"),
	ROW("empty server_name", "\0\0\0\0", "bad 6"),
	ROW("list shorter than it says", "\0\0\0\6\0\5\0\0\1a", "bad 6"),
	ROW("name shorter than it says", "\0\0\0\6\0\4\0\0\2a", "bad 6"),
	ROW("bytes behind the name", "\0\0\0\7\0\5\0\0\1ab", "bad 6"),
	ROW("server_name twice", SNI_A SNI_A, "bad 5"),
	ROW("unknown extension twice", "\x12\x34\0\0\x12\x34\0\0", "bad 5"),
	ROW("unknown extensions", "\x12\x34\0\0\x12\x35\0\1x" SNI_A, DONE_A),
	ROW("alpn", "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1",
		"done 0303 name=- alpn=h2,http/1.1 versions=- max=0303"),
	ROW("a byte behind the last extension", "\0\x10\0\5\0\3\2h2\0", "bad 4"),
	ROW("empty protocol in alpn", "\0\x10\0\6\0\4\2h2\0", "bad 7"),
	ROW("empty alpn", "\0\x10\0\2\0\0", "bad 7"),
	ROW("alpn longer than it says", "\0\x10\0\5\0\2\2h2", "bad 7"),
	ROW("protocol over the end", "\0\x10\0\5\0\3\3h2", "bad 7"),
	ROW("versions", V13, "done 0303 name=- alpn=- versions=0304 max=0304"),
	ROW("versions with grease", "\0\x2b\0\7\6\x3a\x3a\3\4\3\3",
		"done 0303 name=- alpn=- versions=0304,0303 max=0304"),
	ROW("only grease versions", "\0\x2b\0\3\2\x3a\x3a", "bad 8"),
	ROW("a draft version", "\0\x2b\0\5\4\x7f\x1c\3\3",
		"done 0303 name=- alpn=- versions=7f1c,0303 max=0303"),
	ROW("odd versions", "\0\x2b\0\2\1\3", "bad 8"),
	ROW("no versions", "\0\x2b\0\1\0", "bad 8"),
	ROW("empty supported_versions", "\0\x2b\0\0", "bad 8"),
	ROW("ech outer", SNI_A "\xfe\x0d\0\4\0xyz", DONE_A " ech"),
	ROW("ech inner", SNI_A "\xfe\x0d\0\1\1", "bad 9"),
	ROW("ech empty", "\xfe\x0d\0\0", "bad 9"),
	ROW("ech of a draft", SNI_A "\xfe\x0a\0\1\1", DONE_A " ech"),
	ROW("ech of the first draft", SNI_A "\xfe\x08\0\1\1", DONE_A " ech"),
	ROW("ech of the last draft", SNI_A "\xfe\x0c\0\1\1", DONE_A " ech"),
	ROW("before the drafts of ech", SNI_A "\xfe\x07\0\1\1", DONE_A),
	ROW("after ech", SNI_A "\xfe\x0e\0\1\1", DONE_A),
	ROW("esni", SNI_A "\xff\xce\0\0", DONE_A " ech"),
	ROW("psk last", SNI_A "\0\x2a\0\0\0\x29\0\2xy", DONE_A " early psk"),
	ROW("psk not last", "\0\x29\0\2xy" SNI_A, "bad 10"),
	ROW("empty ticket", "\0\x23\0\0", "done 0303 name=- alpn=- versions=- max=0303"),
	ROW("ticket", "\0\x23\0\1x", "done 0303 name=- alpn=- versions=- max=0303 ticket"),
	ROW("extension over the end", "\x12\x34\0\2x", "bad 4"),
	ROW("half an extension head", "\x12\x34\0", "bad 4"),
	ROW("name over the end", "\0\0\0\7\0\5\0\0\2a", "bad 4"),
};

/* A whole ClientHello in one record; ext NULL for none at all. Gives its length. */
static size_t make_hello(uint8_t *buf, size_t size, const void *ext, size_t n_ext)
{
	struct wr wr = wr_init(buf, size);
	size_t n = sizeof(START) - 1 + (ext ? 2 + n_ext : 0);

	wr_bytes(
		&wr, slice_of((uint8_t[]){22, 3, 1, (uint8_t)((n + 4) >> 8), (uint8_t)(n + 4)}, 5));
	wr_bytes(&wr, slice_of((uint8_t[]){1, 0, (uint8_t)(n >> 8), (uint8_t)n}, 4));
	wr_bytes(&wr, slice_of(START, sizeof(START) - 1));
	if (ext) {
		wr_bytes(&wr, slice_of((uint8_t[]){(uint8_t)(n_ext >> 8), (uint8_t)n_ext}, 2));
		wr_bytes(&wr, slice_of(ext, n_ext));
	}
	assert_int_equal(wr_finish(&wr), 0);
	return wr.n;
}

static void test_extensions(void **state)
{
	uint8_t buf[1024];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = make_hello(buf, sizeof(buf), rows[i].ext, rows[i].n);

		play_all(rows[i].name, slice_of(buf, n), rows[i].want);
		play_cut(rows[i].name, slice_of(buf, n), rows[i].want);
	}
}

static void test_without_extensions(void **state)
{
	uint8_t buf[128];
	size_t n = make_hello(buf, sizeof(buf), NULL, 0);

	play_all("none", slice_of(buf, n), "done 0303 name=- alpn=- versions=- max=0303");
}

#define RANDOM \
	"\3\3" \
	"0123456789abcdef0123456789abcdef"
#define BYTES_32 "0123456789abcdef0123456789abcdef"

static const struct row bodies[] = {
	ROW("session id of 32", RANDOM "\x20" BYTES_32 "\0\2\x13\1\1\0",
		"done 0303 name=- alpn=- versions=- max=0303"),
	ROW("session id of 33", RANDOM "\x21" BYTES_32 "x\0\2\x13\1\1\0", "bad 4"),
	ROW("no ciphers", RANDOM "\0\0\0\1\0", "bad 4"),
	ROW("odd ciphers", RANDOM "\0\0\3\x13\1\2\1\0", "bad 4"),
	ROW("no compression", RANDOM "\0\0\2\x13\1\0", "bad 4"),
	ROW("no compression, extensions", RANDOM "\0\0\2\x13\1\0\0\0", "bad 4"),
	ROW("extensions shorter than the message", RANDOM "\0\0\2\x13\1\1\0\0\0\x12\x34\0\0",
		"bad 4"),
	ROW("extensions longer than the message", RANDOM "\0\0\2\x13\1\1\0\0\5\x12\x34\0\0",
		"bad 4"),
	ROW("one byte of an extension length", RANDOM "\0\0\2\x13\1\1\0\0", "bad 4"),
	ROW("a short body", "\3", "bad 4"),
	ROW("an empty body", "", "bad 4"),
};

static void test_fields(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		size_t n = bodies[i].n;
		uint8_t buf[256];
		struct wr wr = wr_init(buf, sizeof(buf));

		wr_bytes(&wr,
			slice_of((uint8_t[]){22, 3, 1, 0, (uint8_t)(n + 4), 1, 0, 0, (uint8_t)n},
				9));
		wr_bytes(&wr, slice_of(bodies[i].ext, n));
		play_all(bodies[i].name, slice_of(buf, wr.n), bodies[i].want);
		play_cut(bodies[i].name, slice_of(buf, wr.n), bodies[i].want);
	}
}

/* Whatever is cut off, it is not done and not bad. */
static void test_every_prefix_needs_more(void **state)
{
	uint8_t buf[256];
	size_t n = make_hello(buf, sizeof(buf), SNI_A V13, sizeof(SNI_A V13) - 1);

	for (size_t i = 0; i < n; i++)
		play("prefix", slice_of(buf, i), i, 1, "more");
	play("whole", slice_of(buf, n), n, 1, "done 0303 name=a alpn=- versions=0304 max=0304");
}

static void test_not_tls(void **state)
{
	play_all("http", slice_from_str("GET / HTTP/1.1\r\n"), "not-tls");
	play_all("sslv2", slice_of("\x80\x2e\1\3\1", 5), "not-tls");
	play_all("ssh", slice_from_str("SSH-2.0-x"), "not-tls");
	play_all("alert", slice_of("\x15\3\1\0\2\1\0", 7), "not-tls");
	play_all("major version 2", slice_of("\x16\2\1\0\2\1\0", 7), "not-tls");
	play_all("one byte", slice_of("\x16", 1), "more");
	play_all("nothing", slice_of("", 0), "more");
}

static void test_records(void **state)
{
	uint8_t buf[256];
	size_t n = make_hello(buf, sizeof(buf), SNI_A, sizeof(SNI_A) - 1);

	play_all("empty record", slice_of("\x16\3\1\0\0", 5), "bad 2");
	play_all("long record", slice_of("\x16\3\1\x40\1", 5), "bad 2");
	play_all("longest record", slice_of("\x16\3\1\x40\0", 5), "more");
	play_all("an alert in between", slice_of("\x16\3\1\0\1\1\x15\3\1\0\2\1\0", 13), "bad 2");
	play_all("server hello", slice_of("\x16\3\1\0\4\2\0\0\0", 9), "bad 3");
	play_all("64 KiB", slice_of("\x16\3\1\0\4\1\1\0\1", 9), "bad 1");
	/* Early data may follow in records of its own, but nothing inside the last one. */
	memcpy(buf + n, "\x17\3\3\0\1x", 6);
	play_all("data behind", slice_of(buf, n + 6), DONE_A);
	buf[4] += 1;
	play_all("bytes behind in the record", slice_of(buf, n + 1), "bad 3");
}

/* A change of every length byte never reads over the end, and every value of it ends somewhere. */
static void test_every_byte_changed(void **state)
{
	uint8_t buf[256], was;
	size_t n = make_hello(buf, sizeof(buf), SNI_A V13, sizeof(SNI_A V13) - 1);

	for (size_t i = 0; i < n; i++) {
		was = buf[i];
		for (unsigned v = 0; v < 256; v++) {
			struct hello_reader whole, bytewise;

			buf[i] = (uint8_t)v;
			hello_init(&whole);
			hello_init(&bytewise);
			feed(&whole, buf, n);
			for (size_t k = 0; k < n; k++)
				feed(&bytewise, buf + k, 1);
			assert_int_equal(whole.state, bytewise.state);
			assert_int_equal(whole.why, bytewise.why);
			assert_memory_equal(&whole.hello, &bytewise.hello, sizeof(struct hello));
		}
		buf[i] = was;
	}
}

/* Each value of a byte in each place of a name comes out as it went in (SOCKS5 NUL byte). */
static void test_name_is_never_cut(void **state)
{
	uint8_t ext[4 + 5 + 16], buf[256];

	for (size_t at = 0; at < 16; at++) {
		for (unsigned v = 0; v < 256; v++) {
			struct hello_reader r;
			size_t n;

			memcpy(ext,
				"\0\0\0\x15\0\x13\0\0\x10"
				"evil.allowed.com",
				sizeof(ext));
			ext[9 + at] = (uint8_t)v;
			n = make_hello(buf, sizeof(buf), ext, sizeof(ext));
			hello_init(&r);
			assert_int_equal(hello_feed(&r, slice_of(buf, n)), HELLO_DONE);
			assert_true(slice_eq(hello_name(&r.hello), slice_of(ext + 9, 16)));
		}
	}
}

static void test_limits(void **state)
{
	size_t size = HELLO_MAX_RECORD + 5;
	uint8_t *ext = xcalloc(1, size), *buf = xmalloc(size);
	struct hello_reader r;
	size_t n;

	for (unsigned len = 254; len <= 257; len++) {
		size_t n_ext = 9 + len;

		memcpy(ext,
			(uint8_t[]){0, 0, (uint8_t)((len + 5) >> 8), (uint8_t)(len + 5),
				(uint8_t)((len + 3) >> 8), (uint8_t)(len + 3), 0,
				(uint8_t)(len >> 8), (uint8_t)len},
			9);
		memset(ext + 9, 'a', len);
		n = make_hello(buf, size, ext, n_ext);
		hello_init(&r);
		assert_int_equal(
			hello_feed(&r, slice_of(buf, n)), len <= 255 ? HELLO_DONE : HELLO_BAD);
		assert_int_equal(r.why, len <= 255 ? HELLO_E_NONE : HELLO_E_NAME);
	}
	for (unsigned count = 63; count <= 65; count++) {
		memset(ext, 0, count * 4);
		for (unsigned i = 0; i < count; i++)
			ext[4 * i] = 0x12, ext[4 * i + 1] = (uint8_t)i;
		n = make_hello(buf, size, ext, count * 4);
		hello_init(&r);
		assert_int_equal(
			hello_feed(&r, slice_of(buf, n)), count <= 64 ? HELLO_DONE : HELLO_BAD);
	}
	free(ext);
	free(buf);
}

/* Lists as long as allowed, and one entry longer. */
static void test_long_lists(void **state)
{
	uint8_t ext[512], buf[1024];
	struct hello_reader r;

	for (unsigned n_list = HELLO_MAX_ALPN; n_list <= HELLO_MAX_ALPN + 2; n_list += 2) {
		memcpy(ext,
			(uint8_t[]){0, 16, (uint8_t)((n_list + 2) >> 8), (uint8_t)(n_list + 2),
				(uint8_t)(n_list >> 8), (uint8_t)n_list},
			6);
		for (unsigned i = 0; i < n_list; i += 2)
			memcpy(ext + 6 + i, "\1x", 2);
		hello_init(&r);
		(void)hello_feed(&r, slice_of(buf, make_hello(buf, sizeof(buf), ext, 6 + n_list)));
		assert_int_equal(r.why, n_list == HELLO_MAX_ALPN ? HELLO_E_NONE : HELLO_E_ALPN);
	}
	for (unsigned count = HELLO_MAX_VERSIONS; count <= HELLO_MAX_VERSIONS + 1; count++) {
		memcpy(ext, (uint8_t[]){0, 43, 0, (uint8_t)(2 * count + 1), (uint8_t)(2 * count)},
			5);
		memset(ext + 5, 3, 2 * count);
		hello_init(&r);
		(void)hello_feed(
			&r, slice_of(buf, make_hello(buf, sizeof(buf), ext, 5 + 2 * count)));
		assert_int_equal(
			r.why, count == HELLO_MAX_VERSIONS ? HELLO_E_NONE : HELLO_E_VERSIONS);
	}
}

/* A hello of 60,000 bytes in full records is read; one in records of one byte is cut short. */
static void test_long_hello(void **state)
{
	size_t n_body = 60000, n = 0, n_ext = n_body - (sizeof(START) - 1) - 2;
	uint8_t *body = xcalloc(1, n_body + 4), *out = xmalloc(6 * (n_body + 4));
	struct hello_reader r;
	struct wr wr = wr_init(body, n_body + 4);

	wr_bytes(&wr, slice_of((uint8_t[]){1, 0, (uint8_t)(n_body >> 8), (uint8_t)n_body}, 4));
	wr_bytes(&wr, slice_of(START, sizeof(START) - 1));
	wr_bytes(&wr, slice_of((uint8_t[]){(uint8_t)(n_ext >> 8), (uint8_t)n_ext}, 2));
	wr_bytes(&wr,
		slice_of((uint8_t[]){0x12, 0x34, (uint8_t)((n_ext - 4) >> 8), (uint8_t)(n_ext - 4)},
			4));
	for (size_t k = HELLO_MAX_RECORD; k >= 1; k = k == 1 ? 0 : 1) {
		n = 0;
		for (size_t i = 0; i < n_body + 4; i += k) {
			size_t part = MIN(k, n_body + 4 - i);

			memcpy(out + n, (uint8_t[]){22, 3, 3, (uint8_t)(part >> 8), (uint8_t)part},
				5);
			memcpy(out + n + 5, body + i, part);
			n += 5 + part;
		}
		hello_init(&r);
		assert_int_equal(hello_feed(&r, slice_of(out, n)), k > 1 ? HELLO_DONE : HELLO_BAD);
		assert_int_equal(r.why, k > 1 ? HELLO_E_NONE : HELLO_E_TOO_LONG);
	}
	free(body);
	free(out);
}

static void test_every_reason_has_a_text(void **state)
{
	for (int i = 0; i < HELLO_N_WHY; i++)
		assert_non_null(hello_why_text((enum hello_why)i));
	assert_string_equal(hello_why_text((enum hello_why)99), "unknown");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_clients),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_without_extensions),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_every_prefix_needs_more),
		cmocka_unit_test(test_not_tls),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_name_is_never_cut),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_long_lists),
		cmocka_unit_test(test_long_hello),
		cmocka_unit_test(test_every_reason_has_a_text),
	};

	samples = argc > 1 ? argv[1] : "samples";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
