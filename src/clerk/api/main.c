/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-clerk: says what calls of GraphQL do, from the body of their request. The keeper starts one
 * in the jail JAIL_CLERK for each request. */
#include "calls.h"

int main(int argc, char **argv)
{
	return session_main(argc, argv, &calls_program);
}
