/* SPDX-License-Identifier: Apache-2.0 */
#include "net_rig.h"
#include "src/guest/net/net_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/vm/vmm/disk.h"
#include "lib/vm/vmm/initrd.h"

#define TRUST_MS 20000
#define BOOT_MS 90000
#define CTL_STREAM 0

/* ---- edge on sbx.net ---- */

static uint32_t service_of(const char *path)
{
	const char *port = strrchr(path, '/');

	return strncmp(path, "/tcp/", 5) == 0 ? (uint32_t)strtoul(port + 1, NULL, 10) : 0;
}

/* The query before a connection: a status, and an empty body. All of them share one slot. */
static int answer_may(struct rig *r, uint32_t id, const char *path)
{
	unsigned long port = strtoul(strrchr(path, '/') + 1, NULL, 10);

	r->streams[RIG_SLOTS].done = true;
	r->n_open++;
	if (port == RIG_SILENT)
		return 0;
	return wire_reply(r->net.wire, id, port == RIG_REFUSED ? 403 : 200);
}

static int net_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	struct rig *r = ctx;
	size_t left = sizeof(r->paths) - r->n_paths;

	if (strncmp(path, "/may/", 5) == 0) {
		*ret_slot = RIG_SLOTS;
		return answer_may(r, id, path);
	}
	if (left > strlen(path) + 2)
		r->n_paths += (size_t)snprintf(r->paths + r->n_paths, left, "%s\n", path);
	for (uint32_t i = 0; i < RIG_SLOTS; i++) {
		struct rig_stream *s = &r->streams[i];

		if (s->used)
			continue;
		*s = (struct rig_stream){.used = true, .id = id, .service = service_of(path)};
		snprintf(s->path, sizeof(s->path), "%s", path);
		bufq_init(&s->out, 4 * WIRE_NET_WINDOW);
		if (s->service == RIG_SOURCE)
			s->to_send = RIG_BULK;
		if (s->service == RIG_DAYTIME) {
			(void)bufq_put(&s->out, slice_of("now\n", 4));
			s->done = true;
		}
		*ret_slot = i;
		r->n_open++;
		r->max_open = MAX(r->max_open, r->n_open);
		return wire_reply(r->net.wire, id, 200);
	}
	return -EBUSY;
}

static void say(struct rig *r, struct rig_stream *s, const char *text)
{
	(void)bufq_put(&s->out, slice_of(text, strlen(text)));
	wire_resume(r->net.wire, s->id);
}

static void answer_http(struct rig *r, struct rig_stream *s)
{
	AUTO_FREE char *text = xasprintf("HTTP/1.0 200 OK\r\n\r\nyou are on %s\n", s->path);

	s->done = true;
	say(r, s, text);
}

static void put_gateway(uint8_t *to, bool is_v6)
{
	const struct in_addr a = net_link_gateway();
	const struct in6_addr a6 = net_link_gateway6();

	memcpy(to, is_v6 ? (const void *)&a6 : &a, is_v6 ? sizeof(a6) : sizeof(a));
}

/* Every name has the address 198.18.7.7 or fd00::7, except the gateway. */
static void answer_dns(struct rig *r, struct rig_stream *s)
{
	uint8_t m[512 + 64];
	size_t n = bufq_take(&s->out, m, 512), at = 12;
	static const uint8_t a[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 7, 7};
	static const uint8_t aaaa[] = {0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0xfd, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};

	while (at < n && m[at])
		at += m[at] + 1u;
	if (at + 5 <= n) {
		bool is_v6 = m[at + 2] == 28;

		n = at + 5;
		m[2] = 0x81;
		m[3] = 0x80;
		memset(m + 6, 0, 6);
		m[7] = 1;
		memcpy(m + n, is_v6 ? aaaa : a, is_v6 ? sizeof(aaaa) : sizeof(a));
		if (memcmp(m + 13, "gateway", 7) == 0)
			put_gateway(m + n + 12, is_v6);
		n += is_v6 ? sizeof(aaaa) : sizeof(a);
		(void)bufq_put(&s->out, slice_of(m, n));
	}
	s->done = true;
	wire_resume(r->net.wire, s->id);
}

static bool is_dns(const struct rig_stream *s)
{
	return strncmp(s->path, "/dns/", 5) == 0;
}

static void net_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];

	s->taken += bytes.n;
	if (s->service == RIG_STALL)
		return;
	if (s->service == RIG_ECHO || is_dns(s)) {
		/* The echo returns its window only as it sends. */
		(void)bufq_put(&s->out, bytes);
		wire_resume(r->net.wire, id);
		if (!is_dns(s))
			return;
	}
	wire_consumed(r->net.wire, id, bytes.n);
	if (s->service == RIG_RESET) {
		wire_reset(r->net.wire, id);
		bufq_done(&s->out);
		s->used = false;
		r->n_open--;
	} else if ((s->service == RIG_HTTP || strcmp(s->path, "/proxy") == 0) && !s->done) {
		answer_http(r, s);
	}
}

static void net_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];
	char text[64];

	s->ended = true;
	if (is_dns(s)) {
		answer_dns(r, s);
	} else if (s->service == RIG_SINK) {
		snprintf(text, sizeof(text), "took %llu\n", (unsigned long long)s->taken);
		s->done = true;
		say(r, s, text);
	} else {
		wire_resume(r->net.wire, id);
	}
}

static void net_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];
	size_t left = sizeof(r->paths) - r->n_paths;

	if (s->service == RIG_DAYTIME && left > 64)
		r->n_paths += (size_t)snprintf(
			r->paths + r->n_paths, left, "late %llu\n", (unsigned long long)s->taken);
	bufq_done(&s->out);
	s->used = false;
	r->n_open--;
}

static bool ends_with_guest(uint32_t service)
{
	return service == RIG_ECHO || service == RIG_SILENT || service == RIG_REFUSED;
}

static ssize_t net_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct rig *r = ctx;
	struct rig_stream *s = &r->streams[slot];
	size_t k;

	if (s->to_send) {
		k = MIN(n, s->to_send);
		memset(buf, 'x', k);
		s->to_send -= k;
		s->done = s->to_send == 0;
		return (ssize_t)k;
	}
	/* A DNS query is collected in the same queue and must not be echoed. */
	if (is_dns(s) && !s->done)
		return -EAGAIN;
	k = bufq_take(&s->out, buf, n);
	if (k && s->service == RIG_ECHO)
		wire_consumed(r->net.wire, id, k);
	if (k)
		return (ssize_t)k;
	return s->done || (s->ended && ends_with_guest(s->service)) ? 0 : -EAGAIN;
}

static void net_is_ready(void *ctx)
{
	((struct rig *)ctx)->net_ready = true;
}

static const struct wire_ops net_ops = {
	.on_ready = net_is_ready,
	.on_open = net_open,
	.on_data = net_data,
	.on_end = net_end,
	.on_close = net_close,
	.pull = net_pull,
};

/* ---- the host on sbx.ctl: one stream at a time ---- */

static void keep_output(struct rig *r, struct slice s)
{
	size_t k = MIN(s.n, sizeof(r->output) - 1 - r->n_output);

	memcpy(r->output + r->n_output, s.p, k);
	r->n_output += k;
	r->output[r->n_output] = '\0';
}

static void take_frame(struct rig *r, const struct exec_frame *f)
{
	struct slice text;
	bool signalled;
	uint8_t value;

	if (f->type == EXEC_STDOUT || f->type == EXEC_STDERR)
		keep_output(r, f->payload);
	if (f->type == EXEC_EXIT && exec_get_exit(f->payload, &signalled, &value) == 0)
		r->status = signalled ? 128 + value : value;
	if (f->type == EXEC_ERROR && exec_get_error(f->payload, &value, &text) == 0) {
		keep_output(r, text);
		r->status = value;
	}
}

static void ctl_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct rig *r = ctx;
	struct exec_frame f;

	wire_consumed(r->ctl.wire, id, bytes.n);
	if (!r->is_exec)
		keep_output(r, bytes);
	while (r->is_exec && exec_reader_feed(&r->reader, &bytes, &f) > 0)
		take_frame(r, &f);
}

static void ctl_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	struct rig *r = ctx;

	if (!r->is_exec)
		r->status = status == 200 ? 0 : (int)status;
}

static void ctl_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct rig *r = ctx;

	r->to_guest_over = true;
	wire_resume(r->ctl.wire, id);
}

static void ctl_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	((struct rig *)ctx)->ctl_closed = true;
}

static ssize_t ctl_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct rig *r = ctx;
	size_t k = bufq_take(&r->to_guest, buf, n);

	if (k)
		return (ssize_t)k;
	return r->to_guest_over ? 0 : -EAGAIN;
}

static const struct wire_ops ctl_ops = {
	.on_reply = ctl_reply,
	.on_data = ctl_data,
	.on_end = ctl_end,
	.on_close = ctl_close,
	.pull = ctl_pull,
};

/* ---- moving bytes ---- */

static void link_read(struct rig_link *l)
{
	static uint8_t buf[262144];
	ssize_t n = recv(l->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n == 0)
		l->broken = true;
	if (n > 0 && wire_feed(l->wire, slice_of(buf, (size_t)n), clock_mono_ms()) < 0) {
		print_message("the wire: %s\n", wire_error(l->wire));
		l->broken = true;
	}
}

static void link_write(struct rig_link *l)
{
	while (l->fd >= 0 && !l->broken) {
		ssize_t n;

		if (l->at == l->n) {
			n = wire_pull(l->wire, l->out, sizeof(l->out));
			if (n <= 0)
				return;
			l->at = 0;
			l->n = (size_t)n;
		}
		n = send(l->fd, l->out + l->at, l->n - l->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return;
		l->at += (size_t)n;
	}
}

/* As with the keeper: another edge follows a broken one. */
static void replace_broken(struct rig *r)
{
	if (r->net.broken && r->net.wire) {
		rig_net_leave(r);
		r->return_at = clock_mono_ms() + 100;
	}
	if (r->return_at && clock_mono_ms() >= r->return_at) {
		r->return_at = 0;
		rig_net_return(r);
	}
}

static void fail_with_console(struct rig *r)
{
	rig_console(r);
	fail_msg("the guest panicked or rebooted:\n%s", r->output);
}

static void step(struct rig *r)
{
	struct rig_link *links[] = {&r->ctl, &r->net};
	struct pollfd p[3] = {{.fd = vmm_poll_fd(r->vmm), .events = POLLIN}};
	struct vmm_event ev;

	for (int i = 0; i < 2; i++) {
		link_write(links[i]);
		p[i + 1] = (struct pollfd){.fd = links[i]->broken ? -1 : links[i]->fd,
			.events = (short)(POLLIN | (links[i]->at < links[i]->n ? POLLOUT : 0))};
	}
	(void)poll(p, 3, 100);
	while (vmm_next(r->vmm, &ev) > 0) {
		r->seen |= 1ull << ev.kind;
		if (ev.kind == VMM_EV_RESET)
			fail_with_console(r);
		if (ev.kind == VMM_EV_FATAL || ev.kind == VMM_EV_SHARE_FAILED ||
			ev.kind == VMM_EV_SHARE_DETACH_FAILED)
			fail_msg("qemu: %s", ev.text);
	}
	for (int i = 0; i < 2; i++)
		if (p[i + 1].revents & (POLLIN | POLLHUP))
			link_read(links[i]);
	replace_broken(r);
}

void rig_console(struct rig *r)
{
	uint64_t end = clock_mono_ms() + BOOT_MS;
	struct vmm_event ev;

	r->n_output = 0;
	assert_int_equal(vmm_console_tail(r->vmm), 0);
	while (clock_mono_ms() < end) {
		struct pollfd p = {.fd = vmm_poll_fd(r->vmm), .events = POLLIN};

		(void)poll(&p, 1, 100);
		while (vmm_next(r->vmm, &ev) > 0) {
			if (ev.kind != VMM_EV_CONSOLE)
				continue;
			keep_output(r, slice_of(ev.console, ev.console_len));
			return;
		}
	}
	fail_msg("the console cannot be read");
}

void rig_serve(struct rig *r, unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	while (clock_mono_ms() < end)
		step(r);
}

static int finish(struct rig *r, const char *path, unsigned timeout_ms)
{
	uint64_t end = clock_mono_ms() + timeout_ms;
	uint32_t id;

	r->n_output = 0;
	r->output[0] = '\0';
	r->status = -1;
	r->ctl_closed = false;
	assert_int_equal(wire_open(r->ctl.wire, path, CTL_STREAM, &id), 0);
	while (!r->ctl_closed && clock_mono_ms() < end && !r->ctl.broken)
		step(r);
	if (!r->ctl_closed) {
		wire_reset(r->ctl.wire, id);
		print_message("%s\n", r->output);
		fail_msg("%s: no end within %u ms", path, timeout_ms);
	}
	return r->status;
}

int rig_run(struct rig *r, const char *script, unsigned timeout_ms)
{
	char *argv[] = {(char *)"bash", (char *)"-c", (char *)script, NULL};
	struct exec_spec spec = {.user = (char *)"root", .cwd = (char *)"/", .argv = argv};
	int status;

	r->is_exec = true;
	r->to_guest_over = false;
	exec_reader_init(&r->reader, EXEC_FROM_GUEST);
	assert_int_equal(exec_put_spec(&r->to_guest, &spec), 0);
	status = finish(r, GUEST_PATH_EXEC, timeout_ms);
	exec_reader_done(&r->reader);
	return status;
}

void rig_ask(struct rig *r, const char *path, const struct wr *body, unsigned timeout_ms,
	struct guest_reply *ret)
{
	(void)bufq_put(&r->to_guest, slice_of(body->p, body->n));
	r->is_exec = false;
	r->to_guest_over = true;
	assert_int_equal(finish(r, path, timeout_ms), 0);
	assert_int_equal(guest_get_reply(slice_of(r->output, r->n_output), ret), 0);
}

void rig_wait(struct rig *r, enum vmm_event_kind kind, unsigned timeout_ms)
{
	uint64_t end = clock_mono_ms() + timeout_ms;

	while (!(r->seen & 1ull << kind) && clock_mono_ms() < end)
		step(r);
	if (!(r->seen & 1ull << kind))
		fail_msg("vmm does not tell %d", (int)kind);
	r->seen = 0;
}

/* The guest must accept. */
static void ask(struct rig *r, const char *path, const struct wr *body, unsigned timeout_ms)
{
	struct guest_reply reply;

	rig_ask(r, path, body, timeout_ms, &reply);
	if (!reply.ok)
		fail_msg("%s: %s", path, reply.text);
}

void rig_setup(struct rig *r, struct guest_mounts mounts)
{
	static uint8_t body[GUEST_MAX_BODY];
	struct wr wr = wr_init(body, sizeof(body));
	struct guest_setup s = {.id = (char *)"id",
		.name = (char *)"rig",
		.hostname = (char *)"rig",
		.wall_ms = clock_wall_ms(),
		.uid = 1000,
		.gid = 1000,
		.machine_id = (char *)"0123456789abcdef0123456789abcdef",
		.workdir = (char *)"",
		.mounts = mounts};

	assert_int_equal(guest_put_setup(&wr, &s), 0);
	ask(r, GUEST_PATH_SETUP, &wr, BOOT_MS);
}

void rig_trust(struct rig *r, const char *ca_pem, char **env, size_t n_env)
{
	static uint8_t body[GUEST_MAX_BODY];
	struct wr wr = wr_init(body, sizeof(body));
	struct guest_trust t = {.ca_pem = (char *)ca_pem, .env = env, .n_env = n_env};

	assert_int_equal(guest_put_trust(&wr, &t), 0);
	ask(r, GUEST_PATH_TRUST, &wr, TRUST_MS);
}

/* ---- life ---- */

static int listen_on(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void link_up(struct rig_link *l, const char *path, struct wire *wire)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	*l = (struct rig_link){.wire = wire};
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(connect(l->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
}

void rig_net_leave(struct rig *r)
{
	fd_close(&r->net.fd);
	wire_free(TAKE(r->net.wire));
	r->net.broken = true;
	for (uint32_t i = 0; i < RIG_SLOTS; i++)
		if (r->streams[i].used)
			bufq_done(&r->streams[i].out);
	memset(r->streams, 0, sizeof(r->streams));
	r->n_open = 0;
	r->net_ready = false;
}

void rig_net_return(struct rig *r)
{
	link_up(&r->net, r->net_path, wire_new(WIRE_SERVER, WIRE_NET, &net_ops, r));
}

static void make_disks(struct rig *r, const char *template, char *root, char *docker)
{
	AUTO_FREE char *root_base = xasprintf("%s/root.img", template);
	AUTO_FREE char *docker_base = xasprintf("%s/docker.img", template);
	struct err err = {};

	sprintf(root, "%s/root.qcow2", r->dir);
	sprintf(docker, "%s/docker.qcow2", r->dir);
	if (disk_make(root, root_base, 0, &err) < 0 || disk_make(docker, docker_base, 0, &err) < 0)
		fail_msg("%s", err.text);
}

void rig_start(struct rig *r, const char *template, const char *guest, uint64_t memory)
{
	char root[100], docker[100], initrd[100];
	AUTO_FREE char *kernel = xasprintf("%s/vmlinuz", template);
	AUTO_FREE char *modules = xasprintf("%s/modules.cpio", template);
	AUTO_FREE char *root_base = xasprintf("%s/root.img", template);
	AUTO_FREE char *docker_base = xasprintf("%s/docker.img", template);
	struct err err = {};
	uint64_t t;

	snprintf(r->dir, sizeof(r->dir), "/tmp/sbx-net-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->ctl_path, sizeof(r->ctl_path), "%s/ctl", r->dir);
	snprintf(r->net_path, sizeof(r->net_path), "%s/net", r->dir);
	snprintf(initrd, sizeof(initrd), "%s/initrd", r->dir);
	make_disks(r, template, root, docker);
	if (initrd_write(initrd, guest, modules, &err) < 0)
		fail_msg("%s", err.text);
	bufq_init(&r->to_guest, 2 * EXEC_MAX_PAYLOAD);
	r->ctl_listen = listen_on(r->ctl_path);
	r->net_listen = listen_on(r->net_path);
	r->log_fd = memfd_create("log", MFD_CLOEXEC);
	t = clock_mono_ms();
	if (vmm_start(
		    &(struct vmm_config){
			    .kernel = kernel,
			    .initrd = initrd,
			    .disks = {[VMM_ROOT] = {{root_base, root}, 2},
				    [VMM_DOCKER] = {{docker_base, docker}, 2}},
			    .cpus = 2,
			    .memory = memory,
			    .memory_fd = -1,
			    .accel = VMM_TCG,
			    .ctl_listen_fd = r->ctl_listen,
			    .net_listen_fd = r->net_listen,
			    .share_fd = -1,
			    .log_fd = r->log_fd,
		    },
		    &r->vmm, &err) < 0)
		fail_msg("%s", err.text);
	link_up(&r->ctl, r->ctl_path, wire_new(WIRE_CLIENT, WIRE_CTL, &ctl_ops, r));
	rig_net_return(r);
	rig_setup(r, (struct guest_mounts){0});
	r->setup_ms = clock_mono_ms() - t;
}

void rig_stop(struct rig *r)
{
	static const char *const names[] = {"root.qcow2", "docker.qcow2", "initrd", "ctl", "net"};

	vmm_done(TAKE(r->vmm));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", r->dir, names[i]);

		(void)unlink(path);
	}
	(void)rmdir(r->dir);
	if (r->net.wire)
		rig_net_leave(r);
	fd_close(&r->ctl.fd);
	wire_free(TAKE(r->ctl.wire));
	bufq_done(&r->to_guest);
	fd_close(&r->ctl_listen);
	fd_close(&r->net_listen);
	fd_close(&r->log_fd);
}

void rig_leave_docker_out(const struct CMUnitTest *tests, size_t n)
{
	if (getenv("SBX_LONG"))
		return;
	cmocka_set_skip_filter("docker_*");
	for (size_t i = 0; i < n; i++)
		if (strncmp(tests[i].name, "docker_", 7) == 0)
			printf("[  SKIPPED ] %s\n", tests[i].name);
}
