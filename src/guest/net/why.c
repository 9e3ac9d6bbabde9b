/* SPDX-License-Identifier: Apache-2.0 */
#include "why.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/mem.h"

#define NAME "sbx-why"
#define LINK "/usr/local/bin/" NAME

/* The texts arrive within a second or two of the denial, hence the retries. */
static const char script[] =
	"#!/bin/sh\n"
	"# sbx-why [HOST[:PORT]] - why a connection of this sandbox was refused\n"
	"file=${SBX_DENIED:-" WHY_FILE "}\n"
	"case ${1-} in\n"
	"-*)\n"
	"	echo 'usage: sbx-why [HOST[:PORT]]'\n"
	"	echo 'Print why connections and writes failed. Default: all in " WHY_FILE ".'\n"
	"	exit 0 ;;\n"
	"'')\n"
	"	[ ! -s \"$file\" ] || exec cat \"$file\"\n"
	"	echo 'nothing was refused' >&2\n"
	"	exit 1 ;;\n"
	"esac\n"
	"want=${1#*://}\n"
	"want=${want%%/*}\n"
	"show() {\n"
	"	status=1 hit=\n"
	"	while IFS= read -r line; do\n"
	"		case $line in\n"
	"		'Blocked by network policy: '*)\n"
	"			hit=\n"
	"			case ${line#Blocked by network policy: } in\n"
	"			\"$want\" | \"$want\":* | \"[$want]\":*) hit=1 status=0 ;;\n"
	"			esac ;;\n"
	"		'Blocked by '*) hit= ;;\n"
	"		esac\n"
	"		[ -z \"$hit\" ] || printf '%s\\n' \"$line\"\n"
	"	done <\"$file\"\n"
	"	return $status\n"
	"}\n"
	"for try in 1 2 3; do\n"
	"	[ ! -f \"$file\" ] || ! show || exit 0\n"
	"	sleep 1\n"
	"done\n"
	"echo \"error: no refused connection to $want is recorded\" >&2\n"
	"echo \"  try:  sbx policy check network $want     (run on the host)\" >&2\n"
	"exit 1\n";

/* An existing program of that name stays. */
static int put_link(const char *root, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s" LINK, root);
	int r = file_make_parents(path, err);

	if (r < 0)
		return r;
	if (symlink(WHY_BIN "/" NAME, path) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create %s", path);
	return 0;
}

int why_install(const char *root, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s" WHY_BIN "/" NAME, root);
	int r = file_make_parents(path, err);

	if (r == 0)
		r = file_replace(path, script, err);
	if (r == 0 && chmod(path, 0755) < 0)
		r = err_errno(err, -errno, "cannot make %s executable", path);
	if (r == 0)
		r = why_write(root, slice_of(NULL, 0), err);
	return r < 0 ? r : put_link(root, err);
}

int why_write(const char *root, struct slice text, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s" WHY_FILE, root);

	return file_replace_bytes(path, text, err);
}
