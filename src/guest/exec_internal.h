/*
 * exec_internal - what exec.c (life of an exec) and exec_io.c (its bytes) share.
 *
 * Trust    See exec.h.
 */
#pragma once

#include "exec.h"

void exec_end_watch(struct execs *x, struct exec *e, struct exec_end *end, uint32_t events);
void exec_end_close(struct execs *x, struct exec *e, struct exec_end *end);
/* Tells the wire that there is something to pull. */
void exec_resume(struct execs *x, struct exec *e);
/* Ends the stream because of what the host sent, and what runs with it. */
void exec_violation(struct execs *x, struct exec *e);
void exec_say_error(struct execs *x, struct exec *e, uint8_t status, const char *text);
void exec_check_drained(struct execs *x, struct exec *e);

bool exec_has_room(const struct exec *e);
void exec_watch_output(struct execs *x, struct exec *e);
void exec_read_output(struct execs *x, struct exec *e, struct exec_end *end, enum exec_type type);
void exec_pump_input(struct execs *x, struct exec *e);
