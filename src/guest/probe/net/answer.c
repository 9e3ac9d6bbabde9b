/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "lib/base/attr.h"
#include "src/guest/probe/verb/verb.h"

#define DNS_HEAD 12
#define DNS_MAX_RECORDS 64 /* printed at most */
#define MAX_REASON 200
#define MAX_BYTES 100

static const char *const codes[] = {
	"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"};

void answer_print(FILE *out, struct slice bytes, size_t most)
{
	for (size_t i = 0; i < bytes.n && i < most; i++) {
		uint8_t b = bytes.p[i];

		if (b >= 0x20 && b < 0x7f)
			(void)fputc(b, out);
		else
			(void)fprintf(out, "\\x%02x", b);
	}
}

static unsigned u16_answer(struct slice m, size_t at)
{
	return (unsigned)m.p[at] << 8 | m.p[at + 1];
}

/* Returns the position after the name at `at`, which may have a pointer; m.n if it does not end. */
static size_t skip_name(struct slice m, size_t at)
{
	while (at < m.n && m.p[at]) {
		if (m.p[at] >= 0xc0)
			return m.n - at >= 2 ? at + 2 : m.n;
		at += 1U + m.p[at];
	}
	return at < m.n ? at + 1 : m.n;
}

static void print_record(FILE *out, unsigned type, struct slice data)
{
	char text[INET6_ADDRSTRLEN];

	if (type == 1 && data.n == 4)
		(void)fprintf(out, " %s", inet_ntop(AF_INET, data.p, text, sizeof(text)));
	else if (type == 28 && data.n == 16)
		(void)fprintf(out, " %s", inet_ntop(AF_INET6, data.p, text, sizeof(text)));
	else if (type == 41 && data.n > 6 && u16_answer(data, 0) == 15) {
		(void)fprintf(out, " because: ");
		answer_print(out, slice_of(data.p + 6, data.n - 6), MAX_REASON);
	} else if (type != 41) {
		(void)fprintf(out, " a record of type %u", type);
	}
}

/* Counts the complete records. */
static unsigned print_records(FILE *out, struct slice m, unsigned count)
{
	size_t at = skip_name(m, DNS_HEAD);
	unsigned n = 0;

	at = m.n - at >= 4 ? at + 4 : m.n;
	while (n < count && n < DNS_MAX_RECORDS) {
		size_t len;

		at = skip_name(m, at);
		if (m.n - at < 10)
			break;
		len = u16_answer(m, at + 8);
		if (m.n - at - 10 < len)
			break;
		print_record(out, u16_answer(m, at), slice_of(m.p + at + 10, len));
		at += 10 + len;
		n++;
	}
	return n;
}

int answer_dns(FILE *out, struct slice m)
{
	unsigned answers, code, whole;

	if (m.n < DNS_HEAD) {
		(void)fprintf(out, "an answer of %zu bytes\n", m.n);
		return PROBE_REFUSED;
	}
	code = m.p[3] & 15;
	answers = u16_answer(m, 6);
	(void)fprintf(out, "%s, %u answers",
		code < ARRAY_LEN(codes) ? codes[code] : "an unknown code", answers);
	whole = print_records(out, m, answers + u16_answer(m, 8) + u16_answer(m, 10));
	if (whole == 0 && answers)
		(void)fprintf(out, ", all truncated");
	(void)fputc('\n', out);
	return code == 0 && answers ? PROBE_POSSIBLE : PROBE_REFUSED;
}

/* The position of `word`, ignoring case, or NULL. The data may contain NUL. */
static const uint8_t *find_answer(struct slice in, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; n <= in.n && i <= in.n - n; i++)
		if (strncasecmp((const char *)in.p + i, word, n) == 0)
			return in.p + i;
	return NULL;
}

/* Prints the reason in the head of an answer: Proxy-Status. */
static void print_reason(FILE *out, struct slice head)
{
	static const char word[] = "details=\"";
	const uint8_t *at = find_answer(head, word);
	size_t n = 0;

	if (!at)
		return;
	at += sizeof(word) - 1;
	while (at + n < head.p + head.n && !memchr("\"\r\n", at[n], 3))
		n++;
	(void)fprintf(out, ": ");
	answer_print(out, slice_of(at, n), MAX_REASON);
}

static bool is_digit(uint8_t b)
{
	return b >= '0' && b <= '9';
}

/* "HTTP/1.1 403 ..."; without a status of three digits it is not a denial. */
static int answer_http(FILE *out, struct slice bytes)
{
	const uint8_t *s = bytes.p + 9;
	int status = 0;

	if (is_digit(s[0]) && is_digit(s[1]) && is_digit(s[2]) && !(bytes.n > 12 && is_digit(s[3])))
		status = (s[0] - '0') * 100 + (s[1] - '0') * 10 + (s[2] - '0');
	(void)fprintf(out, "HTTP %d", status);
	print_reason(out, bytes);
	(void)fputc('\n', out);
	return status < 400 ? PROBE_POSSIBLE : PROBE_REFUSED;
}

int answer_talk(FILE *out, struct slice bytes)
{
	if (bytes.n >= 12 && memcmp(bytes.p, "HTTP/1.", 7) == 0)
		return answer_http(out, bytes);
	if (bytes.n >= 7 && memcmp(bytes.p, "\x15\x03", 2) == 0) {
		(void)fprintf(out, "TLS alert %d\n", bytes.p[6]);
		return PROBE_REFUSED;
	}
	if (bytes.n >= 3 && memcmp(bytes.p, "\x16\x03", 2) == 0) {
		(void)fprintf(out, "TLS handshake continues\n");
		return PROBE_POSSIBLE;
	}
	(void)fprintf(out, "bytes: ");
	answer_print(out, bytes, MAX_BYTES);
	(void)fputc('\n', out);
	return PROBE_POSSIBLE;
}
