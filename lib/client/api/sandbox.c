/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/client/cli/quote.h"

/* sbxd's hints end with the word SANDBOX where the command needs its name as it was typed. */
static int name_in_hint(const char *ref, int r, struct problem *p)
{
	static const char word[] = " SANDBOX";
	size_t n = strlen(p->hint), k = sizeof(word) - 1;

	if (r < 0 && n > k && strcmp(p->hint + n - k, word) == 0)
		(void)snprintf(p->hint + n - k + 1, sizeof(p->hint) - (n - k + 1), "%s", ref);
	return r;
}

int sandbox_call(const char *method, const char *ref, const char *tail, json_t *body,
	unsigned timeout_ms, json_t **ret, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(ref);
	AUTO_FREE char *path = xasprintf("/v1/sandboxes/%s%s", quoted, tail);

	return name_in_hint(ref, api_call(method, path, body, timeout_ms, ret, p), p);
}

int sandbox_get(const char *ref, json_t **ret, struct problem *p)
{
	return sandbox_call("GET", ref, "", NULL, API_TIMEOUT_MS, ret, p);
}

int sandbox_list(json_t **ret, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	int r = api_call("GET", "/v1/sandboxes", NULL, API_TIMEOUT_MS, &answer, p);

	if (r < 0)
		return r;
	if (!json_is_array(json_object_get(answer, "sandboxes")))
		return err_set(
			&p->err, -EPROTO, "invalid response from sbxd: no list of sandboxes");
	*ret = json_incref(json_object_get(answer, "sandboxes"));
	return 0;
}

bool sandbox_is(const json_t *sandbox, const char *status)
{
	return strcmp(api_str(sandbox, "status"), status) == 0;
}

static void warn_emulation(const json_t *s)
{
	if (strcmp(api_str(s, "accel"), "tcg") == 0)
		ui_warning(
			"sandbox '%s' runs in software emulation (TCG), which is not an isolation boundary: the jail around QEMU is the only isolation layer",
			api_str(s, "name"));
}

static bool want_cold;

/* Its programs were to continue. */
static void warn_not_resumed(const json_t *s)
{
	if (strcmp(api_str(s, "start"), "cold") == 0)
		ui_warning("sandbox '%s' booted: its suspended programs were not resumed: %s",
			api_str(s, "name"), api_str(s, "cold_why"));
}

static void show_progress(const json_t *s)
{
	char text[160];

	(void)snprintf(
		text, sizeof(text), "starting %s: %s", api_str(s, "name"), api_str(s, "detail"));
	ui_progress((unsigned)api_int(s, "progress"), text);
}

#define REMEDY "; create it: "				   /* lib/vm/share/place.c */
#define NO_NOTIFY "the kernel has no seccomp notification" /* lib/vm/share/share.c */

/* The command that creates a missing workspace of this sandbox, when that is the reason; else NULL.
 * Nothing else in the reason is a command: it may be the words of a guest. */
static char *find_remedy(const json_t *s, const char *list, const char *why)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(s, list), i, w) {
		AUTO_FREE char *command = xasprintf("mkdir -p '%s'", api_str(w, "host"));
		AUTO_FREE char *end = xasprintf(REMEDY "%s", command);

		if (str_ends(why, end) && !strchr(api_str(w, "host"), '\''))
			return TAKE(command);
	}
	return NULL;
}

/* The command for a start that failed with the reason in *p: what creates a missing workspace of
 * `s`, what describes the missing feature of the kernel, else what prints the log. */
static int hint_at_failure(const json_t *s, const char *log, struct problem *p)
{
	AUTO_FREE char *quoted = quote_sh(log);
	AUTO_FREE char *remedy = find_remedy(s, "workspaces", p->err.text);

	if (!remedy)
		remedy = find_remedy(s, "mounts", p->err.text);
	if (!remedy && strstr(p->err.text, NO_NOTIFY))
		return problem_hint(p, -EIO, "sbx diagnose");
	if (!remedy)
		return problem_hint(p, -EIO, "cat %s", quoted);
	p->err.text[strlen(p->err.text) - strlen(REMEDY) - strlen(remedy)] = '\0';
	return problem_hint(p, -EIO, "%s", remedy);
}

/* Why a start ended in something else than running. */
static int say_not_running(const json_t *s, struct problem *p)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "sandboxes/%s/keeper.log", api_str(s, "id"));
	const char *why = api_str(s, "detail");

	(void)err_set(&p->err, -EIO, "sandbox '%s' did not start: %s", api_str(s, "name"),
		why[0] ? why : api_str(s, "status"));
	return hint_at_failure(s, log, p);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = 1;
}

static bool is_queued(const json_t *s)
{
	return api_int(s, "start_queue") > 0;
}

/* A start that waits for others is removed; what was suspended stays so. */
static bool leave_queue(const char *ref, const json_t *s)
{
	AUTO_JSON json_t *body = json_pack("{s:b}", "suspend", 1);
	struct problem ignored = {0};

	return is_queued(s) &&
	       sandbox_call("POST", ref, "/stop", body, API_TIMEOUT_MS, NULL, &ignored) == 0;
}

static int say_interrupted(const char *ref, const json_t *s, struct problem *p)
{
	ui_progress_end();
	*p = (struct problem){0};
	if (leave_queue(ref, s))
		return err_set(&p->err, -EINTR,
			"interrupted: sandbox '%s' was waiting to start and was not started", ref);
	(void)err_set(&p->err, -EINTR, "interrupted: sandbox '%s' is still starting", ref);
	return problem_hint(p, -EINTR, "sbx rm -f %s", ref);
}

static int wait_for_it(const char *ref, json_t **s, struct problem *p)
{
	uint64_t until = clock_mono_ms() + SANDBOX_START_MS;

	while (sandbox_is(*s, "starting") || sandbox_is(*s, "stopping")) {
		json_t *next = NULL;
		int r;

		if (is_queued(*s)) /* the time counts from the real start */
			until = clock_mono_ms() + SANDBOX_START_MS;
		if (clock_mono_ms() > until)
			return err_set(&p->err, -ETIMEDOUT,
				"sandbox '%s' was not ready after %d seconds", ref,
				SANDBOX_START_MS / 1000);
		if (interrupted)
			return -EINTR;
		show_progress(*s);
		r = sandbox_call("GET", ref, ui_is_terminal() ? "?wait=250" : "?wait=5000", NULL,
			API_TIMEOUT_MS, &next, p);
		if (r < 0)
			return r;
		json_decref(*s);
		*s = next;
	}
	ui_progress_end();
	return sandbox_is(*s, "running") ? 0 : say_not_running(*s, p);
}

/* Ctrl-C stops the waiting, not the sandbox, unless its start waits for others. */
static int wait_until_running(const char *ref, json_t **s, struct problem *p)
{
	struct sigaction catch = {.sa_handler = on_interrupt}, old;
	int r;

	interrupted = 0;
	(void)sigaction(SIGINT, &catch, &old);
	r = wait_for_it(ref, s, p);
	(void)sigaction(SIGINT, &old, NULL);
	return r < 0 && interrupted ? say_interrupted(ref, *s, p) : r;
}

static int wait_until_settled(const char *ref, json_t **ret, struct problem *p)
{
	int r = sandbox_call("GET", ref, "?wait=5000", NULL, API_TIMEOUT_MS, ret, p);

	if (r == 0 && sandbox_is(*ret, "unresponsive")) {
		(void)err_set(&p->err, -ETIMEDOUT, "sandbox '%s' is not responding", ref);
		return problem_hint(p, -ETIMEDOUT, "sbx stop %s", ref);
	}
	return r;
}

void sandbox_want_cold(void)
{
	want_cold = true;
}

static json_t *start_body(const char *accel)
{
	json_t *body = json_object();

	if (accel)
		(void)json_object_set_new(body, "accel", json_string(accel));
	if (want_cold)
		(void)json_object_set_new(body, "cold", json_true());
	return body;
}

int sandbox_start(const char *ref, const char *accel, json_t **ret, struct problem *p)
{
	AUTO_JSON json_t *s = NULL, *body = NULL;
	bool was_suspended;
	int r = sandbox_get(ref, &s, p);

	if (r == 0 && sandbox_is(s, "paused")) {
		(void)err_set(&p->err, -ENOSPC,
			"sandbox '%s' is " SANDBOX_PAUSED
			": it continues automatically when the host has free disk space again",
			ref);
		return problem_hint(p, -ENOSPC, "df -h");
	}
	if (r == 0 && !sandbox_is(s, "running") && !sandbox_is(s, "stopped") &&
		!sandbox_is(s, "suspended") && !sandbox_is(s, "starting")) {
		json_decref(s);
		s = NULL;
		r = wait_until_settled(ref, &s, p);
	}
	if (r < 0)
		return r;
	if (!sandbox_is(s, "running")) {
		was_suspended = api_str(s, "suspended_by")[0];
		json_decref(s);
		s = NULL;
		body = start_body(accel);
		r = sandbox_call("POST", ref, "/start", body, API_TIMEOUT_MS, &s, p);
		if (r == 0)
			r = wait_until_running(ref, &s, p);
		if (r < 0)
			return r;
		warn_emulation(s);
		if (was_suspended && !want_cold)
			warn_not_resumed(s);
	}
	if (ret)
		*ret = TAKE(s);
	return 0;
}

#define QUEUE_LOOK_MS 10000 /* without a terminal */

static int on_create_tick(void *name)
{
	static uint64_t next_ms;
	AUTO_JSON json_t *s = NULL;
	struct problem ignored = {0};
	uint64_t now = clock_mono_ms();

	if (interrupted)
		return -EINTR;
	if (!next_ms) /* the call itself reports a start that is short */
		next_ms = now + QUEUE_LOOK_MS;
	if ((!ui_is_terminal() && now < next_ms) || sandbox_get(name, &s, &ignored) < 0)
		return 0;
	next_ms = now + QUEUE_LOOK_MS;
	if (ui_is_terminal())
		show_progress(s);
	return is_queued(s);
}

/* s: the sandbox that sbxd has reported as running in the same moment, or NULL. */
static int undo_interrupted(const char *name, const json_t *s, struct problem *p)
{
	struct problem ignored = {0};

	if (s)
		(void)!sandbox_remove(api_str(s, "id"), true, &ignored);
	*p = (struct problem){0};
	return err_set(&p->err, -EINTR, "interrupted: sandbox '%s' was removed", name);
}

int sandbox_create(json_t *body, json_t **ret, struct problem *p)
{
	struct sigaction catch = {.sa_handler = on_interrupt}, old;
	AUTO_FREE char *log = paths_get(PATHS_STATE, "failed-create.log");
	AUTO_FREE char *name = xstrdup(api_str(body, "name"));
	AUTO_JSON json_t *s = NULL;
	int r;

	(void)json_object_set_new(body, "start", json_true());
	if (want_cold)
		(void)json_object_set_new(body, "cold", json_true());
	interrupted = 0;
	(void)sigaction(SIGINT, &catch, &old);
	r = api_call_whole("POST", "/v1/sandboxes", body, SANDBOX_START_MS + SANDBOX_STOP_MS,
		on_create_tick, name, &s, p);
	(void)sigaction(SIGINT, &old, NULL);
	ui_progress_end();
	if (r == -EINTR)
		return undo_interrupted(name, s, p);
	if (r < 0)
		return strcmp(p->code, "start-failed") == 0 ? hint_at_failure(body, log, p) : r;
	warn_emulation(s);
	if (ret)
		*ret = TAKE(s);
	return 0;
}

int sandbox_remove(const char *ref, bool force, struct problem *p)
{
	return sandbox_call("DELETE", ref, force ? "?force=1" : "", NULL, SANDBOX_STOP_MS, NULL, p);
}
