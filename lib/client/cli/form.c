/* SPDX-License-Identifier: Apache-2.0 */
#include "form.h"

#include "lib/base/str.h"
#include "when.h"

json_t *form_time(uint64_t ms)
{
	char text[WHEN_TEXT];

	when_print(ms, false, text);
	return ms ? json_string(text) : json_null();
}

void form_times(json_t *j)
{
	const char *key;
	json_t *v;
	size_t i;

	json_array_foreach (j, i, v)
		form_times(v);
	json_object_foreach (j, key, v) {
		if (json_is_integer(v) && str_ends(key, "_at"))
			(void)json_object_set_new(
				j, key, form_time((uint64_t)json_integer_value(v)));
		else
			form_times(v);
	}
}

void form_fill(json_t *o, const char *const *keys)
{
	for (; *keys; keys++)
		if (!json_object_get(o, *keys))
			(void)json_object_set_new(o, *keys, json_null());
}

/* A number that is 0 because there is none. */
static void no_zero(json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_integer(v) && json_integer_value(v) == 0)
		(void)json_object_set_new(o, key, json_null());
}

static void fill_with(json_t *o, const char *key, json_t *value)
{
	if (json_object_get(o, key))
		json_decref(value);
	else
		(void)json_object_set_new(o, key, value);
}

void form_ports(json_t *list)
{
	static const char *const keys[] = {"reason", NULL};
	json_t *port;
	size_t i;

	json_array_foreach (list, i, port) {
		no_zero(port, "host_port");
		fill_with(port, "ephemeral", json_false());
		form_fill(port, keys);
	}
}

void form_sandbox(json_t *s)
{
	static const char *const keys[] = {"disk", "idle_timeout", "ssh_agent", "suspended_at",
		"suspended_bytes", "staged_since", "template_id", NULL};

	form_fill(s, keys);
	fill_with(s, "force", json_false());
	fill_with(s, "staged", json_false());
	fill_with(s, "mounts", json_array());
	fill_with(s, "only", json_array());
	fill_with(s, "guard_except", json_array());
	fill_with(s, "labels", json_object());
	no_zero(s, "boot_ms");
	no_zero(s, "keeper_pid");
	no_zero(s, "qemu_pid");
	form_ports(json_object_get(s, "ports"));
}
