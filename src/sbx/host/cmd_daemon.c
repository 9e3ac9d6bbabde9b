/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/form.h"
#include "host.h"

static const struct opt_def no_opts[] = {{0}};
static const struct opt_def status_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static int run_start(struct opts *o)
{
	AUTO_FREE char *path = daemon_socket_path();
	struct problem p = {0};
	AUTO_CLOSE int fd = daemon_try(&p);
	bool was = fd >= 0;

	if (!was) {
		p = (struct problem){0};
		fd = daemon_connect(&p);
	}
	if (fd < 0)
		return ui_problem(&p, fd);
	printf("sbxd %s at %s\n", was ? "is already running" : "started", path);
	return EXIT_OK;
}

static int run_stop(struct opts *o)
{
	struct problem p = {0};
	int r = daemon_stop(&p);

	if (r < 0)
		return ui_problem(&p, r);
	printf("Stopped sbxd; running sandboxes are not affected\n");
	return EXIT_OK;
}

static int run_status(struct opts *o)
{
	static const char *const keys[] = {"version", "build", "pid", "api", "trace", "pool", NULL};
	AUTO_FREE char *path = daemon_socket_path(), *log = daemon_log_path();
	AUTO_JSON json_t *v = NULL, *whole = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", API_TIMEOUT_MS, &v, &p);
	const char *status = r == 0 ? "running" : r == -ECONNREFUSED ? "stopped" : "unresponsive";

	if (opts_has(o, "json")) {
		whole = json_pack("{s:s, s:s, s:s}", "status", status, "socket", path, "logs", log);
		if (r == 0)
			(void)json_object_update_missing(whole, v);
		form_fill(whole, keys);
		api_print(whole);
	} else {
		printf("status   %s\n", status);
		if (r == 0)
			printf("version  %s\npid      %lld\n", api_str(v, "version"),
				api_int(v, "pid"));
		if (r == 0 && api_str(v, "trace")[0])
			printf("trace    %s\n", api_str(v, "trace"));
		if (r == 0 && api_int(json_object_get(v, "pool"), "size") > 0)
			printf("pool     %lld of %lld ready\n",
				api_int(json_object_get(v, "pool"), "ready"),
				api_int(json_object_get(v, "pool"), "size"));
		printf("socket   %s\nlogs     %s\n", path, log);
	}
	return r == 0 ? EXIT_OK : EXIT_FAILED;
}

static const struct verb subs[] = {
	{
		.name = "start",
		.args = "",
		.summary = "start sbxd",
		.about =
			"Starts sbxd in the background and returns when it accepts connections. Every other\n"
			"command starts sbxd automatically.",
		.opts = no_opts,
		.run = run_start,
	},
	{
		.name = "stop",
		.args = "",
		.summary = "stop sbxd; sandboxes keep running",
		.about =
			"Stops sbxd. Running sandboxes and open sessions are not affected; the next sbxd finds\n"
			"them.",
		.opts = no_opts,
		.run = run_stop,
	},
	{
		.name = "status",
		.args = "",
		.summary = "show whether sbxd is running",
		.about =
			"Shows whether sbxd is running, its socket and its log. Does not start sbxd. The exit\n"
			"status is 1 if sbxd is not running or not responding.",
		.opts = status_opts,
		.run = run_status,
	},
	{0},
};

const struct verb verb_daemon = {
	.name = "daemon",
	.group = "management",
	.args = "COMMAND",
	.summary = "start, stop or query sbxd",
	.about =
		"sbxd manages the list of sandboxes. It is started automatically and can be stopped at any\n"
		"time: running sandboxes do not depend on it.",
	.examples = "  sbx daemon status --json\n",
	.subs = subs,
};
