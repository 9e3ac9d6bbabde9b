/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_opts.h"

const struct opt_def prove_opts[] = {
	{0, "quick", NULL, "run only the decisive probes, without a scratch sandbox"},
	{0, "group", "GROUP,...", "run only these groups", .many = true},
	{0, "probe", "ID,...", "run only these probes", .many = true},
	{0, "list", NULL, "list the probes and run none"},
	{'v', "verbose", NULL, "print the results of every probe (default: of failed probes)"},
	{0, "json", NULL, "print JSON"},
	{0, "html", "FILE", "write an HTML report"},
	{0, "echo", "URL", "server that returns requests, for the probes that require one"},
	{0, "twin", "NAME", "use this sandbox as the scratch sandbox, and keep it"},
	{0},
};
