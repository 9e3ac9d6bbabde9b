/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api_body.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

void api_secret_done(struct api_secret *s)
{
	free(s->sandbox);
	*s = (struct api_secret){0};
}

/* Copies one field of printable text; buf is unchanged if it does not exist. */
static int take_field(const json_t *o, const char *key, char *buf, size_t size, struct err *err)
{
	const json_t *v = json_object_get(o, key);
	const char *s = json_string_value(v);

	if (!v || json_is_null(v))
		return 0;
	if (!s || json_string_length(v) != strlen(s) || !str_is_printable(s))
		return err_set(err, -EINVAL, "%s must be plain text", key);
	if (strlen(s) >= size)
		return err_set(err, -E2BIG, "%s is longer than %zu bytes", key, size - 1);
	memcpy(buf, s, strlen(s) + 1);
	return 0;
}

/* A list of words, joined with blanks. */
static int take_words(const json_t *o, const char *key, char *buf, size_t size, struct err *err)
{
	const json_t *list = json_object_get(o, key), *item;
	size_t i, n = 0;

	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list))
		return err_set(err, -EINVAL, "%s must be a list of words", key);
	json_array_foreach (list, i, item) {
		const char *s = json_string_value(item);

		if (!s || !s[0] || json_string_length(item) != strlen(s) || !str_is_printable(s) ||
			strchr(s, ' '))
			return err_set(err, -EINVAL, "%s must be a list of words", key);
		if (n + strlen(s) + 2 > size)
			return err_set(err, -E2BIG, "%s is longer than %zu bytes", key, size - 1);
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", s);
	}
	return 0;
}

static int take_args(const json_t *list, struct vault_ref *ref, struct err *err)
{
	const json_t *item;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > VAULT_MAX_ARGS)
		return err_set(
			err, -EINVAL, "args must be a list of at most %d texts", VAULT_MAX_ARGS);
	json_array_foreach (list, i, item) {
		const char *s = json_string_value(item);

		if (!s || strlen(s) >= VAULT_MAX_ARG || json_string_length(item) != strlen(s) ||
			!str_is_printable(s))
			return err_set(err, -EINVAL,
				"an argument must be plain text of at most %d bytes",
				VAULT_MAX_ARG - 1);
		memcpy(ref->args[i], s, strlen(s) + 1);
	}
	ref->n_args = (uint8_t)json_array_size(list);
	return 0;
}

static int take_ref(json_t *o, struct vault_ref *ref, struct err *err)
{
	static const char *const allowed[] = {"kind", "program", "args", "refresh_s", NULL};
	static const char *const kinds[VAULT_N_REFS] = {"", "docker", "first-line", "whole"};
	const json_t *refresh = json_object_get(o, "refresh_s");
	char kind[16] = "";
	unsigned k = VAULT_REF_DOCKER;
	int r;

	if (!json_is_object(o))
		return err_set(err, -EINVAL, "ref must be an object");
	r = api_body_check(o, allowed, err);
	if (r == 0)
		r = take_field(o, "kind", kind, sizeof(kind), err);
	if (r == 0)
		r = take_field(o, "program", ref->program, sizeof(ref->program), err);
	if (r == 0)
		r = take_args(json_object_get(o, "args"), ref, err);
	if (r < 0)
		return r;
	while (k < VAULT_N_REFS && strcmp(kind, kinds[k]) != 0)
		k++;
	if (k == VAULT_N_REFS)
		return err_set(err, -EINVAL, "kind must be docker, first-line or whole");
	ref->kind = (enum vault_ref_kind)k;
	if (ref->program[0] != '/')
		return err_set(err, -EINVAL, "program must be an absolute path");
	if (ref->kind == VAULT_REF_DOCKER && (ref->n_args != 1 || !ref->args[0][0]))
		return err_set(err, -EINVAL, "a docker reference has one argument, the server");
	if (refresh && (!json_is_integer(refresh) || json_integer_value(refresh) < 0 ||
			       json_integer_value(refresh) > VAULT_MAX_REFRESH_S))
		return err_set(err, -EINVAL, "refresh_s must be 0 to %u", VAULT_MAX_REFRESH_S);
	ref->refresh_s = (uint32_t)json_integer_value(refresh);
	return 0;
}

static int take_kind(json_t *o, struct vault_meta *meta, struct err *err)
{
	static const char *const of_custom[] = {"hosts", "header", "format", "env", "sentinel"};
	char kind[16] = "";
	int r = take_field(o, "kind", kind, sizeof(kind), err);

	if (r < 0)
		return r;
	if (strcmp(kind, "custom") == 0) {
		meta->kind = VAULT_CUSTOM;
		return 0;
	}
	if (strcmp(kind, "proxy") == 0) {
		meta->kind = VAULT_PROXY;
		return 0;
	}
	if (strcmp(kind, "service") != 0)
		return err_set(err, -EINVAL, "kind must be service, custom or proxy");
	for (size_t i = 0; i < ARRAY_LEN(of_custom); i++)
		if (json_object_get(o, of_custom[i]))
			return err_set(
				err, -EINVAL, "only a custom credential has %s", of_custom[i]);
	meta->kind = VAULT_SERVICE;
	return 0;
}

static int take_secret(json_t *o, struct api_secret *s, struct err *err)
{
	char sandbox[SPEC_MAX_NAME + 1] = "";
	json_t *ref = json_object_get(o, "ref");
	int r = take_kind(o, &s->meta, err);

	if (r == 0)
		r = take_field(o, "sandbox", sandbox, sizeof(sandbox), err);
	if (r == 0)
		r = take_words(o, "hosts", s->meta.hosts, sizeof(s->meta.hosts), err);
	if (r == 0)
		r = take_field(o, "header", s->meta.header, sizeof(s->meta.header), err);
	if (r == 0)
		r = take_field(o, "format", s->meta.format, sizeof(s->meta.format), err);
	if (r == 0)
		r = take_words(o, "env", s->meta.env, sizeof(s->meta.env), err);
	if (r == 0)
		r = take_field(o, "sentinel", s->meta.sentinel, sizeof(s->meta.sentinel), err);
	if (r == 0 && ref && !json_is_null(ref))
		r = take_ref(ref, &s->ref, err);
	if (r == 0 && sandbox[0])
		s->sandbox = xstrdup(sandbox);
	return r;
}

int api_decode_own(struct slice body, struct api_own_body *ret, struct err *err)
{
	static const char *const allowed[] = {"service", "own", NULL};
	json_auto_t *o = NULL;
	const json_t *is_own;
	int r = api_body_load(body, allowed, &o, err);

	*ret = (struct api_own_body){0};
	if (r == 0)
		r = take_field(o, "service", ret->service, sizeof(ret->service), err);
	if (r < 0)
		return r;
	is_own = json_object_get(o, "own");
	if (!vault_name_is_good(ret->service))
		return err_set(err, -EINVAL, "service must be the name of a service");
	if (!json_is_boolean(is_own))
		return err_set(err, -EINVAL, "own must be true or false");
	ret->is_own = json_is_true(is_own);
	return 0;
}

int api_decode_secret(struct slice body, const char *name, struct api_secret *ret, struct err *err)
{
	static const char *const allowed[] = {
		"kind", "sandbox", "hosts", "header", "format", "env", "sentinel", "ref", NULL};
	AUTO_API_SECRET struct api_secret s = {0};
	json_auto_t *o = NULL;
	int r;

	if (strlen(name) >= VAULT_MAX_NAME || !vault_name_is_good(name))
		return err_set(err, -EINVAL,
			"invalid credential name: use letters, digits and ._:-, at most %d characters",
			VAULT_MAX_NAME - 1);
	memcpy(s.meta.name, name, strlen(name) + 1);
	r = api_body_load(body, allowed, &o, err);
	if (r == 0)
		r = take_secret(o, &s, err);
	if (r < 0)
		return r;
	*ret = s;
	s = (struct api_secret){0};
	return 0;
}
