/* SPDX-License-Identifier: Apache-2.0 */
#include "label.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/rules/spec/spec.h"

int label_set(const struct opt_list *labels, json_t *object, struct err *err)
{
	for (size_t i = 0; i < labels->n; i++) {
		const char *label = labels->v[i];
		AUTO_FREE char *key = xstrndup(label, strcspn(label, "="));
		int r = spec_check_label(label, err);

		if (r < 0)
			return r;
		(void)json_object_set_new(object, key, json_string(strchr(label, '=') + 1));
	}
	if (json_object_size(object) > SPEC_MAX_LABELS)
		return err_set(err, -E2BIG, "a sandbox has at most %d labels", SPEC_MAX_LABELS);
	return 0;
}

static bool is_state(const char *word)
{
	static const char *const states[] = {"stopped", "suspended", "starting", "running",
		"paused", "stopping", "unresponsive"};

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strcmp(word, states[i]) == 0)
			return true;
	return false;
}

int label_filter_check(const struct opt_list *filters, struct err *err)
{
	for (size_t i = 0; i < filters->n; i++) {
		const char *f = filters->v[i];

		if (str_starts(f, "state=") && !is_state(f + strlen("state=")))
			return err_set(err, -EINVAL,
				"invalid --filter '%s': expected stopped, suspended, starting, running, paused, stopping or unresponsive",
				f);
		if (!str_starts(f, "state=") && (!str_starts(f, "agent=") || !f[6]) &&
			(!str_starts(f, "label=") || !f[6]))
			return err_set(err, -EINVAL,
				"invalid --filter '%s': expected label=KEY, label=KEY=VALUE, state=STATUS or agent=NAME",
				f);
	}
	return 0;
}

static bool has_label(const json_t *sandbox, const char *want)
{
	AUTO_FREE char *key = xstrndup(want, strcspn(want, "="));
	const json_t *has = json_object_get(json_object_get(sandbox, "labels"), key);
	const char *value = strchr(want, '=');

	return has && (!value || strcmp(json_string_value(has), value + 1) == 0);
}

bool label_filter_matches(const struct opt_list *filters, const json_t *sandbox)
{
	for (size_t i = 0; i < filters->n; i++) {
		const char *f = filters->v[i], *want = f + strlen("label=");
		bool is_match = f[0] == 'l'   ? has_label(sandbox, want)
				: f[0] == 's' ? strcmp(api_str(sandbox, "status"), want) == 0
					      : strcmp(api_str(sandbox, "agent"), want) == 0;

		if (!is_match)
			return false;
	}
	return true;
}

char *label_text(const json_t *sandbox)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	const char *key, *between = "";
	json_t *value;

	if (!f)
		abort();
	json_object_foreach (json_object_get(sandbox, "labels"), key, value) {
		(void)fprintf(f, "%s%s=%s", between, key, json_string_value(value));
		between = ", ";
	}
	(void)fclose(f);
	return text;
}
