/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of FUSE as no kernel would send them, to the device itself. The words of the command
 * line are carried out in order; `cur` is the node they are about. A line each: `done WORD ARG`,
 * or the error's name first.   say=TEXT                           a line `part TEXT`
 * walk=/PATH enter=NAME              cur becomes it   lookup=NAME list= open=FLAGS read=BYTES
 * of cur; %XX in a name is a byte; what opens for writing is written to   forge=LAST
 * GETATTR of each number up to LAST and of some large ones   setattr=mode|size|times|owner|suid
 * of cur   create= suid= mknod= device= mkdir= symlink= unlink= rename=     NAME in cur; rename:
 * to NAME.moved   linkself=NAME setxattr=NAME        of cur, the link in the directory it was found
 * in */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"
#include "remount.h"
#include "vdev.h"

#define DEVICE_ID "0x105a"
#define REQUESTS 1 /* the queue after the one for urgent requests */
#define IN_MAX (VDEV_BYTES - 64)

struct session {
	struct vdev dev;
	uint64_t cur, folder, unique;
	size_t n; /* bytes of the request after its header */
};

static uint8_t *body_fuse(struct session *s)
{
	return s->dev.out + sizeof(struct fuse_in_header);
}

static void put_fuse(struct session *s, const void *p, size_t n)
{
	n = MIN(n, IN_MAX - s->n);
	memcpy(body_fuse(s) + s->n, p, n);
	s->n += n;
}

/* Returns the answer's error as a positive number; 0 on success; -1 without an answer. */
static int ask_fuse(struct session *s, uint32_t opcode, uint64_t node)
{
	struct fuse_in_header *h = (void *)s->dev.out;
	const struct fuse_out_header *o = (const void *)s->dev.in;
	long n;

	*h = (struct fuse_in_header){.len = (uint32_t)(sizeof(*h) + s->n),
		.opcode = opcode,
		.unique = ++s->unique,
		.nodeid = node};
	n = vdev_ask(&s->dev, sizeof(*h) + s->n, VDEV_BYTES);
	s->n = 0;
	if (n < (long)sizeof(*o) || o->unique != h->unique)
		return -1;
	return -o->error;
}

static const void *answer_fuse(const struct session *s)
{
	return s->dev.in + sizeof(struct fuse_out_header);
}

static int tell_fuse(const char *op, const char *arg, int error)
{
	if (error == 0)
		printf("done %s %s\n", op, arg);
	else if (error < 0)
		printf("silence %s %s\n", op, arg);
	else
		printf("%s %s %s\n", strerrorname_np(error) ? strerrorname_np(error) : "error", op,
			arg);
	return error;
}

/* %XX is a byte, so that a name can contain NUL. */
static size_t decode_fuse(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		unsigned byte;

		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
			buf[n++] = (char)byte;
			text += 2;
		} else {
			buf[n++] = *text;
		}
	}
	buf[n] = '\0';
	return n + 1;
}

static void put_name(struct session *s, const char *text)
{
	char name[512];
	size_t n = decode_fuse(text, name, sizeof(name));

	put_fuse(s, name, n);
}

static int lookup_fuse(struct session *s, const char *name, struct fuse_entry_out *ret_e)
{
	int r;

	put_name(s, name);
	r = ask_fuse(s, FUSE_LOOKUP, s->cur);
	memcpy(ret_e, answer_fuse(s), sizeof(*ret_e));
	return r == 0 && ret_e->nodeid == 0 ? ENOENT : r;
}

static void do_walk(struct session *s, const char *path)
{
	char copy[4096], *save = NULL;
	struct fuse_entry_out e;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	s->cur = s->folder = FUSE_ROOT_ID;
	for (char *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		int r = lookup_fuse(s, name, &e);

		if (r != 0) {
			(void)tell_fuse("walk", name, r);
			return;
		}
		s->folder = s->cur;
		s->cur = e.nodeid;
	}
	printf("walked to inode %llu\n",
		(unsigned long long)(s->cur == FUSE_ROOT_ID ? 0 : e.attr.ino));
}

static void do_lookup(struct session *s, const char *name)
{
	struct fuse_entry_out e;

	if (tell_fuse("lookup", name, lookup_fuse(s, name, &e)) == 0)
		printf("found inode %llu\n", (unsigned long long)e.attr.ino);
}

static void do_enter(struct session *s, const char *name)
{
	struct fuse_entry_out e;

	if (tell_fuse("enter", name, lookup_fuse(s, name, &e)) != 0)
		return;
	s->folder = s->cur;
	s->cur = e.nodeid;
}

static void print_names(const uint8_t *p, size_t n)
{
	struct fuse_dirent d;

	while (n >= FUSE_NAME_OFFSET) {
		memcpy(&d, p, FUSE_NAME_OFFSET);
		if (d.namelen > n - FUSE_NAME_OFFSET ||
			FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen) > n)
			return;
		printf("listed %.*s\n", (int)d.namelen, (const char *)p + FUSE_NAME_OFFSET);
		n -= FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);
		p += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);
	}
}

static void do_list(struct session *s, const char *arg)
{
	struct fuse_open_in in = {0};
	struct fuse_open_out out;
	struct fuse_read_in rd = {.size = 8192};

	put_fuse(s, &in, sizeof(in));
	if (tell_fuse("opendir", arg, ask_fuse(s, FUSE_OPENDIR, s->cur)) != 0)
		return;
	memcpy(&out, answer_fuse(s), sizeof(out));
	rd.fh = out.fh;
	put_fuse(s, &rd, sizeof(rd));
	if (tell_fuse("list", arg, ask_fuse(s, FUSE_READDIR, s->cur)) == 0)
		print_names(
			answer_fuse(s), ((const struct fuse_out_header *)(void *)s->dev.in)->len -
						sizeof(struct fuse_out_header));
}

static void do_write(struct session *s, uint64_t handle)
{
	struct fuse_write_in w = {.fh = handle, .size = 8};

	put_fuse(s, &w, sizeof(w));
	put_fuse(s, "changed\n", 8);
	(void)tell_fuse("write", "", ask_fuse(s, FUSE_WRITE, s->cur));
}

static void do_open(struct session *s, const char *flags)
{
	struct fuse_open_in in = {.flags = (uint32_t)strtoul(flags, NULL, 0)};
	struct fuse_open_out out;

	put_fuse(s, &in, sizeof(in));
	if (tell_fuse("open", flags, ask_fuse(s, FUSE_OPEN, s->cur)) != 0 ||
		(in.flags & O_ACCMODE) == O_RDONLY)
		return;
	memcpy(&out, answer_fuse(s), sizeof(out));
	do_write(s, out.fh);
}

/* A size larger than any answer. */
static void do_read(struct session *s, const char *bytes)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct fuse_open_out out;
	struct fuse_read_in rd = {.size = (uint32_t)strtoul(bytes, NULL, 0)};

	put_fuse(s, &in, sizeof(in));
	if (tell_fuse("open", "to read", ask_fuse(s, FUSE_OPEN, s->cur)) != 0)
		return;
	memcpy(&out, answer_fuse(s), sizeof(out));
	rd.fh = out.fh;
	put_fuse(s, &rd, sizeof(rd));
	(void)tell_fuse("read", bytes, ask_fuse(s, FUSE_READ, s->cur));
	printf("answered %u bytes\n", ((const struct fuse_out_header *)(void *)s->dev.in)->len);
}

static void forge_one(struct session *s, uint64_t node)
{
	struct fuse_getattr_in in = {0};
	struct fuse_attr_out out;

	put_fuse(s, &in, sizeof(in));
	if (ask_fuse(s, FUSE_GETATTR, node) != 0)
		return;
	memcpy(&out, answer_fuse(s), sizeof(out));
	printf("node %llu inode %llu\n", (unsigned long long)node,
		(unsigned long long)out.attr.ino);
}

static void do_forge(struct session *s, const char *last)
{
	uint64_t n = MIN(strtoull(last, NULL, 0), 4096);

	for (uint64_t i = 0; i <= n; i++)
		forge_one(s, i);
	for (int bit = 13; bit < 64; bit++)
		forge_one(s, 1ULL << bit);
	forge_one(s, UINT64_MAX);
	printf("forged\n");
}

static void do_setattr(struct session *s, const char *what)
{
	struct fuse_setattr_in in = {0};

	if (strcmp(what, "mode") == 0)
		in = (struct fuse_setattr_in){.valid = FATTR_MODE, .mode = S_IFREG | 0777};
	else if (strcmp(what, "suid") == 0)
		in = (struct fuse_setattr_in){.valid = FATTR_MODE, .mode = S_IFREG | 04755};
	else if (strcmp(what, "size") == 0)
		in = (struct fuse_setattr_in){.valid = FATTR_SIZE};
	else if (strcmp(what, "owner") == 0)
		in = (struct fuse_setattr_in){.valid = FATTR_UID | FATTR_GID};
	else
		in = (struct fuse_setattr_in){
			.valid = FATTR_MTIME | FATTR_ATIME, .mtime = 978307200};
	put_fuse(s, &in, sizeof(in));
	(void)tell_fuse("setattr", what, ask_fuse(s, FUSE_SETATTR, s->cur));
}

static void create_fuse(struct session *s, const char *name, uint32_t mode, const char *word)
{
	/* O_EXCL: without it the C virtiofsd of Debian 12 exits if the name exists, and the sandbox
	 * with it. */
	struct fuse_create_in in = {.flags = O_CREAT | O_EXCL | O_RDWR, .mode = S_IFREG | mode};

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	(void)tell_fuse(word, name, ask_fuse(s, FUSE_CREATE, s->cur));
}

static void do_create(struct session *s, const char *name)
{
	create_fuse(s, name, 0644, "create");
}

static void do_suid(struct session *s, const char *name)
{
	create_fuse(s, name, 04755, "suid");
}

static void do_mknod(struct session *s, const char *name)
{
	struct fuse_mknod_in in = {.mode = S_IFREG | 0644};

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	(void)tell_fuse("mknod", name, ask_fuse(s, FUSE_MKNOD, s->cur));
}

static void do_device(struct session *s, const char *name)
{
	struct fuse_mknod_in in = {.mode = S_IFBLK | 0666, .rdev = 8 << 8};

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	(void)tell_fuse("device", name, ask_fuse(s, FUSE_MKNOD, s->cur));
}

static void do_mkdir(struct session *s, const char *name)
{
	struct fuse_mkdir_in in = {.mode = 0755};

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	(void)tell_fuse("mkdir", name, ask_fuse(s, FUSE_MKDIR, s->cur));
}

static void do_symlink(struct session *s, const char *name)
{
	put_name(s, name);
	put_name(s, "/etc/passwd");
	(void)tell_fuse("symlink", name, ask_fuse(s, FUSE_SYMLINK, s->cur));
}

static void do_unlink(struct session *s, const char *name)
{
	put_name(s, name);
	(void)tell_fuse("unlink", name, ask_fuse(s, FUSE_UNLINK, s->cur));
}

static void do_linkself(struct session *s, const char *name)
{
	struct fuse_link_in in = {.oldnodeid = s->cur};

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	(void)tell_fuse("linkself", name, ask_fuse(s, FUSE_LINK, s->folder));
}

/* Renames to the same name with .moved, in cur. */
static void do_rename(struct session *s, const char *name)
{
	struct fuse_rename_in in = {.newdir = s->cur};
	char to[300];

	(void)snprintf(to, sizeof(to), "%.200s.moved", name);
	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	put_name(s, to);
	(void)tell_fuse("rename", name, ask_fuse(s, FUSE_RENAME, s->cur));
}

static void do_setxattr(struct session *s, const char *name)
{
	struct {
		uint32_t size, flags;
	} in = {.size = 5}; /* the struct before the extension, which was not negotiated */

	put_fuse(s, &in, sizeof(in));
	put_name(s, name);
	put_fuse(s, "probe", 5);
	(void)tell_fuse("setxattr", name, ask_fuse(s, FUSE_SETXATTR, s->cur));
}

static void do_say(struct session *s, const char *text)
{
	printf("part %s\n", text);
}

static const struct {
	const char *name;
	void (*run)(struct session *s, const char *arg);
} words[] = {
	{"say", do_say},
	{"walk", do_walk},
	{"enter", do_enter},
	{"lookup", do_lookup},
	{"list", do_list},
	{"open", do_open},
	{"read", do_read},
	{"forge", do_forge},
	{"setattr", do_setattr},
	{"create", do_create},
	{"suid", do_suid},
	{"mknod", do_mknod},
	{"device", do_device},
	{"mkdir", do_mkdir},
	{"symlink", do_symlink},
	{"unlink", do_unlink},
	{"linkself", do_linkself},
	{"rename", do_rename},
	{"setxattr", do_setxattr},
};

static bool run_word(struct session *s, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i].name);

		if (strncmp(word, words[i].name, n) != 0 || word[n] != '=')
			continue;
		words[i].run(s, word + n + 1);
		return true;
	}
	return false;
}

static int begin_fuse(struct session *s)
{
	struct fuse_init_in in = {.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_readahead = 1 << 17,
		.flags = FUSE_SUBMOUNTS | FUSE_ATOMIC_O_TRUNC};
	int r;

	put_fuse(s, &in, sizeof(in));
	r = ask_fuse(s, FUSE_INIT, 0);
	if (r != 0)
		(void)tell_fuse("init", "", r);
	return r;
}

int probe_fuse(int argc, char **argv)
{
	struct session s = {.cur = FUSE_ROOT_ID, .folder = FUSE_ROOT_ID};
	static struct remount mounts;
	int status = PROBE_POSSIBLE;

	if (argc < 1)
		return PROBE_USAGE;
	remount_note(&mounts);
	if (vdev_open(&s.dev, DEVICE_ID, REQUESTS) != 0)
		return PROBE_REFUSED;
	if (begin_fuse(&s) != 0)
		status = PROBE_REFUSED;
	for (int i = 0; i < argc && status == PROBE_POSSIBLE; i++)
		if (!run_word(&s, argv[i]))
			status = PROBE_USAGE;
	if (status == PROBE_POSSIBLE)
		(void)ask_fuse(&s, FUSE_DESTROY, 0);
	vdev_close(&s.dev);
	if (remount_again(&mounts) != PROBE_POSSIBLE)
		status = PROBE_REFUSED;
	return status;
}
