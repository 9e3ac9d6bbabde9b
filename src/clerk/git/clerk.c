/* SPDX-License-Identifier: Apache-2.0 */
#include "clerk_internal.h"

#include <errno.h>
#include "lib/base/mem.h"

#define MAX_LINES (2u << 20) /* more than GITCOMMANDS_MAX refs of GITREF_MAX bytes */
#define MAX_OBJECTS 1000000
#define MAX_WORK (UINT64_C(4) << 30)

struct clerk *clerk_new(const struct clerk_config *config, const struct clerk_sink *sink)
{
	struct clerk *c = xcalloc(1, sizeof(*c));

	c->config = *config;
	c->config.max_bytes = MIN(c->config.max_bytes, GITPACK_MAX_BYTES);
	c->sink = *sink;
	gitcommands_init(&c->commands);
	return c;
}

void clerk_free(struct clerk **cc)
{
	struct clerk *c = *cc;

	if (!c)
		return;
	gitpush_free(&c->push);
	gitpack_free(&c->pack);
	gitpack_free(&c->answer);
	gitcommands_done(&c->commands);
	autorun_free(&c->list);
	free(c->lines);
	free(c);
	*cc = NULL;
}

int clerk_set_list(struct clerk *c, struct slice text, struct err *err)
{
	autorun_free(&c->list);
	return autorun_parse((const char *)text.p, text.n, &c->list, err);
}

static void end_unknown(struct clerk *c, const struct err *err)
{
	if (c->judged)
		return;
	c->judged = true;
	c->sink.unknown(c->sink.arg, err->text);
	c->sink.judged(c->sink.arg);
}

static struct gitpack *new_pack(const struct clerk *c)
{
	return gitpack_new(&(struct gitpack_limits){
		.bytes = c->config.max_bytes, .objects = MAX_OBJECTS, .work = MAX_WORK});
}

static int read_commands(struct clerk *c, struct slice *bytes, struct err *err)
{
	struct slice lines = *bytes;
	int r = gitcommands_read(&c->commands, bytes, err);

	if (r < 0)
		return r;
	lines.n -= bytes->n;
	if (lines.n > MAX_LINES - c->n_lines)
		return err_set(err, -E2BIG, "the list of refs is too long");
	if (lines.n == 0)
		return r;
	c->lines = xrealloc(c->lines, c->n_lines + lines.n);
	memcpy(c->lines + c->n_lines, lines.p, lines.n);
	c->n_lines += lines.n;
	return r;
}

static int take_body(struct clerk *c, struct slice bytes, struct err *err)
{
	int r = GITCOMMANDS_DONE;

	if (!c->has_commands)
		r = read_commands(c, &bytes, err);
	if (r < 0)
		return r;
	c->has_commands = r != GITCOMMANDS_MORE;
	if (bytes.n == 0)
		return 0;
	if (r == GITCOMMANDS_PROBE)
		return err_set(err, -EBADMSG, "the push has a pack and no commands");
	if (!c->pack)
		c->pack = new_pack(c);
	return gitpack_put(c->pack, bytes, err);
}

void clerk_body(struct clerk *c, struct slice bytes)
{
	struct err err = {0};

	if (!c->judged && take_body(c, bytes, &err) < 0)
		end_unknown(c, &err);
}

/* ---- judging ---- */

struct text {
	uint8_t bytes[GITPUSH_MAX_WANTS * 64 + 512];
	struct wr wr;
};

static void append_text(void *arg, struct slice bytes)
{
	wr_bytes(&((struct text *)arg)->wr, bytes);
}

static void request_need(struct clerk *c)
{
	struct text t;

	t.wr = wr_init(t.bytes, sizeof(t.bytes));
	gitfetch_request(&c->need, append_text, &t);
	gitpack_free(&c->answer);
	if (c->need.kind != GITPUSH_HEAD)
		c->answer = new_pack(c);
	gitfetch_init(&c->fetch, c->need.kind, c->answer);
	c->answer_failed = false;
	c->sink.request(c->sink.arg, slice_of(t.bytes, t.wr.n));
}

static void judge_push(struct clerk *c)
{
	struct err err = {0};
	int r = gitpush_judge(c->push, &c->need, &err);

	/* no rule needs the files */
	if (r < 0 && c->config.files && !c->config.paths) {
		c->config.files = false;
		gitpush_drop_paths(c->push);
		r = gitpush_judge(c->push, &c->need, &err);
	}
	if (r == GITPUSH_NEED) {
		request_need(c);
		return;
	}
	if (r < 0) {
		end_unknown(c, &err);
		return;
	}
	c->judged = true;
	effects_put(c);
	preview_put(c);
	c->sink.judged(c->sink.arg);
}

static bool only_deletes(const struct gitcommands *commands)
{
	for (unsigned i = 0; i < commands->n; i++)
		if (!gitcommand_is_delete(&commands->list[i]))
			return false;
	return true;
}

static int check_whole(struct clerk *c, struct err *err)
{
	if (!c->has_commands)
		return err_set(err, -EBADMSG, "the push was cut off");
	if (c->pack)
		return gitpack_index(c->pack, err);
	/* git sends an empty pack even if the server has every object */
	if (!only_deletes(&c->commands))
		return err_set(err, -EBADMSG, "the push has no pack");
	return 0;
}

void clerk_end(struct clerk *c)
{
	struct err err = {0};

	if (c->judged)
		return;
	if (check_whole(c, &err) < 0) {
		end_unknown(c, &err);
		return;
	}
	c->push = gitpush_new(&c->commands, TAKE(c->pack), c->config.paths || c->config.files);
	judge_push(c);
}

/* ---- the server's answers ---- */

void clerk_answer(struct clerk *c, struct slice bytes)
{
	if (c->push && !c->judged && !c->answer_failed)
		c->answer_failed = gitfetch_read(&c->fetch, bytes, NULL) < 0;
}

void clerk_answer_end(struct clerk *c, bool complete)
{
	struct err err = {0};
	bool good;

	if (!c->push || c->judged)
		return;
	good = complete && !c->answer_failed && gitfetch_end(&c->fetch) == 0;
	if (c->need.kind != GITPUSH_HEAD) {
		good = good && gitpack_index(c->answer, NULL) == 0;
		if (!good)
			gitpack_free(&c->answer);
		gitpush_supply(c->push, TAKE(c->answer));
	} else if (good) {
		gitpush_set_head(c->push, c->fetch.has_head ? &c->fetch.head : NULL);
	} else {
		(void)err_set(&err, -EBADMSG, "the server's default branch could not be read");
		end_unknown(c, &err);
		return;
	}
	judge_push(c);
}

struct slice clerk_lines(const struct clerk *c)
{
	return slice_of(c->lines, c->n_lines);
}

struct slice clerk_pack(const struct clerk *c)
{
	return c->push ? gitpush_pack(c->push) : slice_of(NULL, 0);
}

void clerk_hash(const struct clerk *c, uint8_t ret[SHA256_BYTES])
{
	struct sha256 hash;

	sha256_begin(&hash);
	for (unsigned i = 0; i < c->commands.n; i++) {
		const struct gitcommand *one = &c->commands.list[i];

		sha256_add(&hash, slice_of(one->old.b, GITOID_BYTES));
		sha256_add(&hash, slice_of(one->new.b, GITOID_BYTES));
		sha256_add(&hash, slice_of(one->name, strlen(one->name) + 1));
	}
	sha256_end(&hash, ret);
}

int clerk_refuse(
	const struct clerk *c, const char *text, const char *why, pktline_out *out, void *arg)
{
	const char *all[GITCOMMANDS_MAX];

	for (unsigned i = 0; i < c->commands.n; i++)
		all[i] = why;
	return gitreport_refuse(&c->commands, text, all, out, arg);
}
