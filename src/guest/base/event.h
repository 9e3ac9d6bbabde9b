/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event - the kinds of event that the switch in main.c handles.
 *
 * How      Each fd and timer of the loop carries one of these as the kind of its struct loop_key.
 * Trust    Constants; sees no bytes.
 */
#pragma once

enum guest_ev {
	GUEST_EV_SIGNAL,
	GUEST_EV_PORT,
	GUEST_EV_PORT_PROBE,
	GUEST_EV_EXEC_STATUS,
	GUEST_EV_EXEC_IN,
	GUEST_EV_EXEC_OUT,
	GUEST_EV_EXEC_ERR,
	GUEST_EV_EXEC_TIMER,
	GUEST_EV_EXEC_ASIDE,
	GUEST_EV_DOCKER_SOCK,
	GUEST_EV_DOCKER_TIMER,
	GUEST_EV_NET_PIPE,
	GUEST_EV_NET_TIMER,
	GUEST_EV_NET_WAIT,
	GUEST_EV_POWER,
	GUEST_EV_TCP,
	GUEST_EV_PARK,
	GUEST_EV_PARK_TIMER,
};
