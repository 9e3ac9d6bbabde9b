/* SPDX-License-Identifier: Apache-2.0 */
#include "effect_terms.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include "effect_internal.h"
#include "effect_query.h"
#include "lib/base/mem.h"

static const char *const options[EFFECT_N_TERMS] = {
	[EFFECT_TERM_DO] = "do",
	[EFFECT_TERM_REF] = "ref",
	[EFFECT_TERM_PATH] = "path",
	[EFFECT_TERM_ON] = "on",
	[EFFECT_TERM_RISK] = "risk",
	[EFFECT_TERM_QUERY] = "query",
	[EFFECT_TERM_HEADER] = "header",
};
static const char *const risks[] = {
	"read", "write", "danger", "money", "credential", "send", "admin"};

/* The terms that a kind has, as bits. */
#define TERM(which) (1u << (which))
static const unsigned has_terms[EFFECT_KINDS] = {
	[EFFECT_HTTP] = TERM(EFFECT_TERM_DO) | TERM(EFFECT_TERM_QUERY) | TERM(EFFECT_TERM_HEADER),
	[EFFECT_GIT] = TERM(EFFECT_TERM_DO) | TERM(EFFECT_TERM_REF) | TERM(EFFECT_TERM_PATH),
	[EFFECT_API] = TERM(EFFECT_TERM_DO) | TERM(EFFECT_TERM_ON) | TERM(EFFECT_TERM_RISK),
};
/* Options of later versions. */
static const char *const later[] = {"json", "form", "size", "untainted", "rows", "using", "tools"};

static const char *option_name(enum effect_kind kind, enum effect_term_kind which)
{
	return kind == EFFECT_HTTP && which == EFFECT_TERM_DO ? "method" : options[which];
}

int effect_terms_find(
	enum effect_kind kind, struct slice word, enum effect_term_kind *ret, struct err *err)
{
	for (size_t i = 0; i < EFFECT_N_TERMS; i++) {
		*ret = (enum effect_term_kind)i;
		if ((has_terms[kind] >> i & 1) && slice_eq_str(word, option_name(kind, *ret)))
			return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(later); i++)
		if (slice_eq_str(word, later[i]))
			return err_set(
				err, -ENOTSUP, "the option '%s' is not supported yet", later[i]);
	return -ENOENT;
}

/* ---- words ---- */

static bool is_risk(struct slice word)
{
	for (size_t i = 0; i < ARRAY_LEN(risks); i++)
		if (slice_eq_str(word, risks[i]))
			return true;
	return false;
}

static bool is_method(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isupper(s.p[i]) && s.p[i] != '-')
			return false;
	return s.n > 0 && s.n <= EFFECT_MAX_WORD;
}

static bool is_api_verb(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!islower(s.p[i]) && !isdigit(s.p[i]) && !(s.p[i] && strchr("-.*", s.p[i])))
			return false;
	return s.n > 0 && s.n <= EFFECT_MAX_WORD;
}

static bool is_any(struct slice word)
{
	return slice_eq_str(word, EFFECT_WORD_ANY) || slice_eq_str(word, EFFECT_WORD_UNKNOWN);
}

static int check_do(enum effect_kind kind, struct slice word, struct err *err)
{
	if (kind == EFFECT_HTTP)
		return is_method(word) ? 0
				       : err_set(err, -EINVAL,
						 "a method is a word in upper case, such as GET");
	if (kind == EFFECT_GIT)
		return is_any(word) || effect_is_git_verb(word)
			       ? 0
			       : err_set(err, -EINVAL,
					 "expected fetch, push, create, delete, force, tag, any or "
					 "unknown");
	return is_any(word) || (is_api_verb(word) && memchr(word.p, '.', word.n))
		       ? 0
		       : err_set(err, -EINVAL,
				 "expected a verb such as issue.create or issue.*, any or unknown");
}

static int check_word(
	enum effect_kind kind, enum effect_term_kind which, struct slice word, struct err *err)
{
	if (which == EFFECT_TERM_DO)
		return check_do(kind, word, err);
	if (which == EFFECT_TERM_RISK)
		return is_risk(word)
			       ? 0
			       : err_set(err, -EINVAL,
					 "expected read, write, danger, money, credential, send or "
					 "admin");
	/* Refs, files and objects have segments and no escapes, as a repository. */
	return effect_pattern_check(EFFECT_GIT, word, err);
}

static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum(s.p[i]) && !(s.p[i] && strchr("!#$&'*^_`|~-.", s.p[i])))
			return false;
	return s.n > 0 && s.n <= EFFECT_MAX_NAME;
}

static bool is_field(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || strchr("&;%+[],", s.p[i]))
			return false;
	return s.n > 0 && s.n <= EFFECT_MAX_NAME;
}

static int check_value(struct slice s, struct err *err)
{
	size_t stars = 0;

	if (s.n > EFFECT_MAX_VALUE)
		return err_set(err, -EINVAL, "longer than %d bytes", EFFECT_MAX_VALUE);
	for (size_t i = 0; i < s.n; i++) {
		stars += s.p[i] == '*';
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
			return err_set(err, -EINVAL, "a blank or a byte beyond ASCII: use '*'");
	}
	return stars <= EFFECT_MAX_STARS ? 0 : err_set(err, -E2BIG, "too many stars");
}

/* ---- adding ---- */

static int add_term(struct effect_terms *terms, enum effect_term_kind which, struct slice name,
	struct slice value, struct err *err)
{
	size_t at = terms->n;

	if (terms->n == EFFECT_MAX_TERMS)
		return err_set(err, -E2BIG, "more than %d words in the options of a rule",
			EFFECT_MAX_TERMS);
	terms->term = xrealloc(terms->term, (terms->n + 1) * sizeof(terms->term[0]));
	for (; at > 0 && terms->term[at - 1].kind > which; at--)
		terms->term[at] = terms->term[at - 1];
	terms->term[at] = (struct effect_term){.kind = which,
		.name = name.n ? xstrndup((const char *)name.p, name.n) : NULL,
		.value = value.n ? xstrndup((const char *)value.p, value.n) : xstrdup("")};
	terms->n++;
	return 0;
}

static int add_pair(struct effect_terms *terms, enum effect_term_kind which, struct slice value,
	struct err *err)
{
	bool is_header = which == EFFECT_TERM_HEADER;
	struct slice name = effect_cut_until(&value, '=');
	char lower[EFFECT_MAX_NAME];
	int r;

	if (!value.p || !(is_header ? is_token(name) : is_field(name)))
		return err_set(err, -EINVAL, "expected NAME=VALUE after '%s'", options[which]);
	r = check_value(value, err);
	if (r < 0)
		return r;
	for (size_t i = 0; is_header && i < name.n; i++)
		lower[i] = (char)tolower(name.p[i]);
	return add_term(terms, which, is_header ? slice_of(lower, name.n) : name, value, err);
}

static bool has_term(const struct effect_terms *terms, enum effect_term_kind which)
{
	for (size_t i = 0; i < terms->n; i++)
		if (terms->term[i].kind == which)
			return true;
	return false;
}

static bool has_word(
	const struct effect_terms *terms, enum effect_term_kind which, struct slice word)
{
	for (size_t i = 0; i < terms->n; i++)
		if (terms->term[i].kind == which && slice_eq_str(word, terms->term[i].value))
			return true;
	return false;
}

static int add_word(struct effect_terms *terms, enum effect_kind kind, enum effect_term_kind which,
	struct slice word, struct err *err)
{
	int r = check_word(kind, which, word, err);

	if (r < 0)
		return err_wrap(err, r, "'%.*s'", (int)MIN(word.n, (size_t)60),
			word.n ? (const char *)word.p : "");
	if (has_word(terms, which, word))
		return err_set(err, -EINVAL, "duplicate word '%.*s'", (int)MIN(word.n, (size_t)60),
			(const char *)word.p);
	return add_term(terms, which, slice_of(NULL, 0), word, err);
}

int effect_terms_add(struct effect_terms *terms, enum effect_kind kind, enum effect_term_kind which,
	struct slice value, struct err *err)
{
	int r = 0;

	if (which == EFFECT_TERM_QUERY || which == EFFECT_TERM_HEADER)
		return add_pair(terms, which, value, err);
	if (has_term(terms, which))
		return err_set(err, -EINVAL, "duplicate option '%s'", option_name(kind, which));
	if (!value.n)
		return err_set(err, -EINVAL, "expected a list of words after '%s'",
			option_name(kind, which));
	while (r == 0 && value.p)
		r = add_word(terms, kind, which, effect_cut_until(&value, ','), err);
	return r;
}

/* The bytes of all texts are within the limit of the packed form. */
int effect_terms_finish(
	const struct effect_terms *terms, enum effect_kind kind, bool must_do, struct err *err)
{
	struct slice any = slice_from_str(EFFECT_WORD_ANY);
	size_t n = 0;

	for (size_t i = 0; i < terms->n; i++) {
		const struct effect_term *t = &terms->term[i];

		n += EFFECT_TERM_HEAD + strlen(t->value) + (t->name ? strlen(t->name) : 0);
		if (t->kind == EFFECT_TERM_DO && has_word(terms, EFFECT_TERM_DO, any) &&
			!is_any(slice_from_str(t->value)))
			return err_set(err, -EINVAL, "'any' includes '%s'", t->value);
	}
	if (n > EFFECT_MAX_PACKED)
		return err_set(
			err, -E2BIG, "the options are longer than %d bytes", EFFECT_MAX_PACKED);
	if (must_do && kind != EFFECT_HTTP && !has_term(terms, EFFECT_TERM_DO))
		return err_set(err, -EINVAL,
			"missing 'do': a rule of kind %s must say what it permits, or 'do any'",
			effect_kind_name(kind));
	return 0;
}

void effect_terms_done(struct effect_terms *terms)
{
	for (size_t i = 0; i < terms->n; i++) {
		free(terms->term[i].name);
		free(terms->term[i].value);
	}
	free(terms->term);
	*terms = (struct effect_terms){0};
}

char *effect_terms_print(const struct effect_terms *terms, enum effect_kind kind)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	for (size_t i = 0; i < terms->n; i++) {
		const struct effect_term *t = &terms->term[i];

		if (i > 0 && !t->name && terms->term[i - 1].kind == t->kind)
			(void)fprintf(f, ",%s", t->value);
		else if (t->name)
			(void)fprintf(f, " %s %s=%s", options[t->kind], t->name, t->value);
		else
			(void)fprintf(f, " %s %s", option_name(kind, t->kind), t->value);
	}
	if (fclose(f) != 0)
		abort();
	return text;
}

size_t effect_terms_pack(const struct effect_terms *terms, uint8_t *buf)
{
	struct wr wr = wr_init(buf, EFFECT_MAX_PACKED);

	for (size_t i = 0; i < terms->n; i++) {
		const struct effect_term *t = &terms->term[i];
		struct slice name = slice_from_str(t->name ? t->name : "");

		wr_u8(&wr, (uint8_t)t->kind);
		wr_u8(&wr, (uint8_t)name.n);
		wr_u16(&wr, (uint16_t)strlen(t->value));
		wr_bytes(&wr, name);
		wr_bytes(&wr, slice_from_str(t->value));
	}
	return wr.n;
}
