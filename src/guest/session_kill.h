/*
 * session_kill - a signal for every process of a session, whatever group it has moved to.
 */
#pragma once

#include <sys/types.h>

void session_kill(pid_t session, int signo);
