#include "keepenv.h"

#include <string.h>
#include "str.h"

extern char **environ;

/* Those that end in '=' are whole names. */
static const char *const kept[] = {"XDG_", "SBX_", "LC_",
	"HOME=", "PATH=", "USER=", "LOGNAME=", "SHELL=", "LANG=", "LANGUAGE=", "TZ=", "TMPDIR=",
	"DBUS_SESSION_BUS_ADDRESS=", "DOCKER_CONFIG=", "GNUPGHOME=", "PASSWORD_STORE_DIR=",
	"AWS_PROFILE=", "AWS_REGION=", "AWS_CONFIG_FILE=", "OP_ACCOUNT=", "VAULT_ADDR=",
	"SSL_CERT_FILE=", "SSL_CERT_DIR=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};

size_t keepenv_pick(char *ret[KEEPENV_MAX + 1])
{
	size_t n = 0;

	for (char **e = environ; *e && n < KEEPENV_MAX; e++) {
		for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
			if (str_starts(*e, kept[i])) {
				ret[n++] = *e;
				break;
			}
		}
	}
	ret[n] = NULL;
	return n;
}
