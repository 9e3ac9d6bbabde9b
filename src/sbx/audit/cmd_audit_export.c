/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/rules/audit/audit_crypto.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "audit_cmd.h"
#include "audit_export.h"
#include "audit_logs.h"
#include "ship.h"
#include "lib/client/api/out_place.h"

struct sink {
	FILE *out;
	const char *dir;
	char id[AUDIT_MAX_WORD + 1]; /* of the log that is being written */
	uint64_t n;
};

/* A pruned log begins with its cut, otherwise it could not be verified. */
static int put_cut(struct sink *s, const struct audit_record *rec)
{
	AUTO_FREE char *line = NULL;
	struct audit_cut cut;
	size_t n = 0;

	if (slice_to_cstr(rec->sandbox, s->id, sizeof(s->id)) < 0 ||
		rec->ev.kind != AUDIT_KIND_SEGMENT)
		return 0;
	if (audit_cut_load(s->dir, s->id, &line, &n, NULL) < 0)
		return 0;
	if (audit_cut_decode(slice_of(line, n), &cut) < 0 || cut.segment != rec->segment)
		return -ESTALE;
	return fwrite(line, 1, n, s->out) == n ? 0 : -errno;
}

static int on_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct sink *s = arg;
	int r = slice_eq_str(rec->sandbox, s->id) ? 0 : put_cut(s, rec);

	if (r < 0)
		return r;
	s->n++;
	return fwrite(line.p, 1, line.n, s->out) == line.n ? 0 : -errno;
}

static int export_logs(struct audit_logs *l, FILE *out, uint64_t *ret_n, struct problem *p)
{
	struct sink s = {.out = out, .dir = audit_logs_dir(l)};
	struct audit_pub pub;
	int r = audit_pub_load(audit_logs_dir(l), &pub, &p->err);

	if (r < 0)
		return r;
	audit_export_print_key(&pub, out);
	r = audit_logs_read(l, on_record, &s, p);
	*ret_n = s.n;
	if (r == -ESTALE)
		return err_set(&p->err, r,
			"the audit log of %s was pruned while it was exported\n"
			"  try: sbx audit export %s",
			s.id, s.id);
	if (r >= 0 && fflush(out) != 0)
		r = err_errno(&p->err, -errno, "cannot write the export");
	return r;
}

/* Written completely or not at all. */
static int to_file(struct audit_logs *l, const char *path, struct problem *p)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	FILE *out = NULL;
	uint64_t n = 0;
	int r = out_place_find(path, &place, p);

	if (r >= 0)
		r = file_new_open(&f, place.path, &p->err);
	if (r >= 0)
		out = fdopen(dup(f.fd), "w");
	if (!out)
		return r < 0 ? r : err_errno(&p->err, -errno, "cannot open %s", path);
	r = export_logs(l, out, &n, p);
	if (fclose(out) != 0 && r >= 0)
		r = err_errno(&p->err, -errno, "cannot write %s", path);
	if (r >= 0)
		r = file_new_keep(&f, 0600, &p->err);
	if (r >= 0)
		ui_note("Wrote %llu records of %zu logs to %s", (unsigned long long)n,
			audit_logs_n(l), path);
	return r;
}

/* ---- --follow ---- */

static int check_follow(const struct opts *o, struct err *err)
{
	static const char *const needs[] = {"position", "heads"};

	for (size_t i = 0; i < ARRAY_LEN(needs) && !opts_has(o, "follow"); i++)
		if (opts_has(o, needs[i]))
			return err_set(err, -EINVAL, "--%s requires --follow", needs[i]);
	if (o->has_rest && !opts_has(o, "follow"))
		return err_set(err, -EINVAL, "a command requires --follow");
	if (o->has_rest && !o->rest.n)
		return err_set(err, -EINVAL, "-- requires a command");
	if (opts_has(o, "follow") && opts_has(o, "output"))
		return err_set(
			err, -EINVAL, "--follow writes to stdout or to a command, not to --output");
	return 0;
}

static int follow_logs(struct opts *o, struct problem *p)
{
	unsigned flags = AUDIT_LOGS_FOLLOW | (o->has_rest ? AUDIT_LOGS_SILENT : 0);
	const char *ref = o->args.n ? o->args.v[0] : NULL;
	AUTO_LOGS struct audit_logs *l = NULL;
	struct audit_pub pub;
	struct ship_options so = {.position = opts_value(o, "position"),
		.argv = o->has_rest ? o->rest.v : NULL,
		.heads = opts_has(o, "heads"),
		.pub = &pub};
	struct ship *s = NULL;
	int r = audit_logs_open(ref, flags, &l, p);

	if (r == 0)
		r = audit_pub_load(audit_logs_dir(l), &pub, &p->err);
	if (r < 0)
		return r;
	so.dir = audit_logs_dir(l);
	r = ship_open(&so, &s, &p->err);
	if (r < 0)
		return r;
	audit_logs_on_pass(l, ship_pass);
	r = audit_logs_follow(l, ship_record, s, p);
	if (r < 0 && ship_error(s)->text[0])
		p->err = *ship_error(s);
	ship_close(s);
	return r;
}

int audit_cmd_export(struct opts *o)
{
	const char *ref = o->args.n ? o->args.v[0] : NULL, *file = opts_value(o, "output");
	AUTO_LOGS struct audit_logs *l = NULL;
	struct problem p = {0};
	uint64_t n = 0;
	int r = check_follow(o, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "audit export"));
	if (opts_has(o, "follow")) {
		r = follow_logs(o, &p);
		return r < 0 && r != -EPIPE ? ui_problem(&p, r) : EXIT_OK;
	}
	r = audit_logs_open(ref, 0, &l, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (audit_logs_n(l) == 0) {
		ui_note("nothing to export: no audit logs found");
		return EXIT_OK;
	}
	r = file ? to_file(l, file, &p) : export_logs(l, stdout, &n, &p);
	return r < 0 && r != -EPIPE ? ui_problem(&p, r) : EXIT_OK;
}
