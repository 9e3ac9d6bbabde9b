/* Stands in until the command that reads audit logs is merged. */
#include <errno.h>

#include "policy_cmd.h"
#include "ui.h"
#include "verb.h"

const struct opt_def policy_log_opts[] = {{0}};

int policy_log_run(struct opts *o)
{
	ui_error("policy log is not there yet");
	return EXIT_FAILED;
}
