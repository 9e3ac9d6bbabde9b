/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop - stops the sandbox.
 *
 * How      stop_begin requests a shutdown from the guest and sets the timeout. When QEMU exits or
 *          the timeout expires, stop_finish kills all processes and writes the reason to the file
 *          `last` for an sbxd that was not connected.
 */
#include "life.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* The reply does not matter: qemu exits. */
static const struct ask_kind power_ask = {GUEST_PATH_POWER};

static int ask_power_off(struct keeper *k)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = guest_put_power(&wr, GUEST_POWER_OFF);

	return r < 0 ? r : ask_guest(k, &power_ask, slice_of(buf, wr.n), KEEPER_ASK_MS, -1, 0);
}

void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why)
{
	bool was_running = k->state.phase == KEEPER_RUNNING;

	if (k->state.phase == KEEPER_STOPPED)
		return;
	if (k->plan == START_MAKE) {
		make_fail(k, why);
		return;
	}
	if (k->state.paused) /* a paused guest cannot power off */
		timeout_ms = 0;
	space_stop(k);
	k->state.phase = KEEPER_STOPPING;
	if (why[0] && !k->why[0]) {
		(void)snprintf(k->why, sizeof(k->why), "%s", why);
		log_error("stopping: %s", why);
	}
	suspend_drop(k);
	resume_drop(k);
	waiting_drop_all(k);
	ports_close(k);
	link_progress(k, 100, k->why[0] ? k->why : "stopping");
	if (!k->vmm) {
		stop_finish(k, "");
		return;
	}
	if (timeout_ms > 0 && was_running && ask_power_off(k) < 0)
		log_warn("cannot request a shutdown from the guest");
	loop_timer_set(&k->loop, &k->stop_timer, clock_mono_ms() + timeout_ms,
		(struct loop_key){.kind = EV_TIMER_STOP});
}

void stop_on_timeout(struct keeper *k)
{
	if (k->vmm)
		vmm_kill(k->vmm); /* EV_QEMU_END follows */
	else
		stop_finish(k, "");
}

static void leave_word(const struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/last", k->dir);
	struct err err = {0};
	int r = file_save(path, slice_from_str(k->why), &err);

	if (r < 0)
		log_warn("%s", err_text(&err, r));
}

void stop_finish(struct keeper *k, const char *why)
{
	if (k->over)
		return;
	if (why[0] && !k->why[0])
		(void)snprintf(k->why, sizeof(k->why), "%s", why);
	start_undo(k);
	vault_stop(k);
	trust_wipe(k);
	pool_on_stop(k);
	record_life(k, "stop", k->why);
	holds_done(k);
	record_close(k);
	leave_word(k);
	hands_leave(k);
	k->state.phase = KEEPER_STOPPED;
	k->state.sessions = 0;
	(void)snprintf(k->state.text, sizeof(k->state.text), "%s", k->why);
	link_push_state(k);
	link_answer(k, k->stop_link, k->stop_link_gen, k->stop_msg, 0, "");
	log_info("stopped%s%s", k->why[0] ? ": " : "", k->why);
	k->over = true;
}
