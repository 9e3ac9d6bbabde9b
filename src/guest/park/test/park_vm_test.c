/* SPDX-License-Identifier: Apache-2.0 */
/* A real VM (net_rig.h) with a share that is removed and added again: programs whose directory and
 * files are in it, also in a separate namespace as in a container, keep running. Needs a template
 * directory in SBX_TEST_TEMPLATE; argv[1] is sbx-guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "src/guest/net/test/net_rig.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/share/share.h"

#define STEP_MS 120000
#define ROUNDS 2

static const char *template, *guest_path;
static struct rig rig;
static struct share share = SHARE_EMPTY;
static char ws[64], other[64];

static void run(const char *script)
{
	int status = rig_run(&rig, script, STEP_MS);

	if (status != 0) {
		print_message("%s\n%s\n", script, rig.output);
		rig_console(&rig);
		print_message("%s\n", rig.output);
		fail_msg("status %d", status);
	}
}

static void plug(void)
{
	struct share_mount mounts[] = {{.host = ws, .guest = "/ws"},
		{.host = other, .guest = "/home/agent/more", .ro = true}};
	struct share_config cfg = {.mounts = mounts, .n_mounts = 2, .log_fd = rig.log_fd};
	struct err err = {};

	if (share_start(&cfg, &share, &err) < 0)
		fail_msg("%s", err.text);
	rig.seen = 0;
	assert_int_equal(vmm_attach_share(rig.vmm, TAKE_FD(share.vhost_fd)), 0);
	rig_wait(&rig, VMM_EV_SHARE_ATTACHED, STEP_MS);
}

static struct guest_mount places[] = {
	{.share = (char *)"/ws", .path = (char *)"/ws"},
	{.flags = GUEST_MOUNT_RO,
		.share = (char *)"/home/agent/more",
		.path = (char *)"/home/agent/more"},
};

static void ask(const char *path, const struct wr *body, const char *want)
{
	struct guest_reply reply;
	uint64_t t = clock_mono_ms();

	rig_ask(&rig, path, body, STEP_MS, &reply);
	print_message("%s: %u ms %s\n", path, (unsigned)(clock_mono_ms() - t), reply.text);
	if (!reply.ok || (want ? !strstr(reply.text, want) : reply.text[0]))
		fail_msg("%s: %d %s", path, reply.ok, reply.text);
}

static void away_and_back(const char *lost)
{
	static uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_wake wake = {
		.wall_ms = clock_wall_ms() + 1000000, .mounts = {ARRAY_LEN(places), places}};

	assert_int_equal(
		guest_put_park(&wr, &(struct guest_parking){.kind = GUEST_PARK_SUSPEND}), 0);
	ask(GUEST_PATH_PARK, &wr, lost);
	rig.seen = 0;
	assert_int_equal(vmm_detach_share(rig.vmm), 0);
	rig_wait(&rig, VMM_EV_SHARE_DETACHED, STEP_MS);
	share_stop(&share);
	plug();
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(guest_put_wake(&wr, &wake), 0);
	ask(GUEST_PATH_WAKE, &wr, lost);
}

/* wait_for CONDITION: on a busy host each of them takes a while. */
#define WAIT_FOR "wait_for() { for t in $(seq 200); do eval \"$1\" && return; sleep 0.1; done; }\n"

static const char *const programs =
	WAIT_FOR "cd /ws && cat > count.sh <<'E'\n"
		 "exec 5>>log; i=0\n"
		 "while :; do echo $i >&5; echo $i > /tmp/own; i=$((i+1)); sleep 0.05; done\n"
		 "E\n"
		 "setsid bash count.sh </dev/null >/dev/null 2>&1 & echo $! >/tmp/count.pid\n"
		 "cat > ns.sh <<'E'\n"
		 "mkdir -p /mnt/w; mount --bind -o ro /ws /mnt/w; mount -o remount,bind,ro /mnt/w\n"
		 "mkdir -p /mnt/x; mount --bind /ws/sub /mnt/x; cd /mnt/x\n"
		 "while :; do echo y >> ns.log; sleep 0.05; done\n"
		 "E\n"
		 "mkdir -p sub; setsid unshare -m bash ns.sh </dev/null >/dev/null 2>&1 & echo $! "
		 ">/tmp/ns.pid\n"
		 "cd /; setsid flock /ws/lock sleep 1000 </dev/null >/dev/null 2>&1 & \n"
		 "wait_for 'test -s /ws/log -a -s /ws/sub/ns.log && ! flock -n /ws/lock true'\n"
		 "cat /tmp/count.pid /tmp/ns.pid; tail -1 /ws/log; test -s /ws/sub/ns.log";

static const char *const checks = WAIT_FOR
	"p=$(cat /tmp/count.pid) n=$(cat /tmp/ns.pid)\n"
	"no() { echo \"not: $*\"; exit 1; }\n"
	"is() { \"$@\" || no \"$@\"; }\n"
	"isnt() { ! \"$@\" 2>/dev/null || no no \"$@\"; }\n"
	"is test $(readlink /proc/$p/cwd) = /ws; is test $(readlink /proc/$p/fd/5) = /ws/log\n"
	"is test $(readlink /proc/$n/cwd) = /mnt/x\n"
	"a=$(wc -l < /ws/log) c=$(wc -l < /ws/sub/ns.log)\n"
	"wait_for 'test $(wc -l < /ws/log) -gt $a -a $(wc -l < /ws/sub/ns.log) -gt $c'\n"
	"b=$(wc -l < /ws/log) d=$(wc -l < /ws/sub/ns.log)\n"
	"echo $a $b $c $d; is test $b -gt $a; is test $d -gt $c\n"
	/* no gap */
	"seq 0 $((a-1)) > /tmp/want; head -n $a /ws/log > /tmp/got; is cmp /tmp/got /tmp/want\n"
	"is nsenter -t $n -m test -e /mnt/w/log; isnt nsenter -t $n -m touch /mnt/w/no\n"
	"isnt flock -n /ws/lock true\n"
	"is test -e /home/agent/more/there; isnt touch /home/agent/more/no\n"
	"is test $(grep -c ' /ws virtiofs' /proc/mounts) = 1\n"
	"is test $(cat /proc/1/cgroup) = 0::/sbx\n";

static void test_programs_go_on(void **state)
{
	run(programs);
	print_message("%s", rig.output);
	for (int i = 0; i < ROUNDS; i++) {
		away_and_back(NULL);
		run(checks);
		print_message("%s", rig.output);
	}
	run("test $(date +%s) -gt $(( $(stat -c %Y /tmp/own) - 100 ))");
}

/* Items that cannot be restored are named, the others are restored. */
static void test_what_is_lost(void **state)
{
	run(WAIT_FOR "setsid bash -c 'exec 7>/ws/gone; rm /ws/gone; touch /tmp/removed; cd /tmp; "
		     "exec sleep "
		     "1000' </dev/null >/dev/null 2>&1 &\n"
		     "wait_for 'test -e /tmp/removed'; test -e /tmp/removed");
	away_and_back("/ws/gone (deleted) cannot be opened again");
	run(checks);
}

static int begin(void **state)
{
	AUTO_FREE char *there = NULL;
	FILE *f;

	snprintf(ws, sizeof(ws), "/tmp/sbx-park-ws-XXXXXX");
	snprintf(other, sizeof(other), "/tmp/sbx-park-other-XXXXXX");
	assert_non_null(mkdtemp(ws));
	assert_non_null(mkdtemp(other));
	there = xasprintf("%s/there", other);
	f = fopen(there, "we");
	assert_non_null(f);
	(void)fclose(f);
	rig_start(&rig, template, guest_path, 512ull << 20);
	plug();
	rig_setup(&rig, (struct guest_mounts){ARRAY_LEN(places), places});
	return 0;
}

static int end(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s %s", ws, other);

	rig_stop(&rig);
	share_stop(&share);
	return system(cmd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_go_on),
		cmocka_unit_test(test_what_is_lost),
	};

	template = getenv("SBX_TEST_TEMPLATE");
	guest_path = argc > 1 ? argv[1] : NULL;
	if (!template || !guest_path)
		return 77;
	return cmocka_run_group_tests(tests, begin, end);
}
