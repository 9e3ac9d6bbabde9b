/* SPDX-License-Identifier: Apache-2.0 */
/* The transport under TLS: the two queues of the connection, without a descriptor or another
 * copy. */
#include "open_internal.h"

static int read_queue(BIO *bio, char *buf, int n)
{
	struct open *o = BIO_get_data(bio);
	size_t got = n > 0 ? bufq_take(&o->in, buf, (size_t)n) : 0;

	BIO_clear_retry_flags(bio);
	o->n_taken += got;
	if (got > 0)
		return (int)got;
	BIO_set_retry_read(bio);
	return -1;
}

static int write_queue(BIO *bio, const char *buf, int n)
{
	struct open *o = BIO_get_data(bio);
	size_t put = n > 0 ? bufq_put(&o->out, slice_of(buf, (size_t)n)) : 0;

	BIO_clear_retry_flags(bio);
	if (put > 0)
		return (int)put;
	BIO_set_retry_write(bio);
	return -1;
}

static long control_bio(BIO *bio, int what, long n, void *p)
{
	return what == BIO_CTRL_FLUSH;
}

static int create_bio(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

BIO_METHOD *open_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "queues");

	if (m && BIO_meth_set_read(m, read_queue) && BIO_meth_set_write(m, write_queue) &&
		BIO_meth_set_ctrl(m, control_bio) && BIO_meth_set_create(m, create_bio))
		return m;
	BIO_meth_free(m);
	return NULL;
}

BIO *open_bio_new(const struct opener *opener, struct open *o)
{
	BIO *bio = BIO_new(opener->method);

	if (bio)
		BIO_set_data(bio, o);
	return bio;
}
