/* SPDX-License-Identifier: Apache-2.0 */
#include "sniff.h"

#define MAX_WORD 32

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Removes the run of bytes in `set` from the front. */
static void skip_sniff(struct rd *rd, const char *set)
{
	while (rd->n > 0 && rd->p[0] != '\0' && strchr(set, rd->p[0]))
		(void)rd_u8(rd);
}

/* A method has no digits: "0032git-upload-pack /x" is git's own protocol. */
static struct slice take_word(struct rd *rd)
{
	size_t n = 0;

	while (n < rd->n && (is_letter(rd->p[n]) || rd->p[n] == '-'))
		n++;
	return rd_bytes(rd, n);
}

/* Whether s begins with the lower-case text, ignoring case; MORE if it is too short to decide. */
static enum sniff begins_sniff(struct slice s, const char *lower)
{
	for (size_t i = 0; lower[i]; i++) {
		if (i == s.n)
			return SNIFF_MORE;
		if ((s.p[i] | 0x20) != lower[i])
			return SNIFF_OTHER;
	}
	return SNIFF_HTTP;
}

static enum sniff look_at_target(struct slice s)
{
	enum sniff is;

	if (s.n == 0)
		return SNIFF_MORE;
	if (s.p[0] == '/' || s.p[0] == '*')
		return SNIFF_HTTP;
	is = begins_sniff(s, "http");
	if (is != SNIFF_HTTP || s.n == 4)
		return is == SNIFF_HTTP ? SNIFF_MORE : is;
	if (s.p[4] == ':')
		return SNIFF_HTTP;
	return s.n == 5 && (s.p[4] | 0x20) == 's'	 ? SNIFF_MORE
	       : (s.p[4] | 0x20) == 's' && s.p[5] == ':' ? SNIFF_HTTP
							 : SNIFF_OTHER;
}

static enum sniff look_at_http(struct slice first)
{
	struct rd rd = rd_init(first);
	struct slice word;

	skip_sniff(&rd, "\r\n");
	word = take_word(&rd);
	if (rd.n == 0)
		return word.n <= MAX_WORD ? SNIFF_MORE : SNIFF_OTHER;
	if (word.n == 0 || word.n > MAX_WORD || (rd.p[0] != ' ' && rd.p[0] != '\t'))
		return SNIFF_OTHER;
	if (word.n == 7 && begins_sniff(word, "connect") == SNIFF_HTTP)
		return SNIFF_HTTP;
	skip_sniff(&rd, " \t");
	return look_at_target(slice_of(rd.p, rd.n));
}

static enum sniff look_sniff(struct slice first)
{
	if (first.n == 0)
		return SNIFF_MORE;
	if (first.p[0] == 0x16)
		return first.n == 1 ? SNIFF_MORE : first.p[1] == 3 ? SNIFF_TLS : SNIFF_OTHER;
	return look_at_http(first);
}

enum sniff sniff_first(struct slice first)
{
	enum sniff is = look_sniff(slice_of(first.p, MIN(first.n, SNIFF_BYTES)));

	/* This many line ends or blanks are an evasion attempt. */
	return is == SNIFF_MORE && first.n >= SNIFF_BYTES ? SNIFF_HTTP : is;
}
