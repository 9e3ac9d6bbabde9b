/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"

static int decode(const char *json, struct spec *spec, struct err *err)
{
	return spec_decode(slice_from_str(json), spec, err);
}

static void names_follow_the_rule(void **state)
{
	static const char *const good[] = {"ab", "a.b", "A-1", "0x", "shell-my.dir",
		"a23456789-123456789-123456789-123456789-123456789-123456789-123", "abcdef01234",
		"ABCDEF012345", "abcdef012345a", "Default"};
	static const char *const bad[] = {"", "a", "-a", ".a", "a-", "a.", "a_b", "a+b", "a b",
		"default", "abcdef012345", "a/b", "\303\244b", "a\nb",
		"a23456789-123456789-123456789-123456789-123456789-123456789-1234"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(spec_check_name(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		assert_int_equal(spec_check_name(bad[i], &err), -EINVAL);
		assert_true(err.text[0]);
	}
}

static void ids_are_twelve_hex_digits(void **state)
{
	assert_true(spec_is_id("0123456789ab"));
	assert_false(spec_is_id("0123456789aB"));
	assert_false(spec_is_id("0123456789a"));
	assert_false(spec_is_id("0123456789abc"));
	assert_false(spec_is_id("0123456789ag"));
}

static const char full[] =
	"{\"id\":\"0123456789ab\",\"name\":\"demo\",\"agent\":\"shell\",\"template\":\"debian\","
	"\"generation\":7,\"cpus\":2,\"memory\":1073741824,\"accel\":\"tcg\",\"workspaces\":"
	"[{\"host\":\"/home/u/p\",\"guest\":\"/p\",\"ro\":true,\"file\":false}],"
	"\"hide\":[\".env*\"],\"env\":{\"A\":\"1\",\"B\":\"x=y\"}}";

static void a_full_spec_survives_the_round(void **state)
{
	AUTO_SPEC struct spec a = {0};
	AUTO_FREE char *text = NULL;

	assert_int_equal(decode(full, &a, NULL), 0);
	assert_int_equal(spec_check(&a, NULL), 0);
	assert_string_equal(a.env[1], "B=x=y");
	assert_true(a.workspaces[0].ro);
	assert_int_equal(a.accel, SPEC_ACCEL_TCG);
	text = spec_encode(&a);
	assert_string_equal(text, full);
}

/* The copy of what was read says the same text. */
static void read_and_copy(const char *json, struct spec *a, struct spec *b)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	assert_int_equal(decode(json, a, &err), 0);
	spec_copy(a, b);
	text = spec_encode(b);
	assert_string_equal(text, json);
	assert_true(spec_matches(a, b));
}

static void a_clone_survives_and_needs_two_absolute_paths(void **state)
{
	static const char *const bad[] = {"true", "{\"host\":\"/a\"}",
		"{\"host\":\"/a\",\"guest\":\"b\"}", "{\"host\":\"/a\",\"guest\":\"/proc/x\"}",
		"{\"host\":\"/a\",\"guest\":\"/b\",\"branch\":1}",
		"{\"host\":\"/a\",\"guest\":\"/b\",\"x\":\"y\"}"};
	AUTO_SPEC struct spec s = {0}, again = {0};
	AUTO_FREE char *text = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_FREE char *json = xasprintf("{\"name\":\"ab\",\"clone\":%s}", bad[i]);
		AUTO_SPEC struct spec t = {0};

		assert_int_equal(decode(json, &t, NULL), -EINVAL);
	}
	assert_int_equal(decode("{\"name\":\"ab\",\"clone\":{\"host\":\"/a\",\"guest\":\"/b\","
				"\"branch\":\"c\"}}",
				 &s, NULL),
		0);
	text = spec_encode(&s);
	assert_int_equal(decode(text, &again, NULL), 0);
	assert_true(spec_matches(&again, &s));
	again.clone.branch[0] = 'd';
	assert_false(spec_matches(&again, &s));
}

static void the_ssh_agent_survives(void **state)
{
	static const char json[] =
		"{\"name\":\"ab\",\"accel\":\"auto\",\"workspaces\":[],\"hide\":[],\"env\":{},"
		"\"ssh_agent\":{\"socket\":\"/run/a.sock\",\"keys\":[\"SHA256:x\",\"me\"],"
		"\"confirm\":true,\"askpass\":\"/bin/ask\",\"env\":[\"DISPLAY=:0\"]}}";
	AUTO_SPEC struct spec a = {0}, b = {0}, none = {0};
	struct err err = {0};

	read_and_copy(json, &a, &b);
	b.ssh.confirm = false;
	assert_false(spec_matches(&a, &b));
	assert_int_equal(decode("{\"name\":\"ab\"}", &none, &err), 0);
	assert_null(none.ssh.socket);
	assert_false(spec_matches(&a, &none));
}

static void mounts_and_only_survive(void **state)
{
	static const char json[] =
		"{\"name\":\"ab\",\"accel\":\"auto\",\"workspaces\":[],"
		"\"mounts\":[{\"host\":\"/h\",\"guest\":\"/home/agent/.x/y\",\"ro\":false,\"file\":"
		"false}],\"only\":[\"npm.example:443\"],\"hide\":[],\"env\":{}}";
	AUTO_SPEC struct spec a = {0}, b = {0}, none = {0};
	struct err err = {0};

	read_and_copy(json, &a, &b);
	assert_int_equal(decode("{\"name\":\"ab\"}", &none, &err), 0);
	assert_false(spec_matches(&a, &none));
}

static void staged_survives(void **state)
{
	static const char json[] =
		"{\"name\":\"ab\",\"accel\":\"auto\",\"workspaces\":[{\"host\":\"/a\",\"guest\":"
		"\"/a\",\"ro\":false,\"file\":false},{\"host\":\"/ab\",\"guest\":\"/ab\",\"ro\":"
		"true,\"file\":false}],\"hide\":[],\"staged\":true,\"staged_since\":7,\"env\":{}}";
	AUTO_SPEC struct spec a = {0}, b = {0}, c = {0};

	read_and_copy(json, &a, &b);
	b.staged = false;
	assert_false(spec_matches(&a, &b));
	spec_copy(&a, &c);
	c.staged_since = 8;
	assert_false(spec_matches(&a, &c));
}

static void staged_needs_one_writable_directory_without_others_in_it(void **state)
{
	static const struct {
		const char *json, *says;
	} rows[] = {
		{"{\"name\":\"ab\",\"staged\":1}", "staged must be"},
		{"{\"name\":\"ab\",\"staged_since\":7}", "staged_since requires staged"},
		{"{\"name\":\"ab\",\"staged_since\":-7}", "staged_since must be"},
		{"{\"name\":\"ab\",\"staged\":true}", "requires a writable workspace"},
		{"{\"name\":\"ab\",\"staged\":true,\"workspaces\":[{\"host\":\"/a\",\"ro\":true}]}",
			"requires a writable workspace"},
		{"{\"name\":\"ab\",\"staged\":true,\"idle_timeout\":9,\"workspaces\":[{\"host\":"
		 "\"/a\"}]}",
			"idle_timeout"},
		{"{\"name\":\"ab\",\"staged\":true,\"workspaces\":[{\"host\":\"/a\"},{\"host\":"
		 "\"/a/b\",\"ro\":true}]}",
			"inside the staged workspace"},
		{"{\"name\":\"ab\",\"staged\":true,\"clone\":{\"host\":\"/c\",\"guest\":\"/c\"},"
		 "\"workspaces\":[{\"host\":\"/a\"}]}",
			"mutually exclusive"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SPEC struct spec s = {0};
		struct err err = {0};

		assert_int_equal(decode(rows[i].json, &s, &err), -EINVAL);
		assert_non_null(strstr(err.text, rows[i].says));
	}
}

static void the_guard_survives(void **state)
{
	static const char json[] =
		"{\"name\":\"ab\",\"accel\":\"auto\",\"workspaces\":[],\"hide\":[],\"guard\":"
		"\"strict\",\"guard_except\":[\"Makefile\",\"tools/*.mk\"],\"env\":{}}";
	AUTO_SPEC struct spec a = {0}, b = {0}, open = {0};
	struct err err = {0};

	read_and_copy(json, &a, &b);
	b.guard = SPEC_GUARD_REPORT;
	assert_false(spec_matches(&a, &b));
	assert_int_equal(decode("{\"name\":\"ab\",\"guard_except\":[\"Makefile\",\"tools/*.mk\"]}",
				 &open, &err),
		0);
	assert_true(spec_matches(&a, &open));
	open.n_guard_except--;
	assert_false(spec_matches(&a, &open));
	open.n_guard_except++;
}

static void labels_survive(void **state)
{
	static const char json[] =
		"{\"name\":\"ab\",\"accel\":\"auto\",\"workspaces\":[],\"hide\":[],\"env\":{},"
		"\"labels\":{\"a/b\":\"\",\"team\":\"x y\"}}";
	AUTO_SPEC struct spec a = {0}, b = {0};

	read_and_copy(json, &a, &b);
	b.n_labels--;
	assert_false(spec_matches(&a, &b));
	b.n_labels++;
}

static void wrong_labels_are_refused(void **state)
{
	static const struct {
		const char *labels, *says;
	} rows[] = {
		{"[]", "labels must be an object"},
		{"{\"a\":1}", "labels a must be a string"},
		{"{\"\":\"x\"}", "invalid name '' in labels"},
		{"{\"a=b\":\"x\"}", "invalid name 'a=b' in labels"},
		{"{\"-a\":\"x\"}", "invalid key of the label '-a=x'"},
		{"{\"a b\":\"x\"}", "invalid key of the label"},
		{"{\"a\":\"\\u001b[0m\"}", "invalid value of the label 'a'"},
		{"{\"a\":\"\\u00e4\"}", "invalid value of the label 'a'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *json = xasprintf("{\"name\":\"ab\",\"labels\":%s}", rows[i].labels);
		AUTO_SPEC struct spec s = {0};
		struct err err = {0};

		assert_int_equal(decode(json, &s, &err), -EINVAL);
		assert_non_null(strstr(err.text, rows[i].says));
	}
}

/* Specs of earlier versions have no field: nothing is denied, changes are listed. */
static void a_spec_without_a_guard_reports(void **state)
{
	AUTO_SPEC struct spec s = {0};
	AUTO_FREE char *text = NULL;
	enum spec_guard level;

	assert_int_equal(decode(full, &s, NULL), 0);
	assert_int_equal(s.guard, SPEC_GUARD_UNSET);
	assert_string_equal(spec_guard_name(s.guard), "report");
	text = spec_encode(&s);
	assert_null(strstr(text, "guard"));
	assert_int_equal(spec_guard_parse("report", &level), 0);
	assert_int_equal(level, SPEC_GUARD_REPORT);
	assert_int_equal(spec_guard_parse("", &level), -EINVAL);
	assert_int_equal(spec_guard_parse("Default", &level), -EINVAL);
}

static void a_wrong_guard_is_refused(void **state)
{
	static const struct {
		const char *json, *says;
	} rows[] = {
		{"{\"name\":\"ab\",\"guard\":\"on\"}", "default, strict, report or off"},
		{"{\"name\":\"ab\",\"guard\":1}", "default, strict, report or off"},
		{"{\"name\":\"ab\",\"guard_except\":\"x\"}", "guard_except must be a list"},
		{"{\"name\":\"ab\",\"guard_except\":[\"\"]}", "is empty"},
		{"{\"name\":\"ab\",\"guard_except\":[\"/etc/x\"]}", "relative to a workspace"},
		{"{\"name\":\"ab\",\"guard_except\":[\"a/../b\"]}", "relative to a workspace"},
		{"{\"name\":\"ab\",\"guard_except\":[\"a//b\"]}", "relative to a workspace"},
		{"{\"name\":\"ab\",\"guard_except\":[\"a/\"]}", "relative to a workspace"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SPEC struct spec s = {0};
		struct err err = {0};

		assert_int_equal(decode(rows[i].json, &s, &err), -EINVAL);
		assert_non_null(strstr(err.text, rows[i].says));
	}
}

static void wrong_fields_are_refused_by_name(void **state)
{
	static const struct {
		const char *json, *says;
	} rows[] = {
		{"", "not JSON"},
		{"[]", "object"},
		{"{}", "missing name"},
		{"{\"name\":\"ab\",\"name\":\"cd\"}", "duplicate"},
		{"{\"name\":\"ab\",\"nmae\":1}", "'nmae'"},
		{"{\"name\":1}", "name must be a string"},
		{"{\"name\":\"a_b\"}", "letters"},
		{"{\"name\":\"ab\",\"id\":\"xyz\"}", "hex"},
		{"{\"name\":\"ab\",\"id\":\"\"}", "id is empty"},
		{"{\"name\":\"ab\",\"agent\":\"../x\"}", "agent"},
		{"{\"name\":\"ab\",\"template\":\"a/b\"}", "template"},
		{"{\"name\":\"ab\",\"cpus\":0}", "cpus"},
		{"{\"name\":\"ab\",\"cpus\":257}", "cpus"},
		{"{\"name\":\"ab\",\"cpus\":-1}", "cpus"},
		{"{\"name\":\"ab\",\"cpus\":1.5}", "cpus"},
		{"{\"name\":\"ab\",\"memory\":1}", "memory"},
		{"{\"name\":\"ab\",\"disk\":1073741823}", "disk"},
		{"{\"name\":\"ab\",\"disk\":1099511627777}", "disk"},
		{"{\"name\":\"ab\",\"disk\":\"40g\"}", "disk"},
		{"{\"name\":\"ab\",\"memory\":\"1g\"}", "memory"},
		{"{\"name\":\"ab\",\"accel\":\"hvf\"}", "accel"},
		{"{\"name\":\"ab\",\"accel\":null}", "accel"},
		{"{\"name\":\"ab\",\"workspaces\":{}}", "workspaces"},
		{"{\"name\":\"ab\",\"workspaces\":[1]}", "workspace"},
		{"{\"name\":\"ab\",\"workspaces\":[{}]}", "host"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"a\"}]}", "absolute"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a/../b\"}]}", "'..'"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a//b\"}]}", "empty part"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a/\"}]}", "empty part"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\\n\"}]}", "control"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/\"}]}", "cannot be at"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\",\"guest\":\"/proc/x\"}]}",
			"cannot be at"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\",\"ro\":1}]}", "ro"},
		{"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\",\"rw\":true}]}", "'rw'"},
		{"{\"name\":\"ab\",\"hide\":[\"\"]}", "hide"},
		{"{\"name\":\"ab\",\"hide\":[1]}", "hide"},
		{"{\"name\":\"ab\",\"mounts\":[{\"host\":\"/a\",\"guest\":\"/etc\"}]}",
			"below /home"},
		{"{\"name\":\"ab\",\"mounts\":[{\"host\":\"/a\",\"guest\":\"/home/agent\"}]}",
			"below /home"},
		{"{\"name\":\"ab\",\"mounts\":[{\"host\":\"/a\",\"guest\":\"/home/agent/../x\"}]}",
			"'..'"},
		{"{\"name\":\"ab\",\"only\":[\"a b\"]}", "invalid resource 'a b' in only"},
		{"{\"name\":\"ab\",\"only\":[1]}", "only"},
		{"{\"name\":\"ab\",\"force\":1}", "force"},
		{"{\"name\":\"ab\",\"env\":[]}", "env"},
		{"{\"name\":\"ab\",\"env\":{\"1A\":\"x\"}}", "env"},
		{"{\"name\":\"ab\",\"env\":{\"A=B\":\"x\"}}", "env"},
		{"{\"name\":\"ab\",\"env\":{\"A\":1}}", "env"},
		{"{\"name\":\"ab\",\"env\":{\"A\":\"\\u0000\"}}", "not JSON"},
		{"{\"name\":\"ab\",\"ssh_agent\":true}", "ssh_agent"},
		{"{\"name\":\"ab\",\"ssh_agent\":{}}", "missing socket of ssh_agent"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"a\"}}", "absolute"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"x\":1}}", "'x'"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"keys\":[\"\"]}}", "SSH key"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"keys\":[1]}}", "keys"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"keys\":[\"a\\n\"]}}",
			"SSH key"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"confirm\":true}}", "askpass"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"confirm\":1}}", "'confirm'"},
		{"{\"name\":\"ab\",\"ssh_agent\":{\"socket\":\"/a\",\"env\":[\"=x\"]}}", "env"},
		{"{\"name\":\"ab\"} x", "not JSON"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct spec s = {0};
		struct err err = {0};

		assert_true(decode(rows[i].json, &s, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s: says '%s', not '%s'", rows[i].json, err.text, rows[i].says);
		assert_null(s.workspaces);
	}
}

/* n copies of `item` in a list or object under `field`. */
static char *many(const char *field, const char *item, size_t n, char open, char close)
{
	char *s = xasprintf("{\"name\":\"ab\",\"%s\":%c", field, open);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *old = s;
		AUTO_FREE char *one = open == '{' ? xasprintf("\"V%zu\":\"\"", i) : xstrdup(item);

		s = xasprintf("%s%s%s", old, i ? "," : "", one);
	}
	char *all = xasprintf("%s%c}", s, close);

	free(s);
	return all;
}

static void lists_have_limits(void **state)
{
	static const struct {
		const char *field, *item;
		size_t max;
		char open, close;
	} rows[] = {
		{"workspaces", "{\"host\":\"/a\"}", SPEC_MAX_WORKSPACES, '[', ']'},
		{"hide", "\"x\"", SPEC_MAX_HIDE, '[', ']'},
		{"env", NULL, SPEC_MAX_ENV, '{', '}'},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *ok =
			many(rows[i].field, rows[i].item, rows[i].max, rows[i].open, rows[i].close);
		AUTO_FREE char *over = many(
			rows[i].field, rows[i].item, rows[i].max + 1, rows[i].open, rows[i].close);
		AUTO_SPEC struct spec a = {0}, b = {0};

		assert_int_equal(decode(ok, &a, NULL), 0);
		assert_int_equal(decode(over, &b, NULL), -E2BIG);
	}
}

static void an_over_long_environment_is_refused(void **state)
{
	AUTO_FREE char *value = xmalloc(SPEC_MAX_ENV_BYTES + 1);
	AUTO_FREE char *json = NULL;
	AUTO_SPEC struct spec s = {0};

	memset(value, 'x', SPEC_MAX_ENV_BYTES);
	value[SPEC_MAX_ENV_BYTES] = '\0';
	json = xasprintf("{\"name\":\"ab\",\"env\":{\"A\":\"%s\"}}", value);
	assert_int_equal(decode(json, &s, NULL), -E2BIG);
}

static void what_json_cannot_carry_is_refused(void **state)
{
	AUTO_SPEC struct spec s = {0};

	assert_int_equal(
		decode("{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\"}]}", &s, NULL), 0);
	spec_set_defaults(&s, 1, 0);
	memcpy(s.id, "0123456789ab", 13);
	assert_int_equal(spec_check(&s, NULL), 0);
	s.workspaces[0].host[1] = '\xff';
	assert_int_equal(spec_check(&s, NULL), -EINVAL);
}

static void defaults_fill_only_what_is_open(void **state)
{
	AUTO_SPEC struct spec s = {0}, t = {0};

	assert_int_equal(decode("{\"name\":\"ab\"}", &s, NULL), 0);
	assert_int_equal(spec_check(&s, NULL), -EINVAL);
	spec_set_defaults(&s, 0, 0);
	assert_string_equal(s.agent, "shell");
	assert_string_equal(s.template, "debian");
	assert_in_range(s.cpus, 1, SPEC_MAX_CPUS);
	assert_in_range(s.memory, 512ull << 20, 4ull << 30);
	assert_int_equal(decode("{\"name\":\"ab\",\"cpus\":3}", &t, NULL), 0);
	spec_set_defaults(&t, 9, 1ull << 30);
	assert_int_equal(t.cpus, 3);
	assert_int_equal(t.memory, 1ull << 30);
}

static void a_repeated_request_matches(void **state)
{
	static const char *const others[] = {
		"{\"name\":\"cd\"}",
		"{\"name\":\"ab\",\"cpus\":4}",
		"{\"name\":\"ab\",\"accel\":\"kvm\"}",
		"{\"name\":\"ab\",\"hide\":[\"x\"]}",
		"{\"name\":\"ab\",\"force\":true}",
		"{\"name\":\"ab\",\"env\":{\"A\":\"\"}}",
		"{\"name\":\"ab\",\"workspaces\":[{\"host\":\"/a\"}]}",
		"{\"name\":\"ab\",\"staged\":true,\"workspaces\":[{\"host\":\"/a\"}]}",
		"{\"name\":\"ab\",\"agent\":\"codex\"}",
	};
	AUTO_SPEC struct spec have = {0}, same = {0};

	assert_int_equal(decode("{\"name\":\"ab\"}", &have, NULL), 0);
	spec_set_defaults(&have, 2, 1ull << 30);
	assert_int_equal(decode("{\"name\":\"ab\"}", &same, NULL), 0);
	assert_true(spec_matches(&have, &same));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		AUTO_SPEC struct spec other = {0};

		assert_int_equal(decode(others[i], &other, NULL), 0);
		assert_false(spec_matches(&have, &other));
	}
}

static void guest_paths_are_used_once(void **state)
{
	AUTO_SPEC struct spec s = {0};
	struct err err = {0};

	assert_int_equal(decode("{\"id\":\"0123456789ab\",\"name\":\"ab\",\"workspaces\":"
				"[{\"host\":\"/a\"},{\"host\":\"/b\",\"guest\":\"/a\"}]}",
				 &s, NULL),
		0);
	spec_set_defaults(&s, 0, 0);
	assert_int_equal(spec_check(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "duplicate guest path"));
}

static void a_file_holds_the_spec(void **state)
{
	char dir[] = "/tmp/spec_test.XXXXXX";
	AUTO_SPEC struct spec a = {0}, b = {0}, c = {0};
	AUTO_FREE char *path = NULL;
	struct err err = {0};
	struct stat st;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/spec.json", dir);
	assert_int_equal(spec_load(path, &b, &err), -ENOENT);
	assert_int_equal(decode(full, &a, NULL), 0);
	assert_int_equal(spec_save(&a, path, NULL), 0);
	assert_int_equal(spec_save(&a, path, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(spec_load(path, &b, NULL), 0);
	assert_true(spec_matches(&a, &b));
	assert_int_equal(b.generation, 7);
	f = fopen(path, "w");
	fputs("{\"name\":", f);
	fclose(f);
	assert_true(spec_load(path, &c, &err) < 0);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_follow_the_rule),
		cmocka_unit_test(ids_are_twelve_hex_digits),
		cmocka_unit_test(a_full_spec_survives_the_round),
		cmocka_unit_test(the_guard_survives),
		cmocka_unit_test(labels_survive),
		cmocka_unit_test(wrong_labels_are_refused),
		cmocka_unit_test(a_spec_without_a_guard_reports),
		cmocka_unit_test(a_wrong_guard_is_refused),
		cmocka_unit_test(staged_survives),
		cmocka_unit_test(staged_needs_one_writable_directory_without_others_in_it),
		cmocka_unit_test(wrong_fields_are_refused_by_name),
		cmocka_unit_test(lists_have_limits),
		cmocka_unit_test(an_over_long_environment_is_refused),
		cmocka_unit_test(what_json_cannot_carry_is_refused),
		cmocka_unit_test(the_ssh_agent_survives),
		cmocka_unit_test(a_clone_survives_and_needs_two_absolute_paths),
		cmocka_unit_test(mounts_and_only_survive),
		cmocka_unit_test(defaults_fill_only_what_is_open),
		cmocka_unit_test(a_repeated_request_matches),
		cmocka_unit_test(guest_paths_are_used_once),
		cmocka_unit_test(a_file_holds_the_spec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
