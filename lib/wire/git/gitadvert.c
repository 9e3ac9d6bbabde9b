/* SPDX-License-Identifier: Apache-2.0 */
#include "gitadvert.h"

#include <errno.h>

#define SERVICE "# service=git-receive-pack"
#define SHA256_TEXT                                                               \
	"ERR sbx: this repository has SHA-256 object names, and sbx cannot read " \
	"pushes to it; use a repository with SHA-1 names\n"

bool gitadvert_passes(struct slice capability)
{
	static const char *const names[] = {"report-status", "report-status-v2", "delete-refs",
		"side-band-64k", "quiet", "atomic", "ofs-delta", "no-thin", "object-format=sha1",
		"agent=", "session-id="};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (gitcap_is(capability, names[i]))
			return true;
	return false;
}

void gitadvert_init(struct gitadvert *a)
{
	pktline_init(&a->line);
	a->phase = GITADVERT_SERVICE;
	a->has_version = false;
}

static struct slice without_newline(struct slice s)
{
	return s.n > 0 && s.p[s.n - 1] == '\n' ? slice_of(s.p, s.n - 1) : s;
}

/* "OID NAME" without the capabilities. */
static bool is_ref(struct slice line)
{
	struct git_oid oid;

	return line.n > GITOID_HEX + 1 && gitoid_parse(slice_of(line.p, GITOID_HEX), &oid) &&
	       line.p[GITOID_HEX] == ' ' && !memchr(line.p, 0, line.n);
}

static bool has_other_hash(struct slice list)
{
	struct slice word;

	while ((word = gitcap_next(&list)).n > 0)
		if (gitcap_is(word, "object-format=") && !gitcap_is(word, "object-format=sha1"))
			return true;
	return false;
}

/* The line can only become 8 bytes longer, which is checked before. */
static void put_first(struct slice ref, struct slice list, pktline_out *out, void *arg)
{
	uint8_t buf[PKTLINE_MAX_DATA];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice word;

	wr_bytes(&wr, ref);
	wr_u8(&wr, 0);
	wr_bytes(&wr, slice_from_str("no-thin"));
	while ((word = gitcap_next(&list)).n > 0) {
		if (!gitadvert_passes(word) || slice_eq_str(word, "no-thin"))
			continue;
		wr_u8(&wr, ' ');
		wr_bytes(&wr, word);
	}
	wr_u8(&wr, '\n');
	if (!wr.bad)
		pktline_put(out, arg, slice_of(buf, wr.n));
}

static int write_error(struct gitadvert *a, const char *text, pktline_out *out, void *arg)
{
	pktline_put(out, arg, slice_from_str(text));
	pktline_mark(out, arg, PKTLINE_FLUSH);
	a->phase = GITADVERT_REFUSED;
	return 0;
}

static int read_first(
	struct gitadvert *a, struct slice line, pktline_out *out, void *arg, struct err *err)
{
	const uint8_t *nul = memchr(line.p, 0, line.n);
	struct slice ref, list;

	if (!a->has_version && slice_eq_str(without_newline(line), "version 1")) {
		a->has_version = true;
		pktline_put(out, arg, line);
		return 0;
	}
	if (line.n > 4 && memcmp(line.p, "ERR ", 4) == 0) {
		pktline_put(out, arg, line);
		a->phase = GITADVERT_DONE;
		return 0;
	}
	/* The ids of such a repository have 64 digits: this is before the check of the id. */
	if (nul && has_other_hash(slice_of(nul + 1, (size_t)(line.p + line.n - nul) - 1)))
		return write_error(a, SHA256_TEXT, out, arg);
	if (!nul || line.n + 16 > PKTLINE_MAX_DATA)
		return err_set(err, -EBADMSG, "the first ref of the server has no capabilities");
	ref = slice_of(line.p, (size_t)(nul - line.p));
	list = slice_of(nul + 1, line.n - ref.n - 1);
	if (!is_ref(ref) || memchr(list.p, 0, list.n))
		return err_set(err, -EBADMSG, "the first ref of the server is malformed");
	put_first(ref, list, out, arg);
	a->phase = GITADVERT_REFS;
	return 0;
}

static int read_line(
	struct gitadvert *a, struct slice line, pktline_out *out, void *arg, struct err *err)
{
	if (a->phase == GITADVERT_FIRST)
		return read_first(a, line, out, arg, err);
	if (a->phase == GITADVERT_SERVICE && slice_eq_str(without_newline(line), SERVICE))
		a->phase = GITADVERT_FLUSH;
	else if (a->phase != GITADVERT_REFS || !is_ref(without_newline(line)))
		return err_set(err, -EBADMSG, "the server sent an unexpected line");
	pktline_put(out, arg, line);
	return 0;
}

static int read_flush(struct gitadvert *a, pktline_out *out, void *arg, struct err *err)
{
	if (a->phase == GITADVERT_FLUSH)
		a->phase = GITADVERT_FIRST;
	else if (a->phase == GITADVERT_REFS)
		a->phase = GITADVERT_DONE;
	else if (a->phase != GITADVERT_DONE)
		return err_set(err, -EBADMSG, "the server sent an unexpected flush");
	pktline_mark(out, arg, PKTLINE_FLUSH);
	return 0;
}

int gitadvert_read(
	struct gitadvert *a, struct slice in, pktline_out *out, void *arg, struct err *err)
{
	struct slice line;
	int r = 0;

	while (r == 0 && a->phase != GITADVERT_REFUSED) {
		int event = pktline_read(&a->line, &in, &line);

		if (event == PKTLINE_MORE)
			return 0;
		if (event == PKTLINE_DATA)
			r = read_line(a, line, out, arg, err);
		else if (event == PKTLINE_FLUSH)
			r = read_flush(a, out, arg, err);
		else
			r = err_set(err, -EBADMSG, "the server sent a wrong line length");
	}
	a->line.bad |= r < 0;
	return r;
}

int gitadvert_end(const struct gitadvert *a)
{
	bool done = a->phase == GITADVERT_REFUSED ||
		    (a->phase == GITADVERT_DONE && pktline_is_between(&a->line));

	return done ? 0 : -EBADMSG;
}
