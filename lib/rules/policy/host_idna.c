/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <errno.h>
#include <idn2.h>
#include <strings.h>

static void free_idn(char **p)
{
	idn2_free(*p);
}

/* Letters beyond ASCII, or an A-label, which must represent some. */
static bool needs_idna(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 0x80 ||
			(s.n - i >= 4 && strncasecmp((const char *)s.p + i, "xn--", 4) == 0))
			return true;
	return false;
}

int host_from_text(struct slice text, struct host *ret, struct err *err)
{
	CLEANUP(free_idn) char *ascii = NULL;
	char buf[HOST_MAX_INPUT];
	int r;

	if (!needs_idna(text))
		return host_from_wire(text, ret, err);
	r = slice_to_cstr(text, buf, sizeof(buf));
	if (r < 0)
		return err_set(err, -EINVAL, "the host %s",
			r == -EINVAL ? "holds a NUL byte" : "is longer than 1023 bytes");
	r = idn2_to_ascii_8z(buf, &ascii, IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT);
	if (r != IDN2_OK)
		return err_set(err, -EINVAL, "the host is not a valid international name: %s",
			idn2_strerror(r));
	return host_from_wire(slice_from_str(ascii), ret, err);
}
