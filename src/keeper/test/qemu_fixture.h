/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qemu_fixture - a keeper with a fake qemu and a fake guest, whose answers the test writes.
 *
 * How      Include it instead of net_rig.h, once in a test program.
 * Trust    Test programs only.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/vmm/vmm_internal.h"
#include "net_rig.h"

#define GREETING "{\"QMP\":{\"version\":{},\"capabilities\":[]}}\n"

static int qemu; /* our end of the monitor */

/* ---- a false qemu ---- */

static inline void say(const char *text)
{
	assert_int_equal(fd_write_all(qemu, text, strlen(text)), 0);
	machine_on_qmp(&rig_k);
}

/* Expects this command next and lets it succeed. */
static inline void must_command(const char *name)
{
	AUTO_FREE char *reply = NULL;
	char text[1024] = "";
	json_t *o;
	ssize_t n = recv(qemu, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n <= 0)
		fail_msg("no command, and not %s", name);
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "execute")), name);
	reply = xasprintf(
		"{\"return\":{},\"id\":%d}\n", (int)json_integer_value(json_object_get(o, "id")));
	json_decref(o);
	say(reply);
}

static inline void must_be_silent(void)
{
	char text[1024];

	assert_int_equal(recv(qemu, text, sizeof(text), MSG_DONTWAIT), -1);
}

static inline int qemu_up(void **state)
{
	struct vmm *v = xcalloc(1, sizeof(*v));
	int pair[2], r = rig_up(state);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_set_nonblock(pair[0], true), 0);
	v->fd = pair[0];
	qemu = pair[1];
	v->image_fd = v->snap_fd = v->snap_fd_ro = -1;
	v->top_fd[VMM_ROOT] = v->top_fd[VMM_DOCKER] = -1;
	v->memory_fd = vmm_memory_new(1 << 20, NULL, NULL);
	v->child = rig_false_child();
	v->deadline_ms = UINT64_MAX;
	qmp_init(&v->qmp);
	rig_k.vmm = v;
	assert_int_equal(machine_watch(&rig_k), 0);
	say(GREETING);
	must_command("qmp_capabilities");
	return r;
}

static inline int qemu_down(void **state)
{
	if (rig_k.vmm) {
		loop_del(&rig_k.loop, vmm_poll_fd(rig_k.vmm));
		loop_del(&rig_k.loop, vmm_child(rig_k.vmm)->pidfd);
		vmm_done(rig_k.vmm);
		rig_k.vmm = NULL;
	}
	fd_close(&qemu);
	return rig_down(state);
}

#define QEMU_TEST(f) cmocka_unit_test_setup_teardown(f, qemu_up, qemu_down)

/* ---- a false guest ---- */

static inline int take_question(void)
{
	rig_must_get(rig_edge, EDGE_OPEN);
	assert_true(rig_msg.fd >= 0);
	return TAKE_FD(rig_msg.fd);
}

static inline void reply_to(int fd, bool ok, const char *text)
{
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		; /* unread bytes would cause a reset */
	assert_int_equal(guest_put_reply(&wr, ok, text), 0);
	assert_int_equal(fd_write_all(fd, buf, wr.n), 0);
	(void)close(fd);
}

static inline char *at(const char *name)
{
	return xasprintf("%s/%s", rig_k.dir, name);
}

static inline bool is_there(const char *name)
{
	AUTO_FREE char *path = at(name);

	return access(path, F_OK) == 0;
}
