/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/clock.h"

#define MAX_CONT_TRIES 20000 /* each is a round trip */

/* Enough to empty the ring once; a guest that keeps writing does not keep us reading. */
#define MAX_CONSOLE_READS (VMM_CONSOLE_BYTES / VMM_MAX_TAIL + 2)

/* ---- answers ---- */

int vmm_tell(struct vmm_event *ev, enum vmm_event_kind kind, const char *text)
{
	ev->kind = kind;
	(void)snprintf(ev->text, sizeof(ev->text), "%s", text);
	return 1;
}

int vmm_fail(struct vmm *v, struct vmm_event *ev, const char *text)
{
	v->dead = true;
	return vmm_tell(ev, VMM_EV_FATAL, text);
}

static void keep_tail(struct vmm *v, const char *p, size_t n)
{
	size_t drop;

	if (n > sizeof(v->tail)) {
		p += n - sizeof(v->tail);
		n = sizeof(v->tail);
	}
	drop = v->n_tail + n > sizeof(v->tail) ? v->n_tail + n - sizeof(v->tail) : 0;
	memmove(v->tail, v->tail + drop, v->n_tail - drop);
	v->n_tail -= drop;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\r')
			continue;
		v->tail[v->n_tail++] =
			p[i] == '\n' || p[i] == '\t' || (p[i] >= 0x20 && p[i] < 0x7f) ? p[i] : '?';
	}
}

static int on_console(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	size_t n = json_is_string(data) ? json_string_length(data) : 0;

	if (n)
		keep_tail(v, json_string_value(data), n);
	if (n && v->n_console_reads < MAX_CONSOLE_READS && vmm_read_console(v) == 0)
		return 0;
	ev->kind = VMM_EV_CONSOLE;
	ev->console = v->tail;
	ev->console_len = v->n_tail;
	return 1;
}

static int on_success(struct vmm *v, enum tag tag, const json_t *data, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_CONSOLE:
		return on_console(v, data, ev);
	default:
		return vmm_flow_on_success(v, tag, ev);
	}
}

/* For a moment after it has reported the end of a save, QEMU still ends the migration. */
static bool is_too_early(struct vmm *v, const char *text)
{
	return v->n_cont_tries < MAX_CONT_TRIES && strstr(text, "not finalized yet");
}

static int on_failure(struct vmm *v, enum tag tag, const char *text, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_CONT:
		if (is_too_early(v, text)) {
			v->n_cont_tries++;
			return vmm_command(v, TAG_CONT, "cont", NULL, -1);
		}
		return vmm_tell(ev, VMM_EV_REFUSED, text);
	case TAG_PLAIN:
		return vmm_tell(ev, VMM_EV_REFUSED, text);
	case TAG_CONSOLE:
		return on_console(v, NULL, ev);
	default:
		return vmm_flow_on_failure(v, tag, text, ev);
	}
}

/* ---- events of qemu ---- */

static const char *str_field(const json_t *data, const char *key)
{
	const char *s = json_string_value(json_object_get(data, key));

	return s ? s : "";
}

static int on_reset(const char *reason, struct vmm_event *ev)
{
	char text[64];

	if (strcmp(reason, "guest-reset") == 0 || strcmp(reason, "guest-panic") == 0)
		return vmm_tell(ev, VMM_EV_RESET, "the guest panicked or rebooted");
	if (strcmp(reason, "host-signal") == 0)
		return vmm_tell(ev, VMM_EV_RESET, "QEMU was killed by a signal");
	/* qemu may be compromised: its own reasons are lower-case words with hyphens. */
	if (reason[strspn(reason, "abcdefghijklmnopqrstuvwxyz-")])
		reason = "unknown reason";
	(void)snprintf(text, sizeof(text), "QEMU stopped the VM (%.20s)",
		reason[0] ? reason : "no reason");
	return vmm_tell(ev, VMM_EV_RESET, text);
}

static int on_shutdown(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	const char *reason = str_field(data, "reason");

	if (v->ending)
		return 0;
	v->ending = true;
	if (strcmp(reason, "guest-shutdown") != 0)
		return on_reset(reason, ev);
	if (vmm_quit(v) < 0)
		vmm_kill(v);
	return vmm_tell(ev, VMM_EV_SHUTDOWN, "the guest powered off");
}

static int on_stop(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	/* Saving pauses too, and is reported by VMM_EV_SAVED. */
	bool ours = v->image_fd >= 0 || v->migrating != MIGRATE_NONE;

	v->stopped = true;
	return v->ending || ours ? 0 : vmm_tell(ev, VMM_EV_PAUSED, "");
}

static int on_resume(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	v->stopped = false;
	v->detach_ms = clock_mono_ms() + VMM_DETACH_MS;
	return v->ending ? 0 : vmm_tell(ev, VMM_EV_RESUMED, "");
}

static int on_port(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	if (strcmp(str_field(data, "id"), "ctl") != 0)
		return 0;
	return vmm_tell(ev,
		json_is_true(json_object_get(data, "open")) ? VMM_EV_CTL_OPEN : VMM_EV_CTL_CLOSED,
		"");
}

static int on_deleted(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	return strcmp(str_field(data, "device"), "share") == 0 ? vmm_flow_on_share_gone(v, ev) : 0;
}

static int on_disk_error(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	bool full = json_is_true(json_object_get(data, "nospace")) &&
		    strcmp(str_field(data, "action"), "stop") == 0;

	return full ? vmm_tell(ev, VMM_EV_DISK_FULL, "the host's disk is full")
		    : vmm_tell(ev, VMM_EV_DISK_ERROR, "a disk of the guest reported an error");
}

static int on_migration(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	return vmm_flow_on_migration(v, str_field(data, "status"), ev);
}

static const struct {
	const char *name;
	int (*on)(struct vmm *v, const json_t *data, struct vmm_event *ev);
} events[] = {
	{"SHUTDOWN", on_shutdown},
	{"STOP", on_stop},
	{"RESUME", on_resume},
	{"VSERPORT_CHANGE", on_port},
	{"DEVICE_DELETED", on_deleted},
	{"BLOCK_IO_ERROR", on_disk_error},
	{"MIGRATION", on_migration},
};

static int on_event(struct vmm *v, const struct qmp_item *it, struct vmm_event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (strcmp(events[i].name, it->name) == 0)
			return events[i].on(v, it->data, ev);
	}
	return 0;
}

int vmm_on_item(struct vmm *v, const struct qmp_item *it, struct vmm_event *ev)
{
	switch (it->kind) {
	case QMP_GREETED:
		return 0;
	case QMP_READY:
		return vmm_tell(ev, VMM_EV_READY, "");
	case QMP_RESULT:
		return on_success(v, (enum tag)it->tag, it->data, ev);
	case QMP_ERROR:
		return on_failure(v, (enum tag)it->tag, it->text, ev);
	case QMP_EVENT:
		return on_event(v, it, ev);
	}
	return 0;
}
