/* SPDX-License-Identifier: Apache-2.0 */
#include "gitfetch.h"

#include <errno.h>
#include <stdio.h>

struct output {
	pktline_out *out;
	void *arg;
};

static void put_line(const struct output *to, const char *word, const struct git_oid *oid)
{
	char hex[GITOID_HEX + 1] = "", line[80];
	int n;

	if (oid)
		gitoid_print(oid, hex);
	n = snprintf(line, sizeof(line), "%s%s\n", word, hex);
	pktline_put(to->out, to->arg, slice_of(line, (size_t)n));
}

static void request_head(const struct output *to)
{
	put_line(to, "command=ls-refs", NULL);
	put_line(to, "object-format=sha1", NULL);
	pktline_mark(to->out, to->arg, PKTLINE_DELIM);
	put_line(to, "ref-prefix HEAD", NULL);
	pktline_mark(to->out, to->arg, PKTLINE_FLUSH);
}

void gitfetch_request(const struct gitpush_need *need, pktline_out *out, void *arg)
{
	struct output to = {.out = out, .arg = arg};

	if (need->kind == GITPUSH_HEAD) {
		request_head(&to);
		return;
	}
	put_line(&to, "command=fetch", NULL);
	put_line(&to, "object-format=sha1", NULL);
	pktline_mark(out, arg, PKTLINE_DELIM);
	put_line(&to, "no-progress", NULL);
	put_line(&to, "ofs-delta", NULL);
	for (unsigned i = 0; i < need->n_wants; i++)
		put_line(&to, "want ", &need->want[i]);
	if (need->kind == GITPUSH_TREES)
		put_line(&to, "deepen 1", NULL);
	else
		put_line(&to, "have ", &need->have);
	if (!need->unfiltered)
		put_line(&to, need->kind == GITPUSH_TREES ? "filter blob:none" : "filter tree:0",
			NULL);
	put_line(&to, "done", NULL);
	pktline_mark(out, arg, PKTLINE_FLUSH);
}

void gitfetch_init(struct gitfetch *f, enum gitpush_need_kind kind, struct gitpack *pack)
{
	pktline_init(&f->line);
	f->phase = kind == GITPUSH_HEAD ? GITFETCH_HEAD : GITFETCH_SECTIONS;
	f->has_head = false;
	f->pack = pack;
}

static bool line_starts(struct slice line, const char *word)
{
	size_t n = strlen(word);

	return line.n >= n && memcmp(line.p, word, n) == 0;
}

/* "OID HEAD" and maybe attributes; another ref that begins with HEAD is passed over. */
static int read_head(struct gitfetch *f, struct slice line, struct err *err)
{
	struct git_oid oid;
	struct slice rest = line, word = gitcap_next(&rest);

	if (!gitoid_parse(word, &oid))
		return err_set(err, -EBADMSG, "the server's list of refs is malformed");
	if (!slice_eq_str(gitcap_next(&rest), "HEAD"))
		return 0;
	f->has_head = true;
	f->head = oid;
	return 0;
}

static int read_band(struct gitfetch *f, struct slice line, struct err *err)
{
	struct slice band = slice_take(&line, 1);

	if (band.n == 1 && *band.p == 1)
		return gitpack_put(f->pack, line, err);
	if (band.n == 1 && *band.p == 2)
		return 0;
	return err_set(err, -EBADMSG, "the server ended its answer with an error");
}

static int read_line(struct gitfetch *f, struct slice line, struct err *err)
{
	if (f->phase == GITFETCH_DONE)
		return err_set(err, -EBADMSG, "the server sent more than its answer");
	if (line_starts(line, "ERR "))
		return err_set(err, -ENOENT, "the server refused the fetch");
	if (f->phase == GITFETCH_PACK)
		return read_band(f, line, err);
	if (f->phase == GITFETCH_HEAD)
		return read_head(f, line, err);
	if (slice_eq_str(line, "packfile\n") || slice_eq_str(line, "packfile"))
		f->phase = GITFETCH_PACK;
	return 0;
}

static int read_flush(struct gitfetch *f, struct err *err)
{
	if (f->phase != GITFETCH_PACK && f->phase != GITFETCH_HEAD)
		return err_set(err, -EBADMSG, "the server sent no pack");
	f->phase = GITFETCH_DONE;
	return 0;
}

int gitfetch_read(struct gitfetch *f, struct slice in, struct err *err)
{
	struct slice line;
	int r = 0;

	while (r == 0) {
		int event = pktline_read(&f->line, &in, &line);

		if (event == PKTLINE_MORE)
			return 0;
		if (event == PKTLINE_DATA)
			r = read_line(f, line, err);
		else if (event == PKTLINE_FLUSH)
			r = read_flush(f, err);
		else if (event != PKTLINE_DELIM || f->phase != GITFETCH_SECTIONS)
			r = err_set(err, -EBADMSG, "the server sent a wrong line");
	}
	f->line.bad = true;
	return r;
}

int gitfetch_end(const struct gitfetch *f)
{
	return f->phase == GITFETCH_DONE && pktline_is_between(&f->line) ? 0 : -EBADMSG;
}
