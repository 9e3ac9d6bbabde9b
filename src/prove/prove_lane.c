/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "prove_clean.h"

#define MORE_TIME 4 /* timeout factor for a part that was late */

static void name_item(const struct prove_lane *l, struct prove_item *it)
{
	char word[9];

	str_random_hex(word, 4);
	(void)snprintf(it->tag, sizeof(it->tag), "sbxp%s%zu", word, (size_t)(it - l->items));
	free(it->dir);
	it->dir = xasprintf("%s/of-%s", l->common->folder, it->tag);
}

size_t prove_lane_add(
	struct prove_lane *l, const struct probe *p, struct prove_result *res, size_t owner)
{
	struct prove_item *it;

	l->items = xrealloc(l->items, (l->n + 1) * sizeof(*l->items));
	it = &l->items[l->n];
	*it = (struct prove_item){.p = p,
		.res = res,
		.owner = owner == SIZE_MAX ? l->n : owner,
		.phase = PROVE_BEFORE,
		.seconds = p->seconds};
	name_item(l, it);
	if (owner != SIZE_MAX)
		it->phase = PROVE_HELD;
	return l->n++;
}

/* It changes the sandbox: nothing else runs there meanwhile. */
static bool is_recovery(const struct prove_item *it)
{
	return probe_is_recovery(it->p);
}

static bool is_again(const struct prove_lane *l, const struct prove_item *it)
{
	return &l->items[it->owner] != it;
}

/* ---- end of an item ---- */

static void end_jobs(struct prove_item *it)
{
	for (size_t i = 0; i < PROBE_N_PARTS; i++)
		if (it->job[i]) {
			prove_job_end(it->job[i]);
			free(TAKE(it->job[i]));
		}
}

static void end_item(struct prove_lane *l, struct prove_item *it, const char *missing)
{
	end_jobs(it);
	prove_judge(l, it, missing);
	it->phase = PROVE_DONE;
	if (l->host == it)
		l->host = NULL;
	if (l->guest == it)
		l->guest = NULL;
	if (l->common->on_done)
		l->common->on_done(l->common->arg, it->res);
}

/* Continues after a part has ended. */
static void go_on(struct prove_lane *l, struct prove_item *it)
{
	if (!it->seen[PROBE_INSIDE].ran && it->p->part[PROBE_INSIDE])
		it->phase = PROVE_READY;
	else if (!it->seen[PROBE_OUTSIDE].ran && it->p->part[PROBE_OUTSIDE])
		it->phase = PROVE_OUTSIDE;
	else
		end_item(l, it, NULL);
}

/* Releases the probes that a recovery repeats. They run only if its event has happened. */
static void release_lane(struct prove_lane *l, const struct prove_item *owner, int status)
{
	AUTO_FREE char *why = xasprintf("not run again: %s %s", owner->p->id,
		status == PROVE_STATUS_SKIP ? "was skipped" : "failed");

	for (size_t i = l->first; i < l->end; i++) {
		struct prove_item *it = &l->items[i];

		if (it->phase != PROVE_HELD || &l->items[it->owner] != owner)
			continue;
		it->phase = PROVE_BEFORE;
		it->spared = status == PROVE_STATUS_SKIP;
		if (status != 0)
			end_item(l, it, why);
	}
}

static void before_ended(struct prove_lane *l, struct prove_item *it)
{
	AUTO_FREE char *facts = NULL;
	struct problem p = {0};
	int status = it->seen[PROBE_BEFORE].status;

	if (is_recovery(it) && status == 0) {
		/* Other processes run now. */
		facts = xstrdup(l->place.facts);
		if (prove_place_fill(&l->place, l->common->sbx, l->place.name, facts, &p) < 0 ||
			!l->place.running) {
			release_lane(l, it, -1);
			end_item(l, it,
				p.err.text[0] ? p.err.text
					      : "the sandbox is not running after the event");
			return;
		}
	}
	if (is_recovery(it))
		release_lane(l, it, status);
	if (status != 0)
		end_item(l, it, NULL);
	else
		it->phase = PROVE_READY;
}

/* On a busy machine correct parts may be late. The second attempt has more time and decides: the
 * cause of the first delay may persist. A harmful part is not run twice. */
static bool try_once_more(struct prove_lane *l, struct prove_item *it, int status)
{
	if (status != PROVE_JOB_LATE || it->once_more || is_recovery(it))
		return false;
	end_jobs(it);
	for (size_t i = 0; i < PROBE_N_PARTS; i++) {
		free(it->seen[i].text);
		it->seen[i] = (struct prove_seen){0};
	}
	name_item(l, it);
	it->phase = PROVE_BEFORE;
	it->once_more = true;
	it->seconds = MIN(it->seconds * MORE_TIME, PROBE_MAX_SECONDS);
	return true;
}

static void part_ended(struct prove_lane *l, struct prove_item *it, enum probe_part part,
	int status, struct slice out, unsigned ms)
{
	if (try_once_more(l, it, status))
		return;
	it->seen[part] = (struct prove_seen){
		.ran = true, .status = status, .text = prove_clean(out, PROVE_MAX_TEXT), .ms = ms};
	if (part == PROBE_BEFORE)
		before_ended(l, it);
	else if (part == PROBE_INSIDE && status == PROVE_STATUS_SKIP)
		end_item(l, it, NULL); /* the outside part has nothing to compare with */
	else
		go_on(l, it);
}

/* ---- parts on the host ---- */

static void start_host(struct prove_lane *l, struct prove_item *it, enum probe_part part)
{
	AUTO_FREE char *script = prove_script_make(l, it, part);
	const char *const argv[] = {prove_shell(), "-c", script, "sh", NULL};
	char **env = prove_env_make(l, it);
	struct prove_job_spec spec = {
		.argv = argv, .env = env, .dir = it->dir, .seconds = it->seconds};
	struct err err = {0};
	int r = mkdir(it->dir, 0700) < 0 && errno != EEXIST
			? err_errno(&err, -errno, "cannot create %s", it->dir)
			: 0;

	it->job[part] = xcalloc(1, sizeof(struct prove_job));
	if (r == 0)
		r = prove_job_start(it->job[part], &spec, &err);
	prove_env_free(env);
	if (r < 0) {
		end_item(l, it, err.text);
		return;
	}
	l->host = it;
	l->host_part = part;
}

static void look_host(struct prove_lane *l)
{
	struct prove_item *it = l->host;
	struct prove_job *job = it ? it->job[l->host_part] : NULL;

	if (!it || !prove_job_look(job))
		return;
	l->host = NULL;
	part_ended(l, it, l->host_part, job->status, slice_of(job->text, job->n),
		(unsigned)(clock_mono_ms() - job->begun_ms));
}

static struct prove_item *find_lane(struct prove_lane *l, enum prove_phase phase)
{
	for (size_t i = l->first; i < l->end; i++)
		if (l->items[i].phase == phase)
			return &l->items[i];
	return NULL;
}

static bool start_next_host(struct prove_lane *l)
{
	struct prove_item *it = find_lane(l, PROVE_BEFORE);

	if (l->host)
		return false;
	if (it && !it->p->part[PROBE_BEFORE]) {
		it->phase = PROVE_READY;
		return true;
	}
	if (!it)
		it = find_lane(l, PROVE_OUTSIDE);
	if (!it)
		return false;
	start_host(l, it, it->phase == PROVE_BEFORE ? PROBE_BEFORE : PROBE_OUTSIDE);
	return true;
}

/* ---- parts in the guest ---- */

/* Stores the part's output for the outside part. Without it that part finds no file, and fails. */
static void keep_inside(const struct prove_item *it, struct slice out)
{
	AUTO_FREE char *path = xasprintf("%s/inside", it->dir);
	AUTO_CLOSE int fd = -1;

	(void)mkdir(it->dir, 0700);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_all(fd, out.p, out.n) < 0)
		(void)unlink(path);
}

static void look_guest(struct prove_lane *l)
{
	struct prove_item *it = l->guest;
	struct probe_answer a;

	if (prove_session_look(&l->session, &a) && it) {
		int status = a.status > 255 ? PROVE_JOB_LATE : (int)a.status;

		l->guest = NULL;
		keep_inside(it, a.out);
		part_ended(l, it, PROBE_INSIDE, status, a.out,
			(unsigned)(clock_mono_ms() - it->asked_ms));
	}
	if (l->session.state == PROVE_SESSION_BROKEN && l->guest) {
		AUTO_FREE char *why = xasprintf("the guest did not respond: %s", l->session.why);

		end_item(l, l->guest, why);
	}
}

static void ask_lane(struct prove_lane *l, struct prove_item *it)
{
	AUTO_FREE char *script = prove_script_make(l, it, PROBE_INSIDE);

	it->phase = PROVE_ASKED;
	it->asked_ms = clock_mono_ms();
	l->guest = it;
	prove_session_ask(&l->session, (uint32_t)(it - l->items), it->seconds, script);
}

/* The next item to start: all `before` of the batch have ended, and an owner comes last. */
static struct prove_item *next_ready(struct prove_lane *l)
{
	struct prove_item *owner = NULL;

	if (find_lane(l, PROVE_BEFORE) || find_lane(l, PROVE_HELD) ||
		(l->host && l->host_part == PROBE_BEFORE))
		return NULL;
	for (size_t i = l->first; i < l->end; i++) {
		struct prove_item *it = &l->items[i];

		if (it->phase == PROVE_READY && !is_recovery(it))
			return it;
		if (it->phase == PROVE_READY)
			owner = it;
	}
	for (size_t i = l->first; i < l->end && owner; i++)
		if (&l->items[i] != owner && l->items[i].phase != PROVE_DONE)
			return NULL;
	return owner;
}

static bool start_next_guest(struct prove_lane *l)
{
	struct prove_item *it = next_ready(l);

	if (!it || l->guest)
		return false;
	if (!it->p->part[PROBE_INSIDE]) {
		go_on(l, it);
		return true;
	}
	switch (l->session.state) {
	case PROVE_SESSION_CLOSED:
		l->session.sbx = l->common->sbx;
		l->session.sandbox = l->place.name;
		l->session.tool = l->common->tool_bytes;
		prove_session_open(&l->session);
		return true;
	case PROVE_SESSION_OPEN:
		ask_lane(l, it);
		return true;
	case PROVE_SESSION_BROKEN: {
		AUTO_FREE char *why = xasprintf("the guest did not respond: %s", l->session.why);

		end_item(l, it, why);
		return true;
	}
	case PROVE_SESSION_PUTTING:
		break;
	}
	return false;
}

/* ---- batches ---- */

static void next_batch(struct prove_lane *l)
{
	bool harm = l->end > l->first && is_recovery(&l->items[l->first]);

	l->first = l->end;
	if (l->first == l->n) {
		prove_session_close(&l->session);
		return;
	}
	const struct prove_item *it = &l->items[l->first];

	for (l->end++; l->end < l->n; l->end++) {
		const struct prove_item *other = &l->items[l->end];

		if (is_recovery(it) ? other->owner != l->first
				    : is_recovery(other) || other->p->group != it->p->group)
			break;
	}
	/* The changes to the sandbox would break its session. */
	if (harm || is_recovery(it))
		prove_session_close(&l->session);
}

bool prove_lane_step(struct prove_lane *l)
{
	bool more = true;

	if (!l->up)
		return l->n > 0 && l->first < l->n;
	look_host(l);
	look_guest(l);
	while (more && l->first < l->n) {
		bool all = true;

		for (size_t i = l->first; i < l->end; i++)
			all = all && l->items[i].phase == PROVE_DONE;
		if (all && l->end < l->n && l->items[l->end].p->alone && !l->free)
			break;
		if (all)
			next_batch(l);
		more = all || start_next_host(l);
		more = start_next_guest(l) || more;
	}
	return l->first < l->n;
}

size_t prove_lane_poll(const struct prove_lane *l, struct pollfd *ret)
{
	size_t n = l->host ? prove_job_poll(l->host->job[l->host_part], ret) : 0;

	return n + prove_session_poll(&l->session, ret + n);
}

int prove_lane_wait_ms(const struct prove_lane *l)
{
	int a = l->host ? prove_job_wait_ms(l->host->job[l->host_part]) : -1;
	int b = prove_session_wait_ms(&l->session);

	return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

static void give_up_item(struct prove_lane *l, struct prove_item *it, const char *why, bool untried)
{
	it->res->untried = untried;
	end_item(l, it, why);
}

void prove_lane_give_up(struct prove_lane *l, const char *why, bool untried)
{
	/* Repeated items first: their owner depends on them. */
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].phase != PROVE_DONE && is_again(l, &l->items[i]))
			give_up_item(l, &l->items[i], why, untried);
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].phase != PROVE_DONE)
			give_up_item(l, &l->items[i], why, untried);
	l->first = l->end = l->n;
}

void prove_lane_done(struct prove_lane *l)
{
	prove_session_close(&l->session);
	for (size_t i = 0; i < l->n; i++) {
		struct prove_item *it = &l->items[i];

		for (size_t k = 0; k < PROBE_N_PARTS; k++) {
			if (it->job[k])
				prove_job_end(it->job[k]);
			free(it->job[k]);
			free(it->seen[k].text);
		}
		free(it->dir);
	}
	free(l->items);
	prove_place_done(&l->place);
	*l = (struct prove_lane){0};
}
