/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-probe - one system call or request of a probe; see README.
 */
#include <stdio.h>
#include <string.h>

#include "src/guest/probe/files/files.h"
#include "src/guest/probe/host/host.h"
#include "src/guest/probe/net/net.h"
#include "src/guest/probe/verb/verb.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{"keys", probe_keys,
		": the bytes of every kernel key that root can read; add NAME TEXT, rm NAME: add "
		"or remove a key"},
	{"memory", probe_memory, "PID: print the private memory of a process"},
	{"change", probe_change,
		"HOW FILE [TO]: read stat write append overwrite write-pipe create truncate grow "
		"chmod "
		"chown-root chown-owner chown-stranger times-now times-old mkdir pipe symlink "
		"unlink; rename "
		"exchange link with TO"},
	{"create", probe_create, "FILE MODE [node]: a new file with this mode, by open or mknod"},
	{"fuse", probe_fuse,
		"WORD...: raw requests to the share's device, see fuse.c; its mounts are restored"},
	{"handles", probe_handles, "DIR LAST: open_by_handle_at of each node number up to LAST"},
	{"mmap", probe_mmap, "FILE: writes its first byte through a shared mapping"},
	{"mount", probe_mount, "TYPE SOURCE AT: TYPE bind is a bind mount"},
	{"mounts", probe_mounts, "CMD...: run CMD with private mounts, which are removed"},
	{"drive", probe_drive, "DIR: run parts of probes for sbx prove"},
	{"socket", probe_socket,
		"FAMILY TYPE [PROTOCOL]: numbers, or inet inet6 packet vsock unix; stream dgram "
		"raw"},
	{"sum", probe_sum, "PATH...: a sum over each regular file below"},
	{"local", probe_local,
		"listen|connect|both NAME [SECONDS]: a stream socket; a NAME that begins with @ is "
		"abstract"},
	{"peer", probe_peer,
		"own|other stream|seqpacket PATH [HEAD]: whether the listener talks to this user, "
		"after the HEAD of a request; "
		"other: in a user namespace with subordinate ids"},
	{"pipe", probe_pipe,
		"FILE SECONDS: print what the first writer of a named pipe sends; FILE must not "
		"be a link"},
	{"plant", probe_plant,
		"file FILE TEXT, link FILE TARGET, pipe FILE: in a directory that a guest can "
		"write; follows no links"},
	{"vault", probe_vault,
		"PATH: request a value from the vault at this socket, in each way that its own "
		"user has"},
	{"swap", probe_swap, "A B MS: exchange two names for MS milliseconds"},
	{"unix-connect", probe_unix_connect, "PATH"},
	{"unix-listen", probe_unix_listen, "PATH MS: until a process connects"},
	{"xattr-list", probe_xattr_list, "FILE"},
	{"xattr-set", probe_xattr_set, "FILE NAME"},
	{"talk", probe_talk,
		"ADDR PORT [-s BYTES | -c HOST:PORT | -t SNI | -e SNI | -2 SNI]...: TCP; sends "
		"bytes (\\r \\n \\0 \\xNN), CONNECT, a ClientHello (-e with ECH, -2 for h2)"},
	{"dns", probe_dns, "ADDR PORT TYPE NAME [tcp]: one query"},
	{"udp", probe_udp, "ADDR PORT [BYTES]: one datagram"},
	{"raw", probe_raw, "ADDR PROTOCOL: one IP packet of that protocol"},
	{"packet", probe_packet, "ADDR: an ARP request on each interface"},
	{"xdp", probe_xdp, "ADDR: the same through AF_XDP sockets"},
	{"vsock", probe_vsock, "CID PORT: a connection"},
	{"listen", probe_listen,
		"tcp|udp ADDR SECONDS FILE: print its port, run in the background, write "
		"connections to FILE"},
};

static int help_probe(void)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		printf("sbx-probe %s %s\n", verbs[i].name, verbs[i].help);
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 2, argv + 2);
	if (argc == 2 && strcmp(argv[1], "help") == 0)
		return help_probe();
	(void)fprintf(stderr, "sbx-probe: unknown verb\n  try: sbx-probe help\n");
	return PROBE_USAGE;
}
