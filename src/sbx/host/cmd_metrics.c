/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. The text is of sbxd and has no words of a guest (src/sbxd/metrics/metrics.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/api/out_place.h"
#include "host.h"

static const struct opt_def opts[] = {
	{0, "textfile", "FILE", "write the metrics to FILE, which ends in .prom (default: stdout)"},
	{0},
};

static int check_name(const char *path, struct problem *p)
{
	if (str_ends(path, ".prom"))
		return 0;
	return err_set(&p->err, -EINVAL,
		"invalid --textfile '%s': node_exporter reads only files whose names end in .prom",
		path);
}

/* Replaced in one step, so that no reader sees a part of it. Other users may read it. */
static int save_text(const char *path, const char *text, struct problem *p)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	int r = check_name(path, p);

	if (r == 0)
		r = out_place_find(path, &place, p);
	if (r >= 0)
		r = file_new_open(&f, place.path, &p->err);
	if (r >= 0 && fd_write_all(f.fd, text, strlen(text)) < 0)
		r = err_errno(&p->err, -errno, "cannot write %s", path);
	return r < 0 ? r : file_new_keep(&f, 0644, &p->err);
}

static int run_metrics(struct opts *o)
{
	const char *path = opts_value(o, "textfile");
	AUTO_FREE char *text = NULL;
	struct problem p = {0};
	int r = api_fetch("/v1/metrics", API_TIMEOUT_MS, &text, &p);

	if (r == 0 && path)
		r = save_text(path, text, &p);
	else if (r == 0)
		(void)fputs(text, stdout);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_metrics = {
	.name = "metrics",
	.group = "management",
	.args = "",
	.summary = "print metrics for a monitoring system",
	.about =
		"Prints the state of sbxd and of the sandboxes as OpenMetrics text, or writes it to a\n"
		"file for the textfile collector of node_exporter.",
	.examples = "  sbx metrics\n"
		    "  sbx metrics --textfile /var/lib/prometheus/node-exporter/sbx-$USER.prom\n",
	.opts = opts,
	.run = run_metrics,
};
