/* The HTTP engine, from the guest's side: requests, names, verdicts, refusals. */
#include "proxy_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

int main(void)
{
	return 0;
}
