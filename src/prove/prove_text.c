/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "prove_probe.h"
#include "lib/client/cli/ui.h"

#define WIDTH 92

static const char *mark_text(enum prove_verdict v)
{
	return v == PROVE_PASS ? ui_tick() : v == PROVE_FAIL ? ui_cross() : "-";
}

/* A line that begins with a label, and continues below it. */
static void put_text(const char *label, const char *text)
{
	for (const char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		AUTO_FREE char *one = xstrndup(line, n);

		printf("      %-9s", line == text ? label : "");
		ui_put(one);
		(void)putchar('\n');
		line += n + (line[n] == '\n');
	}
}

/* The same, broken between words. */
static void put_words(const char *label, const char *text)
{
	AUTO_FREE char *copy = xstrdup(text);
	size_t at = 0, last = 0, start = 0;

	for (; copy[at]; at++) {
		if (copy[at] == ' ')
			last = at;
		if (at - start > WIDTH - 15 && last > start) {
			copy[last] = '\n';
			start = last + 1;
		}
	}
	put_text(label, copy);
}

static void put_line(const struct prove_result *r)
{
	printf("  %s %-28s ", mark_text(r->verdict), r->id);
	ui_put(r->title);
	if (r->verdict == PROVE_SKIP) {
		printf(" — skipped: ");
		ui_put(r->why);
	}
	(void)putchar('\n');
}

/* The reason is the last line of its part: it is printed once. */
static void put_part(const char *label, const char *text, const struct prove_result *r)
{
	size_t n = strlen(text), why = strlen(r->why);
	AUTO_FREE char *rest = NULL;

	if (r->verdict == PROVE_FAIL && why > 0 && n >= why &&
		strcmp(text + n - why, r->why) == 0 && (n == why || text[n - why - 1] == '\n'))
		n -= why;
	rest = xstrndup(text, n);
	put_text(label, rest);
}

static void put_details(const struct prove_result *r)
{
	put_words("tried", r->tried);
	put_part("inside", r->inside, r);
	put_part("outside", r->outside, r);
	if (r->why[0])
		put_words(r->verdict == PROVE_FAIL ? "WHY" : "why", r->why);
	put_words("means", r->means);
	if (r->next[0])
		put_text("next", r->next);
}

void prove_text_head(const struct prove_run *run)
{
	printf("sbx prove: ");
	ui_put(run->sandbox);
	printf(" (");
	ui_put(run->template);
	printf(", %s) on %s, sbx %s\n", run->accel, run->host, run->version);
	if (strcmp(run->accel, "tcg") == 0)
		printf("\nThe sandbox runs in software emulation (TCG), which is not an isolation\n"
		       "boundary: a guest that exploits the emulator controls the QEMU process. The\n"
		       "jail around QEMU is the only remaining isolation layer: no network, no files\n"
		       "but the sandbox's own, few system calls. The results apply to a guest that\n"
		       "has not broken out of the emulator. With KVM, the CPU is the boundary and\n"
		       "the jail is the second isolation layer.\n");
	(void)putchar('\n');
	(void)fflush(stdout);
}

static void show_progress(const struct prove_text *t, const struct prove_run *run)
{
	AUTO_FREE char *text =
		xasprintf("%zu of %zu, %zu failed", t->n_done, run->n, run->count[PROVE_FAIL]);

	ui_progress(run->n ? (unsigned)(100 * t->n_done / run->n) : 0, text);
}

void prove_text_one(
	struct prove_text *t, const struct prove_run *run, const struct prove_result *res)
{
	t->n_done++;
	if (res->untried)
		return;
	if (t->live) {
		ui_progress_end();
		put_line(res);
		if (t->verbose || res->verdict == PROVE_FAIL)
			put_details(res);
		(void)fflush(stdout);
	}
	show_progress(t, run);
}

struct sum {
	size_t n[PROVE_N_VERDICTS];
};

static struct sum count_text(const struct prove_run *run, const char *group)
{
	struct sum s = {0};

	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->results[i].group, group) == 0)
			s.n[run->results[i].verdict] += !run->results[i].untried;
	return s;
}

static void put_heading(const char *group, const struct sum *s)
{
	printf("%s: %zu passed", group, s->n[PROVE_PASS]);
	if (s->n[PROVE_FAIL])
		printf(", %zu FAILED", s->n[PROVE_FAIL]);
	if (s->n[PROVE_SKIP])
		printf(", %zu skipped", s->n[PROVE_SKIP]);
	(void)putchar('\n');
}

/* In live mode the lines were printed before: only the sums and the failures remain. */
static void put_group(const struct prove_text *t, const struct prove_run *run, const char *group)
{
	struct sum s = count_text(run, group);

	if (s.n[PROVE_PASS] + s.n[PROVE_FAIL] + s.n[PROVE_SKIP] == 0)
		return;
	put_heading(group, &s);
	for (size_t i = 0; i < run->n; i++) {
		const struct prove_result *r = &run->results[i];

		if (strcmp(r->group, group) != 0 || (t->live && r->verdict != PROVE_FAIL))
			continue;
		if (r->untried)
			continue;
		put_line(r);
		if (!t->live && (t->verbose || r->verdict == PROVE_FAIL))
			put_details(r);
	}
}

void prove_text_end(const struct prove_text *t, const struct prove_run *run)
{
	size_t untried = 0;

	ui_progress_end();
	if (t->live)
		(void)putchar('\n');
	for (size_t g = 0; probe_groups[g]; g++)
		put_group(t, run, probe_groups[g]);
	for (size_t i = 0; i < run->n; i++)
		untried += run->results[i].untried;
	printf("\n%zu %s: %zu passed, %zu failed, %zu skipped, in %.1f seconds\n", run->n - untried,
		run->n - untried == 1 ? "probe" : "probes", run->count[PROVE_PASS],
		run->count[PROVE_FAIL] - untried, run->count[PROVE_SKIP],
		(double)run->took_ms / 1000);
	if (run->cut)
		printf("Interrupted: %zu probes did not run.\n", untried);
	(void)fflush(stdout);
}
