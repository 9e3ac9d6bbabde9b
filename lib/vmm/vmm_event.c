#include "vmm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "args.h"
#include "lib/base/fd.h"

/* Enough to empty the ring once; a guest that goes on writing does not keep us reading. */
#define MAX_CONSOLE_READS (VMM_CONSOLE_BYTES / VMM_MAX_TAIL + 2)
#define MAX_CTL_TRIES 1000

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

/* A follow-up that could not even be queued ends the operation like a refusal. */
static int next_step(struct vmm_event *ev, int r, enum vmm_event_kind if_failed)
{
	return r < 0 ? vmm_tell(ev, if_failed, strerror(-r)) : 0;
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

static int add_share_chardev(struct vmm *v)
{
	json_t *backend = json_pack("{s:s, s:{s:{s:s, s:{s:s}}, s:b}}", "type", "socket", "data",
		"addr", "type", "fd", "data", "str", "share", "server", 0);

	return vmm_command(v, TAG_SHARE_CHARDEV, "chardev-add",
		json_pack("{s:s, s:o}", "id", "share", "backend", backend), -1);
}

static int add_share_device(struct vmm *v)
{
	return vmm_command(v, TAG_SHARE_DEVICE, "device_add",
		json_pack("{s:s, s:s, s:s, s:s, s:i}", "driver", "vhost-user-fs-pci", "id", "share",
			"chardev", "share", "tag", "sbx", "queue-size", 1024),
		-1);
}

/* The same as add_serial has given it at the start. */
static int add_ctl(struct vmm *v)
{
	v->n_ctl_tries++;
	return vmm_command(v, TAG_CTL_ADD, "device_add",
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "driver", "virtserialport", "id", "ctl",
			"bus", "serial.0", "chardev", "ctl", "nr", 1, "name", "sbx.ctl"),
		-1);
}

static int set_capabilities(struct vmm *v, enum tag tag)
{
	return vmm_command(v, tag, "migrate-set-capabilities",
		json_pack("{s:[{s:s, s:b}, {s:s, s:b}]}", "capabilities", "capability",
			"x-ignore-shared", "state", 1, "capability", "events", "state", 1),
		-1);
}

static int on_success(struct vmm *v, enum tag tag, const json_t *data, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_CONSOLE:
		return on_console(v, data, ev);
	case TAG_CTL_ADD:
		return vmm_tell(ev, VMM_EV_CTL_RENEWED, "");
	case TAG_SHARE_FD:
		return next_step(ev, add_share_chardev(v), VMM_EV_SHARE_FAILED);
	case TAG_SHARE_CHARDEV:
		return next_step(ev, add_share_device(v), VMM_EV_SHARE_FAILED);
	case TAG_SHARE_DEVICE:
		return vmm_tell(ev, VMM_EV_SHARE_ATTACHED, "");
	case TAG_SAVE_STOP:
		return next_step(ev, set_capabilities(v, TAG_SAVE_CAPS), VMM_EV_SAVE_FAILED);
	case TAG_SAVE_CAPS:
		return next_step(ev,
			vmm_command(v, TAG_SAVE_FD, "getfd", json_pack("{s:s}", "fdname", "state"),
				TAKE_FD(v->save_fd)),
			VMM_EV_SAVE_FAILED);
	case TAG_SAVE_FD:
		v->migrating = MIGRATE_SAVE;
		return next_step(ev,
			vmm_command(v, TAG_SAVE_MIGRATE, "migrate",
				json_pack("{s:s}", "uri", "fd:state"), -1),
			VMM_EV_SAVE_FAILED);
	case TAG_RESTORE_CAPS:
		v->migrating = MIGRATE_RESTORE;
		return next_step(ev,
			vmm_command(v, TAG_RESTORE_MIGRATE, "migrate-incoming",
				json_pack("{s:o}", "uri", json_sprintf("fd:%d", ARGS_FD_STATE)),
				-1),
			VMM_EV_RESTORE_FAILED);
	default:
		return 0;
	}
}

/* Gives back what the steps before it have taken. */
static void undo_share(struct vmm *v, enum tag tag)
{
	if (tag == TAG_SHARE_CHARDEV)
		(void)!vmm_command(
			v, TAG_SHARE_UNDO, "closefd", json_pack("{s:s}", "fdname", "share"), -1);
	if (tag == TAG_SHARE_DEVICE)
		(void)!vmm_command(
			v, TAG_SHARE_UNDO, "chardev-remove", json_pack("{s:s}", "id", "share"), -1);
}

static int on_failure(struct vmm *v, enum tag tag, const char *text, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_PLAIN:
		return vmm_tell(ev, VMM_EV_REFUSED, text);
	case TAG_CONSOLE:
		return on_console(v, NULL, ev);
	case TAG_CTL_DEL:
		return vmm_fail(v, ev, text);
	case TAG_CTL_ADD:
		/* The old port lets go of its chardev a moment after DEVICE_DELETED. Without its
		 * wire the machine is of no use. */
		return v->n_ctl_tries < MAX_CTL_TRIES && add_ctl(v) == 0 ? 0
									 : vmm_fail(v, ev, text);
	case TAG_SHARE_FD:
	case TAG_SHARE_CHARDEV:
	case TAG_SHARE_DEVICE:
		undo_share(v, tag);
		return vmm_tell(ev, VMM_EV_SHARE_FAILED, text);
	case TAG_SAVE_STOP:
	case TAG_SAVE_CAPS:
	case TAG_SAVE_FD:
	case TAG_SAVE_MIGRATE:
		v->migrating = MIGRATE_NONE;
		fd_close(&v->save_fd);
		return vmm_tell(ev, VMM_EV_SAVE_FAILED, text);
	case TAG_RESTORE_CAPS:
	case TAG_RESTORE_MIGRATE:
		v->migrating = MIGRATE_NONE;
		return vmm_tell(ev, VMM_EV_RESTORE_FAILED, text);
	default:
		return 0;
	}
}

/* ---- events of qemu ---- */

static const char *str_field(const json_t *data, const char *key)
{
	const char *s = json_string_value(json_object_get(data, key));

	return s ? s : "";
}

static int on_shutdown(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	const char *reason = str_field(data, "reason");

	if (v->ending)
		return 0;
	v->ending = true;
	if (strcmp(reason, "guest-shutdown") != 0)
		return vmm_tell(ev, VMM_EV_RESET, "the guest panicked or rebooted");
	if (vmm_quit(v) < 0)
		vmm_kill(v);
	return vmm_tell(ev, VMM_EV_SHUTDOWN, "the guest powered off");
}

static int on_stop(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	/* Saving pauses too, and says so by VMM_EV_SAVED. */
	bool ours = v->save_fd >= 0 || v->migrating != MIGRATE_NONE;

	return v->ending || ours ? 0 : vmm_tell(ev, VMM_EV_PAUSED, "");
}

static int on_resume(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
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
	if (!v->renewing || strcmp(str_field(data, "device"), "ctl") != 0)
		return 0;
	v->renewing = false;
	return add_ctl(v) < 0 ? vmm_fail(v, ev, "too many commands wait") : 0;
}

static int on_disk_error(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	bool full = json_is_true(json_object_get(data, "nospace")) &&
		    strcmp(str_field(data, "action"), "stop") == 0;

	return full ? vmm_tell(ev, VMM_EV_DISK_FULL, "the host's disk is full")
		    : vmm_tell(ev, VMM_EV_DISK_ERROR, "a disk of the guest had an error");
}

static int on_migration(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	const char *status = str_field(data, "status");
	bool saving = v->migrating == MIGRATE_SAVE;
	bool good = strcmp(status, "completed") == 0;

	if (v->migrating == MIGRATE_NONE || (!good && strcmp(status, "failed") != 0))
		return 0;
	v->migrating = MIGRATE_NONE;
	if (saving)
		return vmm_tell(ev, good ? VMM_EV_SAVED : VMM_EV_SAVE_FAILED,
			good ? "" : "qemu could not write the machine's state");
	return vmm_tell(ev, good ? VMM_EV_RESTORED : VMM_EV_RESTORE_FAILED,
		good ? "" : "qemu could not read the machine's state");
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
		if (v->restoring && set_capabilities(v, TAG_RESTORE_CAPS) < 0)
			return vmm_fail(v, ev, "too many commands wait");
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
