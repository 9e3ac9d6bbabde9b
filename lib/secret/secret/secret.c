/* SPDX-License-Identifier: Apache-2.0 */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

/* Younger than the oldest headers we build with. */
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

#define PAGE 4096

static bool is_hidden_forbidden;

void secret_forbid_hidden(void)
{
	is_hidden_forbidden = true;
}

/* Puts pages that only this process's own map has over [at, at + n). */
static bool map_hidden(void *at, size_t n)
{
	AUTO_CLOSE int fd = -1;

	if (is_hidden_forbidden)
		return false;
	fd = (int)syscall(SYS_memfd_secret, O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)n) < 0)
		return false;
	if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at)
		return false;
	return madvise(at, n, MADV_DONTFORK) == 0;
}

static bool map_locked(void *at, size_t n, enum secret_kind *ret_kind)
{
	if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
			at ||
		madvise(at, n, MADV_DONTDUMP) < 0 || madvise(at, n, MADV_WIPEONFORK) < 0)
		return false;
	/* by number: under a sanitizer the function of this name does nothing and returns 0 */
	*ret_kind = syscall(SYS_mlock, at, n) == 0 ? SECRET_LOCKED : SECRET_PLAIN;
	return true;
}

int secret_init(struct secret *s, size_t size, struct err *err)
{
	size_t n = (MAX(size, 1) + PAGE - 1) / PAGE * PAGE;
	struct secret made = {.size = size, .map_n = n + 2 * PAGE};
	uint8_t *map = mmap(NULL, made.map_n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return err_errno(err, -ENOMEM, "cannot allocate memory for a secret");
	made.map = map;
	/* The end of the bytes is the end of the page: an access past the end faults. */
	made.p = map + PAGE + n - size;
	if (map_hidden(map + PAGE, n)) {
		made.kind = SECRET_HIDDEN;
	} else if (!map_locked(map + PAGE, n, &made.kind)) {
		(void)munmap(map, made.map_n);
		return err_errno(err, -ENOMEM, "cannot allocate memory for a secret");
	}
	*s = made;
	return 0;
}

void secret_done(struct secret *s)
{
	if (s->map) {
		explicit_bzero(s->p, s->size);
		(void)munmap(s->map, s->map_n);
	}
	*s = (struct secret){0};
}

int secret_copy(struct secret *s, struct slice from, struct err *err)
{
	int r = secret_init(s, from.n, err);

	if (r < 0)
		return r;
	if (from.n)
		memcpy(s->p, from.p, from.n);
	s->n = from.n;
	return 0;
}

void secret_cut(struct secret *s, size_t n)
{
	if (n >= s->n)
		return;
	explicit_bzero(s->p + n, s->n - n);
	s->n = n;
}

struct secret secret_take(struct secret *s)
{
	struct secret taken = *s;

	*s = (struct secret){0};
	return taken;
}
