/* SPDX-License-Identifier: Apache-2.0 */
#include "prove.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "html.h"

#define MAX_PART 65536 /* of a file of data/prove */
#define BAR_WIDTH 1000

static const struct group {
	const char *id, *name, *about;
} groups[] = {
	{"files", "Files", "The guest sees only the workspaces, not the rest of your disk."},
	{"kernel", "Kernel and processes",
		"The guest has its own kernel and sees no process, socket or memory of the host. "
		"Each helper process on the host runs in a jail."},
	{"airlock", "Workspace guard",
		"Files that run on the host without a command cannot be written. Changes of other "
		"files that run are listed."},
	{"network", "Network",
		"The VM has no network card. The policy on the host decides about each name, "
		"connection and request."},
	{"credentials", "Credentials",
		"Credentials stay in the vault. The guest has placeholders that are of no use "
		"elsewhere."},
	{"authority", "Authority",
		"Rules decide about each request to a host, by what the request does. A request "
		"that needs an approval waits for a person."},
	{"docker", "Docker",
		"Docker runs inside the sandbox. The policy applies to all containers, also "
		"privileged ones."},
	{"host", "Host",
		"No open ports, no access for other users, your files unchanged, the audit log "
		"intact."},
	{"recovery", "Recovery",
		"The most important probes again after a stop, a suspend, kill -9 and a restart "
		"of sbxd."},
	{"", "Others", "Probes of unknown groups."}, /* last: all other groups */
};
#define N_GROUPS ARRAY_LEN(groups)

struct page {
	FILE *out;
	const struct prove_run *run;
	size_t count[N_GROUPS][PROVE_N_VERDICTS];
};

static const char *const classes[PROVE_N_VERDICTS] = {
	[PROVE_FAIL] = "fail",
	[PROVE_PASS] = "pass",
	[PROVE_SKIP] = "skip",
};

static const char *const marks[PROVE_N_VERDICTS] = {
	[PROVE_FAIL] = "FAIL",
	[PROVE_PASS] = "pass",
	[PROVE_SKIP] = "skip",
};

static const char *const verdicts[PROVE_N_VERDICTS] = {
	[PROVE_FAIL] = "Fail: the isolation did not hold, or the probe could not verify it.",
	[PROVE_PASS] = "Pass: the isolation held.",
	[PROVE_SKIP] = "Skipped: the probe could not run here. The result is unknown.",
};

static void put_html(struct page *p, const char *text)
{
	(void)fputs(text, p->out);
}

static bool has_html(const char *text)
{
	return text && text[0];
}

/* An unjudged probe has failed, here too. */
static enum prove_verdict verdict_of(const struct prove_result *r)
{
	return !r->untried && r->verdict < PROVE_N_VERDICTS ? r->verdict : PROVE_FAIL;
}

static size_t group_of(const struct prove_result *r)
{
	size_t i = 0;

	while (i + 1 < N_GROUPS && (!r->group || strcmp(groups[i].id, r->group) != 0))
		i++;
	return i;
}

static size_t total_of(const size_t count[PROVE_N_VERDICTS])
{
	return count[PROVE_FAIL] + count[PROVE_PASS] + count[PROVE_SKIP];
}

static enum prove_verdict state_of(const size_t count[PROVE_N_VERDICTS])
{
	if (count[PROVE_FAIL])
		return PROVE_FAIL;
	return count[PROVE_PASS] ? PROVE_PASS : PROVE_SKIP;
}

static void sum_html(struct page *p, size_t ret[PROVE_N_VERDICTS])
{
	for (size_t v = 0; v < PROVE_N_VERDICTS; v++) {
		ret[v] = 0;
		for (size_t g = 0; g < N_GROUPS; g++)
			ret[v] += p->count[g][v];
	}
}

/* ---- the head ---- */

static void put_head(struct page *p, struct slice css)
{
	put_html(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "img-src "
		    "data:; base-uri 'none'; form-action 'none'; style-src ");
	html_put_hash(p->out, css);
	put_html(p,
		"\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" "
		"href=\"data:,\">\n"
		"<title>sbx prove: ");
	html_puts(p->out, p->run->sandbox);
	put_html(p, "</title>\n<style>");
	(void)fwrite(css.p, 1, css.n, p->out);
	put_html(p, "</style>\n</head>\n<body class=\"");
	for (size_t g = 0; g + 1 < N_GROUPS; g++)
		(void)fprintf(p->out, "%s%s-%s", g ? " " : "", groups[g].id,
			classes[state_of(p->count[g])]);
	put_html(p, "\">\n");
}

/* The widths are attributes of the picture: a style attribute would need a looser policy. */
static void put_bar(struct page *p, const size_t all[PROVE_N_VERDICTS])
{
	static const enum prove_verdict order[] = {PROVE_FAIL, PROVE_PASS, PROVE_SKIP};
	size_t total = MAX(total_of(all), (size_t)1), at = 0;

	(void)fprintf(p->out,
		"<div class=\"bar\"><svg viewBox=\"0 0 %d 8\" preserveAspectRatio=\"none\" "
		"aria-hidden=\"true\">",
		BAR_WIDTH);
	for (size_t i = 0; i < PROVE_N_VERDICTS; i++) {
		size_t n = all[order[i]];

		(void)fprintf(p->out,
			"<rect class=\"%s\" x=\"%zu\" y=\"0\" width=\"%zu\" height=\"8\"/>",
			classes[order[i]], at * BAR_WIDTH / total, n * BAR_WIDTH / total);
		at += n;
	}
	put_html(p, "</svg></div>\n");
}

static void put_verdict(struct page *p)
{
	size_t all[PROVE_N_VERDICTS], n;

	sum_html(p, all);
	n = all[PROVE_FAIL] + all[PROVE_PASS];
	(void)fprintf(p->out,
		"<p class=\"kicker\">sbx prove</p>\n<header class=\"verdict %s\">\n<h1>",
		p->run->cut && !all[PROVE_FAIL] ? "skip" : classes[state_of(all)]);
	if (all[PROVE_FAIL])
		(void)fprintf(p->out, "%zu of %zu probes failed", all[PROVE_FAIL], n);
	else if (!n)
		put_html(p, "No probe ran");
	else
		(void)fprintf(p->out, "%zu of %zu probes passed", all[PROVE_PASS], n);
	put_html(p, "</h1>\n<p class=\"lead\">Run against the sandbox <strong>");
	html_puts(p->out, p->run->sandbox);
	put_html(p, "</strong>, as root in the guest and on the host at the same time.");
	if (all[PROVE_SKIP])
		(void)fprintf(p->out, " %zu could not run here; their result is unknown.",
			all[PROVE_SKIP]);
	put_html(p, "</p>\n");
	put_bar(p, all);
	put_html(p, "</header>\n");
}

/* First, if there is no isolation boundary between guest and QEMU. */
static void put_accel(struct page *p)
{
	if (p->run->accel && strcmp(p->run->accel, "kvm") == 0)
		return;
	put_html(p,
		"<section class=\"box-note\" id=\"tcg\">\n"
		"<h2>TCG is not an isolation boundary</h2>\n"
		"<p>This sandbox runs in QEMU's software emulation (TCG). QEMU's security "
		"documentation treats only hardware virtualization as a boundary between guest "
		"and host: a guest that exploits the emulator controls the QEMU process.</p>\n"
		"<p><strong>The jail around QEMU is the only remaining isolation layer:</strong> "
		"separate user, mount, PID, IPC and network namespaces, with an empty network "
		"namespace, a root directory that contains only its disks, no capabilities, a "
		"seccomp allowlist and, if the kernel supports it, Landlock. The results apply "
		"to a guest that has not broken out of the emulator. With KVM, the CPU is the "
		"boundary and the jail is the second isolation layer.</p>\n</section>\n");
}

static void put_cut(struct page *p)
{
	if (p->run->cut)
		put_html(p, "<section class=\"box-note\" id=\"cut\">\n<h2>The run was "
			    "interrupted</h2>\n<p>Probes that are not on this page did not "
			    "run.</p>\n</section>\n");
}

static void fact_html(struct page *p, const char *name, const char *value, const char *more)
{
	if (!has_html(value))
		return;
	(void)fprintf(p->out, "<div><dt>%s</dt><dd>", name);
	html_puts(p->out, value);
	if (has_html(more)) {
		put_html(p, " <small>");
		html_puts(p->out, more);
		put_html(p, "</small>");
	}
	put_html(p, "</dd></div>\n");
}

static void put_facts(struct page *p)
{
	const struct prove_run *run = p->run;
	bool is_kvm = run->accel && strcmp(run->accel, "kvm") == 0;
	time_t at = (time_t)(run->begun_ms / 1000);
	char when[64] = "", took[64], probes[64];
	size_t all[PROVE_N_VERDICTS];
	struct tm tm;

	if (gmtime_r(&at, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	(void)snprintf(took, sizeof(took), "%" PRIu64 ".%" PRIu64 " s", run->took_ms / 1000,
		run->took_ms % 1000 / 100);
	sum_html(p, all);
	(void)snprintf(probes, sizeof(probes), "%zu pass, %zu fail, %zu skip", all[PROVE_PASS],
		all[PROVE_FAIL], all[PROVE_SKIP]);
	put_html(p, "<dl class=\"facts\">\n");
	fact_html(p, "Sandbox", run->sandbox, run->id);
	fact_html(p, "Template", run->template, NULL);
	fact_html(p, "Accelerator", is_kvm ? "KVM" : run->accel, is_kvm ? NULL : "emulation");
	fact_html(p, "Guest kernel", run->kernel, NULL);
	fact_html(p, "Host", run->host, NULL);
	fact_html(p, "Probes", probes, run->quick ? "quick run" : NULL);
	fact_html(p, "Scratch sandbox", has_html(run->twin) ? run->twin : "none", NULL);
	fact_html(p, "Started", when, NULL);
	fact_html(p, "Duration", took, NULL);
	fact_html(p, "sbx", run->version, NULL);
	put_html(p, "</dl>\n");
}

/* ---- the picture and the groups ---- */

/* "38/38" of the probes that could be tried. */
static void put_ratio(struct page *p, size_t g)
{
	size_t held = p->count[g][PROVE_PASS], n = held + p->count[g][PROVE_FAIL];

	if (!n)
		put_html(p, "\xe2\x80\x93");
	else
		(void)fprintf(p->out, "%zu/%zu", held, n);
}

/* The group that @name@ at the front names; N_GROUPS if none. */
static size_t placeholder_html(struct slice s, size_t *ret_n)
{
	for (size_t g = 0; g + 1 < N_GROUPS; g++) {
		size_t n = strlen(groups[g].id);

		if (s.n >= n + 2 && memcmp(s.p + 1, groups[g].id, n) == 0 && s.p[n + 1] == '@') {
			*ret_n = n + 2;
			return g;
		}
	}
	return N_GROUPS;
}

static void put_picture(struct page *p, struct slice svg)
{
	put_html(p, "<h2>Processes and isolation</h2>\n<figure>\n");
	for (size_t at = 0; at < svg.n;) {
		size_t n = 1, g = N_GROUPS;

		if (svg.p[at] == '@')
			g = placeholder_html(slice_of(svg.p + at, svg.n - at), &n);
		if (g < N_GROUPS)
			put_ratio(p, g);
		else
			(void)fputc(svg.p[at], p->out);
		at += n;
	}
	put_html(p,
		"<figcaption>Dashed: in a separate jail (namespaces, no capabilities, seccomp "
		"allowlist). Green: all probes of this run passed. Red: a probe failed. Gray: no "
		"probe ran.</figcaption>\n</figure>\n");
}

static void put_groups(struct page *p)
{
	put_html(p, "<h2>Probe groups</h2>\n<ul class=\"groups\">\n");
	for (size_t g = 0; g < N_GROUPS; g++) {
		if (g + 1 == N_GROUPS && !total_of(p->count[g]))
			continue;
		(void)fprintf(p->out, "<li class=\"%s\"><span class=\"n\">",
			classes[state_of(p->count[g])]);
		put_ratio(p, g);
		(void)fprintf(p->out, "</span><a href=\"#group-%s\">%s</a><p>%s", groups[g].id,
			groups[g].name, groups[g].about);
		if (!total_of(p->count[g]))
			put_html(p, " Not run this time.");
		else if (p->count[g][PROVE_SKIP])
			(void)fprintf(p->out, " %zu could not run here.", p->count[g][PROVE_SKIP]);
		put_html(p, "</p></li>\n");
	}
	put_html(p, "</ul>\n");
}

/* ---- the probes ---- */

static void put_row(struct page *p, const char *name, const char *class, const char *text)
{
	if (!has_html(text))
		return;
	(void)fprintf(p->out, "<dt class=\"%s\">%s</dt><dd class=\"%s\">", class, name, class);
	html_puts(p->out, text);
	put_html(p, "</dd>\n");
}

static void put_seen(struct page *p, const char *name, const char *text)
{
	if (!has_html(text)) {
		(void)fprintf(
			p->out, "<dt>%s</dt><dd class=\"mute\">no check on this side</dd>\n", name);
		return;
	}
	(void)fprintf(p->out, "<dt>%s</dt><dd><pre>", name);
	html_puts(p->out, text);
	put_html(p, "</pre></dd>\n");
}

static void put_probe(struct page *p, const struct prove_result *r)
{
	enum prove_verdict v = verdict_of(r);
	char took[64];

	(void)fprintf(p->out, "<details class=\"%s\"%s id=\"", classes[v],
		v == PROVE_FAIL && !r->untried ? " open" : "");
	html_puts(p->out, r->id);
	(void)fprintf(p->out, "\"><summary><b>%s</b><span class=\"title\">", marks[v]);
	html_puts(p->out, r->title);
	put_html(p, "</span><code>");
	html_puts(p->out, r->id);
	put_html(p, "</code></summary><dl>\n");
	put_row(p, "Tried", "tried", r->tried);
	put_seen(p, "In the guest", r->inside);
	put_seen(p, "On the host", r->outside);
	put_row(p, "Verdict", "word",
		r->untried ? "Fail: the run stopped before this probe." : verdicts[v]);
	put_row(p, "Why", "why", r->why);
	put_row(p, "Next", "next", r->next);
	put_row(p, "Means", "means", r->means);
	(void)snprintf(took, sizeof(took), "%u ms, %s%s", r->ms,
		r->twin ? "in the scratch sandbox" : "in the sandbox",
		r->own ? "; your own probe" : "");
	put_row(p, "Where", "mute", took);
	put_html(p, "</dl></details>\n");
}

static void put_red(struct page *p)
{
	size_t all[PROVE_N_VERDICTS];

	sum_html(p, all);
	if (!all[PROVE_FAIL])
		return;
	(void)fprintf(
		p->out, "<h2 id=\"red\">Failed probes<small>%zu</small></h2>\n", all[PROVE_FAIL]);
	for (size_t i = 0; i < p->run->n; i++)
		if (verdict_of(&p->run->results[i]) == PROVE_FAIL)
			put_probe(p, &p->run->results[i]);
}

/* Skipped probes first: a reader should know them. The failed ones are above. */
static void put_group(struct page *p, size_t g)
{
	static const enum prove_verdict order[] = {PROVE_SKIP, PROVE_PASS};
	const size_t *count = p->count[g];

	if (!total_of(count))
		return;
	(void)fprintf(p->out, "<section>\n<h2 id=\"group-%s\">%s<small>%zu pass", groups[g].id,
		groups[g].name, count[PROVE_PASS]);
	if (count[PROVE_FAIL])
		(void)fprintf(p->out, ", <a href=\"#red\">%zu fail</a>", count[PROVE_FAIL]);
	if (count[PROVE_SKIP])
		(void)fprintf(p->out, ", %zu skip", count[PROVE_SKIP]);
	put_html(p, "</small></h2>\n");
	for (size_t o = 0; o < ARRAY_LEN(order); o++)
		for (size_t i = 0; i < p->run->n; i++)
			if (group_of(&p->run->results[i]) == g &&
				verdict_of(&p->run->results[i]) == order[o])
				put_probe(p, &p->run->results[i]);
	put_html(p, "</section>\n");
}

static void put_foot(struct page *p)
{
	put_html(p,
		"<h2>How to read this report</h2>\n<ul class=\"plain\">\n"
		"<li>A probe is a small script. One part runs in the guest as root, one part on "
		"the host. A probe passes if every part passes. A part that is aborted, times "
		"out or prints nothing fails.</li>\n"
		"<li>A compromised guest can forge the results under <em>In the guest</em>. The "
		"host checks everything that it can observe.</li>\n"
		"<li>The scratch sandbox has the same template, size and rules. Destructive "
		"probes ran there. It was removed after the run.</li>\n</ul>\n"
		"<h2>What this report does not show</h2>\n<ul class=\"plain\">\n"
		"<li>The workspace is shared. Programs in the sandbox can change every file in "
		"it that is not read-only, and can leave files that run on the host later: "
		"hooks, makefiles, editor settings.</li>\n"
		"<li>An allowed host receives whatever the sandbox sends to it. The server of a "
		"credential decides what the credential permits.</li>\n"
		"<li>Unknown vulnerabilities in the CPU, in KVM, or in QEMU and its jail "
		"together; side channels; programs of the same user on the host.</li>\n"
		"<li>This report is a text file that anyone can edit. To verify it, run the "
		"probes again.</li>\n</ul>\n<footer>Run again: <code>sbx prove ");
	html_puts(p->out, p->run->sandbox);
	put_html(p,
		"</code>. This page has no script and loads nothing.</footer>\n</body>\n</html>\n");
}

/* ---- the whole ---- */

static void put_page(struct page *p, struct slice css, struct slice svg)
{
	for (size_t i = 0; i < p->run->n; i++)
		p->count[group_of(&p->run->results[i])][verdict_of(&p->run->results[i])]++;
	put_head(p, css);
	put_verdict(p);
	put_accel(p);
	put_cut(p);
	put_facts(p);
	put_red(p);
	put_picture(p, svg);
	put_groups(p);
	for (size_t g = 0; g < N_GROUPS; g++)
		put_group(p, g);
	put_foot(p);
}

static int load_html(const char *name, char **ret_text, struct slice *ret, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_SHARE, "prove/%s", name);
	size_t n;
	int r = file_load(path, MAX_PART, ret_text, &n, err);

	if (r == -ENOENT)
		return err_set(err, r, "incomplete installation: %s is missing", path);
	if (r < 0)
		return r;
	*ret = slice_of(*ret_text, n);
	return 0;
}

int prove_html(const struct prove_run *run, int fd, struct err *err)
{
	AUTO_FREE char *css_text = NULL;
	AUTO_FREE char *svg_text = NULL;
	AUTO_FREE char *text = NULL;
	struct page p = {.run = run};
	struct slice css, svg;
	size_t n = 0;
	int r;

	r = load_html("page.css", &css_text, &css, err);
	if (r < 0)
		return r;
	r = load_html("picture.svg", &svg_text, &svg, err);
	if (r < 0)
		return r;
	p.out = open_memstream(&text, &n);
	if (!p.out)
		return err_set(err, -ENOMEM, "out of memory for the report");
	put_page(&p, css, svg);
	if (fclose(p.out) != 0)
		return err_set(err, -ENOMEM, "out of memory for the report");
	r = fd_write_all(fd, text, n);
	return r < 0 ? err_errno(err, r, "cannot write the report") : 0;
}
