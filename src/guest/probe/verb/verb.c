/* SPDX-License-Identifier: Apache-2.0 */
#include "verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int probe_refused(const char *what)
{
	int e = errno;

	printf("%s %s: %s\n", strerrorname_np(e), what, strerror(e));
	return PROBE_REFUSED;
}
