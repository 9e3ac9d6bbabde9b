/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "args.h"
#include "emulator.h"
#include "helper.h"
#include "verdict.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "lib/base/str.h"

#define MEMORY (256ULL << 20)
#define CACHE_NAME "kvm-selftest"
/* A failure may have been a busy moment, so it is believed for a while only. */
#define RETRY_S 600

/* ---- the boot ---- */

struct run {
	struct vmm *vmm;
	int conn;
	int log_fd; /* memfd with the output of qemu */
	char word[sizeof(SELFTEST_WORD)];
	size_t n;
	bool over; /* qemu failed; text has the reason */
	char text[VMM_MAX_TEXT];
};

static void run_done(struct run *run)
{
	vmm_done(run->vmm);
	fd_close(&run->conn);
	fd_close(&run->log_fd);
}

/* A listening socket with one connection on it; its name is removed before anything starts. */
static int make_wire(const char *dir, int *ret_listen, int *ret_conn)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	AUTO_CLOSE int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int c = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char rnd[17];
	int r = 0;

	str_random_hex(rnd, 8);
	if (snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/.t-%s", dir, rnd) >=
		(int)sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	if (l < 0 || c < 0 || bind(l, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	if (listen(l, 1) < 0 || connect(c, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		r = -errno;
	(void)unlink(sa.sun_path);
	if (r == 0)
		r = fd_set_nonblock(c, true);
	if (r < 0)
		return r;
	*ret_listen = TAKE_FD(l);
	*ret_conn = TAKE_FD(c);
	return 0;
}

static int start_selftest(
	struct run *run, const struct selftest_input *in, enum vmm_accel accel, struct err *err)
{
	AUTO_CLOSE int l = -1;
	int r = make_wire(in->cache_dir ? in->cache_dir : "/tmp", &l, &run->conn);
	struct vmm_config c = {
		.kernel = in->kernel,
		.initrd = in->initrd,
		.cpus = 1,
		.memory = MEMORY,
		.memory_fd = -1,
		.accel = accel,
		.ctl_listen_fd = l,
		.net_listen_fd = -1,
		.share_fd = -1,
		.cmdline_extra = "sbx.selftest",
	};

	if (r < 0)
		return err_errno(err, r, "cannot create a socket");
	run->log_fd = memfd_create("selftest-log", MFD_CLOEXEC);
	c.log_fd = run->log_fd;
	return vmm_start(&c, &run->vmm, err);
}

static void on_vmm(struct run *run)
{
	struct vmm_event ev;

	while (!run->over && vmm_next(run->vmm, &ev) > 0) {
		run->over = ev.kind == VMM_EV_FATAL || ev.kind == VMM_EV_ENDED ||
			    ev.kind == VMM_EV_RESET;
		if (run->over)
			memcpy(run->text, ev.text, sizeof(run->text));
	}
}

static void on_word(struct run *run)
{
	ssize_t n = read(run->conn, run->word + run->n, sizeof(run->word) - 1 - run->n);

	if (n > 0)
		run->n += (size_t)n;
}

static bool has_word(const struct run *run)
{
	return memcmp(run->word, SELFTEST_WORD, sizeof(SELFTEST_WORD) - 1) == 0;
}

/* The first line that qemu wrote, made printable, or the text given. */
static void explain_selftest(const struct run *run, char *buf, size_t size, const char *otherwise)
{
	ssize_t n = pread(run->log_fd, buf, size - 1, 0);
	size_t len = 0;

	while (n > 0 && len < (size_t)n && buf[len] != '\n') {
		buf[len] = buf[len] >= 0x20 && buf[len] < 0x7f ? buf[len] : '?';
		len++;
	}
	buf[len] = 0;
	if (len == 0)
		(void)snprintf(buf, size, "%s", otherwise);
}

static int watch_selftest(struct run *run, uint64_t bound_ms, struct err *err)
{
	uint64_t end = clock_mono_ms() + bound_ms;
	char why[200];

	for (;;) {
		struct pollfd p[] = {
			{.fd = run->conn, .events = POLLIN},
			{.fd = vmm_poll_fd(run->vmm), .events = (short)vmm_poll_events(run->vmm)},
		};
		uint64_t now = clock_mono_ms();

		if (now >= end)
			break;
		(void)poll(p, ARRAY_LEN(p), (int)(end - now));
		if (p[0].revents)
			on_word(run);
		if (has_word(run))
			return 0;
		on_vmm(run);
		if (run->over) {
			explain_selftest(run, why, sizeof(why), run->text);
			return err_set(err, -ENOTSUP, "the test VM exited: %s", why);
		}
	}
	explain_selftest(run, why, sizeof(why), "the kernel did not start sbx-guest");
	return err_set(err, -ENOTSUP, "the test VM did not boot within %" PRIu64 " s: %s",
		bound_ms / 1000, why);
}

int selftest_run(const struct selftest_input *in, enum vmm_accel accel, struct err *err)
{
	struct run run = {.conn = -1, .log_fd = -1};
	int r = start_selftest(&run, in, accel, err);

	if (r == 0)
		r = watch_selftest(&run, accel == VMM_KVM ? SELFTEST_KVM_MS : SELFTEST_TCG_MS, err);
	run_done(&run);
	return r;
}

/* ---- the cached verdict ---- */

/* "boot-id qemu kernel initrd", one line. */
static int make_key(const struct selftest_input *in, char *buf, size_t size)
{
	AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct wr w = wr_init(buf, size - 1);
	char boot[37] = "";
	int r;

	if (fd < 0 || fd_read_full(fd, boot, 36) != 36)
		return -EIO;
	wr_bytes(&w, slice_from_str(boot));
	wr_u8(&w, ' ');
	r = verdict_add_file(&w, ARGS_QEMU);
	if (r == 0)
		r = verdict_add_file(&w, in->kernel);
	if (r == 0)
		r = verdict_add_file(&w, in->initrd);
	if (r == 0)
		r = wr_finish(&w);
	if (r == 0)
		buf[w.n] = 0;
	return r;
}

/* 1: passed, -ENOTSUP: failed, err has the reason, 0: nothing known. */
static int load_selftest(const char *path, const char *key, struct err *err)
{
	char text[VERDICT_MAX];
	uint64_t age_s;

	if (!verdict_load(path, key, text, sizeof(text), &age_s))
		return 0;
	if (strcmp(text, "ok") == 0)
		return 1;
	return age_s > RETRY_S ? 0 : err_set(err, -ENOTSUP, "%s", text);
}

/* As load, for these files. */
static int look_up(const struct selftest_input *in, char *key, size_t size, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" CACHE_NAME, in->cache_dir ? in->cache_dir : "");
	int r = make_key(in, key, size);

	if (r < 0)
		return err_errno(err, r, "cannot access the kernel");
	return in->cache_dir ? load_selftest(path, key, err) : 0;
}

int selftest_cached(const struct selftest_input *in, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" CACHE_NAME, in->cache_dir ? in->cache_dir : "");
	char key[VERDICT_MAX / 2];
	int r = look_up(in, key, sizeof(key), err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = selftest_run(in, VMM_KVM, err);
	if (in->cache_dir && (r == 0 || r == -ENOTSUP))
		verdict_store(path, key, r == 0 ? "ok" : err_text(err, r));
	return r;
}

/* Not cached: membership in the group that may open it changes without a reboot. */
static int check_device(struct err *err)
{
	AUTO_CLOSE int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return err_set(err, -ENOTSUP,
			"cannot open /dev/kvm: permission denied (add this user to the group kvm)");
	return err_errno(err, -ENOTSUP, "cannot open /dev/kvm");
}

static int refuse_selftest(int r, const char *why, struct err *err)
{
	return err_set(err, r,
		"KVM does not work on this host: %.300s. Software emulation (--accel tcg, or: sbx settings set vm.accel tcg) is slow and not an isolation boundary",
		why);
}

int vmm_accel_known(enum selftest_wish wish, const struct selftest_input *in,
	enum vmm_accel *ret_accel, struct err *err)
{
	char key[VERDICT_MAX / 2];
	struct err why = {};
	int r;

	if (wish == SELFTEST_WANT_TCG) {
		*ret_accel = emulator_accel(ARGS_QEMU, in->cache_dir);
		return 0;
	}
	r = check_device(&why);
	if (r == 0)
		r = look_up(in, key, sizeof(key), &why);
	if (r < 0)
		return refuse_selftest(r, err_text(&why, r), err);
	if (r == 0)
		return 1;
	*ret_accel = VMM_KVM;
	return 0;
}

int vmm_accel_decide(enum selftest_wish wish, const struct selftest_input *in,
	enum vmm_accel *ret_accel, struct err *err)
{
	struct err why = {};
	int r = vmm_accel_known(wish, in, ret_accel, err);

	if (r <= 0)
		return r;
	r = selftest_cached(in, &why);
	if (r < 0)
		return refuse_selftest(r, err_text(&why, r), err);
	*ret_accel = VMM_KVM;
	return 0;
}

/* ---- the child ---- */

static void __attribute__((noreturn)) find_out(const struct selftest_input *in, int result)
{
	struct err why = {};
	int r = selftest_cached(in, &why);
	const char *text = r < 0 ? err_text(&why, r) : "";

	(void)!fd_write_all(result, text, strlen(text));
	_exit(r < 0 ? 1 : 0);
}

int selftest_begin(const struct selftest_input *in, struct selftest_child *ret, struct err *err)
{
	int p[2], r;

	*ret = (struct selftest_child)SELFTEST_CHILD_EMPTY;
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "cannot create a pipe");
	r = helper_begin(&ret->pid, &ret->pidfd, err);
	if (r == 0)
		find_out(in, p[1]);
	fd_close(&p[1]);
	if (r < 0) {
		fd_close(&p[0]);
		return r;
	}
	ret->result_fd = p[0];
	return 0;
}

int selftest_end(struct selftest_child *child, struct err *err)
{
	char why[VERDICT_MAX] = "";
	int status = helper_end(child->pid, &child->pidfd);
	ssize_t n = read(child->result_fd, why, sizeof(why) - 1);

	fd_close(&child->result_fd);
	if (status == 0)
		return 0;
	why[n > 0 ? n : 0] = '\0';
	return refuse_selftest(
		-ENOTSUP, why[0] ? why : "the process that tests KVM was killed", err);
}

void selftest_done(struct selftest_child *child)
{
	helper_kill(child->pid, &child->pidfd);
	fd_close(&child->result_fd);
}
