#include "origin.h"

#include <errno.h>

int slot_sign(struct origin *o, struct exchange *x, const struct value *v, const char **ret_why)
{
	*ret_why = "requests to this service cannot be signed yet";
	return -ENOSYS;
}
