/* SPDX-License-Identifier: Apache-2.0 */
/* `sbx secret scan`: the vault searches a file, a stream, or all of a sandbox for its values. It
 * returns only names, never a value. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_scanned.h"
#include "lib/client/api/sandbox.h"
#include "scan_places.h"
#include "secret_verbs.h"
#include "lib/client/cli/table.h"

#define SCAN_TIMEOUT_MS 640000 /* other requests may be before it */

const struct opt_def secret_scan_opts[] = {
	{0, "sandbox", "NAME", "search this sandbox: memory, disks, logs, audit log"},
	{0, "what", "PLACES", "search only ram, disk, docker, logs, audit, files, base"},
	{0, "control", "TEXT", "control text that the search must find"},
	{0, "json", NULL, "print JSON"},
	{0},
};

/* The result for one place. */
struct part {
	const char *what;
	unsigned n_files;
	long long bytes, control;
	json_t *found; /* by name: number of matches */
};

struct report {
	const char *control; /* NULL: none */
	long long values, left_out;
	struct part part[SCAN_N_PLACES];
	size_t n_parts;
	uint64_t began_ms;
};

static void report_done(struct report *r)
{
	for (size_t i = 0; i < r->n_parts; i++)
		json_decref(r->part[i].found);
}
#define AUTO_REPORT CLEANUP(report_done)

static struct part *add_part(struct report *r, const char *what)
{
	struct part *part = &r->part[r->n_parts++];

	*part = (struct part){.what = what, .found = json_object()};
	return part;
}

static char *label_of(const json_t *f)
{
	const char *name = api_str(f, "name"), *sandbox = api_str(f, "sandbox");

	if (strcmp(api_str(f, "scope"), "global") == 0)
		return xstrdup(name);
	return xasprintf("%s (sandbox %s)", name, sandbox[0] ? sandbox : "that was removed");
}

static void note_scan(struct report *r, struct part *part, const json_t *answer)
{
	const json_t *f;
	size_t i;

	r->values = api_int(answer, "values");
	r->left_out = api_int(answer, "left_out");
	part->n_files++;
	part->bytes += api_int(answer, "bytes");
	part->control += api_int(answer, "control");
	json_array_foreach (json_object_get(answer, "credentials"), i, f) {
		AUTO_FREE char *label = label_of(f);
		long long times = json_integer_value(json_object_get(part->found, label));

		json_object_set_new(part->found, label, json_integer(times + api_int(f, "times")));
	}
}

static int scan_fd(struct report *r, struct part *part, int fd, struct problem *p)
{
	AUTO_FREE char *quoted = r->control ? api_quote(r->control) : xstrdup("");
	AUTO_FREE char *path =
		xasprintf("/v1/secrets/scan%s%s", r->control ? "?control=" : "", quoted);
	AUTO_JSON json_t *answer = NULL;
	int status = api_call_passing("POST", path, NULL, fd, SCAN_TIMEOUT_MS, &answer, p);

	if (status == 0)
		note_scan(r, part, answer);
	return status;
}

/* ---- a file or a stream ---- */

static int open_file(const char *name, struct problem *p)
{
	struct stat st;
	int fd;

	if (strcmp(name, "-") == 0) {
		if (isatty(STDIN_FILENO)) {
			(void)err_set(&p->err, -EINVAL, "missing FILE, - or --sandbox");
			return problem_usage(p, -EINVAL, "secret scan");
		}
		fd = dup(STDIN_FILENO);
	} else {
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (fd < 0)
		return err_errno(&p->err, -errno, "cannot open %s", name);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)close(fd);
		(void)err_set(&p->err, -EISDIR, "%s is a directory", name);
		return problem_hint(p, -EISDIR, "tar c %s | sbx secret scan -", name);
	}
	return fd;
}

static int scan_file(struct report *r, const char *name, struct problem *p)
{
	AUTO_CLOSE int fd = open_file(name, p);

	return fd < 0 ? fd : scan_fd(r, add_part(r, "file"), fd, p);
}

/* ---- a sandbox ---- */

static int scan_one(void *arg, enum scan_place place, int fd, struct problem *p)
{
	struct report *r = arg;

	return scan_fd(r, &r->part[r->n_parts - 1], fd, p);
}

static int scan_sandbox(struct report *r, const char *name, const char *what, struct problem *p)
{
	AUTO_JSON json_t *sandbox = NULL;
	unsigned places = SCAN_USUAL;
	int status = what ? scan_place_parse(what, &places, p) : 0;

	if (status < 0)
		return problem_usage(p, status, "secret scan");
	status = sandbox_get(name, &sandbox, p);
	/* a stopped sandbox has no memory, which is an error only if requested */
	if (status == 0 && !what && api_int(sandbox, "qemu_pid") <= 0)
		places &= ~(1U << SCAN_RAM);
	for (enum scan_place i = 0; status == 0 && i < SCAN_N_PLACES; i++) {
		if (!(places & 1U << i))
			continue;
		(void)add_part(r, scan_place_name(i));
		status = scan_place_each(sandbox, i, scan_one, r, p);
	}
	return status;
}

/* ---- output ---- */

static json_t *part_to_json(const struct part *part)
{
	return json_pack("{s:s,s:i,s:I,s:I,s:I,s:O}", "what", part->what, "files",
		(int)part->n_files, "bytes", (json_int_t)part->bytes, "found",
		(json_int_t)json_object_size(part->found), "control", (json_int_t)part->control,
		"credentials", part->found);
}

static size_t n_found(const struct report *r, json_t **ret_names)
{
	json_t *all = json_object();
	size_t n;

	for (size_t i = 0; i < r->n_parts; i++)
		(void)json_object_update(all, r->part[i].found);
	n = json_object_size(all);
	*ret_names = all;
	return n;
}

static void print_json(const struct report *r, const char *sandbox, size_t found, long long bytes,
	long long control)
{
	AUTO_JSON json_t *whole = NULL;
	json_t *places = json_array();

	for (size_t i = 0; i < r->n_parts; i++)
		json_array_append_new(places, part_to_json(&r->part[i]));
	whole = json_pack("{s:s?,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "sandbox", sandbox, "values",
		(json_int_t)r->values, "left_out", (json_int_t)r->left_out, "found",
		(json_int_t)found, "control", (json_int_t)control, "bytes", (json_int_t)bytes, "ms",
		(json_int_t)(clock_mono_ms() - r->began_ms), "places", places);
	api_print(whole);
}

static char *found_text(const struct part *part)
{
	char *text = NULL;
	const char *name;
	json_t *times;

	json_object_foreach (part->found, name, times) {
		char *longer = xasprintf("%s%s%s x%lld", text ? text : "", text ? ", " : "", name,
			(long long)json_integer_value(times));

		free(text);
		text = longer;
	}
	return text ? text : xstrdup("nothing");
}

static void print_table(const struct report *r)
{
	static const char *const heading[] = {"PLACE", "FILES", "MIB", "FOUND"};
	struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < r->n_parts; i++) {
		const struct part *part = &r->part[i];
		AUTO_FREE char *found = found_text(part);
		char files[16], mib[32];

		(void)snprintf(files, sizeof(files), "%u", part->n_files);
		(void)snprintf(mib, sizeof(mib), "%.1f", (double)part->bytes / (1 << 20));
		const char *const cells[] = {part->what, files, mib, found};

		table_add(&t, cells);
	}
	table_print(&t);
	table_done(&t);
}

static int conclude_scan(const struct report *r, size_t found, long long control, bool json)
{
	if (!json)
		printf("Searched for %lld credentials, found %zu\n", r->values, found);
	(void)fflush(stdout);
	if (r->values == 0 && !json)
		ui_note("The vault contains no values to search for.");
	if (r->left_out)
		ui_warning(
			"%lld credentials were skipped: shorter than %d characters, or their program was not run",
			r->left_out, VAULT_MIN_CONTROL);
	if (r->control && r->values && !control) {
		ui_warning("the control text was not found: check --what and --sandbox");
		return EXIT_FAILED;
	}
	return found ? EXIT_FAILED : EXIT_OK;
}

static int say_scan(const struct report *r, const char *sandbox, bool json)
{
	AUTO_JSON json_t *all = NULL;
	long long bytes = 0, control = 0;
	size_t found = n_found(r, &all);

	for (size_t i = 0; i < r->n_parts; i++) {
		bytes += r->part[i].bytes;
		control += r->part[i].control;
	}
	if (json)
		print_json(r, sandbox, found, bytes, control);
	else
		print_table(r);
	return conclude_scan(r, found, control, json);
}

static int check_args(const struct opts *o, struct problem *p)
{
	const char *control = opts_value(o, "control");

	if (control && (!control[0] || !vault_control_is_good(control)))
		(void)err_set(&p->err, -EINVAL,
			"invalid --control: expected %d to %d printable characters",
			VAULT_MIN_CONTROL, VAULT_MAX_CONTROL);
	else if (opts_has(o, "sandbox") && o->args.n)
		(void)err_set(&p->err, -EINVAL, "FILE and --sandbox are mutually exclusive");
	else if (opts_has(o, "what") && !opts_has(o, "sandbox"))
		(void)err_set(&p->err, -EINVAL, "--what requires --sandbox");
	else
		return 0;
	return problem_usage(p, -EINVAL, "secret scan");
}

int secret_scan_run(struct opts *o)
{
	AUTO_REPORT struct report r = {
		.control = opts_value(o, "control"), .began_ms = clock_mono_ms()};
	const char *sandbox = opts_value(o, "sandbox");
	struct problem p = {0};
	int status = check_args(o, &p);

	if (status == 0)
		status = sandbox ? scan_sandbox(&r, sandbox, opts_value(o, "what"), &p)
				 : scan_file(&r, o->args.n ? o->args.v[0] : "-", &p);
	return status < 0 ? ui_problem(&p, status) : say_scan(&r, sandbox, opts_has(o, "json"));
}
