/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netrig - a sandbox's network on a unix socket: see rig.h, serve.c for what can be said there.
 */
#include "rig.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "lib/base/log.h"

static const char usage[] =
	"usage: netrig --socket PATH --folder DIR --edge PROGRAM --egress PROGRAM [--policy FILE]\n"
	"              [--resolver FILE] [--connect-to HOST:PORT=ADDR:PORT,...] [--proxy "
	"HOST:PORT]\n"
	"              [--no-jail] [--raw] [--cpus HEXMASK]\n"
	"Says `ready` on its standard output when edge and egress are up; SIGUSR1 prints counters "
	"there.\n"
	"Ends with its parent, or on SIGTERM.\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"folder", required_argument, NULL, 'f'},
	{"edge", required_argument, NULL, 'e'},
	{"egress", required_argument, NULL, 'g'},
	{"policy", required_argument, NULL, 'p'},
	{"resolver", required_argument, NULL, 'r'},
	{"connect-to", required_argument, NULL, 'c'},
	{"proxy", required_argument, NULL, 'x'},
	{"cpus", required_argument, NULL, 'u'},
	{"no-jail", no_argument, NULL, 'j'},
	{"raw", no_argument, NULL, 'w'},
	{NULL, 0, NULL, 0},
};

static const char *read_options(int argc, char **argv, struct rig_options *o)
{
	const char *path = NULL;
	int c;

	*o = (struct rig_options){.jailed = true};
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 's':
			path = optarg;
			break;
		case 'f':
			o->folder = optarg;
			break;
		case 'e':
			o->edge = optarg;
			break;
		case 'g':
			o->egress = optarg;
			break;
		case 'p':
			o->policy = optarg;
			break;
		case 'r':
			o->resolver = optarg;
			break;
		case 'c':
			o->connect_to = optarg;
			break;
		case 'x':
			o->proxy = optarg;
			break;
		case 'u':
			o->cpu_list = optarg;
			break;
		case 'j':
			o->jailed = false;
			break;
		case 'w':
			o->raw = true;
			break;
		default:
			return NULL;
		}
	}
	return o->folder && o->edge && o->egress ? path : NULL;
}

static int watch_signals(struct rig *r)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGUSR1};
	int fd = loop_signalfd(signals, ARRAY_LEN(signals));

	if (fd < 0 || loop_add(&r->loop, fd, EPOLLIN, (struct loop_key){.kind = RIG_EV_SIGNAL}) < 0)
		die("watching signals");
	return fd;
}

static void on_signal(struct rig *r, int fd)
{
	struct signalfd_siginfo info;
	char buf[4096];

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGUSR1) {
		r->stopping = true;
		return;
	}
	rig_print_stats(r, buf, sizeof(buf));
	(void)fputs(buf, stdout);
	(void)fflush(stdout);
}

static void run(struct rig *r, struct rig_server *s, int signals)
{
	struct loop_event ev;
	bool said = false;

	while (!r->stopping) {
		if (!said && rig_is_up(r)) {
			said = true;
			(void)puts("ready");
			(void)fflush(stdout);
		}
		rig_flush(r);
		loop_next(&r->loop, &ev);
		if (ev.key.kind == RIG_EV_SIGNAL)
			on_signal(r, signals);
		else if (!rig_on_event(r, &ev))
			(void)rig_server_event(s, &ev);
	}
}

int main(int argc, char **argv)
{
	struct rig_options o;
	struct err err = {0};
	const char *path = read_options(argc, argv, &o);
	struct rig_server *s;
	struct rig *r;
	int signals, failed;

	log_init("netrig");
	if (!path) {
		(void)fputs(usage, stderr);
		return 2;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		die("asking for the parent's end");
	r = rig_new(&o, &err);
	if (!r)
		die("%s", err.text);
	signals = watch_signals(r);
	s = rig_serve(r, path, &err);
	if (!s)
		die("%s", err.text);
	run(r, s, signals);
	failed = r->why[0] != '\0';
	if (failed)
		log_error("%s", r->why);
	rig_server_free(s);
	r->guest_ops = NULL;
	rig_free(r);
	(void)unlink(path);
	return failed;
}
