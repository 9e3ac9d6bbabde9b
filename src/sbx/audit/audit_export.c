/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_export.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/mem.h"

#define KEY_BEFORE "{\"sbx_audit_export\":1,\"key\":\""
#define KEY_AFTER "\"}\n"
#define KEY_LINE (sizeof(KEY_BEFORE) - 1 + (size_t)2 * AUDIT_KEY_LEN + sizeof(KEY_AFTER) - 1)

struct check {
	const struct audit_pub *pub;
	audit_export_fn *fn;
	void *arg;
	struct audit_chain chain;
	bool is_open; /* a log is being checked */
	char id[AUDIT_MAX_WORD + 1], name[AUDIT_MAX_NAME + 1];
	struct audit_record rec;
};

void audit_export_print_key(const struct audit_pub *pub, FILE *out)
{
	char hex[2 * AUDIT_KEY_LEN + 1] = "";

	hex_encode(pub->b, AUDIT_KEY_LEN, hex);
	(void)fprintf(out, KEY_BEFORE "%s" KEY_AFTER, hex);
}

static int read_key(FILE *in, struct audit_pub *ret, struct err *err)
{
	char line[KEY_LINE];
	size_t before = sizeof(KEY_BEFORE) - 1, after = KEY_LINE - (sizeof(KEY_AFTER) - 1);

	if (fread(line, 1, KEY_LINE, in) != KEY_LINE || memcmp(line, KEY_BEFORE, before) != 0 ||
		memcmp(line + after, KEY_AFTER, KEY_LINE - after) != 0 ||
		hex_decode(slice_of(line + before, (size_t)2 * AUDIT_KEY_LEN), ret->b) < 0)
		return err_set(err, -EINVAL,
			"not an export: the first line does not contain the public key");
	return 0;
}

static int end_log(struct check *c)
{
	int r;

	if (!c->is_open)
		return 0;
	c->is_open = false;
	r = audit_chain_end(&c->chain); /* the report has the error */
	if (r == 0 || r == -EBADMSG)
		r = c->fn(c->arg, c->id, c->name, &c->chain.report);
	audit_chain_done(&c->chain);
	return r;
}

/* `cut` is the line before a pruned log, p is NULL for a complete one. */
static int begin_log(struct check *c, const struct audit_record *rec, struct slice cut)
{
	struct audit_expect expect = {.pub = c->pub, .flags = AUDIT_CHAIN_ALONE, .cut = cut};
	struct audit_cut named;
	int r = end_log(c);

	if (r < 0)
		return r;
	c->id[0] = c->name[0] = '\0';
	if (rec)
		(void)snprintf(c->id, sizeof(c->id), "%.*s", (int)rec->sandbox.n,
			(const char *)rec->sandbox.p);
	if (cut.p && audit_cut_decode(cut, &named) == 0)
		(void)snprintf(c->id, sizeof(c->id), "%s", named.sandbox);
	audit_chain_init(&c->chain, &expect);
	c->is_open = true;
	return cut.p ? 0 : audit_chain_segment(&c->chain, 1);
}

/* An invalid record is passed to the chain, which reports it. */
static int take_line(struct check *c, struct slice line)
{
	static const size_t n_begin = sizeof(AUDIT_CUT_BEGIN) - 1;
	const struct audit_record *rec = audit_record_decode(line, &c->rec) == 0 ? &c->rec : NULL;
	int r = 0;

	if (line.n > n_begin && memcmp(line.p, AUDIT_CUT_BEGIN, n_begin) == 0)
		return begin_log(c, NULL, line);
	if (!c->is_open || (rec && rec->ev.kind == AUDIT_KIND_OPEN))
		r = begin_log(c, rec, (struct slice){0});
	if (r == 0 && rec && rec->ev.kind == AUDIT_KIND_SEGMENT)
		r = audit_chain_segment(&c->chain, rec->segment);
	if (r == 0)
		r = audit_chain_eat(&c->chain, line);
	if (rec)
		(void)snprintf(c->name, sizeof(c->name), "%.*s", (int)rec->name.n,
			(const char *)rec->name.p);
	return r == -EBADMSG ? 0 : r; /* reported at the end of the log */
}

static int check_lines(struct check *c, FILE *in, struct err *err)
{
	AUTO_FREE char *buf = xmalloc(AUDIT_MAX_RECORD + 1);
	int r = 0;

	/* A line longer than a record is read in pieces, and the chain rejects it. */
	while (r >= 0 && fgets(buf, AUDIT_MAX_RECORD + 1, in))
		r = take_line(c, slice_from_str(buf));
	if (r >= 0 && ferror(in))
		r = err_errno(err, -EIO, "cannot read the export");
	if (r >= 0)
		return end_log(c);
	if (c->is_open)
		audit_chain_done(&c->chain);
	return r;
}

int audit_export_check(FILE *in, const struct audit_pub *pub, struct audit_pub *ret_pub,
	audit_export_fn *fn, void *arg, struct err *err)
{
	AUTO_FREE struct check *c = xcalloc(1, sizeof(*c));
	int r = read_key(in, ret_pub, err);

	if (r < 0)
		return r;
	c->pub = pub ? pub : ret_pub;
	c->fn = fn;
	c->arg = arg;
	return check_lines(c, in, err);
}
