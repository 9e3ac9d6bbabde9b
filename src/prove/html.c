/* SPDX-License-Identifier: Apache-2.0 */
#include "html.h"

#include <stdint.h>

#include "lib/base/b64.h"
#include "lib/base/hash/sha256.h"

#define REPLACEMENT 0xfffd

/* The character at the front and its length; an invalid byte is one REPLACEMENT. */
static uint32_t next_char(struct slice s, size_t *ret_n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t c = s.p[0];
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	uint32_t u = n == 1 ? c : c & (0x7fU >> n);

	*ret_n = 1;
	if (n == 1)
		return u;
	if (c < 0xc2 || c > 0xf4 || n > s.n)
		return REPLACEMENT;
	for (size_t i = 1; i < n; i++) {
		if ((s.p[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		u = u << 6 | (s.p[i] & 0x3f);
	}
	if (u < least[n] || u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
		return REPLACEMENT;
	*ret_n = n;
	return u;
}

/* Not for a page: control characters, characters that reverse or hide text, and noncharacters. */
static bool is_bad(uint32_t u)
{
	if (u < 0x20)
		return u != '\t' && u != '\n';
	return (u >= 0x7f && u <= 0x9f) || u == 0xad || u == 0x61c ||
	       (u >= 0x200b && u <= 0x200f) || (u >= 0x2028 && u <= 0x202e) ||
	       (u >= 0x2060 && u <= 0x206f) || u == 0xfeff || (u >= 0xfdd0 && u <= 0xfdef) ||
	       (u & 0xfffe) == 0xfffe || (u >= 0xe0000 && u <= 0xe0fff);
}

static const char *reference_html(uint32_t u)
{
	switch (u) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_put(FILE *out, struct slice text)
{
	size_t n;

	for (size_t at = 0; at < text.n; at += n) {
		struct slice rest = slice_of(text.p + at, text.n - at);
		uint32_t u = next_char(rest, &n);
		const char *ref = reference_html(u);

		if (at + n > HTML_MAX_TEXT) {
			(void)fputs(" \xe2\x80\xa6 (cut here)", out);
			return;
		}
		if (ref)
			(void)fputs(ref, out);
		else if (is_bad(u) || u == REPLACEMENT)
			(void)fputs("\xef\xbf\xbd", out);
		else
			(void)fwrite(rest.p, 1, n, out);
	}
}

void html_puts(FILE *out, const char *text)
{
	if (text)
		html_put(out, slice_from_str(text));
}

void html_put_hash(FILE *out, struct slice bytes)
{
	char text[B64_LEN(SHA256_BYTES) + 1] = "";
	uint8_t hash[SHA256_BYTES];

	sha256(bytes, hash);
	(void)b64_encode(slice_of(hash, sizeof(hash)), text);
	(void)fprintf(out, "'sha256-%s'", text);
}
