/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - the parts of sbx-notify: main.c (start, seal, dispatch), control.c (messages of sbxd),
 *          desktop.c (calls to the notification service and its signals), text.c (what a person
 *          reads), selftest.c.
 *
 * How      A SHOW is a struct note. desktop_connect connects to the session bus before the seal and
 *          reads nothing; after the seal, sd-bus authenticates and the service is queried for its
 *          capabilities, then each note becomes one call of Notify. A note exists until sbxd
 *          sends CLOSE. An ActionInvoked of the service that displayed the note becomes REFUSE.
 * Trust    The session bus, the service and every other program on the bus may send anything.
 *          sbxd's texts are the guest's. Holds no secrets and no files.
 * Owns     fd CONTROL_FD, the connection to the bus.
 * Limits   NOTIFY_MAX notes. DESKTOP_BURST messages of the bus at once, DESKTOP_PER_S a second;
 *          the rest is limited by the jail (JAIL_NOTIFY) and ends this process.
 * Never    Approves: no message for that exists.
 * See      README, lib/os/ipc/notify/notify_chan.h, tests/cli/desktop/test_notify.py
 */
#pragma once

#include <systemd/sd-bus.h>
#include "lib/base/bucket.h"
#include "lib/os/ipc/notify/notify_chan.h"
#include "lib/os/worker/control.h"

#define DESKTOP_BURST 1000
#define DESKTOP_PER_S 100
#define DESKTOP_END_MS 2000 /* to close all notifications at the end */
#define DESKTOP_MAX_NAME 32 /* a unique name, as :1.23 */
#define TEXT_MAX_EFFECT 300 /* characters of it that are displayed */
#define TEXT_MAX 4096

/* The exit status if the bus or its service fails; the others are enum control_exit. */
#define NOTIFY_EXIT_DESKTOP 5

enum notify_ev { NOTIFY_EV_CONTROL, NOTIFY_EV_BUS, NOTIFY_EV_BUS_TIMER, NOTIFY_EV_END };

enum note_state {
	NOTE_FREE,
	NOTE_WAIT,   /* the service's capabilities are awaited */
	NOTE_CALLED, /* its id is awaited */
	NOTE_SHOWN,
};

struct note {
	struct notify *of;
	enum note_state state;
	uint32_t number;	      /* sbxd's */
	uint32_t id;		      /* the service's */
	char owner[DESKTOP_MAX_NAME]; /* who displayed it */
	bool closing;		      /* CLOSE came while its id was awaited */
	bool refused, refuse_due;     /* the action was used; sbxd does not read */
	struct notify_show show;
};

struct notify {
	struct loop loop;
	struct control control;
	sd_bus *bus;
	uint32_t armed; /* events of the bus that the loop watches */
	struct loop_timer bus_timer, end_timer;
	struct bucket bucket;
	bool is_ready;	  /* the capabilities are known */
	bool has_actions; /* one of them */
	unsigned n_calls; /* whose answers are awaited */
	bool is_late;	  /* the end took too long */
	struct note notes[NOTIFY_MAX];
};

/* control.c */
extern const struct control_ops notify_control;
/* Sends REFUSE, or later if sbxd does not read. */
void control_refuse(struct notify *n, struct note *note);

/* desktop.c */
/* Connects by the environment. Only Unix sockets. */
int desktop_connect(struct notify *n, struct err *err) MUST_CHECK;
/* The first calls; after the seal. */
void desktop_begin(struct notify *n);
/* A message or the time of the bus. */
void desktop_on_event(struct notify *n);
/* A new note is displayed, now or when the capabilities are known. */
void desktop_show(struct notify *n, struct note *note);
/* Frees the note. */
void desktop_close(struct notify *n, struct note *note);

/* text.c: both end in a NUL and have no byte that the service could take for markup. */
void text_title(const struct notify_show *show, char ret[TEXT_MAX]);
void text_body(const struct notify_show *show, char ret[TEXT_MAX]);

/* selftest.c */
int notify_selftest(void);
