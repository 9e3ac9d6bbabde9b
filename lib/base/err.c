/* SPDX-License-Identifier: Apache-2.0 */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int r, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return r;
}

int err_errno(struct err *err, int r, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!err)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(-r));
	return r;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	struct err old;
	va_list ap;
	size_t n;

	if (!err)
		return r;
	old = *err;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", err_text(&old, r));
	return r;
}

const char *err_text(const struct err *err, int r)
{
	if (err && err->text[0])
		return err->text;
	return strerror(r < 0 ? -r : r);
}
