/* SPDX-License-Identifier: Apache-2.0 */
#include "park.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/guest/docker/docker.h"
#include "src/guest/base/base.h"
#include "park_child.h"
#include "park_freeze.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

static const struct loop_key sock_key = {.kind = GUEST_EV_PARK};
static const struct loop_key timer_key = {.kind = GUEST_EV_PARK_TIMER};

void park_init(struct park *p, struct loop *loop, struct mounts *mounts)
{
	*p = (struct park){.loop = loop, .mounts = mounts, .sock = -1};
}

static const char *const disks[] = {DOCKER_DATA, "/"};

static int fs_ioctl(const char *path, unsigned long what)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return ioctl(fd, what, 0) < 0 ? -errno : 0;
}

static void thaw_fs(struct park *p)
{
	for (size_t n = ARRAY_LEN(disks); p->has_frozen_fs && n > 0; n--)
		(void)!fs_ioctl(disks[n - 1], FITHAW);
	p->has_frozen_fs = false;
	loop_timer_clear(p->loop, &p->thaw);
}

/* EBUSY: both names are one file system. */
static int freeze_fs(struct park *p, struct err *err)
{
	p->has_frozen_fs = true;
	loop_timer_set(p->loop, &p->thaw, clock_mono_ms() + PARK_FSFREEZE_MS, timer_key);
	for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
		int r = fs_ioctl(disks[i], FIFREEZE);

		if (r < 0 && r != -EBUSY && r != -ENOENT) {
			thaw_fs(p);
			return err_errno(err, r, "cannot freeze the file system at %s", disks[i]);
		}
	}
	return 0;
}

void park_on_timer(struct park *p)
{
	log_warn("the file systems were not resumed in time: unfreezing them");
	thaw_fs(p);
}

static void move_ours(const struct park *p, const char *group)
{
	if (park_freeze_move(1, group) < 0 || (p->net && park_freeze_move(p->net, group) < 0))
		log_warn("cannot move to the group %s", group);
}

static void forget_child(struct park *p)
{
	if (p->sock >= 0)
		loop_del(p->loop, p->sock);
	fd_close(&p->sock);
	p->child = 0;
	p->state = PARK_AWAKE;
	guest_mounts_done(&p->wanted);
	move_ours(p, PARK_HOME);
}

static int start_child(struct park *p)
{
	int pair[2];
	pid_t skip[] = {1, p->net, 0}, pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		park_child_run(pair[1], p->net ? skip : (const pid_t[]){1, 0});
	}
	(void)close(pair[1]);
	p->sock = pair[0];
	if (pid < 0 || loop_add(p->loop, p->sock, EPOLLIN, sock_key) < 0)
		return -ENOMEM;
	p->child = pid;
	return 0;
}

static int suspend_park(struct park *p, pid_t net, struct err *err)
{
	int r;

	if (p->state == PARK_PARKED)
		return 0;
	if (p->state != PARK_AWAKE)
		return err_set(err, -EBUSY, "the guest is being parked or woken already");
	p->net = net;
	move_ours(p, PARK_GROUP);
	r = start_child(p);
	if (r < 0) {
		forget_child(p);
		return err_errno(err, r, "cannot start the parking process");
	}
	p->state = PARK_PARKING;
	return -EINPROGRESS;
}

int park_begin(struct park *p, enum guest_park kind, pid_t net, struct err *err)
{
	switch (kind) {
	case GUEST_PARK_SUSPEND:
		return suspend_park(p, net, err);
	case GUEST_PARK_FREEZE:
		return p->has_frozen_fs ? 0 : freeze_fs(p, err);
	case GUEST_PARK_IMAGE: /* park_image.c's */
	case GUEST_PARK_N:
		break;
	}
	return err_set(err, -EINVAL, "unknown kind of parking");
}

int park_wake(struct park *p, struct guest_wake *wake, struct err *err)
{
	int r;

	thaw_fs(p);
	setup_entropy(wake->entropy);
	r = setup_clock(wake->wall_ms, err);
	if (r == 0 && p->state == PARK_AWAKE)
		return mounts_apply(p->mounts, &wake->mounts, err);
	if (r == 0 && p->state != PARK_PARKED)
		r = err_set(err, -EBUSY, "the guest is being parked or woken already");
	if (r == 0 && wake->mounts.n)
		r = mounts_share_again(p->mounts, err);
	if (r == 0 && send(p->sock, "w", 1, MSG_NOSIGNAL) != 1)
		r = err_errno(err, -errno, "cannot notify the parking process");
	if (r < 0)
		return r;
	p->wanted = wake->mounts;
	wake->mounts = (struct guest_mounts){0};
	p->state = PARK_WAKING;
	return -EINPROGRESS;
}

/* Adds the final report; mounts new workspaces now. */
static void finish_wake(struct park *p, struct guest_reply *reply)
{
	struct err err = {0};
	int r = mounts_apply(p->mounts, &p->wanted, &err);

	if (r < 0) {
		reply->ok = false;
		(void)snprintf(reply->text, sizeof(reply->text), "%s", err_text(&err, r));
	}
	forget_child(p);
}

void park_on_event(struct park *p, struct park_answer *ret)
{
	uint8_t buf[GUEST_MAX_TEXT + 64];
	ssize_t n = recv(p->sock, buf, sizeof(buf), MSG_DONTWAIT);

	*ret = (struct park_answer){0};
	/* Its exit reports its end. */
	if (n <= 0 || guest_get_reply(slice_of(buf, (size_t)n), &ret->reply) < 0) {
		if (n >= 0)
			loop_del(p->loop, p->sock);
		return;
	}
	ret->path = p->state == PARK_WAKING ? GUEST_PATH_WAKE : GUEST_PATH_PARK;
	if (p->state == PARK_WAKING) {
		finish_wake(p, &ret->reply);
	} else if (ret->reply.ok) {
		p->state = PARK_PARKED;
		mounts_gone(p->mounts);
	} else {
		forget_child(p);
	}
}

bool park_on_exit(struct park *p, pid_t pid, struct park_answer *ret)
{
	*ret = (struct park_answer){0};
	if (pid == 0 || pid != p->child)
		return false;
	if (p->state != PARK_AWAKE)
		park_on_event(p, ret); /* its last message may still be unread */
	if (p->state == PARK_AWAKE || p->child == 0)
		return true;
	log_error("the parking process exited: programs run without their workspaces");
	ret->path = p->state == PARK_WAKING ? GUEST_PATH_WAKE : GUEST_PATH_PARK;
	(void)snprintf(ret->reply.text, sizeof(ret->reply.text), "the parking process exited");
	if (p->state == PARK_WAKING)
		(void)!mounts_apply(p->mounts, &p->wanted, NULL);
	park_thaw_all();
	forget_child(p);
	return true;
}
