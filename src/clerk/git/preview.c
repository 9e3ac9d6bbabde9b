/* SPDX-License-Identifier: Apache-2.0 */
/* What a person sees of a push: refs, commits, files. Text of the guest has `| ` in front and
 * control characters as their codes. */
#include "clerk_internal.h"

#include <stdio.h>
#include "lib/base/text/text.h"

#define MAX_COMMITS 10 /* of a ref */
#define LAST_LINE 80

struct preview {
	char text[CLERK_MAX_PREVIEW];
	struct wr wr;
	size_t n_left_out; /* lines */
};

/* A line that does not fit is counted. */
static void put_line(struct preview *p, const char *line)
{
	size_t n = strlen(line);

	if (p->n_left_out > 0 || p->wr.n + n + 1 + LAST_LINE > p->wr.size) {
		p->n_left_out++;
		return;
	}
	wr_bytes(&p->wr, slice_of(line, n));
	wr_u8(&p->wr, '\n');
}

static void escape_text(const char *text, char *ret, size_t size)
{
	struct slice rest = slice_from_str(text);
	struct wr wr = wr_init(ret, size - 1);

	while (rest.n > 0) {
		char code[TEXT_ESCAPE_SIZE];
		uint32_t v = 0;
		size_t n = text_character(rest, &v);

		if (n > 0 && text_is_visible(v)) {
			if (wr.n + n > wr.size)
				break;
			wr_bytes(&wr, slice_take(&rest, n));
			continue;
		}
		n = text_escape(rest, code);
		if (wr.n + strlen(code) > wr.size)
			break;
		wr_bytes(&wr, slice_from_str(code));
		(void)slice_take(&rest, n);
	}
	ret[wr.n] = 0;
}

static const char *verb_of(unsigned verbs)
{
	return verbs & GITPUSH_FORCE	? "force"
	       : verbs & GITPUSH_CREATE ? "create"
	       : verbs & GITPUSH_DELETE ? "delete"
					: "push";
}

static void put_ref(struct preview *p, const struct gitpush_ref *ref)
{
	char line[GITREF_MAX * 3 + 200], name[GITREF_MAX * 3];

	escape_text(ref->command->name, name, sizeof(name));
	if (ref->verbs & GITPUSH_DELETE)
		(void)snprintf(line, sizeof(line), "delete %s", name);
	else if (ref->has_paths)
		(void)snprintf(line, sizeof(line), "%s %s: %zu commits, %zu files",
			verb_of(ref->verbs), name, ref->n_all_commits, ref->n_paths);
	else
		(void)snprintf(line, sizeof(line), "%s %s: %zu commits", verb_of(ref->verbs), name,
			ref->n_all_commits);
	put_line(p, line);
	if (ref->verbs & GITPUSH_FORCE)
		put_line(p, "  not a fast-forward, or history that is not in the push");
}

static void put_commits(struct preview *p, const struct gitpush_ref *ref)
{
	size_t n = MIN(ref->n_commits, (size_t)MAX_COMMITS);

	for (size_t i = 0; i < n; i++) {
		char hex[GITOID_HEX + 1], author[256], subject[512], line[900];

		gitoid_print(&ref->commit[i].oid, hex);
		escape_text(ref->commit[i].author, author, sizeof(author));
		escape_text(ref->commit[i].subject, subject, sizeof(subject));
		(void)snprintf(line, sizeof(line), "  %.10s | %s | %s", hex, author, subject);
		put_line(p, line);
	}
	if (ref->n_all_commits > n) {
		char line[64];

		(void)snprintf(
			line, sizeof(line), "  and %zu more commits", ref->n_all_commits - n);
		put_line(p, line);
	}
}

static const char *mode_mark(const struct gitpush_path *path)
{
	if (path->new_mode == GITMODE_PROGRAM && path->old_mode != GITMODE_PROGRAM)
		return " (executable)";
	if (path->new_mode == GITMODE_LINK)
		return " (symbolic link)";
	return path->new_mode == GITMODE_COMMIT ? " (submodule)" : "";
}

/* Files that programs run come first, with the program. */
static void put_paths(
	struct preview *p, const struct clerk *c, const struct gitpush_ref *ref, bool marked)
{
	for (size_t i = 0; i < ref->n_paths; i++) {
		char name[900], line[1200];
		struct autorun_match match = {0};
		size_t tree;

		if (c->list)
			autorun_find(c->list, ref->path[i].path, GUARD_STRICT, &match, &tree);
		if ((match.row != NULL) != marked)
			continue;
		escape_text(ref->path[i].path, name, sizeof(name));
		(void)snprintf(line, sizeof(line), "  %c | %s%s%s%s", ref->path[i].status, name,
			mode_mark(&ref->path[i]), marked ? "  ! run by: " : "",
			marked ? match.row->program : "");
		put_line(p, line);
	}
}

void preview_put(const struct clerk *c)
{
	struct preview p = {.n_left_out = 0};

	p.wr = wr_init(p.text, sizeof(p.text));
	for (unsigned i = 0; i < c->commands.n; i++) {
		const struct gitpush_ref *ref = gitpush_ref(c->push, i);

		put_ref(&p, ref);
		put_paths(&p, c, ref, true);
		put_commits(&p, ref);
		put_paths(&p, c, ref, false);
	}
	if (p.n_left_out > 0)
		wr_printf(&p.wr, "(%zu more lines)\n", p.n_left_out);
	c->sink.preview(c->sink.arg, slice_of(p.text, p.wr.n));
}
