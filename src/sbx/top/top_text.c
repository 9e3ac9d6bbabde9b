/* SPDX-License-Identifier: Apache-2.0 */
#include "top_text.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/label/label.h"

static void put_line(FILE *f, const char *label, const char *text)
{
	(void)fprintf(f, "%-11s ", label);
	for (; *text; text++)
		(void)fputc(*text == '\n' || *text == '\r' ? ' ' : *text, f);
	(void)fputc('\n', f);
}

static void put_span(char *buf, size_t size, long long since_ms)
{
	long long s = ((long long)clock_wall_ms() - since_ms) / 1000;

	s = MAX(s, 0);
	if (s < 120)
		(void)snprintf(buf, size, "%lld s", s);
	else if (s < 7200)
		(void)snprintf(buf, size, "%lld min", s / 60);
	else if (s < 172800)
		(void)snprintf(buf, size, "%lld h", s / 3600);
	else
		(void)snprintf(buf, size, "%lld days", s / 86400);
}

static void print_state(FILE *f, const struct top_box *b)
{
	const char *detail = api_str(b->object, "detail"), *status = api_str(b->object, "status");
	bool is_emulated = strcmp(api_str(b->object, "accel"), "tcg") == 0;
	bool is_up = top_box_is_running(b);
	long long since = api_int(b->object, is_up ? "started_at" : "stopped_at");
	AUTO_FREE char *text = NULL;
	char span[32] = "";

	if (since)
		put_span(span, sizeof(span), since);
	if (sandbox_is(b->object, "paused"))
		status = SANDBOX_PAUSED;
	text = xasprintf("%s%s%s%s%s%s", status, since ? " for " : "", span,
		is_up && is_emulated ? ", software emulation (not an isolation boundary)" : "",
		detail[0] ? ": " : "", detail);
	put_line(f, "state", text);
}

static void print_use(FILE *f, const struct top_box *b)
{
	char used[32], size[32], sent[32], received[32];
	AUTO_FREE char *text = NULL;

	str_from_size(b->use.memory, used, sizeof(used));
	str_from_size((uint64_t)api_int(b->object, "memory"), size, sizeof(size));
	str_from_size((uint64_t)api_int(b->object, "net_sent"), sent, sizeof(sent));
	str_from_size((uint64_t)api_int(b->object, "net_received"), received, sizeof(received));
	text = xasprintf("%lld CPUs, %s of %s memory", api_int(b->object, "cpus"), used, size);
	put_line(f, "machine", text);
	if (!top_box_is_running(b))
		return;
	free(text);
	text = xasprintf("%s received, %s sent; %lld open sessions", received, sent,
		api_int(b->object, "sessions"));
	put_line(f, "network", text);
}

static void print_workspaces(FILE *f, const json_t *object)
{
	const json_t *clone = json_object_get(object, "clone"), *w;
	bool is_staged = json_is_true(json_object_get(object, "staged"));
	size_t i;

	if (clone)
		put_line(f, "clone of", api_str(clone, "host"));
	json_array_foreach (json_object_get(object, "workspaces"), i, w) {
		AUTO_FREE char *text = xasprintf("%s%s", api_str(w, "host"),
			json_is_true(json_object_get(w, "ro")) ? " (read-only)"
			: is_staged			       ? " (staged)"
							       : "");

		put_line(f, "workspace", text);
	}
}

static void print_ports(FILE *f, const json_t *object)
{
	const json_t *port;
	size_t i;

	json_array_foreach (json_object_get(object, "ports"), i, port) {
		const char *state = api_str(port, "state");
		AUTO_FREE char *text =
			xasprintf("%s port %lld -> %lld (%s)", api_str(port, "host_ip"),
				api_int(port, "host_port"), api_int(port, "sandbox_port"), state);

		put_line(f, "port", text);
	}
}

static void print_waiting(FILE *f, const struct top_box *b)
{
	long long n = api_int(b->object, "guard_changed");
	AUTO_FREE char *text = NULL;

	if (n) {
		text = xasprintf("%lld changed %s on the host: r reviews %s", n,
			n == 1 ? "file runs programs" : "files run programs",
			n == 1 ? "it" : "them");
		put_line(f, "files", text);
	}
	if (!b->n_holds)
		return;
	free(text);
	text = xasprintf("%u %s for approval: h shows %s", b->n_holds,
		b->n_holds == 1 ? "request waits" : "requests wait",
		b->n_holds == 1 ? "it" : "them");
	put_line(f, "ask", text);
}

void top_text_print(FILE *f, const struct top_box *b)
{
	AUTO_FREE char *labels = label_text(b->object);

	(void)fprintf(f, "%s\n\n", top_box_name(b));
	print_state(f, b);
	print_waiting(f, b);
	print_use(f, b);
	print_workspaces(f, b->object);
	put_line(f, "template", api_str(b->object, "template"));
	print_ports(f, b->object);
	if (labels[0])
		put_line(f, "labels", labels);
}
