/* SPDX-License-Identifier: Apache-2.0 */
/* The login at an upstream proxy. The connection is one of sbx-egress, which has sent what precedes
 * the login and sends what follows; it cannot read what is written here. */
#include <errno.h>
#include <sys/socket.h>
#include "lib/base/b64.h"
#include "vault.h"

#define MAX_PASSWORD 1024 /* of HTTP */
#define MAX_SOCKS 255

/* user:password, of which b64_encode makes the value of Proxy-Authorization. */
static int put_basic(const struct book_entry *e, struct secret *ret, struct err *err)
{
	size_t n_user = strlen(e->meta.format), n = n_user + 1 + e->value.n;
	AUTO_SECRET struct secret plain = {0};
	int r = secret_init(&plain, n, err);

	if (r < 0)
		return r;
	memcpy(plain.p, e->meta.format, n_user);
	plain.p[n_user] = ':';
	memcpy(plain.p + n_user + 1, e->value.p, e->value.n);
	r = secret_init(ret, B64_LEN(n), err);
	if (r < 0)
		return r;
	ret->n = b64_encode(slice_of(plain.p, n), (char *)ret->p);
	return 0;
}

/* RFC 1929. */
static int put_socks(const struct book_entry *e, struct secret *ret, struct err *err)
{
	size_t n_user = strlen(e->meta.format);
	struct wr wr;
	int r = secret_init(ret, 3 + n_user + e->value.n, err);

	if (r < 0)
		return r;
	wr = wr_init(ret->p, ret->size);
	wr_u8(&wr, 1);
	wr_u8(&wr, (uint8_t)n_user);
	wr_bytes(&wr, slice_from_str(e->meta.format));
	wr_u8(&wr, (uint8_t)e->value.n);
	wr_bytes(&wr, secret_slice(&e->value));
	ret->n = wr.n;
	return wr_finish(&wr);
}

int login_send(const struct book_entry *e, int fd, struct err *err)
{
	bool is_socks = strcmp(e->meta.header, "socks5") == 0;
	AUTO_SECRET struct secret login = {0};
	ssize_t n;
	int r;

	if (e->value.n > (is_socks ? MAX_SOCKS : MAX_PASSWORD))
		return err_set(err, -EMSGSIZE, "the password of the upstream proxy is too long");
	r = is_socks ? put_socks(e, &login, err) : put_basic(e, &login, err);
	if (r < 0)
		return r;
	n = send(fd, login.p, login.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (ssize_t)login.n
		       ? 0
		       : err_set(err, -EPIPE, "the upstream proxy closed the connection");
}
