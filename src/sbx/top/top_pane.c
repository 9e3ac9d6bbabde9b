/* SPDX-License-Identifier: Apache-2.0 */
#include "top_pane.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/policy/policy.h"
#include "top_text.h"

void top_panes_done(struct top_panes *p)
{
	top_log_done(&p->log);
	json_decref(p->shown.hold);
	json_decref(p->stats);
	*p = (struct top_panes){0};
}

const char *top_pane_title(const struct top_panes *p)
{
	static const char *const titles[] = {
		[TOP_INFO] = "Sandbox     (l policy log, h approvals, e sessions)",
		[TOP_LOG] = "Policy log     (i sandbox, h approvals, e sessions)",
		[TOP_HOLDS] = "Approvals     (i sandbox, l policy log, e sessions)",
		[TOP_SESSIONS] = "Sessions     (i sandbox, l policy log, h approvals)",
	};

	return titles[p->pane];
}

/* ---- requests for approval ---- */

bool top_pane_is_link(const json_t *hold)
{
	return strcmp(api_str(hold, "kind"), "link") == 0;
}

static const json_t *find_hold(
	const struct top_list *l, const char *sandbox, size_t at, size_t *ret_n)
{
	const json_t *hold, *found = NULL;
	size_t i;

	*ret_n = 0;
	json_array_foreach (json_object_get(l->holds, "holds"), i, hold) {
		if (strcmp(api_str(hold, "sandbox"), sandbox) != 0)
			continue;
		if ((*ret_n)++ == at)
			found = hold;
	}
	return found;
}

static void print_holds(
	FILE *f, struct top_panes *p, const struct top_list *l, const struct top_box *b)
{
	size_t n;
	const json_t *hold = find_hold(l, top_box_name(b), p->hold_at, &n);

	if (!hold && n) {
		p->hold_at = n - 1;
		hold = find_hold(l, top_box_name(b), p->hold_at, &n);
	}
	if (!hold) {
		(void)fprintf(f, "No requests of %s wait for approval\n", top_box_name(b));
		return;
	}
	p->shown.hold = json_incref((json_t *)hold);
	if (n > 1)
		(void)fprintf(f, "%zu of %zu, ] next, [ previous. ", p->hold_at + 1, n);
	(void)fprintf(f, "Keys: %s, x refuse\n\n",
		top_pane_is_link(hold) ? "o open the link" : "o approve once, t for 30 minutes");
	hold_text_print(f, hold);
}

/* ---- sessions ---- */

static void read_sessions(struct top_panes *p, const struct top_box *b)
{
	uint64_t now = clock_mono_ms();
	struct problem problem = {0};
	int r;

	if (strcmp(p->stats_id, b->id) == 0 && now < p->stats_ms + TOP_SESSIONS_MS)
		return;
	json_decref(p->stats);
	p->stats = NULL;
	memcpy(p->stats_id, b->id, sizeof(p->stats_id));
	r = sandbox_call("GET", b->id, "/stats", NULL, TOP_WAIT_MS, &p->stats, &problem);
	(void)snprintf(p->stats_fault, sizeof(p->stats_fault), "%s",
		r < 0 ? err_text(&problem.err, r) : "");
	p->stats_ms = clock_mono_ms();
}

static void print_session(FILE *f, struct top_panes *p, const json_t *session)
{
	struct top_log_hosts *choices = &p->shown.choices;
	const char *name = api_str(session, "name"), *state = api_str(session, "state");

	if (choices->n < TOP_LOG_HOSTS) {
		(void)snprintf(choices->v[choices->n++], TOP_LOG_HOST, "%s", name);
		(void)fprintf(f, " %zu ", choices->n);
	} else {
		(void)fprintf(f, "   ");
	}
	(void)fprintf(f, "%-32s %s", name, state);
	if (strcmp(state, "ended") == 0)
		(void)fprintf(f, ", status %lld", api_int(session, "status"));
	(void)fprintf(f, "%s\n",
		json_is_true(json_object_get(session, "attached")) ? ", a terminal is attached"
								   : "");
}

static void print_sessions(FILE *f, struct top_panes *p, const struct top_box *b)
{
	const json_t *list, *session;
	size_t i;

	if (!top_box_is_running(b)) {
		(void)fprintf(f, "%s does not run\n", top_box_name(b));
		return;
	}
	read_sessions(p, b);
	if (p->stats_fault[0]) {
		(void)fprintf(f, "The sandbox did not report its sessions: %s\n", p->stats_fault);
		return;
	}
	list = json_object_get(p->stats, "kept_sessions");
	(void)fprintf(f, "%s\n",
		json_array_size(list) ? "Sessions, as the sandbox reports them. A number attaches."
				      : "No session. a starts the agent.");
	json_array_foreach (list, i, session)
		print_session(f, p, session);
}

/* ---- all ---- */

void top_pane_print(FILE *f, struct top_panes *p, const struct top_list *l, const struct top_box *b)
{
	json_decref(p->shown.hold);
	p->shown.hold = NULL;
	p->shown.choices.n = 0;
	memcpy(p->shown.id, b->id, sizeof(p->shown.id));
	(void)snprintf(p->shown.name, sizeof(p->shown.name), "%s", top_box_name(b));
	switch (p->pane) {
	case TOP_INFO:
		top_text_print(f, b);
		break;
	case TOP_LOG:
		top_log_read(&p->log, b->id);
		top_log_print(f, &p->log, &p->shown.choices);
		break;
	case TOP_HOLDS:
		print_holds(f, p, l, b);
		break;
	case TOP_SESSIONS:
		print_sessions(f, p, b);
		break;
	}
}
