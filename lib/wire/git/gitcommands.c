/* SPDX-License-Identifier: Apache-2.0 */
#include "gitcommands.h"

#include <errno.h>
#include <stdio.h>
#include "gitadvert.h"
#include "lib/base/mem.h"

/* OID, space, OID, space */
#define NAME_AT (2 * (GITOID_HEX + 1))

void gitcommands_init(struct gitcommands *c)
{
	pktline_init(&c->line);
	c->n = 0;
	c->done = c->has_report = c->has_band = false;
}

void gitcommands_done(struct gitcommands *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free(c->list[i].name);
	gitcommands_init(c);
}

static bool line_starts(struct slice line, const char *word)
{
	size_t n = strlen(word);

	return line.n >= n && memcmp(line.p, word, n) == 0;
}

static int read_capability(struct gitcommands *c, struct slice word, struct err *err)
{
	if (gitcap_is(word, "push-options"))
		return err_set(err, -ENOTSUP, "push options are not supported");
	if (gitcap_is(word, "object-format=") && !gitcap_is(word, "object-format=sha1"))
		return err_set(err, -ENOTSUP, "SHA-256 object names are not supported");
	if (!gitadvert_passes(word))
		return err_set(err, -ENOTSUP, "the push uses a capability that was not offered");
	c->has_report |= gitcap_is(word, "report-status") || gitcap_is(word, "report-status-v2");
	c->has_band |= gitcap_is(word, "side-band-64k");
	return 0;
}

static int read_capabilities(struct gitcommands *c, struct slice list, struct err *err)
{
	struct slice word;
	int r = 0;

	if (memchr(list.p, 0, list.n))
		return err_set(err, -EBADMSG, "the list of capabilities is malformed");
	while (r == 0 && (word = gitcap_next(&list)).n > 0)
		r = read_capability(c, word, err);
	return r;
}

static bool has_name(const struct gitcommands *c, struct slice name)
{
	for (unsigned i = 0; i < c->n; i++)
		if (slice_eq_str(name, c->list[i].name))
			return true;
	return false;
}

static int read_command(struct gitcommands *c, struct slice line, struct err *err)
{
	struct gitcommand *to = &c->list[c->n];
	struct slice name;

	if (line.n > 0 && line.p[line.n - 1] == '\n')
		line.n--;
	if (line.n <= NAME_AT || line.p[GITOID_HEX] != ' ' || line.p[NAME_AT - 1] != ' ' ||
		!gitoid_parse(slice_of(line.p, GITOID_HEX), &to->old) ||
		!gitoid_parse(slice_of(line.p + GITOID_HEX + 1, GITOID_HEX), &to->new))
		return err_set(err, -EBADMSG, "a command of the push is malformed");
	name = slice_of(line.p + NAME_AT, line.n - NAME_AT);
	if (!gitref_is_valid(name))
		return err_set(err, -EBADMSG, "the push names an invalid ref");
	if (gitcommand_is_create(to) && gitcommand_is_delete(to))
		return err_set(err, -EBADMSG, "a command has neither an old nor a new object");
	if (has_name(c, name))
		return err_set(err, -EBADMSG, "the push names a ref twice");
	to->name = slice_dup(name);
	c->n++;
	return 0;
}

static int read_line(struct gitcommands *c, struct slice line, struct err *err)
{
	const uint8_t *nul = line.n > 0 ? memchr(line.p, 0, line.n) : NULL;
	int r;

	if (line_starts(line, "shallow "))
		return err_set(err, -ENOTSUP,
			"a push from a shallow clone is not supported; run: git fetch --unshallow");
	if (line_starts(line, "push-cert"))
		return err_set(err, -ENOTSUP, "signed pushes (--signed) are not supported");
	if (c->n == GITCOMMANDS_MAX)
		return err_set(err, -E2BIG, "the push has more than %d refs", GITCOMMANDS_MAX);
	if (!nul)
		return read_command(c, line, err);
	if (c->n > 0)
		return err_set(err, -EBADMSG, "a command of the push is malformed");
	r = read_capabilities(c, slice_of(nul + 1, (size_t)(line.p + line.n - nul) - 1), err);
	return r < 0 ? r : read_command(c, slice_of(line.p, (size_t)(nul - line.p)), err);
}

int gitcommands_read(struct gitcommands *c, struct slice *in, struct err *err)
{
	struct slice line;
	int r = 0;

	while (r == 0 && !c->done) {
		int event = pktline_read(&c->line, in, &line);

		if (event == PKTLINE_MORE)
			return GITCOMMANDS_MORE;
		if (event == PKTLINE_DATA)
			r = read_line(c, line, err);
		else if (event == PKTLINE_FLUSH)
			c->done = true;
		else
			r = err_set(err, -EBADMSG, "the push has a wrong line length");
	}
	c->line.bad |= r < 0;
	if (r < 0)
		return r;
	return c->n > 0 ? GITCOMMANDS_DONE : GITCOMMANDS_PROBE;
}

/* ---- the refusal ---- */

struct report {
	bool has_band;
	pktline_out *out;
	void *arg;
};

/* One line of the report, which is a line of its own inside side-band 1. */
static void put_status(const struct report *to, const char *text)
{
	size_t n = strlen(text);
	char buf[GITREF_MAX + 512];

	n = MIN(n, sizeof(buf) - 5);
	(void)snprintf(buf, sizeof(buf), "%04zx%.*s", n + 4, (int)n, text);
	if (to->has_band)
		pktline_band(to->out, to->arg, 1, slice_of(buf, n + 4));
	else
		to->out(to->arg, slice_of(buf, n + 4));
}

static void put_text(const struct report *to, const char *text)
{
	struct slice rest = slice_from_str(text);

	while (rest.n > 0)
		pktline_band(to->out, to->arg, 2, slice_take(&rest, 900));
}

int gitreport_refuse(const struct gitcommands *c, const char *text, const char *const *why,
	pktline_out *out, void *arg)
{
	struct report to = {.has_band = c->has_band, .out = out, .arg = arg};

	if (!c->has_report)
		return -ENOTSUP;
	if (c->has_band)
		put_text(&to, text);
	put_status(&to, "unpack ok\n");
	for (unsigned i = 0; i < c->n; i++) {
		char line[GITREF_MAX + 400];

		(void)snprintf(line, sizeof(line), "ng %s %.300s\n", c->list[i].name, why[i]);
		put_status(&to, line);
	}
	if (c->has_band)
		pktline_band(out, arg, 1, slice_of("0000", 4));
	pktline_mark(out, arg, PKTLINE_FLUSH);
	return 0;
}
