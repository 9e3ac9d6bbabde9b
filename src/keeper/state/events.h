/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events - the numbers of the events of the keeper's loop.
 *
 * How      A loop_key carries the number in kind. events.c has one row for each.
 * Trust    Internal.
 */
#pragma once

enum keeper_ev {
	EV_SIGNAL,
	EV_LISTEN,
	EV_LINK, /* idx: connection of sbxd */
	EV_QMP,
	EV_QEMU_END,
	EV_SHARE_END,
	EV_EDGE,
	EV_EDGE_END,
	EV_ASK, /* idx: which question */
	EV_CHATTER,
	EV_TIMER_BOOT,
	EV_TIMER_STOP,
	EV_TIMER_VMM,
	EV_TIMER_EDGE,
	EV_TIMER_WAIT, /* idx: waiting stream */
	EV_TIMER_ASK,  /* idx: which question */
	EV_EGRESS,
	EV_EGRESS_END,
	EV_TIMER_EGRESS,
	EV_TIMER_LOAD,
	EV_TIMER_NET,
	EV_TIMER_RECORD,
	EV_SSH_AGENT,
	EV_SSH_AGENT_END,
	EV_CONFIRM, /* idx: prompt */
	EV_TIMER_CONFIRM,
	EV_VAULT,
	EV_TIMER_VAULT,
	EV_TIMER_RELEASE, /* idx: which release */
	EV_TIMER_STORE,	  /* idx: which store */
	EV_ORIGIN,	  /* idx: which origin */
	EV_ORIGIN_END,	  /* idx: which origin */
	EV_TIMER_ORIGINS,
	EV_SUSPEND_SAVED,   /* the child that writes the snapshot exited */
	EV_SUSPEND_CHECKED, /* the child that reads it exited */
	EV_TIMER_SUSPEND,
	EV_TIMER_IDLE,
	EV_TIMER_SPACE,
	EV_IMAGE, /* the child that checks or writes the template's snapshot exited */
	EV_TIMER_MAKE,
	EV_PORT, /* idx: which listener */
	EV_TIMER_PORTS,
	EV_CROWD, /* a lookup of virtiofsd waits */
	EV_TIMER_CROWD,
	EV_GUARD,    /* the guard of the share denied or reported a write */
	EV_SELFTEST, /* the child that tests KVM exited */
	EV_TIMER_SELFTEST,
	EV_TIMER_DENIED,
	EV_TIMER_HOLDS,
	EV_TIMER_HOLDS_SEND,
	EV_CLERK,     /* idx: which sbx-clerk-git or sbx-clerk */
	EV_CLERK_END, /* idx: which of them */
	EV_TIMER_CLERKS,
	KEEPER_N_EVENTS,
};
