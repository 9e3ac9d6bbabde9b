/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_internal - declarations shared by exec.c (states of an exec), exec_io.c (its data) and
 *        exec_attach.c (attached clients).
 *
 * Trust    See exec.h.
 */
#pragma once

#include "exec.h"

/* exec.c */
static inline bool exec_is_kept(const struct exec *e)
{
	return e->name[0] != '\0';
}
void exec_end_watch(struct execs *x, struct exec *e, struct exec_end *end, uint32_t events);
void exec_end_close(struct execs *x, struct exec *e, struct exec_end *end);
/* Notifies the wire that there is data to pull. */
void exec_resume(struct execs *x, struct exec_conn *c);
/* Ends the stream, and its program, because of a protocol violation of the host. */
void exec_violation(struct execs *x, struct exec_conn *c);
/* ERROR as the stream's only frame. */
void exec_say_error(struct execs *x, struct exec_conn *c, uint8_t status, const char *text);
/* Starts an exec of that spec for the conn; sends ERROR on failure. */
int exec_start(struct execs *x, struct exec_conn *c, struct slice payload) MUST_CHECK;
void exec_free(struct execs *x, struct exec *e);
/* The exec has lost its conn. `told`: the stream ended with its EXIT. */
void exec_leave(struct execs *x, struct exec *e, bool told);
void exec_hang_up(struct execs *x, struct exec *e);
void exec_set_aside(struct execs *x, struct exec *e, unsigned ms);

/* exec_io.c */
bool exec_has_room(const struct exec *e);
void exec_watch_output(struct execs *x, struct exec *e);
void exec_read_output(struct execs *x, struct exec *e, struct exec_end *end, enum exec_type type);
void exec_pump_input(struct execs *x, struct exec_conn *c);
void exec_write_input(struct execs *x, struct exec *e);

/* exec_attach.c */
struct exec *exec_find_kept(struct execs *x, const char *name);
/* Makes e the conn's, detaching any other client. */
void exec_take_over(struct execs *x, struct exec_conn *c, struct exec *e);
/* The program runs: sends STARTED, or the data that ATTACH requested. */
void exec_say_begun(struct execs *x, struct exec_conn *c);
int exec_take_attach(struct execs *x, struct exec_conn *c, struct slice payload) MUST_CHECK;
int exec_take_ack(struct execs *x, struct exec_conn *c, struct slice payload) MUST_CHECK;
/* DETACHED is the conn's last frame; the exec continues without it. */
void exec_send_away(struct execs *x, struct exec_conn *c, enum exec_reason reason);
void exec_resize(struct execs *x, struct exec *e, uint16_t rows, uint16_t cols);
/* The nudge has ended, or no client reattached. */
void exec_on_aside(struct execs *x, struct exec *e);
/* Only the newest EXEC_MAX_DEAD of the exited kept sessions stay. */
void exec_forget_dead(struct execs *x);
/* Returns why no kept session of this name is possible now, or NULL. */
const char *exec_keep_refusal(struct execs *x, const char *name);
