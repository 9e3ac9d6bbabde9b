/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-clerk-git: says what a push does, from its bytes. The keeper starts one in the jail
 * JAIL_CLERK_GIT for each push. */
#include "push.h"

int main(int argc, char **argv)
{
	return session_main(argc, argv, &push_program);
}
