/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_qemu - stands where qemu does and never says a word: a machine that takes for ever to boot.
 *
 * Trust    Test program.
 */
#include <poll.h>

int main(void)
{
	for (;;)
		(void)poll(0, 0, 1000);
}
