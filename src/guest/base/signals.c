/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <signal.h>

void signals_reset(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}
