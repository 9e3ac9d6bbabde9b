/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - from nothing to a running guest, in named steps, each with its undo.
 *
 * How      start_prepare and start_go_on create what lasts (initrd, accelerator, disks) and select
 *          the plan (state/plan.h). start_machine starts the processes of the plan (port, share,
 *          qemu, edge). Then edge sends READY, /setup configures the guest, and the sandbox runs.
 *          The boot watchdog retries once before it gives up.
 * Trust    Paths come from the user's own spec and directories. The guest replies yes or no.
 */
#include "life.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/base/trace.h"

static char *own_file(const struct keeper *k, const char *name)
{
	return xasprintf("%s/%s", k->dir, name);
}

static void select_plan(struct keeper *k)
{
	char why[sizeof(k->state.cold_why)];
	struct start_facts facts = {.wanted = k->plan,
		.is_suspended = suspend_file_is_there(k->dir),
		.has_own_disks = disks_exist(k->dir)};
	struct start_choice choice;

	/* Finding the snapshot takes time: its key also includes a hash of the initrd. */
	if (plan_needs_image(facts))
		facts.image_why = warm_open(k, why, sizeof(why));
	choice = plan_select(&facts);
	k->plan = choice.plan;
	if (choice.why)
		warm_boot_instead(k, choice.why);
}

/* A snapshot of the template has its own disks. */
static int step_disks(struct keeper *k, struct err *err)
{
	select_plan(k);
	if (k->restore_fd)
		warm_take_disks(k);
	if (k->plan == START_POOL && k->state.cold_why[0])
		return err_set(err, -ENOENT, "%s", k->state.cold_why);
	return disks_open(k->disks, k->dir, err);
}

struct step {
	unsigned percent;
	const char *text;
	int (*run)(struct keeper *k, struct err *err);
};

static int run_steps(struct keeper *k, const struct step *steps, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t began = clock_mono_ms();
		int r;

		link_progress(k, steps[i].percent, steps[i].text);
		r = steps[i].run(k, err);
		trace_line(TRACE_VM, "step '%s': %s, %llu ms", steps[i].text,
			r < 0 ? strerror(-r) : "done",
			(unsigned long long)(clock_mono_ms() - began));
		if (r < 0)
			return err_wrap(err, r, "%s", steps[i].text);
	}
	return 0;
}

int start_prepare(struct keeper *k, struct err *err)
{
	static const struct step steps[] = {
		{1, "opening the template", machine_find_template},
		{2, "creating the initrd", machine_make_initrd},
	};
	int r = run_steps(k, steps, ARRAY_LEN(steps), err);

	return r < 0 ? r : accel_begin(k, err);
}

int start_go_on(struct keeper *k, struct err *err)
{
	static const struct step steps[] = {
		{5, "creating the disks", step_disks},
	};
	bool is_discarded = k->plan == START_COLD; /* --cold: the snapshot of the sandbox */
	int r = run_steps(k, steps, ARRAY_LEN(steps), err);

	if (r == 0)
		r = hands_start(k, err);
	if (r == 0)
		r = hands_seal(k, err);
	if (r == 0 && is_discarded)
		suspend_file_remove(k->dir);
	return r < 0 ? r : start_machine(k, err);
}

/* Called while QEMU boots. Never fails: without one of these processes the network is denied, with
 * the reason. */
int start_network(struct keeper *k, struct err *err)
{
	(void)err;
	if (k->plan == START_MAKE)
		return 0;
	record_begin(k);
	egress_start(k);
	vault_start(k);
	return 0;
}

static uint64_t boot_limit(const struct keeper *k)
{
	bool kvm = k->accel == VMM_KVM;

	if (k->suspend->is_waking)
		return KEEPER_BOOT_MS_TCG;
	if (warm_is_on(k))
		return kvm ? KEEPER_WARM_MS_KVM : KEEPER_WARM_MS_TCG;
	return kvm ? KEEPER_BOOT_MS_KVM : KEEPER_BOOT_MS_TCG;
}

static void set_timer(struct keeper *k)
{
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + boot_limit(k),
		(struct loop_key){.kind = EV_TIMER_BOOT});
}

void start_give_time(struct keeper *k)
{
	if (k->boot_timer.pos && !k->warm->failed[0])
		set_timer(k);
}

int start_helpers(struct keeper *k, struct err *err)
{
	static const struct step steps[] = {
		{14, "starting the proxy", edge_start},
		{16, "sharing the workspaces", start_share},
		{18, "preparing the network", start_network},
	};
	int r = run_steps(k, steps, ARRAY_LEN(steps), err);

	if (r < 0)
		return r;
	warm_mark(k, "all is started");
	link_progress(k, 20, "restoring the guest");
	return 0;
}

int start_machine(struct keeper *k, struct err *err)
{
	static const struct step cold[] = {
		{8, "opening the guest's port", start_port},
		{10, "sharing the workspaces", start_share},
		{12, "starting qemu", start_qemu},
		{15, "preparing the network", start_network},
		{18, "starting the proxy", edge_start},
	};
	/* The slowest first; start_helpers runs while qemu reads. */
	static const struct step warm[] = {
		{8, "checking the snapshot", warm_check},
		{9, "opening the guest's port", start_port},
		{12, "starting qemu", start_qemu},
	};
	bool is_warm = warm_is_on(k);
	int r = 0;

	k->boot_tries++;
	k->qemu_ended = false;
	k->qemu_said[0] = '\0';
	suspend_file_tidy(k->dir);
	space_place_memory(k);
	if (k->memory_dir)
		space_start(k);
	if (k->plan == START_RESUME)
		r = resume_begin(k, err);
	if (r != 0)
		return MIN(r, 0);
	r = is_warm ? run_steps(k, warm, ARRAY_LEN(warm), err)
		    : run_steps(k, cold, ARRAY_LEN(cold), err);
	if (r < 0)
		return r;
	if (!is_warm)
		link_progress(k, 20, "booting the guest");
	set_timer(k);
	return 0;
}

void start_undo(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->boot_timer);
	accel_undo(k);
	warm_undo(k);
	trust_forget(k);
	edge_kill(k);
	clerks_kill_all(k, "the sandbox is stopping");
	origins_kill_all(k, "the sandbox is stopping");
	egress_kill(k);
	ssh_agent_kill(k);
	machine_end_qemu(k);
	start_stop_share(k);
	fd_close(&k->port_fd);
	fd_close(&k->net_port_fd);
	fd_close(&k->port_path[HANDS_CTL]);
	fd_close(&k->port_path[HANDS_NET]);
}

/* The guest's machine id stays the same over restarts: it is stored in the directory. */
static int machine_id(struct keeper *k, char buf[33], struct err *err)
{
	AUTO_FREE char *path = own_file(k, "machine-id");
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = file_load(path, 32, &text, &n, err);

	if (r == 0 && n == 32)
		return str_copy(buf, 33, text);
	if (r < 0 && r != -ENOENT)
		return r;
	str_random_hex(buf, 16);
	return file_save(path, slice_of(buf, 32), err);
}

/* The clone comes first: it is what the user works on. */
static char *first_folder(const struct keeper *k)
{
	if (k->spec.clone.guest)
		return k->spec.clone.guest;
	for (size_t i = 0; i < k->spec.n_workspaces; i++)
		if (!k->spec.workspaces[i].file)
			return k->spec.workspaces[i].guest;
	return (char *)"";
}

/* The variables of the sandbox, and SSH_AUTH_SOCK if they do not set it. */
static size_t fill_env(const struct keeper *k, char *env[SPEC_MAX_ENV + 1])
{
	size_t n = k->spec.n_env;
	bool has_own = false;

	for (size_t i = 0; i < n; i++) {
		env[i] = k->spec.env[i];
		has_own = has_own || str_starts(env[i], "SSH_AUTH_SOCK=");
	}
	if (k->spec.ssh.socket && !has_own)
		env[n++] = (char *)"SSH_AUTH_SOCK=" GUEST_SSH_AGENT;
	return n;
}

static void on_setup_answer(struct keeper *k, const struct guest_reply *reply)
{
	char why[KEEPER_MAX_TEXT + 64];

	/* If edge exited meanwhile, the READY of the next edge sends /setup again. */
	if (k->state.phase != KEEPER_STARTING || !edge_is_alive(k))
		return;
	if (!reply->ok) {
		(void)snprintf(why, sizeof(why), "cannot set up the guest: %s", reply->text);
		if (warm_is_on(k))
			warm_fail(k, why);
		else
			stop_begin(k, 0, why);
		return;
	}
	if (warm_is_on(k))
		warm_mark(k, "the guest is set up");
	/* Its first program must find the certificate and the variables. */
	k->trust->is_last = true;
	k->trust->is_due = k->trust->is_due || !k->trust->is_told;
	trust_send(k);
	if (!k->trust->is_asked)
		start_on_trusted(k);
}

const struct ask_kind start_setup_ask = {
	GUEST_PATH_SETUP, .on_reply = on_setup_answer, .is_patient = true};

static int send_setup(struct keeper *k, struct err *err)
{
	static uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_mount mounts[SPEC_MAX_WORKSPACES];
	char *env[SPEC_MAX_ENV + 1];
	char id[33];
	struct guest_setup setup = {.id = k->spec.id,
		.name = k->spec.name,
		.hostname = k->spec.name,
		.wall_ms = clock_wall_ms(),
		.uid = getuid(),
		.gid = getgid(),
		.machine_id = id,
		.workdir = first_folder(k),
		.mounts = {k->spec.n_workspaces + k->spec.n_mounts, mounts},
		.env = env};
	int r = machine_id(k, id, err);

	setup.n_env = fill_env(k, env);

	if (r < 0)
		return r;
	setup.mounts.n = start_fill_mounts(k, mounts);
	if (getrandom(setup.entropy, sizeof(setup.entropy), 0) != (ssize_t)sizeof(setup.entropy))
		return err_errno(err, -errno, "cannot get random numbers");
	r = guest_put_setup(&wr, &setup);
	if (r < 0)
		return err_errno(err, r,
			"cannot encode the guest's configuration: the environment may be too large");
	return ask_guest(k, &start_setup_ask, slice_of(buf, wr.n), KEEPER_SETUP_MS, -1, 0);
}

void start_on_ready(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->state.phase != KEEPER_STARTING)
		return;
	if (k->plan == START_MAKE) {
		make_on_ready(k);
		return;
	}
	if (warm_holds_setup(k) || (k->suspend->is_waking && k->suspend->is_share_due))
		return;
	link_progress(k, 85, "setting up the guest");
	r = k->suspend->is_waking ? suspend_send_wake(k, &err) : send_setup(k, &err);
	if (r < 0)
		stop_begin(k, 0, err_text(&err, r));
}

void start_on_trusted(struct keeper *k)
{
	if (k->state.phase != KEEPER_STARTING)
		return;
	loop_timer_clear(&k->loop, &k->boot_timer);
	ports_open(k);
	k->state.phase = KEEPER_RUNNING;
	ports_watch(k);
	k->state.boot_ms = (uint32_t)(clock_mono_ms() - k->started_ms);
	warm_mark(k, k->state.how == KEEPER_HOW_COLD ? "the sandbox runs (booted)"
						     : "the sandbox runs (restored)");
	warm_finish(k);
	link_progress(k, 100, k->suspend->lost);
	idle_start(k);
	space_start(k);
	trust_send(k); /* changes since the last one */
}

void start_boot(struct keeper *k)
{
	struct err err = {0};
	int r;

	start_undo(k);
	k->boot_tries = 0;
	r = start_machine(k, &err);
	if (r < 0)
		stop_begin(k, 0, err_text(&err, r));
}

static void give_up(struct keeper *k)
{
	char why[KEEPER_MAX_TEXT];

	if (!k->qemu_ended)
		(void)snprintf(
			why, sizeof(why), "the guest did not boot within the timeout, twice");
	else
		(void)snprintf(why, sizeof(why), "QEMU exited before the guest was ready: %s",
			k->qemu_said[0] ? k->qemu_said : "no output");
	stop_begin(k, 0, why);
}

void start_on_timeout(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->state.phase != KEEPER_STARTING)
		return;
	if (k->state.paused && !k->qemu_ended && !k->warm->failed[0]) {
		set_timer(k); /* paused by a full disk */
		return;
	}
	if (resume_on_failure(k, "the suspended VM did not resume within the timeout"))
		return;
	if (warm_is_on(k)) {
		warm_fall_back(k);
		return;
	}
	start_undo(k);
	if (k->boot_tries >= 2) {
		give_up(k);
		return;
	}
	log_warn("the guest did not boot within the timeout: retrying");
	suspend_forget_wake(k);
	r = start_machine(k, &err);
	if (r < 0)
		stop_begin(k, 0, err_text(&err, r));
}
