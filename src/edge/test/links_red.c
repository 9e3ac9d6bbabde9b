/* SPDX-License-Identifier: Apache-2.0 */
/* Not part of sbx-edge: the forbidden reference that tests/lint/links must detect. RED is its
 * name. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/ssl.h>

extern void (*volatile links_red)(void);
void (*volatile links_red)(void) = (void (*)(void))RED;

__attribute__((constructor)) static void refer(void)
{
	if (!links_red)
		abort();
}
