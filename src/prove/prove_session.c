/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "prove_clean.h"

PRINTF_LIKE(2, 3)
static void broke_session(struct prove_session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	prove_job_end(&s->job);
	s->state = PROVE_SESSION_BROKEN;
	s->asked = false;
}

static void send_bytes(struct prove_session *s, uint8_t *own, struct slice bytes)
{
	free(s->own);
	s->own = own;
	s->sending = bytes.p;
	s->left = bytes.n;
}

static void start_session(struct prove_session *s, const char *const *argv, unsigned seconds)
{
	struct prove_job_spec spec = {.argv = argv, .piped = true, .seconds = seconds};
	struct err err = {0};

	if (prove_job_start(&s->job, &spec, &err) < 0)
		broke_session(s, "%s", err.text);
}

static void push_session(struct prove_session *s)
{
	ssize_t n = 1;

	while (s->left > 0 && n > 0 && s->job.to >= 0) {
		n = write(s->job.to, s->sending, s->left);
		if (n > 0) {
			s->sending += n;
			s->left -= (size_t)n;
		}
	}
	/* Its end marks the tool as complete; the driver's input stays open. */
	if (s->left == 0 && s->state == PROVE_SESSION_PUTTING)
		fd_close(&s->job.to);
}

void prove_session_open(struct prove_session *s)
{
	char word[17], script[512];

	str_random_hex(word, 8);
	(void)snprintf(s->dir, sizeof(s->dir), "/run/sbx-prove-%s", word);
	/* The agent may execute the tool, but cannot list the directory. */
	(void)snprintf(script, sizeof(script),
		"umask 077 && mkdir %s && chmod 711 %s && cat >%s/sbx-probe && chmod 755 "
		"%s/sbx-probe",
		s->dir, s->dir, s->dir, s->dir);
	const char *const argv[] = {s->sbx, "exec", "-i", "-u", "root", "-w", "/", s->sandbox, "sh",
		"-c", script, NULL};

	s->state = PROVE_SESSION_PUTTING;
	s->reader = (struct probe_reader){0};
	s->asked = false;
	send_bytes(s, NULL, s->tool);
	start_session(s, argv, PROVE_SESSION_OPEN_S);
}

static void start_driver(struct prove_session *s)
{
	AUTO_FREE char *program = xasprintf("%s/sbx-probe", s->dir);
	const char *const argv[] = {s->sbx, "exec", "-i", "-u", "root", "-w", "/", s->sandbox,
		program, "drive", s->dir, NULL};

	prove_job_end(&s->job);
	s->state = PROVE_SESSION_OPEN;
	start_session(s, argv, 0);
}

void prove_session_ask(
	struct prove_session *s, uint32_t number, unsigned seconds, const char *script)
{
	size_t n = strlen(script);
	struct probe_ask ask = {number, seconds, (uint32_t)n};
	uint8_t *buf = xmalloc(PROBE_FRAME_ASK + n);

	if (probe_ask_put(buf, &ask) < 0) {
		free(buf);
		broke_session(s, "the script is too long");
		return;
	}
	memcpy(buf + PROBE_FRAME_ASK, script, n);
	send_bytes(s, buf, slice_of(buf, PROBE_FRAME_ASK + n));
	s->asked = true;
	s->called_off = false;
	s->number = number;
	s->late_ms = clock_mono_ms() + seconds * 1000ull;
}

/* Its timeout expired: the driver kills it, and reports that. If the driver is silent too, the
 * session is dropped. */
static void call_off(struct prove_session *s)
{
	struct probe_ask ask = {.number = s->number};
	uint8_t *buf = xmalloc(PROBE_FRAME_ASK);

	if (s->called_off || s->left > 0 || probe_ask_put(buf, &ask) < 0) {
		free(buf);
		broke_session(s, "the guest did not respond in time");
		return;
	}
	send_bytes(s, buf, slice_of(buf, PROBE_FRAME_ASK));
	s->called_off = true;
	s->late_ms = clock_mono_ms() + PROVE_SESSION_GRACE_S * 1000ull;
	push_session(s);
}

size_t prove_session_poll(const struct prove_session *s, struct pollfd *ret)
{
	size_t n = prove_job_poll(&s->job, ret);

	if (!prove_job_runs(&s->job))
		return 0;
	if (s->left > 0 && s->job.to >= 0)
		ret[n++] = (struct pollfd){.fd = s->job.to, .events = POLLOUT};
	if (s->job.out >= 0)
		ret[n++] = (struct pollfd){.fd = s->job.out, .events = POLLIN};
	return n;
}

int prove_session_wait_ms(const struct prove_session *s)
{
	uint64_t now = clock_mono_ms();

	if (!s->asked)
		return prove_job_wait_ms(&s->job);
	return s->late_ms > now ? (int)MIN(s->late_ms - now, (uint64_t)60000) : 0;
}

/* The output of `sbx exec`, in one line. */
static void say_end(struct prove_session *s)
{
	AUTO_FREE char *text = prove_clean(slice_of(s->job.text, s->job.n), 160);

	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	if (s->state == PROVE_SESSION_PUTTING && (s->job.status == 127 || s->job.status == 126))
		broke_session(s, "no shell in the sandbox can run probes: %s", text);
	else if (s->job.status == PROVE_JOB_LATE)
		broke_session(
			s, "the guest did not respond within %d seconds", PROVE_SESSION_OPEN_S);
	else
		broke_session(s, "the session in the guest exited (status %d)%s%s", s->job.status,
			text[0] ? ": " : "", text);
}

/* Returns 1 if the request was answered. */
static int pull_session(struct prove_session *s, struct probe_answer *ret)
{
	uint8_t buf[4096];
	ssize_t n;

	while (s->job.out >= 0 && (n = read(s->job.out, buf, sizeof(buf))) >= 0) {
		struct slice in = slice_of(buf, (size_t)n);
		int r = 0;

		if (n == 0) {
			fd_close(&s->job.out);
			return 0;
		}
		if (s->state == PROVE_SESSION_PUTTING)
			continue; /* no data */
		r = probe_reader_feed(&s->reader, &in, ret);
		if (r < 0 || in.n > 0 || (r == 1 && (!s->asked || ret->number != s->number)) ||
			!s->asked) {
			broke_session(s, "protocol error: unexpected response from the guest");
			return 0;
		}
		if (r == 1)
			return 1;
	}
	return 0;
}

bool prove_session_look(struct prove_session *s, struct probe_answer *ret)
{
	if (!prove_job_runs(&s->job))
		return false;
	push_session(s);
	if (pull_session(s, ret) == 1) {
		s->asked = false;
		return true;
	}
	if (s->state == PROVE_SESSION_BROKEN)
		return false;
	if (s->asked && clock_mono_ms() >= s->late_ms) {
		call_off(s);
		return false;
	}
	if (!prove_job_look(&s->job))
		return false;
	if (s->state == PROVE_SESSION_PUTTING && s->job.status == 0)
		start_driver(s);
	else
		say_end(s);
	return false;
}

/* Otherwise, if the driver has not begun, the directory would stay. */
static void remove_folder(struct prove_session *s)
{
	const char *const argv[] = {
		s->sbx, "exec", "-u", "root", "-w", "/", s->sandbox, "rm", "-rf", s->dir, NULL};
	const struct prove_job_spec spec = {.argv = argv, .seconds = PROVE_SESSION_CLOSE_S};

	(void)!prove_job_run(&s->job, &spec, &(struct err){0});
}

void prove_session_close(struct prove_session *s)
{
	uint64_t until = clock_mono_ms() + PROVE_SESSION_CLOSE_S * 1000ull;

	if (s->state == PROVE_SESSION_CLOSED)
		return;
	/* The driver sees end-of-file, kills its part and removes its directory. */
	fd_close(&s->job.to);
	while (prove_job_runs(&s->job) && clock_mono_ms() < until && !prove_job_look(&s->job)) {
		struct pollfd p[PROVE_JOB_FDS];

		(void)poll(p, prove_job_poll(&s->job, p), 100);
	}
	prove_job_end(&s->job);
	if (s->state == PROVE_SESSION_PUTTING)
		remove_folder(s);
	free(s->own);
	s->own = NULL;
	s->left = 0;
	s->asked = false;
	s->state = PROVE_SESSION_CLOSED;
}
