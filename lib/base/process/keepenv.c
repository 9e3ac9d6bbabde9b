/* SPDX-License-Identifier: Apache-2.0 */
#include "keepenv.h"

#include <string.h>
#include "lib/base/str.h"

extern char **environ;

/* Those that end in '=' are whole names. Not every SBX_ is ours: a credential of the user's own may
 * well be called so. */
static const char *const few[] = {"XDG_", "HOME=", "PATH=", "SBX_LIBEXEC=", "SBX_SHARE=",
	"SBX_LOG=", "SBX_TRACE=", "SBX_TIME_FACTOR="};
static const char *const more[] = {"SBX_ACCEL=", "LC_",
	"USER=", "LOGNAME=", "SHELL=", "LANG=", "LANGUAGE=", "TZ=", "TMPDIR=",
	"DBUS_SESSION_BUS_ADDRESS=", "DOCKER_CONFIG=", "GNUPGHOME=", "PASSWORD_STORE_DIR=",
	"AWS_PROFILE=", "AWS_REGION=", "AWS_CONFIG_FILE=", "OP_ACCOUNT=", "VAULT_ADDR=",
	"SSL_CERT_FILE=", "SSL_CERT_DIR=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};

static bool is_one_of(const char *entry, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_starts(entry, names[i]))
			return true;
	return false;
}

static size_t pick_keepenv(char *ret[KEEPENV_MAX + 1], bool whole)
{
	size_t n = 0;

	for (char **e = environ; *e && n < KEEPENV_MAX; e++)
		if (is_one_of(*e, few, ARRAY_LEN(few)) ||
			(whole && is_one_of(*e, more, ARRAY_LEN(more))))
			ret[n++] = *e;
	ret[n] = NULL;
	return n;
}

size_t keepenv_pick(char *ret[KEEPENV_MAX + 1])
{
	return pick_keepenv(ret, true);
}

size_t keepenv_pick_few(char *ret[KEEPENV_MAX + 1])
{
	return pick_keepenv(ret, false);
}
