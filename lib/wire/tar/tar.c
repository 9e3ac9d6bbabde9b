/* SPDX-License-Identifier: Apache-2.0 */
#include "tar.h"

#include <errno.h>

#include "tar_internal.h"

enum state {
	ST_HEAD, /* collecting a header block */
	ST_EXT,	 /* collecting pax records or a long name into ext */
	ST_BODY, /* passing the body of a file */
	ST_PAD,	 /* skipping up to the next block */
	ST_END,	 /* the end was seen */
	ST_DEAD, /* a violation was seen */
};

static const char type_flags[] = {
	[TAR_FILE] = '0',
	[TAR_HARDLINK] = '1',
	[TAR_SYMLINK] = '2',
	[TAR_CHAR] = '3',
	[TAR_BLOCKDEV] = '4',
	[TAR_DIR] = '5',
	[TAR_FIFO] = '6',
};
static_assert(ARRAY_LEN(type_flags) == TAR_N_TYPES, "one letter per type");

void tar_reader_init(struct tar_reader *r)
{
	memset(r, 0, sizeof(*r));
}

char tar_type_letter(enum tar_type type)
{
	return type_flags[type];
}

/* Octal with blanks around it, or GNU's big-endian binary with the top bit set. */
static int field_number(struct slice f, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	if (f.p[0] & 0x80) {
		if (f.p[0] != 0x80)
			return -EBADMSG; /* negative, or over 64 bits */
		for (i = 1; i < f.n; i++) {
			if (v >> 56)
				return -EBADMSG;
			v = v << 8 | f.p[i];
		}
		*ret = v;
		return 0;
	}
	while (i < f.n && f.p[i] == ' ')
		i++;
	for (; i < f.n && f.p[i] >= '0' && f.p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(f.p[i] - '0');
	for (; i < f.n; i++)
		if (f.p[i] != ' ' && f.p[i] != '\0')
			return -EBADMSG;
	*ret = v;
	return 0;
}

static struct slice field_tar(const struct tar_reader *r, size_t at, size_t n)
{
	return slice_of(r->block + at, n);
}

/* Text up to the first NUL. */
static struct slice field_text(const struct tar_reader *r, size_t at, size_t n)
{
	return slice_of(r->block + at, strnlen((const char *)r->block + at, n));
}

static bool checksum_is_right(const struct tar_reader *r)
{
	uint64_t want, sum = 0;

	if (field_number(field_tar(r, TAR_AT_SUM, 8), &want) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= TAR_AT_SUM && i < TAR_AT_SUM + 8 ? ' ' : r->block[i];
	return sum == want;
}

static bool block_is_zero(const struct tar_reader *r)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (r->block[i])
			return false;
	return true;
}

static int read_small(const struct tar_reader *r, size_t at, uint64_t max, uint32_t *ret)
{
	uint64_t v;

	if (field_number(field_tar(r, at, 8), &v) < 0 || v > max)
		return -EBADMSG;
	*ret = (uint32_t)v;
	return 0;
}

static int read_numbers(struct tar_reader *r, struct err *err)
{
	struct tar_entry *e = &r->entry;
	uint64_t mtime;

	if (read_small(r, TAR_AT_MODE, UINT32_MAX, &e->mode) < 0)
		return err_set(err, -EBADMSG, "the archive has an entry with an invalid mode");
	e->mode &= 07777;
	if (read_small(r, TAR_AT_UID, UINT32_MAX, &e->uid) < 0 ||
		read_small(r, TAR_AT_GID, UINT32_MAX, &e->gid) < 0)
		return err_set(err, -EBADMSG, "the archive has an entry with an invalid owner");
	if (field_number(field_tar(r, TAR_AT_SIZE, 12), &e->size) < 0 || e->size > INT64_MAX)
		return err_set(err, -EBADMSG, "the archive has an entry with an invalid size");
	if (field_number(field_tar(r, TAR_AT_MTIME, 12), &mtime) < 0 || mtime > INT64_MAX)
		return err_set(err, -EBADMSG, "the archive has an entry with an invalid time");
	e->mtime_s = (int64_t)mtime;
	e->mtime_ns = 0;
	return 0;
}

/* ustar may put the front of a long name into a second field. */
static int read_names(struct tar_reader *r)
{
	struct slice name = field_text(r, TAR_AT_NAME, 100);
	struct slice prefix = field_text(r, TAR_AT_PREFIX, 155);
	bool ustar = memcmp(r->block + TAR_AT_MAGIC, "ustar\0", 6) == 0;
	size_t n = 0;

	if (ustar && prefix.n > 0) {
		memcpy(r->entry.name, prefix.p, prefix.n);
		r->entry.name[prefix.n] = '/';
		n = prefix.n + 1;
	}
	memcpy(r->entry.name + n, name.p, name.n);
	r->entry.name[n + name.n] = '\0';
	return slice_to_cstr(field_text(r, TAR_AT_LINK, 100), r->entry.link, TAR_MAX_PATH);
}

static int read_type(struct tar_reader *r, struct err *err)
{
	char letter = (char)r->block[TAR_AT_TYPE];

	if (letter == '\0' || letter == '7')
		letter = '0';
	for (size_t i = 0; i < TAR_N_TYPES; i++)
		if (type_flags[i] == letter) {
			r->entry.type = (enum tar_type)i;
			return 0;
		}
	if (letter == 'S')
		return err_set(
			err, -EBADMSG, "the archive has a sparse file, which is not supported");
	return err_set(err, -EBADMSG, "the archive has an entry of an unknown type");
}

/* Extensions override the header. */
static void apply_overrides(struct tar_reader *r)
{
	struct tar_entry *e = &r->entry;

	if (r->set & TAR_SET_NAME)
		memcpy(e->name, r->over.name, sizeof(e->name));
	if (r->set & TAR_SET_LINK)
		memcpy(e->link, r->over.link, sizeof(e->link));
	if (r->set & TAR_SET_SIZE)
		e->size = r->over.size;
	if (r->set & TAR_SET_UID)
		e->uid = r->over.uid;
	if (r->set & TAR_SET_GID)
		e->gid = r->over.gid;
	if (r->set & TAR_SET_MTIME) {
		e->mtime_s = r->over.mtime_s;
		e->mtime_ns = r->over.mtime_ns;
	}
	r->set = 0;
	r->seen = 0;
}

static int check_entry(struct tar_reader *r, struct err *err)
{
	struct tar_entry *e = &r->entry;
	bool is_link = e->type == TAR_HARDLINK || e->type == TAR_SYMLINK;
	size_t n = strlen(e->name);

	if (n == 0)
		return err_set(err, -EBADMSG, "the archive has an entry without a name");
	if (e->type == TAR_FILE && e->name[n - 1] == '/')
		e->type = TAR_DIR; /* how archives older than ustar say it */
	if (is_link && !e->link[0])
		return err_set(err, -EBADMSG, "the archive has a link without a target");
	if (!is_link)
		e->link[0] = '\0';
	if (e->type != TAR_FILE && e->size != 0)
		return err_set(err, -EBADMSG, "the archive has an entry with unexpected content");
	return 0;
}

static void expect_body(struct tar_reader *r, uint64_t size, enum state state)
{
	r->left = size;
	r->pad = (uint32_t)tar_padding(size);
	r->state = (uint8_t)(size > 0 ? state : ST_HEAD);
}

/* An extension header: its body is collected and belongs to the entry after it. */
static int begin_ext(struct tar_reader *r, char letter, struct err *err)
{
	uint8_t bit = letter == 'x' ? 1 : letter == 'L' ? 2 : letter == 'K' ? 4 : 0;

	if (r->seen & bit)
		return err_set(err, -EBADMSG, "the archive has a duplicate extension of an entry");
	if (r->entry.size == 0 || r->entry.size > TAR_MAX_EXT)
		return err_set(err, -EBADMSG, "the archive has an extension of an invalid size");
	r->seen |= bit;
	r->ext_kind = (uint8_t)letter;
	r->n_ext = 0;
	expect_body(r, r->entry.size, ST_EXT);
	return TAR_EV_MORE;
}

static int begin_zero(struct tar_reader *r, struct err *err)
{
	if (r->seen)
		return err_set(err, -EBADMSG, "the archive ends after an extension");
	if (++r->n_zero < 2)
		return TAR_EV_MORE;
	r->state = ST_END;
	return TAR_EV_END;
}

static int begin_entry(struct tar_reader *r, struct err *err)
{
	char letter = (char)r->block[TAR_AT_TYPE];
	int k;

	if (block_is_zero(r))
		return begin_zero(r, err);
	if (r->n_zero)
		return err_set(err, -EBADMSG, "the archive continues after a zero block");
	if (!checksum_is_right(r))
		return err_set(err, -EBADMSG, "a header of the archive has a wrong checksum");
	k = read_numbers(r, err);
	if (k < 0)
		return k;
	if (letter == 'x' || letter == 'g' || letter == 'L' || letter == 'K')
		return begin_ext(r, letter, err);
	k = read_type(r, err);
	if (k == 0)
		k = read_names(r);
	if (k < 0)
		return k;
	apply_overrides(r);
	k = check_entry(r, err);
	if (k < 0)
		return k;
	expect_body(r, r->entry.size, ST_BODY);
	return TAR_EV_ENTRY;
}

static struct slice take_tar(struct slice *in, uint64_t n)
{
	struct slice got = slice_of(in->p, (size_t)MIN((uint64_t)in->n, n));

	in->p += got.n;
	in->n -= got.n;
	return got;
}

static int step_head(struct tar_reader *r, struct slice *in, struct err *err)
{
	struct slice got = take_tar(in, TAR_BLOCK - r->n_block);

	memcpy(r->block + r->n_block, got.p, got.n);
	r->n_block += (uint32_t)got.n;
	if (r->n_block < TAR_BLOCK)
		return TAR_EV_MORE;
	r->n_block = 0;
	return begin_entry(r, err);
}

static int step_ext(struct tar_reader *r, struct slice *in, struct err *err)
{
	struct slice got = take_tar(in, r->left);

	memcpy(r->ext + r->n_ext, got.p, got.n);
	r->n_ext += (uint32_t)got.n;
	r->left -= got.n;
	if (r->left > 0)
		return TAR_EV_MORE;
	r->state = ST_PAD;
	return tar_take_ext(r, err);
}

static int step_body(struct tar_reader *r, struct slice *in)
{
	r->data = take_tar(in, r->left);
	r->left -= r->data.n;
	if (r->left == 0)
		r->state = ST_PAD;
	return TAR_EV_DATA;
}

static int step_tar(struct tar_reader *r, struct slice *in, struct err *err)
{
	switch (r->state) {
	case ST_HEAD:
		return step_head(r, in, err);
	case ST_EXT:
		return step_ext(r, in, err);
	case ST_BODY:
		return step_body(r, in);
	case ST_PAD:
		r->pad -= (uint32_t)take_tar(in, r->pad).n;
		if (r->pad == 0)
			r->state = ST_HEAD;
		return TAR_EV_MORE;
	case ST_END:
		return TAR_EV_END;
	default:
		return err_set(err, -EBADMSG, "the archive was already rejected");
	}
}

int tar_read(struct tar_reader *r, struct slice *in, struct err *err)
{
	int k = TAR_EV_MORE;

	while (k == TAR_EV_MORE && (in->n > 0 || r->state == ST_END || r->state == ST_DEAD))
		k = step_tar(r, in, err);
	if (k < 0)
		r->state = ST_DEAD;
	return k;
}
