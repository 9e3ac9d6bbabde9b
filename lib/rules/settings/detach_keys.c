/* SPDX-License-Identifier: Apache-2.0 */
#include "detach_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CTRL "ctrl-"

static int bad_keys(const char *word, size_t n, struct err *err)
{
	return err_set(err, -EINVAL,
		"invalid key '%.*s': expected a comma-separated list of ctrl-X or single characters, or none",
		(int)MIN(n, (size_t)40), word);
}

/* One word of the list; 0 if it is not a key. */
static uint8_t key_of(const char *word, size_t n)
{
	size_t head = strlen(CTRL);
	char c = n ? word[n - 1] : '\0';

	if (n == 1 && c > ' ' && c < 0x7f)
		return (uint8_t)c;
	if (n != head + 1 || strncmp(word, CTRL, head) != 0)
		return 0;
	if (c >= 'a' && c <= 'z')
		return (uint8_t)(c - 'a' + 1);
	/* ctrl-@ is the byte 0, which no text can contain. */
	return c >= '[' && c <= '_' ? (uint8_t)(c - '@') : 0;
}

int detach_keys_parse(const char *text, struct detach_keys *ret, struct err *err)
{
	*ret = (struct detach_keys){0};
	if (!text[0] || !strcmp(text, "none"))
		return 0;
	for (const char *p = text;; p++) {
		size_t n = strcspn(p, ",");
		uint8_t key = key_of(p, n);

		if (!key)
			return bad_keys(p, n, err);
		if (ret->n == DETACH_MAX_KEYS)
			return err_set(err, -EINVAL, "more than %d keys", DETACH_MAX_KEYS);
		ret->key[ret->n++] = key;
		p += n;
		if (!*p)
			return 0;
	}
}

int detach_keys_check(const char *text, struct err *err)
{
	struct detach_keys keys;

	return detach_keys_parse(text, &keys, err);
}

static size_t match_text(const char *text, struct slice typed)
{
	size_t n = strlen(text);

	return typed.n >= n && !memcmp(typed.p, text, n) ? n : 0;
}

size_t detach_keys_match(uint8_t key, struct slice typed)
{
	unsigned c = key <= 26 ? key + 'a' - 1u : key + (unsigned)'@';
	char text[24];
	size_t n;

	if (typed.n && typed.p[0] == key)
		return 1;
	if (key >= ' ')
		return 0;
	/* The two encodings of ctrl with a key that programs can enable in terminals. */
	(void)snprintf(text, sizeof(text), "\033[%u;5u", c);
	n = match_text(text, typed);
	if (n)
		return n;
	(void)snprintf(text, sizeof(text), "\033[27;5;%u~", c);
	return match_text(text, typed);
}
