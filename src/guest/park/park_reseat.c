/* SPDX-License-Identifier: Apache-2.0 */
#include "park_reseat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define OPEN_MORE (O_CLOEXEC | O_NOFOLLOW | O_NOCTTY)

/* O_NONBLOCK would persist; no blocking file is among them. */
static int open_again(struct park_item *it)
{
	AUTO_CLOSE int fd = open(it->path, (int)it->flags | OPEN_MORE);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) != it->is_dir || (!it->is_dir && st.st_ino != it->ino))
		return -ESTALE;
	if (!(it->flags & O_PATH) && it->pos && lseek(fd, it->pos, SEEK_SET) < 0)
		return -errno;
	it->opened = TAKE_FD(fd);
	return 0;
}

static void lose_reseat(struct park_list *l, const struct park_item *it, int r)
{
	park_list_lose(l, it->pid, it->path, r == -ESTALE ? "is another file now" : strerror(-r));
}

/* Locks of the description; the process must take its own locks itself. */
static int lock_description(const struct park_item *it, const struct park_lock *k)
{
	struct flock f = {.l_type = k->is_write ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = k->start,
		.l_len = k->len};
	int r = 0;

	if (k->kind == PARK_LOCK_FLOCK)
		r = flock(it->opened, (k->is_write ? LOCK_EX : LOCK_SH) | LOCK_NB);
	else if (k->kind == PARK_LOCK_OFD)
		r = fcntl(it->opened, F_OFD_SETLK, &f);
	return r < 0 ? -errno : 0;
}

static void open_one(struct park_list *l, struct park_item *it)
{
	int r = open_again(it);

	for (size_t i = 0; r == 0 && i < it->n_locks; i++)
		if (lock_description(it, &it->locks[i]) < 0)
			park_list_lose(l, it->pid, it->path, "has lost its lock");
	if (r < 0)
		lose_reseat(l, it, r);
}

static void raise_limit(void)
{
	struct rlimit many = {1048576, 1048576};

	(void)setrlimit(RLIMIT_NOFILE, &many);
}

void park_reseat_open(struct park_list *l)
{
	size_t ns = 0;

	raise_limit();
	for (size_t i = 0; i < l->n_items; i++) {
		struct park_item *it = &l->items[i];

		if (it->same != i)
			continue;
		if (it->ns != ns && park_list_enter(l, it->ns) < 0) {
			lose_reseat(l, it, -ENOENT);
			continue;
		}
		ns = it->ns;
		open_one(l, it);
	}
	if (ns != 0 && park_list_enter(l, 0) < 0)
		park_list_lose(l, 1, "sbx-guest", "is lost in a container's namespace");
}

static struct park_held *find_held(struct park_reseat *rs, pid_t pid)
{
	for (size_t i = 0; i < rs->n_held; i++)
		if (rs->held[i].pid == pid)
			return &rs->held[i];
	return NULL;
}

static bool is_opened(const struct park_list *l, const struct park_item *it)
{
	return l->items[it->same].opened >= 0;
}

void park_reseat_hold(struct park_reseat *rs, struct park_list *l)
{
	*rs = (struct park_reseat){.l = l};
	for (size_t i = 0; i < l->n_items; i++) {
		const struct park_item *it = &l->items[i];
		struct park_held *h;

		if (!is_opened(l, it) || find_held(rs, it->pid))
			continue;
		rs->held = xrealloc(rs->held, (rs->n_held + 1) * sizeof(*rs->held));
		h = &rs->held[rs->n_held++];
		h->pid = it->pid;
		h->error = inject_hold(&h->in, it->pid, NULL);
	}
}

/* Contents of the program's page while it receives. */
struct room {
	struct msghdr msg;
	struct iovec iov;
	int32_t pair[2];
	char byte;
	struct flock flock;
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control;
};

#define AT(in, field) ((in)->page + offsetof(struct room, field))

static int64_t call_reseat(
	struct inject *in, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t args[6] = {a, b, c, d, 0, 0};

	return inject_call(in, nr, args);
}

static int send_file(int sock, int fd)
{
	const struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	ssize_t n = fd_send(sock, &iov, 1, &fd, 1, MSG_DONTWAIT);

	return n < 0 ? (int)n : 0;
}

/* The program's end is pair[1]; ours a copy of its pair[0]. */
static int make_pair(struct inject *in, int32_t pair[2], int *ret_ours)
{
	int64_t r = call_reseat(
		in, SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, AT(in, pair));
	AUTO_CLOSE int pidfd = -1;

	if (r < 0)
		return (int)r;
	r = inject_get(in, AT(in, pair), pair, 2 * sizeof(pair[0]));
	if (r < 0)
		return (int)r;
	pidfd = (int)syscall(SYS_pidfd_open, in->pid, 0);
	*ret_ours = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, pair[0], 0);
	return *ret_ours < 0 ? -errno : 0;
}

/* Its number in the program, or a negative errno. */
static int64_t pass_reseat(struct inject *in, int ours, int theirs, int fd)
{
	struct room room = {.msg = {.msg_iov = (void *)AT(in, iov),
				    .msg_iovlen = 1,
				    .msg_control = (void *)AT(in, control),
				    .msg_controllen = sizeof(room.control)},
		.iov = {(void *)AT(in, byte), 1}};
	int64_t r = send_file(ours, fd);

	if (r == 0)
		r = inject_put(in, in->page, &room, sizeof(room));
	if (r < 0)
		return r;
	r = call_reseat(
		in, SYS_recvmsg, (uint64_t)theirs, in->page, MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0);
	if (r < 0)
		return r;
	r = inject_get(in, in->page, &room, sizeof(room));
	if (r < 0)
		return r;
	if (room.msg.msg_controllen < CMSG_LEN(sizeof(int)) ||
		room.control.head.cmsg_type != SCM_RIGHTS)
		return -EMFILE; /* no room in its table */
	memcpy(&fd, CMSG_DATA(&room.control.head), sizeof(fd));
	return fd;
}

static int64_t put_item(struct inject *in, const struct park_item *it, int64_t fd)
{
	if (it->kind == PARK_CWD)
		return call_reseat(in, SYS_fchdir, (uint64_t)fd, 0, 0, 0);
	return call_reseat(in, SYS_dup3, (uint64_t)fd, (uint64_t)it->fd, it->flags & O_CLOEXEC, 0);
}

static void reseat_item(
	struct park_list *l, struct inject *in, int ours, int theirs, const struct park_item *it)
{
	int64_t fd = pass_reseat(in, ours, theirs, l->items[it->same].opened), r = fd;

	if (fd >= 0) {
		r = put_item(in, it, fd);
		(void)!call_reseat(in, SYS_close, (uint64_t)fd, 0, 0, 0);
	}
	if (r < 0)
		lose_reseat(l, it, (int)r);
}

/* After all files: closing any other descriptor of a file drops them. */
static void take_locks(struct park_list *l, struct inject *in, const struct park_item *it)
{
	for (size_t i = 0; i < it->n_locks; i++) {
		const struct park_lock *k = &it->locks[i];
		struct flock f = {.l_type = k->is_write ? F_WRLCK : F_RDLCK,
			.l_whence = SEEK_SET,
			.l_start = k->start,
			.l_len = k->len};

		if (k->kind != PARK_LOCK_POSIX)
			continue;
		if (inject_put(in, AT(in, flock), &f, sizeof(f)) < 0 ||
			call_reseat(in, SYS_fcntl, (uint64_t)it->fd, F_SETLK, AT(in, flock), 0) < 0)
			park_list_lose(l, it->pid, it->path, "has lost its lock");
	}
}

static int reseat_all(struct park_list *l, struct park_held *h)
{
	AUTO_CLOSE int ours = -1;
	struct inject *in = &h->in;
	int32_t pair[2];
	int r = make_pair(in, pair, &ours);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n_items; i++)
		if (l->items[i].pid == h->pid && is_opened(l, &l->items[i]))
			reseat_item(l, in, ours, pair[1], &l->items[i]);
	(void)!call_reseat(in, SYS_close, (uint64_t)pair[0], 0, 0, 0);
	(void)!call_reseat(in, SYS_close, (uint64_t)pair[1], 0, 0, 0);
	for (size_t i = 0; i < l->n_items; i++)
		if (l->items[i].pid == h->pid && l->items[i].kind == PARK_FD &&
			is_opened(l, &l->items[i]))
			take_locks(l, in, &l->items[i]);
	return 0;
}

void park_reseat_run(struct park_reseat *rs)
{
	for (size_t i = 0; i < rs->n_held; i++) {
		struct park_held *h = &rs->held[i];
		struct err err = {0};
		int r = h->error;

		if (r == 0)
			r = inject_begin(&h->in, &err);
		if (r == 0)
			r = reseat_all(rs->l, h);
		if (h->error == 0 && inject_end(&h->in) < 0 && r == 0)
			r = -EIO;
		inject_release(&h->in);
		if (r < 0 && r != -ESRCH)
			park_list_lose(rs->l, h->pid, "open files", err_text(&err, r));
	}
	free(TAKE(rs->held));
	rs->n_held = 0;
}
