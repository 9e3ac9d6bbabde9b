/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_desktop - a notification service for tests, with sd-bus. Commands come in lines on stdin,
 * each call that it gets is a JSON object in a line on stdout. It ends with stdin.
 *
 *   notify_desktop service CAPABILITY...   owns org.freedesktop.Notifications
 *   notify_desktop mute                    owns it and answers no Notify
 *   notify_desktop failing                 owns it and answers Notify with an error
 *   notify_desktop stranger                owns no name
 *
 *   action ID KEY       broadcasts ActionInvoked
 *   tell NAME ID KEY    sends ActionInvoked to one connection
 *   flood NAME N        sends N of them, with ids that do not exist
 *   huge NAME BYTES     sends one with a key of that size
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define SERVICE "org.freedesktop.Notifications"
#define PLACE "/org/freedesktop/Notifications"

static char **capabilities;
static const char *mode;
static uint32_t last_id = 40;

static void fail(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "notify_desktop: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void say(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	puts(text);
	(void)fflush(stdout);
	free(text);
	json_decref(o);
}

static int on_capabilities(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(m, &reply);

	if (r >= 0)
		r = sd_bus_message_append_strv(reply, capabilities);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	(void)sd_bus_message_unref(reply);
	return r;
}

static int on_information(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	return sd_bus_reply_method_return(m, "ssss", "notify_desktop", "sbx", "1", "1.2");
}

static int on_notify(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	const char *app, *icon, *title, *body, *word;
	json_t *actions = json_array();
	uint32_t replaces;
	int32_t expires = -2;
	uint8_t urgency = 99;

	fail("Notify", sd_bus_message_read(m, "susss", &app, &replaces, &icon, &title, &body));
	fail("actions", sd_bus_message_enter_container(m, 'a', "s"));
	while (sd_bus_message_read(m, "s", &word) > 0)
		json_array_append_new(actions, json_string(word));
	fail("actions", sd_bus_message_exit_container(m));
	fail("hints", sd_bus_message_enter_container(m, 'a', "{sv}"));
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		fail("hint", sd_bus_message_read(m, "s", &word));
		if (strcmp(word, "urgency") == 0)
			fail("urgency", sd_bus_message_read(m, "v", "y", &urgency));
		else
			fail("hint", sd_bus_message_skip(m, "v"));
		fail("hint", sd_bus_message_exit_container(m));
	}
	fail("hints", sd_bus_message_exit_container(m));
	fail("time", sd_bus_message_read(m, "i", &expires));
	say(json_pack("{s:s,s:i,s:s,s:s,s:s,s:s,s:o,s:i,s:i}", "call", "Notify", "id",
		(int)++last_id, "sender", sd_bus_message_get_sender(m), "app", app, "title", title,
		"body", body, "actions", actions, "urgency", (int)urgency, "expires",
		(int)expires));
	if (strcmp(mode, "mute") == 0)
		return 1;
	if (strcmp(mode, "failing") == 0)
		return sd_bus_reply_method_errorf(
			m, "org.test.Broken", "the \x1b[31mdesktop\nis broken");
	return sd_bus_reply_method_return(m, "u", last_id);
}

static int on_close(sd_bus_message *m, void *ctx, sd_bus_error *e)
{
	uint32_t id;

	fail("CloseNotification", sd_bus_message_read(m, "u", &id));
	say(json_pack("{s:s,s:i}", "call", "CloseNotification", "id", (int)id));
	return sd_bus_reply_method_return(m, "");
}

static const sd_bus_vtable table[] = {SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("GetCapabilities", "", "as", on_capabilities, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD(
		"GetServerInformation", "", "ssss", on_information, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Notify", "susssasa{sv}i", "u", on_notify, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("CloseNotification", "u", "", on_close, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END};

/* to: NULL for all. */
static void emit(sd_bus *bus, const char *to, uint32_t id, const char *key)
{
	sd_bus_message *m = NULL;

	fail("signal", sd_bus_message_new_signal(bus, &m, PLACE, SERVICE, "ActionInvoked"));
	if (to)
		fail("destination", sd_bus_message_set_destination(m, to));
	fail("fields", sd_bus_message_append(m, "us", id, key));
	fail("send", sd_bus_send(bus, m, NULL));
	(void)sd_bus_message_unref(m);
}

static void command(sd_bus *bus, const char *line)
{
	char to[64], key[64];
	unsigned n = 0;
	char *big;

	if (sscanf(line, "action %u %63s", &n, key) == 2) {
		emit(bus, NULL, n, key);
	} else if (sscanf(line, "tell %63s %u %63s", to, &n, key) == 3) {
		emit(bus, to, n, key);
	} else if (sscanf(line, "flood %63s %u", to, &n) == 2) {
		for (unsigned i = 0; i < n; i++)
			emit(bus, to, 1000000 + i, "refuse");
	} else if (sscanf(line, "huge %63s %u", to, &n) == 2) {
		big = malloc(n + 1);
		memset(big, 'x', n);
		big[n] = '\0';
		emit(bus, to, last_id, big);
		free(big);
	} else {
		fail(line, -EINVAL);
	}
	fail("flush", sd_bus_flush(bus));
	say(json_pack("{s:s}", "call", "done"));
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	char line[256];
	sd_bus *bus = NULL;

	if (argc < 2)
		fail("usage", -EINVAL);
	mode = argv[1];
	capabilities = argv + 2;
	setvbuf(stdin, NULL, _IONBF, 0);
	fail("connect", sd_bus_open_user(&bus));
	fail("table", sd_bus_add_object_vtable(bus, NULL, PLACE, SERVICE, table, NULL));
	if (strcmp(mode, "stranger") != 0)
		fail("name", sd_bus_request_name(bus, SERVICE, 0));
	fail("unique name", sd_bus_get_unique_name(bus, &name));
	say(json_pack("{s:s,s:s}", "call", "ready", "name", name));
	for (;;) {
		struct pollfd p[] = {{.fd = 0, .events = POLLIN},
			{.fd = sd_bus_get_fd(bus), .events = (short)sd_bus_get_events(bus)}};
		int r;

		while ((r = sd_bus_process(bus, NULL)) > 0)
			;
		fail("bus", r);
		p[1].events = (short)sd_bus_get_events(bus);
		fail("poll", poll(p, 2, 1000) < 0 ? -errno : 0);
		if (!p[0].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		line[strcspn(line, "\n")] = '\0';
		command(bus, line);
	}
}
