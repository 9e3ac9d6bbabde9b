/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opener - xdg-open, open and sbx-open in the guest: pass a link to the host.
 *
 * How      OPENER_BIN is PID 1's own file, mounted there, because a copy would need memory. The
 *          programs are links to it in /usr/local/bin, and BROWSER names it. Such a program writes
 *          its argument to OPENER_SOCKET, where sbx-guest-net opens a stream /link, and prints the
 *          host's answer.
 * Trust    Arguments of the guest's programs, unchecked: the host parses the link
 *          (lib/rules/url/url.h) and asks the user. The answer comes from the host.
 * Owns     Nothing.
 * Limits   OPENER_MAX bytes of a link, OPENER_WAIT_S for the answer.
 * See      proto/PROTOCOL.net, opener_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "why.h"

#define OPENER_SOCKET "/run/sbx/link.sock"
#define OPENER_BIN WHY_BIN "/sbx-open"
#define OPENER_MAX 8192
#define OPENER_REPLY 1024
#define OPENER_WAIT_S 60

int opener_install(struct err *err) MUST_CHECK;
/* Whether the program was started under one of the names. */
bool opener_is(int argc, char **argv);
int opener_main(int argc, char **argv);
