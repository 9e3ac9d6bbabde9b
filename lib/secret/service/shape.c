/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx-origin on requests of a guest, and in sbx on files of the user. Touches nothing. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "shape.h"

static bool is_token_byte(uint8_t c)
{
	return isalnum(c) || c == '_' || c == '-' || c == '.';
}

static bool has_at(struct slice text, size_t at, const char *word)
{
	size_t n = strlen(word);

	return text.n - at >= n && strncasecmp((const char *)text.p + at, word, n) == 0;
}

/* A JWT has dots; a cursor of an API, which begins in the same way, has none. */
static bool is_secret_word(struct slice w, bool is_file)
{
	static const char *const first[] = {"sk-", "sk_", "pk_live", "rk_live", "ghp_", "gho_",
		"ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxa-", "xoxp-", "xapp-",
		"AIza", "AKIA", "ASIA", "ya29.", "eyJ", "npm_", "hf_", "gsk_", "xai-", "fk-",
		"dckr_pat_", "pypi-", "openai-insecure-api-key.", "base64url.bearer.", NULL};

	if (w.n < SHAPE_MIN)
		return false;
	for (const char *const *f = first; *f; f++)
		if (w.n >= strlen(*f) && memcmp(w.p, *f, strlen(*f)) == 0)
			return is_file || strcmp(*f, "eyJ") != 0 || memchr(w.p, '.', w.n);
	return false;
}

/* USER:PASSWORD@ behind "://". */
static bool has_password(struct slice text, size_t at)
{
	bool colon = false;

	for (at += 3; at < text.n && !isspace(text.p[at]) && text.p[at] != '/'; at++) {
		if (text.p[at] == '@')
			return colon;
		colon = colon || text.p[at] == ':';
	}
	return false;
}

/* How many bytes of a secret begin here; 0: none. ret_n is the length of the word. */
static size_t secret_at(struct slice text, size_t i, bool is_file, size_t *ret_n)
{
	size_t n = 0;

	while (i + n < text.n && is_token_byte(text.p[i + n]))
		n++;
	*ret_n = n ? n : 1;
	if (is_secret_word(slice_of(text.p + i, n), is_file))
		return n;
	if (has_at(text, i, "-----BEGIN ") || (has_at(text, i, "://") && has_password(text, i)))
		return text.n - i;
	if (has_at(text, i, "Bearer ") && text.n - i > SHAPE_MIN && is_token_byte(text.p[i + 7]))
		return text.n - i;
	return 0;
}

static bool find_shape(struct slice *text, bool is_file, struct slice *ret)
{
	size_t n, found;

	for (size_t i = 0; i < text->n; i += n) {
		found = secret_at(*text, i, is_file, &n);
		if (!found)
			continue;
		*ret = slice_of(text->p + i, found);
		*text = slice_of(text->p + i + found, text->n - i - found);
		return true;
	}
	return false;
}

bool shape_has_secret(struct slice text)
{
	struct slice secret;

	return find_shape(&text, true, &secret);
}

bool shape_next_secret(struct slice *text, struct slice *ret)
{
	return find_shape(text, false, ret);
}
